/* SPDX-License-Identifier: MIT */
/*
 * The walk of gperftools' tcmalloc.  Spans become extents, objects blocks;
 * those on a span's own list, in a transfer cache or in a thread cache are
 * free.  A list that breaks leaves free objects among those in use: that is a
 * finding, and the counters say how many.
 */
#include "corewalk/tcmalloc.h"

#include <inttypes.h>

#include "base/mem.h"
#include "base/sort.h"

enum {
	/* Of a span that is one block: its planes end with its first page. */
	LONE_BYTES = 1 << 20,
	MAX_SLOTS = 64,
	CENTRAL_SPANS = 112, CENTRAL_FREE = 120,	/* counters */
	CENTRAL_SLOTS = 128, CENTRAL_USED = 1152,
	CACHE_PTHREAD = 4128,		/* 2.8 to 2.15 */
	TLS_BELOW = 4096,		/* bytes of static TLS to search */
	MAX_LIST_NOTES = 20,
	METADATA_STEP = 128 * 1024,
	MAX_ASKED = 64,			/* spans, for the debug library */
	DEBUG_MAGIC_OFF = 16,
	PAGE = 4096,
};

#define DEBUG_MAGIC UINT64_C(0xdeadbeef)
#define DEBUG_FREED UINT64_C(0xcdcdcdcdcdcdcdcd)

struct walk {
	struct tcmalloc *t;
	struct space *sp;
	struct heap *heap;
	uint32_t allocator, arena;
	uint32_t *extent;		/* owned; of each span */
	uint64_t listed[TC_MAX_CLASSES];	/* on spans' own lists */
	uint64_t spans[TC_MAX_CLASSES];
	size_t notes;
};

static uint64_t capacity(const struct tcmalloc *t, const struct tc_span *s)
{
	return s->size_class < t->n_classes && t->size[s->size_class] ?
		s->bytes / t->size[s->size_class] : 0;
}

/* In use by objects, whose lists can be followed. */
static bool has_objects(const struct tcmalloc *t, const struct tc_span *s)
{
	return s->where == TC_IN_USE && s->size_class && s->readable &&
	       capacity(t, s);
}

static bool decodable(const struct tcmalloc *t, const struct tc_span *s)
{
	return s->where != TC_IN_USE || !s->size_class || has_objects(t, s);
}

/* It is one block, or free, and large or hardly in the file. */
static bool lone(const struct tcmalloc *t, const struct tc_span *s)
{
	return !has_objects(t, s) &&
	       (s->bytes > LONE_BYTES ||
		space_sparse(t->sp, s->start, s->start + s->bytes));
}

/* ---- extents ---- */

static void mark_span(struct walk *w, const struct tc_span *s,
		      struct heap_extent *x)
{
	uint64_t n = capacity(w->t, s), size;
	vaddr tail;

	extent_mark(x, s->start);
	if (s->where != TC_IN_USE) {
		extent_set_state(x, s->start, s->where == TC_NORMAL ?
				 BLOCK_UNSORTED : BLOCK_TOP);
		return;
	}
	if (!s->size_class)
		return;
	size = w->t->size[s->size_class];
	heap_add_span(w->heap, s->start, n, size);
	for (uint64_t i = 1; i < n; i++)
		extent_mark(x, s->start + i * size);
	tail = s->start + n * size;
	if (tail == s->start + s->bytes)
		return;
	extent_mark(x, tail);
	extent_set_state(x, tail, BLOCK_OVERHEAD);
}

/* Spans [first, end) side by side become one extent; the last may be long. */
static void add_extent(struct walk *w, size_t first, size_t end)
{
	const struct tc_span *spans = w->t->spans;
	const struct tc_span *last = &spans[end - 1];
	vaddr stop = last->start + last->bytes;
	vaddr planes = lone(w->t, last) ? last->start + 8 : stop;
	size_t x = heap_add_blocks(w->heap, w->arena, spans[first].start,
				   planes, 3, 0, 0);

	for (size_t i = first; i < end; i++) {
		w->extent[i] = (uint32_t)x;
		mark_span(w, &spans[i], &w->heap->extents[x]);
	}
	if (planes != stop)
		heap_trim_extent(w->heap, x, stop);
}

