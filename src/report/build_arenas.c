/* SPDX-License-Identifier: MIT */
/*
 * The tables that speak of the heap's order: arenas, size classes and
 * fragmentation.
 */
#include "report/build.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/num.h"
#include "report/blocks.h"

enum {
	A_NAME, A_MAPPED, A_RESIDENT, A_USED, A_FREE, A_FREE_SHARE, A_TRIMMABLE,
	A_ATTACHED, A_WHO, A_THREADS, A_ADDRESS, A_HEAPS, A_TOP, A_TOP_BYTES,
	A_SYSTEM, A_MAX_SYSTEM, A_FAST_BLOCKS, A_FAST, A_REST_BLOCKS, A_REST,
	A_CACHED_BLOCKS, A_CACHED, A_OVERHEAD, A_FOREIGN, A_UNDECODED,
	A_USED_BLOCKS, A_FREE_BLOCKS, A_MMAPPED, A_USED_RESIDENT,
	A_USED_SWAPPED, A_FREE_RESIDENT, A_SWAPPED, A_CONTIGUOUS, A_LOCKED,
	A_COLUMNS
};

#define DATA_SUM .flags = COLUMN_NO_TEXT | COLUMN_SUM

static const struct column arena_columns[A_COLUMNS] = {
	[A_NAME] = COLUMN("name", "", TEXT, .width = 20),
	[A_MAPPED] = COLUMN("mapped_bytes", "heap", BYTES,
			    .flags = COLUMN_SUM, .width = 9),
	[A_RESIDENT] = COLUMN("resident_bytes", "resident", BYTES,
			      .flags = COLUMN_SUM, .width = 10),
	[A_USED] = COLUMN("used_bytes", "in use", BYTES,
			  .flags = COLUMN_SUM, .width = 9),
	[A_FREE] = COLUMN("free_bytes", "free", BYTES,
			  .flags = COLUMN_SUM, .width = 9),
	[A_FREE_SHARE] = COLUMN("free_share", "free%", SHARE, .width = 7,
				.part = A_FREE + 1, .whole = A_MAPPED + 1),
	[A_TRIMMABLE] = COLUMN("trimmable_bytes", "trimmable", BYTES,
			       .flags = COLUMN_SUM, .width = 11),
	[A_ATTACHED] = COLUMN("attached_threads", "threads", COUNT, DATA_SUM),
	[A_WHO] = COLUMN("who", "threads", TEXT, .flags = COLUMN_NO_DATA,
			 .whole = A_ATTACHED + 1),
	[A_THREADS] = DATA_COLUMN("thread_ids", TEXT),
	[A_ADDRESS] = DATA_COLUMN("address", ADDR),
	[A_HEAPS] = COLUMN("heaps", "", COUNT, DATA_SUM),
	[A_TOP] = DATA_COLUMN("top_address", ADDR),
	[A_TOP_BYTES] = COLUMN("top_bytes", "", BYTES, DATA_SUM),
	[A_SYSTEM] = COLUMN("system_bytes", "", BYTES, DATA_SUM),
	[A_MAX_SYSTEM] = COLUMN("max_system_bytes", "", BYTES, DATA_SUM),
	[A_FAST_BLOCKS] = COLUMN("fast_blocks", "", COUNT, DATA_SUM),
	[A_FAST] = COLUMN("fast_bytes", "", BYTES, DATA_SUM),
	[A_REST_BLOCKS] = COLUMN("rest_blocks", "", COUNT, DATA_SUM),
	[A_REST] = COLUMN("rest_bytes", "", BYTES, DATA_SUM),
	[A_CACHED_BLOCKS] = COLUMN("cached_blocks", "", COUNT, DATA_SUM),
	[A_CACHED] = COLUMN("cached_bytes", "", BYTES, DATA_SUM),
	[A_OVERHEAD] = COLUMN("overhead_bytes", "", BYTES, DATA_SUM),
	[A_FOREIGN] = COLUMN("foreign_bytes", "", BYTES, DATA_SUM),
	[A_UNDECODED] = COLUMN("undecoded_bytes", "", BYTES, DATA_SUM),
	[A_USED_BLOCKS] = COLUMN("used_blocks", "", COUNT, DATA_SUM),
	[A_FREE_BLOCKS] = COLUMN("free_blocks", "", COUNT, DATA_SUM),
	[A_MMAPPED] = COLUMN("mmapped_bytes", "", BYTES, DATA_SUM),
	[A_USED_RESIDENT] = COLUMN("used_resident_bytes", "", BYTES, DATA_SUM),
	[A_USED_SWAPPED] = COLUMN("used_swapped_bytes", "", BYTES, DATA_SUM),
	[A_FREE_RESIDENT] = COLUMN("free_resident_bytes", "", BYTES, DATA_SUM),
	[A_SWAPPED] = COLUMN("swapped_bytes", "", BYTES, DATA_SUM),
	[A_CONTIGUOUS] = DATA_COLUMN("contiguous", FLAG),
	[A_LOCKED] = DATA_COLUMN("locked", FLAG),
};

