/* SPDX-License-Identifier: MIT */
/*
 * What the blocks in use are: one table of types, and a type for each block.
 *
 * Vocabulary.  A *type* is a name, such as a class or "text", and how it is
 * *known*: enum type_known, in rising order of trust.  Several *namers* fill
 * the table, in any order: a block takes a type that is trusted more than the
 * one it has, and never one that is trusted as much or less.  Two types of one
 * name that are known in different ways are two types.
 *
 * A block is its number in analysis/index.h.  Type 0 is "not known".
 *
 * Cost.  Four bytes for each number of the index, resident where blocks have
 * a type: 3.5 % of a heap of 1.15 GB in 9.8 million blocks.  Setting and
 * getting a type is one access; adding one looks its name up.
 */
#ifndef ANALYSIS_TYPES_H
#define ANALYSIS_TYPES_H

#include "base/types.h"

/* A later one wins over an earlier one. */
enum type_known {
	TYPE_UNKNOWN,
	TYPE_SHAPE,		/* look-alike blocks: a guess without a name */
	TYPE_CONTENT,		/* all zero, only pointers, ... */
	TYPE_TEXT,		/* it holds a string */
	TYPE_SYMBOL,		/* it begins with the address of a symbol */
	TYPE_HINT,		/* a hint of the user's, which it fits */
	TYPE_CONTAINER,		/* a container's rule of the C++ library */
	TYPE_DWARF,		/* debug information, from a variable on */
	TYPE_RUNTIME,		/* an interpreter's object and its type */
	TYPE_RTTI,		/* a C++ object, by its type information */
	TYPE_VTABLE,		/* a C++ object, by its vtable's symbol */
};
enum { TYPE_KNOWN = 11 };

/* "shape", "vtable": for JSON and --filter. */
const char *type_known_name(enum type_known known);

struct type {
	const char *name;	/* owned by the table; safe for a terminal */
	uint64_t size;		/* of one object; 0 not known */
	enum type_known known;
	vaddr source;		/* the vtable, symbol, ...; 0 none */
	const char *hidden;	/* owned; in a redacted report; NULL: name */
};

/* More types than this become one, "other types". */
enum { TYPES_MAX = 1 << 20 };

struct types {
	struct type *items;	/* owned; 0 is "not known" */
	size_t n, cap;
	uint32_t *slots;	/* owned: hash table by name and known */
	size_t n_slots;
	uint32_t *of;		/* owned: by number of the index */
	uint32_t n_blocks;	/* numbers that there are */
};

/* For an index with numbers below n. */
void types_init(struct types *t, uint32_t n);
void types_fini(struct types *t);

/*
 * The type of that name, known in that way; made if it is new.  What a first
 * call says of size and source stays; a size of 0 is filled in later.  The
 * name is copied, cut off at 4096 bytes, and made harmless for a terminal.
 */
uint32_t types_add(struct types *t, const char *name, enum type_known known,
		   uint64_t size, vaddr source);

/*
 * Its name was made while the program ran: a redacted report has word and the
 * address of the source in its place.
 */
void types_hide(struct types *t, uint32_t type, const char *word);

/*
 * The block has that type, unless what it has is trusted as much or more.
 * May be called by several threads at once for different blocks, while nobody
 * adds types.  Has it the type now?
 */
static inline bool types_set(struct types *t, uint32_t block, uint32_t type)
{
	uint32_t old = t->of[block];

	if (t->items[old].known >= t->items[type].known)
		return old == type;
	t->of[block] = type;
	return true;
}

/* The type of a block; 0 if it is not known. */
static inline uint32_t types_of(const struct types *t, uint32_t block)
{
	return t->of[block];
}

static inline const struct type *types_get(const struct types *t,
					   uint32_t block)
{
	return &t->items[types_of(t, block)];
}

#endif
