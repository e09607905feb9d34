/* SPDX-License-Identifier: MIT */
/*
 * Blocks that were in a thread cache, were taken out of it again, and are lost
 * then; dies.  The cache may still have their addresses.
 */
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 200, SIZE = 3000 };

static char *blocks[BLOCKS];

static void __attribute__((noinline)) take(void)
{
	for (int i = 0; i < BLOCKS; i++)
		blocks[i] = memset(malloc(SIZE), 'x', SIZE);
}

static void __attribute__((noinline)) give_back(void)
{
	for (int i = 0; i < BLOCKS; i++)
		free(blocks[i]);
}

int main(void)
{
	take();
	give_back();
	take();
	memset(blocks, 0, sizeof(blocks));
	abort();
}
