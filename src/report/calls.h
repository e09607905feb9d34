/* SPDX-License-Identifier: MIT */
/*
 * The tree of calls that led to allocations: a node for each way from the
 * start of a thread to a function.
 */
#ifndef REPORT_CALLS_H
#define REPORT_CALLS_H

#include "report/replay.h"

/* Exact bytes and the estimate by a metric. */
struct call_sum {
	uint64_t exact, temporary;
	struct profile_sum sum;
};

void call_sum_of(struct call_sum *ret, const struct site *s,
		 enum replay_metric metric);

struct call {
	uint32_t function;	/* index in frames */
	uint32_t depth;		/* 0: what calls are shown from */
	uint32_t parent;	/* index in the list; itself at depth 0 */
	struct call_sum all;	/* with what it calls */
	struct call_sum own;
};

/* A stack that would need more ends at the node it came to. */
enum { CALLS_MAX = 1 << 18 };

/*
 * From each node down, the largest first.  Functions that all stacks begin
 * with are left out, but for the last one.
 */
struct calls {
	struct call *list;	/* owned */
	size_t n;
};

void calls_init(struct calls *c, const struct replay_input *in);
void calls_fini(struct calls *c);
/* So many of the largest, which are a tree too. */
void calls_keep_largest(struct calls *c, size_t n);

#endif
