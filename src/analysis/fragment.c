/* SPDX-License-Identifier: MIT */
#include "analysis/fragment.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/looked.h"
#include "analysis/stored.h"
#include "base/mem.h"
#include "base/sort.h"
#include "corewalk/planes.h"

enum {
	SLOT_UNIT = 8,
	SLOTS = USAGE_EXACT / SLOT_UNIT + 64,	/* exact ones, then log2 */
	PIN_STATES = 4,				/* see pin_state */
	PIN_FREE = PIN_STATES - 1,
	MAX_MET = 65536 / SLOT_UNIT + 1,	/* blocks on the largest page */
	LOOKED_PINS = 16,			/* kinds that get looks */
};

/* One kind of block that pins, while it is counted. */
struct kind {
	struct fragment_pin pin;
	struct looked_sample sample;
};

/* The blocks of one size and state on the page at hand. */
struct slot {
	uint32_t n;		/* 0 between pages */
	uint64_t mask;		/* that of its kind's sample */
	uint32_t kind;		/* in kinds, plus 1; 0: none yet */
};

struct met {
	struct slot *slot;
	vaddr first;		/* block of it on the page */
};

struct scan {
	struct fragment *f;
	struct space *sp;
	struct heap *h;
	uint64_t page;
	const struct heap_extent *x;
	struct fragment_arena *a;
	bool trims;		/* malloc_trim works on this arena's chunks */
	const uint8_t *roles;	/* of free states, where there are spans */

	/* Each is open while end is not 0. */
	struct { vaddr start, end; } run, chunk;
	bool chunk_fast;	/* the chunk's last part is of a fastbin */
	struct { vaddr at; uint64_t free; } open;	/* a page, if free */

	vaddr counted;		/* live blocks below it are in their kinds */
	struct kind *kinds;	/* owned */
	size_t n_kinds, cap_kinds;
	struct slot slot[PIN_STATES][SLOTS];
	struct met met[MAX_MET];		/* on the page at hand */
	size_t n_met;
};

/* ---- kinds of blocks that pin ---- */

/*
 * Free blocks are sorted like the others and left out later: whether a block
 * is free cannot be foretold, and a wrong guess costs more than the sorting.
 */
static const uint8_t pin_state[BLOCK_STATES] = {
	[BLOCK_USED] = 0, [BLOCK_CACHED] = 1, [BLOCK_OVERHEAD] = 2,
	[BLOCK_FAST] = PIN_FREE, [BLOCK_UNSORTED] = PIN_FREE,
	[BLOCK_BINNED] = PIN_FREE, [BLOCK_UNLISTED] = PIN_FREE,
	[BLOCK_TOP] = PIN_FREE,
};

static inline uint64_t slot_index(uint64_t size)
{
	return size < USAGE_EXACT ? size / SLOT_UNIT :
		USAGE_EXACT / SLOT_UNIT + 63 -
		(unsigned)__builtin_clzll(size);
}

/* The kind of a slot; made when its first block pins a page. */
static struct kind *kind_of(struct scan *s, struct slot *slot)
{
	uint64_t i = (uint64_t)(slot - &s->slot[0][0]);
	uint64_t size = i % SLOTS * SLOT_UNIT;
	struct kind *k;

	if (slot->kind)
		return &s->kinds[slot->kind - 1];
	if (size >= USAGE_EXACT)
		size = UINT64_C(1) << (i % SLOTS - USAGE_EXACT / SLOT_UNIT);
	k = &MEM_PUSH(s->kinds, s->n_kinds, s->cap_kinds);
	memset(k, 0, sizeof(*k));
	k->pin.size = size;
	k->pin.state = i / SLOTS == 0 ? BLOCK_USED :
		i / SLOTS == 1 ? BLOCK_CACHED : BLOCK_OVERHEAD;
	slot->kind = (uint32_t)s->n_kinds;
	return k;
}

