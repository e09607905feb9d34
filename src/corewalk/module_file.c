/* SPDX-License-Identifier: MIT */
/*
 * Bytes that the core lacks, from files on disk.
 *
 * A file is used only if it is the one that was mapped: its build id, or
 * without one its first page, equals what the core stores.  Files are named
 * by the core, which can name anything: only regular files are opened.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "corewalk/core.h"
#include "corewalk/module.h"

enum {
	MAX_SENTENCES = 5,	/* mismatches that are told one by one */
	MAX_FILES = 16384,	/* mapped at once; Linux allows 65530 in all */
	HOST_PAGE = 4096,
};

static const uint32_t PT_GNU_RELRO = 0x6474e552;

/* A file that is mapped; modules of the same file share it. */
struct disk_file {
	const uint8_t *data;	/* borrowed from core->maps; NULL: none */
	uint64_t size;
};

struct matcher {
	struct space *sp;
	struct core *core;
	bool heap_filtered;	/* written pages were left out of the core */
	struct disk_file *found;	/* owned: by module */
	size_t n_missing, n_mismatched, n_unverified, n_unmapped;
	const char *first_missing;	/* borrowed from space.files */
	bool missing_exe;
};

/* ---- opening ---- */

static bool map_disk(struct matcher *mt, const char *path,
		     struct disk_file *ret)
{
	int fd = file_open_plain(path, &ret->size);
	void *data;

	if (fd < 0)
		return false;
	data = mt->core->n_maps < MAX_FILES ?
		mmap(NULL, ret->size, PROT_READ, MAP_PRIVATE, fd, 0) :
		MAP_FAILED;
	close(fd);
	if (data == MAP_FAILED) {
		mt->n_unmapped++;
		return false;
	}
	ret->data = data;
	return true;
}

static void keep_disk(struct matcher *mt, const struct disk_file *file)
{
	struct core *core = mt->core;

	MEM_PUSH(core->maps, core->n_maps, core->cap_maps) =
		(struct core_map){ (void *)file->data, file->size };
}

/* ---- is it the one? ---- */

static unsigned disk_build_id(const struct elf *elf, uint8_t ret[20])
{
	uint32_t i, n = elf_phdrs_there(elf);
	struct elf_phdr ph;

	for (i = 0; i < n && elf_phdr(elf, i, &ph); i++) {
		unsigned len;

		if (ph.type != ELF_PT_NOTE || ph.offset > elf->size ||
		    elf->size - ph.offset < ph.filesz)
			continue;
		len = elf_build_id(elf->data + ph.offset, ph.filesz,
				   ph.align, ret);
		if (len)
			return len;
	}
	return 0;
}

/* The core's bytes at the module's start are those of the file. */
static bool same_start(const struct matcher *mt, const struct module *m,
		       const struct disk_file *file)
{
	const struct seg *seg = space_seg(mt->sp, m->start);
	uint64_t n = min_u64(min_u64(seg->stored, mt->sp->page), file->size);

	return n && !memcmp(seg->host, file->data, n);
}

static bool has_start(const struct matcher *mt, const struct module *m)
{
	const struct seg *seg = space_seg(mt->sp, m->start);

	return seg && seg->start == m->start && seg->stored >= 64;
}

enum verdict { SAME, UNVERIFIED, OTHER };

static enum verdict compare(const struct matcher *mt, const struct module *m,
			    const struct disk_file *file, uint8_t id[20],
			    unsigned *ret_len)
{
	struct elf elf;

	*ret_len = 0;
	if (!elf_open(&elf, file->data, file->size) ||
	    elf.is64 != mt->core->elf.is64 ||
	    elf.machine != mt->core->elf.machine)
		return OTHER;
	*ret_len = disk_build_id(&elf, id);
	if (m->build_id_len)
		return *ret_len == m->build_id_len &&
		       !memcmp(id, m->build_id, *ret_len) ? SAME : OTHER;
	if (has_start(mt, m))
		return same_start(mt, m, file) ? SAME : OTHER;
	return UNVERIFIED;
}

static void say_mismatch(struct matcher *mt, const struct module *m,
			 const char *path, const uint8_t *id, unsigned len)
{
	char in_core[MODULE_ID_TEXT], on_disk[MODULE_ID_TEXT];

	if (mt->n_mismatched++ >= MAX_SENTENCES)
		return;
	if (!m->build_id_len) {
		space_warn(mt->sp, "%s: not the file that was mapped: not "
			   "used", path);
		return;
	}
	module_id_text(in_core, m->build_id, m->build_id_len);
	module_id_text(on_disk, id, len);
	space_warn(mt->sp, "%s: build id %s in the core, %s on disk: not used",
		   path, in_core, on_disk);
}

