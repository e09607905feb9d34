/* SPDX-License-Identifier: MIT */
/*
 * ELF core files.
 *
 * The file is mapped once, read-only, and pointers into it are handed out: a
 * core of many gigabytes costs address space, not memory.  Nothing behind its
 * end is ever touched.  What the headers speak of and the file does not hold
 * is a hole with a reason.
 */
#include "corewalk/target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/sort.h"
#include "corewalk/core.h"
#include "corewalk/own.h"
#include "corewalk/unpack.h"

/* The process's half of an address space of 48 bits. */
static const uint64_t MAX_CORE = UINT64_C(1) << 47;

/* ---- close ---- */

static void close_core(struct space *sp)
{
	struct core *core = sp->priv;
	size_t i;

	if (core->n_maps)
		core_unwatch(core->maps[0].data);
	for (i = 0; i < core->n_maps; i++)
		munmap(core->maps[i].data, core->maps[i].size);
	free(core->maps);
	free(core->ranges);
	free(core);
}

static void forget_core(struct space *sp)
{
	const struct core *core = sp->priv;

	/* All are of files and only read. */
	for (size_t i = 0; i < core->n_maps; i++)
		madvise(core->maps[i].data, core->maps[i].size,
			MADV_DONTNEED);
}

static const struct target_ops core_ops = {
	.kind = "core",
	.close = close_core,
	.forget = forget_core,
};

static struct space *new_space(const char *path,
			       const struct target_options *options)
{
	static const struct target_options none;
	struct space *sp = mem_zalloc(sizeof(*sp));
	struct core *core = mem_zalloc(sizeof(*core));

	sp->kind = core_ops.kind;
	sp->path = mem_strdup(path);
	sp->writer = "?";
	sp->page = 4096;
	sp->ops = &core_ops;
	sp->priv = core;
	core->name = sp->path;
	core->options = options ? options : &none;
	return sp;
}

/* ---- segments ---- */

static uint32_t seg_flags(uint32_t p_flags)
{
	return (p_flags & ELF_PF_R ? SEG_R : 0) |
	       (p_flags & ELF_PF_W ? SEG_W : 0) |
	       (p_flags & ELF_PF_X ? SEG_X : 0);
}

/*
 * The mapping that a program header speaks of.  A size that leads beyond the
 * end of the address space, or from the process's half of it into the
 * kernel's, is cut, at a border of the largest pages there are; one beyond
 * the end of the file is a hole.
 */
static void add_load(struct space *sp, const struct elf_phdr *ph)
{
	struct core *core = sp->priv;
	vaddr last = round_down(ph->vaddr >> 63 ? UINT64_MAX : INT64_MAX, MIB);
	uint64_t size = ph->vaddr < last ?
		min_u64(ph->memsz, last - ph->vaddr) : 0;
	uint64_t wanted = min_u64(ph->filesz, size);
	uint64_t there = ph->offset < core->elf.size ?
		min_u64(wanted, core->elf.size - ph->offset) : 0;
	struct seg *seg;

	if (!size)
		return;
	seg = &MEM_PUSH(sp->segs, sp->n_segs, core->cap_segs);
	*seg = (struct seg){
		.start = ph->vaddr,
		.end = ph->vaddr + size,
		.avail = there,
		.stored = there,
		.host = there ? core->elf.data + ph->offset : NULL,
		.flags = seg_flags(ph->flags),
		.file = SEG_NO_FILE,
		.core_off = ph->offset,
		.why = there < wanted ? SPACE_TRUNCATED : SPACE_UNDUMPED,
	};
}

/* Part of the file that holds notes. */
struct note_range {
	uint64_t start, end;
};

struct note_ranges {
	struct note_range *items;	/* owned */
	size_t n, cap;
};

static int by_offset(const void *a, const void *b)
{
	const struct note_range *x = a, *y = b;

	return ORDER(x->start, y->start) ?: ORDER(x->end, y->end);
}

static void add_notes(const struct elf *elf, struct note_ranges *ranges,
		      const struct elf_phdr *ph)
{
	if (ph->offset < elf->size && ph->filesz)
		MEM_PUSH(ranges->items, ranges->n, ranges->cap) =
			(struct note_range){ ph->offset, ph->offset +
				min_u64(ph->filesz, elf->size - ph->offset) };
}

/*
 * In the order of the file.  No byte is read twice: a damaged table could say
 * of the same notes 100,000 times that they are others.
 */
static void read_notes(struct space *sp, struct note_ranges *ranges)
{
	struct core *core = sp->priv;
	uint64_t done = 0;
	size_t i, n_left = 0;

	SORT(ranges->items, ranges->n, by_offset);
	for (i = 0; i < ranges->n; i++) {
		const struct note_range *r = &ranges->items[i];

		if (r->start < done) {
			n_left++;
			continue;
		}
		core_notes(sp, core->elf.data + r->start, r->end - r->start);
		done = r->end;
	}
	core_notes_done(sp);
	if (n_left)
		space_warn(sp, "program headers for notes that overlap others: "
			   "%zu, left out", n_left);
}

