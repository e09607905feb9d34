/* SPDX-License-Identifier: MIT */
/*
 * Events a second: replay TRACE...
 *
 * CPU time of reading alone, of an exact replay, and of one that samples.
 * Compare with "time heaptrack_print" on a recording of the same program.
 */
#include <stdio.h>
#include <time.h>

#include "replay/replay.h"

enum { TIMES = 3 };

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The best of some; rate UINT64_MAX: only read. */
static double measure(struct trace *t, uint64_t rate, uint64_t *ret_events)
{
	const struct trace_info *info = trace_info(t);
	struct replay_options o = {
		.rate = rate, .seed = 1, .first_tick = info->first_tick,
		.n_stacks = info->n_stacks,
		.objects = info->flags & TRACE_OBJECTS,
		.ns_per_tick = 1e9 / info->ticks_per_s,
	};
	double best = 1e9;

	for (int i = 0; i < TIMES; i++) {
		const struct trace_event *events;
		struct replay r;
		double start;
		size_t n;

		trace_rewind(t);
		start = cpu_seconds();
		replay_init(&r, &o);
		*ret_events = 0;
		while ((n = trace_read(t, &events))) {
			if (rate != UINT64_MAX)
				replay_events(&r, events, n);
			*ret_events += n;
		}
		replay_finish(&r);
		if (cpu_seconds() - start < best)
			best = cpu_seconds() - start;
		replay_fini(&r);
	}
	return best;
}

int main(int argc, char **argv)
{
	struct err err;

	printf("%-24s %10s %8s %8s %8s  million events/s\n", "trace", "events",
	       "read", "exact", "512k");
	for (int i = 1; i < argc; i++) {
		struct trace *t = trace_open(argv[i], &err);
		double read, exact, sampled;
		uint64_t n;

		if (!t) {
			fprintf(stderr, "%s\n", err.msg);
			return 1;
		}
		read = measure(t, UINT64_MAX, &n);
		exact = measure(t, SAMPLER_NEVER, &n);
		sampled = measure(t, 524288, &n);
		printf("%-24.24s %10llu %8.1f %8.1f %8.1f\n", argv[i],
		       (unsigned long long)n, (double)n / read / 1e6,
		       (double)n / exact / 1e6, (double)n / sampled / 1e6);
		trace_close(t);
	}
	return 0;
}
