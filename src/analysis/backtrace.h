/* SPDX-License-Identifier: MIT */
/*
 * The stacks of all threads, with names.
 *
 * Of a stack deeper than BACKTRACE_HEAD + BACKTRACE_TAIL frames the middle is
 * left out and counted; one deeper than BACKTRACE_MAX is given up there.  All
 * threads together share a budget of frames, so that a file that makes up
 * threads costs no more than that.
 *
 * A *place* of a frame is a function: more than one if compilers copied one
 * into another.  An address is looked up once, however many frames have it.
 */
#ifndef ANALYSIS_BACKTRACE_H
#define ANALYSIS_BACKTRACE_H

#include "corewalk/lines.h"
#include "corewalk/symbol.h"
#include "corewalk/unwind.h"

enum {
	BACKTRACE_HEAD = 192,
	BACKTRACE_TAIL = 64,
	BACKTRACE_MAX = 1 << 20,
};

struct backtrace_frame {
	vaddr pc, sp;
	vaddr lookup;		/* what names are looked up with */
	bool guess, signal;	/* as in struct frame */
};

/* What is known of an address.  Bytes of files: not made harmless. */
struct backtrace_name {
	vaddr lookup;
	const struct module *module;	/* NULL: in none */
	struct symbol symbol;	/* name NULL: not known */
	size_t place, n_places;	/* in backtraces.places; innermost first */
};

struct backtrace {
	size_t first, n;	/* in backtraces.frames; innermost first */
	uint64_t left_out;	/* frames between the first ... */
	size_t head;		/* ... head ones and the rest */
	enum unwind_end end;
	uint32_t same;		/* the first thread with the same addresses */
};

struct backtraces {
	struct space *sp;
	struct backtrace *of;	/* owned; by thread */
	struct backtrace_frame *frames;	/* owned */
	size_t n_frames, cap_frames;
	struct backtrace_name *names;	/* owned; by lookup */
	size_t n_names;
	struct line_place *places;	/* owned; their text is of lines */
	size_t n_places, cap_places;
	struct lines *lines;	/* owned */
};

/* All are borrowed until backtraces_fini(). */
void backtraces_init(struct backtraces *b, struct space *sp, struct cfi *cfi,
		     struct debug *debug, struct symbols *symbols);
void backtraces_fini(struct backtraces *b);

/* Never NULL for a frame of b. */
const struct backtrace_name *backtraces_name(const struct backtraces *b,
					     const struct backtrace_frame *f);

#endif
