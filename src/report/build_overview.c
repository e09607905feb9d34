/* SPDX-License-Identifier: MIT */
/*
 * A trace at a glance: its moments side by side; and its requests by size.
 */
#include <stdio.h>

#include "base/num.h"
#include "report/estimate.h"
#include "report/replay.h"

#define TEXT_ONLY .flags = COLUMN_NO_DATA

/* ---- moments ---- */

enum {
	V_WHAT, V_TEXT, V_BYTES, V_BLOCKS = V_BYTES + ESTIMATE_COLUMNS,
	V_COUNT = V_BLOCKS + ESTIMATE_COLUMNS, V_SHARE, V_AT, V_AT_TEXT,
	V_COLUMNS
};

static const struct column overview_columns[V_COLUMNS] = {
	[V_WHAT] = DATA_COLUMN("what", TEXT),
	[V_TEXT] = COLUMN("name", "", TEXT, TEXT_ONLY, .width = 24),
	ESTIMATE_OF_BYTES(V_BYTES, ESTIMATE_SHOWN, ESTIMATE_SHOWN),
	ESTIMATE_OF_BLOCKS(V_BLOCKS, ESTIMATE_HIDDEN, ESTIMATE_HIDDEN),
	[V_COUNT] = COLUMN("count", "blocks", COUNT, TEXT_ONLY, .width = 10),
	[V_SHARE] = COLUMN("blocks_share", "of all", SHARE, .width = 8),
	[V_AT] = COLUMN("at_s", "", SECONDS,
			.flags = COLUMN_NO_TEXT | COLUMN_FINE),
	[V_AT_TEXT] = COLUMN("at", "when", TEXT,
			     .flags = COLUMN_NO_DATA | COLUMN_LEFT),
};

static void begin_moment(struct table *t, const char *what, const char *name)
{
	table_row(t);
	table_set_text(t, V_WHAT, what);
	table_set_text(t, V_TEXT, name);
}

static void set_when(struct table *t, double seconds)
{
	char text[NUM_MAX];

	num_format_duration(text, seconds);
	table_set_real(t, V_AT, seconds);
	table_printf(t, V_AT_TEXT, "at %s", text);
}

static void set_blocks(struct table *t, const struct replay_input *in,
		       uint64_t blocks)
{
	if (!in->exact)
		return;
	table_set(t, V_COUNT, blocks);
	table_set_real(t, V_SHARE, num_share(blocks, in->replay->allocations));
}

static void add_moment(struct table *t, const struct replay_input *in,
		       enum replay_metric metric, const char *what,
		       const char *name)
{
	const struct site *all = &in->sites->total;

	begin_moment(t, what, name);
	replay_figures(t, V_BYTES, V_BLOCKS, in, metric, all);
	set_blocks(t, in, replay_exact_blocks(metric, &all->exact));
}

static void add_temporary(struct table *t, const struct replay_input *in)
{
	if (!in->exact)
		return;
	begin_moment(t, "temporary", "freed at once");
	table_set(t, V_BYTES + ESTIMATE_EXACT, in->replay->temporary_bytes);
	table_set(t, V_BLOCKS + ESTIMATE_EXACT, in->replay->temporary);
	set_blocks(t, in, in->replay->temporary);
}

static void hide_estimates(struct table *t)
{
	table_hide(t, V_BYTES + ESTIMATE_VALUE);
	table_hide(t, V_BYTES + ESTIMATE_BOUND);
	table_hide(t, V_BYTES + ESTIMATE_ERROR);
	table_retitle(t, V_BYTES + ESTIMATE_EXACT, "bytes");
}

void build_overview(struct report *r, const struct replay_input *in)
{
	const struct replay *p = in->replay;
	bool at = p->options.mark == MARK_TIME;
	bool own = p->options.mark == MARK_PEAK && !in->only_exact;
	struct table *t = report_add(r, REPLAY_OVERVIEW, "overview",
				     "THE HEAP OVER TIME", overview_columns,
				     V_COLUMNS);

	t->whole = true;
	if (in->only_exact)
		hide_estimates(t);
	else
		table_hide(t, V_SHARE);
	add_moment(t, in, METRIC_PEAK, at ? "at" : "peak",
		   at ? "at this instant" : "at the peak");
	set_when(t, replay_seconds(in, own ? p->estimated_peak.tick
					   : p->mark.tick));
	add_moment(t, in, METRIC_END, "end", "at the end");
	set_when(t, replay_seconds(in, p->last_tick));
	add_moment(t, in, METRIC_ALLOCATED, "allocated", "allocated in all");
	add_temporary(t, in);
}

