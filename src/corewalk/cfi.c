/* SPDX-License-Identifier: MIT */
#include "corewalk/cfi.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "corewalk/elf.h"
#include "corewalk/module.h"

enum {
	EH_FRAME_PHDR = 0x6474e550,	/* PT_GNU_EH_FRAME */
	HEADER_FIXED = 4,	/* version and three encodings */
	PE_OMIT = 0xff,
	/* Signed 4 bytes relative to the header: the only form in use. */
	PE_SEARCH_TABLE = 0x3b,
	PE_VALUE = 0x0f,	/* how a number is stored, not what it is */
	PE_RELATIVE = 0x70,
	MAX_ENTRIES = 1 << 22,	/* of a table that has no index */
	MAX_AUGMENTATION = 16,
	ROWS_KEPT = 256,
};

/* A section of entries. */
struct section {
	const uint8_t *bytes;	/* borrowed; NULL: there is none */
	uint64_t size;
	vaddr start;		/* in the target */
	vaddr bias;		/* of absolute addresses in it */
	bool is_debug;		/* .debug_frame: it differs in details */
};

/* An entry of a section that has no index of its own. */
struct entry {
	vaddr start, end;
	uint64_t off;
};

struct table {
	vaddr base;		/* the image's start: what tells tables apart */
	struct section section;
	vaddr header;		/* of .eh_frame_hdr */
	const uint8_t *index;	/* borrowed; pairs of int32_t; NULL: none */
	uint64_t n_index;
	struct entry *entries;	/* owned; without index: sorted by start */
	size_t n, cap;
};

/* Both kinds that a module can have. */
struct tables {
	vaddr base;
	struct table eh, debug;
	bool debug_open;
};

/* Threads stand in the same few functions. */
struct kept_row {
	vaddr pc;		/* 0: empty */
	bool found;
	struct cfi_row row;
};

struct cfi {
	struct space *sp;
	struct debug *debug;
	struct tables **tables;	/* owned; as they came */
	size_t n, cap;
	struct kept_row kept[ROWS_KEPT];
};

struct cfi *cfi_new(struct space *sp, struct debug *debug)
{
	struct cfi *c = mem_zalloc(sizeof(*c));

	c->sp = sp;
	c->debug = debug;
	return c;
}

void cfi_free(struct cfi *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++) {
		free(c->tables[i]->eh.entries);
		free(c->tables[i]->debug.entries);
		free(c->tables[i]);
	}
	free(c->tables);
	free(c);
}

/* ---- entries ---- */

/* What the common part of entries says (CIE). */
struct common {
	struct cfi_program program;
	unsigned ra, encoding;
	bool sized, signal;	/* 'z' and 'S' of the augmentation */
};

/* One entry as it lies there: its body, and the common part's place. */
struct raw {
	struct cfi_cursor body;	/* behind the id */
	uint64_t next;		/* where the entry behind it starts */
	uint64_t id, id_at;
	bool is_common;
};

static struct cfi_cursor cursor_at(const struct section *s, uint64_t off,
				   unsigned word)
{
	return (struct cfi_cursor){ s->bytes + off, s->bytes + s->size, word,
				    false };
}

static uint64_t offset_of(const struct section *s, const struct cfi_cursor *c)
{
	return (uint64_t)(c->at - s->bytes);
}

/* False at the end: a length of 0, or one that leads outside. */
static bool read_raw(const struct section *s, uint64_t off, unsigned word,
		     struct raw *ret)
{
	struct cfi_cursor c;
	uint64_t len, all;
	unsigned id_size;

	if (off >= s->size)
		return false;
	c = cursor_at(s, off, word);
	len = cfi_fixed(&c, 4);
	id_size = 4;
	all = UINT32_MAX;
	if (len == UINT32_MAX) {
		len = cfi_fixed(&c, 8);
		id_size = s->is_debug ? 8 : 4;
		all = id_size == 8 ? UINT64_MAX : UINT32_MAX;
	}
	if (c.failed || !len || len > (uint64_t)(c.end - c.at))
		return false;
	c.end = c.at + len;
	ret->next = offset_of(s, &c) + len;
	ret->id_at = offset_of(s, &c);
	ret->id = cfi_fixed(&c, id_size);
	ret->is_common = s->is_debug ? ret->id == all : !ret->id;
	ret->body = c;
	return !c.failed;
}

