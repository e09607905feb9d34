/* SPDX-License-Identifier: MIT */
#include "report/replay.h"

#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/sort.h"
#include "report/estimate.h"

#define IN_BOTH (SECTION_IN_TEXT | SECTION_IN_JSON)
#define JSON_ONLY (SECTION_IN_JSON | SECTION_NO_WORD)

static const struct report_section words[REPLAY_SECTIONS] = {
	[REPLAY_TARGET] = { "target", JSON_ONLY | SECTION_ALWAYS_JSON },
	[REPLAY_TOTALS] = { "totals", JSON_ONLY },
	[REPLAY_WINDOW] = { "window", JSON_ONLY },
	[REPLAY_MOMENTS] = { "moments", JSON_ONLY },
	[REPLAY_PAUSES] = { "pauses", IN_BOTH },
	[REPLAY_OVERVIEW] = { "overview", 0 },
	[REPLAY_TIMELINE] = { "timeline", SECTION_IN_JSON },
	[REPLAY_GROWTH] = { "growth", IN_BOTH },
	[REPLAY_SITES] = { "sites", IN_BOTH },
	[REPLAY_TREE] = { "tree", 0 },
	[REPLAY_FUNCTIONS] = { "functions", 0 },
	[REPLAY_SIZES] = { "sizes", 0 },
	[REPLAY_LIFETIMES] = { "lifetimes", IN_BOTH },
	[REPLAY_RATES] = { "rates", IN_BOTH },
	[REPLAY_MODELS] = { "models", 0 },
	[REPLAY_FILTERS] = { "filters", 0 },
	[REPLAY_NOTES] = { "notes", IN_BOTH },
};

const struct report_kind report_replay = {
	.schema = "heapcore-replay/1",
	.sections = words,
	.n_sections = REPLAY_SECTIONS,
};

#define DATA .flags = COLUMN_NO_TEXT
#define FINE_DATA .flags = COLUMN_NO_TEXT | COLUMN_FINE
#define TEXT_ONLY .flags = COLUMN_NO_DATA

enum profile_view replay_view(enum replay_metric metric)
{
	switch (metric) {
	case METRIC_PEAK:
		return VIEW_MARKED;
	case METRIC_END:
		return VIEW_LIVE;
	default:
		return VIEW_ALLOCATED;
	}
}

uint64_t replay_exact_bytes(enum replay_metric metric,
			    const struct replay_site *s)
{
	switch (replay_view(metric)) {
	case VIEW_MARKED:
		return s->marked_bytes;
	case VIEW_LIVE:
		return s->live_bytes;
	default:
		return s->allocated_bytes;
	}
}

uint64_t replay_exact_blocks(enum replay_metric metric,
			     const struct replay_site *s)
{
	switch (replay_view(metric)) {
	case VIEW_MARKED:
		return s->marked_blocks;
	case VIEW_LIVE:
		return s->live_blocks;
	default:
		return s->allocations;
	}
}

double replay_unseen(const struct replay *r)
{
	double rate = r->options.rate > SAMPLER_ALL
		? (double)r->options.rate : 0;

	switch (r->options.unit) {
	case UNIT_REQUESTED:
	case UNIT_USABLE:
		return rate;
	case UNIT_WORDS:
		return 8 * rate;
	case UNIT_COUNT:
		break;
	}
	return -1;
}

double replay_seconds(const struct replay_input *in, uint64_t tick)
{
	return (double)trace_ns(in->trace, tick) / 1e9;
}

bool replay_stopped_early(const struct trace *t)
{
	const struct trace_rows *ends = &trace_info(t)->ends;
	uint64_t how = ends->n ? ends->rows[0].value[0] : TRACE_END_EXIT;

	return how == TRACE_END_FULL || how == TRACE_END_MAX ||
	       how == TRACE_END_SECCOMP;
}

