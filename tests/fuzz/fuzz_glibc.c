/* SPDX-License-Identifier: MIT */
/*
 * A core from its bytes to the heap model and the first analyses.  Seeds are
 * real cores of which tests/fuzz/trim kept what the walk reads.
 *
 * Code: corewalk/(glibc_|alloc_glibc)
 */
#include <stddef.h>
#include <stdint.h>

#include "fuzz/invariants.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_core(data, size);
	return 0;
}
