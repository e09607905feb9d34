/* SPDX-License-Identifier: MIT */
/*
 * Pages, prompts and help as cells.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "tui/keys.h"
#include "tui/tui.h"

enum { LEAST_W = 60, LEAST_H = 15 };

static int last(const struct tui *t)
{
	return t->screen.h - 1;
}

/* What is looked at, without the folders it is in. */
static const char *head_text(const struct tui *t)
{
	const char *head = t->root[0]->report.head[0].text;
	const char *end = strchr(head, ':');

	for (const char *p = head; end && p < end; p++)
		if (*p == '/')
			head = p + 1;
	return head;
}

/* " heapcore  core.1234: appd, pid 1234      150112 blocks  38.9M" */
static void draw_title(struct tui *t)
{
	struct page *p = tui_page(t);
	const char *head = head_text(t);
	struct str s;
	int at, room;
	bool cut;

	str_init(&s);
	if (p->is_blocks) {
		struct tally total = block_rows_total(p->blocks);
		char size[NUM_MAX];

		num_format_size(size, total.bytes);
		str_printf(&s, "%" PRIu64 " block%s  %s", total.blocks,
			   total.blocks == 1 ? "" : "s", size);
	} else if (p->at && t->source->blocks) {
		str_printf(&s, "0x%" PRIx64, p->at);
	} else {
		str_adds(&s, p->name);
	}
	screen_fill(&t->screen, 0, ROLE_BAR, ' ');
	at = screen_puts(&t->screen, 0, 1, ROLE_BAR, "heapcore  ");
	/* Two names side by side would be one. */
	room = t->screen.w - (int)s.len - 4 - at;
	room = room > 0 ? room : 0;
	cut = strlen(head) > (size_t)room;
	screen_text(&t->screen, 0, at, ROLE_BAR, head, cut ? (size_t)room
							   : strlen(head));
	if (cut)
		screen_puts(&t->screen, 0, at + room, ROLE_BAR, ">");
	screen_puts(&t->screen, 0, t->screen.w - (int)s.len - 1, ROLE_BAR,
		    s.text);
	str_fini(&s);
}

/* "[1 Overview] 2 Arenas  3 Types ..."; without room others are numbers. */
static void draw_views(struct tui *t)
{
	int x = 0, w = 0;

	for (size_t i = 0; i < t->source->n_views; i++)
		w += (int)strlen(t->source->views[i].name) + 3;
	for (size_t i = 0; i < t->source->n_views; i++) {
		bool here = i == t->view;
		enum role role = here ? ROLE_HEADING : ROLE_TEXT;
		char text[40];

		snprintf(text, sizeof(text), w < t->screen.w || here
			 ? "%zu %s" : "%zu", i + 1, t->source->views[i].name);
		if (here)
			screen_puts(&t->screen, 1, x, role, "[");
		x = screen_puts(&t->screen, 1, x + 1, role, text);
		if (here)
			screen_puts(&t->screen, 1, x, role, "]");
	}
}

/* Where the bar of a line begins; its end if it has none. */
static size_t bar_start(const struct str *line)
{
	size_t n = line->len;

	while (n && line->text[n - 1] == '#')
		n--;
	return n && line->text[n - 1] == ' ' ? n : line->len;
}

/* A part of the screen's width that shows a page. */
struct pane {
	struct page *p;
	int x;
	int top;		/* the first line of its tables */
	bool active;		/* the cursor is here */
};

/*
 * A line that goes on says so, and a word that is cut goes away: the rest of a
 * number would be another one.
 */
static void mark_cut(struct tui *t, int y, int x, const char *text, size_t n)
{
	int room = t->screen.right - x;
	int at = room;

	if (room < 1 || n <= (size_t)room)
		return;
	while (at && text[at - 1] != ' ' && text[room] != ' ')
		at--;
	if (!at)
		at = room - 1;
	if (at == room && text[at - 1] == ' ')
		at--;
	for (int i = at; i < room; i++)
		screen_put(&t->screen, y, x + i, ROLE_DIM, i == at ? '>' :
			   ' ');
}

