/* SPDX-License-Identifier: MIT */
#include "corewalk/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "corewalk/live.h"
#include "corewalk/own.h"

enum {
	EHDR = 64,
	PHDR = 56,
	SHDR = 64,
	MAX_PHNUM = 0xffff,	/* PN_XNUM: more need a section header */
	STEP = 8 << 20,		/* between two steps of the progress line */
};

/* In this order they lie in the file. */
enum rank { RANK_DATA, RANK_STACK, RANK_REST };

/* A segment and where its bytes go. */
struct part {
	const struct seg *seg;
	enum rank rank;
	uint64_t size;		/* bytes in the file */
	uint64_t off;
};

struct writer {
	struct space *sp;
	struct snapshot_file *file;
	struct progress *progress;
	struct part *parts;	/* owned; by address */
	const struct part **order;	/* owned; as they lie in the file */
	struct str head;	/* ELF header, program headers, notes */
	uint64_t notes_off, notes_size;
	uint64_t end;		/* of the segments */
	uint64_t put, total;	/* bytes, for the progress line */
};

static void add_le(struct str *s, uint64_t value, unsigned bytes)
{
	for (; bytes; bytes--, value >>= 8)
		str_addc(s, (char)(value & 0xff));
}

/* ---- layout ---- */

static void rank_parts(struct writer *w)
{
	struct space *sp = w->sp;
	size_t i;

	for (i = 0; i < sp->n_segs; i++) {
		const struct seg *seg = &sp->segs[i];

		w->parts[i] = (struct part){
			.seg = seg,
			.rank = seg->flags & SEG_KERNEL ||
				space_module(sp, seg->start) ?
				RANK_DATA : RANK_REST,
			/* Clean bytes of a file stay there. */
			.size = seg->flags & SEG_FROM_FILE ? seg->stored :
				seg->avail,
		};
	}
	for (i = 0; i < sp->n_threads; i++) {
		const struct seg *seg = space_seg(sp, sp->threads[i].sp);

		if (seg)
			w->parts[seg - sp->segs].rank = RANK_STACK;
	}
}

static int by_rank(const void *a, const void *b)
{
	const struct part *x = *(const struct part *const *)a;
	const struct part *y = *(const struct part *const *)b;

	return ORDER(x->rank, y->rank) ?:
	       ORDER(x->seg->start, y->seg->start);
}

static void place_parts(struct writer *w)
{
	size_t i, n = w->sp->n_segs;

	for (i = 0; i < n; i++)
		w->order[i] = &w->parts[i];
	SORT(w->order, n, by_rank);
	w->end = round_up(w->notes_off + w->notes_size, w->sp->page);
	for (i = 0; i < n; i++) {
		struct part *part = &w->parts[w->order[i] - w->parts];

		part->off = w->end;
		w->end += round_up(part->size, w->sp->page);
		w->total += space_stored(w->sp, part->seg->start,
					 part->seg->end);
	}
}

/* ---- headers ---- */

static void add_note(struct str *to, const char *owner, uint32_t type,
		     const struct str *desc)
{
	add_le(to, strlen(owner) + 1, 4);
	add_le(to, desc->len, 4);
	add_le(to, type, 4);
	str_add(to, owner, strlen(owner) + 1);
	add_le(to, 0, -to->len & 3);
	str_add(to, desc->text, desc->len);
	add_le(to, 0, -to->len & 3);
}

static void make_notes(const struct writer *w, struct str *ret)
{
	const struct live *lv = w->sp->priv;
	struct str own;

	str_init(&own);
	own_make(w->sp, &own);
	str_add(ret, lv->notes.text, lv->notes.len);
	add_note(ret, OWN_OWNER, OWN_TYPE, &own);
	str_fini(&own);
}

static bool many(const struct writer *w)
{
	return w->sp->n_segs + 1 >= MAX_PHNUM;
}

static void add_ehdr(struct writer *w)
{
	struct str *s = &w->head;

	str_add(s, "\177ELF\2\1\1\0\0\0\0\0\0\0\0\0", 16);
	add_le(s, ELF_TYPE_CORE, 2);
	add_le(s, w->sp->machine == MACHINE_AARCH64 ? ELF_EM_AARCH64 :
	       ELF_EM_X86_64, 2);
	add_le(s, 1, 4);
	add_le(s, 0, 8);
	add_le(s, EHDR, 8);
	add_le(s, many(w) ? w->end : 0, 8);
	add_le(s, 0, 4);
	add_le(s, EHDR, 2);
	add_le(s, PHDR, 2);
	add_le(s, many(w) ? MAX_PHNUM : w->sp->n_segs + 1, 2);
	add_le(s, many(w) ? SHDR : 0, 2);
	add_le(s, many(w) ? 1 : 0, 2);
	add_le(s, 0, 2);
}

