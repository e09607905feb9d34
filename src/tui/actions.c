/* SPDX-License-Identifier: MIT */
/*
 * What keys do that needs the source: opening, filtering, writing files.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "report/compare.h"
#include "tui/keys.h"
#include "tui/tui.h"

struct page_look tui_look(const struct tui *t)
{
	return (struct page_look){ tui_page_width(t), t->exact, t->no_bars };
}

void tui_lay_out(struct tui *t, struct page *p)
{
	struct page_look look = tui_look(t);

	tui_drop_side(t);
	page_lay_out(p, &look);
}

struct page *tui_new_page(struct tui *t, const char *name, unsigned sections)
{
	struct page *p = mem_zalloc(sizeof(*p));

	page_init(p, name, t->source->kind, sections);
	p->options.redact = t->source->redact;
	return p;
}

static struct page *refuse(struct tui *t, struct page *p,
			   const struct err *err)
{
	tui_say(t, true, "%s", err->msg);
	tui_free_page(p);
	return NULL;
}

struct page *tui_make_page(struct tui *t, const char *name, unsigned sections,
			   vaddr at)
{
	struct page *p = tui_new_page(t, name, sections);
	struct err err = { .kind = ERR_NONE };

	p->at = at;
	p->options.glance = at && t->source->takes_long &&
			    t->source->takes_long(t->source->context);
	if (sections == t->source->views[0].sections)
		p->options.rows = t->source->first_rows;
	if (!t->source->build(t->source->context, &p->report, at, &err))
		return refuse(t, p, &err);
	/* What was being computed. */
	str_clear(&t->message);
	tui_lay_out(t, p);
	return p;
}

struct page *tui_make_blocks(struct tui *t, const char *filter)
{
	struct page *p = tui_new_page(t, "Blocks", 0);
	struct err err = { .kind = ERR_NONE };
	const struct report_input *in =
		t->source->blocks(t->source->context, filter, &err);

	str_adds(&p->filter, filter);
	if (!in || !page_list_blocks(p, in, &err))
		return refuse(t, p, &err);
	str_clear(&t->message);
	tui_lay_out(t, p);
	return p;
}

static bool push(struct tui *t, struct page *p)
{
	if (!p)
		return false;
	if (t->depth == TUI_DEPTH) {
		tui_free_page(t->stack[0]);
		memmove(t->stack, t->stack + 1,
			(TUI_DEPTH - 1) * sizeof(t->stack[0]));
		t->depth--;
	}
	t->stack[t->depth++] = p;
	tui_drop_side(t);
	return true;
}

static bool push_blocks(struct tui *t, const char *filter)
{
	return push(t, tui_make_blocks(t, filter));
}

static bool push_sections(struct tui *t, const char *name, unsigned sections,
			  vaddr at)
{
	return push(t, tui_make_page(t, name, sections, at));
}

void tui_push_difference(struct tui *t)
{
	struct page *p = tui_new_page(t, "Since the last look",
			report_default_sections(&report_diff, false));
	struct err err = { .kind = ERR_NONE };

	p->options.kind = &report_diff;
	if (!t->source->build(t->source->context, &p->report, 0, &err)) {
		refuse(t, p, &err);
		return;
	}
	tui_lay_out(t, p);
	push(t, p);
}

/* ---- the row under the cursor ---- */

/* The blocks of the cell under a picture's cursor. */
static void enter_cell(struct tui *t, const struct heat *h)
{
	AUTO_FREE char *filter = mem_printf("address>=0x%" PRIx64
					    " address<0x%" PRIx64,
					    h->at, h->at + h->size);

	push_blocks(t, filter);
}

/* Cancelled, the page is what it was. */
static void look_for_rest(struct tui *t, struct page *p)
{
	if (t->in_side && !push_sections(t, p->name, p->options.sections,
					     p->at))
		return;
	p = tui_page(t);
	p->options.glance = false;
	tui_refresh_page(t, p);
	if (page_has_rows(p)) {
		str_clear(&t->message);
		return;
	}
	p->options.glance = true;
	tui_refresh_page(t, p);
}

