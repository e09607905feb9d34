/* SPDX-License-Identifier: MIT */
/*
 * The walk of jemalloc.  Extents of pages become extents of the model, side by
 * side those of one arena; regions and large blocks become blocks.  Those with
 * a bit in the slab's bitmap, and those in a thread cache, are free.
 */
#include "corewalk/jemalloc.h"

#include <inttypes.h>

#include "base/mem.h"

enum {
	/* A block as large as that has planes for its start alone. */
	LONE_BYTES = 1 << 20,
	BITMAP_OFF = 64,
	HEAD_ROOM = UINT16_MAX,		/* bytes of a bin's stack, less 1 */
	MAX_BINS = 128,			/* of a thread cache */
	MAX_NOTES = 20,
	MAX_STACK = 1 << 16,		/* bytes of one bin's */
	MAX_FAILURES = 1 << 20,
};

struct walk {
	struct jemalloc *j;
	struct space *sp;
	struct heap *heap;
	uint32_t allocator;
	uint32_t arena[JE_ARENAS];	/* index + 1; 0: not met yet */
	uint32_t *extent;		/* owned; of each extent's block */
	size_t notes;
	size_t failures;	/* pointers in caches to no block */
};

static uint32_t arena_of(struct walk *w, unsigned index)
{
	if (!w->arena[index]) {
		heap_add_arena(w->heap, w->allocator, 0, "jemalloc %u",
			       index);
		w->arena[index] = (uint32_t)w->heap->n_arenas;
	}
	return w->arena[index] - 1;
}

static bool in_use(const struct jemalloc *j, const struct je_extent *x)
{
	return x->state == JE_ACTIVE && x->class < j->n_classes;
}

static bool decodable(struct walk *w, const struct je_extent *x)
{
	return x->agrees && (!x->slab || !in_use(w->j, x) ||
			     space_readable(w->sp, x->start, x->bytes));
}

/* It needs planes for its start alone, and is large or hardly there. */
static bool lone(const struct jemalloc *j, const struct je_extent *x)
{
	return !(x->slab && in_use(j, x)) &&
	       (x->bytes > LONE_BYTES ||
		space_sparse(j->sp, x->start, x->start + x->bytes));
}

/* ---- extents ---- */

static void mark(struct heap_extent *x, vaddr start, vaddr end,
		 enum block_state state)
{
	if (start == end)
		return;
	extent_mark(x, start);
	extent_set_state(x, start, state);
}

static enum block_state free_state(const struct je_extent *x)
{
	switch (x->state) {
	case JE_MUZZY:
		return BLOCK_UNLISTED;
	case JE_RETAINED:
		return BLOCK_TOP;
	default:
		return BLOCK_UNSORTED;
	}
}

static void mark_slab(struct walk *w, const struct je_extent *s,
		      struct heap_extent *x)
{
	uint64_t bitmap[JE_MAX_REGIONS / 64] = { 0 };
	uint64_t size = s->size, n = s->bytes / size;

	heap_add_span(w->heap, s->start, n, size);
	space_read(w->sp, s->addr + BITMAP_OFF, bitmap, sizeof(bitmap));
	for (uint64_t i = 0; i < n; i++) {
		vaddr at = s->start + i * size;

		extent_mark(x, at);
		if (bitmap[i / 64] >> (i % 64) & 1)
			extent_set_state(x, at, BLOCK_BINNED);
	}
	mark(x, s->start + n * size, s->start + s->bytes, BLOCK_OVERHEAD);
}

static void mark_extent(struct walk *w, const struct je_extent *s,
			struct heap_extent *x)
{
	vaddr end = s->start + s->bytes;

	if (!in_use(w->j, s)) {
		mark(x, s->start, end, free_state(s));
	} else if (s->slab) {
		mark_slab(w, s, x);
	} else {
		mark(x, s->start, s->user, BLOCK_OVERHEAD);
		extent_mark(x, s->user);
		mark(x, s->user + s->size, end, BLOCK_OVERHEAD);
	}
}

/* Extents [first, end) side by side become one of the model. */
static void add_run(struct walk *w, size_t first, size_t end)
{
	const struct je_extent *all = w->j->extents;
	const struct je_extent *last = &all[end - 1];
	size_t x = heap_add_blocks(w->heap, arena_of(w, last->arena),
				   all[first].start, last->start + last->bytes,
				   3, 0, 0);

	for (size_t i = first; i < end; i++) {
		w->extent[i] = (uint32_t)x;
		mark_extent(w, &all[i], &w->heap->extents[x]);
	}
}

static void add_rest(struct walk *w, uint32_t arena, vaddr start, vaddr end)
{
	if (start < end)
		heap_add_range(w->heap, arena, EXTENT_OVERHEAD, start, end);
}

