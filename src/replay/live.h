/* SPDX-License-Identifier: MIT */
/*
 * The blocks that are live, by address.
 *
 * What costs time in a table of millions of addresses without order is lines
 * of the cache and branches that nobody can foresee.  So, as in the tables of
 * Abseil and F14, a *bucket* is one line with room for seven blocks, of which
 * it has 32 bits of the hash each and the block's place in an array; all are
 * compared without a branch.  Buckets are half full at most: nearly always the
 * first one has the answer, and where one was full it counts those that had
 * to *pass* on to the next, so that removing leaves no trace.
 *
 * Blocks lie close together, those freed last are used first: a program that
 * frees what it just got touches the same few lines.  50 to 70 bytes a block.
 */
#ifndef REPLAY_LIVE_H
#define REPLAY_LIVE_H

#include "base/types.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Half a cache line. */
struct live_block {
	uint64_t addr;
	uint64_t size;
	uint64_t tick;		/* when it was allocated */
	uint32_t stack;		/* of a free place: the next one, or 0 */
	uint32_t sample;	/* handle of its profile; 0: not sampled */
};

enum {
	LIVE_WAYS = 7,
	LIVE_ALL_WAYS = (2 << LIVE_WAYS) - 2,
	LIVE_BUCKETS = 1 << 12,
};

/*
 * A cache line.  Ways are 1 to LIVE_WAYS, one that is free has hash 0; hash[0]
 * is not used, place[0] says how many blocks passed on.
 */
struct live_bucket {
	uint32_t hash[LIVE_WAYS + 1];
	uint32_t place[LIVE_WAYS + 1];	/* in blocks */
} __attribute__((aligned(64)));

struct live {
	struct live_bucket *buckets;	/* owned */
	struct live_block *blocks;	/* owned; place 0 is not used */
	uint64_t *numbers;	/* owned; of each block's event, or NULL */
	size_t n;
	size_t n_buckets;	/* a power of two, at most 2^32 */
	unsigned shift;		/* from hash to bucket */
	uint32_t n_places, cap_places;
	uint32_t free_place;	/* 0 none */
};

/* numbered: live_number() is wanted. */
void live_init(struct live *l, bool numbered);
void live_fini(struct live *l);

/*
 * Both halves of the product: of one half alone, the multiples of some block
 * sizes lie close together, whatever the factor.  Never 0.
 */
static inline uint32_t live_hash(uint64_t addr)
{
	unsigned __int128 product = (unsigned __int128)(addr + 1) *
				    UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(((uint64_t)(product >> 64) ^ (uint64_t)product) *
			  UINT64_C(0xd6e8feb86659fd93) >> 32) | 1;
}

/* Bits of those of eight words that have this value. */
#ifdef __SSE2__
static inline uint32_t live_equal(const uint32_t words[8], uint32_t value)
{
	const __m128i *half = (const __m128i *)words;
	__m128i all = _mm_set1_epi32((int)value);
	__m128i low = _mm_cmpeq_epi32(_mm_load_si128(half), all);
	__m128i high = _mm_cmpeq_epi32(_mm_load_si128(half + 1), all);
	__m128i both = _mm_packs_epi32(low, high);

	return (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(both, both)) & 255;
}

/*
 * The half line as a whole: processors make a load that is wider than the
 * store before it wait until that is in the cache.
 */
static inline void live_set_hash(struct live_bucket *b, unsigned way,
				 uint32_t hash)
{
	__m128i *half = (__m128i *)b->hash + way / 4;
	__m128i lane = _mm_cmpeq_epi32(_mm_set1_epi32((int)way % 4),
				       _mm_set_epi32(3, 2, 1, 0));
	__m128i value = _mm_and_si128(lane, _mm_set1_epi32((int)hash));

	_mm_store_si128(half, _mm_or_si128(value,
		_mm_andnot_si128(lane, _mm_load_si128(half))));
}
#else
static inline uint32_t live_equal(const uint32_t words[8], uint32_t value)
{
	uint32_t ret = 0;

	for (unsigned i = 0; i < 8; i++)
		ret |= (uint32_t)(words[i] == value) << i;
	return ret;
}

static inline void live_set_hash(struct live_bucket *b, unsigned way,
				 uint32_t hash)
{
	b->hash[way] = hash;
}
#endif

/* Bits of the ways that have this hash. */
static inline uint32_t live_match(const struct live_bucket *b, uint32_t hash)
{
	return live_equal(b->hash, hash);
}

