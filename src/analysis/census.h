/* SPDX-License-Identifier: MIT */
/*
 * The census: what the blocks in use are, and how much of each there is.
 *
 * *Namers* say what blocks are; they are listed in census.c in the order in
 * which they run, and the table of types (types.h) keeps what is trusted most.
 */
#ifndef ANALYSIS_CENSUS_H
#define ANALYSIS_CENSUS_H

#include "analysis/index.h"
#include "analysis/types.h"
#include "base/progress.h"
#include "corewalk/heap.h"
#include "corewalk/space.h"
#include "corewalk/symbol.h"

struct typed;

/* What namers look at; all borrowed. */
struct census_input {
	struct space *sp;
	struct heap *heap;
	const struct index *ix;
	struct symbols *symbols;
	/* Bits by number: look at these blocks only; NULL: at all. */
	const uint64_t *only;
	struct typed *typed;	/* by debug information; or NULL */
	struct progress *progress;	/* or NULL */
};

/*
 * The next block of in->only behind the number *number, which is 0 at first
 * and becomes that of the block; false if there is none.
 */
bool census_next_only(const struct census_input *in, uint32_t *number,
		      struct block *ret);

/* Blocks of one type. */
struct census_row {
	uint32_t type;
	struct tally total;	/* bytes: of chunks, as everywhere */
	vaddr example;		/* the first of them */
};

struct census {
	struct types types;
	const struct index *ix;	/* borrowed */
	struct census_row *rows;	/* owned; most bytes first */
	size_t n_rows;
	struct tally total;	/* all blocks in use, or those of only */
};

void census_init(struct census *c, const struct census_input *in);
void census_fini(struct census *c);

#endif
