/* SPDX-License-Identifier: MIT */
/* The glibc walker on heaps made by hand: all layouts, and kinds of damage. */
#include "glibc_image.h"

#include <time.h>

static uint64_t setting(const struct image *m, const char *name)
{
	const struct heap_allocator *a = &m->heap.allocators[0];

	for (size_t i = 0; i < a->n_settings; i++)
		if (!strcmp(a->settings[i].name, name))
			return a->settings[i].value;
	return UINT64_MAX;
}

/* Some of everything; blocks in use keep free ones apart. */
static void fill(struct image *m, struct pool *p)
{
	vaddr c[24];

	for (unsigned i = 0; i < 24; i++)
		c[i] = take(m, p, i % 4 + (i == 12 ? 100 : 0));
	to_bin(m, p, c[1], 1);
	to_bin(m, p, c[3], 1);
	to_bin(m, p, c[6], 4);
	to_bin(m, p, c[10], 4);
	to_bin(m, p, c[12], 80);
	if (m->k->n_fast) {
		to_fast(m, p, c[14]);
		to_fast(m, p, c[18]);
		to_fast(m, p, c[16]);
	}
	if (m->k->cache) {
		to_cache(m, p, c[20]);
		to_cache(m, p, c[4]);
		to_cache(m, p, c[8]);
		to_cache(m, p, c[23]);
	}
}

static void check_shape(unsigned shape)
{
	struct image m;
	const struct heap_allocator *a;

	image_start(&m, shape);
	fill(&m, &m.main);
	put_top(&m, &m.main);
	put_other(&m);
	fill(&m, &m.other);
	put_second_heap(&m);
	take(&m, &m.other, 3);
	put_top(&m, &m.other);
	add_thread(&m, 100, &m.main);
	add_thread(&m, 200, &m.other);
	if (CHECK(walk(&m))) {
		a = &m.heap.allocators[0];
		CHECK_STR(a->version, m.k->name);
		CHECK_U64(m.heap.n_arenas, 3);
		check_blocks(&m);
		check_whole(&m, 0, HEAP_SIZE);
		check_whole(&m, 1, 2 * HEAP_SIZE);
		CHECK_U64(m.heap.arenas[1].heaps, 2);
		CHECK_U64(m.heap.n_notes, 0);
		show_notes(&m);
		CHECK_U64(setting(&m, "mmap_threshold"), 131072);
		CHECK_U64(setting(&m, "mmap_max"), 65536);
		CHECK_U64(setting(&m, "tcache_count"),
			  m.k->cache ? m.k->cache_count : UINT64_MAX);
		CHECK_U64(m.heap.n_uses, 2);
		CHECK_U64(m.heap.n_caches, m.k->cache ? 2 : 0);
		CHECK_U64(m.heap.n_cached, m.k->cache ? 8 : 0);
		for (size_t i = 0; i < m.heap.n_caches; i++) {
			struct thread_cache *c = &m.heap.caches[i];

			CHECK_U64(c->tid, c->addr == m.main.cache ? 100 : 200);
			CHECK_U64(c->blocks, 4);
		}
	} else {
		printf("# %s: not found\n", m.k->name);
	}
	image_end(&m);
}

TEST(every_layout)
{
	for (unsigned i = 0; i < N_SHAPES; i++) {
		int before = check_n_failures;

		check_shape(i);
		if (check_n_failures != before)
			printf("# that was shape %u, %s\n", i, shapes[i].name);
	}
}

static const struct cached *cached_at(struct image *m, vaddr chunk)
{
	return heap_cached(&m->heap, chunk);
}

TEST(whose_cache_and_which_bin)
{
	struct image m;
	vaddr a, b;

	image_start(&m, SHAPE_236);
	a = take(&m, &m.main, 5);
	b = take(&m, &m.main, 7);
	to_cache(&m, &m.main, a);
	to_cache(&m, &m.main, b);
	put_top(&m, &m.main);
	add_thread(&m, 7, &m.main);
	CHECK(walk(&m));
	CHECK(cached_at(&m, a) && cached_at(&m, a)->bin == 5);
	CHECK(cached_at(&m, b) && cached_at(&m, b)->bin == 7);
	CHECK_U64(m.heap.caches[0].bytes, 32 + 80 + 32 + 112);
	image_end(&m);
}

