/* SPDX-License-Identifier: MIT */
/*
 * The blocks of a trace in other allocators, and what filters of their frees
 * would cost a sampling profiler.
 */
#include "report/replay.h"


/* ---- models ---- */

enum {
	O_NAME, O_ALLOCATOR, O_AT, O_REQUESTED, O_BLOCKS, O_ROUNDED,
	O_INTERNAL_BYTES, O_INTERNAL, O_SPANS, O_EXTERNAL_BYTES, O_EXTERNAL,
	O_COLUMNS
};

static const struct column model_columns[O_COLUMNS] = {
	[O_NAME] = COLUMN("name", "", TEXT, .flags = COLUMN_NO_DATA,
			  .width = 20),
	[O_ALLOCATOR] = DATA_COLUMN("allocator", TEXT),
	[O_AT] = DATA_COLUMN("moment", TEXT),
	[O_REQUESTED] = COLUMN("requested_bytes", "asked for", BYTES,
			       .width = 10),
	[O_BLOCKS] = DATA_COLUMN("blocks", COUNT),
	[O_ROUNDED] = COLUMN("rounded_bytes", "rounded", BYTES, .width = 10),
	[O_INTERNAL_BYTES] = DATA_COLUMN("internal_bytes", BYTES),
	[O_INTERNAL] = COLUMN("internal_share", "lost", SHARE, .width = 7,
			      .part = O_INTERNAL_BYTES + 1,
			      .whole = O_ROUNDED + 1),
	[O_SPANS] = COLUMN("spans_bytes", "in spans", BYTES, .width = 10),
	[O_EXTERNAL_BYTES] = DATA_COLUMN("external_bytes", BYTES),
	[O_EXTERNAL] = COLUMN("external_share", "free", SHARE, .width = 7,
			      .part = O_EXTERNAL_BYTES + 1,
			      .whole = O_SPANS + 1),
};

static void add_moment(struct table *t, const struct model_moment *moment,
		       const char *at)
{
	for (int i = 0; i < SIZE_MODELS; i++) {
		const struct model_sum *sum = &moment->sum[i];
		const char *name = size_model_name((enum size_model)i);

		table_row(t);
		table_printf(t, O_NAME, "%s, at the %s", name, at);
		table_set_text(t, O_ALLOCATOR, name);
		table_set_text(t, O_AT, at);
		table_set(t, O_REQUESTED, moment->requested);
		table_set(t, O_BLOCKS, moment->blocks);
		table_set(t, O_ROUNDED, sum->rounded);
		table_set(t, O_INTERNAL_BYTES,
			  sum->rounded - moment->requested);
		if (i == MODEL_GLIBC)
			continue;
		table_set(t, O_SPANS, sum->spans);
		table_set(t, O_EXTERNAL_BYTES, sum->spans - sum->rounded);
	}
}

void build_models(struct report *r, const struct replay_input *in)
{
	struct table *t;

	if (!in->models)
		return;
	t = report_add(r, REPLAY_MODELS, "models", "IN OTHER ALLOCATORS",
		       model_columns, O_COLUMNS);
	t->whole = true;
	t->one_unit = true;
	add_moment(t, &in->models->peak, "peak");
	add_moment(t, &in->models->now, "end");
}

/* ---- filters ---- */

enum {
	I_NAME, I_TEXT, I_LOADS, I_LOADS_TEXT, I_FREES, I_WRONG, I_WRONG_SHARE,
	I_BYTES, I_COLUMNS
};

static const struct column filter_columns[I_COLUMNS] = {
	[I_NAME] = DATA_COLUMN("filter", TEXT),
	[I_TEXT] = COLUMN("name", "", TEXT, .flags = COLUMN_NO_DATA,
			  .width = 34),
	[I_LOADS] = DATA_COLUMN("loads", COUNT),
	[I_LOADS_TEXT] = COLUMN("loads_text", "loads", TEXT,
				.flags = COLUMN_NO_DATA, .width = 7),
	[I_FREES] = DATA_COLUMN("frees", COUNT),
	[I_WRONG] = COLUMN("false_hits", "false hits", COUNT, .width = 12),
	[I_WRONG_SHARE] = COLUMN("false_share", "of frees", SHARE,
				 .width = 10, .part = I_WRONG + 1,
				 .whole = I_FREES + 1),
	[I_BYTES] = COLUMN("bytes", "memory", BYTES, .width = 10),
};

void build_filters(struct report *r, const struct replay_input *in)
{
	static const char *const names[FILTERS] = {
		[FILTER_TABLE] = "table of samples",
		[FILTER_BYTES] = "64K counters, then the table",
		[FILTER_BITMAP] = "shadow bitmap in a tree",
		[FILTER_PAGE_BIT] = "bit in the page map, then the table",
		[FILTER_FOOTER] = "word behind each block",
	};
	const struct filters *f = in->filters;
	struct table *t;

	if (!f)
		return;
	t = report_add(r, REPLAY_FILTERS, "filters",
		       "WAS THIS BLOCK SAMPLED?  AT A FREE",
		       filter_columns, I_COLUMNS);
	t->whole = true;
	for (int i = 0; i < FILTERS; i++) {
		const struct filter_cost *c = &f->costs[i];
		enum free_filter filter = (enum free_filter)i;

		table_row(t);
		table_set_text(t, I_NAME, free_filter_name(filter));
		table_set_text(t, I_TEXT, names[i]);
		table_set(t, I_LOADS, c->loads);
		table_printf(t, I_LOADS_TEXT, "%.2f",
			     f->frees ? (double)c->loads / (double)f->frees
				      : 0);
		table_set(t, I_FREES, f->frees);
		table_set(t, I_WRONG, c->wrong);
		table_set(t, I_BYTES, c->bytes);
	}
}
