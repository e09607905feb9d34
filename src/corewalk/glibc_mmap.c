/* SPDX-License-Identifier: MIT */
/*
 * Chunks that are mappings of their own.  No structure names them: they are
 * recognised by their headers in memory that nothing else explains, and
 * checked against the count and the sum that mp_ keeps.
 */
#include "corewalk/glibc.h"

#include "base/mem.h"

struct mmapped {
	vaddr chunk, base;
	uint64_t total;
	bool decoy;
};

struct mmap_search {
	struct glibc *all;
	size_t n_all;
	struct mmapped *found;	/* owned */
	size_t n, cap;
	uint64_t want, want_bytes;	/* by all mp_ together */
	uint64_t bytes;
	bool known;		/* every mp_ was found */
	bool drifts;		/* 2.43: want_bytes may be too high */
};

/* A chunk that is a mapping of its own, its header at c; 0 if it is none. */
static uint64_t mmapped_total(const struct glibc *g, vaddr base, vaddr c,
			      vaddr limit)
{
	bool bare = g->state->first == 43;	/* size without its header */
	uint64_t prev, size, total;

	if (!space_word(g->sp, c + g->W, &size) ||
	    (size & CHUNK_FLAGS) != CHUNK_MMAPPED ||
	    !space_word(g->sp, c, &prev))
		return 0;
	if (bare)
		prev &= ~UINT64_C(1);	/* bit 0: made of huge pages */
	size &= ~(uint64_t)CHUNK_FLAGS;
	if (prev != c - base || !add_ok(prev, size, &total) ||
	    !add_ok(total, bare ? 2 * g->W : 0, &total))
		return 0;
	if (total < g->sp->page || (total & (g->sp->page - 1)) ||
	    total > limit - base)
		return 0;
	return total;
}

/* Does the header that malloc wrote at the start of a mapping stand here? */
static bool mmapped_begins(const struct glibc *g, vaddr base)
{
	vaddr c = glibc_first_chunk(g, base);
	uint64_t prev, size;

	return space_word(g->sp, c + g->W, &size) &&
	       (size & CHUNK_FLAGS) == CHUNK_MMAPPED &&
	       space_word(g->sp, c, &prev) &&
	       (prev & ~UINT64_C(1)) == c - base;
}

/*
 * The chunk of the mapping that starts at base.  An aligned request leaves the
 * first header behind, and realloc may have made that one wrong: of the places
 * that an alignment can have led to the highest valid one is meant.
 */
static bool mmapped_at(const struct glibc *g, vaddr base, vaddr limit,
		       struct mmapped *ret)
{
	vaddr first = glibc_first_chunk(g, base) + 2 * g->W;

	*ret = (struct mmapped){ 0 };
	for (uint64_t align = g->A; align && align < limit - base; align <<= 1)
		for (int up = 0; up < 2; up++) {
			vaddr user = round_up(first, align) + (up ? align : 0);
			vaddr c = user - 2 * g->W;
			uint64_t total;

			if (c < base || c >= limit || c <= ret->chunk)
				continue;
			total = mmapped_total(g, base, c, limit);
			if (total)
				*ret = (struct mmapped){
					c, base, total, false
				};
		}
	return ret->chunk;
}

static bool all_covered(const struct mmap_search *m, vaddr addr,
			vaddr *ret_end)
{
	for (size_t i = 0; i < m->n_all; i++)
		if (glibc_covered(&m->all[i], addr, ret_end))
			return true;
	return false;
}

static vaddr all_next_covered(const struct mmap_search *m, vaddr addr,
			      vaddr limit)
{
	for (size_t i = 0; i < m->n_all; i++)
		limit = glibc_next_covered(&m->all[i], addr, limit);
	return limit;
}

static bool mmap_complete(const struct mmap_search *m)
{
	if (!m->known || m->n != m->want)
		return false;
	return !m->want || (m->bytes == m->want_bytes && !m->drifts);
}

/*
 * A program may have protected pages of its block: what the header claims may
 * reach over them, up to where something else is known to be.
 */
static vaddr claim_limit(struct mmap_search *m, vaddr base)
{
	vaddr end = glibc_mapped_end(m->all, base, UINT64_MAX);

	return all_next_covered(m, base, end);
}

