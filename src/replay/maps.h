/* SPDX-License-Identifier: MIT */
/*
 * What a traced program has mapped itself, event by event: ranges that do not
 * overlap, in a treap.  Memory is that of the ranges; an event costs
 * O(log n), and that much for each range that goes.
 */
#ifndef REPLAY_MAPS_H
#define REPLAY_MAPS_H

#include "base/rand.h"
#include "replay/trace_read.h"

struct maps_node {
	vaddr start, end;
	uint32_t left, right;	/* 0: none */
	uint32_t priority;
	bool reserved;		/* mapped without access */
};

struct maps {
	uint64_t bytes;		/* with access, when they were mapped */
	uint64_t reserved;	/* without */
	uint64_t peak_bytes;	/* the most of bytes */

	struct maps_node *nodes;	/* owned; [0] is none */
	size_t n_nodes, cap_nodes;
	uint32_t root, unused;	/* unused: linked by left */
	struct rand rand;
};

void maps_init(struct maps *m);
void maps_fini(struct maps *m);
/* A MAP or UNMAP; a range that passes the end of addresses is cut there. */
void maps_event(struct maps *m, const struct trace_event *e);

#endif
