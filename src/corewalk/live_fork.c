/* SPDX-License-Identifier: MIT */
/*
 * A copy that the process makes of itself.
 *
 * One of its threads is made to run clone(2) twice, as live_chain.h tells: a
 * helper, and by the helper the copy, which has all private memory as it was,
 * costs page tables only, and never runs.  The process goes on at once, and
 * the copy is read at leisure.  Rules learnt:
 *
 *  - System calls are run between two stops of PTRACE_SYSCALL, not by single
 *    steps: those send SIGTRAP, which takes away a handler of it.
 *  - All signals of that thread are blocked meanwhile.
 *  - Registers are put back in a stop of PTRACE_INTERRUPT.  Only on the way
 *    out of such a stop does the kernel look whether a system call was
 *    interrupted and starts it again (Linux, arch/x86/kernel/signal.c).
 *  - A thread in a restartable sequence (rseq(2)) is left alone: passing
 *    through user space elsewhere would let it miss its abort.
 *  - We may be killed between any two calls.  So the way back is in memory
 *    before registers change, the signal mask changes only while the way back
 *    would restore it, and memory is put back last.  Where something fails,
 *    the thread is just let go: it takes that way.
 *  - The helper comes and goes while all threads stand still, so that no
 *    wait(2) of the program finds it; the process is made to reap it.  The copy
 *    belongs to the init process then.  Only if that, or a subreaper, is the
 *    process itself, it must be made to reap that too, in a stop of its own.
 *  - The copy must not outlive us: PTRACE_O_EXITKILL.
 *  - It shares the table of files: no file stays open because of it.
 *  - Under seccomp a call that a program does not expect can kill it; with
 *    shadow stacks the way back is barred.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "corewalk/live_chain.h"

#if defined(__x86_64__)

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
	struct chain chain;
	int mem_fd;		/* for writing */
	uint64_t mask;		/* its blocked signals */
	struct err *err;
};

static bool fail(struct puppet *p, const char *what)
{
	return err_system(p->err, "%s: cannot fork it: %s", p->lv->core.name,
			  what);
}

/* ---- is it possible? ---- */

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

/* Its children would begin a namespace, and that ends with the first. */
static bool begins_namespace(const struct live *lv)
{
	char own[64], children[64];
	ssize_t n = readlinkat(lv->mm_fd, "ns/pid", own, sizeof(own));
	ssize_t m = readlinkat(lv->mm_fd, "ns/pid_for_children", children,
			       sizeof(children));

	return n > 0 && (m != n || memcmp(own, children, (size_t)n));
}

static bool can_run(const struct live *lv, const struct live_thread *t)
{
	struct user_regs_struct regs;

	return t->stopped && !t->signal &&
	       !ptrace(PTRACE_GETREGS, t->tid, NULL, &regs) &&
	       ((long)regs.orig_rax >= 0 || !in_rseq(lv, t->tid));
}

/* The main thread, on whose stack the way back is; any if it has ended. */
static struct live_thread *choose(struct live *lv)
{
	struct live_thread *any = NULL;
	size_t i;

	for (i = 0; i < lv->n_threads; i++) {
		struct live_thread *t = &lv->threads[i];
		bool can = can_run(lv, t);

		if (t->tid == lv->pid)
			return can ? t : NULL;
		if (!any && can)
			any = t;
	}
	return any;
}

static bool impossible(struct puppet *p, const char *why)
{
	err_set(p->err, ERR_UNSUPPORTED, "%s: cannot be forked: %s",
		p->lv->core.name, why);
	return err_hint(p->err, "Take the snapshot without --fork.");
}

static bool possible(struct puppet *p)
{
	struct live_status status;
	struct live *lv = p->lv;

	if (!live_read_status(lv->proc_fd, &status))
		return live_refused(lv, "cannot read status", errno, p->err);
	if (status.seccomp)
		return impossible(p, "it runs under seccomp");
	if (status.shadow_stack)
		return impossible(p, "it has shadow stacks");
	if (begins_namespace(lv))
		return impossible(p, "its children are in another namespace");
	p->t = choose(lv);
	if (p->t)
		return true;
	impossible(p, "its main thread cannot do it now");
	return err_hint(p->err, "Try again, or without --fork.");
}

/* ---- running a call ---- */

/* Until it stops or ends; false if it does neither in time. */
static bool next_event(struct puppet *p, pid_t tid, int *ret_status)
{
	const struct timespec pause = { 0, 20000 };

	do {
		pid_t got = waitpid(tid, ret_status, __WALL | WNOHANG);

		if (got == tid)
			return true;
		if (got < 0 && errno != EINTR)
			return fail(p, "it does not stop again");
		nanosleep(&pause, NULL);
	} while (!live_late(p->lv, p->err));
	return false;
}

