/* SPDX-License-Identifier: MIT */
/*
 * What commands that write a report share: the options that shape it, and the
 * conditions of --fail-if.
 */
#ifndef CMD_REPORT_H
#define CMD_REPORT_H

#include "cmd.h"
#include "report/filter.h"
#include "report/report.h"

struct report_args {
	const char *only;
	const char *rows;
	const char *sort;
	bool bytes;
	bool csv;
	bool redact;
	struct list fail_if;
};
/* Without --only and --fail-if, whose help names words of the command. */
enum { REPORT_SHAPE_OPTIONS = 5 };
extern const struct option report_shape_options[REPORT_SHAPE_OPTIONS];

void report_args_fini(struct report_args *a);

/* All but the sections; ret->kind is set. */
bool report_args_shape(const struct report_args *a,
		       const struct common *common,
		       struct report_options *ret, struct err *err) MUST_CHECK;
/* CSV and --sort are of one section. */
bool report_args_check(const struct report_args *a,
		       const struct report_options *options, struct err *err)
	MUST_CHECK;

struct conditions {
	struct filter *filters;		/* owned */
	size_t n;
};

bool conditions_compile(struct conditions *c, const struct list *list,
			const struct column *columns, size_t n_columns,
			struct err *err) MUST_CHECK;
void conditions_fini(struct conditions *c);
/* Does any hold?  cells by column. */
bool conditions_hold(const struct conditions *c, const struct cell *cells);

#endif
