/* SPDX-License-Identifier: MIT */
/*
 * Blocks in use that are equal to the last usable byte, and blocks that are
 * one value over and over.
 *
 * What lies behind the bytes that a program asked for is left over from
 * before: of blocks whose request was not a multiple of 16 less 8, copies may
 * differ there and are missed.  Strings have a count of their own, strings.h.
 * Not compared are blocks that cannot be read in one piece.
 *
 * Memory and time as in dup.h.
 */
#ifndef ANALYSIS_DUP_BLOCKS_H
#define ANALYSIS_DUP_BLOCKS_H

#include "analysis/dup.h"
#include "base/progress.h"
#include "corewalk/heap.h"
#include "corewalk/space.h"

enum { DUP_BLOCKS_KEPT = 1000 };

struct dup_blocks {
	struct dup_entry *items;	/* owned; the most bytes first */
	size_t n;
	struct tally compared;	/* not those below */
	struct tally zero;	/* nothing but zeros */
	struct tally filled;	/* one other word of 8 bytes, again and again */
	struct tally in_parts;	/* not compared */
	/* Of equal ones: */
	uint64_t distinct, copies, bytes, saved;
	uint64_t floor;		/* below, not all are counted; 0: all are */
	uint64_t given_up;
};

void dup_blocks_init(struct dup_blocks *d, const struct space *sp,
		     const struct heap *h, struct progress *p);
void dup_blocks_fini(struct dup_blocks *d);

#endif