static void add_undecoded(struct walk *w, const struct tc_span *s)
{
	heap_add_range(w->heap, w->arena, EXTENT_UNDECODED, s->start,
		       s->start + s->bytes);
	if (w->notes++ < MAX_LIST_NOTES)
		heap_note(w->heap, "tcmalloc-span", w->arena, s->start,
			  s->bytes, "a span of size class %u: %s",
			  s->size_class, s->readable ? "no such class" :
			  "not all of it is in the file");
}

static void add_extents(struct walk *w)
{
	const struct tcmalloc *t = w->t;

	w->extent = mem_zalloc((t->n_spans + 1) * sizeof(*w->extent));
	for (size_t i = 0, end; i < t->n_spans; i = end) {
		const struct tc_span *s = &t->spans[i];

		end = i + 1;
		if (!decodable(t, s)) {
			add_undecoded(w, s);
			continue;
		}
		while (end < t->n_spans && t->spans[end].start == s->start +
		       s->bytes && decodable(t, &t->spans[end]) &&
		       !lone(t, s))
			s = &t->spans[end++];
		add_extent(w, i, end);
	}
}

/* ---- metadata ---- */

static vaddr *structures(const struct tcmalloc *t, size_t *ret_n)
{
	uint64_t leaf = UINT64_C(8) << tc_leaf_bits(t->shift);
	vaddr *at = NULL;
	size_t n = 0, cap = 0;

	for (size_t i = 0; i < t->n_spans; i++)
		MEM_PUSH(at, n, cap) = round_down(t->spans[i].addr, PAGE);
	for (size_t i = 0; i < t->n_caches; i++)
		MEM_PUSH(at, n, cap) = round_down(t->caches[i], PAGE);
	for (size_t i = 0; i < t->n_leaves; i++)
		for (uint64_t k = 0; k < leaf; k += METADATA_STEP)
			MEM_PUSH(at, n, cap) = round_down(t->leaves[i] + k,
							  PAGE);
	SORT(at, n, num_compare_u64);
	*ret_n = n;
	return at;
}

/*
 * Pages that hold spans, leaves and caches, and what lies between two of them
 * that are not far apart: tcmalloc takes memory for these in steps.  Last,
 * because numbers of extents change.
 */
static void add_metadata(struct walk *w)
{
	size_t n, n_extents = w->heap->n_extents;
	vaddr *at = structures(w->t, &n);

	heap_sort(w->heap);
	for (size_t i = 0; i < n;) {
		vaddr start = at[i], end;

		do
			end = at[i++] + PAGE;
		while (i < n && at[i] <= end + METADATA_STEP &&
		       space_run_end(w->sp, start) > at[i]);
		heap_add_rest(w->heap, w->arena, EXTENT_OVERHEAD, n_extents,
			      start, min_u64(end, space_run_end(w->sp,
								start)));
	}
	free(at);
}

/* ---- free objects ---- */

static struct tc_span *span_of(struct walk *w, vaddr addr)
{
	const struct tcmalloc *t = w->t;
	size_t lo = BISECT(mid, 0, t->n_spans, t->spans[mid].start <= addr);

	return lo && addr - t->spans[lo - 1].start < t->spans[lo - 1].bytes ?
		&t->spans[lo - 1] : NULL;
}

/* An object of this class that is on no list yet. */
static struct heap_extent *object(struct walk *w, const struct tc_span *s,
				  vaddr addr, unsigned class)
{
	struct heap_extent *x;
	uint64_t off, size = w->t->size[class];

	if (!s || s->size_class != class || !has_objects(w->t, s))
		return NULL;
	off = addr - s->start;
	if (off >= s->bytes || off % size || off / size >= capacity(w->t, s))
		return NULL;
	x = &w->heap->extents[w->extent[s - w->t->spans]];
	return extent_state(x, addr) == BLOCK_USED ? x : NULL;
}

static bool take(struct walk *w, vaddr addr, unsigned class,
		 enum block_state state)
{
	struct heap_extent *x = object(w, span_of(w, addr), addr, class);

	if (x)
		extent_set_state(x, addr, state);
	return x != NULL;
}

