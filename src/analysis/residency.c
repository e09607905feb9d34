/* SPDX-License-Identifier: MIT */
#include "analysis/residency.h"

#include <stdlib.h>

#include "base/mem.h"

enum {
	UNIT = 8, SLOTS = USAGE_EXACT / UNIT, BUCKETS = 64,
};

/* Classes by size: those of exact sizes that are multiples, and the ranges. */
struct filler {
	struct residency_heap *r;
	struct space *sp;
	const struct heap *h;
	struct usage *usage;
	/* Owned; by allocator: index plus 1; 0: none. */
	uint32_t (*class)[SLOTS + BUCKETS];
};

/* The next piece of [from, to) that is not just resident. */
static bool next_piece(struct space *sp, vaddr from, vaddr to,
		       struct page_piece *ret)
{
	while (from < to) {
		*ret = space_pages_at(sp, from);
		ret->start = from;
		ret->end = min_u64(ret->end, to);
		if (ret->flags != PAGE_PRESENT)
			return true;
		from = ret->end;
	}
	return false;
}

struct residency *residency_of_class(struct usage_class *c,
				     enum block_state state)
{
	return state == BLOCK_USED ? &c->used_pages :
	       block_state_free(state) ? &c->free_pages : &c->own_pages;
}

void residency_of_states(struct space *sp, struct planes_cursor *at,
			 vaddr from, vaddr to,
			 struct residency by[BLOCK_STATES])
{
	struct page_piece p;

	for (; next_piece(sp, from, to, &p); from = p.end) {
		uint64_t bytes[BLOCK_STATES] = { 0 };

		planes_bytes(at, p.start, p.end, bytes);
		for (int s = 0; s < BLOCK_STATES; s++)
			residency_add_pages(&by[s], p.flags, bytes[s]);
	}
}

/* ---- classes ---- */

static size_t slot_of(uint64_t size)
{
	return size < USAGE_EXACT ? size / UNIT :
		SLOTS + 63 - (size_t)__builtin_clzll(size);
}

static void index_classes(struct filler *f)
{
	for (size_t i = 0; i < f->usage->n_classes; i++) {
		const struct usage_class *c = &f->usage->classes[i];

		if (!(c->min % UNIT))
			f->class[c->allocator][slot_of(c->min)] =
				(uint32_t)i + 1;
	}
}

/* Sizes of their own at the end of an extent are few: they are looked for. */
static struct usage_class *class_of(struct filler *f, uint32_t arena,
				    uint64_t size)
{
	struct usage *u = f->usage;
	uint32_t allocator = f->h->arenas[arena].allocator;
	uint32_t i = f->class[allocator][slot_of(size)];

	if (i && size >= u->classes[i - 1].min && size <= u->classes[i - 1].max)
		return &u->classes[i - 1];
	for (i = 0; i < u->n_classes; i++)
		if (u->classes[i].allocator == allocator &&
		    size >= u->classes[i].min && size <= u->classes[i].max)
			return &u->classes[i];
	return NULL;
}

static void add_to_class(struct filler *f, const struct planes_cursor *at,
			 uint32_t flags, uint64_t bytes)
{
	struct usage_class *c = class_of(f, at->x->arena,
					 at->end - at->start);
	enum block_state state = planes_state(at->x, at->g);

	if (c)
		residency_add_pages(residency_of_class(c, state), flags,
				    bytes);
}

/*
 * Pages that are not in memory, and the blocks on them.  As many pages may lie
 * in one block as blocks on one page: neither is met twice.
 */
static void extent_classes(struct filler *f, const struct heap_extent *x)
{
	struct planes_cursor at;
	struct page_piece p;

	planes_seek(&at, x);
	for (vaddr from = x->start; next_piece(f->sp, from, x->end, &p);
	     from = p.end) {
		if ((p.flags & (PAGE_PRESENT | PAGE_ZERO)) == PAGE_PRESENT)
			continue;
		if (p.start >= at.end)
			planes_find(&at, p.start);
		while (at.start < p.end) {
			add_to_class(f, &at, p.flags, min_u64(at.end, p.end) -
				     max_u64(at.start, p.start));
			if (at.end >= p.end)
				break;
			planes_move(&at, planes_next(x, at.g + 1));
		}
	}
}

