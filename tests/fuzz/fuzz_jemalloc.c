/* SPDX-License-Identifier: MIT */
/*
 * Cores of programs with jemalloc: see cores.h.
 *
 * Code: corewalk/(jemalloc_|alloc_jemalloc)
 */
#define WALKER "jemalloc"
#include "fuzz/cores.h"
