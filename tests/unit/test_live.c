/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>

#include "corewalk/live.h"
#include "corewalk/pages.h"
#include "corewalk/target.h"
#include "unit/check.h"
#include "unit/live_child.h"

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

enum { PAGE = 4096 };

/* Its shadow is a mapping of 16 TB. */
#if defined(__has_feature) && !defined(__SANITIZE_ADDRESS__)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
static const bool sanitized = true;
#else
static const bool sanitized = false;
#endif

/* A pause may be long where others have the processor. */
static const struct target_options no_options = { .max_pause_s = 600 };

static struct space *open_child(const struct child *c,
				const struct target_options *options)
{
	struct err err = { .kind = ERR_NONE };
	struct space *sp = target_open_live((uint32_t)c->pid, options, &err);

	if (!sp)
		printf("# %s\n", err.msg);
	return sp;
}

static struct residency res(struct space *sp, vaddr start, uint64_t size)
{
	struct residency r;

	space_residency(sp, start, start + size, &r);
	return r;
}

/* ---- the zoo: one mapping of each kind ---- */

enum {
	Z_READY, Z_MIXED, Z_DONTDUMP, Z_SHARED, Z_CLEAN_FILE, Z_DIRTY_FILE,
	Z_SHARED_FILE, Z_RESERVED, Z_HIDDEN, Z_RWX, Z_MEMFD, Z_BEYOND_EOF,
	Z_HUGE, Z_FREED, Z_UNTOUCHED, Z_GUARDED, Z_TLS, Z_TID, Z_N
};