static void draw_line(struct tui *t, const struct pane *pane, uint64_t line,
		      int y, struct str *s)
{
	struct page *p = pane->p;
	int x = pane->x + 1;
	struct page_spot spot = page_line(p, line, s);
	size_t bar = bar_start(s);

	screen_text(&t->screen, y, x, spot.role, s->text, bar);
	mark_cut(t, y, x, s->text, bar);
	for (size_t i = bar; i < s->len; i++)
		screen_put(&t->screen, y, x + (int)i, ROLE_GRAPH, GLYPH_BAR);
	if (line != p->cursor || !spot.stops)
		return;
	if (!pane->active) {
		screen_puts(&t->screen, y, x, ROLE_HEADING, ">");
		return;
	}
	screen_puts(&t->screen, y, x, ROLE_CURSOR, ">");
	screen_role(&t->screen, y, x, ROLE_CURSOR);
	t->screen.cursor_y = y;
	t->screen.cursor_x = x;
}

/* The heading of what is at the top, if it has been scrolled away. */
static void draw_heading(struct tui *t, const struct pane *pane,
			 struct str *s)
{
	struct page *p = pane->p;
	struct page_spot spot = page_line(p, p->top, s);

	if (!spot.part || spot.part->first == p->top)
		return;
	page_line(p, spot.part->first, s);
	screen_puts(&t->screen, pane->top - 1, pane->x + 1, ROLE_HEADING,
		    s->text);
}

static void draw_pane(struct tui *t, const struct pane *pane)
{
	struct page *p = pane->p;
	int rows = t->screen.h - pane->top - TUI_BELOW;
	struct str s;

	if (p->heat) {
		heat_draw(p->heat, t->source->heat, &t->screen, TUI_TOP,
			  pane->x, rows, pane->active);
		return;
	}
	page_scroll(p, rows);
	str_init(&s);
	/* The rows that are made now decide how wide columns are. */
	page_line(p, p->cursor, &s);
	draw_heading(t, pane, &s);
	for (int i = 0; i < rows; i++)
		if (p->top + (uint64_t)i < p->n_lines)
			draw_line(t, pane, p->top + (uint64_t)i,
				  pane->top + i, &s);
	if (!p->n_parts || (p->is_blocks && p->n_lines < 3))
		screen_puts(&t->screen, pane->top + 1, pane->x + 3, ROLE_TEXT,
			    p->filter.len ? "Nothing matches." :
			    "There is nothing to show here.");
	str_fini(&s);
}

/* The page, and on a wide screen what is behind the row under its cursor. */
static void draw_page(struct tui *t)
{
	struct page *side = tui_side(t);
	struct pane left = { tui_page(t), 0, TUI_TOP, !t->in_side };
	struct pane right = { side, tui_page_width(t) + 1, TUI_TOP,
			      t->in_side };

	t->screen.right = tui_page_width(t);
	if (t->source->picture)
		left.top += t->source->picture(t->source->context, t, TUI_TOP);
	t->page_top = left.top;
	draw_pane(t, &left);
	t->screen.right = t->screen.w;
	if (!side)
		return;
	for (int y = TUI_TOP - 1; y < t->screen.h - TUI_BELOW; y++)
		screen_put(&t->screen, y, right.x - 1, ROLE_DIM,
			   GLYPH_BORDER);
	draw_pane(t, &right);
}

/* Lines of a text, from one on. */
static void draw_text(struct tui *t, const char *text)
{
	int rows = t->screen.h - TUI_TOP - TUI_BELOW;
	uint64_t lines = 0, i = 0;

	for (const char *p = text; *p; p++)
		lines += *p == '\n';
	if (t->top + (uint64_t)rows > lines)
		t->top = lines > (uint64_t)rows ? lines - (uint64_t)rows : 0;
	for (; *text; text += *text == '\n', i++) {
		size_t n = strcspn(text, "\n");

		if (i >= t->top && i - t->top < (uint64_t)rows)
			screen_text(&t->screen, TUI_TOP + (int)(i - t->top), 1,
				    ROLE_TEXT, text, n);
		text += n;
	}
}

/* One group of keys; where it ends. */
static void add_group(struct str *s, size_t first, size_t end)
{
	str_printf(s, "%s\n", keys[first].group);
	for (size_t i = first; i < end; i++)
		str_printf(s, "  %-18s%s\n", keys[i].name, keys[i].help);
}

static void add_views(const struct tui *t, struct str *s)
{
	str_adds(s, "VIEWS\n");
	for (size_t i = 0; i < t->source->n_views; i++)
		str_printf(s, "%c %zu %-16s%s\n",
			   i == t->help_view ? '>' : ' ', i + 1,
			   t->source->views[i].name,
			   t->source->views[i].help);
}

