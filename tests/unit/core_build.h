/* SPDX-License-Identifier: MIT */
/*
 * Makes the bytes of a core file, right or wrong, for a test:
 *
 *	struct core_build b = { .is64 = true, .machine = 62 };
 *
 *	build_status(&b, 1234, 0x7000);
 *	build_load(&b, 0x1000, 0x2000, PF_RW, bytes, 0x1000);
 *	data = build_core(&b, &size);
 *
 * Contents follow headers and notes, each at a multiple of 4096.
 */
#ifndef UNIT_CORE_BUILD_H
#define UNIT_CORE_BUILD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
	BUILD_MAX = 4096,
	PF_X = 1, PF_W = 2, PF_R = 4, PF_RW = 6, PF_RX = 5,
	BUILD_STATUS_64 = 336, BUILD_STATUS_32 = 144,
};

struct build_load {
	uint64_t vaddr, memsz;
	uint32_t flags;
	const void *bytes;	/* borrowed; NULL: zeros */
	uint64_t filesz;
};

struct core_build {
	bool is64;
	uint16_t machine;
	uint16_t type;		/* 0: a core */
	bool big_endian;
	bool xnum;		/* count of headers in section header 0 */
	struct build_load loads[BUILD_MAX];
	size_t n_loads;
	uint8_t notes[1 << 16];
	size_t n_notes;
};

static void put_n(uint8_t *p, uint64_t v, unsigned n)
{
	while (n--) {
		*p++ = (uint8_t)v;
		v >>= 8;
	}
}

static uint64_t align_4k(uint64_t v)
{
	return (v + 4095) & ~(uint64_t)4095;
}

__attribute__((unused))
static void build_load(struct core_build *b, uint64_t addr, uint64_t memsz,
		       uint32_t flags, const void *bytes, uint64_t filesz)
{
	if (b->n_loads == BUILD_MAX)
		abort();
	b->loads[b->n_loads++] = (struct build_load){
		addr, memsz, flags, bytes, filesz
	};
}

__attribute__((unused))
static void build_note(struct core_build *b, const char *owner, uint32_t type,
		       const void *desc, uint32_t len)
{
	uint32_t name = (uint32_t)strlen(owner) + 1;
	uint8_t *p = b->notes + b->n_notes;

	if (b->n_notes + 12 + name + 4 + len + 4 > sizeof(b->notes))
		abort();
	put_n(p, name, 4);
	put_n(p + 4, len, 4);
	put_n(p + 8, type, 4);
	memcpy(p + 12, owner, name);
	p += 12 + ((name + 3) & ~3u);
	memcpy(p, desc, len);
	b->n_notes = (size_t)(p - b->notes) + ((len + 3) & ~3u);
}

/* NT_PRSTATUS with register i set to 0x100 + i, and some as wanted. */
__attribute__((unused))
static void build_status(struct core_build *b, uint32_t tid, uint64_t sp)
{
	uint8_t desc[400] = { 0 };
	unsigned word = b->is64 ? 8 : 4;
	unsigned regs = b->is64 ? 112 : 72;
	unsigned n = b->machine == 183 ? 34 : b->is64 ? 27 : 17;
	unsigned sp_at = b->machine == 183 ? 31 : b->is64 ? 19 : 15;
	unsigned i;

	put_n(desc + 12, 11, 2);
	put_n(desc + (b->is64 ? 32 : 24), tid, 4);
	for (i = 0; i < n; i++)
		put_n(desc + regs + i * word, 0x100 + i, word);
	put_n(desc + regs + sp_at * word, sp, word);
	build_note(b, "CORE", 1, desc, b->machine == 183 ? 392 :
		   b->is64 ? BUILD_STATUS_64 : BUILD_STATUS_32);
}

__attribute__((unused))
static void build_psinfo(struct core_build *b, uint32_t pid,
			 const char *name, const char *args)
{
	uint8_t desc[136] = { 0 };
	unsigned at = b->is64 ? 40 : 28;

	put_n(desc + (b->is64 ? 24 : 12), pid, 4);
	memcpy(desc + at, name, strlen(name));
	memcpy(desc + at + 16, args, strlen(args));
	build_note(b, "CORE", 3, desc, b->is64 ? 136 : 124);
}

