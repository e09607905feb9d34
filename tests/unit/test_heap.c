/* SPDX-License-Identifier: MIT */
/* The heap model: planes, extents, iteration, look-ups, sums. */
#include "check.h"

#include "corewalk/heap.h"

enum { GRAIN = 16, SHIFT = 4, USER = 16, OVERLAP = 8 };
#define BASE UINT64_C(0x7f0000001000)

static void check_block(const struct block *b, vaddr start, uint64_t size,
			enum block_state state)
{
	CHECK_U64(b->start, start);
	CHECK_U64(b->size, size);
	CHECK_U64(b->addr, start + USER);
	CHECK_U64(b->state, state);
	CHECK(!b->mmapped);
}

static size_t add_blocks(struct heap *h, vaddr start, vaddr end)
{
	return heap_add_blocks(h, 0, start, end, SHIFT, USER, OVERLAP);
}

static void put(struct heap *h, size_t x, vaddr start, enum block_state state)
{
	extent_mark(&h->extents[x], start);
	extent_set_state(&h->extents[x], start, state);
}

static void start_heap(struct heap *h)
{
	uint32_t a;

	heap_init(h);
	a = heap_add_allocator(h, "test", "1", "made by hand");
	heap_add_arena(h, a, BASE, "arena");
	heap_add_arena(h, a, 0, "mmapped");
}

static size_t n_notes(const struct heap *h, const char *code)
{
	size_t n = 0;

	for (size_t i = 0; i < h->n_notes; i++)
		n += !strcmp(h->notes[i].code, code);
	return n;
}

TEST(names_of_states)
{
	CHECK_STR(block_state_name(BLOCK_USED), "used");
	CHECK_STR(block_state_name(BLOCK_CACHED), "tcache");
	CHECK_STR(block_state_name(BLOCK_FAST), "fastbin");
	CHECK_STR(block_state_name(BLOCK_UNSORTED), "unsorted");
	CHECK_STR(block_state_name(BLOCK_BINNED), "bin");
	CHECK_STR(block_state_name(BLOCK_UNLISTED), "unlisted");
	CHECK_STR(block_state_name(BLOCK_TOP), "top");
	CHECK_STR(block_state_name(BLOCK_OVERHEAD), "overhead");
	for (int s = 0; s < BLOCK_STATES; s++)
		CHECK(block_state_free(s) ==
		      (s != BLOCK_USED && s != BLOCK_OVERHEAD));
}

/* Each state is told from every other, and can be changed back. */
TEST(states_keep_to_themselves)
{
	struct heap h;
	size_t x;

	start_heap(&h);
	x = add_blocks(&h, BASE, BASE + 4096);
	for (int from = 0; from < BLOCK_STATES; from++)
		for (int to = 0; to < BLOCK_STATES; to++) {
			vaddr at = BASE + (vaddr)(from * 8 + to) * GRAIN;

			put(&h, x, at, from);
			CHECK_U64(extent_state(&h.extents[x], at), from);
			put(&h, x, at, to);
			CHECK_U64(extent_state(&h.extents[x], at), to);
		}
	heap_fini(&h);
}

TEST(a_start_is_a_granule_that_was_marked)
{
	struct heap h;
	size_t x;

	start_heap(&h);
	x = add_blocks(&h, BASE, BASE + 4096);
	put(&h, x, BASE + 64, BLOCK_USED);
	CHECK(extent_is_start(&h.extents[x], BASE + 64));
	CHECK(!extent_is_start(&h.extents[x], BASE + 65));
	CHECK(!extent_is_start(&h.extents[x], BASE + 72));
	CHECK(!extent_is_start(&h.extents[x], BASE + 80));
	CHECK(!extent_is_start(&h.extents[x], BASE));
	heap_fini(&h);
}