/*
 * As malloc_info(3) counts: "rest" is what lies in bins, and the top, which
 * counts as one block even in an arena that has none (glibc 2.36,
 * malloc/malloc.c, __malloc_info).  Blocks that are free but in no list are
 * known to nobody and in neither figure.
 */
static void set_malloc_info(struct table *t, const struct arena *a)
{
	const struct tally *unsorted = &a->state[BLOCK_UNSORTED];
	const struct tally *binned = &a->state[BLOCK_BINNED];
	const struct tally *top = &a->state[BLOCK_TOP];

	table_set(t, A_SYSTEM, a->claimed_bytes);
	if (a->max_bytes)
		table_set(t, A_MAX_SYSTEM, a->max_bytes);
	table_set(t, A_FAST_BLOCKS, a->state[BLOCK_FAST].blocks);
	table_set(t, A_FAST, a->state[BLOCK_FAST].bytes);
	table_set(t, A_REST_BLOCKS, unsorted->blocks + binned->blocks + 1);
	table_set(t, A_REST, unsorted->bytes + binned->bytes + top->bytes);
}

enum { WHO_ROOM = 10 };		/* what the other columns leave */

/* "1 (4711)": how many, and who, if that is short enough. */
static void set_who(struct table *t, uint64_t n, const struct str *ids)
{
	char text[NUM_MAX];
	int len = snprintf(text, sizeof(text), "%" PRIu64, n);

	if (n && ids->len && (size_t)len + ids->len + 3 <= WHO_ROOM)
		snprintf(text + len, sizeof(text) - (size_t)len, " (%s)",
			 ids->text);
	table_set_text(t, A_WHO, text);
}

/* What a list of mapped blocks does not have. */
static void set_structure(struct table *t, const struct arena *a,
			  const struct str *threads)
{
	table_set(t, A_TRIMMABLE, a->trimmable_bytes);
	if (a->attached >= 0) {
		table_set(t, A_ATTACHED, (uint64_t)a->attached);
		set_who(t, (uint64_t)a->attached, threads);
	}
	table_set(t, A_ADDRESS, a->addr);
	table_set(t, A_HEAPS, a->heaps);
	if (a->top)
		table_set(t, A_TOP, a->top);
	table_set(t, A_TOP_BYTES, a->state[BLOCK_TOP].bytes);
	table_set(t, A_CONTIGUOUS, a->contiguous);
	table_set(t, A_LOCKED, a->locked);
	set_malloc_info(t, a);
}

static void set_arena_pages(struct table *t, const struct residency_arena *a)
{
	table_set(t, A_RESIDENT, a->all.resident);
	table_set(t, A_SWAPPED, a->all.swapped);
	table_set(t, A_USED_RESIDENT, a->used.resident);
	table_set(t, A_USED_SWAPPED, a->used.swapped);
	table_set(t, A_FREE_RESIDENT, a->free.resident);
}