static void sample(struct scan *s, struct slot *slot, vaddr start)
{
	struct kind *k;

	if (start < s->counted || slot >= s->slot[PIN_FREE])
		return;
	k = kind_of(s, slot);
	looked_add(&k->sample, start);
	slot->mask = k->sample.mask;
}

static inline void count_block(struct scan *s, size_t *n_met, vaddr start,
			       uint64_t size, enum block_state state)
{
	struct slot *slot = &s->slot[pin_state[state]][slot_index(size)];
	bool is_first = !slot->n++;

	/* No branch: that this is the first of its kind cannot be foretold. */
	s->met[*n_met].slot = slot;
	s->met[*n_met].first = start;
	*n_met += is_first;
	if (!(looked_hash(start) & slot->mask))
		sample(s, slot, start);
}

/*
 * Sort the blocks that overlap [from, to), a page's part of s->x.  Here most
 * of the time of the whole analysis goes: nothing is read twice.
 */
static void count_blocks(struct scan *s, vaddr from, vaddr to)
{
	const struct heap_extent x = *s->x;
	uint64_t end = planes_granule(&x, to - 1) + 1, last, g;
	size_t n_words = min_u64(x.n_words, (end + 63) >> 6), n_met = 0;
	enum block_state state;

	s->n_met = 0;
	if (!planes_prev(&x, planes_granule(&x, from), &last))
		last = planes_next(&x, planes_granule(&x, from));
	if (last >= end)
		return;
	state = planes_state(&x, last);
	for (size_t w = (last + 1) >> 6; w < n_words; w++) {
		uint64_t bits = x.planes[0][w];
		uint64_t s0 = x.planes[1][w], s1 = x.planes[2][w];
		uint64_t s2 = x.planes[3][w];

		if (w << 6 <= last)
			bits &= ~UINT64_C(1) << (last & 63);
		if (end - (w << 6) < 64)
			bits &= (UINT64_C(1) << (end & 63)) - 1;
		for (; bits; bits &= bits - 1) {
			unsigned b = (unsigned)__builtin_ctzll(bits);

			g = (uint64_t)w << 6 | b;
			count_block(s, &n_met, x.start + (last << x.shift),
				    (g - last) << x.shift, state);
			state = (s0 >> b & 1) | (s1 >> b & 1) << 1 |
				(s2 >> b & 1) << 2;
			last = g;
		}
	}
	g = planes_next(&x, last + 1);
	count_block(s, &n_met, planes_addr(&x, last),
		    planes_addr(&x, g) - planes_addr(&x, last), state);
	s->n_met = n_met;
}

/* Take the free ones out of those met; the number of live blocks. */
static uint64_t keep_live(struct scan *s)
{
	uint64_t blocks = 0;
	size_t kept = 0;

	for (size_t i = 0; i < s->n_met; i++) {
		if (s->met[i].slot < s->slot[PIN_FREE]) {
			blocks += s->met[i].slot->n;
			s->met[kept++] = s->met[i];
		} else {
			s->met[i].slot->n = 0;
		}
	}
	s->n_met = kept;
	return blocks;
}

/* The page's free bytes, divided evenly; the first kind takes the rest. */
static void share_out(struct scan *s, uint64_t blocks)
{
	uint64_t share = s->open.free / blocks;
	uint64_t rest = s->open.free % blocks;

	for (size_t i = 0; i < s->n_met; i++) {
		struct slot *slot = s->met[i].slot;
		struct kind *k = kind_of(s, slot);

		k->pin.free_bytes += share * slot->n + rest;
		k->pin.pages++;
		k->pin.blocks += slot->n;
		rest = 0;
		/* The one that begins on an earlier page was counted there. */
		k->pin.blocks -= s->met[i].first < s->counted;
		if (!k->pin.example)
			k->pin.example = s->met[i].first + s->x->user_off;
		slot->n = 0;
	}
}

