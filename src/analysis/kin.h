/* SPDX-License-Identifier: MIT */
/*
 * What leads to a few blocks: they, the blocks that hold a word that points
 * into them, those that point into these, and so on.  What is not among them
 * says nothing about whether and how the few can be reached, nor of what type
 * they are.
 *
 * Cost.  A sweep is a pass over the heap, and finds all of a list in the order
 * of its direction; what lies behind it is for the next.  A bit for each block.
 * Within analysis/ only.
 */
#ifndef ANALYSIS_KIN_H
#define ANALYSIS_KIN_H

#include "analysis/edges.h"
#include "analysis/index.h"

/* Pages that hold a block of the set, by a hash: most words end there. */
enum { KIN_PAGES = 1 << 20 };

struct kin {
	const struct index *ix;	/* borrowed */
	uint64_t *bits;		/* owned; by number */
	uint64_t *pages;	/* owned; KIN_PAGES bits */
	size_t n;
};

void kin_init(struct kin *k, const struct index *ix);
void kin_fini(struct kin *k);
void kin_add(struct kin *k, uint32_t block);

/*
 * Adds what leads to the set by the words of these pieces, which are sorted,
 * from the first to the last or back; what is added counts from there on.
 * False if there are more than max blocks then.
 */
bool kin_sweep(struct kin *k, const struct edges_piece *pieces,
	       size_t n_pieces, bool back, size_t max) MUST_CHECK;

static inline bool kin_has(const struct kin *k, uint32_t block)
{
	return k->bits[block >> 6] >> (block & 63) & 1;
}

/* Can a block of the set hold base + off?  A quick no for most. */
static inline bool kin_may_have(const struct kin *k, uint64_t off)
{
	uint32_t page = off >> 12 & (KIN_PAGES - 1);

	return k->pages[page >> 6] >> (page & 63) & 1;
}

#endif
