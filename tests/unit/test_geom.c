/* SPDX-License-Identifier: MIT */
/*
 * The sampler against the laws it claims to follow.  All seeds are fixed; the
 * limits are such that a right implementation passes with any seed in all but
 * one of some 10,000 cases: 4 standard errors, the 99.99 % point of a
 * chi-square.
 */
#include "sampler/geom.h"

#include <math.h>

#include "base/rand.h"
#include "check.h"

enum { BLOCKS = 3000, RUNS = 2000, COVER_RUNS = 10000, BINS = 100 };

TEST(same_seed_and_stream_same_numbers)
{
	struct rand a, b, c, d;
	uint64_t first;

	rand_init(&a, 1, 2);
	rand_init(&b, 1, 2);
	rand_init(&c, 2, 1);
	rand_init(&d, 1, 3);
	first = rand_u64(&a);
	CHECK_U64(rand_u64(&b), first);
	CHECK(rand_u64(&c) != first);
	CHECK(rand_u64(&d) != first);
	/* For ever: reports of a seed are to stay what they are. */
	CHECK_U64(first, UINT64_C(0x5c21784ab20b0108));
}

TEST(unit_is_in_its_range)
{
	struct rand r;
	double sum = 0, low = 1, high = 0;

	rand_init(&r, 1, 1);
	for (int i = 0; i < 1000000; i++) {
		double u = rand_unit(&r);

		sum += u;
		low = fmin(low, u);
		high = fmax(high, u);
	}
	CHECK(low > 0 && high <= 1);
	CHECK_NEAR(sum / 1e6, 0.5, 4 * sqrt(1 / 12.0 / 1e6));
}

