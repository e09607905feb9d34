/* SPDX-License-Identifier: MIT */
/*
 * What the parts of retain_init() share.  Within analysis/ only.
 */
#ifndef ANALYSIS_RETAIN_IN_H
#define ANALYSIS_RETAIN_IN_H

#include "analysis/retain.h"

struct retain_builder {
	struct retain *r;
	const struct graph *g;
	struct refs_names *names;
	/* Rows of the groups; owned. */
	uint32_t *off;
	size_t n_off, cap_off;
	uint32_t *dst;
	size_t n_dst, cap_dst;
	size_t n_first;		/* groups of variables and mappings */
	struct symbol symbol;	/* the one of the last word */
	/* By place; owned. */
	struct dominate tree;
	uint64_t *bytes, *largest;
	uint32_t *blocks;
	uint32_t *size;		/* owned; by number, in granules */
	/*
	 * Owned; by number: 1 + the two groups that lead there in the fewest
	 * steps, of the first rank if one of that does; 0: none.  NULL: what
	 * several lead to is too little to matter.
	 */
	uint32_t *near[2];
};

/* What at least two groups lead to. */
struct retain_pair {
	uint32_t a, b;
	struct tally t;
};

/*
 * The sums of all blocks by two of their groups, 1 + group or 0 by number: a
 * list of pairs in the order of a and b, which the caller frees.  Those that
 * have one group only are left out, and those that wants() does not want.
 */
struct retain_pair *
retain_pairs(const struct retain_builder *b, const uint32_t *of[2],
	     bool (*wants)(const struct retain_builder *b,
			   const struct retain_pair *pair),
	     size_t *ret_n);

/* Order by bytes, the most first. */
int retain_pair_compare(const void *a, const void *b);

/* Fills near. */
void retain_find_near(struct retain_builder *b);
/* Which two have the most in common, into the result; wants near. */
void retain_find_shared(struct retain_builder *b);

/*
 * Make one group of words that have no symbol, lie close together and share
 * most of what they lead to, as those of a container do.  False: there are
 * none; else the rows are new, and the tree is as it was.
 */
bool retain_join(struct retain_builder *b);

#endif
