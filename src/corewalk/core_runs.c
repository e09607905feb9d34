/* SPDX-License-Identifier: MIT */
/*
 * Holes of the core file.
 *
 * Linux does not write pages that have no page table entry or are the shared
 * page of zeros: on a file system with holes, a hole in an anonymous segment
 * is a page that was never written.  Pipes, archives, compression and gdb turn
 * holes into zeros.
 */
#include "corewalk/core.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "corewalk/pages.h"

/* One walk over the file; false if holes cannot be asked for. */
static bool find_runs(struct space *sp, int fd)
{
	size_t cap = 0;
	off_t start = 0;
	off_t end;

	for (;;) {
		start = lseek(fd, start, SEEK_DATA);
		if (start < 0)
			return errno == ENXIO;
		end = lseek(fd, start, SEEK_HOLE);
		if (end <= start)
			return false;
		MEM_PUSH(sp->runs, sp->n_runs, cap) =
			(struct extent_run){ (uint64_t)start, (uint64_t)end };
		start = end;
	}
}

static bool holes_in_segments(struct space *sp)
{
	size_t i;

	for (i = 0; i < sp->n_segs; i++) {
		const struct seg *seg = &sp->segs[i];

		if (seg->stored &&
		    space_stored(sp, seg->start, seg->start + seg->stored) <
		    seg->stored)
			return true;
	}
	return false;
}

static void forget_runs(struct space *sp)
{
	free(sp->runs);
	sp->runs = NULL;
	sp->n_runs = 0;
}

void core_runs(struct space *sp, int fd)
{
	/* A snapshot of our own says it of each page. */
	if (space_pages_known(sp)) {
		pages_to_runs(sp);
		sp->holes = HOLES_KEPT;
		return;
	}
	sp->holes = HOLES_LOST;
	if (fd < 0)
		return;
	if (!find_runs(sp, fd)) {
		sp->holes = HOLES_UNKNOWN;
		forget_runs(sp);
		return;
	}
	/* gdb wrote zeros: holes in its core were invented by a copy. */
	if (strcmp(sp->writer, "gdb") != 0 && holes_in_segments(sp))
		sp->holes = HOLES_KEPT;
	else
		forget_runs(sp);
}
