/* SPDX-License-Identifier: MIT */
#include "tui/page.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { SIGHT = 256 };		/* rows of blocks that are made together */

void page_init(struct page *p, const char *name,
	       const struct report_kind *kind, unsigned sections)
{
	*p = (struct page){ .name = name };
	p->options = (struct report_options){
		.kind = kind, .sections = sections, .sample_seed = 1,
		.is_tree = true,
	};
	str_init(&p->filter);
	report_init(&p->report, &p->options);
}

static void parts_fini(struct page *p)
{
	for (size_t i = 0; i < p->n_parts; i++) {
		struct page_part *part = &p->part[i];

		text_rows_free(part->rows);
		str_fini(&part->text);
		free(part->lines);
		free(part->visible);
		*part = (struct page_part){ .table = part->table,
			.sort = part->sort, .reverse = part->reverse,
			.closed = part->closed, .n_closed = part->n_closed };
	}
}

/* Which branches were open is forgotten too. */
static void trees_fini(struct page *p)
{
	for (size_t i = 0; i < PAGE_PARTS; i++) {
		free(p->part[i].closed);
		p->part[i].closed = NULL;
	}
}

void page_fini(struct page *p)
{
	parts_fini(p);
	trees_fini(p);
	report_fini(&p->report);
	str_fini(&p->filter);
	free(p->columns);
	heat_free(p->heat);
	free(p->opened);
	if (!p->is_blocks)
		return;
	block_rows_free(p->blocks);
	filter_fini(&p->compiled);
	table_fini(&p->in_sight);
}

void page_show_row(struct page *p, const struct table *from,
		   const struct cell *row)
{
	size_t n = from->n_columns;
	struct table *t;

	p->columns = mem_alloc(n * sizeof(*p->columns));
	for (size_t i = 0; i < n; i++) {
		p->columns[i] = from->columns[i];
		p->columns[i].title = from->columns[i].key;
		p->columns[i].flags &= ~(unsigned)COLUMN_NO_TEXT;
	}
	t = report_add(&p->report, 0, from->name, "ALL COLUMNS OF THE ROW",
		       p->columns, n);
	t->form = TABLE_OBJECT;
	table_row(t);
	for (size_t i = 0; i < n; i++) {
		struct cell c = row_cell(from, row, i);

		table_copy(t, i, from, &c);
	}
}

void page_forget(struct page *p)
{
	parts_fini(p);
	trees_fini(p);
	report_fini(&p->report);
	report_init(&p->report, &p->options);
	p->n_parts = 0;
	p->cursor = p->top = 0;
}

void page_sort_again(struct page *p)
{
	for (size_t i = 0; i < p->n_parts; i++) {
		struct page_part *part = &p->part[i];

		if (part->sort >= 0)
			table_sort(part->table, (size_t)part->sort,
				   part->reverse);
	}
}

/* ---- lines ---- */

static struct text_style style_of(const struct page_look *look)
{
	return (struct text_style){
		.rows = TABLE_ALL_ROWS, .exact = look->exact,
		.no_bars = look->no_bars,
		.width = look->width > 1 ? (size_t)look->width - 1 : 1,
	};
}

/* The lines of a row that has no columns. */
static void make_lines(struct page_part *part, size_t place)
{
	size_t off = part->text.len;
	struct out o;
	bool all = part->table->form == TABLE_RECORDS ||
		   part->table->form == TABLE_OBJECT;
	bool first = true;

	out_open_text(&o, &part->text);
	text_rows_write(part->rows, place, &o);
	out_close_text(&o);
	while (off < part->text.len) {
		size_t n = strcspn(part->text.text + off, "\n");

		MEM_PUSH(part->lines, part->n_made, part->cap_made) =
			(struct page_line){
				(uint32_t)off, (uint32_t)n,
				(uint32_t)place, first || all };
		first = false;
		off += n + 1;
	}
}

/* ---- trees ---- */

/* A filter leaves rows without those they belong to: then it is a list. */
static bool tree_is(const struct page *p, const struct page_part *part)
{
	return part->table->depth && !p->filter.len;
}

