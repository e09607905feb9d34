/* SPDX-License-Identifier: MIT */
#include "report/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"

void table_init(struct table *t, const char *name, const char *title,
		const struct column *columns, size_t n_columns)
{
	*t = (struct table){
		.name = name,
		.title = title,
		.more = "more",
		.columns = columns,
		.n_columns = n_columns,
	};
	str_init(&t->pool);
}

void table_fini(struct table *t)
{
	free(t->cells);
	free(t->order);
	free(t->total);
	free(t->titles);
	free(t->inner_rows);
	str_fini(&t->pool);
}

void table_clear(struct table *t)
{
	free(t->order);
	free(t->total);
	t->order = NULL;
	t->total = NULL;
	t->n_cells = t->n_rows = t->n_inner = 0;
	t->in_total = false;
	str_clear(&t->pool);
}

void table_retitle(struct table *t, size_t column, const char *title)
{
	if (!t->titles)
		t->titles = mem_zalloc(t->n_columns * sizeof(*t->titles));
	t->titles[column] = title;
}

void table_hide(struct table *t, size_t column)
{
	t->hidden |= UINT64_C(1) << column;
}

void table_hide_same(struct table *t, size_t column)
{
	const struct cell *first = &t->cells[column];

	for (size_t i = 1; i < t->n_rows; i++) {
		const struct cell *c = &first[i * t->n_columns];

		if (c->known != first->known ||
		    (c->known && (c->text.len != first->text.len ||
				  memcmp(table_text(t, c),
					 table_text(t, first),
					 c->text.len))))
			return;
	}
	table_hide(t, column);
}

const char *table_column_title(const struct table *t, size_t column)
{
	if (t->titles && t->titles[column])
		return t->titles[column];
	return t->columns[column].title;
}

void table_row(struct table *t)
{
	t->in_total = false;
	t->current = t->n_cells;
	for (size_t i = 0; i < t->n_columns; i++)
		MEM_PUSH(t->cells, t->n_cells, t->cap_cells) =
			(struct cell){ 0 };
	t->n_rows++;
	if (!t->inner)
		return;
	if (t->n_inner)
		t->inner_rows[t->n_inner - 1].end = t->inner->n_rows;
	MEM_PUSH(t->inner_rows, t->n_inner, t->cap_inner) =
		(struct table_range){ t->inner->n_rows, SIZE_MAX };
}

void table_nest(struct table *t, struct table *inner)
{
	t->inner = inner;
	inner->is_inner = true;
}

void table_inner_rows(const struct table *t, size_t place, size_t *ret_first,
		      size_t *ret_end)
{
	size_t row = t->order ? t->order[place] : place;

	*ret_first = t->inner_rows[row].first;
	*ret_end = min_u64(t->inner_rows[row].end, t->inner->n_rows);
}

void table_total_row(struct table *t)
{
	free(t->total);
	t->total = mem_zalloc(t->n_columns * sizeof(*t->total));
	t->in_total = true;
}

bool table_row_is_zero(const struct table *t, size_t column)
{
	for (size_t i = column; i < t->n_columns; i++)
		if (t->cells[t->current + i].known &&
		    t->cells[t->current + i].u)
			return false;
	return true;
}

void table_drop_row(struct table *t)
{
	t->n_cells -= t->n_columns;
	t->n_rows--;
	t->n_inner -= t->inner != NULL;
}

size_t table_label(const struct table *t)
{
	size_t i = 0;

	while (i + 1 < t->n_columns && t->columns[i].flags & COLUMN_NO_TEXT)
		i++;
	return i;
}

void table_add_total(struct table *t)
{
	size_t label = table_label(t);

	table_total_row(t);
	if (t->columns[label].type == COLUMN_TEXT)
		table_set_text(t, label, "total");
	for (size_t i = 0; i < t->n_cells; i++) {
		size_t column = i % t->n_columns;

		if (!(t->columns[column].flags & COLUMN_SUM) ||
		    !t->cells[i].known)
			continue;
		t->total[column].u += t->cells[i].u;
		t->total[column].known = true;
	}
}

