/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a trace: once as they are, once with the checksums set right,
 * since hardly anything gets past those otherwise.  Whatever opens is read to
 * its end.
 *
 * Code: replay/trace_(read|log|columns|events|pack)
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "replay/trace_file.h"
#include "replay/trace_read.h"

enum { MAX_INPUT = 1 << 18 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int file_of(const uint8_t *data, size_t size)
{
	int fd = memfd_create("trace", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	return fd;
}

static void check_event(struct trace *t, const struct trace_event *e,
			uint64_t *last)
{
	const struct trace_info *info = trace_info(t);
	size_t n;

	if (e->kind < TRACE_MALLOC || e->kind > TRACE_UNMAP ||
	    e->thread >= info->n_threads)
		abort();
	*last = e->tick;
	trace_stack(t, e->stack, &n);
	if (n > TRACE_DEPTH_MAX)
		abort();
	trace_ns(t, e->tick);
	if (n)
		trace_module_at(t, trace_stack(t, e->stack, &n)[n - 1],
				e->tick);
}

static void read_all(const uint8_t *data, size_t size)
{
	const struct trace_event *e;
	struct err err;
	struct trace *t = trace_open_fd(file_of(data, size), "input", &err);
	uint64_t last = 0, n_first = 0, n_second = 0;
	size_t n;

	if (!t) {
		if (!err.msg[0])
			abort();
		return;
	}
	while ((n = trace_read(t, &e))) {
		for (size_t i = 0; i < n; i++)
			check_event(t, &e[i], &last);
		n_first += n;
	}
	/* A record is two bytes at least: events have a bound. */
	trace_verify(t, &n_second);
	if (n_first != n_second)
		abort();
	trace_close(t);
}

static void set_right(uint8_t *data, size_t size)
{
	struct trace_file_header h;

	if (size < sizeof(h))
		return;
	memcpy(&h, data, sizeof(h));
	h.crc = trace_crc32c(&h, offsetof(struct trace_file_header, crc));
	memcpy(data, &h, sizeof(h));
	for (size_t at = 0; at + TRACE_CHUNK_SIZE <= size;
	     at += TRACE_CHUNK_ALIGN) {
		struct trace_chunk c;

		memcpy(&c, data + at, sizeof(c));
		if (c.magic != TRACE_CHUNK_MAGIC)
			continue;
		if (c.stored <= size - at - sizeof(c))
			c.crc = trace_crc32c(data + at + sizeof(c), c.stored);
		c.header_crc = trace_crc32c(&c, offsetof(struct trace_chunk,
							 header_crc));
		memcpy(data + at, &c, sizeof(c));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	if (size > MAX_INPUT)
		return 0;
	read_all(data, size);
	copy = malloc(size ? size : 1);
	if (!copy)
		abort();
	memcpy(copy, data, size);
	set_right(copy, size);
	read_all(copy, size);
	free(copy);
	return 0;
}
