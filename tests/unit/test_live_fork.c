/* SPDX-License-Identifier: MIT */
/*
 * Copies by a fork.  Whoever makes one is killed before each of the system
 * calls with which it is made; the process must be as it was every time, and
 * nothing may be left.
 */
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <time.h>

#include "base/mem.h"
#include "corewalk/space.h"
#include "corewalk/target.h"
#include "unit/check.h"
#include "unit/live_child.h"

#if defined(__x86_64__)

/* What the process tells. */
enum { READY, ROUNDS, WRONG, EARLY, GO_ON };

static const struct target_options by_fork = {
	.fork = true, .no_files = true,
	/* A pause may be long where others have the processor. */
	.max_pause_s = 600,
};

static uint64_t sum(const uint8_t *p, size_t n)
{
	uint64_t h = 0;
	size_t i;

	for (i = 0; i < n; i++)
		h = h * 31 + p[i];
	return h;
}

enum { MEMORY = 256 << 10 };

struct state {
	uint8_t *p;
	uint64_t sum;
	stack_t stack;
	sigset_t mask;
};

static struct state own_state(void)
{
	static uint8_t altstack[16384];
	struct state s = { .p = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) };
	size_t i;

	for (i = 0; i < MEMORY; i++)
		s.p[i] = (uint8_t)(i * 7);
	s.sum = sum(s.p, MEMORY);
	s.stack = (stack_t){ .ss_sp = altstack, .ss_size = sizeof(altstack) };
	sigaltstack(&s.stack, NULL);
	sigemptyset(&s.mask);
	sigaddset(&s.mask, SIGUSR2);
	pthread_sigmask(SIG_SETMASK, &s.mask, NULL);
	return s;
}

/* Is everything that is a thread's own as it was? */
static bool as_it_was(const struct state *s)
{
	stack_t stack;
	sigset_t mask;

	sigaltstack(NULL, &stack);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	return stack.ss_sp == s->stack.ss_sp &&
	       stack.ss_size == s->stack.ss_size && !stack.ss_flags &&
	       sigismember(&mask, SIGUSR2) && !sigismember(&mask, SIGUSR1) &&
	       !sigismember(&mask, SIGTERM) && sum(s->p, MEMORY) == s->sum;
}

/* Computes with all kinds of registers, without a system call in most. */
static void computing(volatile uint64_t *words)
{
	struct state s = own_state();
	double want = 0, got;
	int i;

	for (i = 1; i < 20000; i++)
		want += 1.0 / i;
	errno = 77;
	words[READY] = 1;
	for (;;) {
		for (got = 0, i = 1; i < 20000; i++)
			got += 1.0 / i;
		if (got != want || errno != 77 || !as_it_was(&s))
			words[WRONG]++;
		words[ROUNDS]++;
	}
}

/* Waits for bytes: such a call is begun again without a word. */
static void reading(volatile uint64_t *words)
{
	struct state s = own_state();
	int fds[2] = { -1, -1 };
	char byte;

	if (pipe(fds))
		words[WRONG]++;
	words[GO_ON] = (uint64_t)fds[1] + 1;
	errno = 77;
	words[READY] = 1;
	for (;;) {
		if (read(fds[0], &byte, 1) != 1 || byte != 'x' ||
		    errno != 77 || !as_it_was(&s))
			words[WRONG]++;
		words[ROUNDS]++;
	}
}

/* Sleeps: that may end early if the killer came at the wrong moment. */
static void sleeping(volatile uint64_t *words)
{
	struct state s = own_state();
	const struct timespec minute = { 60, 0 };

	words[READY] = 1;
	for (;;) {
		errno = 77;
		if (nanosleep(&minute, NULL) != -1 || errno != EINTR ||
		    !as_it_was(&s))
			words[WRONG]++;
		words[EARLY]++;
		words[ROUNDS]++;
	}
}

static void *second(void *arg)
{
	computing(arg);
	return NULL;
}

static void threads(volatile uint64_t *words)
{
	volatile uint64_t *others = words + 8;
	pthread_t t;

	pthread_create(&t, NULL, second, (void *)others);
	reading(words);
}

static void leaderless(volatile uint64_t *words)
{
	pthread_t t;

	pthread_create(&t, NULL, second, (void *)words);
	pthread_exit(NULL);
}

