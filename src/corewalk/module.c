/* SPDX-License-Identifier: MIT */
#include "corewalk/module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "corewalk/core.h"

enum {
	MAX_NOTES = 8,		/* PT_NOTE of one module; 2 or 3 are usual */
	MAX_NOTE = 4096,	/* bytes of one */
	MAX_LOOK = 10000,	/* modules that may be the program */
	MAX_NAME = 4096,	/* PATH_MAX */
};

/* What is only needed while modules are being found. */
struct finder {
	vaddr *extents;		/* owned: by module, end of its last PT_LOAD */
	size_t n, cap, cap_modules;
	uint32_t *open;		/* owned: by file, its latest module */
	bool *exec;		/* owned: by file, some mapping is r-x */
};

void module_id_text(char ret[MODULE_ID_TEXT], const uint8_t *id, unsigned len)
{
	unsigned i;

	snprintf(ret, MODULE_ID_TEXT, "none");
	for (i = 0; i < len && i < 20; i++)
		snprintf(ret + 2 * i, 3, "%02x", id[i]);
}

const struct module *module_exe(const struct space *sp)
{
	size_t i;

	for (i = 0; i < sp->n_modules; i++)
		if (sp->modules[i].is_exe)
			return &sp->modules[i];
	return NULL;
}

vaddr module_bias(const struct module *m, const struct elf *elf,
		  uint64_t page)
{
	uint32_t n = elf_phdrs_there(elf);
	uint64_t low = UINT64_MAX;
	struct elf_phdr ph;

	for (uint32_t i = 0; i < n && elf_phdr(elf, i, &ph); i++)
		if (ph.type == ELF_PT_LOAD)
			low = min_u64(low, round_down(ph.vaddr, page));
	return low == UINT64_MAX ? m->start : m->start - low;
}

const char *module_name(const struct space *sp, const struct module *m)
{
	return file_base_name(sp->files[m->file].name);
}

void module_add_name(struct str *s, const struct space *sp,
		     const struct module *m)
{
	const char *name = module_name(sp, m);

	str_add_escaped(s, name, strlen(name));
}

/* ---- finding ---- */

/* Where the last byte of its segments lies, zeros of .bss included. */
static vaddr image_extent(const struct space *sp, const struct elf *elf,
			  vaddr bias)
{
	uint32_t i, n = elf_phdrs_there(elf);
	struct elf_phdr ph;
	uint64_t last = 0;

	for (i = 0; i < n && elf_phdr(elf, i, &ph); i++) {
		uint64_t end;

		if (ph.type == ELF_PT_LOAD &&
		    add_ok(ph.vaddr, ph.memsz, &end))
			last = max_u64(last, end);
	}
	return round_up(bias + last, sp->page);
}

/* Linkers put the note into the first page, which the core stores. */
static void read_build_id(struct space *sp, const struct elf *elf,
			  vaddr bias, struct module *m)
{
	uint32_t i, n = elf_phdrs_there(elf);
	unsigned left = MAX_NOTES;
	struct elf_phdr ph;

	for (i = 0; i < n && left && elf_phdr(elf, i, &ph); i++) {
		const uint8_t *notes;
		unsigned len;

		if (ph.type != ELF_PT_NOTE || ph.filesz > MAX_NOTE)
			continue;
		left--;
		notes = space_view(sp, bias + ph.vaddr, ph.filesz);
		len = notes ? elf_build_id(notes, ph.filesz, ph.align,
					   m->build_id) : 0;
		if (!len)
			continue;
		m->build_id_len = (uint8_t)len;
		return;
	}
}

/* Does a mapping of a file's first bytes begin a program or library? */
static bool begins_module(struct space *sp, const struct finder *f,
			  const struct file_range *r)
{
	uint8_t magic[4];

	if (space_read(sp, r->start, magic, 4) == 4)
		return elf_magic(magic, 4);
	return f->exec[r->file];
}

