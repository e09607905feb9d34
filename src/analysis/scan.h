/* SPDX-License-Identifier: MIT */
/*
 * Which words point into an address range: at the speed of memory.
 */
#ifndef ANALYSIS_SCAN_H
#define ANALYSIS_SCAN_H

#include "base/types.h"

/* At most so many words in one call. */
enum { SCAN_WORDS = 512 };

struct scan_hits {
	uint16_t pos[SCAN_WORDS];	/* which word */
	uint64_t off[SCAN_WORDS];	/* its value minus base */
};

/*
 * The words of bytes whose value lies in [base, base + span), n words of 8 or
 * 4 bytes; bytes may be unaligned.  How many there are.
 */
size_t scan_words(const uint8_t *bytes, size_t n, unsigned word,
		  uint64_t base, uint64_t span, struct scan_hits *ret);

#endif
