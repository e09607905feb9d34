/* SPDX-License-Identifier: MIT */
/*
 * Which rate is fine enough?  Many samplers over one set of live blocks.
 *
 * As marks are independent, sampling the blocks that are live at a moment, in
 * any order, has the law of the heap profile of that moment; so one pass over
 * a trace serves any number of rates and seeds.  What is expected follows from
 * the sizes alone; that it comes true is tried with each seed.
 *
 * A *group* is what a row of a report is: the blocks of some stacks.  The
 * *top* groups are the ten largest of those that have a hundredth of all bytes.
 */
#ifndef REPLAY_RATES_H
#define REPLAY_RATES_H

#include "base/types.h"
#include "replay/replay.h"

enum { RATES_TOP = 10 };

struct rates_options {
	uint64_t first_seed;
	uint64_t n_seeds;	/* 0: only what is expected */
	enum estimator estimator;
	enum sampler_unit unit;
};

struct rate_result {
	uint64_t rate;
	/* Expected, by the sizes. */
	double samples;
	double error;		/* 95 % of the total is within this share */
	double top_error;	/* the largest such share of the top groups */
	double seen_bytes;	/* a group of so much is seen in 95 %; not of
				   UNIT_COUNT */
	/* Tried; without seeds 0. */
	double tried_samples;	/* mean */
	double bias;		/* mean of (estimate - exact) / exact */
	double rms;		/* of the same */
	double covers;		/* share of seeds: the total is covered */
	double group_covers;	/* of groups and seeds; < 0: none is so large */
	double top_within;	/* of top groups and seeds: within 5 % */
};

/* Blocks with the group of each, made by the caller. */
struct rates_block {
	uint64_t size;
	uint32_t group;		/* below n_groups */
};

struct rates {
	struct rates_options options;
	const struct rates_block *blocks;	/* borrowed */
	size_t n_blocks;
	size_t n_groups;
	uint64_t *group_bytes;	/* owned */
	uint32_t top[RATES_TOP];	/* largest first */
	size_t n_top;
	uint64_t bytes;
	uint64_t *ends;		/* owned; of each block in the stream */
	struct estimate *estimates;	/* owned; by group, of one run */
	uint32_t *touched;	/* owned; groups with an estimate */
	size_t n_touched;
};

void rates_init(struct rates *r, const struct rates_options *options,
		const struct rates_block *blocks, size_t n_blocks,
		size_t n_groups);
void rates_fini(struct rates *r);

void rates_try(struct rates *r, uint64_t rate, struct rate_result *ret);

/*
 * The largest rate at which 95 % of the estimates of each of the first n_top
 * top groups are within this share of the truth; 1 if only taking everything
 * does that.
 */
uint64_t rates_needed(const struct rates *r, double share, size_t n_top);

/* How many of the top groups have this share of all bytes, or more. */
size_t rates_n_large(const struct rates *r, double share);

#endif