bool replay_complete(const struct trace *t)
{
	const struct trace_damage *d = trace_damage(t);

	return !d->headers && !d->chunks && !d->records && !d->lost &&
	       !d->cut && !replay_stopped_early(t);
}

/* ---- what was replayed ---- */

enum {
	T_PATH, T_PROGRAM, T_PID, T_SECONDS, T_EVENTS, T_THREADS, T_STACKS,
	T_RATE, T_UNIT, T_ESTIMATOR, T_SEED, T_SAMPLES, T_FREED, T_RECORDED,
	T_COLUMNS
};

static const struct column target_columns[T_COLUMNS] = {
	[T_PATH] = COLUMN("path", "", TEXT, .flags = COLUMN_PATH),
	[T_PROGRAM] = COLUMN("program", "", TEXT, .flags = COLUMN_PATH),
	[T_PID] = COLUMN("pid", "", COUNT),
	[T_SECONDS] = COLUMN("duration_s", "", SECONDS, .flags = COLUMN_FINE),
	[T_EVENTS] = COLUMN("events", "", COUNT),
	[T_THREADS] = COLUMN("threads", "", COUNT),
	[T_STACKS] = COLUMN("stacks", "", COUNT),
	[T_RATE] = COLUMN("rate", "", COUNT),
	[T_UNIT] = COLUMN("by", "", TEXT),
	[T_ESTIMATOR] = COLUMN("estimator", "", TEXT),
	[T_SEED] = COLUMN("seed", "", COUNT),
	[T_SAMPLES] = COLUMN("samples", "", COUNT),
	[T_FREED] = COLUMN("freed_samples", "", COUNT),
	[T_RECORDED] = COLUMN("sampled_recording", "", FLAG),
};

static void build_target(struct report *r, const struct replay_input *in)
{
	static const char *const units[] = { "bytes", "usable", "words",
					     "count" };
	static const char *const estimators[] = { "ht", "tcmalloc",
						  "statmemprof" };
	const struct replay *p = in->replay;
	const struct trace_info *info = trace_info(in->trace);
	const char *program = trace_meta_value(in->trace, "program");
	struct table *t = report_add(r, REPLAY_TARGET, "target", "TARGET",
				     target_columns, T_COLUMNS);

	t->form = TABLE_OBJECT;
	table_row(t);
	table_set_text(t, T_PATH, info->path);
	if (program)
		table_set_text(t, T_PROGRAM, program);
	if (info->pid)
		table_set(t, T_PID, info->pid);
	table_set_real(t, T_SECONDS, replay_seconds(in, in->end_tick));
	table_set(t, T_EVENTS, p->n_events);
	table_set(t, T_THREADS, info->n_threads);
	table_set(t, T_STACKS, info->n_stacks);
	table_set(t, T_RATE, p->options.rate);
	table_set_text(t, T_UNIT, units[p->options.unit]);
	table_set_text(t, T_ESTIMATOR, estimators[p->options.estimator]);
	table_set(t, T_SEED, p->options.seed);
	table_set(t, T_SAMPLES, p->profile.total.view[VIEW_ALLOCATED].n);
	table_set(t, T_FREED, p->profile.n_freed);
	table_set(t, T_RECORDED, p->sampled);
}

enum {
	A_ALLOCATIONS, A_BYTES, A_FREES, A_TEMPORARY, A_TEMPORARY_BYTES,
	A_LOST_FREES, A_UNKNOWN_FREES, A_IMPOSSIBLE, A_LOST, A_COUNTED,
	A_COUNTED_BYTES, A_COUNTED_FREES, A_MAPPED, A_MAPPED_PEAK, A_RESERVED,
	A_COLUMNS
};

