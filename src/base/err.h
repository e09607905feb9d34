/* SPDX-License-Identifier: MIT */
/*
 * Why an operation of ours could not be done.
 *
 * The caller owns the struct, on its stack: reporting an error allocates
 * nothing.  The message is one line without newline or program name and is
 * written where the fact is known: the thing, what is wrong, the number.
 * Something wrong in the *target* is not an error but a finding: heap_note().
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/types.h"

enum err_kind {
	ERR_NONE,
	ERR_USAGE,		/* the command line is wrong */
	ERR_SYSTEM,		/* a system call failed */
	ERR_FORMAT,		/* the input is not what it claims to be */
	ERR_UNSUPPORTED,
};

struct err {
	enum err_kind kind;
	char msg[240];		/* one line */
	char hint[640];		/* what to do, or what there is; may be empty */
};

/* Always false, so that a failing function can return it. */
bool err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
	PRINTF_LIKE(3, 4);

/* As err_set, with ": " and the text of errno behind the message. */
bool err_system(struct err *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Say what the user can do about it.  Always false. */
bool err_hint(struct err *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Put "thing: " in front of the message.  Always false. */
bool err_prefix(struct err *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