/* One block, or a free range: its planes end with its start. */
static void add_lone(struct walk *w, size_t i)
{
	const struct je_extent *s = &w->j->extents[i];
	uint32_t arena = arena_of(w, s->arena);
	bool used = in_use(w->j, s);
	vaddr end = s->start + s->bytes;
	vaddr start = used ? s->user : s->start;
	vaddr stop = used ? start + s->size : end;
	size_t x;

	add_rest(w, arena, s->start, start);
	x = heap_add_blocks(w->heap, arena, start, start + 8, 3, 0, 0);
	mark(&w->heap->extents[x], start, stop, used ? BLOCK_USED :
	     free_state(s));
	heap_trim_extent(w->heap, x, stop);
	w->extent[i] = (uint32_t)x;
	add_rest(w, arena, stop, end);
}

static void add_undecoded(struct walk *w, const struct je_extent *s)
{
	uint32_t arena = arena_of(w, s->arena);

	heap_add_range(w->heap, arena, EXTENT_UNDECODED, s->start,
		       s->start + s->bytes);
	if (w->notes++ < MAX_NOTES)
		heap_note(w->heap, "jemalloc-extent", arena, s->start,
			  s->bytes, "an extent of size class %u: %s",
			  s->class, s->agrees ?
			  "not all of it is in the file" :
			  "its structure, its bitmap and the radix tree "
			  "contradict each other");
}

static void add_extents(struct walk *w)
{
	const struct jemalloc *j = w->j;

	w->extent = mem_zalloc((j->n_extents + 1) * sizeof(*w->extent));
	for (size_t i = 0, end; i < j->n_extents; i = end) {
		const struct je_extent *s = &j->extents[i];

		end = i + 1;
		if (!decodable(w, s)) {
			add_undecoded(w, s);
			continue;
		}
		if (lone(j, s)) {
			add_lone(w, i);
			continue;
		}
		while (end < j->n_extents && !lone(j, &j->extents[end]) &&
		       j->extents[end].arena == s->arena &&
		       j->extents[end].start == s->start + s->bytes &&
		       decodable(w, &j->extents[end]))
			s = &j->extents[end++];
		add_run(w, i, end);
	}
}

/* ---- thread caches ---- */

/* A block of this class that is not free yet becomes so. */
static bool take(struct walk *w, vaddr addr, unsigned class)
{
	const struct je_extent *s = je_extent_at(w->j, addr);
	struct heap_extent *x;
	uint64_t off;

	if (!s || s->class != class || !in_use(w->j, s) || !decodable(w, s))
		return false;
	off = addr - s->user;
	if (s->slab ? off % w->j->size[class] ||
	    off / w->j->size[class] >= s->bytes / w->j->size[class] : off)
		return false;
	x = &w->heap->extents[w->extent[s - w->j->extents]];
	if (extent_state(x, addr) != BLOCK_USED)
		return false;
	extent_set_state(x, addr, BLOCK_CACHED);
	return true;
}

/* A bin: where its pointers are, and where its stack begins and ends. */
struct bin {
	vaddr items;
	uint64_t n;
	vaddr low, high;	/* low: 0 where it does not say */
};

/* 5.3: the head, and the low 16 bits of both ends. */
static bool read_new_bin(struct walk *w, vaddr at, struct bin *ret)
{
	uint64_t word[3];
	uint16_t head, full, empty;

	if (space_read(w->sp, at, word, sizeof(word)) != sizeof(word) ||
	    !word[0] || word[0] & 7)
		return false;
	head = (uint16_t)word[0];
	full = (uint16_t)(word[2] >> 16);
	empty = (uint16_t)(word[2] >> 32);
	*ret = (struct bin){
		.items = word[0], .n = (uint16_t)(empty - head) / 8,
		.low = word[0] - (uint16_t)(head - full),
		.high = word[0] + (uint16_t)(empty - head),
	};
	return ret->high - ret->low <= HEAD_ROOM &&
	       !((full | empty) & 7);
}

/* 5.2: how many lie below the end. */
static bool read_old_bin(struct walk *w, vaddr at, struct bin *ret)
{
	uint64_t word[3];
	int32_t n;

	if (space_read(w->sp, at, word, sizeof(word)) != sizeof(word) ||
	    !word[2] || word[2] & 7)
		return false;
	n = (int32_t)(word[0] >> 32);
	*ret = (struct bin){
		.items = word[2] - 8 * (uint64_t)(n > 0 ? n : 0),
		.n = n > 0 ? (uint64_t)n : 0, .high = word[2],
	};
	return ret->n * 8 <= MAX_STACK;
}