static void add_arena(struct table *t, const struct arena *a,
		      const struct residency_arena *pages,
		      const struct str *threads)
{
	struct heap_sum sum = { 0 };

	sum_arena(&sum, a);
	if (!a->addr && !sum.mapped)
		return;
	table_row(t);
	table_set_text(t, A_NAME, a->name);
	table_set(t, A_MAPPED, sum.mapped);
	if (!sum.runtime) {
		table_set(t, A_USED, sum.used);
		table_set(t, A_FREE, sum.free);
	}
	table_set(t, A_CACHED_BLOCKS, sum.cached_blocks);
	table_set(t, A_CACHED, sum.cached);
	table_set(t, A_OVERHEAD, sum.overhead);
	table_set(t, A_FOREIGN, sum.foreign);
	table_set(t, A_UNDECODED, sum.undecoded);
	table_set(t, A_USED_BLOCKS, sum.used_blocks);
	table_set(t, A_FREE_BLOCKS, sum.free_blocks);
	table_set(t, A_MMAPPED, sum.mmapped);
	if (threads->len)
		table_set_bytes(t, A_THREADS, threads->text, threads->len);
	if (a->addr)
		set_structure(t, a, threads);
	if (pages)
		set_arena_pages(t, pages);
}

void build_arenas(struct report *r, const struct report_input *in)
{
	const struct heap *h = in->heap;
	struct table *t = report_add(r, SECTION_ARENAS, "arenas", "ARENAS",
				     arena_columns, A_COLUMNS);
	const struct residency_arena *pages = in->residency->arenas;
	struct str *threads = mem_alloc(h->n_arenas * sizeof(*threads));

	for (size_t i = 0; i < h->n_arenas; i++)
		str_init(&threads[i]);
	for (size_t i = 0; i < h->n_uses; i++) {
		const struct thread_arena *use = &h->uses[i];

		if (use->arena < h->n_arenas)
			str_printf(&threads[use->arena], "%s%" PRIu32,
				   threads[use->arena].len ? " " : "",
				   use->tid);
	}
	for (size_t i = 0; i < h->n_arenas; i++) {
		add_arena(t, &h->arenas[i], pages ? &pages[i] : NULL,
			  &threads[i]);
		str_fini(&threads[i]);
	}
	free(threads);
	table_add_total(t);
	table_sort(t, A_MAPPED, false);
	/* A line has no room for both. */
	table_hide(t, pages ? A_FREE_SHARE : A_RESIDENT);
}

enum {
	K_SIZE, K_ALLOCATOR, K_MIN, K_MAX, K_BLOCKS, K_BYTES, K_RESIDENT,
	K_USED_BLOCKS, K_USED, K_FREE_BLOCKS, K_FREE, K_BINS, K_FREE_SHARE,
	K_EXAMPLE, K_USED_RESIDENT, K_USED_SWAPPED, K_FREE_RESIDENT,
	K_SWAPPED, K_COLUMNS
};

static const struct column class_columns[K_COLUMNS] = {
	[K_SIZE] = COLUMN("size", "", TEXT, .flags = COLUMN_NO_DATA,
			  .width = 26),
	[K_ALLOCATOR] = COLUMN("allocator", "allocator", TEXT),
	[K_MIN] = DATA_COLUMN("min_bytes", BYTES),
	[K_MAX] = DATA_COLUMN("max_bytes", BYTES),
	[K_BLOCKS] = COLUMN("blocks", "blocks", COUNT, .flags = COLUMN_SUM,
			    .width = 10),
	[K_BYTES] = COLUMN("bytes", "", BYTES, DATA_SUM),
	[K_USED_BLOCKS] = COLUMN("used_blocks", "", COUNT, DATA_SUM),
	[K_USED] = COLUMN("used_bytes", "in use", BYTES, .flags = COLUMN_SUM,
			  .width = 9),
	[K_RESIDENT] = COLUMN("resident_bytes", "resident", BYTES,
			      .flags = COLUMN_SUM, .width = 10),
	[K_FREE_BLOCKS] = COLUMN("free_blocks", "", COUNT, DATA_SUM),
	[K_FREE] = COLUMN("free_bytes", "free", BYTES, .flags = COLUMN_SUM,
			  .width = 9),
	[K_BINS] = COLUMN("bins", "bins", TEXT),
	[K_FREE_SHARE] = COLUMN("free_share", "free%", SHARE, .width = 7,
				.part = K_FREE + 1, .whole = K_BYTES + 1),
	[K_EXAMPLE] = DATA_COLUMN("example", ADDR),
	[K_USED_RESIDENT] = COLUMN("used_resident_bytes", "", BYTES, DATA_SUM),
	[K_USED_SWAPPED] = COLUMN("used_swapped_bytes", "", BYTES, DATA_SUM),
	[K_FREE_RESIDENT] = COLUMN("free_resident_bytes", "", BYTES, DATA_SUM),
	[K_SWAPPED] = COLUMN("swapped_bytes", "", BYTES, DATA_SUM),
};

