/* SPDX-License-Identifier: MIT */
/*
 * Three sites: 1000 blocks of 1000 bytes stay, 20000 of 64 come and go, and
 * 10 of 200000 live at the peak only.
 */
#include <stdlib.h>
#include <string.h>

static char *stay[1000], *large[10];

__attribute__((noinline)) void keep(void)
{
	for (int i = 0; i < 1000; i++)
		stay[i] = memset(malloc(1000), 1, 1000);
}

__attribute__((noinline)) void churn(void)
{
	for (int i = 0; i < 20000; i++) {
		char *volatile p = malloc(64);

		free(p);
	}
}

__attribute__((noinline)) void bulge(void)
{
	for (int i = 0; i < 10; i++)
		large[i] = memset(malloc(200000), 1, 200000);
	for (int i = 0; i < 10; i++)
		free(large[i]);
}

int main(void)
{
	keep();
	churn();
	bulge();
	return 0;
}