void tui_enter(struct tui *t)
{
	struct page_part *part;
	const struct cell *row = page_row(tui_active(t), &part);
	struct goal goal;

	if (tui_active(t)->heat)
		enter_cell(t, tui_active(t)->heat);
	if (!row)
		return;
	goal_init(&goal);
	t->source->goal(t->source->context, tui_active(t), part->table, row,
			&goal);
	switch (goal.kind) {
	case GOAL_NONE:
		/* A row's own page has nothing behind it. */
		if (tui_active(t)->options.sections)
			tui_show_row(t);
		if (t->source->nowhere)
			tui_say(t, false, "%s", t->source->nowhere);
		break;
	case GOAL_SECTIONS:
		push_sections(t, goal.name, goal.sections, goal.addr);
		break;
	case GOAL_REST:
		look_for_rest(t, tui_active(t));
		break;
	case GOAL_BRANCH:
		tui_branch(t, DO_ENTER);
		break;
	case GOAL_BLOCKS:
		push_blocks(t, goal.filter.text);
		break;
	case GOAL_ADDRESS:
		if (goal.addr == tui_active(t)->at && !t->in_side)
			tui_say(t, false, "this page is about that address");
		else
			push_sections(t, "Address", 1u << SECTION_AT,
					  goal.addr);
		break;
	case GOAL_PICTURE:
		/* It may be the one beside. */
		tui_drop_side(t);
		push(t, tui_picture(t, goal.addr, goal.end));
		break;
	}
	goal_fini(&goal);
}

void tui_show_row(struct tui *t)
{
	struct page_part *part;
	const struct cell *row = page_row(tui_active(t), &part);
	struct page *p;

	if (!row)
		return;
	p = tui_new_page(t, "Row", 0);
	page_show_row(p, part->table, row);
	tui_lay_out(t, p);
	push(t, p);
}

/* ---- trees ---- */

/* The node of the row under the cursor; false if it is of no tree. */
static bool node_here(struct page *p, uint32_t *ret)
{
	struct page_part *part;
	const struct cell *row = page_row(p, &part);
	int k = row ? column_find(part->table->columns,
				  part->table->n_columns, "node") : -1;

	if (k < 0 || !row[k].known)
		return false;
	*ret = (uint32_t)row[k].u;
	return true;
}

static bool is_opened(const struct page *p, uint32_t node)
{
	for (size_t i = 0; i < p->n_opened; i++)
		if (p->opened[i] == node)
			return true;
	return false;
}

/* As it was, but for the opened nodes; the cursor stays on its line. */
static void build_again(struct tui *t, struct page *p)
{
	uint64_t cursor = p->cursor, top = p->top;
	struct err err = { .kind = ERR_NONE };

	p->options.opened = p->opened;
	p->options.n_opened = p->n_opened;
	for (size_t i = 0; i < PAGE_PARTS; i++)
		p->part[i].sort = -1;
	page_forget(p);
	if (!t->source->build(t->source->context, &p->report, p->at, &err))
		tui_say(t, true, "%s", err.msg);
	p->cursor = cursor;
	p->top = top;
	tui_lay_out(t, p);
}

static void open_node(struct tui *t, struct page *p, uint32_t node)
{
	MEM_PUSH(p->opened, p->n_opened, p->cap_opened) = node;
	build_again(t, p);
}

/* The row that has this one as a child: above, and with less blanks. */
static void go_to_parent(struct page *p)
{
	struct page_part *part;
	const struct cell *row = page_row(p, &part);
	struct str s;
	size_t indent;

	str_init(&s);
	page_line(p, p->cursor, &s);
	indent = strspn(s.text, " ");
	while (row && p->cursor > part->first + 1) {
		page_move(p, -1);
		page_line(p, p->cursor, &s);
		if (strspn(s.text, " ") < indent)
			break;
	}
	str_fini(&s);
}

static void close_node(struct tui *t, struct page *p, uint32_t node)
{
	if (!is_opened(p, node)) {
		go_to_parent(p);
		if (!node_here(p, &node))
			return;
	}
	for (size_t i = 0; i < p->n_opened; i++)
		if (p->opened[i] == node)
			p->opened[i--] = p->opened[--p->n_opened];
	build_again(t, p);
}

/* What is opened is found then. */
static void branch_of_nodes(struct tui *t, enum action action)
{
	enum { STEPS = 10 };
	struct page *p = tui_page(t);
	uint64_t line = p->cursor;
	uint32_t node;

	if (t->in_side || !node_here(p, &node)) {
		tui_say(t, false, "there is nothing to open or close here");
		return;
	}
	if (p->filter.len) {
		tui_say(t, false, "drop the filter first: Esc");
	} else if (action == DO_CLOSE ||
		   (action == DO_ENTER && is_opened(p, node))) {
		close_node(t, p, node);
	} else if (action == DO_OPEN || action == DO_ENTER) {
		if (!is_opened(p, node))
			open_node(t, p, node);
	} else {
		/* Along the way that keeps most. */
		for (int i = 0; i < STEPS && node_here(p, &node); i++) {
			uint64_t lines = p->n_lines;

			if (!is_opened(p, node))
				open_node(t, p, node);
			else
				lines = 0;
			if (p->n_lines == lines)
				break;
			page_move(p, 1);
		}
		page_go(p, line, false);
	}
}