static void close_page(struct scan *s)
{
	vaddr page = s->open.at;
	vaddr to = min_u64(page + s->page, s->x->end);
	uint64_t blocks;

	if (!s->open.free || s->open.free >= s->page) {
		s->open.free = 0;
		return;
	}
	count_blocks(s, max_u64(page, s->x->start), to);
	blocks = keep_live(s);
	if (blocks) {
		s->a->pinned_pages++;
		s->a->pinned_bytes += s->open.free;
		share_out(s, blocks);
		s->counted = to;
	}
	if (s->n_met == 1) {
		struct kind *k = kind_of(s, s->met[0].slot);

		k->pin.sole_pages++;
		k->pin.sole_bytes += s->open.free;
	}
	s->open.free = 0;
}

static void add_to_page(struct scan *s, vaddr page, uint64_t bytes)
{
	if (!s->open.free || s->open.at != page) {
		close_page(s);
		s->open.at = page;
	}
	s->open.free += bytes;
}

/* Only the first and the last page of a free block can be shared. */
static void free_on_pages(struct scan *s, vaddr start, vaddr end)
{
	vaddr first = round_down(start, s->page);
	vaddr last = round_down(end - 1, s->page);

	add_to_page(s, first, min_u64(end - start, first + s->page - start));
	if (last != first)
		add_to_page(s, last, end - last);
}

/* ---- runs ---- */

static uint64_t whole_pages(const struct scan *s, vaddr start, vaddr end)
{
	vaddr from = round_up(start, s->page), to = round_down(end, s->page);

	return from && from < to ? to - from : 0;
}

static void close_run(struct scan *s)
{
	uint64_t bytes = s->run.end - s->run.start;
	struct fragment_runs *r;

	if (!s->run.end)
		return;
	r = &s->f->runs[63 - __builtin_clzll(bytes)];
	r->runs++;
	r->bytes += bytes;
	r->page_bytes += whole_pages(s, s->run.start, s->run.end);
	s->a->runs++;
	s->a->largest_run = max_u64(s->a->largest_run, bytes);
	s->run.start = s->run.end = 0;
}

static void add_to_run(struct scan *s, vaddr start, vaddr end)
{
	if (s->run.end != start) {
		close_run(s);
		s->run.start = start;
	}
	s->run.end = end;
}

/* ---- what malloc_trim(0) gives back ---- */

static void add_trimmable(struct scan *s, vaddr from, vaddr to, bool top)
{
	struct fragment_bytes got;

	if (!from || from >= to)
		return;
	got.bytes = to - from;
	got.stored = space_stored(s->sp, from, to);
	s->a->trimmable.bytes += got.bytes;
	s->a->trimmable.stored += got.stored;
	if (top) {
		s->a->trimmable_top.bytes += got.bytes;
		s->a->trimmable_top.stored += got.stored;
	}
}

/*
 * A chunk in a bin, after merging: whole pages behind its struct malloc_chunk
 * of six words (malloc/malloc.c, mtrim, the same in 2.17 to 2.43).
 */
static void close_chunk(struct scan *s)
{
	if (s->chunk.end && s->trims)
		add_trimmable(s, round_up(s->chunk.start + 6 * s->sp->word,
					  s->page),
			      round_down(s->chunk.end, s->page), false);
	s->chunk.start = s->chunk.end = 0;
}

static void add_to_chunk(struct scan *s, vaddr start, vaddr end, bool fast)
{
	if (s->chunk.end != start) {
		close_chunk(s);
		s->chunk.start = start;
	}
	s->chunk.end = end;
	s->chunk_fast = fast;
}

