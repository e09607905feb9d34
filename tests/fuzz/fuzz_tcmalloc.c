/* SPDX-License-Identifier: MIT */
/*
 * Cores of programs with tcmalloc of gperftools: see cores.h.
 *
 * Code: corewalk/(tcmalloc_|alloc_tcmalloc)
 */
#define WALKER "tcmalloc"
#include "fuzz/cores.h"
