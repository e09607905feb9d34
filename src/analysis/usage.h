/* SPDX-License-Identifier: MIT */
/*
 * What sizes the blocks have.
 *
 * A *size class* is one chunk size below USAGE_EXACT bytes, and above it a
 * range from one power of two to the next, of one allocator.  Sizes are chunk
 * sizes: what malloc hands out plus the allocator's own words.
 *
 * Invariant: over all classes, blocks and bytes of each state add up to the
 * tallies of the arenas.
 *
 * Cost.  One pass over the start planes, about two ns for each block; memory
 * of the target is not read, except for usage_look().
 */
#ifndef ANALYSIS_USAGE_H
#define ANALYSIS_USAGE_H

#include "base/types.h"
#include "corewalk/heap.h"
#include "corewalk/pages.h"
#include "corewalk/space.h"

enum { USAGE_EXACT = 65536, USAGE_ALL_ARENAS = UINT32_MAX };

struct usage_class {
	uint32_t allocator;	/* index in heap.allocators */
	uint64_t min, max;	/* chunk sizes, inclusive; equal if exact */
	struct tally state[BLOCK_STATES];	/* without mmapped blocks */
	struct tally mmapped;	/* in use, a mapping of their own */
	struct tally used;	/* state[BLOCK_USED] and mmapped */
	struct tally free;	/* all free states */
	/* Of used, free, and the allocator's; 0 until residency_init(). */
	struct residency used_pages, free_pages, own_pages;
	vaddr example;		/* user address of its first block in use, or */
				/* of its first block if none is */
};

struct usage {
	uint32_t arena;			/* or USAGE_ALL_ARENAS */
	/* Owned; by allocator, and then by size; none is empty. */
	struct usage_class *classes;
	size_t n_classes, cap_classes;
	struct usage_class total;	/* of all; min and max over all sizes */
};

/* Blocks of one arena, or of all. */
void usage_init(struct usage *u, const struct heap *h, uint32_t arena);
/* The same of those arenas of which wanted[arena] says so. */
void usage_init_some(struct usage *u, const struct heap *h,
		     const bool *wanted);
void usage_fini(struct usage *u);

/* The place of the class of a block's size. */
size_t usage_find(const struct usage *u, uint32_t allocator, uint64_t size);
/* A block in use that has one size counts from now on with another. */
void usage_resize(struct usage *u, uint32_t allocator, uint64_t from,
		  uint64_t to);
/* For qsort() of classes: as they are in usage. */
int usage_order(const void *a, const void *b);

/* The sums agree with the arenas' tallies. */
bool usage_check(const struct usage *u, const struct heap *h) MUST_CHECK;

/*
 * What the first two words of a block look like, so that a person recognises
 * what kind of block it is.
 */
enum look_word {
	LOOK_NONE,		/* not in the file, or the block is shorter */
	LOOK_ZERO,
	LOOK_SMALL,		/* below 65536: a count or a flag */
	LOOK_TEXT,		/* all bytes printable, or ending in zeros */
	LOOK_REPEATED,		/* one byte repeated: a fill */
	LOOK_CODE,		/* an address in a program or library */
	LOOK_BLOCK,		/* an address in a heap */
	LOOK_ADDRESS,		/* any other address */
	LOOK_OTHER,
};

struct look {
	enum look_word kind[2];
	uint64_t word[2];	/* as the target's words; 0 if LOOK_NONE */
};

enum { LOOK_TEXT_MAX = 96 };

struct look usage_look(struct space *sp, struct heap *h,
		       const struct block *b);
/* Of the same kind: the same words where they are CODE, else the same forms. */
bool look_alike(const struct look *a, const struct look *b);
/* "0x55d0c1e3f8a8 in appd, \"row\"": safe for a terminal. */
void look_text(char ret[LOOK_TEXT_MAX], const struct space *sp,
	       const struct look *look);

#endif
