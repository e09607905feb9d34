/* SPDX-License-Identifier: MIT */
#include "replay/sizes.h"

enum { FIRST_BITS = 4 };	/* of the largest request of step 1 */

uint64_t size_step_max(unsigned step)
{
	return step ? UINT64_C(1) << (step - 1 + FIRST_BITS) : 0;
}

uint64_t size_step_min(unsigned step)
{
	return step > 1 ? size_step_max(step - 1) + 1 : step;
}

static unsigned step_of(uint64_t size)
{
	unsigned bits;

	if (!size)
		return 0;
	bits = size > 1 ? 64 - (unsigned)__builtin_clzll(size - 1) : 0;
	return bits > FIRST_BITS ? bits - FIRST_BITS + 1 : 1;
}

static struct size_step *step_at(struct sizes *s, uint64_t size)
{
	unsigned step = step_of(size);

	if (step >= s->n)
		s->n = step + 1;
	return &s->step[step];
}

void sizes_events(struct sizes *s, const struct trace_event *events, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct size_step *step;

		if (!trace_is_alloc(events[i].kind) ||
		    events[i].size >= REPLAY_MAX_SIZE)
			continue;
		step = step_at(s, events[i].size);
		step->blocks++;
		step->bytes += events[i].size;
	}
}

void sizes_marked(struct sizes *s, const struct replay_block *blocks, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct size_step *step = step_at(s, blocks[i].size);

		step->marked_blocks++;
		step->marked_bytes += blocks[i].size;
	}
}
