/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a trace of another tool.  What is imported is a whole trace of
 * ours, with as many events as were promised.
 *
 * Code: replay/trace_(import|heaptrack|memtrace)
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "replay/trace_import.h"
#include "replay/trace_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t count(const char *path)
{
	const struct trace_event *e;
	struct err err;
	struct trace *t = trace_open(path, &err);
	uint64_t events = 0;
	size_t n;

	if (!t)
		abort();
	while ((n = trace_read(t, &e)))
		events += n;
	trace_close(t);
	return events;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct trace_import in = { .path = "input" };
	struct err err = { .kind = ERR_NONE };
	int fd = memfd_create("import", MFD_CLOEXEC);
	uint64_t events = 0;
	char path[64];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size ||
	    lseek(fd, 0, SEEK_SET))
		abort();
	snprintf(path, sizeof(path), "/tmp/heapcore-fuzz.%d", (int)getpid());
	if (trace_import(fd, &in, path, true, &events, &err)) {
		if (count(path) != events)
			abort();
	} else if (err.kind == ERR_NONE || !*err.msg) {
		abort();
	}
	unlink(path);
	return 0;
}