static void set_class_pages(struct table *t, const struct usage_class *c)
{
	struct residency all = c->used_pages;

	residency_add(&all, &c->free_pages);
	residency_add(&all, &c->own_pages);
	table_set(t, K_RESIDENT, all.resident);
	table_set(t, K_SWAPPED, all.swapped);
	table_set(t, K_USED_RESIDENT, c->used_pages.resident);
	table_set(t, K_USED_SWAPPED, c->used_pages.swapped);
	table_set(t, K_FREE_RESIDENT, c->free_pages.resident);
}

static void set_bins(struct table *t, const struct usage_class *c)
{
	char bins[160] = "";
	size_t n = 0;

	for (int s = 0; s < BLOCK_STATES; s++)
		if (block_state_free(s) && c->state[s].blocks &&
		    n < sizeof(bins))
			n += (size_t)snprintf(bins + n, sizeof(bins) - n,
					      "%s%s", n ? " " : "",
					      block_state_name(s));
	if (n)
		table_set_text(t, K_BINS, bins);
}

static void add_class(struct table *t, const struct heap *h,
		      const struct usage_class *c)
{
	const struct tally *own = &c->state[BLOCK_OVERHEAD];

	table_row(t);
	if (c->min == c->max)
		table_printf(t, K_SIZE, "%" PRIu64, c->min);
	else
		table_printf(t, K_SIZE, "%" PRIu64 " to %" PRIu64, c->min,
			     c->max);
	table_set_text(t, K_ALLOCATOR, h->allocators[c->allocator].name);
	table_set(t, K_MIN, c->min);
	table_set(t, K_MAX, c->max);
	table_set(t, K_BLOCKS, c->used.blocks + c->free.blocks + own->blocks);
	table_set(t, K_BYTES, c->used.bytes + c->free.bytes + own->bytes);
	table_set(t, K_USED_BLOCKS, c->used.blocks);
	table_set(t, K_USED, c->used.bytes);
	table_set(t, K_FREE_BLOCKS, c->free.blocks);
	table_set(t, K_FREE, c->free.bytes);
	set_bins(t, c);
	if (c->example)
		table_set(t, K_EXAMPLE, c->example);
}

void build_classes(struct report *r, const struct report_input *in)
{
	const struct filter *filter = r->options->filter;
	struct table *t = report_add(r, SECTION_CLASSES, "classes",
				     filter ? "SIZES OF MATCHING BLOCKS"
					    : "SIZE CLASSES",
				     class_columns, K_COLUMNS);
	const struct usage *usage = in->usage;
	struct usage matching = { 0 };
	bool known = space_pages_known(in->sp);

	if (filter) {
		blocks_usage(&matching, in, filter);
		usage = &matching;
	}
	for (size_t i = 0; i < usage->n_classes; i++) {
		add_class(t, in->heap, &usage->classes[i]);
		if (known)
			set_class_pages(t, &usage->classes[i]);
	}
	table_hide(t, known ? K_FREE_SHARE : K_RESIDENT);
	table_hide_same(t, K_ALLOCATOR);
	table_add_total(t);
	table_sort(t, K_BYTES, false);
	if (filter)
		usage_fini(&matching);
}

enum {
	F_FREE, F_FREE_STORED, F_CACHED, F_TRIM_STORED, F_TRIMMABLE,
	F_TRIM_TOP, F_PINNED, F_PINNED_PAGES, F_TOP, F_BELOW_TOP, F_RUNS,
	F_LARGEST, F_COLUMNS
};

