/* SPDX-License-Identifier: MIT */
/*
 * The report on a replayed trace: its kind, its makers.
 */
#ifndef REPORT_REPLAY_H
#define REPORT_REPLAY_H

#include "base/num.h"
#include "replay/filters.h"
#include "replay/models.h"
#include "replay/pauses.h"
#include "replay/rates.h"
#include "replay/replay.h"
#include "replay/sizes.h"
#include "report/frames.h"
#include "report/report.h"
#include "report/sites.h"

extern const struct report_kind report_replay;

enum replay_section {
	REPLAY_TARGET,		/* JSON only */
	REPLAY_TOTALS,		/* JSON only */
	REPLAY_WINDOW,		/* JSON only; with --window */
	REPLAY_MOMENTS,		/* JSON only: peak, end, allocated */
	REPLAY_PAUSES,		/* with --pauses */
	REPLAY_OVERVIEW,	/* if asked for: moments side by side */
	REPLAY_TIMELINE,	/* in text a plot */
	REPLAY_GROWTH,		/* with --growth */
	REPLAY_SITES,
	REPLAY_TREE,		/* if asked for */
	REPLAY_FUNCTIONS,	/* the same */
	REPLAY_SIZES,		/* the same */
	REPLAY_LIFETIMES,
	REPLAY_RATES,		/* with several rates or seeds */
	REPLAY_MODELS,		/* if asked for */
	REPLAY_FILTERS,		/* the same */
	REPLAY_NOTES,
};
enum { REPLAY_SECTIONS = 17 };

enum replay_metric {
	METRIC_PEAK,		/* or the time of --at */
	METRIC_END,
	METRIC_ALLOCATED,
	METRIC_TEMPORARY,
	METRIC_LIFETIME,
};

/* What the report is made of. */
struct replay_input {
	struct trace *trace;
	const struct replay *replay;
	struct frames *frames;
	const struct sites *sites;
	enum replay_metric metric;
	bool exact;		/* show what is exact, too */
	bool only_exact;	/* and no estimates: then exact is set */
	bool live_only;		/* of what was freed nothing is known */
	const struct rate_result *rates;
	size_t n_rates;
	uint64_t n_seeds;
	uint64_t needed_rate;	/* for 5 % on the top sites; 0 not known */
	size_t n_top;
	uint64_t needed_large;	/* the same for those of 5 % and more */
	size_t n_large;
	uint64_t end_tick;	/* of the trace, also where a window ends */
	const struct pauses *pauses;	/* NULL: none are known */
	const struct models *models;	/* NULL: not asked for */
	const struct filters *filters;	/* NULL: not asked for */
	const struct sizes *sizes;	/* NULL: not asked for */
	uint32_t only_site;	/* index + 1: only calls to it; 0: all */
	bool redact;		/* of paths in exports only the last part */
	double pause_total;	/* what somebody else has counted; < 0: - */
};

bool replay_build(struct report *r, const struct replay_input *in,
		  struct err *err) MUST_CHECK;

/* The table of sites, for a section of this or of another report. */
void replay_add_sites(struct report *r, unsigned section, const char *name,
		      const char *title, const struct replay_input *in);

/* Which view of the sampler and which exact bytes a metric is about. */
enum profile_view replay_view(enum replay_metric metric);
uint64_t replay_exact_bytes(enum replay_metric metric,
			    const struct replay_site *s);
uint64_t replay_exact_blocks(enum replay_metric metric,
			     const struct replay_site *s);

/* build_rates.c */
void build_rates(struct report *r, const struct replay_input *in);
void build_notes(struct report *r, const struct replay_input *in);

/* build_growth.c: between two instants; nothing without any */
void build_growth(struct report *r, const struct replay_input *in);
void build_window(struct report *r, const struct replay_input *in);
/* What the threads that had ended left live in the window. */
struct replay_owned replay_orphans(const struct replay_input *in);

/* build_pauses.c; in->pauses is not NULL */
void build_pauses(struct report *r, const struct replay_input *in);
double replay_pauses_end(const struct replay_input *in);

/* build_models.c: nothing without in->models, in->filters */
void build_models(struct report *r, const struct replay_input *in);
void build_filters(struct report *r, const struct replay_input *in);

/* build_functions.c: by function, with what they call; as a tree of calls */
void build_functions(struct report *r, const struct replay_input *in);
void build_tree(struct report *r, const struct replay_input *in);

/* build_overview.c: nothing without in->sizes */
void build_overview(struct report *r, const struct replay_input *in);
void build_sizes(struct report *r, const struct replay_input *in);

/* Estimates and exact values of a site for columns from bytes and blocks on. */
void replay_figures(struct table *t, size_t bytes, size_t blocks,
		    const struct replay_input *in, enum replay_metric metric,
		    const struct site *s);

/* replay_text.c: the lines above the tables, the last with the plot. */
void replay_heads(struct report *r, const struct replay_input *in);

/* The totals that --fail-if knows: what is exact where that is known. */
enum { REPLAY_TOTAL_COLUMNS = 12 };
const struct column *replay_total_columns(size_t *ret_n);
void replay_totals(const struct replay_input *in,
		   struct cell ret[REPLAY_TOTAL_COLUMNS]);

/* Recording ended before the program: no room, --max, or seccomp(2). */
bool replay_stopped_early(const struct trace *t);
/* Nothing is missing of the trace. */
bool replay_complete(const struct trace *t);

/* Weight of a block that was not seen; negative: not known. */
double replay_unseen(const struct replay *r);

/* "512K", "64 words", "1000 allocations" */
void replay_rate_text(char ret[NUM_MAX], const struct replay_input *in,
		      uint64_t rate);

/* A tick in seconds since the start of the trace. */
double replay_seconds(const struct replay_input *in, uint64_t tick);

#endif
