/* SPDX-License-Identifier: MIT */
#include "base/rand.h"

/* SplitMix64 of Steele, Lea and Flood. */
static uint64_t split_mix(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

void rand_init(struct rand *r, uint64_t seed, uint64_t stream)
{
	/*
	 * Both are mixed before they meet, so that (1, 2) and (2, 1), or a
	 * seed and a stream one apart, have nothing in common.
	 */
	uint64_t a = split_mix(&seed);
	uint64_t state = a ^ rand_rotate(split_mix(&stream), 32);

	for (size_t i = 0; i < countof(r->s); i++)
		r->s[i] = split_mix(&state);
}
