/* SPDX-License-Identifier: MIT */
/*
 * Names as programmers wrote them: of C++ (Itanium ABI) and Rust, by
 * libiberty.
 */
#ifndef BASE_DEMANGLE_H
#define BASE_DEMANGLE_H

#include "base/str.h"

enum {
	/* A longer name stays as it is; that of a template can be long. */
	DEMANGLE_MAX_IN = 1 << 14,
	/* Some bytes can say a name of very many. */
	DEMANGLE_MAX_OUT = 1 << 16,
};

/*
 * Appends the name, without the types of a function's arguments: "a::B::c".
 * False, and nothing appended, if name is no mangled one.  What comes out is
 * as foreign as what went in: escape it.
 */
bool demangle(const char *name, struct str *ret);

/* The same of a type as typeid().name() has it: "7Session" is "Session". */
bool demangle_type(const char *name, struct str *ret);

#endif
