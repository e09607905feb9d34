/* SPDX-License-Identifier: MIT */
/*
 * Strings of a PHP heap of which there are several equal ones, each in a block
 * of its own.
 *
 * Within analysis/ only.
 */
#ifndef ANALYSIS_PHP_STRINGS_H
#define ANALYSIS_PHP_STRINGS_H

#include "analysis/php_view.h"

void php_strings(struct php_request *r, const struct php_graph *g);

#endif
