/* SPDX-License-Identifier: MIT */
/*
 * What the program can still reach, and what is lost.
 *
 * Grades.  A block is *live* if a root leads to it by words that count.  Of
 * the others, *possible* is what a vector's unused capacity leads to; *likely*
 * what only words lead to that nobody will read again: weak ones (graph.h), in
 * slack or in the unused space of a string, and those of a stack below its
 * stack pointer; *certain* what no word leads to at all.  If memory that may
 * refer is not in the file that is not known, and it is likely.  Certain and
 * likely blocks are called lost, or leaked.
 *
 * Kinds.  Among the blocks that are not live, *direct* is one that no other
 * refers to, *indirect* one that hangs on another, *cycle* one of a ring that
 * nothing outside refers to.
 *
 * Cost.  Marking (mark.h) takes some 15 ns an edge, a byte for each node and a
 * few bits.  Kinds cost in proportion to what is not live.
 */
#ifndef ANALYSIS_REACH_H
#define ANALYSIS_REACH_H

#include "analysis/graph.h"
#include "analysis/types.h"
#include "base/progress.h"
#include "corewalk/heap.h"

enum reach_grade {
	REACH_LIVE,
	REACH_CERTAIN,
	REACH_LIKELY,
	REACH_POSSIBLE,
};
enum { REACH_GRADES = 4 };

enum reach_kind {
	REACH_DIRECT,
	REACH_INDIRECT,
	REACH_CYCLE,
};
enum { REACH_KINDS = 3 };

/* "certain", "direct": for JSON and --filter. */
const char *reach_grade_name(enum reach_grade grade);
const char *reach_kind_name(enum reach_kind kind);

/* Blocks that are not live, of one size or type, and of one grade. */
struct reach_group {
	uint64_t size;		/* chunk size; 0: of several */
	uint32_t type;		/* by reach_group_types(); else 0 */
	uint64_t first;		/* first word, if in a module; else 0 */
	enum reach_grade grade;
	struct tally total;
	struct tally kind[REACH_KINDS];
	uint32_t example;	/* the first of them, direct ones first */
	enum reach_kind example_kind;
	vaddr addr;		/* of the example */
};

struct reach {
	const struct graph *g;	/* borrowed */
	/* Bits by number, owned: marked up to and with this grade. */
	uint64_t *live, *possible, *likely;
	uint64_t *indirect, *cycle;	/* of what is not live */
	struct tally grade[REACH_GRADES];
	struct tally kind[REACH_KINDS];	/* of what is lost */
	uint64_t n_cycles;		/* rings among what is lost */
	struct reach_group *groups;	/* owned; most bytes first */
	size_t n_groups, cap_groups;
	/* Owned; for blocks that are possible or likely: */
	uint32_t *seed;		/* the one of their cluster that is held */
	uint32_t *holder;	/* of a seed: the node with the word */
	size_t node_bytes;
};

void reach_init(struct reach *r, const struct graph *g, struct heap *h,
		struct progress *progress);
void reach_fini(struct reach *r);

/*
 * Groups anew: blocks whose type has a name by that, whatever their sizes.
 * Those that are known by shape, text or contents alone stay as they were.
 */
void reach_group_types(struct reach *r, struct heap *h,
		       const struct types *types);

enum reach_grade reach_grade(const struct reach *r, uint32_t block);
enum reach_kind reach_kind(const struct reach *r, uint32_t block);

/*
 * The one word that leads to a likely or possible block's cluster: which node
 * holds it, where, and which block it points into.
 */
struct reach_hold {
	uint32_t node, block;
	vaddr word;
};
bool reach_held_by(const struct reach *r, uint32_t block,
		   struct reach_hold *ret);

/* Certain and likely together. */
struct tally reach_lost(const struct reach *r);

#endif
