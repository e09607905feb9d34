/* SPDX-License-Identifier: MIT */
#include "corewalk/alloc.h"

#include "base/mem.h"
#include "check.h"
#include "corewalk/target.h"

/* An interpreter of 3.10 on, as docs/allocators/pymalloc.md has it. */
#define PROGRAM UINT64_C(0x555555000000)
#define ARRAY UINT64_C(0x555556000000)
#define ARENA UINT64_C(0x7f0000000000)

enum {
	PROGRAM_BYTES = 0x4000, ARRAY_BYTES = 0x10000,
	TABLE = 0x100, VARIABLE = 0x1000,
	CLASSES = 32, ENTRY = 48, POOL = 16384,
	CLASS = 1, SIZE = 32, CARVED = 4, USED = 3,
};

struct python {
	struct space *sp;
	struct heap heap;
	struct err err;
	bool found;
};

static void put(struct python *p, vaddr at, uint64_t value)
{
	memcpy(target_mem_at(p->sp, at), &value, sizeof(value));
}

static void put_arena(struct python *p, unsigned i, vaddr start, vaddr fresh,
		      uint64_t n_free, uint64_t n_pools)
{
	vaddr at = ARRAY + i * ENTRY;

	put(p, at, start);
	put(p, at + 8, fresh);
	put(p, at + 16, n_free | n_pools << 32);
}

/* One arena, with one pool: of four blocks one is free, in its list. */
static void begin(struct python *p)
{
	*p = (struct python){ .sp = target_mem_new(MACHINE_X86_64) };
	target_mem_add(p->sp, PROGRAM, PROGRAM_BYTES, SEG_R | SEG_W, NULL,
		       PROGRAM_BYTES, "/usr/bin/python3");
	target_mem_add(p->sp, ARRAY, ARRAY_BYTES, SEG_R | SEG_W, NULL,
		       ARRAY_BYTES, NULL);
	target_mem_add(p->sp, ARENA, 2 * MIB, SEG_R | SEG_W, NULL, 2 * MIB,
		       NULL);
	target_mem_add(p->sp, ARENA + 2 * MIB, MIB, SEG_R | SEG_W, NULL, 0,
		       NULL);
	target_mem_done(p->sp);
	p->sp->modules = mem_zalloc(sizeof(*p->sp->modules));
	p->sp->n_modules = 1;
	p->sp->modules[0] = (struct module){
		.start = PROGRAM, .end = PROGRAM + PROGRAM_BYTES,
	};
	for (unsigned c = 0; c < CLASSES; c++) {
		vaddr at = PROGRAM + TABLE + 16 * c;

		put(p, at, c == CLASS ? ARENA : at - 16);
		put(p, at + 8, c == CLASS ? ARENA : at - 16);
	}
	put(p, PROGRAM + VARIABLE, ARRAY);
	put_arena(p, 0, ARENA, ARENA + POOL, 63, 64);
	put(p, ARENA, USED);
	put(p, ARENA + 8, ARENA + ENTRY);
	put(p, ARENA + 32, (uint64_t)CLASS << 32);
	put(p, ARENA + 40, (ENTRY + CARVED * SIZE) |
	    (uint64_t)(POOL - SIZE) << 32);
}

static const struct arena *walk(struct python *p)
{
	heap_init(&p->heap);
	p->found = alloc_walk(p->sp, alloc_by_name("pymalloc"), false,
			      &p->heap, NULL, &p->err);
	return CHECK(p->found) ? &p->heap.arenas[0] : NULL;
}

static void end(struct python *p)
{
	heap_fini(&p->heap);
	space_close(p->sp);
}

TEST(a_pool)
{
	struct python p;
	const struct arena *a;

	begin(&p);
	a = walk(&p);
	if (a) {
		CHECK_U64(a->state[BLOCK_USED].blocks, USED);
		CHECK_U64(a->state[BLOCK_BINNED].blocks, CARVED - USED);
		CHECK_U64(a->state[BLOCK_TOP].bytes, MIB - POOL);
		CHECK_U64(a->extent_bytes, MIB);
		CHECK_U64(p.heap.n_notes, 0);
	}
	end(&p);
}

/* Pools are aligned, arenas are not: before the first pool is none. */
TEST(no_pool_of_an_arena_was_used)
{
	struct python p;
	const struct arena *a;

	begin(&p);
	put_arena(&p, 1, ARENA + MIB - 4096, ARENA + MIB - 4096, 63, 63);
	put_arena(&p, 0, ARENA, ARENA + POOL, 63, 64);
	a = walk(&p);
	if (a)
		CHECK_U64(a->extent_bytes, MIB);
	end(&p);
	begin(&p);
	put_arena(&p, 1, ARENA + MIB + 4096, ARENA + MIB + 4096, 63, 63);
	a = walk(&p);
	if (a) {
		CHECK_U64(a->state[BLOCK_USED].blocks, USED);
		CHECK_U64(a->state[BLOCK_TOP].bytes,
			  MIB - POOL + 63 * POOL);
		CHECK_U64(a->extent_bytes, 2 * MIB);
	}
	end(&p);
}

TEST(an_arena_many_times)
{
	struct python p;
	const struct arena *a;

	begin(&p);
	for (unsigned i = 1; i < ARRAY_BYTES / ENTRY; i++)
		put_arena(&p, i, ARENA, ARENA + POOL, 63, 64);
	a = walk(&p);
	if (a) {
		CHECK_U64(a->extent_bytes, MIB);
		CHECK_U64(p.heap.n_extents, 1);
		CHECK_U64(p.heap.n_notes, 0);
	}
	end(&p);
}

TEST(an_arena_that_is_not_in_the_file)
{
	struct python p;
	const struct arena *a;

	begin(&p);
	put_arena(&p, 1, ARENA + 2 * MIB, ARENA + 2 * MIB + POOL, 63, 64);
	a = walk(&p);
	if (a) {
		CHECK_U64(a->undecoded_bytes, MIB);
		CHECK_U64(a->extent_bytes, 2 * MIB);
		if (CHECK_U64(p.heap.n_notes, 1))
			CHECK_STR(p.heap.notes[0].code, "pymalloc-arena");
	}
	end(&p);
}
