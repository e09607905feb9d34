/* SPDX-License-Identifier: MIT */
/*
 * A curve of known size over a time of unknown length.
 *
 * Time is cut into equal steps, each with the largest values in it.  When the
 * steps do not suffice they are joined by twos.  A value holds until the next
 * one comes.  Time does not run backwards; what does is taken for now.
 */
#ifndef REPLAY_TIMELINE_H
#define REPLAY_TIMELINE_H

#include "base/types.h"

enum { TIMELINE_STEPS = 1024, TIMELINE_CURVES = 3 };

struct timeline {
	uint64_t start;		/* of time */
	unsigned shift;		/* a step is 1 << shift ticks */
	size_t step;		/* the current one */
	uint64_t end;		/* of the current one, less one: inclusive */
	uint64_t now[TIMELINE_CURVES];
	uint64_t max[TIMELINE_STEPS][TIMELINE_CURVES];
};

void timeline_init(struct timeline *t, uint64_t start);

/* On to the step that holds tick. */
void timeline_advance(struct timeline *t, uint64_t tick);

static inline void timeline_set(struct timeline *t, unsigned curve,
				uint64_t value)
{
	t->now[curve] = value;
	if (value > t->max[t->step][curve])
		t->max[t->step][curve] = value;
}

static inline void timeline_at(struct timeline *t, uint64_t tick)
{
	if (__builtin_expect(tick > t->end, 0))
		timeline_advance(t, tick);
}

/* The largest value in step from to to, exclusive. */
uint64_t timeline_max(const struct timeline *t, unsigned curve, size_t from,
		      size_t to);
/* How many steps there are. */
static inline size_t timeline_steps(const struct timeline *t)
{
	return t->step + 1;
}

#endif