static void note_list(struct walk *w, const char *what, unsigned class,
		      vaddr at, uint64_t n, uint64_t want)
{
	if (w->notes++ >= MAX_LIST_NOTES)
		return;
	heap_note(w->heap, "tcmalloc-list", w->arena, at, 0,
		  "%s of objects of %" PRIu32 " bytes breaks after %" PRIu64
		  " of %" PRIu64 ": free ones behind count as in use", what,
		  w->t->size[class], n, want);
	heap_note_is_grave(w->heap);
}

static void walk_span(struct walk *w, const struct tc_span *s)
{
	uint64_t n = capacity(w->t, s), found = 0;
	uint64_t want = s->taken <= n ? n - s->taken : 0;
	vaddr at = s->objects;

	while (at && found <= n) {
		struct heap_extent *x = object(w, s, at, s->size_class);

		if (!x)
			break;
		extent_set_state(x, at, BLOCK_BINNED);
		found++;
		if (!space_u64(w->sp, at, &at))
			break;
	}
	w->spans[s->size_class]++;
	w->listed[s->size_class] += found;
	if (at || found != want)
		note_list(w, "a span's list", s->size_class, s->start, found,
			  want);
}

/* Each slot in use holds a chain of as many objects as are moved at once. */
static void walk_slot(struct walk *w, unsigned class, vaddr slot)
{
	uint64_t ends[2] = { 0 }, found = 0, want = w->t->to_move[class];
	vaddr at, last = 0;

	space_read(w->sp, slot, ends, sizeof(ends));
	at = ends[0];
	while (at && found < want && take(w, at, class, BLOCK_FAST)) {
		last = at;
		found++;
		if (!space_u64(w->sp, at, &at))
			break;
	}
	if (found != want || last != ends[1])
		note_list(w, "a transfer cache's chain", class, slot, found,
			  want);
}

static void walk_central(struct walk *w)
{
	for (unsigned c = 1; c < w->t->n_classes; c++) {
		vaddr list = w->t->central + (vaddr)c * TC_CENTRAL_BYTES;
		uint64_t count[2] = { 0 };
		uint32_t used = 0;

		space_read(w->sp, list + CENTRAL_SPANS, count, sizeof(count));
		if (count[0] != w->spans[c] || count[1] != w->listed[c])
			note_list(w, "the central list", c, list,
				  w->listed[c], count[1]);
		space_u32(w->sp, list + CENTRAL_USED, &used);
		if (used > MAX_SLOTS)
			note_list(w, "the transfer cache", c, list, 0, used);
		for (uint32_t i = 0; i < used && used <= MAX_SLOTS; i++)
			walk_slot(w, c, list + CENTRAL_SLOTS + 16 * i);
	}
}

/* ---- thread caches ---- */

/* 2.8 to 2.15 say it; later ones have a pointer in the thread's TLS. */
static uint32_t cache_thread(struct walk *w, vaddr cache)
{
	uint64_t pthread = 0, words[TLS_BELOW / 8];

	if (w->t->cache_next > CACHE_PTHREAD)
		space_u64(w->sp, cache + CACHE_PTHREAD, &pthread);
	for (size_t i = 0; i < w->sp->n_threads; i++) {
		const struct thread *thread = &w->sp->threads[i];

		if (!thread->tls)
			continue;
		if (pthread && pthread == thread->tls)
			return thread->tid;
		if (pthread || space_read(w->sp, thread->tls - TLS_BELOW,
					  words, TLS_BELOW) != TLS_BELOW)
			continue;
		for (size_t k = 0; k < TLS_BELOW / 8; k++)
			if (words[k] == cache)
				return thread->tid;
	}
	return 0;
}

/* To the end of the list, not to its length: that may be about to change. */
static void walk_list(struct walk *w, unsigned class, uint32_t cache,
		      vaddr at, uint32_t length)
{
	uint64_t found = 0;

	while (at && found <= (uint64_t)length + 1 &&
	       take(w, at, class, BLOCK_CACHED)) {
		heap_add_cached(w->heap, cache, at, class, w->t->size[class]);
		found++;
		if (!space_u64(w->sp, at, &at))
			break;
	}
	if (at || found + 1 < length || found > (uint64_t)length + 1)
		note_list(w, "a thread cache's list", class,
			  w->heap->caches[cache].addr, found, length);
}

