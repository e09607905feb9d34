/* SPDX-License-Identifier: MIT */
/* Pools of OCaml 5 made by hand, and pages that look like pools. */
#include "corewalk/ocaml.h"

#include <string.h>

#include "check.h"
#include "corewalk/target.h"

enum {
	PAGE = 4096, POOL = 32768,
	STATES = 0x10000, STATE = 64, FALSE_ONES = 128,
	FALSE_MINOR = 0x100000, FALSE_HEADS = 0x200000,
	MINOR = 0x400000, POOLS = 0x500000,
};

static void put(struct space *sp, vaddr at, uint64_t word)
{
	memcpy(target_mem_at(sp, at), &word, sizeof(word));
}

static void map(struct space *sp, vaddr start, uint64_t size)
{
	target_mem_add(sp, start, size, SEG_R | SEG_W, NULL, size, NULL);
}

static void put_domain(struct space *sp, vaddr state, vaddr minor)
{
	put(sp, state + 8, minor + 8);
	put(sp, state + 16, minor);
	put(sp, state + 24, minor + PAGE);
}

static void put_head(struct space *sp, vaddr at, vaddr state)
{
	put(sp, at, 0);
	put(sp, at + 8, 0);
	put(sp, at + 16, state);
	put(sp, at + 24, 1);
}

/* Of slots of two words, all in use. */
static void put_pool(struct space *sp, vaddr at)
{
	put_head(sp, at, STATES);
	for (vaddr slot = at + 32; slot < at + POOL; slot += 16)
		put(sp, slot, 1 << 10);
}

/* A domain, and two pools that the kernel has in mappings of their own. */
static struct space *begin(void)
{
	struct space *sp = target_mem_new(MACHINE_X86_64);

	/* A file's, so that no pool is looked for there. */
	target_mem_add(sp, STATES, 0x10000, SEG_R | SEG_W, NULL, 0x10000,
		       "/f");
	map(sp, MINOR, PAGE);
	map(sp, POOLS, POOL);
	map(sp, POOLS + POOL, 2 * POOL);
	put_domain(sp, STATES, MINOR);
	put_pool(sp, POOLS);
	put_pool(sp, POOLS + POOL);
	return sp;
}

/* Bytes of the runtime in [start, end). */
static uint64_t runtime_bytes(const struct heap *h, vaddr start, vaddr end)
{
	uint64_t n = 0;

	for (size_t i = 0; i < h->n_extents; i++) {
		const struct heap_extent *x = &h->extents[i];
		vaddr from = max_u64(x->start, start);
		vaddr to = min_u64(x->end, end);

		if (x->kind == EXTENT_RUNTIME && from < to)
			n += to - from;
	}
	return n;
}

/* Its slots are no values: what it names is no minor heap, however many. */
TEST(a_false_pool_names_no_domain)
{
	struct space *sp = begin();
	struct heap h;

	map(sp, FALSE_MINOR, PAGE);
	map(sp, FALSE_HEADS, FALSE_ONES * PAGE + POOL);
	memset(target_mem_at(sp, FALSE_HEADS), 1, FALSE_ONES * PAGE + POOL);
	for (vaddr i = 0; i < FALSE_ONES; i++) {
		put_domain(sp, STATES + (i + 1) * STATE, FALSE_MINOR);
		put_head(sp, FALSE_HEADS + i * PAGE, STATES + (i + 1) * STATE);
	}
	target_mem_done(sp);
	heap_init(&h);
	ocaml5_find(sp, &h);
	CHECK_U64(runtime_bytes(&h, FALSE_MINOR, FALSE_MINOR + PAGE), 0);
	CHECK_U64(runtime_bytes(&h, MINOR, MINOR + PAGE), PAGE);
	CHECK_U64(runtime_bytes(&h, POOLS, POOLS + 3 * POOL), 2 * POOL);
	heap_fini(&h);
	space_close(sp);
}

/* What is an allocator's behind them is its, though it looks like a pool. */
TEST(a_run_of_pools_over_a_border)
{
	struct space *sp = begin();
	vaddr end = POOLS + 2 * POOL;
	struct heap h;

	put(sp, end, POOLS);
	target_mem_done(sp);
	heap_init(&h);
	heap_add_allocator(&h, "toy", "1", "");
	heap_add_arena(&h, 0, 0, "toy main");
	heap_add_range(&h, 0, EXTENT_OVERHEAD, end, end + POOL);
	heap_sort(&h);
	ocaml5_find(sp, &h);
	CHECK_U64(runtime_bytes(&h, POOLS, end), 2 * POOL);
	CHECK_U64(runtime_bytes(&h, end, end + POOL), 0);
	heap_finish(&h);
	CHECK_U64(h.n_notes, 0);
	heap_fini(&h);
	space_close(sp);
}