/* ---- the one that is killed ---- */

static bool interesting(long number)
{
	return number == SYS_ptrace || number == SYS_pwrite64 ||
	       number == SYS_wait4 || number == SYS_kill;
}

static void fork_and_read(pid_t pid)
{
	struct space *sp;
	struct err err;

	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	sp = target_open_live((uint32_t)pid, &by_fork, &err);
	if (!sp)
		fprintf(stderr, "# %s\n", err.msg);
	_exit(sp ? 0 : 1);
}

/* Nothing that we are told of may have crashed. */
static bool ended_well(int status)
{
	return WIFSTOPPED(status) || !status ||
	       (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/*
 * A process that makes a copy of another, killed before its call number
 * `when` of those that count.  False when it came to its end before.
 */
static bool killed_at(pid_t target, unsigned when)
{
	const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE;
	struct user_regs_struct regs;
	unsigned calls = 0;
	bool entry = true;
	int status;
	pid_t pid, got;

	fflush(stdout);
	pid = fork();
	if (!pid)
		fork_and_read(target);
	waitpid(pid, &status, 0);
	ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)options);
	ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
	for (;;) {
		got = waitpid(-1, &status, __WALL);
		if (got < 0)
			return CHECK(false);
		if (WIFEXITED(status) || WIFSIGNALED(status)) {
			if (got != pid)
				continue;
			CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
			return false;
		}
		/* Only the thread that stops others makes such calls. */
		if (WSTOPSIG(status) == (SIGTRAP | 0x80) &&
		    !ptrace(PTRACE_GETREGS, got, NULL, &regs) &&
		    interesting((long)regs.orig_rax)) {
			calls += entry;
			entry = !entry;
			if (calls == when)
				break;
		}
		ptrace(PTRACE_SYSCALL, got, NULL, NULL);
	}
	kill(pid, SIGKILL);
	/* Its threads must be waited for too. */
	do {
		got = waitpid(-1, &status, __WALL);
		CHECK(ended_well(status));
	} while (got >= 0 && (got != pid || WIFSTOPPED(status)));
	return true;
}

/* ---- what is left ---- */

/* Children that became ours, until none is left but this one. */
static bool only_child(pid_t pid)
{
	int i;

	for (i = 0; i < CHILD_PATIENCE; i++) {
		char path[64], text[256] = "";
		FILE *f;
		size_t n;
		int got, status;

		/* A copy or a helper: it went the way that it should. */
		got = waitpid(-1, &status, WNOHANG | __WALL);
		if (got > 0 && !CHECK(got != pid && ended_well(status)))
			return false;
		snprintf(path, sizeof(path), "/proc/self/task/%d/children",
			 (int)getpid());
		f = fopen(path, "r");
		n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
		text[n] = '\0';
		if (f)
			fclose(f);
		if (atoi(text) == pid && !strchr(strchr(text, ' ') + 1, ' '))
			return true;
		usleep(1000);
	}
	return false;
}

static bool childless(pid_t pid)
{
	struct dirent *e;
	bool none = true;
	char path[320];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		FILE *f;

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/children",
			 (int)pid, e->d_name);
		f = fopen(path, "r");
		none &= f && getc(f) == EOF;
		if (f)
			fclose(f);
	}
	if (dir)
		closedir(dir);
	return none;
}

static bool childless_in_the_end(pid_t pid)
{
	int i;

	for (i = 0; i < CHILD_PATIENCE && !childless(pid); i++)
		usleep(1000);
	return childless(pid);
}

/* It goes on: one that computes by itself, one that reads with a byte. */
static bool goes_on(const struct child *c)
{
	volatile uint64_t *others = c->words + 8;
	uint64_t before = c->words[ROUNDS], other = others[ROUNDS];
	char path[64];
	int i, fd = -1;

	if (c->words[GO_ON]) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)c->pid,
			 (int)c->words[GO_ON] - 1);
		fd = open(path, O_WRONLY);
		if (!CHECK(fd >= 0 && write(fd, "x", 1) == 1))
			return false;
		close(fd);
	}
	for (i = 0; i < CHILD_PATIENCE; i++) {
		if (c->words[ROUNDS] > before + (fd < 0) &&
		    (!others[READY] || others[ROUNDS] > other + 1))
			return !c->words[WRONG] && !others[WRONG];
		usleep(1000);
	}
	return false;
}

