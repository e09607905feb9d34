/* SPDX-License-Identifier: MIT */
/*
 * Cores of Python programs: see cores.h.
 *
 * Code: corewalk/alloc_pymalloc
 */
#define WALKER "pymalloc"
#include "fuzz/cores.h"
