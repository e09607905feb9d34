/* SPDX-License-Identifier: MIT */
/*
 * How much memory heapcore may take.
 *
 * The least of what the machine has (MemAvailable of proc_meminfo(5)) and of
 * what the control groups leave in which heapcore is, each group and those
 * around it: a container's limit is often the smaller one, and who comes over
 * it is killed.  Control groups have files of two kinds (Linux,
 * Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst).  Files
 * that were read count as used there, but give way: "inactive_file".
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "corewalk/live.h"

enum { MAX_DEPTH = 64 };	/* of groups inside of groups */

/* Names of one kind's files. */
struct group_kind {
	const char *dir;
	const char *limits[2];	/* the second one may be NULL */
	const char *used, *gives_way;
};

static const struct group_kind v2 = {
	"", { "memory.max", "memory.high" }, "memory.current",
	"inactive_file",
};
static const struct group_kind v1 = {
	"/memory", { "memory.limit_in_bytes", NULL }, "memory.usage_in_bytes",
	"total_inactive_file",
};

/* The number at the start of a file, or behind a word; false without one. */
static bool read_number(const char *path, const char *word, uint64_t *ret)
{
	unsigned long long value;
	const char *at = NULL;
	struct str text;

	str_init(&text);
	if (live_read(AT_FDCWD, path, &text) && text.len)
		at = text.text;
	while (at && word) {
		size_t n = strlen(word);

		if (!strncmp(at, word, n) && strchr(": \t", at[n])) {
			at += n + 1;
			break;
		}
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	at = at && sscanf(at, "%llu", &value) == 1 ? at : NULL;
	if (at)
		*ret = value;
	str_fini(&text);
	return at;
}

static bool group_number(const char *root, const struct group_kind *kind,
			 const char *group, const char *file,
			 const char *word, uint64_t *ret)
{
	AUTO_FREE char *path = mem_printf("%s/sys/fs/cgroup%s%s/%s", root,
					  kind->dir, group, file);

	return read_number(path, word, ret);
}

/* What one group leaves; UINT64_MAX if it has no limit. */
static uint64_t group_room(const char *root, const struct group_kind *kind,
			   const char *group)
{
	uint64_t limit = UINT64_MAX, used = 0, gives_way = 0, value;
	size_t i;

	/* "max" is no number and no limit. */
	for (i = 0; i < countof(kind->limits) && kind->limits[i]; i++)
		if (group_number(root, kind, group, kind->limits[i], NULL,
				 &value))
			limit = min_u64(limit, value);
	if (limit == UINT64_MAX ||
	    !group_number(root, kind, group, kind->used, NULL, &used))
		return UINT64_MAX;
	if (group_number(root, kind, group, "memory.stat", kind->gives_way,
			 &gives_way))
		used -= min_u64(used, gives_way);
	return limit - min_u64(limit, used);
}

/* The group and all around it.  From inside a container only some are seen. */
static uint64_t groups_room(const char *root, const struct group_kind *kind,
			    char *group)
{
	uint64_t room = UINT64_MAX;
	unsigned depth = 0;
	char *slash;

	do {
		slash = strrchr(group, '/');
		if (slash && !slash[1])
			*slash = '\0';
		room = min_u64(room, group_room(root, kind, group));
		slash = strrchr(group, '/');
		if (slash)
			*slash = '\0';
	} while (slash && ++depth < MAX_DEPTH);
	return room;
}

/* "0::/group" of the second kind, "4:memory:/group" of the first. */
static uint64_t line_room(const char *root, char *line)
{
	char *names = strchr(line, ':');
	char *group = names ? strchr(names + 1, ':') : NULL;

	if (!group)
		return UINT64_MAX;
	*group++ = '\0';
	names++;
	if (!*names)
		return groups_room(root, &v2, group);
	for (names = strtok(names, ","); names; names = strtok(NULL, ","))
		if (!strcmp(names, "memory"))
			return groups_room(root, &v1, group);
	return UINT64_MAX;
}

uint64_t live_room(const char *root)
{
	AUTO_FREE char *meminfo = mem_printf("%s/proc/meminfo", root);
	AUTO_FREE char *groups = mem_printf("%s/proc/self/cgroup", root);
	uint64_t room = UINT64_MAX, kb;
	struct str text;
	char *line, *next;

	if (read_number(meminfo, "MemAvailable", &kb) &&
	    kb < UINT64_MAX / KIB)
		room = kb * KIB;
	str_init(&text);
	if (live_read(AT_FDCWD, groups, &text))
		for (line = text.text; line && *line; line = next) {
			next = strchr(line, '\n');
			if (next)
				*next++ = '\0';
			room = min_u64(room, line_room(root, line));
		}
	str_fini(&text);
	return room;
}
