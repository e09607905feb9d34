/* SPDX-License-Identifier: MIT */
/*
 * What rates are good for, and what is to be said of a replay.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/num.h"
#include "report/estimate.h"
#include "report/replay.h"

/* For 20 % and for 5 % of the total, if blocks are small. */
enum { FEW_SAMPLES = 100, GOOD_SAMPLES = 1500 };

/* ---- rates ---- */

enum {
	R_RATE, R_BYTES, R_SAMPLES, R_ERROR, R_TOP_ERROR, R_SEEN, R_TRIED,
	R_BIAS, R_RMS, R_COVERS, R_SITE_COVERS, R_TOP_WITHIN, R_COLUMNS
};

static const struct column rate_columns[R_COLUMNS] = {
	[R_RATE] = COLUMN("name", "", TEXT, .flags = COLUMN_NO_DATA,
			  .width = 7),
	[R_BYTES] = DATA_COLUMN("rate_bytes", BYTES),
	[R_SAMPLES] = COLUMN("expected_samples", "samples", COUNT,
			     .width = 9),
	[R_ERROR] = COLUMN("total_error_share", "total", SHARE, .width = 7),
	[R_TOP_ERROR] = COLUMN("top_error_share", "top ten", SHARE,
			       .width = 8),
	[R_SEEN] = COLUMN("seen_bytes", "seen", BYTES, .width = 9),
	[R_TRIED] = DATA_COLUMN("tried_samples", COUNT),
	[R_BIAS] = DATA_COLUMN("bias_share", SHARE),
	[R_RMS] = COLUMN("rms_share", "rms", SHARE, .width = 7),
	[R_COVERS] = COLUMN("total_covered_share", "cover", SHARE,
			    .width = 7),
	[R_SITE_COVERS] = COLUMN("sites_covered_share", "sites", SHARE,
				 .width = 7),
	[R_TOP_WITHIN] = COLUMN("top_within_share", "in 5%", SHARE,
				.width = 7),
};

static void set_tried(struct table *t, const struct rate_result *rate,
		      double unseen)
{
	table_set(t, R_TRIED, num_whole(rate->tried_samples));
	table_set_real(t, R_BIAS, rate->bias);
	table_set_real(t, R_RMS, rate->rms);
	table_set_real(t, R_TOP_WITHIN, rate->top_within);
	/* Nor is there an interval where allocations are counted. */
	if (unseen < 0)
		return;
	table_set_real(t, R_COVERS, rate->covers);
	if (rate->group_covers >= 0)
		table_set_real(t, R_SITE_COVERS, rate->group_covers);
}

void build_rates(struct report *r, const struct replay_input *in)
{
	struct table *t = report_add(r, REPLAY_RATES, "rates", "RATES",
				     rate_columns, R_COLUMNS);
	double unseen = replay_unseen(in->replay);
	char size[NUM_MAX];

	t->whole = true;
	/* A sample of a sample says nothing about one of everything. */
	if (in->replay->sampled)
		return;
	for (size_t i = 0; i < in->n_rates; i++) {
		const struct rate_result *rate = &in->rates[i];

		if (in->replay->options.unit == UNIT_REQUESTED)
			num_format_size(size, rate->rate);
		else
			snprintf(size, sizeof(size), "%" PRIu64, rate->rate);
		table_row(t);
		table_set_text(t, R_RATE, size);
		table_set(t, R_BYTES, rate->rate);
		table_set(t, R_SAMPLES, num_whole(rate->samples));
		table_set_real(t, R_ERROR, rate->error);
		table_set_real(t, R_TOP_ERROR, rate->top_error);
		if (unseen >= 0 || rate->rate == SAMPLER_ALL)
			table_set(t, R_SEEN, num_whole(rate->seen_bytes));
		if (in->n_seeds)
			set_tried(t, rate, unseen);
	}
}

/* ---- notes ---- */

enum { N_CODE, N_TEXT, N_COLUMNS };

static const struct column note_columns[N_COLUMNS] = {
	[N_CODE] = DATA_COLUMN("code", TEXT),
	[N_TEXT] = COLUMN("text", "", TEXT),
};

static void note_covers(struct table *t, const struct replay_input *in)
{
	double unseen = replay_unseen(in->replay);
	struct profile_figures f;
	size_t n = 0, holds = 0;

	if (!in->exact || unseen < 0 || in->metric > METRIC_ALLOCATED)
		return;
	for (size_t i = 0; i < in->sites->n; i++) {
		const struct site *s = &in->sites->sites[i];
		uint64_t exact = replay_exact_bytes(in->metric, &s->exact);

		/* What is too small to be seen says nothing. */
		if ((double)exact < unseen)
			continue;
		profile_sum_get(&s->view[replay_view(in->metric)], &f);
		n++;
		holds += estimate_covers(&f.bytes, unseen, exact);
	}
	if (!n)
		return;
	table_row(t);
	table_set_text(t, N_CODE, "covered-sites");
	table_printf(t, N_TEXT, "The interval holds the exact bytes of %zu of "
		     "%zu sites that have as much as one sample stands for; "
		     "95%% are to be expected.", holds, n);
}

