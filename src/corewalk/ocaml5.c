/* SPDX-License-Identifier: MIT */
/*
 * OCaml 5.  Vocabulary.  A *pool* of 32 KiB has *slots* of one of 32 classes
 * for small values; a value of more than 128 words is *large*, a block of
 * malloc of its own.  Each *domain* has pools, large values, and a *minor heap*
 * in a range that was reserved for all of them.
 */
#include "corewalk/ocaml.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"

enum {
	PAGE = 4096,
	POOL_WORDS = 4096, POOL = POOL_WORDS * 8,
	/* runtime/shared_heap.c */
	P_NEXT = 0, P_FREE_SLOT = 1, P_OWNER = 2, P_CLASS = 3, P_HEADER = 4,
	CLASSES = 32, SMALL_MAX = 128,
	L_OWNER = 0, L_NEXT = 1, L_VALUE = 2,
	SIZE_SHIFT = 10,	/* of a header: words, colour, tag */
	BAD_PART = 16,		/* of the slots, less may be damaged */
	/* caml/domain_state.tbl */
	D_PTR = 1, D_START = 2, D_END = 3, D_WORDS = 4,
	DOMAINS = 128,		/* Max_domains_def */
	/* Pages of a range where pools may begin: they come by the 16. */
	PROBED = 16 * POOL / PAGE,
};

/* caml/sizeclasses.h: words of a slot; they end where the pool does. */
static const uint8_t slot_words[CLASSES] = {
	1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 17, 19, 22, 25, 28, 32, 33,
	37, 42, 47, 53, 59, 65, 73, 81, 89, 99, 108, 118, 128,
};

struct domain {
	vaddr state, start, end;
};

struct pool {
	vaddr at;
	uint64_t used;		/* bytes of values; 0 also if it is free */
};

struct large {
	struct block block;	/* first: its address is what is looked up */
	struct domain owner;
	vaddr next;
	uint64_t bytes;
	bool leads;		/* to another one, or nowhere */
};

struct range {
	vaddr start, end;
};

struct major {
	struct space *sp;
	struct heap *heap;
	struct range *ranges;	/* owned; anonymous memory, no allocator's */
	size_t n_ranges, cap_ranges;
	struct domain domains[DOMAINS];
	size_t n_domains;
	struct pool *pools;	/* owned; by address */
	size_t n_pools, cap_pools;
	struct large *large;	/* owned; by address */
	size_t n_large, cap_large;
};

/* ---- where to look ---- */

static void add_ranges(struct major *m, const struct seg *seg)
{
	const struct heap *h = m->heap;
	vaddr at = seg->start, end = seg->start + seg->avail;
	size_t x = BISECT(mid, 0, h->n_extents, h->extents[mid].end <= at);

	for (; at < end; x++) {
		bool last = x == h->n_extents || h->extents[x].start >= end;
		vaddr stop = last ? end : h->extents[x].start;

		if (stop > at)
			MEM_PUSH(m->ranges, m->n_ranges, m->cap_ranges) =
				(struct range){ round_up(at, PAGE), stop };
		if (last)
			return;
		at = h->extents[x].end;
	}
}

static void find_ranges(struct major *m)
{
	for (size_t i = 0; i < m->sp->n_segs; i++) {
		const struct seg *seg = &m->sp->segs[i];

		if (space_seg_anon(seg) && space_seg_private(m->sp, seg) &&
		    !space_module(m->sp, seg->start))
			add_ranges(m, seg);
	}
}

/* ---- domains and pools ---- */

/* A domain's state says where its minor heap is. */
static bool read_domain(struct major *m, vaddr state, struct domain *ret)
{
	uint64_t w[D_WORDS];

	if (!state || state & 7 ||
	    space_read(m->sp, state, w, sizeof(w)) != sizeof(w) ||
	    !w[D_START] || w[D_START] & (PAGE - 1) ||
	    w[D_END] & (PAGE - 1) || w[D_START] >= w[D_END] ||
	    w[D_PTR] < w[D_START] || w[D_PTR] > w[D_END] ||
	    !space_mapped(m->sp, w[D_START], w[D_END] - w[D_START]))
		return false;
	*ret = (struct domain){ state, w[D_START], w[D_END] };
	return true;
}

/* Of a pool or large value that is believed; false if there are too many. */
static bool add_domain(struct major *m, const struct domain *d)
{
	for (size_t i = 0; i < m->n_domains; i++)
		if (m->domains[i].state == d->state)
			return true;
	if (m->n_domains == DOMAINS)
		return false;
	m->domains[m->n_domains++] = *d;
	return true;
}

