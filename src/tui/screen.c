/* SPDX-License-Identifier: MIT */
#include "tui/screen.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const struct {
	char ascii;
	unsigned short unicode;
} glyphs[GLYPHS] = {
	[GLYPH_RULE] = { '-', 0x2500 },
	[GLYPH_BORDER] = { '|', 0x2502 },
	[GLYPH_BAR] = { '#', 0x2588 },
	[GLYPH_SHADE] = { '-', 0x2591 },
	[GLYPH_SHADE + 1] = { '+', 0x2592 },
	[GLYPH_SHADE + 2] = { '*', 0x2593 },
	[GLYPH_SHADE + 3] = { '#', 0x2588 },
	[GLYPH_LEVEL] = { '_', 0x2581 },
	[GLYPH_LEVEL + 1] = { '.', 0x2582 },
	[GLYPH_LEVEL + 2] = { ':', 0x2583 },
	[GLYPH_LEVEL + 3] = { '-', 0x2584 },
	[GLYPH_LEVEL + 4] = { '=', 0x2585 },
	[GLYPH_LEVEL + 5] = { '+', 0x2586 },
	[GLYPH_LEVEL + 6] = { '*', 0x2587 },
	[GLYPH_LEVEL + 7] = { '#', 0x2588 },
	[GLYPH_ABSENT] = { '.', 0x00b7 },
};

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
	s->right = s->w;
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
	s->right = s->w;
}

static struct screen_cell *cell_at(const struct screen *s, int y, int x)
{
	if (y < 0 || y >= s->h || x < 0 || x >= s->right)
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

void screen_put(struct screen *s, int y, int x, enum role role, char ch)
{
	if (cell_at(s, y, x))
		*cell_at(s, y, x) = (struct screen_cell){ ch, (uint8_t)role };
}

void screen_fill(struct screen *s, int y, enum role role, char ch)
{
	for (int x = 0; x < s->w; x++)
		screen_put(s, y, x, role, ch);
}

void screen_role(struct screen *s, int y, int x, enum role role)
{
	for (; x < s->right; x++)
		if (cell_at(s, y, x))
			cell_at(s, y, x)->role = (uint8_t)role;
}

wchar_t screen_char(const struct screen_cell *c, bool utf8)
{
	if (c->ch >= GLYPHS || c->ch < GLYPH_RULE)
		return (wchar_t)c->ch;
	return utf8 ? glyphs[(int)c->ch].unicode : glyphs[(int)c->ch].ascii;
}

/* Of two or three bytes from U+0080 on. */
static void write_char(struct out *o, wchar_t ch)
{
	if (ch < 0x80) {
		out_addc(o, (char)ch);
		return;
	}
	if (ch < 0x800) {
		out_addc(o, (char)(0xc0 | ch >> 6));
	} else {
		out_addc(o, (char)(0xe0 | ch >> 12));
		out_addc(o, (char)(0x80 | (ch >> 6 & 0x3f)));
	}
	out_addc(o, (char)(0x80 | (ch & 0x3f)));
}

void screen_write(const struct screen *s, bool utf8, struct out *o)
{
	for (int y = 0; y < s->h; y++) {
		int end = s->w;

		while (end && s->cells[y * s->w + end - 1].ch == ' ')
			end--;
		for (int x = 0; x < end; x++)
			write_char(o, screen_char(&s->cells[y * s->w + x],
						  utf8));
		out_addc(o, '\n');
	}
}

void screen_write_roles(const struct screen *s, struct out *o)
{
	static const char letters[] = {
		[ROLE_TEXT] = '.', [ROLE_BAR] = 'b', [ROLE_HEADING] = 'h',
		[ROLE_CURSOR] = 'c', [ROLE_DIM] = 'd', [ROLE_GRAPH] = 'g',
		[ROLE_WARNING] = 'w',
	};

	for (int y = 0; y < s->h; y++) {
		for (int x = 0; x < s->w; x++)
			out_addc(o, letters[s->cells[y * s->w + x].role]);
		out_addc(o, '\n');
	}
}
