/* SPDX-License-Identifier: MIT */
/*
 * A process as a core file, for later.
 *
 * The file is an ordinary ELF core: every debugger opens it.  It has a note
 * of our own besides (own.h), with which heapcore sees in it what it saw in
 * the process.  Program headers are sorted by address; the bytes are not: the
 * allocators' and programs' data come first, then stacks, then the rest, so
 * that what a full disk or a cut transfer leaves is of use.
 */
#ifndef COREWALK_SNAPSHOT_H
#define COREWALK_SNAPSHOT_H

#include "base/progress.h"
#include "corewalk/snapshot_file.h"
#include "corewalk/space.h"

/*
 * Write sp, a process, to f and finish that.  *ret_size is what it takes on
 * disk.
 */
bool snapshot_write(struct space *sp, struct snapshot_file *f,
		    struct progress *progress, uint64_t *ret_size,
		    struct err *err) MUST_CHECK;

#endif
