/* SPDX-License-Identifier: MIT */
/*
 * Pauses: how long, how much together, how much of any window was left to the
 * program, and what it had allocated when one came.
 */
#include <math.h>

#include "base/mem.h"
#include "base/num.h"
#include "report/replay.h"

#define FINE_DATA .flags = COLUMN_NO_TEXT | COLUMN_FINE
#define TEXT_ONLY .flags = COLUMN_NO_DATA

static void set_duration(struct table *t, size_t column, double seconds)
{
	char text[NUM_MAX];

	num_format_duration(text, seconds);
	table_set_text(t, column, text);
}

/* ---- pauses ---- */

enum {
	P_NAME, P_COUNT, P_P50, P_P90, P_P99, P_MAX, P_SUM,
	P_TEXT_P50, P_TEXT_P90, P_TEXT_P99, P_TEXT_MAX, P_TEXT_SUM, P_SHARE,
	P_COLUMNS
};

static const struct column pause_columns[P_COLUMNS] = {
	[P_NAME] = COLUMN("which", "", TEXT, .width = 14),
	[P_COUNT] = COLUMN("pauses", "pauses", COUNT, .width = 9),
	[P_P50] = COLUMN("p50_s", "", SECONDS, FINE_DATA),
	[P_P90] = COLUMN("p90_s", "", SECONDS, FINE_DATA),
	[P_P99] = COLUMN("p99_s", "", SECONDS, FINE_DATA),
	[P_MAX] = COLUMN("max_s", "", SECONDS, FINE_DATA),
	[P_SUM] = COLUMN("sum_s", "", SECONDS, FINE_DATA),
	[P_TEXT_P50] = COLUMN("p50", "p50", TEXT, TEXT_ONLY, .width = 8),
	[P_TEXT_P90] = COLUMN("p90", "p90", TEXT, TEXT_ONLY, .width = 8),
	[P_TEXT_P99] = COLUMN("p99", "p99", TEXT, TEXT_ONLY, .width = 8),
	[P_TEXT_MAX] = COLUMN("max", "longest", TEXT, TEXT_ONLY, .width = 8),
	[P_TEXT_SUM] = COLUMN("sum", "sum", TEXT, TEXT_ONLY, .width = 8),
	[P_SHARE] = COLUMN("run_share", "of run", SHARE, .width = 7),
};

static void add_pauses(struct table *t, const struct replay_input *in,
		       enum pauses_which which, const char *name)
{
	struct pauses_summary s;

	pauses_sum_up(in->pauses, which, &s);
	if (!s.n)
		return;
	table_row(t);
	table_set_text(t, P_NAME, name);
	table_set(t, P_COUNT, s.n);
	table_set_real(t, P_P50, s.p50);
	table_set_real(t, P_P90, s.p90);
	table_set_real(t, P_P99, s.p99);
	table_set_real(t, P_MAX, s.max);
	table_set_real(t, P_SUM, s.sum);
	set_duration(t, P_TEXT_P50, s.p50);
	set_duration(t, P_TEXT_P90, s.p90);
	set_duration(t, P_TEXT_P99, s.p99);
	set_duration(t, P_TEXT_MAX, s.max);
	set_duration(t, P_TEXT_SUM, s.sum);
	if (replay_pauses_end(in) > 0)
		table_set_real(t, P_SHARE, s.sum / replay_pauses_end(in));
}

/* The run ends with its last event, or with its last pause. */
double replay_pauses_end(const struct replay_input *in)
{
	double ret = replay_seconds(in, in->replay->last_tick);

	for (size_t i = 0; i < in->pauses->n; i++)
		ret = fmax(ret, in->pauses->list[i].start +
			   in->pauses->list[i].duration);
	return ret;
}

/* ---- what was left to the program ---- */

enum { U_NAME, U_WINDOW, U_SHARE, U_COLUMNS };

