/* SPDX-License-Identifier: MIT */
/*
 * The tables that speak of the heap: what it holds, and how it is cut up.
 */
#include "report/build.h"

#include <inttypes.h>
#include <stdlib.h>

#include "analysis/reach.h"
#include "base/mem.h"
#include "base/num.h"

void sum_arena(struct heap_sum *sum, const struct arena *a)
{
	for (int s = 0; s < BLOCK_STATES; s++) {
		const struct tally *t = &a->state[s];

		if (block_state_free(s)) {
			sum->free += t->bytes;
			sum->free_blocks += t->blocks;
		}
		if (s == BLOCK_CACHED) {
			sum->cached += t->bytes;
			sum->cached_blocks += t->blocks;
		}
	}
	sum->fast += a->state[BLOCK_FAST].bytes;
	sum->used += a->state[BLOCK_USED].bytes + a->mmapped.bytes;
	sum->used_blocks += a->state[BLOCK_USED].blocks + a->mmapped.blocks;
	sum->mmapped += a->mmapped.bytes;
	sum->mmapped_blocks += a->mmapped.blocks;
	sum->overhead += a->state[BLOCK_OVERHEAD].bytes + a->overhead_bytes;
	sum->foreign += a->foreign_bytes;
	sum->undecoded += a->undecoded_bytes;
	sum->runtime += a->runtime_bytes;
	sum->runtime_used += a->runtime_used;
	sum->runtime_free += a->runtime_free;
	sum->mapped += a->extent_bytes;
	sum->trimmable += a->trimmable_bytes;
}

struct heap_sum sum_heap(const struct heap *h)
{
	struct heap_sum sum = { 0 };

	for (size_t i = 0; i < h->n_arenas; i++)
		sum_arena(&sum, &h->arenas[i]);
	return sum;
}

struct table *add_sums(struct report *r, unsigned section, const char *name,
		       const char *title, const struct column *columns,
		       size_t n)
{
	struct table *t = report_add(r, section, name, title, columns, n);

	t->form = r->options->format == REPORT_JSON ? TABLE_OBJECT
						    : TABLE_SENTENCES;
	table_row(t);
	return t;
}

void add_total_of_used(struct table *t, size_t column,
		       const struct report_input *in)
{
	if (!t->n_rows)
		return;
	table_add_total(t);
	table_set(t, column, sum_heap(in->heap).used);
}

enum {
	S_PRIVATE, S_MAPPED, S_USED, S_USED_BLOCKS, S_FREE, S_FREE_SHARE,
	S_UNDECODED, S_FINDINGS, S_LEAKED, S_LEAKED_BLOCKS,
	S_FREE_RESIDENT, S_FREE_RESIDENT_SHARE, S_COLUMNS
};

/* The names of --fail-if. */
static const struct column total_columns[S_COLUMNS] = {
	[S_PRIVATE] = COLUMN("private_bytes", "private", BYTES),
	[S_MAPPED] = COLUMN("mapped_bytes", "heap", BYTES),
	[S_USED] = COLUMN("used_bytes", "in use", BYTES),
	[S_USED_BLOCKS] = COLUMN("used_blocks", "blocks in use", COUNT),
	[S_FREE] = COLUMN("free_bytes", "free", BYTES),
	[S_FREE_SHARE] = COLUMN("free_share", "free%", SHARE),
	[S_UNDECODED] = COLUMN("undecoded_bytes", "not decoded", BYTES),
	[S_FINDINGS] = COLUMN("findings", "findings", COUNT),
	[S_LEAKED] = COLUMN("leaked_bytes", "leaked", BYTES),
	[S_LEAKED_BLOCKS] = COLUMN("leaked_blocks", "blocks leaked", COUNT),
	[S_FREE_RESIDENT] = COLUMN("free_resident_bytes", "free, resident",
				   BYTES),
	[S_FREE_RESIDENT_SHARE] = COLUMN("free_resident_share",
					 "free%, resident", SHARE),
};

const struct column *report_total_columns(size_t *ret_n)
{
	*ret_n = S_COLUMNS;
	return total_columns;
}

uint64_t sum_free_resident(const struct where *w)
{
	return w->row[WHERE_FREE].pages.resident +
	       w->row[WHERE_CACHED].pages.resident;
}

