/* SPDX-License-Identifier: MIT */
/*
 * spans OUT WORKLOAD SEED: a heap under whatever malloc is preloaded.  Writes
 * each live block ("B address requested usable"), each address that was freed
 * and not handed out again ("F address"), and what the allocator itself says
 * is in use ("A bytes"), is in whole free pages, and was given back ("P kept
 * returned"), and has in spans: "S size spans taken" of jemalloc's size
 * classes, taken being blocks that are not free in their slab, "C size free"
 * of tcmalloc's, free being in spans and caches.  Then dies by SIGABRT.
 *
 * Workloads: one (a thread), many (8 threads, three have ended, blocks freed
 * by others), empty (nearly all freed again), large (blocks of many pages),
 * flushed (as one, but jemalloc's thread cache is emptied).
 */
#define _GNU_SOURCE	/* RTLD_DEFAULT */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 16000, THREADS = 8, ENDED = 3, LARGE = 40 };

struct slot {
	void *block;
	size_t requested, usable;
};

/* In no allocator's memory. */
static struct slot slots[THREADS][SLOTS / THREADS];
static uintptr_t freed[1 << 20];
static size_t n_freed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all_here, go_on;
static unsigned seed;
static int large;

static unsigned next(unsigned *state)
{
	*state = *state * 1103515245 + 12345;
	return *state >> 8;
}

static size_t some_size(unsigned *state)
{
	unsigned kind = next(state) % 100;

	if (large)
		return kind < 50 ? next(state) % 300000 + 1 :
			next(state) % 4000000 + 1;
	if (kind < 80)
		return next(state) % 300 + 1;
	if (kind < 98)
		return next(state) % 9000 + 1;
	return next(state) % 300000 + 1;
}

static void note_freed(void *block)
{
	pthread_mutex_lock(&lock);
	if (n_freed < sizeof(freed) / sizeof(freed[0]))
		freed[n_freed++] = (uintptr_t)block;
	pthread_mutex_unlock(&lock);
}

static void drop(struct slot *s)
{
	void *block = s->block;

	if (!block)
		return;
	s->block = NULL;
	note_freed(block);
	free(block);
}

static void fill(struct slot *s, unsigned *state)
{
	size_t n = some_size(state);

	drop(s);
	if (next(state) % 20)
		s->block = malloc(n);
	else if (posix_memalign(&s->block, 256, n))
		abort();
	s->requested = n;
	s->usable = malloc_usable_size(s->block);
	memset(s->block, 0x5a, n);
}

static void *work(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg, state = seed * 77 + me;
	unsigned n = large ? LARGE : SLOTS / THREADS;

	/* All have started: nobody else takes a block that is freed. */
	pthread_barrier_wait(&all_here);
	for (unsigned i = 0; i < 4 * n; i++)
		fill(&slots[me][next(&state) % n], &state);
	pthread_barrier_wait(&all_here);
	/* Blocks of the next thread, which does not touch them now. */
	for (unsigned i = 0; i < n; i += 7)
		drop(&slots[(me + 1) % THREADS][i]);
	pthread_barrier_wait(&all_here);
	if (me < ENDED)
		return NULL;
	pthread_barrier_wait(&go_on);
	for (;;)
		pthread_barrier_wait(&all_here);
}

static void one_thread(unsigned keep)
{
	unsigned state = seed, n = large ? LARGE : SLOTS / THREADS;

	for (unsigned t = 0; t < THREADS; t++)
		for (unsigned i = 0; i < 2 * n; i++)
			fill(&slots[t][next(&state) % n], &state);
	for (unsigned t = 0; t < THREADS; t++)
		for (unsigned i = 0; i < n; i++)
			if ((t * n + i) % 100 >= keep)
				drop(&slots[t][i]);
}

static void many_threads(void)
{
	pthread_t threads[THREADS];

	pthread_barrier_init(&all_here, NULL, THREADS);
	pthread_barrier_init(&go_on, NULL, THREADS - ENDED + 1);
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)i))
			abort();
	for (int i = 0; i < ENDED; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_wait(&go_on);
}

static struct mallinfo (*info)(void);	/* of google's tcmalloc */
static int (*mallctl)(const char *, void *, size_t *, void *, size_t);

/* What is in use by the allocator's own account; 0: it has none. */
static size_t account(void)
{
	int (*property)(const char *, size_t *) = dlsym(RTLD_DEFAULT,
		"MallocExtension_GetNumericProperty");
	size_t value = 0, n = sizeof(value);
	uint64_t epoch = 1;

	if (property)
		property("generic.current_allocated_bytes", &value);
	if (mallctl) {
		mallctl("epoch", NULL, NULL, &epoch, sizeof(epoch));
		mallctl("stats.allocated", &value, &n, NULL, 0);
	}
	if (info)
		value = (unsigned)info().uordblks;
	return value;
}

