/* SPDX-License-Identifier: MIT */
/*
 * Debug information that is all lies.  Input: for each of some sections two
 * bytes of length, then their contents.  They become a program that ends
 * where a page ends, behind it one of zeros, as by file_map(), and then
 * nothing; its types are all read, its variables laid over a heap, and what
 * they say of it must hold.
 * tests/fuzz/dwarf_seed makes such a file of a program.
 *
 * Code: corewalk/dwarf_|analysis/(spread|claim|fields)
 */
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "analysis/index.h"
#include "analysis/spread.h"
#include "base/mem.h"
#include "corewalk/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {
	".debug_abbrev", ".debug_info", ".debug_str", ".debug_types",
	".debug_line_str", ".debug_str_offsets", ".debug_addr",
	".debug_loclists",
};
enum { SECTIONS = countof(names), HEADERS = SECTIONS + 2 };

/* ---- the program ---- */

struct image {
	uint8_t *pages;		/* owned */
	size_t n_pages, room;
	uint8_t *at;		/* in pages, up to their end */
	size_t size;
};

static void put(uint8_t *p, uint64_t value, unsigned n)
{
	for (; n; n--, value >>= 8)
		*p++ = (uint8_t)value;
}

static void put_section(uint8_t *p, size_t name, unsigned type, size_t off,
			size_t size)
{
	put(p, name, 4);
	put(p + 4, type, 4);
	put(p + 24, off, 8);
	put(p + 32, size, 8);
	put(p + 48, 1, 8);
}