/* ---- where it may be ---- */

/* Use the file at path if it fits; whether the search is over. */
static bool try_path(struct matcher *mt, struct module *m, const char *path,
		     struct disk_file *ret)
{
	struct disk_file file = { 0 };
	enum verdict verdict;
	uint8_t id[20];
	unsigned len;

	if (!map_disk(mt, path, &file))
		return false;
	verdict = compare(mt, m, &file, id, &len);
	if (verdict == OTHER) {
		if (m->why != SPACE_MISMATCH)
			say_mismatch(mt, m, path, id, len);
		m->why = SPACE_MISMATCH;
		munmap((void *)file.data, file.size);
		return false;
	}
	mt->n_unverified += verdict == UNVERIFIED;
	keep_disk(mt, &file);
	m->path = mem_strdup(path);
	m->why = SPACE_OK;
	*ret = file;
	return true;
}

static bool try_debug_dir(struct matcher *mt, struct module *m,
			  const char *dir, struct disk_file *ret)
{
	char id[MODULE_ID_TEXT];
	AUTO_FREE char *path = NULL;

	if (m->build_id_len < 2)
		return false;
	module_id_text(id, m->build_id, m->build_id_len);
	path = mem_printf("%s/.build-id/%.2s/%s", dir, id, id + 2);
	return try_path(mt, m, path, ret);
}

/* The kernel's link to the very file that a process has mapped. */
static bool try_link(struct matcher *mt, struct module *m,
		     struct disk_file *ret)
{
	const struct seg *seg = space_seg(mt->sp, m->start);
	AUTO_FREE char *path = NULL;

	if (!mt->core->map_files || !seg)
		return false;
	path = mem_printf("%s/%llx-%llx", mt->core->map_files,
			  (unsigned long long)seg->start,
			  (unsigned long long)seg->end);
	return try_path(mt, m, path, ret);
}

/* The same file can be mapped at many places. */
static bool already_found(const struct matcher *mt, struct module *m,
			  struct disk_file *ret)
{
	size_t i = mt->sp->files[m->file].module;
	const struct module *other = &mt->sp->modules[i];

	if (other >= m || !other->path ||
	    other->build_id_len != m->build_id_len ||
	    memcmp(other->build_id, m->build_id, m->build_id_len) != 0)
		return false;
	m->path = mem_strdup(other->path);
	m->why = SPACE_OK;
	*ret = mt->found[i];
	return true;
}

static bool find_on_disk(struct matcher *mt, struct module *m,
			 struct disk_file *ret)
{
	const struct target_options *options = mt->core->options;
	const char *name = mt->sp->files[m->file].name;
	size_t i;

	if (already_found(mt, m, ret))
		return true;
	if (m->is_exe && options->exe &&
	    try_path(mt, m, options->exe, ret))
		return true;
	if (mt->sp->files[m->file].deleted && try_link(mt, m, ret))
		return true;
	for (i = 0; i < options->n_sysroots; i++) {
		AUTO_FREE char *path =
			mem_printf("%s/%s", options->sysroots[i], name);

		if (try_path(mt, m, path, ret))
			return true;
	}
	if (name[0] == '/' && try_path(mt, m, name, ret))
		return true;
	for (i = 0; i < options->n_debug_dirs; i++)
		if (try_debug_dir(mt, m, options->debug_dirs[i], ret))
			return true;
	return try_debug_dir(mt, m, "/usr/lib/debug", ret) ||
	       try_link(mt, m, ret);
}

/* ---- bytes for segments ---- */

/* Is some page of the segment made read-only after relocation? */
static bool in_relro(const struct space *sp, const struct seg *seg,
		     const struct elf *elf)
{
	struct elf_phdr ph;
	uint64_t end;

	return core_image_phdr(elf, PT_GNU_RELRO, &ph) &&
	       add_ok(ph.offset, ph.memsz, &end) &&
	       seg->file_off < end &&
	       seg->file_off + (seg->end - seg->start) >
			round_down(ph.offset, sp->page);
}

/*
 * Linux stores a private mapping whole as soon as one of its pages was
 * written.  So a mapping of which nothing is stored equals the file, even if
 * it is writable; unless the core leaves out all private memory, or its bytes
 * were cut off.  Of a mapping of a file's start, Linux stores the first page
 * though it is clean.
 */