static const struct column totals_columns[A_COLUMNS] = {
	[A_ALLOCATIONS] = COLUMN("allocations", "", COUNT),
	[A_BYTES] = COLUMN("allocated_bytes", "", BYTES),
	[A_FREES] = COLUMN("frees", "", COUNT),
	[A_TEMPORARY] = COLUMN("temporary", "", COUNT),
	[A_TEMPORARY_BYTES] = COLUMN("temporary_bytes", "", BYTES),
	[A_LOST_FREES] = COLUMN("lost_frees", "", COUNT),
	[A_UNKNOWN_FREES] = COLUMN("unknown_frees", "", COUNT),
	[A_IMPOSSIBLE] = COLUMN("impossible", "", COUNT),
	[A_LOST] = COLUMN("lost_events", "", COUNT),
	[A_COUNTED] = COLUMN("counted_allocations", "", COUNT),
	[A_COUNTED_BYTES] = COLUMN("counted_bytes", "", BYTES),
	[A_COUNTED_FREES] = COLUMN("counted_frees", "", COUNT),
	[A_MAPPED] = COLUMN("mapped_bytes", "", BYTES),
	[A_MAPPED_PEAK] = COLUMN("mapped_peak_bytes", "", BYTES),
	[A_RESERVED] = COLUMN("reserved_bytes", "", BYTES),
};

static void build_totals(struct report *r, const struct replay_input *in)
{
	const struct replay *p = in->replay;
	struct table *t = report_add(r, REPLAY_TOTALS, "totals", "TOTALS",
				     totals_columns, A_COLUMNS);

	t->form = TABLE_OBJECT;
	table_row(t);
	table_set(t, A_ALLOCATIONS, p->allocations);
	table_set(t, A_BYTES, p->allocated_bytes);
	table_set(t, A_FREES, p->frees);
	table_set(t, A_TEMPORARY, p->temporary);
	table_set(t, A_TEMPORARY_BYTES, p->temporary_bytes);
	table_set(t, A_LOST_FREES, p->lost_frees);
	table_set(t, A_UNKNOWN_FREES, p->unknown_frees);
	table_set(t, A_IMPOSSIBLE, p->impossible);
	table_set(t, A_LOST, trace_damage(in->trace)->lost);
	if (trace_info(in->trace)->counted) {
		const struct trace_counts *c = &trace_info(in->trace)->counts;
		uint64_t bytes;

		table_set(t, A_COUNTED, trace_counted(c, &bytes));
		table_set(t, A_COUNTED_BYTES, bytes);
		table_set(t, A_COUNTED_FREES, c->frees);
	}
	if (p->mapped) {
		table_set(t, A_MAPPED, p->maps.bytes);
		table_set(t, A_MAPPED_PEAK, p->maps.peak_bytes);
		table_set(t, A_RESERVED, p->maps.reserved);
	}
}

/* ---- moments ---- */

enum {
	M_BYTES, M_BLOCKS = M_BYTES + ESTIMATE_COLUMNS,
	M_SAMPLES = M_BLOCKS + ESTIMATE_COLUMNS, M_AT, M_EXACT_AT, M_COLUMNS
};

static const struct column moment_columns[M_COLUMNS] = {
	ESTIMATE_OF_BYTES(M_BYTES, ESTIMATE_SHOWN, ESTIMATE_SHOWN),
	ESTIMATE_OF_BLOCKS(M_BLOCKS, ESTIMATE_SHOWN, ESTIMATE_SHOWN),
	[M_SAMPLES] = COLUMN("samples", "", COUNT),
	[M_AT] = COLUMN("at_s", "", SECONDS, .flags = COLUMN_FINE),
	[M_EXACT_AT] = COLUMN("exact_at_s", "", SECONDS,
			      .flags = COLUMN_FINE),
};

void replay_figures(struct table *t, size_t bytes, size_t blocks,
		    const struct replay_input *in, enum replay_metric metric,
		    const struct site *s)
{
	uint64_t exact[2] = {
		replay_exact_bytes(metric, &s->exact),
		replay_exact_blocks(metric, &s->exact),
	};
	struct profile_figures f;

	profile_sum_get(&s->view[replay_view(metric)], &f);
	estimate_set(t, bytes, &f.bytes, replay_unseen(in->replay),
		     in->exact ? &exact[0] : NULL);
	estimate_set(t, blocks, &f.blocks, -1, in->exact ? &exact[1] : NULL);
}

