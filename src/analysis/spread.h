/* SPDX-License-Identifier: MIT */
/*
 * Types spread from variables to the blocks that they lead to.
 *
 * Vocabulary.  A *region* is memory of a known type: a variable, or a block
 * that has one.  Its pointers give types to blocks, which become regions, in
 * breadth-first order.  A *claim* says that a block is of a type; its *fit*
 * says how well the type explains the block, and a better one replaces what is
 * there, so that a byte buffer or a base class that came first does not stay.
 * Claims that fit as well and say otherwise are *conflicts*; the first stays.
 *
 * What is guarded against.  A block is never of a type that is larger.  A
 * stale pointer leads to a block that is something else by now: a structure
 * is only taken if its pointers are null or lead somewhere.  Of a vector only
 * the elements in use are followed.  What a union holds is believed if it
 * fits exactly.  An object with a vtable is what that says.
 *
 * Cost.  Eight bytes for each block and sixteen for each that waits.  Each
 * block is expanded at most once for each fit; most of the time goes by waiting
 * for memory, which is fetched some regions ahead.
 */
#ifndef ANALYSIS_SPREAD_H
#define ANALYSIS_SPREAD_H

#include "analysis/fields.h"
#include "analysis/hints.h"
#include "analysis/index.h"
#include "analysis/types.h"
#include "corewalk/heap.h"
#include "corewalk/space.h"
#include "corewalk/symbol.h"

/* Rising: a later one replaces an earlier one. */
enum fit {
	FIT_NONE,
	FIT_OPAQUE,		/* of a type that nobody defines */
	FIT_NUMBERS,		/* bytes, numbers */
	FIT_POINTERS,		/* an array of pointers */
	FIT_LOOSE,		/* a structure, and more behind it */
	FIT_ARRAY,		/* as many structures as fit */
	FIT_NODE,		/* of a container, by its rule */
	FIT_EXACT,		/* a structure of the block's size */
	FIT_CLASS,		/* by its vtable */
};

/* What a block is: a type of dwarf_types.h, or one of these. */
enum {
	SPREAD_ARRAY = 1 << 30,	/* added to a type: an array of it */
	SPREAD_STRING = 1 << 29,	/* bytes of std::string */
	SPREAD_FUNCTOR,		/* what a std::function calls */
	SPREAD_TEXT,		/* bytes, by a hint */
};

struct spread_block {
	uint32_t type;		/* 0: none yet */
	uint8_t fit;		/* enum fit */
	uint8_t known;		/* enum type_known */
};

struct region {
	vaddr addr;
	uint32_t type;
	uint32_t n : 28;	/* elements */
	uint32_t known : 4;	/* enum type_known of what it leads to */
};
enum { REGION_MAX = (1 << 28) - 1 };

struct kin;
struct pending;

struct spread {
	struct space *sp;	/* borrowed, as are these */
	const struct index *ix;
	struct symbols *symbols;
	struct dwarf_types *t;
	const struct hints *hints;	/* or NULL */
	const struct kin *only;	/* blocks that get types; NULL: all */
	struct fields fields;

	struct spread_block *blocks;	/* owned; by number of the index */
	struct region *queue;	/* owned: a ring */
	size_t head, n_queue, cap_queue;
	struct pending *pending;	/* owned: a ring of pointers */
	size_t first_pending, n_pending;
	struct map inside;	/* regions that start inside blocks */
	struct map classes;	/* first words to types + 1 */
	vaddr gap, gap_end;	/* no module is there; holds most blocks */
	uint64_t steps;		/* that are left */
	uint64_t pause;		/* spread_run() returns with fewer */

	bool exhausted;		/* no step was left */
};

void spread_init(struct spread *s, struct space *sp, const struct index *ix,
		 struct symbols *symbols, struct dwarf_types *t,
		 const struct hints *hints);
void spread_fini(struct spread *s);

/* A variable; it is followed by spread_run(). */
void spread_root(struct spread *s, vaddr addr, uint32_t type);
/* A pointer in a register, to something of that type. */
void spread_pointer(struct spread *s, uint64_t value, uint32_t type);
/* All blocks that begin with a vtable, which no pointer may lead to. */
void spread_objects(struct spread *s, const struct heap *h);
/* Until nothing is left to be followed, or up to a pause. */
void spread_run(struct spread *s);
/* What the block at addr is if it begins with a vtable. */
void spread_object(struct spread *s, vaddr addr);
/* Can nothing change what the block at addr is taken for? */
bool spread_settled(const struct spread *s, vaddr addr);
/*
 * Is a variable, or a part of the block of this number, still to be read?  Yes
 * where too much waits to tell.
 */
bool spread_waits(const struct spread *s, uint32_t block);

/* Adds the name of what a block is, to be shown. */
void spread_name(struct spread *s, uint32_t type, struct str *ret);

#endif