static void draw_help(struct tui *t)
{
	struct str s;

	str_init(&s);
	add_views(t, &s);
	for (size_t i = 0, end; i < n_keys; i = end) {
		for (end = i + 1; end < n_keys && !keys[end].group; end++)
			;
		add_group(&s, i, end);
	}
	draw_text(t, s.text);
	str_fini(&s);
	if (t->top)
		return;
	t->screen.cursor_y = TUI_TOP + 1 + (int)t->help_view;
	t->screen.cursor_x = 1;
	screen_role(&t->screen, t->screen.cursor_y, 1, ROLE_CURSOR);
}

static void draw_rule(struct tui *t)
{
	struct page *p = tui_page(t);
	int y = last(t) - 1;
	int x = 1;
	enum role role;

	screen_fill(&t->screen, y, ROLE_DIM, GLYPH_RULE);
	if (t->message.len) {
		role = t->is_warning ? ROLE_WARNING : ROLE_HEADING;
		x = screen_puts(&t->screen, y, x, role, " ");
		x = screen_puts(&t->screen, y, x, role, t->message.text);
		screen_puts(&t->screen, y, x, role, " ");
	} else if (p->filter.len) {
		x = screen_puts(&t->screen, y, x, ROLE_HEADING, " filter: ");
		x = screen_puts(&t->screen, y, x, ROLE_HEADING,
				p->filter.text);
		screen_puts(&t->screen, y, x, ROLE_HEADING, " ");
	}
}

static void draw_prompt(struct tui *t)
{
	static const struct {
		char what;
		const char *text;
	} prompts[] = {
		{ '/', "search: " }, { 'f', "filter, as size>1k: " },
		{ 'e', "write to .txt, .csv or .json: " },
		{ ':', "address, sort COLUMN, filter, export, mouse, quit: " },
	};
	int y = last(t), x = 1;

	for (size_t i = 0; i < countof(prompts); i++)
		if (prompts[i].what == t->prompt)
			x = screen_puts(&t->screen, y, x, ROLE_HEADING,
					prompts[i].text);
	x = screen_puts(&t->screen, y, x, ROLE_TEXT, t->typed.text);
	t->screen.cursor_y = y;
	t->screen.cursor_x = x < t->screen.w ? x : t->screen.w - 1;
}

/* Keys with two blanks between; whole ones, and always those of the end. */
static void draw_keys(struct tui *t, const char *text)
{
	const char *end = strstr(text, "? help");
	int room = t->screen.w - 1, x = 1;

	if ((int)strlen(text) > room && end)
		room -= (int)strlen(end);
	while (*text && text != end) {
		const char *next = strstr(text, "  ");
		size_t n = next ? (size_t)(next - text) + 2 : strlen(text);

		if (x + (int)n > room)
			break;
		x = screen_text(&t->screen, last(t), x, ROLE_BAR, text, n);
		text += n;
	}
	if (end)
		screen_puts(&t->screen, last(t), x, ROLE_BAR, end);
}

static void draw_foot(struct tui *t)
{
	const char *own = t->source->foot
		? t->source->foot(t->source->context, tui_page(t)) : NULL;
	const char *text = t->mode != TUI_PAGE
		? "Enter goes to the view  Space more  any other key closes "
		  "this"
		: tui_active(t)->heat
		? "arrows cell  + - magnify  z use or memory  Enter blocks  "
		  "Backspace back"
		: own ? own
		: "Enter open  Left back  / search  f filter  s sort  "
		  "e export  ? help  q quit";

	if (t->mode == TUI_PROMPT) {
		draw_prompt(t);
		return;
	}
	screen_fill(&t->screen, last(t), ROLE_BAR, ' ');
	draw_keys(t, text);
}

static void draw_too_small(struct tui *t)
{
	char text[80];

	snprintf(text, sizeof(text), "make it %dx%d",
		 LEAST_W, LEAST_H);
	screen_puts(&t->screen, 0, 0, ROLE_TEXT, text);
	screen_puts(&t->screen, 1, 0, ROLE_TEXT, "q quits");
}

void tui_draw(struct tui *t)
{
	screen_clear(&t->screen);
	if (t->screen.w < LEAST_W || t->screen.h < LEAST_H) {
		draw_too_small(t);
		return;
	}
	draw_title(t);
	draw_views(t);
	if (t->mode == TUI_HELP)
		draw_help(t);
	else
		draw_page(t);
	draw_rule(t);
	draw_foot(t);
}