/* Chi-square over bins of equal chance, as far as whole gaps allow that. */
static double chi_square(const uint64_t *gaps, size_t n, uint64_t rate)
{
	double q = 1 - 1 / (double)rate;
	uint64_t edge[BINS + 1] = { 0 };
	double count[BINS] = { 0 };
	double sum = 0;

	for (int i = 1; i < BINS; i++)
		edge[i] = (uint64_t)(log1p(-i / (double)BINS) / log(q) + 0.5);
	edge[BINS] = UINT64_MAX;
	for (size_t i = 0; i < n; i++) {
		int low = 0, high = BINS;

		while (high - low > 1) {
			int middle = (low + high) / 2;

			if (gaps[i] > edge[middle])
				low = middle;
			else
				high = middle;
		}
		count[low]++;
	}
	for (int i = 0; i < BINS; i++) {
		double want = (double)n *
			(pow(q, (double)edge[i]) -
			 (i + 1 < BINS ? pow(q, (double)edge[i + 1]) : 0));

		if (want > 0)
			sum += (count[i] - want) * (count[i] - want) / want;
	}
	return sum;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The largest distance to the law, times the square root of n. */
static double kolmogorov(uint64_t *gaps, size_t n, uint64_t rate)
{
	double q = 1 - 1 / (double)rate;
	double worst = 0;

	qsort(gaps, n, sizeof(*gaps), compare_u64);
	for (size_t i = 0; i < n; i++) {
		double law = -expm1((double)gaps[i] * log(q));

		if (i + 1 < n && gaps[i + 1] == gaps[i])
			continue;
		worst = fmax(worst, fabs((double)(i + 1) / (double)n - law));
	}
	return worst * sqrt((double)n);
}

enum { GAPS = 1000000 };
static uint64_t gaps[GAPS];

static void check_gaps(uint64_t rate)
{
	struct sampler s;
	double sum = 0, ones = 0;
	double t = (double)rate;

	sampler_init(&s, rate, 1, 7);
	for (size_t i = 0; i < GAPS; i++) {
		gaps[i] = sampler_gap(&s);
		sum += (double)gaps[i];
		ones += gaps[i] == 1;
	}
	CHECK_NEAR(sum / GAPS, t, 4 * sqrt(t * (t - 1) / GAPS));
	CHECK_NEAR(ones / GAPS, 1 / t, 4 * sqrt((1 - 1 / t) / t / GAPS));
	CHECK_NEAR(chi_square(gaps, GAPS, rate), 80, 81);
	/* 99.99 % point of Kolmogorov's law; less where values repeat. */
	CHECK_NEAR(kolmogorov(gaps, GAPS, rate), 0, 2.23);
}

TEST(gaps_are_geometric)
{
	check_gaps(2);
	check_gaps(16);
	check_gaps(512);
	check_gaps(524288);
}

/* A gap that is exponential and rounded down, as some have it. */
TEST(the_test_of_gaps_sees_a_wrong_law)
{
	struct rand r;

	rand_init(&r, 1, 7);
	for (size_t i = 0; i < GAPS; i++)
		gaps[i] = (uint64_t)(-16 * log(rand_unit(&r)));
	CHECK(chi_square(gaps, GAPS, 16) > 161);
	for (size_t i = 0; i < GAPS; i++)
		gaps[i] = (uint64_t)(-16 * log(rand_unit(&r)));
	CHECK(kolmogorov(gaps, GAPS, 16) > 2.23);
}

/* How often is a block of this length sampled, right after a sampled one? */
static void check_chance(uint64_t length, uint64_t rate)
{
	struct sampler s;
	struct sample hit;
	double n = 200000, hits = 0, fresh = 0;
	double p = -expm1((double)length * log1p(-1 / (double)rate));

	CHECK_NEAR(sampler_chance(length, rate), p, 1e-9 * p);
	sampler_init(&s, rate, 1, 1);
	for (int i = 0; i < 200000; i++)
		hits += sampler_step(&s, length, &hit);
	CHECK_NEAR(hits / n, p, 4 * sqrt(p * (1 - p) / n) + 1e-12);
	for (int i = 0; i < 200000; i++) {
		sampler_init(&s, rate, 1, (uint64_t)i);
		fresh += sampler_step(&s, length, &hit);
	}
	CHECK_NEAR(fresh / n, p, 4 * sqrt(p * (1 - p) / n) + 1e-12);
}

TEST(blocks_are_sampled_by_their_length)
{
	for (uint64_t rate = 512; rate <= 524288; rate *= 1024) {
		check_chance(1, rate);
		check_chance(16, rate);
		check_chance(1000, rate);
		check_chance(rate, rate);
		check_chance(4 * rate, rate);
	}
}

/* Sizes of a made-up program: most blocks small, most bytes in large ones. */
struct population {
	uint64_t size[BLOCKS];
	double bytes, small_bytes;
	uint64_t rate;
};

static void populate(struct population *p, bool large, double samples)
{
	struct rand r;

	rand_init(&r, 99, 0);
	*p = (struct population){ .rate = 0 };
	for (size_t i = 0; i < BLOCKS; i++) {
		double size = 16 * exp(-2 * log(rand_unit(&r)));

		if (large && i % 100 == 50)
			size = 20000 * -log(rand_unit(&r));
		p->size[i] = (uint64_t)fmin(size, large ? 1e6 : 4000);
		p->bytes += (double)p->size[i];
		if (p->size[i] < 64)
			p->small_bytes += (double)p->size[i];
	}
	p->rate = (uint64_t)(p->bytes / samples);
}

struct outcome {
	struct estimate bytes, small, blocks;
};

static void run_once(const struct population *p, enum estimator estimator,
		     uint64_t seed, unsigned streams, bool backwards,
		     struct outcome *ret)
{
	struct sampler s[7];
	struct sample hit;

	*ret = (struct outcome){ .bytes.n = 0 };
	for (unsigned k = 0; k < streams; k++)
		sampler_init(&s[k], p->rate, seed, k);
	for (size_t i = 0; i < BLOCKS; i++) {
		uint64_t size = p->size[backwards ? BLOCKS - 1 - i : i];
		uint64_t length = sampler_length(UNIT_REQUESTED, size);
		struct sampler *one = &s[i % streams];
		bool is = estimator == ESTIMATOR_STATMEMPROF
			? sampler_marks(one, length, &hit)
			: sampler_step(one, length, &hit);

		if (!is)
			continue;
		estimate_add(&ret->bytes, &hit, estimator, (double)size);
		estimate_add(&ret->blocks, &hit, estimator, 1);
		if (size < 64)
			estimate_add(&ret->small, &hit, estimator,
				     (double)size);
	}
}

static double formula(const struct population *p, enum estimator estimator)
{
	double sum = 0;

	for (size_t i = 0; i < BLOCKS; i++)
		sum += estimator_variance(estimator, p->size[i] + 1, p->rate,
					  (double)p->size[i]);
	return sum;
}

struct moments {
	double n, sum, squares;
};

static void moments_add(struct moments *m, double off)
{
	m->n++;
	m->sum += off;
	m->squares += off * off;
}

static double moments_variance(const struct moments *m)
{
	return m->squares / m->n - m->sum / m->n * (m->sum / m->n);
}

static void check_unbiased(const struct moments *m)
{
	CHECK_NEAR(m->sum / m->n, 0, 4 * sqrt(moments_variance(m) / m->n));
}

static struct population population;

/* Mean, variance, and the estimate of that; the variance is returned. */
static double check_estimator(enum estimator estimator, unsigned streams,
			      bool backwards)
{
	const struct population *p = &population;
	struct moments bytes = { 0 }, small = { 0 }, blocks = { 0 };
	struct moments variance = { 0 };
	double want = formula(p, estimator);
	struct outcome o;

	for (uint64_t seed = 0; seed < RUNS; seed++) {
		run_once(p, estimator, seed + 1, streams, backwards, &o);
		moments_add(&bytes, o.bytes.value - p->bytes);
		moments_add(&small, o.small.value - p->small_bytes);
		moments_add(&blocks, o.blocks.value - BLOCKS);
		moments_add(&variance, o.bytes.variance - want);
	}
	check_unbiased(&bytes);
	check_unbiased(&small);
	check_unbiased(&blocks);
	check_unbiased(&variance);
	CHECK_NEAR(moments_variance(&bytes) / want, 1, 0.15);
	return want;
}

TEST(estimators_are_unbiased_and_ranked)
{
	double ht, tcmalloc, statmemprof;

	populate(&population, true, 30);
	ht = check_estimator(ESTIMATOR_HT, 1, false);
	tcmalloc = check_estimator(ESTIMATOR_TCMALLOC, 1, false);
	statmemprof = check_estimator(ESTIMATOR_STATMEMPROF, 1, false);
	CHECK(ht < tcmalloc && tcmalloc < statmemprof);
}

TEST(neither_order_nor_streams_matter)
{
	populate(&population, true, 30);
	check_estimator(ESTIMATOR_HT, 1, true);
	check_estimator(ESTIMATOR_HT, 2, false);
	check_estimator(ESTIMATOR_HT, 7, false);
	check_estimator(ESTIMATOR_STATMEMPROF, 7, true);
}

/* Shares of runs in which the score and the normal interval hold the truth. */
static void cover(double samples, bool large, double *score, double *normal)
{
	const struct population *p = &population;
	struct outcome o;

	populate(&population, large, samples);
	*score = *normal = 0;
	for (uint64_t seed = 0; seed < COVER_RUNS; seed++) {
		run_once(p, ESTIMATOR_HT, 77777 + seed, 1, false, &o);
		struct interval i = interval_score(&o.bytes, (double)p->rate);
		double half = SCORE_Z * sqrt(o.bytes.variance);

		*score += i.low <= p->bytes && p->bytes <= i.high;
		*normal += fabs(o.bytes.value - p->bytes) <= half;
	}
	*score /= COVER_RUNS;
	*normal /= COVER_RUNS;
}

TEST(the_score_interval_covers)
{
	static const double expected[] = { 2, 5, 10, 30, 100 };
	double score, normal;

	for (size_t i = 0; i < countof(expected); i++) {
		cover(expected[i], false, &score, &normal);
		if (expected[i] < 30)
			CHECK_NEAR(score, 0.955, 0.025);
		else
			CHECK_NEAR(score, 0.9525, 0.0085);
		/* The test can see: the usual interval fails it. */
		if (expected[i] <= 5)
			CHECK(normal < 0.93);
	}
}

/* Poisson gaps have little spread and so a memory: bias in subsets. */
TEST(a_sampler_with_a_memory_is_caught)
{
	struct rand r;
	double hits = 0, n = 200000, x = 0.5;
	double left = 0, want = -expm1(-x);
	bool after = false;

	rand_init(&r, 5, 5);
	for (int i = 0; i < 200000; i++) {
		left -= x;
		if (left < 0) {
			hits += after;
			left = 1 + 0.01 * (rand_unit(&r) - 0.5);
			after = true;
		} else {
			after = false;
		}
	}
	CHECK(fabs(hits / n - want) > 4 * sqrt(want * (1 - want) / n));
}

/* One weight for a mean size, as heap_v2 text is read: biased. */
TEST(a_scaled_mean_is_caught)
{
	const struct population *p = &population;
	struct moments bytes = { 0 };
	struct sampler s;
	struct sample hit;

	populate(&population, true, 30);
	for (uint64_t seed = 0; seed < RUNS; seed++) {
		double sum = 0, n = 0;

		sampler_init(&s, p->rate, seed, 0);
		for (size_t i = 0; i < BLOCKS; i++)
			if (sampler_step(&s, p->size[i] + 1, &hit)) {
				sum += (double)p->size[i];
				n++;
			}
		if (n)
			moments_add(&bytes, sum / -expm1(-sum / n /
					(double)p->rate) - p->bytes);
	}
	CHECK(fabs(bytes.sum / bytes.n) >
	      4 * sqrt(moments_variance(&bytes) / bytes.n));
}

TEST(rate_one_keeps_all_and_zero_nothing)
{
	static const uint64_t sizes[] = { 0, 1, 4096, UINT64_C(1) << 40 };
	struct sampler all, none, marks;
	struct sample hit;
	double value, variance;

	sampler_init(&all, SAMPLER_ALL, 1, 0);
	sampler_init(&marks, SAMPLER_ALL, 1, 0);
	sampler_init(&none, SAMPLER_NEVER, 1, 0);
	for (size_t i = 0; i < countof(sizes); i++) {
		uint64_t length = sampler_length(UNIT_REQUESTED, sizes[i]);
		double y = (double)sizes[i];

		CHECK(!sampler_step(&none, length, &hit));
		CHECK(!sampler_marks(&none, length, &hit));
		if (!CHECK(sampler_step(&all, length, &hit)))
			return;
		for (int e = ESTIMATOR_HT; e <= ESTIMATOR_TCMALLOC; e++) {
			sample_weigh(&hit, e, y, &value, &variance);
			CHECK_NEAR(value, y, 0);
			CHECK_NEAR(variance, 0, 0);
		}
		if (!CHECK(sampler_marks(&marks, length, &hit)))
			return;
		CHECK_U64(hit.marks, length);
		sample_weigh(&hit, ESTIMATOR_STATMEMPROF, y, &value,
			     &variance);
		CHECK_NEAR(value, y, 1e-9 * y);
	}
}

TEST(a_huge_block_is_certain)
{
	struct sampler s;
	struct sample hit;
	double value, variance, y = 0x1p40;
	uint64_t length = sampler_length(UNIT_REQUESTED, UINT64_C(1) << 40);

	sampler_init(&s, 524288, 1, 0);
	if (!CHECK(sampler_step(&s, length, &hit)))
		return;
	hit.size = UINT64_C(1) << 40;
	sample_weigh(&hit, ESTIMATOR_HT, y, &value, &variance);
	CHECK_NEAR(value, y, 0);
	CHECK_NEAR(variance, 0, 0);
	/* Its marks are counted in bounded time. */
	if (!CHECK(sampler_marks(&s, SAMPLER_MAX_LENGTH, &hit)))
		return;
	CHECK_NEAR((double)hit.marks * 524288 / 0x1p56, 1, 1e-5);
	CHECK_U64(sampler_length(UNIT_REQUESTED, UINT64_MAX),
		  SAMPLER_MAX_LENGTH);
}

TEST(lengths_by_unit)
{
	CHECK_U64(sampler_length(UNIT_REQUESTED, 0), 1);
	CHECK_U64(sampler_length(UNIT_REQUESTED, 24), 25);
	CHECK_U64(sampler_length(UNIT_USABLE, 0), 1);
	CHECK_U64(sampler_length(UNIT_USABLE, 24), 24);
	CHECK_U64(sampler_length(UNIT_WORDS, 0), 1);
	CHECK_U64(sampler_length(UNIT_WORDS, 17), 4);
	CHECK_U64(sampler_length(UNIT_COUNT, 12345), 1);
}

TEST(a_change_of_rate_keeps_weights_right)
{
	struct moments bytes = { 0 };
	struct sampler s;
	struct sample hit;

	for (uint64_t seed = 0; seed < RUNS; seed++) {
		struct estimate e = { 0 };

		sampler_init(&s, 1000, seed, 3);
		for (int i = 0; i < 1000; i++) {
			if (i % 100 == 50)
				sampler_set_rate(&s, i % 200 < 100 ? 100
								   : 3000);
			if (sampler_step(&s, 101, &hit))
				estimate_add(&e, &hit, ESTIMATOR_HT, 100);
		}
		moments_add(&bytes, e.value - 100000);
	}
	check_unbiased(&bytes);
}

TEST(a_change_to_nothing_and_back_is_at_once)
{
	struct sampler s;
	struct sample hit;

	sampler_init(&s, 100, 1, 0);
	sampler_set_rate(&s, SAMPLER_NEVER);
	CHECK(!sampler_step(&s, 1000000, &hit));
	CHECK(!sampler_marks(&s, 1000000, &hit));
	sampler_set_rate(&s, SAMPLER_ALL);
	CHECK(sampler_step(&s, 1, &hit));
	CHECK_U64(hit.rate, 1);
	sampler_set_rate(&s, 100);
	CHECK(sampler_step(&s, 1000000, &hit));
	CHECK_U64(hit.rate, 100);
}

TEST(intervals_at_the_edges)
{
	struct estimate e = { 0 };
	struct interval i = interval_score(&e, 524288);

	CHECK_NEAR(i.low, 0, 0);
	CHECK_NEAR(i.high, 3.841459 * 524288, 1);
	CHECK_NEAR(interval_error(&i, 0), 0, 0);
	e = (struct estimate){ .n = 3, .value = 3000, .variance = 0 };
	i = interval_score(&e, 524288);
	CHECK_NEAR(i.low, 3000, 0);
	CHECK_NEAR(i.high, 3000 + 3.841459 * 524288, 1);
	i = interval_score(&e, 0);
	CHECK_NEAR(i.high, 3000, 0);
	/* 400 samples of equal weight: near to 1.96 / sqrt(400). */
	e = (struct estimate){ .n = 400, .value = 400, .variance = 400 };
	i = interval_score(&e, 1);
	CHECK_NEAR(interval_error(&i, e.value), 0.098, 0.006);
}

/*
 * A site of one certain, huge block and some small ones, of which often none
 * is seen: the interval must not be the point that the huge one alone has.
 */
TEST(intervals_with_certain_blocks)
{
	enum { TIMES = 4000, RATE = 100000, SMALL = 60 };
	static const int small[] = { 1000, 3000, 10000, 30000 };

	for (size_t k = 0; k < countof(small); k++) {
		double truth = 50.0 * RATE + SMALL * small[k];
		double covered = 0;

		for (uint64_t seed = 1; seed <= TIMES; seed++) {
			struct estimate e = { 0 };
			struct interval i;
			struct sampler s;
			struct sample hit;

			sampler_init(&s, RATE, seed, k);
			for (int b = 0; b <= SMALL; b++) {
				uint64_t size = b ? (uint64_t)small[k]
						  : 50 * RATE;

				if (!sampler_step(&s, size, &hit))
					continue;
				hit.size = size;
				estimate_add(&e, &hit, ESTIMATOR_HT,
					     (double)size);
			}
			i = interval_score(&e, RATE);
			covered += i.low - 0.5 <= truth &&
				   truth <= i.high + 0.5;
		}
		CHECK(covered / TIMES > 0.93);
	}
}
