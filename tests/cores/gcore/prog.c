/* SPDX-License-Identifier: MIT */
/* As plain, statically linked, and alive when gdb wrote the core. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 600 };

int main(void)
{
	static void *small[N], *text[N], *large[N / 20];

	for (int i = 0; i < N; i++) {
		small[i] = calloc(1, 40);
		text[i] = malloc(100);
		snprintf(text[i], 100, "text number %d", i);
		if (i % 20 == 0)
			large[i / 20] = memset(malloc(2000), 'L', 2000);
	}
	memset(malloc(300000), 'M', 300000);
	memset(malloc(200000), 'N', 200000);
	for (int i = 0; i < N; i += 3)
		free(small[i]);
	for (int i = 0; i < N; i += 2)
		free(text[i]);
	for (int i = 0; i < N / 20; i += 4)
		free(large[i]);
	while (pause())
		;
}