/* Memory that was given back takes none: this comes down, free does not. */
static void total_resident(const struct report_input *in, struct cell *ret)
{
	const struct where_amount *row = in->where->row;
	uint64_t free = sum_free_resident(in->where);
	uint64_t heap = free + row[WHERE_USED].pages.resident +
			row[WHERE_OVERHEAD].pages.resident +
			row[WHERE_UNDECODED].pages.resident;
	bool known = space_pages_known(in->sp);

	ret[S_FREE_RESIDENT].known = ret[S_FREE_RESIDENT_SHARE].known = known;
	ret[S_FREE_RESIDENT].u = free;
	ret[S_FREE_RESIDENT_SHARE].share = num_share(free, heap);
}

void report_totals(const struct report_input *in, struct cell *ret)
{
	struct heap_sum sum = sum_heap(in->heap);

	for (size_t i = 0; i < S_COLUMNS; i++)
		ret[i] = (struct cell){ .known = true };
	ret[S_PRIVATE].u = in->where->total.bytes;
	ret[S_MAPPED].u = sum.mapped;
	ret[S_USED].u = sum.used;
	ret[S_USED_BLOCKS].u = sum.used_blocks;
	ret[S_FREE].u = sum.free;
	ret[S_FREE_SHARE].share = num_share(sum.free, sum.mapped);
	ret[S_UNDECODED].u = sum.undecoded;
	ret[S_FINDINGS].u = in->heap->n_notes + in->heap->notes_dropped;
	total_resident(in, ret);
	ret[S_LEAKED].known = ret[S_LEAKED_BLOCKS].known = in->reach != NULL;
	if (in->reach) {
		ret[S_LEAKED].u = reach_lost(in->reach).bytes;
		ret[S_LEAKED_BLOCKS].u = reach_lost(in->reach).blocks;
	}
}

void build_totals(struct report *r, const struct report_input *in)
{
	struct table *t = report_add(r, SECTION_TOTALS, "totals", "TOTALS",
				     total_columns, S_COLUMNS);
	struct cell cells[S_COLUMNS];

	t->form = TABLE_OBJECT;
	report_totals(in, cells);
	table_row(t);
	for (size_t i = 0; i < S_COLUMNS; i++)
		if (!cells[i].known)
			continue;
		else if (total_columns[i].type == COLUMN_SHARE)
			table_set_real(t, i, cells[i].share);
		else
			table_set(t, i, cells[i].u);
}

enum {
	W_WHAT, W_TEXT, W_BYTES, W_STORED, W_SHARE, W_STORED_SHARE,
	W_RESIDENT, W_RESIDENT_SHARE, W_SWAPPED, W_COLUMNS
};

static const struct column where_columns[W_COLUMNS] = {
	[W_WHAT] = COLUMN("what", "what", TEXT, .flags = COLUMN_NO_TEXT),
	[W_TEXT] = COLUMN("text", "", TEXT, .flags = COLUMN_NO_DATA,
			  .width = 35),
	[W_BYTES] = COLUMN("bytes", "size", BYTES,
			   .flags = COLUMN_SUM | COLUMN_BAR, .width = 10),
	[W_STORED] = COLUMN("stored_bytes", "in file", BYTES,
			    .flags = COLUMN_SUM | COLUMN_BAR, .width = 10),
	[W_SHARE] = COLUMN("share", "share", SHARE, .flags = COLUMN_OF_TOTAL,
			   .width = 8, .part = W_BYTES + 1,
			   .whole = W_BYTES + 1),
	/* Directly behind what it is a share of. */
	[W_STORED_SHARE] = COLUMN("stored_share", "of it", SHARE,
				  .flags = COLUMN_OF_TOTAL, .width = 8,
				  .part = W_STORED + 1, .whole = W_STORED + 1),
	[W_RESIDENT] = COLUMN("resident_bytes", "resident", BYTES,
			      .flags = COLUMN_SUM | COLUMN_BAR, .width = 10),
	[W_RESIDENT_SHARE] = COLUMN("resident_share", "of it", SHARE,
				    .flags = COLUMN_OF_TOTAL, .width = 8,
				    .part = W_RESIDENT + 1,
				    .whole = W_RESIDENT + 1),
	[W_SWAPPED] = COLUMN("swapped_bytes", "in swap", BYTES,
			     .flags = COLUMN_SUM, .width = 10),
};

