/* SPDX-License-Identifier: MIT */
#include "sampler/geom.h"

#include <math.h>

enum { WORD = 8, MANY_MARKS = 1 << 16 };
#define LN2 0.69314718055994530942
#define SQRT_HALF 0.70710678118654752440
/* A gap that no stream reaches the end of. */
#define ENDLESS (UINT64_C(1) << 62)

/*
 * 2 artanh(s) for |s| <= 1/3, to the last bit or two.
 *
 * The logarithms that gaps are made of are computed here and not by the C
 * library, whose last bits differ between releases and machines: the same seed
 * must give the same samples everywhere.
 */
static double twice_artanh(double s)
{
	double square = s * s;
	double power = s;
	double sum = 0;

	for (int k = 1; k < 40; k += 2) {
		double term = power / k;

		sum += term;
		power *= square;
		if (fabs(term) < 1e-18 * fabs(sum))
			break;
	}
	return 2 * sum;
}

/* log(u) for u in (0, 1] */
static double log_unit(double u)
{
	int exponent;
	double m = frexp(u, &exponent);

	if (m < SQRT_HALF) {
		m *= 2;
		exponent--;
	}
	return twice_artanh((m - 1) / (m + 1)) + exponent * LN2;
}

/* log(1 - 1/rate), rate from 2 on: log((1 - s)/(1 + s)), s = 1/(2 rate - 1) */
static double log_unmarked(uint64_t rate)
{
	return -twice_artanh(1 / (2 * (double)rate - 1));
}

static void set_rate(struct sampler *s, uint64_t rate)
{
	s->rate = min_u64(rate, SAMPLER_MAX_RATE);
	s->log_q = s->rate > SAMPLER_ALL ? log_unmarked(s->rate) : 0;
}

static void new_gap(struct sampler *s)
{
	s->gap_rate = s->rate;
	s->left = sampler_gap(s);
}

void sampler_init(struct sampler *s, uint64_t rate, uint64_t seed,
		  uint64_t stream)
{
	rand_init(&s->rand, seed, stream);
	set_rate(s, rate);
	new_gap(s);
}

void sampler_set_rate(struct sampler *s, uint64_t rate)
{
	uint64_t old = s->rate;

	set_rate(s, rate);
	if (s->rate <= SAMPLER_ALL || old <= SAMPLER_ALL)
		new_gap(s);
}

uint64_t sampler_length(enum sampler_unit unit, uint64_t size)
{
	uint64_t bytes = min_u64(size, SAMPLER_MAX_LENGTH - 1);

	switch (unit) {
	case UNIT_REQUESTED:
		return bytes + 1;
	case UNIT_USABLE:
		return max_u64(bytes, 1);
	case UNIT_WORDS:
		return (bytes + WORD - 1) / WORD + 1;
	case UNIT_COUNT:
		return 1;
	}
	return 1;
}

uint64_t sampler_gap(struct sampler *s)
{
	if (s->rate == SAMPLER_NEVER)
		return ENDLESS;
	if (s->rate == SAMPLER_ALL)
		return 1;
	/* At most 36.7 rates: no overflow below SAMPLER_MAX_RATE. */
	return (uint64_t)(log_unit(rand_unit(&s->rand)) / s->log_q) + 1;
}

void sampler_hit(struct sampler *s, uint64_t length, struct sample *ret)
{
	*ret = (struct sample){
		.length = length,
		.rate = s->gap_rate,
		.first = s->left,
	};
	new_gap(s);
}

/*
 * Marks of a block that is so long that counting them would take a while: all
 * but the last many are taken to come as often as they do on average.  That
 * leaves the mean as it is, and the variance is less than the formula's.
 */
static uint64_t marks_of_long(uint64_t *length, uint64_t rate)
{
	uint64_t whole = *length / rate;

	if (whole <= MANY_MARKS)
		return 0;
	whole -= MANY_MARKS;
	*length -= whole * rate;
	return whole;
}

