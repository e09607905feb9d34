/* SPDX-License-Identifier: MIT */
/*
 * Strings in memory: does a block hold one, and where does it end?
 *
 * Printable are ASCII from blank to tilde, tab, newline and return, and well
 * formed UTF-8 of two to four bytes but for the control characters from U+0080
 * on.  UTF-16 is known by the form that Western text has: a printable byte and
 * a zero, again and again.
 */
#ifndef ANALYSIS_TEXT_H
#define ANALYSIS_TEXT_H

#include "base/types.h"

enum text_kind {
	TEXT_NONE,
	TEXT_PLAIN,	/* ASCII or UTF-8 from the first byte on */
	TEXT_COUNTED,	/* behind a header that has its length */
	TEXT_UTF16,	/* little-endian */
};

struct text {
	enum text_kind kind;
	uint64_t off;		/* of its first byte in the block */
	uint64_t len;		/* bytes, without the zero that ends it */
	bool ended;		/* by a zero; else it fills the block */
};

/* Shorter ones are words that are printable by chance. */
enum { TEXT_MIN = 4 };

/* How many bytes from bytes on are printable, at most n. */
uint64_t text_run(const uint8_t *bytes, uint64_t n);

/*
 * The string that a block of n usable bytes holds, of which the first n_there
 * can be read.  It fills at least half of the block, of a small one a quarter:
 * then it is what the block is for.  A header is at most 24 bytes, and in the
 * last of them it has the length in 1, 2, 4 or 8 bytes, or as redis's sds does
 * (sds.h of redis 3.2 to 7).
 */
bool text_find(const uint8_t *bytes, uint64_t n, uint64_t n_there,
	       struct text *ret);

#endif
