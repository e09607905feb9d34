/* SPDX-License-Identifier: MIT */
/*
 * Cores that this kernel and gdb write of a process whose mappings are known:
 * the test forks, the child makes them and dies.
 */
#include "corewalk/target.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "corewalk/module.h"

enum { P = 4096, N = 16 };

/* Where things are in the child; shared with it. */
struct zoo {
	uint8_t *mixed;		/* N pages each: untouched, zero, read, data */
	uint8_t *left_out, *anon_shared, *memory_file, *reserved, *closed;
	uint8_t *file_clean, *file_dirty, *file_shared;
	uint8_t *pages;		/* 12 P, rights change in the middle */
	pid_t main_tid, other_tid;
	uintptr_t main_tls, other_tls;
};

static struct zoo *zoo;
static char dir[] = "/tmp/heapcore-test.XXXXXX";
static volatile int changed = 1;	/* 2 in the child */

__attribute__((noinline)) static int some_text(int x)
{
	return x * 31 + changed;
}

/* gdb would store the sanitizer's shadow memory: terabytes of zeros. */
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
enum { TOO_LARGE_FOR_GDB = 1 };
#else
enum { TOO_LARGE_FOR_GDB = 0 };
#endif

static const char *why_not(void)
{
	char pattern[200] = "";
	FILE *f = fopen("/proc/sys/kernel/core_pattern", "r");

	if (!f || !fgets(pattern, sizeof(pattern), f))
		return "no core_pattern";
	fclose(f);
	if (strncmp(pattern, "core", 4) != 0)
		return "kernel.core_pattern does not write files named core";
	return NULL;
}

static uint8_t *map(size_t n_pages, int prot, int flags, int fd)
{
	uint8_t *p = mmap(NULL, n_pages * P, prot, flags, fd, 0);

	if (p == MAP_FAILED)
		_exit(9);
	return p;
}

static int some_file(void)
{
	static const char text[N * P] = "data file";
	int fd = open("data.file", O_RDWR | O_CREAT, 0600);

	if (fd < 0 || write(fd, text, sizeof(text)) != sizeof(text))
		_exit(9);
	return fd;
}

static void make_mixed(void)
{
	volatile uint8_t sum = 0;
	size_t i;

	zoo->mixed = map(4 * N, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1);
	for (i = 0; i < N; i++) {
		*(volatile uint8_t *)(zoo->mixed + (N + i) * P) = 0;
		sum += zoo->mixed[(2 * N + i) * P];
		zoo->mixed[(3 * N + i) * P + 5] = 0x5a;
	}
}

static void make_zoo(void)
{
	int rw = PROT_READ | PROT_WRITE;
	int anon = MAP_PRIVATE | MAP_ANONYMOUS;
	int fd = some_file();

	changed = 2;
	make_mixed();
	zoo->left_out = map(N, rw, anon, -1);
	memset(zoo->left_out, 1, N * P);
	madvise(zoo->left_out, N * P, MADV_DONTDUMP);
	zoo->anon_shared = map(N, rw, MAP_SHARED | MAP_ANONYMOUS, -1);
	memset(zoo->anon_shared, 2, N * P);
	zoo->memory_file = map(N, rw, MAP_SHARED,
			       (int)syscall(SYS_memfd_create, "zoo", 0));
	zoo->reserved = map(1024, PROT_NONE, anon | MAP_NORESERVE, -1);
	zoo->closed = map(N, rw, anon, -1);
	memset(zoo->closed, 3, N * P);
	mprotect(zoo->closed, N * P, PROT_NONE);
	zoo->file_clean = map(N, rw, MAP_PRIVATE, fd);
	zoo->file_dirty = map(N, rw, MAP_PRIVATE, fd);
	zoo->file_dirty[3 * P] = 'X';
	zoo->file_shared = map(N, rw, MAP_SHARED, fd);
	zoo->file_shared[0] = 'S';
	zoo->pages = map(12, rw, anon, -1);
	memset(zoo->pages, 4, 12 * P);
	mprotect(zoo->pages + 4 * P, 4 * P, PROT_READ);
}

