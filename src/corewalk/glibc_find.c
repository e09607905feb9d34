/* SPDX-License-Identifier: MIT */
/*
 * Finding glibc's malloc without symbols, names or version numbers.
 *
 * An empty bin is its own neighbour: both of its words hold the address two
 * words in front of them.  127 such pairs in a row, or lists that come back,
 * are an arena, and nothing else looks like one.  Where its other fields are
 * follows from the ring that `next' must close.  One arena of the ring, the
 * only one that does not lie in a heap, is the main arena; mp_ is near it.
 */
#include "corewalk/glibc.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/num.h"

/* Bins that must be sound.  A thread may have died in an unlink. */
enum { GOOD_BINS = GLIBC_BINS - 2 };

/* Slots looked at during one search; bounds its time on hostile input. */
enum { SLOT_BUDGET = 40 * 1000 * 1000 };

/* Namespaces of dlmopen() are at most 16 (DL_NNS in glibc), and a preload. */
enum { MAX_INSTANCES = 32 };

/* Bytes that are searched for arenas at a time. */
enum { SCAN_STEP = 1 << 20 };

/* Libraries and programs keep mp_ this near to main_arena. */
enum { PAR_REACH = 0x8000, PAR_SCORE_MIN = 7 };

/* 32-bit: the alignment that more addresses must satisfy comes first. */
static const struct state_layout state_layouts[] = {
	{ 17, 26, 8, 16, 8, 10, 88 },
	{ 27, 42, 8, 16, 16, 10, 96 },
	{ 43, 43, 8, 16, 0, 0, 8 },
	{ 26, 26, 4, 16, 8, 11, 52 },
	{ 27, 42, 4, 16, 12, 11, 56 },
	{ 43, 43, 4, 16, 0, 0, 8 },
	{ 17, 26, 4, 8, 8, 10, 48 },
	{ 27, 42, 4, 8, 12, 10, 52 },
	{ 43, 43, 4, 8, 0, 0, 8 },
};

static const struct par_layout par_layouts[] = {
	{ 17, 23, 8, 0, 40, 56, 80, 0, 88 },
	{ 24, 34, 8, 0, 40, 56, 72, 80, 112 },
	{ 35, 42, 8, 48, 60, 80, 96, 104, 136 },
	{ 43, 43, 8, 56, 68, 88, 104, 112, 144 },
	{ 17, 23, 4, 0, 20, 36, 48, 0, 52 },
	{ 24, 34, 4, 0, 20, 36, 44, 48, 64 },
	{ 35, 42, 4, 24, 32, 48, 56, 60, 76 },
	{ 43, 43, 4, 28, 36, 52, 60, 64, 80 },
};

const struct tcache_layout glibc_tcache_layouts[TCACHE_KINDS] = {
	[TCACHE_CHAR] = { 26, 29, 64, 1 },
	[TCACHE_SHORT] = { 30, 41, 64, 2 },
	[TCACHE_SLOTS] = { 42, 43, 76, 2 },
};

const struct state_layout *glibc_state_layout(size_t i)
{
	return i < countof(state_layouts) ? &state_layouts[i] : NULL;
}

struct search {
	struct space *sp;
	unsigned W;
	bool weak;		/* accept lists caught in a change */
	uint64_t budget;
	uint64_t scanned;
	vaddr *bases;		/* owned: possible addresses of a bins array */
	size_t n_bases, cap_bases;
};

static bool writable(struct search *s, vaddr addr)
{
	const struct seg *seg = space_seg(s->sp, addr);

	return seg && (seg->flags & SEG_W) && !(addr & (s->W - 1));
}

