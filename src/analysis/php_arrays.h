/* SPDX-License-Identifier: MIT */
/*
 * Arrays of a PHP heap, by the place where they are.
 *
 * Within analysis/ only.
 */
#ifndef ANALYSIS_PHP_ARRAYS_H
#define ANALYSIS_PHP_ARRAYS_H

#include "analysis/php_view.h"

/* holds: bytes by node. */
void php_arrays(struct php_request *r, struct php_graph *g,
		const uint64_t *holds);

#endif
