/* SPDX-License-Identifier: MIT */
/*
 * A heap so large that it is walked ahead, in pieces of which the starts are
 * guessed: whatever lies where they begin, the blocks are the same.
 */
#pragma GCC diagnostic ignored "-Wunused-function"
#include "glibc_image.h"

#include "base/rand.h"
#include "corewalk/glibc.h"

enum {
	SIZE = 40 << 20, PIECE = 4 << 20, SMALL = 600000,
	MAX_TRUTH = SIZE / 32,
};

struct truth {
	struct image m;
	struct rand r;
	struct wanted *all;	/* owned */
	size_t n;
	vaddr landing;		/* a false header in the data of a block */
	vaddr bad;		/* a chunk whose size is overwritten; 0 none */
};

static vaddr add(struct truth *t, uint64_t size)
{
	vaddr chunk = take_size(&t->m, &t->m.main, size);

	t->m.n_wanted = 0;
	if (t->n == MAX_TRUTH)
		abort();
	t->all[t->n++] = (struct wanted){ chunk, size, BLOCK_USED };
	return chunk;
}

/* Free ones lie alone: the one behind is in use, and made before. */
static void free_some(struct truth *t)
{
	for (size_t i = 2; i + 1 < t->n; i += 2 + rand_u64(&t->r) % 9) {
		unsigned bin = i % 5 ? 1 : 40;

		if (t->all[i].size > 2000)
			continue;
		t->m.wanted[0] = t->all[i];
		t->m.n_wanted = 1;
		to_bin(&t->m, &t->m.main, t->all[i].chunk, bin);
		t->all[i].state = t->m.wanted[0].state;
	}
	t->m.n_wanted = 0;
}

static void add_small(struct truth *t, vaddr up_to)
{
	while (t->m.main.at < up_to)
		add(t, 32 + rand_u64(&t->r) % (rand_u64(&t->r) % 50 ? 12 : 60) *
		    16);
}

/* Headers in the data of a block, one size each, up to its end or not quite. */
static void fill_with_headers(struct truth *t, vaddr chunk, uint64_t size,
			      uint64_t each, uint64_t less)
{
	for (uint64_t off = 64; off + each <= size - less; off += each)
		put(&t->m, chunk + off + 8, each | 1);
}

/* The same, of which some look free, and the last one seems to be long. */
static void fill_with_others(struct truth *t, vaddr chunk, uint64_t size)
{
	uint64_t off;

	fill_with_headers(t, chunk, size, 80, 16);
	for (off = 64 + 80; off + 160 <= size - 16; off += 80 * 7) {
		put(&t->m, chunk + off, 80);
		put(&t->m, chunk + off + 8, 80);
	}
	off = 64 + (size - 16 - 64) / 80 * 80 - 80;
	put(&t->m, chunk + off + 8, (PIECE - 100000) | 1);
	t->landing = chunk + off + PIECE - 100000;
}

enum border { PLAIN, IN_CHAIN, IN_ZEROS, IN_OTHER_CHAIN, BORDERS };

/* What lies where the piece i begins. */
static void add_border(struct truth *t, unsigned i)
{
	vaddr border = first_chunk(&t->m, t->m.heap_base) + i * PIECE;
	uint64_t room;
	vaddr chunk;

	add_small(t, border - SMALL / 2);
	room = border - t->m.main.at;
	switch (i % BORDERS) {
	case PLAIN:
		return;
	case IN_CHAIN:
		/* It leads to the next chunk: (room + 100032 - 64) % 48 = 0. */
		room += 100032 - (room - 64) % 48 + 64 - 100032 % 48;
		chunk = add(t, room - room % 16);
		fill_with_headers(t, chunk, room, 48, 0);
		return;
	case IN_OTHER_CHAIN:
		/* Its last header leads into the middle of what follows. */
		room += 200000 - (room + 200000) % 16;
		fill_with_others(t, add(t, room), room);
		return;
	case IN_ZEROS:
		add(t, round_up(room + SMALL, 16));
		return;
	}
}

