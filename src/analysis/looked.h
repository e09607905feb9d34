/* SPDX-License-Identifier: MIT */
/*
 * What most of some blocks start with: a few are kept as they are met, and
 * looked at when all are known.
 */
#ifndef ANALYSIS_LOOKED_H
#define ANALYSIS_LOOKED_H

#include "analysis/usage.h"
#include "base/types.h"
#include "corewalk/heap.h"
#include "corewalk/space.h"

enum { LOOKED_SAMPLES = 64, LOOKED_KINDS = 3 };

/* Of all blocks of one kind, spread evenly over them.  Starts out as zeros. */
struct looked_sample {
	vaddr start[LOOKED_SAMPLES];
	uint32_t n;
	uint64_t mask;		/* a block whose hash has none of it is kept */
};

struct looked {
	struct look looks[LOOKED_KINDS];	/* most frequent first */
	uint32_t seen[LOOKED_KINDS];	/* of looked; 0 ends the list */
	uint32_t looked;	/* blocks looked at */
};

/* Fibonacci hashing: what is evenly spaced comes out evenly spread. */
static inline uint64_t looked_hash(vaddr start)
{
	return (start >> 3) * UINT64_C(0x9e3779b97f4a7c15);
}

/*
 * One block in a power of two is kept, chosen by its address alone: blocks
 * often come in a pattern, which counting them off would fall in step with.
 */
void looked_add(struct looked_sample *s, vaddr start);
void looked_at(struct looked *ret, const struct looked_sample *s,
	       struct space *sp, struct heap *h);

#endif