static void make_image(struct image *im, const uint8_t *data, size_t size)
{
	size_t head = 2 * SECTIONS, text = 1, off;
	uint8_t *p;

	for (size_t i = 0; i < SECTIONS; i++)
		text += strlen(names[i]) + 1;
	im->size = 64 + 64 * HEADERS + text + (size - head);
	im->room = round_up(im->size, 4096) + 2 * 4096;
	im->pages = mmap(NULL, im->room, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (im->pages == MAP_FAILED ||
	    mprotect(im->pages + im->room - 4096, 4096, PROT_NONE))
		abort();
	p = im->at = im->pages + im->room - 2 * 4096 - im->size;
	memcpy(p, "\177ELF\2\1\1", 7);
	put(p + 16, 2, 2);
	put(p + 18, 62, 2);
	put(p + 20, 1, 4);
	put(p + 40, 64, 8);
	put(p + 52, 64, 2);
	put(p + 58, 64, 2);
	put(p + 60, HEADERS, 2);
	put(p + 62, 1, 2);
	off = 64 + 64 * HEADERS;
	put_section(p + 128, 0, 3, off, text);
	text = 1;
	for (size_t i = 0; i < SECTIONS; i++) {
		strcpy((char *)p + off + text, names[i]);
		put(p + 64 * (i + 3), text, 4);
		text += strlen(names[i]) + 1;
	}
	off += text;
	for (size_t i = 0, left = size - head; i < SECTIONS; i++) {
		size_t n = data[2 * i] | data[2 * i + 1] << 8;

		n = n < left ? n : left;
		left -= n;
		put_section(p + 64 * (i + 3), p[64 * (i + 3)] |
			    (unsigned)p[64 * (i + 3) + 1] << 8, 1, off, n);
		off += n;
	}
	off = im->size - (size - head);
	memcpy(p + off, data + head, size - head);
}

/* ---- the heap ---- */

enum {
	HEAP_AT = 0x10000000, ROOT_AT = 0x20000000,
	BYTES = 1 << 14, GRANULE = 16,
	MAX_STEPS = 1 << 16,
};

/* Words that lead to starts of blocks, into them, nowhere, or are null. */
static void fill(uint8_t *bytes, uint64_t seed)
{
	for (size_t i = 0; i < BYTES; i += 8) {
		uint64_t v;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		v = HEAP_AT + (seed >> 33) % BYTES / GRANULE * GRANULE;
		switch (seed >> 61) {
		case 0:
			v = 0;
			break;
		case 1:
			v += 8;
			break;
		case 2:
			v = seed >> 40;
			break;
		}
		memcpy(bytes + i, &v, 8);
	}
}

static struct space *make_space(uint64_t seed)
{
	struct space *sp = target_mem_new(MACHINE_X86_64);
	uint8_t *bytes = mem_zalloc(BYTES);

	fill(bytes, seed);
	target_mem_add(sp, HEAP_AT, BYTES, SEG_R | SEG_W, bytes, BYTES, NULL);
	fill(bytes, seed + 1);
	target_mem_add(sp, ROOT_AT, BYTES, SEG_R | SEG_W, bytes, BYTES, NULL);
	free(bytes);
	target_mem_done(sp);
	return sp;
}

static void make_heap(struct heap *h)
{
	size_t x;
	uint64_t size = 32;

	heap_init(h);
	heap_add_allocator(h, "lies", "1", "none");
	heap_add_arena(h, 0, 0, "lies");
	x = heap_add_blocks(h, 0, HEAP_AT, HEAP_AT + BYTES, 4, GRANULE, 8);
	for (uint64_t at = 0; at + size <= BYTES; at += size) {
		size = 32 + (at * 7 / 16) % 9 * 16;
		extent_mark(&h->extents[x], HEAP_AT + at);
	}
	heap_finish(h);
}

/* ---- looking ---- */

static void read_all(struct dwarf_types *t)
{
	struct str s;

	str_init(&s);
	for (uint32_t i = 1; i < t->n_names; i++)
		dwarf_find_type(t, t->names[i].text,
				strlen(t->names[i].text));
	for (size_t i = 0; i < t->n_vars; i++) {
		dwarf_type_name(t, dwarf_var_type(t, &t->vars[i]), &s);
	}
	dwarf_find_class(t, "N2ns5ShapeE");
	for (uint32_t i = 0; i < t->n_types && i < 100000; i++) {
		const struct dtype *ty = dwarf_type(t, i);

		for (uint32_t k = 0; k < ty->n_members; k++)
			if (t->members[ty->members + k].off > ty->size)
				abort();
	}
	str_fini(&s);
}

static void check(struct spread *s)
{
	struct str name;

	str_init(&name);
	for (uint32_t i = 0; i < s->ix->n; i++) {
		uint32_t type = s->blocks[i].type & ~(uint32_t)SPREAD_ARRAY;
		vaddr at;

		if (!s->blocks[i].fit)
			continue;
		at = index_addr(s->ix, i);
		if (!index_used(s->ix, i) || !type ||
		    (type < SPREAD_STRING && dwarf_type_size(s->t, type) >
		     index_end(s->ix, at) - at))
			abort();
		str_clear(&name);
		spread_name(s, s->blocks[i].type, &name);
	}
	str_fini(&name);
}

static void look(struct dwarf_types *t)
{
	struct space *sp = make_space(t->n_entries);
	struct symbols *symbols = symbols_new(sp, NULL);
	struct spread s;
	struct index ix;
	struct heap h;
	struct err err;

	make_heap(&h);
	if (!index_init(&ix, &h, UINT64_MAX, &err))
		abort();
	spread_init(&s, sp, &ix, symbols, t, NULL);
	s.steps = MAX_STEPS;
	for (size_t i = 0; i < t->n_vars && i < 1000; i++)
		spread_root(&s, ROOT_AT + t->vars[i].addr % BYTES / 8 * 8,
			    dwarf_var_type(t, &t->vars[i]));
	spread_run(&s);
	spread_objects(&s, &h);
	check(&s);
	spread_fini(&s);
	index_fini(&ix);
	heap_fini(&h);
	symbols_free(symbols);
	space_close(sp);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dwarf_types t;
	struct image im;
	Dwarf *dw = NULL;
	Elf *elf;

	if (size < 2 * SECTIONS || size > 1 << 18)
		return 0;
	elf_version(EV_CURRENT);
	make_image(&im, data, size);
	elf = elf_memory((char *)im.at, im.size);
	if (elf)
		dw = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	dwarf_types_init(&t);
	if (dw && dwarf_types_add(&t, dw, 0, 0)) {
		read_all(&t);
		look(&t);
	}
	dwarf_types_fini(&t);
	dwarf_end(dw);
	elf_end(elf);
	munmap(im.pages, im.room);
	return 0;
}
