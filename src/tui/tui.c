/* SPDX-License-Identifier: MIT */
#include "tui/tui.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "tui/keys.h"
#include "tui/term.h"
#include "tui/undo.h"

static unsigned knowledge(const struct tui *t)
{
	return t->source->knowledge
		? t->source->knowledge(t->source->context) : 0;
}

/* What other pages computed is said there. */
static void refresh_first_page(struct tui *t)
{
	if (t->depth || t->view || t->knew == knowledge(t))
		return;
	t->knew = knowledge(t);
	tui_refresh_page(t, t->root[0]);
}

static void make_first_page(struct tui *t)
{
	const struct view *v = &t->source->views[0];

	t->root[0] = tui_make_page(t, v->name, v->sections, 0);
	t->knew = knowledge(t);
}

void tui_init(struct tui *t, const struct tui_source *source, bool utf8,
	      int w, int h)
{
	*t = (struct tui){ .source = source, .utf8 = utf8 };
	screen_init(&t->screen, w, h);
	str_init(&t->typed);
	str_init(&t->sought);
	str_init(&t->message);
	make_first_page(t);
}

void tui_free_page(struct page *p)
{
	if (p)
		page_fini(p);
	free(p);
}

static void pop_to(struct tui *t, size_t depth)
{
	while (t->depth > depth)
		tui_free_page(t->stack[--t->depth]);
}

void tui_fini(struct tui *t)
{
	tui_drop_side(t);
	heat_free(t->kept);
	pop_to(t, 0);
	for (size_t i = 0; i < TUI_VIEWS; i++)
		tui_free_page(t->root[i]);
	str_fini(&t->typed);
	str_fini(&t->sought);
	str_fini(&t->message);
	screen_fini(&t->screen);
}

struct page *tui_page(const struct tui *t)
{
	return t->depth ? t->stack[t->depth - 1] : t->root[t->view];
}

struct page *tui_active(const struct tui *t)
{
	return t->in_side ? t->side : tui_page(t);
}

void tui_say(struct tui *t, bool warning, const char *fmt, ...)
{
	AUTO_FREE char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	str_clear(&t->message);
	if (n < 0)
		text = NULL;
	else
		str_add_escaped(&t->message, text, (size_t)n);
	t->is_warning = warning;
}

/* A list of blocks that now can say more. */
static void make_again(struct tui *t, size_t view)
{
	struct page *old = t->root[view];
	struct page *new = tui_make_blocks(t, old->filter.text);
	struct page_look look = tui_look(t);

	if (!new)
		return;
	new->cursor = old->cursor;
	if (old->part[0].sort >= 0) {
		page_sort(new, old->part[0].sort, old->part[0].reverse, &look);
		new->cursor = old->cursor;
		page_lay_out(new, &look);
	}
	tui_free_page(old);
	t->root[view] = new;
}

void tui_go_to_view(struct tui *t, size_t view)
{
	const struct view *v = &t->source->views[view];

	if (view >= t->source->n_views)
		return;
	if (t->root[view] && page_is_stale(t->root[view]))
		make_again(t, view);
	if (!t->root[view])
		t->root[view] = v->sections
			? tui_make_page(t, v->name, v->sections,
					t->source->view_at
					? t->source->view_at[view] : 0)
			: tui_make_blocks(t, "");
	if (!t->root[view])
		return;
	pop_to(t, 0);
	t->view = view;
	refresh_first_page(t);
	tui_lay_out(t, t->root[view]);
}

static void go_out(struct tui *t, bool quits)
{
	if (t->in_side) {
		t->in_side = false;
		return;
	}
	if (t->depth)
		pop_to(t, t->depth - 1);
	else if (quits)
		t->done = true;
	else if (t->view)
		tui_go_to_view(t, 0);
	else
		tui_say(t, false, "this is the first page; q quits");
	if (t->done)
		return;
	refresh_first_page(t);
	tui_lay_out(t, tui_page(t));
}

int tui_page_height(const struct tui *t)
{
	return t->screen.h > 6 ? t->screen.h - 5 : 1;
}

static void prompt(struct tui *t, char what)
{
	t->mode = TUI_PROMPT;
	t->prompt = what;
	str_clear(&t->typed);
	if (what == 'f')
		str_adds(&t->typed, tui_page(t)->filter.text);
}

