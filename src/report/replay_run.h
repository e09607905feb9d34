/* SPDX-License-Identifier: MIT */
/*
 * One pass over a trace, with all that a report can be made of then: what the
 * command line asks for at once, and the browser page by page.
 */
#ifndef REPORT_REPLAY_RUN_H
#define REPORT_REPLAY_RUN_H

#include "base/progress.h"
#include "report/replay.h"

enum { RUN_MAX_RATES = 32 };

struct replay_run {
	/* Set by the caller; what the trace knows: replay_run_of(). */
	struct replay_options options;
	size_t depth;		/* frames that make a site */
	uint64_t rates[RUN_MAX_RATES];
	size_t n_rates;
	uint64_t n_seeds;
	bool wants_rates, wants_models, wants_filters, wants_sizes;
	struct progress *progress;	/* borrowed; or NULL */
	/* Filled; owned: */
	struct replay replay;
	struct sites sites;
	struct models models;
	struct filters filters;
	struct sizes sizes;
	struct rate_result results[RUN_MAX_RATES];
	bool has_models, has_filters, done;
};

/*
 * The clock and the stacks of the options; of a trace that is a sample, also
 * the rate, whatever it was.
 */
void replay_run_of(struct replay_run *run, struct trace *t);
/* A second of the trace as a tick; HUGE_VAL: behind all. */
uint64_t replay_tick(const struct replay_options *o, double seconds);

/*
 * From the start of the trace to its end.  Then in has what was found, but for
 * metric, exact and pauses, which are the caller's and are set before.
 */
void replay_run(struct replay_run *run, struct trace *t, struct frames *f,
		struct replay_input *in);
/* As if it had not been run. */
void replay_run_fini(struct replay_run *run);

#endif
