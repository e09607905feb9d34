/* SPDX-License-Identifier: MIT */
/*
 * Words that nobody will read again, although they look like references.
 *
 * A program does not clear what it gives back.  So a stale pointer stays in
 * the last word of a block that was asked for a few bytes less, and in the
 * space of a string that its text does not fill.  One such word can keep a
 * lost list of thousands alive.  Rules, each with what was seen:
 *
 * *slack*: the last words of a block, if the block is of a class of 50 and
 * more of which fewer than one in ten hold the start of a block there (or what
 * lies just behind it: perl's bodies are pointed to past a header), and as
 * many hold something else that is not zero: a link that is seldom set looks
 * otherwise.  A class is a size and what the block begins with: one address in
 * a program or library, or words of the same two forms; what pads a number of
 * four bytes does not tell, as it is stale, too.  The
 * last word is left over where what was asked for is a multiple of 16, two
 * more where glibc would not split a chunk 16 bytes too large.  Only where all
 * blocks are glibc's: those of jemalloc, tcmalloc, pymalloc and Zend end with
 * what was asked for, as a rule with a member, which one object in ten may use
 * (OpenSSL's sparse arrays in redis, cm_dict of Python's classmethod).
 *
 * *string*: libstdc++'s std::string is a pointer, a length, and 16 bytes that
 * hold a short text, or the capacity and nothing (bits/basic_string.h, gcc 5
 * to 14).  A short text and what lies behind it are no references, nor is the
 * unused half, nor what lies behind the text in its own block.  A zero ends a
 * text in its own block.
 *
 * Neither this rule nor the next one holds in the data of a module.  That is
 * zero at first and no one else's before: what lies in such a place of it is
 * another structure (an entry of Python's type cache is a version, a name and
 * a value, and the next one's version and name: a pointer, no length, a small
 * capacity, a pointer).
 *
 * *tree*: std::map and std::set begin with a word for the comparing function,
 * which has no state as a rule: padding (bits/stl_tree.h, gcc 5 to 14).
 *
 * *spare*: three pointers to a block's start, into it, and to its end are a
 * std::vector; what lies between the last two is unused capacity.  So is much
 * that is in use, such as what a parser has not read yet: this rule is weaker.
 * What lies behind the last one is slack, unless most blocks of the size hold
 * the start of a block there.
 *
 * Within analysis/ only.
 */
#ifndef ANALYSIS_WEAK_H
#define ANALYSIS_WEAK_H

#include "analysis/index.h"
#include "base/types.h"
#include "corewalk/space.h"

/* So many words at a block's end may be slack. */
enum { WEAK_TAIL = 3 };

/* Of blocks, by size and first word. */
struct weak_class {
	uint64_t first;		/* the address, or two enum form */
	uint64_t size;		/* 0: not in use */
	uint32_t blocks;
	/* Of them have in their last word, the one before, ...: */
	uint32_t starts[WEAK_TAIL];	/* the start of a block in use */
	uint32_t others[WEAK_TAIL];	/* anything else but zero */
	uint32_t slack;		/* how many words are; by weak_census_done */
};

enum { WEAK_CLASSES = 1 << 14 };

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

/* A block of which the first n bytes are there. */
struct weak_block {
	const uint8_t *bytes;
	uint64_t n;
	unsigned word;
	uint64_t size;		/* from its start to the next one's */
};

/* Count a block. */
void weak_census_block(struct weak_census *c, const struct weak_block *b);
void weak_census_add(struct weak_census *c, const struct weak_census *other);
/* All have been counted: say what is slack. */
void weak_census_done(struct weak_census *c);

/* What is known of a block's class; NULL if there are too many classes. */
const struct weak_class *weak_class_of(const struct weak_census *c,
				       const struct weak_block *b);
/* Do most blocks of a size end in the start of a block? */
bool weak_size_links(const struct weak_census *c, uint64_t size);

/* A word and what lies around it in its block or root. */
struct weak_word {
	const uint8_t *bytes;	/* of the word */
	vaddr addr;
	uint64_t before, after;	/* bytes there are, the word in after */
};

/*
 * Does the word lie in the space of a std::string and is no reference?  If the
 * text has a block of its own *ret_end gets the address of the byte behind it,
 * which then must be zero; else 0.
 */
bool weak_in_string(const struct index *ix, const struct weak_word *w,
		    vaddr *ret_end);

/*
 * Is it the pointer of a std::string with its text in the block at off, which
 * it points to the start of?
 */
bool weak_string_head(const struct index *ix, const struct weak_word *w,
		      uint64_t off);

/* So many bytes of a block are in use, and so many were asked for. */
struct weak_vector {
	uint64_t used, size;
};
/*
 * Does the head of a std::map's tree follow?  If it is not empty *ret_root
 * gets the root's address: then the word behind that one's first must be the
 * address of the head, which is the one behind w.
 */
bool weak_tree_follows(const struct index *ix, const struct weak_word *w,
		       vaddr *ret_root);

/* Is it the first of a vector's three, with something to be said of it? */
bool weak_vector_head(const struct index *ix, const struct weak_word *w,
		      uint64_t off, struct weak_vector *ret);

#endif
