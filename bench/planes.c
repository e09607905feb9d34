/* SPDX-License-Identifier: MIT */
/*
 * planes CORE: what the heap model costs, and what the obvious one would, an
 * array of a record for each block.  Prints NAME VALUE lines; docs/design.md
 * has the figures.
 *
 * The records are filled from the planes, so that both hold the same blocks;
 * the time of that pass is printed apart from the time of the pass alone.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "corewalk/alloc.h"
#include "corewalk/target.h"

enum { LOOKUPS = 1000000 };

struct record {
	uint64_t start, size;
	uint32_t arena, state;
};

static uint64_t seed = 0x9e3779b97f4a7c15;

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* proc_pid_status(5): resident memory that is not of a file. */
static uint64_t private_bytes(void)
{
	char line[128];
	unsigned long long kib = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %llu", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib << 10;
}

static void say(const char *name, double value)
{
	printf("%-28s %.1f\n", name, value);
}

/* Nanoseconds for each block, by a pass that does nothing with them. */
static uint64_t pass(const struct heap *h, double *ret_ns)
{
	double start = now();
	struct heap_iter it;
	struct block b;
	uint64_t n = 0;

	heap_iter_init(&it, h);
	while (heap_iter_next(&it, &b))
		n++;
	*ret_ns = (now() - start) * 1e9 / (double)(n ? n : 1);
	return n;
}

static struct record *fill(const struct heap *h, uint64_t *ret_n)
{
	struct record *all = NULL;
	size_t n = 0, cap = 0;
	struct heap_iter it;
	struct block b;

	heap_iter_init(&it, h);
	while (heap_iter_next(&it, &b))
		MEM_PUSH(all, n, cap) = (struct record){
			b.start, b.size, b.arena, b.state,
		};
	*ret_n = n;
	return all;
}

static const struct record *search(const struct record *all, uint64_t n,
				   vaddr addr)
{
	uint64_t lo = 0, hi = n;

	while (lo < hi) {
		uint64_t mid = lo + (hi - lo) / 2;

		if (all[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && addr - all[lo - 1].start < all[lo - 1].size ?
		&all[lo - 1] : NULL;
}

/* Both ways find the same block for the same addresses, or we end. */
static void look_up(struct heap *h, const struct record *all, uint64_t n)
{
	vaddr *addr = mem_alloc(LOOKUPS * sizeof(*addr));
	uint64_t found = 0, sum = 0;
	struct block b;
	double t;

	for (size_t i = 0; i < LOOKUPS; i++) {
		const struct record *r = &all[rnd() % n];

		addr[i] = r->start + rnd() % r->size;
	}
	t = now();
	for (size_t i = 0; i < LOOKUPS; i++)
		sum += heap_find(h, addr[i], &b) ? b.start : 0;
	say("find_planes_ns", (now() - t) * 1e9 / LOOKUPS);
	t = now();
	for (size_t i = 0; i < LOOKUPS; i++) {
		const struct record *r = search(all, n, addr[i]);

		found += r ? r->start : 0;
	}
	say("find_records_ns", (now() - t) * 1e9 / LOOKUPS);
	free(addr);
	if (sum != found)
		exit(1);
}

int main(int argc, char **argv)
{
	struct target_options options = { 0 };
	uint64_t n, bytes = 0, before, after;
	struct record *all;
	struct space *sp;
	double ns, t;
	struct heap h;
	struct err err;

	if (argc != 2 || !(sp = target_open_core(argv[1], &options, &err)))
		return 2;
	heap_init(&h);
	before = private_bytes();
	t = now();
	if (!alloc_walk(sp, NULL, false, &h, NULL, &err))
		return 2;
	t = now() - t;
	after = private_bytes();
	for (size_t i = 0; i < h.n_extents; i++)
		bytes += h.extents[i].end - h.extents[i].start;
	n = pass(&h, &ns);
	say("blocks", (double)n);
	say("heap_bytes", (double)bytes);
	say("walk_ns", t * 1e9 / (double)n);
	say("pass_ns", ns);
	say("planes_bytes", (double)(after - before));
	before = private_bytes();
	t = now();
	all = fill(&h, &n);
	t = now() - t;
	after = private_bytes();
	say("pass_and_fill_ns", t * 1e9 / (double)n);
	say("records_bytes", (double)(after - before));
	look_up(&h, all, n);
	free(all);
	heap_fini(&h);
	space_close(sp);
	return 0;
}
