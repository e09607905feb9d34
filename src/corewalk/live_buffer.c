/* SPDX-License-Identifier: MIT */
/*
 * The buffer that a process is copied into.
 *
 * Most of the time of a copy would go into pages of our own: the kernel has
 * to find and clear them.  So the buffer is made, and filled with pages,
 * while the process still runs, for what it has then.  When it stands still
 * it has changed a little: mappings have grown, come and gone.
 *
 * A *zone* is a row of mappings without a gap.  It has some room more than it
 * needs, which is address space only.  A zone that still begins where it did
 * and fits keeps its place; others get one at the end of the buffer, where
 * there is room for new ones too.
 */
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/temp.h"
#include "corewalk/live.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23	/* Linux 5.14 */
#endif

enum { HUGE_PAGE = 2 << 20 };

static const uint64_t ZONE_SLACK = MIB;
static const uint64_t TAIL_MIN = 256 * MIB;

/* ---- zones ---- */

/* The segments of the zone that begins with number i; *ret_size its bytes. */
static size_t zone_end(const struct space *sp, size_t i, uint64_t *ret_size)
{
	vaddr end = sp->segs[i].start;

	*ret_size = 0;
	for (; i < sp->n_segs && sp->segs[i].start == end; i++) {
		*ret_size += sp->segs[i].avail;
		end = sp->segs[i].end;
	}
	return i;
}

/* Large zones begin where huge pages do. */
static uint64_t zone_place(uint64_t off, uint64_t size)
{
	return size >= 2 * HUGE_PAGE ? round_up(off, HUGE_PAGE) : off;
}

/* Lay out zones of the plan; slack or not.  Returns the end of the last. */
static uint64_t make_zones(struct live *lv, bool slack)
{
	struct space *sp = lv->sp;
	uint64_t off = 0, size;
	size_t i, next;

	lv->n_zones = 0;
	for (i = 0; i < sp->n_segs; i = next) {
		uint64_t room;

		next = zone_end(sp, i, &size);
		if (!size)
			continue;
		off = zone_place(off, size);
		room = slack ? round_up(size + size / 8 + ZONE_SLACK,
					sp->page) : size;
		MEM_PUSH(lv->zones, lv->n_zones, lv->cap_zones) =
			(struct live_zone){ sp->segs[i].start, off, room };
		off += room;
	}
	return off;
}

static const struct live_zone *find_zone(const struct live *lv, vaddr start)
{
	size_t lo = BISECT(mid, 0, lv->n_zones, lv->zones[mid].start < start);

	return lo < lv->n_zones && lv->zones[lo].start == start ?
		&lv->zones[lo] : NULL;
}

/* False if the buffer has no room for the plan. */
static bool place_segs(struct live *lv)
{
	struct space *sp = lv->sp;
	uint64_t tail = lv->tail, size;
	size_t i, next;

	for (i = 0; i < sp->n_segs; i = next) {
		const struct live_zone *zone;
		uint64_t off;

		next = zone_end(sp, i, &size);
		zone = find_zone(lv, sp->segs[i].start);
		if (zone && size <= zone->room) {
			off = zone->off;
		} else {
			off = zone_place(tail, size);
			if (off > lv->buf_size || lv->buf_size - off < size)
				return false;
			tail = off + size;
		}
		for (; i < next; i++) {
			sp->segs[i].core_off = off;
			sp->segs[i].host = sp->segs[i].avail ?
				lv->buf + off : NULL;
			off += sp->segs[i].avail;
		}
	}
	return true;
}

/* ---- making it ---- */

