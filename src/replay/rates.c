/* SPDX-License-Identifier: MIT */
#include "replay/rates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define NEAR_ENOUGH 0.05

/*
 * The top groups, by insertion: there are few.  What is less than a hundredth
 * of all is not waited for, unless everything is.
 */
static void find_top(struct rates *r)
{
	uint64_t largest = 0, least;

	for (uint32_t g = 0; g < r->n_groups; g++)
		largest = max_u64(largest, r->group_bytes[g]);
	least = max_u64(min_u64(r->bytes / 100, largest), 1);
	for (uint32_t g = 0; g < r->n_groups; g++) {
		size_t at = r->n_top;

		while (at && r->group_bytes[r->top[at - 1]] <
			     r->group_bytes[g])
			at--;
		if (at == RATES_TOP || r->group_bytes[g] < least)
			continue;
		if (r->n_top < RATES_TOP)
			r->n_top++;
		memmove(r->top + at + 1, r->top + at,
			(r->n_top - at - 1) * sizeof(*r->top));
		r->top[at] = g;
	}
}

void rates_init(struct rates *r, const struct rates_options *options,
		const struct rates_block *blocks, size_t n_blocks,
		size_t n_groups)
{
	uint64_t end = 0;

	*r = (struct rates){
		.options = *options,
		.blocks = blocks,
		.n_blocks = n_blocks,
		.n_groups = n_groups,
	};
	r->group_bytes = mem_zalloc((n_groups + 1) * sizeof(*r->group_bytes));
	r->estimates = mem_zalloc((n_groups + 1) * sizeof(*r->estimates));
	r->touched = mem_alloc((n_groups + 1) * sizeof(*r->touched));
	r->ends = mem_alloc((n_blocks + 1) * sizeof(*r->ends));
	for (size_t i = 0; i < n_blocks; i++) {
		r->bytes += blocks[i].size;
		r->group_bytes[blocks[i].group] += blocks[i].size;
		end += sampler_length(options->unit, blocks[i].size);
		r->ends[i] = end;
	}
	find_top(r);
}

void rates_fini(struct rates *r)
{
	free(r->group_bytes);
	free(r->estimates);
	free(r->touched);
	free(r->ends);
	*r = (struct rates){ .n_blocks = 0 };
}

/* ---- what is expected ---- */

/* Variances of the total and of the groups whose place is asked for. */
static void variances(const struct rates *r, uint64_t rate, double *ret_total,
		      double *ret_samples, double *ret_group)
{
	const struct rates_options *o = &r->options;

	*ret_total = *ret_samples = 0;
	memset(ret_group, 0, (r->n_groups + 1) * sizeof(*ret_group));
	for (size_t i = 0; i < r->n_blocks; i++) {
		const struct rates_block *b = &r->blocks[i];
		uint64_t length = sampler_length(o->unit, b->size);
		double variance = estimator_variance(o->estimator, length,
						     rate, (double)b->size);

		*ret_total += variance;
		*ret_samples += sampler_chance(length, rate);
		ret_group[b->group] += variance;
	}
}

static double share_of(double variance, uint64_t bytes)
{
	return bytes ? SCORE_Z * sqrt(variance) / (double)bytes : 0;
}

static double top_share(const struct rates *r, const double *variance,
			size_t n_top)
{
	double ret = 0;

	for (size_t i = 0; i < n_top; i++)
		ret = fmax(ret, share_of(variance[r->top[i]],
					 r->group_bytes[r->top[i]]));
	return ret;
}

/* What a unit of the stream is long; 0: as long as a block is. */
static double unit_bytes(const struct rates *r)
{
	return r->options.unit == UNIT_WORDS ? 8 :
	       r->options.unit == UNIT_COUNT ? 0 : 1;
}

static void expect(const struct rates *r, struct rate_result *ret)
{
	AUTO_FREE double *groups =
		mem_alloc((r->n_groups + 1) * sizeof(*groups));
	double total;

	variances(r, ret->rate, &total, &ret->samples, groups);
	ret->error = share_of(total, r->bytes);
	ret->top_error = top_share(r, groups, r->n_top);
	/* Of small blocks: 1 - (1 - 1/rate)^n = 0.95 */
	if (ret->rate > SAMPLER_ALL)
		ret->seen_bytes = unit_bytes(r) * log(0.05) /
				  log1p(-1 / (double)ret->rate);
}

size_t rates_n_large(const struct rates *r, double share)
{
	size_t n = 0;

	while (n < r->n_top && (double)r->group_bytes[r->top[n]] >=
			       share * (double)r->bytes)
		n++;
	return n;
}

