/* SPDX-License-Identifier: MIT */
/*
 * Tables for people: plain capitals as headings, one unit for each column of
 * sizes, one row that carries what was cut off, 80 columns.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "report/table.h"

enum { LINE = 79, WRAP = 78, BAR_MAX = 24, LABEL_MIN = 20, LAST_MIN = 12,
       RECORD_MIN = 18 };

struct layout {
	const struct table *t;
	const struct text_style *style;
	size_t label;		/* the first column shown */
	size_t n_shown;		/* rows one by one */
	struct cell *more;	/* owned; sums of the rest, or NULL */
	size_t *width;		/* owned; by column, 0: not shown */
	char *unit;		/* owned; by column */
	size_t room;		/* of a line */
	size_t line;		/* sum of the widths */
	uint64_t bar_max;
};

static bool shown(const struct layout *l, size_t column)
{
	return !(l->t->columns[column].flags & COLUMN_NO_TEXT) &&
	       !(l->t->hidden >> column & 1);
}

static bool is_left(const struct column *c)
{
	return c->type == COLUMN_TEXT || c->flags & COLUMN_LEFT;
}

/* A row, the row "N more" or the row of totals. */
static const struct cell *line_at(const struct layout *l, size_t i)
{
	if (i < l->n_shown)
		return table_row_at(l->t, i);
	return i == l->n_shown && l->more ? l->more : l->t->total;
}

static size_t n_lines(const struct layout *l)
{
	return l->n_shown + !!l->more + !!l->t->total;
}

/*
 * Text that is ours has no control characters; should some get in, they do
 * not get out.
 */