static void add_phdr(struct writer *w, const struct elf_phdr *ph)
{
	add_le(&w->head, ph->type, 4);
	add_le(&w->head, ph->flags, 4);
	add_le(&w->head, ph->offset, 8);
	add_le(&w->head, ph->vaddr, 8);
	add_le(&w->head, 0, 8);
	add_le(&w->head, ph->filesz, 8);
	add_le(&w->head, ph->memsz, 8);
	add_le(&w->head, ph->align, 8);
}

static void add_load(struct writer *w, const struct part *part)
{
	const struct seg *seg = part->seg;

	add_phdr(w, &(struct elf_phdr){
		.type = ELF_PT_LOAD,
		.flags = (seg->flags & SEG_R ? ELF_PF_R : 0) |
			 (seg->flags & SEG_W ? ELF_PF_W : 0) |
			 (seg->flags & SEG_X ? ELF_PF_X : 0),
		.offset = part->off,
		.vaddr = seg->start,
		.filesz = part->size,
		.memsz = seg->end - seg->start,
		.align = w->sp->page,
	});
}

static void make_head(struct writer *w)
{
	struct str notes;
	size_t i;

	str_init(&notes);
	make_notes(w, &notes);
	w->notes_off = EHDR + PHDR * ((uint64_t)w->sp->n_segs + 1);
	w->notes_size = notes.len;
	place_parts(w);
	add_ehdr(w);
	add_phdr(w, &(struct elf_phdr){
		.type = ELF_PT_NOTE,
		.offset = w->notes_off,
		.filesz = w->notes_size,
		.align = 4,
	});
	for (i = 0; i < w->sp->n_segs; i++)
		add_load(w, &w->parts[i]);
	str_add(&w->head, notes.text, notes.len);
	str_fini(&notes);
}

/* Section header 0, whose sh_info is the number of program headers. */
static void make_shdr(const struct writer *w, struct str *ret)
{
	add_le(ret, 0, 8);
	add_le(ret, 0, 8);
	add_le(ret, 0, 8);
	add_le(ret, 0, 8);
	add_le(ret, 1, 8);
	add_le(ret, 0, 4);
	add_le(ret, w->sp->n_segs + 1, 4);
	add_le(ret, 0, 8);
	add_le(ret, 0, 8);
}

/* ---- bytes ---- */

static bool put(struct writer *w, uint64_t off, const uint8_t *bytes,
		uint64_t n)
{
	while (n) {
		uint64_t part = min_u64(n, STEP);

		if (!snapshot_file_put(w->file, off, bytes, part))
			return false;
		off += part;
		bytes += part;
		n -= part;
		w->put += part;
		progress_step(w->progress, w->put, w->total, 0, NULL);
	}
	return true;
}

/* Pages that are there; where others would be, a hole is left. */
static bool put_runs(struct writer *w, const struct part *part)
{
	const struct space *sp = w->sp;
	const struct seg *seg = part->seg;
	uint64_t start = seg->core_off, end = start + part->size;
	size_t i;

	for (i = space_first_run(sp, start); i < sp->n_runs; i++) {
		uint64_t from = max_u64(start, sp->runs[i].start);
		uint64_t to = min_u64(end, sp->runs[i].end);

		if (from >= to)
			break;
		if (!put(w, part->off + (from - start),
			 seg->host + (from - start), to - from))
			return false;
	}
	return true;
}

static bool put_part(struct writer *w, const struct part *part)
{
	if (!part->size)
		return true;
	/* Pages of a file that are not in memory have bytes too. */
	if (part->seg->file != SEG_NO_FILE || part->seg->flags & SEG_KERNEL)
		return put(w, part->off, part->seg->host, part->size);
	return put_runs(w, part);
}

static bool put_all(struct writer *w)
{
	size_t i;

	if (!put(w, 0, (const uint8_t *)w->head.text, w->head.len))
		return false;
	for (i = 0; i < w->sp->n_segs; i++)
		if (!put_part(w, w->order[i]))
			return false;
	return true;
}

bool snapshot_write(struct space *sp, struct snapshot_file *f,
		    struct progress *progress, uint64_t *ret_size,
		    struct err *err)
{
	struct writer w = { .sp = sp, .file = f, .progress = progress };
	uint64_t size;
	struct str shdr;

	w.parts = mem_alloc(sp->n_segs * sizeof(*w.parts));
	w.order = mem_alloc(sp->n_segs * sizeof(*w.order));
	str_init(&w.head);
	str_init(&shdr);
	rank_parts(&w);
	make_head(&w);
	size = w.end;
	if (put_all(&w) && many(&w)) {
		make_shdr(&w, &shdr);
		put(&w, w.end, (const uint8_t *)shdr.text, shdr.len);
		size += shdr.len;
	}
	str_fini(&shdr);
	str_fini(&w.head);
	free(w.parts);
	free(w.order);
	/* Explains what went wrong before, too. */
	return snapshot_file_finish(f, size, ret_size, err);
}
