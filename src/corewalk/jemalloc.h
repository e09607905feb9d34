/* SPDX-License-Identifier: MIT */
/*
 * jemalloc 5.1 to 5.3: what jemalloc_find.c finds and jemalloc_walk.c walks.
 * docs/allocators/jemalloc.md has the layout.
 *
 * Vocabulary.  An *extent* is a run of pages: one *large* block, a *slab* of
 * *regions* of one size class, or free.  Free ones are *dirty*, *muzzy* (the
 * kernel may take their pages) or *retained* (it has them).  The *radix tree*
 * leads from a page to the extent's structure, by a *root* and its *leaves*.
 * A slab has a bitmap of its free regions; regions in a *thread cache* are
 * not free there.  A *base block* holds jemalloc's own structures.
 */
#ifndef COREWALK_JEMALLOC_H
#define COREWALK_JEMALLOC_H

#include "corewalk/heap.h"
#include "corewalk/space.h"

enum {
	JE_PAGE = 4096,
	JE_MAX_CLASSES = 240,
	JE_MAX_REGIONS = 512,		/* of a slab */
	JE_BIN_BYTES = 24,		/* of a thread cache's bin */
	JE_ARENAS = 4096,
};

enum je_state {
	JE_ACTIVE, JE_DIRTY, JE_MUZZY, JE_RETAINED,
	JE_CHANGING, JE_MERGING,	/* 5.3: on its way between two lists */
};

/* What the structures of a release differ in. */
struct je_layout {
	const char *release;
	unsigned state_shift, state_bits;
	unsigned class_shift, free_shift;
	uint64_t alignment;		/* of an extent's structure */
	unsigned entry_state_shift;	/* in a leaf's entry; 0: not there */
	uint64_t entry_flags;		/* low bits that an entry may have */
	bool bins_have_heads;		/* thread caches as in 5.3 */
	/* For 57 bits of address: three levels, and entries of 16 bytes. */
	bool wide;
};

struct je_extent {
	vaddr addr;		/* of its structure */
	vaddr start;		/* of its first page */
	vaddr user;		/* of its block, in the first page */
	uint64_t bytes;
	uint64_t size;		/* of its block, of its regions; 0: free */
	uint16_t arena, free;	/* free: regions, as it says itself */
	uint8_t class, state;
	bool slab;
	bool agrees;		/* all it says can be true at once */
};

struct je_cache {
	vaddr addr;		/* of its structure */
	vaddr small, large;	/* its bins, those of large classes */
	uint32_t tid;
};

struct jemalloc {
	struct space *sp;
	const struct module *module;
	vaddr lo, hi;		/* its writable memory */
	vaddr root;
	unsigned votes;		/* leaves' entries that led to the root */
	const struct je_layout *layout;
	unsigned quantum;	/* least difference of two size classes */
	unsigned n_classes, n_small;
	uint64_t size[JE_MAX_CLASSES];

	struct je_extent *extents;	/* owned; by address */
	size_t n_extents, cap_extents;
	size_t n_agree;
	bool by_pages;		/* 5.3.1: large blocks are whole pages */
	size_t n_odd;		/* entries of the tree that are no extent's */
	vaddr *leaves;		/* owned */
	size_t n_leaves, cap_leaves;

	struct je_cache *caches;	/* owned; by address */
	size_t n_caches, cap_caches;
	bool caches_off;	/* threads have no cache, and none is missing */
	struct heap_range *bases;	/* owned; base blocks by address */
	size_t n_bases, cap_bases;
};

/*
 * All instances: one a module that has one.  The caller frees them with
 * je_free(); near says how far the best candidate came that is none.
 */
size_t je_find(struct space *sp, struct jemalloc **ret, char *near,
	       size_t near_size);
void je_free(struct jemalloc *all, size_t n);

/* Thread caches and base blocks: what can be found of them. */
void je_find_caches(struct jemalloc *j);
void je_find_bases(struct jemalloc *j);

/* The extent that holds addr, NULL if none does. */
const struct je_extent *je_extent_at(const struct jemalloc *j, vaddr addr);

/* jemalloc_sampled.c: adds the blocks that its sampler picked. */
void je_add_profile(const struct jemalloc *j, struct heap *heap,
		    uint32_t allocator);

/* Adds extents, caches and notes; arenas are added as they are met. */
void je_walk(struct jemalloc *j, struct heap *heap, uint32_t allocator);

#endif