/*
 * What counts is what takes memory: a stack of 8M of which one page was
 * touched is not what fills a machine.  Only where everything is stored, or
 * nothing is known of it, the size itself ranks.
 */
static void rank_where(struct table *t, const struct report_input *in)
{
	const struct where_amount *all = &in->where->total;
	bool same = all->stored == all->bytes || !all->stored;
	bool known = space_pages_known(in->sp);

	show_pages(t, W_STORED, W_RESIDENT, W_SWAPPED, in);
	if (same)
		table_hide(t, known ? W_RESIDENT : W_STORED);
	else
		table_hide(t, W_SHARE);
	if (same || known)
		table_hide(t, W_STORED_SHARE);
	if (same || !known)
		table_hide(t, W_RESIDENT_SHARE);
	table_sort(t, W_BYTES, false);
	if (!same)
		table_sort(t, W_STORED, false);
}

/* "runtime heap, not walked (go, ocaml)" */
static void set_runtimes(struct table *t, const struct heap *h)
{
	uint32_t last = UINT32_MAX;
	struct str s;

	str_init(&s);
	str_adds(&s, where_row_text(WHERE_RUNTIME));
	for (size_t i = 0; i < h->n_arenas; i++) {
		const struct arena *a = &h->arenas[i];

		if (!a->runtime_bytes || a->allocator == last)
			continue;
		str_printf(&s, "%s%s", last == UINT32_MAX ? " (" : ", ",
			   h->allocators[a->allocator].name);
		last = a->allocator;
	}
	if (last != UINT32_MAX)
		str_addc(&s, ')');
	table_set_text(t, W_TEXT, s.text);
	str_fini(&s);
}

void build_where(struct report *r, const struct report_input *in)
{
	struct table *t = report_add(r, SECTION_WHERE, "where",
				     "WHERE THE MEMORY IS", where_columns,
				     W_COLUMNS);

	t->whole = true;
	for (int i = 0; i < WHERE_ROWS; i++) {
		const struct where_amount *a = &in->where->row[i];

		if (!a->bytes)
			continue;
		table_row(t);
		table_set_text(t, W_WHAT, where_row_name(i));
		if (i == WHERE_RUNTIME)
			set_runtimes(t, in->heap);
		else
			table_set_text(t, W_TEXT, where_row_text(i));
		table_set(t, W_BYTES, a->bytes);
		table_set(t, W_STORED, a->stored);
		set_pages(t, W_RESIDENT, W_SWAPPED, in, &a->pages);
	}
	table_add_total(t);
	table_set_text(t, W_TEXT, "total private memory");
	rank_where(t, in);
}

enum {
	R_WHAT, R_TEXT, R_BYTES, R_STORED, R_ABSENT, R_SHARE, R_LEFT_OUT,
	R_RESIDENT, R_SWAPPED, R_UNTOUCHED, R_ZERO, R_HUGE, R_SHARED, R_FILE,
	R_COLUMNS
};

