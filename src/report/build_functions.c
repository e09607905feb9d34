/* SPDX-License-Identifier: MIT */
/*
 * A trace by function: what each asked for itself, and what was asked for
 * while it ran; each function once, or once for each way of calls to it.
 */
#include "report/calls.h"
#include "report/estimate.h"
#include "report/replay.h"

enum {
	F_NAME, F_FUNCTION, F_OBJECT, F_DEPTH,
	F_INCLUSIVE, F_SHARE = F_INCLUSIVE + ESTIMATE_COLUMNS,
	F_EXACT_SHARE, F_OWN, F_OWN_EXACT, F_TEMPORARY, F_COLUMNS
};

static const struct column function_columns[F_COLUMNS] = {
	[F_NAME] = COLUMN("name", "", TEXT, .flags = COLUMN_NO_DATA,
			  .width = 26),
	[F_FUNCTION] = DATA_COLUMN("function", TEXT),
	[F_OBJECT] = DATA_COLUMN("object", TEXT),
	[F_DEPTH] = DATA_COLUMN("depth", COUNT),
	ESTIMATE_INCLUSIVE(F_INCLUSIVE, ESTIMATE_SHOWN, ESTIMATE_SHOWN),
	[F_SHARE] = COLUMN("share", "share", SHARE, .width = 8),
	[F_EXACT_SHARE] = COLUMN("exact_share", "share", SHARE, .width = 8),
	[F_OWN] = COLUMN("own_estimate_bytes", "own", BYTES,
			 .flags = COLUMN_SUM, .width = 10),
	[F_OWN_EXACT] = COLUMN("own_exact_bytes", "own", BYTES,
			       .flags = COLUMN_SUM, .width = 10),
	[F_TEMPORARY] = COLUMN("temporary", "temporary", COUNT, .width = 11),
};

/* What is on the stack, or itself the one that asks. */
static void set_function(struct table *t, const struct replay_input *in,
			 const struct call_sum *inclusive,
			 const struct call_sum *exclusive)
{
	const struct site *all = &in->sites->total;
	uint64_t whole = replay_exact_bytes(in->metric, &all->exact);
	struct profile_figures f, total, own;

	profile_sum_get(&inclusive->sum, &f);
	profile_sum_get(&exclusive->sum, &own);
	profile_sum_get(&all->view[replay_view(in->metric)], &total);
	estimate_set(t, F_INCLUSIVE, &f.bytes, replay_unseen(in->replay),
		     in->exact ? &inclusive->exact : NULL);
	if (total.bytes.value > 0)
		table_set_real(t, F_SHARE, f.bytes.value / total.bytes.value);
	table_set(t, F_OWN, (uint64_t)(own.bytes.value + 0.5));
	if (!in->exact)
		return;
	if (whole)
		table_set_real(t, F_EXACT_SHARE, (double)inclusive->exact /
			       (double)whole);
	table_set(t, F_OWN_EXACT, exclusive->exact);
	table_set(t, F_TEMPORARY, inclusive->temporary);
}

static struct table *add_table(struct report *r,
			       const struct replay_input *in,
			       unsigned section, const char *name,
			       const char *title)
{
	static const unsigned estimates[] = {
		F_INCLUSIVE + ESTIMATE_VALUE, F_INCLUSIVE + ESTIMATE_BOUND,
		F_INCLUSIVE + ESTIMATE_ERROR, F_SHARE, F_OWN,
	};
	struct table *t = report_add(r, section, name, title,
				     function_columns, F_COLUMNS);
	bool only = in->only_exact;

	for (size_t i = 0; only && i < countof(estimates); i++)
		table_hide(t, estimates[i]);
	if (only)
		table_retitle(t, F_INCLUSIVE + ESTIMATE_EXACT, "bytes");
	if (!only)
		table_hide(t, F_INCLUSIVE + ESTIMATE_ERROR);
	if (!only)
		table_hide(t, F_EXACT_SHARE);
	if (!only)
		table_hide(t, F_OWN_EXACT);
	if (!only || in->metric != METRIC_TEMPORARY)
		table_hide(t, F_TEMPORARY);
	return t;
}

static void set_name(struct table *t, const struct replay_input *in,
		     uint32_t function)
{
	table_set_text(t, F_FUNCTION, in->frames->functions[function].name);
	table_set_text(t, F_OBJECT, in->frames->functions[function].object);
}

void build_functions(struct report *r, const struct replay_input *in)
{
	struct table *t = add_table(r, in, REPLAY_FUNCTIONS, "functions",
				    "FUNCTIONS AND CALLEES");
	struct function_sites s;

	t->more = "other functions";
	function_sites_init(&s, in->replay, in->frames);
	for (size_t i = 0; i < s.n; i++) {
		struct call_sum own, all;

		if (!s.inclusive[i].exact.allocations)
			continue;
		call_sum_of(&all, &s.inclusive[i], in->metric);
		call_sum_of(&own, &s.exclusive[i], in->metric);
		table_row(t);
		table_set_text(t, F_NAME, in->frames->functions[i].name);
		set_name(t, in, (uint32_t)i);
		set_function(t, in, &all, &own);
	}
	function_sites_fini(&s);
	/* By letters, by what is exact, and then by what was estimated. */
	table_sort(t, F_NAME, false);
	if (!in->only_exact)
		table_sort(t, F_INCLUSIVE + ESTIMATE_EXACT, false);
	table_sort(t, F_INCLUSIVE + (in->only_exact ? ESTIMATE_EXACT
						    : ESTIMATE_VALUE), false);
}

/* ---- the tree ---- */

static const char *tree_title(const struct replay_input *in)
{
	switch (in->metric) {
	case METRIC_PEAK:
		return in->replay->options.mark == MARK_TIME
			? "CALLS THAT LED TO THE HEAP"
			: "CALLS THAT LED TO THE PEAK";
	case METRIC_END:
		return "CALLS THAT LED TO THE END";
	case METRIC_TEMPORARY:
		return "CALLS, BY WHAT IS FREED AT ONCE";
	default:
		return "CALLS, BY ALL THAT WAS ALLOCATED";
	}
}

static void add_call(struct table *t, const struct replay_input *in,
		     const struct call *c)
{
	enum { INDENT_MAX = 20 };

	table_row(t);
	table_printf(t, F_NAME, "%*s%s",
		     2 + (int)min_u64(c->depth, INDENT_MAX), "",
		     in->frames->functions[c->function].name);
	set_name(t, in, c->function);
	table_set(t, F_DEPTH, c->depth);
	set_function(t, in, &c->all, &c->own);
}

void build_tree(struct report *r, const struct replay_input *in)
{
	struct table *t = add_table(r, in, REPLAY_TREE, "tree",
				    tree_title(in));
	struct call_sum total;
	struct calls calls;
	bool cuts = r->options->format == REPORT_TEXT && !r->options->sort &&
		    !r->options->row_filter &&
		    r->options->rows != TABLE_ALL_ROWS;

	calls_init(&calls, in);
	if (cuts)
		calls_keep_largest(&calls, r->options->rows);
	t->whole = cuts;
	t->depth = F_DEPTH + 1;
	for (size_t i = 0; i < calls.n; i++)
		add_call(t, in, &calls.list[i]);
	calls_fini(&calls);
	/* Of the whole trace, whatever was cut. */
	table_total_row(t);
	table_set_text(t, F_NAME, "total");
	call_sum_of(&total, &in->sites->total, in->metric);
	set_function(t, in, &total, &total);
}