/* Slot k of a bins array at base: empty, or a list that comes back? */
static bool slot_good(struct search *s, vaddr base, unsigned k)
{
	vaddr slot = base + (uint64_t)k * 2 * s->W, head = slot - 2 * s->W;
	uint64_t fd, bk, back;

	if (!s->budget)
		return false;
	s->budget--;
	if (!space_word(s->sp, slot, &fd) ||
	    !space_word(s->sp, slot + s->W, &bk))
		return false;
	if (fd == head && bk == head)
		return true;
	if (s->weak)
		return writable(s, fd) && writable(s, bk);
	if (fd == head || bk == head)
		return false;
	if (!space_word(s->sp, fd + 3 * s->W, &back) || back != head)
		return false;
	return space_word(s->sp, bk + 2 * s->W, &back) && back == head;
}

static unsigned good_bins(struct search *s, vaddr base)
{
	unsigned good = 0;

	for (unsigned k = 0; k < GLIBC_BINS; k++) {
		good += slot_good(s, base, k);
		if (k + 1 - good > GLIBC_BINS - GOOD_BINS)
			return 0;
	}
	return good >= GOOD_BINS ? good : 0;
}

unsigned glibc_good_bins(struct space *sp, unsigned word, vaddr base)
{
	struct search s = { .sp = sp, .W = word, .budget = 4 * GLIBC_BINS };

	return good_bins(&s, base);
}

/*
 * The word at addr starts an empty bin: which arrays can it belong to?  Every
 * possible one is kept: with one damaged list head the array shifted by one
 * slot is as good as the right one, and only the ring of arenas tells.
 * Returns where the search goes on.
 */
static vaddr try_bases(struct search *s, vaddr addr)
{
	vaddr skip = addr;

	for (unsigned k = 0; k < GLIBC_BINS; k++) {
		vaddr base = addr - (uint64_t)k * 2 * s->W;
		uint64_t top;

		if (!good_bins(s, base) ||
		    !space_word(s->sp, base - 2 * s->W, &top) ||
		    (top & (s->W - 1)) || !space_seg(s->sp, top))
			continue;
		MEM_PUSH(s->bases, s->n_bases, s->cap_bases) = base;
		skip = max_u64(skip, base + 254 * s->W);
	}
	return skip;
}

static void scan_range(struct search *s, vaddr addr, const uint8_t *p,
		       uint64_t n)
{
	unsigned W = s->W;
	vaddr skip = addr;

	s->scanned += n;
	for (uint64_t i = 0; i + 2 * W <= n; i += W) {
		uint64_t want = addr + i - 2 * W;

		if (load_word(p + i, W) != want)
			continue;
		if (load_word(p + i + W, W) != want || addr + i < skip)
			continue;
		skip = try_bases(s, addr + i);
	}
}

/* A program's or library's data, or the bss directly behind it. */
static bool is_data(struct space *sp, size_t i)
{
	const struct seg *seg = &sp->segs[i];

	if (seg->flags & SEG_SHARED)
		return false;
	if (seg->file != SEG_NO_FILE)
		return true;
	return i && sp->segs[i - 1].end == seg->start &&
	       sp->segs[i - 1].file != SEG_NO_FILE;
}

/* Only what is stored: a mapping may be terabytes of nothing. */
static void scan_seg(struct search *s, const struct seg *seg)
{
	vaddr end = seg->start + seg->avail;
	vaddr at = space_next_stored(s->sp, seg->start);

	while (at < end) {
		uint64_t n;

		at = max_u64(round_down(at, s->sp->page), seg->start);
		/* Windows overlap by the two words that are compared. */
		n = min_u64(SCAN_STEP + 2 * s->W, end - at);
		scan_range(s, at, seg->host + (at - seg->start), n);
		at = n < SCAN_STEP ? end :
			space_next_stored(s->sp, at + SCAN_STEP);
	}
}

static void scan(struct search *s, bool data)
{
	struct space *sp = s->sp;

	for (size_t i = 0; i < sp->n_segs; i++) {
		const struct seg *seg = &sp->segs[i];

		if ((seg->flags & SEG_W) && seg->avail &&
		    !(seg->flags & SEG_KERNEL) && is_data(sp, i) == data)
			scan_seg(s, seg);
	}
}

