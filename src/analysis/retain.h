/* SPDX-License-Identifier: MIT */
/*
 * Who keeps how much: retained sizes.
 *
 * A node *retains* what only it leads to: all that would be lost with it.
 * Root words are taken together in groups: those of one variable of a module,
 * by its symbol; those of one mapping that nobody knows; those of one thread,
 * its registers, its stack and its TLS.  What a variable or a mapping leads to
 * is not a thread's, although a stack names it as well: stacks are for the
 * moment.  A word of a module without a symbol is a group of its own, unless
 * it shares most of what it leads to with a word close by: those are taken for
 * one container.
 *
 * An *accumulation* is a block that retains much of which no single block
 * below it has the most: a table, an array, the head of something.
 *
 * Cost.  Some 70 bytes for each block while it works, 24 afterwards; about as
 * long as references and marking take, twice that where words are joined.
 */
#ifndef ANALYSIS_RETAIN_H
#define ANALYSIS_RETAIN_H

#include "analysis/dominate.h"
#include "analysis/graph.h"
#include "analysis/refs.h"
#include "base/progress.h"
#include "corewalk/heap.h"

struct retain_group {
	enum root_kind kind;	/* ROOT_STACK: of a thread */
	vaddr addr;		/* of the variable, the word or the mapping */
	uint32_t thread;	/* in space.threads, or WHERE_NO_THREAD */
	uint32_t words;		/* that have no symbol, addr the first; or 0 */
	struct tally retained;
};

enum { RETAIN_BLOCKS = 64, RETAIN_SHARED = 4, RETAIN_MEMBERS = 32 };

struct retain_block {
	uint32_t block;
	vaddr addr;
	uint64_t size;
	struct tally retained;	/* the block included */
	/* In groups: whose it is, then none; or the two next to it. */
	uint32_t group[2];
	/* Some of the blocks that it dominates, spread over all of them. */
	uint32_t members[RETAIN_MEMBERS];
	uint32_t n_members;
};

/* What at least these two lead to, and no other one in fewer steps. */
struct retain_shared {
	uint32_t group[2];	/* the second: RETAIN_SEVERAL, various ones */
	struct tally t;
};

#define RETAIN_SEVERAL UINT32_MAX	/* no group */

struct retain {
	const struct graph *g;		/* borrowed */
	struct retain_group *groups;	/* owned; most bytes first */
	size_t n_groups, cap_groups;
	struct tally several;	/* what more than one of them leads to */
	struct retain_shared shared[RETAIN_SHARED];	/* most of it */
	size_t n_shared;
	struct tally total;	/* all that is live */
	struct retain_block top[RETAIN_BLOCKS];	/* accumulations */
	size_t n_top;
	uint64_t *bytes;	/* owned; retained by each block, by number */
	size_t bytes_size;
	/* owned; by number: a block, RETAIN_GROUP | group, retain_several() */
	uint32_t *dominator;
	size_t dominator_size;
};

#define RETAIN_GROUP DOMINATE_GROUP

void retain_init(struct retain *r, const struct graph *g,
		 struct refs_names *names, struct progress *progress);
void retain_fini(struct retain *r);

/* A block that another one, or a group, dominates. */
struct retain_child {
	uint32_t block;
	vaddr addr;
	uint64_t size, bytes;	/* its own; retained */
};

/* The node of what several groups lead to: shared[i], or the rest, n_shared. */
uint32_t retain_several(const struct retain *r, size_t i);

/*
 * The n largest of a node, RETAIN_GROUP | group or a block, in ret, and what
 * the others are together.  One pass over all blocks.  Returns how many.
 */
size_t retain_children(const struct retain *r, uint32_t node,
		       struct retain_child *ret, size_t n,
		       struct tally *ret_rest);

/* What a group is called. */
void retain_group_text(struct refs_names *names,
		       const struct retain_group *group, struct str *ret);

#endif
