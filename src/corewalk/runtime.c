/* SPDX-License-Identifier: MIT */
/*
 * A runtime is believed only if two things agree that have nothing to do with
 * each other: a mark in the program and the place of the memory, headers of
 * many pages, or a variable and the borders of mappings.
 */
#include "corewalk/runtime.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "corewalk/jvm.h"
#include "corewalk/module.h"
#include "corewalk/ocaml.h"
#include "corewalk/words.h"

enum {
	SEARCHED = 64 << 20,		/* bytes of modules */

	/* Go: runtime/malloc.go, on 64-bit Linux. */
	GO_HINT_SHIFT = 40,
	GO_HINTS = 128,

	/* V8: src/heap/memory-chunk-layout.h, of 8 to 12. */
	V8_PAGE = 256 * 1024,
	V8_WORDS = 12,
	V8_SIZE = 0, V8_HEAP = 2, V8_AREA = 3, V8_AREA_END = 4,
	V8_RESERVED = 10, V8_RESERVED_SIZE = 11,
	V8_LEAST = 4,			/* pages of one heap */
	V8_ISOLATES = 64,

	/* HotSpot: a MemRegion is a start and a number of words. */
	JVM_ALIGN = 64 * 1024,
	JVM_LEAST = 1 << 20,
};

#define GO_FIRST UINT64_C(0xc000000000)
#define MAX_ADDR (UINT64_C(1) << 47)

struct finder {
	struct space *sp;
	struct heap *heap;
	uint64_t budget;
};

/* ---- what was found ---- */

static uint32_t add_runtime(struct finder *f, const char *name, vaddr addr,
			    const char *evidence)
{
	uint32_t allocator = heap_add_allocator(f->heap, name,
						"runtime heap, not walked",
						evidence);

	heap_add_arena(f->heap, allocator, addr, "%s", name);
	return (uint32_t)(f->heap->n_arenas - 1);
}

/* Private memory of [start, end) that is no allocator's; n are sorted. */
static void add_memory(struct finder *f, uint32_t arena, size_t n,
		       vaddr start, vaddr end)
{
	struct space *sp = f->sp;

	for (size_t i = space_first_seg(sp, start);
	     i < sp->n_segs && sp->segs[i].start < end; i++)
		if (space_seg_private(sp, &sp->segs[i]))
			heap_add_rest(f->heap, arena, EXTENT_RUNTIME, n,
				      max_u64(start, sp->segs[i].start),
				      min_u64(end, sp->segs[i].end));
}

/* The end of the anonymous mappings, of any protection, that follow. */
static vaddr anonymous_end(const struct space *sp, size_t i)
{
	vaddr end = sp->segs[i].end;

	for (i++; i < sp->n_segs && sp->segs[i].start == end &&
	     space_seg_anon(&sp->segs[i]); i++)
		end = sp->segs[i].end;
	return end;
}

/* ---- Go ---- */

/* What debug/buildinfo looks for: a program built by Go 1.13 or later. */
static bool has_build_info(struct finder *f, const struct module *m)
{
	static const char magic[16] = "\xff Go buildinf:";
	struct words *w = mem_alloc(sizeof(*w));
	size_t seg = space_first_seg(f->sp, m->start);
	uint64_t first, word;
	bool found = false;
	vaddr lo, hi, at;

	memcpy(&first, magic, sizeof(first));
	while (!found && words_module_range(f->sp, m, &seg, &lo, &hi)) {
		words_init(w, f->sp, lo, hi, WORDS_BUFFER, &f->budget);
		while (!found && words_next(w, &at, &word)) {
			char rest[6];

			found = word == first && !(at & 15) &&
				space_read(f->sp, at + 8, rest, 6) == 6 &&
				!memcmp(rest, magic + 8, 6);
		}
	}
	free(w);
	return found;
}

static void find_go(struct finder *f)
{
	struct space *sp = f->sp;
	const struct module *m = NULL;
	uint32_t arena = 0;
	char evidence[160];
	size_t n;

	for (size_t i = 0; i < sp->n_modules && !m; i++)
		if (has_build_info(f, &sp->modules[i]))
			m = &sp->modules[i];
	heap_sort(f->heap);
	n = f->heap->n_extents;
	for (uint64_t hint = 0; m && hint < GO_HINTS; hint++) {
		vaddr at = GO_FIRST | hint << GO_HINT_SHIFT;
		size_t i = space_first_seg(sp, at);

		if (i == sp->n_segs || sp->segs[i].start != at ||
		    !space_seg_anon(&sp->segs[i]))
			continue;
		if (!arena) {
			snprintf(evidence, sizeof(evidence), "Go's build "
				 "information in a module, and memory at 0x%"
				 PRIx64 ", where its arenas begin", at);
			arena = add_runtime(f, "go", at, evidence) + 1;
		}
		add_memory(f, arena - 1, n, at, anonymous_end(sp, i));
	}
}

