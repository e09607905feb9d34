/* SPDX-License-Identifier: MIT */
#include "replay/trace_pack.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "replay/trace_file.h"
#include "replay/trace_write.h"

static void copy_rows(struct trace_writer *w, enum trace_log tag,
		      const struct trace_rows *rows, unsigned n_values)
{
	for (size_t i = 0; i < rows->n; i++)
		trace_writer_row(w, tag, &rows->rows[i], n_values);
}

static void copy_log(const struct trace_info *info, struct trace_writer *w)
{
	for (size_t i = 0; i < info->n_meta; i++)
		trace_writer_meta(w, info->meta[i].key.text,
				  info->meta[i].value.text,
				  info->meta[i].value.len);
	for (size_t i = 0; i < info->n_modules; i++)
		trace_writer_module(w, &info->modules[i]);
	for (size_t i = 0; i < info->n_marks; i++)
		trace_writer_mark(w, &info->marks[i]);
	for (size_t i = 0; i < info->n_names; i++)
		trace_writer_name(w, &info->names[i]);
	copy_rows(w, TRACE_LOG_CLOCK, &info->clocks, 2);
	copy_rows(w, TRACE_LOG_RSS, &info->rss, 2);
	copy_rows(w, TRACE_LOG_GC, &info->gcs, 4);
	copy_rows(w, TRACE_LOG_LOST, &info->lost, 2);
	copy_rows(w, TRACE_LOG_END, &info->ends, 2);
}

/* What only records of streams said. */
static void copy_lost(struct trace *t, struct trace_writer *w)
{
	uint64_t in_streams = t->damage.lost - t->at_open.lost;
	struct trace_row row = { t->info.first_tick,
				 { in_streams, TRACE_LOST_NESTED, 0, 0 } };

	if (in_streams)
		trace_writer_row(w, TRACE_LOG_LOST, &row, 2);
}

bool trace_pack(struct trace *t, const char *path, bool force,
		struct progress *p, uint64_t *ret_events, struct err *err)
{
	const struct trace_info *info = &t->info;
	struct trace_head head = {
		.flags = info->flags, .pid = info->pid,
		.page_size = info->page_size, .start_ns = info->start_ns,
		.ticks_per_s = (uint64_t)info->ticks_per_s,
		.machine = info->machine,
	};
	struct trace_writer *w = trace_writer_new(path, force, &head, err);
	const struct trace_event *e;
	uint64_t events = 0;
	size_t n;

	if (!w)
		return false;
	progress_phase(p, "packing the trace");
	copy_log(info, w);
	for (uint32_t i = 1; i <= info->n_stacks; i++) {
		const vaddr *frames = trace_stack(t, i, &n);

		trace_writer_stack(w, frames, n);
	}
	trace_rewind(t);
	while ((n = trace_read(t, &e))) {
		for (size_t i = 0; i < n; i++)
			trace_writer_event(w, &e[i]);
		events += n;
		progress_step(p, trace_position(t), info->file_size, events,
			      "events");
	}
	for (size_t i = 0; i < info->n_threads; i++)
		trace_writer_thread(w, &info->threads[i]);
	copy_lost(t, w);
	if (info->counted)
		trace_writer_counts(w, &info->counts);
	*ret_events = events;
	return trace_writer_close(w, err);
}

/* A file that is being sealed. */
struct seal {
	int fd;
	uint8_t *map;
	uint64_t size;
	uint64_t end;		/* behind the last chunk that has something */
	uint64_t last;		/* where that begins; 0: there is none */
};

static uint64_t record_end(struct trace *t, const struct chunk_ref *c,
			   uint32_t *ret_records)
{
	if (c->type == TRACE_EVENTS)
		return trace_events_end(t, c, ret_records);
	*ret_records = 0;
	if (c->type == TRACE_COUNTS)
		return min_u64(c->stored, sizeof(struct trace_counts));
	return c->type == TRACE_STACKS ? trace_stacks_end(t, c) :
		trace_log_end(t, c);
}

/* Where the whole pages behind at begin, up to the next chunk. */
static void give_back(const struct seal *s, uint64_t from, uint64_t to)
{
	from = round_up(from, TRACE_OPEN_ALIGN);
	if (from < to)
		fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			  (off_t)from, (off_t)(to - from));
}

static void seal_chunk(struct seal *s, struct trace *t,
		       const struct chunk_ref *c, uint64_t *ret_events)
{
	uint8_t *at = s->map + c->offset - TRACE_CHUNK_SIZE;
	struct trace_chunk h;
	uint32_t records = 0;
	uint64_t n;

	memcpy(&h, at, sizeof(h));
	if (!(h.flags & TRACE_OPEN)) {
		*ret_events += h.type <= TRACE_PACKED ? h.records : 0;
		s->end = c->offset + c->stored;
		s->last = c->offset - TRACE_CHUNK_SIZE;
		return;
	}
	n = record_end(t, c, &records);
	h.flags = (uint16_t)(h.flags & ~TRACE_OPEN);
	h.stored = h.length = (uint32_t)n;
	h.records = records;
	h.crc = trace_crc32c(s->map + c->offset, n);
	h.header_crc = trace_crc32c(&h, offsetof(struct trace_chunk,
						 header_crc));
	memcpy(at, &h, sizeof(h));
	*ret_events += records;
	if (n) {
		s->end = c->offset + n;
		s->last = c->offset - TRACE_CHUNK_SIZE;
	}
	give_back(s, c->offset + n, min_u64(c->offset - TRACE_CHUNK_SIZE +
					    h.room, s->size));
}