static bool buffer_in_memory(struct live *lv)
{
	void *buf = mmap(NULL, lv->buf_size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (buf == MAP_FAILED)
		return false;
	lv->buf = buf;
	madvise(lv->buf, lv->buf_size, MADV_NOHUGEPAGE);
	return true;
}

static bool no_room(const struct live *lv, const char *dir, uint64_t room,
		    struct err *err)
{
	char need[NUM_MAX], has[NUM_MAX];

	num_format_size(need, lv->to_copy);
	num_format_size(has, room);
	err_set(err, ERR_SYSTEM, "%s: a copy of its memory takes %s; %s has "
		"%s free", lv->core.name, need, dir, has);
	return err_hint(err, "Give a larger place with --tmpdir=DIR.");
}

/* A folder in memory: what is put there counts as memory of ours. */
static bool is_in_memory(int fd)
{
	struct statfs v;

	return fstatfs(fd, &v) == 0 &&
	       (v.f_type == TMPFS_MAGIC || v.f_type == RAMFS_MAGIC);
}

static bool no_memory(const struct live *lv, const char *dir, uint64_t room,
		      struct err *err)
{
	char need[NUM_MAX], has[NUM_MAX];

	num_format_size(need, lv->to_copy);
	num_format_size(has, room);
	err_set(err, ERR_SYSTEM, "%s: a copy of its memory takes %s; heapcore "
		"may use %s of memory here, and %s is in memory too",
		lv->core.name, need, has, dir);
	return err_hint(err, "Give a place on a disk with --tmpdir=DIR, or a "
			"higher memory limit to the container.");
}

static bool buffer_in_file(struct live *lv, uint64_t memory, struct err *err)
{
	const char *dir = temp_dir(lv->options.tmpdir);
	struct statvfs v;
	uint64_t room;
	void *buf;

	lv->buf_fd = temp_file(dir);
	if (lv->buf_fd < 0)
		return err_system(err, "%s: cannot make a file in %s",
				  lv->core.name, dir);
	if (fstatvfs(lv->buf_fd, &v) == 0 &&
	    mul_ok(v.f_bavail, v.f_frsize, &room) && room < lv->to_copy)
		return no_room(lv, dir, room, err);
	if (lv->to_copy > memory / 4 * 3 && is_in_memory(lv->buf_fd))
		return no_memory(lv, dir, memory, err);
	if (ftruncate(lv->buf_fd, (off_t)lv->buf_size))
		return err_system(err, "%s: cannot copy memory into %s",
				  lv->core.name, dir);
	buf = mmap(NULL, lv->buf_size, PROT_READ, MAP_SHARED, lv->buf_fd, 0);
	if (buf == MAP_FAILED)
		return err_system(err, "%s: cannot map a copy of its memory",
				  lv->core.name);
	lv->buf = buf;
	return true;
}

/* One page more, so that there is a buffer in any case. */
static void set_size(struct live *lv, bool slack)
{
	uint64_t page = lv->sp->page;

	lv->tail = make_zones(lv, slack);
	lv->buf_size = lv->tail + page;
	if (slack)
		lv->buf_size += max_u64(TAIL_MIN,
					round_up(lv->tail / 8, HUGE_PAGE));
}

static bool new_buffer(struct live *lv, bool slack, struct err *err)
{
	uint64_t memory = live_room("");

	live_free_buffer(lv);
	set_size(lv, slack);
	if (!lv->options.on_disk && lv->to_copy <= memory / 2) {
		if (buffer_in_memory(lv))
			return true;
		/* Where address space is rationed, without slack. */
		set_size(lv, false);
		if (buffer_in_memory(lv))
			return true;
	}
	return buffer_in_file(lv, memory, err);
}

/* ---- filling it ---- */

/*
 * Pages for those of a segment that will be copied.  Dense segments get huge
 * pages; elsewhere one touched page must not cost two megabytes.
 */
static void populate(struct live *lv, const struct seg *seg, size_t *run)
{
	const struct space *sp = lv->sp;
	uint64_t dense = live_seg_wanted(lv, seg, run);
	uint8_t *host = lv->buf + seg->core_off;
	vaddr end = seg->start + seg->stored;
	size_t i;

	if (seg->stored >= 2 * HUGE_PAGE && dense / 3 >= seg->stored / 4) {
		madvise(host, seg->stored, MADV_HUGEPAGE);
		madvise(host, seg->stored, MADV_POPULATE_WRITE);
		return;
	}
	for (i = *run; i < sp->n_pages && sp->pages[i].start < end; i++) {
		vaddr from = max_u64(sp->pages[i].start, seg->start);
		vaddr to = min_u64(sp->pages[i].start +
				   sp->pages[i].n * sp->page, end);

		/* A call for each page would cost more than it saves. */
		if (from < to && to - from >= 64 * KIB)
			madvise(host + (from - seg->start), to - from,
				MADV_POPULATE_WRITE);
	}
}

bool live_buffer(struct live *lv, struct err *err)
{
	size_t i, run = 0;

	if (!new_buffer(lv, true, err))
		return false;
	if (!place_segs(lv))
		return err_set(err, ERR_SYSTEM, "%s: its memory does not fit "
			       "into a copy", lv->core.name);
	for (i = 0; i < lv->sp->n_segs && lv->buf_fd < 0; i++)
		if (lv->sp->segs[i].stored)
			populate(lv, &lv->sp->segs[i], &run);
	return true;
}

bool live_place(struct live *lv, struct err *err)
{
	if (lv->buf && place_segs(lv))
		return true;
	/* It is no longer what it was: begin anew. */
	return new_buffer(lv, false, err) &&
	       (place_segs(lv) ||
		err_set(err, ERR_SYSTEM, "%s: its memory does not fit into a "
			"copy", lv->core.name));
}

void live_free_buffer(struct live *lv)
{
	if (lv->buf)
		munmap(lv->buf, lv->buf_size);
	lv->buf = NULL;
	if (lv->buf_fd >= 0)
		close(lv->buf_fd);
	lv->buf_fd = -1;
	free(lv->zones);
	lv->zones = NULL;
	lv->n_zones = lv->cap_zones = 0;
}
