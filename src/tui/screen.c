/* SPDX-License-Identifier: MIT */
#include "tui/screen.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static int bounded(int n)
{
	return n < 1 ? 1 : n > SCREEN_MAX ? SCREEN_MAX : n;
}

void screen_init(struct screen *s, int w, int h)
{
	*s = (struct screen){ .w = 1 };
	screen_resize(s, w, h);
}

void screen_fini(struct screen *s)
{
	free(s->cells);
}

void screen_resize(struct screen *s, int w, int h)
{
	s->w = bounded(w);
	s->h = bounded(h);
	free(s->cells);
	s->cells = mem_zalloc((size_t)s->w * (size_t)s->h *
			      sizeof(*s->cells));
	screen_clear(s);
}

void screen_clear(struct screen *s)
{
	for (int i = 0; i < s->w * s->h; i++)
		s->cells[i] = (struct screen_cell){ ' ', ROLE_TEXT };
	s->cursor_y = s->cursor_x = 0;
}

static struct screen_cell *cell_at(const struct screen *s, int y, int x)
{
	if (y < 0 || y >= s->h || x < 0 || x >= s->w)
		return NULL;
	return &s->cells[y * s->w + x];
}

int screen_text(struct screen *s, int y, int x, enum role role,
		const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++, x++) {
		struct screen_cell *c = cell_at(s, y, x);
		char ch = text[i];

		if (c)
			*c = (struct screen_cell){
				ch >= 0x20 && ch < 0x7f ? ch : '?',
				(uint8_t)role };
	}
	return x;
}

int screen_puts(struct screen *s, int y, int x, enum role role,
		const char *text)
{
	return screen_text(s, y, x, role, text, strlen(text));
}

void screen_fill(struct screen *s, int y, enum role role, char ch)
{
	for (int x = 0; x < s->w; x++)
		screen_text(s, y, x, role, &ch, 1);
}

void screen_role(struct screen *s, int y, int x, enum role role)
{
	for (; x < s->w; x++)
		if (cell_at(s, y, x))
			cell_at(s, y, x)->role = (uint8_t)role;
}

void screen_write(const struct screen *s, struct out *o)
{
	for (int y = 0; y < s->h; y++) {
		int end = s->w;

		while (end && cell_at(s, y, end - 1)->ch == ' ')
			end--;
		for (int x = 0; x < end; x++)
			out_addc(o, cell_at(s, y, x)->ch);
		out_addc(o, '\n');
	}
}
