/* SPDX-License-Identifier: MIT */
/*
 * How full the arenas of CPython's pymalloc are.  An arena goes back to the
 * system only when no block of it is in use: a few *pin* one that is nearly
 * empty, of which an eighth at most is in use.
 */
#ifndef ANALYSIS_PYARENAS_H
#define ANALYSIS_PYARENAS_H

#include "analysis/standout.h"
#include "corewalk/heap.h"

enum pyarena_fill {
	PYARENA_EMPTY, PYARENA_NEARLY, PYARENA_HALF, PYARENA_MORE,
};
enum { PYARENA_FILLS = 4 };

struct pyarenas {
	uint64_t n, bytes;		/* of all */
	uint64_t fill[PYARENA_FILLS];	/* nothing, to 12 %, to 50 %, above */
	/* In those nearly empty: */
	struct tally pinning;		/* blocks in use */
	uint64_t held;			/* all other bytes */
};

/* After heap_finish(); some ns for each word of planes of pymalloc's. */
void pyarenas_count(struct pyarenas *ret, const struct heap *h);

/* What of that stands out, after standout_init(). */
void pyarenas_say(struct standout *s, const struct heap *h);

#endif
