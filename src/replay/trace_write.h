/* SPDX-License-Identifier: MIT */
/*
 * Traces, written: packed, from events in the order of time.
 *
 *	w = trace_writer_new(path, force, &head, &err);
 *	trace_writer_meta(w, "program", ...);
 *	id = trace_writer_stack(w, frames, n);
 *	trace_writer_event(w, &event);		many times
 *	trace_writer_close(w, &err);
 *
 * The file has its name only when it is whole.  Writing never fails at once:
 * the first error is kept, and trace_writer_close() reports it.  Addresses
 * become numbers of objects; memory is that of the live blocks and of one
 * chunk.
 */
#ifndef REPLAY_TRACE_WRITE_H
#define REPLAY_TRACE_WRITE_H

#include "base/err.h"
#include "replay/trace_read.h"

struct trace_writer;

/* What a header has, and no writer knows by itself. */
struct trace_head {
	uint64_t flags;		/* SAMPLED or 0 */
	uint32_t pid;
	uint32_t page_size;
	uint64_t start_ns;
	uint64_t ticks_per_s;
	unsigned machine;
};

/*
 * An existing file is replaced only if it is a trace or empty, or if force is
 * set.
 */
struct trace_writer *trace_writer_new(const char *path, bool force,
				      const struct trace_head *head,
				      struct err *err) MUST_CHECK;
/* Into an open file, which is closed in the end; name is for messages. */
struct trace_writer *trace_writer_fd(int fd, const char *name,
				     const struct trace_head *head);
/* Frees the writer either way. */
bool trace_writer_close(struct trace_writer *w, struct err *err) MUST_CHECK;

/* Return addresses, innermost first.  The number: 1, 2, ... */
uint32_t trace_writer_stack(struct trace_writer *w, const vaddr *frames,
			    size_t n);
void trace_writer_event(struct trace_writer *w, const struct trace_event *e);

/* Records of the log; numbers in the order of enum trace_log. */
void trace_writer_meta(struct trace_writer *w, const char *key,
		       const void *value, size_t n);
void trace_writer_row(struct trace_writer *w, enum trace_log tag,
		      const struct trace_row *row, unsigned n_values);
void trace_writer_module(struct trace_writer *w,
			 const struct trace_module *m);
void trace_writer_mark(struct trace_writer *w, const struct trace_mark *m);
void trace_writer_name(struct trace_writer *w, const struct trace_name *n);
/* Once. */
void trace_writer_counts(struct trace_writer *w,
			 const struct trace_counts *c);
/* Threads are numbered from 0 in the order of these calls. */
void trace_writer_thread(struct trace_writer *w,
			 const struct trace_thread *t);

#endif