/* The part of the augmentation that 'z' gives a size. */
static bool augmentation(struct common *ret, struct cfi_cursor *c,
			 const char *text)
{
	for (; *text; text++) {
		unsigned encoding;

		switch (*text) {
		case 'R':
			ret->encoding = (unsigned)cfi_fixed(c, 1);
			break;
		case 'P':
			encoding = (unsigned)cfi_fixed(c, 1);
			cfi_pointer(c, encoding & PE_VALUE, 0, 0);
			break;
		case 'L':
			cfi_fixed(c, 1);
			break;
		case 'S':
			ret->signal = true;
			break;
		case 'B':
			break;
		default:
			return false;
		}
	}
	return !c->failed;
}

static bool read_augmentation(struct common *ret, struct cfi_cursor *c,
			      const char *text)
{
	struct cfi_cursor inner;
	uint64_t size;

	if (text[0] != 'z')
		return !text[0] || !strcmp(text, "S");
	ret->sized = true;
	size = cfi_uleb(c);
	inner = *c;
	if (!cfi_skip(c, size))
		return false;
	inner.end = c->at;
	/* What is not known behind what is can be passed over. */
	(void)augmentation(ret, &inner, text + 1);
	return !inner.failed;
}

static bool read_common(const struct section *s, uint64_t off, unsigned word,
			struct common *ret)
{
	char text[MAX_AUGMENTATION];
	unsigned version, i = 0;
	struct cfi_cursor c;
	struct raw raw;

	memset(ret, 0, sizeof(*ret));
	if (!read_raw(s, off, word, &raw) || !raw.is_common)
		return false;
	c = raw.body;
	version = (unsigned)cfi_fixed(&c, 1);
	do {
		text[i] = (char)cfi_fixed(&c, 1);
	} while (text[i] && ++i < MAX_AUGMENTATION);
	if (c.failed || i == MAX_AUGMENTATION ||
	    (version != 1 && version != 3 && version != 4))
		return false;
	if (version == 4 && (cfi_fixed(&c, 1) != word || cfi_fixed(&c, 1)))
		return false;
	ret->program.code_align = cfi_uleb(&c);
	ret->program.data_align = cfi_sleb(&c);
	ret->ra = (unsigned)(version == 1 ? cfi_fixed(&c, 1) : cfi_uleb(&c));
	ret->program.word = word;
	if (!read_augmentation(ret, &c, text) || c.failed)
		return false;
	ret->signal |= !strcmp(text, "S");
	ret->program.encoding = ret->encoding;
	ret->program.first = c.at;
	ret->program.first_end = c.end;
	return true;
}

/* An entry for code (FDE): whose, and how it goes on. */
struct fde {
	struct common common;
	vaddr start, end;
};

/* Another common part than the last one is read again. */
static bool read_fde(const struct section *s, const struct raw *raw,
		     unsigned word, uint64_t *common_at, struct common *common,
		     struct fde *ret)
{
	uint64_t at = s->is_debug ? raw->id : raw->id_at - raw->id;
	struct cfi_cursor c = raw->body;
	vaddr here = s->start + offset_of(s, &c);
	unsigned encoding;

	if (!s->is_debug && raw->id > raw->id_at)
		return false;
	if (at != *common_at) {
		*common_at = UINT64_MAX;
		if (!read_common(s, at, word, common))
			return false;
		*common_at = at;
	}
	ret->common = *common;
	encoding = common->encoding;
	ret->start = cfi_pointer(&c, encoding, here, s->start);
	if (!(encoding & PE_RELATIVE))
		ret->start += s->bias;
	ret->end = ret->start + cfi_pointer(&c, encoding & PE_VALUE, 0, 0);
	if (common->sized)
		cfi_skip(&c, cfi_uleb(&c));
	ret->common.program.start = ret->start;
	ret->common.program.then = c.at;
	ret->common.program.then_end = c.end;
	return !c.failed && ret->start < ret->end;
}

