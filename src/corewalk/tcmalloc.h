/* SPDX-License-Identifier: MIT */
/*
 * tcmalloc of gperftools 2.8 to 2.18: what tcmalloc_find.c finds and
 * tcmalloc_walk.c walks.  docs/allocators/tcmalloc.md has the layout.
 *
 * Vocabulary.  A *page* is tcmalloc's, 8 KiB in most builds.  A *span* is a
 * run of pages: one block, objects of one *size class*, or free.  The *page
 * map* leads from a page to its span, by a *root* and its *leaves*.  Free
 * objects lie in their span, in a *transfer cache*, or in a *thread cache*.
 */
#ifndef COREWALK_TCMALLOC_H
#define COREWALK_TCMALLOC_H

#include "corewalk/heap.h"
#include "corewalk/space.h"

enum {
	TC_MAX_CLASSES = 128,
	TC_LIST_BYTES = 32,	/* of a thread cache's list, one a class */
	TC_CENTRAL_BYTES = 1216,	/* of a central list */
};

enum tc_where {
	TC_IN_USE,
	TC_NORMAL,		/* free, in the page heap */
	TC_RETURNED,		/* free, its pages given back to the kernel */
};

struct tc_span {
	vaddr addr;		/* of its structure */
	vaddr start;		/* of its memory */
	uint64_t bytes;
	vaddr next, prev;	/* in the list that it is in */
	vaddr objects;		/* head of its free list, or a stack */
	uint16_t taken;		/* objects that are not in that list */
	uint8_t size_class;	/* 0: one block */
	uint8_t where;		/* enum tc_where */
	bool sampled;
	bool readable;		/* all its bytes are in the file */
};

/* What the page heap itself counts. */
struct tc_stats {
	uint64_t system_bytes, free_bytes, returned_bytes;
};

struct tcmalloc {
	struct space *sp;
	const struct module *module;
	vaddr lo, hi;		/* its writable memory */
	vaddr root;
	unsigned shift;		/* log2 of the page */
	unsigned votes;		/* leaves' entries that led to the root */
	bool smallest_span;	/* 2.11 and later */
	struct tc_stats stats;

	struct tc_span *spans;	/* owned; by address */
	size_t n_spans, cap_spans;
	size_t n_odd;		/* entries of the map that are no span's */
	vaddr *leaves;		/* owned */
	size_t n_leaves, cap_leaves;
	uint64_t span_bytes[3];	/* by enum tc_where */

	unsigned n_classes;	/* with class 0; 0: the table was not found */
	uint32_t size[TC_MAX_CLASSES];
	uint32_t to_move[TC_MAX_CLASSES];
	vaddr central;		/* array of central lists; 0 not found */
	unsigned central_votes;
	vaddr *caches;		/* owned; thread caches */
	size_t n_caches, cap_caches;
	unsigned cache_next;	/* offset of next in one; 0 not found */
};

/* log2 of a leaf's and of the root's number of entries. */
static inline unsigned tc_leaf_bits(unsigned shift)
{
	return (48 - shift + 1) / 2;
}

static inline unsigned tc_root_bits(unsigned shift)
{
	return 48 - shift - tc_leaf_bits(shift);
}

/*
 * All instances: one a module that has one.  The caller frees them with
 * tc_free(); near says how far the best candidate came that is none.
 */
size_t tc_find(struct space *sp, struct tcmalloc **ret, char *near,
	       size_t near_size);
void tc_free(struct tcmalloc *all, size_t n);

/* Size classes, central lists, thread caches: what can be found of them. */
void tc_find_tables(struct tcmalloc *t);

/* Do the spans add up to what the page heap counts? */
bool tc_exact(const struct tcmalloc *t);

/*
 * tcmalloc_sampled.c: adds the blocks that its sampler picked, and what made
 * it grow; after tc_find_tables().
 */
void tc_add_profiles(const struct tcmalloc *t, struct heap *heap,
		     uint32_t allocator, uint32_t arena);

/* Adds arena, extents, caches and notes. */
void tc_walk(struct tcmalloc *t, struct heap *heap, uint32_t allocator,
	     uint32_t arena);

#endif
