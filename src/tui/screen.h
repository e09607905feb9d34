/* SPDX-License-Identifier: MIT */
/*
 * What is to be seen, as cells: drawn here, shown by term.c or, in a script,
 * as text.
 *
 * A cell is one printable character of ASCII, or a *glyph*: a piece of a
 * picture that a terminal with UTF-8 shows better than one without.  Text of
 * reports is ASCII, for it is escaped where it is made; anything else that
 * comes here becomes "?".
 */
#ifndef TUI_SCREEN_H
#define TUI_SCREEN_H

#include <wchar.h>

#include "base/types.h"
#include "report/out.h"

/* How a cell looks; colours and attributes are term.c's. */
enum role {
	ROLE_TEXT,
	ROLE_BAR,		/* first and last lines */
	ROLE_HEADING,
	ROLE_CURSOR,
	ROLE_DIM,
	ROLE_GRAPH,		/* bars of tables */
	ROLE_WARNING,
	ROLES
};

/* Each one column wide; what it is in ASCII stands in screen.c. */
enum glyph {
	GLYPH_RULE = 1,		/* a line from left to right */
	GLYPH_BORDER,		/* one between panes */
	GLYPH_BAR,		/* a cell of a bar */
	GLYPH_SHADE,		/* the first of four, the last one full */
	GLYPH_LEVEL = GLYPH_SHADE + 4,	/* of eight heights, likewise */
	GLYPH_ABSENT = GLYPH_LEVEL + 8,	/* nothing is there */
	GLYPHS
};
enum { SHADES = 4, LEVELS = 8 };

struct screen_cell {
	char ch;
	uint8_t role;
};

enum { SCREEN_MAX = 1000 };	/* lines or columns */

struct screen {
	int w, h;
	int right;		/* nothing is drawn from here on */
	int cursor_y, cursor_x;
	struct screen_cell *cells;	/* owned */
};

void screen_init(struct screen *s, int w, int h);
void screen_fini(struct screen *s);
/* Bounded to 1 to SCREEN_MAX; what was drawn is gone. */
void screen_resize(struct screen *s, int w, int h);
void screen_clear(struct screen *s);

/* Cut at the right; where the text ends. */
int screen_text(struct screen *s, int y, int x, enum role role,
		const char *text, size_t n);
int screen_puts(struct screen *s, int y, int x, enum role role,
		const char *text);
/* A glyph, or a character. */
void screen_put(struct screen *s, int y, int x, enum role role, char ch);
void screen_fill(struct screen *s, int y, enum role role, char ch);
/* A line's cells from x on look like this. */
void screen_role(struct screen *s, int y, int x, enum role role);

/* A cell as a character of Unicode. */
wchar_t screen_char(const struct screen_cell *c, bool utf8);

/* As lines of text without blanks at their ends. */
void screen_write(const struct screen *s, bool utf8, struct out *o);
/* The same with a letter for each role: "bhc.", "." for text. */
void screen_write_roles(const struct screen *s, struct out *o);

#endif