/* Is it 0, or the place of a slot? */
static bool is_slot(vaddr at, vaddr pool, uint64_t first, uint64_t words)
{
	uint64_t off = at - pool;

	return !at || (off < POOL && !(off & 7) && off / 8 >= first &&
		       !((off / 8 - first) % words));
}

/* Do the slots hold values of their class, or lead to free ones? */
static bool walk_slots(const uint64_t *w, vaddr at, uint64_t class,
		       uint64_t *ret_used)
{
	uint64_t words = slot_words[class], n = (POOL_WORDS - P_HEADER) / words;
	uint64_t first = POOL_WORDS - n * words, used = 0, bad = 0;
	uint64_t least = class ? slot_words[class - 1] : 0;

	if (!is_slot(w[P_FREE_SLOT], at, first, words))
		return false;
	for (uint64_t i = first; i < POOL_WORDS; i += words) {
		uint64_t size = (w[i] >> SIZE_SHIFT) + 1;

		if (!w[i] && words > 1)
			bad += !is_slot(w[i + 1], at, first, words);
		else if (size > least && size <= words)
			used += size * 8;
		else
			bad++;
	}
	*ret_used = used;
	return bad * BAD_PART < n;
}

static bool is_pool(struct major *m, vaddr at, struct pool *ret)
{
	uint64_t head[P_HEADER], w[POOL_WORDS];
	struct domain owner;

	if (space_read(m->sp, at, head, sizeof(head)) != sizeof(head) ||
	    (uint32_t)head[P_CLASS] == 0 ||
	    (uint32_t)head[P_CLASS] >= CLASSES ||
	    head[P_NEXT] & (PAGE - 1) ||
	    !read_domain(m, head[P_OWNER], &owner) ||
	    space_read(m->sp, at, w, sizeof(w)) != sizeof(w))
		return false;
	ret->at = at;
	return walk_slots(w, at, (uint32_t)head[P_CLASS], &ret->used) &&
	       add_domain(m, &owner);
}

static vaddr find_first(struct major *m, const struct range *r, vaddr end,
			vaddr at, struct pool *ret)
{
	for (; at + POOL <= min_u64(r->end, end); at += PAGE) {
		vaddr stored = space_next_stored(m->sp, at);

		at = max_u64(at, round_down(stored, PAGE));
		if (at + POOL > r->end || at >= end)
			break;
		if (is_pool(m, at, ret))
			return at;
	}
	return 0;
}

/* Only programs in which a range begins with a pool are searched for all. */
static bool has_pools(struct major *m)
{
	struct pool p;

	for (size_t i = 0; i < m->n_ranges; i++) {
		const struct range *r = &m->ranges[i];

		if (find_first(m, r, r->start + (uint64_t)PROBED * PAGE,
			       r->start, &p))
			return true;
	}
	return false;
}

static void find_pools(struct major *m)
{
	for (size_t i = 0; i < m->n_ranges; i++) {
		const struct range *r = &m->ranges[i];
		struct pool p;
		vaddr at = r->start;

		while ((at = find_first(m, r, r->end, at, &p))) {
			MEM_PUSH(m->pools, m->n_pools, m->cap_pools) = p;
			at += POOL;
		}
	}
}

/* A pool that no domain owns any more, and that leads to another such. */
static bool is_free(struct major *m, vaddr at)
{
	uint64_t head[P_HEADER];
	vaddr next;
	size_t i;

	if (space_read(m->sp, at, head, sizeof(head)) != sizeof(head))
		return false;
	next = head[P_NEXT];
	i = BISECT(mid, 0, m->n_ranges, m->ranges[mid].end <= next);
	return !head[P_OWNER] && next && !(next & (PAGE - 1)) &&
	       i < m->n_ranges && m->ranges[i].start <= next &&
	       m->ranges[i].end - next >= POOL;
}

/* Free ones are next to others, up to limit: they come by the 16. */
static vaddr free_end(struct major *m, vaddr at, vaddr limit)
{
	while (limit - at >= POOL && is_free(m, at))
		at += POOL;
	return at;
}

static vaddr free_start(struct major *m, vaddr at, vaddr limit)
{
	while (at - limit >= POOL && is_free(m, at - POOL))
		at -= POOL;
	return at;
}

/* ---- large values ---- */