static struct table *build_moment(struct report *r,
				  const struct replay_input *in,
				  enum replay_metric metric, const char *name)
{
	const struct site *all = &in->sites->total;
	struct table *t = report_add(r, REPLAY_MOMENTS, name, "",
				     moment_columns, M_COLUMNS);

	t->form = TABLE_OBJECT;
	table_row(t);
	replay_figures(t, M_BYTES, M_BLOCKS, in, metric, all);
	table_set(t, M_SAMPLES, all->view[replay_view(metric)].n);
	return t;
}

static void build_moments(struct report *r, const struct replay_input *in)
{
	const struct replay *p = in->replay;
	bool own = p->options.mark == MARK_PEAK;
	bool at = p->options.mark == MARK_TIME;
	struct table *t = build_moment(r, in, METRIC_PEAK, at ? "at" : "peak");

	table_set_real(t, M_AT, replay_seconds(in,
		own ? p->estimated_peak.tick : p->mark.tick));
	if (in->exact)
		table_set_real(t, M_EXACT_AT,
			       replay_seconds(in, p->mark.tick));
	t = build_moment(r, in, METRIC_END, "end");
	table_set_real(t, M_AT, replay_seconds(in, p->last_tick));
	build_moment(r, in, METRIC_ALLOCATED, "allocated");
}

/* ---- time line ---- */

enum { L_AT, L_TEXT, L_ESTIMATE, L_EXACT, L_MAPPED, L_COLUMNS };

static const struct column line_columns[L_COLUMNS] = {
	[L_AT] = COLUMN("at_s", "", SECONDS, FINE_DATA),
	[L_TEXT] = COLUMN("until", "", TEXT, TEXT_ONLY, .width = 12),
	[L_ESTIMATE] = COLUMN("estimate_bytes", "estimate", BYTES,
			      .width = 12),
	[L_EXACT] = COLUMN("exact_bytes", "exact", BYTES, .width = 12),
	[L_MAPPED] = DATA_COLUMN("mapped_bytes", BYTES),
};

static void build_timeline(struct report *r, const struct replay_input *in)
{
	const struct timeline *line = &in->replay->timeline;
	struct table *t = report_add(r, REPLAY_TIMELINE, "timeline",
				     "LIVE HEAP", line_columns, L_COLUMNS);
	char text[NUM_MAX];
	double at;

	t->more = "more";
	if (in->only_exact)
		table_hide(t, L_ESTIMATE);
	for (size_t i = 0; i < timeline_steps(line); i++) {
		uint64_t end = line->start +
			       (((uint64_t)i + 1) << line->shift);

		table_row(t);
		at = replay_seconds(in, min_u64(end, in->replay->last_tick));
		num_format_duration(text, at);
		table_set_real(t, L_AT, at);
		table_printf(t, L_TEXT, "until %s", text);
		table_set(t, L_ESTIMATE, line->max[i][1]);
		if (in->exact)
			table_set(t, L_EXACT, line->max[i][0]);
		if (in->replay->mapped)
			table_set(t, L_MAPPED, line->max[i][2]);
	}
}

/* ---- sites ---- */

enum {
	S_SITE,
	S_BYTES, S_SHARE = S_BYTES + ESTIMATE_COLUMNS,
	S_EXACT_SHARE, S_SAMPLES, S_BLOCKS,
	S_ALLOCATIONS = S_BLOCKS + ESTIMATE_COLUMNS,
	S_ALLOCATED, S_TEMPORARY, S_TEMPORARY_SHARE, S_MEAN_LIFE,
	S_FREED, S_ALIVE, S_ALIVE_SHARE, S_P50, S_P90, S_P99,
	S_PAIRS_P50, S_PAIRS_P90, S_PAIRS_P99, S_TEXT_P50, S_TEXT_P90,
	S_TEXT_P99, S_HELD, S_COLUMNS
};

