/* SPDX-License-Identifier: MIT */
/*
 * Requests by size: steps of powers of two, of all that was allocated and of
 * what was live at the mark.
 */
#ifndef REPLAY_SIZES_H
#define REPLAY_SIZES_H

#include "replay/replay.h"
#include "replay/trace_read.h"

/* Step 0: requests of nothing; 1: up to 16 bytes; 2: to 32; and so on. */
enum { SIZE_STEPS = 62 };

struct size_step {
	uint64_t blocks, bytes;		/* allocated */
	uint64_t marked_blocks, marked_bytes;
};

struct sizes {
	struct size_step step[SIZE_STEPS];
	unsigned n;		/* steps up to the largest request */
};

/* Zeroed before the first one.  What is impossible is passed over. */
void sizes_events(struct sizes *s, const struct trace_event *events, size_t n);
/* Those of replay_marked_blocks(). */
void sizes_marked(struct sizes *s, const struct replay_block *blocks,
		  size_t n);

/* The smallest and the largest request of a step. */
uint64_t size_step_min(unsigned step);
uint64_t size_step_max(unsigned step);

#endif
