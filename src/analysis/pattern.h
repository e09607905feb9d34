/* SPDX-License-Identifier: MIT */
/*
 * The bytes of all blocks in use, for what looks for repetition in them.
 *
 * Vocabulary.  A *piece* is a part of a block that can be read in one piece:
 * the whole block as a rule.  Holes are passed over, and of large blocks the
 * pages that were never touched: a piece ends there.
 *
 * Two *workers* share the heap in windows of a megabyte, by turns, on every
 * machine the same way: what one worker sees does not depend on how fast it
 * is.  They run in two threads if there is enough to do.
 *
 * Within analysis/ only.
 */
#ifndef ANALYSIS_PATTERN_H
#define ANALYSIS_PATTERN_H

#include "base/progress.h"
#include "base/types.h"
#include "corewalk/heap.h"
#include "corewalk/space.h"

struct pattern_piece {
	const uint8_t *bytes;
	uint64_t n;
	vaddr addr;		/* of the first of them */
	const struct block *block;
};

enum { PATTERN_WORKERS = 2 };

/* Gets pieces in the order of addresses. */
typedef void pattern_fn(void *worker, const struct pattern_piece *piece);

/* Shows all pieces to fn; p may be NULL. */
void pattern_each(const struct space *sp, const struct heap *h,
		  pattern_fn *fn, void *const workers[PATTERN_WORKERS],
		  struct progress *p);

#endif