static const struct column site_columns[S_COLUMNS] = {
	[S_SITE] = COLUMN("site", "", TEXT, .width = 26),
	ESTIMATE_OF_BYTES(S_BYTES, ESTIMATE_SHOWN, ESTIMATE_SHOWN),
	[S_SHARE] = COLUMN("share", "share", SHARE,
			   .flags = COLUMN_OF_TOTAL, .width = 8,
			   .part = S_BYTES + 1, .whole = S_BYTES + 1),
	[S_EXACT_SHARE] = COLUMN("exact_share", "share", SHARE,
				 .flags = COLUMN_OF_TOTAL | COLUMN_BAR,
				 .width = 8,
				 .part = S_BYTES + ESTIMATE_EXACT + 1,
				 .whole = S_BYTES + ESTIMATE_EXACT + 1),
	[S_SAMPLES] = COLUMN("samples", "samples", COUNT,
			     .flags = COLUMN_NO_TEXT | COLUMN_SUM),
	ESTIMATE_OF_BLOCKS(S_BLOCKS, ESTIMATE_HIDDEN, ESTIMATE_HIDDEN),
	[S_ALLOCATIONS] = COLUMN("allocations", "allocations", COUNT,
				 .flags = COLUMN_SUM, .width = 13),
	[S_ALLOCATED] = COLUMN("allocated_bytes", "allocated", BYTES,
			       .flags = COLUMN_SUM, .width = 11),
	[S_TEMPORARY] = COLUMN("temporary", "temporary", COUNT,
			       .flags = COLUMN_SUM, .width = 11),
	[S_TEMPORARY_SHARE] = COLUMN("temporary_share", "of its", SHARE,
				     .width = 8, .part = S_TEMPORARY + 1,
				     .whole = S_ALLOCATIONS + 1),
	[S_MEAN_LIFE] = DATA_COLUMN("mean_life_ms", COUNT),
	[S_FREED] = COLUMN("freed", "", COUNT, DATA | COLUMN_SUM),
	[S_ALIVE] = COLUMN("alive", "", COUNT, DATA | COLUMN_SUM),
	[S_ALIVE_SHARE] = COLUMN("alive_share", "alive", SHARE, .width = 8,
				 .part = S_ALIVE + 1,
				 .whole = S_ALLOCATIONS + 1),
	[S_P50] = COLUMN("p50_s", "", SECONDS, FINE_DATA),
	[S_P90] = COLUMN("p90_s", "", SECONDS, FINE_DATA),
	[S_P99] = COLUMN("p99_s", "", SECONDS, FINE_DATA),
	[S_PAIRS_P50] = COLUMN("pairs_p50_s", "", SECONDS, FINE_DATA),
	[S_PAIRS_P90] = COLUMN("pairs_p90_s", "", SECONDS, FINE_DATA),
	[S_PAIRS_P99] = COLUMN("pairs_p99_s", "", SECONDS, FINE_DATA),
	[S_TEXT_P50] = COLUMN("half", "p50", TEXT, TEXT_ONLY, .width = 9),
	[S_TEXT_P90] = COLUMN("most", "p90", TEXT, TEXT_ONLY, .width = 9),
	[S_TEXT_P99] = COLUMN("nearly", "p99", TEXT, TEXT_ONLY, .width = 9),
	[S_HELD] = COLUMN("byte_seconds", "byte-seconds", COUNT,
			  .flags = COLUMN_SUM, .width = 14),
};

#define BIT(column) (UINT64_C(1) << (column))

