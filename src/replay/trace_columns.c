/* SPDX-License-Identifier: MIT */
/*
 * Packed chunks: from columns to events.  This is what a replay spends much of
 * its time in, so there are few branches that nobody can foresee, and no
 * look at where a column ends before each of its bytes: one event never takes
 * more than TRACE_SLACK bytes of a column, as many can be read behind the
 * last one, and an event that went too far is not used.
 */
#include "replay/trace_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define INLINE static inline __attribute__((always_inline))

/* The columns of a chunk, and what was last in them. */
struct columns {
	const uint8_t *at[TRACE_COLUMNS], *end[TRACE_COLUMNS];
	uint64_t left;
	uint64_t next;		/* number of the next object */
	uint64_t map_addr;
	unsigned shift;
	uint8_t *copy;		/* owned: with slack; or NULL */
	uint64_t sizes[TRACE_SIZES_KEPT];
};

/* The same while events are read, in registers as far as there are any. */
struct walk {
	const uint8_t *kinds, *times, *objects, *sizes, *stacks, *threads;
	uint64_t tick, next, map_addr;
	uint32_t stack, thread;
	bool bad;
};

void trace_columns_free(struct columns *c)
{
	if (c)
		free(c->copy);
	free(c);
}

bool trace_columns_begin(struct stream *s)
{
	struct columns *c = s->columns;
	struct bytes b = s->in;

	if (!c)
		c = s->columns = mem_zalloc(sizeof(*c));
	free(c->copy);
	memset(c, 0, sizeof(*c));
	if (!s->plain) {
		size_t n = (size_t)(b.end - b.p);

		c->copy = mem_zalloc(n + TRACE_SLACK);
		memcpy(c->copy, b.p, n);
		b = (struct bytes){ c->copy, c->copy + n, false };
	}
	c->shift = (unsigned)min_u64(bytes_varint(&b), 63);
	c->next = bytes_varint(&b);
	c->left = bytes_varint(&b);
	for (unsigned i = 0; i < TRACE_COLUMNS; i++) {
		uint64_t n = bytes_varint(&b);

		if (b.bad || n > (uint64_t)(b.end - b.p))
			return false;
		c->at[i] = b.p;
		c->end[i] = b.p += n;
	}
	return true;
}

/* ---- varints ---- */

struct number {
	uint64_t value;
	const uint8_t *end;
};

static __attribute__((noinline)) struct number long_number(const uint8_t *p,
							   bool *bad)
{
	struct bytes b = { p, p + 10, false };
	uint64_t value = bytes_varint(&b);

	*bad |= b.bad;
	return (struct number){ value, b.p };
}

/* Of any length, without a branch up to 8 bytes. */
INLINE struct number number_at(const uint8_t *p, bool *bad)
{
	uint64_t w, ends;
	unsigned last;

	memcpy(&w, p, sizeof(w));
	ends = ~w & UINT64_C(0x8080808080808080);
	if (__builtin_expect(!ends, 0))
		return long_number(p, bad);
	last = (unsigned)__builtin_ctzll(ends);
	w &= (ends ^ (ends - 1)) & UINT64_C(0x7f7f7f7f7f7f7f7f);
	w = (w & UINT64_C(0x007f007f007f007f)) |
	    (w & UINT64_C(0x7f007f007f007f00)) >> 1;
	w = (w & UINT64_C(0x00003fff00003fff)) |
	    (w & UINT64_C(0x3fff00003fff0000)) >> 2;
	w = (w & 0x0fffffff) | (w & UINT64_C(0x0fffffff00000000)) >> 4;
	return (struct number){ w, p + last / 8 + 1 };
}

/* Of a column; bad if it went too far. */
INLINE uint64_t take(struct walk *w, const uint8_t **at, const uint8_t *end)
{
	bool bad = false;
	struct number n = number_at(*at, &bad);

	w->bad |= bad || n.end > end;
	*at = n.end;
	return n.value;
}

/* Where most are below 128. */
INLINE uint64_t take_small(struct walk *w, const uint8_t **at,
			   const uint8_t *end)
{
	const uint8_t *p = *at;

	if (__builtin_expect(*p & 0x80, 0))
		return take(w, at, end);
	*at = p + 1;
	w->bad |= p >= end;
	return *p;
}

/* ---- events ---- */