static bool may_come_from_file(const struct matcher *mt,
			       const struct seg *seg, const struct elf *elf,
			       const struct disk_file *file)
{
	if (seg->file_off >= file->size)
		return false;
	if (!seg->stored && seg->why == SPACE_UNDUMPED)
		return !mt->heap_filtered || !(seg->flags & SEG_W ||
					       in_relro(mt->sp, seg, elf));
	return !seg->file_off && !(seg->flags & SEG_W) &&
	       seg->stored <= mt->sp->page && seg->stored <= file->size &&
	       seg->stored < seg->end - seg->start &&
	       !memcmp(seg->host ? seg->host : file->data, file->data,
		       seg->stored);
}

static void attach(struct matcher *mt, const struct module *m,
		   const struct disk_file *file)
{
	struct space *sp = mt->sp;
	const struct seg *first = space_seg(sp, m->start);
	struct elf elf;
	size_t i;

	if (!first || !elf_open(&elf, file->data, file->size))
		return;
	for (i = (size_t)(first - sp->segs); i < sp->n_segs; i++) {
		struct seg *seg = &sp->segs[i];

		if (seg->start >= m->end)
			break;
		if (seg->file != m->file ||
		    !may_come_from_file(mt, seg, &elf, file))
			continue;
		seg->host = file->data + seg->file_off;
		/* The rest of the last page reads as zeros. */
		seg->avail = min_u64(seg->end - seg->start,
				     round_up(file->size, HOST_PAGE) -
				     seg->file_off);
		seg->flags |= SEG_FROM_FILE;
	}
}

/* Why bytes of a module are missing: its file is. */
static void explain(struct space *sp, const struct module *m)
{
	const struct seg *first = space_seg(sp, m->start);
	size_t i;

	if (!first)
		return;
	for (i = (size_t)(first - sp->segs); i < sp->n_segs; i++) {
		struct seg *seg = &sp->segs[i];

		if (seg->start >= m->end)
			break;
		if (seg->file == m->file && seg->why == SPACE_UNDUMPED)
			seg->why = m->why;
	}
}

/* ---- what the user hears of it ---- */

static void warn_files(struct matcher *mt)
{
	struct space *sp = mt->sp;

	if (mt->n_mismatched > MAX_SENTENCES)
		space_warn(sp, "files on disk with another build id, besides "
			   "these: %zu", mt->n_mismatched - MAX_SENTENCES);
	if (mt->n_missing == 1 && mt->missing_exe)
		space_warn(sp, "the program %s was not found; give it with "
			   "--exe=FILE", mt->first_missing);
	else if (mt->n_missing)
		space_warn(sp, "not found: %zu of %zu programs and libraries, "
			   "first %s; give their place with --sysroot=DIR",
			   mt->n_missing, sp->n_modules, mt->first_missing);
	if (mt->n_unverified)
		space_warn(sp, "files used unchecked, because their build ids "
			   "are not in the core: %zu", mt->n_unverified);
	if (mt->n_unmapped)
		space_warn(sp, "files that could not be mapped: %zu",
			   mt->n_unmapped);
}

/*
 * A coredump_filter without anonymous private memory leaves out written pages
 * of files too.  Then no writable anonymous segment stores a byte.
 */
static bool heap_filtered(const struct space *sp)
{
	size_t i;

	for (i = 0; i < sp->n_segs; i++) {
		const struct seg *seg = &sp->segs[i];

		if (space_seg_anon(seg) && seg->flags & SEG_W &&
		    (seg->stored || seg->why == SPACE_TRUNCATED))
			return false;
	}
	return true;
}

void core_module_files(struct space *sp)
{
	struct core *core = sp->priv;
	struct matcher mt = { .sp = sp, .core = core };
	size_t i;

	if (core->options->no_files)
		return;
	mt.heap_filtered = heap_filtered(sp);
	mt.found = mem_zalloc(sp->n_modules * sizeof(*mt.found));
	for (i = 0; i < sp->n_modules; i++) {
		struct module *m = &sp->modules[i];

		if (find_on_disk(&mt, m, &mt.found[i])) {
			attach(&mt, m, &mt.found[i]);
			continue;
		}
		explain(sp, m);
		if (m->why == SPACE_MISMATCH)
			continue;
		mt.missing_exe |= m->is_exe;
		if (!mt.n_missing++)
			mt.first_missing = sp->files[m->file].name;
	}
	free(mt.found);
	warn_files(&mt);
}
