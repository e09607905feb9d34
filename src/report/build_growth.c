/* SPDX-License-Identifier: MIT */
/*
 * What changed between two instants, by site; and what a window left behind.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "report/replay.h"

#define SUM_DATA .flags = COLUMN_NO_TEXT | COLUMN_SUM

/* ---- growth ---- */

enum {
	G_SITE, G_ESTIMATE, G_LOW, G_HIGH, G_EXACT, G_COVERS, G_COME, G_GONE,
	G_ESTIMATE_COME, G_ESTIMATE_GONE, G_BLOCKS, G_COLUMNS
};

static const struct column growth_columns[G_COLUMNS] = {
	[G_SITE] = COLUMN("site", "", TEXT, .width = 20),
	[G_ESTIMATE] = COLUMN("estimate_bytes_change", "estimate", CHANGE,
			      .flags = COLUMN_SUM, .width = 10),
	[G_LOW] = COLUMN("low_bytes_change", "low", CHANGE, .width = 9),
	[G_HIGH] = COLUMN("high_bytes_change", "high", CHANGE, .width = 9),
	[G_EXACT] = COLUMN("exact_bytes_change", "exact", CHANGE,
			   .flags = COLUMN_SUM, .width = 9),
	[G_COVERS] = DATA_COLUMN("covers_bytes", FLAG),
	[G_COME] = COLUMN("come_bytes", "came", BYTES, .flags = COLUMN_SUM,
			  .width = 8),
	[G_GONE] = COLUMN("gone_bytes", "went", BYTES, .flags = COLUMN_SUM,
			  .width = 8),
	[G_ESTIMATE_COME] = COLUMN("estimate_come_bytes", "", BYTES,
				   SUM_DATA),
	[G_ESTIMATE_GONE] = COLUMN("estimate_gone_bytes", "", BYTES,
				   SUM_DATA),
	[G_BLOCKS] = COLUMN("exact_blocks_change", "", CHANGE_COUNT,
			    SUM_DATA),
};

static int64_t change_of(const struct replay_change *c)
{
	return (int64_t)(c->come_bytes - c->gone_bytes);
}

static void estimates_of(const struct site *s, struct estimate *come,
			 struct estimate *gone)
{
	struct profile_figures f;

	profile_sum_get(&s->view[VIEW_COME], &f);
	*come = f.bytes;
	profile_sum_get(&s->view[VIEW_GONE], &f);
	*gone = f.bytes;
}

static void set_interval(struct table *t, const struct replay_input *in,
			 const struct estimate *come,
			 const struct estimate *gone,
			 const struct replay_change *c)
{
	double unseen = replay_unseen(in->replay);
	struct interval i = interval_change(come, gone, fmax(unseen, 0));
	double exact = (double)change_of(c);

	if (unseen < 0)
		return;
	table_set_signed(t, G_LOW, llround(i.low));
	table_set_signed(t, G_HIGH, llround(i.high));
	if (in->exact)
		table_set(t, G_COVERS, round(i.low) <= exact &&
			  exact <= round(i.high));
}

static void set_growth(struct table *t, const struct replay_input *in,
		       const struct site *s)
{
	const struct replay_change *c = &s->change;
	struct estimate come, gone;

	estimates_of(s, &come, &gone);
	table_set_signed(t, G_ESTIMATE, llround(come.value - gone.value));
	table_set(t, G_ESTIMATE_COME, (uint64_t)llround(come.value));
	table_set(t, G_ESTIMATE_GONE, (uint64_t)llround(gone.value));
	set_interval(t, in, &come, &gone, c);
	if (!in->exact)
		return;
	table_set_signed(t, G_EXACT, change_of(c));
	table_set(t, G_COME, c->come_bytes);
	table_set(t, G_GONE, c->gone_bytes);
	table_set_signed(t, G_BLOCKS,
			 (int64_t)(c->come_blocks - c->gone_blocks));
}

/* What grew most first; what shrank most last. */
struct grown {
	double value;
	const struct site *site;
};

static int compare_grown(const void *a, const void *b)
{
	const struct grown *x = a, *y = b;

	return ORDER(y->value, x->value) ?:
	       strcmp(x->site->name, y->site->name);
}

static bool grown(const struct replay_input *in, const struct site *s,
		  struct grown *ret)
{
	struct estimate come, gone;

	estimates_of(s, &come, &gone);
	ret->site = s;
	ret->value = in->exact ? (double)change_of(&s->change)
			       : come.value - gone.value;
	return come.n || gone.n || (in->exact && (s->change.come_blocks ||
						  s->change.gone_blocks));
}

