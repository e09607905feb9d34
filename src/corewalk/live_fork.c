/* SPDX-License-Identifier: MIT */
/*
 * A copy that the process makes of itself.
 *
 * One of its threads is made to run clone(2) with no flags: the child has all
 * private memory as it was, costs page tables only, and never runs.  The
 * process goes on at once, and the child is read at leisure.  Rules learnt:
 *
 *  - The system call is run between two stops of PTRACE_SYSCALL, not by
 *    single steps: those send SIGTRAP, which takes away a handler of it.
 *  - All signals of that thread are blocked meanwhile.
 *  - Registers are put back in a stop of PTRACE_INTERRUPT.  Only on the way
 *    out of such a stop does the kernel look whether a system call was
 *    interrupted and starts it again (Linux, arch/x86/kernel/signal.c).
 *  - A thread in a restartable sequence (rseq(2)) is left alone: passing
 *    through user space elsewhere would let it miss its abort.
 *  - The child must not outlive us: PTRACE_O_EXITKILL.
 *  - It sends no signal when it ends, and no wait(2) of the program finds it.
 *    So the process must be made to reap it too, or it stays as a zombie.
 *  - Under seccomp a call that a program does not expect can kill it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "corewalk/live.h"

#if defined(__x86_64__)

enum {
	WAIT_MS = 2000,		/* for a stop inside an injected call */
	MAX_VDSO = 64 << 10,
};

/* Linux, include/uapi/linux/ptrace.h, 5.13. */
enum { GET_RSEQ = 0x420f };
struct rseq_configuration {
	uint64_t pointer;
	uint32_t size, signature, flags, pad;
};

/* A thread that runs system calls for us. */
struct puppet {
	struct live *lv;
	struct live_thread *t;
	vaddr syscall;		/* an instruction of that name */
	struct user_regs_struct saved;
	uint64_t mask;		/* its blocked signals */
	struct err *err;
};

static bool fail(struct puppet *p, const char *what)
{
	return err_system(p->err, "%s: cannot fork it: %s", p->lv->core.name,
			  what);
}

/* ---- is it possible? ---- */

static bool find_syscall(const struct live *lv, vaddr *ret)
{
	AUTO_FREE uint8_t *code = mem_alloc(MAX_VDSO);
	size_t i, k;

	for (i = 0; i < lv->n_maps; i++) {
		const struct live_map *map = &lv->maps[i];
		size_t size = min_u64(map->end - map->start, MAX_VDSO);

		if (strcmp(map->name, "[vdso]") != 0 ||
		    pread(lv->mem_fd, code, size, (off_t)map->start) !=
		    (ssize_t)size)
			continue;
		for (k = 0; k + 1 < size; k++)
			if (code[k] == 0x0f && code[k + 1] == 0x05) {
				*ret = map->start + k;
				return true;
			}
	}
	return false;
}

/* Inside a restartable sequence, or perhaps. */
static bool in_rseq(const struct live *lv, pid_t tid)
{
	struct rseq_configuration rseq = { 0 };
	uint64_t cs = 0;

	if (ptrace((enum __ptrace_request)GET_RSEQ, tid,
		   (void *)sizeof(rseq), &rseq) < 0 || !rseq.pointer)
		return false;
	/* struct rseq, rseq_cs. */
	return pread(lv->mem_fd, &cs, sizeof(cs),
		     (off_t)(rseq.pointer + 8)) != sizeof(cs) || cs;
}

/* One that waits in a system call is best: it is in no one's way. */
static struct live_thread *choose(struct live *lv)
{
	struct live_thread *best = NULL;
	size_t i;

	for (i = 0; i < lv->n_threads; i++) {
		struct live_thread *t = &lv->threads[i];
		struct user_regs_struct regs;

		if (!t->stopped || t->signal ||
		    ptrace(PTRACE_GETREGS, t->tid, NULL, &regs))
			continue;
		if ((long)regs.orig_rax >= 0)
			return t;
		if (!best && !in_rseq(lv, t->tid))
			best = t;
	}
	return best;
}

