/* SPDX-License-Identifier: MIT */
#include "corewalk/debug.h"

#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/file.h"
#include "base/mem.h"
#include "corewalk/debug_unpack.h"
#include "corewalk/module.h"

enum {
	MAX_FINDINGS = 20,
	MAX_SECTIONS = 1 << 16,
	ZDEBUG_HEADER = 12,	/* "ZLIB" and the size, big-endian */
};

/* One file on disk. */
struct debug_file {
	char *path;		/* owned */
	struct file_bytes bytes;	/* owned */
	Elf *elf;		/* owned; its data is bytes */
};

struct slot {
	struct debug_module is;
	char *path;		/* owned: the question, of debug_of_file() */
	uint8_t id[20];
	unsigned id_len;
	bool found;		/* the files, as far as there are any */
	bool open;		/* DWARF too */
	bool own_info;		/* own has debug information itself */
	struct debug_file own, debug, alt;
	Dwarf *alt_dwarf;	/* owned */
};

struct debug {
	struct space *sp;
	const struct target_options *options;	/* borrowed */
	struct slot *slots;	/* owned; by module */
	struct slot **loose;	/* owned; of no module, as they came */
	size_t n_loose, cap_loose;
	char **findings;	/* owned */
	size_t n_findings, cap_findings;
};

/* A build id that somebody asks for. */
struct id {
	const uint8_t *bytes;	/* borrowed */
	size_t len;		/* 0: none */
};

static const char usr_lib_debug[] = "/usr/lib/debug";

static void find(struct debug *d, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void find(struct debug *d, const char *fmt, ...)
{
	va_list ap;
	char text[400];

	if (d->n_findings >= MAX_FINDINGS)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	MEM_PUSH(d->findings, d->n_findings, d->cap_findings) =
		mem_strdup(text);
	if (d->sp)
		space_warn(d->sp, "%s", text);
}

/* ---- one file ---- */

static void close_file(struct debug_file *f)
{
	if (f->elf)
		elf_end(f->elf);
	file_unmap(&f->bytes);
	free(f->path);
	*f = (struct debug_file){ 0 };
}

/* Takes path.  False, and nothing is held, if it is no ELF file. */
static bool open_file(char *path, struct debug_file *ret)
{
	struct debug_file f = { .path = path };

	if (file_map(path, &f.bytes))
		f.elf = elf_memory((char *)f.bytes.data, f.bytes.size);
	if (f.elf && elf_kind(f.elf) == ELF_K_ELF) {
		*ret = f;
		return true;
	}
	close_file(&f);
	return false;
}

/* What was borrowed of it, is no longer valid. */
static void unpack_file(struct debug_file *f)
{
	elf_end(f->elf);
	(void)debug_unpack(&f->bytes);
	f->elf = elf_memory((char *)f->bytes.data, f->bytes.size);
}

static struct id id_of(Elf *elf)
{
	const void *bytes = NULL;
	ssize_t len = dwelf_elf_gnu_build_id(elf, &bytes);

	return len > 0 ? (struct id){ bytes, (size_t)len } : (struct id){ 0 };
}

static bool same_id(struct id a, struct id b)
{
	return a.len == b.len && !memcmp(a.bytes, b.bytes, a.len);
}

/* What a section takes when it is used. */
static uint64_t bytes_of(const struct debug_file *f, Elf_Scn *scn,
			 const char *name)
{
	const uint8_t *p = f->bytes.data;
	GElf_Shdr sh;
	GElf_Chdr ch;
	uint64_t size = 0;

	if (!gelf_getshdr(scn, &sh) || sh.sh_type == SHT_NOBITS)
		return 0;
	if (sh.sh_flags & SHF_COMPRESSED)
		return gelf_getchdr(scn, &ch) ? ch.ch_size : 0;
	if (strncmp(name, ".zdebug", 7) || sh.sh_size < ZDEBUG_HEADER ||
	    sh.sh_offset > f->bytes.size - ZDEBUG_HEADER)
		return 0;
	for (unsigned i = 4; i < ZDEBUG_HEADER; i++)
		size = size << 8 | p[sh.sh_offset + i];
	return size;
}

/*
 * Has it debug information, and of a size that can be taken?  libdw makes
 * room for what a header says before it decompresses.
 */
static bool has_info(struct debug *d, const struct debug_file *f)
{
	size_t names, n = 0;
	uint64_t all = 0;
	bool info = false;

	if (elf_getshdrstrndx(f->elf, &names))
		return false;
	for (Elf_Scn *s = NULL; (s = elf_nextscn(f->elf, s));) {
		GElf_Shdr sh;
		const char *name;

		if (++n > MAX_SECTIONS || !gelf_getshdr(s, &sh))
			return false;
		name = elf_strptr(f->elf, names, sh.sh_name);
		if (!name || sh.sh_type == SHT_NOBITS)
			continue;
		info |= !strcmp(name, ".debug_info") ||
			!strcmp(name, ".zdebug_info");
		if (!add_ok(all, bytes_of(f, s, name), &all))
			all = UINT64_MAX;
	}
	if (all <= DEBUG_MAX_BYTES)
		return info;
	find(d, "%s: its debug information says to be of %llu bytes: not used",
	     f->path, (unsigned long long)all);
	return false;
}

bool debug_section(Elf *elf, const char *name, const uint8_t **ret,
		   uint64_t *ret_size, uint64_t *ret_addr)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return false;
	for (unsigned n = 0; n < MAX_SECTIONS; n++) {
		const char *is;
		Elf_Data *data;
		GElf_Shdr sh;

		scn = elf_nextscn(elf, scn);
		if (!scn || !gelf_getshdr(scn, &sh))
			return false;
		is = elf_strptr(elf, names, sh.sh_name);
		if (!is || strcmp(is, name) || sh.sh_type == SHT_NOBITS ||
		    sh.sh_flags & SHF_COMPRESSED)
			continue;
		data = elf_getdata(scn, NULL);
		if (!data || !data->d_buf)
			return false;
		*ret = data->d_buf;
		*ret_size = data->d_size;
		*ret_addr = sh.sh_addr;
		return true;
	}
	return false;
}