/* Blocks at both sides of each word of a plane. */
TEST(iteration_tiles)
{
	static const unsigned at[] = { 0, 2, 62, 63, 64, 65, 126, 128, 192 };
	struct heap_iter it;
	struct heap h;
	struct block b;
	size_t x, n = sizeof(at) / sizeof(*at);

	start_heap(&h);
	x = add_blocks(&h, BASE, BASE + 200 * GRAIN);
	for (size_t i = 0; i < n; i++)
		put(&h, x, BASE + at[i] * GRAIN, (i + 3) % BLOCK_STATES);
	heap_finish(&h);
	heap_iter_init(&it, &h);
	for (size_t i = 0; i < n; i++) {
		unsigned next = i + 1 < n ? at[i + 1] : 200;

		if (!CHECK(heap_iter_next(&it, &b)))
			break;
		check_block(&b, BASE + at[i] * GRAIN, (next - at[i]) * GRAIN,
			    (i + 3) % BLOCK_STATES);
	}
	CHECK(!heap_iter_next(&it, &b));
	CHECK(!heap_iter_next(&it, &b));
	heap_fini(&h);
}

TEST(what_is_usable)
{
	struct heap_iter it;
	struct heap h;
	struct block b;
	size_t x;

	start_heap(&h);
	x = add_blocks(&h, BASE, BASE + BLOCK_STATES * 2 * GRAIN);
	for (int s = 0; s < BLOCK_STATES; s++)
		put(&h, x, BASE + (vaddr)s * 2 * GRAIN, s);
	heap_finish(&h);
	heap_iter_init(&it, &h);
	for (int s = 0; s < BLOCK_STATES; s++) {
		bool whole = s == BLOCK_USED || s == BLOCK_CACHED ||
			s == BLOCK_FAST || s == BLOCK_OVERHEAD;

		if (!CHECK(heap_iter_next(&it, &b)))
			break;
		/* The next block's first word belongs to this one. */
		CHECK_U64(b.usable, whole ? 24 : 16);
	}
	heap_fini(&h);
}

TEST(finding_by_any_address)
{
	struct heap h;
	struct block b;
	size_t x;

	start_heap(&h);
	x = add_blocks(&h, BASE, BASE + 8192);
	put(&h, x, BASE + 32, BLOCK_USED);
	put(&h, x, BASE + 7 * 1024, BLOCK_BINNED);
	heap_add_mmapped(&h, 1, BASE + 0x10000, BASE + 0x12000,
			 BASE + 0x10010, 0);
	heap_add_range(&h, 0, EXTENT_OVERHEAD, BASE + 0x20000, BASE + 0x21000);
	heap_finish(&h);
	/* In front of the first start there is no block. */
	CHECK(!heap_find(&h, BASE, &b));
	CHECK(!heap_find(&h, BASE + 31, &b));
	CHECK(!heap_find(&h, BASE - 1, &b));
	for (vaddr a = BASE + 32; a < BASE + 7 * 1024; a += 509) {
		if (CHECK(heap_find(&h, a, &b)))
			check_block(&b, BASE + 32, 7 * 1024 - 32, BLOCK_USED);
	}
	CHECK(heap_find(&h, BASE + 7 * 1024 - 1, &b) && b.start == BASE + 32);
	if (CHECK(heap_find(&h, BASE + 8191, &b)))
		check_block(&b, BASE + 7 * 1024, 1024, BLOCK_BINNED);
	CHECK(!heap_find(&h, BASE + 8192, &b));
	if (CHECK(heap_find(&h, BASE + 0x11fff, &b))) {
		CHECK_U64(b.start, BASE + 0x10000);
		CHECK_U64(b.addr, BASE + 0x10010);
		CHECK_U64(b.size, 0x2000);
		CHECK_U64(b.usable, 0x1ff0);
		CHECK(b.mmapped);
	}
	CHECK(!heap_find(&h, BASE + 0x20010, &b));
	CHECK(!heap_find(&h, UINT64_MAX, &b));
	heap_fini(&h);
}

static size_t count_range(const struct heap *h, vaddr from, vaddr to,
			  vaddr *ret_first)
{
	struct heap_iter it;
	struct block b;
	size_t n = 0;

	*ret_first = 0;
	heap_iter_range(&it, h, from, to);
	while (heap_iter_next(&it, &b))
		if (!n++)
			*ret_first = b.start;
	return n;
}

