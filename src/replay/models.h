/* SPDX-License-Identifier: MIT */
/*
 * What the blocks of a trace would cost in other allocators: rounding, and
 * what is free in the spans that hold them.
 *
 * A block goes into the lowest span of its class that has room; a span without
 * a block is given back.  Caches, page heaps and alignment are not modelled,
 * so that this is the least that fragmentation can be.
 *
 * A pass of its own: some 70 bytes for each live block, 5 for each span.
 */
#ifndef REPLAY_MODELS_H
#define REPLAY_MODELS_H

#include "replay/live.h"
#include "replay/size_class.h"
#include "replay/trace_read.h"

struct model_sum {
	uint64_t rounded;	/* bytes of blocks */
	uint64_t spans;		/* bytes that hold them; 0: there are none */
};

struct model_moment {
	uint64_t requested, blocks;
	struct model_sum sum[SIZE_MODELS];
};

/* The spans of one class; a heap of those that may have room. */
struct model_class {
	uint16_t *used;		/* owned; blocks, by span */
	uint8_t *queued;	/* owned; is it in the heap? */
	uint32_t *heap;		/* owned; numbers of spans */
	uint32_t n, cap, n_heap;
};

struct models {
	struct size_classes classes[SIZE_MODELS];
	struct model_class *spans[SIZE_MODELS];	/* owned; by class */
	struct live live;
	uint32_t (*places)[SIZE_MODELS];	/* owned; span of a block */
	size_t n_places;
	uint64_t threshold;	/* glibc's */
	struct model_moment now, peak;
};

void models_init(struct models *m);
void models_fini(struct models *m);
void models_events(struct models *m, const struct trace_event *events,
		   size_t n);

#endif