/*
 * Do all lists of the arena at addr satisfy the layout's alignment?  A list
 * that is damaged says nothing about it.
 */
static bool aligned_lists(struct search *s, vaddr addr,
			  const struct state_layout *l)
{
	for (unsigned k = 0; k < GLIBC_BINS; k++) {
		vaddr head = addr + state_bin(l, k);
		uint64_t fd;

		if (!space_word(s->sp, head + 2 * l->word, &fd))
			return false;
		if (fd != head && ((fd + 2 * l->word) & (l->align - 1)) &&
		    slot_good(s, addr + state_bins(l), k))
			return false;
	}
	return true;
}

/*
 * Follow `next' from the arena at start; the number of arenas if the ring
 * closes and each of them has sound bins, else 0.
 */
static size_t ring_length(struct search *s, vaddr start,
			  const struct state_layout *l)
{
	vaddr at = start;
	uint64_t next;

	for (size_t n = 1; n <= GLIBC_MAX_ARENAS; n++) {
		if (!space_word(s->sp, at + state_next(l), &next))
			return 0;
		if (next == start)
			return n;
		if (!next || (next & (l->word - 1)) ||
		    !good_bins(s, next + state_bins(l)))
			return 0;
		at = next;
	}
	return 0;
}

static const unsigned heap_info_sizes[] = { 16, 24, 32, 48 };

/* The size of the heap_info in front of an arena; 0 for a main arena. */
static unsigned heap_info_before(struct space *sp, vaddr arena)
{
	uint64_t ar_ptr;

	for (size_t i = 0; i < countof(heap_info_sizes); i++) {
		vaddr h = arena - heap_info_sizes[i];

		if (!(h & (sp->page - 1)) && space_word(sp, h, &ar_ptr) &&
		    ar_ptr == arena)
			return heap_info_sizes[i];
	}
	return 0;
}

void glibc_add_arena(struct glibc *g, vaddr addr, bool main)
{
	MEM_PUSH(g->arenas, g->n_arenas, g->cap_arenas) =
		(struct glibc_arena){ .addr = addr, .main = main };
}

static int compare_arenas(const void *a, const void *b, void *priv)
{
	const struct glibc *g = priv;
	vaddr x = g->arenas[*(const uint32_t *)a].addr;
	vaddr y = g->arenas[*(const uint32_t *)b].addr;

	return (x > y) - (x < y);
}

static void sort_arenas(struct glibc *g)
{
	g->by_addr = mem_alloc(g->n_arenas * sizeof(*g->by_addr));
	for (size_t i = 0; i < g->n_arenas; i++)
		g->by_addr[i] = (uint32_t)i;
	qsort_r(g->by_addr, g->n_arenas, sizeof(*g->by_addr), compare_arenas,
		g);
}

struct glibc_arena *glibc_arena_at(struct glibc *g, vaddr addr)
{
	size_t lo = BISECT(mid, 0, g->n_arenas,
			   g->arenas[g->by_addr[mid]].addr < addr);

	if (lo == g->n_arenas || g->arenas[g->by_addr[lo]].addr != addr)
		return NULL;
	return &g->arenas[g->by_addr[lo]];
}

/* The ring in its own order, the main arena first. */
static bool take_ring(struct search *s, struct glibc *g, vaddr start,
		      size_t n)
{
	vaddr main = start, at = start;

	for (size_t i = 0; i < n; i++) {
		if (!heap_info_before(s->sp, at))
			main = at;
		if (!space_word(s->sp, at + state_next(g->state), &at))
			return false;
	}
	at = main;
	for (size_t i = 0; i < n; i++) {
		glibc_add_arena(g, at, at == main);
		if (!space_word(s->sp, at + state_next(g->state), &at))
			return false;
	}
	return true;
}

void glibc_releases(struct glibc *g, int first, int last)
{
	if (first > g->first)
		g->first = first;
	if (last < g->last)
		g->last = last;
}

