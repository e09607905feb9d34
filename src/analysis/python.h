/* SPDX-License-Identifier: MIT */
/*
 * CPython's objects, 3.6 to 3.13 without --disable-gil (object.h): a reference
 * count, then the address of a type object, whose own type's type is itself.
 *
 * Types that are in a library are looked up by its address, as vtables are.
 * A *class* is a type object in a block: made by a program's class statement,
 * or by a library at run time.  docs/types.md has the evidence.
 */
#ifndef ANALYSIS_PYTHON_H
#define ANALYSIS_PYTHON_H

#include "analysis/census.h"
#include "base/str.h"

/* "python str", of the type object at an address of a library. */
bool python_type(struct space *sp, vaddr type, struct str *ret);

/*
 * Names instances of classes, "python __main__.Node", of 3.8 and later; runs
 * when those of types in libraries have their names.  In a nameless space only
 * names that stand in a library are told, the others are addresses.
 */
void python_name(struct types *t, const struct census_input *in);

#endif