/* ---- V8 ---- */

struct v8_page {
	vaddr start, heap;
	uint64_t size;
};

/* Its header says how large it is, where its objects lie, and whose it is. */
static bool v8_page(struct space *sp, vaddr at, struct v8_page *ret)
{
	uint64_t w[V8_WORDS], size, reserved;

	if (space_read(sp, at, w, sizeof(w)) != sizeof(w))
		return false;
	size = w[V8_SIZE];
	reserved = w[V8_RESERVED_SIZE];
	*ret = (struct v8_page){ at, w[V8_HEAP], size };
	return size && !(size & 4095) && size < MAX_ADDR &&
	       w[V8_AREA] > at && w[V8_AREA] < w[V8_AREA_END] &&
	       w[V8_AREA_END] <= at + size && w[V8_HEAP] &&
	       !(w[V8_HEAP] & 7) && w[V8_RESERVED] == at &&
	       reserved >= size && reserved - size < V8_PAGE &&
	       space_mapped(sp, at, size);
}

static int by_heap(const void *a, const void *b)
{
	const struct v8_page *x = a, *y = b;

	return ORDER(x->heap, y->heap) ?: ORDER(x->start, y->start);
}

static void add_v8(struct finder *f, const struct v8_page *pages, size_t n)
{
	char evidence[160];
	uint32_t arena;
	size_t extents;

	snprintf(evidence, sizeof(evidence), "%zu pages, aligned to 256 KiB, "
		 "whose headers say where they lie and name the heap 0x%"
		 PRIx64, n, pages[0].heap);
	arena = add_runtime(f, "v8", pages[0].heap, evidence);
	heap_sort(f->heap);
	extents = f->heap->n_extents;
	for (size_t i = 0; i < n; i++)
		add_memory(f, arena, extents, pages[i].start,
			   pages[i].start + pages[i].size);
}

static void find_v8(struct finder *f)
{
	struct space *sp = f->sp;
	struct v8_page *pages = NULL, page;
	size_t n = 0, cap = 0, heaps = 0;

	for (size_t i = 0; i < sp->n_segs; i++) {
		const struct seg *seg = &sp->segs[i];
		vaddr end = seg->start + seg->avail;
		vaddr at = round_up(seg->start, V8_PAGE);

		if (!space_seg_anon(seg) || !space_seg_private(sp, seg))
			continue;
		while (at >= seg->start && at < end) {
			vaddr stored = space_next_stored(sp, at);

			if (stored >= end)
				break;
			at = round_down(stored, V8_PAGE);
			if (at >= seg->start && v8_page(sp, at, &page)) {
				MEM_PUSH(pages, n, cap) = page;
				at = round_up(at + page.size, V8_PAGE);
			} else {
				at += V8_PAGE;
			}
		}
	}
	SORT(pages, n, by_heap);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && pages[end].heap == pages[i].heap;)
			end++;
		if (end - i >= V8_LEAST && heaps++ < V8_ISOLATES)
			add_v8(f, pages + i, end - i);
	}
	free(pages);
}

/* ---- the Java virtual machine ---- */

static bool is_libjvm(const struct space *sp, const struct module *m)
{
	return !strcmp(module_name(sp, m), "libjvm.so");
}

struct region {
	vaddr start;
	uint64_t words;
	uint64_t bytes;		/* of private memory in it */
	bool told;		/* by the library, not just words in memory */
};

/* Is memory of an allocator in it?  Extents are sorted. */
static bool has_extents(const struct heap *h, vaddr start, vaddr end)
{
	size_t lo = BISECT(mid, 0, h->n_extents, h->extents[mid].end <= start);

	return lo < h->n_extents && h->extents[lo].start < end;
}

/*
 * Are these words a region that begins with a mapping and cuts none at its end,
 * and has no memory in it that is a program's, shared, an allocator's, or a
 * stack?  Reservations may be missing: gdb writes none.  Of one that we are
 * told of, the kernel may have joined mappings with their neighbours.
 */
