/* SPDX-License-Identifier: MIT */
#include "replay/live.h"

#include "base/mem.h"

enum { FIRST_PLACES = 1 << 14, ALL_WAYS = (2 << LIVE_WAYS) - 2 };

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

static void put(struct live *l, uint32_t hash, uint32_t place)
{
	size_t i = hash >> l->shift;
	unsigned way;

	while (l->buckets[i].hash[0] == ALL_WAYS) {
		l->buckets[i].place[0]++;
		i = (i + 1) & (l->n_buckets - 1);
	}
	way = (unsigned)__builtin_ctz(ALL_WAYS & ~l->buckets[i].hash[0]);
	l->buckets[i].hash[0] |= 1u << way;
	l->buckets[i].hash[way] = hash;
	l->buckets[i].place[way] = place;
}

static void grow_buckets(struct live *l)
{
	struct live_bucket *old = l->buckets;
	size_t n = l->n_buckets;

	allocate_buckets(l, n * 2);
	for (size_t i = 0; i < n; i++)
		for (uint32_t ways = old[i].hash[0]; ways; ways &= ways - 1) {
			unsigned way = (unsigned)__builtin_ctz(ways);

			put(l, old[i].hash[way], old[i].place[way]);
		}
	mem_unmap(old, n * sizeof(*old));
}

static void grow_places(struct live *l)
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

static uint32_t new_place(struct live *l)
{
	uint32_t place = l->free_place;

	if (place) {
		l->free_place = l->blocks[place].stack;
		return place;
	}
	if (l->n_places == l->cap_places)
		grow_places(l);
	return l->n_places++;
}

struct live_block *live_add(struct live *l, uint64_t addr)
{
	uint32_t place = new_place(l);

	if (l->n >= l->n_buckets / 2 * LIVE_WAYS)
		grow_buckets(l);
	put(l, live_hash(addr), place);
	l->n++;
	l->blocks[place].addr = addr;
	return &l->blocks[place];
}

void live_remove(struct live *l, struct live_block *block)
{
	uint32_t place = (uint32_t)(block - l->blocks);
	size_t i = live_hash(block->addr) >> l->shift;
	uint32_t way;

	for (;; i = (i + 1) & (l->n_buckets - 1)) {
		struct live_bucket *b = &l->buckets[i];

		way = live_equal(b->place, place) & b->hash[0];
		b->hash[0] &= ~way;
		if (way)
			break;
		b->place[0]--;
	}
	l->n--;
	block->stack = l->free_place;
	l->free_place = place;
}

const struct live_block *live_next(const struct live *l, size_t *place)
{
	while (*place < l->n_buckets * LIVE_WAYS) {
		const struct live_bucket *b = &l->buckets[*place / LIVE_WAYS];
		size_t way = (*place)++ % LIVE_WAYS + 1;

		if (b->hash[0] >> way & 1)
			return &l->blocks[b->place[way]];
	}
	return NULL;
}