static uint64_t depth_at(const struct table *t, size_t place)
{
	return table_cell(t, place, t->depth - 1).u;
}

static bool has_branch(const struct table *t, size_t place)
{
	return place + 1 < t->n_rows &&
	       depth_at(t, place + 1) > depth_at(t, place);
}

/* At first the way along the largest branches is open. */
static void tree_open_first(struct page_part *part)
{
	const struct table *t = part->table;
	size_t i = 0;

	part->closed = mem_alloc(t->n_rows + 1);
	memset(part->closed, true, t->n_rows + 1);
	part->n_closed = t->n_rows;
	while (has_branch(t, i))
		part->closed[i++] = false;
}

static void tree_lay_out(struct page_part *part)
{
	const struct table *t = part->table;
	uint64_t below = UINT64_MAX;

	if (!part->closed || part->n_closed != t->n_rows)
		tree_open_first(part);
	part->visible = mem_alloc((t->n_rows + 1) * sizeof(*part->visible));
	for (size_t i = 0; i < t->n_rows; i++) {
		uint64_t depth = depth_at(t, i);

		if (depth > below)
			continue;
		part->visible[part->n_visible++] = (uint32_t)i;
		below = part->closed[i] ? depth : UINT64_MAX;
	}
}

static void write_part_row(struct page_part *part, size_t place,
			   struct str *ret);
static struct page_spot spot_at(struct page *p, uint64_t line);

/* A mark in front of the name: closed, or open. */
static void tree_write(struct page_part *part, struct page_spot s,
		       struct str *ret)
{
	const struct table *t = part->table;
	size_t place = s.place == PAGE_NO_PLACE ? t->n_rows : (size_t)s.place;
	size_t at;

	write_part_row(part, place, ret);
	at = strspn(ret->text, " ");
	if (place < t->n_rows && has_branch(t, place) && at >= 2)
		ret->text[at - 2] = part->closed[place] ? '+' : '-';
}

/* The cursor stays on its row, or goes to the one that now hides it. */
static void tree_find(struct page *p, struct page_part *part, size_t place)
{
	size_t i = 0;

	while (i + 1 < part->n_visible && part->visible[i + 1] <= place)
		i++;
	p->cursor = part->first + 1 + i;
}

/* The branch that this row is in. */
static size_t tree_close_above(struct page_part *part, size_t place)
{
	const struct table *t = part->table;
	uint64_t depth = depth_at(t, place);
	size_t i = place;

	while (i && depth_at(t, i) >= depth)
		i--;
	if (depth_at(t, i) < depth)
		part->closed[i] = true;
	return depth_at(t, i) < depth ? i : place;
}

bool page_branch(struct page *p, enum page_branch what,
		 const struct page_look *look)
{
	struct page_spot s = spot_at(p, p->cursor);
	size_t place = (size_t)s.place;
	bool *closed;

	if (!s.part || !s.part->visible || s.place == PAGE_NO_PLACE)
		return false;
	closed = &s.part->closed[place];
	if (what == BRANCH_OPEN_ALL)
		memset(s.part->closed, false, s.part->n_closed);
	else if (what == BRANCH_CLOSE && (*closed ||
					  !has_branch(s.part->table, place)))
		place = tree_close_above(s.part, place);
	else
		*closed = what == BRANCH_CLOSE ||
			  (what == BRANCH_TOGGLE && !*closed);
	page_lay_out(p, look);
	tree_find(p, s.part, place);
	return true;
}

static void lay_out_part(struct page *p, struct page_part *part,
			 const struct page_look *look)
{
	struct text_style style = style_of(look);
	const struct table *t = part->table;

	/* One unit for all of them, in sight or not. */
	style.exact |= p->is_blocks;

	str_init(&part->text);
	part->rows = text_rows_new(t, &style);
	part->first = p->n_lines;
	part->n_lines = 1;
	if (tree_is(p, part)) {
		tree_lay_out(part);
		part->n_lines += part->n_visible + !!t->total;
	} else if (t->form == TABLE_ROWS) {
		part->n_lines += t->n_rows + !!t->total;
	} else {
		for (size_t i = 0; i < t->n_rows; i++)
			make_lines(part, i);
		part->n_lines += part->n_made;
	}
	if (p->is_blocks)
		part->n_lines = 1 + block_rows_total(p->blocks).blocks;
	p->n_lines += part->n_lines + 1;
}