static void *other_thread(void *arg)
{
	(void)arg;
	zoo->other_tls = (uintptr_t)pthread_self();
	__atomic_store_n(&zoo->other_tid, (pid_t)syscall(SYS_gettid),
			 __ATOMIC_SEQ_CST);
	for (;;)
		pause();
	return NULL;
}

static void __attribute__((noreturn)) child(int filter, rlim_t limit,
					    bool wait)
{
	struct rlimit l = { limit, limit };
	pthread_t t;
	FILE *f;

	if (chdir(dir) || setrlimit(RLIMIT_CORE, &l))
		_exit(9);
	f = fopen("/proc/self/coredump_filter", "w");
	if (!f || fprintf(f, "0x%x\n", filter) < 0 || fclose(f))
		_exit(9);
	make_zoo();
	zoo->main_tls = (uintptr_t)pthread_self();
	zoo->main_tid = (pid_t)syscall(SYS_gettid);
	pthread_create(&t, NULL, other_thread, NULL);
	while (!__atomic_load_n(&zoo->other_tid, __ATOMIC_SEQ_CST))
		usleep(1000);
	signal(SIGQUIT, SIG_DFL);
	while (wait)
		pause();
	raise(SIGQUIT);
	_exit(9);
}

static void make_folder(void)
{
	if (zoo)
		return;
	zoo = mmap(NULL, P, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!mkdtemp(dir))
		abort();
}

static pid_t start_child(int filter, rlim_t limit, bool wait)
{
	pid_t pid;

	make_folder();
	memset(zoo, 0, sizeof(*zoo));
	fflush(stdout);
	pid = fork();
	if (!pid)
		child(filter, limit, wait);
	return pid;
}

/* The core the child left, under whatever name; gone once it is open. */
static struct space *open_and_remove(const char *prefix,
				     const struct target_options *options)
{
	char path[600] = "";
	struct err err = { 0 };
	struct space *sp = NULL;
	struct dirent *e;
	DIR *d = opendir(dir);

	while (d && (e = readdir(d)))
		if (!strncmp(e->d_name, prefix, strlen(prefix)))
			snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
	if (d)
		closedir(d);
	if (path[0]) {
		sp = target_open_core(path, options, &err);
		if (!CHECK(sp))
			printf("# %s\n", err.msg);
		unlink(path);
	}
	return sp;
}

static struct space *crash(int filter, rlim_t limit,
			   const struct target_options *options)
{
	int status;
	pid_t pid = start_child(filter, limit, false);

	waitpid(pid, &status, 0);
	return open_and_remove("core", options);
}

#define OPEN_OR_SKIP(sp, filter, limit, options)			\
	struct space *sp;						\
	if (why_not())							\
		SKIP(why_not());					\
	sp = crash(filter, limit, options);				\
	if (!sp)							\
		SKIP("the kernel wrote no core")

static vaddr at(const volatile void *p)
{
	return (vaddr)(uintptr_t)p;
}

static const struct seg *seg_of(struct space *sp, const void *p)
{
	static const struct seg none;
	const struct seg *seg = space_seg(sp, at(p));

	CHECK(seg);
	return seg ? seg : &none;
}

static bool private_at(struct space *sp, const void *p)
{
	return space_seg_private(sp, seg_of(sp, p));
}

static uint8_t byte_at(struct space *sp, const void *p)
{
	uint8_t v = 0xee;

	CHECK(space_u8(sp, at(p), &v));
	return v;
}

static uint64_t stored(struct space *sp, const uint8_t *p, size_t n_pages)
{
	return space_stored(sp, at(p), at(p) + n_pages * P) / P;
}

