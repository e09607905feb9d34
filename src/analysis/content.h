/* SPDX-License-Identifier: MIT */
/*
 * What a block holds, where that says more than its shape: text, zeros, many
 * words of one kind.  Within analysis/ only.
 */
#ifndef ANALYSIS_CONTENT_H
#define ANALYSIS_CONTENT_H

#include "analysis/shape.h"

enum content {
	CONTENT_NONE,		/* its shape says more */
	CONTENT_ABSENT,		/* it is not in the file */
	CONTENT_ZERO,
	CONTENT_REPEATED,	/* one word over and over */
	CONTENT_TEXT,
	CONTENT_COUNTED_TEXT,
	CONTENT_UTF16,
	CONTENT_PADDED,		/* text, and zeros to the end */
	CONTENT_PIECES,		/* of text, with other bytes between */
	CONTENT_POINTERS,
	CONTENT_NUMBERS,	/* small, of four or eight bytes */
	CONTENT_REALS,
	CONTENT_RANDOM,		/* or compressed */
};
enum { CONTENTS = 13 };

/* "text", "pointers", ... */
const char *content_name(enum content content);
bool content_is_text(enum content content);

/*
 * A block of n usable bytes, of which the first n_there can be read; shape has
 * the kinds of its first words.  Large blocks are looked at in 16 places.
 */
enum content content_of(const struct shape_space *s, const uint8_t *bytes,
			uint64_t n, uint64_t n_there,
			const struct shape *shape);

#endif