/* What the text shows for a metric; JSON and CSV have everything. */
static uint64_t hidden_columns(const struct replay_input *in)
{
	const uint64_t estimates = BIT(S_BYTES + ESTIMATE_VALUE) |
		BIT(S_BYTES + ESTIMATE_BOUND) |
		BIT(S_BYTES + ESTIMATE_ERROR) | BIT(S_SHARE);
	const uint64_t exact = BIT(S_BYTES + ESTIMATE_EXACT) |
		BIT(S_EXACT_SHARE);
	const uint64_t temporary = BIT(S_TEMPORARY) | BIT(S_TEMPORARY_SHARE);
	const uint64_t life = BIT(S_HELD) | BIT(S_ALIVE_SHARE) |
		UINT64_C(7) << S_TEXT_P50;
	const uint64_t sums = BIT(S_ALLOCATIONS) | BIT(S_ALLOCATED);

	if (in->metric == METRIC_TEMPORARY)
		return estimates | exact | life;
	if (in->metric == METRIC_LIFETIME)
		return estimates | exact | temporary | sums;
	if (in->only_exact && in->metric == METRIC_ALLOCATED)
		return estimates | temporary | life | BIT(S_ALLOCATED);
	if (in->only_exact)
		return estimates | temporary | life;
	return temporary | life | sums |
	       (in->exact ? BIT(S_SHARE)
			  : exact | BIT(S_BYTES + ESTIMATE_ERROR));
}

static const char *site_title(const struct replay_input *in)
{
	switch (in->metric) {
	case METRIC_PEAK:
		return in->replay->options.mark == MARK_TIME
			? "WHO HOLDS THE HEAP" : "WHO HOLDS THE PEAK";
	case METRIC_END:
		return "WHO HOLDS THE END";
	case METRIC_ALLOCATED:
		return "WHO ALLOCATES";
	case METRIC_TEMPORARY:
		return "WHO FREES AT ONCE";
	case METRIC_LIFETIME:
		return "WHO HOLDS FOR LONG";
	}
	return "";
}

/* "1.2 ms"; "> 3 s": longer than can be known. */
static void set_duration(struct table *t, size_t column, double seconds,
			 double looked)
{
	char text[NUM_MAX];

	num_format_duration(text, seconds < 0 ? looked : seconds);
	table_printf(t, column, "%s%s", seconds < 0 ? "> " : "", text);
}

static void set_lives(struct table *t, const struct replay_input *in,
		      const struct site_lives *l)
{
	const struct replay *p = in->replay;
	double tick = p->options.ns_per_tick / 1e9;
	uint64_t from = p->options.span == SPAN_WINDOW ? p->options.from_tick
						       : p->options.first_tick;

	table_set(t, S_FREED, l->freed);
	table_set(t, S_ALIVE, l->alive);
	for (unsigned i = 0; i < SITE_QUANTILES; i++) {
		if (l->quantile[i] >= 0)
			table_set_real(t, S_P50 + i, l->quantile[i] * tick);
		if (l->pairs[i] >= 0)
			table_set_real(t, S_PAIRS_P50 + i,
				       l->pairs[i] * tick);
		set_duration(t, S_TEXT_P50 + i, l->quantile[i] * tick,
			     (double)(p->last_tick - from) * tick);
	}
}

static void set_site(struct table *t, const struct replay_input *in,
		     const struct site *s)
{
	double ns = in->replay->options.ns_per_tick;

	replay_figures(t, S_BYTES, S_BLOCKS, in, in->metric, s);
	table_set(t, S_SAMPLES, s->view[replay_view(in->metric)].n);
	if (!in->exact)
		return;
	table_set(t, S_ALLOCATIONS, s->exact.allocations);
	table_set(t, S_ALLOCATED, s->exact.allocated_bytes);
	table_set(t, S_TEMPORARY, s->exact.temporary);
	if (in->replay->lives && s->lives.freed + s->lives.alive)
		set_lives(t, in, &s->lives);
	if (!in->replay->lives || !s->life.blocks)
		return;
	table_set(t, S_MEAN_LIFE, num_whole(s->life.ticks * ns / 1e6 /
					(double)s->life.blocks));
	table_set(t, S_HELD, num_whole(s->life.byte_ticks * ns / 1e9));
}

