/* SPDX-License-Identifier: MIT */
/*
 * Each read of a walk fails once: nothing breaks, the sums stay right, and the
 * result is the same or it says that something is missing.
 */
#include "glibc_image.h"

#include "fuzz/invariants.h"

static void build(struct image *m, unsigned shape)
{
	vaddr c[24];

	image_start(m, shape);
	for (unsigned i = 0; i < 24; i++)
		c[i] = take(m, &m->main, i % 4);
	to_bin(m, &m->main, c[1], 1);
	to_bin(m, &m->main, c[3], 1);
	to_bin(m, &m->main, c[6], 4);
	to_cache(m, &m->main, c[20]);
	to_cache(m, &m->main, c[8]);
	if (m->k->n_fast)
		to_fast(m, &m->main, c[12]);
	put_top(m, &m->main);
	put_other(m);
	c[0] = take(m, &m->other, 2);
	c[1] = take(m, &m->other, 2);
	c[2] = take(m, &m->other, 2);
	to_cache(m, &m->other, c[1]);
	put_second_heap(m);
	put_top(m, &m->other);
	target_mem_add(m->sp, m->arena_base - 0x10000, 0x4000, SEG_R | SEG_W,
		       NULL, 0x4000, NULL);
	put_mmapped(m, m->arena_base - 0x10000, 0x4000,
		    first_chunk(m, m->arena_base) - m->arena_base);
	put_mmaps(m, 1, 0x4000);
	add_thread(m, 1, &m->main);
	add_thread(m, 2, &m->other);
	target_mem_done(m->sp);
}

/* Everything that a report's totals are made of. */
static uint64_t digest(const struct heap *h)
{
	uint64_t x = h->n_arenas;

	for (size_t i = 0; i < h->n_arenas; i++) {
		const struct arena *a = &h->arenas[i];

		for (int s = 0; s < BLOCK_STATES; s++)
			x = (x ^ a->state[s].bytes ^ a->state[s].blocks << 40) *
				UINT64_C(0x9e3779b97f4a7c15);
		x ^= a->mmapped.bytes << 8 ^ a->extent_bytes << 4 ^
			a->undecoded_bytes;
	}
	return x;
}

static uint64_t findings(const struct heap *h)
{
	uint64_t n = h->n_notes;

	for (size_t i = 0; i < h->n_arenas; i++)
		n += h->arenas[i].undecoded_bytes;
	return n;
}

/* The reads 1, 1 + STEP, ...: of the walk and of the analyses. */
static void fail_each(unsigned shape, uint64_t step)
{
	uint64_t reads, whole, silent = 0;
	struct image m;

	build(&m, shape);
	m.sp->reads = 0;
	CHECK(walk_and_check(m.sp, &m.heap));
	CHECK_U64(m.heap.n_notes, 0);
	show_notes(&m);
	whole = digest(&m.heap);
	reads = m.sp->reads;
	heap_fini(&m.heap);
	CHECK(reads > 1000);
	for (uint64_t n = 1; n <= reads; n += step) {
		bool found;

		m.sp->reads = 0;
		m.sp->fail_at = n;
		found = walk_and_check(m.sp, &m.heap);
		if (found && !findings(&m.heap) && digest(&m.heap) != whole) {
			if (!silent++)
				printf("# read %" PRIu64 " of %" PRIu64 "\n", n,
				       reads);
		}
		heap_fini(&m.heap);
	}
	CHECK_U64(silent, 0);
	m.sp->fail_at = 0;
	heap_init(&m.heap);
	image_end(&m);
}

TEST(each_read_fails_64_bits)
{
	fail_each(SHAPE_236, 1);
}

/* The same code with other offsets. */
TEST(one_read_of_three_fails_32_bits)
{
	fail_each(SHAPE_I386, 3);
}
