/* SPDX-License-Identifier: MIT */
/*
 * Where references start: registers, stacks, data of modules, and any other
 * memory that no allocator owns.
 *
 * Not roots are blocks in any state, the allocators' own structures and their
 * variables (heap.own), the trace that heapcore record has mapped, and stacks
 * below the stack pointer: those are stale.  They are listed all the same, as
 * ROOT_STALE, for who wants to say what only a dead stack word still names.
 * Bytes of a heap that could not be decoded are roots: better a leak missed
 * than a live block called lost.
 */
#ifndef ANALYSIS_ROOTS_H
#define ANALYSIS_ROOTS_H

#include "analysis/where.h"
#include "base/types.h"
#include "corewalk/heap.h"
#include "corewalk/space.h"

enum root_kind {
	ROOT_DATA,		/* of a program or library, its bss too */
	ROOT_ANONYMOUS,		/* nobody knows whose */
	ROOT_SHARED,
	ROOT_UNDECODED,		/* of a heap */
	ROOT_STACK,		/* of a living thread, with its TLS */
	ROOT_REGISTERS,
	ROOT_STALE,		/* stack words that nobody will read again */
};
enum { ROOT_KINDS = 7 };

/* "data", "stack", ...: for JSON. */
const char *root_kind_name(enum root_kind kind);

struct root {
	vaddr start, end;	/* registers: 0, 0 */
	enum root_kind kind;
	uint32_t thread;	/* in space.threads, or WHERE_NO_THREAD */
};

struct roots {
	struct root *items;	/* owned; by address, then the registers */
	size_t n, cap;
	/* Bytes that could hold roots but are not in the file. */
	uint64_t missing_bytes;
	uint64_t missing_shared;	/* the same of shared mappings */
	bool no_main_stack;	/* it is not there: nothing can be said */
	uint64_t bytes[ROOT_KINDS];
};

void roots_init(struct roots *r, struct space *sp, const struct heap *h,
		const struct where *w);
void roots_fini(struct roots *r);

/* Is memory that may hold references not in the file, of either kind? */
static inline bool roots_missing(const struct roots *r)
{
	return r->missing_bytes || r->missing_shared;
}

#endif
