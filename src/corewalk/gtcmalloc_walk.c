/* SPDX-License-Identifier: MIT */
/*
 * The walk of google/tcmalloc.  What it got from the system are regions, the
 * parts of them that are mapped; spans and the free pages between them tile
 * these.  Objects are in use that are on no span's list, in no transfer cache,
 * slab or thread cache, and are no sampled block's proxy.
 */
#include "corewalk/gtcmalloc.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"

enum {
	MAX_LIST_NOTES = 20,
	MAX_INDICES = 1 << 16,
	METADATA_STEP = 128 * 1024,
	PAGE = 4096,
	HUGE_BYTES = 1 << GTC_HUGE_SHIFT,
	/* Of a piece that is one block: its planes end with its first bytes. */
	LONE_BYTES = 1 << 20,
};

#define NO_SPAN UINT32_MAX
#define NO_CACHE UINT32_MAX

struct walk {
	struct gtcmalloc *t;
	struct space *sp;
	struct heap *heap;
	uint32_t allocator, arena;
	uint32_t *extent;	/* owned; of each span */
	vaddr *own;		/* owned; pages with structures, sorted */
	size_t n_own;
	size_t notes;
};

/* ---- regions ---- */

/*
 * A GiB at its own multiple with no other mapping in it than anonymous ones.
 * Where nothing of it is known to be tcmalloc's, it must be mapped or reserved
 * from end to end; of what is reserved some cores say nothing.
 */
static bool is_region(struct space *sp, vaddr start, bool known)
{
	vaddr end = start + GIB, at = start;

	for (size_t i = space_first_seg(sp, start); i < sp->n_segs &&
	     sp->segs[i].start < end; i++) {
		const struct seg *seg = &sp->segs[i];

		if (!space_seg_anon(seg) || (seg->start > at && !known))
			return false;
		at = seg->end;
	}
	return known || at >= end;
}

struct range {
	vaddr start, end;
};

struct ranges {
	struct range *at;	/* owned */
	size_t n, cap;
};

/* In order, and joined to the last one if it ends there. */
static void add_range(struct ranges *r, vaddr start, vaddr end)
{
	if (r->n && r->at[r->n - 1].end == start)
		r->at[r->n - 1].end = end;
	else if (start < end)
		MEM_PUSH(r->at, r->n, r->cap) = (struct range){ start, end };
}

/* What of [start, end) is mapped and can be written to. */
static void add_mapped(struct space *sp, struct ranges *r, vaddr start,
		       vaddr end)
{
	for (size_t i = space_first_seg(sp, start); i < sp->n_segs &&
	     sp->segs[i].start < end; i++) {
		const struct seg *seg = &sp->segs[i];

		if (seg->flags & SEG_W && space_seg_anon(seg))
			add_range(r, max_u64(start, seg->start),
				  min_u64(end, seg->end));
	}
}

/* Huge pages of the filler, and those that spans lie in. */
static void find_huge(const struct gtcmalloc *t, struct ranges *r)
{
	for (size_t i = 0; i < t->n_huge; i++) {
		vaddr at = t->huge[i] << GTC_HUGE_SHIFT;

		add_range(r, at, at + HUGE_BYTES);
	}
	for (size_t i = 0; i < t->n_spans; i++) {
		const struct gtc_span *s = &t->spans[i];

		MEM_PUSH(r->at, r->n, r->cap) = (struct range){
			round_down(s->start, HUGE_BYTES),
			round_up(s->start + s->bytes, HUGE_BYTES) };
	}
	/* A region may be empty now; its leaf remains. */
	for (size_t i = 0; i < t->n_covered; i++) {
		vaddr region = round_down(t->covered[i], GIB);

		if ((!i || region != round_down(t->covered[i - 1], GIB)) &&
		    is_region(t->sp, region, false))
			MEM_PUSH(r->at, r->n, r->cap) = (struct range){
				region, region + GIB };
	}
	SORT_BY(r->at, r->n, start);
}

