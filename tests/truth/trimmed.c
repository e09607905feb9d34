/* SPDX-License-Identifier: MIT */
/*
 * What does malloc_trim(0) give back?  The main arena and those of two threads
 * are filled with a mix of sizes, most of it is freed, and the program waits.
 * On SIGUSR1 it calls malloc_trim(0) and prints by how much its anonymous
 * memory shrank, in bytes.
 *
 * Usage: trimmed MIX [COUNT]; MIX is small, mixed or large.
 */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_barrier_t filled, never;
static size_t least, most;
static int count = 4000;
static char text[8192], out[256];

static uint32_t next(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 8;
}

/* Fills, and frees all but one block in sixteen, at no regular places. */
static void fill(uint32_t seed)
{
	void **p = calloc((size_t)count, sizeof(*p));

	for (int i = 0; i < count; i++) {
		size_t size = least + next(&seed) % (most - least);

		p[i] = memset(malloc(size), 7, size);
	}
	for (int i = 0; i < count; i++)
		if (next(&seed) % 16)
			free(p[i]);
}

static void *work(void *arg)
{
	fill((uint32_t)(uintptr_t)arg);
	pthread_barrier_wait(&filled);
	pthread_barrier_wait(&never);
	return NULL;
}

static long anonymous(void)
{
	int fd = open("/proc/self/smaps_rollup", O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text) - 1);
	char *at;

	close(fd);
	if (n <= 0)
		exit(2);
	text[n] = '\0';
	at = strstr(text, "\nAnonymous:");
	if (!at)
		exit(2);
	return atol(at + 11) * 1024;
}

int main(int argc, char **argv)
{
	const char *mix = argc > 1 ? argv[1] : "mixed";
	pthread_t t;
	sigset_t set;
	long before;
	int sig;

	least = *mix == 'l' ? 20000 : 16;
	most = *mix == 's' ? 200 : *mix == 'l' ? 90000 : 40000;
	if (argc > 2)
		count = atoi(argv[2]);
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	pthread_barrier_init(&filled, NULL, 3);
	pthread_barrier_init(&never, NULL, 4);
	for (uintptr_t i = 1; i <= 2; i++)
		pthread_create(&t, NULL, work, (void *)i);
	pthread_barrier_wait(&filled);
	fill(3);
	setvbuf(stdout, out, _IOLBF, sizeof(out));
	puts("ready");
	sigwait(&set, &sig);
	anonymous();
	before = anonymous();
	malloc_trim(0);
	printf("%ld\n", before - anonymous());
	sigwait(&set, &sig);
	return 0;
}
