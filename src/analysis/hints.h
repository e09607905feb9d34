/* SPDX-License-Identifier: MIT */
/*
 * Hints of the user: what pointers point to that C declares as void *.
 *
 * A file of lines; heapcore-hints(5) has the format.  A *hint* says of one
 * member of one type what it points to, perhaps under conditions.  Several
 * hints for a member are tried in the order of the file.
 *
 * Reading is strict: a line that cannot be understood is an error.  A name
 * that the program does not have is none, since programs differ by release:
 * hints_resolve() counts those hints.
 */
#ifndef ANALYSIS_HINTS_H
#define ANALYSIS_HINTS_H

#include "analysis/fields.h"
#include "base/err.h"

enum {
	HINTS_MAX_BYTES = 1 << 20,
	HINTS_MAX = 1 << 14,
	HINTS_MAX_LINE = 4096,
	HINT_CONDITIONS = 4,
};

enum hint_kind {
	HINT_TEXT,		/* bytes; it may point behind a header */
	HINT_ONE,		/* one, or an array that fits its block */
	HINT_COUNTED,		/* so many as a member says */
	HINT_INSIDE,		/* a member of the type: subtract its place */
};

/* A number in a structure. */
struct hint_number {
	uint64_t off;
	uint8_t size;		/* bytes */
	uint8_t bit, bits;	/* of a bit field; bits 0: it is none */
};

struct hint_condition {
	const char *path;	/* borrowed from hints.text */
	struct hint_number of;
	uint64_t value;
	bool differs;		/* it must not be that value */
};

struct hint {
	enum hint_kind kind;
	unsigned line;
	/* As written; borrowed from hints.text. */
	const char *owner, *path, *target, *inner, *counter;
	struct hint_condition when[HINT_CONDITIONS];
	unsigned n_when;
	bool tail;		/* bytes follow the structure */

	/* When resolved. */
	bool fits;		/* to the program: all names are there */
	uint32_t type;		/* of owner */
	uint64_t off;		/* of the member in it */
	uint32_t to;		/* of target */
	uint64_t inside;	/* of inner in target */
	struct hint_number count;
	uint32_t next;		/* another one of this member; 0 none */
};

struct hints {
	char *text;		/* owned; cut into words */
	struct hint *items;	/* owned; 0 is none */
	size_t n, cap;
	size_t n_unknown;	/* with names that nobody describes */
	unsigned first_unknown;	/* the line of the first */
};

/* path is "-" never; false with the line in the message. */
bool hints_read(struct hints *h, const char *path, struct err *err) MUST_CHECK;
/* The same of bytes in memory; name is for messages. */
bool hints_parse(struct hints *h, const char *bytes, size_t n,
		 const char *name, struct err *err) MUST_CHECK;
void hints_fini(struct hints *h);

/* Look the names up. */
void hints_resolve(struct hints *h, struct dwarf_types *t);

/* Of the fields of a type at off, those that there is a hint for. */
void hints_apply(const struct hints *h, uint32_t type, uint64_t off,
		 struct field *fields, size_t n);

/* The number, from the bytes of its structure; false if they do not reach. */
bool hint_number(const struct hint_number *n, const uint8_t *bytes,
		 uint64_t size, uint64_t *ret);

/* Do its conditions hold for a structure of these bytes? */
bool hint_holds(const struct hint *hint, const uint8_t *bytes, uint64_t size);

#endif
