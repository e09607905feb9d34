/* SPDX-License-Identifier: MIT */
/*
 * The recorder: an object that is preloaded into a program and writes a trace
 * of its allocations.  recorder*.c are this object and nothing else; they use
 * the kernel, a few functions of libc that never allocate, and trace.h.
 *
 * *Writer*: who writes one stream; every thread has one, and inherits that of
 * a thread that is gone.  *Live word*: not 0 while events are wanted; in a
 * page that the kernel wipes on fork, so that a child of any kind of fork
 * never writes into its parent's file.
 *
 * Rules: nothing here allocates through what it watches, waits for a lock of
 * libc, or ends the program.  What fails ends the recording.  A thread in the
 * recorder is *busy*; what a signal handler allocates then is counted, not
 * recorded.  There is one lock; nobody calls the dynamic linker with it.
 */
#ifndef REPLAY_RECORDER_H
#define REPLAY_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "replay/trace.h"

#define rec_likely(x) __builtin_expect(!!(x), 1)
#define rec_unlikely(x) __builtin_expect(!!(x), 0)

enum {
	REC_RULES = 8192,	/* in pairs; a power of two */
	REC_FRAMES = 2 * TRACE_DEPTH_MAX,
	REC_PATH = 4096,
	REC_TEXT = 1024,
};

/* How to get from a return address to the next one; see recorder_cfi.c. */
enum rec_rule_kind {
	REC_RULE_SP,		/* CFA = sp + cfa */
	REC_RULE_BP,		/* CFA = bp + cfa */
	REC_RULE_DEREF,		/* CFA = *(bp + cfa) */
	REC_RULE_SIGNAL,	/* sp points to what a signal interrupted */
	REC_RULE_FP,		/* not known: believe in frame pointers */
	REC_RULE_END,
};

struct rec_rule {
	int32_t cfa;
	int16_t bp;
	uint8_t kind;
	bool saved_bp;		/* at CFA + bp; DEREF: at old bp + bp */
};

struct rec_cached_rule {
	uintptr_t key;
	struct rec_rule rule;
};

/*
 * A frame is the place of a return address, what is there, and the frame
 * pointer that its function sees.  Together they decide all that is outside.
 */
struct rec_frame {
	uintptr_t slot, pc, bp;
};

/*
 * The frame that called the function this stands in.  A copy: whom a function
 * leaves the rest to by a jump has its registers where the saved bp was.
 */
#define REC_FRAME_WORD(i) (((const uintptr_t *)__builtin_frame_address(0))[i])
#define REC_CALLER (&(const struct rec_frame){ \
	.slot = (uintptr_t)&REC_FRAME_WORD(1), .pc = REC_FRAME_WORD(1), \
	.bp = REC_FRAME_WORD(0) })

/* The stack that was seen last, innermost first, at frames[base] to top. */
struct rec_walk {
	struct rec_frame frames[REC_FRAMES];
	struct rec_frame fresh[TRACE_DEPTH_MAX];
	unsigned base, top;
	bool whole;		/* nothing is outside the last one */
	uint32_t id;		/* its number; 0 unknown */
	uint32_t modules;	/* generation, see rec.modules */
	uintptr_t low, high;	/* the thread's own stack */
	uintptr_t other_low, other_high;	/* one more that it ran on */
	struct rec_cached_rule rules[REC_RULES];
};

/* An open chunk. */
struct rec_chunk {
	uint8_t *map;		/* from the header; NULL: none */
	uint8_t *at, *end;	/* next record; none begins from end on */
	uint32_t room;
	uint32_t sequence;
};

struct rec_writer {
	struct rec_writer *next;
	int tid;
	uint32_t stream;
	struct rec_chunk chunk;
	uint64_t time;		/* of the last record, in 2^shift ticks */
	uintptr_t addr;
	uint32_t stack;
	bool announced;		/* the tid is in the stream */
	uint32_t lost;		/* nested events not yet told of */
	struct rec_fast *fast;	/* of a sampled recording */
	struct rec_chunk counts;
	uint64_t random;
	struct rec_walk walk;
};

