/* SPDX-License-Identifier: MIT */
/*
 * The blocks that are live, where an address may be the number of an object.
 *
 * Such numbers only rise, and most blocks are freed soon.  So the last ones
 * are in a *ring*, each at its number modulo the ring's size, where nothing
 * has to be looked for.  A block that lives on when the ring comes to its
 * place again moves to the *table* (live.h); but if many of the ring are live,
 * the ring doubles instead.  In the table are also those that are sampled or
 * very large, and numbers that do not rise.  Where addresses are addresses
 * there is no ring.
 */
#ifndef REPLAY_STOCK_H
#define REPLAY_STOCK_H

#include "replay/live.h"

/* A quarter of a cache line: what is neither sampled nor large. */
struct stock_block {
	uint64_t tick;
	uint32_t size;
	uint32_t stack;		/* STOCK_FREE: none is here */
};
#define STOCK_FREE UINT32_MAX

struct stock {
	struct live table;
	struct stock_block *ring;	/* owned; NULL: there is none */
	uint64_t mask;		/* of its places */
	uint64_t from, next;	/* numbers that may be there: [from, next) */
	size_t n;		/* blocks, of both */
	uint64_t number;	/* if each block has one: of the event of that
				   which is added next, or was taken last */
};

/* ring: addresses are numbers of objects.  numbered: no ring after all. */
void stock_init(struct stock *s, bool ring, bool numbered);
void stock_fini(struct stock *s);

/* What does not happen with each block. */
void stock_add_other(struct stock *s, const struct live_block *b);
void stock_make_room(struct stock *s);

/* Is it a number higher than any before? */
static inline bool stock_is_new(const struct stock *s, uint64_t addr)
{
	return s->ring && addr == s->next;
}

/* Is the place of this number that number's? */
static inline bool stock_in_reach(const struct stock *s, uint64_t addr)
{
	return s->next - 1 - addr <= s->mask;
}

/* Has a block all that is to be known of it? */
static inline bool stock_fits(const struct live_block *b)
{
	return !b->sample && b->size <= UINT32_MAX;
}

static inline void stock_get(const struct stock_block *b, uint64_t addr,
			     struct live_block *ret)
{
	ret->addr = addr;
	ret->size = b->size;
	ret->tick = b->tick;
	ret->stack = b->stack;
	ret->sample = 0;
}

static inline void stock_put(struct stock_block *to,
			     const struct live_block *b)
{
	to->tick = b->tick;
	to->size = (uint32_t)b->size;
	to->stack = b->stack;
}

static inline bool stock_take_table(struct stock *s, uint64_t addr,
				    struct live_block *ret)
{
	uint32_t place = live_take(&s->table, addr, ret);

	if (!place)
		return false;
	if (s->table.numbers)
		s->number = s->table.numbers[place];
	s->n--;
	return true;
}

/* If it is there, it is no more; false if it is not. */
static inline bool stock_take(struct stock *s, uint64_t addr,
			      struct live_block *ret)
{
	struct stock_block *b;

	if (!s->ring)
		return stock_take_table(s, addr, ret);
	b = &s->ring[addr & s->mask];
	if (!stock_in_reach(s, addr) || b->stack == STOCK_FREE)
		return s->table.n && stock_take_table(s, addr, ret);
	stock_get(b, addr, ret);
	b->stack = STOCK_FREE;
	s->n--;
	return true;
}

static inline void stock_add_table(struct stock *s, const struct live_block *b)
{
	struct live_block *to = live_add(&s->table, b->addr);

	*to = *b;
	if (s->table.numbers)
		*live_number(&s->table, to) = s->number;
	s->n++;
}

/* Its address is not there. */
static inline void stock_add(struct stock *s, const struct live_block *b)
{
	uint64_t place = b->addr & s->mask;

	if (!s->ring) {
		stock_add_table(s, b);
		return;
	}
	if (!stock_is_new(s, b->addr) || !stock_fits(b)) {
		stock_add_other(s, b);
		return;
	}
	if (__builtin_expect(s->ring[place].stack != STOCK_FREE, 0)) {
		stock_make_room(s);
		place = b->addr & s->mask;
	}
	stock_put(&s->ring[place], b);
	s->next++;
	s->n++;
}

/*
 * Lines to fetch, first and some time later; without effect, see
 * live_bucket_line().
 */
static inline const void *stock_first_line(const struct stock *s,
					   uint64_t addr)
{
	if (s->ring && addr + s->mask >= s->next)
		return &s->ring[addr & s->mask];
	return live_bucket_line(&s->table, addr);
}

static inline const void *stock_then_line(const struct stock *s,
					  uint64_t addr)
{
	if (s->ring && addr + s->mask >= s->next)
		return &s->ring[addr & s->mask];
	return live_block_line(&s->table, addr);
}

/* Going through the blocks, in no order; starts as all zero. */
struct stock_walk {
	struct live_block block;
	uint64_t number;	/* if each block has one */
	size_t place;
};

/* The next one; false at the end. */
bool stock_next(const struct stock *s, struct stock_walk *w);

#endif
