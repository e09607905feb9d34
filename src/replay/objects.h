/* SPDX-License-Identifier: MIT */
/*
 * Which object is at an address: a table of live blocks, address to number.
 * Open addressing, at most half full, so that finding costs one line of cache
 * most of the time.  A number is never 0.
 */
#ifndef REPLAY_OBJECTS_H
#define REPLAY_OBJECTS_H

#include "base/types.h"

struct object_slot {
	vaddr addr;
	uint64_t number;	/* 0: free */
};

struct objects {
	struct object_slot *slots;	/* owned, by mem_map */
	size_t size, used;
};

void objects_init(struct objects *o);
void objects_fini(struct objects *o);

/* Replaces what was there. */
void objects_put(struct objects *o, vaddr addr, uint64_t number);
/* 0 if there is none; take forgets it. */
uint64_t objects_find(const struct objects *o, vaddr addr);
uint64_t objects_take(struct objects *o, vaddr addr);

#endif
