/* SPDX-License-Identifier: MIT */
/*
 * A packed trace as long as wanted: gen_trace FILE EVENTS LIVE.
 *
 * There are LIVE places.  Again and again one is chosen at random, and twice
 * in a row what is there ends or something comes: a block is replaced, or one
 * is temporary.  About half of the places are filled in the end, however many
 * events there are.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "replay/trace_write.h"

enum { STACKS = 1000, FRAMES = 4 };

static void write_stacks(struct trace_writer *w)
{
	for (vaddr i = 0; i < STACKS; i++) {
		vaddr frames[FRAMES];

		for (vaddr k = 0; k < FRAMES; k++)
			frames[k] = 0x400000 + (i >> 3 * k) * 16;
		trace_writer_stack(w, frames, FRAMES);
	}
}

static void write_events(struct trace_writer *w, uint64_t n, uint64_t n_live)
{
	bool *used = mem_zalloc(n_live);
	uint64_t x = 1;

	for (uint64_t i = 0; i < n; i++) {
		struct trace_event e = { .tick = i * 100 };
		uint64_t block;

		if (i % 2 == 0 || i < n_live)
			x = x * 6364136223846793005u + 1442695040888963407u;
		block = (x >> 32) % n_live;
		e.addr = (block + 1) * 4096;
		if (used[block]) {
			e.kind = TRACE_FREE;
		} else {
			e.kind = TRACE_MALLOC;
			e.stack = (uint32_t)(1 + (x >> 20) % STACKS);
			e.size = 16 + e.stack * 8;
		}
		used[block] = !used[block];
		trace_writer_event(w, &e);
	}
	free(used);
}

int main(int argc, char **argv)
{
	const struct trace_head head = {
		.page_size = 4096, .ticks_per_s = 1000000000, .pid = 1,
	};
	const struct trace_thread thread = { .tid = 1 };
	struct trace_writer *w;
	struct err err;

	if (argc != 4 || !strtoull(argv[3], NULL, 0)) {
		fputs("usage: gen_trace FILE EVENTS LIVE\n", stderr);
		return 2;
	}
	w = trace_writer_new(argv[1], true, &head, &err);
	if (w) {
		trace_writer_thread(w, &thread);
		write_stacks(w);
		write_events(w, strtoull(argv[2], NULL, 0),
			     strtoull(argv[3], NULL, 0));
	}
	if (!w || !trace_writer_close(w, &err)) {
		fprintf(stderr, "gen_trace: %s\n", err.msg);
		return 1;
	}
	return 0;
}
