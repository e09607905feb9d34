/* SPDX-License-Identifier: MIT */
#include <inttypes.h>

#include "report/table.h"

/*
 * Length of the UTF-8 sequence at p, 0 if it is none: too long for its value,
 * a surrogate, above U+10FFFF or cut off (RFC 3629, section 4).
 */
static size_t utf8_len(const unsigned char *p, size_t n)
{
	unsigned char low = 0x80;
	unsigned char high = 0xbf;
	size_t len;

	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	len = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (p[0] == 0xe0)
		low = 0xa0;
	if (p[0] == 0xed)
		high = 0x9f;
	if (p[0] == 0xf0)
		low = 0x90;
	if (p[0] == 0xf4)
		high = 0x8f;
	if (n < len || p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

static unsigned utf8_value(const unsigned char *p, size_t len)
{
	static const unsigned char first[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	unsigned c = p[0] & first[len];

	for (size_t i = 1; i < len; i++)
		c = c << 6 | (p[i] & 0x3fu);
	return c;
}

/*
 * Characters that a terminal or an editor might act upon, when somebody looks
 * at the document in one: C0, DEL and C1, separators of lines, and those that
 * change the direction of text (Unicode, UAX #9).
 */
static bool is_control(unsigned c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c ||
	       c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069);
}

static void write_char(struct out *o, const unsigned char *p, size_t len)
{
	unsigned c = utf8_value(p, len);

	if (len == 1 && (c == '"' || c == '\\')) {
		out_addc(o, '\\');
		out_addc(o, (char)c);
	} else if (len == 1 && c == '\n') {
		out_adds(o, "\\n");
	} else if (len == 1 && c == '\t') {
		out_adds(o, "\\t");
	} else if (is_control(c)) {
		out_printf(o, "\\u%04x", c);
	} else {
		out_add(o, p, len);
	}
}

bool json_write_string(struct out *o, const char *text, size_t n)
{
	const unsigned char *p = (const unsigned char *)text;
	bool damaged = false;

	out_addc(o, '"');
	while (n) {
		size_t len = utf8_len(p, n);

		if (len) {
			write_char(o, p, len);
		} else {
			out_adds(o, "\\ufffd");
			damaged = true;
			len = 1;
		}
		p += len;
		n -= len;
	}
	out_addc(o, '"');
	return damaged;
}

static void write_hex(struct out *o, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out_printf(o, "%02x", (unsigned char)text[i]);
}

static void write_text(const struct table *t, const struct column *column,
		       const struct cell *c, struct out *o)
{
	const char *text = table_text(t, c);

	if (!json_write_string(o, text, c->text.len))
		return;
	out_printf(o, ", \"%s_hex\": \"", column->key);
	write_hex(o, text, c->text.len);
	out_addc(o, '"');
}

static void write_value(const struct table *t, const struct column *column,
			const struct cell *c, struct out *o)
{
	if (column->type == COLUMN_TEXT)
		write_text(t, column, c, o);
	else if (column->type == COLUMN_ADDR)
		out_printf(o, "\"0x%" PRIx64 "\"", c->u);
	else
		cell_write_number(column, c, o);
}

/* The row's cells, without the bracket at the end. */
static const char *write_members(const struct table *t, size_t place,
				 struct out *o)
{
	const char *separator = "{ ";

	for (size_t i = 0; i < t->n_columns; i++) {
		const struct column *column = &t->columns[i];
		struct cell c = table_cell(t, place, i);

		if (!c.known || column->flags & COLUMN_NO_DATA)
			continue;
		out_printf(o, "%s\"%s\": ", separator, column->key);
		write_value(t, column, &c, o);
		separator = ", ";
	}
	return separator;
}

static void write_object(const struct table *t, size_t place, struct out *o);

static const char *write_inner(const struct table *t, size_t place,
			       const char *separator, struct out *o)
{
	size_t first, end;

	table_inner_rows(t, place, &first, &end);
	out_printf(o, "%s\"%s\": [", separator, t->inner->name);
	for (size_t i = first; i < end; i++) {
		out_adds(o, i > first ? ",\n      " : "\n      ");
		write_object(t->inner, i, o);
	}
	out_addc(o, ']');
	return ", ";
}

static void write_object(const struct table *t, size_t place, struct out *o)
{
	const char *separator = write_members(t, place, o);

	if (t->inner)
		separator = write_inner(t, place, separator, o);
	out_adds(o, *separator == '{' ? "{ }" : " }");
}

static void write_rows(const struct table *t, struct out *o)
{
	out_adds(o, "[");
	for (size_t i = 0; i < t->n_rows; i++) {
		out_adds(o, i ? ",\n    " : "\n    ");
		write_object(t, i, o);
	}
	out_adds(o, t->n_rows ? "\n  ]" : "]");
}

void table_write_json_object(const struct table *t, const struct table *rows,
			     struct out *o)
{
	out_printf(o, "  \"%s\": ", t->name);
	out_printf(o, "%s\"rows\": ", write_members(t, 0, o));
	write_rows(rows, o);
	out_adds(o, " }");
}

void table_write_ndjson(const struct table *t, size_t place, struct out *o)
{
	write_object(t, place, o);
	out_addc(o, '\n');
}

void table_write_json(const struct table *t, struct out *o)
{
	out_printf(o, "  \"%s\": ", t->name);
	if (t->form == TABLE_OBJECT && t->n_rows) {
		write_object(t, 0, o);
		return;
	}
	write_rows(t, o);
}
