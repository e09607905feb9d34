/* SPDX-License-Identifier: MIT */
#include "tui/heat.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/num.h"

/* Title, legend, an empty line; below another one, and one for the cell. */
enum { LINES_AROUND = 5, LABEL = 15, LEAST_CELL = 64, MOST_COLUMNS = 512 };

/* A target may claim anything. */
#define MOST_BYTES (UINT64_C(1) << 50)

struct heat *heat_new(vaddr start, vaddr end)
{
	struct heat *h = mem_zalloc(sizeof(*h));

	h->start = h->at = h->top = start;
	h->end = start + max_u64(min_u64(end - start, MOST_BYTES), 1);
	return h;
}

void heat_free(struct heat *h)
{
	if (!h)
		return;
	free(h->cells);
	free(h->all);
	free(h);
}

static size_t columns_in(int width)
{
	size_t n = 8;

	while (n * 2 <= MOST_COLUMNS && (int)n * 2 + LABEL < width)
		n *= 2;
	return n;
}

static uint64_t row_bytes(const struct heat *h)
{
	return h->size * h->columns;
}

static vaddr row_start(const struct heat *h, vaddr at)
{
	return at - (at - h->start) % row_bytes(h);
}

/* A size for the first look, and the cursor's row in sight. */
static void fit(struct heat *h, int width, size_t rows)
{
	h->columns = columns_in(width);
	if (!h->size)
		for (h->size = LEAST_CELL;
		     (h->end - h->start - 1) / h->size >= h->columns * rows;)
			h->size *= 2;
	h->at -= (h->at - h->start) % h->size;
	h->top = row_start(h, min_u64(h->top, h->at));
	while (h->at - h->top >= row_bytes(h) * rows)
		h->top += row_bytes(h);
}

enum { ALL_CELLS = 1 << 15 };

/* Once: a pass over all blocks of the mapping. */
static void look_at_all(struct heat *h, const struct heat_source *source)
{
	uint64_t bytes = h->end - h->start;

	for (h->all_size = LEAST_CELL; (bytes - 1) / h->all_size >= ALL_CELLS;)
		h->all_size *= 2;
	h->all = mem_alloc(ALL_CELLS * sizeof(*h->all));
	source->cells(source->context, h->start, h->all_size, h->all,
		      (size_t)((bytes - 1) / h->all_size + 1));
}

/* A cell that is larger than those of all. */
static struct heat_cell sum_of(const struct heat *h, vaddr at)
{
	uint64_t i = (at - h->start) / h->all_size;
	uint64_t n = (h->end - h->start - 1) / h->all_size + 1;
	uint64_t end = min_u64(n, i + h->size / h->all_size);
	struct heat_cell ret = { 0 };

	for (; i < end; i++) {
		ret.used += h->all[i].used;
		ret.free += h->all[i].free;
		ret.overhead += h->all[i].overhead;
		ret.stored += h->all[i].stored;
		ret.swapped += h->all[i].swapped;
	}
	return ret;
}

static void look(struct heat *h, const struct heat_source *source, size_t rows)
{
	uint64_t n = min_u64((h->end - h->top - 1) / h->size + 1,
			     h->columns * rows);

	if (h->cells && h->cells_top == h->top && h->cells_size == h->size &&
	    h->n == n)
		return;
	free(h->cells);
	h->n = (size_t)n;
	h->cells = mem_alloc(h->n * sizeof(*h->cells));
	h->cells_top = h->top;
	h->cells_size = h->size;
	if (!h->all)
		look_at_all(h, source);
	if (h->size < h->all_size)
		source->cells(source->context, h->top, h->size, h->cells,
			      h->n);
	for (size_t i = 0; h->size >= h->all_size && i < h->n; i++)
		h->cells[i] = sum_of(h, h->top + i * h->size);
}

/* Of four shades, the fuller the darker; nothing at all is a blank. */
static char shade(uint64_t part, uint64_t whole)
{
	uint64_t i = whole ? part * SHADES / whole : 0;

	return (char)(part ? GLYPH_SHADE + (int)min_u64(i, SHADES - 1) : ' ');
}

static char cell_glyph(const struct heat *h, const struct heat_cell *c,
		       uint64_t bytes)
{
	if (!c->stored)
		return c->swapped && h->residency ? 's' : GLYPH_ABSENT;
	return shade(h->residency ? c->stored : c->used, bytes);
}

static void draw_title(const struct heat *h, const struct heat_source *source,
		       struct screen *s, int y, int x)
{
	char size[NUM_MAX], cell[NUM_MAX], text[160];
	const char *what = h->residency ? source->pages_known ? "in memory"
							      : "in the file"
					: "in use";

