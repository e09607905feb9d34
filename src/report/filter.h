/* SPDX-License-Identifier: MIT */
/*
 * Expressions of --filter and --fail-if: terms that must all hold.
 *
 *	size>1k state=tcache arena="glibc 1" !mmapped what~^heap
 *
 * A term is a key of the columns at hand, an operator and a value; a column
 * of type FLAG stands alone; ! in front negates.  Numbers know = != < > <= >=,
 * words = != and ~ (PCRE2).  An unknown cell satisfies only != and !.
 *
 * A term costs a few ns, a match what its pattern costs, bounded by a limit.
 */
#ifndef REPORT_FILTER_H
#define REPORT_FILTER_H

#include "base/err.h"
#include "base/types.h"
#include "report/table.h"

struct filter_term;

struct filter {
	struct filter_term *terms;	/* owned */
	size_t n_terms, cap_terms;
};

/* what names the option in messages: "--filter". */
bool filter_compile(struct filter *f, const char *what, const char *expr,
		    const struct column *columns, size_t n_columns,
		    struct err *err) MUST_CHECK;
void filter_fini(struct filter *f);

/* Does it look at this column? */
bool filter_uses(const struct filter *f, size_t column);

/* cells by column; their text lies in pool. */
bool filter_match(const struct filter *f, const struct cell *cells,
		  const char *pool);

/* The version of PCRE2 in use, for --version. */
const char *filter_library(void);

/* Keep only the rows that match; a row of totals is added up again. */
void table_filter(struct table *t, const struct filter *f);

#endif
