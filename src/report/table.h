/* SPDX-License-Identifier: MIT */
/*
 * The only way out for results.
 *
 * A *column* is declared once, in a const array: its key is the JSON name, the
 * CSV heading and the name that --sort and --filter know; its title is the
 * heading of the text report; its type says how a value is printed everywhere.
 * A *table* is rows of cells under such an array, with perhaps a row of totals.
 * A cell that was never set is unknown: "-" in text, absent in JSON, empty in
 * CSV.
 *
 * A share is never set where it follows from other columns: the column names
 * them, and so the rows "N more" and "total" have right shares too.
 *
 * Cells of a row follow each other in one array; text lives in one pool that
 * the table owns.  Sorting moves an order, not the rows, and is stable.
 */
#ifndef REPORT_TABLE_H
#define REPORT_TABLE_H

#include "base/err.h"
#include "base/str.h"
#include "base/types.h"
#include "report/out.h"

enum column_type {
	COLUMN_TEXT,
	COLUMN_COUNT,
	COLUMN_BYTES,
	COLUMN_SHARE,		/* 0 to 1 */
	COLUMN_SECONDS,
	COLUMN_ADDR,
	COLUMN_FLAG,
	COLUMN_SIGNED,
	COLUMN_CHANGE,		/* of bytes: "+1.2M"; sorted by its size */
	COLUMN_CHANGE_COUNT,
};

enum column_flag {
	COLUMN_NO_TEXT = 1 << 0,	/* not in the text report */
	COLUMN_NO_DATA = 1 << 1,	/* not in JSON and CSV */
	COLUMN_BAR = 1 << 2,		/* a bar of it at the line's end */
	COLUMN_SUM = 1 << 3,		/* adds up over rows */
	COLUMN_LEFT = 1 << 4,
	/* Content of the process: absent in a redacted report. */
	COLUMN_CONTENT = 1 << 5,
	/* A path of the target: only its last part in a redacted report. */
	COLUMN_PATH = 1 << 6,
	COLUMN_OF_TOTAL = 1 << 7,	/* whole is the total row's */
	COLUMN_RAW = 1 << 8,		/* bytes of the target: escape them */
	COLUMN_SIGN = 1 << 9,		/* a share with + or - */
	COLUMN_OWN_LINE = 1 << 10,	/* below a sentence, and not wrapped */
	COLUMN_FINE = 1 << 10,		/* seconds with microseconds */
	COLUMN_BACKSLASH = 1 << 11,	/* with RAW: one of its own stays */
};

struct column {
	const char *key;
	const char *title;
	enum column_type type;
	unsigned flags;
	unsigned width;		/* least width in text; 0: as needed */
	/*
	 * COLUMN_SHARE: part / whole, as index + 1 of columns; 0 if set.
	 * COLUMN_TEXT: whole is what rows of sums show in its place.
	 */
	unsigned part, whole;
	const char *const *words;	/* all its values, NULL last; or NULL */
	/* For whoever fills the table: what of, as index + 1; 0: not said. */
	unsigned from;
};

#define COLUMN(name, heading, kind, ...)				\
	{								\
		.key = (name), .title = (heading),			\
		.type = COLUMN_##kind, ##__VA_ARGS__			\
	}

/* One that the text does not have. */
#define DATA_COLUMN(name, kind) \
	COLUMN(name, "", kind, .flags = COLUMN_NO_TEXT)

struct cell {
	union {
		uint64_t u;	/* COUNT, BYTES, ADDR, FLAG */
		int64_t i;	/* SIGNED, CHANGE, CHANGE_COUNT */
		double share;	/* SHARE, SECONDS */
		struct {
			uint32_t off, len;	/* TEXT, in the pool */
		} text;
	};
	bool known;
};

static inline struct cell cell_number(uint64_t value)
{
	return (struct cell){ .u = value, .known = true };
}

enum table_form {
	TABLE_ROWS,		/* lines with columns */
	TABLE_SENTENCES,	/* the first text column, wrapped */
	TABLE_NUMBERED,		/* the same with 1. 2. 3. */
	TABLE_RECORDS,		/* a line for each column of each row */
	TABLE_OBJECT,		/* the same for its only row; no list in JSON */
};

/* Rows of another table, from first on and before end. */
struct table_range {
	size_t first, end;
};

struct table {
	const char *name;	/* static: JSON key, word of --only */
	const char *title;	/* static: heading in text */
	const char *more;	/* static: "more", "other types" */
	enum table_form form;
	const struct column *columns;	/* static */
	size_t n_columns;
	struct cell *cells;	/* owned; n_rows * n_columns */
	size_t n_cells, cap_cells;
	size_t n_rows;
	uint32_t *order;	/* owned; of rows; NULL: as added */
	struct cell *total;	/* owned; NULL: none */
	struct str pool;
	bool whole;		/* few rows: never cut in text */
	bool one_unit;		/* the sizes of all columns, not of each */
	const char **titles;	/* owned; in place of those declared */
	uint64_t hidden;	/* columns left out of the text, as bits */
	const struct table *inner;	/* borrowed; or NULL; table_nest() */
	struct table_range *inner_rows;	/* owned; by row: which of inner */
	size_t n_inner, cap_inner;
	bool is_inner;
	bool text_only;		/* what it says is in another table too */
	/*
	 * A tree: the column, and 1, with how deep a row is; rows follow the
	 * one they are below.  Its label leaves room for a mark: see
	 * TABLE_MARK_AT.  0: no tree.
	 */
	size_t depth;
	bool data_only;		/* not in the text */
	bool shapes;		/* column 0 may tell what blocks look like */
	const char *listed;	/* static: see leaks_all_listed(); or NULL */
	size_t current;		/* first cell of the row being filled */
	bool in_total;
};

