/* SPDX-License-Identifier: MIT */
#include "corewalk/space.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "corewalk/target.h"

/* ---- making and freeing ---- */

/* The first stored byte of seg at or behind addr; UINT64_MAX: none. */
static vaddr stored_in(const struct space *sp, const struct seg *seg,
		       vaddr addr)
{
	uint64_t at = addr > seg->start ? addr - seg->start : 0;

	if (at < seg->stored && sp->runs) {
		size_t run = space_first_run(sp, seg->core_off + at);

		if (run == sp->n_runs)
			return UINT64_MAX;
		at = max_u64(seg->core_off + at, sp->runs[run].start) -
		     seg->core_off;
	}
	return at < seg->stored ? seg->start + at : UINT64_MAX;
}

/* Else a search over many mappings of which nothing is stored is quadratic. */
static void index_stored(struct space *sp)
{
	vaddr next = UINT64_MAX;

	sp->next_stored[sp->n_segs] = next;
	for (size_t i = sp->n_segs; i-- > 0;) {
		vaddr first = stored_in(sp, &sp->segs[i], sp->segs[i].start);

		next = first < UINT64_MAX ? first : next;
		sp->next_stored[i] = next;
	}
}

void space_index(struct space *sp)
{
	size_t i;

	/* An empty segment behind the last: a lookup may always look at one. */
	sp->segs = mem_realloc(sp->segs, (sp->n_segs + 1) * sizeof(*sp->segs));
	memset(&sp->segs[sp->n_segs], 0, sizeof(*sp->segs));
	free(sp->starts);
	sp->starts = mem_alloc(3 * (sp->n_segs + 1) * sizeof(*sp->starts));
	sp->run_ends = sp->starts + sp->n_segs + 1;
	sp->next_stored = sp->run_ends + sp->n_segs + 1;
	for (i = 0; i < sp->n_segs; i++)
		sp->starts[i] = sp->segs[i].start;
	for (i = sp->n_segs; i-- > 0;)
		sp->run_ends[i] = i + 1 < sp->n_segs &&
			sp->segs[i + 1].start == sp->segs[i].end ?
			sp->run_ends[i + 1] : sp->segs[i].end;
	index_stored(sp);
	sp->last = 0;
}

static void free_files(struct space *sp)
{
	size_t i;

	for (i = 0; i < sp->n_files; i++)
		free(sp->files[i].name);
	for (i = 0; i < sp->n_modules; i++)
		free(sp->modules[i].path);
	for (i = 0; i < sp->n_warnings; i++)
		free(sp->warnings[i]);
	free(sp->files);
	free(sp->modules);
	free(sp->warnings);
}

void space_close(struct space *sp)
{
	if (!sp)
		return;
	if (sp->ops && sp->ops->close)
		sp->ops->close(sp);
	free_files(sp);
	free(sp->path);
	free(sp->program);
	free(sp->command);
	free(sp->segs);
	for (size_t i = 0; i < sp->n_threads; i++)
		free(sp->threads[i].vectors);
	free(sp->threads);
	free(sp->runs);
	free(sp->pages);
	free(sp->starts);
	free(sp);
}

void space_forget(struct space *sp)
{
	if (sp->ops && sp->ops->forget)
		sp->ops->forget(sp);
}

void space_warn(struct space *sp, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	MEM_PUSH(sp->warnings, sp->n_warnings, sp->cap_warnings) =
		mem_strdup(text);
}

/* ---- looking up ---- */

static inline bool covers(const struct seg *seg, vaddr addr)
{
	return addr - seg->start < seg->end - seg->start;
}

