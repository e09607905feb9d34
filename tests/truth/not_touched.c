/* SPDX-License-Identifier: MIT */
/*
 * Allocated is not resident: blocks that are mappings of their own and were
 * never, sparsely or fully written, and a hole whose pages went back.
 */
#include "case.h"

#include <malloc.h>

#define MIB ((size_t)1 << 20)
/* malloc/malloc.c, sysmalloc_mmap(): the header is two words. */
#define MMAPPED(request) (((request) + 16 + 4095) & ~(size_t)4095)

enum { BUFFERS = 3, STRIDE = 128 << 10, PARTS = 30, PART = 150000 };

char *never, *sparse, *buffer[BUFFERS], *fence;

int main(void)
{
	char *part[PARTS];

	quiet_stdout();
	mallopt(M_MMAP_THRESHOLD, 256 << 10);
	never = calloc(96, MIB);
	sparse = malloc(32 * MIB);
	for (size_t i = STRIDE; i < 32 * MIB; i += STRIDE)
		sparse[i] = 1;
	for (int i = 0; i < BUFFERS; i++)
		buffer[i] = filled((i + 1) * MIB, 'b');
	for (int i = 0; i < PARTS; i++)
		part[i] = filled(PART, 'h');
	fence = filled(64, 'f');
	truth_at("hole", part[0]);
	for (int i = PARTS - 1; i >= 0; i--)
		free(part[i]);
	malloc_trim(0);

	truth("mmapped_blocks", 2 + BUFFERS);
	truth("mmapped_bytes", MMAPPED(96 * MIB) + MMAPPED(32 * MIB) +
	      MMAPPED(MIB) + MMAPPED(2 * MIB) + MMAPPED(3 * MIB));
	/* A page for the header; one each STRIDE, the first is the header's. */
	truth("mmapped_pages", 1 + 32 * MIB / STRIDE + (1 + 2 + 3) * MIB /
	      4096 + BUFFERS);
	truth("hole_size", PARTS * CHUNK(PART));
	truth("hole_pages_at_most", 2);
	finish();
}
