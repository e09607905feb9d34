/* SPDX-License-Identifier: MIT */
/*
 * What the blocks of a ZendMM heap are: strings, arrays and their elements,
 * references, objects by class.  By their shape alone, no root is needed:
 * Zend/zend_types.h of PHP 7.3 to 8.6.
 */
#ifndef ANALYSIS_PHP_H
#define ANALYSIS_PHP_H

#include "analysis/census.h"

/* A namer of the census. */
void php_name(struct types *t, const struct census_input *in);

#endif