/* An empty cache is zeros: only a thread's variable names it. */
TEST(empty_caches_are_known_by_their_threads)
{
	static const unsigned which[] = { SHAPE_236, SHAPE_I386 };

	for (size_t i = 0; i < countof(which); i++) {
		struct image m;

		image_start(&m, which[i]);
		take(&m, &m.main, 2);
		put_top(&m, &m.main);
		add_thread(&m, 7, &m.main);
		CHECK(walk(&m));
		check_blocks(&m);
		CHECK_U64(m.heap.n_caches, 1);
		image_end(&m);
	}
}

/* Of a thread that is gone, as in a forked child. */
TEST(a_lock_that_is_held)
{
	for (uint32_t held = 0; held < 2; held++) {
		struct image m;

		image_start(&m, SHAPE_236);
		take(&m, &m.main, 2);
		put_top(&m, &m.main);
		add_thread(&m, 7, &m.main);
		memcpy(target_mem_at(m.sp, m.main.arena), &held,
		       sizeof(held));
		CHECK(walk(&m));
		CHECK(m.heap.arenas[0].locked == held);
		image_end(&m);
	}
}

TEST(a_cache_without_a_thread)
{
	struct image m;

	image_start(&m, SHAPE_236);
	to_cache(&m, &m.main, take(&m, &m.main, 3));
	put_top(&m, &m.main);
	CHECK(walk(&m));
	check_blocks(&m);
	CHECK_U64(m.heap.n_caches, 1);
	CHECK_U64(m.heap.caches[0].tid, 0);
	image_end(&m);
}

/* ---- mappings of their own ---- */

static void check_mmapped(unsigned shape)
{
	struct image m;
	vaddr at, user[4];
	struct block b;

	image_start(&m, shape);
	take(&m, &m.main, 2);
	put_top(&m, &m.main);
	at = m.arena_base + 0x5000;
	target_mem_add(m.sp, at, 0x80000, SEG_R | SEG_W, NULL, 0x80000, NULL);
	/* Side by side, with a page of something else between two of them. */
	user[0] = put_mmapped(&m, at, 0x20000, first_chunk(&m, at) - at);
	user[1] = put_mmapped(&m, at + 0x20000, 0x8000,
			      first_chunk(&m, at) - at);
	/* Aligned to 16 pages: the first header stays, and is not right. */
	put_mmapped(&m, at + 0x29000, 0x1f000, first_chunk(&m, at) - at);
	user[2] = put_mmapped(&m, at + 0x29000, 0x30000,
			      round_up(at + 0x29000 + 2 * m.W, 0x10000) -
			      2 * m.W - (at + 0x29000));
	user[3] = put_mmapped(&m, at + 0x60000, 0x20000,
			      first_chunk(&m, at) - at);
	put_mmaps(&m, 4, 0x20000 + 0x8000 + 0x30000 + 0x20000);
	CHECK(walk(&m));
	check_blocks(&m);
	CHECK_U64(m.heap.arenas[1].mmapped.blocks, 4);
	CHECK_U64(m.heap.arenas[1].mmapped.bytes, 0x78000);
	for (size_t i = 0; i < countof(user); i++)
		CHECK(heap_find(&m.heap, user[i], &b) && b.addr == user[i] &&
		      b.mmapped);
	CHECK(heap_find(&m.heap, at + 0x29000, &b) && b.size == 0x30000);
	CHECK_U64(m.heap.n_notes, 0);
	show_notes(&m);
	image_end(&m);
}

TEST(mmapped_chunks)
{
	check_mmapped(SHAPE_228);
	check_mmapped(SHAPE_236);
	check_mmapped(SHAPE_243);
	check_mmapped(SHAPE_I386);
	check_mmapped(11);
}