static const struct column fragment_columns[F_COLUMNS] = {
	[F_FREE] = COLUMN("free_bytes", "free", BYTES),
	[F_FREE_STORED] = COLUMN("free_stored_bytes", "in file", BYTES),
	[F_CACHED] = COLUMN("cached_bytes", "in thread caches", BYTES),
	/* What the column of ARENAS adds up to: it takes memory now. */
	[F_TRIM_STORED] = COLUMN("trimmable_stored_bytes", "trimmable",
				 BYTES),
	[F_TRIMMABLE] = COLUMN("trimmable_bytes", "with untouched pages",
			       BYTES),
	[F_TRIM_TOP] = COLUMN("trimmable_top_bytes", "of these in tops",
			      BYTES),
	[F_PINNED] = COLUMN("pinned_bytes", "on pinned pages", BYTES),
	[F_PINNED_PAGES] = COLUMN("pinned_pages", "pinned pages", COUNT),
	[F_TOP] = COLUMN("top_bytes", "in tops", BYTES),
	[F_BELOW_TOP] = COLUMN("below_top_bytes", "below the tops", BYTES),
	[F_RUNS] = COLUMN("runs", "free runs", COUNT),
	[F_LARGEST] = COLUMN("largest_run_bytes", "largest run", BYTES),
};

static void build_fragment_total(struct report *r,
				 const struct report_input *in)
{
	const struct fragment_arena *a = &in->fragment->total;
	struct table *t = report_add(r, SECTION_FRAGMENTATION,
				     "fragmentation", "FRAGMENTATION",
				     fragment_columns, F_COLUMNS);

	t->form = TABLE_OBJECT;
	if (space_pages_known(in->sp))
		table_retitle(t, F_FREE_STORED,
			      in->where->total.pages.swapped ?
			      "resident or in swap" : "resident");
	table_row(t);
	table_set(t, F_FREE, a->free.bytes);
	table_set(t, F_FREE_STORED, a->free.stored);
	table_set(t, F_CACHED, a->cached_bytes);
	table_set(t, F_TRIMMABLE, a->trimmable.bytes);
	table_set(t, F_TRIM_STORED, a->trimmable.stored);
	table_set(t, F_TRIM_TOP, a->trimmable_top.bytes);
	table_set(t, F_PINNED, a->pinned_bytes);
	table_set(t, F_PINNED_PAGES, a->pinned_pages);
	table_set(t, F_TOP, a->top_bytes);
	table_set(t, F_BELOW_TOP, a->below_top_bytes);
	table_set(t, F_RUNS, a->runs);
	table_set(t, F_LARGEST, a->largest_run);
}

enum { U_SIZE, U_MIN, U_RUNS, U_BYTES, U_PAGES, U_SHARE, U_COLUMNS };

static const struct column run_columns[U_COLUMNS] = {
	[U_SIZE] = COLUMN("size", "", TEXT, .flags = COLUMN_NO_DATA,
			  .width = 25),
	[U_MIN] = DATA_COLUMN("min_bytes", BYTES),
	[U_RUNS] = COLUMN("runs", "runs", COUNT, .flags = COLUMN_SUM,
			  .width = 10),
	[U_BYTES] = COLUMN("bytes", "bytes", BYTES, .flags = COLUMN_SUM,
			   .width = 10),
	[U_PAGES] = COLUMN("page_bytes", "whole pages", BYTES,
			   .flags = COLUMN_SUM, .width = 13),
	[U_SHARE] = COLUMN("share", "of free", SHARE,
			   .flags = COLUMN_OF_TOTAL, .width = 9,
			   .part = U_BYTES + 1, .whole = U_BYTES + 1),
};

/* "32K": 2^power with its unit. */
static void power_text(char ret[NUM_MAX], unsigned power)
{
	static const char units[] = { '\0', 'K', 'M', 'G', 'T', 'P', 'E' };

	snprintf(ret, NUM_MAX, "%u%c", 1u << power % 10, units[power / 10]);
}