static bool possible(struct puppet *p)
{
	struct live_status status;
	struct live *lv = p->lv;

	if (!live_read_status(lv->proc_fd, &status))
		return live_refused(lv, "cannot read status", errno, p->err);
	if (status.seccomp) {
		err_set(p->err, ERR_UNSUPPORTED, "%s: cannot be forked: it "
			"runs under seccomp", lv->core.name);
		return err_hint(p->err, "Take the snapshot without --fork.");
	}
	p->t = choose(lv);
	if (p->t && find_syscall(lv, &p->syscall))
		return true;
	err_set(p->err, ERR_UNSUPPORTED, "%s: cannot be forked: %s",
		lv->core.name, p->t ? "its vdso has no system call" :
		"no thread of it can do it now");
	return err_hint(p->err, "Try again, or without --fork.");
}

/* ---- running a call ---- */

/* The next stop of the thread; its status, -1 if it does not come. */
static int next_stop(pid_t tid)
{
	const struct timespec pause = { 0, 20000 };
	uint64_t until = live_now() + WAIT_MS * UINT64_C(1000000);
	int status;

	while (live_now() < until) {
		pid_t got = waitpid(tid, &status, __WALL | WNOHANG);

		if (got == tid)
			return WIFSTOPPED(status) ? status : -1;
		if (got < 0 && errno != EINTR)
			return -1;
		nanosleep(&pause, NULL);
	}
	errno = ETIMEDOUT;
	return -1;
}

static bool is_syscall_stop(int status)
{
	return status >= 0 && WSTOPSIG(status) == (SIGTRAP | 0x80);
}

/*
 * Enter the call and leave it; *ret is what it returned.  *ret_child is the
 * child that it made, if it made one.
 */
static bool pass_through(struct puppet *p, long *ret, pid_t *ret_child)
{
	struct user_regs_struct regs;
	unsigned long message = 0;
	unsigned stops = 0;
	pid_t tid = p->t->tid;
	int status;

	for (;;) {
		if (ptrace(PTRACE_SYSCALL, tid, NULL, NULL))
			return fail(p, "it does not go on");
		status = next_stop(tid);
		if (status < 0)
			return fail(p, "it does not stop again");
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_CLONE << 8)) {
			if (!ptrace(PTRACE_GETEVENTMSG, tid, NULL, &message) &&
			    ret_child)
				*ret_child = (pid_t)message;
		} else if (is_syscall_stop(status) && ++stops == 2) {
			break;
		} else if (!is_syscall_stop(status) &&
			   status >> 16 != PTRACE_EVENT_STOP) {
			errno = EINTR;
			return fail(p, "a signal came in between");
		}
	}
	if (ptrace(PTRACE_GETREGS, tid, NULL, &regs))
		return fail(p, "its registers cannot be read");
	*ret = (long)regs.rax;
	return true;
}

/* Its own registers again, where the kernel restarts interrupted calls. */
static bool put_back(struct puppet *p)
{
	pid_t tid = p->t->tid;
	int status;

	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	if (ptrace(PTRACE_CONT, tid, NULL, NULL))
		return fail(p, "it does not go on");
	status = next_stop(tid);
	if (status < 0)
		return fail(p, "it does not stop again");
	if (ptrace(PTRACE_SETREGS, tid, NULL, &p->saved) ||
	    ptrace(PTRACE_SETSIGMASK, tid, (void *)sizeof(p->mask),
		   &p->mask) ||
	    ptrace(PTRACE_SETOPTIONS, tid, NULL, NULL))
		return fail(p, "its registers cannot be put back");
	return true;
}