static const struct column residency_columns[R_COLUMNS] = {
	[R_WHAT] = COLUMN("what", "what", TEXT, .flags = COLUMN_NO_TEXT),
	[R_TEXT] = COLUMN("text", "", TEXT, .flags = COLUMN_NO_DATA,
			  .width = 35),
	[R_BYTES] = COLUMN("bytes", "size", BYTES, .flags = COLUMN_SUM,
			   .width = 8),
	[R_STORED] = COLUMN("stored_bytes", "in file", BYTES,
			    .flags = COLUMN_SUM, .width = 10),
	[R_ABSENT] = COLUMN("absent_bytes", "not in it", BYTES,
			    .flags = COLUMN_SUM, .width = 11),
	[R_SHARE] = COLUMN("stored_share", "in file", SHARE, .width = 9,
			   .part = R_STORED + 1, .whole = R_BYTES + 1),
	[R_LEFT_OUT] = COLUMN("left_out_bytes", "left out", BYTES,
			      .flags = COLUMN_SUM, .width = 10),
	/* Where each page is known, in place of these. */
	[R_RESIDENT] = COLUMN("resident_bytes", "resident", BYTES,
			      .flags = COLUMN_SUM),
	[R_SWAPPED] = COLUMN("swapped_bytes", "in swap", BYTES,
			     .flags = COLUMN_SUM),
	[R_UNTOUCHED] = COLUMN("untouched_bytes", "untouched", BYTES,
			       .flags = COLUMN_SUM),
	[R_ZERO] = COLUMN("zero_bytes", "only read", BYTES,
			  .flags = COLUMN_SUM),
	[R_HUGE] = COLUMN("huge_bytes", "huge", BYTES, .flags = COLUMN_SUM),
	[R_SHARED] = COLUMN("shared_bytes", "shared", BYTES,
			    .flags = COLUMN_SUM),
	[R_FILE] = COLUMN("file_bytes", "", BYTES,
			  .flags = COLUMN_NO_TEXT | COLUMN_SUM),
};

/* What there is none of is not shown, and what a line has no room for. */
static void show_kinds(struct table *t, const struct residency *all)
{
	const struct {
		size_t column;
		uint64_t bytes;
	} kinds[] = {
		{ R_SWAPPED, all->swapped }, { R_HUGE, all->huge },
		{ R_SHARED, all->shared }, { R_ZERO, all->zero },
	};
	size_t room = 2;

	for (size_t i = 0; i < countof(kinds); i++)
		if (kinds[i].bytes && room)
			room--;
		else
			table_hide(t, kinds[i].column);
	table_hide(t, R_STORED);
	table_hide(t, R_ABSENT);
	table_hide(t, R_SHARE);
	table_hide(t, R_LEFT_OUT);
}

static void set_residency(struct table *t, const struct residency *r)
{
	table_set(t, R_RESIDENT, r->resident);
	table_set(t, R_SWAPPED, r->swapped);
	table_set(t, R_UNTOUCHED, r->absent);
	table_set(t, R_ZERO, r->zero);
	table_set(t, R_HUGE, r->huge);
	table_set(t, R_SHARED, r->shared);
	table_set(t, R_FILE, r->file);
}

void build_residency(struct report *r, const struct report_input *in)
{
	struct table *t = report_add(r, SECTION_RESIDENCY, "residency",
				     "RESIDENCY", residency_columns,
				     R_COLUMNS);
	bool known = space_pages_known(in->sp);
	uint64_t left_out = 0;

	t->whole = true;
	for (int i = 0; i < WHERE_ROWS; i++) {
		const struct where_amount *a = &in->where->row[i];

		if (!a->bytes)
			continue;
		table_row(t);
		table_set_text(t, R_WHAT, where_row_name(i));
		table_set_text(t, R_TEXT, where_row_text(i));
		table_set(t, R_BYTES, a->bytes);
		table_set(t, R_STORED, a->stored);
		table_set(t, R_ABSENT, a->bytes - a->stored);
		if (known)
			set_residency(t, &a->pages);
		else
			table_set(t, R_LEFT_OUT, a->left_out);
		left_out += a->left_out;
	}
	table_add_total(t);
	table_sort(t, R_BYTES, false);
	table_hide(t, left_out ? R_SHARE : R_LEFT_OUT);
	if (known)
		show_kinds(t, &in->where->total.pages);
	for (size_t i = R_RESIDENT; !known && i < R_COLUMNS; i++)
		table_hide(t, i);
}

enum {
	L_NAME, L_VERSION, L_ARENAS, L_EVIDENCE, L_USED, L_FREE, L_OVERHEAD,
	L_USED_BLOCKS, L_CACHED, L_FAST, L_FOREIGN, L_UNDECODED, L_MAPPED,
	L_TRIMMABLE, L_MMAPPED, L_MMAPPED_BLOCKS, L_FREE_BLOCKS,
	L_CLAIMED, L_CLAIMED_BLOCKS, L_RUNTIME, L_RUNTIME_USED, L_RUNTIME_FREE,
	L_COLUMNS
};

