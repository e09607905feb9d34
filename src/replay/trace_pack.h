/* SPDX-License-Identifier: MIT */
/*
 * A trace in its small form: columns, numbers of objects for addresses, time in
 * 100 ns.  And sealing one, in place.
 */
#ifndef REPLAY_TRACE_PACK_H
#define REPLAY_TRACE_PACK_H

#include "base/err.h"
#include "base/progress.h"
#include "replay/trace_read.h"

/* Rewrite t, from its start, as the packed trace path. */
bool trace_pack(struct trace *t, const char *path, bool force,
		struct progress *p, uint64_t *ret_events, struct err *err)
	MUST_CHECK;

struct trace_seal {
	enum trace_end how;	/* how the program ended; 0: not known */
	uint64_t value;		/* status or signal */
	uint64_t events;	/* set: how many there are */
	uint64_t file_size;	/* set: of the file afterwards */
	uint64_t lost;		/* set */
	uint64_t stopped;	/* set: enum trace_end, 0 not */
	uint64_t stopped_value;	/* set */
	char executes[256];	/* set: what it becomes, escaped; or "" */
};

/* Not an unsealed trace, or one of a process that still runs. */
bool trace_busy(const char *path);

/*
 * Close the open chunks of a trace that nobody writes any more: their lengths
 * and checksums are written, unused space is given back, and the log gets how
 * the program ended.
 */
bool trace_seal(const char *path, struct trace_seal *s, struct err *err)
	MUST_CHECK;

#endif
