/* SPDX-License-Identifier: MIT */
/*
 * A program whose blocks lie on pages of all kinds: pages [fork|huge|swap].
 * Prints "NAME ADDRESS RESIDENT" of blocks that are mappings of their own,
 * RESIDENT by what it touched, then "ready", and waits.  What becomes huge or
 * goes to swap the kernel decides: of these it prints no figures.
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

enum { PAGE = 4096, MIB = 1 << 20, SMALL = 20000 };

static char *small[SMALL];

/* The chunk's page i; malloc wrote its header on the first one. */
static volatile char *page(char *block, size_t i)
{
	return block - 16 + i * PAGE + 100;
}

static void say(const char *name, char *block, size_t pages)
{
	dprintf(1, "%s 0x%zx %zu\n", name, (size_t)(uintptr_t)block,
		pages * PAGE);
}

static void fill_heap(void)
{
	for (int i = 0; i < SMALL; i++)
		small[i] = memset(malloc(1 + i % 1000), 1, 1 + i % 1000);
	for (int i = 0; i < SMALL; i += 3)
		free(small[i]);
	/* Given back, but for its ends. */
	for (int i = 8000; i < 12000; i++)
		if (i % 3)
			free(small[i]);
	malloc_trim(0);
}

static void large_blocks(void)
{
	char *p = calloc(64, MIB);
	size_t i, n;

	say("untouched", p, 1);
	p = malloc(8 * MIB);
	for (i = n = 0; i < 8 * MIB / PAGE; i += 16, n++)
		*page(p, i) = 1;
	say("sparse", p, n);
	p = calloc(16, MIB);
	for (i = 1; i < 16 * MIB / PAGE; i++)
		(void)*page(p, i);
	say("read", p, 1);
	p = malloc(4 * MIB);
	memset(p, 2, 4 * MIB);
	say("full", p, 4 * MIB / PAGE + 1);
}

static void huge_block(void)
{
	char *p = aligned_alloc(2 * MIB, 8 * MIB);

	madvise(p, 8 * MIB, MADV_HUGEPAGE);
	p[0] = p[4 * MIB] = 1;
}

static void swapped_block(void)
{
	char *p = malloc(8 * MIB);

	memset(p, 3, 8 * MIB);
	madvise(p - 16 + MIB, 6 * MIB, MADV_PAGEOUT);
	dprintf(1, "swapped 0x%zx\n", (size_t)(uintptr_t)p);
}

int main(int argc, char **argv)
{
	bool huge = false, forks = false, swap = false;
	char *shared;

	for (int i = 1; i < argc; i++) {
		huge |= !strcmp(argv[i], "huge");
		forks |= !strcmp(argv[i], "fork");
		swap |= !strcmp(argv[i], "swap");
	}
	if (!huge)
		prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	mallopt(M_MMAP_THRESHOLD, 256 * 1024);
	fill_heap();
	if (huge)
		huge_block();
	else if (swap)
		swapped_block();
	else if (!forks)
		large_blocks();
	shared = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED |
		      MAP_ANONYMOUS, -1, 0);
	memset(shared, 5, 2 * MIB);
	if (forks && !fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	dprintf(1, "ready\n");
	for (;;)
		pause();
}
