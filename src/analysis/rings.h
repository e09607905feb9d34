/* SPDX-License-Identifier: MIT */
/*
 * Which of the blocks that are not live hang on which: by strongly connected
 * components of what nothing outside leads to.  Within analysis/ only.
 */
#ifndef ANALYSIS_RINGS_H
#define ANALYSIS_RINGS_H

#include "analysis/graph.h"

struct rings {
	/* Owned by the caller afterwards; bits by number. */
	uint64_t *indirect;	/* another one that is not live refers to it */
	uint64_t *cycle;	/* in a ring that nothing outside refers to */
	uint64_t n_cycles;	/* such rings of blocks that are lost */
};

/* live, and live or possible, as in struct reach. */
void rings_find(struct rings *r, const struct graph *g, const uint64_t *live,
		const uint64_t *possible);

#endif
