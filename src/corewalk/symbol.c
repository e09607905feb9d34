/* SPDX-License-Identifier: MIT */
#include "corewalk/symbol.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/sort.h"
#include "corewalk/debug.h"
#include "corewalk/elf.h"
#include "corewalk/module.h"

enum {
	/* Longest name; templates make long ones. */
	NAME_MAX_LEN = 1 << 16,
	MAX_SYMBOLS = 1 << 24,
	MAX_FILES = 2,		/* the file itself and its debug file */
	NO_SIZE_REACH = 4096,
	SYMBOL_32 = 16, SYMBOL_64 = 24,	/* bytes of one */
};

struct entry {
	uint64_t start;		/* as in the file */
	uint64_t size : 63, is_code : 1;
	const char *name;	/* borrowed from the mapped file */
};

struct table {
	bool read;
	struct file_bytes files[MAX_FILES];	/* owned */
	size_t n_files;
	vaddr bias;
	struct entry *entries;	/* owned; by start, no two alike */
	size_t n, cap;
};

struct symbols {
	struct space *sp;
	struct debug *debug;	/* borrowed; or NULL */
	struct table *tables;	/* owned; by module; the kernel's image last */
};

/* A section header, as far as tables of symbols need it. */
struct section {
	uint32_t type, link;
	uint64_t offset, size;
};

struct symbols *symbols_new(struct space *sp, struct debug *debug)
{
	struct symbols *s = mem_zalloc(sizeof(*s));

	s->sp = sp;
	s->debug = debug;
	s->tables = mem_zalloc((sp->n_modules + 1) * sizeof(*s->tables));
	return s;
}

void symbols_free(struct symbols *s)
{
	if (!s)
		return;
	for (size_t i = 0; i <= s->sp->n_modules; i++) {
		struct table *t = &s->tables[i];

		for (size_t k = 0; k < t->n_files; k++)
			file_unmap(&t->files[k]);
		free(t->entries);
	}
	free(s->tables);
	free(s);
}

/* ---- reading a file ---- */

/* Its bytes are all in the file. */
static bool section_at(const struct elf *elf, uint32_t i,
		       struct section *ret)
{
	uint64_t want = elf->is64 ? 64 : 40, at, end;
	const uint8_t *p;

	if (elf->shentsize < want ||
	    !add_ok(elf->shoff, (uint64_t)i * elf->shentsize, &at) ||
	    !add_ok(at, want, &end) || end > elf->size)
		return false;
	p = elf->data + at;
	ret->type = load_u32(p + 4);
	if (elf->is64) {
		ret->offset = load_u64(p + 24);
		ret->size = load_u64(p + 32);
		ret->link = load_u32(p + 40);
	} else {
		ret->offset = load_u32(p + 16);
		ret->size = load_u32(p + 20);
		ret->link = load_u32(p + 24);
	}
	return add_ok(ret->offset, ret->size, &end) && end <= elf->size;
}

static void add_symbol(struct table *t, const struct elf *elf,
		       const uint8_t *p, const struct section *names)
{
	uint32_t name = load_u32(p);
	uint8_t info = elf->is64 ? p[4] : p[12];
	uint16_t section = load_u16(p + (elf->is64 ? 6 : 14));
	uint64_t value = elf->is64 ? load_u64(p + 8) : load_u32(p + 4);
	uint64_t size = elf->is64 ? load_u64(p + 16) : load_u32(p + 8);
	unsigned type = info & 15;
	const char *text;
	uint64_t room;

	if (!section || !name || name >= names->size || t->n >= MAX_SYMBOLS ||
	    (type != STT_OBJECT && type != STT_FUNC &&
	     type != STT_GNU_IFUNC && type != 0))
		return;
	text = (const char *)elf->data + names->offset + name;
	room = min_u64(names->size - name, NAME_MAX_LEN);
	if (!*text || !memchr(text, 0, room))
		return;
	MEM_PUSH(t->entries, t->n, t->cap) =
		(struct entry){
			value, size, type == STT_FUNC || type == STT_GNU_IFUNC,
			text,
		};
}

