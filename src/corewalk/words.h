/* SPDX-License-Identifier: MIT */
/*
 * For walkers that find an allocator by its structure: the words of a range
 * that are not zero, in order.  What a process reserved and did not touch is
 * passed over; what is read is paid from a budget, so that a core which names
 * one range many times costs no more than it is long.
 */
#ifndef COREWALK_WORDS_H
#define COREWALK_WORDS_H

#include "corewalk/space.h"

enum { WORDS_BUFFER = 64 * 1024 };

struct words {
	struct space *sp;	/* borrowed */
	vaddr at, end;
	uint64_t buf[WORDS_BUFFER / 8];
	size_t i, n;
	uint64_t piece;		/* bytes read at once */
	uint64_t *budget;	/* of bytes to be read; borrowed */
};

/* piece is at most WORDS_BUFFER; small if few words may be looked at. */
void words_init(struct words *w, struct space *sp, vaddr start, vaddr end,
		uint64_t piece, uint64_t *budget);
/* The next one, of 8 bytes: its address and value; false at the end. */
bool words_next(struct words *w, vaddr *addr, uint64_t *value);

/*
 * Writable memory of a module and the bss behind it, as far as they join:
 * the next such range from segment *i on; false if there is none.
 */
bool words_module_range(struct space *sp, const struct module *m, size_t *i,
			vaddr *lo, vaddr *hi);

#endif
