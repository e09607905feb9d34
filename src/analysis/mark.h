/* SPDX-License-Identifier: MIT */
/*
 * Marking the nodes that edges lead to.
 *
 * While many nodes are still to be looked at they are bits, and looked at in
 * the order of their numbers, again and again, so that rows are read nearly one
 * after the other; few wait in a queue.  So neither a table of a million
 * chains nor one chain of a million links is slow.
 *
 * Cost.  Two bits for each node; some 5 to 15 ns an edge.  Within analysis/
 * only.
 */
#ifndef ANALYSIS_MARK_H
#define ANALYSIS_MARK_H

#include "analysis/graph.h"

/* An edge that was met but not followed. */
struct mark_edge {
	uint32_t from, to;	/* to as in graph.dst */
};

struct mark {
	const struct graph *g;	/* borrowed */
	uint64_t *marked;	/* owned; bits by node */
	uint32_t put_off;	/* edges with one of these bits are for later */
	/* Of those that led to nothing marked; owned. */
	struct mark_edge *later;
	size_t n_later, cap_later;
	uint32_t *seed;		/* borrowed: handed on along edges; or NULL */
	/* Marked, and still to be looked at.  Private. */
	uint64_t *todo;		/* owned; bits by node */
	uint32_t n_todo;
	uint32_t *queue;	/* owned */
	size_t head, n_queue, cap_queue;
};

static inline bool mark_is(const struct mark *m, uint32_t node)
{
	return m->marked[node >> 6] >> (node & 63) & 1;
}

void mark_init(struct mark *m, const struct graph *g);
void mark_fini(struct mark *m);

/* Mark n nodes and all that they lead to. */
void mark_from(struct mark *m, const uint32_t *nodes, size_t n);

/* One bit for each block, by number; the caller frees it. */
uint64_t *mark_bits(const struct mark *m);

#endif
