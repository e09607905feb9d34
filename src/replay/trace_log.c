/* SPDX-License-Identifier: MIT */
/*
 * Chunks that are read when a trace is opened: log, stacks, counts.  Stacks
 * become a tree, whose size is bounded by that of the file whatever a record
 * claims to share with the one before.
 */
#include "replay/trace_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* A text of a payload, copied so that it is zero-ended. */
static struct trace_text get_text(struct trace *t, struct bytes *b)
{
	uint64_t n = bytes_varint(b);
	struct trace_text text = { "", 0 };
	char *copy;

	if (n > (uint64_t)(b->end - b->p)) {
		b->bad = true;
		b->p = b->end;
	} else if (n) {
		copy = mem_alloc(n + 1);
		memcpy(copy, b->p, n);
		copy[n] = '\0';
		b->p += n;
		MEM_PUSH(t->texts, t->n_texts, t->cap_texts) = copy;
		text = (struct trace_text){ copy, n };
	}
	return text;
}

static void load_meta(struct trace *t, struct bytes *b)
{
	struct trace_meta m = { .key = get_text(t, b) };

	m.value = get_text(t, b);
	if (!b->bad)
		MEM_PUSH(t->meta, t->info.n_meta, t->cap_meta) = m;
}

static void load_module(struct trace *t, struct bytes *b)
{
	struct trace_module m = { .tick = bytes_varint(b) };
	struct trace_segment *segments;
	uint64_t n;

	m.set = bytes_varint(b);
	m.bias = bytes_varint(b);
	m.build_id = get_text(t, b);
	m.path = get_text(t, b);
	n = bytes_varint(b);
	/* Each takes three bytes at least. */
	if (b->bad || n > (uint64_t)(b->end - b->p) / 3) {
		b->bad = true;
		return;
	}
	segments = mem_alloc((n ? n : 1) * sizeof(*segments));
	MEM_PUSH(t->texts, t->n_texts, t->cap_texts) = (char *)segments;
	for (uint64_t i = 0; i < n; i++) {
		segments[i].vaddr = bytes_varint(b);
		segments[i].memsz = bytes_varint(b);
		segments[i].offset = bytes_varint(b);
	}
	m.segments = segments;
	m.n_segments = n;
	if (!b->bad)
		MEM_PUSH(t->modules, t->info.n_modules, t->cap_modules) = m;
}

static void load_mark(struct trace *t, struct bytes *b)
{
	struct trace_mark m = { .tick = bytes_varint(b) };

	m.tid = bytes_varint(b);
	m.name = get_text(t, b);
	m.value = bytes_varint(b);
	if (!b->bad)
		MEM_PUSH(t->marks, t->info.n_marks, t->cap_marks) = m;
}

static void load_name(struct trace *t, struct bytes *b)
{
	struct trace_name m = { .addr = bytes_varint(b) };

	m.function = get_text(t, b);
	m.file = get_text(t, b);
	m.line = bytes_varint(b);
	if (!b->bad)
		MEM_PUSH(t->names, t->info.n_names, t->cap_names) = m;
}

static void load_thread(struct trace *t, struct bytes *b)
{
	uint64_t index = bytes_varint(b);
	struct trace_thread m = { .tid = bytes_varint(b) };

	m.tick = bytes_varint(b);
	m.name = get_text(t, b);
	if (b->p < b->end)
		m.ended = bytes_varint(b);
	/* Packed chunks use these numbers: they come in order. */
	if (b->bad || index != t->info.n_threads) {
		b->bad = true;
		return;
	}
	MEM_PUSH(t->threads, t->info.n_threads, t->cap_threads) = m;
}

static struct trace_row get_row(struct bytes *b, unsigned n)
{
	struct trace_row row = { .tick = bytes_varint(b) };

	for (unsigned i = 0; i < n; i++)
		row.value[i] = bytes_varint(b);
	return row;
}

