/* SPDX-License-Identifier: MIT */
/*
 * What the files of a trace's views share; see trace.h.
 */
#ifndef TUI_TRACE_IN_H
#define TUI_TRACE_IN_H

#include "report/replay_run.h"
#include "tui/trace.h"
#include "tui/tui.h"

enum { TRACE_VIEWS = 8 };

enum trace_pass {
	PASS_PEAK,		/* the first one */
	PASS_LIVES,		/* lifetimes by site */
	PASS_BLOCKS,		/* sizes, rates, models */
	PASS_INSTANT,		/* the time line's */
	PASSES
};

struct trace_source {
	struct trace *trace;		/* owned */
	struct frames frames;
	struct target_options options;	/* borrowed by frames */
	struct replay_run pass[PASSES];
	struct replay_input input[PASSES];
	bool exact;			/* all that can be known is */
	bool estimates;			/* and they are to be seen */
	enum replay_metric metric;	/* of pages that do not say another */
	uint64_t at, mark;		/* ticks */
	bool moved, marked;
	uint64_t made_at, made_mark;	/* of PASS_INSTANT */
	struct progress *progress;	/* borrowed */
	struct tui *tui;		/* borrowed */
};

/*
 * What build is asked for beside sections: a metric, the time line's instant,
 * only calls to one site; or 0.
 */
enum { TRACE_AT_METRIC = 0xff, TRACE_AT_INSTANT = 0x100, TRACE_AT_SITE = 16 };

/* trace_plot.c: above the tables; how many lines it takes. */
int trace_picture(void *context, struct tui *t, int y);
/* So many columns of the plot to the right, or, below 0, to the left. */
void trace_move(struct trace_source *s, const struct tui *t, int columns);

#endif