/* 2.43 forgets 16 bytes at each mremap: its sum may be too high. */
TEST(mmapped_sum_that_drifts)
{
	struct image m;

	image_start(&m, SHAPE_243);
	put_top(&m, &m.main);
	target_mem_add(m.sp, m.arena_base, 0x20000, SEG_R | SEG_W, NULL,
		       0x20000, NULL);
	put_mmapped(&m, m.arena_base, 0x20000, 0);
	put_mmaps(&m, 1, 0x20000 + 32);
	CHECK(walk(&m));
	CHECK_U64(m.heap.arenas[1].mmapped.bytes, 0x20000);
	CHECK_U64(m.heap.n_notes, 0);
	image_end(&m);
}

TEST(a_decoy_is_told_by_the_sums)
{
	struct image m;
	vaddr at;

	image_start(&m, SHAPE_236);
	put_top(&m, &m.main);
	at = m.arena_base;
	target_mem_add(m.sp, at, 0x50000, SEG_R | SEG_W, NULL, 0x50000, NULL);
	put_mmapped(&m, at, 0x10000, 0);
	put_mmapped(&m, at + 0x10000, 0x30000, 0);
	put_mmapped(&m, at + 0x40000, 0x5000, 0);
	put_mmaps(&m, 2, 0x10000 + 0x5000);
	CHECK(walk(&m));
	CHECK_U64(m.heap.arenas[1].mmapped.blocks, 2);
	CHECK_U64(m.heap.arenas[1].mmapped.bytes, 0x15000);
	CHECK(!heap_extent_at(&m.heap, at + 0x20000));
	CHECK_U64(m.heap.n_notes, 0);
	image_end(&m);
}

/* Two of the same size: which one is it?  All are kept, and that is said. */
TEST(a_decoy_that_cannot_be_told)
{
	struct image m;

	image_start(&m, SHAPE_236);
	put_top(&m, &m.main);
	target_mem_add(m.sp, m.arena_base, 0x30000, SEG_R | SEG_W, NULL,
		       0x30000, NULL);
	put_mmapped(&m, m.arena_base, 0x10000, 0);
	put_mmapped(&m, m.arena_base + 0x10000, 0x10000, 0);
	put_mmapped(&m, m.arena_base + 0x20000, 0x10000, 0);
	put_mmaps(&m, 2, 0x21000);
	CHECK(walk(&m));
	CHECK_U64(m.heap.arenas[1].mmapped.blocks, 3);
	CHECK_U64(notes(&m, "mmapped-surplus"), 1);
	image_end(&m);
}

TEST(mmapped_chunks_that_are_missing)
{
	struct image m;

	image_start(&m, SHAPE_236);
	put_top(&m, &m.main);
	put_mmaps(&m, 1, 0x10000);
	CHECK(walk(&m));
	CHECK_U64(notes(&m, "mmapped-missing"), 1);
	image_end(&m);
}

/* ---- the main arena in parts ---- */

static void check_foreign(unsigned shape)
{
	struct image m;
	vaddr gap;

	image_start(&m, shape);
	fill(&m, &m.main);
	put_fence(&m, &m.main);
	gap = m.main.at;
	m.main.at = first_chunk(&m, gap + 0x1230);
	fill(&m, &m.main);
	put_top(&m, &m.main);
	CHECK(walk(&m));
	check_blocks(&m);
	CHECK_U64(m.heap.arenas[0].foreign_bytes,
		  first_chunk(&m, gap + 0x1230) - gap);
	check_whole(&m, 0, HEAP_SIZE);
	CHECK_U64(notes(&m, "foreign-sbrk"), 1);
	CHECK_U64(m.heap.n_notes, 1);
	image_end(&m);
}

TEST(somebody_else_moved_the_break)
{
	check_foreign(SHAPE_236);
	check_foreign(SHAPE_243);
	check_foreign(SHAPE_I386);
	check_foreign(0);
}

