/* SPDX-License-Identifier: MIT */
/*
 * Traces, read: from a file to events in the order of time.
 *
 *	t = trace_open(path, &err);
 *	while ((n = trace_read(t, &events)))
 *		for (size_t i = 0; i < n; i++)
 *			use(&events[i]);
 *	problems = trace_damage(t);
 *	trace_close(t);
 *
 * Opening reads headers, the log and the stacks; events stream through, in
 * memory that depends on the number of streams and not on that of events.
 * Nothing in a file is trusted: damage is counted, and reading goes on behind
 * it.
 *
 * *Stream*: what one writer wrote, in its own order.  *Thread*: who caused an
 * event; a stream may serve several threads, one after the other.  Events of
 * all streams are merged by tick; at equal ticks frees come first, then the
 * lower stream.
 */
#ifndef REPLAY_TRACE_READ_H
#define REPLAY_TRACE_READ_H

#include "base/err.h"
#include "base/types.h"
#include "replay/trace.h"

struct trace;

struct trace_event {
	uint64_t tick;		/* see trace_ns() */
	uint64_t addr;		/* or the object's number: TRACE_OBJECTS */
	uint64_t size;		/* as requested; calloc: the product */
	uint64_t gap;		/* SAMPLE: N, from 1 */
	uint64_t rate;		/* SAMPLE: T in force; MAP: flags */
	uint32_t stack;		/* 0: unknown */
	uint32_t thread;	/* index into trace_info.threads */
	uint8_t kind;		/* enum trace_kind, never TRACE_OTHER */
	uint8_t align;		/* ALIGNED: power of two */
};

/* Is a block gone with this event?  Has a block come?  SAME: both. */
static inline bool trace_is_free(unsigned kind)
{
	return 1u << kind & (1u << TRACE_FREE | 1u << TRACE_FREE_SIZED |
			     1u << TRACE_REALLOC_OLD |
			     1u << TRACE_REALLOC_SAME);
}

static inline bool trace_is_alloc(unsigned kind)
{
	return 1u << kind & (1u << TRACE_MALLOC | 1u << TRACE_CALLOC |
			     1u << TRACE_ALIGNED | 1u << TRACE_SAMPLE |
			     1u << TRACE_REALLOC_NEW |
			     1u << TRACE_REALLOC_SAME);
}

static inline bool trace_is_map(unsigned kind)
{
	return kind == TRACE_MAP || kind == TRACE_UNMAP;
}

struct trace_text {
	const char *text;	/* borrowed until trace_close; zero-ended */
	size_t len;		/* may hold zeros of its own */
};

struct trace_meta {
	struct trace_text key, value;
};

struct trace_segment {
	vaddr vaddr;		/* in the object; bias is to be added */
	uint64_t memsz;
	uint64_t offset;	/* in the file */
};

/* An object, mapped from tick on until its set is followed by another. */
struct trace_module {
	uint64_t tick;
	uint64_t set;		/* modules of one set were there together */
	vaddr bias;
	struct trace_text build_id;	/* bytes */
	struct trace_text path;
	const struct trace_segment *segments;
	size_t n_segments;
};

struct trace_thread {
	uint64_t tid;
	uint64_t tick;		/* of the first event, or when it was named */
	struct trace_text name;	/* may be empty */
	uint64_t ended;		/* another took its stream over; 0 not known */
};

/* Rows of the log whose payload is only numbers; see enum trace_log. */
struct trace_row {
	uint64_t tick;
	uint64_t value[4];
};

struct trace_mark {
	uint64_t tick;
	uint64_t tid;
	struct trace_text name;
	uint64_t value;
};

/* Names that an imported trace had for an address of its own. */
struct trace_name {
	vaddr addr;
	struct trace_text function, file;
	uint64_t line;
};

struct trace_rows {
	const struct trace_row *rows;
	size_t n;
};

struct trace_info {
	const char *path;
	uint64_t file_size;
	uint64_t flags;		/* enum trace_flag */
	uint32_t pid;
	uint32_t page_size;
	unsigned machine;
	uint64_t start_ns;	/* since 1970 */
	uint64_t first_tick;	/* of the trace: what trace_ns() calls 0 */
	double ticks_per_s;	/* measured if CLOCK records allow, else said */
	size_t n_chunks, n_streams, n_open;
	uint32_t n_stacks;	/* numbers are 1 to this */
	const struct trace_meta *meta;
	size_t n_meta;
	const struct trace_module *modules;	/* in the order of the file */
	size_t n_modules;
	const struct trace_thread *threads;
	size_t n_threads;	/* grows while events are read */
	const struct trace_mark *marks;
	size_t n_marks;
	const struct trace_name *names;
	size_t n_names;
	struct trace_rows clocks;	/* monotonic ns, realtime ns */
	struct trace_rows rss;		/* resident, swapped */
	struct trace_rows gcs;		/* ticks, flags, before, after */
	struct trace_rows lost;		/* events, enum trace_lost */
	struct trace_rows ends;		/* enum trace_end, value */
	/* Of a sampled recording, if it counted: all blocks, exactly. */
	bool counted;
	struct trace_counts counts;
};

/* What was wrong with the file; counts, and the first of all in words. */
struct trace_damage {
	uint64_t headers;	/* bytes skipped in search of a chunk */
	uint64_t chunks;	/* with a wrong CRC, or that do not decode */
	uint64_t records;	/* after which a chunk was given up */
	uint64_t unknown;	/* chunks and records of an unknown kind */
	uint64_t lost;		/* events that the recorder missed */
	bool cut;		/* the file ends inside a chunk */
	char first[160];	/* a sentence; empty: all is well */
};

/* NULL with err set if it is no trace.  A damaged one opens. */
struct trace *trace_open(const char *path, struct err *err) MUST_CHECK;
/* Takes fd over, also on failure; name is for messages. */
struct trace *trace_open_fd(int fd, const char *name, struct err *err)
	MUST_CHECK;
void trace_close(struct trace *t);

/*
 * The next events, in order; 0 at the end.  They stand until the next call.
 * Costs some 5 to 10 ns an event.
 */
size_t trace_read(struct trace *t, const struct trace_event **ret);
/* From the start again.  Numbers of threads stay. */
void trace_rewind(struct trace *t);

const struct trace_info *trace_info(const struct trace *t);
/* Complete when trace_read() has returned 0. */
const struct trace_damage *trace_damage(const struct trace *t);
/* Blocks of all classes; *ret_bytes: what is in them. */
uint64_t trace_counted(const struct trace_counts *c, uint64_t *ret_bytes);

/* How far reading is, in bytes of the file, for progress. */
uint64_t trace_position(const struct trace *t);

/*
 * Return addresses, innermost first, until the next call; *ret_n = 0 if there
 * is no such stack.
 */
const vaddr *trace_stack(struct trace *t, uint32_t stack, size_t *ret_n);

/* Nanoseconds since first_tick; 0 before it. */
uint64_t trace_ns(const struct trace *t, uint64_t tick);

/* The object that held addr at that tick; NULL if none is known. */
const struct trace_module *trace_module_at(const struct trace *t, vaddr addr,
					   uint64_t tick);

/* The last one of the key; NULL if there is none. */
const char *trace_meta_value(const struct trace *t, const char *key);

/*
 * Check every byte: CRCs of all sealed chunks, all records.  Fills the damage;
 * events are read from the start and the trace is rewound.  *ret_events: how
 * many there are.
 */
bool trace_verify(struct trace *t, uint64_t *ret_events);

/* "malloc", "free", ... */
const char *trace_kind_name(unsigned kind);

#endif
