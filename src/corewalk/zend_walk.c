/* SPDX-License-Identifier: MIT */
/*
 * The walk of one ZendMM heap: ring, cache, maps of pages, free lists, huge
 * blocks.  A slot that no free list names is in use; a list that breaks leaves
 * slots that are free among those in use, and the difference to the heap's own
 * figure says how many.
 */
#include "corewalk/zend.h"

#include <inttypes.h>

#include "base/mem.h"
#include "base/sort.h"

enum { MAX_BIN_NOTES = 3 };

struct walk {
	struct space *sp;
	struct heap *heap;
	const struct zend_heap *z;
	uint32_t arena;
	struct zend_sum *sum;
	struct zend_chunk *chunks;	/* owned; sorted by address */
	size_t n_chunks, cap_chunks, max_chunks;
	vaddr *cached;			/* owned */
	size_t n_cached, cap_cached;
	size_t last;			/* chunk of the last lookup */
	uint64_t steps;			/* left for the free lists */
	bool broken;			/* a free list is */
};

static bool chunk_header(struct walk *w, vaddr chunk, uint8_t *ret)
{
	return !(chunk % ZEND_CHUNK) &&
	       space_read(w->sp, chunk, ret, ZEND_PAGE) == ZEND_PAGE &&
	       (load_u64(ret) == w->z->addr ||
		(w->z->damaged && chunk == w->z->main_chunk));
}

static void sort_chunks(struct walk *w)
{
	size_t kept = 0;

	SORT_BY(w->chunks, w->n_chunks, addr);
	for (size_t i = 0; i < w->n_chunks; i++)
		if (!kept || w->chunks[i].addr != w->chunks[kept - 1].addr)
			w->chunks[kept++] = w->chunks[i];
	w->n_chunks = kept;
	w->last = 0;
}

static struct zend_chunk *find_chunk(struct walk *w, vaddr addr)
{
	vaddr chunk = round_down(addr, ZEND_CHUNK);
	struct zend_chunk *c;

	if (w->last < w->n_chunks && w->chunks[w->last].addr == chunk)
		return &w->chunks[w->last];
	c = FIND(w->chunks, w->n_chunks, chunk);
	if (c)
		w->last = (size_t)(c - w->chunks);
	return c;
}

static void add_chunk(struct walk *w, vaddr addr)
{
	MEM_PUSH(w->chunks, w->n_chunks, w->cap_chunks) =
		(struct zend_chunk){ .addr = addr };
}

/* ---- which chunks there are ---- */

/* From the main chunk on, by next (8) or prev (16); did it come back? */
static bool follow_ring(struct walk *w, unsigned link)
{
	vaddr chunk = w->z->main_chunk;
	uint8_t header[ZEND_PAGE];

	for (size_t n = 0; n < w->max_chunks; n++) {
		if (!chunk_header(w, chunk, header))
			return false;
		add_chunk(w, chunk);
		chunk = load_u64(header + link);
		if (chunk == w->z->main_chunk)
			return true;
	}
	return false;
}

static void follow_cache(struct walk *w)
{
	const struct zend_heap *z = w->z;
	vaddr chunk = 0;
	bool ok;

	ok = space_u64(w->sp, z->addr + z->at.main_chunk + 8, &chunk);
	while (ok && chunk && w->n_cached <= w->max_chunks) {
		if (chunk % ZEND_CHUNK || !space_seg(w->sp, chunk) ||
		    find_chunk(w, chunk))
			break;
		MEM_PUSH(w->cached, w->n_cached, w->cap_cached) = chunk;
		ok = space_u64(w->sp, chunk + 8, &chunk);
	}
	if (w->n_cached == z->n_cache && !chunk)
		return;
	heap_note(w->heap, "zend-cache", w->arena, chunk, 0,
		  "the heap counts %" PRIu32 " cached chunks, %zu were found",
		  z->n_cache, w->n_cached);
	heap_note_is_grave(w->heap);
}

static bool is_cached(const struct walk *w, vaddr chunk)
{
	for (size_t i = 0; i < w->n_cached; i++)
		if (w->cached[i] == chunk)
			return true;
	return false;
}

/* Chunks that say they belong here and that no list leads to. */
static size_t scan_for_chunks(struct walk *w)
{
	struct zend_chunk scratch;
	uint8_t header[ZEND_PAGE];
	size_t known = w->n_chunks;
	struct zend_scan scan = { 0 };
	vaddr at;

	while (zend_scan_next(w->sp, &scan, &at))
		if (chunk_header(w, at, header) &&
		    !zend_read_map(header, &w->z->at, &scratch) &&
		    !is_cached(w, at) && !FIND(w->chunks, known, at))
			add_chunk(w, at);
	return w->n_chunks - known;
}

