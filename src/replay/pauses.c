/* SPDX-License-Identifier: MIT */
#include "replay/pauses.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"

static int compare_pauses(const void *a, const void *b)
{
	const struct pause *x = a, *y = b;

	return ORDER(x->start, y->start) ?:
	       ORDER(x->duration, y->duration) ?:
	       x->full - y->full;
}

void pauses_sort(struct pauses *p)
{
	SORT(p->list, p->n, compare_pauses);
}

void pauses_of_trace(struct pauses *p, const struct trace *t)
{
	const struct trace_info *info = trace_info(t);

	*p = (struct pauses){ .n = 0 };
	for (size_t i = 0; i < info->gcs.n && i < PAUSES_MAX; i++) {
		const struct trace_row *row = &info->gcs.rows[i];

		MEM_PUSH(p->list, p->n, p->cap) = (struct pause){
			.start = (double)trace_ns(t, row->tick) / 1e9,
			.duration = (double)row->value[0] / info->ticks_per_s,
			.full = row->value[1] & 1,
		};
	}
	pauses_sort(p);
}

void pauses_fini(struct pauses *p)
{
	free(p->list);
	*p = (struct pauses){ .n = 0 };
}

static int compare_values(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return ORDER(x, y);
}

void sort_values(double *values, size_t n)
{
	SORT(values, n, compare_values);
}

double rank_of(const double *sorted, size_t n, double q)
{
	size_t rank = (size_t)ceil(q * (double)n);

	if (!n)
		return 0;
	return sorted[rank ? min_u64(rank, n) - 1 : 0];
}

void pauses_sum_up(const struct pauses *p, enum pauses_which which,
		   struct pauses_summary *ret)
{
	AUTO_FREE double *d = mem_alloc((p->n + 1) * sizeof(*d));

	*ret = (struct pauses_summary){ .n = 0 };
	for (size_t i = 0; i < p->n; i++) {
		if (which == (p->list[i].full ? PAUSES_OTHER : PAUSES_FULL))
			continue;
		d[ret->n++] = p->list[i].duration;
	}
	sort_values(d, ret->n);
	/* From small to large: the sum is as good as it gets. */
	for (size_t i = 0; i < ret->n; i++)
		ret->sum += d[i];
	ret->p50 = rank_of(d, ret->n, 0.5);
	ret->p90 = rank_of(d, ret->n, 0.9);
	ret->p99 = rank_of(d, ret->n, 0.99);
	ret->max = rank_of(d, ret->n, 1);
}

/* ---- utilisation ---- */

/* Stretches without overlap, and how much of them is before each. */
struct stretch {
	double from, to;
	double before;
};

static size_t merge(const struct pauses *p, double end, struct stretch *ret)
{
	size_t n = 0;
	double sum = 0;

	for (size_t i = 0; i < p->n; i++) {
		double from = fmin(fmax(p->list[i].start, 0), end);
		double to = fmin(fmax(p->list[i].start + p->list[i].duration,
				      0), end);

		if (to <= from)
			continue;
		if (n && from <= ret[n - 1].to) {
			sum += fmax(to - ret[n - 1].to, 0);
			ret[n - 1].to = fmax(ret[n - 1].to, to);
			continue;
		}
		ret[n++] = (struct stretch){ from, to, sum };
		sum += to - from;
	}
	return n;
}

/* How much of the time up to at is in a stretch. */
static double paused_until(const struct stretch *s, size_t n, double at)
{
	size_t low = BISECT(middle, 0, n, s[middle].from <= at);

	if (!low)
		return 0;
	s += low - 1;
	return s->before + fmin(at, s->to) - s->from;
}

/*
 * What is paused in a window changes its slope only where an end of it passes
 * an end of a pause; it has its maximum where it starts with one, or ends with
 * one, or at an end of the run.
 */
double pauses_utilisation(const struct pauses *p, double window, double end)
{
	AUTO_FREE struct stretch *s = mem_alloc((p->n + 1) * sizeof(*s));
	size_t n = merge(p, end, s);
	double most = 0;

	window = fmin(window, end);
	if (!(window > 0))
		return 1;
	for (size_t i = 0; i < 2 * n; i++) {
		double from = i & 1 ? s[i / 2].to - window : s[i / 2].from;

		from = fmin(fmax(from, 0), end - window);
		most = fmax(most, paused_until(s, n, from + window) -
			    paused_until(s, n, from));
	}
	return fmax(1 - most / window, 0);
}
