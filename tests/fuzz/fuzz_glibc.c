/* SPDX-License-Identifier: MIT */
/*
 * Cores of programs with malloc of glibc: see cores.h.
 *
 * Code: corewalk/(glibc_|alloc_glibc)
 */
#define WALKER "glibc"
#include "fuzz/cores.h"