/* ---- where it may be ---- */

/* Takes path; the file if it has the id, or else the checksum. */
static bool try_file(struct debug *d, char *path, struct id id,
		     const GElf_Word *crc, struct debug_file *ret)
{
	struct debug_file f;
	struct id found;

	if (!open_file(path, &f))
		return false;
	found = id_of(f.elf);
	if (id.len && found.len ? same_id(id, found) : crc &&
	    crc32_z(0, f.bytes.data, f.bytes.size) == *crc) {
		*ret = f;
		return true;
	}
	find(d, "%s: %s: not used", f.path, id.len && found.len ?
	     "debug information with another build id" :
	     "debug information with another checksum");
	close_file(&f);
	return false;
}

/*
 * The folders that hold debug information, one after the other; *ret is owned
 * by the caller.  False behind the last.
 */
static bool folder(const struct debug *d, size_t i, char **ret)
{
	const struct target_options *o = d->options;

	if (i < o->n_debug_dirs)
		*ret = mem_strdup(o->debug_dirs[i]);
	else if (i - o->n_debug_dirs < o->n_sysroots)
		*ret = mem_printf("%s%s", o->sysroots[i - o->n_debug_dirs],
				  usr_lib_debug);
	else if (i - o->n_debug_dirs == o->n_sysroots)
		*ret = mem_strdup(usr_lib_debug);
	else
		return false;
	return true;
}

static bool by_id(struct debug *d, struct id id, struct debug_file *ret)
{
	char text[2 * 64 + 1];
	char *dir;

	if (id.len < 2 || id.len > 64)
		return false;
	for (size_t i = 0; i < id.len; i++)
		snprintf(text + 2 * i, 3, "%02x", id.bytes[i]);
	for (size_t i = 0; folder(d, i, &dir); i++) {
		char *path = mem_printf("%s/.build-id/%.2s/%s.debug", dir,
					text, text + 2);

		free(dir);
		if (try_file(d, path, id, NULL, ret))
			return true;
	}
	return false;
}

/* In --debug-dir itself: by the name of the link, else of the program. */
static bool by_name(struct debug *d, const struct debug_file *own,
		    struct debug_file *ret)
{
	GElf_Word crc;
	const char *name = dwelf_elf_gnu_debuglink(own->elf, &crc);
	struct id id = id_of(own->elf);
	bool linked = name && *name && !strchr(name, '/');

	if (!linked && !id.len)
		return false;
	for (size_t i = 0; i < d->options->n_debug_dirs; i++) {
		const char *dir = d->options->debug_dirs[i];
		char *path = linked ? mem_printf("%s/%s", dir, name) :
			mem_printf("%s/%s.debug", dir,
				   file_base_name(own->path));

		if (try_file(d, path, id, linked ? &crc : NULL, ret))
			return true;
	}
	return false;
}

static bool by_link(struct debug *d, const struct debug_file *own,
		    struct debug_file *ret)
{
	GElf_Word crc;
	const char *name = dwelf_elf_gnu_debuglink(own->elf, &crc);
	const char *base = file_base_name(own->path);
	int n = (int)(base - own->path);
	struct id id = id_of(own->elf);
	char *dir;

