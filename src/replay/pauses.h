/* SPDX-License-Identifier: MIT */
/*
 * Pauses of a garbage collector, or of anything that stops a program.
 *
 * A *pause* has a start and a duration, in seconds of the trace.  A *full* one
 * collected everything.  The *mutator* is the program itself: what share of a
 * window of time it has at the worst place is its *minimum utilisation* for
 * that length, which is 0 up to the longest pause.
 *
 * A file has one JSON object a line: a start ("start", "at" or "ts"), a
 * duration ("duration" or "dur"), perhaps "full".  Of objects with a "kind",
 * only those of kind "pause" count.  Anything else is an error, which names
 * its line.
 */
#ifndef REPLAY_PAUSES_H
#define REPLAY_PAUSES_H

#include "base/err.h"
#include "base/types.h"
#include "replay/trace_read.h"

struct pause {
	double start, duration;
	bool full;
};

/* Bounds of what a file may claim. */
enum { PAUSES_MAX = 1 << 24, PAUSE_LINE_MAX = 1 << 16 };
#define PAUSE_SECONDS_MAX 1e12

struct pauses {
	struct pause *list;	/* owned; by start once read */
	size_t n, cap;
};

/* Times are counted in units of so many seconds, from at on. */
struct pauses_options {
	double unit;
	double at;
};

bool pauses_read(struct pauses *p, const char *path,
		 const struct pauses_options *options, struct err *err)
	MUST_CHECK;
/* Those that the trace itself has. */
void pauses_of_trace(struct pauses *p, const struct trace *t);
void pauses_fini(struct pauses *p);
/* By start; for those who fill the list. */
void pauses_sort(struct pauses *p);

enum pauses_which { PAUSES_ALL, PAUSES_FULL, PAUSES_OTHER };

/* By nearest rank: the ceil(q n)-th smallest. */
struct pauses_summary {
	size_t n;
	double p50, p90, p99, max, sum;
};
void pauses_sum_up(const struct pauses *p, enum pauses_which which,
		   struct pauses_summary *ret);

/* The same rule for any values, which are sorted; 0 if there are none. */
double rank_of(const double *sorted, size_t n, double q);
void sort_values(double *values, size_t n);

/*
 * The least share of the mutator in any window of so many seconds between 0
 * and end; pauses that overlap count once.  O(n log n).
 */
double pauses_utilisation(const struct pauses *p, double window, double end);

#endif
