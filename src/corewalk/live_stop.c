/* SPDX-License-Identifier: MIT */
/*
 * Stopping a process, by ptrace(2).
 *
 * PTRACE_SEIZE and PTRACE_INTERRUPT stop a thread without a signal: its
 * parent sees nothing, and when the tracer ends, however it ends, the kernel
 * lets it run on.  A thread that is just being given a signal stops too; the
 * signal is handed on when it is released.  A process that was stopped by a
 * shell before stays stopped after.
 *
 * New threads are born until the last one stands still, so the list of
 * threads is read again until it has no new one.  A thread deep in the kernel
 * (state D: waiting for a disk, or for the child of vfork) does not stop; it
 * does not change memory by itself either.  After a while it counts as
 * stopped, with what /proc tells of its registers.  All this must run in one
 * thread of ours, which ends soon after: that frees the likes of these too.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sort.h"
#include "corewalk/live.h"

enum {
	POLL_NS = 50000,
	STUCK_NS = 300000000,	/* in state D for so long: it will stay */
	SPINS = 50,		/* polls without sleeping */
	MAX_LISTS = 100,	/* of threads, with none that is new */
};

bool live_late(const struct live *lv, struct err *err)
{
	if (live_now() < lv->deadline_ns)
		return false;
	err_set(err, ERR_SYSTEM, "%s: not read within %.3g s, given up; it "
		"runs on", lv->core.name, lv->options.max_pause_s);
	err_hint(err, "Allow more with --max-pause=SECONDS, or read it "
		 "without stopping, with --no-stop.");
	return true;
}

/* ---- seizing ---- */

static int by_tid(const void *a, const void *b)
{
	const struct live_thread *x = a, *y = b;

	return ORDER(x->tid, y->tid);
}

static char thread_state(const struct live *lv, pid_t tid)
{
	AUTO_FREE char *name = mem_printf("task/%d", (int)tid);
	int fd = openat(lv->proc_fd, name,
			O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct live_stat stat = { .state = 'X' };

	if (fd < 0)
		return 'X';
	if (!live_read_stat(fd, &stat))
		stat.state = 'X';
	close(fd);
	return stat.state;
}

static bool has_ended(const struct live *lv, pid_t tid)
{
	char state = thread_state(lv, tid);

	return state == 'Z' || state == 'X';
}

static bool seize(struct live *lv, pid_t tid, struct err *err)
{
	struct live_thread *t;
	int why;

	/* Twice: another tracer may have let it go just now. */
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) &&
	    ptrace(PTRACE_SEIZE, tid, NULL, NULL)) {
		why = errno;
		if (why == ESRCH || has_ended(lv, tid))
			return true;
		return live_refused(lv, "cannot be stopped", why, err);
	}
	t = &MEM_PUSH(lv->threads, lv->n_threads, lv->cap_threads);
	*t = (struct live_thread){ .tid = tid, .seized = true };
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	return true;
}

/*
 * Are there threads that are not ours?  Where one ends while the list is
 * read, others can be missing from it, which it has begun.  A main thread that
 * has ended counts to the end of the others.
 */
static bool some_missing(const struct live *lv, const pid_t *tids, size_t n)
{
	struct live_status status;
	struct live_thread key;
	size_t i, n_ours = 0;

	for (i = 0; i < n && lv->n_threads; i++) {
		key.tid = tids[i];
		n_ours += bsearch(&key, lv->threads, lv->n_threads,
				  sizeof(key), by_tid) ||
			  (tids[i] == lv->pid && has_ended(lv, tids[i]));
	}
	return live_read_status(lv->proc_fd, &status) &&
	       status.threads > n_ours;
}

/* Seize those threads that are not yet; *ret_new counts them. */
static bool seize_new(struct live *lv, size_t *ret_new, bool *ret_missing,
		      struct err *err)
{
	size_t known = lv->n_threads;
	struct live_thread key;
	size_t i, n;
	pid_t *tids;
	bool ok = true;

	if (!live_list_threads(lv->proc_fd, &tids, &n))
		return live_refused(lv, "cannot list threads", errno, err);
	for (i = 0; i < n && ok; i++) {
		key.tid = tids[i];
		if (known && bsearch(&key, lv->threads, known, sizeof(key),
				     by_tid))
			continue;
		ok = seize(lv, tids[i], err);
	}
	*ret_new = lv->n_threads - known;
	SORT(lv->threads, lv->n_threads, by_tid);
	*ret_missing = ok && !*ret_new && some_missing(lv, tids, n);
	free(tids);
	return ok;
}

/* ---- waiting ---- */

/* What waitpid told of the thread. */
static void note_status(struct live_thread *t, int status)
{
	if (!WIFSTOPPED(status)) {
		t->gone = true;
		return;
	}
	t->stopped = true;
	/* Without an event, it stopped because a signal came. */
	if (!(status >> 16))
		t->signal = WSTOPSIG(status);
}

/* It has not stopped so far: will it ever? */
static void look_at(struct live *lv, struct live_thread *t, uint64_t from)
{
	char state = thread_state(lv, t->tid);

	/* The main thread of others that live on tells nobody of its end. */
	if (state == 'Z' || state == 'X')
		t->gone = true;
	else if (state == 'D' && live_now() - from > STUCK_NS)
		t->stuck = true;
}

/* Wait until the thread stands still, ends, or will not stop. */
static bool wait_stop(struct live *lv, struct live_thread *t, struct err *err)
{
	const struct timespec pause = { 0, POLL_NS };
	uint64_t from = live_now();
	unsigned polls = 0;
	int status;

	while (!t->stopped && !t->gone && !t->stuck) {
		pid_t got = waitpid(t->tid, &status, __WALL | WNOHANG);

		if (got == t->tid) {
			note_status(t, status);
			continue;
		}
		if (got < 0 && errno != EINTR) {
			t->gone = true;
			continue;
		}
		if (live_late(lv, err))
			return false;
		if (++polls < SPINS)
			sched_yield();
		else
			nanosleep(&pause, NULL);
		if (polls % SPINS == 0)
			look_at(lv, t, from);
	}
	return true;
}