/* The break could not grow: further pieces, the last of which is only top. */
static void check_pieces(unsigned shape)
{
	struct image m;
	vaddr at;

	image_start(&m, shape);
	fill(&m, &m.main);
	/* On i386 eight bytes are lost at both ends. */
	take_size(&m, &m.main, round_down(m.main.end - m.main.at - 4 * m.W,
					  m.A));
	put_fence(&m, &m.main);
	at = m.arena_base + 0x3000;
	target_mem_add(m.sp, at, 0x40000, SEG_R | SEG_W, NULL, 0x40000, NULL);
	m.main.at = first_chunk(&m, at + 0x10000);
	m.main.end = at + 0x20000;
	fill(&m, &m.main);
	take_size(&m, &m.main, round_down(m.main.end - m.main.at - 4 * m.W,
					  m.A));
	put_fence(&m, &m.main);
	m.main.at = first_chunk(&m, at + 0x30000);
	m.main.end = at + 0x34000;
	put_top(&m, &m.main);
	put_n(&m, m.main.arena + 4, 2, 4);
	put_system_mem(&m, m.main.arena, HEAP_SIZE + 0x10000 + 0x4000);
	CHECK(walk(&m));
	check_blocks(&m);
	check_whole(&m, 0, HEAP_SIZE + 0x14000);
	CHECK_U64(m.heap.n_notes, 0);
	CHECK(!m.heap.arenas[0].contiguous);
	image_end(&m);
}

TEST(pieces_of_the_main_arena)
{
	check_pieces(SHAPE_236);
	check_pieces(SHAPE_243);
	check_pieces(SHAPE_I386);
}

/* libc's data is not in the file. */
static void check_lost(unsigned shape, unsigned n)
{
	struct image m;

	image_start(&m, shape);
	for (unsigned i = 0; i < n; i++)
		take(&m, &m.main, i % 4);
	put_top(&m, &m.main);
	put_other(&m);
	fill(&m, &m.other);
	put_top(&m, &m.other);
	for (size_t i = 0; i < m.sp->n_segs; i++)
		if (m.sp->segs[i].start == m.libc)
			m.sp->segs[i].avail = m.sp->segs[i].stored = 0;
	CHECK(walk(&m));
	check_blocks(&m);
	CHECK_U64(notes(&m, "main-arena-missing"), 1);
	CHECK_U64(m.heap.arenas[0].extent_bytes, HEAP_SIZE);
	check_whole(&m, 1, HEAP_SIZE);
	image_end(&m);
}

TEST(the_main_arena_is_lost)
{
	check_lost(SHAPE_228, 40);
	check_lost(SHAPE_236, 40);
	check_lost(SHAPE_236, 4);
	check_lost(SHAPE_243, 40);
	check_lost(SHAPE_I386, 40);
}

/* ---- damage ---- */

static struct image *damaged(struct image *m, vaddr chunk[12], unsigned shape)
{
	image_start(m, shape);
	for (unsigned i = 0; i < 12; i++)
		chunk[i] = take(m, &m->main, 4 + i % 3);
	put_top(m, &m->main);
	add_thread(m, 1, &m->main);
	return m;
}

static void lose(struct image *m, vaddr chunk)
{
	for (size_t i = 0; i < m->n_wanted; i++)
		if (m->wanted[i].chunk == chunk)
			m->wanted[i] = m->wanted[--m->n_wanted];
}

TEST(a_size_overwritten_loses_one_block)
{
	static const uint64_t sizes[] = {
		0, 8, 0x4141414141414141, 0xffffffffffffffff, 0x21000,
		0x7fffffffffffffe0, 17, 0x65, 0x63,
	};

	for (size_t i = 0; i < countof(sizes); i++) {
		struct image m;
		vaddr c[12];

		damaged(&m, c, SHAPE_236);
		put(&m, c[5] + 8, sizes[i]);
		CHECK(walk(&m));
		lose(&m, c[5]);
		check_blocks(&m);
		CHECK_U64(notes(&m, "bad-chunk-size"), 1);
		CHECK_U64(m.heap.arenas[0].undecoded_bytes, c[6] - c[5]);
		CHECK_U64(m.heap.arenas[0].extent_bytes, HEAP_SIZE);
		CHECK_U64(m.heap.notes[0].addr, c[5]);
		CHECK_U64(m.heap.notes[0].skipped_bytes, c[6] - c[5]);
		image_end(&m);
	}
}

