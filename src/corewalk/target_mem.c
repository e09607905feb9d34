/* SPDX-License-Identifier: MIT */
#include "corewalk/target.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"

/*
 * Each segment's bytes are an allocation of their own, so that a sanitizer
 * sees who reads behind a hole's edge.
 */
struct image {
	size_t cap_segs, cap_files;
};

static void close_image(struct space *sp)
{
	size_t i;

	for (i = 0; i < sp->n_segs; i++)
		free((void *)sp->segs[i].host);
	free(sp->priv);
}

static const struct target_ops mem_ops = {
	.kind = "image",
	.close = close_image,
};

struct space *target_mem_new(enum machine machine)
{
	struct space *sp = mem_zalloc(sizeof(*sp));

	sp->kind = mem_ops.kind;
	sp->path = mem_strdup("image");
	sp->program = mem_strdup("?");
	sp->writer = "?";
	sp->machine = machine;
	sp->word = machine == MACHINE_I386 ? 4 : 8;
	sp->page = 4096;
	sp->holes = HOLES_UNKNOWN;
	sp->ops = &mem_ops;
	sp->priv = mem_zalloc(sizeof(struct image));
	space_index(sp);
	return sp;
}

static uint32_t file_index(struct space *sp, const char *name)
{
	struct image *image = sp->priv;
	struct mapped_file *file;
	size_t i;

	if (!name)
		return SEG_NO_FILE;
	for (i = 0; i < sp->n_files; i++)
		if (!strcmp(sp->files[i].name, name))
			return (uint32_t)i;
	file = &MEM_PUSH(sp->files, sp->n_files, image->cap_files);
	memset(file, 0, sizeof(*file));
	file->name = mem_strdup(name);
	file->module = SEG_NO_FILE;
	return (uint32_t)i;
}

void target_mem_add(struct space *sp, vaddr start, uint64_t size,
		    uint32_t flags, const void *bytes, uint64_t avail,
		    const char *file_name)
{
	struct image *image = sp->priv;
	uint8_t *host = avail ? mem_zalloc(avail) : NULL;
	struct seg *seg;

	if (avail && bytes)
		memcpy(host, bytes, avail);
	seg = &MEM_PUSH(sp->segs, sp->n_segs, image->cap_segs);
	*seg = (struct seg){
		.start = start,
		.end = start + size,
		.avail = avail,
		.stored = avail,
		.host = host,
		.flags = flags,
		.file = file_index(sp, file_name),
		.why = SPACE_UNDUMPED,
	};
}

uint8_t *target_mem_at(struct space *sp, vaddr addr)
{
	size_t i;

	for (i = 0; i < sp->n_segs; i++) {
		const struct seg *seg = &sp->segs[i];

		if (addr >= seg->start && addr - seg->start < seg->avail)
			return (uint8_t *)seg->host + (addr - seg->start);
	}
	return NULL;
}

void target_mem_done(struct space *sp)
{
	uint64_t off = 0;
	size_t i;

	SORT_BY(sp->segs, sp->n_segs, start);
	for (i = 0; i < sp->n_segs; i++) {
		sp->segs[i].core_off = off;
		off += sp->segs[i].avail;
	}
	sp->core_size = sp->core_wanted = off;
	space_index(sp);
}