TEST(iteration_over_a_range)
{
	struct heap h;
	vaddr first;
	size_t x;

	start_heap(&h);
	x = add_blocks(&h, BASE, BASE + 4096);
	for (vaddr a = BASE; a < BASE + 4096; a += 64)
		put(&h, x, a, BLOCK_USED);
	heap_add_mmapped(&h, 1, BASE + 0x10000, BASE + 0x12000,
			 BASE + 0x10010, 0);
	x = add_blocks(&h, BASE + 0x20000, BASE + 0x21000);
	put(&h, x, BASE + 0x20000, BLOCK_TOP);
	heap_finish(&h);
	CHECK_U64(count_range(&h, 0, UINT64_MAX, &first), 64 + 2);
	CHECK_U64(first, BASE);
	/* The block that holds `from' overlaps, the one at `to' does not. */
	CHECK_U64(count_range(&h, BASE + 65, BASE + 128, &first), 1);
	CHECK_U64(first, BASE + 64);
	CHECK_U64(count_range(&h, BASE + 65, BASE + 129, &first), 2);
	CHECK_U64(count_range(&h, BASE + 4095, BASE + 0x10001, &first), 2);
	CHECK_U64(first, BASE + 4096 - 64);
	CHECK_U64(count_range(&h, BASE + 4096, BASE + 0x10000, &first), 0);
	CHECK_U64(count_range(&h, BASE + 0x11fff, BASE + 0x20000, &first), 1);
	CHECK_U64(first, BASE + 0x10000);
	CHECK_U64(count_range(&h, BASE + 0x20800, UINT64_MAX, &first), 1);
	CHECK_U64(first, BASE + 0x20000);
	CHECK_U64(count_range(&h, BASE + 0x21000, UINT64_MAX, &first), 0);
	heap_fini(&h);
}

/*
 * Planes below 64 KB come from malloc, others from mmap: cut from one kind to
 * the same and to the other.  A plane of 64 KB speaks of 8 MB.
 */
enum { STEP = 96 };

static void cut(uint64_t from, uint64_t to)
{
	struct heap_iter it;
	struct block b;
	struct heap h;
	size_t x, n = 0;

	start_heap(&h);
	x = add_blocks(&h, BASE, BASE + from);
	for (vaddr a = BASE; a < BASE + from; a += STEP)
		put(&h, x, a, a / STEP & 1 ? BLOCK_CACHED : BLOCK_OVERHEAD);
	heap_trim_extent(&h, x, BASE + to);
	heap_finish(&h);
	heap_iter_init(&it, &h);
	while (heap_iter_next(&it, &b)) {
		vaddr want = BASE + n++ * STEP;
		uint64_t left = BASE + to - want;

		if (b.start != want || b.size != (left < STEP ? left : STEP) ||
		    b.state != (want / STEP & 1 ? BLOCK_CACHED :
				BLOCK_OVERHEAD)) {
			check_block(&b, want, left < STEP ? left : STEP,
				    b.state);
			break;
		}
	}
	CHECK_U64(n, (to + STEP - 1) / STEP);
	CHECK_U64(h.arenas[0].extent_bytes, to);
	/* Starts behind the end are gone, also from the last word. */
	CHECK_U64(h.arenas[0].state[BLOCK_CACHED].blocks +
		  h.arenas[0].state[BLOCK_OVERHEAD].blocks, n);
	CHECK_U64(h.arenas[0].state[BLOCK_USED].blocks, 0);
	CHECK_U64(n_notes(&h, "sum"), 0);
	heap_fini(&h);
}

TEST(planes_are_cut)
{
	static const uint64_t small = 1 << 20, large = 64 << 20;

	cut(small, small / 2);
	cut(small, small / 2 + 16);
	cut(small, small - 16);
	cut(small, 16);
	cut(large, large / 2);
	cut(large, large / 2 + 1040);
	cut(large, large);
	cut(large, small);
	cut(large, small + 16);
	cut(8 << 20, (8 << 20) - 1024);
	cut((8 << 20) + 1024, (8 << 20) - 1024);
}

