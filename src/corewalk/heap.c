/* SPDX-License-Identifier: MIT */
#include "corewalk/heap.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "corewalk/planes.h"

/* Planes below this size come from malloc, larger ones straight from mmap. */
enum { PLANE_MAP_MIN = 64 * 1024 };

const char *block_state_name(enum block_state state)
{
	static const char *const names[BLOCK_STATES] = {
		[BLOCK_USED] = "used",
		[BLOCK_CACHED] = "tcache",
		[BLOCK_FAST] = "fastbin",
		[BLOCK_UNSORTED] = "unsorted",
		[BLOCK_BINNED] = "bin",
		[BLOCK_UNLISTED] = "unlisted",
		[BLOCK_TOP] = "top",
		[BLOCK_OVERHEAD] = "overhead",
	};

	return names[state & (BLOCK_STATES - 1)];
}

bool block_state_free(enum block_state state)
{
	return state != BLOCK_USED && state != BLOCK_OVERHEAD;
}

static uint64_t *plane_new(size_t n_words)
{
	size_t bytes = n_words * sizeof(uint64_t);

	return bytes < PLANE_MAP_MIN ? mem_zalloc(bytes) :
		mem_map_huge(bytes);
}

static void plane_free(uint64_t *plane, size_t n_words)
{
	size_t bytes = n_words * sizeof(uint64_t);

	if (bytes < PLANE_MAP_MIN)
		free(plane);
	else
		mem_unmap(plane, bytes);
}

static void extent_free_planes(struct heap_extent *x)
{
	for (size_t i = 0; i < countof(x->planes); i++)
		if (x->planes[i])
			plane_free(x->planes[i], x->n_words);
	memset(x->planes, 0, sizeof(x->planes));
}

void heap_init(struct heap *h)
{
	*h = (struct heap){ 0 };
}

void heap_fini(struct heap *h)
{
	for (size_t i = 0; i < h->n_allocators; i++) {
		free(h->allocators[i].version);
		free(h->allocators[i].evidence);
		free(h->allocators[i].settings);
	}
	for (size_t i = 0; i < h->n_extents; i++)
		extent_free_planes(&h->extents[i]);
	for (size_t i = 0; i < h->n_notes; i++)
		free(h->notes[i].text);
	free(h->allocators);
	free(h->arenas);
	free(h->extents);
	free(h->caches);
	free(h->uses);
	free(h->cached);
	free(h->own);
	free(h->spans);
	free(h->notes);
	for (size_t i = 0; i < h->n_profiles; i++) {
		free(h->profiles[i].samples);
		free(h->profiles[i].pcs);
	}
	free(h->profiles);
	heap_init(h);
}

uint32_t heap_add_allocator(struct heap *h, const char *name,
			    const char *version, const char *evidence)
{
	MEM_PUSH(h->allocators, h->n_allocators, h->cap_allocators) =
		(struct heap_allocator){
			.name = name,
			.version = mem_strdup(version),
			.evidence = mem_strdup(evidence),
		};
	return (uint32_t)(h->n_allocators - 1);
}

void heap_name_states(struct heap *h, uint32_t allocator,
		      const char *const *names)
{
	h->allocators[allocator].state_names = names;
}

void heap_set_roles(struct heap *h, uint32_t allocator, const uint8_t *roles)
{
	h->allocators[allocator].roles = roles;
}

void heap_add_setting(struct heap *h, uint32_t allocator, const char *name,
		      uint64_t value, bool is_bytes, bool is_default)
{
	struct heap_allocator *a = &h->allocators[allocator];

	MEM_PUSH(a->settings, a->n_settings, a->cap_settings) =
		(struct setting){ name, value, is_bytes, is_default };
}

struct arena *heap_add_arena(struct heap *h, uint32_t allocator, vaddr addr,
			     const char *fmt, ...)
{
	struct arena *a = &MEM_PUSH(h->arenas, h->n_arenas, h->cap_arenas);
	va_list ap;

	*a = (struct arena){
		.addr = addr, .allocator = allocator, .attached = -1,
	};
	va_start(ap, fmt);
	vsnprintf(a->name, sizeof(a->name), fmt, ap);
	va_end(ap);
	return a;
}

