/* SPDX-License-Identifier: MIT */
/*
 * Sentences and advice see the same figures.  Within standout.c and advise.c.
 */
#ifndef ANALYSIS_STANDOUT_IN_H
#define ANALYSIS_STANDOUT_IN_H

#include "analysis/release.h"
#include "analysis/standout.h"
#include "base/num.h"

enum { ARENAS_MIN = 4 };	/* thread arenas that are many */

struct judge {
	struct standout *s;
	const struct standout_input *in;
	uint64_t total;		/* private bytes that are stored */
	/* Of glibc's arenas other than the main ones: */
	uint64_t thread_arenas, orphans, thread_free, thread_trimmable;
	uint64_t largest_free;	/* of one of them */
};

struct size {
	char text[NUM_MAX];
};

struct size size(uint64_t bytes);

/* Much of the process, and much at all? */
bool is_much(const struct judge *j, uint64_t bytes);

bool is_live(const struct space *sp);
/* " resident", where that is not all of it: a sentence names its basis. */
const char *basis(const struct judge *j, enum where_row row);
/* Its name; "glibc" if it is not known. */
const char *allocator_of(const struct judge *j, const struct arena *a);
/* Of the allocator whose call would release most. */
struct release largest_release(const struct judge *j);
/* "2001 blocks of 208 bytes", the kind that holds the most. */
void pin_text(const struct fragment_pin *p, char *ret, size_t n);

void set_text(char **text, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Adds what is to be done to what stands out. */
void advise(struct judge *j);

#endif
