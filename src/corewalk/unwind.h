/* SPDX-License-Identifier: MIT */
/*
 * Who called whom: the frames of a thread, innermost first.
 *
 * A frame's caller is found by call frame information (cfi.h).  Where there
 * is none, the frame pointer is followed if it leads up the stack to an
 * address of code; such a frame is a *guess*.  So is the caller of code that
 * is none, which a call through a bad pointer leads to: it is what the stack
 * pointer points to.
 *
 * The stack belongs to a program that may have overwritten it.  Each frame
 * must lie above the one before, save where a signal handler comes in, which
 * can run on a stack of its own; an address that is not of code ends it; and
 * whoever walks counts.
 *
 * Machines: x86-64; i386 and AArch64 by the same tables.
 */
#ifndef COREWALK_UNWIND_H
#define COREWALK_UNWIND_H

#include "corewalk/cfi.h"

/* Why there is no further frame. */
enum unwind_end {
	UNWIND_MORE,		/* there is one */
	UNWIND_DONE,		/* this one has no caller */
	UNWIND_NO_TABLE,	/* nothing says how to go on from here */
	UNWIND_NO_MEMORY,	/* the stack is not in the file there */
	UNWIND_NO_CODE,		/* the caller's address is not of code */
	UNWIND_STUCK,		/* the caller's frame is not above this one */
	UNWIND_LIMIT,		/* enough: there are more */
};

/* A clause: "the stack is not in the file there", ... */
const char *unwind_end_text(enum unwind_end end);

struct frame {
	vaddr pc;		/* where it is, or goes on after its call */
	bool exact;		/* interrupted there: no return address */
	bool guess;		/* found without call frame information */
	bool signal;		/* the way back from a signal handler */
	vaddr sp;		/* of this frame; its callees lie below */
	struct cfi_regs regs;	/* as far as they are known */
};

/* The address to look names up with: within the call, not behind it. */
static inline vaddr frame_lookup(const struct frame *f)
{
	return f->exact || f->signal || !f->pc ? f->pc : f->pc - 1;
}

/* The frame that a thread is in. */
void unwind_first(const struct space *sp, const struct thread *t,
		  struct frame *ret);

/*
 * Make *f its caller, and return UNWIND_MORE; else why not, *f untouched.
 * Finite only if the caller counts: the frames of signal handlers can lie.
 */
enum unwind_end unwind_next(struct space *sp, struct cfi *c,
			    struct frame *f) MUST_CHECK;

/* The canonical frame address of a frame; false if no table says it. */
bool unwind_cfa(struct space *sp, struct cfi *c, const struct frame *f,
		vaddr *ret);

#endif
