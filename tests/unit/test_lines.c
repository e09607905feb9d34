/* SPDX-License-Identifier: MIT */
/*
 * Debug information made by hand whose entries share one long list of ranges:
 * DWARF 5, sections 7.5 and 7.25.
 */
#include <dlfcn.h>
#include <dwarf.h>
#include <elf.h>

#include "base/mem.h"
#include "base/str.h"
#include "check.h"
#include "corewalk/lines.h"

enum {
	FUNCTIONS = 2000, RANGES = 2000,
	UNIT_LIST = 12,			/* behind the header */
	SECTIONS = 5,
};

#define CODE UINT64_C(0x1000)

/* Each range of a list is a call of libdw's: this one counts them. */
static uint64_t n_calls;

ptrdiff_t dwarf_ranges(Dwarf_Die *die, ptrdiff_t off, Dwarf_Addr *base,
		       Dwarf_Addr *start, Dwarf_Addr *end)
{
	static __typeof__(&dwarf_ranges) next;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "dwarf_ranges");
	n_calls++;
	return next(die, off, base, start, end);
}

static void add(struct str *s, uint64_t value, size_t n)
{
	str_add(s, &value, n);
}

static const uint8_t abbreviations[] = {
	1, DW_TAG_compile_unit, DW_CHILDREN_yes, DW_AT_low_pc, DW_FORM_addr,
	DW_AT_ranges, DW_FORM_sec_offset, 0, 0,
	2, DW_TAG_subprogram, DW_CHILDREN_no,
	DW_AT_ranges, DW_FORM_sec_offset, 0, 0,
	3, DW_TAG_subprogram, DW_CHILDREN_no, DW_AT_name, DW_FORM_string,
	DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, 0, 0, 0,
};

/* One unit with a function at CODE, and many whose list is the long one. */
static void make_info(struct str *s, uint32_t list)
{
	add(s, 0, 4);
	add(s, 5, 2);
	add(s, DW_UT_compile, 1);
	add(s, 8, 1);
	add(s, 0, 4);
	add(s, 1, 1);
	add(s, 0, 8);
	add(s, UNIT_LIST, 4);
	add(s, 3, 1);
	str_add(s, "here", 5);
	add(s, CODE, 8);
	add(s, 16, 4);
	for (int i = 0; i < FUNCTIONS; i++) {
		add(s, 2, 1);
		add(s, list, 4);
	}
	add(s, 0, 1);
	*(uint32_t *)s->text = (uint32_t)s->len - 4;
}

/* The list of the unit, and one of ranges that the linker threw away. */
static uint32_t make_ranges(struct str *s)
{
	uint32_t list;

	add(s, 0, 4);
	add(s, 5, 2);
	add(s, 8, 1);
	add(s, 0, 1);
	add(s, 0, 4);
	add(s, DW_RLE_start_length, 1);
	add(s, CODE, 8);
	add(s, 16, 1);
	add(s, DW_RLE_end_of_list, 1);
	list = (uint32_t)s->len;
	for (int i = 0; i < RANGES; i++) {
		add(s, DW_RLE_start_length, 1);
		add(s, 0, 8);
		add(s, 16, 1);
	}
	add(s, DW_RLE_end_of_list, 1);
	*(uint32_t *)s->text = (uint32_t)s->len - 4;
	return list;
}

static void make_file(struct str *file)
{
	static const char names[] =
		"\0.debug_abbrev\0.debug_info\0.debug_rnglists\0.shstrtab";
	static const uint32_t name[SECTIONS] = { 0, 1, 15, 27, 43 };
	Elf64_Ehdr head = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN, .e_machine = EM_X86_64,
		.e_version = EV_CURRENT, .e_shoff = sizeof(head),
		.e_ehsize = sizeof(head), .e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = SECTIONS, .e_shstrndx = SECTIONS - 1,
	};
	Elf64_Shdr section[SECTIONS] = { 0 };
	struct str part[SECTIONS];
	uint64_t at = sizeof(head) + sizeof(section);

	for (int i = 0; i < SECTIONS; i++)
		str_init(&part[i]);
	str_add(&part[1], abbreviations, sizeof(abbreviations));
	make_info(&part[2], make_ranges(&part[3]));
	str_add(&part[4], names, sizeof(names));
	for (int i = 1; i < SECTIONS; i++) {
		section[i] = (Elf64_Shdr){
			.sh_name = name[i], .sh_offset = at,
			.sh_type = i == 4 ? SHT_STRTAB : SHT_PROGBITS,
			.sh_size = part[i].len, .sh_addralign = 1,
		};
		at += part[i].len;
	}
	str_init(file);
	str_add(file, &head, sizeof(head));
	str_add(file, section, sizeof(section));
	for (int i = 0; i < SECTIONS; i++) {
		str_add(file, part[i].text, part[i].len);
		str_fini(&part[i]);
	}
}

TEST(a_long_list_that_many_share)
{
	struct debug_module m = { 0 };
	struct line_place place[LINES_MAX];
	struct lines *l = lines_new();
	struct str file;

	make_file(&file);
	elf_version(EV_CURRENT);
	m.elf = elf_memory(file.text, file.len);
	m.dwarf = dwarf_begin_elf(m.elf, DWARF_C_READ, NULL);
	if (CHECK(m.dwarf) && CHECK_U64(lines_at(l, &m, CODE + 4, place), 1))
		CHECK_STR(place[0].function, "here");
	CHECK(n_calls > RANGES);
	/* A step for each byte of the unit, and each of its entries once. */
	CHECK(n_calls < FUNCTIONS * 5 + FUNCTIONS + 1000);
	lines_free(l);
	dwarf_end(m.dwarf);
	elf_end(m.elf);
	str_fini(&file);
}