/* Of a coarse rate and a small heap nothing is seen; say what would do. */
static void note_coarse(struct table *t, const struct replay_input *in)
{
	uint64_t bytes = replay_exact_bytes(in->metric,
					    &in->sites->total.exact);
	uint64_t rate = 1;

	if (!in->exact || in->replay->options.unit != UNIT_REQUESTED ||
	    in->metric > METRIC_ALLOCATED ||
	    in->replay->options.rate <= bytes / FEW_SAMPLES)
		return;
	while (rate < bytes / GOOD_SAMPLES)
		rate *= 2;
	table_row(t);
	table_set_text(t, N_CODE, "coarse-rate");
	table_printf(t, N_TEXT, "So few samples say little of sites; "
		     "--rate=%" PRIu64 "%s would be good to some 5%% of the "
		     "total.", rate >= KIB ? rate / KIB : rate,
		     rate >= KIB ? "k" : "");
}

/* The maximum of a curve with noise is one where the noise is high. */
static void note_peak(struct table *t, const struct replay_input *in)
{
	double unseen = replay_unseen(in->replay);
	const struct site *all = &in->sites->total;
	struct profile_figures f;

	if (!in->exact || unseen < 0 || in->metric != METRIC_PEAK ||
	    in->replay->options.mark != MARK_PEAK)
		return;
	profile_sum_get(&all->view[VIEW_MARKED], &f);
	if (!f.bytes.n ||
	    estimate_covers(&f.bytes, unseen, all->exact.marked_bytes))
		return;
	table_row(t);
	table_set_text(t, N_CODE, "own-peak");
	table_set_text(t, N_TEXT, "The peak is that of the estimated curve, "
		       "which is too high where the heap is level for long; "
		       "its interval does not know.  See --peak=exact.");
}

static void note_needed(struct table *t, const struct replay_input *in)
{
	char size[NUM_MAX], large[NUM_MAX];

	if (!in->needed_rate || in->replay->sampled)
		return;
	replay_rate_text(size, in, in->needed_rate);
	replay_rate_text(large, in, in->needed_large);
	table_row(t);
	table_set_text(t, N_CODE, "needed-rate");
	if (!in->n_large || in->n_large == in->n_top)
		table_printf(t, N_TEXT, "For 5%% on each of the %zu largest "
			     "sites, 19 times in 20: a rate of %s.",
			     in->n_top, size);
	else
		table_printf(t, N_TEXT, "For 5%% on each of the %zu largest "
			     "sites, 19 times in 20: a rate of %s; of %s for "
			     "the %zu that hold%s 5%% or more.", in->n_top,
			     size, large, in->n_large,
			     in->n_large == 1 ? "s" : "");
	if (!in->n_seeds)
		return;
	table_row(t);
	table_set_text(t, N_CODE, "seeds");
	table_printf(t, N_TEXT, "Rates were tried with %" PRIu64 " seeds on "
		     "the blocks that were live at the moment shown%s.",
		     in->n_seeds, replay_unseen(in->replay) < 0 ? "" :
		     "; 95% should be covered");
}

static void note_window(struct table *t, const struct replay_input *in)
{
	const struct replay *p = in->replay;
	struct replay_owned orphans;

	if (p->options.span != SPAN_WINDOW)
		return;
	orphans = replay_orphans(in);
	table_row(t);
	table_set_text(t, N_CODE, "window");
	table_printf(t, N_TEXT, "At the end of the window %" PRIu64 " of its "
		     "samples were live; %" PRIu64 " of them were freed "
		     "later, and %" PRIu64 " are orphans, of threads that "
		     "had ended.", p->profile.total.view[VIEW_LIVE].n,
		     p->later.samples, orphans.samples);
}

static void note_growth(struct table *t, const struct replay_input *in)
{
	const struct replay_options *o = &in->replay->options;
	char from[NUM_MAX], to[NUM_MAX];

	if (o->span != SPAN_GROWTH)
		return;
	num_format_duration(from, replay_seconds(in, max_u64(o->from_tick,
							     o->first_tick)));
	num_format_duration(to, replay_seconds(in, min_u64(o->to_tick,
							   in->end_tick)));
	table_row(t);
	table_set_text(t, N_CODE, "growth");
	table_printf(t, N_TEXT, "What grew is the heap at %s compared with "
		     "that at %s%s.", to, from, in->only_exact ? "" :
		     "; low and high are the ends of the estimate's interval");
}

/* What was asked for lies behind the end, which is shown instead. */
static void note_end(struct table *t, const struct replay_input *in)
{
	const struct replay_options *o = &in->replay->options;

	if (o->to_tick <= in->end_tick || o->to_tick >= UINT64_C(1) << 63)
		return;
	table_row(t);
	table_set_text(t, N_CODE, "past-end");
	table_printf(t, N_TEXT, "The trace ends before the %s asked for.",
		     o->span == SPAN_ALL ? "second that was"
					 : "seconds that were");
}