/* Is the end of this top where sbrk(0) points? */
static bool top_at_break(struct space *sp, const struct arena *a, vaddr end)
{
	vaddr run_end = space_run_end(sp, end - 1);

	if (run_end != round_up(end, sp->page))
		return false;
	if (a->contiguous)
		return true;
	/* Then it may be a mapping instead: is it the program's first? */
	for (size_t i = 0; i < sp->n_modules; i++) {
		const struct seg *seg = sp->segs;
		const struct seg *last = seg + sp->n_segs;

		if (!sp->modules[i].is_exe)
			continue;
		while (seg < last && seg->start < sp->modules[i].end)
			seg++;
		return seg < last && space_run_end(sp, seg->start) == run_end;
	}
	return false;
}

/*
 * The main arena's top is cut at the break, to MINSIZE and one byte rounded
 * up to a page (systrim).  The tops of other arenas stay: mtrim looks at bins
 * only, and gives whole heaps back in free() alone.
 */
static void trim_top(struct scan *s, vaddr start, vaddr end)
{
	const struct arena *a = &s->h->arenas[s->x->arena];
	uint64_t min = 4 * s->sp->word + 1;
	bool cut = s->trims && start == a->top && strstr(a->name, " main") &&
		top_at_break(s->sp, a, end);

	if (s->chunk.end == start && s->chunk_fast) {
		start = s->chunk.start;
		s->chunk.start = s->chunk.end = 0;
	}
	close_chunk(s);
	if (cut && end - start > min)
		add_trimmable(s, round_up(end - round_down(end - start - min,
							   s->page), s->page),
			      end, true);
}

/*
 * malloc_trim merges fastbin chunks with their neighbours first
 * (malloc_consolidate); what is in no list it never sees.
 */
static void trim_block(struct scan *s, vaddr start, vaddr end,
		       enum block_state state)
{
	switch (state) {
	case BLOCK_FAST:
	case BLOCK_UNSORTED:
	case BLOCK_BINNED:
		add_to_chunk(s, start, end, state == BLOCK_FAST);
		break;
	case BLOCK_TOP:
		trim_top(s, start, end);
		break;
	default:
		close_chunk(s);
		break;
	}
}

/* ---- the scan ---- */

static void count_role(struct scan *s, vaddr start, vaddr end,
		       enum free_role role)
{
	s->a->role[role].bytes += end - start;
	if (role == FREE_PAGES)
		s->a->role[role].stored += space_stored(s->sp, start, end);
}

static void scan_block(struct scan *s, vaddr start, vaddr end,
		       enum block_state state)
{
	if (start >= end)
		return;
	if (s->roles && block_state_free(state))
		count_role(s, start, end, s->roles[state]);
	if (state == BLOCK_CACHED)
		s->a->cached_bytes += end - start;
	if (state == BLOCK_CACHED || state == BLOCK_OVERHEAD)
		return;
	s->a->free.bytes += end - start;
	if (state == BLOCK_TOP)
		s->a->top_bytes += end - start;
	add_to_run(s, start, end);
	free_on_pages(s, start, end);
	trim_block(s, start, end, state);
}

static void count_stored(struct scan *s)
{
	const struct heap_extent *x = s->x;
	uint64_t missing[BLOCK_STATES] = { 0 };
	struct planes_cursor c;

	planes_seek(&c, x);
	stored_missing(s->sp, &c, x->start, x->end, missing);
	for (int i = 0; i < BLOCK_STATES; i++)
		if (block_state_free((enum block_state)i) && i != BLOCK_CACHED)
			s->a->free.stored -= missing[i];
}

/* The blocks that begin in word w of the planes and are not in use. */
static void scan_word(struct scan *s, size_t w)
{
	const struct heap_extent *x = s->x;
	uint64_t starts = x->planes[0][w];

	for (uint64_t odd = planes_odd(x, w); odd; odd &= odd - 1) {
		unsigned b = (unsigned)__builtin_ctzll(odd);
		uint64_t g = (uint64_t)w << 6 | b;
		uint64_t rest = starts & ~UINT64_C(1) << b;
		uint64_t next = rest ? (uint64_t)w << 6 |
			(unsigned)__builtin_ctzll(rest) : planes_next(x, g + 1);

		scan_block(s, planes_addr(x, g), planes_addr(x, next),
			   planes_state(x, g));
	}
}