/*
 * attached_threads came in 2.23, in the middle of a layout's releases: before,
 * system_mem and max_system_mem stand where it does now.
 */
static void settle_attached(struct glibc *g)
{
	size_t seen = g->arenas[0].lost && g->n_arenas > 1;
	vaddr at = g->arenas[seen].addr + state_attached(g->state);
	uint64_t first, second, third, page = g->sp->page;

	g->has_attached = true;
	if (g->state->first > 17 || !space_word(g->sp, at, &first) ||
	    !space_word(g->sp, at + g->W, &second) ||
	    !space_word(g->sp, at + 2 * g->W, &third))
		return;
	if (first < 100000 && !(second & (page - 1)) && third >= second) {
		glibc_releases(g, 23, 43);
		return;
	}
	if (!(first & (page - 1)) && second >= first) {
		g->has_attached = false;
		glibc_releases(g, 17, 22);
	}
}

static void read_arena(struct glibc *g, struct glibc_arena *a)
{
	vaddr sys = a->addr + state_system_mem(g);
	uint64_t attached;
	uint32_t mutex = 0;

	if (!space_word(g->sp, a->addr + g->state->top, &a->top) ||
	    !space_word(g->sp, sys, &a->system_mem) ||
	    !space_word(g->sp, sys + g->W, &a->max_system_mem) ||
	    !space_u32(g->sp, a->addr + 4, &a->flags))
		a->lost = true;
	a->locked = space_u32(g->sp, a->addr, &mutex) && mutex;
	a->attached = -1;
	if (g->has_attached &&
	    space_word(g->sp, a->addr + state_attached(g->state), &attached) &&
	    attached < INT32_MAX)
		a->attached = (int64_t)attached;
	/* An arena that never had memory: top is its own first bin. */
	if (a->top == a->addr + state_bin(g->state, 0))
		a->top = 0;
}

struct par_values {
	uint64_t trim, pad, mmap_threshold, arena_test, arena_max;
	uint64_t mmapped_mem, max_mmapped_mem, sbrk_base;
	uint32_t n_mmaps, n_mmaps_max, max_n_mmaps, no_dyn;
	uint64_t bins, max_bytes, count, unsorted;
};

/* From the l->size bytes of a struct malloc_par. */
static void par_read(const uint8_t *p, const struct par_layout *l,
		     struct par_values *v)
{
	unsigned W = l->word;

	*v = (struct par_values){
		.trim = load_word(p, W),
		.pad = load_word(p + W, W),
		.mmap_threshold = load_word(p + 2 * W, W),
		.arena_test = load_word(p + 3 * W, W),
		.arena_max = load_word(p + 4 * W, W),
		.n_mmaps = load_u32(p + l->n_mmaps),
		.n_mmaps_max = load_u32(p + l->n_mmaps + 4),
		.max_n_mmaps = load_u32(p + l->n_mmaps + 8),
		.no_dyn = load_u32(p + l->n_mmaps + 12),
		.mmapped_mem = load_word(p + l->mmapped_mem, W),
		.max_mmapped_mem = load_word(p + l->mmapped_mem + W, W),
		.sbrk_base = load_word(p + l->sbrk_base, W),
	};
	if (!l->tcache_bins)
		return;
	p += l->tcache_bins;
	v->bins = load_word(p, W);
	v->max_bytes = load_word(p + W, W);
	v->count = load_word(p + 2 * W, W);
	v->unsorted = load_word(p + 3 * W, W);
}