static void finish_classes(struct filler *f)
{
	struct usage *u = f->usage;

	for (size_t i = 0; i < u->n_classes; i++) {
		struct usage_class *c = &u->classes[i];

		residency_rest(&c->used_pages, c->used.bytes);
		residency_rest(&c->free_pages, c->free.bytes);
		residency_rest(&c->own_pages, c->state[BLOCK_OVERHEAD].bytes);
		residency_add(&u->total.used_pages, &c->used_pages);
		residency_add(&u->total.free_pages, &c->free_pages);
		residency_add(&u->total.own_pages, &c->own_pages);
	}
}

/* ---- arenas ---- */

static void add_blocks(struct filler *f, const struct heap_extent *x,
		       struct residency by[BLOCK_STATES])
{
	struct planes_cursor at;

	planes_seek(&at, x);
	residency_of_states(f->sp, &at, x->start, x->end, by);
	extent_classes(f, x);
}

static void add_extent(struct filler *f, const struct heap_extent *x,
		       struct residency (*by)[BLOCK_STATES])
{
	struct residency_arena *a = &f->r->arenas[x->arena];
	struct residency r = { 0 };
	struct residency_cursor c;
	struct usage_class *k;

	if (x->kind == EXTENT_BLOCKS) {
		add_blocks(f, x, by[x->arena]);
		return;
	}
	residency_seek(&c, f->sp);
	residency_of(&c, x->start, x->end, &r);
	residency_add(&a->all, &r);
	if (x->kind != EXTENT_MMAPPED)
		return;
	residency_add(&a->used, &r);
	k = class_of(f, x->arena, x->end - x->start);
	if (k)
		residency_add(&k->used_pages, &r);
}

static void finish_arena(struct residency_arena *a, const struct arena *arena,
			 struct residency by[BLOCK_STATES])
{
	for (int s = 0; s < BLOCK_STATES; s++) {
		residency_rest(&by[s], arena->state[s].bytes);
		residency_add(&a->all, &by[s]);
		if (s == BLOCK_USED)
			residency_add(&a->used, &by[s]);
		else if (block_state_free(s))
			residency_add(&a->free, &by[s]);
	}
}

void residency_init(struct residency_heap *r, struct space *sp,
		    const struct heap *h, struct usage *usage)
{
	struct filler *f;
	struct residency (*by)[BLOCK_STATES];

	*r = (struct residency_heap){ .n_arenas = h->n_arenas };
	if (!space_pages_known(sp))
		return;
	f = mem_zalloc(sizeof(*f));
	*f = (struct filler){
		.r = r, .sp = sp, .h = h, .usage = usage,
		.class = mem_zalloc((h->n_allocators + 1) * sizeof(*f->class)),
	};
	by = mem_zalloc((h->n_arenas + 1) * sizeof(*by));
	r->arenas = mem_zalloc((h->n_arenas + 1) * sizeof(*r->arenas));
	index_classes(f);
	for (size_t i = 0; i < h->n_extents; i++)
		add_extent(f, &h->extents[i], by);
	finish_classes(f);
	for (size_t i = 0; i < h->n_arenas; i++) {
		struct residency_arena *a = &r->arenas[i];

		finish_arena(a, &h->arenas[i], by[i]);
		residency_add(&r->total.used, &a->used);
		residency_add(&r->total.free, &a->free);
		residency_add(&r->total.all, &a->all);
	}
	free(by);
	free(f->class);
	free(f);
}

void residency_fini(struct residency_heap *r)
{
	free(r->arenas);
	*r = (struct residency_heap){ .n_arenas = 0 };
}
