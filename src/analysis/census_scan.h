/* SPDX-License-Identifier: MIT */
/*
 * One pass over the blocks in use that sorts them by what they look like, with
 * two threads.  Within analysis/ only.
 *
 * A *key* is what can be told of a block without looking elsewhere: what it
 * holds or its shape, and the addresses among its first words that could be a
 * class.  Keys are counted and numbered as they appear.
 *
 * Memory: 80 bytes for each key, at most SCAN_KEYS a thread; when there are
 * more, blocks of new kinds share one.
 */
#ifndef ANALYSIS_CENSUS_SCAN_H
#define ANALYSIS_CENSUS_SCAN_H

#include "analysis/census.h"
#include "analysis/content.h"

enum { SCAN_KEYS = 1 << 17 };

struct scan_key {
	vaddr first;	/* the first word if it is in a module; else 0 */
	vaddr type;	/* the word behind a reference count, likewise */
	struct shape shape;	/* if content is CONTENT_NONE or first is set */
	enum content content;
	uint64_t blocks, bytes;
};

struct scan_keys {
	struct scan_key *items;	/* owned; 0 is for those that are too many */
	size_t n, cap;
	uint32_t *slots;	/* owned */
	size_t n_slots;
};

/*
 * of[] of the types gets, in place of a type, the number of a block's key.
 * The caller frees the keys with scan_keys_fini().
 */
void scan_blocks(struct scan_keys *keys, uint32_t *of,
		 const struct census_input *in);
void scan_keys_fini(struct scan_keys *keys);

#endif