/* i386: a granule has 16 bytes, and a fencepost 8. */
TEST(a_last_block_shorter_than_a_granule)
{
	static const unsigned at[] = { 10, 63, 64 };
	struct heap_iter it;
	struct heap h;
	struct block b;

	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
		vaddr last = BASE + at[i] * GRAIN;
		size_t x;

		start_heap(&h);
		x = add_blocks(&h, BASE, BASE + 300 * GRAIN);
		put(&h, x, BASE, BLOCK_USED);
		put(&h, x, last, BLOCK_OVERHEAD);
		heap_trim_extent(&h, x, last + 8);
		heap_finish(&h);
		CHECK_U64(h.arenas[0].state[BLOCK_USED].bytes, last - BASE);
		CHECK_U64(h.arenas[0].state[BLOCK_OVERHEAD].blocks, 1);
		CHECK_U64(h.arenas[0].state[BLOCK_OVERHEAD].bytes, 8);
		heap_iter_init(&it, &h);
		if (CHECK(heap_iter_next(&it, &b)))
			check_block(&b, BASE, last - BASE, BLOCK_USED);
		if (CHECK(heap_iter_next(&it, &b)))
			check_block(&b, last, 8, BLOCK_OVERHEAD);
		CHECK(!heap_iter_next(&it, &b));
		if (CHECK(heap_find(&h, last + 7, &b)))
			check_block(&b, last, 8, BLOCK_OVERHEAD);
		heap_fini(&h);
	}
}

/* The last block ends far behind the planes: in memory that is not there. */
TEST(a_last_block_longer_than_its_planes)
{
	const uint64_t end = UINT64_C(1) << 46;
	struct heap_iter it;
	struct heap h;
	struct block b;
	size_t x;

	start_heap(&h);
	x = add_blocks(&h, BASE, BASE + 4096);
	put(&h, x, BASE, BLOCK_USED);
	put(&h, x, BASE + 2048, BLOCK_TOP);
	heap_trim_extent(&h, x, BASE + end);
	CHECK(h.extents[x].n_words <= 5);
	CHECK(!extent_is_start(&h.extents[x], BASE + end - 16));
	heap_finish(&h);
	if (CHECK(heap_find(&h, BASE + end - 1, &b)))
		check_block(&b, BASE + 2048, end - 2048, BLOCK_TOP);
	if (CHECK(heap_find(&h, BASE + 5000, &b)))
		check_block(&b, BASE + 2048, end - 2048, BLOCK_TOP);
	heap_iter_range(&it, &h, BASE + end / 2, UINT64_MAX);
	if (CHECK(heap_iter_next(&it, &b)))
		check_block(&b, BASE + 2048, end - 2048, BLOCK_TOP);
	CHECK(!heap_iter_next(&it, &b));
	CHECK_U64(h.arenas[0].state[BLOCK_TOP].bytes, end - 2048);
	CHECK_U64(h.arenas[0].state[BLOCK_USED].bytes, 2048);
	heap_fini(&h);
}

