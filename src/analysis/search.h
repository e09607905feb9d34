/* SPDX-License-Identifier: MIT */
/*
 * Where a pattern is in memory, and in which blocks.
 *
 * A pattern is PCRE2's, of bytes.  It is matched against each block apart,
 * so that ^ and $ are a block's first and last byte and no match goes over a
 * block's end; other memory is matched mapping by mapping.  What was never
 * touched is not looked at, and no match goes over a hole.  Empty matches do
 * not count.
 *
 * A pattern that backtracks without end gives up in a block after so many
 * steps, and altogether after SEARCH_GIVE_UP blocks.
 *
 * Time: for a pattern that begins with a literal about that of reading memory,
 * and 20 ns for each block, in two threads.
 */
#ifndef ANALYSIS_SEARCH_H
#define ANALYSIS_SEARCH_H

#include "base/err.h"
#include "base/progress.h"
#include "base/types.h"
#include "corewalk/heap.h"
#include "corewalk/space.h"

enum search_in {
	SEARCH_BLOCKS,		/* in use */
	SEARCH_HEAP,		/* in any state */
	SEARCH_ALL,		/* and memory that is in no block */
};

enum { SEARCH_GIVE_UP = 100 };

struct search_pattern;		/* compiled */

/* NULL, with words for the user, if it is none. */
struct search_pattern *search_compile(const char *regex, struct err *err)
	MUST_CHECK;
/* Of bytes in hexadecimal: "deadbeef", "de ad be ef". */
struct search_pattern *search_compile_hex(const char *hex, struct err *err)
	MUST_CHECK;
void search_pattern_free(struct search_pattern *p);

struct search_hit {
	vaddr addr;
	uint64_t n;
	const uint8_t *bytes;	/* borrowed from the space */
	bool in_block;
	struct block block;
};

struct search {
	struct search_hit *hits;	/* owned; the first by address */
	size_t n;
	uint64_t matches;	/* all, those not kept too */
	uint64_t matched_bytes;
	uint64_t blocks;	/* with a match */
	uint64_t bytes;		/* looked at */
	uint64_t gave_up;	/* places where it took too many steps */
	bool ended;		/* there were too many of these */
};

/* Keeps at most limit hits; p may be NULL. */
void search_init(struct search *s, const struct search_pattern *pattern,
		 const struct space *sp, const struct heap *h,
		 enum search_in in, size_t limit, struct progress *p);
void search_fini(struct search *s);

#endif
