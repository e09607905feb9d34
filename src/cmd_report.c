/* SPDX-License-Identifier: MIT */
#include "cmd_report.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"

#define SHAPE(field) offsetof(struct report_args, field)

const struct option report_shape_options[REPORT_SHAPE_OPTIONS] = {
	{ 0, "rows", "N|all", "rows per table [6]", OPTION_VALUE,
	  SHAPE(rows) },
	{ 0, "sort", "COLUMN", "-COLUMN for ascending", OPTION_VALUE,
	  SHAPE(sort) },
	{ 0, "bytes", NULL, "exact bytes instead of K, M, G", OPTION_FLAG,
	  SHAPE(bytes) },
	{ 0, "csv", NULL, "the table of one section as CSV", OPTION_FLAG,
	  SHAPE(csv) },
	{ 0, "redact", NULL, "no content of the process: no bytes,\n"
	  "texts, names of PHP or Python; symbols, types\n"
	  "and the last parts of paths stay", OPTION_FLAG, SHAPE(redact) },
};

void report_args_fini(struct report_args *a)
{
	list_fini(&a->fail_if);
}

static bool set_rows(const char *rows, size_t *ret, struct err *err)
{
	uint64_t n = 6;

	if (rows && !strcmp(rows, "all")) {
		*ret = TABLE_ALL_ROWS;
		return true;
	}
	if (rows && (!num_parse_u64(rows, &n) || !n || n > SIZE_MAX))
		return err_set(err, ERR_USAGE, "--rows: '%.40s' is neither a "
			       "number from 1 on nor all", rows);
	*ret = n;
	return true;
}

bool report_args_shape(const struct report_args *a,
		       const struct common *common,
		       struct report_options *ret, struct err *err)
{
	if (common->json && a->csv)
		return err_set(err, ERR_USAGE,
			       "--json and --csv exclude each other");
	ret->format = common->json ? REPORT_JSON
		      : a->csv ? REPORT_CSV : REPORT_TEXT;
	ret->exact = a->bytes;
	ret->redact = a->redact;
	ret->sort = a->sort;
	return set_rows(a->rows, &ret->rows, err) &&
	       cmd_color(common, &ret->color, err);
}

bool report_args_check(const struct report_args *a,
		       const struct report_options *options, struct err *err)
{
	unsigned section;

	if (report_single_section(options, &section) || (!a->csv && !a->sort))
		return true;
	err_set(err, ERR_USAGE, "--%s needs one section",
		a->csv ? "csv" : "sort");
	return err_hint(err, a->only ? "Name only one with --only." :
			"Name it with --only.");
}

bool conditions_compile(struct conditions *c, const struct list *list,
			const struct column *columns, size_t n_columns,
			struct err *err)
{
	c->filters = mem_zalloc(list->n * sizeof(*c->filters));
	for (size_t i = 0; i < list->n; i++) {
		if (!filter_compile(&c->filters[i], "--fail-if",
				    list->items[i], columns, n_columns, err))
			return false;
		c->n++;
	}
	return true;
}

void conditions_fini(struct conditions *c)
{
	for (size_t i = 0; i < c->n; i++)
		filter_fini(&c->filters[i]);
	free(c->filters);
	*c = (struct conditions){ 0 };
}

bool conditions_hold(const struct conditions *c, const struct cell *cells)
{
	for (size_t i = 0; i < c->n; i++)
		if (filter_match(&c->filters[i], cells, ""))
			return true;
	return false;
}