/* Can this be mp_ at all? */
static bool par_possible(struct glibc *g, const struct par_layout *l,
			 const struct par_values *v)
{
	const struct seg *seg;

	if (v->mmapped_mem > v->max_mmapped_mem ||
	    v->n_mmaps > v->max_n_mmaps || v->no_dyn > 1 ||
	    v->mmap_threshold > UINT64_C(1) << 40 || v->arena_max > 100000 ||
	    v->arena_test > 100000 || v->n_mmaps > 10000000)
		return false;
	/* 2.43 forgets 16 bytes at each mremap: only there they may differ. */
	if (l->first < 43 && !v->n_mmaps != !v->mmapped_mem)
		return false;
	if (v->bins > 64 || v->count > 65535 || v->max_bytes > 4 * MIB)
		return false;
	if (!v->sbrk_base)
		return !g->arenas[0].top || (g->arenas[0].flags & 2);
	seg = space_seg(g->sp, v->sbrk_base);
	return seg && (seg->flags & SEG_W);
}

static unsigned par_score(struct glibc *g, const struct par_layout *l,
			  const struct par_values *v)
{
	unsigned score = 0;

	score += v->sbrk_base ? 2 : 0;
	score += v->n_mmaps_max == 65536 ? 3 : 0;
	score += v->arena_test == (g->W == 8 ? 8 : 2) ? 2 : 0;
	score += v->trim == 2 * v->mmap_threshold || v->trim == 128 * KIB ?
		2 : 0;
	score += v->pad == 128 * KIB ? 2 : 0;
	score += v->mmap_threshold == 128 * KIB;
	if (l->tcache_bins) {
		score += v->bins == 64;
		score += v->count == 7 || v->count == 16;
		score += v->unsorted == 0;
	}
	return score;
}

static void add_setting(struct glibc *g, const char *name, uint64_t value,
			bool bytes, uint64_t normal)
{
	heap_add_setting(g->heap, g->allocator, name, value, bytes,
			 value == normal);
}

void glibc_add_settings(struct glibc *g)
{
	struct par_values v;
	const uint8_t *bytes;
	uint64_t normal_count = g->first >= 43 ? 16 : 7;

	if (!g->par)
		return;
	bytes = space_view(g->sp, g->mp, g->par->size);
	if (!bytes)
		return;
	par_read(bytes, g->par, &v);
	add_setting(g, "mmap_threshold", v.mmap_threshold, true, 128 * KIB);
	add_setting(g, "mmap_threshold_dynamic", !v.no_dyn, false, 1);
	add_setting(g, "trim_threshold", v.trim, true, 128 * KIB);
	add_setting(g, "top_pad", v.pad, true, 128 * KIB);
	add_setting(g, "mmap_max", v.n_mmaps_max, false, 65536);
	add_setting(g, "arena_max", v.arena_max, false, 0);
	add_setting(g, "arena_test", v.arena_test, false, g->W == 8 ? 8 : 2);
	if (g->par->tcache_bins && g->tcache) {
		add_setting(g, "tcache_count", v.count, false, normal_count);
		add_setting(g, "tcache_max", v.max_bytes, true,
			    g->MIN + 63 * g->A - g->W);
	}
}

/* Is mp_ at p, of whose bytes n can be read?  The best place is kept. */
static void try_par(struct glibc *g, vaddr p, const uint8_t *bytes,
		    uint64_t n)
{
	for (size_t i = 0; i < countof(par_layouts); i++) {
		const struct par_layout *l = &par_layouts[i];
		struct par_values v;
		unsigned score;

		if (l->word != g->W || l->last < g->state->first ||
		    l->first > g->state->last || l->size > n)
			continue;
		par_read(bytes, l, &v);
		if (!par_possible(g, l, &v))
			continue;
		score = par_score(g, l, &v);
		if (score < PAR_SCORE_MIN || score <= g->mp_score)
			continue;
		g->mp_score = score;
		g->par = l;
		g->mp = p;
		g->sbrk_base = v.sbrk_base;
		g->n_mmaps = v.n_mmaps;
		g->mmapped_mem = v.mmapped_mem;
		g->tcache_count = v.count;
	}
}