/* Smaller than it is: the rest of it is lost, all others are not. */
TEST(a_plausible_wrong_size)
{
	static const uint64_t sizes[] = { 0x31, 0x21, 0x61, 0x30 };

	for (size_t i = 0; i < countof(sizes); i++) {
		struct image m;
		struct block b;
		vaddr c[12];

		damaged(&m, c, SHAPE_236);
		put(&m, c[5] + 8, sizes[i]);
		CHECK(walk(&m));
		CHECK(m.heap.arenas[0].undecoded_bytes < c[6] - c[5]);
		CHECK_U64(notes(&m, "bad-chunk-size"), 1);
		for (unsigned k = 0; k < 12; k++)
			CHECK(k == 5 || (heap_find(&m.heap, c[k], &b) &&
					 b.start == c[k]));
		image_end(&m);
	}
}

TEST(a_size_overwritten_in_another_arena)
{
	struct image m;
	vaddr c[12];

	image_start(&m, SHAPE_236);
	put_top(&m, &m.main);
	put_other(&m);
	for (unsigned i = 0; i < 12; i++)
		c[i] = take(&m, &m.other, 4 + i % 3);
	put_top(&m, &m.other);
	add_thread(&m, 1, &m.main);
	add_thread(&m, 2, &m.other);
	/* All is well with it, save that it is not this arena's. */
	put(&m, c[5] + 8, (c[6] - c[5]) | 1);
	CHECK(walk(&m));
	lose(&m, c[5]);
	check_blocks(&m);
	CHECK_U64(notes(&m, "bad-chunk-size"), 1);
	image_end(&m);
}

/* The next header claims that a chunk is in use; it and its footer do not. */
TEST(a_free_chunk_is_called_in_use)
{
	struct image m;
	vaddr c[12];

	image_start(&m, SHAPE_236);
	put_top(&m, &m.main);
	put_other(&m);
	for (unsigned i = 0; i < 12; i++)
		c[i] = take(&m, &m.other, 4 + i % 3);
	put_top(&m, &m.other);
	add_thread(&m, 1, &m.main);
	add_thread(&m, 2, &m.other);
	to_bin(&m, &m.other, c[5], 1);
	put(&m, c[6] + 8, get(&m, c[6] + 8) | 1);
	CHECK(walk(&m));
	check_blocks(&m);
	CHECK_U64(m.heap.arenas[1].undecoded_bytes, 0);
	image_end(&m);
}

/* Larger than it is, into the middle of a block: those between are not lost. */
TEST(a_size_that_swallows_others)
{
	struct image m;
	vaddr c[24];

	image_start(&m, SHAPE_236);
	for (unsigned i = 0; i < 24; i++)
		c[i] = take(&m, &m.main, 4 + i % 3);
	put_top(&m, &m.main);
	add_thread(&m, 1, &m.main);
	put(&m, c[5] + 8, (c[15] + 32 - c[5]) | 1);
	CHECK(walk(&m));
	lose(&m, c[5]);
	check_blocks(&m);
	CHECK_U64(m.heap.arenas[0].undecoded_bytes, c[6] - c[5]);
	CHECK_U64(notes(&m, "bad-chunk-size"), 1);
	CHECK_U64(m.heap.notes[0].addr, c[5]);
	image_end(&m);
}

/*
 * Data that looks like a chain of chunks, longer than any accident: a list's
 * member behind it is not on that chain.
 */
TEST(a_chain_in_the_data_of_a_block)
{
	struct image m;
	vaddr c[6], fake;

	image_start(&m, SHAPE_236);
	for (unsigned i = 0; i < 6; i++)
		c[i] = take(&m, &m.main, i == 2 ? 200 : 4);
	put_top(&m, &m.main);
	add_thread(&m, 1, &m.main);
	to_bin(&m, &m.main, c[4], 1);
	for (fake = c[2] + 0x40; fake + 48 < c[3]; fake += 32)
		put(&m, fake + 8, 0x21);
	put(&m, c[2] + 8, 0x4141414141414141);
	CHECK(walk(&m));
	lose(&m, c[2]);
	check_blocks(&m);
	CHECK_U64(m.heap.arenas[0].undecoded_bytes, c[3] - c[2]);
	image_end(&m);
}