void heap_add_own(struct heap *h, vaddr start, vaddr end)
{
	if (start < end)
		MEM_PUSH(h->own, h->n_own, h->cap_own) =
			(struct heap_range){ start, end };
}

uint32_t heap_add_cache(struct heap *h, const struct thread_cache *c)
{
	MEM_PUSH(h->caches, h->n_caches, h->cap_caches) = *c;
	return (uint32_t)(h->n_caches - 1);
}

void heap_add_cached(struct heap *h, uint32_t cache, vaddr start, uint32_t bin,
		     uint64_t bytes)
{
	MEM_PUSH(h->cached, h->n_cached, h->cap_cached) =
		(struct cached){ start, cache, bin };
	h->caches[cache].blocks++;
	h->caches[cache].bytes += bytes;
}

struct heap_profile *heap_add_profile(struct heap *h, uint32_t allocator,
				      enum heap_profile_kind kind)
{
	struct heap_profile *p = &MEM_PUSH(h->profiles, h->n_profiles,
					   h->cap_profiles);

	*p = (struct heap_profile){ .allocator = allocator, .kind = kind };
	return p;
}

void heap_add_sample(struct heap_profile *p, const struct heap_sample *s,
		     const vaddr *pcs, size_t n)
{
	struct heap_sample *to = &MEM_PUSH(p->samples, p->n, p->cap);

	*to = *s;
	to->pc = p->n_pcs;
	to->depth = (uint32_t)n;
	for (size_t i = 0; i < n; i++)
		MEM_PUSH(p->pcs, p->n_pcs, p->cap_pcs) = pcs[i];
}

static struct heap_extent *add_extent(struct heap *h, uint32_t arena,
				      enum extent_kind kind, vaddr start,
				      vaddr end)
{
	struct heap_extent *x =
		&MEM_PUSH(h->extents, h->n_extents, h->cap_extents);

	*x = (struct heap_extent){
		.start = start, .end = end, .kind = kind, .arena = arena,
	};
	return x;
}

void heap_add_range(struct heap *h, uint32_t arena, enum extent_kind kind,
		    vaddr start, vaddr end)
{
	if (start < end)
		add_extent(h, arena, kind, start, end);
}

void heap_add_mmapped(struct heap *h, uint32_t arena, vaddr start, vaddr end,
		      vaddr user, unsigned tail)
{
	struct heap_extent *x = add_extent(h, arena, EXTENT_MMAPPED, start,
					   end);

	x->user = user;
	x->tail = (uint8_t)tail;
}

static size_t plane_words(const struct heap_extent *x)
{
	return (size_t)(planes_granules(x) / 64 + 1);
}

size_t heap_add_blocks(struct heap *h, uint32_t arena, vaddr start, vaddr end,
		       unsigned shift, unsigned user_off, unsigned overlap)
{
	struct heap_extent *x = add_extent(h, arena, EXTENT_BLOCKS, start,
					   end);

	x->shift = (uint8_t)shift;
	x->user_off = (uint8_t)user_off;
	x->overlap = (uint8_t)overlap;
	x->n_words = plane_words(x);
	for (size_t i = 0; i < countof(x->planes); i++)
		x->planes[i] = plane_new(x->n_words);
	return h->n_extents - 1;
}

static uint64_t *plane_cut(uint64_t *plane, size_t old_words,
			   size_t new_words)
{
	uint64_t *copy;

	if (old_words * sizeof(*plane) < PLANE_MAP_MIN)
		return mem_realloc(plane, new_words * sizeof(*plane));
	if (new_words * sizeof(*plane) < PLANE_MAP_MIN) {
		copy = mem_alloc(new_words * sizeof(*plane));
		memcpy(copy, plane, new_words * sizeof(*plane));
		plane_free(plane, old_words);
		return copy;
	}
	/* The tail's whole pages go; the size must stay what is unmapped. */
	return mem_map_shrink(plane, old_words * sizeof(*plane),
			      new_words * sizeof(*plane));
}

void heap_trim_extent(struct heap *h, size_t extent, vaddr end)
{
	struct heap_extent *x = &h->extents[extent];
	size_t words, tail;

	x->end = end;
	words = plane_words(x);
	tail = planes_granules(x) & 63;
	if (words > x->n_words)
		return;
	for (size_t i = 0; i < countof(x->planes); i++) {
		x->planes[i] = plane_cut(x->planes[i], x->n_words, words);
		x->planes[i][words - 1] &= (UINT64_C(1) << tail) - 1;
	}
	x->n_words = words;
}

