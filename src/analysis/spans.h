/* SPDX-License-Identifier: MIT */
/*
 * How full the spans of an allocator are, and what keeps nearly empty ones.
 *
 * Vocabulary.  A *span* is a run of pages cut into blocks of one size: see
 * struct heap_span.  Its pages go back to the page heap, the arena or the
 * chunk when no block of it is in use or in a cache.  A block in use *pins* a
 * span that is nearly empty: at most an eighth of its blocks are in use.
 *
 * Cost.  One look at each block of a span.
 */
#ifndef ANALYSIS_SPANS_H
#define ANALYSIS_SPANS_H

#include "analysis/looked.h"
#include "base/types.h"
#include "corewalk/heap.h"
#include "corewalk/space.h"

enum span_fill {
	SPAN_UNUSED,		/* no block in use; caches may hold some */
	SPAN_NEARLY,		/* at most an eighth of the blocks in use */
	SPAN_HALF,		/* at most half of them */
	SPAN_MORE,
	SPAN_FULL,		/* all in use */
	SPAN_FILLS,
};

/* Spans of one allocator and size class. */
struct span_class {
	uint32_t allocator;		/* index in heap.allocators */
	uint32_t size;			/* of a block */
	uint64_t spans, bytes;		/* bytes: of blocks */
	struct tally used, cached, free;	/* cached: in any cache */
	uint64_t fill[SPAN_FILLS];	/* spans, by enum span_fill */
	uint64_t idle[SPAN_FILLS];	/* bytes there that are not in use */
	uint64_t empty_bytes;		/* spans with nothing used or cached */
	uint64_t pinning;		/* blocks in use in SPAN_NEARLY ones */
	vaddr example;			/* the first of these */
	struct looked looked;		/* what they start with */
};

struct spans {
	struct span_class *classes;	/* owned; by allocator and size */
	size_t n_classes, cap_classes;
};

/* After heap_finish(). */
void spans_init(struct spans *s, struct space *sp, struct heap *h);
void spans_fini(struct spans *s);

#endif