/* Returns where it stopped, which may be behind to. */
static vaddr search_run(struct mmap_search *m, vaddr from, vaddr to)
{
	struct glibc *g = m->all;
	uint64_t page = g->sp->page;
	vaddr p = from, end;

	while (p < to && !mmap_complete(m)) {
		struct mmapped one;
		vaddr limit;

		if (all_covered(m, p, &end)) {
			p = round_up(end, page);
			continue;
		}
		limit = all_next_covered(m, p, to);
		while (p < limit) {
			if (!mmapped_begins(g, p) ||
			    !mmapped_at(g, p, claim_limit(m, p), &one)) {
				p = glibc_next_page(g, p, limit);
				continue;
			}
			MEM_PUSH(m->found, m->n, m->cap) = one;
			m->bytes += one.total;
			p += one.total;
			if (mmap_complete(m))
				return p;
		}
	}
	return p;
}

/*
 * More look-alikes than malloc counts: if just one choice of the surplus
 * explains both numbers, those are not malloc's.
 */
struct subset {
	const struct mmap_search *m;
	size_t chosen[16], answer[16];
	size_t k, answers;
	uint64_t tries;
};

static void choose(struct subset *s, size_t from, size_t depth, uint64_t left)
{
	if (s->answers > 1 || !s->tries)
		return;
	s->tries--;
	if (depth == s->k) {
		if (!left && !s->answers++)
			memcpy(s->answer, s->chosen, sizeof(s->answer));
		return;
	}
	for (size_t i = from; i + (s->k - depth) <= s->m->n; i++) {
		if (s->m->found[i].total > left)
			continue;
		s->chosen[depth] = i;
		choose(s, i + 1, depth + 1, left - s->m->found[i].total);
	}
}

static bool drop_decoys(struct mmap_search *m)
{
	struct subset s = { .m = m, .tries = 1 << 22 };

	if (m->n <= m->want || m->bytes < m->want_bytes)
		return false;
	s.k = m->n - m->want;
	if (s.k > countof(s.chosen))
		return false;
	choose(&s, 0, 0, m->bytes - m->want_bytes);
	if (s.answers != 1 || !s.tries)
		return false;
	for (size_t i = 0; i < s.k; i++)
		m->found[s.answer[i]].decoy = true;
	return true;
}

static void mmap_expect(struct mmap_search *m)
{
	m->known = true;
	for (size_t i = 0; i < m->n_all; i++) {
		m->known &= m->all[i].par != NULL;
		m->want += m->all[i].n_mmaps;
		m->want_bytes += m->all[i].mmapped_mem;
		m->drifts |= m->all[i].state->first == 43;
	}
	if (m->drifts)
		m->want_bytes = round_down(m->want_bytes,
					   m->all->sp->page);
}

static void note_mmapped(struct mmap_search *m, bool dropped)
{
	struct glibc *g = m->all;
	size_t surplus = m->n > m->want ? m->n - m->want : 0;

	if (!m->known || dropped || m->n == m->want)
		return;
	if (m->n > m->want)
		heap_note(g->heap, "mmapped-surplus", g->mmapped_id, 0, 0,
			  "%zu mappings look like malloc's, malloc counts "
			  "%llu: %zu of them are not its own", m->n,
			  (unsigned long long)m->want, surplus);
	else
		heap_note(g->heap, "mmapped-missing", g->mmapped_id, 0, 0,
			  "malloc counts %llu mappings of its own, %zu of "
			  "them were found", (unsigned long long)m->want,
			  m->n);
}

void glibc_walk_mmapped(struct glibc *all, size_t n)
{
	struct mmap_search m = { .all = all, .n_all = n };
	struct space *sp = all->sp;
	struct heap *h = all->heap;
	bool dropped;
	vaddr stop = 0;

	mmap_expect(&m);
	for (size_t i = 0; i < sp->n_segs && !mmap_complete(&m); i++) {
		vaddr from = max_u64(sp->segs[i].start, stop), end;

		if (from >= sp->segs[i].end)
			continue;
		end = space_run_end(sp, from);
		if (end > from)
			stop = search_run(&m, from, end);
	}
	dropped = drop_decoys(&m);
	note_mmapped(&m, dropped);
	/* 2.43 leaves the last word of a mapping unused. */
	for (size_t i = 0; i < m.n; i++)
		if (!m.found[i].decoy)
			heap_add_mmapped(h, all->mmapped_id, m.found[i].base,
					 m.found[i].base + m.found[i].total,
					 m.found[i].chunk + 2 * all->W,
					 all->state->first == 43 ? all->W : 0);
	h->allocators[all->allocator].mmapped_known = m.known;
	h->allocators[all->allocator].mmapped_claimed_blocks = m.want;
	h->allocators[all->allocator].mmapped_claimed_bytes = m.want_bytes;
	free(m.found);
}
