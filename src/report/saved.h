/* SPDX-License-Identifier: MIT */
/*
 * Reports that were saved as JSON, read back into tables.
 *
 * A table brings its columns: what the report has under their keys becomes
 * cells, what it lacks or has as something else stays unknown.  So a report of
 * another release is read as far as it goes.
 *
 * Reading needs some ten times the size of the file, which is bounded; so is
 * the number of values in it.
 */
#ifndef REPORT_SAVED_H
#define REPORT_SAVED_H

#include "base/err.h"
#include "base/types.h"
#include "report/table.h"

enum {
	SAVED_SCHEMA = 1,	/* the number that is wholly understood */
	SAVED_MAX_BYTES = 64 << 20,
	SAVED_MAX_VALUES = 4 << 20,
};

/* What a document is; of others "it is other JSON" is said. */
enum saved_kind {
	SAVED_REPORT,		/* of analyze, or of watch's looks */
	SAVED_REPLAY,
	SAVED_DIFF,
	SAVED_KINDS
};

struct saved;

/*
 * path "-" is standard input.  A file that does not hold JSON is no error:
 * then *ret is NULL and somebody else may try it.  What can be read only once
 * is taken for a report.
 */
bool saved_open(const char *path, struct saved **ret, struct err *err)
	MUST_CHECK;
/* The same from memory, which may go away after. */
struct saved *saved_open_memory(const char *name, const char *text, size_t n,
				struct err *err) MUST_CHECK;
/* Any kind of document, not only a report of memory. */
bool saved_open_any(const char *path, struct saved **ret, struct err *err)
	MUST_CHECK;
struct saved *saved_open_any_memory(const char *name, const char *text,
				    size_t n, struct err *err) MUST_CHECK;
void saved_close(struct saved *s);

enum saved_kind saved_kind(const struct saved *s);

/* "heapcore-report/2" is 2. */
unsigned saved_schema(const struct saved *s);
bool saved_complete(const struct saved *s);

/*
 * Add the rows of the list or object that has the table's name; false if
 * there is none.  *ret_odd counts values of a wrong kind.
 */
bool saved_rows(const struct saved *s, struct table *t, size_t *ret_odd);

/* The version of the library that reads JSON, for --version. */
const char *saved_library(void);

#endif
