/* SPDX-License-Identifier: MIT */
/*
 * The blocks in use that a sampler would have seen.
 *
 * Marks are independent of each other, so sampling the blocks of a core has
 * the law of a live heap profile of that moment, taken by usable size as
 * jemalloc does.  Each arena has a stream of its own: a damaged one does not
 * shift the samples of the others.  The same rate and seed give the same ones.
 */
#ifndef REPORT_SAMPLE_H
#define REPORT_SAMPLE_H

#include "analysis/index.h"
#include "corewalk/heap.h"
#include "sampler/geom.h"

struct sample_walk {
	struct heap_iter it;
	struct sampler *streams;	/* owned; by arena */
};

void sample_walk_init(struct sample_walk *w, const struct heap *h,
		      uint64_t rate, uint64_t seed);
void sample_walk_fini(struct sample_walk *w);

/* The next one, in address order; the size of the sample is the chunk's. */
bool sample_walk_next(struct sample_walk *w, struct block *ret_block,
		      struct sample *ret_sample);

/*
 * The rate, a power of two, at which naming the blocks in use takes about
 * budget_ns; 0: all can be named in that time.  By the number of blocks and
 * what one took when it was measured, not by a clock: the same heap has the
 * same rate on every machine.
 */
uint64_t sample_rate_for(const struct heap *h, uint64_t budget_ns);

/* All of them as bits by number, for the caller to free. */
uint64_t *sample_pick(const struct heap *h, const struct index *ix,
		      uint64_t rate, uint64_t seed);

#endif