/* These; where one lies in a region, all of that. */
static void find_ranges(const struct walk *w, struct ranges *ret)
{
	struct ranges huge = { 0 };
	vaddr done = 0, asked = UINT64_MAX;
	bool whole = false;

	find_huge(w->t, &huge);
	for (size_t i = 0; i < huge.n; i++)
		while (huge.at[i].end > done) {
			vaddr at = max_u64(huge.at[i].start, done);
			vaddr region = round_down(at, GIB);

			if (region != asked)
				whole = is_region(w->sp, region, true);
			asked = region;
			done = whole ? region + GIB :
				min_u64(huge.at[i].end, region + GIB);
			add_mapped(w->sp, ret, whole ? region : at, done);
		}
	free(huge.at);
}

/* Pages that hold parts of spans' structures and the like; owned by caller. */
static vaddr *structures(const struct gtcmalloc *t, size_t *ret_n)
{
	uint64_t leaf = (8 + (uint64_t)t->map.class_bytes) << t->map.leaf_bits;
	vaddr *at = NULL;
	size_t n = 0, cap = 0;

	for (size_t i = 0; i < t->n_spans; i++)
		MEM_PUSH(at, n, cap) = round_down(t->spans[i].addr, PAGE);
	for (size_t i = 0; i < t->n_caches; i++)
		MEM_PUSH(at, n, cap) = round_down(t->caches[i], PAGE);
	for (size_t i = 0; i < t->n_nodes; i++)
		for (uint64_t k = 0; k < leaf; k += METADATA_STEP)
			MEM_PUSH(at, n, cap) = round_down(t->nodes[i] + k,
							  PAGE);
	for (uint32_t i = 0; i < t->n_slabs; i++)
		MEM_PUSH(at, n, cap) = round_down(t->slabs + ((vaddr)i <<
						  t->slab_shift), PAGE);
	*ret_n = num_sort_unique(at, n);
	return at;
}

/* ---- extents ---- */

/* A span, or free pages. */
struct piece {
	vaddr start, end;
	uint32_t span;		/* NO_SPAN: free pages */
	enum block_state state;	/* then */
};

struct pieces {
	struct piece *at;	/* owned */
	size_t n, cap;
};

static bool in_filler(const struct walk *w, vaddr addr)
{
	return FIND(w->t->huge, w->t->n_huge, addr >> GTC_HUGE_SHIFT);
}

/* Is one of its own structures in [start, end)? */
static bool has_structure(const struct walk *w, vaddr start, vaddr end)
{
	size_t lo = BISECT(mid, 0, w->n_own, w->own[mid] < start);

	return lo < w->n_own && w->own[lo] < end;
}

/*
 * Where the next huge page with a tracker or a structure begins, or the one
 * that end is in: mappings claim terabytes and have nothing in them.
 */
static vaddr quiet_end(const struct walk *w, vaddr at, vaddr end)
{
	const struct gtcmalloc *t = w->t;
	size_t huge = BISECT(mid, 0, t->n_huge,
			     t->huge[mid] < at >> GTC_HUGE_SHIFT);
	size_t own = BISECT(mid, 0, w->n_own, w->own[mid] < at);

	if (huge < t->n_huge)
		end = min_u64(end, t->huge[huge] << GTC_HUGE_SHIFT);
	if (own < w->n_own)
		end = min_u64(end, w->own[own]);
	return round_down(end, HUGE_BYTES);
}

/*
 * Free pages in [start, end): those of huge pages that are in use, and whole
 * ones that are not; builds of 2023 take some of these for structures.
 */
static void add_gap(const struct walk *w, struct pieces *p, vaddr start,
		    vaddr end, bool after_span, bool before_span)
{
	size_t first = p->n;
	vaddr stop;

	for (vaddr at = start; at < end; at = stop) {
		bool used = in_filler(w, at);
		enum block_state state;

		stop = min_u64(round_down(at, HUGE_BYTES) + HUGE_BYTES, end);
		used |= at == start && after_span && at % HUGE_BYTES;
		used |= stop == end && before_span && end % HUGE_BYTES;
		if (!used)
			stop = max_u64(stop, quiet_end(w, at, end));
		state = used ? BLOCK_UNSORTED :
			has_structure(w, at, stop) ? BLOCK_OVERHEAD :
			BLOCK_TOP;
		if (p->n > first && p->at[p->n - 1].state == state)
			p->at[p->n - 1].end = stop;
		else
			MEM_PUSH(p->at, p->n, p->cap) = (struct piece){
				at, stop, NO_SPAN, state };
	}
}

