/* SPDX-License-Identifier: MIT */
/*
 * The statistics of the sampler on the allocations of real programs:
 *
 *	sampler [SEEDS [TRACE...]]
 *
 * For each trace, each of three estimators and several expected numbers of
 * samples: the mean error of bytes and blocks in standard errors, the error
 * that is expected and the one that came true, and how often the 95 % intervals
 * held the truth.  Without a trace, on a made-up program.
 *
 * Then, by the formulas: the variance of the other estimators at usual rates,
 * as a multiple of Horvitz-Thompson's.
 *
 * Exits with 1 if a mean is more than 4 standard errors off, or if the score
 * interval covers less than 93 or more than 98 %, below 1.5 samples less than
 * 91.5, from 30 on less than 94 or more than 96.5 %.  All rows use the same
 * seeds, and so do not err independently.  docs/sampling.md explains the table.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rand.h"
#include "replay/replay.h"
#include "sampler/geom.h"

enum { MADE_UP = 100000 };

struct blocks {
	uint64_t *size;
	uint64_t *end;		/* in the stream of bytes */
	size_t n, cap, cap_end;
	double bytes;
};

struct moments {
	double sum, squares;
};

struct tried {
	struct moments bytes, count;
	double samples, score, normal;
};

static void add_block(struct blocks *b, uint64_t size)
{
	uint64_t last = b->n ? b->end[b->n - 1] : 0;
	size_t n = b->n;

	b->size = mem_grow(b->size, n, &b->cap, sizeof(*b->size));
	b->end = mem_grow(b->end, n, &b->cap_end, sizeof(*b->end));
	b->size[n] = size;
	b->end[n] = last + sampler_length(UNIT_REQUESTED, size);
	b->n = n + 1;
	b->bytes += (double)size;
}

static void make_up(struct blocks *b)
{
	struct rand r;

	rand_init(&r, 1, 1);
	for (size_t i = 0; i < MADE_UP; i++)
		add_block(b, (uint64_t)fmin(1e6,
			(i % 500 ? 24 : 20000) *
			exp(-1.5 * log(rand_unit(&r)))));
}

static bool read_blocks(struct blocks *b, const char *path)
{
	const struct trace_event *events;
	struct err err;
	struct trace *t = trace_open(path, &err);
	size_t n;

	if (!t) {
		fprintf(stderr, "%s\n", err.msg);
		return false;
	}
	while ((n = trace_read(t, &events)))
		for (size_t i = 0; i < n; i++)
			if (trace_is_alloc(events[i].kind))
				add_block(b, events[i].size);
	trace_close(t);
	return b->n;
}

/* The first block that ends at or behind this unit. */
static size_t block_at(const struct blocks *b, size_t low, uint64_t unit)
{
	size_t high = b->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (b->end[middle] >= unit)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void run_once(const struct blocks *b, enum estimator estimator,
		     uint64_t rate, uint64_t seed, struct estimate ret[2])
{
	bool marks = estimator == ESTIMATOR_STATMEMPROF;
	uint64_t at = 0;
	struct sampler s;
	struct sample hit;

	sampler_init(&s, rate, seed, 0);
	for (size_t i = 0; (i = block_at(b, i, at + s.left)) < b->n; i++) {
		uint64_t start = i ? b->end[i - 1] : 0;
		uint64_t length = b->end[i] - start;

		s.left -= start - at;
		at = b->end[i];
		if (!(marks ? sampler_marks(&s, length, &hit)
			    : sampler_step(&s, length, &hit)))
			continue;
		estimate_add(&ret[0], &hit, estimator, (double)b->size[i]);
		estimate_add(&ret[1], &hit, estimator, 1);
	}
}

static void add(struct moments *m, double off)
{
	m->sum += off;
	m->squares += off * off;
}

/* The mean in its standard errors. */
static double in_errors(const struct moments *m, double n)
{
	double variance = m->squares / n - m->sum / n * (m->sum / n);

	return variance > 0 ? m->sum / n / sqrt(variance / n) : 0;
}

static void try_seeds(const struct blocks *b, enum estimator estimator,
		      uint64_t rate, uint64_t seeds, struct tried *ret)
{
	*ret = (struct tried){ .samples = 0 };
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		struct estimate e[2] = { { .n = 0 } };
		struct interval i;

		run_once(b, estimator, rate, seed, e);
		i = interval_score(&e[0], (double)rate);
		add(&ret->bytes, e[0].value - b->bytes);
		add(&ret->count, e[1].value - (double)b->n);
		ret->samples += (double)e[0].n / (double)seeds;
		ret->score += i.low <= b->bytes && b->bytes <= i.high;
		ret->normal += fabs(e[0].value - b->bytes) <=
			       SCORE_Z * sqrt(e[0].variance);
	}
	ret->score /= (double)seeds;
	ret->normal /= (double)seeds;
}

