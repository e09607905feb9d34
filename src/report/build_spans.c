/* SPDX-License-Identifier: MIT */
/*
 * Fragmentation of allocators that cut spans into blocks of one size.
 */
#include "report/build.h"

#include <inttypes.h>

#include "analysis/pyarenas.h"
#include "analysis/release.h"

enum {
	L_NAME, L_SPANS, L_CACHES, L_PAGES, L_PAGES_STORED, L_RETURNED,
	L_COLUMNS
};

static const struct column level_columns[L_COLUMNS] = {
	[L_NAME] = COLUMN("allocator", "", TEXT, .width = 14),
	[L_SPANS] = COLUMN("span_bytes", "in spans", BYTES,
			   .flags = COLUMN_SUM, .width = 10),
	[L_CACHES] = COLUMN("cache_bytes", "in caches", BYTES,
			    .flags = COLUMN_SUM, .width = 11),
	[L_PAGES] = COLUMN("page_bytes", "whole pages", BYTES,
			   .flags = COLUMN_SUM, .width = 13),
	[L_PAGES_STORED] = COLUMN("page_stored_bytes", "in file", BYTES,
				  .flags = COLUMN_SUM, .width = 10),
	[L_RETURNED] = COLUMN("returned_bytes", "returned", BYTES,
			      .flags = COLUMN_SUM, .width = 10),
};

static void add_level(struct table *t, const struct report_input *in,
		      uint32_t allocator)
{
	const struct heap *h = in->heap;
	struct fragment_bytes sum[4] = { { 0 } };

	for (size_t i = 0; i < h->n_arenas; i++)
		for (int r = 0; h->arenas[i].allocator == allocator && r < 4;
		     r++) {
			const struct fragment_arena *a =
				&in->fragment->arenas[i];

			sum[r].bytes += a->role[r].bytes;
			sum[r].stored += a->role[r].stored;
		}
	table_row(t);
	table_set_text(t, L_NAME, h->allocators[allocator].name);
	table_set(t, L_SPANS, sum[FREE_IN_SPAN].bytes);
	table_set(t, L_CACHES, sum[FREE_IN_CACHE].bytes);
	table_set(t, L_PAGES, sum[FREE_PAGES].bytes);
	table_set(t, L_PAGES_STORED, sum[FREE_PAGES].stored);
	table_set(t, L_RETURNED, sum[FREE_RETURNED].bytes);
}

static void build_levels(struct report *r, const struct report_input *in)
{
	struct table *t = report_add(r, SECTION_FRAGMENTATION, "free_levels",
				     "FREE, BY WHO CAN USE",
				     level_columns, L_COLUMNS);

	t->whole = true;
	if (space_pages_known(in->sp))
		table_retitle(t, L_PAGES_STORED, "resident");
	for (size_t i = 0; i < in->heap->n_allocators; i++)
		if (in->heap->allocators[i].roles)
			add_level(t, in, (uint32_t)i);
}

enum { G_NAME, G_BYTES, G_CALL, G_SETTING, G_COLUMNS };

static const struct column release_columns[G_COLUMNS] = {
	[G_NAME] = COLUMN("allocator", "", TEXT, .width = 9),
	[G_BYTES] = COLUMN("bytes", "bytes", BYTES, .width = 8),
	[G_CALL] = COLUMN("call", "by a call of", TEXT),
	[G_SETTING] = COLUMN("setting", "started with", TEXT),
};

static void build_release(struct report *r, const struct report_input *in)
{
	struct table *t = report_add(r, SECTION_FRAGMENTATION, "releases",
				     "RELEASES",
				     release_columns, G_COLUMNS);
	struct release release;

	t->whole = true;
	for (size_t i = 0; i < in->heap->n_allocators; i++) {
		if (!release_of(in->fragment, in->heap, (uint32_t)i, &release))
			continue;
		table_row(t);
		table_set_text(t, G_NAME, in->heap->allocators[i].name);
		table_set(t, G_BYTES, release.bytes);
		table_set_text(t, G_CALL, release.call);
		if (release.setting)
			table_set_text(t, G_SETTING, release.setting);
	}
}