#define LOAD_ROW(t, b, list, values) do { \
	struct trace_row row_ = get_row(b, values); \
	if (!(b)->bad) \
		MEM_PUSH((t)->list, (t)->info.list.n, (t)->cap_##list) = \
			row_; \
} while (0)

static void load_record(struct trace *t, unsigned tag, struct bytes *b)
{
	switch (tag) {
	case TRACE_LOG_META:
		load_meta(t, b);
		break;
	case TRACE_LOG_CLOCK:
		LOAD_ROW(t, b, clocks, 2);
		break;
	case TRACE_LOG_MODULE:
		load_module(t, b);
		break;
	case TRACE_LOG_RSS:
		LOAD_ROW(t, b, rss, 2);
		break;
	case TRACE_LOG_MARK:
		load_mark(t, b);
		break;
	case TRACE_LOG_GC:
		LOAD_ROW(t, b, gcs, 4);
		break;
	case TRACE_LOG_LOST:
		LOAD_ROW(t, b, lost, 2);
		break;
	case TRACE_LOG_END:
		LOAD_ROW(t, b, ends, 2);
		break;
	case TRACE_LOG_THREAD:
		load_thread(t, b);
		break;
	case TRACE_LOG_NAME:
		load_name(t, b);
		break;
	default:
		t->damage.unknown++;
	}
}

void trace_load_log(struct trace *t, const struct chunk_ref *c)
{
	struct bytes b, record;
	uint8_t *owned = NULL;

	if (!trace_payload(t, c, &b, &owned))
		return;
	while (b.p < b.end && *b.p) {
		unsigned tag = *b.p++;
		uint64_t n = bytes_varint(&b);

		if (b.bad || n > (uint64_t)(b.end - b.p)) {
			b.bad = true;
			break;
		}
		record = (struct bytes){ b.p, b.p + n, false };
		load_record(t, tag, &record);
		if (record.bad) {
			t->damage.records++;
			trace_complain(t, "a record of the log, of kind %u, "
				       "does not decode", tag);
		}
		b.p += n;
	}
	if (b.bad) {
		t->damage.records++;
		trace_complain(t, "the log ends inside a record");
	}
	free(owned);
}

/* One record; path has the nodes of the one before, outermost first. */
static bool load_stack(struct trace *t, struct bytes *b, uint32_t *path,
		       unsigned *n_path)
{
	uint64_t shared = bytes_varint(b);
	uint64_t fresh = bytes_varint(b);
	uint32_t parent;
	vaddr addr;

	if (b->bad || shared > *n_path || fresh > TRACE_DEPTH_MAX - shared ||
	    t->n_nodes > UINT32_MAX - TRACE_DEPTH_MAX)
		return false;
	parent = shared ? path[shared - 1] : 0;
	addr = shared ? t->nodes[parent].addr : 0;
	for (uint64_t i = 0; i < fresh; i++) {
		addr += (uint64_t)unzigzag(bytes_varint(b));
		if (b->bad)
			return false;
		MEM_PUSH(t->nodes, t->n_nodes, t->cap_nodes) =
			(struct stack_node){ addr, parent };
		parent = (uint32_t)(t->n_nodes - 1);
		path[shared + i] = parent;
	}
	*n_path = (unsigned)(shared + fresh);
	MEM_PUSH(t->leaves, t->n_leaves, t->cap_leaves) = parent;
	return true;
}

/* Numbers that no chunk has: their stacks are unknown. */
static bool skip_to(struct trace *t, uint64_t number)
{
	/* A record is three bytes: more cannot have been in this file. */
	if (number < t->n_leaves || number > t->size / 3 + 1)
		return false;
	while (t->n_leaves < number)
		MEM_PUSH(t->leaves, t->n_leaves, t->cap_leaves) = 0;
	return true;
}

