/* SPDX-License-Identifier: MIT */
/*
 * Free chunks whose links are forged so that the sums of all are right: many
 * lead into one ring.  Following each of them around it would take minutes.
 */
#pragma GCC diagnostic ignored "-Wunused-function"
#include <time.h>

#include "corewalk/glibc.h"
#include "glibc_image.h"

enum {
	SIZE = 8 << 20, N = 40000, CHUNK = 64,
	WORD_BYTES = 64 * 16,	/* that a word of a plane is for */
	MOST = 20,		/* times the time of honest lists */
};

static uint64_t inverse(uint64_t odd)
{
	uint64_t x = odd;

	for (int i = 0; i < 6; i++)
		x *= 2 - odd * x;
	return x;
}

/* The address from which the edge to another one has this value. */
static vaddr from_of(uint64_t edge, vaddr to)
{
	uint64_t x = edge ^ edge >> 29 ^ edge >> 58;

	x *= inverse(UINT64_C(0xd6e8feb86659fd93));
	x ^= x >> 32;
	return (x - to) * inverse(UINT64_C(0x9e3779b97f4a7c15));
}

struct links {
	struct image m;
	vaddr chunk[N], fd[N], bk[N];
};

static void put_free(struct links *l, size_t i)
{
	vaddr next = l->chunk[i] + CHUNK;

	put(&l->m, next + 8, get(&l->m, next + 8) & ~UINT64_C(1));
	put(&l->m, next, CHUNK);
	put(&l->m, l->chunk[i] + 16, l->fd[i]);
	put(&l->m, l->chunk[i] + 24, l->bk[i]);
}

/* One list, closed at the header of the unsorted bin. */
static void link_honest(struct links *l)
{
	vaddr head = bin_head(&l->m, l->m.main.arena, 1);

	for (size_t i = 0; i < N; i++) {
		l->fd[i] = i + 1 < N ? l->chunk[i + 1] : head;
		l->bk[i] = i ? l->chunk[i - 1] : head;
	}
	put(&l->m, head + 16, l->chunk[0]);
	put(&l->m, head + 24, l->chunk[N - 1]);
}

/* A ring of all but the first chunk of each word, which lead into it. */
static void link_forged(struct links *l)
{
	uint64_t word = 0, sum = 0;
	vaddr ring = l->chunk[N - 1];

	for (size_t i = 0; i < N; i++) {
		bool first = (l->chunk[i] - l->m.heap_base) / WORD_BYTES !=
			     word;

		word = (l->chunk[i] - l->m.heap_base) / WORD_BYTES;
		l->fd[i] = ring;
		if (!first)
			ring = l->chunk[i];
		sum += glibc_edge(l->chunk[i], l->fd[i]);
	}
	sum -= glibc_edge(l->chunk[N - 1], l->fd[N - 1]);
	l->fd[N - 1] = ring;
	sum += glibc_edge(l->chunk[N - 1], l->fd[N - 1]);
	for (size_t i = 0; i + 1 < N; i++)
		sum -= glibc_edge(l->bk[i] = 0, l->chunk[i]);
	l->bk[N - 1] = from_of(sum, l->chunk[N - 1]);
}

/* Processor time of the walk, in seconds. */
static double walk_links(void (*link)(struct links *))
{
	struct links *l = mem_zalloc(sizeof(*l));
	clock_t from;
	double ret;

	image_start_sized(&l->m, SHAPE_236, SIZE);
	for (size_t i = 0; i < N; i++) {
		l->chunk[i] = take_size(&l->m, &l->m.main, CHUNK);
		take_size(&l->m, &l->m.main, CHUNK);
		l->m.n_wanted = 1;
	}
	put_top(&l->m, &l->m.main);
	link(l);
	for (size_t i = 0; i < N; i++)
		put_free(l, i);
	from = clock();
	if (CHECK(walk(&l->m)))
		CHECK_U64(l->m.heap.n_notes, 0);
	ret = (double)(clock() - from) / CLOCKS_PER_SEC;
	if (link == link_honest)
		CHECK_U64(l->m.heap.arenas[0].state[BLOCK_UNSORTED].blocks, N);
	image_end(&l->m);
	free(l);
	return ret;
}

TEST(forged_rings_cost_what_lists_do)
{
	double honest = walk_links(link_honest);
	double forged = walk_links(link_forged);

	printf("# bar: forged rings, times: %.1f\n", forged / honest);
	CHECK(forged < MOST * honest);
}
