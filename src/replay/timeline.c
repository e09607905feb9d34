/* SPDX-License-Identifier: MIT */
#include "replay/timeline.h"

#include <string.h>

static void set_end(struct timeline *t)
{
	uint64_t ticks = (uint64_t)(t->step + 1) << t->shift;

	/* Steps of 2^54 ticks and more end behind all time. */
	if (ticks >> t->shift != t->step + 1 ||
	    !add_ok(t->start, ticks - 1, &t->end))
		t->end = UINT64_MAX;
}

void timeline_init(struct timeline *t, uint64_t start)
{
	*t = (struct timeline){ .start = start };
	set_end(t);
}

static void join(struct timeline *t)
{
	for (size_t i = 0; i < TIMELINE_STEPS / 2; i++)
		for (unsigned k = 0; k < TIMELINE_CURVES; k++)
			t->max[i][k] = max_u64(t->max[2 * i][k],
					       t->max[2 * i + 1][k]);
	memset(t->max[TIMELINE_STEPS / 2], 0, sizeof(t->max) / 2);
	t->shift++;
	t->step /= 2;
}

void timeline_advance(struct timeline *t, uint64_t tick)
{
	while ((tick - t->start) >> t->shift >= TIMELINE_STEPS)
		join(t);
	for (size_t to = (tick - t->start) >> t->shift; t->step < to; )
		memcpy(t->max[++t->step], t->now, sizeof(t->now));
	set_end(t);
}

uint64_t timeline_max(const struct timeline *t, unsigned curve, size_t from,
		      size_t to)
{
	uint64_t ret = 0;

	for (size_t i = from; i < to && i < TIMELINE_STEPS; i++)
		ret = max_u64(ret, t->max[i][curve]);
	return ret;
}
