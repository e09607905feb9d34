/* SPDX-License-Identifier: MIT */
/*
 * Cores of OCaml programs: see cores.h.
 *
 * Code: corewalk/(ocaml|runtime)
 */
#define WALKER NULL	/* runtimes come behind all */
#include "fuzz/cores.h"
