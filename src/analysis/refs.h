/* SPDX-License-Identifier: MIT */
/*
 * Who refers to a block, and how a place that refers is called.
 *
 * Names: "g_sessions in appd", "appd+0x4010", "stack of thread 4711",
 * "register rbx of thread 4711", "block 0x55d0c1e3f8a0+24".  What comes from
 * the target is made harmless for a terminal.
 */
#ifndef ANALYSIS_REFS_H
#define ANALYSIS_REFS_H

#include "analysis/graph.h"
#include "analysis/types.h"
#include "analysis/where.h"
#include "base/str.h"
#include "corewalk/heap.h"
#include "corewalk/space.h"
#include "corewalk/symbol.h"

/* What names are made from; all borrowed but for the symbols. */
struct refs_names {
	struct space *sp;
	struct heap *heap;
	const struct where *where;
	struct symbols *symbols;	/* owned */
};

void refs_names_init(struct refs_names *n, struct space *sp, struct heap *h,
		     const struct where *w, struct debug *debug);
void refs_names_fini(struct refs_names *n);

/* The class by its vtable, as vtable_class(); TYPE_UNKNOWN is 0. */
enum type_known refs_class(struct refs_names *n, vaddr vtable,
			   struct str *ret);

/* The name of an address in a module: "g_sessions+8 in appd". */
bool refs_symbol_text(struct refs_names *n, vaddr addr, struct str *ret);

/* What a word of a root is called, by its kind. */
void refs_root_text(struct refs_names *n, const struct root *root, vaddr word,
		    struct str *ret);

/* What the word of a node is called, as graph_word() found it. */
void refs_word_text(struct refs_names *n, const struct graph *g,
		    uint32_t node, vaddr word, struct str *ret);

enum { REFS_KEPT = 16, REFS_BLOCK = ROOT_KINDS };

/* A word that refers. */
struct ref {
	unsigned kind;		/* enum root_kind, or REFS_BLOCK */
	vaddr word;		/* where it lies; registers: which one */
	uint64_t value;
	struct root root;	/* unless it is in a block */
	struct block block;	/* if it is */
};

struct refs {
	struct ref item[REFS_KEPT];	/* the first of each kind, by kind */
	size_t n;
	uint64_t count[ROOT_KINDS + 1];	/* all, by kind */
};

/*
 * All words that point into [from, to): one pass over memory, nothing is
 * built.  Free blocks and the words of the range itself do not count.  What a
 * graph for that block has met is not looked for again; NULL: there is none.
 */
void refs_find(struct refs *r, struct space *sp, struct heap *h,
	       const struct where *w, const struct graph_asked *asked,
	       vaddr from, vaddr to);

/* A way from a root to a block: which word leads on from each node. */
struct refs_step {
	uint32_t node;
	vaddr word;		/* points into the next step's block */
};

struct refs_path {
	struct refs_step *steps;	/* owned; the root first */
	size_t n, cap;
};

/* One of the shortest; n is 0 if the block is not live. */
void refs_path(struct refs_path *p, const struct graph *g, uint32_t block);
void refs_path_fini(struct refs_path *p);

#endif