static bool is_large(struct major *m, const struct block *b, struct large *ret)
{
	uint64_t w[L_VALUE + 1], words;
	struct domain owner;

	if (b->usable < (SMALL_MAX + 1 + L_VALUE) * 8 ||
	    space_read(m->sp, b->addr, w, sizeof(w)) != sizeof(w) ||
	    !read_domain(m, w[L_OWNER], &owner))
		return false;
	words = (w[L_VALUE] >> SIZE_SHIFT) + 1;
	*ret = (struct large){
		.block = *b, .owner = owner, .next = w[L_NEXT],
		.bytes = (words + L_VALUE) * 8,
	};
	return words > SMALL_MAX && words <= b->usable / 8 - L_VALUE;
}

/* Blocks that a domain owns, and that lead to another such, or nowhere. */
static void find_large(struct major *m)
{
	struct heap_iter it;
	struct large l;
	struct block b;
	size_t n = 0;

	heap_iter_init(&it, m->heap);
	while (heap_iter_next(&it, &b))
		if (b.state == BLOCK_USED && is_large(m, &b, &l))
			MEM_PUSH(m->large, m->n_large, m->cap_large) = l;
	for (size_t i = 0; i < m->n_large; i++)
		m->large[i].leads = !m->large[i].next ||
			FIND(m->large, m->n_large, m->large[i].next);
	for (size_t i = 0; i < m->n_large; i++)
		if (m->large[i].leads && add_domain(m, &m->large[i].owner))
			m->large[n++] = m->large[i];
	m->n_large = n;
}

/* ---- all of it ---- */

static uint32_t arena_of(struct major *m, uint32_t allocator, vaddr addr,
			 const char *name)
{
	heap_add_arena(m->heap, allocator, addr, "%s", name);
	return (uint32_t)(m->heap->n_arenas - 1);
}

/* Runs of pools in one range, and of free ones before and behind. */
static void add_pools(struct major *m, uint32_t arena)
{
	vaddr last = 0;

	for (size_t i = 0, end; i < m->n_pools; i = end) {
		vaddr start = m->pools[i].at, stop;
		size_t r = BISECT(mid, 0, m->n_ranges,
				  m->ranges[mid].end <= start);

		end = i + 1;
		stop = m->ranges[r].end;
		while (end < m->n_pools && m->pools[end].at < stop &&
		       m->pools[end].at == m->pools[end - 1].at + POOL)
			end++;
		if (end < m->n_pools)
			stop = min_u64(stop, m->pools[end].at);
		start = free_start(m, start, max_u64(last,
						     m->ranges[r].start));
		last = free_end(m, m->pools[end - 1].at + POOL, stop);
		heap_add_range(m->heap, arena, EXTENT_RUNTIME, start, last);
	}
}

static void add_major(struct major *m, uint32_t allocator)
{
	uint32_t id = arena_of(m, allocator, m->pools[0].at, "ocaml major");
	struct block *blocks = mem_alloc(m->n_large * sizeof(*blocks));
	uint64_t used = 0;

	for (size_t i = 0; i < m->n_pools; i++)
		used += m->pools[i].used;
	m->heap->arenas[id].runtime_free = m->n_pools * POOL - used;
	for (size_t i = 0; i < m->n_large; i++) {
		blocks[i] = m->large[i].block;
		used += m->large[i].bytes;
	}
	m->heap->arenas[id].runtime_used = used;
	add_pools(m, id);
	heap_sort(m->heap);
	heap_carve(m->heap, id, blocks, m->n_large);
	free(blocks);
}

static void add_minor(struct major *m, uint32_t allocator)
{
	size_t n = m->heap->n_extents;
	uint32_t id = arena_of(m, allocator, m->domains[0].start,
			       "ocaml minor");

	for (size_t i = 0; i < m->n_domains; i++)
		heap_add_rest(m->heap, id, EXTENT_RUNTIME, n,
			      m->domains[i].start, m->domains[i].end);
	heap_sort(m->heap);
}

static void add_heaps(struct major *m)
{
	uint32_t allocator;
	char text[200];

	snprintf(text, sizeof(text), "pools of 32 KiB whose slots hold values "
		 "of their class: %zu, and blocks of malloc: %zu, all of "
		 "domains that name a minor heap: %zu", m->n_pools,
		 m->n_large, m->n_domains);
	allocator = heap_add_allocator(m->heap, "ocaml",
				       "runtime heap, not walked", text);
	add_major(m, allocator);
	add_minor(m, allocator);
}

void ocaml5_find(struct space *sp, struct heap *heap)
{
	struct major m = { .sp = sp, .heap = heap };

	find_ranges(&m);
	if (has_pools(&m)) {
		find_pools(&m);
		find_large(&m);
		add_heaps(&m);
	}
	free(m.ranges);
	free(m.pools);
	free(m.large);
}