static struct cell *open_cell(struct table *t, size_t column)
{
	struct cell *c = t->in_total ? &t->total[column]
				     : &t->cells[t->current + column];

	c->known = true;
	return c;
}

void table_set(struct table *t, size_t column, uint64_t value)
{
	open_cell(t, column)->u = value;
}

void table_set_signed(struct table *t, size_t column, int64_t value)
{
	open_cell(t, column)->i = value;
}

void table_set_real(struct table *t, size_t column, double value)
{
	open_cell(t, column)->share = value;
}

void table_set_text(struct table *t, size_t column, const char *text)
{
	table_set_bytes(t, column, text, strlen(text));
}

void table_set_bytes(struct table *t, size_t column, const void *bytes,
		     size_t n)
{
	struct cell *c;

	/* A pool of 4 GB holds no more. */
	if (n > UINT32_MAX - t->pool.len)
		return;
	c = open_cell(t, column);
	c->text.off = (uint32_t)t->pool.len;
	c->text.len = (uint32_t)n;
	str_add(&t->pool, bytes, n);
}

void table_printf(struct table *t, size_t column, const char *fmt, ...)
{
	AUTO_FREE char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		text = NULL;
	else
		table_set_bytes(t, column, text, (size_t)n);
}

void table_copy(struct table *t, size_t column, const struct table *from,
		const struct cell *c)
{
	if (!c->known)
		return;
	if (t->columns[column].type == COLUMN_TEXT)
		table_set_bytes(t, column, table_text(from, c), c->text.len);
	else
		open_cell(t, column)->u = c->u;
}

static struct cell derived_share(const struct table *t,
				 const struct cell *row,
				 const struct column *c)
{
	const struct cell *part = &row[c->part - 1];
	const struct cell *whole = &row[c->whole - 1];
	struct cell ret = { 0 };

	if (c->flags & COLUMN_OF_TOTAL) {
		if (!t->total)
			return ret;
		whole = &t->total[c->whole - 1];
	}
	ret.known = part->known && whole->known;
	if (ret.known)
		ret.share = num_share(part->u, whole->u);
	return ret;
}

struct cell row_cell(const struct table *t, const struct cell *row,
		     size_t column)
{
	const struct column *c = &t->columns[column];

	return c->part ? derived_share(t, row, c) : row[column];
}

const struct cell *table_row_at(const struct table *t, size_t place)
{
	size_t row = t->order ? t->order[place] : place;

	return &t->cells[row * t->n_columns];
}

struct cell table_cell(const struct table *t, size_t place, size_t column)
{
	return row_cell(t, table_row_at(t, place), column);
}

const char *table_text(const struct table *t, const struct cell *cell)
{
	return t->pool.text + cell->text.off;
}

bool table_says(const struct table *t, const struct cell *cell,
		const char *text)
{
	return cell->known && cell->text.len == strlen(text) &&
	       !memcmp(table_text(t, cell), text, cell->text.len);
}

const struct cell *table_known(const struct table *t, const struct cell *row,
			       const char *key)
{
	int i = column_find(t->columns, t->n_columns, key);

	return i >= 0 && row[i].known ? &row[i] : NULL;
}

int column_find(const struct column *columns, size_t n, const char *key)
{
	size_t len = strlen(key);

	for (size_t i = 0; i < n; i++) {
		const char *name = columns[i].key;

		if (!strcmp(name, key))
			return (int)i;
		if (!strncmp(name, key, len) &&
		    !strcmp(name + len, "_bytes"))
			return (int)i;
	}
	return -1;
}

struct by_column {
	const struct table *t;
	size_t column;
	bool reverse;
};

/* More comes before less of the same size. */
static int compare_sizes(int64_t a, int64_t b)
{
	uint64_t x = num_abs(a);
	uint64_t y = num_abs(b);

	return x != y ? (y > x) - (y < x) : (b > a) - (b < a);
}