static bool wait_all(struct live *lv, struct err *err)
{
	size_t i;

	for (i = 0; i < lv->n_threads; i++)
		if (!wait_stop(lv, &lv->threads[i], err))
			return false;
	return true;
}

/* ---- registers ---- */

/* The set of registers of that note type; its size, 0 if there is none. */
static size_t get_regs(pid_t tid, int type, void *buf, size_t size)
{
	struct iovec io = { buf, size };

	if (ptrace(PTRACE_GETREGSET, tid, (void *)(long)type, &io))
		return 0;
	return io.iov_len;
}

static uint8_t *copy_regs(pid_t tid, int type, size_t *ret_n)
{
	uint8_t buf[LIVE_MAX_XSTATE];
	uint8_t *copy;

	*ret_n = get_regs(tid, type, buf, sizeof(buf));
	if (!*ret_n)
		return NULL;
	copy = mem_alloc(*ret_n);
	memcpy(copy, buf, *ret_n);
	return copy;
}

static void read_regs(struct live_thread *t)
{
	t->n_regs = get_regs(t->tid, NT_PRSTATUS, t->regs, sizeof(t->regs));
	t->fpregs = copy_regs(t->tid, NT_PRFPREG, &t->n_fpregs);
	t->xstate = copy_regs(t->tid, NT_X86_XSTATE, &t->n_xstate);
	t->has_tls = get_regs(t->tid, NT_ARM_TLS, &t->tls,
			      sizeof(t->tls)) == sizeof(t->tls);
}

/* Where sp and pc are among the registers, as 64-bit words. */
#if defined(__aarch64__)
enum { REG_SP = 31, REG_PC = 32, N_REGS = 34 };
#else
enum { REG_SP = 19, REG_PC = 16, N_REGS = 27 };
#endif

/*
 * "number six-arguments sp pc" of a thread that waits in a system call, "-1
 * sp pc" elsewhere in the kernel, "running" otherwise (proc_pid_syscall(5)).
 */
static void peek_regs(const struct live *lv, struct live_thread *t)
{
	AUTO_FREE char *name = mem_printf("task/%d/syscall", (int)t->tid);
	uint64_t regs[N_REGS] = { 0 };
	unsigned long long sp = 0, pc = 0;
	struct str text;

	str_init(&text);
	if (live_read(lv->proc_fd, name, &text) && text.len &&
	    (sscanf(text.text, "-1 %llx %llx", &sp, &pc) == 2 ||
	     sscanf(text.text, "%*d %*x %*x %*x %*x %*x %*x %llx %llx", &sp,
		    &pc) == 2)) {
		regs[REG_SP] = sp;
		regs[REG_PC] = pc;
	}
	str_fini(&text);
	memcpy(t->regs, regs, sizeof(regs));
	t->n_regs = sizeof(regs);
}

static void free_thread(struct live_thread *t)
{
	free(t->fpregs);
	free(t->xstate);
}

/* Registers of all; those that ended meanwhile are forgotten. */
static void read_all_regs(struct live *lv)
{
	size_t i, n = 0, n_stuck = 0;

	for (i = 0; i < lv->n_threads; i++) {
		struct live_thread *t = &lv->threads[i];

		if (t->stopped)
			read_regs(t);
		else if (t->stuck)
			peek_regs(lv, t);
		n_stuck += t->stuck;
		if (t->gone || !t->n_regs)
			free_thread(t);
		else
			lv->threads[n++] = *t;
	}
	lv->n_threads = n;
	if (n_stuck)
		space_warn(lv->sp, "%zu threads wait inside the kernel and "
			   "could not be stopped; their registers are not "
			   "known", n_stuck);
}

bool live_stop(struct live *lv, struct err *err)
{
	unsigned in_vain = 0;
	size_t n_new = 0;
	bool missing = false;

	do {
		if (!seize_new(lv, &n_new, &missing, err) ||
		    !wait_all(lv, err))
			return false;
		in_vain = n_new ? 0 : in_vain + 1;
	} while (n_new || (missing && in_vain < MAX_LISTS));
	read_all_regs(lv);
	if (!lv->n_threads)
		return live_lost(lv, err);
	return true;
}

void live_release(struct live *lv)
{
	size_t i;

	for (i = 0; i < lv->n_threads; i++) {
		struct live_thread *t = &lv->threads[i];

		if (t->seized && t->stopped)
			ptrace(PTRACE_DETACH, t->tid, NULL,
			       (void *)(long)t->signal);
		t->seized = t->stopped = false;
	}
}

bool live_peek_threads(struct live *lv, struct err *err)
{
	size_t i, n;
	pid_t *tids;

	if (!live_list_threads(lv->proc_fd, &tids, &n))
		return live_refused(lv, "cannot list threads", errno, err);
	for (i = 0; i < n; i++) {
		struct live_thread *t;

		if (has_ended(lv, tids[i]))
			continue;
		t = &MEM_PUSH(lv->threads, lv->n_threads, lv->cap_threads);
		*t = (struct live_thread){ .tid = tids[i] };
		peek_regs(lv, t);
	}
	free(tids);
	return true;
}

void live_forget_threads(struct live *lv)
{
	size_t i;

	for (i = 0; i < lv->n_threads; i++)
		free_thread(&lv->threads[i]);
	free(lv->threads);
	lv->threads = NULL;
	lv->n_threads = lv->cap_threads = 0;
}