static const struct column allocator_columns[L_COLUMNS] = {
	[L_NAME] = COLUMN("name", "allocator", TEXT),
	[L_VERSION] = COLUMN("version", "version", TEXT),
	[L_ARENAS] = COLUMN("arenas", "arenas", COUNT),
	[L_EVIDENCE] = COLUMN("evidence", "evidence", TEXT),
	[L_USED] = COLUMN("used_bytes", "in use", BYTES),
	[L_FREE] = COLUMN("free_bytes", "free", BYTES),
	[L_OVERHEAD] = COLUMN("overhead_bytes", "overhead", BYTES),
	[L_USED_BLOCKS] = COLUMN("used_blocks", "blocks in use", COUNT),
	[L_CACHED] = COLUMN("cached_bytes", "in thread caches", BYTES),
	[L_FAST] = COLUMN("fast_bytes", "in fastbins", BYTES),
	[L_FOREIGN] = COLUMN("foreign_bytes", "not malloc's", BYTES),
	[L_UNDECODED] = COLUMN("undecoded_bytes", "not decoded", BYTES),
	[L_MAPPED] = COLUMN("mapped_bytes", "heap", BYTES),
	[L_TRIMMABLE] = COLUMN("trimmable_bytes", "trimmable", BYTES),
	[L_MMAPPED] = COLUMN("mmapped_bytes", "mmapped", BYTES),
	[L_MMAPPED_BLOCKS] = COLUMN("mmapped_blocks", "mmapped blocks",
				    COUNT),
	[L_FREE_BLOCKS] = COLUMN("free_blocks", "free blocks", COUNT),
	[L_CLAIMED] = COLUMN("mmapped_claimed_bytes",
			     "malloc counts as mmapped", BYTES),
	[L_CLAIMED_BLOCKS] = COLUMN("mmapped_claimed_blocks",
				    "malloc counts, blocks", COUNT),
	[L_RUNTIME] = COLUMN("runtime_bytes", "not walked", BYTES),
	[L_RUNTIME_USED] = COLUMN("runtime_used_bytes", "in values", BYTES),
	[L_RUNTIME_FREE] = COLUMN("runtime_free_bytes", "free for values",
				  BYTES),
};

static struct heap_sum sum_allocator(const struct heap *h, size_t allocator,
				     uint64_t *ret_arenas)
{
	struct heap_sum sum = { 0 };

	*ret_arenas = 0;
	for (size_t i = 0; i < h->n_arenas; i++) {
		if (h->arenas[i].allocator != allocator)
			continue;
		sum_arena(&sum, &h->arenas[i]);
		*ret_arenas += h->arenas[i].addr != 0;
	}
	return sum;
}

static void add_allocator(struct table *t, const struct heap *h, size_t i)
{
	const struct heap_allocator *a = &h->allocators[i];
	uint64_t arenas;
	struct heap_sum sum = sum_allocator(h, i, &arenas);

	table_row(t);
	table_set_text(t, L_NAME, a->name);
	table_set_text(t, L_VERSION, a->version);
	table_set(t, L_ARENAS, arenas);
	table_set_text(t, L_EVIDENCE, a->evidence);
	table_set(t, L_MAPPED, sum.mapped);
	if (sum.runtime) {
		table_set(t, L_RUNTIME, sum.runtime);
		if (sum.runtime_used || sum.runtime_free) {
			table_set(t, L_RUNTIME_USED, sum.runtime_used);
			table_set(t, L_RUNTIME_FREE, sum.runtime_free);
		}
		return;
	}
	table_set(t, L_USED, sum.used);
	table_set(t, L_FREE, sum.free);
	table_set(t, L_OVERHEAD, sum.overhead);
	table_set(t, L_USED_BLOCKS, sum.used_blocks);
	table_set(t, L_CACHED, sum.cached);
	table_set(t, L_FAST, sum.fast);
	table_set(t, L_FOREIGN, sum.foreign);
	table_set(t, L_UNDECODED, sum.undecoded);
	table_set(t, L_TRIMMABLE, sum.trimmable);
	table_set(t, L_MMAPPED, sum.mmapped);
	table_set(t, L_MMAPPED_BLOCKS, sum.mmapped_blocks);
	table_set(t, L_FREE_BLOCKS, sum.free_blocks);
	if (a->mmapped_known) {
		table_set(t, L_CLAIMED, a->mmapped_claimed_bytes);
		table_set(t, L_CLAIMED_BLOCKS, a->mmapped_claimed_blocks);
	}
}