static bool fde_at(const struct section *s, uint64_t off, unsigned word,
		   struct fde *ret)
{
	uint64_t common_at = UINT64_MAX;
	struct common common;
	struct raw raw;

	return read_raw(s, off, word, &raw) && !raw.is_common &&
	       read_fde(s, &raw, word, &common_at, &common, ret);
}

/* ---- tables ---- */

static int by_start(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return ORDER(x->start, y->start) ?: ORDER(x->off, y->off);
}

/* An entry takes 8 bytes at least, so this ends with the section. */
static void list_entries(struct table *t, unsigned word)
{
	const struct section *s = &t->section;
	uint64_t common_at = UINT64_MAX;
	struct common common;
	struct raw raw;

	for (uint64_t at = 0; t->n < MAX_ENTRIES &&
	     read_raw(s, at, word, &raw); at = raw.next) {
		struct fde f;

		if (raw.is_common ||
		    !read_fde(s, &raw, word, &common_at, &common, &f))
			continue;
		MEM_PUSH(t->entries, t->n, t->cap) =
			(struct entry){ f.start, f.end, at };
	}
	SORT(t->entries, t->n, by_start);
}

/* The index says where the entries are, and which one is for an address. */
static bool use_header(struct cfi *c, struct table *t, vaddr header)
{
	uint64_t size, n;
	const uint8_t *p = space_view_max(c->sp, header, &size);
	struct cfi_cursor at;
	unsigned frame_enc, count_enc;
	vaddr frame;

	if (!p || size < HEADER_FIXED || p[0] != 1)
		return false;
	at = (struct cfi_cursor){ p + 1, p + size, c->sp->word, false };
	frame_enc = (unsigned)cfi_fixed(&at, 1);
	count_enc = (unsigned)cfi_fixed(&at, 1);
	if (cfi_fixed(&at, 1) != PE_SEARCH_TABLE)
		count_enc = PE_OMIT;
	frame = cfi_pointer(&at, frame_enc, header + HEADER_FIXED, header);
	n = cfi_pointer(&at, count_enc, 0, header);
	if (at.failed)
		return false;
	t->section.bytes = space_view_max(c->sp, frame, &t->section.size);
	t->section.start = frame;
	t->header = header;
	if (n && n <= (uint64_t)(at.end - at.at) / 8) {
		t->index = at.at;
		t->n_index = n;
	}
	return t->section.bytes != NULL;
}

/* By the program headers of the image in memory. */
static bool use_image(struct cfi *c, struct table *t)
{
	uint64_t size;
	const void *p = space_view_max(c->sp, t->base, &size);
	struct module m = { .start = t->base };
	struct elf_phdr ph;
	struct elf elf;

	if (!p || !elf_open(&elf, p, size))
		return false;
	for (uint32_t i = 0, n = elf_phdrs_there(&elf);
	     i < n && elf_phdr(&elf, i, &ph); i++)
		if (ph.type == EH_FRAME_PHDR)
			return use_header(c, t, ph.vaddr +
					  module_bias(&m, &elf, c->sp->page));
	return false;
}

static bool use_file(Elf *elf, const char *name, vaddr bias, struct section *s)
{
	if (!elf || !debug_section(elf, name, &s->bytes, &s->size, &s->start))
		return false;
	s->start += bias;
	s->bias = bias;
	return true;
}

static const struct debug_module *files_of(struct cfi *c, vaddr base)
{
	return c->debug ? debug_at(c->debug, base) : NULL;
}

