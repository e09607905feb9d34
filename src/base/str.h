/* SPDX-License-Identifier: MIT */
/*
 * A byte string that grows.  text is always zero-ended, never NULL after the
 * first call, and owned by the struct.
 */
#ifndef BASE_STR_H
#define BASE_STR_H

#include "base/types.h"

struct str {
	char *text;		/* owned */
	size_t len;		/* without the zero */
	size_t cap;
};

void str_init(struct str *s);
void str_fini(struct str *s);

void str_clear(struct str *s);
void str_add(struct str *s, const void *bytes, size_t n);
void str_adds(struct str *s, const char *text);
void str_addc(struct str *s, char c);
void str_printf(struct str *s, const char *fmt, ...) PRINTF_LIKE(2, 3);

/*
 * Bytes of the target, made harmless for a terminal: printable ASCII as it
 * is, everything else, and a backslash, as \xHH.
 */
void str_add_escaped(struct str *s, const void *bytes, size_t n);
/* The same for names with backslashes of their own, as PHP's: those stay. */
void str_add_name(struct str *s, const void *bytes, size_t n);

/* Take the text away from the struct; the caller frees it. */
char *str_take(struct str *s);

#endif