	num_format_size(size, h->end - h->start);
	num_format_size(cell, h->size);
	snprintf(text, sizeof(text), "0x%" PRIx64 " +%s   A CELL IS %s",
		 h->start, size, cell);
	screen_puts(s, y++, x, ROLE_HEADING, text);
	snprintf(text, sizeof(text), "%s: ", what);
	x = screen_puts(s, y, x, ROLE_TEXT, text);
	for (int i = 0; i < SHADES; i++) {
		screen_put(s, y, x++, ROLE_GRAPH, (char)(GLYPH_SHADE + i));
		snprintf(text, sizeof(text), i < SHADES - 1 ? " <%d%% " : " ",
			 100 * (i + 1) / SHADES);
		x = screen_puts(s, y, x, ROLE_TEXT, text);
	}
	screen_put(s, y, x + 1, ROLE_DIM, GLYPH_ABSENT);
	screen_puts(s, y, x + 3, ROLE_TEXT,
		    source->pages_known ? "absent" : "not in file");
}

/* "0x7f...: 96K in use, 28K free, 0.4K overhead; 128K in the file" */
static void draw_cell_line(const struct heat *h,
			   const struct heat_source *source, struct screen *s,
			   int y, int x)
{
	const struct heat_cell *c = &h->cells[(h->at - h->top) / h->size];
	char used[NUM_MAX], unused[NUM_MAX], over[NUM_MAX], there[NUM_MAX];
	char text[200];

	num_format_size(used, c->used);
	num_format_size(unused, c->free);
	num_format_size(over, c->overhead);
	num_format_size(there, c->stored);
	snprintf(text, sizeof(text), "0x%" PRIx64 "  in use %s, free %s, "
		 "overhead %s, in %s %s", h->at, used, unused, over,
		 source->pages_known ? "memory" : "file", there);
	screen_puts(s, y, x, ROLE_TEXT, text);
}

static void draw_row(const struct heat *h, struct screen *s, size_t first,
		     int y, int x, bool active)
{
	char label[LABEL + 8];

	snprintf(label, sizeof(label), "%12" PRIx64,
		 h->top + first * h->size);
	screen_puts(s, y, x, ROLE_DIM, label);
	for (size_t i = first; i < h->n && i < first + h->columns; i++) {
		vaddr at = h->top + i * h->size;
		uint64_t bytes = min_u64(h->size, h->end - at);
		char glyph = cell_glyph(h, &h->cells[i], bytes);
		bool here = active && at == h->at;
		int column = x + LABEL - 1 + (int)(i - first);

		screen_put(s, y, column, here ? ROLE_CURSOR :
			   glyph == GLYPH_ABSENT ? ROLE_DIM : ROLE_GRAPH,
			   glyph);
		if (here) {
			s->cursor_y = y;
			s->cursor_x = column;
		}
	}
}

void heat_draw(struct heat *h, const struct heat_source *source,
	       struct screen *s, int y, int x, int rows, bool active)
{
	size_t n = rows > LINES_AROUND ? (size_t)(rows - LINES_AROUND) : 1;

	fit(h, s->right - x, n);
	look(h, source, n);
	draw_title(h, source, s, y, x + 1);
	h->y = y + 3;
	h->x = x + LABEL;
	for (size_t i = 0; i * h->columns < h->n; i++)
		draw_row(h, s, i * h->columns, y + 3 + (int)i, x + 1, active);
	if (active)
		draw_cell_line(h, source, s, y + rows - 1, x + 1);
}

bool heat_cell_at(const struct heat *h, int y, int x, vaddr *ret)
{
	size_t i = (size_t)(y - h->y) * h->columns + (size_t)(x - h->x);

	if (y < h->y || x < h->x || (size_t)(x - h->x) >= h->columns ||
	    i >= h->n)
		return false;
	*ret = h->top + i * h->size;
	return true;
}

static void move(struct heat *h, bool back, uint64_t bytes)
{
	vaddr last = h->end - 1;

	if (back)
		h->at -= min_u64(bytes, h->at - h->start);
	else if (last - h->at >= bytes)
		h->at += bytes;
	else
		h->at = last - (last - h->start) % h->size;
}

static void zoom(struct heat *h, bool in)
{
	if (in && h->size > LEAST_CELL)
		h->size /= 2;
	else if (!in && h->size < h->end - h->start)
		h->size *= 2;
}

bool heat_key(struct heat *h, enum action action, int code)
{
	bool back = action == DO_UP || action == DO_OUT ||
		    action == DO_PAGE_UP || action == DO_HALF_UP;

	if (code == KEY_RETURN || code == KEY_BACK)
		return false;
	switch (action) {
	case DO_UP: case DO_DOWN: move(h, back, row_bytes(h)); break;
	case DO_PAGE_UP: case DO_PAGE_DOWN: case DO_HALF_UP: case DO_HALF_DOWN:
		move(h, back, row_bytes(h) * 8);
		break;
	case DO_OUT: case DO_ENTER: move(h, back, h->size); break;
	case DO_FIRST: h->at = h->start; break;
	case DO_LAST: move(h, false, h->end - h->start); break;
	case DO_OPEN: case DO_CLOSE: zoom(h, action == DO_OPEN); break;
	case DO_HEAT: h->residency = !h->residency; break;
	default:
		return false;
	}
	return true;
}
