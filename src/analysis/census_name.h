/* SPDX-License-Identifier: MIT */
/*
 * The namer of last resort and of first: classes by vtable, symbols, text, and
 * look-alike blocks, all from one pass (census_scan.h).  Within analysis/ only.
 */
#ifndef ANALYSIS_CENSUS_NAME_H
#define ANALYSIS_CENSUS_NAME_H

#include "analysis/census.h"

/* Runs first: no block has a type yet. */
void census_name(struct types *t, const struct census_input *in);

#endif