static bool next_stop(struct puppet *p, pid_t tid, int *ret_status)
{
	if (!next_event(p, tid, ret_status))
		return false;
	errno = ESRCH;
	return WIFSTOPPED(*ret_status) ||
	       fail(p, "it ended on the way");
}

/*
 * Enter a call and leave it; *ret is what it returned.  *ret_made is the
 * process that it made, if it made one.
 */
static bool pass_through(struct puppet *p, pid_t tid, long *ret,
			 pid_t *ret_made)
{
	struct user_regs_struct regs;
	unsigned long message = 0;
	unsigned stops = 0;
	int status;

	while (stops < 2) {
		if (ptrace(PTRACE_SYSCALL, tid, NULL, NULL))
			return fail(p, "it does not go on");
		if (!next_stop(p, tid, &status))
			return false;
		if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
			stops++;
		} else if (status >> 8 ==
			   (SIGTRAP | PTRACE_EVENT_CLONE << 8)) {
			if (!ptrace(PTRACE_GETEVENTMSG, tid, NULL, &message))
				*ret_made = (pid_t)message;
		} else if (status >> 16 != PTRACE_EVENT_STOP) {
			errno = EINTR;
			return fail(p, "a signal came in between");
		}
	}
	if (ptrace(PTRACE_GETREGS, tid, NULL, &regs))
		return fail(p, "its registers cannot be read");
	*ret = (long)regs.rax;
	return true;
}

/* A call by our thread, which then stands at its end. */
static bool run_call(struct puppet *p, struct user_regs_struct regs,
		     long *ret, pid_t *ret_made)
{
	uint64_t all = ~UINT64_C(0);
	pid_t tid = p->t->tid;

	/* In this order: the way back has the mask of its own. */
	if (ptrace(PTRACE_SETREGS, tid, NULL, &regs) ||
	    ptrace(PTRACE_SETSIGMASK, tid, (void *)sizeof(all), &all))
		return fail(p, "its registers cannot be set");
	return pass_through(p, tid, ret, ret_made);
}

/* Its registers and its memory become ours. */
static bool begin(struct puppet *p)
{
	const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE;
	struct user_regs_struct regs;
	pid_t tid = p->t->tid;
	const char *why;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &regs) ||
	    ptrace(PTRACE_GETSIGMASK, tid, (void *)sizeof(p->mask),
		   &p->mask) ||
	    ptrace(PTRACE_SETOPTIONS, tid, NULL, (void *)options))
		return fail(p, "its registers cannot be read");
	why = live_chain_make(&p->chain, p->lv, p->t, &regs, p->mask);
	if (why)
		return impossible(p, why);
	p->mem_fd = openat(p->lv->mm_fd, "mem", O_RDWR | O_CLOEXEC);
	return (p->mem_fd >= 0 && live_chain_put(&p->chain, p->mem_fd)) ||
	       fail(p, "its stack cannot be written");
}

/* Its own registers again, where the kernel restarts interrupted calls. */
static bool put_back(struct puppet *p)
{
	pid_t tid = p->t->tid;
	int status;

	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	if (ptrace(PTRACE_CONT, tid, NULL, NULL))
		return fail(p, "it does not go on");
	if (!next_stop(p, tid, &status))
		return false;
	if (ptrace(PTRACE_SETSIGMASK, tid, (void *)sizeof(p->mask),
		   &p->mask) ||
	    ptrace(PTRACE_SETREGS, tid, NULL, &p->chain.own) ||
	    ptrace(PTRACE_SETOPTIONS, tid, NULL, NULL))
		return fail(p, "its registers cannot be put back");
	return live_chain_undo(&p->chain, p->mem_fd) ||
	       fail(p, "its stack cannot be put back");
}

static void end(struct puppet *p)
{
	if (p->mem_fd >= 0)
		close(p->mem_fd);
	live_chain_fini(&p->chain);
}

/* What a call returned: a number of a process, or that it failed. */
static bool returned(struct puppet *p, const char *call, long value)
{
	if (value > 0)
		return true;
	errno = value ? (int)-value : ECHILD;
	return fail(p, call);
}

/* ---- helper and copy ---- */

static void kill_copy(pid_t copy)
{
	kill(copy, SIGKILL);
	ptrace(PTRACE_CONT, copy, NULL, NULL);
	waitpid(copy, NULL, __WALL);
}

/* The kernel stops it before its first instruction. */
static bool hold_copy(struct puppet *p, pid_t copy)
{
	AUTO_FREE char *path = mem_printf("/proc/%d/mem", (int)copy);
	int status, fd;
	bool ok;

	if (!next_stop(p, copy, &status))
		return false;
	if (ptrace(PTRACE_SETOPTIONS, copy, NULL,
		   (void *)(long)PTRACE_O_EXITKILL))
		return fail(p, "its copy cannot be held");
	fd = open(path, O_RDWR | O_CLOEXEC);
	ok = fd >= 0 && live_chain_undo(&p->chain, fd);
	if (fd >= 0)
		close(fd);
	return ok || fail(p, "its copy cannot be written");
}