/* What no file system holds and no address space is says nothing. */
static void want_bytes(struct space *sp, const struct elf_phdr *ph)
{
	uint64_t end;

	if (add_ok(ph->offset, ph->filesz, &end) && end <= MAX_CORE)
		sp->core_wanted = max_u64(sp->core_wanted, end);
}

/*
 * Header i says nothing: where the next one is that might.  A table of 2^32
 * headers can be a hole of a file of which a page is stored; one look for each
 * page will do.
 */
static uint32_t skip_hole(const struct elf *elf, int fd, uint32_t i)
{
	uint64_t at = elf->phoff + (uint64_t)i * elf->phentsize;
	uint64_t n;
	off_t data;

	if (fd < 0 || at % 4096 >= elf->phentsize)
		return i + 1;
	data = lseek(fd, (off_t)at, SEEK_DATA);
	if (data < 0)
		return errno == ENXIO ? UINT32_MAX : i + 1;
	n = ((uint64_t)data - elf->phoff) / elf->phentsize;
	return n > i ? (uint32_t)min_u64(n, UINT32_MAX) : i + 1;
}

static void read_headers(struct space *sp, int fd)
{
	struct core *core = sp->priv;
	uint32_t i = 0, n = elf_phdrs_there(&core->elf);
	struct note_ranges ranges = { 0 };
	struct elf_phdr ph;

	sp->core_size = core->elf.size;
	sp->core_wanted = core->elf.size;
	while (i < n && elf_phdr(&core->elf, i, &ph)) {
		i = ph.type ? i + 1 : skip_hole(&core->elf, fd, i);
		want_bytes(sp, &ph);
		if (ph.type == ELF_PT_LOAD)
			add_load(sp, &ph);
		else if (ph.type == ELF_PT_NOTE)
			add_notes(&core->elf, &ranges, &ph);
	}
	read_notes(sp, &ranges);
	free(ranges.items);
}

static int by_start(const void *a, const void *b)
{
	const struct seg *x = a, *y = b;

	return ORDER(x->start, y->start) ?:
	       ORDER(x->core_off, y->core_off) ?:
	       ORDER(x->end, y->end);
}

/* Take the first n bytes away from a segment. */
static void cut_front(struct seg *seg, uint64_t n)
{
	uint64_t stored = min_u64(n, seg->avail);

	seg->start += n;
	seg->core_off += n;
	seg->avail -= stored;
	seg->stored -= stored;
	seg->host = seg->avail ? seg->host + n : NULL;
}

/*
 * Linux writes mappings by address, or by size if told so
 * (kernel.core_sort_vma), and never overlapping.  Where a damaged table does
 * overlap, the mapping that begins first keeps its bytes.
 */
static void sort_segs(struct space *sp)
{
	size_t i, n = 0, n_cut = 0;

	SORT(sp->segs, sp->n_segs, by_start);
	for (i = 0; i < sp->n_segs; i++) {
		struct seg seg = sp->segs[i];
		vaddr end = n ? sp->segs[n - 1].end : 0;

		if (seg.start < end) {
			n_cut++;
			if (seg.end <= end)
				continue;
			cut_front(&seg, end - seg.start);
		}
		sp->segs[n++] = seg;
	}
	sp->n_segs = n;
	for (i = 0; i < n; i++)
		sp->missing_segs += sp->segs[i].why == SPACE_TRUNCATED;
	if (n_cut)
		space_warn(sp, "program headers overlap, the first by address "
			   "is believed; mappings cut: %zu", n_cut);
}

/*
 * No writer stores a byte twice.  A damaged table can let every mapping point
 * at the whole file, which then is as large as it likes: what is read in all
 * is kept within twice the file.
 */
static void bound_bytes(struct space *sp)
{
	uint64_t left = 2 * sp->core_size;
	size_t i, n_cut = 0;

	for (i = 0; i < sp->n_segs; i++) {
		struct seg *seg = &sp->segs[i];

		if (seg->stored > left) {
			seg->avail = seg->stored = left;
			seg->host = left ? seg->host : NULL;
			seg->why = SPACE_READ_ERROR;
			n_cut++;
		}
		left -= seg->stored;
	}
	if (n_cut)
		space_warn(sp, "mappings that claim bytes of the file that "
			   "others have: %zu, left out", n_cut);
}

static bool all_zeros(const struct seg *seg)
{
	static const uint8_t zeros[4096];
	uint64_t at;

	/* A page of each 64 KB behind the first MB will do. */
	for (at = 0; at < seg->stored; at += at < MIB ? 4096 : 64 * KIB)
		if (memcmp(seg->host + at, zeros,
			   min_u64(sizeof(zeros), seg->stored - at)) != 0)
			return false;
	return true;
}