void tui_branch(struct tui *t, enum action action)
{
	enum page_branch what = action == DO_OPEN ? BRANCH_OPEN
		: action == DO_CLOSE ? BRANCH_CLOSE
		: action == DO_ENTER ? BRANCH_TOGGLE : BRANCH_OPEN_ALL;
	struct page_look look = tui_look(t);

	if (t->in_side || !page_branch(tui_page(t), what, &look))
		branch_of_nodes(t, action);
	else
		tui_drop_side(t);
}

/* ---- what was typed ---- */

static void go_to_address(struct tui *t, vaddr addr)
{
	struct page *p = tui_page(t);

	if (!t->source->blocks)
		tui_say(t, true, "there are no blocks here");
	else if (p->is_blocks && !p->filter.len && p->part[0].sort <= 0)
		page_go(p, 1 + block_rows_find(p->blocks, addr), false);
	else
		push_sections(t, "Address", 1u << SECTION_AT, addr);
}

static void filter_blocks(struct tui *t, const char *expr)
{
	struct page *p = tui_page(t);
	struct page *new = tui_make_blocks(t, expr);

	if (!new)
		return;
	if (t->depth)
		t->stack[t->depth - 1] = new;
	else
		t->root[t->view] = new;
	tui_free_page(p);
}

/* False: the message says why there are no tables. */
static bool build_page(struct tui *t, struct page *p)
{
	struct err err = { .kind = ERR_NONE };
	bool ok;

	tui_drop_side(t);
	page_forget(p);
	ok = t->source->build(t->source->context, &p->report, p->at, &err);
	if (!ok)
		tui_say(t, true, "%s", err.msg);
	return ok;
}

void tui_refresh_page(struct tui *t, struct page *p)
{
	uint64_t cursor = p->cursor, top = p->top;

	if (!p->options.sections)
		return;
	build_page(t, p);
	str_clear(&p->filter);
	tui_lay_out(t, p);
	page_sort_again(p);
	p->cursor = cursor;
	p->top = top;
	tui_lay_out(t, p);
}

/* What is not in sight is made when it is next visited. */
void tui_refresh(struct tui *t)
{
	for (size_t i = 1; i < TUI_VIEWS; i++) {
		if (!t->root[i] || i == t->view)
			continue;
		tui_free_page(t->root[i]);
		t->root[i] = NULL;
	}
	tui_refresh_page(t, t->root[0]);
	if (t->view)
		tui_refresh_page(t, t->root[t->view]);
	for (size_t i = 0; i < t->depth; i++)
		tui_refresh_page(t, t->stack[i]);
}

/* The rows of the cursor's table; without an expression as they were. */
static void filter_rows(struct tui *t, const char *expr)
{
	struct page *p = tui_page(t);
	struct page_part *part;
	struct filter filter;
	struct err err;
	size_t which;

	if (!p->n_parts || !p->options.sections) {
		tui_say(t, false, "nothing to filter here");
		return;
	}
	which = page_row(p, &part) ? (size_t)(part - p->part) : 0;
	part = &p->part[which];
	if (*expr && !filter_compile(&filter, "filter", expr,
				     part->table->columns,
				     part->table->n_columns, &err)) {
		tui_say(t, true, "%s", err.msg);
		return;
	}
	build_page(t, p);
	str_clear(&p->filter);
	str_adds(&p->filter, expr);
	tui_lay_out(t, p);
	if (*expr) {
		if (which < p->n_parts)
			table_filter(p->part[which].table, &filter);
		filter_fini(&filter);
	}
	page_sort_again(p);
	tui_lay_out(t, p);
	if (which < p->n_parts)
		page_go(p, p->part[which].first, false);
}

static enum report_format format_of(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot && !strcmp(dot, ".csv") ? REPORT_CSV :
	       dot && !strcmp(dot, ".json") ? REPORT_JSON : REPORT_TEXT;
}

/* What analyze --only prints of the page's sections. */
static bool write_sections(struct tui *t, struct page *p, struct out *o,
			   enum report_format format, struct err *err)
{
	struct report_options options = p->options;
	struct report report;
	struct page_part *part;
	char *sort = NULL;
	bool ok;