static void new_module(struct space *sp, struct finder *f,
		       const struct file_range *r)
{
	struct module *m;
	vaddr *extent;
	struct elf elf;
	vaddr bias;

	m = &MEM_PUSH(sp->modules, sp->n_modules, f->cap_modules);
	*m = (struct module){
		.file = r->file,
		.start = r->start,
		.end = r->end,
		.why = SPACE_NO_FILE,
	};
	extent = &MEM_PUSH(f->extents, f->n, f->cap);
	*extent = 0;
	if (core_image(sp, r->start, &elf, &bias)) {
		*extent = image_extent(sp, &elf, bias);
		read_build_id(sp, &elf, bias, m);
	}
	f->open[r->file] = (uint32_t)(sp->n_modules - 1);
	if (sp->files[r->file].module == SEG_NO_FILE)
		sp->files[r->file].module = f->open[r->file];
}

/*
 * A small program can map its first page twice, as text and as data: within
 * what its headers speak of, a second mapping of offset 0 is no new module.
 */
static void sort_in(struct space *sp, struct finder *f,
		    const struct file_range *r)
{
	uint32_t i = f->open[r->file];
	bool fresh = i == SEG_NO_FILE ||
		     (!r->off && r->start >= f->extents[i]);

	if (r->off == 0 && fresh) {
		if (begins_module(sp, f, r))
			new_module(sp, f, r);
		return;
	}
	/* Modules must not overlap: only the last one still grows. */
	if (i == SEG_NO_FILE || i + 1 != sp->n_modules)
		return;
	sp->modules[i].end = max_u64(sp->modules[i].end, r->end);
}

/*
 * The mapping of .bss has no file.  It follows the last one that has, up to
 * what the headers say; the heap may follow it without a gap.
 */
static void add_bss(struct space *sp, const struct finder *f, size_t i)
{
	struct module *m = &sp->modules[i];
	vaddr limit = f->extents[i];
	const struct seg *seg;

	if (i + 1 < sp->n_modules)
		limit = min_u64(limit, m[1].start);
	while (m->end < limit) {
		seg = space_seg(sp, m->end);
		if (!seg || seg->start != m->end || !space_seg_anon(seg))
			break;
		m->end = min_u64(seg->end, limit);
	}
}

/* gdb does not say what the mappings it left out allow; the headers do. */
static void flags_from_headers(struct space *sp, const struct module *m)
{
	struct elf_phdr ph;
	struct elf elf;
	uint32_t i, n;
	vaddr bias;

	if (!core_image(sp, m->start, &elf, &bias))
		return;
	n = elf_phdrs_there(&elf);
	for (i = 0; i < n && elf_phdr(&elf, i, &ph); i++) {
		vaddr at = round_down(bias + ph.vaddr, sp->page);
		const struct seg *seg = space_seg(sp, at);

		if (ph.type == ELF_PT_LOAD && ph.flags & ELF_PF_X && seg &&
		    seg->start == at && seg->file == m->file && !seg->stored)
			sp->segs[seg - sp->segs].flags |= SEG_X;
	}
}

/* ---- the program ---- */

