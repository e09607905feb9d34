/* SPDX-License-Identifier: MIT */
/*
 * A page: tables below each other as lines, a cursor on one of their rows.
 *
 * A *part* is a table of a report or the list of blocks.  A *line* is a line
 * of text, counted from the top of the page; those of headings, sums and rests
 * of sentences have no cursor.  Lines are made when they are looked at: of ten
 * million blocks only those on the screen.
 */
#ifndef TUI_PAGE_H
#define TUI_PAGE_H

#include "report/blocks.h"
#include "report/report.h"
#include "tui/heat.h"
#include "tui/screen.h"

struct page_line {
	uint32_t off, len;	/* in the part's text */
	uint32_t place;		/* of the row, or PAGE_NO_ROW */
	bool first;		/* the cursor may be here */
};
#define PAGE_NO_ROW UINT32_MAX

struct page_part {
	struct table *table;	/* borrowed; of blocks: those in sight */
	struct text_rows *rows;	/* owned */
	struct str text;	/* owned; of those that are no columns */
	struct page_line *lines;	/* owned; the same */
	size_t n_made, cap_made;
	uint64_t first, n_lines;	/* on the page; the heading first */
	/* Of a tree; owned: */
	bool *closed;		/* by place */
	uint32_t *visible;	/* places of rows that are shown */
	size_t n_visible, n_closed;	/* n_closed: of how many rows */
	int sort;		/* column; -1: as it came */
	bool reverse;
};

enum { PAGE_PARTS = 32 };

/* Which of a block's tables of contents are shown. */
enum page_face { FACE_ALL, FACE_WORDS, FACE_HEX, FACE_MEMBERS, FACES };

struct page {
	struct report_options options;
	struct report report;	/* owned; borrows options */
	vaddr at;		/* of SECTION_AT */
	unsigned face;		/* of what is there; enum page_face */
	const char *name;	/* static: what it shows */
	struct page_part part[PAGE_PARTS];
	size_t n_parts;
	uint64_t n_lines;
	uint64_t cursor, top;	/* lines */
	struct str filter;	/* as typed; empty: none */
	struct column *columns;	/* owned; of page_show_row(); or NULL */
	uint32_t *opened;	/* owned; nodes of a tree, in no order */
	size_t n_opened, cap_opened;
	struct heat *heat;	/* owned; a picture in place of tables */
	/* The list of blocks: */
	bool is_blocks;
	struct block_rows *blocks;	/* owned */
	struct filter compiled;		/* owned */
	struct table in_sight;		/* owned */
	uint64_t sight_first;	/* row of its first one */
	const struct report_input *from;	/* borrowed */
	bool knew_types, knew_reach, knew_retain;	/* when it was made */
};

struct page_look {
	int width;		/* of the screen */
	bool exact, no_bars;
};

void page_init(struct page *p, const char *name,
	       const struct report_kind *kind, unsigned sections);
void page_fini(struct page *p);

/* All columns of a row of another page's table, also those without a title. */
void page_show_row(struct page *p, const struct table *from,
		   const struct cell *row);

/* The report is to be built anew; the order of its tables is kept in mind. */
void page_forget(struct page *p);
void page_sort_again(struct page *p);

/* When the report is there, or the blocks: lines of its tables. */
void page_lay_out(struct page *p, const struct page_look *look);

/* Branches of a tree: that of the row under the cursor, or all. */
enum page_branch { BRANCH_OPEN, BRANCH_CLOSE, BRANCH_TOGGLE, BRANCH_OPEN_ALL };
/* False if there is no tree under the cursor. */
bool page_branch(struct page *p, enum page_branch what,
		 const struct page_look *look);

/* Of blocks: counts those that match. */
bool page_list_blocks(struct page *p, const struct report_input *in,
		      struct err *err) MUST_CHECK;

/* More is known by now than when the list was made. */
bool page_is_stale(const struct page *p);

/* A line's text; its role; which part and row it is of: NULL, PAGE_NO_ROW. */
struct page_spot {
	struct page_part *part;
	uint64_t place;
	bool stops;		/* the cursor may be here */
	enum role role;
};
#define PAGE_NO_PLACE UINT64_MAX
struct page_spot page_line(struct page *p, uint64_t line, struct str *ret);

/* The row under the cursor: NULL if there is none. */
const struct cell *page_row(struct page *p, struct page_part **ret);

/* To the line, or the nearest one that may have the cursor. */
void page_go(struct page *p, uint64_t line, bool backwards);
void page_move(struct page *p, int64_t lines);
void page_next_part(struct page *p, bool backwards);
/* Has the report any? */
bool page_has_rows(const struct page *p);
/* The next face that has anything to show; the cursor goes there. */
const char *page_next_face(struct page *p, const struct page_look *look);
/* Is there none in that direction? */
bool page_at_end(struct page *p, bool backwards);
/* Like page_move(), but what is seen moves, and the cursor only with it. */
void page_roll(struct page *p, int lines, int height);
/* So that the cursor is in sight on so many lines. */
void page_scroll(struct page *p, int height);

/* The part under the cursor, by this column or the next one that it shows. */
void page_sort(struct page *p, int column, bool reverse,
	       const struct page_look *look);
int page_next_column(const struct page_part *part);

/* The next line that holds text, Aa alike unless it has capitals; or false. */
bool page_search(struct page *p, const char *text, bool backwards);

#endif
