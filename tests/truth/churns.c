/* SPDX-License-Identifier: MIT */
/*
 * churns: four threads that take and free blocks as fast as they can, some of
 * them each other's, until somebody ends them.  Prints "ready" when all run.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4, SLOTS = 20000 };

static _Atomic(void *) slots[SLOTS];
static atomic_int running;

static void *work(void *arg)
{
	unsigned state = (unsigned)(uintptr_t)arg;

	for (unsigned n = 0;; n++) {
		size_t size;
		char *block;

		state = state * 1103515245 + 12345;
		size = state >> 8 & (state >> 30 ? 0x1ff : 0x1fff);
		block = malloc(size + 1);
		memset(block, 'c', size < 64 ? size : 64);
		free(atomic_exchange(&slots[(state >> 12) % SLOTS], block));
		if (n == SLOTS &&
		    atomic_fetch_add(&running, 1) + 1 == THREADS &&
		    write(1, "ready\n", 6) != 6)
			_exit(2);
	}
}

int main(void)
{
	pthread_t thread;

	for (uintptr_t i = 1; i <= THREADS; i++)
		if (pthread_create(&thread, NULL, work, (void *)i))
			return 2;
	/* Should nobody come. */
	sleep(600);
	return 0;
}