/*
 * gdb cannot see that a mapping is a reservation without access: it calls it
 * read-only and stores zeros (gdb/gcore.c, release 13).  Nothing else makes
 * read-only anonymous memory that was never written.
 */
static bool looks_reserved(const struct seg *seg)
{
	return space_seg_anon(seg) && seg->stored &&
	       (seg->flags & (SEG_R | SEG_W | SEG_X)) == SEG_R &&
	       all_zeros(seg);
}

static void mark_reserved(struct space *sp)
{
	size_t i;

	if (strcmp(sp->writer, "gdb") != 0)
		return;
	for (i = 0; i < sp->n_segs; i++)
		if (looks_reserved(&sp->segs[i]))
			sp->segs[i].flags &= ~(uint32_t)SEG_R;
}

/*
 * A guard page that was cut from memory that had been written comes with the
 * core.  A file without holes does not tell whether there was a page: zeros
 * are taken for none.
 */
static void mark_guards(struct space *sp)
{
	size_t i;

	for (i = 0; i < sp->n_segs && !sp->runs; i++) {
		struct seg *seg = &sp->segs[i];

		if (space_seg_anon(seg) && seg->stored &&
		    !(seg->flags & (SEG_R | SEG_W)) && all_zeros(seg))
			seg->stored = 0;
	}
}

/* ---- what is missing ---- */

/*
 * A writable anonymous mapping of which nothing is stored was never written,
 * or left out on purpose: the core does not tell which.  It was on purpose
 * where a living thread's stack is.
 */
static bool is_undumped(const struct seg *seg)
{
	return space_seg_anon(seg) && seg->flags & SEG_W && !seg->stored &&
	       seg->why == SPACE_UNDUMPED;
}

static void warn_undumped(struct space *sp)
{
	bool stack = false;
	size_t i, n = 0;

	for (i = 0; i < sp->n_threads && !stack; i++) {
		const struct seg *seg = space_seg(sp, sp->threads[i].sp);

		stack = seg && is_undumped(seg);
	}
	if (!stack)
		return;
	for (i = 0; i < sp->n_segs; i++)
		n += is_undumped(&sp->segs[i]);
	sp->undumped_segs = n;
	space_warn(sp, "%zu of %zu mappings are not in the file.  The "
		   "report covers the rest.  See coredump_filter in "
		   "core(5).", n, sp->n_segs);
}

static void warn_headers(struct space *sp)
{
	struct core *core = sp->priv;
	uint32_t there = elf_phdrs_there(&core->elf);

	if (there == ELF_MAX_PHDRS)
		space_warn(sp, "damaged: %u program headers; the first %u are "
			   "looked at", core->elf.phnum, there);
	else if (there < core->elf.phnum)
		space_warn(sp, "truncated: only %u of %u program headers are "
			   "in the file", there, core->elf.phnum);
}

static void warn_missing(struct space *sp)
{
	char size[NUM_MAX], wanted[NUM_MAX];

	warn_headers(sp);
	warn_undumped(sp);
	if (!sp->missing_segs)
		return;
	if (sp->core_wanted == sp->core_size) {
		space_warn(sp, "damaged: the bytes of %zu of %zu mappings "
			   "would lie where no file ends.  The report covers "
			   "the rest.", sp->missing_segs, sp->n_segs);
		return;
	}
	num_format_size(size, sp->core_size);
	num_format_size(wanted, sp->core_wanted);
	if (!strcmp(size, wanted)) {
		snprintf(size, sizeof(size), "%" PRIu64,
			 sp->core_size);
		snprintf(wanted, sizeof(wanted), "%" PRIu64 " bytes",
			 sp->core_wanted);
	}
	space_warn(sp, "truncated, %s of %s: %zu of %zu mappings are not in "
		   "the file.  The report covers the rest.", size, wanted,
		   sp->missing_segs, sp->n_segs);
}

/* ---- opening ---- */

/* Make a space of the bytes of a core; fd tells about holes, or is -1. */
static bool load(struct space *sp, const void *data, uint64_t size, int fd,
		 struct err *err)
{
	struct core *core = sp->priv;

	if (!core_identify(sp, data, size, err))
		return false;
	read_headers(sp, fd);
	if (core->is_vmcore)
		return core_is_not(core->name, "a dump of a kernel",
				   "See crash(8) or drgn.", err);
	if (!sp->n_segs)
		return err_set(err, ERR_FORMAT, "%s: no mapping in it",
			       core->name);
	sort_segs(sp);
	bound_bytes(sp);
	core->knows_shared = core->own &&
			     own_apply(sp, core->own, core->own_size);
	core_files(sp);
	core_runs(sp, fd);
	core_modules(sp);
	mark_reserved(sp);
	mark_guards(sp);
	core_module_files(sp);
	space_index(sp);
	warn_missing(sp);
	sp->reads = 0;
	return true;
}

