/* SPDX-License-Identifier: MIT */
/*
 * Where the pages of a process are.
 *
 * PAGEMAP_SCAN (Linux 6.7, Documentation/admin-guide/mm/pagemap.rst) yields
 * runs, passes over reservations, and knows huge pages and the page of zeros.
 * Older kernels have only the table of 8 bytes a page, which knows neither;
 * root sees page frame numbers in it, and so the one of the page of zeros.
 * The headers of older systems lack the request: it is declared here.
 *
 * Whether a private page is shared with a forked relative only the table
 * says.  It is asked for pages of no file only, and once for a huge page.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "corewalk/live.h"

/* Linux, include/uapi/linux/fs.h, 6.7. */
struct scan_region {
	uint64_t start, end, categories;
};

struct scan_arg {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages,
		 category_inverted, category_mask, category_anyof_mask,
		 return_mask;
};

#define SCAN_REQUEST _IOWR('f', 16, struct scan_arg)

enum {
	SCAN_FILE = 1 << 2,
	SCAN_PRESENT = 1 << 3,
	SCAN_SWAPPED = 1 << 4,
	SCAN_PFNZERO = 1 << 5,
	SCAN_HUGE = 1 << 6,
	SCAN_GUARD = 1 << 8,	/* Linux 6.15 */

	SCAN_REGIONS = 1 << 12,
	ENTRIES = 1 << 16,	/* of the table, read at once */
};

static const uint64_t ENTRY_PRESENT = UINT64_C(1) << 63;
static const uint64_t ENTRY_SWAPPED = UINT64_C(1) << 62;
static const uint64_t ENTRY_FILE = UINT64_C(1) << 61;
static const uint64_t ENTRY_GUARD = UINT64_C(1) << 58;
static const uint64_t ENTRY_EXCLUSIVE = UINT64_C(1) << 56;
static const uint64_t ENTRY_FRAME = (UINT64_C(1) << 55) - 1;

static uint64_t page_size(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

struct runs {
	struct page_run *items;
	size_t n, cap;
	uint64_t page;
};

static void add_run(struct runs *r, vaddr start, uint64_t n, uint32_t flags)
{
	struct page_run *last = r->n ? &r->items[r->n - 1] : NULL;

	if (last && last->flags == flags &&
	    last->start + last->n * r->page == start &&
	    n <= UINT32_MAX - last->n) {
		last->n += (uint32_t)n;
		return;
	}
	while (n) {
		uint32_t part = (uint32_t)min_u64(n, UINT32_MAX);

		MEM_PUSH(r->items, r->n, r->cap) =
			(struct page_run){ start, part, flags };
		start += part * r->page;
		n -= part;
	}
}

/* ---- scanning ---- */

static uint32_t scan_flags(uint64_t categories)
{
	uint32_t flags = 0;

	/* A guard is kept where a swap entry would be, and is none. */
	if (categories & SCAN_GUARD)
		return 0;
	if (categories & SCAN_SWAPPED)
		return PAGE_SWAPPED;
	flags |= PAGE_PRESENT;
	flags |= categories & SCAN_PFNZERO ? PAGE_ZERO :
		 categories & SCAN_FILE ? PAGE_FILE : 0;
	flags |= categories & SCAN_HUGE ? PAGE_HUGE : 0;
	return flags;
}

/* A kernel that does not know guards refuses to be asked about them. */
static long scan(int fd, struct scan_arg *arg)
{
	long n = ioctl(fd, SCAN_REQUEST, arg);

	if (n < 0 && errno == EINVAL && arg->return_mask & SCAN_GUARD) {
		arg->return_mask &= ~(uint64_t)SCAN_GUARD;
		n = ioctl(fd, SCAN_REQUEST, arg);
	}
	return n;
}

vaddr live_pages_end(const struct live_map *maps, size_t n)
{
	/* The last one may be the kernel's, at the top of everything. */
	while (n && maps[n - 1].end >> 63)
		n--;
	return n ? maps[n - 1].end : 0;
}

bool live_pages_scan(int fd, vaddr end, struct page_run **ret, size_t *ret_n)
{
	AUTO_FREE struct scan_region *vec =
		mem_alloc(SCAN_REGIONS * sizeof(*vec));
	struct runs runs = { .page = page_size() };
	struct scan_arg arg = {
		.size = sizeof(arg),
		.end = end,
		.vec = (uintptr_t)vec,
		.vec_len = SCAN_REGIONS,
		.category_anyof_mask = SCAN_PRESENT | SCAN_SWAPPED,
		.return_mask = SCAN_PRESENT | SCAN_SWAPPED | SCAN_FILE |
			       SCAN_PFNZERO | SCAN_HUGE | SCAN_GUARD,
	};

	while (arg.start < end) {
		long i, n = scan(fd, &arg);

		if (n < 0 || arg.walk_end <= arg.start) {
			if (n < 0 && errno == EINTR)
				continue;
			free(runs.items);
			return false;
		}
		for (i = 0; i < n; i++) {
			uint32_t flags = scan_flags(vec[i].categories);

			if (flags)
				add_run(&runs, vec[i].start,
					(vec[i].end - vec[i].start) /
					runs.page, flags);
		}
		arg.start = arg.walk_end;
	}
	/*
	 * When its vector fills up, the kernel can tell the last run before
	 * that at the very end, behind all others (seen with 6.18); and of a
	 * process that runs it can tell a page twice.
	 */
	*ret = runs.items;
	*ret_n = pages_sort(runs.items, runs.n, runs.page);
	return true;
}

/* ---- reading the table ---- */

/* n entries from addr on; how many there were, or -1. */
static ssize_t read_entries(int fd, vaddr addr, uint64_t page, uint64_t *buf,
			    size_t n)
{
	ssize_t got;

	do
		got = pread(fd, buf, n * sizeof(*buf),
			    (off_t)(addr / page * sizeof(*buf)));
	while (got < 0 && errno == EINTR);
	return got < 0 ? -1 : got / (ssize_t)sizeof(*buf);
}

/* The frame of the page of zeros, as one of our own shows it; 0 unknown. */
static uint64_t zero_frame(uint64_t page)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	volatile uint8_t *p = mmap(NULL, page, PROT_READ, MAP_PRIVATE |
				   MAP_ANONYMOUS, -1, 0);
	uint64_t entry = 0;

	if (p != MAP_FAILED && fd >= 0) {
		(void)*p;
		if (read_entries(fd, (uintptr_t)p, page, &entry, 1) != 1)
			entry = 0;
	}
	if (p != MAP_FAILED)
		munmap((void *)p, page);
	if (fd >= 0)
		close(fd);
	return entry & ENTRY_FRAME;
}