struct rec {
	int pid;
	unsigned depth;
	unsigned shift;
	bool children, frame_pointers, no_stacks, counter, maps;
	uint64_t rate;		/* 0: every event */
	uint64_t max;
	uint64_t ticks_per_s;
	uint64_t next_look;	/* tick at which RSS is due */
	uint64_t next_clock;
	uint64_t look_step;	/* ticks between two looks at RSS */
	uint32_t modules;	/* generation: sets of modules */
	uint32_t n_streams;
	struct rec_writer *writers;
	struct rec_chunk log, stacks;
	int fd;
	uint64_t file_dev, file_ino, file_end;
	char path[REC_PATH];
	char pattern[REC_PATH];	/* for children */
};

extern struct rec rec;
extern volatile uint32_t *rec_live;
extern __thread struct rec_writer *rec_self;

/* recorder_start.c */
enum { REC_NEW, REC_STARTING, REC_ON, REC_OFF };
extern int rec_state;
void rec_start(void);
/* What is left of the parent's recording is not ours. */
void rec_start_child(void);
void rec_clean_environment(void);

/* recorder_sys.c: what libc would do, without it. */
void rec_lock(void);
void rec_unlock(void);
bool rec_try_lock(void);
void rec_lock_reset(void);
void *rec_map(size_t size);
void rec_unmap(void *p, size_t size);
/* The whole of a small file; how many bytes, 0 if none. */
size_t rec_slurp(const char *path, char *buffer, size_t size);
/* Lines of /proc/self/maps: the readable and writable mapping around addr. */
bool rec_mapping_at(uintptr_t addr, uintptr_t *ret_low, uintptr_t *ret_high);
uint64_t rec_number(const char *text);
uint64_t rec_tick_slow(void);
uint64_t rec_clock_ns(int clock);
uint32_t rec_crc32c(const void *data, size_t n);

/*
 * The counter is read ahead of time by a processor that likes to: with other
 * threads around, a block would be freed before it came.  The fence waits for
 * what stands before.
 */
static inline uint64_t rec_tick(void)
{
#if defined(__x86_64__)
	if (rec_likely(rec.counter)) {
		uint32_t low, high;

		if (rec.n_streams > 1)
			__asm__ volatile("lfence" ::: "memory");
		__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
		return (uint64_t)high << 32 | low;
	}
#elif defined(__aarch64__)
	if (rec_likely(rec.counter)) {
		uint64_t tick;

		if (rec.n_streams > 1)
			__asm__ volatile("isb" ::: "memory");
		__asm__ volatile("mrs %0, cntvct_el0" : "=r"(tick));
		return tick;
	}
#endif
	return rec_tick_slow();
}