static void note_filters(struct table *t, const struct replay_input *in)
{
	const struct filters *f = in->filters;

	if (!f)
		return;
	table_row(t);
	table_set_text(t, N_CODE, "filters");
	table_printf(t, N_TEXT, "%" PRIu64 " of %" PRIu64 " frees were of "
		     "sampled blocks, of which %" PRIu64 " lived at most at a "
		     "time.  Loads are words that a free would not have "
		     "touched, on average.", f->sampled_frees, f->frees,
		     f->most_samples);
}

static void note_pauses(struct table *t, const struct replay_input *in)
{
	struct pauses_summary s;
	char sum[NUM_MAX], total[NUM_MAX];

	if (!in->pauses || in->pause_total < 0)
		return;
	pauses_sum_up(in->pauses, PAUSES_ALL, &s);
	num_format_duration(sum, s.sum);
	num_format_duration(total, in->pause_total);
	table_row(t);
	table_set_text(t, N_CODE, "pause-total");
	table_printf(t, N_TEXT, "The pauses are %s together, which is %+.3g ms "
		     "from the total of %s.", sum,
		     (s.sum - in->pause_total) * 1e3, total);
}

static void note_order(struct table *t, const struct replay *p)
{
	if (!p->lost_frees && !p->unknown_frees && !p->impossible)
		return;
	table_row(t);
	table_set_text(t, N_CODE, "contradictions");
	table_printf(t, N_TEXT, "%" PRIu64 " frees of blocks that the trace "
		     "does not have, %" PRIu64 " allocations where a block "
		     "was live, %" PRIu64 " of impossible size or place.",
		     p->unknown_frees, p->lost_frees, p->impossible);
}

/* What was allocated in all is known even so, if it was counted. */
static void note_sampled(struct table *t, const struct replay_input *in)
{
	const struct trace_info *info = trace_info(in->trace);
	char bytes[NUM_MAX];
	uint64_t blocks, sum;

	if (!in->replay->sampled && !info->counted)
		return;
	table_row(t);
	table_set_text(t, N_CODE, "sampled-recording");
	if (!info->counted) {
		table_set_text(t, N_TEXT, "The trace was sampled while it was "
			       "recorded: exact figures are not known.");
		return;
	}
	blocks = trace_counted(&info->counts, &sum);
	num_format_size(bytes, sum);
	table_printf(t, N_TEXT, "The trace was sampled while it was recorded.  "
		     "What was counted besides: %" PRIu64 " blocks of %s "
		     "allocated in all, %" PRIu64 " freed.", blocks, bytes,
		     info->counts.frees);
}

/* The browser has pages that replay refuses to print. */
static void note_unknown(struct table *t, const struct report *r,
			 const struct replay_input *in)
{
	unsigned of = 1u << REPLAY_RATES | 1u << REPLAY_SIZES;

	if (!in->replay->sampled || !(r->options->sections & of) ||
	    report_wants(r->options, REPLAY_SITES))
		return;
	table_row(t);
	table_set_text(t, N_CODE, "sample-only");
	table_set_text(t, N_TEXT, "Rates and sizes cannot be tried on a "
		       "sample: heapcore record without --rate keeps "
		       "everything.");
}

static void note_mapped(struct table *t, const struct replay *p)
{
	char peak[NUM_MAX], now[NUM_MAX], reserved[NUM_MAX];

	if (!p->mapped)
		return;
	num_format_size(peak, p->maps.peak_bytes);
	num_format_size(now, p->maps.bytes);
	num_format_size(reserved, p->maps.reserved);
	table_row(t);
	table_set_text(t, N_CODE, "mapped");
	table_printf(t, N_TEXT, "Beside the heap, the program had up to %s "
		     "mapped itself, %s at the end; without access, %s.",
		     peak, now, reserved);
}

void build_notes(struct report *r, const struct replay_input *in)
{
	const struct trace_damage *d = trace_damage(in->trace);
	struct table *t = report_add(r, REPLAY_NOTES, "notes", "NOTES",
				     note_columns, N_COLUMNS);

	t->form = TABLE_SENTENCES;
	t->whole = true;
	if (!in->only_exact) {
		note_coarse(t, in);
		note_peak(t, in);
		note_covers(t, in);
	}
	note_needed(t, in);
	note_window(t, in);
	note_growth(t, in);
	note_end(t, in);
	note_pauses(t, in);
	note_filters(t, in);
	note_unknown(t, r, in);
	note_sampled(t, in);
	note_mapped(t, in->replay);
	note_order(t, in->replay);
	if (d->first[0]) {
		table_row(t);
		table_set_text(t, N_CODE, "damage");
		table_set_text(t, N_TEXT, d->first);
	}
	if (d->lost) {
		table_row(t);
		table_set_text(t, N_CODE, "lost-events");
		table_printf(t, N_TEXT, "The recorder lost %" PRIu64
			     " events.", d->lost);
	}
}
