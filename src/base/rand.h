/* SPDX-License-Identifier: MIT */
/*
 * A seedable generator of random numbers: xoshiro256++ of Blackman and Vigna,
 * its state filled by SplitMix64.  Same seed and stream, same numbers, on
 * every machine; stream k is the same however many streams there are.
 */
#ifndef BASE_RAND_H
#define BASE_RAND_H

#include "base/types.h"

struct rand {
	uint64_t s[4];
};

/* Streams of one seed are independent of each other. */
void rand_init(struct rand *r, uint64_t seed, uint64_t stream);

static inline uint64_t rand_rotate(uint64_t x, unsigned by)
{
	return x << by | x >> (64 - by);
}

static inline uint64_t rand_u64(struct rand *r)
{
	uint64_t ret = rand_rotate(r->s[0] + r->s[3], 23) + r->s[0];
	uint64_t t = r->s[1] << 17;

	r->s[2] ^= r->s[0];
	r->s[3] ^= r->s[1];
	r->s[1] ^= r->s[2];
	r->s[0] ^= r->s[3];
	r->s[2] ^= t;
	r->s[3] = rand_rotate(r->s[3], 45);
	return ret;
}

/* Uniform in (0, 1], a multiple of 2^-53. */
static inline double rand_unit(struct rand *r)
{
	return (double)((rand_u64(r) >> 11) + 1) * 0x1p-53;
}

#endif
