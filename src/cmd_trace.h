/* SPDX-License-Identifier: MIT */
/*
 * What commands that read traces share.
 */
#ifndef CMD_TRACE_H
#define CMD_TRACE_H

#include "base/err.h"
#include "base/progress.h"
#include "replay/trace_read.h"

/*
 * A trace from a file or, as "-", from standard input, perhaps compressed as a
 * whole: then it is unpacked to a file without a name in tmpdir (NULL:
 * $TMPDIR, else /tmp).  NULL with err set if that cannot be.
 */
struct trace *cmd_trace_open(const char *path, const char *tmpdir,
			     struct progress *p, struct err *err) MUST_CHECK;

/*
 * The same for any file: a descriptor of what is in it, unpacked; -1 with err
 * set.
 */
int cmd_trace_file(const char *path, const char *tmpdir, struct progress *p,
		   struct err *err) MUST_CHECK;

/* "heapcore: FILE: what is wrong with it", if something is. */
void cmd_trace_warn(const struct trace *t);

#endif