/* Sites by the metric, largest first: by the truth where it is known. */
struct ranked {
	double value, estimate;
	const struct site *site;
};

static struct ranked rank(const struct replay_input *in, const struct site *s)
{
	struct profile_figures f;
	struct ranked ret = { .site = s };

	profile_sum_get(&s->view[replay_view(in->metric)], &f);
	ret.estimate = f.bytes.value;
	if (in->metric == METRIC_TEMPORARY)
		ret.value = (double)s->exact.temporary;
	else if (in->metric == METRIC_LIFETIME)
		ret.value = s->life.byte_ticks;
	else if (in->exact)
		ret.value = (double)replay_exact_bytes(in->metric, &s->exact);
	else
		ret.value = f.bytes.value;
	return ret;
}

static int compare_ranked(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	return ORDER(y->value, x->value) ?:
	       ORDER(y->estimate, x->estimate) ?:
	       strcmp(x->site->name, y->site->name);
}

static struct ranked *rank_all(const struct replay_input *in)
{
	const struct sites *s = in->sites;
	struct ranked *ret = mem_alloc((s->n + 1) * sizeof(*ret));

	for (size_t i = 0; i < s->n; i++)
		ret[i] = rank(in, &s->sites[i]);
	SORT(ret, s->n, compare_ranked);
	return ret;
}

/*
 * Text without an order or filter of the user's: the rest is one row, whose
 * bound is that of the sum.
 */
static bool sums_rest(const struct report *r)
{
	return r->options->format == REPORT_TEXT && !r->options->sort &&
	       !r->options->row_filter &&
	       r->options->rows != TABLE_ALL_ROWS;
}

static void add_sites(struct report *r, struct table *t,
		      const struct replay_input *in,
		      const struct ranked *ranked)
{
	bool sums = sums_rest(r);
	struct site rest = { .name = NULL };
	size_t n_rest = 0;

	for (size_t i = 0; i < in->sites->n; i++) {
		const struct site *s = ranked[i].site;

		/* Nothing then, and nothing seen. */
		if (sums && !ranked[i].value && !ranked[i].estimate)
			continue;
		if (sums && t->n_rows >= r->options->rows) {
			sites_add(&rest, s);
			n_rest++;
			continue;
		}
		table_row(t);
		table_set_text(t, S_SITE, s->name);
		set_site(t, in, s);
	}
	if (n_rest) {
		table_row(t);
		table_printf(t, S_SITE, "%zu other site%s", n_rest,
			     n_rest == 1 ? "" : "s");
		set_site(t, in, &rest);
	}
}

void replay_add_sites(struct report *r, unsigned section, const char *name,
		      const char *title, const struct replay_input *in)
{
	struct table *t = report_add(r, section, name, title, site_columns,
				     S_COLUMNS);
	AUTO_FREE struct ranked *ranked = rank_all(in);

	t->more = "other sites";
	t->whole = sums_rest(r);
	t->hidden = hidden_columns(in);
	if (in->only_exact)
		table_retitle(t, S_BYTES + ESTIMATE_EXACT, "bytes");
	add_sites(r, t, in, ranked);
	table_total_row(t);
	table_set_text(t, S_SITE, "total");
	set_site(t, in, &in->sites->total);
}

static void build_sites(struct report *r, const struct replay_input *in)
{
	replay_add_sites(r, REPLAY_SITES, "sites", site_title(in), in);
}

/* ---- lifetimes ---- */

enum { F_AGE, F_MIN, F_BLOCKS, F_BLOCKS_SHARE, F_BYTES, F_BYTES_SHARE,
	F_COLUMNS };

