/* SPDX-License-Identifier: MIT */
/*
 * Little-endian ELF as it lies in memory, whole or in part.
 *
 * The bytes come from strangers: an elf that was opened promises only that
 * its file header is there.  Every number in it may be wrong, so each access
 * names what it wants and is told if the bytes do not reach so far.  Nothing
 * is copied or allocated; a struct elf borrows its bytes.
 *
 * Names and numbers are those of the System V gABI and of glibc's elf.h.
 */
#ifndef COREWALK_ELF_H
#define COREWALK_ELF_H

#include "base/types.h"

enum {
	ELF_CLASS_32 = 1,
	ELF_CLASS_64 = 2,
	ELF_DATA_LITTLE = 1,

	ELF_TYPE_REL = 1,
	ELF_TYPE_EXEC = 2,
	ELF_TYPE_DYN = 3,
	ELF_TYPE_CORE = 4,

	ELF_EM_386 = 3,
	ELF_EM_X86_64 = 62,
	ELF_EM_AARCH64 = 183,

	ELF_PT_LOAD = 1,
	ELF_PT_DYNAMIC = 2,
	ELF_PT_INTERP = 3,
	ELF_PT_NOTE = 4,

	ELF_PF_X = 1,
	ELF_PF_W = 2,
	ELF_PF_R = 4,

	ELF_PN_XNUM = 0xffff,	/* the count is in section header 0 */

	/* More mappings than a process has had; a count can say 2^32 - 1. */
	ELF_MAX_PHDRS = 1 << 24,
};

struct elf {
	const uint8_t *data;	/* borrowed */
	uint64_t size;
	bool is64;
	uint16_t type, machine;
	uint64_t entry;
	uint64_t phoff, shoff;
	uint32_t phnum;		/* real count, PN_XNUM resolved */
	uint32_t phentsize, shentsize, shnum;
};

struct elf_phdr {
	uint32_t type, flags;
	uint64_t offset, vaddr, filesz, memsz, align;
};

struct elf_note {
	uint32_t type;
	const char *name;	/* borrowed; not zero-ended */
	uint32_t name_len;	/* without the zero */
	const uint8_t *desc;	/* borrowed */
	uint32_t desc_len;
};

/* Four bytes of magic are there. */
bool elf_magic(const void *data, uint64_t size);

/*
 * Decode the file header.  False if it is not one of a little-endian ELF or
 * not whole.
 */
bool elf_open(struct elf *elf, const void *data, uint64_t size);

/* Program header i; false if it is not among the bytes. */
bool elf_phdr(const struct elf *elf, uint32_t i, struct elf_phdr *ret);

/*
 * How many program headers really are among the bytes, of the first
 * ELF_MAX_PHDRS.
 */
uint32_t elf_phdrs_there(const struct elf *elf);

/*
 * The note at *pos of size bytes of notes; moves *pos behind it.  False at
 * the end, and where a length leads outside.  Notes of cores are aligned to 4
 * bytes whatever p_align says; those of programs to 8 if align is 8.
 */
bool elf_note_next(const uint8_t *notes, uint64_t size, uint64_t align,
		   uint64_t *pos, struct elf_note *ret);

bool elf_note_is(const struct elf_note *note, const char *owner,
		 uint32_t type);

/*
 * The build id among notes; returns its length, at most 20, 0 if there is
 * none.
 */
unsigned elf_build_id(const uint8_t *notes, uint64_t size, uint64_t align,
		      uint8_t ret[20]);

#endif
