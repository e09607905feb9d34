/* SPDX-License-Identifier: MIT */
/*
 * Which segment maps which file.
 *
 * The list of mapped files is NT_FILE.  A process with more than 65535
 * mappings has none (Linux limits the note to 4 MB and reserves 64 bytes for
 * each mapping), user-mode qemu never writes one, and a truncated core can
 * have lost it.  Then the list is made from ELF headers in the first bytes of
 * read-only segments, with names from the dynamic linker's link map.
 */
#include "corewalk/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"

enum {
	DT_NULL = 0,
	DT_DEBUG = 21,
	MAX_DYNAMIC = 512,	/* entries of a dynamic section we look at */
	MAX_HEADERS = 16384,	/* bytes: 290 program headers */
	MAX_IMAGES = 200000,
	MAX_NAME = 4096,	/* PATH_MAX */
	MAX_VVAR = 4,		/* mappings below the vdso that belong to it */
};

/* ---- ELF images in the target's memory ---- */

/*
 * The header at base, if the bytes of its page are there; *ret_bias is what
 * has to be added to its p_vaddr.
 */
bool core_image(struct space *sp, vaddr base, struct elf *ret,
		vaddr *ret_bias)
{
	const struct seg *seg = space_seg(sp, base);
	struct core *core = sp->priv;
	struct elf_phdr ph;
	uint32_t i, n;

	if (!seg || seg->start != base || !seg->host ||
	    !elf_open(ret, seg->host, min_u64(seg->avail, MAX_HEADERS)) ||
	    ret->is64 != core->elf.is64 ||
	    ret->machine != core->elf.machine ||
	    (ret->type != ELF_TYPE_EXEC && ret->type != ELF_TYPE_DYN))
		return false;
	n = elf_phdrs_there(ret);
	for (i = 0; i < n && elf_phdr(ret, i, &ph); i++) {
		if (ph.type != ELF_PT_LOAD || ph.offset >= sp->page)
			continue;
		*ret_bias = base - round_down(ph.vaddr, sp->page);
		return true;
	}
	return false;
}

bool core_image_phdr(const struct elf *elf, uint32_t type,
		     struct elf_phdr *ret)
{
	uint32_t i, n = elf_phdrs_there(elf);

	for (i = 0; i < n && elf_phdr(elf, i, ret); i++)
		if (ret->type == type)
			return true;
	return false;
}

bool core_image_debug(struct space *sp, const struct elf *elf, vaddr bias,
		      vaddr *ret)
{
	struct elf_phdr ph;
	uint64_t i, n, tag;
	vaddr at;

	if (!core_image_phdr(elf, ELF_PT_DYNAMIC, &ph))
		return false;
	n = min_u64(ph.memsz / (2 * sp->word), MAX_DYNAMIC);
	at = bias + ph.vaddr;
	for (i = 0; i < n; i++, at += 2 * sp->word) {
		if (!space_word(sp, at, &tag) || tag == DT_NULL)
			return false;
		if (tag == DT_DEBUG)
			return space_word(sp, at + sp->word, ret);
	}
	return false;
}

/* ---- without NT_FILE ---- */

/* An image that was found, and what the dynamic linker calls it. */
struct image {
	vaddr base, bias;
	uint32_t file;
};

struct images {
	struct image *items;	/* owned, sorted by bias */
	size_t n, cap;
};

static int by_bias(const void *a, const void *b)
{
	const struct image *x = a, *y = b;

	return ORDER(x->bias, y->bias) ?: ORDER(x->base, y->base);
}

static int same_bias(const void *a, const void *b)
{
	const struct image *x = a, *y = b;

	return ORDER(x->bias, y->bias);
}

static void find_images(struct space *sp, struct images *images)
{
	struct elf elf;
	vaddr bias;
	size_t i;

	for (i = 0; i < sp->n_segs && images->n < MAX_IMAGES; i++) {
		const struct seg *seg = &sp->segs[i];
		struct image *image;

		if (seg->flags & (SEG_W | SEG_KERNEL) ||
		    !elf_magic(seg->host, seg->avail) ||
		    !core_image(sp, seg->start, &elf, &bias))
			continue;
		image = &MEM_PUSH(images->items, images->n, images->cap);
		*image = (struct image){ seg->start, bias, SEG_NO_FILE };
	}
	SORT(images->items, images->n, by_bias);
}

/* The image that begins nearest below addr. */
static struct image *image_over(const struct images *images, vaddr addr)
{
	struct image *best = NULL;
	size_t i;

