/* SPDX-License-Identifier: MIT */
/*
 * Bytes of files that a process has mapped.
 *
 * A mapping of a file of which one page was written is stored whole.  Its
 * other pages are as in the file; those that the process has not got at the
 * moment are read from there, and not through the process, which would then
 * have them.  The file is the right one if its inode is: device numbers in
 * maps are not those of stat(2) on btrfs and overlay file systems.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "corewalk/live.h"

enum { FILL_CHUNK = 1 << 20 };

/* Opens a regular file with that inode; -1. */
static int open_inode(int dir_fd, const char *path, uint64_t ino)
{
	struct stat st;
	int fd;

	/* Not even opened if it is a device: that can have effects. */
	if (fstatat(dir_fd, path, &st, 0) || !S_ISREG(st.st_mode) ||
	    st.st_ino != ino)
		return -1;
	fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK |
		    O_NOCTTY);
	if (fd >= 0 && (fstat(fd, &st) || st.st_ino != ino)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/*
 * map_files works for deleted files too, but wants CAP_CHECKPOINT_RESTORE;
 * exe wants what we have.
 */
static int open_file(const struct live *lv, const struct live_map *map)
{
	AUTO_FREE char *link = mem_printf("map_files/%llx-%llx",
					  (unsigned long long)map->start,
					  (unsigned long long)map->end);
	AUTO_FREE char *path = mem_printf("root%s", map->name);
	int fd = open_inode(lv->proc_fd, link, map->ino);

	if (fd < 0 && map->name[0] == '/')
		fd = open_inode(lv->proc_fd, path, map->ino);
	if (fd < 0)
		fd = open_inode(lv->proc_fd, "exe", map->ino);
	if (fd < 0 && map->name[0] == '/')
		fd = open_inode(AT_FDCWD, map->name, map->ino);
	return fd;
}

static const struct live_map *map_of(const struct live *lv, vaddr addr)
{
	size_t lo = BISECT(mid, 0, lv->n_maps, lv->maps[mid].start <= addr);

	return &lv->maps[lo - 1];
}

/* [from, to) of the file's mapping into the buffer; zeros behind its end. */
static bool fill_range(struct live *lv, const struct live_map *map,
		       const struct seg *seg, vaddr from, vaddr to, int fd)
{
	uint64_t off = map->off + (from - map->start);
	uint64_t at = seg->core_off + (from - seg->start);
	AUTO_FREE uint8_t *bounce = lv->buf_fd < 0 ? NULL :
		mem_alloc(FILL_CHUNK);
	uint64_t end = at + (to - from);

	while (at < end) {
		size_t want = min_u64(end - at, FILL_CHUNK);
		uint8_t *dest = bounce ? bounce : lv->buf + at;
		ssize_t got = pread(fd, dest, want, (off_t)off);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return !got;
		if (bounce && pwrite(lv->buf_fd, bounce, (size_t)got,
				     (off_t)at) != got)
			return false;
		at += (uint64_t)got;
		off += (uint64_t)got;
	}
	return true;
}

/* From the first page on that cannot be had, the segment has none. */
static void cut(struct seg *seg, vaddr from)
{
	seg->avail = seg->stored = from - seg->start;
	seg->why = SPACE_NO_FILE;
	if (!seg->avail)
		seg->host = NULL;
}

static void fill_seg(struct live *lv, struct seg *seg, size_t *run)
{
	const struct live_map *map = map_of(lv, seg->start);
	const struct space *sp = lv->sp;
	vaddr at = seg->start, end = at + seg->stored;
	bool ok = true;
	int fd = -2;

	while (*run < sp->n_pages && sp->pages[*run].start +
	       sp->pages[*run].n * sp->page <= at)
		++*run;
	for (size_t i = *run; ok && at < end; i++) {
		const struct page_run *r = i < sp->n_pages ?
			&sp->pages[i] : NULL;
		vaddr to = r ? min_u64(r->start, end) : end;

		if (at < to) {
			if (fd == -2)
				fd = open_file(lv, map);
			ok = fill_range(lv, map, seg, at, to, fd);
			if (!ok)
				cut(seg, at);
		}
		if (!r)
			break;
		at = max_u64(at, r->start + r->n * sp->page);
	}
	if (fd >= 0)
		close(fd);
}

/* A first page was only taken to see what it is. */
static void drop_if_no_elf(struct live *lv, struct seg *seg)
{
	if (seg->stored == lv->sp->page &&
	    seg->end - seg->start > seg->stored && seg->host &&
	    !(seg->flags & SEG_X) && !elf_magic(seg->host, seg->avail)) {
		seg->avail = seg->stored = 0;
		seg->host = NULL;
	}
}

void live_fill_files(struct live *lv)
{
	struct space *sp = lv->sp;
	size_t i, run = 0;

	for (i = 0; i < sp->n_segs; i++) {
		struct seg *seg = &sp->segs[i];

		if (!seg->stored || seg->flags & SEG_KERNEL ||
		    !map_of(lv, seg->start)->has_file)
			continue;
		fill_seg(lv, seg, &run);
		drop_if_no_elf(lv, seg);
	}
}

/* ---- for programs and libraries ---- */

static bool same_root(const struct live *lv)
{
	char ours[64], theirs[64];
	struct stat a, b;
	ssize_t n = readlink("/proc/self/ns/mnt", ours, sizeof(ours));
	ssize_t m = readlinkat(lv->proc_fd, "ns/mnt", theirs, sizeof(theirs));

	return n > 0 && n == m && !memcmp(ours, theirs, (size_t)n) &&
	       !stat("/", &a) && !fstatat(lv->proc_fd, "root/", &b, 0) &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

void live_set_roots(struct live *lv)
{
	size_t i, n = 0;

	lv->map_files = mem_printf("/proc/%d/map_files", (int)lv->pid);
	lv->core.map_files = lv->map_files;
	if (same_root(lv))
		return;
	lv->root = mem_printf("/proc/%d/root", (int)lv->pid);
	lv->roots = mem_alloc((lv->options.n_sysroots + 1) *
			      sizeof(*lv->roots));
	for (i = 0; i < lv->options.n_sysroots; i++)
		lv->roots[n++] = lv->options.sysroots[i];
	lv->roots[n++] = lv->root;
	lv->options.sysroots = lv->roots;
	lv->options.n_sysroots = n;
}
