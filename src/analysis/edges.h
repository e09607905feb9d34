/* SPDX-License-Identifier: MIT */
/*
 * The pass over memory that finds the edges of a part of the nodes; what one
 * thread does.  Within analysis/ only.
 */
#ifndef ANALYSIS_EDGES_H
#define ANALYSIS_EDGES_H

#include "analysis/graph.h"
#include "analysis/weak.h"

/* Bytes that can be read in one piece. */
struct edges_piece {
	const uint8_t *bytes;
	vaddr start;
	uint64_t n;
	uint32_t root;		/* the node; 0: blocks, by address */
	bool fixed;		/* the data of a module: never used anew */
	unsigned word;
};

/* An edge that is weak if a string turns out to own its block. */
struct edges_text {
	uint32_t edge, block;
};

/* A block that is a vector's. */
struct edges_vector {
	uint32_t block;
	struct weak_vector vector;
};

struct kin;

struct edges {
	/* Given: nodes in [first, end) lie in these pieces. */
	const struct index *ix;
	const struct edges_piece *pieces;
	size_t n_pieces;
	const struct edges_piece *heap;	/* all that hold blocks, by address */
	size_t n_heap;
	uint32_t first, end;
	uint32_t *off;		/* of all nodes; ours get filled */
	uint64_t max_edges;
	const struct weak_census *classes;	/* of all; for edges_run() */
	const struct kin *only;	/* blocks that edges may lead to; NULL: all */
	vaddr asked, asked_end;	/* a block whose referrers are kept, or 0 */
	unsigned one_in;	/* count the blocks of one window in so many */

	/* The result; what is owned is freed by edges_fini(). */
	uint32_t *dst;		/* owned, cap * 4 bytes from mem_map */
	size_t n, cap;
	uint32_t shift;		/* how many edges are before them, at last */
	bool too_many;
	struct weak_census census;	/* what edges_count() counted */
	struct edges_text *text;	/* owned */
	size_t n_text, cap_text;
	struct edges_vector *vectors;	/* owned */
	size_t n_vectors, cap_vectors;
	uint64_t *strings;		/* owned; bits by number */
	struct graph_asked met;

	/* Private. */
	uint32_t next;		/* nodes before it have their off */
	vaddr uncounted;	/* the first start that was not counted */
	struct {
		vaddr start, next;
		vaddr end;	/* of what the program may use */
		uint32_t number;
		bool used;
	} block;		/* the one that is being looked at */
};

void edges_init(struct edges *e, const struct index *ix,
		const struct space *sp);
void edges_fini(struct edges *e);

/* Two passes, for pthread_create: count what blocks are like, find edges. */
void *edges_count(void *edges);
void *edges_run(void *edges);

#endif
