/* SPDX-License-Identifier: MIT */
/*
 * Nearly everything was freed and the memory stays: one small block in each
 * page holds it.  Beside it is a hole that malloc_trim() would give back.
 * What it would give back is not computed but tried, in a child.
 */
#include "case.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/wait.h>

enum {
	SMALL = 24000, REQUEST = 312, STEP = 12,
	LARGE = 50, LARGE_REQUEST = 20000, CACHE = 7, PAGE = 4096,
};

char *kept[SMALL / STEP + 1];
char *fence[3];
static char *small[SMALL], *large[LARGE];
static uint64_t map[2][1 << 16];

/* Which pages from addr on are there: proc_pid_pagemap(5), bit 63. */
static void look(uintptr_t addr, size_t pages, uint64_t *ret)
{
	int fd = open("/proc/self/pagemap", O_RDONLY);
	size_t n = pages * sizeof(*ret);

	if (fd < 0 || pread(fd, ret, n, addr / PAGE * sizeof(*ret)) !=
	    (ssize_t)n)
		_exit(2);
	close(fd);
}

/* In a child, whose heap is a copy: bytes that go back to the kernel. */
static void try_trim(void)
{
	uintptr_t end = (uintptr_t)sbrk(0);
	uintptr_t start = (uintptr_t)kept[0] & ~(uintptr_t)(PAGE - 1);
	size_t pages = (end - start) / PAGE, given = 0, top;

	if (pages > sizeof(map[0]) / sizeof(map[0][0]))
		_exit(2);
	look(start, pages, map[0]);
	malloc_trim(0);
	top = end - (uintptr_t)sbrk(0);
	pages -= top / PAGE;
	look(start, pages, map[1]);
	for (size_t i = 0; i < pages; i++)
		given += map[0][i] >> 63 && !(map[1][i] >> 63);
	truth("trim_holes", given * PAGE);
	truth("trim_top", top);
	fflush(stdout);
	_exit(0);
}

static void fill(void)
{
	for (int i = 0; i < SMALL; i++)
		small[i] = filled(REQUEST, 0xa1);
	fence[0] = filled(REQUEST, 0xa2);
	fence[1] = filled(700, 0xb0);
	for (int i = 0; i < LARGE; i++)
		large[i] = filled(LARGE_REQUEST, 0xb1);
	fence[2] = filled(700, 0xb2);
}

int main(void)
{
	size_t n = 0;
	char *hole;

	quiet_stdout();
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
	mallopt(M_TRIM_THRESHOLD, 256 << 20);
	fill();
	hole = large[0];
	for (int i = 0; i < SMALL; i++)
		if (i % STEP == 0)
			kept[n++] = small[i];
		else
			free(small[i]);
	for (int i = 0; i < LARGE; i++)
		free(large[i]);

	truth("live_size", CHUNK(REQUEST));
	truth("live_blocks", n + 1);
	truth("cached_blocks", CACHE);
	truth("run_size", (STEP - 1) * CHUNK(REQUEST));
	truth("runs", SMALL / STEP - 1);
	truth("short_run_size", (STEP - 1 - CACHE) * CHUNK(REQUEST));
	truth_at("hole", hole);
	truth("hole_size", LARGE * CHUNK(LARGE_REQUEST));
	fflush(stdout);
	if (!fork())
		try_trim();
	wait(NULL);
	finish();
}