static int compare_known(const struct by_column *by, const struct cell *a,
			 const struct cell *b)
{
	const char *x, *y;
	int order;

	switch (by->t->columns[by->column].type) {
	case COLUMN_TEXT:
		x = table_text(by->t, a);
		y = table_text(by->t, b);
		order = memcmp(x, y, min_u64(a->text.len, b->text.len));
		return order ? order
			     : (a->text.len > b->text.len) -
				       (a->text.len < b->text.len);
	case COLUMN_SHARE:
	case COLUMN_SECONDS:
		return (b->share > a->share) - (b->share < a->share);
	case COLUMN_SIGNED:
		return (b->i > a->i) - (b->i < a->i);
	case COLUMN_CHANGE:
	case COLUMN_CHANGE_COUNT:
		return compare_sizes(a->i, b->i);
	default:
		return (b->u > a->u) - (b->u < a->u);
	}
}

/* Unknown cells come last in both directions. */
static int compare_rows(const void *a, const void *b, void *arg)
{
	const struct by_column *by = arg;
	uint32_t row_a = *(const uint32_t *)a;
	uint32_t row_b = *(const uint32_t *)b;
	size_t n = by->t->n_columns;
	struct cell x = row_cell(by->t, by->t->cells + row_a * n, by->column);
	struct cell y = row_cell(by->t, by->t->cells + row_b * n, by->column);
	int order;

	if (!x.known || !y.known)
		order = y.known - x.known;
	else
		order = compare_known(by, &x, &y) * (by->reverse ? -1 : 1);
	return order ? order : (row_a > row_b) - (row_a < row_b);
}

void table_sort(struct table *t, size_t column, bool reverse)
{
	struct by_column by = { t, column, reverse };

	if (!t->order)
		t->order = mem_alloc(t->n_rows * sizeof(*t->order));
	for (size_t i = 0; i < t->n_rows; i++)
		t->order[i] = (uint32_t)i;
	qsort_r(t->order, t->n_rows, sizeof(*t->order), compare_rows, &by);
}

void column_names(const struct column *columns, size_t n, struct str *ret)
{
	bool first = true;

	for (size_t i = 0; i < n; i++) {
		/* Words of the text report; its data has others for them. */
		if ((columns[i].flags & (COLUMN_NO_DATA | COLUMN_NO_TEXT)) ==
		    COLUMN_NO_DATA)
			continue;
		str_printf(ret, "%s%s", first ? "" : ", ", columns[i].key);
		first = false;
	}
}

bool table_sort_by(struct table *t, const char *spec, struct err *err)
{
	bool reverse = *spec == '-';
	int column = column_find(t->columns, t->n_columns, spec + reverse);
	struct str names;

	if (column >= 0) {
		table_sort(t, (size_t)column, reverse);
		return true;
	}
	str_init(&names);
	column_names(t->columns, t->n_columns, &names);
	err_set(err, ERR_USAGE, "--sort: no column '%s' in section %s",
		spec + reverse, t->name);
	err_hint(err, "It has %s.", names.text);
	str_fini(&names);
	return false;
}

static void redact_cell(const struct table *t, const struct column *column,
			struct cell *cell)
{
	const char *text;
	const char *slash;

	if (column->flags & COLUMN_CONTENT)
		*cell = (struct cell){ 0 };
	if (!(column->flags & COLUMN_PATH) || !cell->known)
		return;
	text = table_text(t, cell);
	slash = memrchr(text, '/', cell->text.len);
	if (!slash)
		return;
	cell->text.len -= (uint32_t)(slash + 1 - text);
	cell->text.off += (uint32_t)(slash + 1 - text);
}

void table_redact(struct table *t)
{
	for (size_t i = 0; i < t->n_columns; i++)
		if (t->columns[i].flags & COLUMN_CONTENT)
			t->hidden |= UINT64_C(1) << i;
	for (size_t i = 0; i < t->n_cells; i++)
		redact_cell(t, &t->columns[i % t->n_columns], &t->cells[i]);
}
