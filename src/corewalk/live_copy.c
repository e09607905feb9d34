/* SPDX-License-Identifier: MIT */
/*
 * Memory of a process into a buffer of ours.
 *
 * Read is what is resident or swapped, and nothing else: reading a page that
 * was never touched would map the page of zeros and make page tables grow.
 * The buffer has a place for every page of the segments in it; places that
 * are not written to cost nothing and read as zeros, which is what the
 * process itself would read.  process_vm_readv() would be faster for huge
 * pages, but it takes pages away from what a fork shares: a forked parent of
 * 256 MB of which it read everything had 131 MB of them to itself before and
 * 262 MB after.  pread() of /proc/PID/mem does not.
 *
 * Which bytes are stored follows what Linux does by default when it dumps
 * core (fs/coredump.c, vma_dump_size): private memory that was written to,
 * whole mappings of files with a written page, and first pages of ELF files.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/mem.h"
#include "corewalk/live.h"

enum { COPY_CHUNK = 1 << 20 };

static vaddr run_end(const struct live *lv, const struct page_run *run)
{
	return run->start + run->n * lv->sp->page;
}

/* ---- what to copy ---- */

static bool wanted(const struct live *lv, const struct page_run *run)
{
	if (run->flags & PAGE_SWAPPED)
		return !lv->options.no_swapin;
	return (run->flags & (PAGE_PRESENT | PAGE_ZERO)) == PAGE_PRESENT;
}

/* A page that is no longer what the file has, or never had a file. */
static bool is_written(const struct page_run *run)
{
	return run->flags & PAGE_SWAPPED ||
	       !(run->flags & (PAGE_FILE | PAGE_ZERO));
}

/* The part of the map's start that a core would store. */
static uint64_t stored_part(const struct live *lv, const struct live_map *map,
			    bool written)
{
	uint64_t size = map->end - map->start;

	if (map->flags & SEG_KERNEL)
		return strcmp(map->name, "[vdso]") ? 0 : size;
	if (map->flags & SEG_SHARED)
		return lv->options.all && map->flags & SEG_R ? size : 0;
	if (written || (lv->options.all && map->flags & SEG_R))
		return size;
	return map->has_file && !map->off && map->flags & SEG_R ?
		lv->sp->page : 0;
}

static void add_seg(struct live *lv, const struct live_map *map, vaddr start,
		    vaddr end, uint64_t stored, bool zeros)
{
	struct space *sp = lv->sp;
	struct seg *seg = &MEM_PUSH(sp->segs, sp->n_segs, lv->core.cap_segs);

	*seg = (struct seg){
		.start = start,
		.end = end,
		.avail = zeros ? end - start : stored,
		.stored = stored,
		.flags = map->flags,
		.file = SEG_NO_FILE,
		.why = SPACE_UNDUMPED,
	};
}

/* What was left in swap becomes segments without bytes. */
static void add_without_swap(struct live *lv, const struct live_map *map,
			     size_t run)
{
	const struct space *sp = lv->sp;
	vaddr at = map->start;

	for (; run < sp->n_pages && sp->pages[run].start < map->end; run++) {
		const struct page_run *r = &sp->pages[run];
		vaddr to = min_u64(run_end(lv, r), map->end);

		if (!(r->flags & PAGE_SWAPPED))
			continue;
		if (at < r->start)
			add_seg(lv, map, at, r->start, r->start - at, false);
		at = max_u64(at, r->start);
		add_seg(lv, map, at, to, 0, false);
		lv->sp->segs[lv->sp->n_segs - 1].why = SPACE_SWAPPED;
		at = to;
	}
	if (at < map->end)
		add_seg(lv, map, at, map->end, map->end - at, false);
}

/* The segments of one mapping; *run is its first run, then that behind it. */
static void plan_map(struct live *lv, const struct live_map *map, size_t *run)
{
	const struct space *sp = lv->sp;
	bool written = false, swapped = false;
	uint64_t stored;
	size_t i;

	while (*run < sp->n_pages &&
	       run_end(lv, &sp->pages[*run]) <= map->start)
		++*run;
	for (i = *run; i < sp->n_pages && sp->pages[i].start < map->end; i++) {
		written |= is_written(&sp->pages[i]);
		swapped |= sp->pages[i].flags & PAGE_SWAPPED;
	}
	stored = stored_part(lv, map, written);
	if (swapped && lv->options.no_swapin &&
	    stored == map->end - map->start)
		add_without_swap(lv, map, *run);
	else
		add_seg(lv, map, map->start, map->end, stored,
			/* Never written and no file's: zeros. */
			!stored && !map->has_file &&
			!(map->flags & (SEG_KERNEL | SEG_SHARED)) &&
			map->flags & (SEG_R | SEG_W));
}

