/* SPDX-License-Identifier: MIT */
#include "replay/live.h"

#include "base/mem.h"

enum { FIRST_PLACES = 1 << 14 };

static void allocate_buckets(struct live *l, size_t n)
{
	l->n_buckets = n;
	l->shift = 32 - (unsigned)__builtin_ctzll(n);
	l->buckets = mem_map_huge(n * sizeof(*l->buckets));
}

void live_init(struct live *l, bool numbered)
{
	*l = (struct live){ .n_places = 1, .cap_places = FIRST_PLACES };
	allocate_buckets(l, LIVE_BUCKETS);
	l->blocks = mem_map_huge(FIRST_PLACES * sizeof(*l->blocks));
	if (numbered)
		l->numbers = mem_map(FIRST_PLACES * sizeof(*l->numbers));
}

void live_fini(struct live *l)
{
	mem_unmap(l->buckets, l->n_buckets * sizeof(*l->buckets));
	mem_unmap(l->blocks, l->cap_places * sizeof(*l->blocks));
	if (l->numbers)
		mem_unmap(l->numbers, l->cap_places * sizeof(*l->numbers));
	*l = (struct live){ .n = 0 };
}

void live_grow_buckets(struct live *l)
{
	struct live_bucket *old = l->buckets;
	size_t n = l->n_buckets;

	allocate_buckets(l, n * 2);
	for (size_t i = 0; i < n; i++)
		for (unsigned way = 1; way <= LIVE_WAYS; way++)
			if (old[i].hash[way])
				live_put(l, old[i].hash[way],
					 old[i].place[way]);
	mem_unmap(old, n * sizeof(*old));
}

void live_grow_places(struct live *l)
{
	size_t old = l->cap_places, n = old * 2;

	l->blocks = mem_map_grow(l->blocks, old * sizeof(*l->blocks),
				 n * sizeof(*l->blocks));
	if (l->numbers)
		l->numbers = mem_map_grow(l->numbers,
					  old * sizeof(*l->numbers),
					  n * sizeof(*l->numbers));
	l->cap_places = (uint32_t)n;
}

void live_unpass(struct live *l, uint32_t hash, size_t bucket)
{
	for (size_t i = hash >> l->shift; i != bucket;
	     i = (i + 1) & (l->n_buckets - 1))
		l->buckets[i].place[0]--;
}

void live_remove(struct live *l, struct live_block *block)
{
	struct live_block gone;

	(void)live_take(l, block->addr, &gone);
}

const struct live_block *live_next(const struct live *l, size_t *place)
{
	while (*place < l->n_buckets * LIVE_WAYS) {
		const struct live_bucket *b = &l->buckets[*place / LIVE_WAYS];
		size_t way = (*place)++ % LIVE_WAYS + 1;

		if (b->hash[way])
			return &l->blocks[b->place[way]];
	}
	return NULL;
}
