/* SPDX-License-Identifier: MIT */
/*
 * Inside the importers: lines, words, and events on their way out.
 */
#ifndef REPLAY_TRACE_IMPORT_FILE_H
#define REPLAY_TRACE_IMPORT_FILE_H

#include "replay/objects.h"
#include "replay/trace_import.h"
#include "replay/trace_write.h"

/* What is left of a line. */
struct line {
	const char *p, *end;
};

struct import {
	struct trace_import *in;
	const char *p, *end;	/* what is left of the file */
	uint64_t line;
	struct trace_writer *out;
	uint64_t events;
	uint64_t tick;		/* of the next event, ns */
	uint32_t thread;
	uint64_t n_threads;
	struct objects sites;	/* return address -> stack */
	struct objects threads;	/* tid -> index + 1 */
	vaddr realloc_from;	/* mtrace: between < and > */
};

bool import_line(struct import *im, struct line *ret);
bool line_word(struct line *l, const char **ret, size_t *ret_n);
bool line_hex(struct line *l, uint64_t *ret);
void import_bad(struct import *im);
void import_time(struct import *im, uint64_t ns);
void import_event(struct import *im, unsigned kind, vaddr addr,
		  uint64_t size, uint32_t stack);
/* As it is, with the next time and the thread at hand. */
void import_sample(struct import *im, const struct trace_event *e);

/* trace_memtrace.c */
void import_memtrace(struct import *im);

/* trace_heaptrack.c */
void import_heaptrack(struct import *im);

#endif