static void sort_page(struct tui *t, bool reverse)
{
	const struct page_look look = tui_look(t);
	struct page_part *part;
	struct page *p = tui_page(t);
	int column;

	if (page_row(p, &part) && part->table->depth) {
		tui_say(t, false, "a tree stays in its order");
		return;
	}
	if (!page_row(p, &part) || part->table->form != TABLE_ROWS) {
		tui_say(t, false, "nothing to sort here");
		return;
	}
	if (p->n_opened) {
		tui_say(t, false, "close the tree first: -");
		return;
	}
	column = reverse ? part->sort < 0 ? page_next_column(part)
					  : part->sort
			 : page_next_column(part);
	if (p->is_blocks && !tui_may_compute(t)) {
		tui_say(t, true, "cancelled");
		return;
	}
	page_sort(p, column, reverse && !part->reverse, &look);
	tui_drop_side(t);
	tui_say(t, false, "sorted by %s%s", part->table->columns[column].key,
		part->reverse ? ", the other way" : "");
}

static void search_next(struct tui *t, bool backwards)
{
	if (!t->sought.len)
		tui_say(t, false, "nothing to search for: type / first");
	else if (!page_search(tui_active(t), t->sought.text, backwards))
		tui_say(t, false, "no match: %s", t->sought.text);
}

static void escape(struct tui *t)
{
	struct page *p = tui_page(t);

	if (!p->filter.len || p->is_blocks) {
		go_out(t, false);
		return;
	}
	prompt(t, 'f');
	str_clear(&t->typed);
	t->mode = TUI_PAGE;
	tui_run_prompt(t);
}

/* All pages are of another time now; the first one is what has changed. */
static void look_again(struct tui *t)
{
	struct err err = { .kind = ERR_NONE };

	if (!t->source->look) {
		tui_say(t, false, "only a process can be looked at again");
		return;
	}
	if (!tui_may_compute(t)) {
		tui_say(t, true, "cancelled");
		return;
	}
	if (!t->source->look(t->source->context, &err)) {
		tui_say(t, true, "%s", err.msg);
		return;
	}
	tui_drop_side(t);
	heat_free(t->kept);
	t->kept = NULL;
	pop_to(t, 0);
	for (size_t i = 0; i < TUI_VIEWS; i++) {
		tui_free_page(t->root[i]);
		t->root[i] = NULL;
	}
	t->view = 0;
	make_first_page(t);
	tui_push_difference(t);
}

/* Words, hex, members of what is at an address. */
static void turn(struct tui *t)
{
	const struct page_look look = tui_look(t);
	struct page *p = tui_page(t);

	if (!p->at || t->in_side)
		tui_say(t, false, "this is for the page of a block");
	else
		tui_say(t, false, "%s", page_next_face(p, &look));
	if (!t->in_side)
		tui_drop_side(t);
}

static void lay_out_again(struct tui *t)
{
	tui_lay_out(t, tui_page(t));
}

static void help(struct tui *t)
{
	t->mode = TUI_HELP;
	t->top = 0;
	t->help_view = t->view;
}

/* The next table of the page; behind the last one the pane beside it. */
static void next_part(struct tui *t, bool backwards)
{
	struct page *p = tui_active(t);

	if (page_at_end(p, backwards) && tui_side(t))
		t->in_side = !t->in_side;
	else
		page_next_part(p, backwards);
}

