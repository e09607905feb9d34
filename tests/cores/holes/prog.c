/* SPDX-License-Identifier: MIT */
/* Much memory that was asked for and never touched. */
#include <stdlib.h>
#include <string.h>

int main(void)
{
	char *p = calloc(1, 8 << 20);

	memset(p, 1, 100000);
	for (int i = 0; i < 10; i++)
		memset(malloc(100000), 2, 10000);
	abort();
}