	if (!name || !*name || strchr(name, '/'))
		return false;
	if ((strcmp(name, base) &&
	     try_file(d, mem_printf("%.*s%s", n, own->path, name), id, &crc,
		      ret)) ||
	    try_file(d, mem_printf("%.*s.debug/%s", n, own->path, name), id,
		     &crc, ret))
		return true;
	for (size_t i = 0; folder(d, i, &dir); i++) {
		char *path = mem_printf("%s/%.*s%s", dir, n, own->path, name);

		free(dir);
		if (try_file(d, path, id, &crc, ret))
			return true;
	}
	return false;
}

/* ---- DWARF ---- */

static void __attribute__((noreturn)) no_room(void)
{
	mem_no_room("debug information takes more than there is; --no-files "
		    "reads none");
}

/* libdw would end with status 1, as if there were a report. */
static Dwarf *begin_dwarf(Elf *elf)
{
	Dwarf *ret = dwarf_begin_elf(elf, DWARF_C_READ, NULL);

	if (ret)
		dwarf_new_oom_handler(ret, no_room);
	return ret;
}

/*
 * The alternate file that a DWARF needs; true if it needs none.  Without it
 * libdw would look for one itself, and take what it finds.
 */
static bool open_alt(struct debug *d, struct slot *s, Dwarf *dwarf)
{
	const char *path = s->is.debug_path, *name = NULL;
	const void *bytes = NULL;
	ssize_t len = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &bytes);
	struct id id = { bytes, len > 0 ? (size_t)len : 0 };
	bool found;

	if (!len)
		return true;
	found = len > 0 &&
		(by_id(d, id, &s->alt) ||
		 try_file(d, name[0] == '/' ? mem_strdup(name) :
			  mem_printf("%.*s%s",
				     (int)(file_base_name(path) - path),
				     path, name), id, NULL, &s->alt));
	if (found && has_info(d, &s->alt)) {
		unpack_file(&s->alt);
		s->alt_dwarf = begin_dwarf(s->alt.elf);
	}
	if (!s->alt_dwarf) {
		find(d, "%s: needs %s, which was not found: not used", path,
		     name ? name : "another file");
		return false;
	}
	dwarf_setalt(dwarf, s->alt_dwarf);
	return true;
}

/*
 * All sections are unpacked at once.  What tells where variables are, and
 * macros, is not asked for by those who only want names and lines.
 */
static void hide_sections(Elf *elf)
{
	static const char *const names[] = {
		".debug_loclists", ".debug_loc", ".debug_frame",
		".debug_macro",
	};
	Elf_Scn *scn = NULL;
	size_t strings;

	if (elf_getshdrstrndx(elf, &strings))
		return;
	for (unsigned n = 0; n < MAX_SECTIONS; n++) {
		const char *name;
		GElf_Shdr sh;

		scn = elf_nextscn(elf, scn);
		if (!scn || !gelf_getshdr(scn, &sh))
			return;
		name = elf_strptr(elf, strings, sh.sh_name);
		for (size_t i = 0; name && i < countof(names); i++)
			if (!strcmp(name, names[i])) {
				sh.sh_type = SHT_NOBITS;
				gelf_update_shdr(scn, &sh);
			}
	}
}

/* f has debug information. */
static void open_dwarf(struct debug *d, struct slot *s, struct debug_file *f)
{
	Dwarf *dwarf;

	if (!s->is.module)
		hide_sections(f->elf);
	unpack_file(f);
	if (f == &s->own)
		s->is.elf = f->elf;
	dwarf = begin_dwarf(f->elf);
	s->is.debug_elf = f->elf;
	s->is.debug_path = f->path;
	if (!dwarf) {
		find(d, "%s: %s: not used", f->path, dwarf_errmsg(-1));
		s->is.why = "its debug information is damaged";
	} else if (!open_alt(d, s, dwarf)) {
		dwarf_end(dwarf);
		s->is.why = "a part of its debug information is missing";
	} else {
		s->is.dwarf = dwarf;
		s->is.why = NULL;
	}
}

static vaddr bias_of(const struct debug *d, const struct module *m,
		     const struct debug_file *f)
{
	struct elf elf;

	if (!m)
		return 0;
	return elf_open(&elf, f->bytes.data, f->bytes.size) ?
	       module_bias(m, &elf, d->sp->page) : m->start;
}

/* The own file is open, or was not found. */
static void find_debug(struct debug *d, struct slot *s, struct id id)
{
	const struct module *m = s->is.module;

	s->is.why = s->own.elf ? "it has no debug information" :
				 "its file was not found";
	if (s->own.elf) {
		s->is.elf = s->own.elf;
		s->is.bias = bias_of(d, m, &s->own);
		s->own_info = has_info(d, &s->own);
		if (!id.len)
			id = id_of(s->own.elf);
	}
	if (!s->own_info &&
	    (by_id(d, id, &s->debug) ||
	     (s->own.elf && (by_link(d, &s->own, &s->debug) ||
			     by_name(d, &s->own, &s->debug)))))
		s->is.bias = bias_of(d, m, &s->debug);
}