INLINE uint64_t take_object(struct walk *w, const struct columns *c,
			    unsigned kind)
{
	const uint8_t *end = c->end[TRACE_OBJECT_COLUMN];
	uint64_t ago;

	if (__builtin_expect(trace_is_map(kind), 0))
		return w->map_addr += (uint64_t)unzigzag(take(w, &w->objects,
							      end));
	if (!trace_is_free(kind))
		return w->next++;
	ago = take_small(w, &w->objects, end);
	w->bad |= ago >= w->next && ago;
	return ago ? w->next - ago : 0;
}

INLINE void take_size(struct walk *w, struct columns *c, unsigned tag,
		      uint32_t stack, struct trace_event *e)
{
	unsigned kind = tag & TRACE_KIND_MASK;
	const uint8_t *end = c->end[TRACE_SIZES];
	uint64_t *last = &c->sizes[stack % TRACE_SIZES_KEPT];
	uint64_t size;

	if (tag & TRACE_SAME_SIZE)
		size = *last;
	else
		size = *last = take_small(w, &w->sizes, end);
	e->size = size;
	if (__builtin_expect(kind == TRACE_ALIGNED, 0))
		e->align = (uint8_t)take(w, &w->sizes, end);
	if (__builtin_expect(kind < TRACE_SAMPLE, 1))
		return;
	if (kind == TRACE_SAMPLE)
		e->gap = take(w, &w->sizes, end);
	if (kind != TRACE_UNMAP)
		e->rate = take(w, &w->sizes, end);
}

/* False if it is none. */
INLINE bool take_event(struct walk *w, struct columns *c,
		       struct trace_event *e)
{
	unsigned tag = *w->kinds;
	unsigned kind = tag & TRACE_KIND_MASK;
	uint32_t stack = 0;

	w->bad |= !kind || kind > TRACE_UNMAP;
	w->bad |= w->kinds++ >= c->end[TRACE_KINDS];
	w->tick += take_small(w, &w->times, c->end[TRACE_TIMES]) << c->shift;
	if (__builtin_expect(!(tag & TRACE_SAME_THREAD), 0))
		w->thread = (uint32_t)take(w, &w->threads,
					   c->end[TRACE_THREAD_COLUMN]);
	e->tick = w->tick;
	e->addr = take_object(w, c, kind);
	e->size = e->gap = e->rate = 0;
	e->kind = (uint8_t)kind;
	e->align = 0;
	if (1u << kind & TRACE_KINDS_STACKED) {
		if (!(tag & TRACE_SAME_STACK))
			w->stack += (uint32_t)unzigzag(take_small(w,
				&w->stacks, c->end[TRACE_STACK_COLUMN]));
		stack = w->stack;
	}
	e->stack = stack;
	e->thread = w->thread;
	if (1u << kind & TRACE_KINDS_SIZED)
		take_size(w, c, tag, stack, e);
	return !w->bad;
}

bool trace_columns_read(struct trace *t, struct stream *s)
{
	struct columns *c = s->columns;
	struct trace_event *events = s->events;
	size_t n = s->n, end = n + min_u64(s->cap - n, c->left);
	struct walk w = {
		.kinds = c->at[TRACE_KINDS], .times = c->at[TRACE_TIMES],
		.objects = c->at[TRACE_OBJECT_COLUMN],
		.sizes = c->at[TRACE_SIZES],
		.stacks = c->at[TRACE_STACK_COLUMN],
		.threads = c->at[TRACE_THREAD_COLUMN],
		.tick = s->tick, .next = c->next, .map_addr = c->map_addr,
		.stack = s->stack, .thread = s->thread,
	};

	for (; n < end && take_event(&w, c, &events[n]); n++) {
		struct trace_event *e = &events[n];

		/* Numbers of threads come from the log. */
		if (__builtin_expect(w.thread >= t->info.n_threads, 0))
			e->thread = trace_thread_of(t, s->id, 0, e->tick);
	}
	c->at[TRACE_KINDS] = w.kinds;
	c->at[TRACE_TIMES] = w.times;
	c->at[TRACE_OBJECT_COLUMN] = w.objects;
	c->at[TRACE_SIZES] = w.sizes;
	c->at[TRACE_STACK_COLUMN] = w.stacks;
	c->at[TRACE_THREAD_COLUMN] = w.threads;
	c->next = w.next;
	c->map_addr = w.map_addr;
	c->left -= n - s->n;
	s->tick = w.tick;
	s->stack = w.stack;
	s->thread = w.thread;
	s->n = n;
	return n == end;
}

bool trace_columns_end(const struct stream *s)
{
	return !s->columns->left;
}