	for (i = 0; i < images->n; i++) {
		struct image *image = &images->items[i];

		if (image->base <= addr && (!best || image->base > best->base))
			best = image;
	}
	return best;
}

static void name_image(struct space *sp, struct image *image,
		       const char *name)
{
	if (image && image->file == SEG_NO_FILE && name[0])
		image->file = core_file_add(sp, name);
}

static void name_program(struct space *sp, struct image *image)
{
	struct core *core = sp->priv;
	char name[MAX_NAME + 1];

	if (core->at_execfn &&
	    space_string(sp, core->at_execfn, name, MAX_NAME))
		name_image(sp, image, name);
	else
		name_image(sp, image, core->fname);
}

static void name_interpreter(struct space *sp, struct images *images,
			     const struct elf *exe, vaddr bias)
{
	char name[MAX_NAME + 1];
	struct elf_phdr ph;

	if (sp->at_base && core_image_phdr(exe, ELF_PT_INTERP, &ph) &&
	    space_string(sp, bias + ph.vaddr, name, MAX_NAME))
		name_image(sp, image_over(images, sp->at_base), name);
}

/*
 * struct link_map begins with l_addr, l_name, l_ld, l_next in every glibc and
 * musl.  A damaged list can be circular: it has no more members than there
 * are images, save a few whose headers are not in the core.
 */
static void name_linked(struct space *sp, struct images *images, vaddr map)
{
	size_t left = images->n + 1000;
	char name[MAX_NAME + 1];
	struct image key = { 0 }, *image;
	uint64_t text;

	while (map && left--) {
		if (!space_word(sp, map, &key.bias) ||
		    !space_word(sp, map + sp->word, &text) ||
		    !space_word(sp, map + 3 * sp->word, &map))
			return;
		image = bsearch(&key, images->items, images->n, sizeof(key),
				same_bias);
		if (image && space_string(sp, text, name, MAX_NAME))
			name_image(sp, image, name);
	}
}

static void name_images(struct space *sp, struct images *images)
{
	struct image *exe = NULL;
	char name[32];
	struct elf elf;
	vaddr bias, debug, map;
	size_t i;

	if (sp->at_phdr)
		exe = image_over(images, sp->at_phdr);
	if (exe && core_image(sp, exe->base, &elf, &bias)) {
		name_program(sp, exe);
		if (core_image_debug(sp, &elf, bias, &debug) && debug &&
		    space_word(sp, debug + sp->word, &map))
			name_linked(sp, images, map);
		name_interpreter(sp, images, &elf, bias);
	}
	for (i = 0; i < images->n; i++) {
		snprintf(name, sizeof(name), "[image at %llx]",
			 (unsigned long long)images->items[i].base);
		name_image(sp, &images->items[i], name);
	}
}

/*
 * Headers that lie can speak of hundreds of ranges for each image: there are
 * not many more ranges than segments that they could be for.
 */
static void add_range(struct space *sp, vaddr start, vaddr end, uint64_t off,
		      uint32_t file)
{
	struct core *core = sp->priv;

	if (start < end && core->n_ranges < 4 * sp->n_segs + 1000)
		MEM_PUSH(core->ranges, core->n_ranges, core->cap_ranges) =
			(struct file_range){ start, end, off, file };
}

/* What the kernel or the dynamic linker mapped for each PT_LOAD. */
static void add_image_ranges(struct space *sp, const struct image *image)
{
	uint64_t page = sp->page;
	struct elf_phdr ph;
	struct elf elf;
	uint32_t i, n;
	vaddr bias;

	if (!core_image(sp, image->base, &elf, &bias))
		return;
	n = elf_phdrs_there(&elf);
	for (i = 0; i < n && elf_phdr(&elf, i, &ph); i++) {
		vaddr start = round_down(bias + ph.vaddr, page);
		uint64_t size = ph.filesz + (ph.vaddr & (page - 1));

		if (ph.type == ELF_PT_LOAD && ph.filesz &&
		    size >= ph.filesz && size < UINT64_MAX - start - page)
			add_range(sp, start, start + round_up(size, page),
				  round_down(ph.offset, page), image->file);
	}
}

static void ranges_from_images(struct space *sp)
{
	struct images images = { 0 };
	size_t i;

	find_images(sp, &images);
	name_images(sp, &images);
	for (i = 0; i < images.n; i++)
		add_image_ranges(sp, &images.items[i]);
	free(images.items);
}

