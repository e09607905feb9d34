/* SPDX-License-Identifier: MIT */
/*
 * Words that nobody will read again, although they look like references.
 *
 * A program does not clear what it gives back.  So a stale pointer stays in
 * the last word of a block that was asked for a few bytes less, and in the
 * space of a string that its text does not fill.  One such word can keep a
 * lost list of thousands alive.  Rules, each with what was seen:
 *
 * *slack*: the last word of a block, if the block is of a class of 50 and
 * more of which fewer than one in ten hold the start of a block there.  A
 * class is a size and what the first word is: an address in a program or
 * library, which is then the same one, or one of a few forms.
 *
 * *string*: libstdc++'s std::string is a pointer, a length, and 16 bytes that
 * hold a short text, or the capacity and nothing (bits/basic_string.h, gcc 5
 * to 14).  A short text and what lies behind it are no references, nor is the
 * unused half, nor what lies behind the text in its own block.
 *
 * *spare*: three pointers to a block's start, into it, and to its end are a
 * std::vector; what lies between the last two is unused capacity.  So is much
 * that is in use, such as what a parser has not read yet: this rule is weaker.
 *
 * Within analysis/ only.
 */
#ifndef ANALYSIS_WEAK_H
#define ANALYSIS_WEAK_H

#include "analysis/index.h"
#include "base/types.h"
#include "corewalk/space.h"

/* Of blocks, by size and first word. */
struct weak_class {
	uint64_t first;		/* the address, or enum first_word */
	uint64_t size;		/* 0: not in use */
	uint32_t blocks;
	uint32_t starts;	/* of them end in the start of a block */
};

enum { WEAK_CLASSES = 1 << 14, WEAK_NO_CLASS = UINT32_MAX };

struct weak_range {
	vaddr start, end;
};

struct weak_census {
	const struct index *ix;
	struct weak_class *classes;	/* owned; WEAK_CLASSES */
	size_t n;
	struct weak_range *code;	/* owned; where modules lie */
	size_t n_code, cap_code;
};

void weak_census_init(struct weak_census *c, const struct index *ix,
		      const struct space *sp);
void weak_census_fini(struct weak_census *c);

/*
 * The class of the block whose first n bytes are there; WEAK_NO_CLASS if
 * there are too many classes.
 */
uint32_t weak_class_of(struct weak_census *c, const uint8_t *bytes,
		       uint64_t n, unsigned word, uint64_t size);
/* Add the counts of another census; *map gets its classes' places here. */
void weak_census_add(struct weak_census *c, const struct weak_census *other,
		     uint32_t *map);
bool weak_class_slack(const struct weak_class *class);

/* A word and what lies around it in its block or root. */
struct weak_word {
	const uint8_t *bytes;	/* of the word */
	vaddr addr;
	uint64_t before, after;	/* bytes there are, the word in after */
};

/* Does the word lie in the space of a std::string and is no reference? */
bool weak_in_string(const struct index *ix, const struct weak_word *w);

/*
 * Is it the pointer of a std::string with its text in the block at off, which
 * it points to the start of?
 */
bool weak_string_head(const struct index *ix, const struct weak_word *w,
		      uint64_t off);

/* Is it the first of a vector's?  Then *ret_used bytes are in use there. */
bool weak_vector_head(const struct index *ix, const struct weak_word *w,
		      uint64_t off, uint64_t *ret_used);

#endif
