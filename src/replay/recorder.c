/* SPDX-License-Identifier: MIT */
/*
 * The functions that a program calls instead of its allocator's.  Each passes
 * the call on to the function of the same name that would have been called
 * without us, and records it: frees with the time before the call, everything
 * else with the time after it, so that an address that is used again by
 * another thread is always in order.
 */
#include "replay/recorder.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/prctl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum {
	ROOM_FIRST = 64 << 10,	/* of a writer's chunks */
	ROOM = 1 << 20,
	ARENA = 64 << 10,
	RECLAIM_TRIES = 8,
};

EXPORT void *malloc(size_t size);
EXPORT void free(void *p);
EXPORT void *calloc(size_t n, size_t size);
EXPORT void *realloc(void *p, size_t size);
EXPORT void *reallocarray(void *p, size_t n, size_t size);
EXPORT void *memalign(size_t align, size_t size);
EXPORT void *aligned_alloc(size_t align, size_t size);
EXPORT int posix_memalign(void **ret, size_t align, size_t size);
EXPORT void *valloc(size_t size);
EXPORT void *pvalloc(size_t size);
EXPORT void free_sized(void *p, size_t size);
EXPORT void free_aligned_sized(void *p, size_t align, size_t size);
EXPORT int dlclose(void *handle);
EXPORT int prctl(int option, ...);

struct rec rec = { .fd = -1 };
__thread struct rec_writer *rec_self;

/* The frame address of whoever is in the recorder; 0: nobody is. */
static __thread uintptr_t busy;
static __thread bool resolving;

static struct {
	void *(*malloc)(size_t);
	void (*free)(void *);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	void *(*memalign)(size_t, size_t);
	void *(*aligned_alloc)(size_t, size_t);
	int (*posix_memalign)(void **, size_t, size_t);
	void *(*valloc)(size_t);
	void *(*pvalloc)(size_t);
	int (*dlclose)(void *);
	int (*prctl)(int, ...);
} real;

/*
 * What dlsym itself allocates while it looks for malloc.  Nothing of it is
 * ever given back.
 */
static _Alignas(16) char arena[ARENA];
static size_t arena_used;

static void *arena_alloc(size_t size)
{
	size_t at = __atomic_fetch_add(&arena_used, (size + 31) & ~(size_t)15,
				       __ATOMIC_RELAXED);

	if (size > ARENA || at > ARENA - size - 32) {
		errno = ENOMEM;
		return NULL;
	}
	memcpy(arena + at, &size, sizeof(size));
	*rec_tag(arena + at + 16) = REC_TAG_STAYS;
	return arena + at + 16;
}

static bool in_arena(const void *p)
{
	return rec_unlikely((uintptr_t)p - (uintptr_t)arena < ARENA);
}

static size_t arena_size(const void *p)
{
	size_t size;

	memcpy(&size, (const char *)p - 16, sizeof(size));
	return size;
}

static __attribute__((noinline)) void resolve(void)
{
	if (resolving)
		return;
	resolving = true;
	real.free = dlsym(RTLD_NEXT, "free");
	real.calloc = dlsym(RTLD_NEXT, "calloc");
	real.realloc = dlsym(RTLD_NEXT, "realloc");
	real.memalign = dlsym(RTLD_NEXT, "memalign");
	real.aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
	real.posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
	real.valloc = dlsym(RTLD_NEXT, "valloc");
	real.pvalloc = dlsym(RTLD_NEXT, "pvalloc");
	real.dlclose = dlsym(RTLD_NEXT, "dlclose");
	real.prctl = dlsym(RTLD_NEXT, "prctl");
	rec_maps_resolve();
	rec_exec_resolve();
	/* Last: once it is there, all are. */
	__atomic_store_n((void **)&real.malloc, dlsym(RTLD_NEXT, "malloc"),
			 __ATOMIC_RELEASE);
	resolving = false;
}

static inline bool ready(void)
{
	if (rec_likely(__atomic_load_n((void **)&real.malloc,
				       __ATOMIC_ACQUIRE) != NULL))
		return true;
	resolve();
	return !resolving && real.malloc;
}

