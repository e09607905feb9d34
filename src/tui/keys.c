/* SPDX-License-Identifier: MIT */
#include "tui/keys.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

const struct key keys[] = {
	{ { KEY_ARROW_UP, 'k' }, "Up k", "one line up", DO_UP, "MOVE" },
	{ { KEY_ARROW_DOWN, 'j' }, "Down j", "one line down", DO_DOWN, NULL },
	{ { KEY_PAGE_UP }, "PgUp", "a page up", DO_PAGE_UP, NULL },
	{ { KEY_PAGE_DOWN, ' ' }, "PgDn Space", "a page down", DO_PAGE_DOWN,
	  NULL },
	{ { KEY_CTRL_U }, "Ctrl-U", "half a page up", DO_HALF_UP, NULL },
	{ { KEY_CTRL_D }, "Ctrl-D", "half a page down", DO_HALF_DOWN, NULL },
	{ { KEY_FIRST, 'g' }, "Home g", "first line", DO_FIRST, NULL },
	{ { KEY_LAST, 'G' }, "End G", "last line", DO_LAST, NULL },
	{ { KEY_TABULATOR }, "Tab", "next table", DO_NEXT_PANE, NULL },
	{ { KEY_BACK_TAB }, "Shift-Tab", "table before", DO_PREVIOUS_PANE,
	  NULL },
	{ { KEY_RETURN, KEY_ARROW_RIGHT, 'l', '\r' }, "Enter Right l",
	  "open this row", DO_ENTER, "GO" },
	{ { KEY_ARROW_LEFT, KEY_BACK, 'h' }, "Left Backspace h",
	  "back to the page before", DO_OUT, NULL },
	{ { ':' }, ":", "ADDRESS or command", DO_PROMPT, NULL },
	{ { '/' }, "/", "search, Aa matter if a capital", DO_SEARCH, "FIND" },
	{ { 'n' }, "n", "next match", DO_NEXT, NULL },
	{ { 'N' }, "N", "match before", DO_PREVIOUS, NULL },
	{ { 'f' }, "f", "filter, as size>1k", DO_FILTER, NULL },
	{ { KEY_ESCAPE }, "Esc", "drop filter, else back", DO_ESCAPE, NULL },
	{ { 's' }, "s", "sort by next column", DO_SORT, "LOOK" },
	{ { 'S' }, "S", "sort the other way", DO_REVERSE, NULL },
	{ { '+' }, "+", "open a branch, magnify a map", DO_OPEN, NULL },
	{ { '-' }, "-", "close it, or the other way", DO_CLOSE, NULL },
	{ { '*' }, "*", "open the tree further", DO_OPEN_ALL, NULL },
	{ { 'x' }, "x", "block: words, hex, members, all", DO_FACE, NULL },
	{ { 'z' }, "z", "map: what is used, or in memory", DO_HEAT, NULL },
	{ { 'o' }, "o", "trace: peak, end, in all...", DO_METRIC, NULL },
	{ { 'm' }, "m", "trace: exact or estimates", DO_ESTIMATE, NULL },
	{ { 'd' }, "d", "trace: difference from here", DO_MARK, NULL },
	{ { 'i' }, "i", "all columns of the row", DO_COLUMNS, NULL },
	{ { 'u' }, "u", "units: K M G or bytes", DO_UNITS, NULL },
	{ { 'b' }, "b", "bars on or off", DO_BARS, NULL },
	{ { 'e' }, "e", "write .txt .csv .json", DO_EXPORT, NULL },
	{ { 'r' }, "r", "process: look again, what changed", DO_LOOK, NULL },
	{ { KEY_CTRL_L }, "Ctrl-L", "draw all again", DO_REDRAW, NULL },
	{ { '?', KEY_HELP_PAGE }, "? F1", "this help", DO_HELP, "LEAVE" },
	{ { 'q' }, "q", "close, back, at the top quit", DO_QUIT, NULL },
	{ { 'Q' }, "Q", "quit at once", DO_LEAVE, NULL },
	{ { KEY_CTRL_C }, "Ctrl-C", "end what is computed, else quit",
	  DO_INTERRUPT, NULL },
};
const size_t n_keys = countof(keys);

enum action keys_action(int code)
{
	if (code >= '1' && code <= '9')
		return DO_VIEW;
	for (size_t i = 0; code && i < n_keys; i++)
		for (size_t k = 0; k < KEYS_EACH; k++)
			if (keys[i].code[k] == code)
				return keys[i].action;
	return DO_NOTHING;
}

static const struct {
	const char *name;
	int code;
} names[] = {
	{ "Up", KEY_ARROW_UP }, { "Down", KEY_ARROW_DOWN },
	{ "Left", KEY_ARROW_LEFT }, { "Right", KEY_ARROW_RIGHT },
	{ "PgUp", KEY_PAGE_UP }, { "PgDn", KEY_PAGE_DOWN },
	{ "Home", KEY_FIRST }, { "End", KEY_LAST },
	{ "Backspace", KEY_BACK }, { "Tab", KEY_TABULATOR },
	{ "S-Tab", KEY_BACK_TAB }, { "F1", KEY_HELP_PAGE },
	{ "Enter", KEY_RETURN }, { "Esc", KEY_ESCAPE }, { "lt", '<' },
	{ "Space", ' ' }, { "C-c", KEY_CTRL_C }, { "C-d", KEY_CTRL_D },
	{ "C-l", KEY_CTRL_L }, { "C-u", KEY_CTRL_U },
	{ "WheelUp", KEY_WHEEL_UP }, { "WheelDown", KEY_WHEEL_DOWN },
};

/* <Click LINE,COLUMN>; or -1. */
static int parse_click(const char *p, const char *end)
{
	bool again = !strncasecmp(p, "<Again ", 7);
	int line, column, n = 0;

	if ((!again && strncasecmp(p, "<Click ", 7)) ||
	    sscanf(p + 7, "%4d,%4d%n", &line, &column, &n) != 2 ||
	    p + 7 + n != end || line < 1 || column < 1 ||
	    column > KEY_CLICK_LINE)
		return -1;
	return (again ? KEY_CLICK_AGAIN : KEY_CLICK) +
	       (line - 1) * KEY_CLICK_LINE + column - 1;
}

int keys_parse(const char **at)
{
	const char *p = *at;
	const char *end;

	if (!*p)
		return 0;
	if (*p != '<') {
		*at = p + 1;
		return (unsigned char)*p;
	}
	end = strchr(p, '>');
	for (size_t i = 0; end && i < countof(names); i++) {
		size_t n = strlen(names[i].name);

		if ((size_t)(end - p - 1) != n ||
		    strncasecmp(p + 1, names[i].name, n))
			continue;
		*at = end + 1;
		return names[i].code;
	}
	if (!end || parse_click(p, end) < 0)
		return -1;
	*at = end + 1;
	return parse_click(p, end);
}