/* A fastbin goes on behind a member that is lost. */
TEST(a_lost_member_of_a_fastbin)
{
	struct image m;
	vaddr c[12];

	image_start(&m, SHAPE_236);
	for (unsigned i = 0; i < 12; i++)
		c[i] = take(&m, &m.main, 1);
	put_top(&m, &m.main);
	add_thread(&m, 1, &m.main);
	for (unsigned i = 0; i < 10; i += 2)
		to_fast(&m, &m.main, c[i]);
	put(&m, c[4] + 8, 0x4141414141414141);
	CHECK(walk(&m));
	lose(&m, c[4]);
	check_blocks(&m);
	image_end(&m);
}

TEST(a_footer_overwritten)
{
	struct image m;
	vaddr c[12];

	damaged(&m, c, SHAPE_236);
	to_bin(&m, &m.main, c[5], 1);
	put(&m, c[6], 0x20);
	CHECK(walk(&m));
	CHECK_U64(notes(&m, "bad-footer"), 1);
	CHECK(m.heap.notes[0].minor);
	CHECK_U64(m.heap.arenas[0].undecoded_bytes, 0);
	CHECK_U64(m.heap.arenas[0].state[BLOCK_USED].blocks, 11);
	image_end(&m);
}

TEST(the_size_of_top_overwritten)
{
	struct image m;
	vaddr c[12];

	damaged(&m, c, SHAPE_236);
	put(&m, m.main.at + 8, UINT64_MAX);
	CHECK(walk(&m));
	check_blocks(&m);
	CHECK_U64(notes(&m, "bad-top-size"), 1);
	image_end(&m);
}

/* From both ends all members but none behind the break are known. */
TEST(a_list_with_a_break)
{
	struct image m;
	vaddr c[12];

	damaged(&m, c, SHAPE_236);
	for (unsigned i = 1; i < 10; i += 2)
		to_bin(&m, &m.main, c[i], 1);
	put(&m, c[5] + 16, 0x4141414141414141);
	CHECK(walk(&m));
	check_blocks(&m);
	CHECK_U64(notes(&m, "bad-list-member"), 1);
	CHECK_U64(m.heap.n_notes, 1);
	CHECK_U64(m.heap.arenas[0].undecoded_bytes, 0);
	image_end(&m);
}

TEST(free_chunks_in_no_list)
{
	struct image m;
	vaddr c[12], head;

	damaged(&m, c, SHAPE_236);
	to_bin(&m, &m.main, c[3], 1);
	to_bin(&m, &m.main, c[6], 4);
	head = bin_head(&m, m.main.arena, 4);
	put(&m, head + 16, head);
	put(&m, head + 24, head);
	wanted_at(&m, c[6])->state = BLOCK_UNLISTED;
	CHECK(walk(&m));
	check_blocks(&m);
	CHECK_U64(notes(&m, "unlisted-free"), 1);
	CHECK_U64(m.heap.notes[0].addr, c[6]);
	image_end(&m);
}

/* The key behind the link tells the members that are cut off. */
static void check_broken_cache(unsigned shape)
{
	struct image m;
	vaddr c[12];

	damaged(&m, c, shape);
	for (unsigned i = 0; i < 12; i += 3)
		to_cache(&m, &m.main, c[i]);
	for (unsigned i = 1; i < 12; i += 3)
		to_cache(&m, &m.main, c[i]);
	/* c[9] is first in its list; behind it are 6, 3 and 0. */
	put(&m, c[9] + 2 * m.W, 0xdeadbeef00);
	/* Another cache, whose members are not to be taken for this one's. */
	put_other(&m);
	for (unsigned i = 0; i < 12; i++)
		c[i] = take(&m, &m.other, 4);
	for (unsigned i = 0; i < 12; i += 2)
		to_cache(&m, &m.other, c[i]);
	put_top(&m, &m.other);
	add_thread(&m, 2, &m.other);
	CHECK(walk(&m));
	check_blocks(&m);
	CHECK_U64(notes(&m, "broken-tcache"), 1);
	CHECK_U64(m.heap.n_cached, 14);
	for (size_t i = 0; i < m.heap.n_caches; i++)
		CHECK_U64(m.heap.caches[i].blocks,
			  m.heap.caches[i].tid == 1 ? 8 : 6);
	image_end(&m);
}

