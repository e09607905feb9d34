/* SPDX-License-Identifier: MIT */
/*
 * What large blocks are filled with: records of one size, or one kind of value.
 *
 * Each word of a block has a *kind*: zero, small number, address, text, number
 * of 32 bits, floating point, other.  If one kind makes 95 % of what is not
 * zero the block is *uniform*.  Else the *period* is the least distance at
 * which kinds agree nearly as often as at any, over pairs of words of which
 * neither is zero: a field that is seldom set must not make a multiple of the
 * period look better.  Distances up to 1 KiB are tried, in words of 8 bytes
 * and then of 4, on at most 4096 words; then the period has to hold in two
 * other places of the block.
 *
 * Time: some 10 us for a block.
 */
#ifndef ANALYSIS_PERIOD_H
#define ANALYSIS_PERIOD_H

#include "base/progress.h"
#include "corewalk/heap.h"
#include "corewalk/space.h"

enum period_form {
	PERIOD_NONE,		/* nothing of all this */
	PERIOD_RECORDS,
	PERIOD_ADDRESSES,
	PERIOD_SMALL,		/* numbers below a million */
	PERIOD_NUMBERS,		/* of 32 bits */
	PERIOD_FLOATS,		/* of 64 bits */
	PERIOD_TEXT,
	PERIOD_VALUE,		/* one word again and again */
	PERIOD_ZERO,
};
enum { PERIOD_FORMS = 9 };

/* Blocks from this size on are looked at. */
enum { PERIOD_MIN = 4096, PERIOD_MAX = 1024 };

/* What bytes are filled with; *ret_period in bytes, if it is records. */
enum period_form period_find(const uint8_t *bytes, uint64_t n,
			     unsigned *ret_period);

struct period_group {
	enum period_form form;
	unsigned period;	/* bytes; 0 unless it is records */
	struct tally total;
	uint64_t records;	/* that fit into these blocks */
	vaddr largest;		/* the address of the largest block */
	uint64_t largest_size;	/* usable bytes */
};

struct periods {
	struct period_group *groups;	/* owned; the most bytes first */
	size_t n, cap;
	struct tally total;	/* all blocks that were looked at */
};

void periods_init(struct periods *p, const struct space *sp,
		  const struct heap *h, struct progress *progress);
void periods_fini(struct periods *p);

#endif
