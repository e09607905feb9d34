/* SPDX-License-Identifier: MIT */
/*
 * Blocks whose first words lead into a program that is all lies: vtables,
 * type_info in circles, names without an end.  Input: how many blocks, then
 * words of them and of the program.  A word with the top byte 0xfe becomes an
 * address in the program, with 0xfd one in the heap.
 *
 * Code: analysis/(census|vtable|shape|content|text|types)
 */
#include "base/mem.h"
#include "fuzz/invariants.h"

enum {
	HEAP_AT = 0x10000000,
	PROGRAM_AT = 0x20000000,
	SIZE = 1 << 16,
	BLOCK = 64,
	GRANULE = 16,
};

static void put_words(uint8_t *to, const uint8_t *from, size_t n)
{
	for (size_t i = 0; i + 8 <= n; i += 8) {
		uint64_t v;

		memcpy(&v, from + i, 8);
		if (v >> 56 == 0xfe)
			v = PROGRAM_AT + v % SIZE;
		else if (v >> 56 == 0xfd)
			v = HEAP_AT + v % SIZE;
		memcpy(to + i, &v, 8);
	}
}

static struct space *make_space(const uint8_t *data, size_t size,
				size_t in_heap)
{
	struct space *sp = target_mem_new(MACHINE_X86_64);
	uint8_t *bytes = mem_zalloc(SIZE);

	put_words(bytes, data, in_heap);
	target_mem_add(sp, HEAP_AT, SIZE, SEG_R | SEG_W, bytes, SIZE, NULL);
	memset(bytes, 0, SIZE);
	put_words(bytes, data + in_heap, min_u64(size - in_heap, SIZE));
	target_mem_add(sp, PROGRAM_AT, SIZE, SEG_R, bytes, SIZE, "/bin/lies");
	free(bytes);
	sp->modules = mem_zalloc(sizeof(*sp->modules));
	sp->n_modules = 1;
	sp->modules[0] = (struct module){
		.start = PROGRAM_AT, .end = PROGRAM_AT + SIZE,
	};
	target_mem_done(sp);
	return sp;
}

static void make_heap(struct heap *h, uint64_t bytes)
{
	size_t x;

	heap_init(h);
	heap_add_allocator(h, "lies", "1", "none");
	heap_add_arena(h, 0, 0, "lies");
	x = heap_add_blocks(h, 0, HEAP_AT, HEAP_AT + bytes, 4, GRANULE, 8);
	for (uint64_t at = 0; at < bytes; at += BLOCK)
		extent_mark(&h->extents[x], HEAP_AT + at);
	heap_finish(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct space *sp;
	struct heap h;
	size_t in_heap;

	if (size < 1 + BLOCK)
		return 0;
	in_heap = min_u64((size_t)(*data % 64 + 1) * BLOCK,
			  (size - 1) / BLOCK * BLOCK);
	sp = make_space(data + 1, size - 1, in_heap);
	make_heap(&h, in_heap);
	must_be_types(sp, &h);
	heap_fini(&h);
	space_close(sp);
	return 0;
}
