/* SPDX-License-Identifier: MIT */
/*
 * A table from words to numbers, neither of which is 0: most numbers are an
 * item's place in an array and 1.  A look-up costs a few steps; the table is
 * at most half full, and is never iterated, so that its order cannot be seen.
 * One that is all zeros is empty.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/types.h"

struct map {
	uint64_t *keys;		/* owned */
	uint32_t *values;	/* owned */
	size_t n, cap;
};

void map_fini(struct map *m);

/* 0 if key is not there. */
uint32_t map_get(const struct map *m, uint64_t key);
void map_put(struct map *m, uint64_t key, uint32_t value);
/* That of key, 0 if it is new, to be set; valid until the next call. */
uint32_t *map_at(struct map *m, uint64_t key);

#endif
