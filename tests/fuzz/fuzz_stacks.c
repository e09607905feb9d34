/* SPDX-License-Identifier: MIT */
/*
 * A shared object and a stack: unwinding by its tables as they lie in memory,
 * and names and lines by the debug information of the file.
 *
 * Input: two bytes that say how long the stack is, the stack, the file, whose
 * first segment begins at address 0.  Threads start at many places of it.
 *
 * Code: corewalk/(cfi|unwind|lines|debug|symbol)|analysis/backtrace|demangle
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analysis/backtrace.h"
#include "base/demangle.h"
#include "base/mem.h"
#include "corewalk/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	IMAGE = 0x40000000,
	STACK = 0x50000000,
	MAX_STACK = 4096,
	MAX_FILE = 1 << 20,
	PLACES = 64,
};

static const struct target_options options;

static void unwind_from(struct space *sp, struct cfi *cfi, vaddr pc,
			uint64_t stack)
{
	struct frame f = { .pc = pc, .sp = STACK, .exact = true };
	unsigned left = 1000;
	vaddr cfa;

	for (unsigned i = 0; i < 17; i++)
		f.regs.v[i] = STACK + i * 8 % (stack + 1);
	f.regs.v[16] = pc;
	f.regs.v[7] = STACK;
	f.regs.known = (1 << 17) - 1;
	do {
		if (f.sp < STACK && !f.exact)
			break;
		(void)unwind_cfa(sp, cfi, &f, &cfa);
	} while (left-- && unwind_next(sp, cfi, &f) == UNWIND_MORE);
}

/* The file is mapped whole at IMAGE, and on disk at path. */
static struct space *make_space(const uint8_t *file, size_t size,
				const uint8_t *stack, size_t n,
				const char *path)
{
	struct space *sp = target_mem_new(MACHINE_X86_64);

	target_mem_add(sp, IMAGE, round_up(size, 4096), SEG_R | SEG_X, file,
		       size, "file");
	target_mem_add(sp, STACK, round_up(n + 1, 4096), SEG_R | SEG_W, stack,
		       n, NULL);
	target_mem_done(sp);
	sp->modules = mem_zalloc(sizeof(*sp->modules));
	sp->modules[0].start = IMAGE;
	sp->modules[0].end = IMAGE + round_up(size, 4096);
	sp->modules[0].path = mem_strdup(path);
	sp->n_modules = 1;
	return sp;
}

static void name(struct lines *lines, const struct debug_module *m,
		 uint64_t addr)
{
	struct line_place places[LINES_MAX];
	size_t n = lines_at(lines, m, addr, places);
	struct str s;

	str_init(&s);
	for (size_t i = 0; i < n; i++) {
		if (places[i].linkage)
			demangle(places[i].linkage, &s);
		if (places[i].function)
			str_adds(&s, places[i].function);
		if (places[i].file)
			str_adds(&s, places[i].file);
	}
	str_fini(&s);
}

static void check(const uint8_t *file, size_t size, const uint8_t *stack,
		  size_t n)
{
	int fd = memfd_create("file", MFD_CLOEXEC);
	struct lines *lines = lines_new();
	struct debug *debug;
	struct space *sp;
	struct cfi *cfi;
	char path[64];

	if (fd < 0 || write(fd, file, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	sp = make_space(file, size, stack, n, path);
	debug = debug_new(sp, &options);
	cfi = cfi_new(sp, debug);
	for (size_t i = 0; i < PLACES; i++) {
		unwind_from(sp, cfi, IMAGE + size * i / PLACES, n);
		name(lines, debug_of(debug, sp->modules), size * i / PLACES);
	}
	cfi_free(cfi);
	lines_free(lines);
	debug_free(debug);
	space_close(sp);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n;

	if (size < 2)
		return 0;
	n = (data[0] | data[1] << 8) % MAX_STACK;
	if (n > size - 2 || size - 2 - n > MAX_FILE || size == 2 + n)
		return 0;
	check(data + 2 + n, size - 2 - n, data + 2, n);
	return 0;
}
