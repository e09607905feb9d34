/* SPDX-License-Identifier: MIT */
/*
 * A trace by function: what each asked for itself, and what was asked for
 * while it ran.
 */
#include <string.h>

#include "report/estimate.h"
#include "report/replay.h"

enum {
	F_NAME, F_OBJECT,
	F_INCLUSIVE, F_SHARE = F_INCLUSIVE + ESTIMATE_COLUMNS,
	F_OWN, F_OWN_EXACT, F_COLUMNS
};

static const struct column function_columns[F_COLUMNS] = {
	[F_NAME] = COLUMN("function", "", TEXT, .width = 26),
	[F_OBJECT] = COLUMN("object", "", TEXT, .flags = COLUMN_NO_TEXT),
	ESTIMATE_OF_BYTES(F_INCLUSIVE, ESTIMATE_SHOWN, ESTIMATE_SHOWN),
	[F_SHARE] = COLUMN("share", "share", SHARE, .width = 8),
	[F_OWN] = COLUMN("own_estimate_bytes", "own", BYTES, .width = 10),
	[F_OWN_EXACT] = COLUMN("own_exact_bytes", "", BYTES,
			       .flags = COLUMN_NO_TEXT),
};

static double estimate_of(const struct replay_input *in, const struct site *s,
			  struct estimate *ret)
{
	struct profile_figures f;

	profile_sum_get(&s->view[replay_view(in->metric)], &f);
	*ret = f.bytes;
	return f.bytes.value;
}

static void set_function(struct table *t, const struct replay_input *in,
			 const struct site *inclusive,
			 const struct site *exclusive)
{
	uint64_t exact = replay_exact_bytes(in->metric, &inclusive->exact);
	struct estimate e, total;

	estimate_of(in, &in->sites->total, &total);
	estimate_of(in, inclusive, &e);
	estimate_set(t, F_INCLUSIVE, &e, replay_unseen(in->replay),
		     in->exact ? &exact : NULL);
	if (total.value > 0)
		table_set_real(t, F_SHARE, e.value / total.value);
	table_set(t, F_OWN, (uint64_t)(estimate_of(in, exclusive, &e) + 0.5));
	if (in->exact)
		table_set(t, F_OWN_EXACT,
			  replay_exact_bytes(in->metric, &exclusive->exact));
}

void build_functions(struct report *r, const struct replay_input *in)
{
	struct table *t = report_add(r, REPLAY_FUNCTIONS, "functions",
				     "FUNCTIONS, WITH WHAT THEY CALL",
				     function_columns, F_COLUMNS);
	struct function_sites s;

	t->more = "other functions";
	function_sites_init(&s, in->replay, in->frames);
	for (size_t i = 0; i < s.n; i++) {
		if (!s.inclusive[i].exact.allocations)
			continue;
		table_row(t);
		table_set_text(t, F_NAME, in->frames->functions[i].name);
		table_set_text(t, F_OBJECT, in->frames->functions[i].object);
		set_function(t, in, &s.inclusive[i], &s.exclusive[i]);
	}
	function_sites_fini(&s);
	/* By letters, by what is exact, and then by what was estimated. */
	table_sort(t, F_NAME, false);
	table_sort(t, F_INCLUSIVE + ESTIMATE_EXACT, false);
	table_sort(t, F_INCLUSIVE + ESTIMATE_VALUE, false);
}
