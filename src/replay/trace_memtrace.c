/* SPDX-License-Identifier: MIT */
/*
 * OCaml's memtrace, versions 2 and 3 (memtrace.tsdl of janestreet/memtrace):
 * samples of words, by statmemprof.
 *
 * Packets: a magic, their size in bits, and events.  An event is 25 bits of
 * time in us and 7 bits of kind.  A call stack comes as how many frames it
 * shares with the one before, outermost first, and words of 16 bits: a slot
 * of a table of frames, and how many more are as that table predicts.
 *
 * A block's length is that with its header word, since that is what was
 * sampled: its size here is all of it, less the byte that samples of ours
 * have in addition.
 */
#include "replay/trace_import_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "replay/trace_file.h"

enum {
	MAGIC_BYTES = 4, SLOTS = 1 << 14, RECENT = 31, FRAMES_MAX = 1 << 16,
	TIME_BITS = 25, SHORT_FIRST = 101, SHORT_LAST = 116,
};

enum { INFO, LOCATION, ALLOC, PROMOTE, COLLECT };

/* A file that was named of late, and its functions that were. */
struct recent {
	const char *name;	/* in the file, zero-ended; NULL: none */
	const char *functions[RECENT];
};

struct memtrace {
	struct import *im;
	struct bytes b;		/* the packet */
	unsigned version;
	uint64_t word, rate;	/* bytes; bytes between samples */
	uint64_t first_us, begin_us;
	uint64_t next;		/* number of the next allocation */
	uint64_t slots[SLOTS];
	uint16_t follows[SLOTS];
	uint64_t *frames;	/* owned; outermost first */
	size_t n, cap;
	struct recent recent[RECENT];
};

static uint64_t get(struct bytes *b, unsigned n)
{
	uint64_t value = 0;

	if ((size_t)(b->end - b->p) < n) {
		b->bad = true;
		b->p = b->end;
		return 0;
	}
	for (unsigned i = 0; i < n; i++)
		value |= (uint64_t)b->p[i] << 8 * i;
	b->p += n;
	return value;
}

static uint64_t get_number(struct bytes *b)
{
	uint64_t tag = get(b, 1);

	return tag < 253 ? tag : get(b, 2u << (tag - 253));
}

static const char *get_string(struct bytes *b)
{
	const char *start = (const char *)b->p;
	const uint8_t *zero = memchr(b->p, 0, (size_t)(b->end - b->p));

	if (!zero) {
		b->bad = true;
		b->p = b->end;
		return "";
	}
	b->p = zero + 1;
	return start;
}

static void read_info(struct memtrace *m)
{
	uint64_t bits = get(&m->b, 8);
	const char *program;
	double rate;
	char text[32];

	memcpy(&rate, &bits, sizeof(rate));
	m->word = get(&m->b, 1) / 8;
	program = get_string(&m->b);
	if (m->b.bad || !(rate > 0 && rate <= 1) ||
	    (m->word != 4 && m->word != 8)) {
		m->b.bad = true;
		return;
	}
	m->rate = (uint64_t)((double)m->word / (rate > 1e-12 ? rate : 1e-12) +
			     0.5);
	trace_writer_meta(m->im->out, "program", program, strlen(program));
	snprintf(text, sizeof(text), "%llu", (unsigned long long)m->rate);
	trace_writer_meta(m->im->out, "rate", text, strlen(text));
	m->b.p = m->b.end;
}

/* The i-th of those used last, which it becomes; i = RECENT: a new one. */
static struct recent *recent_file(struct memtrace *m, unsigned i)
{
	struct recent one = { .name = NULL };

	if (i == RECENT) {
		one.name = get_string(&m->b);
		i--;
	} else {
		one = m->recent[i];
		m->b.bad |= !one.name;
	}
	memmove(m->recent + 1, m->recent, i * sizeof(one));
	m->recent[0] = one;
	return m->recent;
}

static const char *recent_function(struct memtrace *m, struct recent *f,
				   unsigned i)
{
	const char *name = i == RECENT ? get_string(&m->b) : f->functions[i];

	m->b.bad |= !name;
	i -= i == RECENT;
	memmove(f->functions + 1, f->functions, i * sizeof(name));
	f->functions[0] = name;
	return name ? name : "";
}

/* Of what was inlined, the first is kept. */
static void read_location(struct memtrace *m)
{
	struct trace_name first = { .addr = get(&m->b, 8) };
	uint64_t n = get(&m->b, 1);

	for (uint64_t i = 0; i < n && !m->b.bad; i++) {
		uint64_t bits = get(&m->b, 6);
		struct recent *f = recent_file(m, bits >> 38 & 31);
		const char *function = recent_function(m, f, bits >> 43 & 31);

		if (i || m->b.bad)
			continue;
		first.function = (struct trace_text){ function,
						      strlen(function) };
		first.file = (struct trace_text){ f->name, strlen(f->name) };
		first.line = bits & 0xfffff;
	}
	if (n && !m->b.bad)
		trace_writer_name(m->im->out, &first);
}

