/* SPDX-License-Identifier: MIT */
#include "replay/trace_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/mem.h"
#include "base/str.h"
#include "replay/objects.h"
#include "replay/trace_file.h"

enum {
	CHUNK_EVENTS = 65536,
	CHUNK_BYTES = 256 << 10,	/* of the log and of stacks */
	LEVEL = 3,
};

struct trace_writer {
	int fd;
	char *path, *temporary;	/* owned */
	struct trace_file_header head;
	int error;		/* errno of the first failure; 0 none */
	uint64_t end;

	struct str log, stacks;
	uint64_t first_stack;	/* number of the first one in stacks */
	uint32_t n_stacks;
	vaddr last_stack[TRACE_DEPTH_MAX];	/* outermost first */
	size_t last_n;
	uint64_t n_threads;
	uint32_t sequence[TRACE_TYPES];	/* by type */

	struct str columns[TRACE_COLUMNS];
	uint32_t n;		/* events in them */
	unsigned shift;
	struct objects objects;
	uint64_t next;		/* number of the next object */
	uint64_t first;		/* number when the chunk began */
	uint64_t tick;		/* of the chunk's start */
	uint64_t time;		/* of the last event, in units */
	uint64_t map_addr;
	uint32_t stack, thread;
	uint64_t sizes[TRACE_SIZES_KEPT];
	struct str plain;
	char *packed;		/* owned */
	size_t packed_cap;
};

static void put(struct str *s, uint64_t value)
{
	char bytes[10];
	size_t n = 0;

	while (value >= 0x80) {
		bytes[n++] = (char)(value | 0x80);
		value >>= 7;
	}
	bytes[n++] = (char)value;
	str_add(s, bytes, n);
}

static uint64_t zigzag(uint64_t value)
{
	return value << 1 ^ -(value >> 63);
}

static void put_text(struct str *s, const void *text, size_t n)
{
	put(s, n);
	if (n)
		str_add(s, text, n);
}

static void write_at(struct trace_writer *w, const void *data, size_t n,
		     uint64_t at)
{
	const char *p = data;

	while (n && !w->error) {
		ssize_t done = pwrite(w->fd, p, n, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			w->error = done ? errno : EIO;
			return;
		}
		p += done;
		n -= (size_t)done;
		at += (uint64_t)done;
	}
}

static void write_chunk(struct trace_writer *w, unsigned type,
			const struct str *payload, uint64_t tick,
			uint32_t records)
{
	struct trace_chunk h = {
		.magic = TRACE_CHUNK_MAGIC, .type = (uint8_t)type,
		.codec = TRACE_ZSTD, .length = (uint32_t)payload->len,
		.flags = type == TRACE_COUNTS ? TRACE_MAY_SKIP : 0,
		.sequence = w->sequence[type]++, .tick = tick,
		.records = records,
	};
	size_t bound = ZSTD_compressBound(payload->len);
	const void *data;
	size_t n;

	if (bound > w->packed_cap) {
		w->packed = mem_realloc(w->packed, bound);
		w->packed_cap = bound;
	}
	n = ZSTD_compress(w->packed, bound, payload->text, payload->len,
			  LEVEL);
	data = w->packed;
	if (ZSTD_isError(n) || n >= payload->len) {
		h.codec = TRACE_PLAIN;
		data = payload->text;
		n = payload->len;
	}
	h.stored = (uint32_t)n;
	h.crc = trace_crc32c(data, n);
	h.header_crc = trace_crc32c(&h, offsetof(struct trace_chunk,
						 header_crc));
	write_at(w, &h, sizeof(h), w->end);
	write_at(w, data, n, w->end + sizeof(h));
	w->end = round_up(w->end + sizeof(h) + n, TRACE_CHUNK_ALIGN);
}

static void flush_log(struct trace_writer *w)
{
	if (w->log.len)
		write_chunk(w, TRACE_LOG, &w->log, 0, 0);
	str_clear(&w->log);
}