bool sampler_marks(struct sampler *s, uint64_t length, struct sample *ret)
{
	uint64_t rest = length;

	/* One block has one rate.  No memory: any gap is as good as this. */
	if (s->gap_rate != s->rate)
		new_gap(s);
	if (rest < s->left) {
		s->left -= rest;
		return false;
	}
	if (s->rate == SAMPLER_NEVER)
		return false;
	*ret = (struct sample){
		.length = length,
		.rate = s->rate,
		.first = s->left,
		.marks = marks_of_long(&rest, s->rate),
	};
	while (s->left <= rest) {
		rest -= s->left;
		ret->marks++;
		new_gap(s);
	}
	s->left -= rest;
	return true;
}

double sampler_chance(uint64_t length, uint64_t rate)
{
	if (rate <= SAMPLER_ALL)
		return rate;
	return -expm1((double)length * log_unmarked(rate));
}

void sample_weigh(const struct sample *s, enum estimator estimator, double y,
		  double *ret_value, double *ret_variance)
{
	double rate = (double)s->rate;
	double part = y / (double)s->length;
	double chance;

	switch (estimator) {
	case ESTIMATOR_HT:
		chance = sampler_chance(s->length, s->rate);
		*ret_value = y / chance;
		*ret_variance = (y / chance) * (y / chance) * (1 - chance);
		return;
	case ESTIMATOR_TCMALLOC:
		*ret_value = part * (rate + (double)(s->length - s->first));
		*ret_variance = part * part * rate * (rate - 1);
		return;
	case ESTIMATOR_STATMEMPROF:
		*ret_value = part * rate * (double)s->marks;
		*ret_variance = part * part * rate * (rate - 1) *
				(double)s->marks;
		return;
	}
}

void estimate_add(struct estimate *e, const struct sample *s,
		  enum estimator estimator, double y)
{
	double value, variance;

	sample_weigh(s, estimator, y, &value, &variance);
	e->n++;
	e->value += value;
	e->variance += variance;
}

double estimator_variance(enum estimator estimator, uint64_t length,
			  uint64_t rate, double y)
{
	double t = (double)rate;
	double part = y / (double)length;
	double chance = sampler_chance(length, rate);

	switch (estimator) {
	case ESTIMATOR_HT:
		return y * y * (1 - chance) / chance;
	case ESTIMATOR_TCMALLOC:
		return part * part * t * (t - 1) * chance;
	case ESTIMATOR_STATMEMPROF:
		return part * part * (double)length * (t - 1);
	}
	return 0;
}

/*
 * The ends M solve (value - M)^2 = z^2 (variance + c (M - value)): what there
 * is more or less than was seen has the mean weight c.  What was not seen at
 * all may be smaller than what was: above, c is at least the weight of that.
 */
static double score_side(const struct estimate *e, double c, int sign)
{
	double shift = SCORE_Z * SCORE_Z * c / 2;

	return e->value + shift + sign * sqrt(SCORE_Z * SCORE_Z * e->variance +
					      shift * shift);
}

struct interval interval_score(const struct estimate *e, double unseen)
{
	double c = e->value > 0 ? e->variance / e->value : unseen;

	return (struct interval){
		.low = fmax(score_side(e, c, -1), 0),
		.high = score_side(e, fmax(c, unseen), 1),
	};
}

struct interval interval_change(const struct estimate *come,
				const struct estimate *gone, double unseen)
{
	struct interval c = interval_score(come, unseen);
	struct interval g = interval_score(gone, unseen);
	double change = come->value - gone->value;

	return (struct interval){
		change - hypot(come->value - c.low, g.high - gone->value),
		change + hypot(c.high - come->value, gone->value - g.low),
	};
}

double interval_error(const struct interval *i, double value)
{
	if (value <= 0)
		return 0;
	return fmax(value - i->low, i->high - value) / value;
}