uint64_t live_seg_wanted(const struct live *lv, const struct seg *seg,
			 size_t *run)
{
	const struct space *sp = lv->sp;
	vaddr end = seg->start + seg->stored;
	uint64_t sum = 0;
	size_t i;

	while (*run < sp->n_pages &&
	       run_end(lv, &sp->pages[*run]) <= seg->start)
		++*run;
	for (i = *run; i < sp->n_pages && sp->pages[i].start < end; i++)
		if (wanted(lv, &sp->pages[i]))
			sum += min_u64(run_end(lv, &sp->pages[i]), end) -
			       max_u64(sp->pages[i].start, seg->start);
	return sum;
}

void live_plan(struct live *lv)
{
	size_t i, run = 0;

	lv->sp->n_segs = 0;
	lv->to_copy = lv->copied = lv->unreadable = 0;
	for (i = 0; i < lv->n_maps; i++)
		plan_map(lv, &lv->maps[i], &run);
	run = 0;
	for (i = 0; i < lv->sp->n_segs; i++)
		lv->to_copy += live_seg_wanted(lv, &lv->sp->segs[i], &run);
}

/* ---- copying ---- */

/* Where bytes for the buffer are read to. */
struct copier {
	struct live *lv;
	int mem_fd;
	uint8_t *bounce;	/* for a buffer in a file; else NULL */
	struct err *err;
};

static bool put_file(struct copier *c, uint64_t off, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t put = pwrite(c->lv->buf_fd, c->bounce + done, n - done,
				     (off_t)(off + done));

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0) {
			err_system(c->err, "%s: cannot copy memory",
				   c->lv->core.name);
			return err_hint(c->err, "Give a larger place with "
					"--tmpdir=DIR.");
		}
		done += (size_t)put;
	}
	return true;
}

/* [from, to) of the process to off in the buffer. */
static bool copy_range(struct copier *c, vaddr from, vaddr to, uint64_t off)
{
	struct live *lv = c->lv;

	while (from < to) {
		size_t want = min_u64(to - from, COPY_CHUNK);
		uint8_t *dest = c->bounce ? c->bounce : lv->buf + off;
		ssize_t got = pread(c->mem_fd, dest, want, (off_t)from);

		if (got < 0 && errno == EINTR)
			continue;
		if (!got)
			return live_lost(lv, c->err);
		if (got < 0) {
			/* One page cannot be read: go on behind it. */
			got = (ssize_t)min_u64(to - from, lv->sp->page);
			lv->unreadable += (uint64_t)got;
		} else if (c->bounce && !put_file(c, off, (size_t)got)) {
			return false;
		}
		from += (uint64_t)got;
		off += (uint64_t)got;
		lv->copied += (uint64_t)got;
		if (lv->deadline_ns && live_late(lv, c->err))
			return false;
		progress_step(lv->options.progress, lv->copied, lv->to_copy,
			      0, NULL);
	}
	return true;
}

/* Runs that lie side by side are read together. */
static bool copy_runs(struct copier *c, const struct seg *seg, size_t *run)
{
	const struct space *sp = c->lv->sp;
	vaddr end = seg->start + seg->stored;
	vaddr from = seg->start, to = seg->start;
	size_t i;

	while (*run < sp->n_pages &&
	       run_end(c->lv, &sp->pages[*run]) <= seg->start)
		++*run;
	for (i = *run; i < sp->n_pages && sp->pages[i].start < end; i++) {
		const struct page_run *r = &sp->pages[i];

		if (!wanted(c->lv, r))
			continue;
		if (r->start > to) {
			if (!copy_range(c, from, to, seg->core_off +
					(from - seg->start)))
				return false;
			from = r->start;
		}
		to = min_u64(run_end(c->lv, r), end);
	}
	return copy_range(c, from, to, seg->core_off + (from - seg->start));
}

/*
 * The vdso is the same in all processes.  Ours is read: the pages that the
 * other process has not used yet are not to become pages that it has.
 */
static bool copy_own_vdso(struct copier *c, const struct seg *seg)
{
	vaddr ours = getauxval(AT_SYSINFO_EHDR);
	struct copier own = *c;
	bool ok;

	own.mem_fd = ours ? open("/proc/self/mem", O_RDONLY | O_CLOEXEC) : -1;
	if (own.mem_fd < 0)
		return false;
	ok = copy_range(&own, ours, ours + seg->stored, seg->core_off);
	close(own.mem_fd);
	return ok;
}

static bool copy_seg(struct copier *c, const struct seg *seg, size_t *run)
{
	if (seg->flags & SEG_KERNEL && copy_own_vdso(c, seg))
		return true;
	return copy_runs(c, seg, run);
}

bool live_copy(struct live *lv, int mem_fd, struct err *err)
{
	struct copier c = { .lv = lv, .mem_fd = mem_fd, .err = err };
	size_t i, run = 0;
	bool ok = true;

	if (lv->buf_fd >= 0)
		c.bounce = mem_alloc(COPY_CHUNK);
	for (i = 0; i < lv->sp->n_segs && ok; i++)
		if (lv->sp->segs[i].stored)
			ok = copy_seg(&c, &lv->sp->segs[i], &run);
	free(c.bounce);
	return ok;
}
