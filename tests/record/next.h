/* SPDX-License-Identifier: MIT */
/*
 * The functions of malloc behind a preloaded one, and what it gives out while
 * dlsym(), which allocates, looks for them.
 */
#ifndef RECORD_NEXT_H
#define RECORD_NEXT_H

#include <dlfcn.h>
#include <stddef.h>

static char early[65536];
static size_t early_used;
static void *(*next_malloc)(size_t), *(*next_calloc)(size_t, size_t);
static void *(*next_realloc)(void *, size_t);
static void *(*next_memalign)(size_t, size_t);
static void (*next_free)(void *);
static __thread int resolving __attribute__((tls_model("initial-exec")));

static int resolve(void)
{
	if (next_malloc)
		return 1;
	if (resolving)
		return 0;
	resolving = 1;
	next_calloc = dlsym(RTLD_NEXT, "calloc");
	next_realloc = dlsym(RTLD_NEXT, "realloc");
	next_memalign = dlsym(RTLD_NEXT, "memalign");
	next_free = dlsym(RTLD_NEXT, "free");
	next_malloc = dlsym(RTLD_NEXT, "malloc");
	resolving = 0;
	return 1;
}

static void *early_alloc(size_t size)
{
	void *p = early + early_used;

	early_used += (size + 15) & ~(size_t)15;
	return early_used <= sizeof(early) ? p : NULL;
}

static int is_early(void *p)
{
	return (char *)p >= early && (char *)p < early + sizeof(early);
}

#endif
