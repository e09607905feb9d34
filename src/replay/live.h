/* SPDX-License-Identifier: MIT */
/*
 * The blocks that are live, by address: open addressing with linear probing,
 * at most half full, so that a look costs one or two cache lines, which can be
 * fetched ahead.  40 bytes a slot.
 *
 * Keys lie apart from the rest: probing reads eight in a line.
 */
#ifndef REPLAY_LIVE_H
#define REPLAY_LIVE_H

#include "base/types.h"

struct live_block {
	uint64_t size;
	uint64_t tick;		/* when it was allocated */
	uint64_t number;	/* of the event that did that, from 1 */
	uint32_t stack;
	uint32_t sample;	/* handle of its profile; 0: not sampled */
};

struct live {
	uint64_t *keys;		/* owned; address + 1, 0: empty */
	struct live_block *blocks;	/* owned */
	size_t n;
	size_t n_slots;		/* a power of two */
	unsigned shift;
};

enum { LIVE_SLOTS = 1 << 14 };

void live_init(struct live *l);
void live_fini(struct live *l);

/* No block lies at the very last address. */
#define LIVE_NO_ADDR UINT64_MAX

static inline size_t live_home(const struct live *l, uint64_t addr)
{
	return (addr + 1) * UINT64_C(0x9e3779b97f4a7c15) >> l->shift;
}

static inline void live_prefetch(const struct live *l, uint64_t addr)
{
	size_t home = live_home(l, addr);

	__builtin_prefetch(&l->keys[home]);
	__builtin_prefetch(&l->blocks[home]);
}

/* NULL if there is none; valid until the next live_add or live_remove. */
static inline struct live_block *live_find(const struct live *l, uint64_t addr)
{
	size_t mask = l->n_slots - 1;

	for (size_t i = live_home(l, addr); l->keys[i]; i = (i + 1) & mask)
		if (l->keys[i] == addr + 1)
			return &l->blocks[i];
	return NULL;
}

/* addr is not in it and not LIVE_NO_ADDR; the block is to be filled. */
struct live_block *live_add(struct live *l, uint64_t addr);

/* One that live_find() returned. */
void live_remove(struct live *l, struct live_block *block);

/* The blocks, in no order: start with *place = 0; NULL at the end. */
const struct live_block *live_next(const struct live *l, size_t *place);

#endif