enum {
	C_LABEL, C_NAME, C_SIZE, C_SPANS, C_BYTES, C_IDLE, C_UNUSED, C_NEARLY,
	C_HALF, C_MORE, C_FULL, C_USED_BLOCKS, C_USED, C_CACHED_BLOCKS,
	C_CACHED, C_FREE_BLOCKS, C_FREE, C_COLUMNS
};

#define DATA_SUM .flags = COLUMN_NO_TEXT | COLUMN_SUM
#define FILL(key, head) COLUMN(key, head, COUNT, .flags = COLUMN_SUM, \
			       .width = 8)

static const struct column span_columns[C_COLUMNS] = {
	[C_LABEL] = COLUMN("label", "", TEXT, .flags = COLUMN_NO_DATA,
			   .width = 15),
	[C_NAME] = DATA_COLUMN("allocator", TEXT),
	[C_SIZE] = DATA_COLUMN("size", BYTES),
	[C_SPANS] = FILL("spans", "spans"),
	[C_BYTES] = COLUMN("bytes", "", BYTES, DATA_SUM),
	[C_IDLE] = COLUMN("idle_bytes", "not used", BYTES,
			  .flags = COLUMN_SUM, .width = 10),
	[C_UNUSED] = FILL("unused", "0%"),
	[C_NEARLY] = FILL("nearly_empty", "to 12%"),
	[C_HALF] = FILL("to_half", "to 50%"),
	[C_MORE] = FILL("above_half", "above"),
	[C_FULL] = FILL("full", "100%"),
	[C_USED_BLOCKS] = COLUMN("used_blocks", "", COUNT, DATA_SUM),
	[C_USED] = COLUMN("used_bytes", "", BYTES, DATA_SUM),
	[C_CACHED_BLOCKS] = COLUMN("cached_blocks", "", COUNT, DATA_SUM),
	[C_CACHED] = COLUMN("cached_bytes", "", BYTES, DATA_SUM),
	[C_FREE_BLOCKS] = COLUMN("free_blocks", "", COUNT, DATA_SUM),
	[C_FREE] = COLUMN("free_bytes", "", BYTES, DATA_SUM),
};

static void set_label(struct table *t, size_t column, const struct heap *h,
		      const struct span_class *c)
{
	table_printf(t, column, "%s %" PRIu32,
		     h->allocators[c->allocator].name, c->size);
}

static void build_classes_of_spans(struct report *r,
				   const struct report_input *in)
{
	const struct spans *s = &in->fragment->spans;
	struct table *t = report_add(r, SECTION_FRAGMENTATION, "spans",
				     "SPANS, BY SHARE USED",
				     span_columns, C_COLUMNS);

	for (size_t i = 0; i < s->n_classes; i++) {
		const struct span_class *c = &s->classes[i];

		table_row(t);
		set_label(t, C_LABEL, in->heap, c);
		table_set_text(t, C_NAME,
			       in->heap->allocators[c->allocator].name);
		table_set(t, C_SIZE, c->size);
		table_set(t, C_SPANS, c->spans);
		table_set(t, C_BYTES, c->bytes);
		table_set(t, C_IDLE, c->cached.bytes + c->free.bytes);
		for (int f = 0; f < SPAN_FILLS; f++)
			table_set(t, C_UNUSED + (size_t)f, c->fill[f]);
		table_set(t, C_USED_BLOCKS, c->used.blocks);
		table_set(t, C_USED, c->used.bytes);
		table_set(t, C_CACHED_BLOCKS, c->cached.blocks);
		table_set(t, C_CACHED, c->cached.bytes);
		table_set(t, C_FREE_BLOCKS, c->free.blocks);
		table_set(t, C_FREE, c->free.bytes);
	}
	table_add_total(t);
	table_sort(t, C_IDLE, false);
}

enum {
	P_LABEL, P_NAME, P_SIZE, P_BLOCKS, P_SPANS, P_HOLDS, P_EXAMPLE,
	P_FIRST, P_WORDS, P_COLUMNS
};

