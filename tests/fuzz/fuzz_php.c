/* SPDX-License-Identifier: MIT */
/*
 * A heap of PHP with one chunk, whose values, calls, classes and functions are
 * all lies; only what leads to them is in order.
 *
 * Input: a byte for the release, then words, a third each for the values in
 * the heap, for the stack of calls, and for the engine's tables, classes and
 * functions.  A word with the top byte 0xfe becomes an address in the program,
 * with 0xfd one in the heap.
 *
 * Code: corewalk/(zend_|alloc_zend)|analysis/php_
 */
#include "analysis/php_layout.h"
#include "base/mem.h"
#include "corewalk/zend.h"
#include "fuzz/choose.h"
#include "fuzz/undo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	CHUNK_AT = 0x10000000,
	PROGRAM_AT = 0x20000000,
	PROGRAM_SIZE = 1 << 16,
	/* In the chunk: offsets, and pages. */
	MAIN = 312, SLOTS = 32, MAP = 520,
	STACK_PAGE = 1, STACK_PAGES = 64,
	VALUE_PAGE = STACK_PAGE + STACK_PAGES, VALUE_PAGES = 16,
	/* In the program. */
	EXECUTOR = 0x1000, COMPILER = 0x2000, TABLES = 0x3000,
	DATA = 0x4000, DATA_SIZE = 0x8000,
	MAX_LAYOUTS = 8,
};
/* Bins of the pages with values: arrays, objects, elements, strings. */
static const uint8_t bins[] = { 6, 8, 16, 3, 6, 16 };

struct image {
	struct space *sp;		/* owned */
	uint8_t *chunk, *program;	/* its memory */
	const struct php_layout *at;
};

static void put_u32(uint8_t *to, uint32_t v)
{
	memcpy(to, &v, 4);
}

static void put_u64(uint8_t *to, uint64_t v)
{
	memcpy(to, &v, 8);
}

static void put_words(uint8_t *to, size_t room, const uint8_t *from, size_t n)
{
	for (size_t i = 0; i + 8 <= n && i + 8 <= room; i += 8) {
		uint64_t v;

		memcpy(&v, from + i, 8);
		if (v >> 56 == 0xfe)
			v = PROGRAM_AT + v % PROGRAM_SIZE;
		else if (v >> 56 == 0xfd)
			v = CHUNK_AT + v % ZEND_CHUNK;
		if (v != load_u64(to + i))
			poke(to + i, v);
	}
}

/* Pages in use from page on: entries of the map, bits of the free map. */
static void put_run(uint8_t *chunk, unsigned page, unsigned n, uint32_t entry,
		    bool small)
{
	for (unsigned i = 0; i < n; i++) {
		unsigned p = page + i;

		put_u32(chunk + MAP + 4 * p, i && small ?
			entry | 3u << 30 | i << 16 : i ? 0 : entry);
		chunk[MAP - 64 + p / 8] |= (uint8_t)(1 << p % 8);
	}
}

static void make_chunk(uint8_t *chunk)
{
	uint8_t *heap = chunk + ZEND_HEAP_OFF;
	unsigned page = VALUE_PAGE, used = 1 + STACK_PAGES;

	put_u64(chunk, CHUNK_AT + ZEND_HEAP_OFF);
	put_u64(chunk + 8, CHUNK_AT);
	put_u64(chunk + 16, CHUNK_AT);
	put_u64(heap + SLOTS + 240, ZEND_CHUNK);
	put_u64(heap + SLOTS + 248, ZEND_CHUNK);
	put_u64(heap + MAIN, CHUNK_AT);
	put_u32(heap + MAIN + 16, 1);
	put_run(chunk, 0, 1, 1u << 30 | 1, false);
	put_run(chunk, STACK_PAGE, STACK_PAGES, 1u << 30 | STACK_PAGES, false);
	for (size_t i = 0; i < countof(bins); i++) {
		unsigned n = zend_run_pages[bins[i]];

		put_run(chunk, page, n, 1u << 31 | bins[i], true);
		page += n;
		used += n;
	}
	put_u32(chunk + 24, ZEND_PAGES - used);
}

/* A table of so many elements, which lie at data. */
static void put_table(uint8_t *to, vaddr data, uint32_t n)
{
	put_u32(to, 1);
	put_u32(to + 4, PHP_ARRAY);
	put_u32(to + PHP_ARRAY_FLAGS, n ? 0 : PHP_ARRAY_EMPTY);
	put_u32(to + PHP_ARRAY_MASK, (uint32_t)-8);
	put_u64(to + PHP_ARRAY_DATA, data);
	put_u32(to + PHP_ARRAY_USED, n);
	put_u32(to + PHP_ARRAY_COUNT, n);
	put_u32(to + PHP_ARRAY_SIZE, 8);
}

