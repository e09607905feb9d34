/* SPDX-License-Identifier: MIT */
#include "cmd_record.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "cmd.h"
#include "replay/trace.h"
#include "replay/trace_pack.h"

enum { MAX_NUMBER = 1000 };

/* A file while it is looked at. */
struct image {
	char *path;		/* owned */
	uint64_t start;
};

/* Files of a name, in which %p is anything, and an end, which is a pattern. */
static void find_files(const char *name, const char *end, glob_t *ret)
{
	struct str s;

	str_init(&s);
	for (; *name; name++) {
		bool pid = name[0] == '%' && name[1] == 'p';

		if (!pid && strchr("*?[\\", *name))
			str_addc(&s, '\\');
		str_addc(&s, pid ? '*' : *name);
		name += pid;
	}
	str_adds(&s, end);
	if (glob(s.text, GLOB_NOSORT, NULL, ret))
		ret->gl_pathc = 0;
	str_fini(&s);
}

/* When a trace began, of this process or any (0); 0: it is none. */
static uint64_t start_of(const char *path, pid_t pid)
{
	struct trace_file_header h;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : pread(fd, &h, sizeof(h), 0);

	if (fd >= 0)
		close(fd);
	return n == sizeof(h) && (!pid || h.pid == (uint32_t)pid) &&
	       !memcmp(h.magic, TRACE_MAGIC, sizeof(h.magic)) ? h.start_ns : 0;
}

static int by_start(const void *a, const void *b)
{
	const struct image *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/*
 * To name.number or a higher one.  A trace of an earlier run is replaced, as
 * the first one was, and nothing else.
 */
static void move(char **path, const char *name, unsigned number,
		 uint64_t since)
{
	for (; number < MAX_NUMBER; number++) {
		char *to = mem_printf("%s.%u", name, number);
		uint64_t start = start_of(to, 0);
		bool replace = start && start < since;

		if (!strcmp(*path, to) ||
		    !renameat2(AT_FDCWD, *path, AT_FDCWD, to,
			       replace ? 0 : RENAME_NOREPLACE)) {
			free(*path);
			*path = to;
			return;
		}
		free(to);
		if (errno != EEXIST)
			return;
	}
}

static char *program_of(const char *path)
{
	struct err err = { .kind = ERR_NONE };
	struct trace *t = trace_open(path, &err);
	const char *program = t ? trace_meta_value(t, "program") : NULL;
	const char *slash = program ? strrchr(program, '/') : NULL;
	struct str s;

	str_init(&s);
	program = slash ? slash + 1 : program ? program : "a program";
	str_add_escaped(&s, program, strlen(program));
	if (t)
		trace_close(t);
	return str_take(&s);
}

/* The last one is asked for by that name: it takes it from the first. */
static void settle(struct images *im, const char *path, uint64_t since)
{
	for (size_t i = 0; i + 1 < im->n; i++) {
		struct trace_seal s = { .how = TRACE_END_EXEC };
		struct err err;

		if (!trace_seal(im->paths[i], &s, &err))
			cmd_fail(&err);
		move(&im->paths[i], path, (unsigned)i + 1, since);
	}
	if (!renameat2(AT_FDCWD, im->paths[im->n - 1], AT_FDCWD, path,
		       RENAME_NOREPLACE)) {
		free(im->paths[im->n - 1]);
		im->paths[im->n - 1] = mem_strdup(path);
	}
}

void images_find(struct images *im, const char *path, pid_t pid,
		 uint64_t since)
{
	struct image *found = NULL;
	size_t n = 0, cap = 0;
	glob_t files = { .gl_pathc = 0 };

	*im = (struct images){ .n = 0 };
	find_files(path, "*", &files);
	for (size_t i = 0; i < files.gl_pathc; i++) {
		uint64_t start = start_of(files.gl_pathv[i], pid);

		if (start && start >= since)
			MEM_PUSH(found, n, cap) = (struct image){
				mem_strdup(files.gl_pathv[i]), start,
			};
	}
	globfree(&files);
	SORT(found, n, by_start);
	for (size_t i = 0, k = 0; i < n; i++) {
		MEM_PUSH(im->paths, im->n, im->cap) = found[i].path;
		MEM_PUSH(im->programs, k, im->cap_programs) =
			n > 1 ? program_of(found[i].path) : NULL;
	}
	free(found);
	if (n > 1)
		settle(im, path, since);
}

void images_fini(struct images *im)
{
	for (size_t i = 0; i < im->n; i++) {
		free(im->paths[i]);
		free(im->programs[i]);
	}
	free(im->paths);
	free(im->programs);
	*im = (struct images){ .n = 0 };
}

void images_say(const struct images *im)
{
	if (im->n < 2)
		return;
	fprintf(stderr, "heapcore: %s is of %s; before, this process was ",
		im->paths[im->n - 1], im->programs[im->n - 1]);
	for (size_t i = 0; i + 1 < im->n; i++) {
		const char *slash = strrchr(im->paths[i], '/');

		fprintf(stderr, "%s%s (%s)", i ? ", " : "", im->programs[i],
			slash ? slash + 1 : im->paths[i]);
	}
	fputc('\n', stderr);
}

void seal_children(const char *pattern, const char *own)
{
	glob_t found = { .gl_pathc = 0 };

	find_files(pattern, strstr(pattern, "%p") ? "*" : ".*", &found);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct trace_seal child_end = { .how = 0 };
		struct err err;

		if (strcmp(found.gl_pathv[i], own) &&
		    !trace_busy(found.gl_pathv[i]) &&
		    !trace_seal(found.gl_pathv[i], &child_end, &err))
			cmd_fail(&err);
	}
	globfree(&found);
}