static void check_mixed(struct space *sp)
{
	const uint8_t *m = zoo->mixed;

	CHECK_U64(byte_at(sp, m), 0);
	CHECK_U64(byte_at(sp, m + 4 * N * P - P + 5), 0x5a);
	CHECK_U64(space_why(sp, at(m)), SPACE_OK);
	if (sp->holes == HOLES_LOST) {
		printf("# %s has no holes\n", dir);
		return;
	}
	CHECK_U64(sp->holes, HOLES_KEPT);
	CHECK_U64(stored(sp, m, N), 0);
	CHECK_U64(stored(sp, m + N * P, N), N);
	CHECK_U64(stored(sp, m + 2 * N * P, N), 0);
	CHECK_U64(stored(sp, m + 3 * N * P, N), N);
	CHECK_U64(stored(sp, m + (N - 1) * P, N + 2), N);
}

TEST(every_kind_of_mapping)
{
	OPEN_OR_SKIP(sp, 0x33, RLIM_INFINITY, NULL);

	CHECK_STR(sp->writer, "kernel");
	check_mixed(sp);
	CHECK_U64(space_why(sp, at(zoo->left_out)), SPACE_UNDUMPED);
	CHECK_U64(byte_at(sp, zoo->anon_shared), 2);
	CHECK(seg_of(sp, zoo->anon_shared)->flags & SEG_SHARED);
	CHECK(seg_of(sp, zoo->memory_file)->flags & SEG_SHARED);
	CHECK(!private_at(sp, zoo->anon_shared));
	CHECK(!private_at(sp, zoo->reserved));
	CHECK_U64(seg_of(sp, zoo->reserved)->stored, 0);
	CHECK_U64(byte_at(sp, zoo->closed), 3);
	/* Written, and then without access: memory all the same. */
	CHECK(private_at(sp, zoo->closed));
	CHECK(!private_at(sp, zoo->file_clean));
	CHECK(private_at(sp, zoo->file_dirty));
	CHECK_U64(byte_at(sp, zoo->file_dirty + 3 * P), 'X');
	CHECK_U64(byte_at(sp, zoo->file_dirty), 'S');
	CHECK(!private_at(sp, zoo->file_shared));
	CHECK_U64(space_why(sp, at(zoo->file_shared)), SPACE_UNDUMPED);
	/* Adjacent mappings are one piece of memory. */
	CHECK(seg_of(sp, zoo->pages) != seg_of(sp, zoo->pages + 4 * P));
	CHECK(space_view(sp, at(zoo->pages), 12 * P));
	CHECK_U64(space_run_end(sp, at(zoo->pages)), at(zoo->pages + 4 * P));
	CHECK(strstr(sp->files[seg_of(sp, zoo->file_dirty)->file].name,
		     "/data.file"));
	CHECK_U64(sp->missing_segs, 0);
	CHECK_U64(sp->core_size, sp->core_wanted);
	space_close(sp);
}

TEST(threads_and_the_signal)
{
	uint64_t self;
	int i;

	OPEN_OR_SKIP(sp, 0x33, RLIM_INFINITY, NULL);

	CHECK_U64((uint64_t)sp->signal, SIGQUIT);
	CHECK(!sp->has_fault_addr);
	CHECK_U64(sp->pid, (uint64_t)zoo->main_tid);
	if (!CHECK(sp->n_threads >= 2))
		return;
	CHECK_U64(sp->threads[0].tid, (uint64_t)zoo->main_tid);
	CHECK_U64(sp->threads[1].tid, (uint64_t)zoo->other_tid);
	for (i = 0; i < 2; i++) {
		const struct thread *t = &sp->threads[i];
		const struct seg *stack = space_seg(sp, t->sp);

		CHECK(stack && stack->flags & SEG_W);
		CHECK(stack && space_thread_on(sp, stack->start, stack->end));
		if (sp->machine != MACHINE_X86_64)
			continue;
		CHECK_U64(t->tls, i ? zoo->other_tls : zoo->main_tls);
		CHECK(space_u64(sp, t->tls + 16, &self) && self == t->tls);
	}
	space_close(sp);
}

