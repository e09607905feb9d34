/* SPDX-License-Identifier: MIT */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void err_start(struct err *err, enum err_kind kind)
{
	err->kind = kind;
	err->hint[0] = '\0';
}

bool err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
{
	va_list ap;

	err_start(err, kind);
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	return false;
}

bool err_system(struct err *err, const char *fmt, ...)
{
	const char *why = strerror(errno);
	size_t used;
	va_list ap;

	err_start(err, ERR_SYSTEM);
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	used = strlen(err->msg);
	snprintf(err->msg + used, sizeof(err->msg) - used, ": %s", why);
	return false;
}

bool err_hint(struct err *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->hint, sizeof(err->hint), fmt, ap);
	va_end(ap);
	return false;
}

bool err_prefix(struct err *err, const char *fmt, ...)
{
	char rest[sizeof(err->msg)];
	size_t used;
	va_list ap;

	memcpy(rest, err->msg, sizeof(rest));
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	used = strlen(err->msg);
	snprintf(err->msg + used, sizeof(err->msg) - used, ": %s", rest);
	return false;
}