/* The number of segments that start at or below addr. */
static size_t count_starts(const struct space *sp, vaddr addr)
{
	const uint64_t *starts = sp->starts;
	size_t lo = 0;
	size_t n = sp->n_segs;

	while (n) {
		size_t half = n / 2;

		if (starts[lo + half] <= addr) {
			lo += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return lo;
}

static const struct seg *seek(struct space *sp, vaddr addr)
{
	size_t n = count_starts(sp, addr);

	if (!n || !covers(&sp->segs[n - 1], addr))
		return NULL;
	sp->last = n - 1;
	return &sp->segs[n - 1];
}

static inline const struct seg *seg_at(struct space *sp, vaddr addr)
{
	const struct seg *seg = &sp->segs[sp->last];

	return covers(seg, addr) ? seg : seek(sp, addr);
}

const struct seg *space_seg(struct space *sp, vaddr addr)
{
	return seg_at(sp, addr);
}

size_t space_first_seg(const struct space *sp, vaddr addr)
{
	size_t n = count_starts(sp, addr);

	return n && covers(&sp->segs[n - 1], addr) ? n - 1 : n;
}

enum space_why space_why(struct space *sp, vaddr addr)
{
	const struct seg *seg = seg_at(sp, addr);

	if (!seg)
		return SPACE_UNMAPPED;
	return addr - seg->start < seg->avail ? SPACE_OK : seg->why;
}

const char *space_why_text(enum space_why why)
{
	switch (why) {
	case SPACE_OK:
		return "readable";
	case SPACE_UNMAPPED:
		return "not mapped";
	case SPACE_UNDUMPED:
		return "not in the core file";
	case SPACE_TRUNCATED:
		return "behind the end of the truncated core file";
	case SPACE_NO_FILE:
		return "in a file that was not found";
	case SPACE_MISMATCH:
		return "in a file that is another build on this machine";
	case SPACE_READ_ERROR:
		return "not readable";
	case SPACE_SWAPPED:
		return "in swap";
	}
	return "?";
}

/* ---- reading ---- */

/*
 * A view over many small segments is this long at least.  Going to the end of
 * all that join would make a walk over 100,000 of them quadratic.
 */
enum { VIEW_JOIN = 1 << 20, SPARSE = 64 };

/* Counts a read; true if a test wants this one to fail. */
static inline bool injected(struct space *sp)
{
	return ++sp->reads == sp->fail_at;
}

static bool full(const struct seg *seg)
{
	return seg->avail == seg->end - seg->start;
}

/* next continues seg, in the target's memory and in ours. */
static bool joined(const struct seg *seg, const struct seg *next)
{
	return full(seg) && next->start == seg->end && next->avail &&
	       next->host == seg->host + seg->avail;
}

/* Bytes in one piece from addr on, as far as want if there are more. */
static uint64_t piece(const struct space *sp, const struct seg *seg,
		      vaddr addr, uint64_t want)
{
	const struct seg *end = sp->segs + sp->n_segs;
	uint64_t n;

	if (addr - seg->start >= seg->avail)
		return 0;
	n = seg->avail - (addr - seg->start);
	while (n < want && seg + 1 < end && joined(seg, seg + 1)) {
		seg++;
		n += seg->avail;
	}
	return n;
}

/* As space_view, not counted; the fast path of everything below. */
static inline const uint8_t *view(struct space *sp, vaddr addr, uint64_t n)
{
	const struct seg *seg = seg_at(sp, addr);
	uint64_t off;

	if (!seg)
		return NULL;
	off = addr - seg->start;
	if (off < seg->avail && n <= seg->avail - off)
		return seg->host + off;
	if (piece(sp, seg, addr, n) < n || off >= seg->avail)
		return NULL;
	return seg->host + off;
}

const void *space_view(struct space *sp, vaddr addr, uint64_t n)
{
	if (injected(sp))
		return NULL;
	return view(sp, addr, n);
}

const void *space_view_max(struct space *sp, vaddr addr, uint64_t *ret_n)
{
	const struct seg *seg;

	*ret_n = 0;
	if (injected(sp))
		return NULL;
	seg = seg_at(sp, addr);
	if (!seg)
		return NULL;
	*ret_n = piece(sp, seg, addr, VIEW_JOIN);
	return *ret_n ? seg->host + (addr - seg->start) : NULL;
}

static uint64_t copy(struct space *sp, vaddr addr, void *buf, uint64_t n)
{
	uint8_t *to = buf;
	uint64_t done = 0;

	while (done < n) {
		const struct seg *seg = seg_at(sp, addr + done);
		uint64_t got;

		if (!seg)
			break;
		got = min_u64(n - done, piece(sp, seg, addr + done, 0));
		if (!got)
			break;
		memcpy(to + done, seg->host + (addr + done - seg->start), got);
		done += got;
	}
	return done;
}

uint64_t space_read(struct space *sp, vaddr addr, void *buf, uint64_t n)
{
	if (injected(sp))
		return 0;
	return copy(sp, addr, buf, n);
}

/* A word of n bytes, in one piece or not. */
static inline bool word(struct space *sp, vaddr addr, void *ret, size_t n)
{
	uint8_t bytes[8];
	const uint8_t *p;

	if (injected(sp))
		return false;
	p = view(sp, addr, n);
	if (!p) {
		if (copy(sp, addr, bytes, n) != n)
			return false;
		p = bytes;
	}
	memcpy(ret, p, n);
	return true;
}

bool space_u8(struct space *sp, vaddr addr, uint8_t *ret)
{
	return word(sp, addr, ret, sizeof(*ret));
}

bool space_u16(struct space *sp, vaddr addr, uint16_t *ret)
{
	return word(sp, addr, ret, sizeof(*ret));
}

bool space_u32(struct space *sp, vaddr addr, uint32_t *ret)
{
	return word(sp, addr, ret, sizeof(*ret));
}

bool space_u64(struct space *sp, vaddr addr, uint64_t *ret)
{
	return word(sp, addr, ret, sizeof(*ret));
}

bool space_word(struct space *sp, vaddr addr, uint64_t *ret)
{
	uint32_t small;

	if (sp->word == 8)
		return space_u64(sp, addr, ret);
	if (!space_u32(sp, addr, &small))
		return false;
	*ret = small;
	return true;
}

bool space_string(struct space *sp, vaddr addr, char *ret, size_t max)
{
	size_t done = 0;

	if (injected(sp))
		return false;
	while (done <= max) {
		const struct seg *seg = seg_at(sp, addr + done);
		const uint8_t *from;
		size_t i, n;

		if (!seg)
			return false;
		n = min_u64(max + 1 - done, piece(sp, seg, addr + done, 0));
		if (!n)
			return false;
		from = seg->host + (addr + done - seg->start);
		for (i = 0; i < n; i++) {
			ret[done + i] = (char)from[i];
			if (!from[i])
				return true;
		}
		done += n;
	}
	return false;
}

/* ---- what is stored ---- */

size_t space_first_run(const struct space *sp, uint64_t off)
{
	return BISECT(mid, 0, sp->n_runs, sp->runs[mid].end <= off);
}

/* Bytes of the file's [start, end) that are in a run of data. */
static uint64_t in_runs(const struct space *sp, uint64_t start, uint64_t end)
{
	uint64_t sum = 0;
	size_t i;

	if (!sp->runs)
		return end - start;
	for (i = space_first_run(sp, start);
	     i < sp->n_runs && sp->runs[i].start < end; i++)
		sum += min_u64(end, sp->runs[i].end) -
		       max_u64(start, sp->runs[i].start);
	return sum;
}

uint64_t space_bytes(const struct space *sp)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < sp->n_segs; i++)
		bytes += sp->segs[i].avail;
	return bytes;
}

