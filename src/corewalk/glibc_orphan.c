/* SPDX-License-Identifier: MIT */
/*
 * Heaps without their main arena.  libc's data lies high in the address space
 * and is the first thing that a truncated core loses.  The other arenas lie in
 * their own heaps and know their layout; the main heap is the first anonymous
 * memory from whose start a long chain of chunks runs.  What only the main
 * arena knew is said to be missing: its fastbins and which chunk is top.
 */
#include "corewalk/glibc.h"

#include "base/mem.h"

enum {
	SURE_CHAIN = 32,	/* chunks in a row that are no accident */
	MAX_PROBES = 1 << 20,	/* places where a heap may start */
};

static const struct state_layout *layout_of(struct space *sp, vaddr arena)
{
	const struct state_layout *l;

	for (size_t i = 0; (l = glibc_state_layout(i)); i++)
		if (l->word == sp->word && l->align == 16 &&
		    glibc_good_bins(sp, sp->word, arena + state_bins(l)))
			return l;
	return NULL;
}

/* Arenas are found in the order of their addresses. */
static bool known_arena(const struct glibc *g, vaddr addr)
{
	size_t lo = BISECT(mid, 1, g->n_arenas, g->arenas[mid].addr < addr);

	return lo < g->n_arenas && g->arenas[lo].addr == addr;
}

/* Does a heap start at h?  Its arena is added. */
static void try_heap(struct glibc *g, vaddr h)
{
	const struct state_layout *l;
	uint64_t arena, info;

	if (!space_word(g->sp, h, &arena) || arena <= h)
		return;
	info = arena - h;
	if (info != 16 && info != 24 && info != 32 && info != 48)
		return;
	l = layout_of(g->sp, arena);
	if (!l)
		return;
	if (!g->state) {
		g->state = l;
		g->heap_info_size = (unsigned)info;
	}
	if (l == g->state && info == g->heap_info_size &&
	    g->n_arenas < GLIBC_MAX_ARENAS)
		glibc_add_arena(g, arena, false);
}

static void find_arenas(struct glibc *g)
{
	unsigned probes = MAX_PROBES;

	for (size_t i = 0; i < g->sp->n_segs; i++) {
		const struct seg *seg = &g->sp->segs[i];
		vaddr h = round_up(seg->start, g->heap_max);

		if (!(seg->flags & SEG_W) || !space_seg_anon(seg))
			continue;
		for (; h >= seg->start && h < seg->end && probes;
		     h += g->heap_max, probes--)
			/* Looking into a hole costs a page of the cache. */
			if (space_stored(g->sp, h, h + g->W))
				try_heap(g, h);
	}
}

static bool in_heap(const struct glibc *g, vaddr arena)
{
	return !((arena - g->heap_info_size) & (g->heap_max - 1));
}

/* The one arena of the ring that lies in no heap. */
static vaddr main_of_ring(struct glibc *g)
{
	for (size_t i = 1; i < g->n_arenas; i++) {
		uint64_t next;

		if (space_word(g->sp, g->arenas[i].addr +
			       state_next(g->state), &next) &&
		    !known_arena(g, next) && !in_heap(g, next))
			return next;
	}
	return 0;
}

/*
 * How many plausible chunks follow each other from the start of a run; a run
 * that a few of them fill exactly is as sure as a long chain.
 */
static unsigned chain_length(struct glibc *g, vaddr start, vaddr end)
{
	vaddr p = glibc_first_chunk(g, start);
	unsigned n = 0;

	while (n < SURE_CHAIN && p < end) {
		uint64_t word, size;

		if (!space_word(g->sp, p + g->W, &word))
			break;
		size = word & ~(uint64_t)CHUNK_FLAGS;
		if ((word & (CHUNK_MMAPPED | CHUNK_NON_MAIN)) ||
		    size < g->MIN || (size & (g->A - 1)) || size > end - p ||
		    (!n && !(word & CHUNK_PREV_INUSE)))
			return 0;
		p += size;
		n++;
	}
	return p == end && n > 2 ? SURE_CHAIN : n;
}

static vaddr find_main_heap(struct glibc *g, unsigned *ret_chain)
{
	struct space *sp = g->sp;
	vaddr best = 0;

	*ret_chain = 0;
	for (size_t i = 0; i < sp->n_segs; ) {
		vaddr start = sp->segs[i].start;
		vaddr end = space_run_end(sp, start);
		unsigned n = end > start ? chain_length(g, start, end) : 0;

		if (n > *ret_chain) {
			*ret_chain = n;
			best = start;
		}
		for (i++; i < sp->n_segs && sp->segs[i].start < end; i++)
			;
	}
	return best;
}

unsigned glibc_find_orphans(struct space *sp, struct glibc **ret)
{
	struct glibc *g = mem_zalloc(sizeof(*g));
	unsigned chain;

	g->sp = sp;
	g->W = sp->word;
	g->A = 16;
	g->MIN = g->W == 8 ? 32 : 16;
	g->first = 17;
	g->last = 43;
	g->heap_max = g->W == 8 ? 64 * MIB : MIB;
	glibc_add_arena(g, 0, true);
	g->arenas[0].lost = true;
	g->arenas[0].attached = -1;
	find_arenas(g);
	g->sbrk_base = find_main_heap(g, &chain);
	if (chain < SURE_CHAIN && g->n_arenas == 1) {
		glibc_free(g, 1);
		return chain ? 12 : 0;
	}
	if (chain < SURE_CHAIN)
		g->sbrk_base = 0;
	if (g->state) {
		g->arenas[0].addr = main_of_ring(g);
		glibc_releases(g, g->state->first, g->state->last);
	} else {
		/* Never read: there is no arena to read. */
		g->state = glibc_state_layout(g->W == 8 ? 1 : 4);
	}
	glibc_complete(g);
	*ret = g;
	return g->n_arenas > 1 ? 90 : 60;
}
