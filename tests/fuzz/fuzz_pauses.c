/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a file of pauses: what is read is in order, and what is said of
 * it is possible.
 *
 * Code: replay/pauses
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "replay/pauses.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct pauses *p)
{
	struct pauses_summary all, full, other;
	double end = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct pause *x = &p->list[i];

		if (!(x->duration >= 0) || !(x->start >= 0) ||
		    (i && x->start < x[-1].start))
			abort();
		end = x->start + x->duration;
	}
	pauses_sum_up(p, PAUSES_ALL, &all);
	pauses_sum_up(p, PAUSES_FULL, &full);
	pauses_sum_up(p, PAUSES_OTHER, &other);
	if (all.n != p->n || full.n + other.n != all.n ||
	    !(all.p50 <= all.p90 && all.p90 <= all.p99 &&
	      all.p99 <= all.max))
		abort();
	for (double window = 1e-3; window < 1e3; window *= 10) {
		double share = pauses_utilisation(p, window, end);

		if (!(share >= 0 && share <= 1))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct pauses_options options = { .unit = 1e-3 };
	struct err err = { .kind = ERR_NONE };
	static int fd = -1;
	struct pauses p;
	char path[64];

	if (fd < 0)
		fd = memfd_create("pauses", MFD_CLOEXEC);
	if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (pauses_read(&p, path, &options, &err)) {
		check(&p);
		pauses_fini(&p);
	} else if (err.kind == ERR_NONE || !*err.msg) {
		abort();
	}
	return 0;
}
