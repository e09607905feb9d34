/* SPDX-License-Identifier: MIT */
/*
 * What of a PHP program stands out, and what can be done about it.
 */
#ifndef ANALYSIS_PHP_SAY_H
#define ANALYSIS_PHP_SAY_H

#include "analysis/php_view.h"
#include "analysis/standout.h"

/* After standout_init(). */
void php_say(struct standout *s, const struct php_view *v);

#endif
