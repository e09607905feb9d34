/* SPDX-License-Identifier: MIT */
/*
 * Where the pages are that blocks lie on: resident, in swap, never touched.
 *
 * Only where each page is known: of a process, and of a snapshot that heapcore
 * wrote.  Of other cores everything here is 0, at no cost.
 *
 * A page that two blocks share is divided between them to the byte, so that
 * over all blocks, and all else, the bytes add up to the mappings'.
 *
 * Cost.  Pages come in runs of the same kind.  A block inside one run costs
 * two comparisons, and those that are wholly resident are not even looked at
 * by residency_init(): that costs a step for each run of other pages and for
 * each block on such a one.
 */
#ifndef ANALYSIS_RESIDENCY_H
#define ANALYSIS_RESIDENCY_H

#include "analysis/usage.h"
#include "base/types.h"
#include "corewalk/heap.h"
#include "corewalk/pages.h"
#include "corewalk/planes.h"
#include "corewalk/space.h"

struct residency_arena {
	struct residency used;	/* blocks in use, mmapped ones too */
	struct residency free;	/* blocks in all free states */
	struct residency all;	/* all extents */
};

struct residency_heap {
	struct residency_arena *arenas;	/* owned; NULL: pages not known */
	size_t n_arenas;
	struct residency_arena total;
};

/*
 * Of each arena, and of each class of usage: fields used_pages,
 * free_pages and own_pages.  usage is of all arenas.
 */
void residency_init(struct residency_heap *r, struct space *sp,
		    const struct heap *h, struct usage *usage);
void residency_fini(struct residency_heap *r);

/*
 * For those who go over blocks: the pages of one after the other.  Any order
 * is right, that of addresses is fast.
 */
struct residency_cursor {
	struct space *sp;	/* borrowed; NULL: pages not known */
	struct page_piece at;
};

static inline void residency_seek(struct residency_cursor *c,
				  struct space *sp)
{
	*c = (struct residency_cursor){
		.sp = space_pages_known(sp) ? sp : NULL,
	};
}

/* Adds the bytes of [from, to). */
static inline void residency_of(struct residency_cursor *c, vaddr from,
				vaddr to, struct residency *r)
{
	while (c->sp && from < to) {
		vaddr end;

		if (from < c->at.start || from >= c->at.end)
			c->at = space_pages_at(c->sp, from);
		end = min_u64(to, c->at.end);
		residency_add_pages(r, c->at.flags, end - from);
		from = end;
	}
}

/* Where blocks in that state are counted in a class of sizes. */
struct residency *residency_of_class(struct usage_class *c,
				     enum block_state state);

/* Within analysis/: */

/*
 * Add the bytes of [from, to), a part of the cursor's extent, to the states
 * of the blocks they lie in, without those that are just resident: these are
 * what is left of the bytes of that state.
 */
void residency_of_states(struct space *sp, struct planes_cursor *at,
			 vaddr from, vaddr to,
			 struct residency by[BLOCK_STATES]);

/* What is not in r yet of so many bytes is just resident. */
static inline void residency_rest(struct residency *r, uint64_t bytes)
{
	r->resident = bytes - r->swapped - r->zero - r->absent;
}

#endif
