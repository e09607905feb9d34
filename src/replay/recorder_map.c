/* SPDX-License-Identifier: MIT */
/*
 * Memory that the program maps itself.  What libc maps (for malloc, stacks of
 * threads, objects that are loaded) does not come this way; another allocator
 * that is a library of its own does, and is told by who calls: its blocks are
 * recorded already.
 *
 * Nothing of a thread's own is touched unless this was asked for: programs
 * that make threads by hand call mmap before those have any.
 */
#include "replay/recorder.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT void *mmap(void *addr, size_t n, int prot, int flags, int fd,
		  off_t offset);
EXPORT void *mmap64(void *addr, size_t n, int prot, int flags, int fd,
		    off64_t offset);
EXPORT int munmap(void *addr, size_t n);
EXPORT int mprotect(void *addr, size_t n, int prot);
EXPORT void *mremap(void *old, size_t old_n, size_t n, int flags, ...);
EXPORT void *sbrk(intptr_t step);
EXPORT int brk(void *to);

static struct {
	void *(*mmap)(void *, size_t, int, int, int, off_t);
	int (*munmap)(void *, size_t);
	int (*mprotect)(void *, size_t, int);
	void *(*mremap)(void *, size_t, size_t, int, ...);
	void *(*sbrk)(intptr_t);
	int (*brk)(void *);
} real;

static uintptr_t allocator_low, allocator_high;

void rec_maps_resolve(void)
{
	real.munmap = dlsym(RTLD_NEXT, "munmap");
	real.mprotect = dlsym(RTLD_NEXT, "mprotect");
	real.mremap = dlsym(RTLD_NEXT, "mremap");
	real.sbrk = dlsym(RTLD_NEXT, "sbrk");
	real.brk = dlsym(RTLD_NEXT, "brk");
	real.mmap = dlsym(RTLD_NEXT, "mmap");
}

/* malloc: a function of the allocator that is in use. */
void rec_maps_start(const void *malloc)
{
	struct rec_module m;

	if (rec.maps && rec_module_at((uintptr_t)malloc, &m)) {
		allocator_low = m.low;
		allocator_high = m.high;
	}
}

/* Is a call from there to be recorded? */
static bool wanted(const struct rec_frame *caller)
{
	return rec.maps && rec_watching() &&
	       (caller->pc < allocator_low || caller->pc >= allocator_high);
}

static size_t whole_pages(size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (n + page - 1) & ~(page - 1);
}

/* tick: 0 for now. */
static void note(unsigned kind, const void *addr, size_t n, unsigned flags,
		 uint64_t tick, const struct rec_frame *caller)
{
	struct rec_event e = {
		.kind = (uint8_t)kind, .addr = (uintptr_t)addr, .size = n,
		.rate = flags,
	};
	struct rec_writer *w = rec_enter();
	int saved = errno;

	if (!w)
		return;
	e.stack = rec_stack(w, caller);
	e.tick = tick ? tick : rec_tick();
	rec_event(w, &e);
	rec_leave();
	errno = saved;
}

static unsigned flags_of(int prot, int flags)
{
	return (flags & MAP_ANONYMOUS ? 0 : TRACE_MAP_FILE) |
	       (flags & MAP_SHARED ? TRACE_MAP_SHARED : 0) |
	       (prot == PROT_NONE ? TRACE_MAP_NONE : 0);
}

static void *do_mmap(void *addr, size_t n, int prot, int flags, int fd,
		     off_t offset, const struct rec_frame *caller)
{
	void *p;

	if (!real.mmap)
		return (void *)syscall(SYS_mmap, addr, n, prot, flags, fd,
				       offset);
	p = real.mmap(addr, n, prot, flags, fd, offset);
	if (p != MAP_FAILED && wanted(caller))
		note(TRACE_MAP, p, whole_pages(n), flags_of(prot, flags), 0,
		     caller);
	return p;
}

void *mmap(void *addr, size_t n, int prot, int flags, int fd, off_t offset)
{
	return do_mmap(addr, n, prot, flags, fd, offset, REC_CALLER);
}

void *mmap64(void *addr, size_t n, int prot, int flags, int fd,
	     off64_t offset)
{
	return do_mmap(addr, n, prot, flags, fd, offset, REC_CALLER);
}

int munmap(void *addr, size_t n)
{
	bool on = wanted(REC_CALLER);
	uint64_t before = on ? rec_tick() : 0;
	int result = real.munmap ? real.munmap(addr, n) :
		(int)syscall(SYS_munmap, addr, n);

	if (on && !result)
		note(TRACE_UNMAP, addr, whole_pages(n), 0, before, REC_CALLER);
	return result;
}

/* What was reserved is put to use by this, or is given back. */
int mprotect(void *addr, size_t n, int prot)
{
	int result = real.mprotect ? real.mprotect(addr, n, prot) :
		(int)syscall(SYS_mprotect, addr, n, prot);

	if (!result && wanted(REC_CALLER))
		note(TRACE_MAP, addr, whole_pages(n), TRACE_MAP_ACCESS |
		     (prot == PROT_NONE ? TRACE_MAP_NONE : 0), 0, REC_CALLER);
	return result;
}

/* As an end of the old and a start of the new one. */
void *mremap(void *old, size_t old_n, size_t n, int flags, ...)
{
	bool on = wanted(REC_CALLER);
	uint64_t before = on ? rec_tick() : 0;
	void *to = NULL, *p;
	va_list ap;

	if (flags & ~MREMAP_MAYMOVE) {
		va_start(ap, flags);
		to = va_arg(ap, void *);
		va_end(ap);
	}
	p = real.mremap ? real.mremap(old, old_n, n, flags, to) :
		(void *)syscall(SYS_mremap, old, old_n, n, flags, to);
	if (!on || p == MAP_FAILED)
		return p;
	/* With MREMAP_DONTUNMAP the old one stays. */
	if (old_n && !(flags & ~(MREMAP_MAYMOVE | MREMAP_FIXED)))
		note(TRACE_UNMAP, old, whole_pages(old_n), TRACE_MAP_MOVED,
		     before, REC_CALLER);
	note(TRACE_MAP, p, whole_pages(n), TRACE_MAP_MOVED, 0, REC_CALLER);
	return p;
}

/* From one end of the data segment to another. */
static void note_break(char *from, char *to, uint64_t before,
		       const struct rec_frame *caller)
{
	if (to > from)
		note(TRACE_MAP, from, (size_t)(to - from), TRACE_MAP_BREAK, 0,
		     caller);
	else if (to < from)
		note(TRACE_UNMAP, to, (size_t)(from - to), 0, before, caller);
}

void *sbrk(intptr_t step)
{
	bool on = step && wanted(REC_CALLER);
	uint64_t before = on ? rec_tick() : 0;
	char *p;

	if (!real.sbrk) {
		errno = ENOMEM;
		return (void *)-1;
	}
	p = real.sbrk(step);
	if (on && p != (char *)-1)
		note_break(p, p + step, before, REC_CALLER);
	return p;
}

int brk(void *to)
{
	bool on = wanted(REC_CALLER);
	uint64_t before = on ? rec_tick() : 0;
	char *from;
	int result;

	if (!real.brk || !real.sbrk) {
		errno = ENOMEM;
		return -1;
	}
	from = on ? real.sbrk(0) : NULL;
	result = real.brk(to);
	if (on && !result)
		note_break(from, to, before, REC_CALLER);
	return result;
}