static bool is_region(struct finder *f, struct region *r)
{
	struct space *sp = f->sp;
	uint64_t bytes = r->words * 8;
	vaddr end = r->start + bytes;
	size_t i;

	if (!r->start || r->start & (JVM_ALIGN - 1) || r->start >= MAX_ADDR ||
	    r->words > MAX_ADDR / 8 || bytes < JVM_LEAST ||
	    bytes & (JVM_ALIGN - 1))
		return false;
	i = space_first_seg(sp, r->start);
	if (i == sp->n_segs || (!r->told && sp->segs[i].start != r->start))
		return false;
	for (r->bytes = 0; i < sp->n_segs && sp->segs[i].start < end; i++) {
		const struct seg *seg = &sp->segs[i];
		bool private = space_seg_private(sp, seg);

		/* Objects of the program's archive may be mapped there. */
		if ((!private && !space_seg_anon(seg)) ||
		    seg->flags & SEG_X ||
		    (!r->told && seg->end > end) ||
		    space_module(sp, seg->start))
			return false;
		r->bytes += private ? min_u64(seg->end, end) -
				      max_u64(seg->start, r->start) : 0;
	}
	return r->bytes && !has_extents(f->heap, r->start, end) &&
	       !space_thread_on(sp, r->start, end);
}

/* The one with most memory, of these the smallest. */
static void find_region(struct finder *f, vaddr lo, vaddr hi,
			struct region *best)
{
	struct words *w = mem_alloc(sizeof(*w));
	struct region r = { .told = false };
	vaddr at;

	words_init(w, f->sp, lo, hi, WORDS_BUFFER, &f->budget);
	while (words_next(w, &at, &r.start))
		if (!(r.start & (JVM_ALIGN - 1)) &&
		    space_u64(f->sp, at + 8, &r.words) &&
		    is_region(f, &r) && (r.bytes > best->bytes ||
		     (r.bytes == best->bytes && r.words < best->words)))
			*best = r;
	free(w);
}

/* In the library's own variables or, without them, in what it allocated. */
static void search_region(struct finder *f, const struct module *m,
			  struct region *best)
{
	size_t seg = space_first_seg(f->sp, m->start);
	vaddr lo, hi;

	while (words_module_range(f->sp, m, &seg, &lo, &hi))
		find_region(f, lo, hi, best);
	for (size_t i = 0; !best->bytes && i < f->heap->n_extents; i++)
		if (f->heap->extents[i].kind == EXTENT_BLOCKS)
			find_region(f, f->heap->extents[i].start,
				    f->heap->extents[i].end, best);
}

static void find_jvm_by(struct finder *f, const struct module *m)
{
	struct region best = { .told = true };
	char evidence[200];
	size_t n;

	heap_sort(f->heap);
	if (!jvm_reserved(f->sp, m, &best.start, &best.words) ||
	    !is_region(f, &best)) {
		best = (struct region){ .told = false };
		search_region(f, m, &best);
	}
	if (!best.bytes)
		return;
	snprintf(evidence, sizeof(evidence), "a variable of libjvm.so%s: a "
		 "region of %" PRIu64 " bytes from 0x%" PRIx64
		 " on, which mappings fit", best.told ? ", by its own table" :
		 "", best.words * 8, best.start);
	n = f->heap->n_extents;
	add_memory(f, add_runtime(f, "jvm", best.start, evidence), n,
		   best.start, best.start + best.words * 8);
}

/* ZGC's heap is a memory file, mapped several times, and shared memory. */
static bool has_heap_file(const struct space *sp)
{
	for (size_t i = 0; i < sp->n_files; i++)
		if (!strcmp(sp->files[i].name, "/memfd:java_heap"))
			return true;
	return false;
}

static void find_jvm(struct finder *f)
{
	if (has_heap_file(f->sp))
		return;
	for (size_t i = 0; i < f->sp->n_modules; i++)
		if (is_libjvm(f->sp, &f->sp->modules[i])) {
			find_jvm_by(f, &f->sp->modules[i]);
			return;
		}
}

void runtime_find(struct space *sp, struct heap *heap)
{
	struct finder f = { .sp = sp, .heap = heap, .budget = SEARCHED };

	if (sp->word != 8)
		return;
	find_go(&f);
	find_v8(&f);
	f.budget = SEARCHED;
	find_jvm(&f);
	heap_sort(heap);
	ocaml4_find(sp, heap);
	ocaml5_find(sp, heap);
}