static void find_par(struct glibc *g)
{
	vaddr main = g->arenas[0].addr;
	vaddr p = main > PAR_REACH ? main - PAR_REACH : 0;

	while (p < main + PAR_REACH) {
		uint64_t n;
		const uint8_t *host = space_view_max(g->sp, p, &n);

		if (!host) {
			p = round_up(p + 1, g->sp->page);
			continue;
		}
		n = min_u64(n, main + PAR_REACH - p);
		for (uint64_t i = 0; i < n; i += g->W)
			try_par(g, p + i, host + i, n - i);
		p = round_up(p + n, g->W);
	}
	if (g->par)
		glibc_releases(g, g->par->first, g->par->last);
}

/*
 * Heaps are aligned to HEAP_MAX, which glibc.malloc.hugetlb raises to four
 * huge pages in 2.35 to 2.41.
 */
static void settle_heap_max(struct glibc *g)
{
	uint64_t hp = 0, ar_ptr;

	g->heap_max = g->W == 8 ? 64 * MIB : MIB;
	if (g->par && g->par->hp_pagesize &&
	    space_word(g->sp, g->mp + g->par->hp_pagesize, &hp) &&
	    hp >= g->sp->page && !(hp & (hp - 1)) && hp < GIB &&
	    g->par->first == 35)
		g->heap_max = 4 * hp;
	for (size_t i = 1; i < g->n_arenas; i++) {
		vaddr addr = g->arenas[i].addr;
		vaddr h = round_down(addr, g->heap_max);

		g->heap_info_size = heap_info_before(g->sp, addr);
		if (!g->heap_info_size)
			continue;
		if (space_word(g->sp, h, &ar_ptr) && ar_ptr == addr)
			break;
		/* 2.42 on has huge pages with heaps of the usual size. */
		h = addr - g->heap_info_size;
		g->heap_max = h & -h;
		break;
	}
	if (g->W == 8 && g->heap_info_size == 48)
		glibc_releases(g, 35, 43);
	else if (g->W == 8 && g->heap_info_size == 32)
		glibc_releases(g, 17, 34);
}

static void add_heap(struct glibc_arena *a, vaddr h)
{
	MEM_PUSH(a->heaps, a->n_heaps, a->cap_heaps) = h;
}

/*
 * From the heap that holds top back to the first one.  A chain that runs in a
 * circle meets the mark that is set at powers of two (Brent).
 */
static void chain_heaps(struct glibc *g, struct glibc_arena *a)
{
	vaddr h = round_down(a->top, g->heap_max), mark = 0;
	uint64_t ar_ptr;

	while (h && h != mark && a->n_heaps < GLIBC_MAX_HEAPS) {
		if (!space_word(g->sp, h, &ar_ptr) || ar_ptr != a->addr)
			return;
		if (!(a->n_heaps & (a->n_heaps + 1)))
			mark = h;
		add_heap(a, h);
		if (!space_word(g->sp, h + g->W, &h))
			return;
	}
}

/*
 * The next place behind h where a heap can begin, and that can be read: a
 * mapping may claim any size.
 */
static vaddr next_heap(const struct glibc *g, const struct seg *seg, vaddr h)
{
	h = h < seg->start ? round_up(seg->start, g->heap_max) :
		h + g->heap_max;
	return h >= seg->start && h - seg->start < seg->avail ? h : 0;
}

/* A broken chain: any aligned place that names one of our arenas will do. */
static void scan_heaps(struct glibc *g)
{
	for (size_t i = 0; i < g->sp->n_segs; i++) {
		const struct seg *seg = &g->sp->segs[i];
		vaddr h = 0;

		if (!(seg->flags & SEG_W) || !space_seg_anon(seg))
			continue;
		while ((h = next_heap(g, seg, h))) {
			struct glibc_arena *a;
			uint64_t ar_ptr;

			if (!space_word(g->sp, h, &ar_ptr))
				continue;
			a = glibc_arena_at(g, ar_ptr);
			if (a && !a->main)
				add_heap(a, h);
		}
	}
}