void build_allocators(struct report *r, const struct report_input *in)
{
	struct table *t = report_add(r, SECTION_ALLOCATORS, "allocators",
				     "ALLOCATORS", allocator_columns,
				     L_COLUMNS);

	t->form = TABLE_RECORDS;
	for (size_t i = 0; i < in->heap->n_allocators; i++)
		add_allocator(t, in->heap, i);
}

enum {
	G_LABEL, G_ALLOCATOR, G_NAME, G_BYTES, G_VALUE, G_EXACT, G_SIZE,
	G_DEFAULT, G_BY, G_COLUMNS
};

/* Each value has a unit of its own: in text it is words, not a column's. */
static const struct column setting_columns[G_COLUMNS] = {
	[G_LABEL] = COLUMN("setting", "", TEXT, .flags = COLUMN_NO_DATA),
	[G_ALLOCATOR] = DATA_COLUMN("allocator", TEXT),
	[G_NAME] = DATA_COLUMN("name", TEXT),
	[G_BYTES] = DATA_COLUMN("bytes", BYTES),
	[G_VALUE] = DATA_COLUMN("value", COUNT),
	[G_EXACT] = COLUMN("exact", "value", TEXT, .flags = COLUMN_NO_DATA,
			   .width = 10),
	[G_SIZE] = COLUMN("size", "that is", TEXT, .flags = COLUMN_NO_DATA,
			  .width = 9),
	[G_DEFAULT] = DATA_COLUMN("default", FLAG),
	[G_BY] = COLUMN("by", "set by", TEXT, .flags = COLUMN_NO_DATA),
};

/* What is so large was set to have no limit: -1 in its own type. */
#define NO_LIMIT (UINT64_C(1) << 62)

/* malloc(3) follows the blocks it frees, until somebody sets one of the two. */
static bool follows(const struct heap_allocator *a, const struct setting *s)
{
	bool dynamic = false;

	for (size_t i = 0; i < a->n_settings; i++)
		if (!strcmp(a->settings[i].name, "mmap_threshold_dynamic"))
			dynamic = a->settings[i].value != 0;
	return dynamic && (!strcmp(s->name, "mmap_threshold") ||
			   !strcmp(s->name, "trim_threshold"));
}

/* Named as whoever sets it writes it: in GLIBC_TUNABLES, in php.ini. */
static void add_setting(struct table *t, const struct heap_allocator *a,
			const struct setting *s)
{
	const char *allocator = a->name;
	bool tunable = !strcmp(allocator, "glibc") &&
		strcmp(s->name, "mmap_threshold_dynamic");
	char size[NUM_MAX];

	table_row(t);
	table_printf(t, G_LABEL, "%s%s", tunable ? "glibc.malloc." : "",
		     s->name);
	table_set_text(t, G_ALLOCATOR, allocator);
	table_set_text(t, G_NAME, s->name);
	table_set(t, s->is_bytes ? G_BYTES : G_VALUE, s->value);
	table_set(t, G_DEFAULT, s->is_default);
	table_set_text(t, G_BY, s->is_default ? "default" :
		       follows(a, s) ? "malloc itself" : "the program or user");
	if (s->value >= NO_LIMIT) {
		table_set_text(t, G_EXACT, "no limit");
		return;
	}
	table_printf(t, G_EXACT, "%" PRIu64, s->value);
	num_format_size(size, s->value);
	if (s->is_bytes && s->value >= KIB)
		table_set_text(t, G_SIZE, size);
}

void build_settings(struct report *r, const struct report_input *in)
{
	struct table *t = report_add(r, SECTION_SETTINGS, "settings",
				     "SETTINGS", setting_columns, G_COLUMNS);

	t->whole = true;
	for (size_t i = 0; i < in->heap->n_allocators; i++) {
		const struct heap_allocator *a = &in->heap->allocators[i];

		for (size_t k = 0; k < a->n_settings; k++)
			add_setting(t, a, &a->settings[k]);
	}
}