TEST(a_broken_list_of_a_cache)
{
	check_broken_cache(4);		/* the cache's address is the key */
	check_broken_cache(SHAPE_236);
	check_broken_cache(SHAPE_243);
}

/* A link that leads to a block in use, of another size. */
TEST(a_cache_list_with_a_stranger)
{
	struct image m;
	vaddr c[12];

	damaged(&m, c, SHAPE_236);
	to_cache(&m, &m.main, c[0]);
	to_cache(&m, &m.main, c[3]);
	put(&m, c[3] + 16, (c[3] + 16) >> 12 ^ (c[4] + 16));
	CHECK(walk(&m));
	CHECK_U64(m.heap.n_cached, 1);
	CHECK_U64(notes(&m, "bad-list-member"), 1);
	CHECK(!heap_cached(&m.heap, c[4]));
	image_end(&m);
}

/* The last one's link: nothing is missing, but it leads nowhere. */
TEST(a_cache_list_that_leads_nowhere)
{
	struct image m;
	vaddr c[12];

	damaged(&m, c, SHAPE_243);
	to_cache(&m, &m.main, c[0]);
	to_cache(&m, &m.main, c[1]);
	put(&m, c[0] + 16, 0xdeadbeef00);
	CHECK(walk(&m));
	CHECK(m.heap.n_notes > 0);
	check_blocks(&m);
	image_end(&m);
}

TEST(a_chunk_in_two_lists)
{
	struct image m;
	vaddr c[12], slot;

	image_start(&m, SHAPE_236);
	for (unsigned i = 0; i < 12; i++)
		c[i] = take(&m, &m.main, i % 3);
	put_top(&m, &m.main);
	to_cache(&m, &m.main, c[3]);
	slot = m.main.arena + m.k->fast;
	put(&m, slot, c[3]);
	CHECK(walk(&m));
	check_blocks(&m);
	CHECK_U64(notes(&m, "double-free"), 1);
	CHECK_U64(m.heap.notes[0].addr, c[3]);
	image_end(&m);
}

TEST(a_fastbin_in_a_circle)
{
	struct image m;
	vaddr c[12];

	image_start(&m, 0);
	for (unsigned i = 0; i < 12; i++)
		c[i] = take(&m, &m.main, 0);
	put_top(&m, &m.main);
	to_fast(&m, &m.main, c[3]);
	to_fast(&m, &m.main, c[5]);
	put(&m, c[3] + 16, c[5]);
	CHECK(walk(&m));
	check_blocks(&m);
	CHECK_U64(notes(&m, "double-free"), 1);
	image_end(&m);
}

/* The array one slot off is as good: the ring of arenas must decide. */
TEST(a_damaged_bin_does_not_shift_the_others)
{
	static const unsigned bins[] = { 1, 2, 64, 126, 127 };

	for (size_t i = 0; i < countof(bins); i++) {
		struct image m;
		vaddr c[12];

		damaged(&m, c, SHAPE_236);
		to_bin(&m, &m.main, c[5], 6);
		put(&m, bin_head(&m, m.main.arena, bins[i]) + 16, 0x4141);
		if (!CHECK(walk(&m))) {
			printf("# bin %u\n", bins[i]);
		} else {
			CHECK_U64(m.heap.arenas[0].addr, m.main.arena);
			check_blocks(&m);
		}
		image_end(&m);
	}
}

