/* SPDX-License-Identifier: MIT */
/*
 * What the small programs of known truth share.  Each brings its heap into one
 * shape, prints facts as "TRUTH name value", and dies.  tests/truth/facts
 * compares them with a report.
 */
#ifndef TRUTH_CASE_H
#define TRUTH_CASE_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The chunk of a request: malloc/malloc.c, request2size(), 64-bit. */
#define CHUNK(request) (((request) + 8 + 15) & ~(size_t)15)

/* stdout gets a buffer that does not come from the heap. */
static inline void quiet_stdout(void)
{
	static char buffer[1 << 14];

	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
}

static inline void truth(const char *name, size_t value)
{
	printf("TRUTH %s %zu\n", name, value);
}

static inline void truth_at(const char *name, const void *address)
{
	printf("TRUTH %s %#lx\n", name, (unsigned long)address);
}

static inline void *filled(size_t size, int byte)
{
	void *p = malloc(size);

	if (!p)
		_exit(2);
	return memset(p, byte, size);
}

static inline void finish(void)
{
	fflush(stdout);
	abort();
}

#endif
