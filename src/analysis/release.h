/* SPDX-License-Identifier: MIT */
/*
 * Free memory that one call of an allocator's own gives up: whole free pages
 * that tcmalloc's page heap and jemalloc's arenas keep, and ZendMM's runs of
 * pages without a block in use.  malloc_trim(3) is fragment.h's.
 */
#ifndef ANALYSIS_RELEASE_H
#define ANALYSIS_RELEASE_H

#include "analysis/fragment.h"
#include "base/types.h"
#include "corewalk/heap.h"

struct release {
	uint32_t allocator;	/* index in heap.allocators */
	uint64_t bytes;		/* that take memory now */
	const char *call;	/* static; what a program can call */
	const char *setting;	/* static; what does it by itself, or NULL */
};

/* What the i-th allocator could give up; false if there is no such call. */
bool release_of(const struct fragment *f, const struct heap *h,
		uint32_t allocator, struct release *ret);

#endif