static const char *const faces[FACES] = {
	[FACE_WORDS] = "words", [FACE_HEX] = "bytes",
	[FACE_MEMBERS] = "members",
};

/* Not of the face that was chosen. */
static bool is_behind(const struct page *p, const struct table *t)
{
	for (unsigned i = FACE_ALL + 1; p->face && i < FACES; i++)
		if (i != p->face && !strcmp(t->name, faces[i]))
			return true;
	return false;
}

static void find_parts(struct page *p)
{
	if (p->is_blocks) {
		p->part[0].table = &p->in_sight;
		p->n_parts = 1;
		return;
	}
	p->n_parts = 0;
	for (size_t i = 0; i < p->report.n_tables; i++) {
		struct table *t = &p->report.tables[i];
		struct page_part *part = &p->part[p->n_parts];

		if (is_behind(p, t) || t->is_inner || !t->n_rows ||
		    p->n_parts == PAGE_PARTS)
			continue;
		if (part->table != t)
			part->sort = -1;
		part->table = t;
		p->n_parts++;
	}
}

void page_lay_out(struct page *p, const struct page_look *look)
{
	parts_fini(p);
	find_parts(p);
	p->n_lines = 0;
	for (size_t i = 0; i < p->n_parts; i++)
		lay_out_part(p, &p->part[i], look);
	page_go(p, p->cursor, false);
}

bool page_list_blocks(struct page *p, const struct report_input *in,
		      struct err *err)
{
	size_t n;
	const struct column *columns = block_columns(&n);

	if (p->filter.len &&
	    !filter_compile(&p->compiled, "filter", p->filter.text, columns, n,
			    err))
		return false;
	p->is_blocks = true;
	p->from = in;
	p->knew_types = in->typed != NULL;
	p->knew_reach = in->reach != NULL;
	p->knew_retain = in->retain != NULL;
	table_init(&p->in_sight, "blocks", "ADDRESS", columns, n);
	p->blocks = block_rows_new(in, p->filter.len ? &p->compiled : NULL);
	return true;
}

bool page_is_stale(const struct page *p)
{
	const struct report_input *in = p->from;

	return p->is_blocks && (p->knew_types != (in->typed != NULL) ||
				p->knew_reach != (in->reach != NULL) ||
				p->knew_retain != (in->retain != NULL));
}

/* Rows around this one are made; which of them it is. */
static size_t bring_in_sight(struct page *p, uint64_t row)
{
	struct page_part *part = &p->part[0];
	struct text_style style = *text_rows_style(part->rows);

	if (p->in_sight.n_rows && row >= p->sight_first &&
	    row - p->sight_first < p->in_sight.n_rows)
		return (size_t)(row - p->sight_first);
	text_rows_free(part->rows);
	p->sight_first = row > SIGHT / 2 ? row - SIGHT / 2 : 0;
	table_clear(&p->in_sight);
	block_rows_get(p->blocks, p->sight_first, SIGHT, &p->in_sight);
	part->rows = text_rows_new(&p->in_sight, &style);
	return (size_t)(row - p->sight_first);
}

static void write_part_row(struct page_part *part, size_t place,
			   struct str *ret)
{
	struct out o;

	out_open_text(&o, ret);
	if (place == SIZE_MAX)
		text_rows_heading(part->rows, &o);
	else
		text_rows_write(part->rows, place, &o);
	out_close_text(&o);
	if (ret->len && ret->text[ret->len - 1] == '\n')
		ret->text[--ret->len] = '\0';
}

