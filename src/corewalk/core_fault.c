/* SPDX-License-Identifier: MIT */
/*
 * A mapped file that shrinks, or a disk that fails, while its bytes are being
 * read: the kernel sends SIGBUS.  There is nothing to go on with, so the
 * handler says which file it was and ends the program with status 2.
 *
 * A signal handler has no argument to carry this: hence the table, the one
 * thing here that is global and changes.
 */
#include "corewalk/core.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { MAX_WATCHED = 8 };

static struct {
	const uint8_t *start, *end;	/* NULL: not in use */
	const char *name;		/* borrowed until core_unwatch */
} watched[MAX_WATCHED];

static void say(const char *text)
{
	size_t n = strlen(text);

	while (n) {
		ssize_t done = write(STDERR_FILENO, text, n);

		if (done <= 0)
			return;
		text += done;
		n -= (size_t)done;
	}
}

static void on_sigbus(int number, siginfo_t *info, void *context)
{
	const uint8_t *at = info->si_addr;
	size_t i;

	(void)context;
	for (i = 0; i < MAX_WATCHED; i++) {
		if (at < watched[i].start || at >= watched[i].end)
			continue;
		say("heapcore: ");
		say(watched[i].name);
		say(": the file shrank while being read\n");
		_exit(2);
	}
	/* Not ours: let it happen again, and end as it would have. */
	signal(number, SIG_DFL);
}

void core_watch(const void *data, size_t size, const char *name)
{
	struct sigaction sa = { .sa_flags = SA_SIGINFO };
	size_t i;

	sa.sa_sigaction = on_sigbus;
	for (i = 0; i < MAX_WATCHED; i++) {
		if (watched[i].start)
			continue;
		watched[i].name = name;
		watched[i].end = (const uint8_t *)data + size;
		watched[i].start = data;
		sigaction(SIGBUS, &sa, NULL);
		return;
	}
}

void core_unwatch(const void *data)
{
	size_t i;

	for (i = 0; i < MAX_WATCHED; i++) {
		if (watched[i].start != data || !data)
			continue;
		watched[i].start = NULL;
		watched[i].end = NULL;
	}
}