/* What others of its chunks say of it is all there is. */
static void note_damaged(struct walk *w)
{
	heap_note(w->heap, "zend-main-chunk", w->arena, w->z->main_chunk, 0,
		  "the header of the main chunk was overwritten, %zu chunks "
		  "were found by a search%s", w->n_chunks, w->z->lost ?
		  ": free slots count as in use, huge blocks are not known" :
		  "");
	heap_note_is_grave(w->heap);
}

static void find_chunks(struct walk *w)
{
	bool closed = !w->z->lost && follow_ring(w, 8);
	size_t found = 0;

	if (!closed)
		follow_ring(w, 16);
	sort_chunks(w);
	if (w->z->lost)
		add_chunk(w, w->z->main_chunk);
	else
		follow_cache(w);
	if (!closed || w->n_chunks != w->z->n_ring) {
		found = scan_for_chunks(w);
		sort_chunks(w);
	}
	if (w->z->damaged) {
		note_damaged(w);
		return;
	}
	if (closed && !found && w->n_chunks == w->z->n_ring)
		return;
	heap_note(w->heap, "zend-ring", w->arena, w->z->main_chunk, 0,
		  "the ring of chunks %s: the heap counts %" PRIu32
		  ", %zu were found, %zu of them by a search",
		  closed ? "closes" : "is broken", w->z->n_ring, w->n_chunks,
		  found);
	heap_note_is_grave(w->heap);
}

/* ---- their pages ---- */

static void mark_pages(struct walk *w, struct zend_chunk *c,
		       struct heap_extent *x, unsigned page, unsigned end)
{
	while (page < end) {
		unsigned kind = c->kind[page], n = 1;
		vaddr at = c->addr + (uint64_t)page * ZEND_PAGE, tail;

		while (page + n < end && c->kind[page + n] == kind &&
		       (kind == ZEND_FREE || c->head[page + n] == page))
			n++;
		extent_mark(x, at);
		page += n;
		if (kind == ZEND_FREE) {
			extent_set_state(x, at, BLOCK_UNSORTED);
		} else if (kind == ZEND_HEADER) {
			extent_set_state(x, at, BLOCK_OVERHEAD);
		} else if (kind == ZEND_LARGE) {
			w->sum->used_bytes += (uint64_t)n * ZEND_PAGE;
		} else {
			heap_add_span(w->heap, at, zend_slot_count[kind],
				      zend_slot_size[kind]);
			for (unsigned i = 1; i < zend_slot_count[kind]; i++)
				extent_mark(x, at + (uint64_t)i *
					    zend_slot_size[kind]);
			tail = at + (uint64_t)zend_slot_count[kind] *
				zend_slot_size[kind];
			w->sum->used_bytes += tail - at;
			if (tail == c->addr + (uint64_t)page * ZEND_PAGE)
				continue;
			extent_mark(x, tail);
			extent_set_state(x, tail, BLOCK_OVERHEAD);
		}
	}
}

/* Pages that the map does not explain split the chunk. */
static void add_pages(struct walk *w, struct zend_chunk *c)
{
	c->extent = (uint32_t)w->heap->n_extents;
	for (unsigned page = 0, end; page < ZEND_PAGES; page = end) {
		bool bad = c->kind[page] == ZEND_BAD;
		vaddr from = c->addr + (uint64_t)page * ZEND_PAGE, to;
		size_t extent;

		for (end = page + 1; end < ZEND_PAGES &&
		     (c->kind[end] == ZEND_BAD) == bad;)
			end++;
		to = c->addr + (uint64_t)end * ZEND_PAGE;
		c->n_extents++;
		if (bad) {
			heap_add_range(w->heap, w->arena, EXTENT_UNDECODED,
				       from, to);
			heap_note(w->heap, "zend-map", w->arena, from,
				  to - from, "the map of the chunk does not "
				  "say what is in these pages");
			continue;
		}
		extent = heap_add_blocks(w->heap, w->arena, from, to, 3, 0, 0);
		mark_pages(w, c, &w->heap->extents[extent], page, end);
	}
}

static void count_marks(struct walk *w, const uint8_t *header)
{
	for (unsigned page = 1; page < ZEND_PAGES; page++)
		w->sum->marked_pages += load_u32(header + w->z->at.map +
						 4 * page) >> 29 & 1;
}

/* Of slots in it nothing can be said. */
static void add_missing(struct walk *w, struct zend_chunk *c)
{
	for (unsigned page = 1; page < ZEND_PAGES; page++)
		c->kind[page] = ZEND_BAD;
	heap_add_range(w->heap, w->arena, EXTENT_UNDECODED, c->addr,
		       c->addr + ZEND_CHUNK);
	heap_note(w->heap, "zend-chunk", w->arena, c->addr, ZEND_CHUNK,
		  "a chunk is not in the file, its first pages apart");
	heap_note_is_grave(w->heap);
}