void heap_add_span(struct heap *h, vaddr start, uint64_t n, uint64_t size)
{
	if (n && size && n <= UINT32_MAX / size)
		MEM_PUSH(h->spans, h->n_spans, h->cap_spans) =
			(struct heap_span){ start, (uint32_t)(n * size),
					    (uint32_t)size };
}

void heap_note(struct heap *h, const char *code, uint32_t arena, vaddr addr,
	       uint64_t skipped_bytes, const char *fmt, ...)
{
	struct heap_note *n;
	char text[400];
	va_list ap;

	if (h->n_notes == HEAP_MAX_NOTES) {
		h->notes_dropped++;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	n = &MEM_PUSH(h->notes, h->n_notes, h->cap_notes);
	*n = (struct heap_note){
		.code = code, .arena = arena, .addr = addr,
		.skipped_bytes = skipped_bytes, .text = mem_strdup(text),
	};
}

void heap_note_is_minor(struct heap *h)
{
	if (!h->notes_dropped)
		h->notes[h->n_notes - 1].minor = true;
}

void heap_note_is_grave(struct heap *h)
{
	h->notes[h->n_notes - 1].grave = true;
}

static int compare_extents(const void *a, const void *b)
{
	const struct heap_extent *x = a, *y = b;

	return ORDER(x->start, y->start) ?:
	       ORDER(x->end, y->end) ?:
	       ORDER(x->kind, y->kind);
}

/*
 * Walkers add no range twice.  Should one do so all the same, for a target
 * that lies, the second claim counts as not decoded: the sum stays right.
 */
static void resolve_overlaps(struct heap *h)
{
	vaddr end = 0;
	size_t kept = 0;

	for (size_t i = 0; i < h->n_extents; i++) {
		struct heap_extent x = h->extents[i];

		if (x.start == x.end) {
			extent_free_planes(&x);
			continue;
		}
		if (kept && x.start < end) {
			heap_note(h, "overlap", x.arena, x.start,
				  x.end > end ? x.end - end : 0,
				  "0x%llx is claimed twice",
				  (unsigned long long)x.start);
			extent_free_planes(&x);
			if (x.end <= end)
				continue;
			x.start = end;
			x.kind = EXTENT_UNDECODED;
		}
		end = x.end;
		h->extents[kept++] = x;
	}
	h->n_extents = kept;
}

/*
 * Only blocks that are not in use are looked at one by one: what is left of
 * the extent is in use.
 */
static void tally_extent(const struct heap_extent *x, struct arena *a)
{
	uint64_t used_bytes = x->end - x->start, used_blocks = 0;

	for (size_t w = 0; w < x->n_words; w++) {
		uint64_t odd = planes_odd(x, w);

		used_blocks += (unsigned)__builtin_popcountll(x->planes[0][w]);
		for (; odd; odd &= odd - 1) {
			unsigned bit = (unsigned)__builtin_ctzll(odd);
			uint64_t g = (uint64_t)w << 6 | bit;
			uint64_t size = planes_addr(x, planes_next(x, g + 1)) -
					planes_addr(x, g);
			struct tally *t = &a->state[planes_state(x, g)];

			t->blocks++;
			t->bytes += size;
			used_blocks--;
			used_bytes -= size;
		}
	}
	a->state[BLOCK_USED].blocks += used_blocks;
	a->state[BLOCK_USED].bytes += used_bytes;
}

static void tally(struct heap *h, const struct heap_extent *x)
{
	struct arena *a = &h->arenas[x->arena];
	uint64_t bytes = x->end - x->start;

	a->extent_bytes += bytes;
	switch (x->kind) {
	case EXTENT_BLOCKS:
		tally_extent(x, a);
		break;
	case EXTENT_MMAPPED:
		a->mmapped.blocks++;
		a->mmapped.bytes += bytes;
		break;
	case EXTENT_OVERHEAD:
		a->overhead_bytes += bytes;
		break;
	case EXTENT_FOREIGN:
		a->foreign_bytes += bytes;
		break;
	case EXTENT_UNDECODED:
		a->undecoded_bytes += bytes;
		break;
	case EXTENT_RUNTIME:
		a->runtime_bytes += bytes;
		break;
	}
}

/* The promise of this module; a mismatch is our own bug, and is shown. */
static void check_sums(struct heap *h)
{
	for (size_t i = 0; i < h->n_arenas; i++) {
		const struct arena *a = &h->arenas[i];
		uint64_t sum = a->mmapped.bytes + a->overhead_bytes +
			a->foreign_bytes + a->undecoded_bytes +
			a->runtime_bytes;

		for (int s = 0; s < BLOCK_STATES; s++)
			sum += a->state[s].bytes;
		if (sum == a->extent_bytes)
			continue;
		heap_note(h, "sum", (uint32_t)i, a->addr, 0,
			  "%s: %llu bytes add up to %llu", a->name,
			  (unsigned long long)a->extent_bytes,
			  (unsigned long long)sum);
		heap_note_is_grave(h);
	}
}

void heap_sort(struct heap *h)
{
	SORT(h->extents, h->n_extents, compare_extents);
	h->last = 0;
}

/* Bits of a plane from one on, in a new plane. */
static void plane_tail(uint64_t *to, size_t n_to, const uint64_t *from,
		       size_t n_from, uint64_t bit)
{
	size_t skip = (size_t)(bit >> 6);
	unsigned shift = bit & 63;

	for (size_t i = 0; i < n_to && skip + i < n_from; i++) {
		to[i] = from[skip + i] >> shift;
		if (shift && skip + i + 1 < n_from)
			to[i] |= from[skip + i + 1] << (64 - shift);
	}
}

/* A block of an extent of blocks becomes an extent between two of these. */
static void cut_out(struct heap *h, uint32_t arena, size_t i,
		    const struct block *b)
{
	vaddr next = b->start + b->size, end = h->extents[i].end;
	struct heap_extent *x, *tail;

	if (next < end) {
		size_t t = heap_add_blocks(h, h->extents[i].arena, next, end,
					   h->extents[i].shift,
					   h->extents[i].user_off,
					   h->extents[i].overlap);

		x = &h->extents[i];
		tail = &h->extents[t];
		for (size_t k = 0; k < countof(x->planes); k++)
			plane_tail(tail->planes[k], tail->n_words,
				   x->planes[k], x->n_words,
				   (next - x->start) >> x->shift);
	}
	heap_trim_extent(h, i, b->start);
	heap_add_range(h, arena, EXTENT_RUNTIME, b->start, next);
}

void heap_carve(struct heap *h, uint32_t arena, const struct block *blocks,
		size_t n)
{
	size_t sorted = h->n_extents;

	/* The last one first: what lies behind is not looked up again. */
	while (n-- > 0) {
		size_t i = BISECT(mid, 0, sorted, h->extents[mid].start <=
				  blocks[n].start);

		if (!i--)
			continue;
		if (h->extents[i].kind == EXTENT_BLOCKS) {
			cut_out(h, arena, i, &blocks[n]);
		} else if (h->extents[i].kind == EXTENT_MMAPPED) {
			h->extents[i].kind = EXTENT_RUNTIME;
			h->extents[i].arena = arena;
		}
	}
	heap_sort(h);
}

/* The first of the first n extents that ends behind addr. */
static size_t extent_behind(const struct heap *h, size_t n, vaddr addr)
{
	return BISECT(mid, 0, n, h->extents[mid].end <= addr);
}

void heap_add_rest(struct heap *h, uint32_t arena, enum extent_kind kind,
		   size_t n, vaddr start, vaddr end)
{
	for (size_t x = extent_behind(h, n, start); start < end; x++) {
		vaddr stop = x < n ? min_u64(end, h->extents[x].start) : end;
		vaddr next = x < n ? h->extents[x].end : end;

		if (stop > start)
			heap_add_range(h, arena, kind, start, stop);
		start = max_u64(start, next);
	}
}

void heap_finish(struct heap *h)
{
	heap_sort(h);
	SORT_BY(h->cached, h->n_cached, start);
	SORT_BY(h->own, h->n_own, start);
	SORT_BY(h->spans, h->n_spans, start);
	resolve_overlaps(h);
	for (size_t i = 0; i < h->n_extents; i++)
		tally(h, &h->extents[i]);
	check_sums(h);
}

const char *heap_state_name(const struct heap *h, uint32_t arena,
			    enum block_state state)
{
	const char *const *own =
		h->allocators[h->arenas[arena].allocator].state_names;

	return own && own[state] ? own[state] : block_state_name(state);
}

const struct heap_extent *heap_extent_at(struct heap *h, vaddr addr)
{
	size_t lo;

	if (h->last < h->n_extents && addr >= h->extents[h->last].start &&
	    addr < h->extents[h->last].end)
		return &h->extents[h->last];
	lo = BISECT(mid, 0, h->n_extents, h->extents[mid].start <= addr);
	if (!lo || addr >= h->extents[lo - 1].end)
		return NULL;
	h->last = lo - 1;
	return &h->extents[lo - 1];
}

const struct cached *heap_cached(const struct heap *h, vaddr start)
{
	return FIND(h->cached, h->n_cached, start);
}

static void block_mmapped(const struct heap_extent *x, struct block *ret)
{
	*ret = (struct block){
		.addr = x->user, .start = x->start, .size = x->end - x->start,
		.usable = x->end - x->user - x->tail, .state = BLOCK_USED,
		.mmapped = true, .arena = x->arena,
	};
}

static void block_at(const struct heap_extent *x, uint64_t granule,
		     uint64_t next, struct block *ret)
{
	vaddr start = planes_addr(x, granule);
	uint64_t size = planes_addr(x, next) - start;
	uint64_t own = x->user_off;

	*ret = (struct block){
		.addr = start + x->user_off, .start = start, .size = size,
		.usable = size > own ? size - own : 0,
		.state = planes_state(x, granule), .arena = x->arena,
	};
	if (!block_state_free(ret->state) || ret->state == BLOCK_CACHED ||
	    ret->state == BLOCK_FAST)
		ret->usable += x->overlap;
}

bool heap_find(struct heap *h, vaddr addr, struct block *ret)
{
	const struct heap_extent *x = heap_extent_at(h, addr);
	uint64_t g;

	if (!x)
		return false;
	if (x->kind == EXTENT_MMAPPED) {
		block_mmapped(x, ret);
		return true;
	}
	if (x->kind != EXTENT_BLOCKS)
		return false;
	if (!planes_prev(x, planes_granule(x, addr), &g))
		return false;
	block_at(x, g, planes_next(x, g + 1), ret);
	return true;
}

void heap_iter_init(struct heap_iter *it, const struct heap *h)
{
	*it = (struct heap_iter){ .heap = h, .to = UINT64_MAX };
}

/* The granule of the block that holds addr, or of the first one behind it. */
static uint64_t granule_from(const struct heap_extent *x, vaddr addr)
{
	uint64_t g;

	if (addr <= x->start ||
	    !planes_prev(x, planes_granule(x, addr), &g))
		return 0;
	return g;
}

void heap_iter_range(struct heap_iter *it, const struct heap *h, vaddr from,
		     vaddr to)
{
	size_t lo = extent_behind(h, h->n_extents, from);

	*it = (struct heap_iter){ .heap = h, .extent = lo, .from = from,
				  .to = to };
	if (lo < h->n_extents && h->extents[lo].kind == EXTENT_BLOCKS)
		it->granule = granule_from(&h->extents[lo], from);
}

bool heap_iter_next(struct heap_iter *it, struct block *ret)
{
	const struct heap *h = it->heap;

	for (; it->extent < h->n_extents; it->extent++, it->granule = 0) {
		const struct heap_extent *x = &h->extents[it->extent];
		uint64_t g;

		if (x->start >= it->to)
			return false;
		if (x->kind == EXTENT_MMAPPED && !it->granule) {
			it->granule = 1;
			block_mmapped(x, ret);
			return true;
		}
		if (x->kind != EXTENT_BLOCKS)
			continue;
		g = planes_next(x, it->granule);
		if (g == planes_granules(x))
			continue;
		if (planes_addr(x, g) >= it->to)
			return false;
		it->granule = planes_next(x, g + 1);
		block_at(x, g, it->granule, ret);
		return true;
	}
	return false;
}