static void open_eh(struct cfi *c, struct table *t)
{
	const struct debug_module *m;

	if (!use_image(c, t)) {
		m = files_of(c, t->base);
		if (!m || !use_file(m->elf, ".eh_frame", m->bias, &t->section))
			return;
	}
	if (!t->index)
		list_entries(t, c->sp->word);
}

/* Opened when .eh_frame has no answer. */
static void open_debug(struct cfi *c, struct table *t)
{
	const struct debug_module *m = files_of(c, t->base);

	t->section.is_debug = true;
	if (m && (use_file(m->debug_elf, ".debug_frame", m->bias,
			   &t->section) ||
		  use_file(m->elf, ".debug_frame", m->bias, &t->section)))
		list_entries(t, c->sp->word);
}

/* ---- finding ---- */

static int64_t index_at(const struct table *t, uint64_t i, unsigned which)
{
	return (int32_t)load_u32(t->index + 8 * i + 4 * which);
}

static bool find_indexed(const struct cfi *c, const struct table *t, vaddr pc,
			 struct fde *ret)
{
	int64_t off = (int64_t)(pc - t->header);
	size_t lo = BISECT(mid, 0, t->n_index, index_at(t, mid, 0) <= off);
	uint64_t at;

	if (!lo)
		return false;
	at = t->header + (uint64_t)index_at(t, lo - 1, 1) - t->section.start;
	return fde_at(&t->section, at, c->sp->word, ret);
}

static bool find_listed(const struct cfi *c, const struct table *t, vaddr pc,
			struct fde *ret)
{
	size_t lo = BISECT(mid, 0, t->n, t->entries[mid].start <= pc);

	return lo && pc < t->entries[lo - 1].end &&
	       fde_at(&t->section, t->entries[lo - 1].off, c->sp->word, ret);
}

static bool find_in(const struct cfi *c, const struct table *t, vaddr pc,
		    struct cfi_row *ret)
{
	struct fde f;

	if (!t->section.bytes ||
	    !(t->index ? find_indexed(c, t, pc, &f)
		       : find_listed(c, t, pc, &f)) ||
	    pc < f.start || pc >= f.end || f.common.ra >= CFI_REGS)
		return false;
	ret->ra = f.common.ra;
	ret->signal = f.common.signal;
	return cfi_run(&f.common.program, pc, ret);
}

/* Where the image starts that pc is in: of a module, or of the kernel's. */
static bool image_of(struct space *sp, vaddr pc, vaddr *ret)
{
	const struct module *m = space_module(sp, pc);
	const struct seg *seg = space_seg(sp, pc);

	if (m)
		*ret = m->start;
	else if (seg && seg->flags & SEG_X && seg->start == sp->at_sysinfo)
		*ret = seg->start;
	else
		return false;
	return true;
}

static struct tables *tables_of(struct cfi *c, vaddr base)
{
	struct tables *t;

	for (size_t i = 0; i < c->n; i++)
		if (c->tables[i]->base == base)
			return c->tables[i];
	t = mem_zalloc(sizeof(*t));
	t->base = t->eh.base = t->debug.base = base;
	MEM_PUSH(c->tables, c->n, c->cap) = t;
	open_eh(c, &t->eh);
	return t;
}

static bool find(struct cfi *c, vaddr pc, struct cfi_row *ret)
{
	struct tables *t;
	vaddr base;

	if (!image_of(c->sp, pc, &base))
		return false;
	t = tables_of(c, base);
	if (find_in(c, &t->eh, pc, ret))
		return true;
	if (!t->debug_open) {
		t->debug_open = true;
		open_debug(c, &t->debug);
	}
	return find_in(c, &t->debug, pc, ret);
}

bool cfi_find(struct cfi *c, vaddr pc, struct cfi_row *ret)
{
	struct kept_row *k = &c->kept[(pc ^ pc >> 8) % ROWS_KEPT];

	if (k->pc != pc || !pc) {
		k->pc = pc;
		k->found = find(c, pc, &k->row);
	}
	if (k->found)
		*ret = k->row;
	return k->found;
}
