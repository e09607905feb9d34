/* SPDX-License-Identifier: MIT */
/*
 * Chunks of events: from bytes to events, some at a time.
 */
#include "replay/trace_file.h"

#include <stdlib.h>

#include "base/mem.h"

enum {
	EVENTS_FIRST = 64,	/* of a stream's buffer */
	EVENTS_MAX = 1024,
};

static void end_chunk(struct stream *s)
{
	free(s->plain);
	s->plain = NULL;
	s->in_chunk = false;
}

static void bad_chunk(struct trace *t, struct stream *s, const char *what)
{
	t->damage.records++;
	trace_complain(t, "chunk %u of stream %u: %s",
		       t->chunks[s->chunks[s->next_chunk - 1]].sequence,
		       s->id, what);
	end_chunk(s);
}

/* The chunk before the one that is next. */
static void let_go_last(const struct trace *t, const struct stream *s)
{
	const struct chunk_ref *c;

	if (s->next_chunk < 2)
		return;
	c = &t->chunks[s->chunks[s->next_chunk - 2]];
	trace_let_go(t, c->offset, c->offset + c->stored);
}

/* The next chunk of the stream that can be used. */
static bool begin_chunk(struct trace *t, struct stream *s)
{
	while (s->next_chunk < s->n_chunks) {
		const struct chunk_ref *c =
			&t->chunks[s->chunks[s->next_chunk++]];

		let_go_last(t, s);
		if (!trace_payload(t, c, &s->in, &s->plain))
			continue;
		s->in_chunk = true;
		s->open = c->open;
		s->tick = c->tick;
		s->addr = 0;
		s->stack = 0;
		t->position = max_u64(t->position, c->offset);
		if (s->type == TRACE_PACKED) {
			s->thread = 0;
			if (!trace_columns_begin(s)) {
				bad_chunk(t, s, "its columns are too long");
				continue;
			}
		}
		return true;
	}
	return false;
}

/* A thread takes a stream over only from one that is gone. */
static void set_thread(struct trace *t, struct stream *s, uint64_t tid)
{
	uint32_t old = s->thread;

	s->thread = trace_thread_of(t, s->id, tid, s->tick);
	if (old != s->thread && old < t->info.n_threads)
		t->threads[old].ended = s->tick;
}

static void read_other(struct trace *t, struct stream *s, struct bytes *b)
{
	uint64_t what = bytes_varint(b);
	uint64_t n = bytes_varint(b);
	struct bytes payload;

	if (b->bad || n > (uint64_t)(b->end - b->p)) {
		b->bad = true;
		return;
	}
	payload = (struct bytes){ b->p, b->p + n, false };
	b->p += n;
	if (what == TRACE_OTHER_THREAD)
		set_thread(t, s, bytes_varint(&payload));
	else if (what == TRACE_OTHER_LOST)
		t->damage.lost += bytes_varint(&payload);
	else
		t->damage.unknown++;
}

static void read_address(struct stream *s, struct bytes *b, unsigned tag)
{
	uint64_t delta = (uint64_t)unzigzag(bytes_varint(b));

	if (tag & TRACE_ODD_ADDRESS)
		s->addr += delta;
	else
		s->addr = ((s->addr >> 4) + delta) << 4;
}

/* What kinds have besides address, size and stack. */
static void read_rest(struct trace_event *e, struct bytes *b)
{
	if (e->kind == TRACE_SAMPLE) {
		e->gap = bytes_varint(b);
		e->rate = bytes_varint(b);
	} else if (e->kind == TRACE_MAP) {
		e->rate = bytes_varint(b);
	}
}

/* One record but OTHER. */
static inline void read_event(struct trace *t, struct stream *s,
			      struct bytes *b, unsigned tag,
			      struct trace_event *e)
{
	unsigned kind = tag & TRACE_KIND_MASK;

