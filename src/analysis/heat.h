/* SPDX-License-Identifier: MIT */
/*
 * What a range of addresses holds, cell by cell: for a picture of it.
 *
 * A cell stands for the same number of bytes each.  A block that lies in
 * several cells counts in each by its part of it.  Costs a step for each block
 * of the range, and one for each cell.
 */
#ifndef ANALYSIS_HEAT_H
#define ANALYSIS_HEAT_H

#include "base/types.h"
#include "corewalk/heap.h"
#include "corewalk/space.h"

/* Bytes. */
struct heat_cell {
	uint64_t used, free, overhead;	/* of blocks, by their state */
	uint64_t stored;	/* resident if known, else in the file */
	uint64_t swapped;
};

/* Cells from an address on; size is not 0. */
void heat_cells(struct space *sp, const struct heap *h, vaddr from,
		uint64_t size, struct heat_cell *ret, size_t n);

#endif
