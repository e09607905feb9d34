/* SPDX-License-Identifier: MIT */
/*
 * What blocks look like, word by word, and which look alike.
 *
 * Each word of a block has a *kind*.  The kinds of the first SHAPE_WORDS words
 * and the size are its *shape*.  There are thousands of shapes even in a heap
 * of few structures, since null pointers and small numbers come and go; so
 * shapes of one size are *merged*, the most frequent first, if no word speaks
 * against it: zero can be anything, a small number a larger one, that any
 * other; and of eight words one may differ.
 *
 * Within analysis/ only.
 */
#ifndef ANALYSIS_SHAPE_H
#define ANALYSIS_SHAPE_H

#include "analysis/index.h"
#include "base/str.h"
#include "corewalk/space.h"

enum word_kind {
	WORD_ZERO,
	WORD_SMALL,		/* below 2^20 */
	WORD_INT,		/* below 2^32 */
	WORD_HEAP,		/* an address in a heap */
	WORD_MODULE,		/* in a program or library */
	WORD_ADDR,		/* in other memory: a stack, a mapping */
	WORD_TEXT,		/* printable bytes, and zeros behind them */
	WORD_REAL,		/* a double from 2^-63 to 2^64 */
	WORD_OTHER,
};
enum { WORD_KINDS = 9, SHAPE_WORDS = 24, SHAPE_WORDS_IN_U64 = 16 };
/* No mapping that means anything lies below. */
enum { SHAPE_SMALL = 1 << 20 };

struct shape_range {
	vaddr start, end;
	enum word_kind kind;
};

/* What an address can be.  Threads may share one. */
struct shape_space {
	const struct index *ix;	/* borrowed */
	unsigned word;
	struct shape_range *ranges;	/* owned; by address, apart */
	size_t n, cap;
	/* owned; bits by unit of the index: a module has a part of it too */
	uint64_t *shared;
};

void shape_space_init(struct shape_space *s, const struct index *ix,
		      const struct space *sp);
void shape_space_fini(struct shape_space *s);

/* An address outside of heaps; WORD_ZERO if it is in no mapping. */
enum word_kind shape_addr(const struct shape_space *s, uint64_t value);

/* Printable bytes, at least three, and behind them only zeros. */
static inline bool shape_is_text(uint64_t v, unsigned word)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	/* The lowest bit set is that of the first byte that is not. */
	uint64_t odd = (v | (v + ones) | (v - ones * 0x20)) & ones << 7;
	unsigned n = odd ? (unsigned)__builtin_ctzll(odd) / 8 : 8;

	return n >= 3 && (n >= word || !(v >> 8 * n));
}

/* One byte over and over. */
static inline bool shape_is_fill(uint64_t v, unsigned word)
{
	uint64_t all = UINT64_C(0x0101010101010101) * (v & 0xff);

	return v == (word == 4 ? (uint32_t)all : all);
}

static inline enum word_kind shape_word(const struct shape_space *s,
					uint64_t v)
{
	uint64_t off = v - s->ix->base;
	unsigned exponent;

	if (v < SHAPE_SMALL)
		return v ? WORD_SMALL : WORD_ZERO;
	if (off < s->ix->span && s->ix->units[off >> INDEX_UNIT_SHIFT]) {
		uint64_t unit = off >> INDEX_UNIT_SHIFT;

		return s->shared[unit >> 6] >> (unit & 63) & 1 &&
			shape_addr(s, v) == WORD_MODULE ? WORD_MODULE
							: WORD_HEAP;
	}
	if (v < UINT64_C(1) << 47) {
		enum word_kind kind = shape_addr(s, v);

		if (kind != WORD_ZERO)
			return kind;
	}
	if (shape_is_text(v, s->word))
		return WORD_TEXT;
	if (v < UINT64_C(1) << 32)
		return WORD_INT;
	exponent = v >> 52 & 0x7ff;
	return exponent >= 0x3c0 && exponent <= 0x43f ? WORD_REAL
						      : WORD_OTHER;
}

/* Kinds of words, four bits each; larger blocks by powers of two. */
struct shape {
	uint64_t kinds[2];
	uint32_t size;		/* usable bytes, or SHAPE_LARGE | log2 */
	uint32_t words;		/* of kinds */
};
#define SHAPE_LARGE (UINT32_C(1) << 31)
enum { SHAPE_EXACT = 1024 };

static inline enum word_kind shape_kind(const struct shape *s, unsigned i)
{
	return s->kinds[i / SHAPE_WORDS_IN_U64] >>
		(i % SHAPE_WORDS_IN_U64 * 4) & 15;
}

static inline void shape_set(struct shape *s, unsigned i, enum word_kind kind)
{
	s->kinds[i / SHAPE_WORDS_IN_U64] |=
		(uint64_t)kind << (i % SHAPE_WORDS_IN_U64 * 4);
}

uint32_t shape_size(uint64_t usable);

/* Blocks of one shape. */
struct shape_group {
	struct shape shape;
	uint64_t blocks;
	uint32_t key;		/* the caller's */
	uint32_t cluster;	/* by shape_merge(): index in clusters */
};

/* Sorts the groups; returns the clusters, owned by the caller. */
struct shape *shape_merge(struct shape_group *groups, size_t n, size_t *ret_n);

/* "40: ptr ptr num text". */
void shape_name(const struct shape *s, struct str *ret);

#endif