	e->kind = (uint8_t)kind;
	e->align = 0;
	e->size = e->gap = e->rate = 0;
	e->stack = 0;
	e->thread = s->thread;
	s->tick += bytes_varint(b) << t->shift;
	e->tick = s->tick;
	read_address(s, b, tag);
	e->addr = s->addr;
	if (!(1u << kind & TRACE_KINDS_SIZED))
		return;
	if (kind == TRACE_ALIGNED)
		e->align = (uint8_t)bytes_varint(b);
	e->size = bytes_varint(b);
	if (!(1u << kind & TRACE_KINDS_STACKED))
		return;
	if (!(tag & TRACE_SAME_STACK))
		s->stack += (uint32_t)unzigzag(bytes_varint(b));
	e->stack = s->stack;
	if (kind >= TRACE_SAMPLE)
		read_rest(e, b);
}

/*
 * Records of a chunk until there is no more room for events.  A chunk ends
 * with its bytes; an open one, at a tag of 0 too.
 */
static void read_records(struct trace *t, struct stream *s)
{
	struct bytes *b = &s->in;

	while (s->n < s->cap) {
		const uint8_t *start = b->p;
		unsigned tag = start < b->end ? *b->p++ : 0;
		unsigned kind = tag & TRACE_KIND_MASK;

		s->last = start;
		if (!tag) {
			if (start < b->end && !s->open)
				bad_chunk(t, s, "a record of kind 0");
			else
				end_chunk(s);
			return;
		}
		if (tag & ~(unsigned)TRACE_TAG_KNOWN || !kind ||
		    (kind > TRACE_UNMAP && kind != TRACE_OTHER)) {
			t->damage.unknown++;
			bad_chunk(t, s, "a record of an unknown kind");
			return;
		}
		if (kind == TRACE_OTHER) {
			read_other(t, s, b);
			if (!b->bad)
				continue;
			bad_chunk(t, s, "it ends inside a record");
			return;
		}
		if (s->thread == NO_THREAD)
			s->thread = trace_thread_of(t, s->id, 0, s->tick);
		read_event(t, s, b, tag, &s->events[s->n]);
		if (b->bad) {
			bad_chunk(t, s, "it ends inside a record");
			return;
		}
		s->n++;
	}
}

static void read_columns(struct trace *t, struct stream *s)
{
	if (!trace_columns_read(t, s))
		bad_chunk(t, s, "a column ends too early");
	else if (trace_columns_end(s))
		end_chunk(s);
}

/*
 * Buffers are small at first: a trace may have more streams than a machine
 * has memory for large ones.
 */
static void make_room(struct stream *s)
{
	if (s->cap < EVENTS_MAX && s->n == s->cap) {
		s->cap = s->cap ? s->cap * 4 : EVENTS_FIRST;
		s->events = mem_realloc(s->events, s->cap *
					sizeof(*s->events));
	}
	s->at = s->n = 0;
}

bool trace_fill(struct trace *t, struct stream *s)
{
	make_room(s);
	while (!s->n) {
		if (!s->in_chunk && !begin_chunk(t, s)) {
			trace_stream_reset(s);
			return false;
		}
		if (!s->in_chunk)
			continue;
		if (s->type == TRACE_PACKED)
			read_columns(t, s);
		else
			read_records(t, s);
	}
	return true;
}

/* Gives its memory back; next_chunk stays where it is. */
void trace_stream_reset(struct stream *s)
{
	free(s->events);
	trace_columns_free(s->columns);
	s->events = NULL;
	s->columns = NULL;
	s->at = s->n = s->cap = 0;
	end_chunk(s);
}

uint64_t trace_events_end(struct trace *t, const struct chunk_ref *c,
			  uint32_t *ret_events)
{
	uint32_t index = (uint32_t)(c - t->chunks);
	struct stream s = {
		.type = TRACE_EVENTS, .id = c->stream, .chunks = &index,
		.n_chunks = 1, .thread = NO_THREAD,
	};

	*ret_events = 0;
	while (trace_fill(t, &s))
		*ret_events += (uint32_t)s.n;
	return s.last ? (uint64_t)(s.last - (t->map + c->offset)) : 0;
}
