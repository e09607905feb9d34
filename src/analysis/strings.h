/* SPDX-License-Identifier: MIT */
/*
 * Strings in blocks in use that occur more than once.
 *
 * A *string* is what strings(1) finds: as many printable bytes of ASCII, or
 * tabs, as there are in a row, wherever in a block they start, STRINGS_MIN at
 * least; a block's end ends it.  So is its count.  It *costs* its length, or
 * the whole block if it starts at the block's start and takes half of it, or is
 * the text of a str or bytes of CPython's: then the block is its *own*, and
 * could go if all who refer to it used another copy.
 *
 * Memory is bounded, see dup.h.  Time: some 2 s of CPU for a gigabyte, in two
 * threads.
 */
#ifndef ANALYSIS_STRINGS_H
#define ANALYSIS_STRINGS_H

#include "analysis/dup.h"
#include "base/progress.h"
#include "corewalk/heap.h"
#include "corewalk/space.h"

enum { STRINGS_MIN = 4, STRINGS_KEPT = 1000 };

struct strings {
	/* owned; those that cost most, and those of most copies, by cost. */
	struct dup_entry *items;
	size_t n;
	uint64_t found, bytes;	/* all strings, single ones too */
	/* Of those that occur twice or more and cost so much as floor: */
	uint64_t distinct, copies, cost, saved;
	/* What is saved is of these, which have blocks of their own twice. */
	uint64_t own_distinct, own_copies, own_bytes;
	uint64_t floor;		/* below, not all are counted; 0: all are */
	uint64_t given_up;	/* not counted: made to collide */
};

void strings_init(struct strings *s, const struct space *sp,
		  const struct heap *h, struct progress *p);
void strings_fini(struct strings *s);

#endif