static void flush_stacks(struct trace_writer *w)
{
	if (w->stacks.len)
		write_chunk(w, TRACE_STACKS, &w->stacks, w->first_stack, 0);
	str_clear(&w->stacks);
	w->last_n = 0;
}

static void flush_events(struct trace_writer *w)
{
	if (!w->n)
		return;
	str_clear(&w->plain);
	put(&w->plain, w->shift);
	put(&w->plain, w->first);
	put(&w->plain, w->n);
	for (unsigned i = 0; i < TRACE_COLUMNS; i++) {
		put_text(&w->plain, w->columns[i].text, w->columns[i].len);
		str_clear(&w->columns[i]);
	}
	write_chunk(w, TRACE_PACKED, &w->plain, w->tick, w->n);
	w->n = 0;
}

/* Is there a file that is not ours to replace? */
static bool check_target(const char *path, bool force, struct err *err)
{
	char magic[TRACE_MAGIC_SIZE];
	struct stat st;
	ssize_t n;
	int fd;

	if (stat(path, &st))
		return errno == ENOENT || err_system(err, "%s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_USAGE, "%s: not a file", path);
	if (force || !st.st_size)
		return true;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, magic, sizeof(magic));
	if (fd >= 0)
		close(fd);
	if (n == TRACE_MAGIC_SIZE && !memcmp(magic, TRACE_MAGIC, sizeof(magic)))
		return true;
	err_set(err, ERR_USAGE, "%s: exists and is not a trace", path);
	return err_hint(err, "Give another name, or --force to replace it.");
}

static void fill_head(struct trace_file_header *h,
		      const struct trace_head *head)
{
	memcpy(h->magic, TRACE_MAGIC, TRACE_MAGIC_SIZE);
	h->major = TRACE_MAJOR;
	h->minor = TRACE_MINOR;
	h->header_size = TRACE_HEADER_SIZE;
	h->flags = (head->flags & TRACE_SAMPLED) | TRACE_FINISHED |
		   TRACE_OBJECTS;
	h->pid = head->pid;
	h->page_size = head->page_size;
	h->start_ns = head->start_ns;
	h->ticks_per_s = head->ticks_per_s ? head->ticks_per_s : 1000000000;
	h->pointer_size = 8;
	h->machine = (uint16_t)head->machine;
	h->first_chunk = TRACE_HEADER_SIZE;
	h->crc = trace_crc32c(h, offsetof(struct trace_file_header, crc));
}

struct trace_writer *trace_writer_fd(int fd, const char *name,
				     const struct trace_head *head)
{
	struct trace_writer *w = mem_zalloc(sizeof(*w));

	str_init(&w->log);
	str_init(&w->stacks);
	str_init(&w->plain);
	for (unsigned i = 0; i < TRACE_COLUMNS; i++)
		str_init(&w->columns[i]);
	w->path = mem_strdup(name);
	w->fd = fd;
	fill_head(&w->head, head);
	write_at(w, &w->head, sizeof(w->head), 0);
	w->end = TRACE_HEADER_SIZE;
	/* Units of at most 128 ns. */
	while (w->shift < 31 && ((uint64_t)2 << w->shift) * 1000 / 128 <=
				w->head.ticks_per_s / 1000000)
		w->shift++;
	w->next = 1;
	objects_init(&w->objects);
	return w;
}

struct trace_writer *trace_writer_new(const char *path, bool force,
				      const struct trace_head *head,
				      struct err *err)
{
	struct trace_writer *w;
	char *temporary;
	int fd;

	if (!check_target(path, force, err))
		return NULL;
	temporary = mem_printf("%s.XXXXXX", path);
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0) {
		err_system(err, "%s", path);
		free(temporary);
		return NULL;
	}
	w = trace_writer_fd(fd, path, head);
	w->temporary = temporary;
	return w;
}

