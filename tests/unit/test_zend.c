/* SPDX-License-Identifier: MIT */
#include "corewalk/alloc.h"

#include "check.h"
#include "corewalk/target.h"
#include "corewalk/zend.h"

/* A heap of PHP 8.4 that has one chunk, as docs/allocators/zendmm.md has it. */
#define CHUNK UINT64_C(0x7f1234600000)
#define HUGE UINT64_C(0x7f1235000000)

enum {
	HEAP = ZEND_HEAP_OFF, REAL_SIZE = HEAP + 280, REAL_PEAK = HEAP + 288,
	HUGE_LIST = HEAP + 304, MAIN_CHUNK = HEAP + 312,
	MAP = 576, FREE_MAP = MAP - ZEND_PAGES / 8,
	NODE = 3 * ZEND_PAGE,
};

struct php {
	struct space *sp;
	struct heap heap;
	struct err err;
};

static void put(struct php *p, unsigned off, uint64_t value)
{
	memcpy(target_mem_at(p->sp, CHUNK + off), &value, sizeof(value));
}

/* A huge block that is said to have so many bytes; avail of the chunk. */
static void begin_with(struct php *p, uint64_t huge, uint64_t avail)
{
	*p = (struct php){ .sp = target_mem_new(MACHINE_X86_64) };
	target_mem_add(p->sp, CHUNK, ZEND_CHUNK, SEG_R | SEG_W, NULL, avail,
		       NULL);
	target_mem_add(p->sp, HUGE, 2 * ZEND_CHUNK, SEG_R | SEG_W, NULL, 0,
		       NULL);
	target_mem_done(p->sp);
	put(p, 0, CHUNK + HEAP);
	put(p, 8, CHUNK);
	put(p, 16, CHUNK);
	put(p, 24, ZEND_PAGES - 1);
	put(p, FREE_MAP, 1);
	put(p, MAP, 1 << 30 | 1);
	put(p, HEAP + 16, huge);
	put(p, REAL_SIZE, ZEND_CHUNK + huge);
	put(p, REAL_PEAK, ZEND_CHUNK + huge);
	put(p, HUGE_LIST, CHUNK + NODE);
	put(p, MAIN_CHUNK, CHUNK);
	put(p, MAIN_CHUNK + 16, 1);
	put(p, NODE, HUGE);
	put(p, NODE + 8, huge);
	heap_init(&p->heap);
	CHECK(alloc_walk(p->sp, alloc_by_name("zend"), false, &p->heap, NULL,
			 &p->err));
}

static void begin(struct php *p, uint64_t huge)
{
	begin_with(p, huge, ZEND_CHUNK);
}

static void end(struct php *p)
{
	heap_fini(&p->heap);
	space_close(p->sp);
}

TEST(a_huge_block)
{
	struct php p;

	begin(&p, 2 * ZEND_CHUNK);
	if (CHECK_U64(p.heap.n_arenas, 1)) {
		CHECK_U64(p.heap.arenas[0].mmapped.blocks, 1);
		CHECK_U64(p.heap.arenas[0].mmapped.bytes, 2 * ZEND_CHUNK);
		CHECK_U64(p.heap.n_notes, 0);
	}
	end(&p);
}

TEST(a_huge_block_larger_than_its_mappings)
{
	struct php p;

	begin(&p, UINT64_C(1) << 40);
	if (CHECK_U64(p.heap.n_arenas, 1)) {
		CHECK_U64(p.heap.arenas[0].mmapped.blocks, 0);
		if (CHECK(p.heap.n_notes > 0))
			CHECK_STR(p.heap.notes[0].code, "zend-huge");
	}
	end(&p);
}

/* 128 KiB of planes for 16 KiB of a file would be too much. */
TEST(a_chunk_that_is_hardly_there)
{
	struct php p;

	begin_with(&p, 2 * ZEND_CHUNK, 4 * ZEND_PAGE);
	if (CHECK_U64(p.heap.n_arenas, 1)) {
		CHECK_U64(p.heap.arenas[0].undecoded_bytes, ZEND_CHUNK);
		if (CHECK(p.heap.n_notes > 0))
			CHECK_STR(p.heap.notes[0].code, "zend-chunk");
	}
	for (size_t i = 0; i < p.heap.n_extents; i++)
		CHECK_U64(p.heap.extents[i].n_words, 0);
	end(&p);
}
