/* SPDX-License-Identifier: MIT */
/*
 * How far apart the marks of an allocator's own sampler were.
 *
 * A walker that knows says it.  Else it is the variable of the allocator, if
 * its file has symbols, or what the environment told the allocator when the
 * program began, or follows from the weights of the samples.
 */
#ifndef ANALYSIS_PROFILE_RATE_H
#define ANALYSIS_PROFILE_RATE_H

#include "corewalk/heap.h"
#include "corewalk/symbol.h"

struct profile_rate {
	uint64_t bytes;		/* 0: not known */
	const char *from;	/* static: "variable", "environment", ... */
};

struct profile_rate profile_rate_find(struct space *sp,
				      struct symbols *symbols,
				      const struct heap *h,
				      const struct heap_profile *p);

#endif
