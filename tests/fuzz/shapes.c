/* SPDX-License-Identifier: MIT */
/*
 * Small heaps of many shapes, each ended by a core: seeds for the fuzz target
 * and food for the mutations.
 *
 * Usage: shapes [WORD]...
 *   threads   three threads with an arena each, alive
 *   mmapped   blocks that are mappings of their own, one of them aligned
 *   foreign   somebody else moves the break
 *   large     free chunks in large bins
 *   overflow  a block overflows into the next header
 *   link      a thread cache's link is overwritten
 *   fast      a fastbin's link is overwritten
 *   million   a million blocks, and nothing damaged
 */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 3, SLOTS = 40, MILLION = 1000000 };

static void *kept[2000];
static void **many;
static int n_kept;
static pthread_barrier_t ready;

static unsigned next_random(unsigned *seed)
{
	*seed = *seed * 1103515245 + 12345;
	return *seed >> 16 & 0x7fff;
}

static void *block(size_t size)
{
	void *p = malloc(size);

	memset(p, 'A' + (int)(size % 20), size < 16 ? size : 16);
	return p;
}

static void *keep(void *p)
{
	return kept[n_kept++] = p;
}

static void work(int n, unsigned seed)
{
	void *slot[SLOTS] = { NULL };

	while (n--) {
		unsigned k = next_random(&seed) % SLOTS;
		unsigned most = next_random(&seed) & 7 ? 120 : 700;

		free(slot[k]);
		slot[k] = block(next_random(&seed) % most + 1);
	}
	for (int i = 0; i < SLOTS; i += 3)
		free(slot[i]);
}

static void *thread(void *seed)
{
	work(60, (unsigned)(uintptr_t)seed);
	pthread_barrier_wait(&ready);
	while (pause())
		;
	return NULL;
}

static void start_threads(void)
{
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 32768);
	pthread_barrier_init(&ready, NULL, THREADS + 1);
	for (uintptr_t i = 1; i <= THREADS; i++)
		pthread_create(&t, &attr, thread, (void *)i);
	pthread_barrier_wait(&ready);
}

static void make_mmapped(void)
{
	for (int i = 0; i < 4; i++)
		keep(block(140000 + i * 5000));
	keep(memalign(65536, 200000));
	free(kept[n_kept - 3]);
}

static void make_foreign(void)
{
	for (int i = 0; i < 3; i++) {
		if (sbrk(4096) == (void *)-1)
			abort();
		for (int k = 0; k < 6; k++)
			keep(block(25000));
	}
}

static void make_large(void)
{
	void *p[12];

	for (int i = 0; i < 12; i++) {
		p[i] = block(1200 + 300 * i);
		keep(block(24));
	}
	for (int i = 0; i < 12; i += 2)
		free(p[i]);
	keep(block(6000));
}

static void overflow(void)
{
	char *p = keep(block(200));

	keep(block(300));
	memset(p, 'x', 240);
}

/* The last freed block is the first of its list. */
static void break_list(int n, size_t size)
{
	void *p[16];

	for (int i = 0; i < n; i++)
		p[i] = block(size);
	for (int i = 0; i < n; i++)
		free(p[i]);
	*(uint64_t *)p[n - 1] = 0xdeadbeef00;
}

static void make_million(void)
{
	many = malloc(MILLION * sizeof(*many));
	for (int i = 0; i < MILLION; i++)
		many[i] = block(40 + i * 16 % 160);
	for (int i = 0; i < MILLION; i += 10)
		free(many[i]);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *word;
		void (*make)(void);
	} shapes[] = {
		{ "threads", start_threads }, { "mmapped", make_mmapped },
		{ "foreign", make_foreign }, { "large", make_large },
		{ "overflow", overflow }, { "million", make_million },
	};

	work(70, 7);
	for (int i = 1; i < argc; i++) {
		for (size_t k = 0; k < sizeof(shapes) / sizeof(*shapes); k++)
			if (!strcmp(argv[i], shapes[k].word))
				shapes[k].make();
		if (!strcmp(argv[i], "link"))
			break_list(3, 40);
		if (!strcmp(argv[i], "fast"))
			break_list(12, 90);
	}
	abort();
}
