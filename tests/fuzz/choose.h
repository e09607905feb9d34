/* SPDX-License-Identifier: MIT */
/*
 * Of the targets of walkers: which input is for what.
 */
#ifndef FUZZ_CHOOSE_H
#define FUZZ_CHOOSE_H

#include "fuzz/invariants.h"

/* Of libFuzzer; seeds are replayed without it. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
	__attribute__((weak));

/*
 * Most inputs are for the one walker only, which is what may hit something
 * new, a few for all that is made of a heap, as are all seeds.
 */
static void choose(const char *walker, const uint8_t *data, size_t size)
{
	uint64_t sum = size, kind;

	for (size_t i = 0; i + 8 <= size; i += 8)
		sum = (sum ^ load_u64(data + i)) * UINT64_C(0x100000001b3);
	kind = sum >> 54;
	just_one = kind && walker ? alloc_by_name(walker) : NULL;
	how_much = kind > 7 ? JUST_WALK : kind ? USUAL : ALL_OF_IT;
	if (!LLVMFuzzerMutate) {
		just_one = NULL;
		how_much = ALL_OF_IT;
	}
}

#endif
