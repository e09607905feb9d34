/* SPDX-License-Identifier: MIT */
/*
 * What of a range is in the file, block by block.  Within analysis/ only.
 *
 * A range without holes costs one call of space_stored().
 */
#ifndef ANALYSIS_STORED_H
#define ANALYSIS_STORED_H

#include "base/types.h"
#include "corewalk/heap.h"
#include "corewalk/planes.h"
#include "corewalk/space.h"

/*
 * The first piece of [from, to) that is not stored: [*ret_start, *ret_end).
 * False if all is.  Adjacent pieces are not joined.
 */
bool stored_next_hole(struct space *sp, vaddr from, vaddr to,
		      vaddr *ret_start, vaddr *ret_end);

/*
 * Add the bytes of [from, to), a part of the cursor's extent, that are not
 * stored to the states of the blocks they lie in.
 */
void stored_missing(struct space *sp, struct planes_cursor *at, vaddr from,
		    vaddr to, uint64_t missing[BLOCK_STATES]);

#endif