static void push(struct memtrace *m, uint64_t frame)
{
	if (m->n < FRAMES_MAX)
		MEM_PUSH(m->frames, m->n, m->cap) = frame;
}

static uint32_t read_stack(struct memtrace *m, uint64_t shared, uint64_t n)
{
	vaddr frames[TRACE_DEPTH_MAX];
	uint64_t hash = 0xcbf29ce484222325u, known;
	unsigned last = 0;
	size_t depth = 0;

	/* One that was cut short may share more than there is. */
	m->n = min_u64(m->n, shared);
	for (uint64_t i = 0; i < n && !m->b.bad; i++) {
		unsigned word = (unsigned)get(&m->b, 2), more = word & 3;

		m->follows[last] = (uint16_t)(word >> 2);
		last = word >> 2;
		if (more == 3)
			m->slots[last] = get(&m->b, 8);
		if (more >= 2)
			more = more == 2 ? (unsigned)get(&m->b, 1) : 0;
		push(m, m->slots[last]);
		while (more--) {
			last = m->follows[last];
			push(m, m->slots[last]);
		}
	}
	for (size_t i = m->n; i-- > 0 && depth < TRACE_DEPTH_MAX; depth++) {
		frames[depth] = m->frames[i];
		hash = (hash ^ frames[depth]) * 0x9e3779b97f4a7c15u;
		hash ^= hash >> 29;
	}
	known = objects_find(&m->im->sites, hash);
	if (!known) {
		known = trace_writer_stack(m->im->out, frames, depth);
		objects_put(&m->im->sites, hash, known);
	}
	return (uint32_t)known;
}

static void read_alloc(struct memtrace *m, unsigned kind)
{
	struct trace_event e = {
		.kind = TRACE_SAMPLE, .tick = m->im->tick, .gap = 1,
		.rate = m->rate, .addr = m->next++ + 1,
	};
	uint64_t words = kind - SHORT_FIRST + 1, shared, n;

	if (kind == ALLOC) {
		words = get_number(&m->b);
		get_number(&m->b);
		get(&m->b, 1);
	}
	shared = get_number(&m->b);
	n = get(&m->b, kind == ALLOC ? 2 : 1);
	e.stack = read_stack(m, shared, n);
	m->b.bad |= !m->word || words >= (uint64_t)1 << 48;
	if (m->b.bad)
		return;
	e.size = (words + 1) * m->word - 1;
	import_sample(m->im, &e);
}

static void read_event(struct memtrace *m)
{
	uint64_t mask = (1u << TIME_BITS) - 1;
	uint64_t head = get(&m->b, 4);
	unsigned kind = (unsigned)(head >> TIME_BITS);
	uint64_t us = m->begin_us + ((head - m->begin_us) & mask);

	import_time(m->im, (us - m->first_us) * 1000);
	if (kind == INFO) {
		read_info(m);
	} else if (kind == LOCATION) {
		read_location(m);
	} else if (kind == PROMOTE) {
		get_number(&m->b);
	} else if (kind == COLLECT) {
		uint64_t ago = get_number(&m->b);

		m->b.bad |= ago >= m->next;
		if (!m->b.bad)
			import_event(m->im, TRACE_FREE, m->next - ago, 0, 0);
	} else if (kind == ALLOC || (kind >= SHORT_FIRST &&
				     kind <= SHORT_LAST)) {
		read_alloc(m, kind);
	} else {
		m->b.bad = true;
	}
}

/* False: no packet begins here. */
static bool read_packet(struct memtrace *m)
{
	struct import *im = m->im;
	struct bytes b = { (const uint8_t *)im->p, (const uint8_t *)im->end,
			   false };
	uint64_t magic = get(&b, MAGIC_BYTES), bits = get(&b, 4);

	if (magic != 0xc1fc1fc1 || bits % 8 ||
	    bits / 8 > (uint64_t)(im->end - im->p))
		return false;
	b.end = (const uint8_t *)im->p + bits / 8;
	m->begin_us = get(&b, 8);
	get(&b, 8);
	get(&b, 4);
	m->version = (unsigned)get(&b, 2);
	get(&b, 8);
	if (m->version >= 3)
		get(&b, 2);
	get(&b, 4);
	get(&b, 8);
	m->next = get(&b, 8);
	get(&b, 8);
	if (b.bad || m->version < 2 || m->version > 3)
		return false;
	if (!m->first_us)
		m->first_us = m->begin_us;
	m->begin_us = max_u64(m->begin_us, m->first_us);
	for (m->b = b; m->b.p < m->b.end && !m->b.bad; )
		read_event(m);
	im->p += bits / 8;
	im->line++;
	if (m->b.bad)
		import_bad(im);
	return true;
}

void import_memtrace(struct import *im)
{
	struct memtrace *m = mem_zalloc(sizeof(*m));

	m->im = im;
	while (im->p < im->end && read_packet(m))
		;
	if (im->p < im->end) {
		im->line++;
		import_bad(im);
	}
	free(m->frames);
	free(m);
}