TEST(sums_by_state_and_kind)
{
	struct heap h;
	size_t x;

	start_heap(&h);
	x = add_blocks(&h, BASE, BASE + 0x1000);
	put(&h, x, BASE, BLOCK_USED);
	put(&h, x, BASE + 0x100, BLOCK_CACHED);
	put(&h, x, BASE + 0x300, BLOCK_USED);
	put(&h, x, BASE + 0x800, BLOCK_UNSORTED);
	put(&h, x, BASE + 0xc00, BLOCK_TOP);
	heap_add_range(&h, 0, EXTENT_OVERHEAD, BASE - 64, BASE);
	heap_add_range(&h, 0, EXTENT_FOREIGN, BASE + 0x1000, BASE + 0x1800);
	heap_add_range(&h, 0, EXTENT_UNDECODED, BASE + 0x1800, BASE + 0x1820);
	heap_add_range(&h, 0, EXTENT_UNDECODED, BASE + 0x1900, BASE + 0x1900);
	heap_add_mmapped(&h, 1, BASE + 0x4000, BASE + 0x6000, BASE + 0x4010,
			 0);
	heap_finish(&h);
	CHECK_U64(h.n_extents, 5);
	CHECK_U64(h.arenas[0].state[BLOCK_USED].bytes, 0x100 + 0x500);
	CHECK_U64(h.arenas[0].state[BLOCK_USED].blocks, 2);
	CHECK_U64(h.arenas[0].state[BLOCK_CACHED].bytes, 0x200);
	CHECK_U64(h.arenas[0].state[BLOCK_UNSORTED].bytes, 0x400);
	CHECK_U64(h.arenas[0].state[BLOCK_TOP].bytes, 0x400);
	CHECK_U64(h.arenas[0].overhead_bytes, 64);
	CHECK_U64(h.arenas[0].foreign_bytes, 0x800);
	CHECK_U64(h.arenas[0].undecoded_bytes, 0x20);
	CHECK_U64(h.arenas[0].extent_bytes, 64 + 0x1820);
	CHECK_U64(h.arenas[1].mmapped.blocks, 1);
	CHECK_U64(h.arenas[1].mmapped.bytes, 0x2000);
	CHECK_U64(n_notes(&h, "sum"), 0);
	heap_fini(&h);
}

/* Blocks that no start stands before are a hole in the sum, and are shown. */
TEST(a_wrong_sum_is_noted)
{
	struct heap h;

	start_heap(&h);
	heap_add_range(&h, 0, EXTENT_OVERHEAD, BASE, BASE + 64);
	h.arenas[0].overhead_bytes = 16;
	heap_finish(&h);
	CHECK_U64(n_notes(&h, "sum"), 1);
	heap_fini(&h);
}

TEST(who_comes_second_is_not_decoded)
{
	struct heap h;
	size_t x;

	start_heap(&h);
	x = add_blocks(&h, BASE + 0x800, BASE + 0x2000);
	put(&h, x, BASE + 0x800, BLOCK_USED);
	x = add_blocks(&h, BASE, BASE + 0x1000);
	put(&h, x, BASE, BLOCK_USED);
	heap_add_range(&h, 0, EXTENT_FOREIGN, BASE + 0x400, BASE + 0x500);
	heap_finish(&h);
	CHECK_U64(n_notes(&h, "overlap"), 2);
	CHECK_U64(h.n_extents, 2);
	CHECK_U64(h.extents[0].end, BASE + 0x1000);
	CHECK_U64(h.extents[1].start, BASE + 0x1000);
	CHECK_U64(h.extents[1].end, BASE + 0x2000);
	CHECK_U64(h.extents[1].kind, EXTENT_UNDECODED);
	CHECK_U64(h.arenas[0].undecoded_bytes, 0x1000);
	CHECK_U64(h.arenas[0].state[BLOCK_USED].bytes, 0x1000);
	CHECK_U64(h.arenas[0].foreign_bytes, 0);
	heap_fini(&h);
}

TEST(empty_extents_are_dropped)
{
	struct heap h;
	struct block b;
	size_t x;

	start_heap(&h);
	x = add_blocks(&h, BASE, BASE + 4096);
	heap_trim_extent(&h, x, BASE);
	x = add_blocks(&h, BASE, BASE + 4096);
	put(&h, x, BASE, BLOCK_USED);
	heap_sort(&h);
	CHECK(heap_extent_at(&h, BASE) && heap_extent_at(&h, BASE)->end ==
	      BASE + 4096);
	heap_finish(&h);
	CHECK_U64(h.n_extents, 1);
	CHECK(heap_find(&h, BASE, &b));
	CHECK_U64(n_notes(&h, "overlap"), 0);
	heap_fini(&h);
}

TEST(extents_by_address)
{
	struct heap h;

	start_heap(&h);
	for (int i = 9; i >= 0; i--)
		heap_add_range(&h, 0, EXTENT_OVERHEAD,
			       BASE + (vaddr)i * 0x2000,
			       BASE + (vaddr)i * 0x2000 + 0x1000);
	heap_finish(&h);
	for (int i = 0; i < 10; i++) {
		vaddr at = BASE + (vaddr)i * 0x2000;

		CHECK(heap_extent_at(&h, at) == &h.extents[i]);
		CHECK(heap_extent_at(&h, at + 0xfff) == &h.extents[i]);
		CHECK(!heap_extent_at(&h, at + 0x1000));
	}
	CHECK(!heap_extent_at(&h, BASE - 1));
	heap_fini(&h);
}