void table_init(struct table *t, const char *name, const char *title,
		const struct column *columns, size_t n_columns);
void table_fini(struct table *t);

/* No rows, but what was allocated stays for those to come. */
void table_clear(struct table *t);

/*
 * From now on rows of inner belong to the row of t that was begun last: JSON
 * shows them as a list in its object, sentences have them as lines below.
 * Called before the first row; inner must outlive t's last use.
 */
void table_nest(struct table *t, struct table *inner);
/* Where the inner rows of the row at a place are, in the order they came. */
void table_inner_rows(const struct table *t, size_t place, size_t *ret_first,
		      size_t *ret_end);

/* Another title for a column, in text; static. */
void table_retitle(struct table *t, size_t column, const char *title);
const char *table_column_title(const struct table *t, size_t column);

/* Not in the text. */
void table_hide(struct table *t, size_t column);
/* The same for a column of text that says one thing in all rows so far. */
void table_hide_same(struct table *t, size_t column);

/* Begin a row; what is set from now on goes there. */
void table_row(struct table *t);
/* The same for the row of totals. */
void table_total_row(struct table *t);
/* Are all numbers of the row being filled, from a column on, 0 or unknown? */
bool table_row_is_zero(const struct table *t, size_t column);
/* As if it had not been begun; its text stays in the pool. */
void table_drop_row(struct table *t);
/* A row of totals: sums of the COLUMN_SUM columns, "total" as its label. */
void table_add_total(struct table *t);

void table_set(struct table *t, size_t column, uint64_t value);
void table_set_signed(struct table *t, size_t column, int64_t value);
/* A share or seconds. */
void table_set_real(struct table *t, size_t column, double value);
void table_set_text(struct table *t, size_t column, const char *text);
void table_set_bytes(struct table *t, size_t column, const void *bytes,
		     size_t n);
void table_printf(struct table *t, size_t column, const char *fmt, ...)
	PRINTF_LIKE(3, 4);

/* The cell of another table; nothing if that is unknown. */
void table_copy(struct table *t, size_t column, const struct table *from,
		const struct cell *c);

/* The value at a place of the order, with derived shares filled in. */
struct cell table_cell(const struct table *t, size_t place, size_t column);
/* A row as it was set, by its place; and one of its cells, shares derived. */
const struct cell *table_row_at(const struct table *t, size_t place);
struct cell row_cell(const struct table *t, const struct cell *row,
		     size_t column);
/* The text of a cell; not ended by a zero. */
const char *table_text(const struct table *t, const struct cell *cell);

/* Is it this text? */
bool table_says(const struct table *t, const struct cell *cell,
		const char *text);
/* The cell of a row under a key; NULL if there is none, or it is unknown. */
const struct cell *table_known(const struct table *t, const struct cell *row,
			       const char *key);

/* Index of a column by its key, also without "_bytes"; -1 if none. */
int column_find(const struct column *columns, size_t n, const char *key);

/* The first column that the text report shows. */
size_t table_label(const struct table *t);

/* "a, b, c", for messages. */
void column_names(const struct column *columns, size_t n, struct str *ret);

/* Stable; numbers from large to small, words from a to z; reverse: not. */
void table_sort(struct table *t, size_t column, bool reverse);
/* "COLUMN" or "-COLUMN"; an unknown one names those there are. */
bool table_sort_by(struct table *t, const char *spec, struct err *err)
	MUST_CHECK;

/* Drop what holds content of the process. */
void table_redact(struct table *t);

enum { TABLE_ALL_ROWS = 0 };

struct text_style {
	size_t rows;		/* TABLE_ALL_ROWS, or where to cut */
	bool exact;		/* --bytes */
	bool color;
	bool no_bars;
	size_t width;		/* of a line; 0: that of a report */
	/*
	 * For a table that is printed as it grows: headings if it has no row,
	 * else only rows, each size in the unit that fits.
	 */
	bool stream;
};

void table_write_text(const struct table *t, const struct text_style *style,
		      struct out *o);

/*
 * The same row by row, as the browser shows it.  A table with columns has one
 * line for each row, another one those that it needs.
 */
struct text_rows;
/* The table stays as it is while they are used. */
struct text_rows *text_rows_new(const struct table *t,
				const struct text_style *style);
void text_rows_free(struct text_rows *r);
const struct text_style *text_rows_style(const struct text_rows *r);
void text_rows_heading(const struct text_rows *r, struct out *o);
/* By its place; that behind the last one is the row of totals. */
void text_rows_write(struct text_rows *r, size_t place, struct out *o);

/* "name": [...] or "name": {...}, indented by two, without comma or newline. */
void table_write_json(const struct table *t, struct out *o);
/* One row as a line of NDJSON, by its place. */
void table_write_ndjson(const struct table *t, size_t place, struct out *o);
/* The only row of one table with another one as its "rows". */
void table_write_json_object(const struct table *t, const struct table *rows,
			     struct out *o);
void table_write_csv(const struct table *t, struct out *o);

/* What is no text, as CSV has it and, but for addresses, JSON. */
void cell_write_number(const struct column *column, const struct cell *c,
		       struct out *o);
/* The headings line of a CSV. */
void columns_write_csv(const struct column *columns, size_t n, struct out *o);

/* "text" with quotes, as JSON; invalid UTF-8 becomes \ufffd.  True if so. */
bool json_write_string(struct out *o, const char *text, size_t n);

/*
 * Lines, each broken where a part of it ends if it is too long for the screen;
 * what is left of it is indented.
 */
void text_write_lines(struct out *o, const char *text);

/* Paragraph of words: first line after first, others after rest, width 78. */
void text_write_wrapped(struct out *o, const char *text, size_t n,
			const char *first, const char *rest);

#endif
