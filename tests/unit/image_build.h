/* SPDX-License-Identifier: MIT */
/*
 * Makes the bytes of a program or library, and their mappings in a core that
 * core_build.h makes.
 */
#ifndef UNIT_IMAGE_BUILD_H
#define UNIT_IMAGE_BUILD_H

#include "core_build.h"

enum {
	IMAGE = 0x3000,		/* bytes of a file: header, text, data */
	SPAN = 0x4000,		/* of address space, with its .bss */
	DYNAMIC = 0x2100,
	INTERP = 0x300,
};

static void put_load(uint8_t *p, uint32_t type, uint32_t flags, uint64_t off,
		     uint64_t filesz, uint64_t memsz)
{
	put_n(p, type, 4);
	put_n(p + 4, flags, 4);
	put_n(p + 8, off, 8);
	put_n(p + 16, off, 8);
	put_n(p + 32, filesz, 8);
	put_n(p + 40, memsz, 8);
	put_n(p + 48, 4, 8);
}

/*
 * A position-independent program or library: page 0 header, page 1 text of
 * bytes 0xcc, page 2 data; half of the data page and one more are .bss.  An
 * id of 0 makes none.
 */
__attribute__((unused))
static void make_image(uint8_t *p, uint8_t id, bool program)
{
	memset(p, 0, IMAGE);
	memcpy(p, "\177ELF\2\1\1", 7);
	put_n(p + 16, 3, 2);
	put_n(p + 18, 62, 2);
	put_n(p + 32, 64, 8);
	put_n(p + 54, 56, 2);
	put_n(p + 56, 6, 2);
	put_load(p + 64, 1, 4, 0, 0x1000, 0x1000);
	put_load(p + 120, 1, 5, 0x1000, 0x1000, 0x1000);
	put_load(p + 176, 1, 6, 0x2000, 0x800, 0x1800);
	put_load(p + 232, 2, 6, DYNAMIC, 64, 64);
	put_load(p + 288, id ? 4 : 0, 4, 0x400, 36, 36);
	put_load(p + 344, program ? 3 : 0, 4, INTERP, 16, 16);
	put_n(p + 0x400, 4, 4);
	put_n(p + 0x404, 20, 4);
	put_n(p + 0x408, 3, 4);
	memcpy(p + 0x40c, "GNU", 4);
	memset(p + 0x410, id, 20);
	memcpy(p + INTERP, "/lib/ld.so", 11);
	memset(p + 0x1000, 0xcc, 0x1000);
	put_n(p + DYNAMIC, program ? 21 : 5, 8);
	memset(p + 0x2000, 'd', 0x40);
}

/* Its mappings as Linux stores them: page 0, no text, the data whole. */
__attribute__((unused))
static void load_image(struct core_build *b, uint64_t base,
		       const uint8_t *image)
{
	build_load(b, base, 0x1000, PF_R, image, image ? 0x1000 : 0);
	build_load(b, base + 0x1000, 0x1000, PF_RX, NULL, 0);
	build_load(b, base + 0x2000, 0x1000, PF_RW,
		   image ? image + 0x2000 : NULL, 0x1000);
	build_load(b, base + 0x3000, 0x1000, PF_RW, NULL, 0x1000);
}

__attribute__((unused))
static size_t image_files(struct build_file *f, uint64_t base,
			  const char *name)
{
	f[0] = (struct build_file){ base, base + 0x1000, 0, name };
	f[1] = (struct build_file){ base + 0x1000, base + 0x2000, 1, name };
	f[2] = (struct build_file){ base + 0x2000, base + 0x3000, 2, name };
	return 3;
}

#endif