uint64_t space_stored(struct space *sp, vaddr start, vaddr end)
{
	size_t i = count_starts(sp, start);
	uint64_t sum = 0;

	for (i = i ? i - 1 : 0; i < sp->n_segs; i++) {
		const struct seg *seg = &sp->segs[i];
		vaddr from = max_u64(start, seg->start);
		vaddr to = min_u64(end, seg->start + seg->stored);

		if (seg->start >= end)
			break;
		if (from < to)
			sum += in_runs(sp, seg->core_off + (from - seg->start),
				       seg->core_off + (to - seg->start));
	}
	return sum;
}

vaddr space_next_stored(struct space *sp, vaddr addr)
{
	size_t i = space_first_seg(sp, addr);
	vaddr at;

	if (i == sp->n_segs || addr <= sp->segs[i].start)
		return sp->next_stored[i];
	at = stored_in(sp, &sp->segs[i], addr);
	return at < UINT64_MAX ? at : sp->next_stored[i + 1];
}

/* ---- kinds of segments ---- */

/*
 * Who takes access from a page does not give it back.  gdb stores zeros where
 * nothing can be read, pages or not.
 */
static bool keeps_pages(const struct space *sp, const struct seg *seg)
{
	uint64_t end = seg->core_off + seg->stored;
	size_t run;

	if (!space_seg_anon(seg) || !seg->stored || !strcmp(sp->writer, "gdb"))
		return false;
	if (!sp->runs)
		return true;
	run = space_first_run(sp, seg->core_off);
	return run < sp->n_runs && sp->runs[run].start < end;
}