static void add_text(struct str *s, const struct column *c, const char *text,
		     size_t n)
{
	if (c->flags & COLUMN_RAW) {
		if (c->flags & COLUMN_BACKSLASH)
			str_add_name(s, text, n);
		else
			str_add_escaped(s, text, n);
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (text[i] == '\\')
			str_addc(s, '\\');
		else
			str_add_escaped(s, text + i, 1);
}

/* "1.80G", and small ones without their word. */
static void format_fitting(char ret[NUM_MAX], uint64_t bytes)
{
	if (bytes < KIB)
		num_format_in(ret, bytes, '\0');
	else
		num_format_size(ret, bytes);
}

static void format_bytes(const struct layout *l, size_t column,
			 uint64_t bytes, char ret[NUM_MAX])
{
	if (l->style->stream && !l->style->exact)
		format_fitting(ret, bytes);
	else
		num_format_in(ret, bytes, l->unit[column]);
}

/* "+1.2M", "-<0.1M", "0". */
static void format_change(const struct layout *l, size_t column,
			  int64_t change, char ret[NUM_MAX])
{
	char size[NUM_MAX];

	format_bytes(l, column, num_abs(change), size);
	snprintf(ret, NUM_MAX, "%s%.*s", change > 0 ? "+" :
		 change < 0 ? "-" : "", NUM_MAX - 2, size);
}

static void format_number(const struct layout *l, size_t column,
			  const struct cell *c, char ret[NUM_MAX])
{
	switch (l->t->columns[column].type) {
	case COLUMN_TEXT:
		break;
	case COLUMN_COUNT:
		snprintf(ret, NUM_MAX, "%" PRIu64, c->u);
		break;
	case COLUMN_BYTES:
		format_bytes(l, column, c->u, ret);
		break;
	case COLUMN_CHANGE:
		format_change(l, column, c->i, ret);
		break;
	case COLUMN_CHANGE_COUNT:
		snprintf(ret, NUM_MAX, "%s%" PRId64, c->i > 0 ? "+" : "",
			 c->i);
		break;
	case COLUMN_SHARE:
		if (l->t->columns[column].flags & COLUMN_SIGN)
			snprintf(ret, NUM_MAX, "%+.1f%%", 100 * c->share);
		else
			num_format_share(ret, c->share);
		break;
	case COLUMN_SECONDS:
		/* One unit for a column that is printed as it grows. */
		if (l->style->stream)
			snprintf(ret, NUM_MAX, "%.1fms", 1000 * c->share);
		else
			snprintf(ret, NUM_MAX, "%.1f s", c->share);
		break;
	case COLUMN_ADDR:
		snprintf(ret, NUM_MAX, "0x%" PRIx64, c->u);
		break;
	case COLUMN_FLAG:
		snprintf(ret, NUM_MAX, "%s", c->u ? "yes" : "no");
		break;
	case COLUMN_SIGNED:
		snprintf(ret, NUM_MAX, "%" PRId64, c->i);
		break;
	}
}

/* "3 other sites", "1 other site", "1 other class" */
static void add_rest(struct str *ret, size_t n, const char *what)
{
	size_t len = strlen(what);

	if (n == 1 && what[len - 1] == 's')
		len -= len > 4 && !strcmp(what + len - 4, "sses") ? 2 : 1;
	str_printf(ret, "%zu %.*s", n, (int)len, what);
}

static void format_cell(const struct layout *l, const struct cell *row,
			size_t column, struct str *ret)
{
	const struct column *c = &l->t->columns[column];
	struct cell cell = row_cell(l->t, row, column);
	char number[NUM_MAX];

	str_clear(ret);
	if (row == l->more && column == l->label) {
		add_rest(ret, l->t->n_rows - l->n_shown, l->t->more);
	} else if (!cell.known) {
		if (row != l->t->total || c->type != COLUMN_TEXT)
			str_addc(ret, '-');
	} else if (c->type == COLUMN_TEXT) {
		add_text(ret, c, table_text(l->t, &cell), cell.text.len);
	} else {
		format_number(l, column, &cell, number);
		str_adds(ret, number);
	}
	if (row == l->more && column != l->label && c->type == COLUMN_TEXT)
		str_clear(ret);
	if ((row == l->more || row == l->t->total) && row &&
	    c->type == COLUMN_TEXT && c->whole && row[c->whole - 1].known) {
		format_number(l, c->whole - 1, &row[c->whole - 1], number);
		str_adds(ret, number);
	}
}

static struct cell *sum_rest(const struct layout *l)
{
	const struct table *t = l->t;
	struct cell *sum;

	if (l->n_shown == t->n_rows)
		return NULL;
	sum = mem_zalloc(t->n_columns * sizeof(*sum));
	for (size_t i = l->n_shown; i < t->n_rows; i++) {
		const struct cell *row = table_row_at(t, i);

		for (size_t k = 0; k < t->n_columns; k++)
			if (t->columns[k].flags & COLUMN_SUM && row[k].known) {
				sum[k].u += row[k].u;
				sum[k].known = true;
			}
	}
	return sum;
}

static uint64_t column_max(const struct layout *l, size_t column)
{
	bool change = l->t->columns[column].type == COLUMN_CHANGE;
	uint64_t max = 0;

	for (size_t i = 0; i < n_lines(l); i++) {
		const struct cell *c = &line_at(l, i)[column];

		if (c->known)
			max = max_u64(max, change ? num_abs(c->i) : c->u);
	}
	return max;
}

/* Amounts that are compared have one unit; their changes, maybe small, one. */
static void find_units(struct layout *l)
{
	const struct table *t = l->t;
	uint64_t all = 0, changes = 0;

	if (l->style->exact)
		return;
	for (size_t i = 0; t->one_unit && i < t->n_columns; i++)
		if (shown(l, i) && t->columns[i].type == COLUMN_BYTES)
			all = max_u64(all, column_max(l, i));
		else if (shown(l, i) && t->columns[i].type == COLUMN_CHANGE)
			changes = max_u64(changes, column_max(l, i));
	for (size_t i = 0; i < t->n_columns; i++)
		if (t->columns[i].type == COLUMN_BYTES)
			l->unit[i] = num_unit(all ? all : column_max(l, i));
		else if (t->columns[i].type == COLUMN_CHANGE)
			l->unit[i] = num_unit(changes ? changes
						      : column_max(l, i));
}

/* Two for the gap, or for the indent of the first. */
static size_t column_width(const struct layout *l, size_t column)
{
	const struct column *c = &l->t->columns[column];
	const char *title = column == l->label ? ""
			    : table_column_title(l->t, column);
	size_t width = strlen(title);
	struct str s;

	str_init(&s);
	for (size_t i = 0; i < n_lines(l); i++) {
		format_cell(l, line_at(l, i), column, &s);
		width = max_u64(width, s.len);
	}
	str_fini(&s);
	return max_u64(width + 2, c->width);
}

/* The last column with a bar that is shown; n_columns if none is. */
static size_t bar_column(const struct layout *l)
{
	for (size_t i = l->t->n_columns; i--; )
		if ((l->t->columns[i].flags & COLUMN_BAR) && shown(l, i))
			return i;
	return l->t->n_columns;
}

/* A derived share is as long as what it is a share of. */
static uint64_t bar_value(const struct layout *l, const struct cell *row,
			  size_t column)
{
	const struct column *c = &l->t->columns[column];

	return row[c->type == COLUMN_SHARE && c->part ? c->part - 1
						      : column].u;
}

static void find_bar(struct layout *l)
{
	size_t column = bar_column(l);

	if (column == l->t->n_columns)
		return;
	for (size_t i = 0; i < l->n_shown; i++)
		l->bar_max = max_u64(l->bar_max,
				     bar_value(l, line_at(l, i), column));
}

/* Which words give way: those at the end, else the widest column of them. */
static size_t soft_column(const struct layout *l)
{
	size_t best = l->label, last = l->t->n_columns - 1;

	while (last > l->label && !shown(l, last))
		last--;
	if (is_left(&l->t->columns[last]))
		return last;
	for (size_t i = l->label + 1; i < last; i++)
		if (shown(l, i) && l->t->columns[i].type == COLUMN_TEXT &&
		    (best == l->label || l->width[i] > l->width[best]))
			best = i;
	return best;
}

static void fit_words(struct layout *l)
{
	size_t soft = soft_column(l);
	size_t over = l->line > l->room ? l->line - l->room : 0;

	if (soft == l->label || l->width[soft] < over + LAST_MIN)
		return;
	l->width[soft] -= over;
	l->line -= over;
}

static void layout_init(struct layout *l, const struct table *t,
			const struct text_style *style)
{
	size_t others = 0;

	*l = (struct layout){
		.t = t, .style = style,
		.room = style->width ? style->width : LINE,
	};
	l->label = table_label(t);
	l->n_shown = t->n_rows;
	if (!t->whole && style->rows != TABLE_ALL_ROWS &&
	    style->rows < t->n_rows)
		l->n_shown = style->rows;
	l->more = sum_rest(l);
	l->unit = mem_zalloc(t->n_columns);
	l->width = mem_zalloc(t->n_columns * sizeof(*l->width));
	find_units(l);
	for (size_t i = 0; i < t->n_columns; i++) {
		if (!shown(l, i))
			continue;
		l->width[i] = column_width(l, i);
		if (i != l->label)
			others += l->width[i];
	}
	l->width[l->label] = min_u64(
		max_u64(l->width[l->label], strlen(t->title) + 2),
		max_u64(LABEL_MIN, l->room - min_u64(others, l->room)));
	l->line = others + l->width[l->label];
	fit_words(l);
	find_bar(l);
}

static void layout_fini(struct layout *l)
{
	free(l->more);
	free(l->unit);
	free(l->width);
}

/* Blanks are kept back until something follows them. */
struct line {
	struct out *o;
	size_t column;
	size_t blanks;
};

static void line_text(struct line *line, const char *text, size_t n)
{
	if (!n)
		return;
	out_pad(line->o, ' ', line->blanks);
	line->blanks = 0;
	out_add(line->o, text, n);
}

static void line_cell(struct line *line, const char *text, size_t n,
		      size_t width, bool left)
{
	size_t pad = n < width ? width - n : 0;

	if (left) {
		line_text(line, text, n);
		line->blanks += pad;
	} else {
		line->blanks += pad;
		line_text(line, text, n);
	}
	line->column += n + pad;
}

static void color(const struct layout *l, struct out *o, const char *code)
{
	if (l->style->color)
		out_printf(o, "\33[%sm", code);
}

static void write_heading(const struct layout *l, struct out *o)
{
	const struct table *t = l->t;
	struct line line = { .o = o };

	color(l, o, "1");
	line_cell(&line, t->title, strlen(t->title), l->width[l->label], true);
	for (size_t i = l->label + 1; i < t->n_columns; i++) {
		const char *title = table_column_title(t, i);

		if (!shown(l, i))
			continue;
		if (is_left(&t->columns[i])) {
			line.blanks += 2;
			line_cell(&line, title, strlen(title),
				  l->width[i] - 2, true);
		} else {
			line_cell(&line, title, strlen(title), l->width[i],
				  false);
		}
	}
	color(l, o, "0");
	out_addc(o, '\n');
}

/* Words in the room of their column; of a path the end says more. */
static void write_words(const struct layout *l, struct line *line,
			size_t column, const struct str *s)
{
	size_t room = l->width[column] - 2;
	size_t keep = room - 3;

	line->blanks += 2;
	if (s->len <= room) {
		line_cell(line, s->text, s->len, room, true);
	} else if (l->t->columns[column].flags & COLUMN_PATH) {
		line_cell(line, "...", 3, 3, true);
		line_cell(line, s->text + s->len - keep, keep, keep, true);
	} else {
		line_cell(line, s->text, keep, keep, true);
		line_cell(line, "...", 3, 3, true);
	}
}

static void write_bar(const struct layout *l, struct line *line,
		      const struct cell *row)
{
	size_t room = l->line + 2 < l->room ? l->room - l->line - 2 : 0;
	size_t n, column = bar_column(l);
	uint64_t value;

	if (!l->bar_max || l->style->no_bars || row == l->t->total ||
	    row == l->more)
		return;
	value = bar_value(l, row, column);
	room = min_u64(room, BAR_MAX);
	n = (size_t)((double)value / (double)l->bar_max * (double)room + 0.5);
	if (!n)
		return;
	line->blanks += 2;
	line_text(line, "", 0);
	out_pad(line->o, ' ', line->blanks);
	line->blanks = 0;
	color(l, line->o, "32");
	out_pad(line->o, '#', n);
	color(l, line->o, "0");
}

static void write_line(const struct layout *l, const struct cell *row,
		       struct str *s, struct out *o)
{
	struct line line = { .o = o };

	for (size_t i = 0; i < l->t->n_columns; i++) {
		if (!shown(l, i))
			continue;
		format_cell(l, row, i, s);
		if (i == l->label || is_left(&l->t->columns[i]))
			write_words(l, &line, i, s);
		else
			line_cell(&line, s->text, s->len, l->width[i], false);
	}
	write_bar(l, &line, row);
	out_addc(o, '\n');
}

static void write_rows(const struct layout *l, struct out *o)
{
	struct str s;

	if (!l->style->stream || !l->t->n_rows)
		write_heading(l, o);
	str_init(&s);
	for (size_t i = 0; i < n_lines(l); i++)
		write_line(l, line_at(l, i), &s, o);
	str_fini(&s);
}

static void write_title(const struct layout *l, struct out *o)
{
	color(l, o, "1");
	out_adds(o, l->t->title);
	color(l, o, "0");
	out_addc(o, '\n');
}

/* What stands before lines of a paragraph, and where they end. */
struct margins {
	const char *first, *rest;
	size_t wrap;
};

static void write_wrapped(struct out *o, const char *text, size_t n,
			  const struct margins *m)
{
	size_t column = strlen(m->first);
	bool fresh = true;
	size_t i = 0;

	out_adds(o, m->first);
	while (i < n) {
		size_t gap = i;
		size_t word;

		while (i < n && text[i] == ' ')
			i++;
		gap = i - gap;
		word = i;
		while (i < n && text[i] != ' ')
			i++;
		word = i - word;
		if (!fresh && column + gap + word > m->wrap) {
			out_addc(o, '\n');
			out_adds(o, m->rest);
			column = strlen(m->rest);
			gap = 0;
		}
		out_pad(o, ' ', gap);
		out_add(o, text + i - word, word);
		column += gap + word;
		fresh = false;
	}
	out_addc(o, '\n');
}

void text_write_wrapped(struct out *o, const char *text, size_t n,
			const char *first, const char *rest)
{
	const struct margins m = { first, rest, WRAP };

	write_wrapped(o, text, n, &m);
}

static size_t wrap_at(const struct layout *l)
{
	return l->style->width ? l->style->width - 1 : WRAP;
}

/* The room for the titles of a record. */
static int title_width(const struct layout *l)
{
	size_t width = RECORD_MIN;

	for (size_t i = 0; i < l->t->n_columns; i++)
		if (shown(l, i))
			width = max_u64(width, strlen(
				table_column_title(l->t, i)));
	return (int)min_u64(width, NUM_MAX - 5);
}

/* One "title  value" line for each column. */
static void write_record(const struct layout *l, const struct cell *row,
			 struct str *s, struct out *o)
{
	int width = title_width(l);
	char first[NUM_MAX], rest[NUM_MAX];
	const struct margins m = { first, rest, wrap_at(l) };

	snprintf(rest, sizeof(rest), "  %*s  ", width, "");

	for (size_t i = 0; i < l->t->n_columns; i++) {
		if (!shown(l, i) || !row_cell(l->t, row, i).known)
			continue;
		format_cell(l, row, i, s);
		snprintf(first, sizeof(first), "  %-*.*s  ", width, width,
			 table_column_title(l->t, i));
		write_wrapped(o, s->text, s->len, &m);
	}
}

static void write_records(const struct layout *l, struct out *o)
{
	struct str s;

	str_init(&s);
	write_title(l, o);
	for (size_t i = 0; i < l->t->n_rows; i++) {
		if (i)
			out_addc(o, '\n');
		write_record(l, table_row_at(l->t, i), &s, o);
	}
	str_fini(&s);
}

/*
 * How much of a line of n bytes goes on a screen line of room: up to the last
 * semicolon or comma, else the last blank, else all, for a path is not broken.
 */
static size_t break_line(const char *text, size_t n, size_t room)
{
	size_t blank = 0, comma = 0, i = 1;

	for (; i < n && (i <= room || !blank); i++) {
		if (text[i] != ' ')
			continue;
		blank = i;
		if (text[i - 1] == ',' || text[i - 1] == ';')
			comma = i;
	}
	if (n <= room)
		return n;
	/* Not so early that the rest needs one line more for it. */
	return comma > room / 3 ? comma : blank ? blank : n;
}

static void write_long_line(struct out *o, const char *text, size_t n)
{
	size_t indent = 0;

	do {
		size_t now = break_line(text, n, LINE - indent);

		out_pad(o, ' ', indent);
		out_add(o, text, now);
		out_addc(o, '\n');
		indent = 2;
		while (now < n && text[now] == ' ')
			now++;
		text += now;
		n -= now;
	} while (n);
}

void text_write_lines(struct out *o, const char *text)
{
	do {
		size_t n = strcspn(text, "\n");

		write_long_line(o, text, n);
		text += n + (text[n] == '\n');
	} while (*text);
}

/* What is to be typed as it is. */
static void write_own_lines(const struct layout *l, const struct cell *row,
			    struct str *s, struct out *o)
{
	for (size_t i = l->label + 1; i < l->t->n_columns; i++) {
		if (!(l->t->columns[i].flags & COLUMN_OWN_LINE) ||
		    !row[i].known)
			continue;
		format_cell(l, row, i, s);
		out_printf(o, "    %s\n", s->text);
	}
}

/* Lines below a sentence, each a row of the inner table. */
static void write_inner(const struct layout *l, size_t place, struct out *o)
{
	const struct table *t = l->t;
	const struct margins m = { "    ", "         ", wrap_at(l) };
	size_t first, end;

	table_inner_rows(t, place, &first, &end);
	for (size_t i = first; i < end; i++) {
		const struct cell *c = table_row_at(t->inner, i);

		write_wrapped(o, table_text(t->inner, c), c->text.len, &m);
	}
}

static void write_sentence(const struct layout *l, size_t i, struct str *s,
			   struct out *o)
{
	char first[NUM_MAX] = "  ";
	char rest[NUM_MAX] = "    ";
	const struct margins m = { first, rest, wrap_at(l) };
	int indent;

	format_cell(l, line_at(l, i), l->label, s);
	if (l->t->form == TABLE_NUMBERED && i < l->n_shown) {
		indent = snprintf(first, sizeof(first), "  %zu. ", i + 1);
		snprintf(rest, sizeof(rest), "%*s", indent, "");
	}
	write_wrapped(o, s->text, s->len, &m);
	write_own_lines(l, line_at(l, i), s, o);
	if (l->t->inner && i < l->n_shown)
		write_inner(l, i, o);
}

static void write_sentences(const struct layout *l, struct out *o)
{
	struct str s;

	str_init(&s);
	write_title(l, o);
	for (size_t i = 0; i < n_lines(l); i++)
		write_sentence(l, i, &s, o);
	str_fini(&s);
}

void table_write_text(const struct table *t, const struct text_style *style,
		      struct out *o)
{
	struct layout l;

	layout_init(&l, t, style);
	switch (t->form) {
	case TABLE_ROWS:
		write_rows(&l, o);
		break;
	case TABLE_SENTENCES:
	case TABLE_NUMBERED:
		write_sentences(&l, o);
		break;
	case TABLE_RECORDS:
	case TABLE_OBJECT:
		write_records(&l, o);
		break;
	}
	layout_fini(&l);
}

struct text_rows {
	struct layout layout;
	struct text_style style;
	struct str scratch;
};

struct text_rows *text_rows_new(const struct table *t,
				const struct text_style *style)
{
	struct text_rows *r = mem_zalloc(sizeof(*r));

	r->style = *style;
	str_init(&r->scratch);
	layout_init(&r->layout, t, &r->style);
	return r;
}

void text_rows_free(struct text_rows *r)
{
	if (!r)
		return;
	layout_fini(&r->layout);
	str_fini(&r->scratch);
	free(r);
}

const struct text_style *text_rows_style(const struct text_rows *r)
{
	return &r->style;
}

void text_rows_heading(const struct text_rows *r, struct out *o)
{
	if (r->layout.t->form == TABLE_ROWS)
		write_heading(&r->layout, o);
	else
		write_title(&r->layout, o);
}

void text_rows_write(struct text_rows *r, size_t place, struct out *o)
{
	struct str *s = &r->scratch;

	switch (r->layout.t->form) {
	case TABLE_ROWS:
		write_line(&r->layout, line_at(&r->layout, place), s, o);
		break;
	case TABLE_SENTENCES:
	case TABLE_NUMBERED:
		write_sentence(&r->layout, place, s, o);
		break;
	case TABLE_RECORDS:
	case TABLE_OBJECT:
		write_record(&r->layout, line_at(&r->layout, place), s, o);
		break;
	}
}
