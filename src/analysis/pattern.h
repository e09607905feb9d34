/* SPDX-License-Identifier: MIT */
/*
 * The bytes of all blocks, for what looks for something in them.
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

enum {
	PATTERN_WORKERS = 2,
	/* Blocks of which states. */
	PATTERN_USED = 1 << BLOCK_USED,
	PATTERN_ANY = (1 << BLOCK_STATES) - 1,
};

/* Gets pieces in the order of addresses. */
typedef void pattern_fn(void *worker, const struct pattern_piece *piece);

/* Shows the pieces of all blocks of these states to fn; p may be NULL. */
void pattern_each(const struct space *sp, const struct heap *h,
		  unsigned states, pattern_fn *fn,
		  void *const workers[PATTERN_WORKERS],
		  struct progress *p);

/*
 * The next piece in [*at, end), which *at is moved to; its block is left as
 * it is.  False if there is none.
 */
bool pattern_next(struct space *sp, vaddr *at, vaddr end, bool sparse,
		  struct pattern_piece *ret);

/* How much of the heap is in the file. */
uint64_t pattern_stored(const struct space *sp, const struct heap *h);

#endif