/* left: symbols that the file has bytes for; sections can overlap. */
static void read_section(struct table *t, const struct elf *elf,
			 const struct section *symbols, uint64_t *left)
{
	uint64_t step = elf->is64 ? SYMBOL_64 : SYMBOL_32;
	struct section names;

	if (!section_at(elf, symbols->link, &names))
		return;
	for (uint64_t at = 0; at + step <= symbols->size && *left;
	     at += step, --*left)
		add_symbol(t, elf, elf->data + symbols->offset + at, &names);
}

static void read_image(struct symbols *s, struct table *t,
		       const struct module *m, const void *data, uint64_t size)
{
	uint64_t left = size / SYMBOL_32;
	struct section section;
	struct elf elf;

	if (!elf_open(&elf, data, size))
		return;
	t->bias = module_bias(m, &elf, s->sp->page);
	for (uint32_t i = 0; i < elf.shnum; i++)
		if (section_at(&elf, i, &section) &&
		    (section.type == SHT_SYMTAB ||
		     section.type == SHT_DYNSYM))
			read_section(t, &elf, &section, &left);
}

static void read_file(struct symbols *s, struct table *t,
		      const struct module *m, const char *path)
{
	struct file_bytes *file = &t->files[t->n_files];

	if (!file_map(path, file))
		return;
	t->n_files++;
	read_image(s, t, m, file->data, file->size);
}

/* ---- in order ---- */

/* Of several names for one place, the one with a size, then by the alphabet. */
static int by_start(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return ORDER(x->start, y->start) ?:
	       ORDER(y->size, x->size) ?:
	       strcmp(x->name, y->name);
}

static void put_in_order(struct table *t)
{
	size_t n = 0;

	if (!t->n)
		return;
	SORT(t->entries, t->n, by_start);
	for (size_t i = 0; i < t->n; i++)
		if (!n || t->entries[i].start != t->entries[n - 1].start)
			t->entries[n++] = t->entries[i];
	t->n = n;
}

static void read_table(struct symbols *s, struct table *t,
		       const struct module *m)
{
	const char *debug = s->debug ? debug_file(s->debug, m) : NULL;

	t->read = true;
	if (m->path)
		read_file(s, t, m, m->path);
	if (debug)
		read_file(s, t, m, debug);
	put_in_order(t);
}

/* What the kernel maps into each process has symbols too: [vdso]. */
static void read_kernel(struct symbols *s, struct table *t)
{
	struct module m = { .start = s->sp->at_sysinfo };
	uint64_t size;
	const void *data = space_view_max(s->sp, m.start, &size);

	t->read = true;
	if (data)
		read_image(s, t, &m, data, size);
	put_in_order(t);
}

static const struct table *table_of(struct symbols *s, const struct module *m)
{
	struct table *t = &s->tables[m - s->sp->modules];

	if (!t->read)
		read_table(s, t, m);
	return t;
}

/* The table for an address; NULL if it is in none of them. */
static const struct table *table_at(struct symbols *s, vaddr addr)
{
	const struct module *m = space_module(s->sp, addr);
	const struct seg *seg;
	struct table *t;

	if (m)
		return table_of(s, m);
	seg = space_seg(s->sp, addr);
	if (!seg || !seg->start || seg->start != s->sp->at_sysinfo)
		return NULL;
	t = &s->tables[s->sp->n_modules];
	if (!t->read)
		read_kernel(s, t);
	return t;
}

bool symbols_find(struct symbols *s, vaddr addr, struct symbol *ret)
{
	const struct table *t = table_at(s, addr);
	uint64_t reach;
	size_t lo;

	if (!t)
		return false;
	addr -= t->bias;
	lo = BISECT(mid, 0, t->n, t->entries[mid].start <= addr);
	if (!lo)
		return false;
	reach = t->entries[lo - 1].size;
	if (!reach)
		reach = NO_SIZE_REACH;
	if (addr - t->entries[lo - 1].start >= reach)
		return false;
	*ret = (struct symbol){
		.name = t->entries[lo - 1].name,
		.start = t->entries[lo - 1].start + t->bias,
		.size = t->entries[lo - 1].size,
		.is_code = t->entries[lo - 1].is_code,
	};
	return true;
}

bool symbols_named(struct symbols *s, const struct module *m,
		   const char *name, vaddr *ret)
{
	const struct table *t = table_of(s, m);

	for (size_t i = 0; i < t->n; i++)
		if (!strcmp(t->entries[i].name, name)) {
			*ret = t->entries[i].start + t->bias;
			return true;
		}
	return false;
}
