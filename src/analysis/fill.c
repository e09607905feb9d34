/* SPDX-License-Identifier: MIT */
#include "analysis/fill.h"

#include <stdlib.h>

#include "analysis/shape.h"
#include "base/str.h"

enum {
	FILL_REACH = 4096,	/* how far a fill is followed, each way */
	MIN_TEXT = 4,
};

static bool printable(uint8_t c)
{
	return c >= 0x20 && c < 0x7f;
}

/* Does a byte fit the fill that the damaged word begins? */
static bool fits(enum damage_fill fill, uint8_t want, uint8_t c)
{
	return fill == FILL_TEXT ? printable(c) : c == want;
}

/* Follow a fill of bytes from [from, to) on, both ways. */
static void follow_fill(struct damage_case *d, struct space *sp,
			enum damage_fill fill, vaddr from, vaddr to)
{
	uint8_t want = 0, c;
	vaddr low = from, high = to;

	if (!space_u8(sp, from, &want))
		return;
	while (from - low < FILL_REACH && low && space_u8(sp, low - 1, &c) &&
	       fits(fill, want, c))
		low--;
	while (high - to < FILL_REACH && space_u8(sp, high, &c) &&
	       fits(fill, want, c))
		high++;
	/* Two or three bytes are printable by chance. */
	if (fill == FILL_TEXT && high - low < MIN_TEXT)
		return;
	/* A few printable bytes beside a fill make it no text. */
	if (high - low <= d->fill_bytes + d->fill_bytes / 4)
		return;
	d->fill = fill;
	d->fill_addr = low;
	d->fill_bytes = high - low;
}

/* The printable bytes that a word begins with; 0 if others follow. */
static unsigned text_bytes(uint64_t value, unsigned word)
{
	unsigned n = 0;

	while (n < word && printable((uint8_t)(value >> 8 * n)))
		n++;
	/* The zero that ends a string may have been written too. */
	return n == word || !(value >> 8 * n) ? n : 0;
}

/* The text that was written, from its first byte on. */
static void copy_text(struct damage_case *d, struct space *sp)
{
	uint8_t text[DAMAGE_TEXT];
	struct str s;
	uint64_t n;

	if (d->fill != FILL_TEXT)
		return;
	n = space_read(sp, d->fill_addr, text,
		       min_u64(sizeof(text), d->fill_bytes));
	str_init(&s);
	str_add_escaped(&s, text, n);
	if (n < d->fill_bytes)
		str_adds(&s, "...");
	free(d->fill_text);
	d->fill_text = str_take(&s);
}

/* What the damaged word is part of: one byte repeated, or longer text. */
void fill_find(struct damage_case *d, struct space *sp)
{
	unsigned word = sp->word;
	unsigned n = text_bytes(d->value, word);

	if (!d->has_value)
		return;
	if (shape_is_fill(d->value, word))
		follow_fill(d, sp, d->value ? FILL_REPEATED : FILL_ZERO,
			    d->addr, d->addr + word);
	if (n >= 2)
		follow_fill(d, sp, FILL_TEXT, d->addr, d->addr + n);
	if (d->fill == FILL_NONE && d->value > 65536 &&
	    space_seg(sp, d->value)) {
		d->fill = FILL_ADDRESS;
		d->fill_addr = d->addr;
		d->fill_bytes = word;
	}
	copy_text(d, sp);
}