static const struct column life_columns[F_COLUMNS] = {
	[F_AGE] = COLUMN("lifetime", "", TEXT, .width = 28),
	[F_MIN] = COLUMN("min_s", "", SECONDS,
			 .flags = COLUMN_NO_TEXT | COLUMN_FINE),
	[F_BLOCKS] = COLUMN("blocks", "blocks", COUNT, .flags = COLUMN_SUM,
			    .width = 12),
	[F_BLOCKS_SHARE] = COLUMN("blocks_share", "of all", SHARE,
				  .flags = COLUMN_OF_TOTAL, .width = 8,
				  .part = F_BLOCKS + 1,
				  .whole = F_BLOCKS + 1),
	[F_BYTES] = COLUMN("bytes", "bytes", BYTES, .flags = COLUMN_SUM,
			   .width = 10),
	[F_BYTES_SHARE] = COLUMN("bytes_share", "of all", SHARE,
				 .flags = COLUMN_OF_TOTAL, .width = 8,
				 .part = F_BYTES + 1, .whole = F_BYTES + 1),
};

static const char *age_name(unsigned step)
{
	static const char *const names[LIFE_STEPS] = {
		"below 1 us", "1 us - 10 us", "10 us - 100 us",
		"100 us - 1 ms", "1 ms - 10 ms", "10 ms - 100 ms",
		"100 ms - 1 s", "1 s - 10 s", "10 s - 100 s",
		"100 s - 1000 s", "1000 s - 10000 s", "10000 s and more",
	};

	return names[step];
}

static void build_lifetimes(struct report *r, const struct replay_input *in)
{
	const struct replay *p = in->replay;
	const char *title = in->only_exact ? "LIFETIME" : "LIFETIME, exact";
	struct table *t = report_add(r, REPLAY_LIFETIMES, "lifetimes", title,
				     life_columns, F_COLUMNS);

	t->whole = true;
	for (unsigned i = 0; i < LIFE_STEPS && in->exact; i++) {
		if (!p->ages[i].blocks)
			continue;
		table_row(t);
		table_set_text(t, F_AGE, age_name(i));
		table_set_real(t, F_MIN, replay_age_start(i));
		table_set(t, F_BLOCKS, p->ages[i].blocks);
		table_set(t, F_BYTES, p->ages[i].bytes);
	}
	if (!in->exact || (!p->live_blocks && !t->n_rows))
		return;
	table_row(t);
	table_set_text(t, F_AGE, p->options.span == SPAN_WINDOW
		       ? "longer than the window" : "never freed");
	table_set(t, F_BLOCKS, p->live_blocks);
	table_set(t, F_BYTES, p->live_bytes);
	table_add_total(t);
}

static void (*const builders[REPLAY_SECTIONS])(struct report *r,
		const struct replay_input *in) = {
	[REPLAY_TARGET] = build_target,
	[REPLAY_TOTALS] = build_totals,
	[REPLAY_WINDOW] = build_window,
	[REPLAY_MOMENTS] = build_moments,
	[REPLAY_PAUSES] = build_pauses,
	[REPLAY_OVERVIEW] = build_overview,
	[REPLAY_TIMELINE] = build_timeline,
	[REPLAY_GROWTH] = build_growth,
	[REPLAY_SITES] = build_sites,
	[REPLAY_TREE] = build_tree,
	[REPLAY_FUNCTIONS] = build_functions,
	[REPLAY_SIZES] = build_sizes,
	[REPLAY_LIFETIMES] = build_lifetimes,
	[REPLAY_RATES] = build_rates,
	[REPLAY_MODELS] = build_models,
	[REPLAY_FILTERS] = build_filters,
	[REPLAY_NOTES] = build_notes,
};

bool replay_build(struct report *r, const struct replay_input *in,
		  struct err *err)
{
	replay_heads(r, in);
	r->complete = replay_complete(in->trace);
	for (unsigned i = 0; i < REPLAY_SECTIONS; i++)
		if (report_wants(r->options, i))
			builders[i](r, in);
	return report_finish(r, err);
}