static uint8_t *zoo_map(size_t size, int prot, int flags, int fd)
{
	uint8_t *p = mmap(NULL, size, prot, flags |
			  (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);

	if (p == MAP_FAILED)
		_exit(1);
	return p;
}

static void *zoo_thread(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static int zoo_file(size_t size)
{
	char path[] = "/tmp/heapcore-test.XXXXXX";
	int fd = mkstemp(path);
	size_t i;

	unlink(path);
	for (i = 0; i < size / 8; i++) {
		uint64_t word = 0xf11e0000 + i;

		if (write(fd, &word, 8) != 8)
			_exit(1);
	}
	return fd;
}

/* 16 pages untouched, 16 written with zeros, 16 only read, 16 written. */
static void zoo_mixed(volatile uint64_t *words)
{
	volatile uint8_t *p = zoo_map(64 * PAGE, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE, -1);
	int i;

	madvise((void *)p, 64 * PAGE, MADV_NOHUGEPAGE);
	for (i = 16; i < 64; i++) {
		if (i < 32)
			p[i * PAGE] = 0;
		else if (i < 48)
			(void)p[i * PAGE];
		else
			p[i * PAGE] = (uint8_t)i;
	}
	words[Z_MIXED] = (uintptr_t)p;
}

static void zoo_files(volatile uint64_t *words)
{
	int fd = zoo_file(16 * PAGE), rw = PROT_READ | PROT_WRITE;
	volatile uint8_t *p = zoo_map(16 * PAGE, rw, MAP_PRIVATE, fd);

	(void)p[0];
	words[Z_CLEAN_FILE] = (uintptr_t)p;
	p = zoo_map(16 * PAGE, rw, MAP_PRIVATE, fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	madvise((void *)p, 16 * PAGE, MADV_RANDOM);
	p[3 * PAGE] = 77;
	words[Z_DIRTY_FILE] = (uintptr_t)p;
	p = zoo_map(16 * PAGE, rw, MAP_SHARED, fd);
	p[PAGE] = p[PAGE];
	words[Z_SHARED_FILE] = (uintptr_t)p;
	p = zoo_map(32 * PAGE, rw, MAP_PRIVATE, fd);
	p[8] = 9;
	words[Z_BEYOND_EOF] = (uintptr_t)p;
}

static void zoo_huge(volatile uint64_t *words)
{
	uintptr_t p = (uintptr_t)zoo_map(10 << 20, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE, -1);

	p = (p + (2 << 20) - 1) & ~(uintptr_t)((2 << 20) - 1);
	madvise((void *)p, 8 << 20, MADV_HUGEPAGE);
	*(volatile uint8_t *)p = 1;
	*(volatile uint8_t *)(p + (4 << 20)) = 1;
	words[Z_HUGE] = p;
}

static void zoo(volatile uint64_t *words)
{
	int rw = PROT_READ | PROT_WRITE, fd, i;
	pthread_t thread;
	uint8_t *p;

	zoo_mixed(words);
	p = zoo_map(8 * PAGE, rw, MAP_PRIVATE, -1);
	madvise(p, 8 * PAGE, MADV_DONTDUMP);
	memset(p, 0xdd, 8 * PAGE);
	words[Z_DONTDUMP] = (uintptr_t)p;
	p = zoo_map(8 * PAGE, rw, MAP_SHARED, -1);
	memset(p, 0x55, 4 * PAGE);
	words[Z_SHARED] = (uintptr_t)p;
	zoo_files(words);
	words[Z_RESERVED] = (uintptr_t)zoo_map(64 << 20, PROT_NONE,
					       MAP_PRIVATE | MAP_NORESERVE,
					       -1);
	p = zoo_map(8 * PAGE, rw, MAP_PRIVATE, -1);
	memset(p, 0x88, 8 * PAGE);
	mprotect(p, 8 * PAGE, PROT_NONE);
	words[Z_HIDDEN] = (uintptr_t)p;
	p = zoo_map(4 * PAGE, rw | PROT_EXEC, MAP_PRIVATE, -1);
	memset(p, 0xc3, 4 * PAGE);
	words[Z_RWX] = (uintptr_t)p;
	fd = memfd_create("zoo", MFD_CLOEXEC);
	if (ftruncate(fd, 8 * PAGE))
		_exit(1);
	p = zoo_map(8 * PAGE, rw, MAP_SHARED, fd);
	memset(p, 1, 2 * PAGE);
	words[Z_MEMFD] = (uintptr_t)p;
	zoo_huge(words);
	p = zoo_map(32 * PAGE, rw, MAP_PRIVATE, -1);
	memset(p, 0xfe, 32 * PAGE);
	madvise(p, 16 * PAGE, MADV_DONTNEED);
	madvise(p + 16 * PAGE, 16 * PAGE, MADV_FREE);
	words[Z_FREED] = (uintptr_t)p;
	words[Z_UNTOUCHED] = (uintptr_t)zoo_map(1 << 20, rw, MAP_PRIVATE, -1);
	p = zoo_map(8 * PAGE, rw, MAP_PRIVATE, -1);
	memset(p, 1, 8 * PAGE);
	/* MADV_GUARD_INSTALL, Linux 6.13. */
	words[Z_GUARDED] = madvise(p + PAGE, PAGE, 102) ? 0 : (uintptr_t)p;
	for (i = 0; i < 3; i++)
		pthread_create(&thread, NULL, zoo_thread, NULL);
	words[Z_TLS] = (uint64_t)pthread_self();
	words[Z_TID] = (uint64_t)getpid();
}

TEST(zoo_pages_are_where_they_are)
{
	struct child c;
	struct space *sp;
	struct residency r;

	child_start(&c, zoo);
	sp = open_child(&c, &no_options);
	if (!CHECK(sp))
		return;
	CHECK(space_pages_known(sp));
	r = res(sp, c.words[Z_MIXED], 16 * PAGE);
	CHECK_U64(r.absent, 16 * PAGE);
	r = res(sp, c.words[Z_MIXED] + 16 * PAGE, 16 * PAGE);
	CHECK_U64(r.resident, 16 * PAGE);
	r = res(sp, c.words[Z_MIXED] + 32 * PAGE, 16 * PAGE);
	CHECK_U64(r.zero + r.resident, 16 * PAGE);
	r = res(sp, c.words[Z_MIXED] + 48 * PAGE + 100, 15 * PAGE);
	CHECK_U64(r.resident, 15 * PAGE);
	CHECK_U64(space_stored(sp, c.words[Z_MIXED],
			       c.words[Z_MIXED] + 64 * PAGE) % PAGE, 0);
	r = res(sp, c.words[Z_RESERVED], 64 << 20);
	CHECK_U64(r.absent, 64 << 20);
	r = res(sp, c.words[Z_HIDDEN], 8 * PAGE);
	CHECK_U64(r.resident, 8 * PAGE);
	r = res(sp, c.words[Z_FREED], 32 * PAGE);
	CHECK_U64(r.absent, 16 * PAGE);
	CHECK_U64(r.resident, 16 * PAGE);
	r = res(sp, c.words[Z_DIRTY_FILE] + 3 * PAGE, PAGE);
	CHECK_U64(r.resident - r.file, PAGE);
	r = res(sp, c.words[Z_HUGE], 8 << 20);
	CHECK_U64(r.resident + r.absent, 8 << 20);
	CHECK_U64(r.resident, r.huge ? r.huge : 2 * PAGE);
	space_close(sp);
	child_end(&c);
}

/* Bytes [addr, addr + n) all have that value. */
static bool all_bytes(struct space *sp, vaddr addr, uint64_t n, uint8_t value)
{
	const uint8_t *p = space_view(sp, addr, n);
	uint64_t i;

	for (i = 0; p && i < n; i++)
		if (p[i] != value)
			return false;
	return p != NULL;
}

static void check_zoo_bytes(const struct child *c, struct space *sp)
{
	uint64_t word = 0;

	CHECK(all_bytes(sp, c->words[Z_MIXED], 48 * PAGE, 0));
	CHECK(all_bytes(sp, c->words[Z_MIXED] + 50 * PAGE, 1, 50));
	CHECK(all_bytes(sp, c->words[Z_DONTDUMP], 8 * PAGE, 0xdd));
	CHECK(all_bytes(sp, c->words[Z_HIDDEN], 8 * PAGE, 0x88));
	CHECK(space_seg_private(sp, space_seg(sp, c->words[Z_HIDDEN])));
	CHECK(!space_seg_private(sp, space_seg(sp, c->words[Z_RESERVED])));
	CHECK(all_bytes(sp, c->words[Z_RWX], 4 * PAGE, 0xc3));
	CHECK(all_bytes(sp, c->words[Z_FREED], 16 * PAGE, 0));
	CHECK(all_bytes(sp, c->words[Z_UNTOUCHED], 1 << 20, 0));
	CHECK(all_bytes(sp, c->words[Z_HUGE] + PAGE, PAGE, 0));
	CHECK(space_why(sp, c->words[Z_SHARED]) == SPACE_UNDUMPED);
	CHECK(space_why(sp, c->words[Z_RESERVED]) == SPACE_UNDUMPED);
	/* Written, and unwritten pages that come from the file. */
	CHECK(all_bytes(sp, c->words[Z_DIRTY_FILE] + 3 * PAGE, 1, 77));
	CHECK(space_u64(sp, c->words[Z_DIRTY_FILE] + 9 * PAGE, &word));
	CHECK_U64(word, 0xf11e0000 + 9 * PAGE / 8);
	CHECK(space_u64(sp, c->words[Z_BEYOND_EOF] + 15 * PAGE, &word));
	CHECK_U64(word, 0xf11e0000 + 15 * PAGE / 8);
}

/* Of a file less may come than was asked for; of 2 GB and more it does. */
ssize_t pread(int fd, void *buf, size_t n, off_t off)
{
	struct stat st;

	if (!fstat(fd, &st) && st.st_size)
		n = min_u64(n, 1000);
	return syscall(SYS_pread64, fd, buf, n, off);
}

TEST(zoo_bytes_are_right)
{
	struct target_options on_disk = { .on_disk = true };
	struct child c;
	struct space *sp;

	child_start(&c, zoo);
	sp = open_child(&c, &no_options);
	if (CHECK(sp))
		check_zoo_bytes(&c, sp);
	space_close(sp);
	/* No file may have 16 TB. */
	if (!sanitized) {
		sp = open_child(&c, &on_disk);
		if (CHECK(sp))
			check_zoo_bytes(&c, sp);
		space_close(sp);
	}
	child_end(&c);
}

TEST(zoo_is_described)
{
	struct target_options all = { .all = true };
	struct child c;
	struct space *sp;
	const struct seg *seg;

	child_start(&c, zoo);
	sp = open_child(&c, &no_options);
	if (!CHECK(sp))
		return;
	CHECK_STR(sp->kind, "process");
	CHECK_U64(sp->pid, (uint64_t)c.pid);
	CHECK_STR(sp->program, "test_live");
	CHECK_U64(sp->n_threads, 4);
	CHECK_U64(sp->threads[0].tid, c.words[Z_TID]);
	CHECK_U64(sp->threads[0].tls, c.words[Z_TLS]);
	CHECK(space_seg(sp, sp->threads[0].sp));
	CHECK(sp->threads[1].sp && sp->threads[3].sp);
	CHECK(sp->stopped_s > 0 && !sp->torn);
	CHECK(sp->n_modules >= 2 && sp->modules[0].build_id_len);
	seg = space_seg(sp, c.words[Z_SHARED]);
	CHECK(seg && seg->flags & SEG_SHARED);
	seg = space_seg(sp, c.words[Z_MEMFD]);
	CHECK(seg && seg->flags & SEG_SHARED);
	/* Private, though its file is gone. */
	seg = space_seg(sp, c.words[Z_CLEAN_FILE]);
	CHECK(seg && !(seg->flags & SEG_SHARED));
	seg = space_seg(sp, c.words[Z_RWX]);
	CHECK(seg && (seg->flags & 7) == (SEG_R | SEG_W | SEG_X));
	seg = space_seg(sp, sp->at_sysinfo);
	CHECK(seg && seg->flags & SEG_KERNEL && seg->avail > 64 &&
	      elf_magic(seg->host, 4));
	space_close(sp);
	sp = open_child(&c, &all);
	if (CHECK(sp))
		CHECK(all_bytes(sp, c.words[Z_SHARED], 4 * PAGE, 0x55));
	space_close(sp);
	child_end(&c);
}

/* ---- against smaps ---- */

struct smap {
	vaddr start, end;
	uint64_t rss, swap, anon, huge;
	bool skip;
};

static size_t read_smaps(pid_t pid, struct smap *ret, size_t max)
{
	char path[64], line[1024], flags[1024];
	unsigned long long a, b;
	struct smap *m = NULL;
	size_t n = 0;
	long kb;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/smaps", (int)pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f) && n < max) {
		if (sscanf(line, "%llx-%llx %*s", &a, &b) == 2 &&
		    !strchr(strtok(strcpy(flags, line), " "), ':')) {
			m = &ret[n++];
			*m = (struct smap){ .start = a, .end = b };
			m->skip = strstr(line, "[v") != NULL;
		} else if (m && sscanf(line, "Rss: %ld", &kb) == 1) {
			m->rss = (uint64_t)kb * 1024;
		} else if (m && sscanf(line, "Swap: %ld", &kb) == 1) {
			m->swap = (uint64_t)kb * 1024;
		} else if (m && sscanf(line, "Anonymous: %ld", &kb) == 1) {
			m->anon = (uint64_t)kb * 1024;
		} else if (m && sscanf(line, "AnonHugePages: %ld", &kb) == 1) {
			m->huge = (uint64_t)kb * 1024;
		}
	}
	if (f)
		fclose(f);
	return n;
}

enum { MAX_SMAPS = 4096 };

/*
 * Opens it at a moment when it stays as it is: the kernel may take pages away
 * at any time, when memory is short.
 */
static struct space *open_settled(const struct child *c,
				  const struct target_options *options)
{
	static struct smap before[MAX_SMAPS], after[MAX_SMAPS];
	struct space *sp = NULL;
	int i;

	for (i = 0; i < 20; i++) {
		size_t n = read_smaps(c->pid, before, MAX_SMAPS);

		space_close(sp);
		sp = open_child(c, options);
		if (!sp || (read_smaps(c->pid, after, MAX_SMAPS) == n &&
			    !memcmp(before, after, n * sizeof(*before))))
			break;
	}
	return sp;
}

static void check_smaps(const struct child *c, struct space *sp)
{
	static struct smap maps[MAX_SMAPS];
	size_t i, n = read_smaps(c->pid, maps, MAX_SMAPS);
	const struct seg *seg;
	struct residency r;

	CHECK(n > 20);
	for (i = 0; i < n; i++) {
		const struct smap *m = &maps[i];

		if (m->skip)
			continue;
		seg = space_seg(sp, m->start);
		if (!CHECK(seg))
			continue;
		r = res(sp, m->start, m->end - m->start);
		CHECK_U64(r.resident, m->rss);
		CHECK_U64(r.swapped, m->swap);
		CHECK_U64(r.resident + r.swapped + r.zero + r.absent,
			  m->end - m->start);
		if (seg->flags & SEG_SHARED)
			continue;
		CHECK_U64(r.resident - r.file, m->anon);
		CHECK_U64(r.huge, m->huge);
	}
}

TEST(zoo_agrees_with_smaps)
{
	struct child c;
	struct space *sp;

	child_start(&c, zoo);
	sp = open_settled(&c, &no_options);
	if (CHECK(sp))
		check_smaps(&c, sp);
	space_close(sp);
	child_end(&c);
}

TEST(guards_are_absent)
{
	struct child c;
	struct space *sp;
	struct residency r;

	child_start(&c, zoo);
	if (!c.words[Z_GUARDED]) {
		child_end(&c);
		SKIP("no MADV_GUARD_INSTALL");
	}
	sp = open_child(&c, &no_options);
	if (CHECK(sp)) {
		r = res(sp, c.words[Z_GUARDED], 8 * PAGE);
		CHECK_U64(r.resident, 7 * PAGE);
		CHECK_U64(r.swapped, 0);
		CHECK_U64(r.absent, PAGE);
		CHECK(all_bytes(sp, c.words[Z_GUARDED] + 2 * PAGE, PAGE, 1));
	}
	space_close(sp);
	child_end(&c);
}

/* ---- the two ways to ask for pages ---- */

static void forget(struct page_run *runs, size_t *n, uint32_t flags)
{
	size_t i;

	for (i = 0; i < *n; i++)
		runs[i].flags &= ~flags;
	*n = pages_join(runs, *n, PAGE);
}

/* False if there is no PAGEMAP_SCAN. */
static bool compare_means(pid_t pid, size_t at_least)
{
	struct page_run *a = NULL, *b = NULL;
	struct live_map *maps = NULL;
	size_t i, n_a = 0, n_b = 0, n_maps = 0;
	char path[64];
	int dir, fd;
	bool ok;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	dir = open(path, O_RDONLY | O_DIRECTORY);
	fd = openat(dir, "pagemap", O_RDONLY);
	CHECK(live_read_maps(dir, &maps, &n_maps));
	CHECK(live_pages_read(fd, maps, n_maps, &b, &n_b));
	ok = live_pages_scan(fd, live_pages_end(maps, n_maps), &a, &n_a);
	/* What the table cannot tell; frames are for root only. */
	forget(a, &n_a, PAGE_HUGE | (geteuid() ? PAGE_ZERO : 0));
	forget(b, &n_b, geteuid() ? PAGE_ZERO : 0);
	if (ok && CHECK_U64(n_a, n_b) && CHECK(n_a > at_least))
		for (i = 0; i < n_a; i++)
			if (!CHECK_U64(a[i].start, b[i].start) ||
			    !CHECK_U64(a[i].n, b[i].n) ||
			    !CHECK_U64(a[i].flags, b[i].flags))
				break;
	free(a);
	free(b);
	live_free_maps(maps, n_maps);
	close(fd);
	close(dir);
	return ok;
}

TEST(scan_and_table_agree)
{
	struct child c;
	bool ok;

	if (sanitized)
		SKIP("the page table of a sanitizer's shadow is too large");
	child_start(&c, zoo);
	ok = compare_means(c.pid, 30);
	child_end(&c);
	if (!ok)
		SKIP("no PAGEMAP_SCAN");
}

/* Every other page, and more runs than are asked for at once. */
static void striped(volatile uint64_t *words)
{
	size_t i, n = 10000;
	volatile uint8_t *p = zoo_map(n * PAGE, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE, -1);

	madvise((void *)p, n * PAGE, MADV_NOHUGEPAGE);
	for (i = 0; i < n; i += 2)
		p[i * PAGE] = 1;
	words[1] = (uintptr_t)p;
}

TEST(many_runs)
{
	struct child c;
	struct space *sp;
	bool ok;

	if (sanitized)
		SKIP("the page table of a sanitizer's shadow is too large");
	child_start(&c, striped);
	ok = compare_means(c.pid, 5000);
	sp = open_settled(&c, &no_options);
	if (CHECK(sp)) {
		check_smaps(&c, sp);
		CHECK_U64(res(sp, c.words[1], 10000 * PAGE).resident,
			  5000 * PAGE);
	}
	space_close(sp);
	child_end(&c);
	if (!ok)
		SKIP("no PAGEMAP_SCAN");
}

/* ---- nothing is disturbed ---- */

static void big(volatile uint64_t *words)
{
	int rw = PROT_READ | PROT_WRITE;
	uint8_t *p = zoo_map(256 << 20, rw, MAP_PRIVATE | MAP_NORESERVE, -1);

	madvise(p, 256 << 20, MADV_NOHUGEPAGE);
	words[1] = (uintptr_t)p;
	p = zoo_map(32 << 20, rw, MAP_PRIVATE, -1);
	madvise(p, 32 << 20, MADV_NOHUGEPAGE);
	memset(p, 7, 32 << 20);
}

TEST(reading_leaves_no_trace)
{
	static const char *const keys[] = { "VmRSS", "VmPTE", "VmSwap" };
	long before[3], after[3];
	struct child c;
	struct space *sp;
	int i;

	child_start(&c, big);
	for (i = 0; i < 3; i++)
		before[i] = child_number(c.pid, "status", keys[i]);
	sp = open_child(&c, &no_options);
	CHECK(sp);
	for (i = 0; i < 3; i++)
		after[i] = child_number(c.pid, "status", keys[i]);
	CHECK(before[0] > 32 << 10);
	for (i = 0; i < 3; i++)
		CHECK_NEAR((double)after[i], (double)before[i],
			   (double)before[i] / 100 + (i == 1 ? 4 : 0));
	space_close(sp);
	child_end(&c);
}

/* A parent of 64 MB and the child that shares them. */
static void forker(volatile uint64_t *words)
{
	uint8_t *p = zoo_map(64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE,
			     -1);
	pid_t pid;

	madvise(p, 64 << 20, MADV_NOHUGEPAGE);
	memset(p, 7, 64 << 20);
	words[1] = (uintptr_t)p;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	words[2] = (uint64_t)pid;
}

TEST(shared_pages_stay_shared)
{
	long pss[2], pss_after[2];
	struct child c;
	struct space *sp;
	struct residency r;
	pid_t pids[2];
	int i;

	child_start(&c, forker);
	pids[0] = c.pid;
	pids[1] = (pid_t)c.words[2];
	CHECK(child_wait(pids[1], "S"));
	for (i = 0; i < 2; i++)
		pss[i] = child_number(pids[i], "smaps_rollup", "Pss");
	for (i = 0; i < 2; i++) {
		struct err err;

		sp = target_open_live((uint32_t)pids[i], &no_options, &err);
		if (!CHECK(sp))
			continue;
		r = res(sp, c.words[1], 64 << 20);
		CHECK_U64(r.resident, 64 << 20);
		CHECK_U64(r.shared, 64 << 20);
		space_close(sp);
	}
	for (i = 0; i < 2; i++) {
		pss_after[i] = child_number(pids[i], "smaps_rollup", "Pss");
		CHECK(pss[i] > 32 << 10 && pss[i] < 48 << 10);
		CHECK_NEAR((double)pss_after[i], (double)pss[i],
			   (double)pss[i] / 100);
	}
	kill(pids[1], SIGKILL);
	child_end(&c);
}

static void swapped(volatile uint64_t *words)
{
	uint8_t *p = zoo_map(8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE,
			     -1);

	madvise(p, 8 << 20, MADV_NOHUGEPAGE);
	memset(p, 9, 8 << 20);
	madvise(p + (1 << 20), 4 << 20, MADV_PAGEOUT);
	words[1] = (uintptr_t)p;
}

/*
 * A machine without swap space gets a little for as long as a test needs it.
 * False where that is not allowed.
 */
static bool swap_file(const char *path)
{
	char command[500];

	unlink(path);
	snprintf(command, sizeof(command),
		 "PATH=$PATH:/usr/sbin:/sbin; umask 077; "
		 "dd if=/dev/zero of='%s' bs=1M count=32 2>/dev/null && "
		 "mkswap '%s' >/dev/null 2>&1", path, path);
	return !system(command) && !swapon(path, 0);
}

TEST(swap_is_left_alone_on_demand)
{
	struct target_options leave = { .no_swapin = true };
	const char *dir = getenv("TMPDIR");
	char path[120];
	struct child c;
	struct space *sp;
	bool made;
	long before;

	snprintf(path, sizeof(path), "%s/test_live.swap.%d",
		 dir ? dir : "/var/tmp", (int)getpid());
	made = swap_file(path);
	child_start(&c, swapped);
	before = child_number(c.pid, "status", "VmSwap");
	if (before < 4096) {
		child_end(&c);
		if (made)
			swapoff(path);
		unlink(path);
		SKIP("no swap space, and none may be made");
	}
	sp = open_settled(&c, &leave);
	if (CHECK(sp)) {
		check_smaps(&c, sp);
		CHECK(all_bytes(sp, c.words[1], 1 << 20, 9));
		CHECK(space_why(sp, c.words[1] + (2 << 20)) == SPACE_SWAPPED);
		CHECK(!space_view(sp, c.words[1] + (2 << 20), 8));
		CHECK(all_bytes(sp, c.words[1] + (5 << 20), 3 << 20, 9));
	}
	space_close(sp);
	CHECK_U64((uint64_t)child_number(c.pid, "status", "VmSwap"),
		  (uint64_t)before);
	sp = open_child(&c, &no_options);
	if (CHECK(sp)) {
		CHECK(res(sp, c.words[1], 8 << 20).swapped >= 4 << 20);
		CHECK(all_bytes(sp, c.words[1], 8 << 20, 9));
	}
	space_close(sp);
	child_end(&c);
	if (made)
		swapoff(path);
	unlink(path);
}

/* ---- it runs on ---- */

TEST(threads_run_on)
{
	struct child c;
	struct space *sp;
	int i;

	child_start(&c, zoo);
	for (i = 0; i < 20; i++) {
		sp = open_child(&c, &no_options);
		CHECK(sp);
		space_close(sp);
		CHECK_U64((uint64_t)child_held_in_the_end(c.pid, 0), 0);
	}
	child_end(&c);
}

static volatile uint64_t *counter;

static void count_signal(int signal)
{
	(void)signal;
	counter[2]++;
}

static void counting(volatile uint64_t *words)
{
	struct sigaction act = { .sa_handler = count_signal };

	counter = words;
	sigaction(SIGRTMIN + 1, &act, NULL);
}

/* A stop that finds a thread about to get a signal hands it on. */
TEST(no_signal_is_lost)
{
	struct child c;
	struct space *sp;
	pid_t sender;
	int i, sent = 3000;

	child_start(&c, counting);
	fflush(stdout);
	sender = fork();
	if (!sender) {
		for (i = 0; i < sent; i++) {
			while (kill(c.pid, SIGRTMIN + 1) && errno == EAGAIN)
				usleep(100);
			if (i % 10 == 0)
				usleep(100);
		}
		_exit(0);
	}
	for (i = 0; i < 100; i++) {
		sp = open_child(&c, &no_options);
		CHECK(sp);
		space_close(sp);
	}
	waitpid(sender, NULL, 0);
	for (i = 0; i < CHILD_PATIENCE && c.words[2] < (uint64_t)sent; i++)
		usleep(1000);
	CHECK_U64(c.words[2], (uint64_t)sent);
	child_end(&c);
}

TEST(stopped_stays_stopped)
{
	struct child c;
	struct space *sp;
	int status = 0;

	child_start(&c, zoo);
	kill(c.pid, SIGSTOP);
	waitpid(c.pid, &status, WUNTRACED);
	CHECK(WIFSTOPPED(status));
	CHECK_U64((uint64_t)child_held_in_the_end(c.pid, 4), 4);
	sp = open_child(&c, &no_options);
	CHECK(sp);
	space_close(sp);
	/* All four threads, and nobody traces them. */
	CHECK_U64((uint64_t)child_held_in_the_end(c.pid, 4), 4);
	CHECK_U64((uint64_t)child_number(c.pid, "status", "TracerPid"), 0);
	kill(c.pid, SIGCONT);
	CHECK_U64((uint64_t)child_held_in_the_end(c.pid, 0), 0);
	child_end(&c);
}

static void *leave_me(void *arg)
{
	volatile uint64_t *words = arg;
	char tid[16];

	snprintf(tid, sizeof(tid), "%d", (int)getpid());
	while (child_task_state(getpid(), tid) != 'Z')
		usleep(1000);
	words[0] = 1;
	for (;;)
		pause();
	return arg;
}

static void leaderless(volatile uint64_t *words)
{
	pthread_t thread;

	words[1] = (uintptr_t)words;
	pthread_create(&thread, NULL, leave_me, (void *)words);
	pthread_exit(NULL);
}

TEST(without_its_main_thread)
{
	struct child c;
	struct space *sp;

	child_start(&c, leaderless);
	sp = open_child(&c, &no_options);
	if (CHECK(sp)) {
		CHECK_U64(sp->n_threads, 1);
		CHECK(sp->threads[0].tid != (uint32_t)c.pid);
		CHECK(sp->n_modules > 1);
	}
	space_close(sp);
	child_end(&c);
}

/* Begins threads that end at once, all the time, by two that live on. */
static void *do_nothing(void *arg)
{
	return arg;
}

static void *restless(void *arg)
{
	volatile uint64_t *words = arg;
	pthread_t thread;

	for (;;) {
		if (!pthread_create(&thread, NULL, do_nothing, NULL))
			pthread_join(thread, NULL);
		if (++words[2] == 100)
			words[0] = 1;
	}
	return arg;
}

static void churning(volatile uint64_t *words)
{
	pthread_t thread;

	pthread_create(&thread, NULL, restless, (void *)words);
	restless((void *)words);
}

/* The same without a main thread, and by threads that follow each other. */
static void *relay(void *arg)
{
	volatile uint64_t *words = arg;
	pthread_t thread;
	int i;

	for (i = 0; i < 50; i++)
		if (!pthread_create(&thread, NULL, do_nothing, NULL))
			pthread_join(thread, NULL);
	if (++words[2] == 10)
		words[0] = 1;
	while (pthread_create(&thread, NULL, relay, arg))
		usleep(1000);
	pthread_detach(pthread_self());
	return arg;
}

static void relaying(volatile uint64_t *words)
{
	pthread_t thread;

	pthread_create(&thread, NULL, relay, (void *)words);
	pthread_exit(NULL);
}

static void often(void (*run)(volatile uint64_t *), size_t least)
{
	struct target_options options = no_options;
	struct child c;
	uint64_t before;
	int i;

	child_start(&c, run);
	for (i = 0; i < 60; i++) {
		struct space *sp;

		options.no_stop = i % 3 == 2;
		before = c.words[2];
		sp = open_child(&c, &options);
		if (!CHECK(sp))
			break;
		CHECK(sp->n_threads >= least);
		CHECK(sp->n_modules > 1);
		space_close(sp);
		while (c.words[2] == before)
			usleep(1000);
	}
	CHECK_U64((uint64_t)child_held_in_the_end(c.pid, 0), 0);
	child_end(&c);
}

TEST(threads_come_and_go)
{
	often(churning, 2);
}

TEST(threads_come_and_go_without_a_main_thread)
{
	often(relaying, 0);
}

/* vfork(2) holds the parent inside the kernel until the child is done. */
static void vforker(volatile uint64_t *words)
{
	words[0] = 1;
	if (!vfork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
}

TEST(waiting_inside_the_kernel)
{
	struct child c;
	struct space *sp;

	child_start(&c, vforker);
	CHECK(child_wait(c.pid, "D"));
	sp = open_child(&c, &no_options);
	if (CHECK(sp)) {
		CHECK_U64(sp->n_threads, 1);
		CHECK(space_seg(sp, sp->threads[0].sp));
		CHECK(sp->n_warnings == 1);
		CHECK(sp->stopped_s < 5);
	}
	space_close(sp);
	CHECK_U64((uint64_t)child_number(c.pid, "status", "TracerPid"), 0);
	child_end(&c);
}

/* ---- without stopping ---- */

static void busy(volatile uint64_t *words)
{
	words[0] = 1;
	for (;;) {
		free(malloc(100 + words[2]++ % 10000));
		if (words[2] % 1000 == 0)
			munmap(zoo_map(4 * PAGE, PROT_READ, MAP_PRIVATE, -1),
			       4 * PAGE);
	}
}

TEST(read_while_it_runs)
{
	struct target_options no_stop = { .no_stop = true };
	struct child c;
	struct space *sp;

	child_start(&c, busy);
	sp = open_child(&c, &no_stop);
	if (CHECK(sp)) {
		CHECK(sp->torn);
		CHECK(sp->stopped_s == 0);
		CHECK(sp->n_warnings >= 1);
		CHECK(sp->n_modules > 1);
	}
	space_close(sp);
	child_end(&c);
}

/* ---- real programs ---- */

static const char *const *program_argv;

static void run_program(volatile uint64_t *words)
{
	int fd = open("/dev/null", O_RDWR);

	dup2(fd, 0);
	dup2(fd, 1);
	dup2(fd, 2);
	words[0] = 1;
	execvp(program_argv[0], (char *const *)program_argv);
	_exit(1);
}

static bool check_program(const char *const argv[])
{
	struct child c;
	struct space *sp;

	program_argv = argv;
	child_start(&c, run_program);
	if (!child_wait_exec(c.pid)) {
		printf("# no %s\n", argv[0]);
		return false;
	}
	/* As it stands: a server is never quite idle. */
	kill(c.pid, SIGSTOP);
	CHECK(child_wait(c.pid, "T"));
	sp = open_settled(&c, &no_options);
	if (CHECK(sp))
		check_smaps(&c, sp);
	space_close(sp);
	child_end(&c);
	return true;
}

TEST(programs_agree_with_smaps)
{
	static const char *const python[] = {
		"python3", "-c", "import time, json, decimal\n"
		"x = [str(i) * 20 for i in range(100000)]\ntime.sleep(600)",
		NULL
	};
	static const char *const perl[] = {
		"perl", "-e", "$h{$_} = 'x' x $_ for 1 .. 3000; sleep 600",
		NULL
	};
	static const char *const php[] = {
		"php", "-r", "for ($i = 0; $i < 20000; $i++) "
		"$a[] = str_repeat('y', $i % 3000); sleep(600);", NULL
	};
	static const char *const redis[] = {
		"redis-server", "--port", "0", "--save", "", "--unixsocket",
		"./redis.socket", NULL
	};
	static const char *const sleeper[] = { "sleep", "600", NULL };

	check_program(python);
	check_program(perl);
	check_program(php);
	check_program(redis);
	unlink("redis.socket");
	CHECK(check_program(sleeper));
}