static inline uint8_t *rec_put(uint8_t *p, uint64_t value)
{
	while (value >= 0x80) {
		*p++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*p++ = (uint8_t)value;
	return p;
}

static inline uint64_t rec_zigzag(int64_t value)
{
	return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

/* The tag makes the record: everything else must be there before. */
static inline void rec_commit(uint8_t *tag, uint8_t value)
{
	__atomic_store_n(tag, value, __ATOMIC_RELEASE);
}

/* recorder_file.c; all but rec_stop with the lock held. */
bool rec_file_open(const char *path, bool fresh);
bool rec_chunk_next(struct rec_chunk *c, unsigned type, uint32_t stream,
		    uint64_t tick, uint32_t room);
void rec_stop(unsigned why, uint64_t value);
void rec_log(unsigned tag, const void *payload, size_t n);
void rec_log_clock(void);
void rec_log_rss(uint64_t tick);
void rec_log_start(bool environment);
void rec_log_meta(const char *key, const char *value, size_t n);
/* Text in a payload. */
uint8_t *rec_put_text(uint8_t *p, const char *text, size_t n);

/* recorder_module.c */
struct rec_module {
	uintptr_t low, high;	/* all of it */
	uintptr_t hdr;		/* .eh_frame_hdr; 0: none */
	uintptr_t hdr_low, hdr_high;	/* the segment around it */
};
/* The module at pc, and whether there is one. Asks the linker for news. */
bool rec_module_at(uintptr_t pc, struct rec_module *ret);
void rec_modules_read(void);
/* Something may have been unloaded. */
void rec_modules_changed(void);
void rec_modules_reset(void);

/* recorder_map.c */
void rec_maps_resolve(void);
/* malloc: of the allocator in use, whose own calls are left out. */
void rec_maps_start(const void *malloc);

/* recorder_exec.c */
void rec_exec_resolve(void);
/*
 * With the environment as it came, and the pid.  *ret_again: this process was
 * recorded already, as another program.  False: this process is not to be
 * recorded, one that it started at the same program's behest was.
 */
bool rec_exec_start(bool *ret_again);

/* recorder_cfi.c: the rule for an address inside a function. */
struct rec_rule rec_cfi_rule(const struct rec_module *m, uintptr_t at);

/* recorder_stack.c: the number of the stack of a caller. */
uint32_t rec_stack(struct rec_writer *w, const struct rec_frame *caller);
void rec_stack_start(struct rec_writer *w);
void rec_stacks_reset(void);

/*
 * recorder_sample.c.  What is not sampled costs what stands here, before
 * anything else is looked at: as long as there is no sampling, nothing passes.
 * A thread's page of this is wiped on fork, so that in a child nothing does.
 */
struct rec_fast {
	uint64_t gap;		/* shorter blocks have no marked byte */
	struct trace_counts *counts;	/* in the file */
	uint64_t *frees;	/* in counts; NULL: no free passes */
	bool drawn;		/* gap is */
};

enum { REC_TAGS = 1 << 16, REC_TAG_STAYS = 255 };
extern __thread struct rec_fast *rec_fast;
/* How many sampled blocks, or others that must not pass, have this tag. */
extern uint8_t rec_tags[REC_TAGS];

/* Neighbours on the heap share lines of the cache here, too. */
static inline uint8_t *rec_tag(const void *p)
{
	return &rec_tags[((uintptr_t)p >> 4 ^ (uintptr_t)p >> 20) %
			 REC_TAGS];
}

static inline void rec_count(struct trace_counts *c, uint64_t size)
{
	unsigned class = trace_class(size);

	c->classes[class].blocks++;
	c->classes[class].bytes += size;
}

/* Counts, and true: a block of this size is not sampled. */
static inline bool rec_pass(uint64_t size)
{
	struct rec_fast *f = rec_fast;
	/* First: a handler that forks may wipe it any time. */
	struct trace_counts *c = __atomic_load_n(&f->counts, __ATOMIC_ACQUIRE);

	if (rec_unlikely(size >= f->gap))
		return false;
	f->gap -= size + 1;
	rec_count(c, size);
	return true;
}

static inline bool rec_pass_free(const void *p)
{
	uint64_t *frees = __atomic_load_n(&rec_fast->frees, __ATOMIC_RELAXED);

	if (rec_unlikely(!frees || *rec_tag(p)))
		return false;
	++*frees;
	return true;
}

/* A block that did not pass. */
void rec_sample(void *p, uint64_t size, const struct rec_frame *caller);
/* A free that did not; true: p was sampled, and is not any more. */
bool rec_sample_free(struct rec_writer *w, const void *p);
void rec_sample_stop(void);
void rec_sample_reset(void);

/* recorder.c: a record of the thread's stream. */
struct rec_event {
	uint64_t tick;
	uintptr_t addr;
	uint64_t size;
	uint64_t gap;
	uint64_t rate;		/* MAP: flags */
	uint32_t stack;
	uint8_t kind;
	uint8_t align;
};
/* Are events wanted?  Starts the recording if that is still to be done. */
bool rec_watching(void);
struct rec_writer *rec_enter(void);
void rec_leave(void);
void rec_event(struct rec_writer *w, const struct rec_event *e);

#endif