/* All of it is free; that takes planes for its start alone. */
static void add_cached(struct walk *w, vaddr at)
{
	size_t extent = heap_add_blocks(w->heap, w->arena, at, at + 8, 3, 0,
					0);

	extent_mark(&w->heap->extents[extent], at);
	extent_set_state(&w->heap->extents[extent], at, BLOCK_TOP);
	heap_trim_extent(w->heap, extent, at + ZEND_CHUNK);
}

static void add_chunks(struct walk *w)
{
	uint8_t header[ZEND_PAGE];

	for (size_t i = 0; i < w->n_chunks; i++) {
		struct zend_chunk *c = &w->chunks[i];

		if (!chunk_header(w, c->addr, header))
			continue;
		zend_read_map(header, &w->z->at, c);
		count_marks(w, header);
		if (space_sparse(w->sp, c->addr, c->addr + ZEND_CHUNK))
			add_missing(w, c);
		else
			add_pages(w, c);
	}
	for (size_t i = 0; i < w->n_cached; i++)
		add_cached(w, w->cached[i]);
	w->sum->real_bytes = (w->n_chunks + w->n_cached) *
		(uint64_t)ZEND_CHUNK;
}

/* ---- free lists ---- */

static struct heap_extent *slot_extent(struct walk *w,
				       const struct zend_chunk *c, vaddr slot)
{
	for (uint32_t i = 0; i < c->n_extents; i++) {
		struct heap_extent *x = &w->heap->extents[c->extent + i];

		if (slot >= x->start && slot < x->end)
			return x;
	}
	return NULL;
}

/* A slot of this bin that is not on a list yet; NULL if it is none. */
static struct heap_extent *usable_slot(struct walk *w, vaddr slot,
				       unsigned bin)
{
	const struct zend_chunk *c = find_chunk(w, slot);
	struct heap_extent *x;

	if (!c || !zend_is_slot(c, slot, bin))
		return NULL;
	x = slot_extent(w, c, slot);
	return x && extent_state(x, slot) == BLOCK_USED ? x : NULL;
}

/* What the last word of a free slot says of the next one. */
static bool shadow_next(struct walk *w, vaddr slot, unsigned bin, vaddr *ret)
{
	vaddr at = slot + zend_slot_size[bin] - 8;
	uint64_t last;

	if (w->z->at.shadow == ZEND_SHADOW_NONE || zend_slot_size[bin] < 16 ||
	    !space_u64(w->sp, at, &last))
		return false;
	last ^= w->z->key;
	if (w->z->at.shadow == ZEND_SHADOW_PLACED)
		last ^= at;
	*ret = __builtin_bswap64(last);
	return true;
}

/*
 * The slot behind this one.  Where both its words disagree, the one that is a
 * slot wins; *damaged says that one of them was overwritten.
 */
static bool next_slot(struct walk *w, vaddr slot, unsigned bin, vaddr *ret,
		      bool *damaged)
{
	vaddr shadow;

	if (!space_u64(w->sp, slot, ret))
		return false;
	if (!*ret || !shadow_next(w, slot, bin, &shadow) || shadow == *ret)
		return true;
	*damaged = true;
	if (!usable_slot(w, *ret, bin) && usable_slot(w, shadow, bin))
		*ret = shadow;
	return true;
}

/* Nobody knows what a damaged page held; a list goes on behind it. */
static bool in_bad_page(struct walk *w, vaddr slot)
{
	const struct zend_chunk *c = find_chunk(w, slot);

	return c && !(slot % 8) &&
	       c->kind[(slot - c->addr) / ZEND_PAGE] == ZEND_BAD;
}

static void note_list(struct walk *w, unsigned bin, vaddr at, uint64_t n,
		      const char *what)
{
	heap_note(w->heap, "zend-free-list", w->arena, at, 0,
		  "the free list of slots of %u bytes %s after %" PRIu64
		  " slots: those behind it count as in use",
		  zend_slot_size[bin], what, n);
	heap_note_is_grave(w->heap);
	w->broken = true;
}

static void walk_list(struct walk *w, unsigned bin)
{
	const struct zend_heap *z = w->z;
	vaddr slot, before = 0;
	uint64_t n = 0;
	unsigned notes = 0;

	if (!space_u64(w->sp, z->addr + z->at.free_slot + 8 * bin, &slot))
		return;
	while (slot) {
		struct heap_extent *x = usable_slot(w, slot, bin);
		bool damaged = false;
		vaddr next;

		if ((!x && !in_bad_page(w, slot)) || !w->steps) {
			note_list(w, bin, before, n, "leads out of them");
			return;
		}
		w->steps--;
		if (x) {
			extent_set_state(x, slot, BLOCK_BINNED);
			w->sum->used_bytes -= zend_slot_size[bin];
			n++;
		}
		if (!next_slot(w, slot, bin, &next, &damaged)) {
			note_list(w, bin, slot, n, "is not in the file");
			return;
		}
		if (damaged && notes++ < MAX_BIN_NOTES)
			heap_note(w->heap, "zend-free-slot", w->arena, slot, 0,
				  "a free slot of %u bytes was overwritten: "
				  "its first and its last word disagree",
				  zend_slot_size[bin]);
		before = slot;
		slot = next;
	}
}

