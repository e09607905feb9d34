/* SPDX-License-Identifier: MIT */
/*
 * Cores of PHP programs: see cores.h.
 *
 * Code: corewalk/(zend_|alloc_zend)
 */
#define WALKER "zend"
#include "fuzz/cores.h"