TEST(no_malloc_no_heap)
{
	struct space *sp = target_mem_new(MACHINE_X86_64);
	struct heap h;
	struct err err = { 0 };

	target_mem_add(sp, 0x10000, 0x1000, SEG_R | SEG_W, NULL, 0x1000,
		       "/lib/libc.so.6");
	target_mem_done(sp);
	heap_init(&h);
	CHECK(!alloc_walk(sp, NULL, false, &h, NULL, &err));
	CHECK(strstr(err.msg, "glibc"));
	CHECK_U64(h.n_extents, 0);
	heap_fini(&h);
	space_close(sp);
}

/* ---- what is not in the file ---- */

TEST(the_end_of_the_heap_is_missing)
{
	struct image m;
	vaddr c[40], cut;

	image_start(&m, SHAPE_236);
	for (unsigned i = 0; i < 40; i++)
		c[i] = take(&m, &m.main, i % 5);
	put_top(&m, &m.main);
	cut = round_down(c[20], 16) + 8;
	for (size_t i = 0; i < m.sp->n_segs; i++)
		if (m.sp->segs[i].start == m.heap_base)
			m.sp->segs[i].avail = m.sp->segs[i].stored =
				cut - m.heap_base;
	CHECK(walk(&m));
	/*
	 * The one whose successor's header is gone is not sure either; the
	 * empty cache, which no thread names, counts.
	 */
	CHECK_U64(m.heap.arenas[0].state[BLOCK_USED].blocks, 19 + 1);
	CHECK_U64(m.heap.arenas[0].extent_bytes, HEAP_SIZE);
	CHECK_U64(m.heap.arenas[0].undecoded_bytes,
		  m.heap_base + HEAP_SIZE - c[19]);
	CHECK_U64(notes(&m, "missing"), 1);
	image_end(&m);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/*
 * Program headers may claim any size without a byte in the file: neither time
 * nor memory may follow the claim.
 */
TEST(claims_cost_nothing)
{
	const uint64_t claim = UINT64_C(1) << 46;
	double start = seconds();
	struct image m;
	vaddr c[12];

	damaged(&m, c, SHAPE_236);
	/* The heap itself: its top is said to fill it. */
	for (size_t i = 0; i < m.sp->n_segs; i++)
		if (m.sp->segs[i].start == m.heap_base)
			m.sp->segs[i].end = 0x7fff00000000;
	target_mem_add(m.sp, 0x10000000, claim, SEG_R | SEG_W, NULL, 0, NULL);
	put(&m, m.main.at + 8, (0x7fff00000000 - m.main.at) | 1);
	put_system_mem(&m, m.main.arena, claim);
	put_mmaps(&m, 3, 0x30000);
	CHECK(walk(&m));
	CHECK_U64(m.heap.arenas[0].state[BLOCK_USED].blocks, 12);
	CHECK_U64(m.heap.arenas[0].extent_bytes, 0x7fff00000000 - m.heap_base);
	for (size_t i = 0; i < m.heap.n_extents; i++)
		CHECK(m.heap.extents[i].n_words < 1000);
	CHECK(seconds() - start < 2);
	image_end(&m);
}

/* Foreign sbrk everywhere: each gap is searched, all of it once. */
TEST(many_gaps_take_no_time)
{
	enum { SIZE = 16 << 20 };
	double start = seconds();
	struct image m;

	image_start(&m, SHAPE_236);
	target_mem_add(m.sp, m.heap_base + HEAP_SIZE, SIZE, SEG_R | SEG_W,
		       NULL, SIZE, NULL);
	m.main.end += SIZE;
	for (unsigned i = 0; i < 4000; i++) {
		take(&m, &m.main, 0);
		m.n_wanted = 0;
		put_fence(&m, &m.main);
		m.n_wanted = 0;
		m.main.at += 64;
	}
	put_top(&m, &m.main);
	CHECK(walk(&m));
	CHECK_U64(m.heap.arenas[0].extent_bytes, SIZE + HEAP_SIZE);
	CHECK(seconds() - start < 5);
	image_end(&m);
}
