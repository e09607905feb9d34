/* SPDX-License-Identifier: MIT */
/*
 * What the files that read saved reports share.
 */
#ifndef REPORT_SAVED_IN_H
#define REPORT_SAVED_IN_H

#include <jansson.h>

#include "report/saved.h"

struct saved {
	json_t *root;
	enum saved_kind kind;
	unsigned schema;
};

/* False if the value is not of the column's kind. */
bool saved_set(struct table *t, size_t column, const json_t *value);
/* Bytes that were no UTF-8 stand in hexadecimal under a key of their own. */
bool saved_set_hex(struct table *t, size_t column, const char *key,
		   const json_t *object);

#endif