static const struct column share_columns[U_COLUMNS] = {
	[U_NAME] = COLUMN("name", "", TEXT, TEXT_ONLY, .width = 24),
	[U_WINDOW] = COLUMN("window_s", "", SECONDS, FINE_DATA),
	[U_SHARE] = COLUMN("utilisation_share", "at least", SHARE,
			   .width = 10),
};

static void add_utilisation(struct report *r, const struct replay_input *in)
{
	static const double windows[] = { 0.001, 0.01, 0.1, 1 };
	double end = replay_pauses_end(in);
	struct table *t = report_add(r, REPLAY_PAUSES, "utilisation",
				     "THE PROGRAM'S SHARE OF", share_columns,
				     U_COLUMNS);

	t->whole = true;
	for (size_t i = 0; i < countof(windows); i++) {
		char text[NUM_MAX];

		if (windows[i] > end)
			break;
		num_format_duration(text, windows[i]);
		table_row(t);
		table_printf(t, U_NAME, "any %s", text);
		table_set_real(t, U_WINDOW, windows[i]);
		table_set_real(t, U_SHARE, pauses_utilisation(in->pauses,
			windows[i], end));
	}
}

/* ---- what was allocated between ---- */

enum { B_NAME, B_P50, B_P99, B_MAX, B_COLUMNS };

static const struct column between_columns[B_COLUMNS] = {
	[B_NAME] = COLUMN("what", "", TEXT, .width = 34),
	[B_P50] = COLUMN("p50_bytes", "p50", BYTES, .width = 10),
	[B_P99] = COLUMN("p99_bytes", "p99", BYTES, .width = 10),
	[B_MAX] = COLUMN("max_bytes", "most", BYTES, .width = 10),
};

static void add_values(struct table *t, const char *name, double *values,
		       size_t n)
{
	if (!n)
		return;
	sort_values(values, n);
	table_row(t);
	table_set_text(t, B_NAME, name);
	table_set(t, B_P50, num_whole(rank_of(values, n, 0.5)));
	table_set(t, B_P99, num_whole(rank_of(values, n, 0.99)));
	table_set(t, B_MAX, num_whole(values[n - 1]));
}

static void add_between(struct report *r, const struct replay_input *in)
{
	const struct replay *p = in->replay;
	AUTO_FREE double *values =
		mem_alloc((p->n_instants + 1) * 3 * sizeof(*values));
	double *bytes = values, *rates = bytes + p->n_instants + 1;
	double *live = rates + p->n_instants + 1, before = 0;
	uint64_t allocated = 0;
	size_t n_rates = 0;
	struct table *t = report_add(r, REPLAY_PAUSES, "between_pauses",
				     "BEFORE EACH PAUSE", between_columns,
				     B_COLUMNS);

	t->whole = true;
	for (size_t i = 0; i < p->n_instants; i++) {
		const struct pause *pause = &in->pauses->list[i];

		bytes[i] = (double)(p->instants[i].allocated - allocated);
		live[i] = (double)p->instants[i].live;
		if (pause->start > before)
			rates[n_rates++] = bytes[i] / (pause->start - before);
		allocated = p->instants[i].allocated;
		before = fmax(before, pause->start + pause->duration);
	}
	add_values(t, "allocated since the one before", bytes, p->n_instants);
	add_values(t, "a second of the program's time", rates, n_rates);
	add_values(t, "live", live, p->n_instants);
}

void build_pauses(struct report *r, const struct replay_input *in)
{
	struct table *t;

	if (!in->pauses)
		return;
	t = report_add(r, REPLAY_PAUSES, "pauses", "PAUSES", pause_columns,
		       P_COLUMNS);
	t->whole = true;
	add_pauses(t, in, PAUSES_ALL, "all");
	add_pauses(t, in, PAUSES_FULL, "full");
	add_pauses(t, in, PAUSES_OTHER, "others");
	add_utilisation(r, in);
	if (in->exact)
		add_between(r, in);
}
