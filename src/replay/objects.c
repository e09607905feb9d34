/* SPDX-License-Identifier: MIT */
#include "replay/objects.h"

#include "base/mem.h"

enum { SIZE_FIRST = 4096 };

void objects_init(struct objects *o)
{
	o->size = SIZE_FIRST;
	o->used = 0;
	o->slots = mem_map(o->size * sizeof(*o->slots));
}

void objects_fini(struct objects *o)
{
	mem_unmap(o->slots, o->size * sizeof(*o->slots));
	*o = (struct objects){ .slots = NULL };
}

static size_t home(const struct objects *o, vaddr addr)
{
	return (size_t)(addr * 0x9e3779b97f4a7c15u >> 24) & (o->size - 1);
}

static size_t place(const struct objects *o, vaddr addr)
{
	size_t i = home(o, addr);

	while (o->slots[i].number && o->slots[i].addr != addr)
		i = (i + 1) & (o->size - 1);
	return i;
}

static void grow(struct objects *o)
{
	struct object_slot *old = o->slots;
	size_t old_size = o->size;

	o->size *= 2;
	o->slots = mem_map(o->size * sizeof(*o->slots));
	for (size_t i = 0; i < old_size; i++)
		if (old[i].number)
			o->slots[place(o, old[i].addr)] = old[i];
	mem_unmap(old, old_size * sizeof(*old));
}

void objects_put(struct objects *o, vaddr addr, uint64_t number)
{
	size_t i = place(o, addr);

	o->used += !o->slots[i].number;
	o->slots[i] = (struct object_slot){ addr, number };
	if (o->used * 2 > o->size)
		grow(o);
}

uint64_t objects_find(const struct objects *o, vaddr addr)
{
	return o->slots[place(o, addr)].number;
}

/* Close the hole at i: what would not be found any more moves up. */
static void close_hole(struct objects *o, size_t i)
{
	size_t mask = o->size - 1;

	for (size_t j = (i + 1) & mask; o->slots[j].number;
	     j = (j + 1) & mask) {
		size_t from = (j - home(o, o->slots[j].addr)) & mask;

		if (from < ((j - i) & mask))
			continue;
		o->slots[i] = o->slots[j];
		i = j;
	}
	o->slots[i].number = 0;
	o->used--;
}

uint64_t objects_take(struct objects *o, vaddr addr)
{
	size_t i = place(o, addr);
	uint64_t number = o->slots[i].number;

	if (number)
		close_hole(o, i);
	return number;
}