TEST(modules_and_their_files)
{
	const struct module *exe, *libc;
	const void *view;

	OPEN_OR_SKIP(sp, 0x33, RLIM_INFINITY, NULL);

	exe = module_exe(sp);
	if (!CHECK(exe))
		return;
	CHECK_STR(sp->program, "test_core_real");
	CHECK(space_module(sp, at(&some_text)) == exe);
	CHECK(space_module(sp, at(&changed)) == exe);
	CHECK(exe->path && strstr(exe->path, "/test_core_real"));
	view = space_view(sp, at(&some_text), 16);
	if (CHECK(view))
		CHECK_MEM(view, (const void *)&some_text, 16);
	CHECK(space_seg(sp, at(&some_text))->flags & SEG_FROM_FILE);
	libc = space_module(sp, at(&getauxval));
	CHECK(libc && libc != exe && libc->build_id_len == 20);
	view = space_view(sp, at(&getauxval), 16);
	if (CHECK(view))
		CHECK_MEM(view, (const void *)&getauxval, 16);
	CHECK(seg_of(sp, (void *)getauxval(AT_SYSINFO_EHDR))->flags &
	      SEG_KERNEL);
	/* Written data comes from the core. */
	CHECK_U64(byte_at(sp, (void *)&changed), 2);
	space_close(sp);
}

TEST(without_files)
{
	static const struct target_options no_files = { .no_files = true };

	OPEN_OR_SKIP(sp, 0x33, RLIM_INFINITY, &no_files);

	CHECK(module_exe(sp) && !module_exe(sp)->path);
	CHECK_U64(space_why(sp, at(&some_text)), SPACE_UNDUMPED);
	CHECK_U64(byte_at(sp, (void *)&changed), 2);
	space_close(sp);
}

/*
 * Whatever is left out, the mappings are the same, nothing that is read is
 * wrong, and data that was written never comes from the file.
 */
TEST(every_filter)
{
	static const int filters[] = { 0x33, 0, 1, 2, 4, 8, 0x10, 0x20, 0x37,
				       0x3f, 0x7f, 0x1ff };
	size_t i;

	for (i = 0; i < sizeof(filters) / sizeof(*filters); i++) {
		int bits = filters[i];
		uint32_t v = 0;

		OPEN_OR_SKIP(sp, bits, RLIM_INFINITY, NULL);

		CHECK_U64(seg_of(sp, zoo->left_out)->stored, 0);
		CHECK(seg_of(sp, zoo->reserved)->end >=
		      at(zoo->reserved) + 1024 * P);
		if (space_u32(sp, at(&changed), &v))
			CHECK_U64(v, 2);
		CHECK(v == 2 || !(bits & 1));
		CHECK_U64(space_why(sp, at(zoo->mixed)),
			  bits & 1 ? SPACE_OK : SPACE_UNDUMPED);
		CHECK_U64(space_why(sp, at(zoo->anon_shared)),
			  bits & 2 ? SPACE_OK : SPACE_UNDUMPED);
		CHECK_U64(space_why(sp, at(zoo->file_clean)),
			  bits & 4 ? SPACE_OK : SPACE_UNDUMPED);
		CHECK_U64(space_why(sp, at(zoo->file_shared)),
			  bits & 8 ? SPACE_OK : SPACE_UNDUMPED);
		CHECK(space_view(sp, at(&some_text), 16));
		CHECK(module_exe(sp));
		CHECK((sp->n_warnings > 0) == !(bits & 1) ||
		      !(bits & 0x10));
		space_close(sp);
	}
}

/* The limit counts bytes that are written, and the core ends there. */
TEST(cut_by_ulimit)
{
	size_t i, n_cut = 0;

	OPEN_OR_SKIP(sp, 0x33, 400 * 1024, NULL);

	CHECK(sp->core_wanted > sp->core_size);
	CHECK(sp->missing_segs > 0);
	CHECK(sp->n_warnings > 0);
	for (i = 0; i < sp->n_segs; i++) {
		const struct seg *seg = &sp->segs[i];

		n_cut += seg->why == SPACE_TRUNCATED;
		CHECK(!seg->stored ||
		      seg->core_off + seg->stored <= sp->core_size);
		CHECK(space_stored(sp, seg->start, seg->end) <= seg->stored);
	}
	CHECK_U64(n_cut, sp->missing_segs);
	CHECK(sp->has_file_note);
	CHECK(module_exe(sp));
	CHECK_U64(sp->n_threads, 2);
	space_close(sp);
}

