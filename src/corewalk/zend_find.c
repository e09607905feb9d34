/* SPDX-License-Identifier: MIT */
/*
 * Finding the heaps of PHP without symbols and without its file: a chunk lies
 * at a multiple of 2 MiB and the first word of a main chunk is its own address
 * plus 64.  The layout of the heap is probed, not looked up: a security update
 * moved fields within 8.2 and 8.4.
 */
#include "corewalk/zend.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/sort.h"

enum {
	/* Bit 29 is a profiler's, if anybody's. */
	MARK = 1 << 29,
	LARGE_RUN = 1 << 30,
	FIRST_LARGE = LARGE_RUN | 1,	/* the entry of the header page */
	MAP_BYTES = ZEND_PAGES * 4,
	FREE_MAP_BYTES = ZEND_PAGES / 8,
	MAIN_MIN = 280, MAIN_MAX = 640,
	MAX_RING = 1 << 22,		/* chunks: 8 TiB */
	MAX_MEMBERS = 1 << 16,
};
static const uint32_t SMALL_RUN = UINT32_C(1) << 31;

const uint16_t zend_slot_size[ZEND_BINS] = {
	8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224,
	256, 320, 384, 448, 512, 640, 768, 896, 1024, 1280, 1536, 1792,
	2048, 2560, 3072,
};

const uint16_t zend_slot_count[ZEND_BINS] = {
	512, 256, 170, 128, 102, 85, 73, 64, 51, 42, 36, 32, 25, 21, 18,
	16, 64, 32, 9, 8, 32, 16, 9, 8, 16, 8, 16, 8, 8, 4,
};

const uint8_t zend_run_pages[ZEND_BINS] = {
	1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	1, 5, 3, 1, 1, 5, 3, 2, 2, 5, 3, 7, 4, 5, 3,
};

/* ---- the map of a chunk ---- */

static bool page_taken(const uint8_t *free_map, unsigned page)
{
	return free_map[page / 8] >> page % 8 & 1;
}

/* Pages of the run that an entry begins, and its kind; 0: it begins none. */
static unsigned run_length(uint32_t entry, unsigned page, unsigned *kind)
{
	unsigned n;

	entry &= ~(uint32_t)MARK;
	if ((entry & (SMALL_RUN | LARGE_RUN)) == SMALL_RUN) {
		*kind = entry & 31;
		n = *kind < ZEND_BINS ? zend_run_pages[*kind] : 0;
	} else if ((entry & (SMALL_RUN | LARGE_RUN)) == LARGE_RUN) {
		*kind = ZEND_LARGE;
		n = entry & 0x3ff;
	} else {
		n = 0;
	}
	return n <= ZEND_PAGES - page ? n : 0;
}

/* Only heads are cleared when a run is freed: step from head to head. */
unsigned zend_read_map(const uint8_t *header, const struct zend_layout *at,
		       struct zend_chunk *ret)
{
	const uint8_t *free_map = header + at->map - FREE_MAP_BYTES;
	unsigned bad = 0;

	ret->head[0] = 0;
	ret->kind[0] = ZEND_HEADER;
	for (unsigned page = 1; page < ZEND_PAGES;) {
		unsigned kind = ZEND_BAD, n = 1, taken = 0;

		if (!page_taken(free_map, page)) {
			kind = ZEND_FREE;
		} else {
			n = run_length(load_u32(header + at->map + 4 * page),
				       page, &kind);
			while (taken < n && page_taken(free_map, page + taken))
				taken++;
			if (!n || taken < n) {
				kind = ZEND_BAD;
				n = 1;
				bad++;
			}
		}
		for (unsigned k = 0; k < n; k++) {
			ret->head[page + k] = (uint16_t)page;
			ret->kind[page + k] = (uint8_t)kind;
		}
		page += n;
	}
	return bad;
}

bool zend_is_slot(const struct zend_chunk *c, vaddr addr, unsigned bin)
{
	uint64_t off = addr - c->addr;
	unsigned page = (unsigned)(off / ZEND_PAGE);

	if (off >= ZEND_CHUNK || c->kind[page] != bin)
		return false;
	off -= (uint64_t)c->head[page] * ZEND_PAGE;
	return !(off % zend_slot_size[bin]) &&
	       off / zend_slot_size[bin] < zend_slot_count[bin];
}

/* ---- the layout of a heap ---- */

