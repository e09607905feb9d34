/* SPDX-License-Identifier: MIT */
#include "analysis/perl.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"

enum {
	HEAD = 24,		/* of a value: body, count, flags, union */
	SLOTS = 170,		/* the first is the arena's own */
	ARENA = SLOTS * HEAD,	/* what perl asks malloc for */
	ROOM = 128,		/* that malloc may give more */
	COUNT_OFF = 8, FLAGS_OFF = 12,
	TYPE_MASK = 0xff,	/* of flags; all of it: the slot is free */
	TYPES = 18,
	LEAST = 2,		/* arenas in a chain; perl starts with three */
};

struct arena_block {
	vaddr addr, next;	/* next: 0 in the last one */
	bool follows;		/* another one leads to it */
	bool met;
};

struct arenas {
	struct arena_block *items;	/* owned; by address */
	size_t n, cap;
};

static bool slot_fits(const uint8_t *slot)
{
	uint32_t flags = load_u32(slot + FLAGS_OFF);

	return flags == TYPE_MASK || (load_u32(slot + COUNT_OFF) &&
				      (flags & TYPE_MASK) < TYPES);
}

/* All of its slots are values, or free. */
static bool is_arena(struct space *sp, vaddr addr)
{
	uint8_t bytes[ARENA];

	if (space_read(sp, addr, bytes, sizeof(bytes)) != sizeof(bytes))
		return false;
	for (size_t i = 1; i < SLOTS; i++)
		if (!slot_fits(bytes + i * HEAD))
			return false;
	return true;
}

/* Is the block one by itself?  The chain is still to be seen. */
static bool looks_like_one(struct space *sp, const struct block *b,
			   vaddr *next)
{
	uint64_t count;

	/* The slots' count, and no flags. */
	return b->state == BLOCK_USED && b->usable >= ARENA &&
	       b->usable < ARENA + ROOM &&
	       space_u64(sp, b->addr + COUNT_OFF, &count) &&
	       count == SLOTS && space_u64(sp, b->addr, next) &&
	       is_arena(sp, b->addr);
}

/* Where few are asked about, the others count only if one of them is one. */
static bool nobody_asks(const struct census_input *in)
{
	uint32_t number = 0;
	struct block b;
	vaddr next;

	if (!in->only)
		return false;
	while (census_next_only(in, &number, &b))
		if (looks_like_one(in->sp, &b, &next))
			return false;
	return true;
}

static void collect(struct arenas *a, const struct census_input *in)
{
	struct heap_iter it;
	struct block b;
	vaddr next;

	heap_iter_init(&it, in->heap);
	while (heap_iter_next(&it, &b))
		if (looks_like_one(in->sp, &b, &next))
			MEM_PUSH(a->items, a->n, a->cap) =
				(struct arena_block){
					.addr = b.addr, .next = next,
				};
}

static struct arena_block *next_of(const struct arenas *a,
				   const struct arena_block *at)
{
	return at->next ? FIND(a->items, a->n, at->next) : NULL;
}

/* How many there are from one on, if all lead to the last one; or 0. */
static size_t chain_length(const struct arenas *a, struct arena_block *at)
{
	size_t n = 0;
	uint64_t last = 1;

	for (; at && !at->met; at = next_of(a, at)) {
		at->met = true;
		last = at->next;
		n++;
	}
	return last ? 0 : n;
}

void perl_name(struct types *t, const struct census_input *in)
{
	struct arenas a = { .n = 0 };

	if (in->sp->word != 8 || nobody_asks(in))
		return;
	collect(&a, in);
	SORT_BY(a.items, a.n, addr);
	for (size_t i = 0; i < a.n; i++) {
		struct arena_block *next = next_of(&a, &a.items[i]);

		if (next)
			next->follows = true;
	}
	for (size_t i = 0; i < a.n; i++) {
		struct arena_block *at = &a.items[i];
		uint32_t type;

		if (at->follows || chain_length(&a, at) < LEAST)
			continue;
		type = types_add(t, "perl SV arenas", TYPE_RUNTIME, ARENA, 0);
		for (; at; at = next_of(&a, at)) {
			uint32_t number = index_find(in->ix, at->addr);

			if (number)
				types_set(t, number, type);
		}
	}
	free(a.items);
}