static void build_runs(struct report *r, const struct fragment *f)
{
	struct table *t = report_add(r, SECTION_FRAGMENTATION, "free_runs",
				     "FREE RUNS", run_columns, U_COLUMNS);
	char from[NUM_MAX];
	char to[NUM_MAX];

	for (unsigned i = 0; i < countof(f->runs); i++) {
		const struct fragment_runs *run = &f->runs[i];

		if (!run->runs)
			continue;
		power_text(from, i);
		power_text(to, i + 1);
		table_row(t);
		table_printf(t, U_SIZE, "%s to %s", from, to);
		table_set(t, U_MIN, UINT64_C(1) << i);
		table_set(t, U_RUNS, run->runs);
		table_set(t, U_BYTES, run->bytes);
		table_set(t, U_PAGES, run->page_bytes);
	}
	table_add_total(t);
	table_sort(t, U_BYTES, false);
}

enum {
	P_LABEL, P_SIZE, P_STATE, P_BLOCKS, P_PAGES, P_FREE, P_SOLE_PAGES,
	P_SOLE, P_EXAMPLE, P_FIRST, P_WORDS, P_COLUMNS
};

static const struct column pin_columns[P_COLUMNS] = {
	[P_LABEL] = COLUMN("label", "", TEXT, .flags = COLUMN_NO_DATA,
			   .width = 22),
	[P_SIZE] = DATA_COLUMN("size", BYTES),
	[P_STATE] = DATA_COLUMN("state", TEXT),
	/* Kinds share pages: over all rows they are more than there are. */
	[P_BLOCKS] = COLUMN("blocks", "blocks", COUNT, .flags = COLUMN_SUM,
			    .width = 9),
	[P_PAGES] = COLUMN("pages", "pages", COUNT, .flags = COLUMN_SUM,
			   .width = 8),
	[P_FREE] = COLUMN("free_bytes", "holds", BYTES, .flags = COLUMN_SUM,
			  .width = 9),
	[P_SOLE_PAGES] = DATA_COLUMN("sole_pages", COUNT),
	[P_SOLE] = COLUMN("sole_bytes", "", BYTES, DATA_SUM),
	[P_EXAMPLE] = DATA_COLUMN("example", ADDR),
	[P_FIRST] = COLUMN("commonest", "most start with", TEXT,
			   .flags = COLUMN_NO_DATA | COLUMN_CONTENT),
	[P_WORDS] = COLUMN("first_words", "", TEXT,
			   .flags = COLUMN_NO_TEXT | COLUMN_CONTENT),
};

void set_looked(struct table *t, size_t first, size_t all,
		const struct space *sp, const struct looked *looked)
{
	char text[LOOK_TEXT_MAX];
	struct str words;

	str_init(&words);
	for (size_t i = 0; i < LOOKED_KINDS && looked->seen[i]; i++) {
		look_text(text, sp, &looked->looks[i]);
		str_printf(&words, "%s%s", i ? "; " : "", text);
		if (!i)
			table_set_text(t, first, text);
	}
	if (words.len)
		table_set_bytes(t, all, words.text, words.len);
	str_fini(&words);
}

static void build_pins(struct report *r, const struct report_input *in)
{
	struct table *t = report_add(r, SECTION_FRAGMENTATION, "pinned_by",
				     "BLOCKS THAT PIN PAGES", pin_columns,
				     P_COLUMNS);

	for (size_t i = 0; i < in->fragment->n_pins; i++) {
		const struct fragment_pin *pin = &in->fragment->pins[i];

		table_row(t);
		table_printf(t, P_LABEL, "%s%" PRIu64 " bytes, %s",
			     pin->size >= USAGE_EXACT ? ">= " : "", pin->size,
			     block_state_name(pin->state));
		table_set(t, P_SIZE, pin->size);
		table_set_text(t, P_STATE, block_state_name(pin->state));
		table_set(t, P_BLOCKS, pin->blocks);
		table_set(t, P_PAGES, pin->pages);
		table_set(t, P_FREE, pin->free_bytes);
		table_set(t, P_SOLE_PAGES, pin->sole_pages);
		table_set(t, P_SOLE, pin->sole_bytes);
		table_set(t, P_EXAMPLE, pin->example);
		set_looked(t, P_FIRST, P_WORDS, in->sp, &pin->looked);
	}
}

void build_fragmentation(struct report *r, const struct report_input *in)
{
	build_fragment_total(r, in);
	build_runs(r, in->fragment);
	build_pins(r, in);
	build_spans(r, in);
}