static void writer_free(struct trace_writer *w)
{
	if (!w)
		return;
	if (w->fd >= 0)
		close(w->fd);
	if (w->temporary)
		unlink(w->temporary);
	for (unsigned i = 0; i < TRACE_COLUMNS; i++)
		str_fini(&w->columns[i]);
	str_fini(&w->log);
	str_fini(&w->stacks);
	str_fini(&w->plain);
	objects_fini(&w->objects);
	free(w->packed);
	free(w->temporary);
	free(w->path);
	free(w);
}

bool trace_writer_close(struct trace_writer *w, struct err *err)
{
	bool ok;

	flush_events(w);
	flush_stacks(w);
	flush_log(w);
	if (!w->error && close(w->fd))
		w->error = errno;
	w->fd = w->error ? w->fd : -1;
	if (!w->error && w->temporary && rename(w->temporary, w->path))
		w->error = errno;
	ok = !w->error;
	if (ok) {
		free(w->temporary);
		w->temporary = NULL;
	} else {
		errno = w->error;
		err_system(err, "%s", w->path);
	}
	writer_free(w);
	return ok;
}

uint32_t trace_writer_stack(struct trace_writer *w, const vaddr *frames,
			    size_t n)
{
	size_t shared = 0;
	vaddr last;

	n = min_u64(n, TRACE_DEPTH_MAX);
	if (w->stacks.len > CHUNK_BYTES)
		flush_stacks(w);
	if (!w->stacks.len)
		w->first_stack = w->n_stacks + 1;
	while (shared < n && shared < w->last_n &&
	       w->last_stack[shared] == frames[n - 1 - shared])
		shared++;
	str_addc(&w->stacks, TRACE_STACK_TAG);
	put(&w->stacks, shared);
	put(&w->stacks, n - shared);
	last = shared ? w->last_stack[shared - 1] : 0;
	for (size_t i = shared; i < n; i++) {
		put(&w->stacks, zigzag(frames[n - 1 - i] - last));
		last = w->last_stack[i] = frames[n - 1 - i];
	}
	w->last_n = n;
	return ++w->n_stacks;
}

static void add_record(struct trace_writer *w, unsigned tag,
		       struct str *payload)
{
	if (w->log.len > CHUNK_BYTES)
		flush_log(w);
	str_addc(&w->log, (char)tag);
	put_text(&w->log, payload->text, payload->len);
	str_fini(payload);
}

void trace_writer_meta(struct trace_writer *w, const char *key,
		       const void *value, size_t n)
{
	struct str s;

	str_init(&s);
	put_text(&s, key, strlen(key));
	put_text(&s, value, n);
	add_record(w, TRACE_LOG_META, &s);
}

void trace_writer_row(struct trace_writer *w, enum trace_log tag,
		      const struct trace_row *row, unsigned n_values)
{
	struct str s;

	str_init(&s);
	put(&s, row->tick);
	for (unsigned i = 0; i < n_values; i++)
		put(&s, row->value[i]);
	add_record(w, tag, &s);
}

void trace_writer_module(struct trace_writer *w,
			 const struct trace_module *m)
{
	struct str s;

	str_init(&s);
	put(&s, m->tick);
	put(&s, m->set);
	put(&s, m->bias);
	put_text(&s, m->build_id.text, m->build_id.len);
	put_text(&s, m->path.text, m->path.len);
	put(&s, m->n_segments);
	for (size_t i = 0; i < m->n_segments; i++) {
		put(&s, m->segments[i].vaddr);
		put(&s, m->segments[i].memsz);
		put(&s, m->segments[i].offset);
	}
	add_record(w, TRACE_LOG_MODULE, &s);
}

void trace_writer_mark(struct trace_writer *w, const struct trace_mark *m)
{
	struct str s;

	str_init(&s);
	put(&s, m->tick);
	put(&s, m->tid);
	put_text(&s, m->name.text, m->name.len);
	put(&s, m->value);
	add_record(w, TRACE_LOG_MARK, &s);
}

void trace_writer_name(struct trace_writer *w, const struct trace_name *n)
{
	struct str s;

	str_init(&s);
	put(&s, n->addr);
	put_text(&s, n->function.text, n->function.len);
	put_text(&s, n->file.text, n->file.len);
	put(&s, n->line);
	add_record(w, TRACE_LOG_NAME, &s);
}

