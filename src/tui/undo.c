/* SPDX-License-Identifier: MIT */
#include "tui/undo.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* No status of heapcore's. */
enum { CANCELLED = 77 };

static const int passed_on[] = {
	SIGHUP, SIGTERM, SIGQUIT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT,
	SIGPIPE, SIGALRM, SIGXCPU, SIGTSTP,
};

/* State of the process, as that of the terminal is: see term.c. */
static volatile sig_atomic_t computes;
static volatile pid_t child;

void undo_on_interrupt(void)
{
	if (computes)
		_exit(CANCELLED);
}

void undo_done(void)
{
	computes = 0;
}

static void pass_on(int sig)
{
	if (child > 0)
		kill(child, sig);
}

/* The terminal is as the child left it. */
static void end_as(int status)
{
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

/* Returns if the child was cancelled, with SIGINT still blocked. */
static void wait_for(pid_t pid)
{
	struct sigaction old[countof(passed_on)];
	struct sigaction act = { .sa_flags = 0 };
	int status = 0;
	pid_t got;

	sigemptyset(&act.sa_mask);
	child = pid;
	for (size_t i = 0; i < countof(passed_on); i++) {
		/* Ctrl-Z reaches the child by itself. */
		act.sa_handler = passed_on[i] == SIGTSTP ? SIG_IGN : pass_on;
		sigaction(passed_on[i], &act, &old[i]);
	}
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