TEST(by_gcore)
{
	char command[200];
	struct space *sp;
	const void *view;
	pid_t pid;
	int failed;

	if (TOO_LARGE_FOR_GDB)
		SKIP("a sanitizer's memory is too large for gcore");
	if (system("command -v gcore >/dev/null 2>&1"))
		SKIP("no gcore");
	pid = start_child(0x33, RLIM_INFINITY, true);
	while (!__atomic_load_n(&zoo->other_tid, __ATOMIC_SEQ_CST))
		usleep(1000);
	snprintf(command, sizeof(command),
		 "gcore -o %s/gcore %d >/dev/null 2>&1", dir, (int)pid);
	failed = system(command);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (failed) {
		snprintf(command, sizeof(command), "rm -f %s/gcore*", dir);
		failed = system(command);
		SKIP("gcore failed");
	}
	sp = open_and_remove("gcore", NULL);
	if (!CHECK(sp))
		return;
	CHECK_STR(sp->writer, "gdb");
	CHECK_U64(sp->holes, HOLES_LOST);
	CHECK_U64((uint64_t)sp->signal, 0);
	CHECK_U64(sp->n_threads, 2);
	CHECK_U64(sp->pid, (uint64_t)pid);
	CHECK_U64(byte_at(sp, (void *)&changed), 2);
	CHECK_U64(byte_at(sp, zoo->mixed + 3 * N * P + 5), 0x5a);
	CHECK_U64(byte_at(sp, zoo->mixed), 0);
	CHECK(!private_at(sp, zoo->reserved));
	CHECK(!private_at(sp, zoo->anon_shared));
	CHECK(private_at(sp, zoo->mixed));
	CHECK(module_exe(sp));
	/* Text is in no program header of such a core. */
	view = space_view(sp, at(&some_text), 16);
	if (CHECK(view))
		CHECK_MEM(view, (const void *)&some_text, 16);
	CHECK(seg_of(sp, (void *)&some_text)->flags & SEG_X);
	space_close(sp);
}

/* A 32-bit program, if this machine can build and run one. */
TEST(of_i386)
{
	const char *cc = getenv("CC");
	char command[600];
	struct space *sp;
	uint32_t self;

	if (why_not())
		SKIP(why_not());
	make_folder();
	snprintf(command, sizeof(command), "cd %s && echo 'int main(void) "
		 "{ __builtin_trap(); }' >a.c && %s -m32 a.c -o prog32 "
		 "2>/dev/null && { ulimit -c unlimited; (./prog32) "
		 ">/dev/null 2>&1; } 2>/dev/null; rm -f a.c", dir,
		 cc ? cc : "cc");
	if (system(command))
		printf("# as expected, it did not end well\n");
	sp = open_and_remove("core", NULL);
	if (sp) {
		CHECK_U64(sp->machine, MACHINE_I386);
		CHECK_U64(sp->word, 4);
		CHECK_STR(sp->program, "prog32");
		CHECK_U64((uint64_t)sp->signal, SIGILL);
		CHECK_U64(sp->n_threads, 1);
		CHECK(space_seg(sp, sp->threads[0].sp));
		CHECK(space_module(sp, sp->threads[0].pc) == module_exe(sp));
		/* The first word at the thread pointer points to itself. */
		CHECK(space_u32(sp, sp->threads[0].tls, &self));
		CHECK_U64(self, sp->threads[0].tls);
		CHECK(sp->n_modules >= 3);
	}
	snprintf(command, sizeof(command), "%s/prog32", dir);
	unlink(command);
	if (!sp)
		SKIP("no 32-bit programs here");
	space_close(sp);
}

/* Not a test of ours: leave nothing behind. */
TEST(clean_up)
{
	char path[600];

	snprintf(path, sizeof(path), "%s/data.file", dir);
	unlink(path);
	if (zoo)
		CHECK(!rmdir(dir));
}
