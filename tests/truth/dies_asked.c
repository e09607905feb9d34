/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a program that has jemalloc: on SIGUSR2 it says on standard
 * error what jemalloc counts as allocated ("A bytes") and dies by SIGABRT, with
 * nothing allocated in between.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int mallctl(const char *, void *, size_t *, void *, size_t);

static void die(int signal_number)
{
	uint64_t epoch = 1;
	size_t value = 0, size = sizeof(value);
	char text[64];
	int n;

	(void)signal_number;
	mallctl("epoch", NULL, NULL, &epoch, sizeof(epoch));
	mallctl("stats.allocated", &value, &size, NULL, 0);
	n = snprintf(text, sizeof(text), "A %zu\n", value);
	if (write(2, text, (size_t)n) != n)
		_exit(2);
	signal(SIGABRT, SIG_DFL);
	abort();
}

__attribute__((constructor)) static void start(void)
{
	signal(SIGUSR2, die);
}