static bool starts_with(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

static struct module *module_at(struct space *sp, vaddr addr)
{
	const struct module *m = addr ? space_module(sp, addr) : NULL;

	return m ? &sp->modules[m - sp->modules] : NULL;
}

static bool is_program(struct space *sp, const struct module *m)
{
	struct elf_phdr interp;
	struct elf elf;
	vaddr bias, debug;

	return core_image(sp, m->start, &elf, &bias) &&
	       core_image_phdr(&elf, ELF_PT_INTERP, &interp) &&
	       core_image_debug(sp, &elf, bias, &debug);
}

/*
 * The kernel started the module that AT_PHDR points into.  That is the
 * dynamic linker if it was called by hand, "ld.so PROGRAM": then there is no
 * AT_BASE, and the program is the one module with an interpreter and
 * DT_DEBUG, which link editors give to programs only.
 */
static struct module *find_exe(struct space *sp)
{
	struct module *exe = module_at(sp, sp->at_phdr);
	size_t i;

	if (!exe)
		exe = module_at(sp, sp->at_entry);
	if (!exe || sp->at_base || is_program(sp, exe))
		return exe;
	for (i = 0; i < sp->n_modules && i < MAX_LOOK; i++)
		if (is_program(sp, &sp->modules[i]))
			return &sp->modules[i];
	return exe;
}

/*
 * Does a path end in what the kernel calls the process?  That is the last part
 * of the path it was started by, cut off, until it names itself otherwise.
 */
static bool is_called(const struct core *core, const char *path,
		      const char **ret)
{
	const char *name = file_base_name(path);
	size_t kept = sizeof(core->fname) - 2;

	if (!core->fname[0] || starts_with(path, "/proc/") ||
	    starts_with(path, "/dev/fd/") ||
	    (strlen(core->fname) < kept ? strcmp(name, core->fname) :
	     strncmp(name, core->fname, kept)))
		return false;
	*ret = name;
	return true;
}

/*
 * One file can have several names, as Debian's redis-check-rdb, which is
 * redis-server too: if the process has two that agree they count, and else
 * that of the file.
 */
static void name_program(struct space *sp, const struct module *exe)
{
	const struct core *core = sp->priv;
	char path[MAX_NAME + 1], *command = NULL;
	const char *name = core->fname;

	if (exe)
		name = module_name(sp, exe);
	/* Not the dynamic linker's. */
	if (exe == module_at(sp, sp->at_phdr)) {
		command = mem_strdup(sp->command ? sp->command : "");
		command[strcspn(command, " ")] = '\0';
		if (!core->at_execfn ||
		    !space_string(sp, core->at_execfn, path, MAX_NAME) ||
		    !is_called(core, path, &name))
			is_called(core, command, &name);
	}
	sp->program = mem_strdup(name[0] ? name : "?");
	free(command);
}

/* ---- shared memory ---- */

/*
 * A core does not say which mappings are shared.  Their names do, save for
 * files: of a writable mapping of a data file Linux stores every page if one
 * was written privately.  If none is stored, no byte of it is private.
 */
static bool is_shared(const struct space *sp, const struct seg *seg)
{
	const struct mapped_file *file = &sp->files[seg->file];

	if (file->module != SEG_NO_FILE)
		return false;
	return file->deleted || starts_with(file->name, "/memfd:") ||
	       starts_with(file->name, "/SYSV") ||
	       (seg->flags & SEG_W && !seg->stored &&
		seg->why == SPACE_UNDUMPED);
}

static void mark_shared(struct space *sp)
{
	const struct core *core = sp->priv;
	size_t i;

	for (i = 0; i < sp->n_segs && !core->knows_shared; i++)
		if (sp->segs[i].file != SEG_NO_FILE &&
		    is_shared(sp, &sp->segs[i]))
			sp->segs[i].flags |= SEG_SHARED;
}

void core_modules(struct space *sp)
{
	struct core *core = sp->priv;
	struct finder f = { 0 };
	struct module *exe;
	size_t i;

	f.open = mem_alloc((sp->n_files + 1) * sizeof(*f.open));
	memset(f.open, 0xff, (sp->n_files + 1) * sizeof(*f.open));
	f.exec = mem_zalloc(sp->n_files + 1);
	for (i = 0; i < sp->n_segs; i++)
		if (sp->segs[i].flags & SEG_X &&
		    sp->segs[i].file != SEG_NO_FILE)
			f.exec[sp->segs[i].file] = true;
	for (i = 0; i < core->n_ranges; i++)
		sort_in(sp, &f, &core->ranges[i]);
	for (i = 0; i < sp->n_modules; i++) {
		add_bss(sp, &f, i);
		if (!strcmp(sp->writer, "gdb"))
			flags_from_headers(sp, &sp->modules[i]);
	}
	exe = find_exe(sp);
	if (exe)
		exe->is_exe = true;
	name_program(sp, exe);
	mark_shared(sp);
	free(f.open);
	free(f.exec);
	free(f.extents);
}
