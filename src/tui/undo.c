/* SPDX-License-Identifier: MIT */
#include "tui/undo.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tui/term.h"

/* No status of heapcore's. */
enum { CANCELLED = 77 };

static const int passed_on[] = {
	SIGHUP, SIGTERM, SIGQUIT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT,
	SIGPIPE, SIGALRM, SIGXCPU, SIGTSTP,
};

/* State of the process, as that of the terminal is: see term.c. */
static volatile sig_atomic_t computes;
static volatile pid_t child;

/* What the supervisor and its browser both see; NULL: there is none. */
static volatile struct shared {
	pid_t supervisor, browser;
} *shared;

void undo_on_interrupt(void)
{
	if (computes)
		_exit(CANCELLED);
}

/*
 * The parent has nothing to go back to any more.  When it is gone, this is the
 * supervisor's child.
 */
static void take_over(void)
{
	const struct timespec moment = { .tv_nsec = 1000 * 1000 };
	pid_t parent = getppid();

	prctl(PR_SET_PDEATHSIG, 0);
	if (parent != shared->supervisor) {
		shared->browser = getpid();
		kill(parent, SIGKILL);
	}
	for (int i = 0; i < 1000 && getppid() != shared->supervisor; i++)
		nanosleep(&moment, NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != shared->supervisor)
		raise(SIGTERM);
}

void undo_done(void)
{
	if (computes && shared)
		take_over();
	computes = 0;
}

static void pass_on(int sig)
{
	pid_t to = child > 0 ? child : shared ? shared->browser : 0;

	if (to > 0)
		kill(to, sig);
}

/* Ctrl-C reaches the browser by itself. */
static void pass_on_interrupt(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_code == SI_USER)
		pass_on(sig);
}

/* Nothing but SIGKILL keeps the child from leaving the terminal as it was. */
static void end_as(int status)
{
	term_restore();
	if (!WIFSIGNALED(status))
		_exit(WEXITSTATUS(status));
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	_exit(2);
}

/*
 * Once the child has stopped and put the terminal back, not before: the shell
 * goes on writing to it.
 */
static void stop_too(void)
{
	signal(SIGTSTP, SIG_DFL);
	raise(SIGTSTP);
	signal(SIGTSTP, SIG_IGN);
}

static void pass_all_on(struct sigaction old[countof(passed_on)])
{
	struct sigaction act = { .sa_flags = 0 };

	sigemptyset(&act.sa_mask);
	for (size_t i = 0; i < countof(passed_on); i++) {
		/* Ctrl-Z reaches the child by itself. */
		act.sa_handler = passed_on[i] == SIGTSTP ? SIG_IGN : pass_on;
		sigaction(passed_on[i], &act, &old[i]);
	}
}

/* Returns if the child was cancelled, with SIGINT still blocked. */
static void wait_for(pid_t pid)
{
	struct sigaction old[countof(passed_on)];
	int status = 0;
	pid_t got;

	child = pid;
	pass_all_on(old);
	for (;;) {
		got = waitpid(pid, &status, WUNTRACED);
		if (got > 0 && WIFSTOPPED(status))
			stop_too();
		else if (got >= 0 || errno != EINTR)
			break;
	}
	child = 0;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != CANCELLED)
		end_as(status);
	for (size_t i = 0; i < countof(passed_on); i++)
		sigaction(passed_on[i], &old[i], NULL);
}

/* Until the last one to take over ends. */
static void supervise(void)
{
	struct sigaction old[countof(passed_on)];
	struct sigaction act = {
		.sa_sigaction = pass_on_interrupt, .sa_flags = SA_SIGINFO,
	};
	int status = 0;
	pid_t got;

	sigemptyset(&act.sa_mask);
	sigaction(SIGINT, &act, NULL);
	pass_all_on(old);
	for (;;) {
		got = waitpid(-1, &status, WUNTRACED);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			_exit(2);
		if (got != shared->browser)
			continue;
		if (!WIFSTOPPED(status))
			end_as(status);
		stop_too();
	}
}

void undo_begin(void)
{
	struct shared *both = mmap(NULL, sizeof(*both), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sigset_t all, before;
	pid_t pid;

	if (both == MAP_FAILED)
		return;
	shared = both;
	term_share();
	shared->supervisor = getpid();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	pid = fork();
	if (pid == 0) {
		shared->browser = getpid();
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != shared->supervisor)
			_exit(2);
	}
	if (pid > 0)
		shared->browser = pid;
	if (pid < 0)
		shared = NULL;
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (pid > 0)
		supervise();
}

bool undo_point(bool *ret_cancelled)
{
	sigset_t interrupt, before;
	pid_t parent = getpid();
	pid_t pid;

	*ret_cancelled = false;
	if (computes)
		return true;
	/* Neither of the two may get it before it knows what it is. */
	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	sigprocmask(SIG_BLOCK, &interrupt, &before);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent)
			_exit(2);
		computes = 1;
	}
	if (pid > 0) {
		wait_for(pid);
		*ret_cancelled = true;
	}
	/* What was for the child is not for us. */
	if (pid > 0) {
		const struct timespec now = { 0 };

		sigtimedwait(&interrupt, NULL, &now);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return pid == 0;
}
