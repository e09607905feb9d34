/* SPDX-License-Identifier: MIT */
/*
 * RFC 4180, with LF lines as every Unix tool wants them.  Text is what the
 * text report shows: printable ASCII, other bytes as \xNN, since a table can
 * end up on a terminal, and so quoted only where it has a comma or a quote.
 */
#include <inttypes.h>
#include <string.h>

#include "report/table.h"

/* Of what is no raw text, backslashes are ours. */
static void write_char(struct out *o, const struct column *column, char c)
{
	bool is_raw = column->flags & COLUMN_RAW;

	if (c < 0x20 || c >= 0x7f || (c == '\\' && is_raw))
		out_printf(o, "\\x%02x", (unsigned char)c);
	else
		out_addc(o, c);
}

static void write_text(struct out *o, const struct column *column,
		       const char *text, size_t n)
{
	bool quoted = memchr(text, ',', n) || memchr(text, '"', n);

	if (quoted)
		out_addc(o, '"');
	for (size_t i = 0; i < n; i++) {
		if (text[i] == '"')
			out_addc(o, '"');
		write_char(o, column, text[i]);
	}
	if (quoted)
		out_addc(o, '"');
}

void cell_write_number(const struct column *column, const struct cell *c,
		       struct out *o)
{
	switch (column->type) {
	case COLUMN_TEXT:
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

static void write_cell(const struct table *t, const struct column *column,
		       const struct cell *c, struct out *o)
{
	if (column->type == COLUMN_TEXT)
		write_text(o, column, table_text(t, c), c->text.len);
	else
		cell_write_number(column, c, o);
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