static void note_cache(struct walk *w, uint32_t cache, unsigned class,
		       uint64_t n, uint64_t want)
{
	const struct thread_cache *c = &w->heap->caches[cache];

	if (w->notes++ >= MAX_NOTES)
		return;
	heap_note(w->heap, "jemalloc-cache", c->arena, c->addr, 0,
		  "a thread cache's stack for %" PRIu64 " bytes breaks after %"
		  PRIu64 " of %" PRIu64 ": others count as in use",
		  w->j->size[class], n, want);
	heap_note_is_grave(w->heap);
}

static void walk_bin(struct walk *w, uint32_t cache, unsigned class,
		     const struct bin *b)
{
	uint64_t found = 0;

	for (uint64_t i = 0; i < b->n && w->failures < MAX_FAILURES; i++) {
		uint64_t addr;

		if (!space_u64(w->sp, b->items + 8 * i, &addr) ||
		    !take(w, addr, class)) {
			w->failures++;
			continue;
		}
		heap_add_cached(w->heap, cache, addr, class,
				w->j->size[class]);
		found++;
	}
	if (found != b->n)
		note_cache(w, cache, class, found, b->n);
}

/*
 * The stacks of all bins of a cache are one block, which jemalloc asked itself
 * for.  It counts as in use, but what it points to is free, or was.
 */
static void add_stacks(struct walk *w, vaddr addr)
{
	const struct je_extent *s = je_extent_at(w->j, addr);
	vaddr start;

	if (!s || !in_use(w->j, s) || !s->size || addr < s->user)
		return;
	start = addr - (addr - s->user) % s->size;
	heap_add_own(w->heap, start, start + s->size);
}

/* Bins are set up as far as their stacks follow each other. */
static void walk_cache(struct walk *w, const struct je_cache *jc)
{
	const struct jemalloc *j = w->j;
	uint32_t cache = heap_add_cache(w->heap, &(struct thread_cache){
		.addr = jc->addr, .allocator = w->allocator, .tid = jc->tid,
		.arena = arena_of(w, 0) });
	vaddr last = 0;

	for (unsigned c = 0; c < MAX_BINS && c < j->n_classes; c++) {
		vaddr at = c < j->n_small ? jc->small + c * JE_BIN_BYTES :
			jc->large + (c - j->n_small) * JE_BIN_BYTES;
		struct bin b;

		if (!(j->layout->bins_have_heads ? read_new_bin(w, at, &b) :
		      read_old_bin(w, at, &b)) ||
		    (last && (b.low ? b.low != last : b.high <= last ||
			      b.high - last > MAX_STACK))) {
			if (c < j->n_small)
				note_cache(w, cache, c, 0, 1);
			break;
		}
		if (!last)
			add_stacks(w, b.high - 8);
		last = b.high;
		walk_bin(w, cache, c, &b);
	}
}

/* ---- the whole ---- */

static void check(struct walk *w)
{
	const struct jemalloc *j = w->j;

	if (!j->n_caches && !j->caches_off) {
		heap_note(w->heap, "jemalloc-caches", HEAP_NO_ARENA, j->root,
			  0, "no thread cache was found: if they are on, "
			  "free blocks in them count as in use");
		heap_note_is_grave(w->heap);
	}
	if (!j->n_odd)
		return;
	heap_note(w->heap, "jemalloc-tree", HEAP_NO_ARENA, j->root, 0,
		  "%zu entries of the radix tree lead to no extent: blocks "
		  "there are missing", j->n_odd);
	heap_note_is_grave(w->heap);
}

/* A base block belongs to the arena whose extents' structures it has. */
static void add_bases(struct walk *w)
{
	const struct jemalloc *j = w->j;
	uint32_t *arena = mem_zalloc((j->n_bases + 1) * sizeof(*arena));
	size_t n = w->heap->n_extents;

	for (size_t i = 0; i < j->n_extents; i++) {
		size_t lo = BISECT(mid, 0, j->n_bases,
				   j->bases[mid].end <= j->extents[i].addr);

		if (lo < j->n_bases &&
		    j->bases[lo].start <= j->extents[i].addr)
			arena[lo] = arena_of(w, j->extents[i].arena);
	}
	heap_sort(w->heap);
	for (size_t i = 0; i < j->n_bases; i++)
		heap_add_rest(w->heap, arena[i], EXTENT_OVERHEAD, n,
			      j->bases[i].start, j->bases[i].end);
	free(arena);
}

void je_walk(struct jemalloc *j, struct heap *heap, uint32_t allocator)
{
	struct walk *w = mem_zalloc(sizeof(*w));

	*w = (struct walk){
		.j = j, .sp = j->sp, .heap = heap, .allocator = allocator,
	};
	add_extents(w);
	for (size_t i = 0; i < j->n_caches; i++)
		walk_cache(w, &j->caches[i]);
	check(w);
	add_bases(w);
	free(w->extent);
	free(w);
}
