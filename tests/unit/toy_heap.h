/* SPDX-License-Identifier: MIT */
/*
 * A heap of glibc's form built by hand, with a mapping of data beside it, for
 * tests of what looks at references.
 */
#ifndef UNIT_TOY_HEAP_H
#define UNIT_TOY_HEAP_H

#include <string.h>

#include "analysis/where.h"
#include "base/mem.h"
#include "corewalk/heap.h"
#include "corewalk/target.h"

enum {
	TOY_HEAP = 0x100000, TOY_SIZE = 0x400000,
	TOY_DATA = 0x800000, TOY_DATA_SIZE = 0x10000,
};

struct toy {
	struct space *sp;
	struct heap h;
	struct where w;		/* stacks only, by hand */
	size_t extent;
	vaddr next;		/* the next chunk */
};

__attribute__((unused))
static void toy_init(struct toy *t)
{
	memset(t, 0, sizeof(*t));
	t->sp = target_mem_new(MACHINE_X86_64);
	target_mem_add(t->sp, TOY_HEAP, TOY_SIZE, SEG_R | SEG_W, NULL,
		       TOY_SIZE, NULL);
	target_mem_add(t->sp, TOY_DATA, TOY_DATA_SIZE, SEG_R | SEG_W, NULL,
		       TOY_DATA_SIZE, NULL);
	target_mem_done(t->sp);
	heap_init(&t->h);
	heap_add_allocator(&t->h, "toy", "1", "");
	heap_add_arena(&t->h, 0, 0, "toy main");
	t->extent = heap_add_blocks(&t->h, 0, TOY_HEAP, TOY_HEAP + TOY_SIZE,
				    4, 16, 8);
	t->next = TOY_HEAP;
}

/* A chunk of size bytes, a multiple of 16; what malloc returned. */
__attribute__((unused))
static vaddr toy_chunk(struct toy *t, uint64_t size, enum block_state state)
{
	struct heap_extent *x = &t->h.extents[t->extent];
	vaddr start = t->next;

	extent_mark(x, start);
	extent_set_state(x, start, state);
	t->next += size;
	return start + 16;
}

__attribute__((unused))
static vaddr toy_malloc(struct toy *t, uint64_t request)
{
	uint64_t size = (request + 8 + 15) & ~UINT64_C(15);

	return toy_chunk(t, size < 32 ? 32 : size, BLOCK_USED);
}

__attribute__((unused))
static void toy_put(struct toy *t, vaddr addr, uint64_t value)
{
	memcpy(target_mem_at(t->sp, addr), &value, sizeof(value));
}

/* All blocks are there. */
__attribute__((unused))
static void toy_done(struct toy *t)
{
	toy_chunk(t, TOY_HEAP + TOY_SIZE - t->next, BLOCK_TOP);
	heap_finish(&t->h);
}

__attribute__((unused))
static void toy_fini(struct toy *t)
{
	heap_fini(&t->h);
	free(t->w.stacks);
	space_close(t->sp);
}

#endif