static uint32_t entry_flags(uint64_t entry, uint64_t zero)
{
	if (entry & ENTRY_GUARD)
		return 0;
	if (entry & ENTRY_SWAPPED)
		return PAGE_SWAPPED;
	if (!(entry & ENTRY_PRESENT))
		return 0;
	if (zero && (entry & ENTRY_FRAME) == zero)
		return PAGE_PRESENT | PAGE_ZERO;
	return PAGE_PRESENT | (entry & ENTRY_FILE ? PAGE_FILE : 0);
}

static bool read_map(int fd, const struct live_map *map, uint64_t zero,
		     uint64_t *buf, struct runs *runs)
{
	vaddr at = map->start;

	while (at < map->end) {
		uint64_t want = min_u64((map->end - at) / runs->page, ENTRIES);
		ssize_t i, n = read_entries(fd, at, runs->page, buf, want);

		if (n < 0)
			return false;
		if (!n)
			break;
		for (i = 0; i < n; i++, at += runs->page) {
			uint32_t flags = entry_flags(buf[i], zero);

			if (flags)
				add_run(runs, at, 1, flags);
		}
	}
	return true;
}

bool live_pages_read(int fd, const struct live_map *maps, size_t n_maps,
		     struct page_run **ret, size_t *ret_n)
{
	AUTO_FREE uint64_t *buf = mem_alloc(ENTRIES * sizeof(*buf));
	struct runs runs = { .page = page_size() };
	uint64_t zero = zero_frame(runs.page);
	size_t i;

	for (i = 0; i < n_maps; i++) {
		if (maps[i].end >> 63 ||
		    read_map(fd, &maps[i], zero, buf, &runs))
			continue;
		free(runs.items);
		return false;
	}
	*ret = runs.items;
	*ret_n = runs.n;
	return true;
}

/* ---- shared with a relative ---- */

/* Can a page of this run be exclusive or not? */
static bool may_be_shared(const struct page_run *run)
{
	return (run->flags & (PAGE_PRESENT | PAGE_FILE | PAGE_ZERO)) ==
	       PAGE_PRESENT;
}

/* A huge page is shared as a whole; small pages one by one. */
static void split_run(int fd, const struct page_run *run, uint64_t *buf,
		      struct runs *to)
{
	uint64_t step = run->flags & PAGE_HUGE ? 2 * MIB / to->page : 1;
	uint64_t i, k, at = 0;

	while (at < run->n) {
		uint64_t left = run->n - at;
		uint64_t want = step > 1 ? 1 : min_u64(left, ENTRIES);
		vaddr addr = run->start + at * to->page;
		ssize_t got = read_entries(fd, addr, to->page, buf, want);

		if (got <= 0) {
			add_run(to, addr, left, run->flags);
			return;
		}
		for (i = 0; i < (uint64_t)got; i++, at += k) {
			uint32_t shared = buf[i] & ENTRY_PRESENT &&
				!(buf[i] & ENTRY_EXCLUSIVE) ? PAGE_SHARED : 0;

			/* Up to the next huge page, wherever this begins. */
			addr = run->start + at * to->page;
			k = step > 1 ? step - addr / to->page % step : 1;
			k = min_u64(k, run->n - at);
			add_run(to, addr, k, run->flags | shared);
		}
	}
}

/* Marks private pages that a relative shares; splits runs where needed. */
static void live_pages_shared(int fd, struct page_run **pages, size_t *n)
{
	AUTO_FREE uint64_t *buf = mem_alloc(ENTRIES * sizeof(*buf));
	struct runs to = { .page = page_size() };
	size_t i;

	for (i = 0; i < *n; i++) {
		const struct page_run *run = &(*pages)[i];

		if (may_be_shared(run))
			split_run(fd, run, buf, &to);
		else
			add_run(&to, run->start, run->n, run->flags);
	}
	free(*pages);
	*pages = to.items;
	*n = to.n;
}

/* ---- together ---- */

bool live_pages(struct live *lv, struct err *err)
{
	struct space *sp = lv->sp;
	vaddr end = live_pages_end(lv->maps, lv->n_maps);
	int fd = lv->pagemap_fd;

	if (!live_pages_scan(fd, end, &sp->pages, &sp->n_pages) &&
	    !live_pages_read(fd, lv->maps, lv->n_maps, &sp->pages,
			     &sp->n_pages))
		return live_refused(lv, "cannot read pagemap", errno, err);
	if (!sp->n_pages)
		return live_lost(lv, err);
	live_pages_shared(fd, &sp->pages, &sp->n_pages);
	return true;
}
