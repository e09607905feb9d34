/* SPDX-License-Identifier: MIT */
#include "replay/stock.h"

#include "base/mem.h"

/* The ring grows if more than one in MANY is live. */
enum { FIRST_RING = 1 << 12, MAX_RING = 1 << 24, MANY = 4 };

/* Beyond these no number is followed by another. */
#define NUMBERS_END (UINT64_C(1) << 63)

void stock_init(struct stock *s, bool ring, bool numbered)
{
	*s = (struct stock){ .n = 0 };
	live_init(&s->table, numbered);
	if (!ring || numbered)
		return;
	s->mask = FIRST_RING - 1;
	s->ring = mem_map_huge(FIRST_RING * sizeof(*s->ring));
	for (uint64_t i = 0; i < FIRST_RING; i++)
		s->ring[i].stack = STOCK_FREE;
}

void stock_fini(struct stock *s)
{
	live_fini(&s->table);
	if (s->ring)
		mem_unmap(s->ring, (s->mask + 1) * sizeof(*s->ring));
	*s = (struct stock){ .n = 0 };
}

/* The number whose place it is. */
static uint64_t number_of(const struct stock *s, uint64_t place)
{
	return s->next - 1 - ((s->next - 1 - place) & s->mask);
}

static void move_out(struct stock *s, uint64_t place)
{
	struct live_block b;

	if (s->ring[place].stack == STOCK_FREE)
		return;
	stock_get(&s->ring[place], number_of(s, place), &b);
	s->n--;
	stock_add_table(s, &b);
	s->ring[place].stack = STOCK_FREE;
}

/* The new half is that of the numbers that have one bit more. */
static void grow_ring(struct stock *s)
{
	size_t old = s->mask + 1;

	s->ring = mem_map_grow(s->ring, old * sizeof(*s->ring),
			       2 * old * sizeof(*s->ring));
	for (uint64_t i = 0; i < old; i++) {
		struct stock_block *from = &s->ring[i];
		struct stock_block *to = &s->ring[i + old];

		to->stack = STOCK_FREE;
		if (!(number_of(s, i) & old))
			continue;
		*to = *from;
		from->stack = STOCK_FREE;
	}
	s->mask = 2 * old - 1;
}

void stock_make_room(struct stock *s)
{
	if (s->n - s->table.n > s->mask / MANY && s->mask < MAX_RING - 1)
		grow_ring(s);
	move_out(s, s->next & s->mask);
}

/*
 * Numbers up to addr are left out; what is too old then, moves out.  Each
 * number is looked at once, however often this happens.
 */
static void skip_to(struct stock *s, uint64_t addr)
{
	uint64_t size = s->mask + 1;
	uint64_t end = addr >= size ? min_u64(s->next, addr - size + 1) : 0;

	s->from = max_u64(s->from, s->next - min_u64(s->next, size));
	for (; s->from < end; s->from++)
		move_out(s, s->from & s->mask);
	if (s->from == s->next)
		s->from = addr;
	s->next = addr;
}

/* Not the next number, or one that does not fit. */
void stock_add_other(struct stock *s, const struct live_block *b)
{
	bool fits = stock_fits(b);

	if (b->addr >= s->next && b->addr < NUMBERS_END) {
		if (b->addr > s->next)
			skip_to(s, b->addr);
		if (fits) {
			stock_add(s, b);
			return;
		}
		/* Its place stays free. */
		move_out(s, s->next & s->mask);
		s->next++;
	}
	/* One that was reallocated in its place? */
	if (fits && b->addr >= s->from && stock_in_reach(s, b->addr)) {
		stock_put(&s->ring[b->addr & s->mask], b);
		s->n++;
	} else {
		stock_add_table(s, b);
	}
}

bool stock_next(const struct stock *s, struct stock_walk *w)
{
	size_t size = s->ring ? s->mask + 1 : 0, rest;
	const struct live_block *b;

	while (w->place < size) {
		uint64_t place = w->place++;

		if (s->ring[place].stack == STOCK_FREE)
			continue;
		stock_get(&s->ring[place], number_of(s, place), &w->block);
		return true;
	}
	rest = w->place - size;
	b = live_next(&s->table, &rest);
	w->place = rest + size;
	if (!b)
		return false;
	w->block = *b;
	if (s->table.numbers)
		w->number = *live_number(&s->table, b);
	return true;
}
