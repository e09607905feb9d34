/* SPDX-License-Identifier: MIT */
/*
 * Unused tails of blocks in use: capacity that nothing was put into.
 *
 * Vocabulary.  A *claim* is three words somewhere in the heap or in a root
 * that are a vector's start, end and end of capacity, or a string's text,
 * length and capacity, as in weak.h, and which say of a block how much of it
 * is in use.  Of several claims of one block that which leaves the least
 * unused counts.  Of blocks that nobody claims a tail is what is zero up to
 * the end, untouched pages too, if that is half of a block of TAILS_ZERO_MIN
 * or more: it was never written, or cleared.  A tail of a vector has whatever
 * lay there before.
 *
 * Memory: the index and four bytes for each block.  Time: a second of CPU for
 * a gigabyte, in two threads.
 */
#ifndef ANALYSIS_TAILS_H
#define ANALYSIS_TAILS_H

#include "analysis/where.h"
#include "base/progress.h"
#include "corewalk/heap.h"
#include "corewalk/space.h"

enum tails_kind {
	TAILS_VECTOR,
	TAILS_STRING,
	TAILS_ZERO,
};
enum { TAILS_KINDS = 3, TAILS_ZERO_MIN = 256 };

/* "vector", "string", "zero" */
const char *tails_kind_name(enum tails_kind kind);

struct tails_group {
	uint64_t min;		/* size of chunks; below 2 * min */
	struct tally total;	/* blocks with a tail */
	uint64_t tail_bytes;	/* what is unused of them */
	vaddr example;		/* one with the longest tail */
	uint64_t longest;
};

struct tails {
	/* By log2 of the size. */
	struct tails_group groups[TAILS_KINDS][64];
	struct tails_group total[TAILS_KINDS];
	bool no_claims;		/* only zeros: not 64-bit, or too many blocks */
};

void tails_init(struct tails *t, struct space *sp, const struct heap *h,
		const struct where *w, struct progress *p);

#endif
