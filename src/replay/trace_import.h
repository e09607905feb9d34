/* SPDX-License-Identifier: MIT */
/*
 * Traces of other tools, as ours:
 *
 *	heaptrack, raw (heaptrack --raw) and interpreted; 1.2 to 1.5
 *	memtrace of OCaml, versions 2 and 3: samples
 *	mtrace(3) of the GNU C library, text
 *	CSV: op,address,size[,thread[,ns]], with op malloc, free, realloc...
 *
 * What a format does not tell stays unknown: mtrace has no time and no
 * threads, and an interpreted heaptrack file does not say which of several
 * blocks of one size and site is freed; the one that came last is taken, which
 * leaves all totals right, and lifetimes are wrong.
 */
#ifndef REPLAY_TRACE_IMPORT_H
#define REPLAY_TRACE_IMPORT_H

#include "base/err.h"
#include "base/types.h"

struct trace_import {
	const char *path;	/* for messages */
	const char *format;	/* set, static: "heaptrack", ... */
	uint64_t bad;		/* set: lines that were not understood */
	uint64_t first_bad;	/* set: number of the first, from 1 */
};

/* By content; takes fd over. */
bool trace_import(int fd, struct trace_import *in, const char *out,
		  bool force, uint64_t *ret_events, struct err *err)
	MUST_CHECK;

#endif
