/* SPDX-License-Identifier: MIT */
/*
 * Programs that are hard to record, by name; each ends with a known number of
 * blocks that nothing else allocates: multiples of MARK bytes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { MARK = 12347 };

static void *volatile keep[4096];

static void *take(size_t n)
{
	void *p = malloc(n * MARK);

	if (!p)
		abort();
	*(volatile char *)p = 1;
	return p;
}

/* Blocks go from one thread to another. */
enum { RING = 1024 };
static void *ring[RING];
static unsigned rounds = 5000;

static void *swap_blocks(void *arg)
{
	unsigned x = (unsigned)(uintptr_t)arg * 2654435761u + 1;

	for (unsigned i = 0; i < rounds; i++) {
		void *mine = malloc(x >> 24);

		x = x * 1664525 + 1013904223;
		mine = __atomic_exchange_n(&ring[x >> 22], mine,
					   __ATOMIC_ACQ_REL);
		free(mine);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t t[8];

	for (int r = 0; r < 4; r++) {
		for (uintptr_t i = 0; i < 8; i++)
			pthread_create(&t[i], NULL, swap_blocks, (void *)i);
		for (int i = 0; i < 8; i++)
			pthread_join(t[i], NULL);
	}
	for (int i = 0; i < RING; i++)
		free(ring[i]);
	keep[0] = take(1);
}

/*
 * What maps itself: the size that the kernel says the process has grown by is
 * printed, in bytes.
 */
static long pages_mapped(void)
{
	char text[64] = "";
	int fd = open("/proc/self/statm", O_RDONLY);

	if (read(fd, text, sizeof(text) - 1) < 1)
		abort();
	close(fd);
	return atol(text);
}

static void mappings(void)
{
	enum { MAX = 256, PAGE = 4096 };
	static char page[PAGE] __attribute__((aligned(PAGE)));
	char *area, *other, *end;
	unsigned x = 1;
	long before;

	/* What the recorder wants for itself comes with the first event. */
	free(malloc(1));
	area = mmap(NULL, MAX * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	munmap(area, MAX * PAGE);
	before = pages_mapped();
	area = mmap(NULL, MAX * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	for (int i = 0; i < 500; i++) {
		unsigned at = (x = x * 1664525 + 1013904223) >> 24;
		unsigned n = (x >> 8) % 7 + 1;

		n = at + n > MAX ? MAX - at : n;
		if (x >> 16 & 1)
			munmap(area + at * PAGE, n * PAGE - 100);
		else
			mmap(area + at * PAGE, n * PAGE - 4095, PROT_READ,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	}
	other = mmap(NULL, 9 * PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	other = mremap(other, 9 * PAGE, 40 * PAGE, MREMAP_MAYMOVE);
	mremap(other, 40 * PAGE, 30 * PAGE, 0);
	end = sbrk(0);
	sbrk(50 * PAGE);
	if (brk(end + 20 * PAGE))
		abort();
	sbrk(-4 * PAGE);
	/* 58 pages of these stay without access; the last is nobody's. */
	area = mmap(NULL, 64 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	mprotect(area + 8 * PAGE, 10 * PAGE - 5, PROT_READ | PROT_WRITE);
	mprotect(area + 12 * PAGE, 4 * PAGE, PROT_NONE);
	mprotect(page, PAGE, PROT_READ);
	dprintf(1, "%ld\n", (pages_mapped() - before - 58) * PAGE);
	/* malloc maps this one, which is not counted. */
	keep[0] = take(100);
}

/* Many threads, one after the other and at once, with tiny stacks. */
static void *one_block(void *arg)
{
	keep[(uintptr_t)arg] = take(1);
	return NULL;
}

static void many_threads(void)
{
	pthread_attr_t a;
	pthread_t t[64];

	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 16384 + 32768);
	for (uintptr_t r = 0; r < 32; r++) {
		for (uintptr_t i = 0; i < 64; i++)
			pthread_create(&t[i], &a, one_block,
				       (void *)(r * 64 + i));
		for (int i = 0; i < 64; i++)
			pthread_join(t[i], NULL);
	}
}

static pthread_key_t key;

static void at_thread_end(void *p)
{
	free(p);
	keep[1] = take(1);
	/* Again, in the next round of destructors. */
	if (!keep[2]) {
		keep[2] = take(1);
		pthread_setspecific(key, take(1));
	}
}

static void *with_key(void *arg)
{
	pthread_setspecific(key, take(1));
	return arg;
}

static void tls(void)
{
	pthread_t t;

	pthread_key_create(&key, at_thread_end);
	pthread_create(&t, NULL, with_key, NULL);
	pthread_join(t, NULL);
	/* keep[1] was replaced once: three blocks live. */
}

static volatile sig_atomic_t handled;
static void *from_handler[64];

/* Not allowed, and done all the same. */
static void on_alarm(int sig)
{
	if (handled < 64)
		from_handler[handled] = (void *)(uintptr_t)sig;
	handled++;
}

static sigjmp_buf out;

static void on_segv(int sig)
{
	keep[sig] = take(1);
	siglongjmp(out, 1);
}

/* A fault: the handler allocates on a stack of its own, and jumps away. */
static void signals(void)
{
	static char other[1 << 16];
	stack_t stack = { .ss_sp = other, .ss_size = sizeof(other) };
	struct sigaction sa = { .sa_handler = on_segv,
				.sa_flags = SA_ONSTACK | SA_NODEFER };
	struct sigaction alarms = { .sa_handler = on_alarm };
	struct itimerval fast = { { 0, 500 }, { 0, 500 } };
	struct itimerval none = { { 0, 0 }, { 0, 0 } };

	sigaltstack(&stack, NULL);
	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGALRM, &alarms, NULL);
	if (!sigsetjmp(out, 1))
		*(volatile int *)8 = 1;
	setitimer(ITIMER_REAL, &fast, NULL);
	for (int i = 0; i < 300000; i++)
		free(malloc((size_t)i % 100));
	setitimer(ITIMER_REAL, &none, NULL);
}

static ucontext_t main_context, side;

static void coroutine(void)
{
	for (int i = 0; i < 1000; i++) {
		free(malloc(100));
		swapcontext(&side, &main_context);
	}
}

/* Stacks that are nobody's, and that are unmapped. */
static void coroutines(void)
{
	for (int r = 0; r < 3; r++) {
		size_t size = 1 << (16 + r);
		void *stack = mmap(NULL, size, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		getcontext(&side);
		side.uc_stack.ss_sp = stack;
		side.uc_stack.ss_size = size;
		side.uc_link = &main_context;
		makecontext(&side, coroutine, 0);
		for (int i = 0; i < 1000; i++) {
			swapcontext(&main_context, &side);
			free(malloc(50));
		}
		munmap(stack, size);
	}
	keep[0] = take(1);
}

/* Children of every kind, which allocate, and do not disturb the trace. */
static void forks(void)
{
	char *name[] = { (char *)"true", NULL };
	int status;
	pid_t pid;

	keep[0] = take(1);
	for (int i = 0; i < 20; i++) {
		pid = i % 2 ? fork() : vfork();
		if (!pid) {
			if (i % 2) {
				for (int k = 0; k < 1000; k++)
					keep[k + 1] = take(1);
				if (i == 5)
					execl("/bin/true", "true", NULL);
			}
			_exit(3);
		}
		waitpid(pid, &status, 0);
		free(malloc(10));
	}
	if (system("exit 0") ||
	    posix_spawn(&pid, "/bin/true", NULL, NULL, name, environ) ||
	    waitpid(pid, &status, 0) != pid)
		abort();
	keep[1] = take(1);
}

static void modules(void)
{
	for (int i = 0; i < 5; i++) {
		void *h = dlopen("libm.so.6", RTLD_NOW);
		void *z = dlopen("libz.so.1", RTLD_NOW);

		free(malloc(33));
		if (z)
			dlclose(z);
		if (h)
			dlclose(h);
	}
	keep[0] = take(1);
}

/* Every function, each leaving one block. */
static void all_functions(void)
{
	void *p;

	keep[0] = take(1);
	keep[1] = calloc(2, MARK);
	keep[2] = realloc(NULL, 3 * MARK);
	keep[3] = realloc(malloc(10), 4 * MARK);
	keep[4] = reallocarray(NULL, 5, MARK);
	keep[5] = memalign(64, 6 * MARK);
	keep[6] = aligned_alloc(64, 7 * MARK);
	if (!posix_memalign(&p, 128, 8 * MARK))
		keep[7] = p;
	keep[8] = valloc(9 * MARK);
	keep[9] = pvalloc(10 * MARK);
	errno = 0;
	if (reallocarray(NULL, SIZE_MAX / 2, 3) || errno != ENOMEM)
		abort();
	if (malloc(SIZE_MAX / 2) || calloc(SIZE_MAX / 2, 3))
		abort();
	p = realloc(malloc(100), 0);
	errno = 77;
	free(p);
	free(malloc(5));
	if (errno != 77)
		abort();
}

/* The number of open files and the next descriptor are the program's. */
static void descriptors(void)
{
	struct rlimit limit;
	int fd = dup(0);

	printf("next %d\n", fd);
	fflush(stdout);
	getrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 3; i < 4096; i++)
		close(i);
	/* Whoever gets its number now is not written into. */
	for (int i = 0; i < 2000; i++)
		dup(0);
	for (int i = 0; i < 200000; i++)
		free(malloc((size_t)i % 1000));
	keep[0] = take(1);
}

/* No descriptors, little memory, no file to open, nobody's rights. */
static void limits(void)
{
	size_t now = (size_t)pages_mapped() * 4096;
	struct rlimit fds = { 3, 3 }, memory = { now, now };

	memory.rlim_cur = memory.rlim_max = now + (64 << 20);
	if (setrlimit(RLIMIT_NOFILE, &fds) || setrlimit(RLIMIT_AS, &memory))
		abort();
	/* Where this is not allowed, the rest is test enough. */
	if (!chroot("/proc/self/fdinfo") && (chdir("/") || setuid(65534)))
		abort();
	for (int i = 0; i < 150000; i++)
		free(malloc((size_t)i % 1000));
	keep[0] = take(1);
}

/* From here on it may read, write and exit, or it is killed. */
static void confined(void)
{
	keep[0] = take(1);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0))
		abort();
	/* More than a chunk would hold, and for longer than between looks. */
	for (int i = 0; i < 200000; i++)
		free(malloc((size_t)i % 100));
	syscall(SYS_write, 1, "done\n", 5);
	syscall(SYS_exit, 7);
}

/* A filter that libc does not see: what the recorder needs next, kills. */
static void filtered(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { 4, code };

	keep[0] = take(1);
	if (syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter))
		return;
	for (int i = 0; i < 200000; i++)
		free(malloc((size_t)i % 100));
}

/*
 * Until somebody kills it.  The file of argv[2] has, for each thread, how many
 * blocks it has got and how many it has given back; nothing else calls
 * aligned_alloc.
 */
static volatile uint64_t *counters;

static void *count_on(void *arg)
{
	volatile uint64_t *mine = counters + 8 * (uintptr_t)arg;

	for (uint64_t i = 1;; i++) {
		void *p = aligned_alloc(32, 32 * (1 + i % 64));

		mine[0] = i;
		free(p);
		mine[1] = i;
	}
	return NULL;
}

static void until_killed(void)
{
	pthread_t t;

	for (uintptr_t i = 1; i < 4; i++)
		pthread_create(&t, NULL, count_on, (void *)i);
	count_on(NULL);
}

static void map_counters(const char *path)
{
	int fd = open(path, O_RDWR);

	if (fd < 0)
		abort();
	counters = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			0);
	close(fd);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "threads", threads }, { "many_threads", many_threads },
	{ "tls", tls }, { "signals", signals },
	{ "coroutines", coroutines }, { "forks", forks },
	{ "modules", modules }, { "all_functions", all_functions },
	{ "descriptors", descriptors }, { "mappings", mappings },
	{ "confined", confined }, { "filtered", filtered },
	{ "limits", limits },
	{ "until_killed", until_killed },
};

int main(int argc, char **argv)
{
	const char *end = argc > 2 ? argv[2] : "";

	if (end[0] == '/')
		map_counters(end);
	for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(*cases);
	     i++)
		if (!strcmp(argv[1], cases[i].name))
			cases[i].run();
	if (!strcmp(end, "_exit"))
		_exit(5);
	if (!strcmp(end, "abort"))
		abort();
	if (!strcmp(end, "kill"))
		kill(getpid(), SIGKILL);
	return 7;
}
