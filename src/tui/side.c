/* SPDX-License-Identifier: MIT */
/*
 * The pane beside the page: what Enter would open, as far as it is known, or
 * else all columns of the row.  It is made anew for each row, so nothing is
 * computed for it.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "tui/tui.h"

int tui_page_width(const struct tui *t)
{
	const struct page *p = tui_page(t);

	if (t->screen.w < TUI_SPLIT || !p || p->heat || p->columns)
		return t->screen.w;
	return t->screen.w * 5 / 9;
}

static int side_width(const struct tui *t)
{
	return t->screen.w - tui_page_width(t) - 1;
}

struct page *tui_picture(struct tui *t, vaddr start, vaddr end)
{
	struct page *p = tui_new_page(t, "Map", 0);

	if (t->kept && t->kept->start == start && t->kept->end == end) {
		p->heat = t->kept;
		p->heat->size = 0;
		t->kept = NULL;
	} else {
		p->heat = heat_new(start, end);
	}
	return p;
}

/* Moving on and back must not look at a large heap again. */
static void keep_picture(struct tui *t, struct page *p)
{
	if (!p->heat || (t->kept && t->kept->end - t->kept->start >
			 p->heat->end - p->heat->start))
		return;
	heat_free(t->kept);
	t->kept = p->heat;
	p->heat = NULL;
}

void tui_drop_side(struct tui *t)
{
	if (t->side)
		keep_picture(t, t->side);
	if (t->side)
		page_fini(t->side);
	free(t->side);
	t->side = NULL;
	t->in_side = false;
}

static bool shows_goal(struct tui *t, const struct goal *goal,
		       struct page **ret)
{
	bool address = goal->kind == GOAL_ADDRESS;
	struct page *p;
	struct err err;

	if ((!address && goal->kind != GOAL_SECTIONS) ||
	    (address && goal->addr == tui_page(t)->at))
		return false;
	p = tui_new_page(t, address ? "Address" : goal->name,
		     address ? 1u << SECTION_AT : goal->sections);
	p->at = goal->addr;
	p->options.glance = true;
	if (t->source->build(t->source->context, &p->report, p->at, &err) &&
	    page_has_rows(p)) {
		*ret = p;
		return true;
	}
	page_fini(p);
	free(p);
	return false;
}

static void make_side(struct tui *t)
{
	struct page_look look = { side_width(t), t->exact, t->no_bars };
	struct page *p = tui_page(t);
	struct page_part *part;
	const struct cell *row = page_row(p, &part);
	struct goal goal;

	if (!row)
		return;
	goal_init(&goal);
	t->source->goal(t->source->context, p, part->table, row, &goal);
	if (goal.kind == GOAL_PICTURE) {
		t->side = tui_picture(t, goal.addr, goal.end);
	} else if (!shows_goal(t, &goal, &t->side)) {
		t->side = tui_new_page(t, "Row", 0);
		page_show_row(t->side, part->table, row);
	}
	goal_fini(&goal);
	page_lay_out(t->side, &look);
}

struct page *tui_side(struct tui *t)
{
	if (tui_page_width(t) == t->screen.w) {
		tui_drop_side(t);
		return NULL;
	}
	if (t->side && t->side_line != tui_page(t)->cursor)
		tui_drop_side(t);
	if (!t->side)
		make_side(t);
	t->side_line = tui_page(t)->cursor;
	return t->side;
}