TEST(no_more_notes_than_the_limit)
{
	struct heap h;

	start_heap(&h);
	for (int i = 0; i < HEAP_MAX_NOTES + 5; i++)
		heap_note(&h, "x", 0, BASE, 0, "note %d", i);
	CHECK_U64(h.n_notes, HEAP_MAX_NOTES);
	CHECK_U64(h.notes_dropped, 5);
	CHECK_STR(h.notes[9999].text, "note 9999");
	/* What is said of a note that was dropped is said of no other. */
	heap_note_is_minor(&h);
	CHECK(!h.notes[9999].minor);
	heap_fini(&h);
}

TEST(cached_blocks_are_sorted)
{
	static struct cached two[] = { { 0x200, 1, 7 }, { 0x100, 0, 3 } };
	struct heap h;

	heap_init(&h);
	CHECK(!heap_cached(&h, 0x100));
	h.cached = two;
	h.n_cached = 2;
	heap_finish(&h);
	CHECK(heap_cached(&h, 0x100) && heap_cached(&h, 0x100)->bin == 3);
	CHECK(heap_cached(&h, 0x200) && heap_cached(&h, 0x200)->cache == 1);
	CHECK(!heap_cached(&h, 0x180));
	h.cached = NULL;
	heap_fini(&h);
}

/* Blocks of many sizes, some free, some cut out: nobody else is moved. */
TEST(carve)
{
	enum { BLOCKS = 400, EVERY = 7 };
	uint32_t seed = 1, runtime;
	struct block cut[BLOCKS], kept[BLOCKS], b;
	size_t n_cut = 0, n_kept = 0, i = 0, x;
	struct heap_iter it;
	vaddr at = BASE;
	uint64_t bytes = 0;
	struct heap h;

	start_heap(&h);
	heap_add_mmapped(&h, 1, BASE - 8192, BASE - 4096, BASE - 8176, 0);
	x = add_blocks(&h, BASE, BASE + 100 * BLOCKS * GRAIN);
	for (size_t k = 0; k < BLOCKS; k++) {
		seed = seed * 1664525 + 1013904223;
		put(&h, x, at, k % EVERY ? (enum block_state)(seed >> 29) :
		    BLOCK_USED);
		at += (seed >> 8) % 90 * GRAIN + 2 * GRAIN;
	}
	heap_trim_extent(&h, x, at);
	heap_sort(&h);
	heap_iter_init(&it, &h);
	while (heap_iter_next(&it, &b))
		if (b.mmapped || (i++ % EVERY == 0 && b.state == BLOCK_USED))
			cut[n_cut++] = b;
		else
			kept[n_kept++] = b;
	heap_add_arena(&h, 0, 0, "runtime");
	runtime = (uint32_t)h.n_arenas - 1;
	heap_carve(&h, runtime, cut, n_cut);
	heap_finish(&h);
	CHECK_U64(h.n_notes, 0);
	for (size_t k = 0; k < n_cut; k++) {
		bytes += cut[k].size;
		CHECK(!heap_find(&h, cut[k].addr, &b));
		CHECK_U64(heap_extent_at(&h, cut[k].addr)->arena, runtime);
	}
	CHECK_U64(h.arenas[runtime].runtime_bytes, bytes);
	CHECK_U64(h.arenas[0].extent_bytes, at - BASE + 4096 - bytes);
	heap_iter_init(&it, &h);
	for (size_t k = 0; k < n_kept; k++) {
		CHECK(heap_iter_next(&it, &b));
		CHECK_U64(b.start, kept[k].start);
		CHECK_U64(b.size, kept[k].size);
		CHECK_U64(b.state, kept[k].state);
	}
	CHECK(!heap_iter_next(&it, &b));
	heap_fini(&h);
}
