/* SPDX-License-Identifier: MIT */
#include "replay/lifetimes.h"

#include "base/mem.h"

enum {
	FIRST_SIZE = 1 << 12,
	SUB_BITS = 4,		/* 16 buckets for a power of two */
	LINEAR = 2 << SUB_BITS,
};

unsigned life_bucket(uint64_t ticks)
{
	unsigned bit;

	if (ticks < LINEAR)
		return (unsigned)ticks;
	bit = 63 - (unsigned)__builtin_clzll(ticks);
	return LINEAR + ((bit - SUB_BITS - 1) << SUB_BITS) +
	       (unsigned)(ticks >> (bit - SUB_BITS) & ((1 << SUB_BITS) - 1));
}

uint64_t life_bucket_first(unsigned bucket)
{
	unsigned shift;

	if (bucket < LINEAR)
		return bucket;
	bucket -= LINEAR;
	shift = (bucket >> SUB_BITS) + 1;
	return (uint64_t)((1 << SUB_BITS) + (bucket & ((1 << SUB_BITS) - 1)))
	       << shift;
}

uint64_t life_bucket_last(unsigned bucket)
{
	/* Of the last one this is all ones: its next would begin at 2^64. */
	return life_bucket_first(bucket + 1) - 1;
}

void lifetimes_init(struct lifetimes *l)
{
	l->size = FIRST_SIZE;
	l->used = 0;
	l->slots = mem_map(l->size * sizeof(*l->slots));
}

void lifetimes_fini(struct lifetimes *l)
{
	mem_unmap(l->slots, l->size * sizeof(*l->slots));
	*l = (struct lifetimes){ .slots = NULL };
}

static struct life_slot *find(const struct lifetimes *l, uint64_t key)
{
	size_t i = key * UINT64_C(0x9e3779b97f4a7c15) >> 20;

	for (;; i++) {
		struct life_slot *s = &l->slots[i & (l->size - 1)];

		if (!s->key || s->key == key)
			return s;
	}
}

static void grow(struct lifetimes *l)
{
	struct life_slot *old = l->slots;
	size_t size = l->size;

	l->size *= 2;
	l->slots = mem_map(l->size * sizeof(*l->slots));
	for (size_t i = 0; i < size; i++)
		if (old[i].key)
			*find(l, old[i].key) = old[i];
	mem_unmap(old, size * sizeof(*old));
}

struct life_slot *lifetimes_add(struct lifetimes *l, uint32_t site,
				uint64_t ticks)
{
	uint64_t key = ((uint64_t)site << LIFE_BUCKET_BITS |
			life_bucket(ticks)) + 1;
	struct life_slot *s = find(l, key);

	if (s->key)
		return s;
	if (++l->used > l->size / 2) {
		grow(l);
		s = find(l, key);
	}
	s->key = key;
	return s;
}

double life_quantile(const struct life_count *counts, size_t n, double q,
		     bool censored)
{
	double left = 0, survive = 1;

	for (size_t i = 0; i < n; i++)
		left += (double)(counts[i].freed +
				 (censored ? counts[i].alive : 0));
	for (size_t i = 0; i < n; i++) {
		const struct life_count *c = &counts[i];

		if (c->freed) {
			survive *= 1 - (double)c->freed / left;
			left -= (double)c->freed;
		}
		/* 1 - q and products of shares are rounded. */
		if (c->freed && survive <= 1 - q + 1e-12)
			return ((double)life_bucket_first(c->bucket) +
				(double)life_bucket_last(c->bucket)) / 2;
		if (censored)
			left -= (double)c->alive;
	}
	return -1;
}