static struct page_part *part_at(struct page *p, uint64_t line)
{
	for (size_t i = 0; i < p->n_parts; i++)
		if (line >= p->part[i].first &&
		    line - p->part[i].first < p->part[i].n_lines)
			return &p->part[i];
	return NULL;
}

/* Where a line is, without its text. */
static struct page_spot spot_at(struct page *p, uint64_t line)
{
	struct page_part *part = part_at(p, line);
	struct page_spot s = { part, PAGE_NO_PLACE, false, ROLE_TEXT };
	uint64_t i;

	if (!part)
		return s;
	i = line - part->first;
	if (!i) {
		s.role = ROLE_HEADING;
	} else if (part->table->form != TABLE_ROWS) {
		s.place = part->lines[i - 1].place;
		s.stops = part->lines[i - 1].first;
	} else if (part->visible) {
		s.stops = i - 1 < part->n_visible;
		if (s.stops)
			s.place = part->visible[i - 1];
	} else if (p->is_blocks || i - 1 < part->table->n_rows) {
		s.place = i - 1;
		s.stops = true;
	}
	return s;
}

struct page_spot page_line(struct page *p, uint64_t line, struct str *ret)
{
	struct page_spot s = spot_at(p, line);
	uint64_t i;

	str_clear(ret);
	if (!s.part)
		return s;
	i = line - s.part->first;
	if (!i)
		write_part_row(s.part, SIZE_MAX, ret);
	else if (s.part->table->form != TABLE_ROWS)
		str_add(ret, s.part->text.text + s.part->lines[i - 1].off,
			s.part->lines[i - 1].len);
	else if (p->is_blocks)
		write_part_row(s.part, bring_in_sight(p, i - 1), ret);
	else if (s.part->visible)
		tree_write(s.part, s, ret);
	else
		write_part_row(s.part, (size_t)i - 1, ret);
	return s;
}

const struct cell *page_row(struct page *p, struct page_part **ret)
{
	struct page_spot s = spot_at(p, p->cursor);

	if (!s.part || s.place == PAGE_NO_PLACE)
		return NULL;
	*ret = s.part;
	if (p->is_blocks)
		s.place = bring_in_sight(p, s.place);
	return table_row_at(s.part->table, (size_t)s.place);
}

/* ---- the cursor ---- */

void page_go(struct page *p, uint64_t line, bool backwards)
{
	uint64_t at;

	if (!p->n_lines)
		return;
	if (line >= p->n_lines)
		line = p->n_lines - 1;
	for (at = line; at < p->n_lines; backwards ? at-- : at++)
		if (spot_at(p, at).stops) {
			p->cursor = at;
			return;
		}
	for (at = line; at < p->n_lines; backwards ? at++ : at--)
		if (spot_at(p, at).stops) {
			p->cursor = at;
			return;
		}
}

void page_move(struct page *p, int64_t lines)
{
	if (lines < 0)
		page_go(p, p->cursor - min_u64(p->cursor, (uint64_t)-lines),
			true);
	else
		page_go(p, p->cursor + (uint64_t)lines, false);
}

void page_next_part(struct page *p, bool backwards)
{
	struct page_part *part = part_at(p, p->cursor);
	size_t i = part ? (size_t)(part - p->part) : 0;

	if (!p->n_parts)
		return;
	i = (i + (backwards ? p->n_parts - 1 : 1)) % p->n_parts;
	page_go(p, p->part[i].first, false);
	p->top = p->part[i].first;
}

bool page_has_rows(const struct page *p)
{
	for (size_t i = 0; i < p->report.n_tables; i++)
		if (p->report.tables[i].n_rows)
			return true;
	return false;
}

static struct page_part *part_named(struct page *p, const char *name)
{
	for (size_t i = 0; i < p->n_parts; i++)
		if (!strcmp(p->part[i].table->name, name))
			return &p->part[i];
	return NULL;
}

