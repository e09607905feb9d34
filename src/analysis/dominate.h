/* SPDX-License-Identifier: MIT */
/*
 * What can be reached only through what: the dominator tree.
 *
 * The graph has blocks, by number, and *groups* of root words, which refer to
 * blocks.  A node dominates what every way from the roots leads through it to.
 * Groups come in two ranks: what the first ones reach counts as theirs,
 * whoever else refers to it; the others share the rest.
 *
 * The algorithm is semi-NCA (Georgiadis, Tarjan, Werneck: Finding Dominators
 * in Practice, 2006): depth first numbers, semidominators with path
 * compression, then nearest common ancestors.
 */
#ifndef ANALYSIS_DOMINATE_H
#define ANALYSIS_DOMINATE_H

#include "base/types.h"

struct dominate_graph {
	uint32_t n;		/* blocks are below; 0 is none */
	const uint32_t *off;	/* n + 1 */
	const uint32_t *dst;	/* blocks, with bits in skip: no edge */
	uint32_t skip;
	uint32_t n_groups, n_first;
	const uint32_t *group_off;	/* n_groups + 1 */
	const uint32_t *group_dst;
};

#define DOMINATE_GROUP (UINT32_C(1) << 31)

/*
 * Nodes have places: 0 is above all, and a node's dominator has a lower place
 * than the node.
 */
struct dominate_place {
	uint32_t node;		/* a block, or DOMINATE_GROUP | group */
	uint32_t dominator;	/* its place */
};

struct dominate {
	struct dominate_place *places;	/* owned; n */
	uint32_t n;
	size_t bytes;
};

void dominate_init(struct dominate *d, const struct dominate_graph *g);
void dominate_fini(struct dominate *d);

#endif
