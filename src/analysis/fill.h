/* SPDX-License-Identifier: MIT */
/*
 * What was written over a damaged word: text, one byte over and over, an
 * address.  Within analysis/ only.
 */
#ifndef ANALYSIS_FILL_H
#define ANALYSIS_FILL_H

#include "analysis/damage.h"

/* What the word at d->addr is part of; only if d->has_value. */
void fill_find(struct damage_case *d, struct space *sp);

#endif
