/* SPDX-License-Identifier: MIT */
/*
 * The tables of a saved report as they are, whatever release wrote it.
 *
 * Columns are made of the keys that rows have, by the rules of
 * heapcore-json(5): what ends in _bytes is bytes, and so on.  So nothing has to
 * be known of a table to show it.  Nothing of the file is trusted: names are
 * escaped, their number and that of cells is bounded.
 */
#ifndef REPORT_SAVED_TABLES_H
#define REPORT_SAVED_TABLES_H

#include "report/report.h"
#include "report/saved.h"

struct saved_table;

struct saved_tables {
	const struct saved *saved;	/* borrowed */
	struct saved_table *tables;	/* owned; in the order of the file */
	size_t n, cap;
};

enum {
	SAVED_MAX_TABLES = 48,
	SAVED_MAX_COLUMNS = 60,
	SAVED_MAX_CELLS = 8 << 20,	/* of a table */
};

void saved_tables_init(struct saved_tables *s, const struct saved *saved);
void saved_tables_fini(struct saved_tables *s);

/* The key it has; a list beside sums has that of its object, and comes next. */
const char *saved_table_name(const struct saved_tables *s, size_t i);
/* A new table of the report with its rows.  The columns are borrowed. */
void saved_table_add(const struct saved_tables *s, size_t i, struct report *r,
		     unsigned section);

/* "core.1234: appd, of heapcore 0.1.0, complete": escaped. */
void saved_head(const struct saved *s, const char *path, struct str *ret);

#endif