static void *map_file(int fd, uint64_t size, const char *name,
		      struct err *err)
{
	void *data = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

	if (data != MAP_FAILED)
		return data;
	err_system(err, "%s: cannot map", name);
	return NULL;
}

/* The space has the mapping from now on, and is watched while it has. */
static bool load_file(struct space *sp, int fd, uint64_t size, int holes_fd,
		      struct err *err)
{
	struct core *core = sp->priv;
	void *data = map_file(fd, size, core->name, err);

	if (!data)
		return false;
	MEM_PUSH(core->maps, core->n_maps, core->cap_maps) =
		(struct core_map){ data, size };
	core_watch(data, size, core->name);
	return load(sp, data, size, holes_fd, err);
}

static void warn_unpacked(struct space *sp, const struct unpacked *got,
			  uint64_t size, enum unpack_format format)
{
	const char *name = unpack_format_name(format);
	unsigned long long used = got->used;

	sp->damaged = got->end != UNPACK_WHOLE && got->end != UNPACK_GARBAGE;
	switch (got->end) {
	case UNPACK_WHOLE:
		break;
	case UNPACK_CUT:
		space_warn(sp, "the %s stream ends early; what was decoded of "
			   "it is used", name);
		break;
	case UNPACK_DAMAGED:
		space_warn(sp, "the %s stream is damaged, which shows behind "
			   "byte %llu; what was decoded before is used", name,
			   used);
		break;
	case UNPACK_CHECKSUM:
		space_warn(sp, "the %s stream is damaged: its checksum is "
			   "wrong, and so are some of the bytes that were "
			   "decoded", name);
		break;
	case UNPACK_GARBAGE:
		space_warn(sp, "%llu bytes behind the %s stream are ignored",
			   (unsigned long long)size - used, name);
		break;
	}
}

static bool load_packed(struct space *sp, const void *data, uint64_t size,
			struct err *err)
{
	struct core *core = sp->priv;
	struct unpack_job job = {
		.name = core->name,
		.tmpdir = core->options->tmpdir,
		.size_of = core_size,
		.progress = core->options->progress,
	};
	struct unpacked got;
	bool ok;

	if (!unpack(&job, data, size, &got, err))
		return false;
	warn_unpacked(sp, &got, size, unpack_format(data, size));
	ok = got.size ? load_file(sp, got.fd, got.size, -1, err) :
			err_set(err, ERR_FORMAT, "%s: nothing in it can be "
				"decompressed", core->name);
	close(got.fd);
	return ok;
}

static bool open_regular(const char *path, int *ret_fd, uint64_t *ret_size,
			 struct err *err)
{
	struct stat st;
	int fd;

	if (stat(path, &st))
		return err_system(err, "%s", path);
	if (S_ISDIR(st.st_mode))
		return err_set(err, ERR_FORMAT, "%s: is a directory", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_FORMAT, "%s: not a regular file, as a "
			       "core must be to be read in any order", path);
	if (!st.st_size)
		return err_set(err, ERR_FORMAT, "%s: empty", path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return err_system(err, "%s", path);
	*ret_fd = fd;
	*ret_size = (uint64_t)st.st_size;
	return true;
}

/* Is it compressed?  The mapping for that is given back at once. */
static bool load_any(struct space *sp, int fd, uint64_t size, struct err *err)
{
	struct core *core = sp->priv;
	void *data = map_file(fd, size, core->name, err);
	bool packed, ok = false;

	if (!data)
		return false;
	core_watch(data, size, core->name);
	packed = unpack_format(data, size) != UNPACK_NONE;
	if (packed)
		ok = load_packed(sp, data, size, err);
	core_unwatch(data);
	munmap(data, size);
	return packed ? ok : load_file(sp, fd, size, fd, err);
}

struct space *target_open_core(const char *path,
			       const struct target_options *options,
			       struct err *err)
{
	struct space *sp;
	uint64_t size = 0;
	int fd = -1;
	bool ok;

	if (!open_regular(path, &fd, &size, err))
		return NULL;
	sp = new_space(path, options);
	ok = load_any(sp, fd, size, err);
	close(fd);
	if (ok)
		return sp;
	space_close(sp);
	return NULL;
}

struct space *target_open_core_memory(const void *data, size_t size,
				      const struct target_options *options,
				      struct err *err)
{
	struct space *sp = new_space("core", options);
	bool ok;

	if (unpack_format(data, size) != UNPACK_NONE)
		ok = load_packed(sp, data, size, err);
	else
		ok = load(sp, data, size, -1, err);
	if (ok)
		return sp;
	space_close(sp);
	return NULL;
}