static bool run_call(struct puppet *p, long number, const long args[4],
		     long *ret, pid_t *ret_child)
{
	const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE;
	uint64_t all = ~UINT64_C(0);
	struct user_regs_struct regs;
	pid_t tid = p->t->tid;
	bool ok;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &p->saved) ||
	    ptrace(PTRACE_GETSIGMASK, tid, (void *)sizeof(p->mask),
		   &p->mask) ||
	    ptrace(PTRACE_SETOPTIONS, tid, NULL, (void *)options))
		return fail(p, "its registers cannot be read");
	regs = p->saved;
	regs.rip = p->syscall;
	regs.rax = (unsigned long long)number;
	/* No system call that was interrupted must be restarted here. */
	regs.orig_rax = (unsigned long long)-1;
	regs.rdi = (unsigned long long)args[0];
	regs.rsi = (unsigned long long)args[1];
	regs.rdx = (unsigned long long)args[2];
	regs.r10 = (unsigned long long)args[3];
	regs.r8 = 0;
	ok = !ptrace(PTRACE_SETSIGMASK, tid, (void *)sizeof(all), &all) &&
	     !ptrace(PTRACE_SETREGS, tid, NULL, &regs);
	if (ok)
		ok = pass_through(p, ret, ret_child);
	else
		fail(p, "its registers cannot be set");
	/* Whatever came of it. */
	return put_back(p) && ok;
}

/* ---- the child ---- */

static void kill_child(pid_t child)
{
	kill(child, SIGKILL);
	ptrace(PTRACE_CONT, child, NULL, NULL);
	waitpid(child, NULL, __WALL);
}

/* The kernel stops it before its first instruction. */
static bool hold_child(struct puppet *p, pid_t child)
{
	if (next_stop(child) < 0)
		return fail(p, "its child does not stop");
	if (ptrace(PTRACE_SETOPTIONS, child, NULL,
		   (void *)(long)PTRACE_O_EXITKILL))
		return fail(p, "its child cannot be held");
	return true;
}

/* The number that the process itself knows it by; 0 if not known. */
static pid_t inner_pid(pid_t child)
{
	AUTO_FREE char *path = mem_printf("/proc/%d/status", (int)child);
	const char *at, *last = NULL;
	struct str text;
	pid_t pid = 0;

	str_init(&text);
	if (live_read(AT_FDCWD, path, &text)) {
		at = strstr(text.text, "\nNSpid:");
		for (at = at ? at + 7 : NULL; at && *at && *at != '\n'; at++)
			if (*at == '\t')
				last = at + 1;
		if (last)
			pid = (pid_t)atoi(last);
	}
	str_fini(&text);
	return pid;
}

bool live_fork(struct live *lv, pid_t *ret_child, pid_t *ret_inner,
	       struct err *err)
{
	static const long no_args[4];
	struct puppet p = { .lv = lv, .err = err };
	pid_t child = 0;
	long value = 0;
	bool ok;

	if (!possible(&p))
		return false;
	ok = run_call(&p, SYS_clone, no_args, &value, &child);
	if (ok && value < 0) {
		errno = (int)-value;
		ok = fail(&p, "clone");
	}
	if (child) {
		ok = hold_child(&p, child) && ok;
		*ret_inner = inner_pid(child);
		*ret_child = child;
	} else if (ok) {
		errno = ECHILD;
		ok = fail(&p, "it has no child");
	}
	return ok;
}

/* Stop the process once more, to take the dead child from it. */
void live_reap(struct live *lv, pid_t child, pid_t inner)
{
	const long args[4] = { inner, 0, WNOHANG | __WALL, 0 };
	struct err err;
	struct puppet p = { .lv = lv, .err = &err };
	long value = -1;

	kill_child(child);
	live_forget_threads(lv);
	lv->deadline_ns = live_now() + (uint64_t)(lv->options.max_pause_s *
						  1e9);
	if (inner && live_stop(lv, &err) && possible(&p) &&
	    run_call(&p, SYS_wait4, args, &value, NULL) && value == inner)
		value = 0;
	live_release(lv);
	if (value)
		space_warn(lv->sp, "the child that it was made to fork stays "
			   "as a zombie (%d) until it ends", (int)child);
}

#else

bool live_fork(struct live *lv, pid_t *ret_child, pid_t *ret_inner,
	       struct err *err)
{
	(void)ret_child;
	(void)ret_inner;
	return err_set(err, ERR_UNSUPPORTED, "%s: --fork is not known on this "
		       "machine", lv->core.name);
}

void live_reap(struct live *lv, pid_t child, pid_t inner)
{
	(void)lv;
	(void)child;
	(void)inner;
}

#endif