static inline uint32_t live_free_ways(const struct live_bucket *b)
{
	return live_equal(b->hash, 0) & LIVE_ALL_WAYS;
}

/*
 * The line to look at first, and then, some time later, the one it leads to:
 * for __builtin_prefetch(), which gcc 12 drops if it is all that an inline
 * function does.
 */
static inline const void *live_bucket_line(const struct live *l, uint64_t addr)
{
	return &l->buckets[live_hash(addr) >> l->shift];
}

static inline const void *live_block_line(const struct live *l, uint64_t addr)
{
	uint32_t hash = live_hash(addr);
	const struct live_bucket *b = &l->buckets[hash >> l->shift];
	uint32_t ways = live_match(b, hash);
	uint32_t place = b->place[__builtin_ctz(ways | 1u << LIVE_WAYS)];

	/* Without a branch; place 0 if there is none. */
	return &l->blocks[place & -(uint32_t)(ways != 0)];
}

/* NULL if there is none; valid until the next live_add or live_remove. */
static inline struct live_block *live_find(const struct live *l, uint64_t addr)
{
	uint32_t hash = live_hash(addr);
	size_t i = hash >> l->shift;

	for (;; i = (i + 1) & (l->n_buckets - 1)) {
		const struct live_bucket *b = &l->buckets[i];
		uint32_t ways = live_match(b, hash);

		for (; ways; ways &= ways - 1) {
			uint32_t place = b->place[__builtin_ctz(ways)];

			if (l->blocks[place].addr == addr)
				return &l->blocks[place];
		}
		if (!b->place[0])
			return NULL;
	}
}

/* What seldom happens: a larger table. */
void live_grow_buckets(struct live *l);
void live_grow_places(struct live *l);
/* A block that was put into this bucket is no more there. */
void live_unpass(struct live *l, uint32_t hash, size_t bucket);

static inline void live_put(struct live *l, uint32_t hash, uint32_t place)
{
	size_t i = hash >> l->shift;
	uint32_t ways;
	unsigned way;

	while (!(ways = live_free_ways(&l->buckets[i]))) {
		l->buckets[i].place[0]++;
		i = (i + 1) & (l->n_buckets - 1);
	}
	way = (unsigned)__builtin_ctz(ways);
	live_set_hash(&l->buckets[i], way, hash);
	l->buckets[i].place[way] = place;
}

/* addr is not in it.  The block is to be filled, but for addr. */
static inline struct live_block *live_add(struct live *l, uint64_t addr)
{
	uint32_t place = l->free_place;

	if (place) {
		l->free_place = l->blocks[place].stack;
	} else {
		if (l->n_places == l->cap_places)
			live_grow_places(l);
		place = l->n_places++;
	}
	if (__builtin_expect(l->n >= l->n_buckets / 2 * LIVE_WAYS, 0))
		live_grow_buckets(l);
	live_put(l, live_hash(addr), place);
	l->n++;
	l->blocks[place].addr = addr;
	return &l->blocks[place];
}

/*
 * Removes the block of addr.  Returns its place, where its number is until
 * another block is added; 0 if there is none.
 */
static inline uint32_t live_take(struct live *l, uint64_t addr,
				 struct live_block *ret)
{
	uint32_t hash = live_hash(addr), place;
	size_t i = hash >> l->shift;
	struct live_bucket *b;
	uint32_t ways;

	for (;; i = (i + 1) & (l->n_buckets - 1)) {
		b = &l->buckets[i];
		for (ways = live_match(b, hash); ways; ways &= ways - 1) {
			place = b->place[__builtin_ctz(ways)];
			if (l->blocks[place].addr == addr)
				goto found;
		}
		if (!b->place[0])
			return 0;
	}
found:
	*ret = l->blocks[place];
	live_set_hash(b, (unsigned)__builtin_ctz(ways), 0);
	if (__builtin_expect(i != hash >> l->shift, 0))
		live_unpass(l, hash, i);
	l->n--;
	l->blocks[place].stack = l->free_place;
	l->free_place = place;
	return place;
}

/* One that live_find() returned. */
void live_remove(struct live *l, struct live_block *block);

/* The number that the event of a block had, which live_add()'s caller set. */
static inline uint64_t *live_number(const struct live *l,
				    const struct live_block *block)
{
	return &l->numbers[block - l->blocks];
}

/* The blocks, in no order: start with *place = 0; NULL at the end. */
const struct live_block *live_next(const struct live *l, size_t *place);

#endif