static void expect(const struct blocks *b, enum estimator estimator,
		   uint64_t rate, double ret[2])
{
	ret[0] = ret[1] = 0;
	for (size_t i = 0; i < b->n; i++) {
		uint64_t length = sampler_length(UNIT_REQUESTED, b->size[i]);

		ret[0] += estimator_variance(estimator, length, rate,
					     (double)b->size[i]);
		ret[1] += estimator_variance(estimator, length, rate, 1);
	}
	ret[0] = sqrt(ret[0]) / b->bytes;
	ret[1] = sqrt(ret[1]) / (double)b->n;
}

static bool good(const struct tried *t, enum estimator estimator, double n)
{
	double off = fmax(fabs(in_errors(&t->bytes, n)),
			  fabs(in_errors(&t->count, n)));
	/* Three standard errors of a share: seeds are few at times. */
	double slack = 3 * sqrt(0.95 * 0.05 / n);

	if (off > 4)
		return false;
	if (estimator != ESTIMATOR_HT)
		return true;
	return t->score > (t->samples < 1.5 ? 0.915 : t->samples < 30 ?
			   0.935 : 0.945) - slack &&
	       t->score < (t->samples < 30 ? 0.975 : 0.96) + slack;
}

static bool show(const struct blocks *b, const char *name, double samples,
		 uint64_t seeds)
{
	static const char *const names[] = { "ht", "tcmalloc", "statmemprof" };
	uint64_t rate = (uint64_t)fmax(2, b->bytes / samples);
	bool ok = true;

	for (int e = ESTIMATOR_HT; e <= ESTIMATOR_STATMEMPROF; e++) {
		struct tried t;
		double want[2], n = (double)seeds;

		try_seeds(b, e, rate, seeds, &t);
		expect(b, e, rate, want);
		printf("%-14.14s %9llu %8.0f  %-11s %6.2f %6.2f %7.2f%% "
		       "%7.2f%% %8.1f%% %6.1f%% %6.1f%%%s\n", name,
		       (unsigned long long)rate, t.samples, names[e],
		       in_errors(&t.bytes, n), in_errors(&t.count, n),
		       100 * want[0], 100 * sqrt(t.bytes.squares / n) /
		       b->bytes, 100 * want[1], 100 * t.normal, 100 * t.score,
		       good(&t, e, n) ? "" : "  WRONG");
		ok &= good(&t, e, n);
	}
	return ok;
}

static bool show_all(const struct blocks *b, const char *name, uint64_t seeds)
{
	static const double samples[] = { 1, 2, 5, 10, 30, 100, 300,
						  1000 };
	const char *slash = strrchr(name, '/');
	bool ok = true;

	for (size_t i = 0; i < countof(samples); i++)
		ok &= show(b, slash ? slash + 1 : name, samples[i], seeds);
	return ok;
}

/* By how much the variance of bytes and of blocks is larger than ht's. */
static void show_variances(const struct blocks *b, const char *name)
{
	static const uint64_t rates[] = { 4 << 10, 16 << 10, 64 << 10,
					  512 << 10, 2 << 20 };
	const char *slash = strrchr(name, '/');

	printf("\nvariance, ht = 1           bytes: tcmalloc statmemprof  "
	       "  blocks: tcmalloc statmemprof\n");
	for (size_t i = 0; i < countof(rates); i++) {
		double of[3][2];

		for (int e = ESTIMATOR_HT; e <= ESTIMATOR_STATMEMPROF; e++)
			expect(b, e, rates[i], of[e]);
		printf("%-14.14s %9llu %16.4f %11.4f %18.4f %11.4f\n",
		       slash ? slash + 1 : name, (unsigned long long)rates[i],
		       pow(of[ESTIMATOR_TCMALLOC][0] / of[0][0], 2),
		       pow(of[ESTIMATOR_STATMEMPROF][0] / of[0][0], 2),
		       pow(of[ESTIMATOR_TCMALLOC][1] / of[0][1], 2),
		       pow(of[ESTIMATOR_STATMEMPROF][1] / of[0][1], 2));
	}
}

int main(int argc, char **argv)
{
	uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000;
	struct blocks b = { .n = 0 };
	bool ok = true;

	printf("trace               rate  samples  estimator    mean error   "
	       "   rse of bytes   of count  covers: \n"
	       "                                            bytes  count  "
	       "expected    tried            normal  score\n");
	if (argc <= 2) {
		make_up(&b);
		ok = show_all(&b, "made up", seeds);
		show_variances(&b, "made up");
	}
	for (int i = 2; i < argc; i++) {
		b.n = 0;
		b.bytes = 0;
		if (!read_blocks(&b, argv[i])) {
			ok = false;
			continue;
		}
		ok &= show_all(&b, argv[i], seeds);
		show_variances(&b, argv[i]);
	}
	free(b.size);
	free(b.end);
	return !ok;
}