__attribute__((unused))
static void build_auxv(struct core_build *b, const uint64_t *pairs, size_t n)
{
	uint8_t desc[512] = { 0 };
	unsigned word = b->is64 ? 8 : 4;
	size_t i;

	for (i = 0; i < 2 * n; i++)
		put_n(desc + i * word, pairs[i], word);
	build_note(b, "CORE", 6, desc, (uint32_t)((2 * n + 2) * word));
}

struct build_file {
	uint64_t start, end, off;	/* off in units */
	const char *name;
};

__attribute__((unused))
static void build_files(struct core_build *b, uint64_t unit,
			const struct build_file *files, size_t n)
{
	uint8_t desc[16384] = { 0 };
	unsigned word = b->is64 ? 8 : 4;
	uint8_t *p = desc;
	size_t i;

	put_n(p, n, word);
	put_n(p + word, unit, word);
	p += 2 * word;
	for (i = 0; i < n; i++, p += 3 * word) {
		put_n(p, files[i].start, word);
		put_n(p + word, files[i].end, word);
		put_n(p + 2 * word, files[i].off, word);
	}
	for (i = 0; i < n; i++) {
		size_t len = strlen(files[i].name) + 1;

		if (p + len > desc + sizeof(desc))
			abort();
		memcpy(p, files[i].name, len);
		p += len;
	}
	build_note(b, "CORE", 0x46494c45, desc, (uint32_t)(p - desc));
}

static void put_phdr(const struct core_build *b, uint8_t *p, uint32_t type,
		     const struct build_load *l, uint64_t off)
{
	put_n(p, type, 4);
	if (b->is64) {
		put_n(p + 4, l->flags, 4);
		put_n(p + 8, off, 8);
		put_n(p + 16, l->vaddr, 8);
		put_n(p + 32, l->filesz, 8);
		put_n(p + 40, l->memsz, 8);
		put_n(p + 48, 4096, 8);
		return;
	}
	put_n(p + 4, off, 4);
	put_n(p + 8, l->vaddr, 4);
	put_n(p + 16, l->filesz, 4);
	put_n(p + 20, l->memsz, 4);
	put_n(p + 24, l->flags, 4);
	put_n(p + 28, 4096, 4);
}

static void put_header(const struct core_build *b, uint8_t *p, size_t phnum,
		       uint64_t shoff)
{
	bool w = b->is64;

	memcpy(p, "\177ELF", 4);
	p[4] = w ? 2 : 1;
	p[5] = b->big_endian ? 2 : 1;
	p[6] = 1;
	put_n(p + 16, b->type ? b->type : 4, 2);
	put_n(p + 18, b->machine, 2);
	put_n(p + (w ? 32 : 28), w ? 64 : 52, w ? 8 : 4);
	put_n(p + (w ? 40 : 32), shoff, w ? 8 : 4);
	put_n(p + (w ? 54 : 42), w ? 56 : 32, 2);
	put_n(p + (w ? 56 : 44), b->xnum ? 0xffff : phnum, 2);
	put_n(p + (w ? 58 : 46), w ? 64 : 40, 2);
}

/* Owned by the caller; of exactly *ret_size bytes. */
__attribute__((unused))
static uint8_t *build_core(const struct core_build *b, size_t *ret_size)
{
	size_t ehdr = b->is64 ? 64 : 52, phdr = b->is64 ? 56 : 32;
	size_t n = b->n_loads + 1;
	size_t notes = ehdr + n * phdr;
	size_t size = align_4k(notes + b->n_notes);
	struct build_load note = { .filesz = b->n_notes };
	uint64_t shoff = 0;
	uint8_t *data;
	size_t i, off = size;

	for (i = 0; i < b->n_loads; i++)
		size += align_4k(b->loads[i].filesz);
	if (b->xnum) {
		shoff = size;
		size += b->is64 ? 64 : 40;
	}
	data = calloc(1, size);
	put_header(b, data, n, shoff);
	put_phdr(b, data + ehdr, 4, &note, notes);
	memcpy(data + notes, b->notes, b->n_notes);
	for (i = 0; i < b->n_loads; i++) {
		const struct build_load *l = &b->loads[i];

		put_phdr(b, data + ehdr + (i + 1) * phdr, 1, l, off);
		if (l->bytes)
			memcpy(data + off, l->bytes, l->filesz);
		off += align_4k(l->filesz);
	}
	if (b->xnum)
		put_n(data + shoff + (b->is64 ? 44 : 28), n, 4);
	*ret_size = size;
	return data;
}

#endif
