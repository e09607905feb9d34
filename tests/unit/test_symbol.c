/* SPDX-License-Identifier: MIT */
#include "corewalk/symbol.h"

#include <elf.h>

#include "base/mem.h"
#include "check.h"
#include "corewalk/target.h"

#define IMAGE UINT64_C(0x7fff00000000)

enum {
	SECTIONS = 65535,
	NAMES = 64 + SECTIONS * 64,
	SYMBOLS = NAMES + 64,
};

/*
 * What the kernel maps, as a stranger could have written it: of all sections
 * but the first, which has the names, each is one table of symbols.
 */
static struct space *image(uint64_t size, uint16_t n_sections)
{
	struct space *sp = target_mem_new(MACHINE_X86_64);
	Elf64_Ehdr head = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB },
		.e_shoff = 64, .e_shentsize = 64, .e_shnum = n_sections,
	};
	Elf64_Shdr names = {
		.sh_type = SHT_STRTAB, .sh_offset = NAMES, .sh_size = 64,
	};
	Elf64_Shdr symbols = {
		.sh_type = SHT_SYMTAB, .sh_offset = SYMBOLS,
		.sh_size = size - SYMBOLS,
	};
	Elf64_Sym symbol = {
		.st_name = 1, .st_info = STT_FUNC, .st_shndx = 1,
		.st_value = 0x1000, .st_size = 0x100,
	};
	uint8_t *p;

	target_mem_add(sp, IMAGE, size, SEG_R | SEG_X, NULL, size, NULL);
	p = target_mem_at(sp, IMAGE);
	memcpy(p, &head, sizeof(head));
	memcpy(p + 64, &names, sizeof(names));
	for (unsigned i = 1; i < n_sections; i++)
		memcpy(p + 64 + 64 * i, &symbols, sizeof(symbols));
	memcpy(p + NAMES, "\0clock", 7);
	memcpy(p + SYMBOLS, &symbol, sizeof(symbol));
	target_mem_done(sp);
	sp->at_sysinfo = IMAGE;
	return sp;
}

TEST(names_in_the_image_of_the_kernel)
{
	struct space *sp = image(SYMBOLS + 1024, 2);
	struct symbols *s = symbols_new(sp, NULL);
	struct symbol is;

	if (CHECK(symbols_find(s, IMAGE + 0x10ff, &is))) {
		CHECK_STR(is.name, "clock");
		CHECK_U64(is.start, IMAGE + 0x1000);
		CHECK_U64(is.size, 0x100);
		CHECK(is.is_code);
	}
	CHECK(!symbols_find(s, IMAGE + 0x1100, &is));
	CHECK(!symbols_find(s, IMAGE + 0xfff, &is));
	symbols_free(s);
	space_close(sp);
}

/* Each byte of a file is of one symbol: without that this takes an hour. */
TEST(many_tables_over_the_same_bytes)
{
	struct space *sp = image(256 * MIB, SECTIONS);
	struct symbols *s = symbols_new(sp, NULL);
	struct symbol is;

	CHECK(symbols_find(s, IMAGE + 0x1000, &is));
	symbols_free(s);
	space_close(sp);
}
