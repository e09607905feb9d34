/* SPDX-License-Identifier: MIT */
#include "unit/check.h"

#include "analysis/index.h"
#include "unit/toy_heap.h"

static uint64_t state = 7;

static uint64_t rnd(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 11) % below;
}

/* One range of blocks of random sizes and states; where it ends. */
static vaddr add_blocks(struct heap *h, vaddr at, unsigned shift)
{
	vaddr end = at + 0x1000 * (1 + rnd(600));
	unsigned own = shift == 4 ? 16 : 8;
	size_t extent = heap_add_blocks(h, 0, at, end, shift, own, own / 2);

	while (at < end) {
		uint64_t size = (4 + rnd(rnd(20) ? 12 : 9000)) << shift;

		extent_mark(&h->extents[extent], at);
		extent_set_state(&h->extents[extent], at,
				 rnd(3) ? BLOCK_USED : 1 + rnd(7));
		at += end - at < 2 * size ? end - at : size;
	}
	return end;
}

static void add_extents(struct heap *h, unsigned shift)
{
	vaddr at = 0x10000;

	heap_add_allocator(h, "toy", "1", "");
	heap_add_arena(h, 0, 0, "toy main");
	for (int i = 0; i < 12; i++) {
		vaddr end;

		switch (rnd(4)) {
		case 0:
			end = at + 0x1000 * (1 + rnd(rnd(2) ? 20 : 5000));
			heap_add_mmapped(h, 0, at, end, at + 16, 0);
			at = end;
			break;
		case 1:
			end = at + 0x1000 * (1 + rnd(3));
			heap_add_range(h, 0, EXTENT_OVERHEAD, at, end);
			at = end;
			break;
		default:
			at = add_blocks(h, at, shift);
		}
		if (rnd(2))
			at += 0x1000 * rnd(rnd(2) ? 4 : 100000);
	}
	heap_finish(h);
}

static bool holds(const struct block *b, vaddr addr)
{
	return b->state == BLOCK_USED && addr >= b->addr &&
	       addr - b->addr < b->usable;
}

/* What the heap itself says: a block may use a word behind its end. */
static vaddr truth(struct heap *h, vaddr addr)
{
	struct block b;

	if (heap_find(h, addr, &b) && holds(&b, addr))
		return b.addr;
	if (heap_find(h, addr - 8, &b) && holds(&b, addr))
		return b.addr;
	return 0;
}

static uint64_t check_addr(const struct index *ix, struct heap *h,
			   vaddr addr)
{
	uint32_t number = index_find(ix, addr);
	vaddr want = truth(h, addr);

	if (!want)
		return number != 0;
	return !number || index_addr(ix, number) != want ||
	       index_start(ix, addr) != want ||
	       !index_starts(ix, want - ix->base) ||
	       index_end(ix, addr) <= addr;
}

static uint64_t check_heap(const struct index *ix, struct heap *h)
{
	struct heap_iter it;
	struct block b;
	uint64_t wrong = 0;
	uint32_t used = 0;
	size_t cursor = 0;

	heap_iter_init(&it, h);
	while (heap_iter_next(&it, &b)) {
		for (int off = -24; off <= 24; off++) {
			wrong += check_addr(ix, h, b.addr + off);
			wrong += check_addr(ix, h, b.start + b.size + off);
		}
		wrong += check_addr(ix, h, b.start + rnd(b.size));
		if (b.state != BLOCK_USED)
			continue;
		used++;
		wrong += index_addr_next(ix, &cursor,
					 index_find(ix, b.addr)) != b.addr;
		wrong += index_end(ix, b.addr) != b.addr + b.usable;
	}
	wrong += used != ix->n_used;
	for (int i = 0; i < 1000; i++)
		wrong += check_addr(ix, h, ix->base + rnd(ix->span));
	return wrong;
}

static void check_heaps(unsigned shift)
{
	for (int i = 0; i < 60; i++) {
		struct err err = { .kind = ERR_NONE };
		struct index ix;
		struct heap h;

		heap_init(&h);
		add_extents(&h, shift);
		if (CHECK(index_init(&ix, &h, GIB, &err)))
			CHECK_U64(check_heap(&ix, &h), 0);
		index_fini(&ix);
		heap_fini(&h);
	}
}

TEST(every_address_as_the_heap_says)
{
	check_heaps(4);
}

TEST(the_same_with_granules_of_eight)
{
	check_heaps(3);
}

TEST(no_block_is_no_number)
{
	struct err err = { .kind = ERR_NONE };
	struct index ix;
	struct heap h;

	heap_init(&h);
	heap_finish(&h);
	if (CHECK(index_init(&ix, &h, GIB, &err))) {
		CHECK_U64(index_find(&ix, 0), 0);
		CHECK_U64(index_find(&ix, UINT64_MAX), 0);
		CHECK_U64(index_addr(&ix, 1), 0);
	}
	index_fini(&ix);
	heap_fini(&h);
}

/* A damaged size field may make a range of what is hardly there. */
TEST(few_blocks_in_a_wide_range_cost_little)
{
	struct err err = { .kind = ERR_NONE };
	struct index ix;
	struct heap h;
	vaddr start = 0x10000000;
	size_t extent;

	heap_init(&h);
	heap_add_allocator(&h, "toy", "1", "");
	heap_add_arena(&h, 0, 0, "toy main");
	extent = heap_add_blocks(&h, 0, start, start + 16 * GIB, 4, 16, 8);
	for (int i = 0; i < 3; i++)
		extent_mark(&h.extents[extent], start + (uint64_t)i * GIB);
	heap_finish(&h);
	if (CHECK(index_init(&ix, &h, GIB, &err))) {
		CHECK(index_bytes(&ix) < MIB);
		CHECK_U64(index_addr(&ix, index_find(&ix, start + 20)),
			  start + 16);
		CHECK_U64(index_addr(&ix, index_find(&ix, start + 9 * GIB)),
			  start + 2 * GIB + 16);
		CHECK_U64(index_end(&ix, start + GIB + 500),
			  start + 2 * GIB + 8);
	}
	index_fini(&ix);
	heap_fini(&h);
}

TEST(too_much_is_refused_in_words)
{
	struct err err = { .kind = ERR_NONE };
	struct index ix;
	struct heap h;

	heap_init(&h);
	heap_add_allocator(&h, "toy", "1", "");
	heap_add_arena(&h, 0, 0, "toy main");
	heap_add_mmapped(&h, 0, 0x1000, UINT64_C(1) << 46, 0x1010, 0);
	heap_finish(&h);
	CHECK(!index_init(&ix, &h, MIB, &err));
	CHECK(err.kind == ERR_UNSUPPORTED && strstr(err.msg, "MB"));
	heap_fini(&h);
	heap_init(&h);
	heap_add_allocator(&h, "toy", "1", "");
	heap_add_arena(&h, 0, 0, "toy main");
	heap_add_mmapped(&h, 0, 0x1000, 0x2000, 0x1010, 0);
	heap_add_mmapped(&h, 0, UINT64_C(1) << 60,
			 (UINT64_C(1) << 60) + 0x1000,
			 (UINT64_C(1) << 60) + 16, 0);
	heap_finish(&h);
	CHECK(!index_init(&ix, &h, GIB, &err));
	CHECK(strstr(err.msg, "too far apart"));
	heap_fini(&h);
}
