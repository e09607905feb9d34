/* SPDX-License-Identifier: MIT */
/*
 * Which root leads to a block: for many blocks, by one search of the graph.
 *
 * Memory: eight bytes for each node while it exists.
 */
#ifndef ANALYSIS_HOLDER_H
#define ANALYSIS_HOLDER_H

#include "analysis/graph.h"
#include "base/types.h"

struct holder {
	const struct graph *g;	/* borrowed */
	uint32_t *parent;	/* owned; by node: one step nearer to a root */
	size_t bytes;
};

void holder_init(struct holder *h, const struct graph *g);
void holder_fini(struct holder *h);

/*
 * The root that a shortest way to the block at addr starts from, and its word
 * that leads there; false if no root does.
 */
bool holder_find(const struct holder *h, vaddr addr, uint32_t *ret_root,
		 vaddr *ret_word);

#endif