bool space_seg_private(const struct space *sp, const struct seg *seg)
{
	if (seg->flags & (SEG_SHARED | SEG_KERNEL))
		return false;
	if (!(seg->flags & (SEG_R | SEG_W)))
		return keeps_pages(sp, seg);
	if (seg->file == SEG_NO_FILE || seg->flags & SEG_W)
		return true;
	if (seg->file_off)
		return seg->stored;
	/* gdb stores a file's first mapping whole, written or not. */
	return seg->stored > sp->page && strcmp(sp->writer, "gdb") != 0;
}

bool space_seg_anon(const struct seg *seg)
{
	return seg->file == SEG_NO_FILE &&
	       !(seg->flags & (SEG_SHARED | SEG_KERNEL));
}

static bool heap_like(const struct seg *seg)
{
	return space_seg_anon(seg) &&
	       (seg->flags & (SEG_R | SEG_W)) == (SEG_R | SEG_W);
}

vaddr space_run_end(struct space *sp, vaddr addr)
{
	const struct seg *end = sp->segs + sp->n_segs;
	const struct seg *seg = seg_at(sp, addr);

	if (!seg || !heap_like(seg))
		return addr;
	while (seg + 1 < end && seg[1].start == seg->end && heap_like(&seg[1]))
		seg++;
	return seg->end;
}

bool space_mapped(struct space *sp, vaddr start, uint64_t bytes)
{
	const struct seg *seg = bytes ? space_seg(sp, start) : NULL;

	return !bytes || (seg && bytes <= sp->run_ends[seg - sp->segs] - start);
}

bool space_readable(struct space *sp, vaddr start, uint64_t bytes)
{
	while (bytes) {
		const struct seg *seg = space_seg(sp, start);
		uint64_t n;

		if (!seg || start - seg->start >= seg->avail)
			return false;
		n = min_u64(bytes, seg->start + seg->avail - start);
		start += n;
		bytes -= n;
	}
	return true;
}

bool space_sparse(const struct space *sp, vaddr start, vaddr end)
{
	uint64_t least = (end - start + SPARSE - 1) / SPARSE, there = 0;

	for (size_t i = space_first_seg(sp, start); i < sp->n_segs &&
	     sp->segs[i].start < end && there < least; i++) {
		const struct seg *seg = &sp->segs[i];
		vaddr from = max_u64(start, seg->start);
		vaddr to = min_u64(end, seg->start + seg->avail);

		there += from < to ? to - from : 0;
	}
	return there < least;
}

const struct module *space_module(const struct space *sp, vaddr addr)
{
	size_t lo = BISECT(mid, 0, sp->n_modules,
			   sp->modules[mid].start <= addr);

	if (!lo || addr >= sp->modules[lo - 1].end)
		return NULL;
	return &sp->modules[lo - 1];
}

const struct thread *space_thread_on(const struct space *sp, vaddr start,
				     vaddr end)
{
	size_t i;

	for (i = 0; i < sp->n_threads; i++)
		if (sp->threads[i].sp >= start && sp->threads[i].sp < end)
			return &sp->threads[i];
	return NULL;
}