void trace_load_stacks(struct trace *t, const struct chunk_ref *c)
{
	uint32_t path[TRACE_DEPTH_MAX];
	unsigned n_path = 0;
	uint8_t *owned = NULL;
	struct bytes b;
	bool ok;

	if (!t->n_nodes)
		MEM_PUSH(t->nodes, t->n_nodes, t->cap_nodes) =
			(struct stack_node){ 0, 0 };
	/* Number 0 is no stack. */
	if (!t->n_leaves)
		MEM_PUSH(t->leaves, t->n_leaves, t->cap_leaves) = 0;
	if (!trace_payload(t, c, &b, &owned))
		return;
	ok = skip_to(t, c->tick);
	while (ok && b.p < b.end && *b.p) {
		ok = *b.p++ == TRACE_STACK_TAG &&
		     load_stack(t, &b, path, &n_path);
	}
	if (!ok) {
		t->damage.records++;
		trace_complain(t, "stack %zu does not decode", t->n_leaves);
	}
	free(owned);
}

/* As long as the chunk is; what it does not have, is 0. */
void trace_load_counts(struct trace *t, const struct chunk_ref *c)
{
	struct trace_counts *sum = &t->info.counts;
	struct trace_counts one = { .frees = 0 };
	uint8_t *owned = NULL;
	struct bytes b;

	if (!trace_payload(t, c, &b, &owned))
		return;
	memcpy(&one, b.p, min_u64(sizeof(one), (uint64_t)(b.end - b.p)));
	free(owned);
	sum->frees += one.frees;
	for (unsigned i = 0; i < TRACE_CLASSES; i++) {
		sum->classes[i].blocks += one.classes[i].blocks;
		sum->classes[i].bytes += one.classes[i].bytes;
	}
	t->info.counted = true;
}

uint64_t trace_counted(const struct trace_counts *c, uint64_t *ret_bytes)
{
	uint64_t blocks = 0;

	*ret_bytes = 0;
	for (unsigned i = 0; i < TRACE_CLASSES; i++) {
		blocks += c->classes[i].blocks;
		*ret_bytes += c->classes[i].bytes;
	}
	return blocks;
}

/* The index of a thread, which is made when it is first seen. */
uint32_t trace_thread_of(struct trace *t, uint32_t stream, uint64_t tid,
			 uint64_t tick)
{
	uint64_t key = ((uint64_t)stream << 32 | (uint32_t)tid) + 1;
	uint32_t *number = map_at(&t->thread_numbers, key);

	if (!*number) {
		MEM_PUSH(t->threads, t->info.n_threads, t->cap_threads) =
			(struct trace_thread){
				.tid = tid, .tick = tick, .name = { "", 0 },
			};
		t->info.threads = t->threads;
		*number = (uint32_t)t->info.n_threads;
	}
	return *number - 1;
}

uint64_t trace_log_end(const struct trace *t, const struct chunk_ref *c)
{
	const uint8_t *start = t->map + c->offset;
	struct bytes b = { start, start + c->stored, false };
	const uint8_t *last = start;

	while (b.p < b.end && *b.p) {
		uint64_t n;

		b.p++;
		n = bytes_varint(&b);
		if (b.bad || n > (uint64_t)(b.end - b.p))
			break;
		b.p += n;
		last = b.p;
	}
	return (uint64_t)(last - start);
}

uint64_t trace_stacks_end(const struct trace *t, const struct chunk_ref *c)
{
	const uint8_t *start = t->map + c->offset;
	struct bytes b = { start, start + c->stored, false };
	const uint8_t *last = start;

	while (b.p < b.end && *b.p == TRACE_STACK_TAG) {
		uint64_t n;

		b.p++;
		bytes_varint(&b);
		n = bytes_varint(&b);
		for (uint64_t i = 0; i < n && !b.bad; i++)
			bytes_varint(&b);
		if (b.bad)
			break;
		last = b.p;
	}
	return (uint64_t)(last - start);
}
