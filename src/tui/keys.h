/* SPDX-License-Identifier: MIT */
/*
 * The keys: one table for the loop, the help page and the manual, which a test
 * compares with it.
 */
#ifndef TUI_KEYS_H
#define TUI_KEYS_H

#include "base/types.h"

/* Codes of keys that are no characters; those below 0x20 are Ctrl keys. */
enum {
	KEY_CTRL_C = 3, KEY_TABULATOR = 9, KEY_RETURN = 10, KEY_CTRL_D = 4,
	KEY_CTRL_L = 12, KEY_CTRL_U = 21, KEY_ESCAPE = 27,
	KEY_ARROW_UP = 0x1000, KEY_ARROW_DOWN, KEY_ARROW_LEFT,
	KEY_ARROW_RIGHT, KEY_PAGE_UP, KEY_PAGE_DOWN, KEY_FIRST, KEY_LAST,
	KEY_BACK, KEY_BACK_TAB, KEY_HELP_PAGE,
	KEY_RESIZED,		/* not typed: the screen has another size */
	KEY_NOTHING,		/* not typed: look whether a signal came */
	KEY_WHEEL_UP, KEY_WHEEL_DOWN,
	/* Of the mouse: plus line * KEY_CLICK_LINE plus column, from 0. */
	KEY_CLICK = 0x1000000,
	KEY_CLICK_AGAIN = 0x2000000,	/* at once, at the same place */
	KEY_CLICK_LINE = 1024,
};

enum action {
	DO_NOTHING,
	DO_UP, DO_DOWN, DO_PAGE_UP, DO_PAGE_DOWN, DO_HALF_UP, DO_HALF_DOWN,
	DO_FIRST, DO_LAST, DO_ENTER, DO_OUT, DO_ESCAPE, DO_NEXT_PANE,
	DO_PREVIOUS_PANE, DO_VIEW,
	DO_SEARCH, DO_NEXT, DO_PREVIOUS, DO_FILTER, DO_SORT, DO_REVERSE,
	DO_OPEN, DO_CLOSE, DO_OPEN_ALL, DO_HEAT, DO_LOOK, DO_FACE,
	DO_METRIC, DO_ESTIMATE, DO_MARK,
	DO_COLUMNS, DO_BARS, DO_UNITS, DO_EXPORT, DO_PROMPT, DO_REDRAW,
	DO_HELP, DO_QUIT, DO_LEAVE, DO_INTERRUPT,
};

enum { KEYS_EACH = 4 };

struct key {
	int code[KEYS_EACH];	/* 0: none */
	const char *name;	/* "Up k" */
	const char *help;
	enum action action;
	const char *group;	/* NULL: as the one before */
};

extern const struct key keys[];
extern const size_t n_keys;

/* What a key does; digits are DO_VIEW. */
enum action keys_action(int code);

/*
 * The next key of a text in which those that are no characters stand as
 * <Enter>, <Down>, <C-c>, <lt>, and of the mouse <WheelUp>, <Click 4,10>,
 * <Again 4,10>, line and column from 1 on; *at moves on, 0 at the end.  An
 * unknown name is an error: -1.
 */
int keys_parse(const char **at);

#endif