/* ---- ranges and segments ---- */

static int by_start(const void *a, const void *b)
{
	const struct file_range *x = a, *y = b;

	return ORDER(x->start, y->start) ?: ORDER(x->end, y->end);
}

static void sort_ranges(struct core *core)
{
	size_t i, n = 0;

	SORT(core->ranges, core->n_ranges, by_start);
	for (i = 0; i < core->n_ranges; i++) {
		const struct file_range *r = &core->ranges[i];

		if (r->start < r->end &&
		    (!n || r->start >= core->ranges[n - 1].end))
			core->ranges[n++] = *r;
	}
	core->n_ranges = n;
}

/*
 * Names that are no file: memory that hugetlbfs or /dev/zero backs.  A shared
 * mapping of /dev/zero is called deleted, a private one is not
 * (Linux, mm/shmem.c and drivers/char/mem.c).
 */
static bool is_anonymous(const struct mapped_file *file)
{
	return !strcmp(file->name, "/anon_hugepage") ||
	       (!strcmp(file->name, "/dev/zero") && !file->deleted);
}

static void set_file(struct space *sp, struct seg *seg,
		     const struct file_range *r)
{
	if (is_anonymous(&sp->files[r->file]))
		return;
	seg->file = r->file;
	seg->file_off = r->off + (seg->start - r->start);
}

/* The part of a range that no program header speaks of. */
static void add_left_out(struct space *sp, const struct file_range *r,
			 vaddr start, vaddr end)
{
	struct core *core = sp->priv;
	struct seg *seg;

	if (start >= end)
		return;
	seg = &MEM_PUSH(sp->segs, sp->n_segs, core->cap_segs);
	*seg = (struct seg){
		.start = start,
		.end = end,
		.flags = SEG_R,
		.file = SEG_NO_FILE,
		.why = SPACE_UNDUMPED,
	};
	set_file(sp, seg, r);
}

/*
 * Both lists are sorted: one pass.  gdb leaves clean mappings of files out of
 * its program headers altogether; those that NT_FILE knows are put back, as
 * holes, because their addresses are mapped.
 */
static void join_ranges(struct space *sp, bool add_missing)
{
	struct core *core = sp->priv;
	size_t i, s = 0, n_segs = sp->n_segs;

	for (i = 0; i < core->n_ranges; i++) {
		const struct file_range *r = &core->ranges[i];
		vaddr done = r->start;

		while (s < n_segs && sp->segs[s].end <= r->start)
			s++;
		while (s < n_segs && sp->segs[s].start < r->end) {
			struct seg seg = sp->segs[s];

			if (seg.start >= r->start)
				set_file(sp, &sp->segs[s], r);
			if (add_missing)
				add_left_out(sp, r, done, seg.start);
			done = max_u64(done, seg.end);
			if (seg.end > r->end)
				break;
			s++;
		}
		if (add_missing)
			add_left_out(sp, r, done, r->end);
	}
	if (sp->n_segs > n_segs)
		SORT_BY(sp->segs, sp->n_segs, start);
}

/* ---- mappings of the kernel ---- */

/*
 * [vdso] is where AT_SYSINFO_EHDR points; [vvar] and its kin lie right below.
 * x86-64 maps its vsyscall page at the top of the address space.
 */
static void mark_kernel(struct space *sp)
{
	size_t i, n;

	for (i = 0; i < sp->n_segs; i++) {
		struct seg *seg = &sp->segs[i];

		if (sp->word == 8 && seg->start >> 63)
			seg->flags |= SEG_KERNEL;
		if (!sp->at_sysinfo || sp->at_sysinfo < seg->start ||
		    sp->at_sysinfo >= seg->end)
			continue;
		seg->flags |= SEG_KERNEL;
		for (n = 0; n < MAX_VVAR && n < i; n++) {
			struct seg *below = seg - 1 - n;

			if (below->end != below[1].start ||
			    below->file != SEG_NO_FILE ||
			    below->flags & (SEG_W | SEG_X) ||
			    below->end - below->start > 64 * KIB)
				break;
			below->flags |= SEG_KERNEL;
		}
	}
}

void core_files(struct space *sp)
{
	struct core *core = sp->priv;

	sort_ranges(core);
	join_ranges(sp, true);
	mark_kernel(sp);
	space_index(sp);
	core->cap_segs = sp->n_segs + 1;
	if (sp->has_file_note)
		return;
	ranges_from_images(sp);
	sort_ranges(core);
	join_ranges(sp, false);
}
