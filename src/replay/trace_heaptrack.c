/* SPDX-License-Identifier: MIT */
/*
 * heaptrack's files (heaptrack 1.4, src/track/libheaptrack.cpp and
 * src/interpret/heaptrack_interpret.cpp).  A line is a letter and numbers in
 * hex:
 *
 *	v VERSION FORMAT	first
 *	x [LEN] PATH, X CMD	program, command line
 *	m [LEN] NAME ADDR (VADDR MEMSZ)*	an object; "-" forgets all
 *	t IP PARENT		the next node of the tree of stacks, from 1
 *	c MS, R PAGES		time, memory in use
 *	+ SIZE NODE PTR, - PTR	raw
 *
 * interpreted has, instead of addresses:
 *
 *	s [LEN] TEXT		the next string, from 1
 *	i IP MODULE (FUNCTION FILE LINE)*	the next frame; t counts these
 *	a SIZE NODE		the next kind of block, from 0
 *	+ A, - A
 *
 * Addresses of calls are one less than return addresses; ours are those.
 */
#include "replay/trace_import_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct node {
	vaddr addr;
	uint32_t parent;
	uint32_t stack;		/* of ours; 0: not used yet */
};

struct text {
	const char *text;	/* in the file */
	size_t n;
};

/* A kind of block of an interpreted file, and those of it that live. */
struct kind {
	uint64_t size;
	uint64_t node;
	uint64_t *live;		/* owned; numbers of ours */
	size_t n, cap;
};

/* Of the command line, with the newlines in it. */
enum { COMMAND_MAX = 128 << 10 };

struct heaptrack {
	struct import *im;
	bool raw;
	bool has_command;
	unsigned format;
	struct node *nodes;	/* owned; [0] is the root */
	size_t n_nodes, cap_nodes;
	struct text *strings;	/* owned */
	size_t n_strings, cap_strings;
	vaddr *frames;		/* owned */
	size_t n_frames, cap_frames;
	struct kind *kinds;	/* owned */
	size_t n_kinds, cap_kinds;
	uint64_t next;		/* number of the next block */
	uint64_t set;		/* of modules */
	struct text program;
	uint64_t page_size;
};

/* From format 3 on texts have their length in front. */
static bool get_text(struct heaptrack *h, struct line *l, struct text *ret)
{
	uint64_t n;

	if (h->format < 3)
		return line_word(l, &ret->text, &ret->n);
	if (!line_hex(l, &n) || l->p == l->end ||
	    n > (uint64_t)(l->end - l->p - 1))
		return false;
	ret->text = l->p + 1;
	ret->n = n;
	l->p += 1 + n;
	return true;
}

static bool read_module(struct heaptrack *h, struct line *l)
{
	enum { MAX = 64 };
	struct trace_segment segments[MAX];
	struct trace_module m = { .segments = segments };
	struct text name;

	if (!get_text(h, l, &name))
		return false;
	if (name.n == 1 && name.text[0] == '-') {
		h->set++;
		return true;
	}
	if (!line_hex(l, &m.bias))
		return false;
	if (name.n == 1 && name.text[0] == 'x')
		name = h->program;
	while (m.n_segments < MAX &&
	       line_hex(l, &segments[m.n_segments].vaddr) &&
	       line_hex(l, &segments[m.n_segments].memsz))
		segments[m.n_segments++].offset = 0;
	m.tick = h->im->tick;
	m.set = h->set;
	m.path = (struct trace_text){ name.text, name.n };
	m.build_id = (struct trace_text){ "", 0 };
	trace_writer_module(h->im->out, &m);
	return true;
}

static bool read_node(struct heaptrack *h, struct line *l)
{
	uint64_t ip, parent;
	vaddr addr;

	if (!line_hex(l, &ip) || !line_hex(l, &parent) ||
	    parent >= h->n_nodes || h->n_nodes == UINT32_MAX)
		return false;
	addr = ip + 1;
	if (!h->raw) {
		if (!ip || ip > h->n_frames)
			return false;
		addr = h->frames[ip - 1];
	}
	MEM_PUSH(h->nodes, h->n_nodes, h->cap_nodes) =
		(struct node){ addr, (uint32_t)parent, 0 };
	return true;
}

/* Our number of a node's stack. */
static uint32_t stack_of(struct heaptrack *h, uint64_t node)
{
	vaddr frames[TRACE_DEPTH_MAX];
	size_t n = 0;

	if (!node || node >= h->n_nodes)
		return 0;
	if (h->nodes[node].stack)
		return h->nodes[node].stack;
	/* A parent is older: this ends. */
	for (uint64_t i = node; i && n < TRACE_DEPTH_MAX;
	     i = h->nodes[i].parent)
		frames[n++] = h->nodes[i].addr;
	h->nodes[node].stack = trace_writer_stack(h->im->out, frames, n);
	return h->nodes[node].stack;
}

static bool read_string(struct heaptrack *h, struct line *l)
{
	struct text text;

	if (h->format >= 3) {
		if (!get_text(h, l, &text))
			return false;
	} else {
		text.text = l->p + (l->p < l->end);
		text.n = (size_t)(l->end - text.text);
	}
	MEM_PUSH(h->strings, h->n_strings, h->cap_strings) = text;
	return true;
}

static struct trace_text string_at(const struct heaptrack *h, uint64_t i)
{
	if (!i || i > h->n_strings)
		return (struct trace_text){ "", 0 };
	return (struct trace_text){ h->strings[i - 1].text,
				    h->strings[i - 1].n };
}