/* All of a range, spans from number i on; the first one behind it. */
static size_t add_pieces(const struct walk *w, struct pieces *p,
			 const struct range *r, size_t i)
{
	const struct gtcmalloc *t = w->t;
	bool after = false;
	vaddr at = r->start;

	for (; i < t->n_spans && t->spans[i].start < r->end; i++) {
		const struct gtc_span *s = &t->spans[i];

		/* Else it lies across the end of what can be written to. */
		if (s->start < at || s->start + s->bytes > r->end)
			continue;
		add_gap(w, p, at, s->start, after, true);
		at = s->start + s->bytes;
		after = true;
		MEM_PUSH(p->at, p->n, p->cap) = (struct piece){
			s->start, at, (uint32_t)i, BLOCK_USED };
	}
	add_gap(w, p, at, r->end, after, false);
	return i;
}

static bool has_objects(const struct walk *w, const struct piece *p)
{
	const struct gtc_span *s;

	if (p->span == NO_SPAN)
		return false;
	s = &w->t->spans[p->span];
	return s->size_class && s->readable && gtc_capacity(w->t, s);
}

static bool decodable(const struct walk *w, const struct piece *p)
{
	return p->span == NO_SPAN || !w->t->spans[p->span].size_class ||
		has_objects(w, p);
}

/* It is one block, or free, and large or hardly in the file. */
static bool lone(const struct walk *w, const struct piece *p)
{
	return !has_objects(w, p) && (p->end - p->start > LONE_BYTES ||
				      space_sparse(w->sp, p->start, p->end));
}

static void mark_piece(struct walk *w, const struct piece *p, size_t extent)
{
	struct heap_extent *x = &w->heap->extents[extent];
	const struct gtc_span *s;
	uint64_t n, size;
	vaddr tail;

	extent_mark(x, p->start);
	if (p->span == NO_SPAN) {
		extent_set_state(x, p->start, p->state);
		return;
	}
	w->extent[p->span] = (uint32_t)extent;
	s = &w->t->spans[p->span];
	n = gtc_capacity(w->t, s);
	size = n ? w->t->size[s->size_class] : gtc_sampled_bytes(w->t, s);
	if (n)
		heap_add_span(w->heap, s->start, n, size);
	for (uint64_t i = 1; i < n; i++)
		extent_mark(x, s->start + i * size);
	/* That a sampled block has whole pages is the sampler's price. */
	tail = s->start + max_u64(n, 1) * size;
	if (tail >= p->end || lone(w, p))
		return;
	extent_mark(x, tail);
	extent_set_state(x, tail, BLOCK_OVERHEAD);
}

/* Pieces side by side become one extent; the last may be long. */
static void add_extent(struct walk *w, const struct piece *p, size_t n)
{
	const struct piece *last = &p[n - 1];
	vaddr planes = lone(w, last) ? last->start + 8 : last->end;
	size_t x = heap_add_blocks(w->heap, w->arena, p->start, planes, 3, 0,
				   0);

	for (size_t i = 0; i < n; i++)
		mark_piece(w, &p[i], x);
	if (planes != last->end)
		heap_trim_extent(w->heap, x, last->end);
}

static void add_undecoded(struct walk *w, const struct piece *p)
{
	const struct gtc_span *s = &w->t->spans[p->span];

	heap_add_range(w->heap, w->arena, EXTENT_UNDECODED, p->start, p->end);
	if (w->notes++ < MAX_LIST_NOTES)
		heap_note(w->heap, "gtcmalloc-span", w->arena, s->start,
			  s->bytes, "a span of size class %u: %s",
			  s->size_class, s->readable ? "no such class" :
			  "not all of it is in the file");
}

static void add_extents(struct walk *w)
{
	struct ranges r = { 0 };
	struct pieces p = { 0 };
	size_t span = 0;

	w->extent = mem_alloc((w->t->n_spans + 1) * sizeof(*w->extent));
	memset(w->extent, 0xff, (w->t->n_spans + 1) * sizeof(*w->extent));
	find_ranges(w, &r);
	for (size_t i = 0; i < r.n; i++)
		span = add_pieces(w, &p, &r.at[i], span);
	for (size_t i = 0, end; i < p.n; i = end) {
		const struct piece *at = &p.at[i];

		end = i + 1;
		if (!decodable(w, at)) {
			add_undecoded(w, at);
			continue;
		}
		while (end < p.n && p.at[end].start == at->end &&
		       decodable(w, &p.at[end]) && !lone(w, at))
			at = &p.at[end++];
		add_extent(w, &p.at[i], end - i);
	}
	free(r.at);
	free(p.at);
}

