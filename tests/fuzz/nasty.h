/* SPDX-License-Identifier: MIT */
/*
 * Numbers that break things, some of them made of what was there.
 */
#ifndef FUZZ_NASTY_H
#define FUZZ_NASTY_H

#include <stdint.h>

#include "base/types.h"

static uint64_t splitmix(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static uint64_t nasty(uint64_t *rng, uint64_t was)
{
	static const uint64_t words[] = {
		0, 1, 2, 4, 8, 16, 32, 0x21, 0x1000, 0x20ff1, 0x7fffffff,
		0x80000000, 0xffffffff, 0x100000000, 0x7fffffffffff,
		0x800000000000, 0x7fffffffffffffff, 0x8000000000000000,
		0xfffffffffffff000, 0xffffffffffffffff,
	};
	uint64_t r = splitmix(rng);

	switch (r >> 32 & 7) {
	case 0:
		return words[r % countof(words)];
	case 1:
		return was + (r % 64 - 32) * 16;
	case 2:
		return was ^ UINT64_C(1) << (r & 63);
	case 3:
		return was + (r & 0xffff) - 0x8000;
	case 4:
		return -was;
	case 5:
		return was << (r & 31);
	case 6:
		return r & 0xfffff0;
	}
	return splitmix(rng);
}

#endif