static size_t ask(const char *name)
{
	size_t value = 0, n = sizeof(value);
	unsigned narrow = 0;

	if (mallctl(name, &value, &n, NULL, 0)) {
		n = sizeof(narrow);
		if (!mallctl(name, &narrow, &n, NULL, 0))
			value = narrow;
	}
	return value;
}

static size_t ask_bin(const char *before, unsigned bin, const char *behind)
{
	char name[80];

	snprintf(name, sizeof(name), "%s.%u.%s", before, bin, behind);
	return ask(name);
}

/* 4096 stands for all arenas. */
static void tell_jemalloc(FILE *f)
{
	unsigned n = (unsigned)ask("arenas.nbins");

	fprintf(f, "P %zu %zu\n", (ask("stats.arenas.4096.pdirty") +
				   ask("stats.arenas.4096.pmuzzy")) *
		ask("arenas.page"), ask("stats.retained"));
	for (unsigned i = 0; i < n; i++)
		fprintf(f, "S %zu %zu %zu\n",
			ask_bin("arenas.bin", i, "size"),
			ask_bin("stats.arenas.4096.bins", i, "curslabs"),
			ask_bin("stats.arenas.4096.bins", i, "curregs"));
}

static void tell_tcmalloc(FILE *f)
{
	static char text[1 << 16];
	int (*property)(const char *, size_t *) = dlsym(RTLD_DEFAULT,
		"MallocExtension_GetNumericProperty");
	void (*stats)(char *, int) = dlsym(RTLD_DEFAULT,
		"MallocExtension_GetStats");
	size_t kept = 0, returned = 0;

	if (!property || !stats)
		return;
	property("tcmalloc.pageheap_free_bytes", &kept);
	property("tcmalloc.pageheap_unmapped_bytes", &returned);
	fprintf(f, "P %zu %zu\n", kept, returned);
	stats(text, sizeof(text));
	for (char *line = strtok(text, "\n"); line;
	     line = strtok(NULL, "\n")) {
		unsigned class, size, n;

		if (sscanf(line, "class %u [ %u bytes ] : %u objs", &class,
			   &size, &n) == 3)
			fprintf(f, "C %u %u\n", size, n);
	}
}

static int by_address(const void *a, const void *b)
{
	const uintptr_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Nothing here allocates: the file has its buffer already. */
static void tell(FILE *f)
{
	static uintptr_t live[SLOTS];
	size_t n_live = 0, k = 0;
	uintptr_t last = 0;

	for (unsigned t = 0; t < THREADS; t++)
		for (unsigned i = 0; i < SLOTS / THREADS; i++) {
			const struct slot *s = &slots[t][i];

			if (!s->block)
				continue;
			live[n_live++] = (uintptr_t)s->block;
			fprintf(f, "B %p %zu %zu\n", s->block, s->requested,
				s->usable);
		}
	qsort(live, n_live, sizeof(live[0]), by_address);
	qsort(freed, n_freed, sizeof(freed[0]), by_address);
	for (size_t i = 0; i < n_freed; i++) {
		while (k < n_live && live[k] < freed[i])
			k++;
		if (freed[i] != last && (k == n_live || live[k] != freed[i]))
			fprintf(f, "F 0x%lx\n", (unsigned long)freed[i]);
		last = freed[i];
	}
}

int main(int argc, char **argv)
{
	static char buffer[1 << 16];
	FILE *f = argc == 4 ? fopen(argv[1], "w") : NULL;

	if (!f)
		return 2;
	mallctl = dlsym(RTLD_DEFAULT, "mallctl");
	if (!mallctl && !dlsym(RTLD_DEFAULT,
			       "MallocExtension_GetNumericProperty"))
		info = dlsym(RTLD_DEFAULT, "mallinfo");
	/* What looking up names keeps must not take a block of ours later. */
	account();
	setvbuf(f, buffer, _IOFBF, sizeof(buffer));
	seed = (unsigned)atoi(argv[3]);
	large = !strcmp(argv[2], "large");
	if (!strcmp(argv[2], "many"))
		many_threads();
	else
		one_thread(!strcmp(argv[2], "empty") ? 2 : 60);
	if (!strcmp(argv[2], "flushed") && mallctl)
		mallctl("thread.tcache.flush", NULL, NULL, NULL, 0);
	tell(f);
	fprintf(f, "A %zu\n", account());
	if (info)
		fprintf(f, "P %u 0\n", (unsigned)info().fordblks);
	else if (mallctl)
		tell_jemalloc(f);
	else
		tell_tcmalloc(f);
	fflush(f);
	abort();
}