	options.format = format;
	options.exact = t->exact;
	options.is_tree = p->n_opened > 0;
	if (page_row(p, &part) &&
	    (format == REPORT_CSV || p->filter.len || part->sort >= 0)) {
		size_t i = (size_t)(part->table - p->report.tables);

		options.sections = 1u << p->report.section[i];
		if (part->sort >= 0)
			sort = mem_printf("%s%s", part->reverse ? "-" : "",
				part->table->columns[part->sort].key);
	}
	if (p->filter.len)
		options.row_filter = p->filter.text;
	options.sort = sort;
	report_init(&report, &options);
	ok = t->source->build(t->source->context, &report, p->at, err) &&
	     report_write(&report, o, err);
	report_fini(&report);
	free(sort);
	return ok;
}

/* A page that no section makes, such as the columns of a row. */
static bool write_page(struct page *p, struct out *o,
		       enum report_format format, struct err *err)
{
	const struct report_options *shown = p->report.options;
	struct report_options options = *shown;
	struct page_part *part;
	bool ok;

	if (format == REPORT_CSV && page_row(p, &part)) {
		table_write_csv(part->table, o);
		return true;
	}
	options.format = format;
	p->report.options = &options;
	ok = report_write(&p->report, o, err);
	p->report.options = shown;
	return ok;
}

static void export(struct tui *t, const char *path)
{
	struct page *p = tui_active(t);
	enum report_format format = format_of(path);
	struct err err = { .kind = ERR_NONE };
	struct out o;
	bool ok = true;

	if (!*path)
		return;
	if (!strcmp(path, "-") || !out_open(&o, path, false, &err)) {
		tui_say(t, true, "%s", err.kind ? err.msg : "give a file");
		return;
	}
	if (p->is_blocks)
		blocks_write(p->from, p->filter.len ? &p->compiled : NULL,
			     UINT64_MAX, format, &o);
	else if (p->options.sections)
		ok = write_sections(t, p, &o, format, &err);
	else
		ok = write_page(p, &o, format, &err);
	if (!ok)
		out_abandon(&o);
	else
		ok = out_close(&o, &err);
	if (ok)
		tui_say(t, false, "written to %s", path);
	else
		tui_say(t, true, "%s", err.msg);
}

static void sort_by(struct tui *t, const char *name)
{
	struct page_look look = tui_look(t);
	struct page_part *part;
	bool reverse = *name == '-';
	int column;

	if (!page_row(tui_page(t), &part))
		return;
	tui_drop_side(t);
	column = column_find(part->table->columns, part->table->n_columns,
			     name + reverse);
	if (column < 0)
		tui_say(t, true, "no column '%s' here; i shows them", name);
	else
		page_sort(tui_page(t), column, reverse, &look);
}

static void filter(struct tui *t, const char *expr)
{
	if (tui_page(t)->is_blocks)
		filter_blocks(t, expr);
	else
		filter_rows(t, expr);
}

/* What follows a word and a blank; NULL if that is not how text begins. */
static const char *after(const char *text, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(text, word, n) || (text[n] && text[n] != ' '))
		return NULL;
	return text + n + strspn(text + n, " ");
}

static void command(struct tui *t, const char *text)
{
	const char *rest;
	vaddr addr;

	if ((rest = after(text, "sort")))
		sort_by(t, rest);
	else if ((rest = after(text, "filter")))
		filter(t, rest);
	else if ((rest = after(text, "export")))
		export(t, rest);
	else if (after(text, "mouse"))
		tui_switch_mouse(t);
	else if (after(text, "quit"))
		t->done = true;
	else if (num_parse_addr(text, &addr))
		go_to_address(t, addr);
	else if (*text)
		tui_say(t, true, "'%s' is neither an address nor a command",
			text);
}

void tui_run_prompt(struct tui *t)
{
	AUTO_FREE char *text = mem_strdup(t->typed.text);

	switch (t->prompt) {
	case '/':
		if (*text) {
			str_clear(&t->sought);
			str_adds(&t->sought, text);
		}
		if (t->sought.len &&
		    !page_search(tui_active(t), t->sought.text, false))
			tui_say(t, false, "no match: %s", t->sought.text);
		break;
	case 'f':
		filter(t, text);
		break;
	case 'e':
		export(t, text);
		break;
	case ':':
		command(t, text);
		break;
	}
}
