/* SPDX-License-Identifier: MIT */
/*
 * How long the blocks of each site lived, in memory that does not depend on
 * how many there were.
 *
 * Lifetimes are counted in *buckets*: one for each value below 32, and then 16
 * for each power of two, so that a bucket's bounds are less than 1/16 apart.
 * For each site only buckets with something in them are kept, 24 bytes each at
 * most half full.
 *
 * A block that is *alive* when looking ends has lived at least so long: it
 * counts in the bucket of the age it has.  Quantiles of those freed alone are
 * far too small where many live on; life_quantile() is that of Kaplan and
 * Meier (1958), which takes both into account.
 */
#ifndef REPLAY_LIFETIMES_H
#define REPLAY_LIFETIMES_H

#include "base/types.h"

enum { LIFE_BUCKET_BITS = 10 };

struct life_slot {
	uint64_t key;		/* site << LIFE_BUCKET_BITS | bucket, + 1 */
	uint64_t freed, alive;	/* blocks */
};

struct lifetimes {
	struct life_slot *slots;	/* owned, by mem_map */
	size_t size, used;	/* size: a power of two */
};

void lifetimes_init(struct lifetimes *l);
void lifetimes_fini(struct lifetimes *l);

/* Where a lifetime is to be counted; valid until the next call. */
struct life_slot *lifetimes_add(struct lifetimes *l, uint32_t site,
				uint64_t ticks);

/* From and to in ticks, both in it. */
unsigned life_bucket(uint64_t ticks);
uint64_t life_bucket_first(unsigned bucket);
uint64_t life_bucket_last(unsigned bucket);

/* Blocks of one group by bucket, in rising order. */
struct life_count {
	unsigned bucket;
	uint64_t freed, alive;
};

/*
 * The lifetime that a share q of the blocks does not exceed, in ticks, to
 * 1/32: the middle of its bucket.  Negative: more live on than would let it
 * be known.  censored: with those alive; else of those freed alone.
 */
double life_quantile(const struct life_count *counts, size_t n, double q,
		     bool censored);

#endif
