/* SPDX-License-Identifier: MIT */
/*
 * Where the memory is: every byte of private memory in exactly one row.
 *
 * Vocabulary.  A *row* is what a byte is for.  A *stack* is an address range
 * that a thread runs on, or ran on: the C library keeps the stacks of threads
 * that are gone for the next thread.  A *map* is one line of the table of
 * mappings: one mapping, or a few adjacent ones of the same thing.
 *
 * Invariant: the rows' bytes add up to the private bytes, and so do their
 * stored, resident and swapped bytes.  where_check() verifies it in release
 * builds too.
 *
 * Cost.  Proportional to mappings, extents and holes in the file; blocks are
 * looked at only where a hole lies among them, or a page that is not just
 * resident.
 */
#ifndef ANALYSIS_WHERE_H
#define ANALYSIS_WHERE_H

#include "base/types.h"
#include "corewalk/heap.h"
#include "corewalk/pages.h"
#include "corewalk/space.h"

enum where_row {
	WHERE_USED,		/* blocks of the program, mmapped ones too */
	WHERE_FREE,		/* in bins, in no list, and tops */
	WHERE_CACHED,		/* in thread caches and fastbins */
	WHERE_OVERHEAD,		/* the allocator's own */
	WHERE_STACKS,		/* of living threads */
	WHERE_DEAD_STACKS,	/* of threads that are gone */
	WHERE_DATA,		/* of the program and its libraries */
	WHERE_RUNTIME,		/* of a language runtime, not walked */
	WHERE_ANONYMOUS,	/* none of the above */
	WHERE_UNDECODED,	/* of a heap, but damaged or not in the file */
};
enum { WHERE_ROWS = 10 };

struct where_amount {
	uint64_t bytes;
	uint64_t stored;	/* of them really in the file: space_stored */
	/* Not in the file, and not for being a hole: left out, or cut off. */
	uint64_t left_out;
	/* Where their pages are; 0 where that is not known of each page. */
	struct residency pages;
};

struct where_stack {
	vaddr start, end;
	vaddr tcb;		/* the thread's descriptor; 0 if not found */
	uint32_t thread;	/* in space.threads; WHERE_NO_THREAD: gone */
	bool is_main;		/* the one that the kernel made */
	bool exact;		/* start and end are known, not just mappings */
};
enum { WHERE_NO_THREAD = UINT32_MAX };

/* A line of the table of mappings.  The borders of a mapping are never lost. */
struct where_map {
	vaddr start, end;
	uint64_t stored;
	struct residency pages;	/* the sum over the rows, if private */
	uint32_t flags;		/* enum seg_flag, of all its mappings */
	uint32_t mappings;	/* how many it stands for */
	bool is_private;
	/*
	 * owned; what it is, in words: "heap, glibc main", "stack, thread 4
	 * (tid 4711)", "data of libc.so.6", "reserved, no access", "[vdso]".
	 * Names come from the target and are made harmless for a terminal; a
	 * nameless space has none of plain files and shared memory.
	 */
	char *what;
	uint64_t stored_row[WHERE_ROWS];	/* by row; 0 if not private */
};

struct where {
	struct where_amount row[WHERE_ROWS];
	struct where_amount total;	/* of private memory, counted apart */
	struct where_stack *stacks;	/* owned; sorted by start */
	size_t n_stacks, cap_stacks;
	struct where_map *maps;		/* owned; sorted by start */
	size_t n_maps, cap_maps;
};

/* After heap_finish(). */
void where_init(struct where *w, struct space *sp, struct heap *h);
void where_fini(struct where *w);

/*
 * The rows add up.  If they do not, *ret_off gets rows minus total in bytes
 * (or in stored, resident or swapped ones, if only those differ): a finding to
 * report.
 */
bool where_check(const struct where *w, int64_t *ret_off) MUST_CHECK;

/* "used", "dead_stacks": for JSON, CSV and --filter. */
const char *where_row_name(enum where_row row);
/* "in use by the program": for people. */
const char *where_row_text(enum where_row row);

/* The stack that holds addr, NULL if none. */
const struct where_stack *where_stack_at(const struct where *w, vaddr addr);
/* The line of the table of mappings that holds addr, NULL if none. */
const struct where_map *where_map_at(const struct where *w, vaddr addr);

#endif
