/* SPDX-License-Identifier: MIT */
/*
 * A witness like count.c: preloaded behind the recorder, it writes to the file
 * $STACKS_FILE a line for each allocation that is passed on: its size, and the
 * call stack as libgcc's unwinder has it, from the recorder's caller outwards.
 * Only the program named $STACKS_PROGRAM is watched, and no children of fork.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include "next.h"

enum { FRAMES = 256, LINE = FRAMES * 80 };

static int out = -1, pid;

static void start(void)
{
	static int tried;
	const char *path;

	if (tried++)
		return;
	path = getenv("STACKS_FILE");
	if (!path || !getenv("STACKS_PROGRAM") ||
	    strcmp(program_invocation_short_name, getenv("STACKS_PROGRAM")))
		return;
	out = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT |
			   O_TRUNC | O_CLOEXEC, 0600);
	pid = (int)syscall(SYS_getpid);
}

static __attribute__((constructor)) void on_load(void)
{
	start();
}

struct line {
	int n, frames;
	char text[LINE];
};

static _Unwind_Reason_Code frame(struct _Unwind_Context *context, void *arg)
{
	struct line *l = arg;
	uintptr_t pc = _Unwind_GetIP(context);
	struct link_map *map;
	const char *name, *slash;
	Dl_info info;

	if (!pc || l->frames == FRAMES)
		return _URC_END_OF_STACK;
	if (!dladdr1((void *)(pc - 1), &info, (void **)&map,
		     RTLD_DL_LINKMAP)) {
		l->frames++;
		l->n += snprintf(l->text + l->n, (size_t)(LINE - l->n),
				 " ?");
		return _URC_NO_REASON;
	}
	name = *map->l_name ? map->l_name : program_invocation_name;
	slash = strrchr(name, '/');
	name = slash ? slash + 1 : name;
	/* Ourselves, and who called us. */
	if (!l->frames && (!strcmp(name, "stacks.so") ||
			   !strcmp(name, "libheapcore-record.so")))
		return _URC_NO_REASON;
	l->frames++;
	l->n += snprintf(l->text + l->n, (size_t)(LINE - l->n),
			 " %.50s+0x%lx", name,
			 (unsigned long)(pc - map->l_addr));
	return _URC_NO_REASON;
}

static void came(size_t size)
{
	static struct line l;
	int saved = errno;

	start();
	if (out >= 0 && (int)syscall(SYS_getpid) == pid) {
		l.frames = 0;
		l.n = snprintf(l.text, LINE, "%zu", size);
		_Unwind_Backtrace(frame, &l);
		l.text[l.n++] = '\n';
		if (syscall(SYS_write, out, l.text, l.n) != l.n)
			abort();
	}
	errno = saved;
}

void *malloc(size_t size)
{
	if (!resolve())
		return early_alloc(size);
	came(size);
	return next_malloc(size);
}

void free(void *p)
{
	if (p && !is_early(p) && resolve())
		next_free(p);
}

void *calloc(size_t n, size_t size)
{
	if (!resolve())
		return early_alloc(n * size);
	came(n * size);
	return next_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
	if (!resolve() || is_early(old))
		return early_alloc(size);
	if (size || !old)
		came(size);
	return next_realloc(old, size);
}

/* A name of its own: by the others' the recorder would be called again. */
static void *aligned(size_t align, size_t size)
{
	if (!resolve())
		return NULL;
	came(size);
	return next_memalign(align, size);
}

void *memalign(size_t align, size_t size)
{
	return aligned(align, size);
}

void *aligned_alloc(size_t align, size_t size)
{
	return aligned(align, size);
}

int posix_memalign(void **ret, size_t align, size_t size)
{
	*ret = aligned(align, size);
	return *ret ? 0 : ENOMEM;
}

void *valloc(size_t size)
{
	return aligned(4096, size);
}