/* The live word is 0: not yet, not any more, or in a child. */
static __attribute__((noinline)) bool start_or_not(void)
{
	int fresh = REC_NEW;

	if (busy || resolving || !environ)
		return false;
	busy = (uintptr_t)__builtin_frame_address(0);
	if (__atomic_compare_exchange_n(&rec_state, &fresh, REC_STARTING, false,
					__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		rec_start();
	else if (rec_state == REC_ON && rec.children &&
		 rec.pid != (int)syscall(SYS_getpid))
		rec_start_child();
	else if (rec_state == REC_ON && !*rec_live)
		rec_state = REC_OFF;
	busy = 0;
	return *rec_live != 0;
}

static inline bool watching(void)
{
	if (rec_likely(*rec_live))
		return true;
	return rec_state != REC_OFF && start_or_not();
}

bool rec_watching(void)
{
	return watching();
}

/* A writer whose thread is gone, among some of them. */
static struct rec_writer *reclaim(int tid)
{
	static struct rec_writer *from;
	struct rec_writer *w = from ? from : rec.writers;

	for (int i = 0; w && i < RECLAIM_TRIES; i++, w = w->next)
		if (w->tid == tid ||
		    (syscall(SYS_tgkill, rec.pid, w->tid, 0) &&
		     errno == ESRCH))
			break;
	from = w ? w->next : NULL;
	return w && (w->tid == tid ||
		     (syscall(SYS_tgkill, rec.pid, w->tid, 0) &&
		      errno == ESRCH)) ? w : NULL;
}

static __attribute__((noinline)) struct rec_writer *new_writer(void)
{
	int tid = (int)syscall(SYS_gettid);
	struct rec_writer *w;

	rec_lock();
	w = reclaim(tid);
	if (!w) {
		w = rec_map(sizeof(*w));
		if (w) {
			w->stream = ++rec.n_streams;
			w->random = w->stream * UINT64_C(0xd1342543de82ef95) ^
				    rec_tick();
			w->next = rec.writers;
			rec.writers = w;
		}
	}
	if (w) {
		w->tid = tid;
		w->announced = false;
	}
	rec_unlock();
	if (w)
		rec_stack_start(w);
	rec_self = w;
	return w;
}

/*
 * NULL: this event is not to be recorded.  Whoever is interrupted in the
 * recorder by a signal is further out on the stack; if it is further in, the
 * handler has left by longjmp, and what was begun is to be wiped out.
 */
struct rec_writer *rec_enter(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	struct rec_writer *w = rec_self;

	if (rec_unlikely(busy)) {
		if (here <= busy || !w || here < w->walk.low ||
		    here >= w->walk.high || busy < w->walk.low) {
			if (w)
				w->lost++;
			return NULL;
		}
		if (w->chunk.map)
			memset(w->chunk.at, 0, TRACE_RECORD_MAX);
		w->walk.base = w->walk.top = TRACE_DEPTH_MAX;
		w->walk.whole = false;
		w->walk.id = 0;
	}
	busy = here;
	__asm__ volatile("" ::: "memory");
	if (rec_unlikely(!w)) {
		int saved = errno;

		w = new_writer();
		errno = saved;
		if (!w)
			busy = 0;
	}
	return w;
}

void rec_leave(void)
{
	__asm__ volatile("" ::: "memory");
	busy = 0;
}

static uint8_t *put_other(uint8_t *p, unsigned what, uint64_t value)
{
	uint8_t number[10];
	size_t n = (size_t)(rec_put(number, value) - number);

	p = rec_put(p, what);
	p = rec_put(p, n);
	memcpy(p, number, n);
	return p + n;
}

static void write_other(struct rec_writer *w, unsigned what, uint64_t value)
{
	uint8_t *tag = w->chunk.at;

	w->chunk.at = put_other(tag + 1, what, value);
	rec_commit(tag, TRACE_OTHER);
}

/* No room, somebody new, or something was lost. */
static __attribute__((noinline)) bool prepare(struct rec_writer *w,
					      uint64_t tick)
{
	int saved = errno;

	if (!w->chunk.map || w->chunk.at >= w->chunk.end) {
		bool ok;

		rec_lock();
		ok = *rec_live &&
		     rec_chunk_next(&w->chunk, TRACE_EVENTS, w->stream,
				    tick >> rec.shift << rec.shift,
				    w->chunk.sequence ? ROOM : ROOM_FIRST);
		rec_unlock();
		errno = saved;
		if (!ok)
			return false;
		w->time = tick >> rec.shift;
		w->addr = 0;
		w->stack = 0;
		w->announced = false;
	}
	if (!w->announced)
		write_other(w, TRACE_OTHER_THREAD, (uint64_t)w->tid);
	w->announced = true;
	if (w->lost)
		write_other(w, TRACE_OTHER_LOST, w->lost);
	w->lost = 0;
	return true;
}

/* Every 10 ms memory in use, every second the clocks. */
static __attribute__((noinline)) void look(uint64_t tick)
{
	int saved = errno;

	if (!rec_try_lock())
		return;
	if (tick >= rec.next_look) {
		rec.next_look = tick + rec.look_step;
		rec_log_rss(tick);
		if (tick >= rec.next_clock) {
			rec.next_clock = tick + rec.ticks_per_s;
			rec_log_clock();
		}
	}
	rec_unlock();
	errno = saved;
}

static inline uint8_t *put_address(uint8_t *p, uint8_t *tag, uintptr_t now,
				   uintptr_t last)
{
	if (rec_likely(!(now & 15)))
		return rec_put(p, rec_zigzag((int64_t)(now >> 4) -
					     (int64_t)(last >> 4)));
	*tag |= TRACE_ODD_ADDRESS;
	return rec_put(p, rec_zigzag((int64_t)(now - last)));
}

static inline bool has_stack(unsigned kind)
{
	return kind != TRACE_FREE && kind != TRACE_FREE_SIZED &&
	       kind != TRACE_REALLOC_OLD;
}

void rec_event(struct rec_writer *w, const struct rec_event *e)
{
	uint64_t time = e->tick >> rec.shift;
	uint8_t tag = e->kind;
	uint8_t *p;

	if (rec_unlikely(w->chunk.at >= w->chunk.end || !w->announced ||
			 w->lost) && !prepare(w, e->tick))
		return;
	/* A thread that moved to a processor that is behind. */
	if (time < w->time)
		time = w->time;
	p = rec_put(w->chunk.at + 1, time - w->time);
	p = put_address(p, &tag, e->addr, w->addr);
	if (e->kind == TRACE_ALIGNED)
		p = rec_put(p, e->align);
	if (e->kind != TRACE_FREE && e->kind != TRACE_REALLOC_OLD)
		p = rec_put(p, e->size);
	if (has_stack(e->kind)) {
		if (e->stack == w->stack)
			tag |= TRACE_SAME_STACK;
		else
			p = rec_put(p, rec_zigzag((int64_t)e->stack -
						  (int64_t)w->stack));
		w->stack = e->stack;
	}
	if (e->kind == TRACE_SAMPLE) {
		p = rec_put(p, e->gap);
		p = rec_put(p, e->rate);
	} else if (e->kind == TRACE_MAP) {
		p = rec_put(p, e->rate);
	}
	rec_commit(w->chunk.at, tag);
	w->chunk.at = p;
	w->time = time;
	w->addr = e->addr;
	if (rec_unlikely(e->tick >= rec.next_look))
		look(e->tick);
}

static void note_alloc(struct rec_event *e, const struct rec_frame *caller)
{
	struct rec_writer *w;

	if (rec_unlikely(rec.rate)) {
		rec_sample((void *)e->addr, e->size, caller);
		return;
	}
	w = rec_enter();
	if (!w)
		return;
	e->stack = rec_stack(w, caller);
	e->tick = rec_tick();
	rec_event(w, e);
	rec_leave();
}

static void note_free(void *p, unsigned kind, uint64_t size)
{
	struct rec_event e = {
		.kind = (uint8_t)kind, .addr = (uintptr_t)p, .size = size,
	};
	struct rec_writer *w;

	w = rec_enter();
	if (!w)
		return;
	e.tick = rec_tick();
	if (!rec.rate || rec_sample_free(w, p))
		rec_event(w, &e);
	rec_leave();
}

/*
 * Functions of two halves: what passes goes on to the allocator at once; the
 * second half is jumped to, so that its frame is where that of the first one
 * would be.
 */
static __attribute__((noinline)) void *watched_malloc(size_t size)
{
	void *p;

	if (rec_unlikely(!ready()))
		return arena_alloc(size);
	p = real.malloc(size);
	if (rec_likely(watching() && p)) {
		struct rec_event e = { .kind = TRACE_MALLOC,
				       .addr = (uintptr_t)p, .size = size };

		note_alloc(&e, REC_CALLER);
	}
	return p;
}

void *malloc(size_t size)
{
	return rec_pass(size) ? real.malloc(size) : watched_malloc(size);
}

static __attribute__((noinline)) void watched_free(void *p)
{
	if (rec_unlikely(!p || in_arena(p) || !ready()))
		return;
	if (rec_likely(watching()))
		note_free(p, TRACE_FREE, 0);
	real.free(p);
}

void free(void *p)
{
	if (rec_pass_free(p))
		real.free(p);
	else
		watched_free(p);
}

void free_sized(void *p, size_t size)
{
	if (rec_unlikely(!p || in_arena(p) || !ready()))
		return;
	if (rec_likely(watching()))
		note_free(p, TRACE_FREE_SIZED, size);
	real.free(p);
}

void free_aligned_sized(void *p, size_t align, size_t size)
{
	(void)align;
	free_sized(p, size);
}

static __attribute__((noinline)) void *watched_calloc(size_t n, size_t size)
{
	void *p;

	if (rec_unlikely(!ready())) {
		/* The arena has not been used before: it is zero. */
		if (__builtin_mul_overflow(n, size, &size))
			return NULL;
		return arena_alloc(size);
	}
	p = real.calloc(n, size);
	if (rec_likely(watching() && p)) {
		struct rec_event e = { .kind = TRACE_CALLOC,
				       .addr = (uintptr_t)p,
				       .size = n * size };

		note_alloc(&e, REC_CALLER);
	}
	return p;
}

void *calloc(size_t n, size_t size)
{
	size_t all;

	return !__builtin_mul_overflow(n, size, &all) && rec_pass(all) ?
		real.calloc(n, size) : watched_calloc(n, size);
}

/* A block of the arena moves out of it as soon as it can. */
static void *realloc_arena(void *p, size_t size)
{
	void *q = ready() ? real.malloc(size) : arena_alloc(size);
	size_t old = arena_size(p);

	return q ? memcpy(q, p, old < size ? old : size) : NULL;
}

/* Both halves of a move stand next to each other, and appear at once. */
static void note_move(const struct rec_event *old, struct rec_event *new,
		      const struct rec_frame *caller)
{
	struct rec_writer *w;

	if (rec_unlikely(rec.rate)) {
		w = rec_enter();
		if (w) {
			if (rec_sample_free(w, (void *)old->addr))
				rec_event(w, old);
			rec_leave();
		}
		note_alloc(new, caller);
		return;
	}
	w = rec_enter();
	if (!w)
		return;
	new->stack = rec_stack(w, caller);
	new->tick = rec_tick();
	rec_event(w, old);
	rec_event(w, new);
	rec_leave();
}

static void note_realloc(void *p, void *q, size_t size, uint64_t before,
			 const struct rec_frame *caller)
{
	struct rec_event old = { .kind = TRACE_REALLOC_OLD, .tick = before,
				 .addr = (uintptr_t)p };
	struct rec_event new = { .kind = TRACE_REALLOC_NEW,
				 .addr = (uintptr_t)q, .size = size };

	if (!p)
		new.kind = TRACE_MALLOC;
	else if (p == q && !rec.rate)
		new.kind = TRACE_REALLOC_SAME;
	if (new.kind == TRACE_REALLOC_NEW)
		note_move(&old, &new, caller);
	else
		note_alloc(&new, caller);
}

/* realloc(p, 0) gave p back; the time was taken before. */
static void note_realloc_free(void *p, uint64_t before)
{
	struct rec_event e = { .kind = TRACE_FREE, .tick = before,
			       .addr = (uintptr_t)p };
	struct rec_writer *w;

	w = rec_enter();
	if (!w)
		return;
	if (!rec.rate || rec_sample_free(w, p))
		rec_event(w, &e);
	rec_leave();
}

static inline void *do_realloc(void *p, size_t size,
			       const struct rec_frame *caller)
{
	bool on;
	uint64_t before = 0;
	void *q;

	if (rec_unlikely(in_arena(p)))
		return realloc_arena(p, size);
	if (rec_unlikely(!ready()))
		return p ? NULL : arena_alloc(size);
	on = watching();
	if (on && p)
		before = rec_tick();
	q = real.realloc(p, size);
	if (rec_likely(on && q))
		note_realloc(p, q, size, before, caller);
	else if (on && p && !size)
		note_realloc_free(p, before);
	return q;
}

static __attribute__((noinline)) void *watched_realloc(void *p, size_t size)
{
	return do_realloc(p, size, REC_CALLER);
}

void *realloc(void *p, size_t size)
{
	/* A block that goes and one that comes, or neither passes. */
	if (size && size < rec_fast->gap && (!p || rec_pass_free(p)) &&
	    rec_pass(size))
		return real.realloc(p, size);
	return watched_realloc(p, size);
}

void *reallocarray(void *p, size_t n, size_t size)
{
	if (__builtin_mul_overflow(n, size, &size)) {
		errno = ENOMEM;
		return NULL;
	}
	return do_realloc(p, size, REC_CALLER);
}

static void note_aligned(void *p, size_t align, size_t size,
			 const struct rec_frame *caller)
{
	struct rec_event e = {
		.kind = TRACE_ALIGNED, .addr = (uintptr_t)p, .size = size,
		.align = align ? (uint8_t)__builtin_ctzl(align) : 0,
	};

	if (rec_likely(p && watching()))
		note_alloc(&e, caller);
}

void *memalign(size_t align, size_t size)
{
	void *p = ready() ? real.memalign(align, size) : NULL;

	note_aligned(p, align, size, REC_CALLER);
	return p;
}

void *aligned_alloc(size_t align, size_t size)
{
	void *p = ready() ? real.aligned_alloc(align, size) : NULL;

	note_aligned(p, align, size, REC_CALLER);
	return p;
}

int posix_memalign(void **ret, size_t align, size_t size)
{
	int error = ready() ? real.posix_memalign(ret, align, size) : ENOMEM;

	if (!error)
		note_aligned(*ret, align, size, REC_CALLER);
	return error;
}

void *valloc(size_t size)
{
	void *p = ready() ? real.valloc(size) : NULL;

	note_aligned(p, (size_t)sysconf(_SC_PAGESIZE), size, REC_CALLER);
	return p;
}

void *pvalloc(size_t size)
{
	void *p = ready() ? real.pvalloc(size) : NULL;

	note_aligned(p, (size_t)sysconf(_SC_PAGESIZE), size, REC_CALLER);
	return p;
}

/* What was unloaded may be in stacks to come under other names. */
int dlclose(void *handle)
{
	int result;

	if (!ready() || !real.dlclose)
		return -1;
	result = real.dlclose(handle);
	if (!result && watching() && rec_enter()) {
		rec_modules_changed();
		rec_leave();
	}
	return result;
}

/*
 * With seccomp a thread gives up system calls that chunks need, and would be
 * killed for one of ours.
 */
static void stop_before_seccomp(void)
{
	if (!watching() || !rec_enter())
		return;
	rec_lock();
	rec_stop(TRACE_END_SECCOMP, 0);
	rec_state = REC_OFF;
	rec_unlock();
	rec_leave();
}

int prctl(int option, ...)
{
	unsigned long arg[4];
	va_list ap;

	va_start(ap, option);
	for (int i = 0; i < 4; i++)
		arg[i] = va_arg(ap, unsigned long);
	va_end(ap);
	if (option == PR_SET_SECCOMP)
		stop_before_seccomp();
	if (!ready() || !real.prctl)
		return (int)syscall(SYS_prctl, option, arg[0], arg[1], arg[2],
				    arg[3]);
	return real.prctl(option, arg[0], arg[1], arg[2], arg[3]);
}

/*
 * Libraries' constructors may have allocated before; this is the latest.  The
 * environment is changed only here: somewhere else it may be in the middle of
 * a setenv that allocates.
 */
static __attribute__((constructor)) void on_load(void)
{
	if (ready() && watching())
		rec_maps_start((const void *)real.malloc);
	if (!rec.children && environ)
		rec_clean_environment();
}

static __attribute__((destructor)) void on_exit_program(void)
{
	if (!*rec_live || !rec_enter())
		return;
	rec_lock();
	rec_log_clock();
	rec_unlock();
	rec_leave();
}
