/* SPDX-License-Identifier: MIT */
/*
 * Where in the source an address is: function, file and line, by DWARF.
 *
 * One address can be in several functions at once: compilers copy the body
 * of one into another.  The innermost comes first; the last is the one that
 * the processor was in.
 *
 * A unit's functions are listed when one of its addresses is asked for first;
 * after that an address costs a search and a walk over the function's own
 * entries.  Debug information that says nonsense gives fewer places, or wrong
 * ones, and bounded work: each unit is gone through once, in steps that are
 * no more than its bytes, and all look-ups together have a budget.
 *
 * Units in files of their own (.dwo) give lines but no functions.
 */
#ifndef COREWALK_LINES_H
#define COREWALK_LINES_H

#include "corewalk/debug.h"

enum { LINES_MAX = 32 };	/* places of one address */

/* Borrowed until lines_free(); bytes of a file, not made harmless. */
struct line_place {
	/* As the linker has it, which C and local functions lack; or NULL. */
	const char *linkage;
	/* As in the source, "a::B::c"; NULL: not known, or linkage says it. */
	const char *function;
	const char *file;	/* as the compiler was called; NULL */
	unsigned line, column;	/* 0: not known */
	bool inlined;		/* its caller is the next place */
};

struct lines;

struct lines *lines_new(void);
/* Before debug_free(). */
void lines_free(struct lines *l);

/*
 * The places of addr, an address in the file: the target's without bias.  For
 * the caller of a frame it is the return address minus 1.  Returns how many,
 * at most LINES_MAX; 0 if nothing is known.
 */
size_t lines_at(struct lines *l, const struct debug_module *m, uint64_t addr,
		struct line_place ret[LINES_MAX]);

/* The entry of the function, not inlined, that addr is in. */
bool lines_function(struct lines *l, const struct debug_module *m,
		    uint64_t addr, Dwarf_Die *ret);

#endif
