/* SPDX-License-Identifier: MIT */
/*
 * An independent witness: preloaded behind the recorder, it sees the calls
 * that the recorder passes on, and keeps in the file $COUNT_FILE how many
 * blocks live and how many bytes were asked for in them.  Only the program
 * whose name is $COUNT_PROGRAM is counted, and no children of fork.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "next.h"

enum { BITS = 23 };

static struct {
	uint64_t blocks, bytes, calls, strange;
} *sum;
static struct {
	uintptr_t p;
	size_t size;
} *table;
static int lock, pid;

static void start(void)
{
	static int tried;
	const char *path;
	int fd;

	/* Once: environ is not to be read while setenv allocates. */
	if (tried++)
		return;
	path = getenv("COUNT_FILE");
	if (!path || !getenv("COUNT_PROGRAM") ||
	    strcmp(program_invocation_short_name, getenv("COUNT_PROGRAM")))
		return;
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT |
			  O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, 4096))
		return;
	table = mmap(NULL, sizeof(*table) << BITS, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	pid = (int)syscall(SYS_getpid);
	sum = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	syscall(SYS_close, fd);
}

static __attribute__((constructor)) void on_load(void)
{
	start();
}

static size_t place(uintptr_t p)
{
	size_t i = p * 0x9e3779b97f4a7c15u >> (64 - BITS);

	while (table[i].p && table[i].p != p)
		i = (i + 1) & ((1u << BITS) - 1);
	return i;
}

static int begin(void)
{
	int saved = errno;

	start();
	errno = saved;
	if (!sum || (int)syscall(SYS_getpid) != pid)
		return 0;
	while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
		;
	return 1;
}

static void end(void)
{
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

/* Slots stay taken by their address: sizes are one more, 0 is free. */
static void came(void *p, size_t size)
{
	size_t i;

	if (!p || !begin())
		return;
	i = place((uintptr_t)p);
	/* Its free bypassed us: RTLD_DEEPBIND does that. */
	if (table[i].size) {
		sum->blocks--;
		sum->bytes -= table[i].size - 1;
	}
	table[i].p = (uintptr_t)p;
	table[i].size = size + 1;
	sum->blocks++;
	sum->bytes += size;
	sum->calls++;
	end();
}

static void goes(void *p)
{
	size_t i;

	if (!p || !begin())
		return;
	i = place((uintptr_t)p);
	if (table[i].size) {
		sum->blocks--;
		sum->bytes -= table[i].size - 1;
		table[i].size = 0;
	} else {
		sum->strange++;
	}
	end();
}

void *malloc(size_t size)
{
	void *p;

	if (!resolve())
		return early_alloc(size);
	p = next_malloc(size);
	came(p, size);
	return p;
}

void free(void *p)
{
	if (!p || is_early(p) || !resolve())
		return;
	goes(p);
	next_free(p);
}

void *calloc(size_t n, size_t size)
{
	void *p;

	if (!resolve())
		return early_alloc(n * size);
	p = next_calloc(n, size);
	came(p, n * size);
	return p;
}

void *realloc(void *old, size_t size)
{
	void *p;

	if (!resolve() || is_early(old))
		return early_alloc(size);
	goes(old);
	p = next_realloc(old, size);
	came(p, size);
	return p;
}

void *memalign(size_t align, size_t size)
{
	void *p = resolve() ? next_memalign(align, size) : NULL;

	came(p, size);
	return p;
}

void *aligned_alloc(size_t align, size_t size)
{
	return memalign(align, size);
}

int posix_memalign(void **ret, size_t align, size_t size)
{
	void *p = memalign(align, size);

	if (!p)
		return ENOMEM;
	*ret = p;
	return 0;
}

void *valloc(size_t size)
{
	return memalign(4096, size);
}

void *pvalloc(size_t size)
{
	size_t whole = (size + 4095) & ~(size_t)4095;
	void *p = resolve() ? next_memalign(4096, whole) : NULL;

	came(p, size);
	return p;
}