/* ---- huge blocks ---- */

static void walk_huge(struct walk *w)
{
	const struct zend_heap *z = w->z;
	vaddr node = 0;
	size_t n = 0;
	bool ok;

	ok = space_u64(w->sp, z->addr + z->at.main_chunk - 8, &node);
	for (; ok && node && n < w->max_chunks; n++) {
		uint64_t word[3];

		if (space_read(w->sp, node, word, sizeof(word)) !=
		    sizeof(word) || word[0] % ZEND_CHUNK ||
		    word[1] % ZEND_PAGE || !word[1] ||
		    !space_mapped(w->sp, word[0], word[1]) ||
		    find_chunk(w, word[0]))
			break;
		heap_add_mmapped(w->heap, w->arena, word[0],
				 word[0] + word[1], word[0], 0);
		w->sum->used_bytes += word[1];
		w->sum->real_bytes += word[1];
		node = word[2];
	}
	if (!node)
		return;
	heap_note(w->heap, "zend-huge", w->arena, node, 0,
		  "the list of huge blocks breaks after %zu", n);
	heap_note_is_grave(w->heap);
}

/* ---- the sums ---- */

/* A fresh run is on no list yet while it is being cut into slots. */
static bool is_cutting(const struct walk *w, uint64_t excess)
{
	for (unsigned b = 0; b < ZEND_BINS; b++)
		if (!w->broken && !(excess % zend_slot_size[b]) &&
		    excess / zend_slot_size[b] < zend_slot_count[b])
			return true;
	return false;
}

/* A block that the memory limit denied was counted before it was refused. */
static bool is_denied(const struct walk *w, uint64_t excess)
{
	for (unsigned b = 0; b < ZEND_BINS; b++)
		if (!w->broken && excess == zend_slot_size[b])
			return true;
	return false;
}

static void check_sums(struct walk *w)
{
	const struct zend_heap *z = w->z;
	uint64_t used = w->sum->used_bytes;

	if (w->sum->real_bytes != z->real_size) {
		heap_note(w->heap, "zend-real-size", w->arena, z->addr, 0,
			  "the heap counts %" PRIu64 " bytes of chunks and "
			  "huge blocks, %" PRIu64 " were found", z->real_size,
			  w->sum->real_bytes);
		heap_note_is_grave(w->heap);
	}
	if (used == z->size)
		return;
	if (used < z->size && is_denied(w, z->size - used)) {
		heap_note(w->heap, "zend-size", w->arena, z->addr, 0,
			  "the heap counts one block of %" PRIu64 " bytes "
			  "too many, as after its memory limit was reached",
			  z->size - used);
		heap_note_is_minor(w->heap);
		return;
	}
	heap_note(w->heap, "zend-size", w->arena, z->addr, 0,
		  "the heap counts %" PRIu64 " bytes in use, %" PRIu64
		  " were found%s", z->size, used,
		  used > z->size && is_cutting(w, used - z->size) ?
		  "; it may have been cutting a run into slots" : "");
	heap_note_is_grave(w->heap);
}

/* Which pages: "a tracked block may be here". */
static void note_marks(struct walk *w)
{
	if (!w->sum->marked_pages)
		return;
	heap_note(w->heap, "zend-sampler", w->arena, w->z->main_chunk, 0,
		  "bit 29 of the page map is set for %u pages: an allocation "
		  "sampler marks those with a block that it follows",
		  w->sum->marked_pages);
	heap_note_is_minor(w->heap);
}

void zend_walk_heap(struct space *sp, const struct zend_heap *z,
		    struct heap *heap, uint32_t arena, struct zend_sum *ret)
{
	struct walk w = {
		.sp = sp, .heap = heap, .z = z, .arena = arena, .sum = ret,
	};

	*ret = (struct zend_sum){ 0 };
	w.max_chunks = (size_t)(space_bytes(sp) / ZEND_CHUNK) + 1;
	find_chunks(&w);
	add_chunks(&w);
	w.steps = w.n_chunks * (uint64_t)(ZEND_CHUNK / 8);
	if (!z->lost) {
		for (unsigned bin = 0; bin < ZEND_BINS; bin++)
			walk_list(&w, bin);
		walk_huge(&w);
		check_sums(&w);
	}
	note_marks(&w);
	free(w.chunks);
	free(w.cached);
}
