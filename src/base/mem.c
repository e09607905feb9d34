/* SPDX-License-Identifier: MIT */
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A large page; twice as much is enough to align one. */
enum { HUGE = MEM_APPEND_ROOM / 2 };

static void __attribute__((noreturn)) exhausted(size_t size)
{
	fprintf(stderr, "heapcore: out of memory: wanted %zu bytes more\n",
		size);
	exit(2);
}

void mem_no_room(const char *what)
{
	fprintf(stderr, "heapcore: out of memory: %s\n", what);
	exit(2);
}

void *mem_alloc(size_t size)
{
	void *p = malloc(size ? size : 1);

	if (!p)
		exhausted(size);
	return p;
}

void *mem_zalloc(size_t size)
{
	void *p = calloc(1, size ? size : 1);

	if (!p)
		exhausted(size);
	return p;
}

void *mem_realloc(void *old, size_t size)
{
	void *p = realloc(old, size ? size : 1);

	if (!p)
		exhausted(size);
	return p;
}

char *mem_strdup(const char *text)
{
	size_t size = strlen(text) + 1;

	return memcpy(mem_alloc(size), text, size);
}

char *mem_printf(const char *fmt, ...)
{
	va_list ap;
	char *text;
	int len;

	va_start(ap, fmt);
	len = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (len < 0)
		exhausted(0);
	return text;
}

void *mem_map_maybe(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void *mem_map(size_t size)
{
	void *p = size ? mem_map_maybe(size) : NULL;

	if (!p && size)
		exhausted(size);
	return p;
}

void *mem_map_huge(size_t size)
{
	void *p = mem_map(size);

	if (p)
		madvise(p, size, MADV_HUGEPAGE);
	return p;
}

void *mem_map_grow(void *pages, size_t old_size, size_t new_size)
{
	void *p;

	if (!old_size)
		return mem_map_huge(new_size);
	p = mremap(pages, old_size, new_size, MREMAP_MAYMOVE);
	if (p == MAP_FAILED)
		exhausted(new_size - old_size);
	return p;
}

void mem_map_append(void *pages, size_t used, void *src, size_t size)
{
	char *to = (char *)pages + used;
	char *at = (char *)round_up((uintptr_t)to, HUGE);

	/* Large pages stay large if both are aligned alike. */
	at += (uintptr_t)src & (HUGE - 1);
	if (mremap(src, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, at) != at)
		exhausted(size);
	memmove(to, at, size);
}

void mem_unmap(void *pages, size_t size)
{
	if (size)
		munmap(pages, size);
}

void *mem_map_shrink(void *pages, size_t old_size, size_t new_size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t old_end = round_up(old_size, page);
	size_t new_end = round_up(new_size, page);

	if (new_end < old_end)
		munmap((char *)pages + new_end, old_end - new_end);
	return pages;
}

void *mem_grow(void *items, size_t n, size_t *cap, size_t item_size)
{
	size_t bytes;

	if (n < *cap)
		return items;
	*cap = *cap ? *cap * 2 : 8;
	if (__builtin_mul_overflow(*cap, item_size, &bytes))
		exhausted(SIZE_MAX);
	return mem_realloc(items, bytes);
}