const char *page_next_face(struct page *p, const struct page_look *look)
{
	struct page_part *part = NULL;

	for (unsigned i = 0; i < FACES && !part; i++) {
		p->face = (p->face + 1) % FACES;
		page_lay_out(p, look);
		if (!p->face)
			break;
		part = part_named(p, faces[p->face]);
	}
	if (part) {
		page_go(p, part->first, false);
		p->top = part->first;
	}
	return p->face ? faces[p->face] : "all of it";
}

bool page_at_end(struct page *p, bool backwards)
{
	struct page_part *part = part_at(p, p->cursor);

	return !part || part == (backwards ? p->part :
				 p->part + p->n_parts - 1);
}

/* The last line of the row at the cursor. */
static uint64_t row_end(struct page *p)
{
	struct page_spot here = spot_at(p, p->cursor);
	uint64_t end = p->cursor;

	while (here.part && here.part->table->form != TABLE_ROWS) {
		struct page_spot next = spot_at(p, end + 1);

		if (next.part != here.part || next.place != here.place ||
		    next.stops)
			break;
		end++;
	}
	return end;
}

void page_scroll(struct page *p, int height)
{
	uint64_t h = (uint64_t)(height > 1 ? height : 1);
	uint64_t end = row_end(p);
	uint64_t above = p->cursor;

	/* What stands above the first row is seen with it. */
	while (above && !spot_at(p, above - 1).stops && p->cursor - above < 2)
		above--;
	if (end >= p->top + h)
		p->top = end - h + 1;
	if (above < p->top && p->cursor - above < h)
		p->top = above;
	if (p->cursor < p->top || p->cursor >= p->top + h)
		p->top = p->cursor;
	if (p->top + h > p->n_lines)
		p->top = p->n_lines > h ? p->n_lines - h : 0;
}

void page_roll(struct page *p, int lines, int height)
{
	uint64_t h = (uint64_t)(height > 1 ? height : 1);
	uint64_t last = p->n_lines > h ? p->n_lines - h : 0;
	uint64_t old = p->top;

	if (lines < 0)
		p->top -= min_u64(p->top, (uint64_t)-lines);
	else
		p->top = min_u64(p->top + (uint64_t)lines, last);
	if (p->top == old)
		page_move(p, lines);
	else if (p->cursor < p->top)
		page_go(p, p->top, false);
	else if (p->cursor >= p->top + h)
		page_go(p, p->top + h - 1, true);
}

/* ---- sorting and searching ---- */

int page_next_column(const struct page_part *part)
{
	const struct table *t = part->table;
	int n = (int)t->n_columns;

	for (int i = 1; i <= n; i++) {
		int k = (part->sort + i) % n;

		if (!(t->columns[k].flags & COLUMN_NO_TEXT) &&
		    !(t->hidden >> k & 1))
			return k;
	}
	return 0;
}

void page_sort(struct page *p, int column, bool reverse,
	       const struct page_look *look)
{
	struct page_part *part = part_at(p, p->cursor);

	if (!part || part->table->form != TABLE_ROWS)
		return;
	part->sort = column;
	part->reverse = reverse;
	if (p->is_blocks) {
		block_rows_sort(p->blocks, (size_t)column, reverse);
		table_clear(&p->in_sight);
	} else {
		table_sort(part->table, (size_t)column, reverse);
	}
	p->cursor = part->first;
	page_lay_out(p, look);
}

static bool has_capital(const char *text)
{
	for (; *text; text++)
		if (isupper((unsigned char)*text))
			return true;
	return false;
}

bool page_search(struct page *p, const char *text, bool backwards)
{
	bool exact = has_capital(text), found = false;
	uint64_t line = p->cursor;
	struct str s;

	str_init(&s);
	for (uint64_t i = 0; i < p->n_lines && !found; i++) {
		if (backwards)
			line = line ? line - 1 : p->n_lines - 1;
		else
			line = line + 1 < p->n_lines ? line + 1 : 0;
		if (!spot_at(p, line).stops)
			continue;
		page_line(p, line, &s);
		found = exact ? strstr(s.text, text) != NULL
			      : strcasestr(s.text, text) != NULL;
	}
	str_fini(&s);
	if (found)
		p->cursor = line;
	return found;
}
