/* SPDX-License-Identifier: MIT */
/*
 * A string written past the end of its block destroys the next block's size;
 * glibc notices when that is freed.
 */
#include <stdlib.h>
#include <string.h>

int main(void)
{
	char *name, *next;

	for (int i = 0; i < 50; i++)
		memset(malloc(100), i, 100);
	name = malloc(24);
	next = malloc(1500);
	malloc(100);
	strcpy(name, "a name that is longer than anybody had expected");
	free(next);
	return 0;
}
