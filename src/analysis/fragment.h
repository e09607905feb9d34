/* SPDX-License-Identifier: MIT */
/*
 * Free memory that the process keeps, and why it is kept.
 *
 * Vocabulary.  A *run* is free memory without a live block in it: adjacent
 * free blocks after fastbin blocks were merged with their neighbours, as
 * malloc_trim does first.  Blocks in thread caches are not free to anybody but
 * their thread: here they count as live.  A page is *pinned* if it holds free
 * bytes and at least one live block; that block *pins* it.  *Trimmable* is
 * what malloc_trim(0) would give back to the kernel, to the byte.
 *
 * Identity: free = trimmable + pinned + kept, where kept is whole free pages
 * that malloc_trim does not give back (the ends of other arenas' heaps, pages
 * that hold the allocator's words of a free block) and page rests at the edge
 * of an extent.
 *
 * Cost.  Proportional to free blocks and to pages that hold free bytes.
 */
#ifndef ANALYSIS_FRAGMENT_H
#define ANALYSIS_FRAGMENT_H

#include "analysis/looked.h"
#include "analysis/spans.h"
#include "analysis/usage.h"
#include "base/types.h"
#include "corewalk/heap.h"
#include "corewalk/space.h"

struct fragment_bytes {
	uint64_t bytes;		/* of address space */
	uint64_t stored;	/* of them in the file: what costs memory */
};

/* Runs from 2^n bytes up to below 2^(n+1). */
struct fragment_runs {
	uint64_t runs;
	uint64_t bytes;
	uint64_t page_bytes;	/* in pages wholly inside a run */
};

struct fragment_arena {
	struct fragment_bytes free;	/* bins, fastbins, unlisted and top */
	struct fragment_bytes trimmable;
	struct fragment_bytes trimmable_top;	/* of trimmable, the top's */
	uint64_t pinned_pages;
	uint64_t pinned_bytes;		/* free bytes in pinned pages */
	uint64_t top_bytes;		/* free in tops: at the arena's end */
	uint64_t below_top_bytes;	/* free, but not in a top */
	uint64_t cached_bytes;		/* in thread caches; not in free */
	uint64_t runs, largest_run;
	/* By enum free_role, of allocators with spans; stored: FREE_PAGES. */
	struct fragment_bytes role[4];
};

/*
 * Blocks that pin pages, of one size and state.  The free bytes of a page are
 * divided evenly among the live blocks on it, so that the column adds up.
 */
struct fragment_pin {
	uint64_t size;		/* chunk size; from USAGE_EXACT on a minimum */
	enum block_state state;	/* BLOCK_USED, BLOCK_CACHED, BLOCK_OVERHEAD */
	uint64_t pages;		/* with such a block; kinds overlap */
	uint64_t blocks;	/* that lie on a pinned page */
	uint64_t free_bytes;	/* held: its share of them */
	uint64_t sole_pages;	/* pinned by nothing but this kind */
	uint64_t sole_bytes;	/* free bytes in those */
	vaddr example;		/* user address of the first such block */
	struct looked looked;	/* what they start with */
};

struct fragment {
	struct fragment_arena *arenas;	/* owned; by index of heap.arenas */
	size_t n_arenas;
	struct fragment_arena total;
	struct fragment_runs runs[64];	/* by log2 of the size */
	struct fragment_pin *pins;	/* owned; largest free_bytes first */
	size_t n_pins, cap_pins;
	struct spans spans;
};

/* Also sets heap.arenas[].trimmable_bytes: stored ones, as Rss would show. */
void fragment_init(struct fragment *f, struct space *sp, struct heap *h);
void fragment_fini(struct fragment *f);

#endif
