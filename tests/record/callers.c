/* SPDX-License-Identifier: MIT */
/*
 * Every function that allocates, called by functions of each kind of frame:
 * plain, with memory from alloca, with a realigned stack.  C, and C++ with
 * operator new.
 */
#include <alloca.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
#include <new>
#endif

#define APART __attribute__((noinline, noclone))

/* What must stay in a register over a call, so that all of them are in use. */
static volatile uintptr_t junk = 0x2020202020202020;

#define SITE(name, call) \
static APART uintptr_t name(void *old, size_t n) \
{ \
	uintptr_t a = junk, b = junk, c = junk, d = junk, e = junk; \
	void *p = NULL; \
	p = call; \
	free(p); \
	return a ^ b ^ c ^ d ^ e ^ (p == old); \
}

static APART void *aligned(size_t align, size_t n)
{
	void *p = NULL;

	return posix_memalign(&p, align, n) ? NULL : p;
}

SITE(by_malloc, (free(old), malloc(n)))
SITE(by_calloc, (free(old), calloc(n, 3)))
SITE(by_realloc_null, (free(old), realloc(NULL, n)))
SITE(by_realloc, realloc(old, n))
SITE(by_realloc_same, realloc(old, n > 50 ? 40 : n))
SITE(by_reallocarray, reallocarray(old, n, 7))
SITE(by_memalign, (free(old), memalign(64, n)))
SITE(by_aligned_alloc, (free(old), aligned_alloc(64, n)))
SITE(by_posix_memalign, (free(old), aligned(64, n)))
SITE(by_valloc, (free(old), valloc(n)))
SITE(by_strdup, (free(old), strdup("a string")))
#ifdef __cplusplus
SITE(by_new, (free(old), operator new(n)))
SITE(by_new_array, (free(old), operator new[](n, std::nothrow)))
#endif

static uintptr_t (*const sites[])(void *, size_t) = {
	by_malloc, by_calloc, by_realloc_null, by_realloc, by_realloc_same,
	by_reallocarray, by_memalign, by_aligned_alloc, by_posix_memalign,
	by_valloc, by_strdup,
#ifdef __cplusplus
	by_new, by_new_array,
#endif
};

static APART uintptr_t all(size_t n)
{
	uintptr_t sum = 0;

	for (size_t i = 0; i < sizeof(sites) / sizeof(*sites); i++)
		sum += sites[i](malloc(41), n + i);
	return sum;
}

/* Allocates itself, too. */
static APART uintptr_t with_alloca(size_t n)
{
	volatile char *p = (volatile char *)alloca(n);
	void *old = malloc(n);
	uintptr_t sum;

	p[n - 1] = 1;
	old = realloc(old, n * 40);
	sum = all(n) + (uintptr_t)p[n - 1];
	old = realloc(old, n);
	free(old);
	return sum;
}

static APART uintptr_t realigned(size_t n)
{
	volatile char p[64] __attribute__((aligned(128)));
	volatile char *more = (volatile char *)alloca(n);
	void *old = realloc(NULL, n);
	uintptr_t sum;

	p[n % 64] = more[n - 1] = 1;
	old = realloc(old, n * 30);
	sum = all(n) + (uintptr_t)p[n % 64] + (uintptr_t)more[n - 1];
	free(realloc(old, n));
	return sum + (uintptr_t)old;
}

int main(void)
{
	uintptr_t sum = 0;

	for (size_t n = 100; n < 2000; n += 333)
		sum += all(n) + with_alloca(n) + realigned(n);
	return sum == 1;
}
