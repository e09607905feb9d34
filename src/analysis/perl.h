/* SPDX-License-Identifier: MIT */
/*
 * Perl's arenas of scalars: blocks of malloc's that hold the heads of all its
 * values, 169 each.  docs/allocators/runtimes.md has the evidence.
 */
#ifndef ANALYSIS_PERL_H
#define ANALYSIS_PERL_H

#include "analysis/census.h"

/* Names those blocks.  Only 64-bit processes. */
void perl_name(struct types *t, const struct census_input *in);

#endif
