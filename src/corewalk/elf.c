/* SPDX-License-Identifier: MIT */
#include "corewalk/elf.h"

#include <string.h>

enum {
	EHDR_32 = 52,
	EHDR_64 = 64,
	PHDR_32 = 32,
	PHDR_64 = 56,
	SHDR_32 = 40,
	SHDR_64 = 64,
	NOTE_HEADER = 12,
	NT_GNU_BUILD_ID = 3,
};

/* n bytes at off, NULL if they are not all there. */
static const uint8_t *bytes_at(const struct elf *elf, uint64_t off, uint64_t n)
{
	if (off > elf->size || elf->size - off < n)
		return NULL;
	return elf->data + off;
}

bool elf_magic(const void *data, uint64_t size)
{
	return size >= 4 && memcmp(data, "\177ELF", 4) == 0;
}

static void decode_64(struct elf *elf)
{
	const uint8_t *p = elf->data;

	elf->entry = load_u64(p + 24);
	elf->phoff = load_u64(p + 32);
	elf->shoff = load_u64(p + 40);
	elf->phentsize = load_u16(p + 54);
	elf->phnum = load_u16(p + 56);
	elf->shentsize = load_u16(p + 58);
	elf->shnum = load_u16(p + 60);
}

static void decode_32(struct elf *elf)
{
	const uint8_t *p = elf->data;

	elf->entry = load_u32(p + 24);
	elf->phoff = load_u32(p + 28);
	elf->shoff = load_u32(p + 32);
	elf->phentsize = load_u16(p + 42);
	elf->phnum = load_u16(p + 44);
	elf->shentsize = load_u16(p + 46);
	elf->shnum = load_u16(p + 48);
}

/*
 * The header has 16 bits for the number of program headers.  A core with more
 * says 0xffff and keeps the number in the sh_info field of section header 0,
 * which Linux (fs/binfmt_elf.c, 2.6.34) writes at the very end of the file: a
 * truncated core has lost it.  There the table ends where the contents of the
 * first program header begin, because Linux and gdb write them back to back.
 */
static void resolve_phnum(struct elf *elf)
{
	const uint8_t *sh = NULL;
	struct elf_phdr first;

	if (elf->phnum != ELF_PN_XNUM)
		return;
	if (elf->shoff)
		sh = bytes_at(elf, elf->shoff, elf->is64 ? SHDR_64 : SHDR_32);
	if (sh) {
		elf->phnum = load_u32(sh + (elf->is64 ? 44 : 28));
		return;
	}
	if (elf_phdr(elf, 0, &first) && first.offset > elf->phoff) {
		uint64_t n = (first.offset - elf->phoff) / elf->phentsize;

		elf->phnum = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
	}
}

bool elf_open(struct elf *elf, const void *data, uint64_t size)
{
	const uint8_t *p = data;

	memset(elf, 0, sizeof(*elf));
	if (size < EHDR_32 || !elf_magic(data, size) ||
	    p[5] != ELF_DATA_LITTLE)
		return false;
	if (p[4] != ELF_CLASS_32 && p[4] != ELF_CLASS_64)
		return false;
	elf->data = data;
	elf->size = size;
	elf->is64 = p[4] == ELF_CLASS_64;
	if (elf->is64 && size < EHDR_64)
		return false;
	elf->type = load_u16(p + 16);
	elf->machine = load_u16(p + 18);
	if (elf->is64)
		decode_64(elf);
	else
		decode_32(elf);
	if (elf->phentsize < (elf->is64 ? PHDR_64 : PHDR_32))
		elf->phnum = 0;
	resolve_phnum(elf);
	return true;
}

static void phdr_64(const uint8_t *p, struct elf_phdr *ret)
{
	ret->type = load_u32(p);
	ret->flags = load_u32(p + 4);
	ret->offset = load_u64(p + 8);
	ret->vaddr = load_u64(p + 16);
	ret->filesz = load_u64(p + 32);
	ret->memsz = load_u64(p + 40);
	ret->align = load_u64(p + 48);
}

static void phdr_32(const uint8_t *p, struct elf_phdr *ret)
{
	ret->type = load_u32(p);
	ret->offset = load_u32(p + 4);
	ret->vaddr = load_u32(p + 8);
	ret->filesz = load_u32(p + 16);
	ret->memsz = load_u32(p + 20);
	ret->flags = load_u32(p + 24);
	ret->align = load_u32(p + 28);
}

bool elf_phdr(const struct elf *elf, uint32_t i, struct elf_phdr *ret)
{
	uint64_t off;
	const uint8_t *p;

	if (i >= elf->phnum ||
	    !add_ok(elf->phoff, (uint64_t)i * elf->phentsize, &off))
		return false;
	p = bytes_at(elf, off, elf->is64 ? PHDR_64 : PHDR_32);
	if (!p)
		return false;
	if (elf->is64)
		phdr_64(p, ret);
	else
		phdr_32(p, ret);
	return true;
}

uint32_t elf_phdrs_there(const struct elf *elf)
{
	uint64_t need = elf->is64 ? PHDR_64 : PHDR_32;
	uint64_t room;
	uint64_t n;

	if (!elf->phnum || elf->phoff > elf->size ||
	    elf->size - elf->phoff < need)
		return 0;
	room = elf->size - elf->phoff - need;
	n = min_u64(room / elf->phentsize + 1, ELF_MAX_PHDRS);
	return n < elf->phnum ? (uint32_t)n : elf->phnum;
}

bool elf_note_next(const uint8_t *notes, uint64_t size, uint64_t align,
		   uint64_t *pos, struct elf_note *ret)
{
	uint64_t unit = align == 8 ? 8 : 4;
	uint64_t name = *pos + NOTE_HEADER;
	uint64_t name_size, desc, desc_size;

	if (*pos > size || size - *pos < NOTE_HEADER)
		return false;
	name_size = load_u32(notes + *pos);
	desc_size = load_u32(notes + *pos + 4);
	/* All below 2^34 as long as *pos is inside: no overflow. */
	desc = *pos + round_up(NOTE_HEADER + name_size, unit);
	if (desc > size || size - desc < desc_size)
		return false;
	ret->type = load_u32(notes + *pos + 8);
	ret->name = (const char *)notes + name;
	ret->name_len = (uint32_t)name_size;
	if (name_size && !ret->name[name_size - 1])
		ret->name_len--;
	ret->desc = notes + desc;
	ret->desc_len = (uint32_t)desc_size;
	*pos = min_u64(size, desc + round_up(desc_size, unit));
	return true;
}

bool elf_note_is(const struct elf_note *note, const char *owner, uint32_t type)
{
	return note->type == type && note->name_len == strlen(owner) &&
	       memcmp(note->name, owner, note->name_len) == 0;
}

unsigned elf_build_id(const uint8_t *notes, uint64_t size, uint64_t align,
		      uint8_t ret[20])
{
	struct elf_note note;
	uint64_t pos = 0;

	while (elf_note_next(notes, size, align, &pos, &note)) {
		if (!elf_note_is(&note, "GNU", NT_GNU_BUILD_ID))
			continue;
		if (!note.desc_len || note.desc_len > 20)
			return 0;
		memcpy(ret, note.desc, note.desc_len);
		return note.desc_len;
	}
	return 0;
}
