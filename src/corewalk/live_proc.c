/* SPDX-License-Identifier: MIT */
/*
 * Files of /proc (proc_pid_maps(5), proc_pid_stat(5), proc_pid_status(5)).
 *
 * All are read relative to a descriptor of the process's folder: that stays
 * with the process when its number is given to another one.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sort.h"
#include "corewalk/live.h"

enum {
	PROC_CHUNK = 64 << 10,
	MAX_PROC_FILE = 1 << 30,	/* a million mappings are 100 MB */
};

uint64_t live_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

bool live_read(int dir_fd, const char *name, struct str *ret)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	AUTO_FREE char *chunk = NULL;
	int saved = 0;
	ssize_t n;

	if (fd < 0)
		return false;
	chunk = mem_alloc(PROC_CHUNK);
	str_clear(ret);
	for (;;) {
		n = read(fd, chunk, PROC_CHUNK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || ret->len > MAX_PROC_FILE)
			break;
		str_add(ret, chunk, (size_t)n);
	}
	saved = errno;
	close(fd);
	errno = saved;
	return n == 0;
}

bool live_read_stat(int dir_fd, struct live_stat *ret)
{
	struct str text;
	const char *p;
	int ppid, pgrp, sid, n = 0;
	long nice = 0;

	ret->threads = 0;
	str_init(&text);
	if (!live_read(dir_fd, "stat", &text)) {
		str_fini(&text);
		return false;
	}
	/* The name may hold anything, also a bracket. */
	p = strrchr(text.text, ')');
	if (p)
		n = sscanf(p + 1, " %c %d %d %d %*d %*d %lu "
			   "%*u %*u %*u %*u %*u %*u %*d %*d %*d %ld %ld",
			   &ret->state, &ppid, &pgrp, &sid, &ret->flags, &nice,
			   &ret->threads);
	str_fini(&text);
	if (n < 5) {
		errno = EIO;
		return false;
	}
	ret->ppid = ppid;
	ret->pgrp = pgrp;
	ret->sid = sid;
	ret->nice = (uint64_t)nice;
	return true;
}

/* The text behind "key:" and blanks, to the end of the file; NULL. */
static const char *field(const char *text, const char *key)
{
	size_t n = strlen(key);

	while (text) {
		if (!strncmp(text, key, n) && text[n] == ':') {
			text += n + 1;
			return text + strspn(text, " \t");
		}
		text = strchr(text, '\n');
		if (text)
			text++;
	}
	return NULL;
}

static unsigned long field_number(const char *text, const char *key, int base)
{
	const char *value = field(text, key);

	return value ? strtoul(value, NULL, base) : 0;
}

bool live_read_status(int dir_fd, struct live_status *ret)
{
	const char *value;
	struct str text;
	bool ok;

	memset(ret, 0, sizeof(*ret));
	str_init(&text);
	ok = live_read(dir_fd, "status", &text);
	if (ok) {
		value = field(text.text, "Name");
		if (value)
			snprintf(ret->name, sizeof(ret->name), "%.*s",
				 (int)strcspn(value, "\n"), value);
		ret->tgid = (pid_t)field_number(text.text, "Tgid", 10);
		ret->tracer = (pid_t)field_number(text.text, "TracerPid", 10);
		ret->gid = (unsigned)field_number(text.text, "Gid", 10);
		ret->seccomp = (int)field_number(text.text, "Seccomp", 10);
		ret->caps = field_number(text.text, "CapEff", 16);
		ret->threads = field_number(text.text, "Threads", 10);
		value = field(text.text, "x86_Thread_features");
		ret->shadow_stack = value &&
			memmem(value, strcspn(value, "\n"), "shstk", 5);
		value = field(text.text, "Uid");
		if (value && sscanf(value, "%u %u", &ret->uid,
				    &ret->euid) != 2)
			ret->uid = ret->euid = 0;
	}
	str_fini(&text);
	return ok;
}

/* ---- maps ---- */

/* The kernel writes a newline in a name as \012, and nothing else so. */
static char *unescape(const char *name, size_t n)
{
	char *text = mem_alloc(n + 1);
	size_t i, len = 0;

	for (i = 0; i < n; i++) {
		if (n - i >= 4 && !memcmp(name + i, "\\012", 4)) {
			text[len++] = '\n';
			i += 3;
		} else {
			text[len++] = name[i];
		}
	}
	text[len] = '\0';
	return text;
}

static uint32_t map_flags(const char *perms, const char *name)
{
	return (perms[0] == 'r' ? SEG_R : 0) | (perms[1] == 'w' ? SEG_W : 0) |
	       (perms[2] == 'x' ? SEG_X : 0) |
	       (perms[3] == 's' ? SEG_SHARED : 0) |
	       (!strncmp(name, "[v", 2) ? SEG_KERNEL : 0);
}

/*
 * "start-end perms offset major:minor inode     name".  What has an inode or
 * an absolute name has a file; named shared memory is shown in brackets but
 * is a file too (Linux, fs/proc/task_mmu.c).
 */
static bool parse_map(const char *line, size_t len, struct live_map *ret)
{
	unsigned long long start, end, off, ino;
	char perms[5];
	int at = 0;

	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu%n", &start, &end,
		   perms, &off, &ret->dev_major, &ret->dev_minor, &ino,
		   &at) != 7 || (size_t)at > len || strlen(perms) != 4 ||
	    start >= end)
		return false;
	while ((size_t)at < len && line[at] == ' ')
		at++;
	ret->start = start;
	ret->end = end;
	ret->off = off;
	ret->ino = ino;
	ret->name = unescape(line + at, len - (size_t)at);
	ret->flags = map_flags(perms, ret->name);
	ret->has_file = ino || ret->name[0] == '/';
	return true;
}

bool live_read_maps(int dir_fd, struct live_map **ret, size_t *ret_n)
{
	struct live_map *maps = NULL, map = { 0 };
	size_t n = 0, cap = 0;
	struct str text;
	vaddr last = 0;
	char *line;

	str_init(&text);
	if (!live_read(dir_fd, "maps", &text)) {
		str_fini(&text);
		return false;
	}
	for (line = text.text; *line; ) {
		size_t len = strcspn(line, "\n");
		bool more = line[len];

		/* Else sscanf would measure all that follows, each time. */
		line[len] = '\0';
		if (parse_map(line, len, &map)) {
			/* A list read in pieces can tell a thing twice. */
			if (map.start >= last)
				MEM_PUSH(maps, n, cap) = map;
			else
				free(map.name);
			last = max_u64(last, map.end);
		}
		line += len + more;
	}
	str_fini(&text);
	*ret = maps;
	*ret_n = n;
	return true;
}

void live_free_maps(struct live_map *maps, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		free(maps[i].name);
	free(maps);
}

/* ---- threads ---- */

static int by_number(const void *a, const void *b)
{
	const pid_t *x = a, *y = b;

	return ORDER(*x, *y);
}

bool live_list_threads(int proc_fd, pid_t **ret, size_t *ret_n)
{
	int fd = openat(proc_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	pid_t *tids = NULL;
	size_t n = 0, cap = 0;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while ((entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			MEM_PUSH(tids, n, cap) = (pid_t)atoi(entry->d_name);
	closedir(dir);
	SORT(tids, n, by_number);
	*ret = tids;
	*ret_n = n;
	return true;
}
