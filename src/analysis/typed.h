/* SPDX-License-Identifier: MIT */
/*
 * Types of blocks by debug information: from the variables of all modules that
 * have some, along pointers, to the heap.
 *
 * Roots are variables with an address of their own (global, static, in a
 * function or a class), thread-local ones of the threads, and the locals of
 * frames.  fields.h says what a type leads to, spread.h what a block may be.
 */
#ifndef ANALYSIS_TYPED_H
#define ANALYSIS_TYPED_H

#include "analysis/graph.h"
#include "analysis/hints.h"
#include "analysis/index.h"
#include "analysis/spread.h"
#include "analysis/types.h"
#include "base/progress.h"
#include "corewalk/debug.h"
#include "corewalk/dwarf_locals.h"
#include "corewalk/heap.h"
#include "corewalk/space.h"
#include "corewalk/symbol.h"

struct typed_input {
	struct space *sp;
	struct heap *heap;
	const struct index *ix;
	struct symbols *symbols;
	struct debug *debug;
	struct cfi *cfi;
	struct hints *hints;		/* or NULL; resolved here */
	const struct graph *graph;	/* or NULL; for few blocks: of them */
	const vaddr *wanted;		/* blocks; NULL: all */
	size_t n_wanted;
	struct progress *progress;	/* or NULL */
};

/* Something that was left out, for the user. */
struct typed_note {
	const char *code;	/* static: "debug-file" */
	char *text;		/* owned; may name files of this machine */
};

/* All borrowed things must outlive it. */
struct typed {
	struct dwarf_types t;
	struct spread spread;
	size_t n_modules;	/* with debug information */
	struct typed_note *notes;	/* owned */
	size_t n_notes, cap_notes;
	bool any;		/* a module had some: the rest is valid */
	bool few;		/* some blocks are asked about, not all */
};

void typed_init(struct typed *ty, const struct typed_input *in);
void typed_fini(struct typed *ty);

struct census_input;

/* A namer of census.h: what in->typed knows of the blocks. */
void typed_name(struct types *types, const struct census_input *in);

#endif