static void scan_extent(struct scan *s, const struct heap_extent *x)
{
	const struct arena *a = &s->h->arenas[x->arena];
	uint64_t before;

	s->x = x;
	s->a = &s->f->arenas[x->arena];
	before = s->a->free.bytes;
	s->trims = !strcmp(s->h->allocators[a->allocator].name, "glibc");
	s->roles = s->h->allocators[a->allocator].roles;
	for (size_t w = 0; w < x->n_words; w++)
		scan_word(s, w);
	close_run(s);
	close_chunk(s);
	close_page(s);
	s->a->free.stored += s->a->free.bytes - before;
	count_stored(s);
}

static void add_bytes(struct fragment_bytes *to, struct fragment_bytes n)
{
	to->bytes += n.bytes;
	to->stored += n.stored;
}

static void add_up(struct fragment *f, struct heap *h)
{
	struct fragment_arena *t = &f->total;

	for (size_t i = 0; i < f->n_arenas; i++) {
		struct fragment_arena *a = &f->arenas[i];

		a->below_top_bytes = a->free.bytes - a->top_bytes;
		h->arenas[i].trimmable_bytes = a->trimmable.stored;
		add_bytes(&t->free, a->free);
		add_bytes(&t->trimmable, a->trimmable);
		add_bytes(&t->trimmable_top, a->trimmable_top);
		t->pinned_pages += a->pinned_pages;
		t->pinned_bytes += a->pinned_bytes;
		t->top_bytes += a->top_bytes;
		t->below_top_bytes += a->below_top_bytes;
		t->cached_bytes += a->cached_bytes;
		t->runs += a->runs;
		t->largest_run = max_u64(t->largest_run, a->largest_run);
	}
}

/* ---- the table of pins ---- */

static int most_bytes_first(const void *a, const void *b)
{
	const struct kind *x = a, *y = b;

	return ORDER(y->pin.free_bytes, x->pin.free_bytes) ?:
	       ORDER(x->pin.size, y->pin.size) ?:
	       ORDER(x->pin.state, y->pin.state);
}

static void make_pins(struct scan *s)
{
	struct fragment *f = s->f;

	if (!s->n_kinds)
		return;
	SORT(s->kinds, s->n_kinds, most_bytes_first);
	for (size_t i = 0; i < s->n_kinds; i++) {
		struct kind *k = &s->kinds[i];

		if (i < LOOKED_PINS && k->pin.state != BLOCK_OVERHEAD)
			looked_at(&k->pin.looked, &k->sample, s->sp, s->h);
		MEM_PUSH(f->pins, f->n_pins, f->cap_pins) = k->pin;
	}
}

void fragment_init(struct fragment *f, struct space *sp, struct heap *h)
{
	struct scan *s = mem_zalloc(sizeof(*s));

	*f = (struct fragment){ .n_arenas = h->n_arenas };
	f->arenas = mem_zalloc((h->n_arenas + 1) * sizeof(*f->arenas));
	s->f = f;
	s->sp = sp;
	s->h = h;
	for (size_t i = 0; i < SLOTS; i++)
		s->slot[PIN_FREE][i].mask = UINT64_MAX;
	s->page = sp->page >= 4096 && sp->page <= 65536 ? sp->page : 4096;
	for (size_t i = 0; i < h->n_extents; i++)
		if (h->extents[i].kind == EXTENT_BLOCKS)
			scan_extent(s, &h->extents[i]);
	add_up(f, h);
	make_pins(s);
	spans_init(&f->spans, sp, h);
	free(s->kinds);
	free(s);
}

void fragment_fini(struct fragment *f)
{
	free(f->arenas);
	free(f->pins);
	spans_fini(&f->spans);
	*f = (struct fragment){ 0 };
}