static void make_program(const struct image *m)
{
	const struct php_layout *at = m->at;
	uint8_t *eg = m->program + EXECUTOR, *cg = m->program + COMPILER;
	vaddr stack = CHUNK_AT + STACK_PAGE * ZEND_PAGE;
	vaddr values = CHUNK_AT + VALUE_PAGE * ZEND_PAGE;

	m->program[0] = 168;
	put_u32(m->program + 4, at->api);
	put_u64(m->program + 32, PROGRAM_AT + 200);
	memcpy(m->program + 200, "core", 4);
	put_table(eg + PHP_EG_SYMBOLS, values + 2 * ZEND_PAGE + 32, 8);
	put_table(eg + PHP_EG_FILES, 0, 0);
	put_table(eg + at->resources, 0, 0);
	put_u64(eg + at->stack, stack + 0x4000);
	put_u64(eg + at->stack + 8, stack + STACK_PAGES * ZEND_PAGE);
	put_u64(eg + at->stack + 16, stack);
	put_u64(eg + at->frame, stack + PHP_STACK_FIRST);
	put_u64(eg + at->objects, values);
	put_u32(eg + at->objects + 8, 64);
	put_u32(eg + at->objects + 12, 64);
	for (unsigned i = 0; i < 3; i++) {
		vaddr table = PROGRAM_AT + TABLES + 64 * i;

		put_table(m->program + TABLES + 64 * i,
			  PROGRAM_AT + DATA + 32 + 0x200 * i, 8);
		put_u64(eg + at->functions + 8 * i, table);
		if (i < 2)
			put_u64(cg + PHP_CG_FUNCTIONS + 8 * i, table);
	}
	put_u64(cg + at->arena, stack);
	put_table(cg + at->arena + 8, 0, 0);
	put_u64(cg + at->map_base, PROGRAM_AT + DATA - 1);
}

static void make_stack(uint8_t *stack)
{
	vaddr at = CHUNK_AT + STACK_PAGE * ZEND_PAGE;

	put_u64(stack, at + 0x4000);
	put_u64(stack + 8, at + STACK_PAGES * ZEND_PAGE);
}

static struct space *make_space(void)
{
	struct space *sp = target_mem_new(MACHINE_X86_64);

	target_mem_add(sp, CHUNK_AT, ZEND_CHUNK, SEG_R | SEG_W, NULL,
		       ZEND_CHUNK, NULL);
	target_mem_add(sp, PROGRAM_AT, PROGRAM_SIZE, SEG_R | SEG_W, NULL,
		       PROGRAM_SIZE, "/bin/php");
	sp->modules = mem_zalloc(sizeof(*sp->modules));
	sp->n_modules = 1;
	sp->modules[0] = (struct module){
		.start = PROGRAM_AT, .end = PROGRAM_AT + PROGRAM_SIZE,
	};
	target_mem_done(sp);
	return sp;
}

/* Each is made once. */
static const struct image *image_of(unsigned layout)
{
	static struct image images[MAX_LAYOUTS];
	struct image *m = &images[layout];

	if (m->sp)
		return m;
	m->sp = make_space();
	m->at = &php_layouts[layout];
	m->chunk = target_mem_at(m->sp, CHUNK_AT);
	m->program = target_mem_at(m->sp, PROGRAM_AT);
	make_chunk(m->chunk);
	make_stack(m->chunk + STACK_PAGE * ZEND_PAGE);
	make_program(m);
	return m;
}

static void fill(const struct image *m, const uint8_t *data, size_t size)
{
	size_t part = size / 24 * 8;

	put_words(m->chunk + VALUE_PAGE * ZEND_PAGE,
		  VALUE_PAGES * ZEND_PAGE, data, part);
	put_words(m->chunk + STACK_PAGE * ZEND_PAGE + PHP_STACK_FIRST, 0x4000,
		  data + part, part);
	put_words(m->program + DATA, DATA_SIZE, data + 2 * part, part);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct image *m;
	unsigned layout = 0;
	struct heap h;

	if (size < 25)
		return 0;
	while (php_layouts[layout + 1].api && layout < *data % MAX_LAYOUTS)
		layout++;
	m = image_of(layout);
	fill(m, data + 1, size - 1);
	choose("zend", data, size);
	(void)walk_and_check(m->sp, &h);
	if (how_much == JUST_WALK)
		must_be_php(m->sp, &h);
	heap_fini(&h);
	undo_all();
	return 0;
}
