/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the files of /proc/PID that are read: maps, status and stat, of
 * which each gets all of the input.
 *
 * Code: corewalk/live_proc
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "corewalk/live.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = { "maps", "status", "stat" };
static char folder[] = "/tmp/heapcore-fuzz.XXXXXX";

static void remove_folder(void)
{
	int dir = open(folder, O_DIRECTORY | O_CLOEXEC);

	for (size_t i = 0; i < countof(names); i++)
		unlinkat(dir, names[i], 0);
	close(dir);
	rmdir(folder);
}

/* However this process ends, another one then removes it. */
static void remove_in_the_end(void)
{
	int life[2];
	char c;

	if (pipe2(life, O_CLOEXEC))
		abort();
	if (!fork()) {
		close(life[1]);
		setsid();
		while (read(life[0], &c, 1) < 0)
			;
		remove_folder();
		_exit(0);
	}
	close(life[0]);
}

/* A folder whose files are all the same memory. */
static int make_folder(int fd)
{
	int dir = mkdtemp(folder) ? open(folder, O_DIRECTORY | O_CLOEXEC) : -1;
	char file[64];

	snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
	for (size_t i = 0; i < countof(names); i++)
		if (dir < 0 || symlinkat(file, dir, names[i]))
			abort();
	remove_in_the_end();
	return dir;
}

static void check_maps(int dir)
{
	struct live_map *maps;
	size_t n = 0;

	if (!live_read_maps(dir, &maps, &n))
		abort();
	for (size_t i = 0; i < n; i++)
		if (maps[i].start >= maps[i].end || !maps[i].name ||
		    (i && maps[i].start < maps[i - 1].end))
			abort();
	live_free_maps(maps, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1, dir;
	struct live_status status;
	struct live_stat stat;

	if (fd < 0) {
		fd = memfd_create("proc", MFD_CLOEXEC);
		dir = make_folder(fd);
	}
	if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	check_maps(dir);
	if (!live_read_status(dir, &status) ||
	    strnlen(status.name, sizeof(status.name)) == sizeof(status.name))
		abort();
	if (live_read_stat(dir, &stat) && !stat.state)
		abort();
	return 0;
}