static unsigned free_pages(const uint8_t *header, unsigned map)
{
	unsigned n = ZEND_PAGES;

	for (unsigned i = 0; i < FREE_MAP_BYTES; i++)
		n -= (unsigned)__builtin_popcount(
			header[map - FREE_MAP_BYTES + i]);
	return n;
}

static bool probe_main(const uint8_t *header, vaddr chunk,
		       struct zend_layout *at)
{
	for (unsigned m = MAIN_MIN; m < MAIN_MAX; m += 8)
		if (load_u64(header + ZEND_HEAP_OFF + m) == chunk) {
			at->main_chunk = m;
			return true;
		}
	return false;
}

/*
 * A count of free pages that agrees with the free map says where it is.  A map
 * with a few entries that were overwritten is one all the same.
 */
static bool probe_map(const uint8_t *header, struct zend_layout *at,
		      struct zend_chunk *scratch)
{
	unsigned first = ZEND_HEAP_OFF + at->main_chunk + 104;
	unsigned least = ZEND_PAGES / 8;
	struct zend_layout try = *at;

	for (unsigned k = first; k <= ZEND_PAGE - MAP_BYTES; k += 8) {
		unsigned f = 24, bad;

		if ((load_u32(header + k) & ~(uint32_t)MARK) != FIRST_LARGE ||
		    !(header[k - FREE_MAP_BYTES] & 1))
			continue;
		while (f <= 40 && load_u32(header + f) != free_pages(header, k))
			f += 8;
		if (f > 40)
			continue;
		try.map = k;
		try.free_pages = f;
		bad = zend_read_map(header, &try, scratch);
		if (bad < least) {
			least = bad;
			*at = try;
		}
	}
	return at->map != 0;
}

/* The kind of a free slot's page, read from its own chunk's header. */
static bool fits_bin(struct space *sp, const struct zend_layout *at,
		     vaddr heap, vaddr slot, unsigned bin,
		     struct zend_chunk *scratch)
{
	vaddr chunk = round_down(slot, ZEND_CHUNK);
	const uint8_t *header = space_view(sp, chunk, ZEND_PAGE);

	if (!header || load_u64(header) != heap)
		return false;
	if (scratch->addr != chunk) {
		scratch->addr = chunk;
		zend_read_map(header, at, scratch);
	}
	return zend_is_slot(scratch, slot, bin);
}

/* Where the heads of the free lists are: where most of them fit. */
static void probe_slots(struct space *sp, const uint8_t *header, vaddr chunk,
			struct zend_layout *at, struct zend_chunk *scratch)
{
	const uint8_t *heap = header + ZEND_HEAP_OFF;
	int best = -1000;

	for (unsigned f = 16; f <= 64; f += 8) {
		unsigned good = 0, bad = 0;

		for (unsigned b = 0; b < ZEND_BINS; b++) {
			vaddr slot = load_u64(heap + f + 8 * b);

			if (!slot)
				continue;
			if (fits_bin(sp, at, chunk + ZEND_HEAP_OFF, slot, b,
				     scratch))
				good++;
			else
				bad++;
		}
		if ((int)good - 3 * (int)bad > best) {
			best = (int)good - 3 * (int)bad;
			at->free_slot = f;
			at->good = good;
			at->bad = bad;
		}
	}
	if (at->good)
		return;
	/* A fresh heap: real size and its peak are the same, whole pages. */
	for (unsigned f = 32; f <= 40; f += 8) {
		uint64_t real = load_u64(heap + f + 240);

		if (real && !(real % ZEND_PAGE) &&
		    real == load_u64(heap + f + 248))
			at->free_slot = f;
	}
}

/* Which formula the last words of free slots follow. */
static void probe_shadow(struct space *sp, const uint8_t *header,
			 struct zend_layout *at)
{
	const uint8_t *heap = header + ZEND_HEAP_OFF;
	uint64_t key = load_u64(heap + 32);
	unsigned seen = 0, swapped = 0, placed = 0;

	at->shadow = ZEND_SHADOW_NONE;
	if (at->free_slot != 40)
		return;
	for (unsigned b = 1; b < ZEND_BINS; b++) {
		vaddr slot = load_u64(heap + at->free_slot + 8 * b);
		uint64_t next, last;

		for (int i = 0; i < 3 && slot; i++, slot = next) {
			vaddr end = slot + zend_slot_size[b] - 8;

			if (!space_u64(sp, slot, &next) || !next ||
			    !space_u64(sp, end, &last))
				break;
			seen++;
			last ^= __builtin_bswap64(next) ^ key;
			swapped += last == 0;
			placed += last == end;
		}
	}
	if (swapped * 2 > seen)
		at->shadow = ZEND_SHADOW_SWAPPED;
	else if (placed * 2 > seen)
		at->shadow = ZEND_SHADOW_PLACED;
}