static uint8_t *put(uint8_t *p, uint64_t value)
{
	while (value >= 0x80) {
		*p++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*p++ = (uint8_t)value;
	return p;
}

/* The last words, which only a parent knows. */
static bool append_end(const struct seal *s, const struct trace *t,
		       const struct trace_seal *how, uint64_t tick)
{
	struct {
		struct trace_chunk h;
		uint8_t payload[64];
	} chunk = { .h = {
		.magic = TRACE_CHUNK_MAGIC, .type = TRACE_LOG,
		.sequence = (uint32_t)t->n_chunks,
	} };
	uint8_t *p = chunk.payload;
	uint8_t *length;

	*p++ = TRACE_LOG_END;
	length = p++;
	p = put(p, tick);
	p = put(p, how->how);
	p = put(p, how->value);
	*length = (uint8_t)(p - length - 1);
	chunk.h.stored = chunk.h.length = (uint32_t)(p - chunk.payload);
	chunk.h.crc = trace_crc32c(chunk.payload, chunk.h.stored);
	chunk.h.header_crc = trace_crc32c(&chunk.h, offsetof(
					  struct trace_chunk, header_crc));
	return pwrite(s->fd, &chunk, sizeof(chunk.h) + chunk.h.stored,
		      (off_t)s->end) ==
	       (ssize_t)(sizeof(chunk.h) + chunk.h.stored);
}

/* What follows the last chunk now follows at once. */
static void cut_room(struct seal *s)
{
	struct trace_chunk h;

	if (!s->last)
		return;
	memcpy(&h, s->map + s->last, sizeof(h));
	h.room = 0;
	h.header_crc = trace_crc32c(&h, offsetof(struct trace_chunk,
						 header_crc));
	memcpy(s->map + s->last, &h, sizeof(h));
}

static bool finish_header(const struct seal *s)
{
	struct trace_file_header h;

	memcpy(&h, s->map, sizeof(h));
	h.flags |= TRACE_FINISHED;
	h.crc = trace_crc32c(&h, offsetof(struct trace_file_header, crc));
	return pwrite(s->fd, &h, sizeof(h), 0) == sizeof(h);
}

static void set_executes(const struct trace *t, struct trace_seal *how)
{
	const char *path = trace_meta_value(t, "executes");
	struct str s;

	str_init(&s);
	if (path)
		str_add_escaped(&s, path, strlen(path));
	snprintf(how->executes, sizeof(how->executes), "%s", s.text);
	str_fini(&s);
}

/*
 * The file ends behind the last chunk with records: chunks that were begun
 * and not used are cut off, and the room of the last one with them.
 */
static bool seal(struct seal *s, struct trace *t, struct trace_seal *how)
{
	uint64_t tick = t->info.first_tick;
	struct stat st;

	s->end = t->n_chunks ? 0 : TRACE_OPEN_ALIGN;
	for (size_t i = 0; i < t->n_chunks; i++)
		seal_chunk(s, t, &t->chunks[i], &how->events);
	if (t->info.clocks.n)
		tick = t->info.clocks.rows[t->info.clocks.n - 1].tick;
	s->end = round_up(s->end, TRACE_CHUNK_ALIGN);
	how->lost = t->damage.lost;
	if (t->info.ends.n) {
		how->stopped = t->info.ends.rows[0].value[0];
		how->stopped_value = t->info.ends.rows[0].value[1];
	}
	set_executes(t, how);
	cut_room(s);
	if (ftruncate(s->fd, (off_t)s->end) ||
	    (how->how && !append_end(s, t, how, tick)) || !finish_header(s) ||
	    fstat(s->fd, &st))
		return false;
	how->file_size = (uint64_t)st.st_size;
	return true;
}

bool trace_busy(const char *path)
{
	struct trace_file_header h;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : pread(fd, &h, sizeof(h), 0);

	if (fd >= 0)
		close(fd);
	return n != sizeof(h) || memcmp(h.magic, TRACE_MAGIC,
					sizeof(h.magic)) ||
	       h.flags & TRACE_FINISHED || !h.pid || h.pid > INT32_MAX ||
	       !kill((pid_t)h.pid, 0) || errno != ESRCH;
}

bool trace_seal(const char *path, struct trace_seal *how, struct err *err)
{
	struct seal s = { .fd = open(path, O_RDWR | O_CLOEXEC) };
	struct trace *t;
	void *map;
	bool ok;

	if (s.fd < 0)
		return err_system(err, "%s", path);
	t = trace_open_fd(dup(s.fd), path, err);
	if (!t) {
		close(s.fd);
		return false;
	}
	s.size = t->size;
	map = mmap(NULL, t->size, PROT_READ | PROT_WRITE, MAP_SHARED, s.fd, 0);
	ok = map != MAP_FAILED;
	s.map = map;
	how->events = how->lost = how->stopped = how->stopped_value = 0;
	ok = ok && seal(&s, t, how);
	if (!ok)
		err_system(err, "%s", path);
	if (map != MAP_FAILED)
		munmap(map, s.size);
	trace_close(t);
	close(s.fd);
	return ok;
}
