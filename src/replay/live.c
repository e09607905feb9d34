/* SPDX-License-Identifier: MIT */
#include "replay/live.h"

#include "base/mem.h"

static void allocate(struct live *l, size_t n_slots)
{
	l->n_slots = n_slots;
	l->shift = 64 - (unsigned)__builtin_ctzll(n_slots);
	l->keys = mem_map_huge(n_slots * sizeof(*l->keys));
	l->blocks = mem_map_huge(n_slots * sizeof(*l->blocks));
}

void live_init(struct live *l)
{
	*l = (struct live){ .n = 0 };
	allocate(l, LIVE_SLOTS);
}

void live_fini(struct live *l)
{
	mem_unmap(l->keys, l->n_slots * sizeof(*l->keys));
	mem_unmap(l->blocks, l->n_slots * sizeof(*l->blocks));
	*l = (struct live){ .n = 0 };
}

static size_t free_slot(const struct live *l, uint64_t addr)
{
	size_t i = live_home(l, addr);

	while (l->keys[i])
		i = (i + 1) & (l->n_slots - 1);
	return i;
}

static void grow(struct live *l)
{
	struct live old = *l;

	allocate(l, old.n_slots * 2);
	for (size_t i = 0; i < old.n_slots; i++) {
		size_t to;

		if (!old.keys[i])
			continue;
		to = free_slot(l, old.keys[i] - 1);
		l->keys[to] = old.keys[i];
		l->blocks[to] = old.blocks[i];
	}
	live_fini(&old);
}

struct live_block *live_add(struct live *l, uint64_t addr)
{
	size_t i;

	if (l->n >= l->n_slots / 2)
		grow(l);
	i = free_slot(l, addr);
	l->keys[i] = addr + 1;
	l->n++;
	return &l->blocks[i];
}

/* Those behind it move up, if their home is not behind the hole. */
void live_remove(struct live *l, struct live_block *block)
{
	size_t mask = l->n_slots - 1;
	size_t hole = (size_t)(block - l->blocks);

	for (size_t i = (hole + 1) & mask; l->keys[i]; i = (i + 1) & mask) {
		size_t home = live_home(l, l->keys[i] - 1);

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		l->keys[hole] = l->keys[i];
		l->blocks[hole] = l->blocks[i];
		hole = i;
	}
	l->keys[hole] = 0;
	l->n--;
}

const struct live_block *live_next(const struct live *l, size_t *place)
{
	while (*place < l->n_slots)
		if (l->keys[(*place)++])
			return &l->blocks[*place - 1];
	return NULL;
}
