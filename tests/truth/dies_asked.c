/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a program that has jemalloc or gperftools' tcmalloc: on
 * SIGUSR2 it says on standard error what the allocator counts as allocated
 * ("A bytes"), jemalloc each class too, and dies by SIGABRT, with nothing
 * allocated in between.  With LIBC_BLOCKS=n in the environment it first takes
 * n blocks from the C library's own malloc, which is nobody else's then.
 */
#define _GNU_SOURCE	/* RTLD_DEFAULT */
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int (*mallctl)(const char *, void *, size_t *, void *, size_t);
static int (*property)(const char *, size_t *);
static void *kept[100000];

static size_t account(void)
{
	size_t value = 0, size = sizeof(value);
	uint64_t epoch = 1;

	if (property)
		property("generic.current_allocated_bytes", &value);
	if (mallctl) {
		mallctl("epoch", NULL, NULL, &epoch, sizeof(epoch));
		mallctl("stats.allocated", &value, &size, NULL, 0);
	}
	return value;
}

/* "J size blocks" for each small class; caches are emptied first. */
static void tell_classes(void)
{
	size_t size = sizeof(size_t), bytes, blocks;
	uint64_t epoch = 1;
	unsigned n = 0;
	size_t length = sizeof(n);

	mallctl("thread.tcache.flush", NULL, NULL, NULL, 0);
	mallctl("epoch", NULL, NULL, &epoch, sizeof(epoch));
	mallctl("arenas.nbins", &n, &length, NULL, 0);
	for (unsigned i = 0; i < n; i++) {
		char name[64];

		snprintf(name, sizeof(name), "arenas.bin.%u.size", i);
		mallctl(name, &bytes, &size, NULL, 0);
		snprintf(name, sizeof(name),
			 "stats.arenas.4096.bins.%u.curregs", i);
		if (!mallctl(name, &blocks, &size, NULL, 0) && blocks)
			dprintf(2, "J %zu %zu\n", bytes, blocks);
	}
}

static void die(int signal_number)
{
	char text[64];
	int n;

	(void)signal_number;
	if (mallctl)
		tell_classes();
	n = snprintf(text, sizeof(text), "A %zu\n", account());
	if (write(2, text, (size_t)n) != n)
		_exit(2);
	signal(SIGABRT, SIG_DFL);
	abort();
}

__attribute__((constructor)) static void start(void)
{
	const char *blocks = getenv("LIBC_BLOCKS");
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	/* By its name alone tcmalloc's would be found, __libc_malloc too. */
	void *(*own_malloc)(size_t) = libc ? dlsym(libc, "malloc") : malloc;

	mallctl = dlsym(RTLD_DEFAULT, "mallctl");
	property = dlsym(RTLD_DEFAULT, "MallocExtension_GetNumericProperty");
	account();
	for (int i = 0; blocks && i < atoi(blocks) && i < 100000; i++)
		kept[i] = memset(own_malloc(100), 'k', 100);
	signal(SIGUSR2, die);
}