uint64_t rates_needed(const struct rates *r, double share, size_t n_top)
{
	AUTO_FREE double *groups =
		mem_alloc((r->n_groups + 1) * sizeof(*groups));
	double total, samples;
	unsigned low = 0, high = 80;

	/* In steps of half a power of two: more is not asked for. */
	while (high - low > 1) {
		unsigned middle = (low + high) / 2;
		uint64_t rate = (uint64_t)exp2(middle / 2.0);

		variances(r, rate, &total, &samples, groups);
		if (top_share(r, groups, n_top) <= share)
			low = middle;
		else
			high = middle;
	}
	return (uint64_t)exp2(low / 2.0);
}

/* ---- what comes true ---- */

/* The block that holds this unit of the stream; from: where to look first. */
static size_t block_at(const struct rates *r, size_t from, uint64_t unit)
{
	size_t low = from, high = r->n_blocks;

	for (size_t step = 1; low + step < r->n_blocks; step *= 2) {
		if (r->ends[low + step - 1] >= unit) {
			high = low + step;
			break;
		}
		low += step;
	}
	return BISECT(middle, low, high, r->ends[middle] < unit);
}

static void add_sample(struct rates *r, size_t i, struct sample *hit,
		       struct estimate *total)
{
	const struct rates_block *b = &r->blocks[i];
	struct estimate *e = &r->estimates[b->group];

	hit->size = b->size;
	if (!e->n)
		r->touched[r->n_touched++] = b->group;
	estimate_add(e, hit, r->options.estimator, (double)b->size);
	estimate_add(total, hit, r->options.estimator, (double)b->size);
}

/* Blocks without a mark are not looked at. */
static void sample_all(struct rates *r, uint64_t rate, uint64_t seed,
		       struct estimate *total)
{
	bool marks = r->options.estimator == ESTIMATOR_STATMEMPROF;
	struct sampler s;
	struct sample hit;
	uint64_t at = 0;
	size_t i = 0;

	sampler_init(&s, rate, seed, 0);
	while (i < r->n_blocks && s.left <= r->ends[r->n_blocks - 1] - at) {
		uint64_t start;

		i = block_at(r, i, at + s.left);
		start = i ? r->ends[i - 1] : 0;
		s.left -= start - at;
		if (marks ? sampler_marks(&s, r->ends[i] - start, &hit)
			  : sampler_step(&s, r->ends[i] - start, &hit))
			add_sample(r, i, &hit, total);
		at = r->ends[i++];
	}
}

static bool covered(const struct rates *r, const struct estimate *e,
		    uint64_t rate, uint64_t bytes)
{
	struct interval i = interval_score(e, rate > SAMPLER_ALL
					   ? unit_bytes(r) * (double)rate : 0);

	/* Half a byte for the rounding of what is certain. */
	return i.low - 0.5 <= (double)bytes && (double)bytes <= i.high + 0.5;
}

/* Groups that are too small to be seen have no interval to speak of. */
static bool counts(const struct rates *r, uint32_t group, uint64_t rate)
{
	return (double)r->group_bytes[group] >= unit_bytes(r) * (double)rate;
}

static void try_seed(struct rates *r, uint64_t seed, struct rate_result *ret,
		     double *n_counted)
{
	struct estimate total = { 0 };
	double off;

	r->n_touched = 0;
	sample_all(r, ret->rate, seed, &total);
	off = total.value / (double)r->bytes - 1;
	ret->tried_samples += (double)total.n;
	ret->bias += off;
	ret->rms += off * off;
	ret->covers += covered(r, &total, ret->rate, r->bytes);
	for (uint32_t g = 0; g < r->n_groups; g++)
		if (counts(r, g, ret->rate)) {
			ret->group_covers += covered(r, &r->estimates[g],
						     ret->rate,
						     r->group_bytes[g]);
			++*n_counted;
		}
	for (size_t i = 0; i < r->n_top; i++) {
		double bytes = (double)r->group_bytes[r->top[i]];

		ret->top_within += fabs(r->estimates[r->top[i]].value - bytes)
				   <= NEAR_ENOUGH * bytes;
	}
	for (size_t i = 0; i < r->n_touched; i++)
		r->estimates[r->touched[i]] = (struct estimate){ .n = 0 };
}

void rates_try(struct rates *r, uint64_t rate, struct rate_result *ret)
{
	double n = (double)r->options.n_seeds, n_counted = 0;

	*ret = (struct rate_result){ .rate = rate };
	if (!r->bytes)
		return;
	expect(r, ret);
	for (uint64_t i = 0; i < r->options.n_seeds; i++)
		try_seed(r, r->options.first_seed + i, ret, &n_counted);
	if (!r->options.n_seeds)
		return;
	ret->tried_samples /= n;
	ret->bias /= n;
	ret->rms = sqrt(ret->rms / n);
	ret->covers /= n;
	ret->group_covers = n_counted ? ret->group_covers / n_counted : -1;
	ret->top_within /= n * (double)max_u64(r->n_top, 1);
}