static void act(struct tui *t, enum action action, int code)
{
	struct page *p = tui_active(t);
	int h = tui_page_height(t);

	if (p->heat && heat_key(p->heat, action, code))
		return;
	if (t->source->key && t->source->key(t->source->context, t, action,
					     code))
		return;
	switch (action) {
	case DO_UP: page_move(p, -1); break;
	case DO_DOWN: page_move(p, 1); break;
	case DO_PAGE_UP: page_move(p, -h); break;
	case DO_PAGE_DOWN: page_move(p, h); break;
	case DO_HALF_UP: page_move(p, -(h / 2 + 1)); break;
	case DO_HALF_DOWN: page_move(p, h / 2 + 1); break;
	case DO_FIRST: page_go(p, 0, false); break;
	case DO_LAST: page_go(p, p->n_lines, true); break;
	case DO_NEXT_PANE: next_part(t, false); break;
	case DO_PREVIOUS_PANE: next_part(t, true); break;
	case DO_ENTER: tui_enter(t); break;
	case DO_OUT: go_out(t, false); break;
	case DO_ESCAPE: escape(t); break;
	case DO_VIEW: tui_go_to_view(t, (size_t)(code - '1')); break;
	case DO_SEARCH: prompt(t, '/'); break;
	case DO_FILTER: prompt(t, 'f'); break;
	case DO_PROMPT: prompt(t, ':'); break;
	case DO_EXPORT: prompt(t, 'e'); break;
	case DO_NEXT: search_next(t, false); break;
	case DO_PREVIOUS: search_next(t, true); break;
	case DO_SORT: sort_page(t, false); break;
	case DO_REVERSE: sort_page(t, true); break;
	case DO_COLUMNS: tui_show_row(t); break;
	case DO_BARS: t->no_bars = !t->no_bars; lay_out_again(t); break;
	case DO_UNITS: t->exact = !t->exact; lay_out_again(t); break;
	case DO_REDRAW: t->redraw = true; break;
	case DO_HELP: help(t); break;
	case DO_QUIT: go_out(t, true); break;
	case DO_LEAVE:
	case DO_INTERRUPT: t->done = true; break;
	case DO_OPEN:
	case DO_CLOSE:
	case DO_OPEN_ALL: tui_branch(t, action); break;
	case DO_METRIC:
	case DO_ESTIMATE:
	case DO_MARK: tui_say(t, false, "that key is for traces"); break;
	case DO_LOOK: look_again(t); break;
	case DO_FACE: turn(t); break;
	case DO_HEAT: tui_say(t, false, "not on this page"); break;
	case DO_NOTHING: break;
	}
}

static void prompt_key(struct tui *t, int code)
{
	if (code == KEY_ESCAPE || code == KEY_CTRL_C) {
		t->mode = TUI_PAGE;
	} else if (code == KEY_RETURN) {
		t->mode = TUI_PAGE;
		tui_run_prompt(t);
	} else if (code == KEY_BACK) {
		if (t->typed.len)
			t->typed.text[--t->typed.len] = '\0';
	} else if (code == KEY_CTRL_U) {
		str_clear(&t->typed);
	} else if (code >= 0x20 && code < 0x7f && t->typed.len < 500) {
		str_addc(&t->typed, (char)code);
	}
}

/*
 * Help: its views are there to be chosen, around the end too; any other key
 * closes it.
 */
static void help_key(struct tui *t, enum action action, int code)
{
	size_t n = t->source->n_views;

	if (action == DO_DOWN || action == DO_UP) {
		t->top = 0;
		t->help_view += action == DO_DOWN ? 1 : n - 1;
		t->help_view %= n;
		return;
	}
	if (action == DO_PAGE_DOWN) {
		t->top += (uint64_t)tui_page_height(t);
		return;
	}
	if (action == DO_PAGE_UP) {
		t->top -= min_u64(t->top, (uint64_t)tui_page_height(t));
		return;
	}
	t->mode = TUI_PAGE;
	if (action == DO_ENTER || action == DO_VIEW)
		tui_go_to_view(t, action == DO_ENTER ? t->help_view :
			      (size_t)(code - '1'));
	if (action == DO_INTERRUPT || action == DO_LEAVE)
		t->done = true;
}

void tui_key(struct tui *t, int code)
{
	str_clear(&t->message);
	if (code == KEY_NOTHING)
		return;
	if (tui_mouse_key(t, code))
		;
	else if (t->mode == TUI_PROMPT)
		prompt_key(t, code);
	else if (t->mode != TUI_PAGE)
		help_key(t, keys_action(code), code);
	else if (keys_action(code) != DO_NOTHING)
		act(t, keys_action(code), code);
	else
		tui_say(t, false, "that key does nothing; ? shows the keys");
	if (!t->done)
		tui_draw(t);
}

void tui_resize(struct tui *t, int w, int h)
{
	screen_resize(&t->screen, w, h);
	tui_lay_out(t, tui_page(t));
	t->redraw = true;
	tui_draw(t);
}

bool tui_may_compute(struct tui *t)
{
	bool cancelled = false;

	if (t->interactive)
		undo_point(&cancelled);
	t->redraw |= cancelled;
	return !cancelled;
}

void tui_loop(struct tui *t)
{
	t->interactive = true;
	tui_draw(t);
	while (!t->done) {
		int key;

		term_show(&t->screen, t->utf8, t->redraw);
		t->redraw = false;
		key = term_key();
		if (key == KEY_RESIZED) {
			int w, h;

			term_size(&w, &h);
			tui_resize(t, w, h);
		} else {
			tui_key(t, key);
			undo_done();
		}
	}
}
