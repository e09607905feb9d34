/* SPDX-License-Identifier: MIT */
/*
 * Allocation that cannot fail: on exhaustion the program says what it wanted
 * and exits with status 2, so that adding to a model returns void.
 *
 * An array is three variables, "T *items; size_t n, cap;"; MEM_PUSH makes room
 * for one more and yields a pointer to it, uninitialised.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stdlib.h>

#include "base/types.h"

void *mem_alloc(size_t size) __attribute__((malloc, alloc_size(1)));
void *mem_zalloc(size_t size) __attribute__((malloc, alloc_size(1)));
void *mem_realloc(void *old, size_t size) __attribute__((alloc_size(2)));
char *mem_strdup(const char *text);
char *mem_printf(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Ends the program as they do: for libraries that ask what to do then. */
void mem_no_room(const char *what) __attribute__((noreturn));

/*
 * Zeroed pages straight from the kernel: untouched ones cost nothing.  Freed
 * with mem_unmap and the same size.  A size of 0 gives NULL.
 */
void *mem_map(size_t size);
/* The same; NULL if the kernel does not promise so much.  Size is not 0. */
void *mem_map_maybe(size_t size);
/* The same in large pages where the kernel has them; for what fills up. */
void *mem_map_huge(size_t size);
/* The same with more room; the pages may move, the new ones are zeroed. */
void *mem_map_grow(void *pages, size_t old_size, size_t new_size);
/*
 * Moves size bytes of src, which are no more then, behind the first used bytes
 * of pages, which have MEM_APPEND_ROOM more than both need.  The kernel
 * moves the pages, no new ones are needed.
 */
enum { MEM_APPEND_ROOM = 4 << 20 };
void mem_map_append(void *pages, size_t used, void *src, size_t size);
void mem_unmap(void *pages, size_t size);
/* Gives the tail back; the pages do not move. new_size is not 0. */
void *mem_map_shrink(void *pages, size_t old_size, size_t new_size);

/* Room for at least n + 1 items; returns the array, perhaps moved. */
void *mem_grow(void *items, size_t n, size_t *cap, size_t item_size);

#define MEM_PUSH(items, n, cap) \
	(*((items) = mem_grow((items), (n), &(cap), sizeof(*(items))), \
	   &(items)[(n)++]))

static inline void mem_auto_free(void *p)
{
	free(*(void **)p);
}

/* For a local that owns what it points to. */
#define AUTO_FREE __attribute__((cleanup(mem_auto_free)))

#endif