/* ---- sizes ---- */

enum {
	Z_SIZE, Z_MIN, Z_MAX, Z_BLOCKS, Z_BLOCKS_SHARE, Z_BYTES,
	Z_BYTES_SHARE, Z_MARKED_BLOCKS, Z_MARKED, Z_MARKED_SHARE, Z_COLUMNS
};

#define SHARE_OF(column)						\
	.flags = COLUMN_OF_TOTAL, .width = 8, .part = (column) + 1,	\
	.whole = (column) + 1

static const struct column size_columns[Z_COLUMNS] = {
	[Z_SIZE] = COLUMN("size", "", TEXT, TEXT_ONLY, .width = 18),
	[Z_MIN] = DATA_COLUMN("min_bytes", BYTES),
	[Z_MAX] = DATA_COLUMN("max_bytes", BYTES),
	[Z_BLOCKS] = COLUMN("blocks", "allocations", COUNT,
			    .flags = COLUMN_SUM, .width = 13),
	[Z_BLOCKS_SHARE] = COLUMN("blocks_share", "of all", SHARE,
				  SHARE_OF(Z_BLOCKS)),
	[Z_BYTES] = COLUMN("allocated_bytes", "bytes", BYTES,
			   .flags = COLUMN_SUM, .width = 10),
	[Z_BYTES_SHARE] = COLUMN("allocated_share", "of all", SHARE,
				 SHARE_OF(Z_BYTES)),
	[Z_MARKED_BLOCKS] = COLUMN("live_blocks", "", COUNT,
				   .flags = COLUMN_NO_TEXT | COLUMN_SUM),
	[Z_MARKED] = COLUMN("live_bytes", "at peak", BYTES,
			    .flags = COLUMN_SUM, .width = 10),
	[Z_MARKED_SHARE] = COLUMN("live_share", "of it", SHARE,
				  SHARE_OF(Z_MARKED)),
};

/* "48 to 64", "1K to 2K" would hide where a step begins: "1025 to 2K". */
static void set_size(struct table *t, unsigned step)
{
	uint64_t min = size_step_min(step), max = size_step_max(step);
	char from[NUM_MAX], to[NUM_MAX];

	table_set(t, Z_MIN, min);
	table_set(t, Z_MAX, max);
	if (!max) {
		table_set_text(t, Z_SIZE, "0");
		return;
	}
	num_format_size(to, max);
	num_format_size(from, min - 1);
	if (min < KIB)
		snprintf(from, sizeof(from), "%u", (unsigned)min);
	if (max < KIB)
		snprintf(to, sizeof(to), "%u", (unsigned)max);
	table_printf(t, Z_SIZE, "%s%s to %s", min < KIB ? "" : "over ", from,
		     to);
}

void build_sizes(struct report *r, const struct replay_input *in)
{
	const struct sizes *s = in->sizes;
	struct table *t;

	if (!s)
		return;
	t = report_add(r, REPLAY_SIZES, "sizes", "SIZE", size_columns,
		       Z_COLUMNS);
	t->whole = true;
	if (in->replay->options.mark == MARK_TIME)
		table_retitle(t, Z_MARKED, "live");
	for (unsigned i = 0; i < s->n; i++) {
		const struct size_step *step = &s->step[i];

		if (!step->blocks && !step->marked_blocks)
			continue;
		table_row(t);
		set_size(t, i);
		table_set(t, Z_BLOCKS, step->blocks);
		table_set(t, Z_BYTES, step->bytes);
		table_set(t, Z_MARKED_BLOCKS, step->marked_blocks);
		table_set(t, Z_MARKED, step->marked_bytes);
	}
	table_add_total(t);
}