static void find_slot(struct debug *d, struct slot *s)
{
	const struct module *m = s->is.module;
	struct id id = { m->build_id, m->build_id_len };

	if (m->path)
		(void)open_file(mem_strdup(m->path), &s->own);
	find_debug(d, s, id);
}

static void open_slot(struct debug *d, struct slot *s)
{
	if (s->own_info)
		open_dwarf(d, s, &s->own);
	else if (s->debug.elf && has_info(d, &s->debug))
		open_dwarf(d, s, &s->debug);
	else if (s->debug.elf)
		find(d, "%s: no debug information is in it", s->debug.path);
}

/* The file at path if it has the id; takes path. */
static bool try_own(struct debug *d, struct slot *s, char *path)
{
	struct id id = { s->id, s->id_len };

	if (!open_file(path, &s->own))
		return false;
	if (!id.len || same_id(id, id_of(s->own.elf)))
		return true;
	find(d, "%s: has another build id: not used", s->own.path);
	close_file(&s->own);
	return false;
}

static void open_loose(struct debug *d, struct slot *s)
{
	const struct target_options *o = d->options;
	bool found = false;

	for (size_t i = 0; i < o->n_sysroots && !found; i++)
		found = try_own(d, s, mem_printf("%s/%s", o->sysroots[i],
						 s->path));
	if (!found && s->path[0] == '/')
		(void)try_own(d, s, mem_strdup(s->path));
	find_debug(d, s, (struct id){ s->id, s->id_len });
	open_slot(d, s);
}

/* ---- all of them ---- */

struct debug *debug_new(struct space *sp, const struct target_options *options)
{
	struct debug *d = mem_zalloc(sizeof(*d));

	elf_version(EV_CURRENT);
	d->sp = sp;
	d->options = options;
	d->slots = mem_zalloc(sp ? sp->n_modules * sizeof(*d->slots) : 0);
	return d;
}

static void close_slot(struct slot *s)
{
	dwarf_end(s->is.dwarf);
	dwarf_end(s->alt_dwarf);
	close_file(&s->alt);
	close_file(&s->debug);
	close_file(&s->own);
	free(s->path);
}

void debug_free(struct debug *d)
{
	if (!d)
		return;
	for (size_t i = 0; d->sp && i < d->sp->n_modules; i++)
		close_slot(&d->slots[i]);
	for (size_t i = 0; i < d->n_loose; i++) {
		close_slot(d->loose[i]);
		free(d->loose[i]);
	}
	free(d->loose);
	for (size_t i = 0; i < d->n_findings; i++)
		free(d->findings[i]);
	free(d->findings);
	free(d->slots);
	free(d);
}

static struct slot *slot_of(struct debug *d, const struct module *m)
{
	struct slot *s = &d->slots[m - d->sp->modules];

	if (s->found)
		return s;
	s->found = true;
	s->is.module = m;
	s->is.bias = m->start;
	s->is.why = "no files are to be read";
	if (!d->options->no_files)
		find_slot(d, s);
	return s;
}

const struct debug_module *debug_of(struct debug *d, const struct module *m)
{
	struct slot *s = slot_of(d, m);

	if (!s->open) {
		s->open = true;
		open_slot(d, s);
	}
	return &s->is;
}

const char *debug_file(struct debug *d, const struct module *m)
{
	return slot_of(d, m)->debug.path;
}

const struct debug_module *debug_of_file(struct debug *d, const char *path,
					 const uint8_t *id, unsigned id_len)
{
	struct slot *s;

	id_len = id_len > sizeof(s->id) ? 0 : id_len;
	for (size_t i = 0; i < d->n_loose; i++) {
		s = d->loose[i];
		if (!strcmp(s->path, path) && s->id_len == id_len &&
		    (!id_len || !memcmp(s->id, id, id_len)))
			return &s->is;
	}
	s = mem_zalloc(sizeof(*s));
	MEM_PUSH(d->loose, d->n_loose, d->cap_loose) = s;
	s->path = mem_strdup(path);
	s->id_len = id_len;
	if (id_len)
		memcpy(s->id, id, id_len);
	s->is.why = "no files are to be read";
	if (!d->options->no_files)
		open_loose(d, s);
	return &s->is;
}

const struct debug_module *debug_at(struct debug *d, vaddr addr)
{
	const struct module *m = space_module(d->sp, addr);

	return m ? debug_of(d, m) : NULL;
}

size_t debug_findings(const struct debug *d, char *const **ret)
{
	*ret = d->findings;
	return d->n_findings;
}
