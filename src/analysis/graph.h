/* SPDX-License-Identifier: MIT */
/*
 * Who points to whom.
 *
 * Vocabulary.  A *node* is a block, by its number in the index, or a root:
 * index.n + its place in the list of roots.  An *edge* is a word that lies in
 * a node and whose value lies in a block in use, anywhere from its first byte
 * to the last one the program may use.  The edges of a node are a *row*; rows
 * follow each other in one array, in the order of addresses.
 *
 * Nothing says which words are pointers, so every aligned word that could be
 * one counts.  An edge is *weak* if nobody will ever read its word again: it
 * lies in the slack at a block's end or in unused space of a string, see
 * weak.h.  It is *spare* if it lies in a vector's unused capacity.
 *
 * Cost.  One pass over the heap and the roots at memory speed with two
 * threads, four bytes for an edge and for a node, and the index.
 */
#ifndef ANALYSIS_GRAPH_H
#define ANALYSIS_GRAPH_H

#include "analysis/index.h"
#include "analysis/roots.h"
#include "base/progress.h"

#define GRAPH_WEAK (UINT32_C(1) << 31)
#define GRAPH_SPARE (UINT32_C(1) << 30)
#define GRAPH_NODE (GRAPH_SPARE - 1)

/* A word of the heap that points into the block asked about. */
struct graph_ref {
	vaddr word;
	uint64_t value;
};
enum { GRAPH_ASKED_MAX = 1 << 16 };

/* Those of them that do not lie in that block itself. */
struct graph_asked {
	vaddr start, end;	/* of what the program may use of it */
	struct graph_ref *refs;	/* owned; by address, the first of all */
	size_t n, cap;
	uint64_t n_more;
};

struct graph {
	struct space *sp;	/* borrowed */
	struct index ix;
	struct roots roots;
	uint32_t n_nodes;
	uint32_t *off;		/* owned; first edge by node, one more */
	uint32_t *dst;		/* owned; numbers with GRAPH_WEAK, SPARE */
	uint32_t n_edges;
	size_t off_bytes, dst_bytes;
	/* Of a graph for few blocks: */
	enum {
		GRAPH_WHOLE,
		GRAPH_KIN,	/* edges to them and to all that leads there */
		GRAPH_STEP,	/* edges to them; a root refers to the first */
	} extent;
	struct kin *kin;	/* owned; what edges lead to; NULL: whole */
	struct graph_asked asked;	/* 0 of a graph for all */
};

/*
 * False, with words for the user, if it would take more than max_bytes; 0: a
 * half of this machine's memory.
 */
bool graph_init(struct graph *g, struct space *sp, const struct heap *h,
		const struct where *w, uint64_t max_bytes,
		struct progress *progress, struct err *err) MUST_CHECK;
/*
 * The same for the question how a block, the first of few, can be reached and
 * what all of them are; if that is no less work it becomes the whole graph.
 */
bool graph_init_near(struct graph *g, struct space *sp, const struct heap *h,
		     const struct where *w, const vaddr *few, size_t n_few,
		     struct progress *progress, struct err *err) MUST_CHECK;
void graph_fini(struct graph *g);

static inline uint32_t graph_root_node(const struct graph *g, size_t root)
{
	return g->ix.n + (uint32_t)root;
}

static inline bool graph_is_root(const struct graph *g, uint32_t node)
{
	return node >= g->ix.n;
}

/* The node that an edge is of. */
static inline uint32_t graph_source(const struct graph *g, uint32_t edge)
{
	return (uint32_t)BISECT(mid, 0, (size_t)g->n_nodes + 1,
				g->off[mid] <= edge) - 1;
}

/* How many words refer to each block, by number; the caller frees it. */
uint32_t *graph_count_refs(const struct graph *g);

/*
 * The first word of a node that points into block; false if none does.  For
 * registers the address is their place in the thread's list.
 */
bool graph_word(const struct graph *g, uint32_t node, uint32_t block,
		vaddr *ret);

#endif
