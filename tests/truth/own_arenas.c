/* SPDX-License-Identifier: MIT */
/*
 * An arena for each thread, each as large as it once was: the threads free
 * nearly all of their blocks, and half of them end.
 */
#include "case.h"

#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>

enum { THREADS = 6, ENDING = 3, BLOCKS = 8000, REQUEST = 500, STEP = 400 };

static pthread_barrier_t ready, done, never;
static struct worker {
	pthread_t thread;
	long tid;
	char *block[BLOCKS];
	uintptr_t heap;
} workers[THREADS];

static void *work(void *arg)
{
	struct worker *w = arg;

	w->tid = syscall(SYS_gettid);
	/* All are there at once: no two share an arena. */
	pthread_barrier_wait(&ready);
	for (int i = 0; i < BLOCKS; i++)
		w->block[i] = filled(REQUEST, 0x30 + (int)(w - workers));
	w->heap = (uintptr_t)w->block[0] & ~(((uintptr_t)64 << 20) - 1);
	for (int i = 0; i < BLOCKS; i++)
		if (i % STEP != STEP - 1)
			free(w->block[i]);
	pthread_barrier_wait(&done);
	if (w - workers >= ENDING)
		pthread_barrier_wait(&never);
	return NULL;
}

int main(void)
{
	quiet_stdout();
	mallopt(M_ARENA_MAX, 64);
	pthread_barrier_init(&ready, NULL, THREADS);
	pthread_barrier_init(&done, NULL, THREADS + 1);
	pthread_barrier_init(&never, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	pthread_barrier_wait(&done);
	for (int i = 0; i < ENDING; i++)
		pthread_join(workers[i].thread, NULL);
	truth("arenas", THREADS);
	truth("arenas_without_thread", ENDING);
	truth("live_blocks", BLOCKS / STEP);
	truth("live_size", CHUNK(REQUEST));
	truth("freed_bytes", (BLOCKS - BLOCKS / STEP) * CHUNK(REQUEST));
	/* The cache of a thread that ended: tcache_perthread_struct, 2.36. */
	truth("cache_struct", 656);
	for (int i = 0; i < THREADS; i++)
		printf("TRUTH arena %#lx %ld %s\n",
		       (unsigned long)workers[i].heap, workers[i].tid,
		       i < ENDING ? "ended" : "alive");
	finish();
}
