/* SPDX-License-Identifier: MIT */
#include "base/temp.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

const char *temp_dir(const char *dir)
{
	if (!dir || !dir[0])
		dir = getenv("TMPDIR");
	return dir && dir[0] ? dir : "/tmp";
}

int temp_file(const char *dir)
{
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	AUTO_FREE char *path = NULL;

	if (fd >= 0)
		return fd;
	/* Not every file system can make one. */
	path = mem_printf("%s/heapcore.XXXXXX", dir);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

int temp_unnamed(const char *path)
{
	AUTO_FREE char *dir = mem_strdup(path);
	char *slash = strrchr(dir, '/');

	if (slash == dir)
		slash[1] = '\0';
	else if (slash)
		*slash = '\0';
	return open(slash ? dir : ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

/* It must not exist. */
static bool link_as(int fd, const char *name)
{
	char self[32];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
}

/* link(2) does not replace: take a name beside it, as mkstemp(3) would. */
static bool link_over(int fd, const char *path)
{
	for (unsigned tries = 0; tries < 100; tries++) {
		AUTO_FREE char *beside = mem_printf("%s.%d.%u", path,
						    (int)getpid(), tries);
		int why;

		if (!link_as(fd, beside)) {
			if (errno != EEXIST)
				return false;
			continue;
		}
		if (!rename(beside, path))
			return true;
		why = errno;
		unlink(beside);
		errno = why;
		return false;
	}
	return false;
}

/* A signal that ends us waits until the name beside is gone again. */
bool temp_name(int fd, const char *path, bool replace)
{
	sigset_t all, old;
	bool ok;
	int why;

	if (link_as(fd, path))
		return true;
	if (errno != EEXIST || !replace)
		return false;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	ok = link_over(fd, path);
	why = errno;
	sigprocmask(SIG_SETMASK, &old, NULL);
	errno = why;
	return ok;
}
