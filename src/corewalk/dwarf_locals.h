/* SPDX-License-Identifier: MIT */
/*
 * Local variables and parameters of a frame: where they are, and their types.
 *
 * Those of the function and of the blocks and inlined functions in it that the
 * frame is in count.  Compilers describe with optimisation, too, where most of
 * them are at most addresses.  A variable that was optimised away, is split
 * into pieces, or is only known by what it was at the function's entry has no
 * place here.
 *
 * Expressions are evaluated with a small stack and are no loops; entries are
 * visited at most so many times as a budget says.
 */
#ifndef COREWALK_DWARF_LOCALS_H
#define COREWALK_DWARF_LOCALS_H

#include "corewalk/dwarf_types.h"
#include "corewalk/lines.h"
#include "corewalk/unwind.h"

struct dwarf_local {
	const char *name;	/* borrowed from the Dwarf; "?" */
	uint32_t type;
	bool in_memory;
	uint64_t value;		/* its address; or what it is */
};

/* What the frames of one target are looked at with; borrowed. */
struct dwarf_frames {
	struct dwarf_types *t;
	struct space *sp;
	struct debug *debug;
	struct lines *lines;
	struct cfi *cfi;
	uint64_t budget;	/* entries that all may look at */
};

/* Calls each() for every variable with a place. */
void dwarf_locals(struct dwarf_frames *in, const struct frame *f,
		  void (*each)(void *data, const struct dwarf_local *l),
		  void *data);

#endif