static void find_heaps(struct glibc *g)
{
	bool broken = g->arenas[0].lost;

	for (size_t i = 1; i < g->n_arenas; i++) {
		struct glibc_arena *a = &g->arenas[i];
		vaddr first = a->addr - g->heap_info_size;

		chain_heaps(g, a);
		broken |= !a->n_heaps || a->heaps[a->n_heaps - 1] != first;
	}
	if (broken)
		scan_heaps(g);
	for (size_t i = 1; i < g->n_arenas; i++) {
		struct glibc_arena *a = &g->arenas[i];

		a->n_heaps = num_sort_unique(a->heaps, a->n_heaps);
	}
}

/*
 * A ring that starts at one of its arenas: keep it unless it is known.  The
 * layout whose ring closes is the right one; nothing else can close it.
 */
static bool identify(struct search *s, vaddr base, struct glibc *ret)
{
	for (size_t i = 0; i < countof(state_layouts); i++) {
		const struct state_layout *l = &state_layouts[i];
		vaddr start = base - state_bins(l);
		size_t n;

		if (l->word != s->W)
			continue;
		n = ring_length(s, start, l);
		if (!n || !aligned_lists(s, start, l))
			continue;
		*ret = (struct glibc){
			.sp = s->sp, .W = l->word, .A = l->align,
			.MIN = l->word == 8 ? 32 : 16, .state = l,
			.first = l->first, .last = l->last, .weak = s->weak,
		};
		if (take_ring(s, ret, start, n))
			return true;
		free(ret->arenas);
	}
	return false;
}

void glibc_complete(struct glibc *g)
{
	bool lost = g->arenas[0].lost;

	sort_arenas(g);
	settle_attached(g);
	for (size_t i = lost; i < g->n_arenas; i++)
		read_arena(g, &g->arenas[i]);
	if (!lost)
		find_par(g);
	settle_heap_max(g);
	find_heaps(g);
}

static bool known_main(const struct glibc *all, size_t n, vaddr main)
{
	for (size_t i = 0; i < n; i++)
		if (all[i].arenas[0].addr == main)
			return true;
	return false;
}

static size_t identify_all(struct search *s, struct glibc **ret)
{
	struct glibc *all = NULL, one;
	size_t n = 0, cap = 0;

	for (size_t i = 0; i < s->n_bases && n < MAX_INSTANCES; i++) {
		if (!identify(s, s->bases[i], &one))
			continue;
		if (known_main(all, n, one.arenas[0].addr)) {
			free(one.arenas);
			continue;
		}
		MEM_PUSH(all, n, cap) = one;
	}
	for (size_t i = 0; i < n; i++) {
		vaddr main = all[i].arenas[0].addr;

		all[i].good_bins = good_bins(s, main +
					     state_bins(all[i].state));
		glibc_complete(&all[i]);
	}
	*ret = all;
	return n;
}

size_t glibc_find(struct space *sp, struct glibc **ret, char *text,
		  size_t text_size)
{
	/* Strictly in data, then in all memory; then the same, leniently. */
	static const struct { bool weak, data; } tries[] = {
		{ false, true }, { false, false },
		{ true, true },
	};
	struct search s = { .sp = sp, .W = sp->word };
	size_t n = 0;

	*ret = NULL;
	for (size_t i = 0; i < countof(tries) && !n; i++) {
		s.weak = tries[i].weak;
		s.budget = SLOT_BUDGET;
		s.n_bases = 0;
		scan(&s, tries[i].data);
		n = identify_all(&s, ret);
	}
	if (!n)
		snprintf(text, text_size,
			 "no malloc arena in %llu bytes of writable memory",
			 (unsigned long long)s.scanned);
	free(s.bases);
	return n;
}

void glibc_free(struct glibc *all, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < all[i].n_arenas; k++) {
			free(all[i].arenas[k].heaps);
			free(all[i].arenas[k].anchors);
		}
		free(all[i].arenas);
		free(all[i].by_addr);
		free(all[i].tcaches);
		free(all[i].ranges);
	}
	free(all);
}