static void check_truth(struct truth *t)
{
	struct heap_iter it;
	struct block b;
	size_t i = 0;

	heap_iter_init(&it, &t->m.heap);
	while (heap_iter_next(&it, &b)) {
		const struct wanted *w = &t->all[i];

		/* The damaged one is lost, and none other. */
		if (w->chunk == t->bad) {
			i++;
			w++;
		}
		if (!CHECK(i < t->n) || !CHECK_U64(b.start, w->chunk) ||
		    !CHECK_U64(b.size, w->size) ||
		    !CHECK_U64(b.state, w->state)) {
			show_notes(&t->m);
			return;
		}
		i++;
	}
	CHECK_U64(i, t->n);
	CHECK_U64(t->m.heap.n_notes, t->bad ? 1 : 0);
}

static void try_heap(uint64_t seed, unsigned damaged)
{
	struct truth t = { .bad = 0 };
	uint64_t end;

	image_start_sized(&t.m, SHAPE_236, SIZE);
	end = t.m.heap_base + SIZE;
	rand_init(&t.r, seed, 1);
	t.all = mem_alloc(MAX_TRUTH * sizeof(*t.all));
	t.all[t.n++] = t.m.wanted[0];
	t.all[0].state = BLOCK_USED;	/* nobody names the empty cache */
	for (unsigned i = 1; i * PIECE + PIECE / 2 < SIZE; i++)
		add_border(&t, i);
	add_small(&t, end - 3 * PIECE / 2);
	put(&t.m, t.landing + 8, get(&t.m, t.landing + 8) | 1);
	free_some(&t);
	put_top(&t.m, &t.m.main);
	t.all[t.n++] = (struct wanted){ t.m.main.at, end - t.m.main.at,
					BLOCK_TOP };
	if (damaged) {
		size_t i = t.n / 4;

		while (t.all[i].state || t.all[i - 1].state ||
		       t.all[i].size > 1000)
			i++;
		t.bad = t.all[i].chunk;
		put(&t.m, t.bad + 8, UINT64_C(0x4141414141414141));
	}
	if (CHECK(walk(&t.m)))
		check_truth(&t);
	image_end(&t.m);
	free(t.all);
}

TEST(every_block_is_found)
{
	for (uint64_t seed = 1; seed <= 3; seed++)
		try_heap(seed, 0);
}

TEST(damage_costs_one_block)
{
	try_heap(4, 1);
}

/*
 * Headers that stop short of a chain use up what a piece may cost: the good
 * chain behind them must not be looked for.
 */
TEST(guesses_are_bounded)
{
	enum { GUESSES = 4096, HEADERS = 20, CHUNK = 32, ALL = 4 * PIECE };
	uint8_t *host = mem_zalloc(ALL + CHUNK);
	uint64_t off = PIECE + (GUESSES - HEADERS) * 16;
	struct glibc g = { .ahead_left = ALL };
	struct glibc_ahead a;
	struct heap h;
	size_t x;

	heap_init(&h);
	x = heap_add_blocks(&h, 0, MIB, MIB + ALL, 4, 0, 0);
	for (unsigned i = 0; i < HEADERS; i++)
		host[off + i * CHUNK + 8] = CHUNK | 1;
	for (off = PIECE + PIECE / 2; off < PIECE + PIECE / 2 + 4096;
	     off += CHUNK)
		host[off + 8] = CHUNK | 1;
	glibc_ahead_init(&a, &g, &(struct glibc_window){
		.x = &h.extents[x], .host = host, .start = MIB,
		.last = MIB + ALL, .word = 8, .least = CHUNK,
	});
	if (a.n) {
		CHECK_U64(a.pieces[0].start, MIB);
		CHECK_U64(a.pieces[1].start, 0);
	}
	glibc_ahead_fini(&a);
	heap_fini(&h);
	free(host);
	if (!a.n && g.ahead_left == ALL)
		SKIP("one processor");
}
