/* SPDX-License-Identifier: MIT */
/*
 * Where a type has pointers, and what they point to.
 *
 * The members, bases and arrays of a type are laid flat into a list of
 * *fields*.  The containers of the C++ libraries hide what they hold: nodes are
 * declared as pointers to a base without a value, values lie in raw bytes, and
 * vectors keep room that nobody uses.  Rules for them, by the names of their
 * templates, put the real types into the list.
 *
 * Source: libstdc++ of gcc 12, which kept these names and layouts since gcc 5;
 * libc++ 14 with ABI version 1.
 */
#ifndef ANALYSIS_FIELDS_H
#define ANALYSIS_FIELDS_H

#include "corewalk/dwarf_types.h"

enum field_kind {
	FIELD_POINTER,
	FIELD_REPEAT,		/* elements, one after the other */
	FIELD_VECTOR,		/* three pointers: begin, end, end of room */
	FIELD_STRING,		/* of libstdc++: pointer, length, bytes */
	FIELD_LONG_STRING,	/* of libc++: a pointer if a bit says so */
	FIELD_DEQUE,		/* the map and two iterators */
	FIELD_OPTIONAL,		/* a value if the byte behind it says so */
	FIELD_VARIANT,		/* one of several, by a number behind them */
	FIELD_FUNCTION,		/* std::function: a pointer to what it calls */
};

enum field_flag {
	FIELD_IN_UNION = 1 << 0,	/* it may be something else */
	FIELD_NODE = 1 << 1,	/* the type is by a container's rule */
};

struct field {
	uint64_t off;
	uint64_t n;		/* FIELD_REPEAT: elements, 0 to the end of the
				 * block; OPTIONAL, VARIANT: where that byte
				 * is, from the start of the field */
	uint32_t type;		/* pointed to; element; value; the variant */
	uint32_t hint;		/* one of the hints from 1 on; 0 none */
	uint8_t kind, flags;
};

enum { FIELDS_MAX = 4096, FIELDS_MAX_DEPTH = 64 };

struct hints;

/* The fields of a type, when they are known. */
struct fields_of {
	uint32_t first, n;
	bool known;
	bool plain;		/* all are pointers, of 8 bytes, inside it */
};

struct fields {
	struct dwarf_types *t;	/* borrowed */
	const struct hints *hints;	/* borrowed; or NULL */
	struct field *items;	/* owned */
	size_t n, cap;
	struct fields_of *of;	/* owned; by type */
	size_t n_of;
	struct str name;	/* scratch */
	uint64_t steps;		/* that are left for all types */
};

void fields_init(struct fields *f, struct dwarf_types *t,
		 const struct hints *hints);
void fields_fini(struct fields *f);

/* The type of the value in the raw bytes that a type is; 0: it is not such. */
uint32_t fields_raw_value(struct dwarf_types *t, uint32_t type);

/* Makes them known. */
void fields_learn(struct fields *f, uint32_t type);

static inline const struct fields_of *fields_of(struct fields *f,
						uint32_t type)
{
	if (type >= f->n_of || !f->of[type].known)
		fields_learn(f, type);
	return &f->of[type];
}

/* Sorted by offset; valid until the next call. */
static inline const struct field *fields_get(struct fields *f, uint32_t type,
					     size_t *ret_n)
{
	const struct fields_of *of = fields_of(f, type);

	*ret_n = of->n;
	return of->n ? &f->items[of->first] : NULL;
}

#endif