/* Only the function itself; what was inlined into it is not kept. */
static bool read_frame(struct heaptrack *h, struct line *l)
{
	uint64_t ip, module, function = 0, file = 0;
	struct trace_name name = { .line = 0 };

	if (!line_hex(l, &ip) || !line_hex(l, &module))
		return false;
	if (line_hex(l, &function) && line_hex(l, &file) &&
	    !line_hex(l, &name.line))
		name.line = 0;
	name.addr = ip + 1;
	name.function = string_at(h, function);
	name.file = string_at(h, file);
	if (name.function.len)
		trace_writer_name(h->im->out, &name);
	MEM_PUSH(h->frames, h->n_frames, h->cap_frames) = ip + 1;
	return true;
}

static bool read_kind(struct heaptrack *h, struct line *l)
{
	struct kind k = { .size = 0 };

	if (!line_hex(l, &k.size) || !line_hex(l, &k.node))
		return false;
	MEM_PUSH(h->kinds, h->n_kinds, h->cap_kinds) = k;
	return true;
}

static bool read_alloc(struct heaptrack *h, struct line *l)
{
	uint64_t size, node, addr;
	struct kind *k;

	if (!line_hex(l, &size))
		return false;
	if (h->raw) {
		if (!line_hex(l, &node) || !line_hex(l, &addr))
			return false;
		import_event(h->im, TRACE_MALLOC, addr, size,
			     stack_of(h, node));
		return true;
	}
	if (size >= h->n_kinds)
		return false;
	k = &h->kinds[size];
	addr = ++h->next;
	MEM_PUSH(k->live, k->n, k->cap) = addr;
	import_event(h->im, TRACE_MALLOC, addr, k->size, stack_of(h, k->node));
	return true;
}

static bool read_free(struct heaptrack *h, struct line *l)
{
	uint64_t addr;
	struct kind *k;

	if (!line_hex(l, &addr))
		return false;
	if (!h->raw) {
		if (addr >= h->n_kinds)
			return false;
		k = &h->kinds[addr];
		if (!k->n)
			return false;
		addr = k->live[--k->n];
	}
	import_event(h->im, TRACE_FREE, addr, 0, 0);
	return true;
}

static bool read_rss(struct heaptrack *h, struct line *l)
{
	struct trace_row row = { .tick = h->im->tick };
	uint64_t pages;

	if (!line_hex(l, &pages) ||
	    !mul_ok(pages, h->page_size, &row.value[0]))
		return false;
	trace_writer_row(h->im->out, TRACE_LOG_RSS, &row, 2);
	return true;
}

static bool read_time(struct heaptrack *h, struct line *l)
{
	uint64_t ms, ns;

	if (!line_hex(l, &ms) || !mul_ok(ms, 1000000, &ns))
		return false;
	import_time(h->im, ns);
	return true;
}

static bool read_program(struct heaptrack *h, struct line *l)
{
	if (!get_text(h, l, &h->program))
		return false;
	trace_writer_meta(h->im->out, "program", h->program.text,
			  h->program.n);
	return true;
}

/* An argument may hold newlines: up to the line that is always the next. */
static void read_command(struct heaptrack *h, struct line *l)
{
	size_t left = (size_t)(h->im->end - l->end);
	const char *next = memmem(l->end, min_u64(left, COMMAND_MAX), "\nI ",
				  3);
	struct line more;

	while (!h->has_command && next && h->im->p <= next &&
	       import_line(h->im, &more))
		l->end = more.end;
	h->has_command = true;
	l->p += l->p < l->end;
	trace_writer_meta(h->im->out, "arguments", l->p,
			  (size_t)(l->end - l->p));
}

static bool read_line(struct heaptrack *h, char letter, struct line *l)
{
	switch (letter) {
	case '+':
		return read_alloc(h, l);
	case '-':
		return read_free(h, l);
	case 't':
		return read_node(h, l);
	case 'a':
		return read_kind(h, l);
	case 'i':
		return read_frame(h, l);
	case 's':
		return read_string(h, l);
	case 'm':
		return read_module(h, l);
	case 'c':
		return read_time(h, l);
	case 'R':
		return read_rss(h, l);
	case 'x':
		return read_program(h, l);
	case 'X':
		read_command(h, l);
		return true;
	case 'I':
		return line_hex(l, &h->page_size);
	case 'A': case 'S': case '#': case 'v':
		return true;
	}
	return false;
}

/* Only raw files have objects; they come before the first event. */
static bool looks_raw(const struct import *im)
{
	size_t n = min_u64((uint64_t)(im->end - im->p), 1 << 16);

	return memmem(im->p, n, "\nm ", 3) != NULL;
}

void import_heaptrack(struct import *im)
{
	struct heaptrack h = { .im = im, .raw = looks_raw(im),
			       .page_size = 4096 };
	uint64_t version, format = 1;
	struct line l;

	MEM_PUSH(h.nodes, h.n_nodes, h.cap_nodes) = (struct node){ 0, 0, 0 };
	if (import_line(im, &l)) {
		l.p += 2;
		if (!line_hex(&l, &version) || !line_hex(&l, &format))
			import_bad(im);
		h.format = (unsigned)min_u64(format, 99);
	}
	while (import_line(im, &l)) {
		char letter;

		if (l.p == l.end)
			continue;
		letter = *l.p++;
		if (!read_line(&h, letter, &l))
			import_bad(im);
	}
	for (size_t i = 0; i < h.n_kinds; i++)
		free(h.kinds[i].live);
	free(h.nodes);
	free(h.strings);
	free(h.frames);
	free(h.kinds);
}