/* The helper takes the ordinary way through its entries, to its end. */
static bool run_helper(struct puppet *p, pid_t helper, long *ret,
		       pid_t *ret_copy)
{
	int status;

	if (!next_stop(p, helper, &status) ||
	    /* rt_sigreturn, then clone */
	    !pass_through(p, helper, ret, ret_copy) ||
	    !pass_through(p, helper, ret, ret_copy) ||
	    (*ret_copy && !hold_copy(p, *ret_copy)))
		return false;
	do {
		if (ptrace(PTRACE_CONT, helper, NULL, NULL))
			return fail(p, "its helper does not go on");
		if (!next_event(p, helper, &status))
			return false;
	} while (WIFSTOPPED(status));
	return true;
}

static bool fork_it(struct puppet *p, pid_t *ret_copy)
{
	const struct chain *c = &p->chain;
	struct user_regs_struct regs;
	long value = 0, copied = 0;
	pid_t helper = 0;

	regs = live_chain_call(c, SYS_clone, CLONE_VM | CLONE_FILES |
			       CLONE_PARENT_SETTID, c->fork, c->wait);
	regs.rdx = c->helper;
	if (!run_call(p, regs, &value, &helper))
		return false;
	if (!helper)
		return put_back(p) && returned(p, "clone", value);
	if (!run_helper(p, helper, &copied, ret_copy))
		return false;
	regs = live_chain_call(c, SYS_wait4, (uint64_t)value, 0, c->back);
	regs.rdx = __WALL;
	return run_call(p, regs, &value, &helper) && put_back(p) &&
	       returned(p, "wait", value) &&
	       returned(p, "clone of its helper", copied);
}

/* The number that the process itself knows it by; 0 if not known. */
static pid_t inner_pid(pid_t copy)
{
	AUTO_FREE char *path = mem_printf("/proc/%d/status", (int)copy);
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

/* Whose child it is: if that of the process itself, its number there. */
static pid_t must_reap(const struct live *lv, pid_t copy)
{
	AUTO_FREE char *path = mem_printf("/proc/%d", (int)copy);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct live_stat stat;
	pid_t ret = 0;

	if (fd < 0)
		return 0;
	if (live_read_stat(fd, &stat) && stat.ppid == lv->pid)
		ret = inner_pid(copy);
	close(fd);
	return ret;
}

bool live_fork(struct live *lv, pid_t *ret_copy, pid_t *ret_inner,
	       struct err *err)
{
	struct puppet p = { .lv = lv, .mem_fd = -1, .err = err };
	bool ok;

	if (!possible(&p))
		return false;
	ok = begin(&p) && fork_it(&p, ret_copy) &&
	     (*ret_copy || fail(&p, "it has no copy"));
	end(&p);
	if (*ret_copy)
		*ret_inner = must_reap(lv, *ret_copy);
	return ok && !live_late(lv, err);
}

static bool reap_in_it(struct live *lv, pid_t inner, struct err *err)
{
	struct puppet p = { .lv = lv, .mem_fd = -1, .err = err };
	struct user_regs_struct regs;
	pid_t none = 0;
	long value = 0;
	bool ok;

	if (!live_stop(lv, err) || !possible(&p))
		return false;
	ok = begin(&p);
	if (ok) {
		regs = live_chain_call(&p.chain, SYS_wait4, (uint64_t)inner, 0,
				       p.chain.back);
		regs.rdx = WNOHANG | __WALL;
		ok = run_call(&p, regs, &value, &none) && put_back(&p);
	}
	end(&p);
	/* It may have been faster: a program that is init reaps. */
	return ok && (value == inner || value == -ECHILD);
}

void live_reap(struct live *lv, pid_t copy, pid_t inner)
{
	struct err err;

	kill_copy(copy);
	if (!inner)
		return;
	live_forget_threads(lv);
	if (!reap_in_it(lv, inner, &err))
		space_warn(lv->sp, "the child that it was made to fork stays "
			   "as a zombie (%d) until it is waited for",
			   (int)copy);
	live_release(lv);
}

#else

bool live_fork(struct live *lv, pid_t *ret_copy, pid_t *ret_inner,
	       struct err *err)
{
	(void)ret_copy;
	(void)ret_inner;
	return err_set(err, ERR_UNSUPPORTED, "%s: --fork is not known on this "
		       "machine", lv->core.name);
}

void live_chain_look(struct live *lv)
{
	(void)lv;
}

void live_reap(struct live *lv, pid_t copy, pid_t inner)
{
	(void)lv;
	(void)copy;
	(void)inner;
}

#endif