/* ---- metadata ---- */

/*
 * Pages that hold spans, the map, slabs and caches, and what lies between two
 * of them that are not far apart; in a region of its own, all of that.  Last,
 * because numbers of extents change.
 */
static void add_metadata(struct walk *w)
{
	size_t n = w->n_own, n_extents = w->heap->n_extents;
	const vaddr *at = w->own;
	struct ranges r = { 0 };

	heap_sort(w->heap);
	for (size_t i = 0; i < n;) {
		vaddr start = at[i], end, region = round_down(start, GIB);

		if (is_region(w->sp, region, false)) {
			add_mapped(w->sp, &r, region, region + GIB);
			while (i < n && at[i] < region + GIB)
				i++;
			continue;
		}
		do
			end = at[i++] + PAGE;
		while (i < n && at[i] <= end + METADATA_STEP &&
		       space_run_end(w->sp, start) > at[i]);
		add_range(&r, start, min_u64(end, space_run_end(w->sp,
								start)));
	}
	for (size_t i = 0; i < r.n; i++)
		heap_add_rest(w->heap, w->arena, EXTENT_OVERHEAD, n_extents,
			      r.at[i].start, r.at[i].end);
	free(r.at);
}

/* ---- free objects ---- */

static bool take(struct walk *w, vaddr addr, unsigned class,
		 enum block_state state)
{
	const struct gtc_span *s = gtc_span_of(w->t, addr);
	struct heap_extent *x;
	uint32_t extent;

	if (!s || !gtc_is_object(w->t, addr, class))
		return false;
	extent = w->extent[s - w->t->spans];
	if (extent == NO_SPAN)
		return false;
	x = &w->heap->extents[extent];
	if (extent_state(x, addr) != BLOCK_USED)
		return false;
	extent_set_state(x, addr, state);
	return true;
}

static void note_list(struct walk *w, const char *what, unsigned class,
		      vaddr at, uint64_t n, uint64_t want)
{
	if (w->notes++ >= MAX_LIST_NOTES)
		return;
	heap_note(w->heap, "gtcmalloc-list", w->arena, at, 0,
		  "%s of objects of %" PRIu32 " bytes breaks after %" PRIu64
		  " of %" PRIu64 ": free ones behind count as in use", what,
		  w->t->size[class], n, want);
	heap_note_is_grave(w->heap);
}

static void walk_spans(struct walk *w)
{
	uint16_t *index = mem_alloc(MAX_INDICES * sizeof(*index));
	const struct gtcmalloc *t = w->t;

	for (size_t i = 0; i < t->n_spans; i++) {
		const struct gtc_span *s = &t->spans[i];
		size_t n, found = 0;
		uint64_t size;
		bool whole;

		/* Where it has none, there may be no such class. */
		if (w->extent[i] == NO_SPAN || !s->size_class)
			continue;
		size = t->size[s->size_class];
		whole = gtc_span_free(t, s, index, &n);
		for (size_t k = 0; k < n; k++)
			found += take(w, s->start + index[k] * size,
				      s->size_class, BLOCK_BINNED);
		if (!whole || found != n)
			note_list(w, "a span's list", s->size_class, s->start,
				  found, gtc_capacity(t, s) - min_u64(
				  s->allocated, gtc_capacity(t, s)));
	}
	free(index);
}

/* Something that holds free objects by class. */
struct front {
	const char *what;
	vaddr addr;
	enum block_state state;	/* of what it holds */
	uint32_t cache;		/* a thread's; else NO_CACHE */
};

/* The objects of a list; how many were free and nowhere else. */
static uint64_t take_list(struct walk *w, const struct front *f,
			  unsigned class, const struct gtc_list *list)
{
	vaddr at = list->at, object = at;
	uint64_t found = 0;

	while (found < list->n) {
		if (!list->linked &&
		    !space_u64(w->sp, at + 8 * found, &object))
			break;
		if (!take(w, object, class, f->state))
			break;
		if (f->cache != NO_CACHE)
			heap_add_cached(w->heap, f->cache, object, class,
					w->t->size[class]);
		found++;
		if (list->linked && !space_u64(w->sp, object, &object))
			break;
	}
	return found;
}

