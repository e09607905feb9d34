/* SPDX-License-Identifier: MIT */
/*
 * Guard pages by mprotect(2) on malloc's own memory, as in the example of its
 * manual page: in the main arena, in a thread's, and in a block that is a
 * mapping of its own.  All of it is sound.
 */
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

#include "case.h"

enum { ROUNDS = 10, SMALL = 65536, LARGE = 1 << 20 };

static size_t made;

static void fill(size_t size)
{
	for (size_t i = 0; i < ROUNDS; i++) {
		char *p = memalign(4096, size);

		memset(p, 1, size);
		if (mprotect(p + 4096, 4096, i & 1 ? PROT_NONE : PROT_READ))
			exit(2);
		made += malloc(1000 + i) != NULL;
		made++;
	}
}

static void *work(void *arg)
{
	fill(SMALL);
	pthread_barrier_wait(arg);
	pause();
	return NULL;
}

int main(void)
{
	pthread_barrier_t filled;
	pthread_t t;

	quiet_stdout();
	mallopt(M_MMAP_THRESHOLD, LARGE / 2);
	pthread_barrier_init(&filled, NULL, 2);
	pthread_create(&t, NULL, work, &filled);
	pthread_barrier_wait(&filled);
	fill(SMALL);
	fill(LARGE);
	truth("guarded_blocks", 3 * ROUNDS);
	truth("mmapped_blocks", ROUNDS);
	fflush(stdout);
	abort();
}
