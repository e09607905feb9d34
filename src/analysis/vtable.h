/* SPDX-License-Identifier: MIT */
/*
 * What an object is, by an address that it begins with: the class of a C++
 * object, the symbol that a C structure points to.
 *
 * C++ (Itanium ABI, 2.5 and 2.9.4): the first word of an object points into
 * its class's vtable, behind two words: the *offset to top*, which is 0 where
 * the object begins, and the address of the class's type_info.  That has a
 * vtable too, and then the address of the class's mangled name.  Its class is
 * one of three of the library, and *its* type_info says so: that closes the
 * circle without any symbol.
 */
#ifndef ANALYSIS_VTABLE_H
#define ANALYSIS_VTABLE_H

#include "analysis/types.h"
#include "base/str.h"
#include "corewalk/space.h"
#include "corewalk/symbol.h"

/*
 * The class of objects that begin with the word: TYPE_VTABLE by a symbol of
 * its vtable, else TYPE_RTTI by its type_info; TYPE_UNKNOWN if it is no
 * vtable.  ret gets the name, demangled.
 */
enum type_known vtable_class(struct space *sp, struct symbols *symbols,
			     vaddr word, struct str *ret);

/* The same with the mangled name that type_info has: "3Foo", "N2ns3FooE". */
enum type_known vtable_mangled(struct space *sp, struct symbols *symbols,
			       vaddr word, struct str *ret);

/*
 * The variable that the word points into, or the function it is the start of,
 * as "{&close_session, ...}".
 */
bool vtable_symbol(struct symbols *symbols, vaddr word, struct str *ret);

#endif