/* A class's list; NULL: what is there can be none. */
static void walk_front(struct walk *w, const struct front *f, unsigned class,
		       const struct gtc_list *list)
{
	uint64_t want = list ? list->n : UINT32_MAX;
	uint64_t found = list ? take_list(w, f, class, list) : 0;

	if (found != want)
		note_list(w, f->what, class, f->addr, found, want);
}

static void walk_transfer(struct walk *w)
{
	const struct gtcmalloc *t = w->t;
	struct front f = { "the transfer cache", 0, BLOCK_FAST, NO_CACHE };
	struct gtc_list list;

	for (unsigned c = 1; c < t->n_classes; c++) {
		if (!t->size[c])
			continue;
		f.addr = t->central + (vaddr)c * t->stride;
		walk_front(w, &f, c, gtc_transfer_list(t, c, t->used_off,
						       t->slots_off, &list) ?
			   &list : NULL);
	}
}

static void walk_cache(struct walk *w, vaddr addr)
{
	struct front f = { "a thread cache's list", addr, BLOCK_CACHED,
			   heap_add_cache(w->heap, &(struct thread_cache){
				.addr = addr, .allocator = w->allocator,
				.arena = w->arena }) };
	struct gtc_list list;

	for (unsigned c = 1; c < w->t->n_classes; c++)
		walk_front(w, &f, c, gtc_cache_list(w->t, addr, c, &list) ?
			   &list : NULL);
}

static void walk_slab(struct walk *w, uint32_t cpu)
{
	const struct gtcmalloc *t = w->t;
	struct front f = { "a CPU's slab",
			   t->slabs + ((vaddr)cpu << t->slab_shift),
			   BLOCK_CACHED, NO_CACHE };
	struct gtc_list list;

	for (unsigned c = 1; c < t->n_classes; c++)
		walk_front(w, &f, c, gtc_slab_list(t, cpu, c, &list) ?
			   &list : NULL);
}

static void walk_samples(struct walk *w)
{
	size_t n;
	vaddr *proxies = gtc_add_profile(w->t, w->heap, w->allocator,
					 w->arena, &n);

	for (size_t i = 0; i < n; i++) {
		const struct gtc_span *s = gtc_span_of(w->t, proxies[i]);

		take(w, proxies[i], s ? s->size_class : 0, BLOCK_OVERHEAD);
	}
	free(proxies);
}

/* ---- what could not be found ---- */

static void note_missing(struct walk *w, const char *code, const char *what)
{
	heap_note(w->heap, code, w->arena, w->t->map.root, 0,
		  "%s not found: free objects there count as in use", what);
	heap_note_is_grave(w->heap);
}

static void check(struct walk *w)
{
	const struct gtcmalloc *t = w->t;

	if (!t->n_classes)
		note_missing(w, "gtcmalloc-central", "the central lists, "
			     "transfer caches, and caches before them were");
	else if (!t->transfer)
		note_missing(w, "gtcmalloc-transfer",
			     "the transfer caches were");
	if (t->n_classes && !t->n_caches && !t->slabs)
		note_missing(w, "gtcmalloc-caches",
			     "neither thread caches nor CPUs' slabs were");
	if (t->n_faults) {
		heap_note(w->heap, "gtcmalloc-layout", w->arena, t->map.root,
			  0, "the layout taken does not explain %zu of %zu "
			  "spans, each other one %zu or more", t->n_faults,
			  t->n_heads, t->rival_faults);
		heap_note_is_grave(w->heap);
	}
}

void gtc_walk(struct gtcmalloc *t, struct heap *heap, uint32_t allocator,
	      uint32_t arena)
{
	struct walk w = {
		.t = t, .sp = t->sp, .heap = heap, .allocator = allocator,
		.arena = arena,
	};

	w.own = structures(t, &w.n_own);
	add_extents(&w);
	walk_spans(&w);
	if (t->transfer)
		walk_transfer(&w);
	for (size_t i = 0; i < t->n_caches; i++)
		walk_cache(&w, t->caches[i]);
	for (uint32_t i = 0; i < t->n_slabs; i++)
		walk_slab(&w, i);
	walk_samples(&w);
	check(&w);
	add_metadata(&w);
	free(w.own);
	free(w.extent);
}