void trace_writer_thread(struct trace_writer *w,
			 const struct trace_thread *t)
{
	struct str s;

	str_init(&s);
	put(&s, w->n_threads++);
	put(&s, t->tid);
	put(&s, t->tick);
	put_text(&s, t->name.text, t->name.len);
	put(&s, t->ended);
	add_record(w, TRACE_LOG_THREAD, &s);
}

void trace_writer_counts(struct trace_writer *w, const struct trace_counts *c)
{
	struct str s;

	str_init(&s);
	str_add(&s, c, sizeof(*c));
	write_chunk(w, TRACE_COUNTS, &s, 0, 0);
	str_fini(&s);
}

static void begin_chunk(struct trace_writer *w, uint64_t tick)
{
	w->tick = tick >> w->shift << w->shift;
	w->time = tick >> w->shift;
	w->first = w->next;
	w->map_addr = 0;
	w->stack = 0;
	w->thread = 0;
	memset(w->sizes, 0, sizeof(w->sizes));
}

/* The block's number, or that of the next: what OBJECTS has. */
static unsigned put_object(struct trace_writer *w,
			   const struct trace_event *e)
{
	struct str *s = &w->columns[TRACE_OBJECT_COLUMN];
	unsigned kind = e->kind;
	uint64_t number;

	if (trace_is_map(kind)) {
		put(s, zigzag(e->addr - w->map_addr));
		w->map_addr = e->addr;
	} else if (kind == TRACE_REALLOC_SAME) {
		number = objects_find(&w->objects, e->addr);
		if (number) {
			put(s, w->next - number);
			return kind;
		}
		/* Older than the trace: a block comes, none goes. */
		kind = TRACE_REALLOC_NEW;
		objects_put(&w->objects, e->addr, w->next++);
	} else if (trace_is_free(kind)) {
		number = objects_take(&w->objects, e->addr);
		put(s, number ? w->next - number : 0);
	} else {
		objects_put(&w->objects, e->addr, w->next++);
	}
	return kind;
}

static unsigned put_size(struct trace_writer *w, const struct trace_event *e)
{
	struct str *s = &w->columns[TRACE_SIZES];
	uint64_t *last = &w->sizes[e->stack % TRACE_SIZES_KEPT];
	bool same = *last == e->size;

	if (!same)
		put(s, e->size);
	*last = e->size;
	if (e->kind == TRACE_ALIGNED)
		put(s, e->align);
	if (e->kind == TRACE_SAMPLE) {
		put(s, e->gap);
		put(s, e->rate);
	} else if (e->kind == TRACE_MAP) {
		put(s, e->rate);
	}
	return same ? TRACE_SAME_SIZE : 0;
}

void trace_writer_event(struct trace_writer *w, const struct trace_event *e)
{
	uint64_t time = e->tick >> w->shift;
	unsigned tag;

	if (!w->n)
		begin_chunk(w, e->tick);
	time = max_u64(time, w->time);
	put(&w->columns[TRACE_TIMES], time - w->time);
	w->time = time;
	tag = put_object(w, e);
	if (1u << tag & TRACE_KINDS_STACKED) {
		if (e->stack == w->stack)
			tag |= TRACE_SAME_STACK;
		else
			put(&w->columns[TRACE_STACK_COLUMN],
			    zigzag((uint64_t)e->stack - w->stack));
		w->stack = e->stack;
	}
	if (1u << (tag & TRACE_KIND_MASK) & TRACE_KINDS_SIZED)
		tag |= put_size(w, e);
	if (e->thread == w->thread)
		tag |= TRACE_SAME_THREAD;
	else
		put(&w->columns[TRACE_THREAD_COLUMN], e->thread);
	w->thread = e->thread;
	str_addc(&w->columns[TRACE_KINDS], (char)tag);
	if (++w->n == CHUNK_EVENTS)
		flush_events(w);
}
