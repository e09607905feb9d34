/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/temp.h"
#include "cmd.h"
#include "cmd_trace.h"
#include "corewalk/unpack.h"

/* Nothing promises a size: whatever comes out is a trace, or is not. */
static bool any_size(const void *head, uint64_t size, bool final,
		     uint64_t *ret_need, uint64_t *ret_limit, struct err *err)
{
	(void)head;
	(void)final;
	(void)err;
	*ret_need = size;
	*ret_limit = UINT64_MAX;
	return true;
}

static bool copy_all(int from, int to, const char *name, struct err *err)
{
	AUTO_FREE char *buffer = mem_alloc(MIB);

	for (;;) {
		ssize_t n = read(from, buffer, MIB);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_system(err, "%s", name);
		if (!n)
			return true;
		for (ssize_t done = 0; done < n;) {
			ssize_t put = write(to, buffer + done,
					    (size_t)(n - done));

			if (put < 0 && errno != EINTR)
				return err_system(err, "a copy of %s", name);
			done += put > 0 ? put : 0;
		}
	}
}

/* A pipe cannot be read twice. */
static int from_pipe(int fd, const char *name, const char *tmpdir,
		     struct err *err)
{
	int copy = temp_file(temp_dir(tmpdir));

	if (copy < 0) {
		err_system(err, "a file in %s", temp_dir(tmpdir));
	} else if (!copy_all(fd, copy, name, err)) {
		close(copy);
		copy = -1;
	}
	close(fd);
	return copy;
}

static int unpacked(int fd, const char *name, const char *tmpdir,
		    struct progress *p, struct err *err)
{
	struct unpack_job job = {
		.name = name, .tmpdir = tmpdir, .size_of = any_size,
		.progress = p,
	};
	struct unpacked result = { .fd = -1 };
	struct stat st;
	void *map;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !st.st_size)
		return fd;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return fd;
	if (unpack_format(map, (uint64_t)st.st_size) != UNPACK_NONE) {
		if (!unpack(&job, map, (uint64_t)st.st_size, &result, err))
			result.fd = -1;
		close(fd);
		fd = result.fd;
	}
	munmap(map, (size_t)st.st_size);
	return fd;
}

int cmd_trace_file(const char *path, const char *tmpdir, struct progress *p,
		   struct err *err)
{
	bool in = !strcmp(path, "-");
	const char *name = in ? "standard input" : path;
	int fd = in ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0) {
		err_system(err, "%s", name);
		return -1;
	}
	if (!fstat(fd, &st) && (S_ISFIFO(st.st_mode) ||
				S_ISSOCK(st.st_mode) || S_ISCHR(st.st_mode)))
		fd = from_pipe(fd, name, tmpdir, err);
	return fd < 0 ? fd : unpacked(fd, name, tmpdir, p, err);
}

struct trace *cmd_trace_open(const char *path, const char *tmpdir,
			     struct progress *p, struct err *err)
{
	int fd = cmd_trace_file(path, tmpdir, p, err);

	if (fd < 0)
		return NULL;
	return trace_open_fd(fd, strcmp(path, "-") ? path : "standard input",
			     err);
}

void cmd_trace_warn(const struct trace *t)
{
	const struct trace_damage *d = trace_damage(t);
	const char *path = trace_info(t)->path;

	if (d->first[0])
		fprintf(stderr, "heapcore: %s: %s\n", path, d->first);
	if (d->lost)
		fprintf(stderr, "heapcore: %s: the recorder missed %llu "
			"events, in signal handlers\n", path,
			(unsigned long long)d->lost);
}