static void walk_cache(struct walk *w, vaddr addr)
{
	uint32_t cache = heap_add_cache(w->heap, &(struct thread_cache){
		.addr = addr, .allocator = w->allocator,
		.tid = cache_thread(w, addr), .arena = w->arena });

	for (unsigned c = 1; c < w->t->n_classes; c++) {
		uint64_t word[2];

		if (space_read(w->sp, addr + c * TC_LIST_BYTES, word,
			       sizeof(word)) == sizeof(word))
			walk_list(w, c, cache, word[0], (uint32_t)word[1]);
	}
}

/* ---- what could not be found, what does not add up ---- */

static void note_grave(struct walk *w, const char *code, const char *text)
{
	heap_note(w->heap, code, w->arena, w->t->root, 0, "%s", text);
	heap_note_is_grave(w->heap);
}

/*
 * The debug libraries put a header before each block: size, offset, a magic
 * number, and by what it was allocated.  A freed block is filled with one byte,
 * the header too, and held back for a while (src/debugallocation.cc).
 */
static bool is_debug(struct walk *w)
{
	size_t asked = 0, magic = 0, held = 0;

	for (size_t i = 0; i < w->t->n_spans && asked < MAX_ASKED; i++) {
		const struct tc_span *s = &w->t->spans[i];
		uint64_t word;

		if (!has_objects(w->t, s) || extent_state(&w->heap->extents[
		    w->extent[i]], s->start) != BLOCK_USED ||
		    !space_u64(w->sp, s->start + DEBUG_MAGIC_OFF, &word))
			continue;
		asked++;
		magic += word == DEBUG_MAGIC;
		held += word == DEBUG_FREED;
	}
	return magic && (magic + held) * 2 > asked;
}

static void check(struct walk *w)
{
	const struct tcmalloc *t = w->t;

	if (is_debug(w))
		note_grave(w, "tcmalloc-debug", "this is a debug library: "
			   "blocks are shown with its headers and trailers, "
			   "from 32 bytes before the address that the program "
			   "has, and freed ones that it holds back count as "
			   "in use");

	if (!t->n_classes)
		note_grave(w, "tcmalloc-classes", "the table of size classes "
			   "was not found: spans of objects are not decoded");
	else if (!t->central)
		note_grave(w, "tcmalloc-central", "the central lists were not "
			   "found: free objects in transfer caches count as "
			   "in use");
	if (t->n_classes && !t->n_caches)
		note_grave(w, "tcmalloc-caches", "the thread caches were not "
			   "found: free objects there count as in use");
	if (tc_exact(t))
		return;
	heap_note(w->heap, "tcmalloc-stats", w->arena, t->root, 0,
		  "the page heap counts %" PRIu64 " bytes, %" PRIu64
		  " free and %" PRIu64 " returned; its spans are %" PRIu64
		  ", %" PRIu64 " and %" PRIu64, t->stats.system_bytes,
		  t->stats.free_bytes, t->stats.returned_bytes,
		  t->span_bytes[TC_IN_USE] + t->span_bytes[TC_NORMAL] +
		  t->span_bytes[TC_RETURNED], t->span_bytes[TC_NORMAL],
		  t->span_bytes[TC_RETURNED]);
	heap_note_is_grave(w->heap);
}

void tc_walk(struct tcmalloc *t, struct heap *heap, uint32_t allocator,
	     uint32_t arena)
{
	struct walk w = {
		.t = t, .sp = t->sp, .heap = heap, .allocator = allocator,
		.arena = arena,
	};

	add_extents(&w);
	for (size_t i = 0; i < t->n_spans; i++)
		if (has_objects(t, &t->spans[i]))
			walk_span(&w, &t->spans[i]);
	if (t->central)
		walk_central(&w);
	for (size_t i = 0; i < t->n_caches; i++)
		walk_cache(&w, t->caches[i]);
	check(&w);
	add_metadata(&w);
	free(w.extent);
}
