/* SPDX-License-Identifier: MIT */
#include "check.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tui/undo.h"

static int to_us[2];

static void on_interrupt(int sig)
{
	(void)sig;
	undo_on_interrupt();
}

/* In a process group of its own, as the foreground of a terminal is. */
static pid_t start(void (*browser)(void))
{
	pid_t pid;

	if (pipe(to_us))
		abort();
	pid = fork();
	if (pid == 0) {
		setpgid(0, 0);
		signal(SIGINT, on_interrupt);
		browser();
		_exit(99);
	}
	setpgid(pid, pid);
	close(to_us[1]);
	return pid;
}

static char heard(void)
{
	char c = 0;

	return read(to_us[0], &c, 1) == 1 ? c : '?';
}

static void say(char c)
{
	(void)!write(to_us[1], &c, 1);
}

static int status_of(pid_t pid)
{
	int status = 0;

	waitpid(pid, &status, 0);
	/* The last writer is gone: nobody was left behind. */
	CHECK_U64((uint64_t)heard(), '?');
	close(to_us[0]);
	return status;
}

static volatile int state = 1;

static void computes_for_ever(void)
{
	bool cancelled;

	if (undo_point(&cancelled)) {
		state = 2;
		say('c');
		for (;;)
			pause();
	}
	say(cancelled ? 'x' : 'n');
	_exit(40 + state);
}

TEST(an_interrupt_takes_back_what_was_computed)
{
	pid_t pid = start(computes_for_ever);

	CHECK_U64((uint64_t)heard(), 'c');
	kill(-pid, SIGINT);
	CHECK_U64((uint64_t)heard(), 'x');
	CHECK_U64((uint64_t)WEXITSTATUS(status_of(pid)), 41);
}

TEST(a_signal_that_ends_is_passed_on)
{
	pid_t pid = start(computes_for_ever);
	int status;

	CHECK_U64((uint64_t)heard(), 'c');
	kill(pid, SIGTERM);
	status = status_of(pid);
	CHECK(WIFSIGNALED(status));
	CHECK_U64((uint64_t)WTERMSIG(status), SIGTERM);
}

TEST(who_computes_does_not_outlive_who_waits)
{
	pid_t pid = start(computes_for_ever);

	CHECK_U64((uint64_t)heard(), 'c');
	kill(pid, SIGKILL);
	CHECK(WIFSIGNALED(status_of(pid)));
}

static void computes_twice(void)
{
	bool cancelled;

	for (int i = 0; i < 2; i++) {
		if (!undo_point(&cancelled) || !undo_point(&cancelled))
			_exit(98);
		state++;
		undo_done();
	}
	/* Now Ctrl-C is a key as others. */
	raise(SIGINT);
	_exit(40 + state);
}

TEST(what_was_computed_stays)
{
	pid_t pid = start(computes_twice);

	CHECK_U64((uint64_t)WEXITSTATUS(status_of(pid)), 43);
}
