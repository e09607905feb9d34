/* SPDX-License-Identifier: MIT */
/*
 * For those who make the tables of a comparison: how a row of a list becomes
 * one of a table.
 */
#ifndef REPORT_COMPARE_ROWS_H
#define REPORT_COMPARE_ROWS_H

#include "report/compare.h"

enum diff_section {
	DIFF_TARGETS,		/* JSON only */
	DIFF_TOTALS,		/* JSON only */
	DIFF_WHERE,
	DIFF_CHANGED,
	DIFF_ARENAS,
	DIFF_LEAKS,
	DIFF_CLASSES,
	DIFF_TYPES,
	DIFF_PHP,
	DIFF_NOTES,		/* JSON only */
};
enum { DIFF_SECTIONS = 10 };

/*
 * An amount has three columns: old, new, change.  Of the second kind, text
 * shows the change alone, of the third nothing.
 */
#define AMOUNT(at, key, unit, type, flag, last)				\
	[at] = COLUMN(key "old" unit, "old", type, .flags = flag,	\
		      .width = 10),					\
	[(at) + 1] = COLUMN(key "new" unit, "new", type, .flags = flag,	\
			    .width = 10),				\
	[(at) + 2] = COLUMN(key "change" unit, last, CHANGE,		\
			    .flags = COLUMN_SUM, .width = 10)
#define HIDDEN COLUMN_NO_TEXT
#define BYTES_ALL(at, key) \
	AMOUNT(at, key, "_bytes", BYTES, COLUMN_SUM, "change")
#define BYTES_CHANGE(at, key, title) \
	AMOUNT(at, key, "_bytes", BYTES, COLUMN_SUM | HIDDEN, title)
#define BYTES_DATA(at, key)						\
	[at] = COLUMN(key "old_bytes", "", BYTES, .flags = HIDDEN),	\
	[(at) + 1] = COLUMN(key "new_bytes", "", BYTES, .flags = HIDDEN), \
	[(at) + 2] = COLUMN(key "change_bytes", "", CHANGE, .flags = HIDDEN)
#define COUNT_DATA(at, key)						\
	[at] = COLUMN(key "old", "", COUNT, .flags = HIDDEN),		\
	[(at) + 1] = COLUMN(key "new", "", COUNT, .flags = HIDDEN),	\
	[(at) + 2] = COLUMN(key "change", "", CHANGE_COUNT, .flags = HIDDEN)
#define COUNT_CHANGE(at, key, title)					\
	[at] = COLUMN(key "old", "", COUNT, .flags = HIDDEN),		\
	[(at) + 1] = COLUMN(key "new", "", COUNT, .flags = HIDDEN),	\
	[(at) + 2] = COLUMN(key "change", title, CHANGE_COUNT,		\
			    .flags = COLUMN_SUM, .width = 10)

/* An amount of a list, and where it goes. */
struct measure {
	unsigned from, at;
	bool ranks;		/* the row's place depends on it */
};

/* How far the row moved: the largest of its changes that rank. */
uint64_t set_measures(struct table *t, const struct compare *c,
		      enum compare_list list, size_t pair,
		      const struct measure *m, size_t n);
void set_label(struct table *t, size_t column, const struct compare *c,
	       enum compare_list list, size_t pair, size_t from);

/* A table without any change says nothing, unless it was asked for. */
bool is_idle(const struct report *r, unsigned section, uint64_t moved);
void drop_last(struct report *r);

/* compare_php.c */
void compare_build_php(struct report *r, const struct compare *c);

#endif
