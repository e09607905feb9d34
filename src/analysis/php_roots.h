/* SPDX-License-Identifier: MIT */
/*
 * The roots of a PHP heap, in the order of php_graph.h, and all that is found
 * from them.
 *
 * Within analysis/ only.
 */
#ifndef ANALYSIS_PHP_ROOTS_H
#define ANALYSIS_PHP_ROOTS_H

#include "analysis/php_find.h"
#include "analysis/php_frames.h"
#include "corewalk/zend.h"

/* The collector's list of values that may be roots of garbage. */
struct php_garbage_list {
	vaddr base;		/* of its entries; 0: not found */
	uint32_t n;		/* values that are in it */
	uint32_t first;		/* node of garbage: those behind it are too */
};

void php_roots(struct php_graph *g, const struct php_engine *engine,
	       const struct zend_heap *z, const struct php_frames *frames,
	       struct php_garbage_list *ret);

#endif
