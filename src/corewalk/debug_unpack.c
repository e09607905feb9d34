/* SPDX-License-Identifier: MIT */
#include "corewalk/debug_unpack.h"

#include <elf.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "corewalk/debug.h"
#include "corewalk/elf.h"
#include "corewalk/inflate.h"

enum { CACHE_LINE = 64 };

/* A section, and where it is unpacked to. */
struct packed {
	uint64_t header;	/* offset of the section's header */
	uint64_t from, n;	/* compressed bytes, behind their header */
	uint64_t to, size, align;
	bool done;
};

/* What one thread is to unpack. */
struct work {
	uint8_t *data;
	struct packed *sections;
	size_t n;
};

static bool read_header(const struct elf *elf, uint32_t i, struct packed *ret)
{
	uint64_t at = elf->shoff + (uint64_t)i * elf->shentsize;
	Elf64_Shdr sh;
	Elf64_Chdr ch;
	uint64_t end;

	memcpy(&sh, elf->data + at, sizeof(sh));
	if (!(sh.sh_flags & SHF_COMPRESSED) || sh.sh_type == SHT_NOBITS ||
	    sh.sh_size < sizeof(ch) ||
	    !add_ok(sh.sh_offset, sh.sh_size, &end) ||
	    end > elf->size)
		return false;
	memcpy(&ch, elf->data + sh.sh_offset, sizeof(ch));
	*ret = (struct packed){
		.header = at,
		.from = sh.sh_offset + sizeof(ch),
		.n = sh.sh_size - sizeof(ch),
		.size = ch.ch_size,
		.align = ch.ch_addralign,
	};
	return ch.ch_type == ELFCOMPRESS_ZLIB && ch.ch_size;
}

/* All headers are in the file. */
static bool has_headers(const struct elf *elf)
{
	uint64_t end;

	return elf->is64 && elf->shentsize == sizeof(Elf64_Shdr) &&
	       add_ok(elf->shoff, (uint64_t)elf->shnum * elf->shentsize,
		      &end) && end <= elf->size;
}

/* The caller frees it.  *ret_end is where the last one ends. */
static struct packed *find_sections(const struct elf *elf, size_t *ret_n,
				    uint64_t *ret_end)
{
	struct packed *ret = mem_alloc((elf->shnum + 1) * sizeof(*ret));
	uint64_t end = round_up(elf->size, CACHE_LINE);
	uint64_t left = DEBUG_MAX_BYTES;
	size_t n = 0;

	for (uint32_t i = 0; i < elf->shnum; i++) {
		if (!read_header(elf, i, &ret[n]) ||
		    ret[n].size > left)
			continue;
		left -= ret[n].size;
		ret[n].to = end;
		end = round_up(end + ret[n++].size, CACHE_LINE);
	}
	*ret_n = n;
	*ret_end = end;
	return ret;
}

static int larger_first(const void *a, const void *b)
{
	const struct packed *x = a, *y = b;

	return (x->n < y->n) - (x->n > y->n);
}

static void *unpack_some(void *arg)
{
	const struct work *w = arg;

	for (size_t i = 0; i < w->n; i++) {
		struct packed *p = &w->sections[i];

		p->done = inflate_whole(w->data + p->from, p->n,
					w->data + p->to, p->size);
	}
	return NULL;
}

/* The largest, .debug_info, takes longer than all others. */
static void unpack_all(uint8_t *data, struct packed *sections, size_t n)
{
	struct work largest = { data, sections, 1 };
	struct work others = { data, sections + 1, n - 1 };
	pthread_t thread;

	qsort(sections, n, sizeof(*sections), larger_first);
	if (n > 1 && !pthread_create(&thread, NULL, unpack_some, &others)) {
		unpack_some(&largest);
		pthread_join(thread, NULL);
		return;
	}
	unpack_some(&largest);
	unpack_some(&others);
}

static void change_header(uint8_t *data, const struct packed *p)
{
	Elf64_Shdr sh;

	memcpy(&sh, data + p->header, sizeof(sh));
	sh.sh_flags &= ~(uint64_t)SHF_COMPRESSED;
	sh.sh_offset = p->to;
	sh.sh_size = p->size;
	sh.sh_addralign = p->align;
	memcpy(data + p->header, &sh, sizeof(sh));
}

bool debug_unpack(struct file_bytes *bytes)
{
	AUTO_FREE struct packed *sections = NULL;
	struct elf elf;
	uint64_t end;
	size_t n;

	if (!elf_open(&elf, bytes->data, bytes->size) || !has_headers(&elf))
		return false;
	sections = find_sections(&elf, &n, &end);
	if (!n || !file_extend(bytes, end))
		return false;
	unpack_all(bytes->data, sections, n);
	for (size_t i = 0; i < n; i++)
		if (sections[i].done)
			change_header(bytes->data, &sections[i]);
	return true;
}