void build_growth(struct report *r, const struct replay_input *in)
{
	const struct sites *s = in->sites;
	AUTO_FREE struct grown *ranked =
		mem_alloc((s->n + 1) * sizeof(*ranked));
	struct table *t;
	size_t n = 0;

	if (!in->replay->changes)
		return;
	t = report_add(r, REPLAY_GROWTH, "growth", "WHAT GREW",
		       growth_columns, G_COLUMNS);
	t->more = "other sites";
	for (size_t i = 0; i < s->n; i++)
		n += grown(in, &s->sites[i], &ranked[n]);
	SORT(ranked, n, compare_grown);
	for (size_t i = 0; i < n; i++) {
		table_row(t);
		table_set_text(t, G_SITE, ranked[i].site->name);
		set_growth(t, in, ranked[i].site);
	}
	table_total_row(t);
	table_set_text(t, G_SITE, "total");
	set_growth(t, in, &s->total);
	if (in->only_exact) {
		table_hide(t, G_ESTIMATE);
		table_hide(t, G_LOW);
		table_hide(t, G_HIGH);
		table_retitle(t, G_EXACT, "change");
	}
	if (!in->exact)
		t->hidden = UINT64_C(1) << G_EXACT | UINT64_C(1) << G_COME |
			    UINT64_C(1) << G_GONE;
}

/* ---- a window ---- */

struct replay_owned replay_orphans(const struct replay_input *in)
{
	const struct trace_info *info = trace_info(in->trace);
	const struct replay *p = in->replay;
	struct replay_owned ret = { .blocks = 0 };

	for (size_t i = 0; i < info->n_threads && i < p->n_threads; i++) {
		uint64_t ended = info->threads[i].ended;

		if (!ended || ended > p->options.to_tick)
			continue;
		ret.blocks += p->owned[i].blocks;
		ret.bytes += p->owned[i].bytes;
		ret.samples += p->owned[i].samples;
	}
	return ret;
}

enum {
	W_FROM, W_TO, W_SAMPLES, W_FREED, W_LIVE_SAMPLES, W_ORPHAN_SAMPLES,
	W_LATER_SAMPLES, W_LIVE, W_LIVE_BLOCKS, W_ORPHANS, W_ORPHAN_BLOCKS,
	W_LATER, W_LATER_BLOCKS, W_COLUMNS
};

static const struct column window_columns[W_COLUMNS] = {
	[W_FROM] = COLUMN("from_s", "", SECONDS, .flags = COLUMN_FINE),
	[W_TO] = COLUMN("to_s", "", SECONDS, .flags = COLUMN_FINE),
	[W_SAMPLES] = COLUMN("samples", "", COUNT),
	[W_FREED] = COLUMN("freed_samples", "", COUNT),
	[W_LIVE_SAMPLES] = COLUMN("live_samples", "", COUNT),
	[W_ORPHAN_SAMPLES] = COLUMN("orphan_samples", "", COUNT),
	[W_LATER_SAMPLES] = COLUMN("later_freed_samples", "", COUNT),
	[W_LIVE] = COLUMN("live_bytes", "", BYTES),
	[W_LIVE_BLOCKS] = COLUMN("live_blocks", "", COUNT),
	[W_ORPHANS] = COLUMN("orphan_bytes", "", BYTES),
	[W_ORPHAN_BLOCKS] = COLUMN("orphan_blocks", "", COUNT),
	[W_LATER] = COLUMN("later_freed_bytes", "", BYTES),
	[W_LATER_BLOCKS] = COLUMN("later_freed_blocks", "", COUNT),
};

void build_window(struct report *r, const struct replay_input *in)
{
	const struct replay *p = in->replay;
	struct replay_owned orphans;
	struct table *t;

	if (p->options.span != SPAN_WINDOW)
		return;
	t = report_add(r, REPLAY_WINDOW, "window", "", window_columns,
		       W_COLUMNS);
	t->form = TABLE_OBJECT;
	table_row(t);
	orphans = replay_orphans(in);
	table_set_real(t, W_FROM, replay_seconds(in, p->options.from_tick));
	table_set_real(t, W_TO, replay_seconds(in, p->last_tick));
	table_set(t, W_SAMPLES, p->profile.total.view[VIEW_ALLOCATED].n);
	table_set(t, W_FREED, p->profile.n_freed);
	table_set(t, W_LIVE_SAMPLES, p->profile.total.view[VIEW_LIVE].n);
	table_set(t, W_ORPHAN_SAMPLES, orphans.samples);
	table_set(t, W_LATER_SAMPLES, p->later.samples);
	if (!in->exact)
		return;
	table_set(t, W_LIVE, p->live_bytes);
	table_set(t, W_LIVE_BLOCKS, p->live_blocks);
	table_set(t, W_ORPHANS, orphans.bytes);
	table_set(t, W_ORPHAN_BLOCKS, orphans.blocks);
	table_set(t, W_LATER, p->later.bytes);
	table_set(t, W_LATER_BLOCKS, p->later.blocks);
}
