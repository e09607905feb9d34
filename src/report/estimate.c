/* SPDX-License-Identifier: MIT */
#include "report/estimate.h"

#include <math.h>

static uint64_t rounded(double value)
{
	return value > 0 ? (uint64_t)(fmin(value, 0x1p63) + 0.5) : 0;
}

bool estimate_covers(const struct estimate *e, double unseen, uint64_t exact)
{
	struct interval i = interval_score(e, unseen);

	return rounded(i.low) <= exact && exact <= rounded(i.high);
}

static void set_interval(struct table *t, size_t at, const struct estimate *e,
			 double unseen, const uint64_t *exact)
{
	struct interval i = interval_score(e, unseen);

	table_set(t, at + ESTIMATE_LOW, rounded(i.low));
	table_set(t, at + ESTIMATE_HIGH, rounded(i.high));
	if (e->value > 0)
		table_set_real(t, at + ESTIMATE_BOUND,
			       interval_error(&i, e->value));
	if (exact)
		table_set(t, at + ESTIMATE_COVERS,
			  estimate_covers(e, unseen, *exact));
}

void estimate_set(struct table *t, size_t at, const struct estimate *e,
		  double unseen, const uint64_t *exact)
{
	table_set(t, at + ESTIMATE_VALUE, rounded(e->value));
	if (unseen >= 0)
		set_interval(t, at, e, unseen, exact);
	if (!exact)
		return;
	table_set(t, at + ESTIMATE_EXACT, *exact);
	if (*exact)
		table_set_real(t, at + ESTIMATE_ERROR,
			       e->value / (double)*exact - 1);
}
