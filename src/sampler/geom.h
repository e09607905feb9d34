/* SPDX-License-Identifier: MIT */
/*
 * Geometric sampling of a stream of allocations, and what samples say.
 *
 * Every unit of the stream is *marked* with chance 1/rate, independently of
 * all others.  A *unit* is a byte, a word or an allocation, as the gap is
 * counted; the *length* of a block is its number of units.  A block is
 * *sampled* if one of its units is marked.  The distance from one mark to the
 * next, the *gap*, is drawn from the geometric law by inversion, so that
 * nothing is done for units that are not marked.
 *
 * A *stream* is one thread, one process or one arena: each has a sampler of
 * its own.  As the law has no memory, the samples of a set of blocks do not
 * depend on their order or on how they are split into streams.
 *
 * Three unbiased estimates of a length l at rate T, for a block with its first
 * mark at N (from 1) and B marks in all:
 *
 *	Horvitz-Thompson	l / P(l), P(l) = 1 - (1 - 1/T)^l
 *	TCMalloc		T + l - N
 *	statmemprof		B T
 *
 * The first has never more variance than the second, nor that than the third:
 * each is the mean of the next, given what it uses.  docs/sampling.md proves
 * it.  The first two start a new gap behind a sampled block; the third goes
 * on inside.
 *
 * A sampler allocates nothing and knows no clock.  sampler_step() is a
 * comparison and a subtraction if nothing is sampled.
 */
#ifndef SAMPLER_GEOM_H
#define SAMPLER_GEOM_H

#include "base/rand.h"
#include "base/types.h"

enum estimator {
	ESTIMATOR_HT,		/* Horvitz-Thompson */
	ESTIMATOR_TCMALLOC,
	ESTIMATOR_STATMEMPROF,
};

enum sampler_unit {
	UNIT_REQUESTED,		/* bytes asked for, and one */
	UNIT_USABLE,		/* bytes of the block as it is */
	UNIT_WORDS,		/* of eight bytes, and one for a header */
	UNIT_COUNT,		/* one for each allocation */
};

/* From 1 (everything) up; 0 is never.  The gap in hand is of gap_rate. */
enum { SAMPLER_NEVER = 0, SAMPLER_ALL = 1 };
#define SAMPLER_MAX_RATE (UINT64_C(1) << 40)
#define SAMPLER_MAX_LENGTH (UINT64_C(1) << 56)

struct sampler {
	uint64_t left;		/* units up to and with the next mark */
	uint64_t rate;		/* of the gaps to come */
	uint64_t gap_rate;	/* with which left was drawn */
	double log_q;		/* log(1 - 1/rate) */
	struct rand rand;
};

/* What was seen when a block was sampled. */
struct sample {
	uint64_t size;		/* in bytes, as it is reported */
	uint64_t length;	/* in units, from 1 */
	uint64_t rate;
	uint64_t first;		/* the first mark: 1 to length */
	uint64_t marks;		/* statmemprof: from 1; else 0 */
};

/* A number of samples, and sums over them; see sample_weigh(). */
struct estimate {
	uint64_t n;
	double value;
	double variance;
};

struct interval {
	double low, high;
};

void sampler_init(struct sampler *s, uint64_t rate, uint64_t seed,
		  uint64_t stream);

/*
 * Another rate.  To or from 0 or 1 it holds at once; else from the next gap
 * on, as in TCMalloc: the gap in hand keeps the rate it was drawn with.
 */
void sampler_set_rate(struct sampler *s, uint64_t rate);

/* The length of a block of size bytes; from 1 to SAMPLER_MAX_LENGTH. */
uint64_t sampler_length(enum sampler_unit unit, uint64_t size);

/* A draw of the gap to the next mark; from 1. */
uint64_t sampler_gap(struct sampler *s);

/* A block was sampled: fills ret, all but size, and starts a new gap. */
void sampler_hit(struct sampler *s, uint64_t length, struct sample *ret);

/* Is this block sampled?  For Horvitz-Thompson and TCMalloc. */
static inline bool sampler_step(struct sampler *s, uint64_t length,
				struct sample *ret)
{
	if (__builtin_expect(length < s->left, 1)) {
		s->left -= length;
		return false;
	}
	sampler_hit(s, length, ret);
	return ret->rate != SAMPLER_NEVER;
}

/* The same for statmemprof, which counts all marks of the block. */
bool sampler_marks(struct sampler *s, uint64_t length, struct sample *ret);

/* P(length) */
double sampler_chance(uint64_t length, uint64_t rate);

/*
 * What one sample says of y, a property of its block: its bytes, or 1 for the
 * number of blocks.  The value is unbiased for y, and the variance for that of
 * the value.
 */
void sample_weigh(const struct sample *s, enum estimator estimator, double y,
		  double *ret_value, double *ret_variance);

/* Add it; for sums that lose no block, see profile.h. */
void estimate_add(struct estimate *e, const struct sample *s,
		  enum estimator estimator, double y);

/* The variance that one block's estimate has, sampled or not. */
double estimator_variance(enum estimator estimator, uint64_t length,
			  uint64_t rate, double y);

/*
 * The 95 % interval by the score method: it takes the variance at the value
 * asked about, not at the one found, and so holds from the first sample on.
 * unseen is the weight that a small block would have had, which is the rate if
 * units are bytes, and 0 if all are seen: even where every block seen was
 * certain, and without a sample, the high end is 3.84 times that above.
 */
struct interval interval_score(const struct estimate *e, double unseen);

/*
 * Of come less gone, two estimates that share no block: from the intervals of
 * both, as Zou and Donner (2008) do for differences.
 */
struct interval interval_change(const struct estimate *come,
				const struct estimate *gone, double unseen);

/* The larger side of the interval as a share of the value; 0 for value 0. */
double interval_error(const struct interval *i, double value);

#define SCORE_Z 1.959963984540054

#endif