static void read_fields(const uint8_t *header, struct zend_heap *z)
{
	const uint8_t *heap = header + ZEND_HEAP_OFF;
	const uint8_t *sizes = heap + z->at.free_slot + 8 * ZEND_BINS;
	const uint8_t *main_chunk = heap + z->at.main_chunk;

	z->custom = load_u32(heap);
	z->size = load_u64(heap + 16);
	z->key = load_u64(heap + 32);
	z->real_size = load_u64(sizes);
	z->real_peak = load_u64(sizes + 8);
	z->limit = load_u64(sizes + 16);
	z->n_ring = load_u32(main_chunk + 16);
	z->n_cache = load_u32(main_chunk + 24);
}

/* Does the ring come back to the main chunk, each chunk of this heap? */
static bool ring_closes(struct space *sp, const struct zend_heap *z)
{
	vaddr chunk = z->main_chunk;

	for (unsigned n = 0; n < MAX_RING; n++) {
		const uint8_t *header = space_view(sp, chunk, ZEND_PAGE);

		if (!header || load_u64(header) != z->addr)
			return false;
		chunk = load_u64(header + 8);
		if (chunk == z->main_chunk)
			return n + 1 == z->n_ring;
		if (chunk % ZEND_CHUNK)
			return false;
	}
	return false;
}

/*
 * A broken ring is damage, not another layout, if the free lists fit: then
 * the walk says what is missing.
 */
static bool probe_heap(struct space *sp, vaddr chunk, struct zend_heap *z,
		       char *near, size_t near_size)
{
	const uint8_t *header = space_view(sp, chunk, ZEND_PAGE);
	struct zend_chunk scratch = { 0 };
	const char *missing = NULL;

	*z = (struct zend_heap){
		.main_chunk = chunk, .addr = chunk + ZEND_HEAP_OFF,
	};
	if (!header)
		return false;
	if (!probe_main(header, chunk, &z->at))
		missing = "but no pointer to its main chunk";
	else if (!probe_map(header, &z->at, &scratch))
		missing = "but no map of pages that fits";
	if (!missing) {
		probe_slots(sp, header, chunk, &z->at, &scratch);
		probe_shadow(sp, header, &z->at);
		read_fields(header, z);
		if (!ring_closes(sp, z) && z->at.good <= 3 * z->at.bad)
			missing = "but its ring of chunks does not close";
	}
	if (missing)
		snprintf(near, near_size, "0x%llx looks like a chunk, %s",
			 (unsigned long long)chunk, missing);
	return !missing;
}

/* ---- candidates ---- */

/* A chunk that names a heap which is not in it. */
struct member {
	vaddr heap, chunk;
};

struct find {
	struct space *sp;
	struct zend_heap *all;		/* owned by the caller */
	size_t n, cap;
	struct member *members;		/* owned */
	size_t n_members, cap_members;
	char *near;
	size_t near_size;
};

static void look_at(struct find *f, vaddr at)
{
	struct zend_heap z;
	uint64_t word;

	if (!space_u64(f->sp, at, &word))
		return;
	if (word == at + ZEND_HEAP_OFF) {
		if (f->n < ZEND_LIMIT_HEAPS &&
		    probe_heap(f->sp, at, &z, f->near, f->near_size))
			MEM_PUSH(f->all, f->n, f->cap) = z;
	} else if (word && word % ZEND_CHUNK == ZEND_HEAP_OFF &&
		   f->n_members < MAX_MEMBERS &&
		   space_readable(f->sp, word - ZEND_HEAP_OFF, ZEND_PAGE)) {
		MEM_PUSH(f->members, f->n_members, f->cap_members) =
			(struct member){ word, at };
	}
}

/*
 * A heap whose main chunk was overwritten, named by another one of its chunks:
 * all of them have their map in the same place.
 */
static bool probe_member(struct space *sp, const struct member *m,
			 struct zend_heap *z)
{
	const uint8_t *header = space_view(sp, m->chunk, ZEND_PAGE);
	const uint8_t *main_chunk;
	struct zend_chunk scratch = { 0 };

