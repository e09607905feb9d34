/* SPDX-License-Identifier: MIT */
/*
 * The mouse, which is off until it is asked for, so that the terminal's own
 * copying works.  A click moves the cursor; on the row that has it, or a second
 * one at once, it does what Enter does.
 */
#include <stdio.h>

#include "tui/term.h"
#include "tui/tui.h"

enum { WHEEL_LINES = 3, VIEWS_LINE = 1, HELP_FIRST = 4 };

void tui_switch_mouse(struct tui *t)
{
	t->mouse = !t->mouse;
	if (t->interactive && !term_mouse(t->mouse)) {
		t->mouse = false;
		tui_say(t, true, "this terminal tells of no mouse");
	} else if (t->mouse) {
		tui_say(t, false, "clicks and wheel; :mouse again gives the "
			"mouse back to the terminal");
	} else {
		tui_say(t, false, "the mouse is the terminal's");
	}
}

/* As draw_views() writes them; n_views if there is none. */
static size_t view_at(const struct tui *t, int x)
{
	int end = 0;
	size_t i;

	for (i = 0; i < t->source->n_views; i++) {
		end += 1 + snprintf(NULL, 0, "%zu %s", i + 1,
				    t->source->views[i].name);
		if (x < end)
			break;
	}
	return i;
}

static void click_help(struct tui *t, int y)
{
	size_t view = (size_t)(y - HELP_FIRST) + (size_t)t->top;

	t->mode = TUI_PAGE;
	if (y >= HELP_FIRST && !t->top && view < t->source->n_views)
		tui_go_to_view(t, view);
}

/* To the cell of a picture; true if the cursor was there already. */
static bool go_to_cell(struct heat *h, int y, int x)
{
	vaddr at;
	bool here;

	if (!heat_cell_at(h, y, x, &at))
		return false;
	here = at == h->at;
	h->at = at;
	return here;
}

/* The same for the line of a page; a heading leads nowhere. */
static bool go_to_line(struct page *p, uint64_t line)
{
	struct page_spot s;
	struct str text;
	bool here = line == p->cursor;

	str_init(&text);
	s = page_line(p, line, &text);
	str_fini(&text);
	if (s.stops)
		page_go(p, line, false);
	return s.stops && here;
}

static void click_page(struct tui *t, int y, int x, bool again)
{
	struct page *side = tui_side(t);
	bool in_side = side && x >= tui_page_width(t);
	bool moved = in_side != t->in_side;
	int top = in_side ? TUI_TOP : t->page_top;
	struct page *p = in_side ? side : tui_page(t);
	bool here;

	if (y < top || y >= top + tui_page_height(t))
		return;
	t->in_side = in_side;
	here = p->heat ? go_to_cell(p->heat, y, x)
		       : go_to_line(p, p->top + (uint64_t)(y - top));
	if (here && (!moved || again)) {
		t->click_opened = true;
		tui_enter(t);
	}
}

static void click(struct tui *t, int y, int x, bool again)
{
	/* The first one of the two has done it already. */
	if (again && t->click_opened)
		return;
	t->click_opened = false;
	if (t->mode == TUI_HELP)
		click_help(t, y);
	else if (y == VIEWS_LINE)
		tui_go_to_view(t, view_at(t, x));
	else
		click_page(t, y, x, again);
}

static void wheel(struct tui *t, bool up)
{
	struct page *p = tui_active(t);

	if (t->mode == TUI_HELP)
		t->top = up ? t->top - min_u64(t->top, WHEEL_LINES)
			    : t->top + WHEEL_LINES;
	else if (p->heat)
		heat_key(p->heat, up ? DO_UP : DO_DOWN, 0);
	else
		page_roll(p, up ? -WHEEL_LINES : WHEEL_LINES,
			  t->screen.h - t->page_top - TUI_BELOW);
}

bool tui_mouse_key(struct tui *t, int code)
{
	bool again = code >= KEY_CLICK_AGAIN;
	int at = code - (again ? KEY_CLICK_AGAIN : KEY_CLICK);

	if (code < KEY_CLICK && code != KEY_WHEEL_UP &&
	    code != KEY_WHEEL_DOWN)
		return false;
	if (!t->mouse || t->mode == TUI_PROMPT)
		return true;
	if (code < KEY_CLICK)
		wheel(t, code == KEY_WHEEL_UP);
	else
		click(t, at / KEY_CLICK_LINE, at % KEY_CLICK_LINE, again);
	return true;
}
