/* SPDX-License-Identifier: MIT */
/*
 * RFC 4180, with LF lines as every Unix tool wants them.  Text is raw: the
 * bytes of the target as they are, quoted where the RFC says so.
 */
#include <inttypes.h>
#include <string.h>

#include "report/table.h"

static bool needs_quotes(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strchr(",\"\r\n", text[i]))
			return true;
	return false;
}

static void write_text(struct out *o, const char *text, size_t n)
{
	if (!needs_quotes(text, n)) {
		out_add(o, text, n);
		return;
	}
	out_addc(o, '"');
	for (size_t i = 0; i < n; i++) {
		if (text[i] == '"')
			out_addc(o, '"');
		out_addc(o, text[i]);
	}
	out_addc(o, '"');
}

static void write_cell(const struct table *t, const struct column *column,
		       const struct cell *c, struct out *o)
{
	switch (column->type) {
	case COLUMN_TEXT:
		write_text(o, table_text(t, c), c->text.len);
		break;
	case COLUMN_SHARE:
		out_printf(o, "%.4f", c->share);
		break;
	case COLUMN_SECONDS:
		out_printf(o, "%.*f", column->flags & COLUMN_FINE ? 6 : 3,
			   c->share);
		break;
	case COLUMN_ADDR:
		out_printf(o, "0x%" PRIx64, c->u);
		break;
	case COLUMN_FLAG:
		out_adds(o, c->u ? "true" : "false");
		break;
	case COLUMN_SIGNED:
	case COLUMN_CHANGE:
	case COLUMN_CHANGE_COUNT:
		out_printf(o, "%" PRId64, c->i);
		break;
	case COLUMN_COUNT:
	case COLUMN_BYTES:
		out_printf(o, "%" PRIu64, c->u);
		break;
	}
}

void columns_write_csv(const struct column *columns, size_t n, struct out *o)
{
	bool first = true;

	for (size_t i = 0; i < n; i++) {
		if (columns[i].flags & COLUMN_NO_DATA)
			continue;
		if (!first)
			out_addc(o, ',');
		out_adds(o, columns[i].key);
		first = false;
	}
	out_addc(o, '\n');
}

static void write_row(const struct table *t, size_t place, struct out *o)
{
	bool first = true;

	for (size_t i = 0; i < t->n_columns; i++) {
		struct cell c = table_cell(t, place, i);

		if (t->columns[i].flags & COLUMN_NO_DATA)
			continue;
		if (!first)
			out_addc(o, ',');
		if (c.known)
			write_cell(t, &t->columns[i], &c, o);
		first = false;
	}
	out_addc(o, '\n');
}

void table_write_csv(const struct table *t, struct out *o)
{
	columns_write_csv(t->columns, t->n_columns, o);
	for (size_t i = 0; i < t->n_rows; i++)
		write_row(t, i, o);
}
