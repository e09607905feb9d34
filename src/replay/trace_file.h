/* SPDX-License-Identifier: MIT */
/*
 * Inside the reader of traces: what trace_*.c share.
 */
#ifndef REPLAY_TRACE_FILE_H
#define REPLAY_TRACE_FILE_H

#include "base/map.h"
#include "replay/trace_read.h"

enum {
	CHUNK_LENGTH_MAX = 64 << 20,	/* of a payload when decoded */
	TRACE_SLACK = 64,	/* bytes that are there behind a decoded one */
};

/* Who writes a stream before it says so. */
#define NO_THREAD UINT32_MAX

uint32_t trace_crc32c(const void *data, size_t n);

/* Bytes being decoded; bad sticks, and reads yield 0 from then on. */
struct bytes {
	const uint8_t *p, *end;
	bool bad;
};

static inline uint64_t bytes_varint_slow(struct bytes *b)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		if (b->p == b->end)
			break;
		value |= (uint64_t)(*b->p & 0x7f) << shift;
		if (!(*b->p++ & 0x80))
			return value;
	}
	b->bad = true;
	b->p = b->end;
	return 0;
}

static inline uint64_t bytes_varint(struct bytes *b)
{
	if (b->p < b->end && !(*b->p & 0x80))
		return *b->p++;
	return bytes_varint_slow(b);
}

static inline int64_t unzigzag(uint64_t value)
{
	return (int64_t)(value >> 1 ^ -(value & 1));
}

/* A chunk whose header holds. */
struct chunk_ref {
	uint64_t offset;	/* of the payload in the file */
	uint64_t tick;
	uint32_t stored;	/* within the file */
	uint32_t length;
	uint32_t stream;
	uint32_t sequence;
	uint32_t crc;
	uint8_t type;
	uint8_t codec;
	bool open;
	bool cut;		/* the file ends before stored did */
};

/* A node of the tree of stacks: outermost frames hang on node 0. */
struct stack_node {
	vaddr addr;
	uint32_t parent;
};

/* The chunks of one stream, and what was decoded of them. */
struct stream {
	uint32_t id;
	uint8_t type;		/* EVENTS or PACKED */
	const uint32_t *chunks;	/* indices, borrowed */
	size_t n_chunks, next_chunk;

	bool in_chunk;
	struct bytes in;	/* the rest of the chunk */
	const uint8_t *last;	/* where its last record was to begin */
	uint8_t *plain;		/* owned: a chunk that was compressed */
	bool open;
	uint64_t tick;		/* in ticks */
	uint64_t addr;
	uint32_t stack;
	uint32_t thread;
	struct columns *columns;	/* owned: of a packed chunk */

	struct trace_event *events;	/* owned; NULL: none yet, or any more */
	size_t at, n, cap;
};

struct trace {
	const uint8_t *map;
	size_t size;
	char *name;		/* owned */
	unsigned shift;
	struct trace_info info;
	struct trace_damage damage, at_open;

	struct chunk_ref *chunks;	/* owned, in the order of the file */
	size_t n_chunks, cap_chunks;
	uint32_t *order;	/* owned: chunks of events by stream */
	struct stream *streams;	/* owned */
	size_t n_streams;
	uint32_t *heap;		/* owned: streams that have more */
	size_t n_heap;
	struct trace_event *batch;	/* owned */
	uint64_t position;
	bool merging;		/* the heap is made */

	struct stack_node *nodes;	/* owned */
	size_t n_nodes, cap_nodes;
	uint32_t *leaves;	/* owned: a node for each stack */
	size_t n_leaves, cap_leaves;
	vaddr frames[TRACE_DEPTH_MAX];

	/* The rows behind info's pointers, owned. */
	struct trace_meta *meta;
	struct trace_module *modules;
	struct trace_thread *threads;
	struct trace_mark *marks;
	struct trace_name *names;
	struct trace_row *clocks, *rss, *gcs, *lost, *ends;
	size_t cap_meta, cap_modules, cap_threads, cap_marks, cap_names;
	size_t cap_clocks, cap_rss, cap_gcs, cap_lost, cap_ends;
	/* index + 1, by (stream << 32 | tid) + 1 */
	struct map thread_numbers;
	char **texts;		/* owned, each */
	size_t n_texts, cap_texts;
};

/* The first complaint is kept in words. */
void trace_complain(struct trace *t, const char *fmt, ...) PRINTF_LIKE(2, 3);

/*
 * The payload of a chunk; *ret_owned is NULL or to be freed.  False, with the
 * damage counted, if it is not what it was.
 */
bool trace_payload(struct trace *t, const struct chunk_ref *c,
		   struct bytes *ret, uint8_t **ret_owned);

/* What was mapped of these bytes need not stay in memory. */
void trace_let_go(const struct trace *t, uint64_t from, uint64_t to);

/* trace_log.c: chunks of the log, of stacks and of counts. */
void trace_load_log(struct trace *t, const struct chunk_ref *c);
void trace_load_stacks(struct trace *t, const struct chunk_ref *c);
void trace_load_counts(struct trace *t, const struct chunk_ref *c);
uint32_t trace_thread_of(struct trace *t, uint32_t stream, uint64_t tid,
			 uint64_t tick);

/* trace_events.c: more events into s->events; false at the stream's end. */
bool trace_fill(struct trace *t, struct stream *s);
void trace_stream_reset(struct stream *s);

/*
 * trace_columns.c: the columns of the packed chunk in s->in.  False: they are
 * no columns; there is not what there should be.
 */
bool trace_columns_begin(struct stream *s);
bool trace_columns_read(struct trace *t, struct stream *s);
bool trace_columns_end(const struct stream *s);
void trace_columns_free(struct columns *c);

/* Bytes of an open chunk's payload that hold whole records. */
uint64_t trace_events_end(struct trace *t, const struct chunk_ref *c,
			  uint32_t *ret_events);
uint64_t trace_stacks_end(const struct trace *t, const struct chunk_ref *c);
uint64_t trace_log_end(const struct trace *t, const struct chunk_ref *c);

#endif