	*z = (struct zend_heap){
		.main_chunk = m->heap - ZEND_HEAP_OFF, .addr = m->heap,
		.at.main_chunk = MAIN_MIN, .damaged = true,
	};
	main_chunk = space_view(sp, z->main_chunk, ZEND_PAGE);
	if (!header || !main_chunk || !probe_map(header, &z->at, &scratch) ||
	    zend_read_map(header, &z->at, &scratch))
		return false;
	if (probe_main(main_chunk, z->main_chunk, &z->at)) {
		probe_slots(sp, main_chunk, z->main_chunk, &z->at, &scratch);
		probe_shadow(sp, main_chunk, &z->at);
	}
	z->lost = z->at.good <= 3 * z->at.bad;
	if (!z->lost)
		read_fields(main_chunk, z);
	return true;
}

static bool is_found(const struct find *f, vaddr heap)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->all[i].addr == heap)
			return true;
	return false;
}

static void add_damaged(struct find *f)
{
	vaddr last = 0;

	for (size_t i = 0; i < f->n_members; i++) {
		const struct member *m = &f->members[i];
		struct zend_heap z;

		if (m->heap == last || is_found(f, m->heap) ||
		    f->n == ZEND_LIMIT_HEAPS)
			continue;
		if (probe_member(f->sp, m, &z))
			MEM_PUSH(f->all, f->n, f->cap) = z;
		else
			continue;
		last = m->heap;
	}
}

bool zend_scan_next(struct space *sp, struct zend_scan *s, vaddr *ret)
{
	for (; s->seg < sp->n_segs; s->seg++, s->next = 0) {
		const struct seg *seg = &sp->segs[s->seg];
		vaddr at;

		if (!space_seg_anon(seg) || !(seg->flags & SEG_W))
			continue;
		at = space_next_stored(sp, round_up(max_u64(seg->start,
							    s->next),
						    ZEND_CHUNK));
		if (at >= seg->start + seg->avail)
			continue;
		*ret = round_down(at, ZEND_CHUNK);
		s->next = *ret + ZEND_CHUNK;
		return true;
	}
	return false;
}

size_t zend_find(struct space *sp, struct zend_heap **ret, char *near,
		 size_t near_size)
{
	struct find f = { .sp = sp, .near = near, .near_size = near_size };
	struct zend_scan scan = { 0 };
	vaddr at;

	while (sp->word == 8 && zend_scan_next(sp, &scan, &at))
		look_at(&f, at);
	add_damaged(&f);
	free(f.members);
	SORT_BY(f.all, f.n, main_chunk);
	*ret = f.all;
	return f.n;
}

/* ---- which PHP it is ---- */

static const struct {
	uint32_t api;
	const char *release;
} releases[] = {
	{ 20151012, "7.0" }, { 20160303, "7.1" }, { 20170718, "7.2" },
	{ 20180731, "7.3" }, { 20190902, "7.4" }, { 20200930, "8.0" },
	{ 20210902, "8.1" }, { 20220829, "8.2" }, { 20230831, "8.3" },
	{ 20240924, "8.4" }, { 20250925, "8.5" }, { 20260924, "8.6" },
};

const char *zend_release(uint32_t api)
{
	for (size_t i = 0; i < countof(releases); i++)
		if (releases[i].api == api)
			return releases[i].release;
	return NULL;
}

/* struct zend_module_entry: its size, API, debug, zts; the name at 32. */
static void look_for_modules(struct space *sp, const uint8_t *p, uint64_t n,
			     struct zend_php *ret)
{
	enum { ENTRY = 168 };
	char name[64];

	for (uint64_t i = 0; i + ENTRY <= n; i += 8) {
		uint32_t api;

		if (p[i] != ENTRY || p[i + 1] || p[i + 8] > 1 || p[i + 9] > 1)
			continue;
		api = load_u32(p + i + 4);
		if (!zend_release(api) ||
		    !space_string(sp, load_u64(p + i + 32), name, 63) ||
		    (ret->api && ret->api != api))
			continue;
		ret->api = api;
		ret->debug = p[i + 8];
		ret->zts = p[i + 9];
		ret->modules++;
	}
}

void zend_find_php(struct space *sp, struct zend_php *ret)
{
	*ret = (struct zend_php){ 0 };
	for (size_t i = 0; i < sp->n_segs; i++) {
		const struct seg *seg = &sp->segs[i];
		uint64_t n;
		const uint8_t *p;

		if (!(seg->flags & SEG_W) || seg->flags & SEG_SHARED ||
		    !space_module(sp, seg->start))
			continue;
		p = space_view_max(sp, seg->start, &n);
		if (p)
			look_for_modules(sp, p, min_u64(n, seg->avail), ret);
	}
}