/* Under ASan each copy has its shadow too, and takes many times as long. */
#ifdef __SANITIZE_ADDRESS__
enum { STEP = 5 };
#else
enum { STEP = 1 };
#endif

/* A process that does this, and somebody killed at every moment. */
static void killed_everywhere(void (*run)(volatile uint64_t *), bool moves)
{
	unsigned when;
	struct child c;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	child_start(&c, run);
	for (when = 1; when < 10000; when += STEP) {
		bool killed = killed_at(c.pid, when);

		if (!CHECK(child_held_in_the_end(c.pid, 0) == 0) ||
		    !CHECK(childless_in_the_end(c.pid)) ||
		    !CHECK(only_child(c.pid)) ||
		    (moves && !CHECK(goes_on(&c))) ||
		    !CHECK(!c.words[WRONG])) {
			printf("# killed before call %u\n", when);
			break;
		}
		if (!killed)
			break;
	}
	printf("# %u calls, %u sleeps ended early\n", when,
	       (unsigned)c.words[EARLY]);
	CHECK(when > 20 && when < 10000);
	child_end(&c);
}

/* ---- nobody is killed ---- */

/* As init of a container: what loses its parent becomes its child. */
static void adopting(volatile uint64_t *words)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	reading(words);
}

TEST(one_that_adopts_children)
{
	struct child c;
	int i;

	child_start(&c, adopting);
	for (i = 0; i < 5; i++) {
		CHECK(!killed_at(c.pid, UINT_MAX));
		CHECK(childless(c.pid));
		CHECK_U64((uint64_t)child_threads_held(c.pid), 0);
		CHECK(goes_on(&c));
	}
	child_end(&c);
}

/* What the pages of the copy hold is what the process had. */
TEST(nothing_of_ours_in_the_copy)
{
	struct child c;
	struct space *sp;
	struct err err;
	const struct seg *seg;
	uint8_t *its;
	char path[64];
	int fd;

	child_start(&c, reading);
	CHECK(child_wait(c.pid, "S"));
	sp = target_open_live((uint32_t)c.pid, &by_fork, &err);
	if (CHECK(sp)) {
		seg = space_seg(sp, sp->threads[0].sp);
		snprintf(path, sizeof(path), "/proc/%d/mem", (int)c.pid);
		fd = open(path, O_RDONLY);
		its = calloc(1, seg->stored);
		CHECK(pread(fd, its, seg->stored, (off_t)seg->start) ==
		      (ssize_t)seg->stored);
		CHECK(!memcmp(its, seg->host, seg->stored));
		free(its);
		close(fd);
	}
	space_close(sp);
	CHECK(goes_on(&c));
	child_end(&c);
}

/* However long it may take: it is read within that, or given up and well. */
TEST(the_pause_is_bounded)
{
	struct target_options options = by_fork;
	unsigned n_late = 0, n_read = 0;
	struct space *sp;
	struct child c;
	struct err err;
	double s;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	child_start(&c, reading);
	for (s = 0.00002; s < 20 && n_read < 3; s *= 1.1) {
		options.max_pause_s = s;
		sp = target_open_live((uint32_t)c.pid, &options, &err);
		n_read += sp != NULL;
		n_late += !sp;
		if (!sp && !CHECK(strstr(err.msg, "not read within")))
			printf("# %s\n", err.msg);
		space_close(sp);
		if (!CHECK(child_held_in_the_end(c.pid, 0) == 0) ||
		    !CHECK(childless_in_the_end(c.pid)) ||
		    !CHECK(only_child(c.pid)) || !CHECK(goes_on(&c)))
			break;
	}
	CHECK(n_late > 0 && n_read > 0);
	child_end(&c);
}

/* ---- somebody is killed ---- */

TEST(killed_while_it_computes)
{
	killed_everywhere(computing, true);
}

TEST(killed_while_it_reads)
{
	killed_everywhere(reading, true);
}

TEST(killed_while_it_sleeps)
{
	killed_everywhere(sleeping, false);
}

TEST(killed_with_threads)
{
	killed_everywhere(threads, true);
}

TEST(killed_without_a_leader)
{
	killed_everywhere(leaderless, true);
}

#endif