static const struct column pin_columns[P_COLUMNS] = {
	[P_LABEL] = COLUMN("label", "", TEXT, .flags = COLUMN_NO_DATA,
			   .width = 15),
	[P_NAME] = DATA_COLUMN("allocator", TEXT),
	[P_SIZE] = DATA_COLUMN("size", BYTES),
	[P_BLOCKS] = COLUMN("blocks", "blocks", COUNT, .flags = COLUMN_SUM,
			    .width = 9),
	[P_SPANS] = COLUMN("spans", "spans", COUNT, .flags = COLUMN_SUM,
			   .width = 8),
	[P_HOLDS] = COLUMN("idle_bytes", "holds", BYTES, .flags = COLUMN_SUM,
			   .width = 9),
	[P_EXAMPLE] = COLUMN("example", "example", ADDR, .width = 15),
	[P_FIRST] = COLUMN("commonest", "most start with", TEXT,
			   .flags = COLUMN_NO_DATA | COLUMN_CONTENT),
	[P_WORDS] = COLUMN("first_words", "", TEXT,
			   .flags = COLUMN_NO_TEXT | COLUMN_CONTENT),
};

static void build_span_pins(struct report *r, const struct report_input *in)
{
	const struct spans *s = &in->fragment->spans;
	struct table *t = report_add(r, SECTION_FRAGMENTATION, "spans_held_by",
				     "BLOCKS THAT PIN SPANS",
				     pin_columns, P_COLUMNS);

	for (size_t i = 0; i < s->n_classes; i++) {
		const struct span_class *c = &s->classes[i];

		if (!c->pinning)
			continue;
		table_row(t);
		set_label(t, P_LABEL, in->heap, c);
		table_set_text(t, P_NAME,
			       in->heap->allocators[c->allocator].name);
		table_set(t, P_SIZE, c->size);
		table_set(t, P_BLOCKS, c->pinning);
		table_set(t, P_SPANS, c->fill[SPAN_NEARLY]);
		table_set(t, P_HOLDS, c->idle[SPAN_NEARLY]);
		table_set(t, P_EXAMPLE, c->example);
		set_looked(t, P_FIRST, P_WORDS, in->sp, &c->looked);
	}
	table_sort(t, P_HOLDS, false);
}

enum {
	A_ARENAS, A_EMPTY, A_NEARLY, A_HALF, A_MORE, A_HELD, A_BLOCKS, A_USED,
	A_COLUMNS
};

static const struct column pyarena_columns[A_COLUMNS] = {
	[A_ARENAS] = COLUMN("arenas", "arenas", COUNT, .width = 17),
	[A_EMPTY] = COLUMN("empty", "0%", COUNT, .width = 6),
	[A_NEARLY] = COLUMN("nearly_empty", "to 12%", COUNT, .width = 8),
	[A_HALF] = COLUMN("to_half", "to 50%", COUNT, .width = 8),
	[A_MORE] = COLUMN("above_half", "above", COUNT, .width = 8),
	[A_HELD] = COLUMN("held_bytes", "held", BYTES, .width = 9),
	[A_BLOCKS] = COLUMN("blocks", "by blocks", COUNT, .width = 11),
	[A_USED] = COLUMN("block_bytes", "of bytes", BYTES, .width = 10),
};

static void build_pyarenas(struct report *r, const struct report_input *in)
{
	struct pyarenas a;
	struct table *t;

	pyarenas_count(&a, in->heap);
	if (!a.n)
		return;
	t = report_add(r, SECTION_FRAGMENTATION, "python_arenas",
		       "PYMALLOC'S ARENAS", pyarena_columns,
		       A_COLUMNS);
	table_row(t);
	table_set(t, A_ARENAS, a.n);
	for (int f = 0; f < PYARENA_FILLS; f++)
		table_set(t, A_EMPTY + (size_t)f, a.fill[f]);
	table_set(t, A_HELD, a.held);
	table_set(t, A_BLOCKS, a.pinning.blocks);
	table_set(t, A_USED, a.pinning.bytes);
}

void build_spans(struct report *r, const struct report_input *in)
{
	if (!in->fragment->spans.n_classes)
		return;
	build_levels(r, in);
	build_release(r, in);
	build_classes_of_spans(r, in);
	build_span_pins(r, in);
	build_pyarenas(r, in);
}
