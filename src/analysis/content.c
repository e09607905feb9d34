/* SPDX-License-Identifier: MIT */
#include "analysis/content.h"

#include <string.h>

#include "analysis/text.h"

enum {
	/* Fewer bytes than this are a structure, whatever they are. */
	ARRAY_MIN = 128,
	ARRAY_WORDS = 4,	/* that are not zero */
	PERCENT = 90,		/* of them alike */
	LARGE = 4096,		/* looked at in places */
	PLACES = 16,
	PLACE_BYTES = 256,
	RANDOM_BYTES = 512,	/* 221 values on average, 5 off */
	RANDOM_VALUES = 200,
	SMALL_HALF = 1 << 20,
};

static const char *const names[CONTENTS] = {
	[CONTENT_NONE] = "?",
	[CONTENT_ABSENT] = "not in the file",
	[CONTENT_ZERO] = "zeros",
	[CONTENT_TEXT] = "text",
	[CONTENT_COUNTED_TEXT] = "text behind its length",
	[CONTENT_UTF16] = "text, UTF-16",
	[CONTENT_PIECES] = "pieces of text",
	[CONTENT_POINTERS] = "pointers",
	[CONTENT_NUMBERS] = "small numbers",
	[CONTENT_REALS] = "real numbers",
	[CONTENT_RANDOM] = "random or compressed bytes",
};

const char *content_name(enum content content)
{
	return names[content];
}

bool content_is_text(enum content content)
{
	return content >= CONTENT_TEXT && content <= CONTENT_PIECES;
}

/* What was counted in the places looked at. */
struct counts {
	uint64_t words, zero, heap, numbers, reals;
	uint64_t bytes, printable;
};

static void count_bytes(struct counts *c, const uint8_t *p, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		c->printable += (uint8_t)(p[i] - 0x20) < 0x5f;
	c->bytes += n;
}

static void count_words(struct counts *c, const struct shape_space *s,
			const uint8_t *p, uint64_t n)
{
	for (uint64_t i = 0; i + s->word <= n; i += s->word) {
		uint64_t v = 0;

		memcpy(&v, p + i, s->word);
		c->words++;
		if (!v) {
			c->zero++;
			continue;
		}
		if ((uint32_t)v < SMALL_HALF && v >> 32 < SMALL_HALF) {
			c->numbers++;
			continue;
		}
		enum word_kind kind = shape_word(s, v);

		c->heap += kind == WORD_HEAP;
		c->reals += kind == WORD_REAL;
	}
}

static void count(struct counts *c, const struct shape_space *s,
		  const uint8_t *p, uint64_t n)
{
	uint64_t step;

	if (n <= LARGE) {
		count_words(c, s, p, n);
		count_bytes(c, p, n);
		return;
	}
	step = round_down((n - PLACE_BYTES) / (PLACES - 1), 8);
	for (uint64_t i = 0; i < PLACES; i++) {
		count_words(c, s, p + i * step, PLACE_BYTES);
		count_bytes(c, p + i * step, PLACE_BYTES);
	}
}

static bool most(uint64_t part, uint64_t whole)
{
	return part * 100 >= whole * PERCENT;
}

/* So many values are among the bytes in the middle. */
static bool is_random(const uint8_t *bytes, uint64_t n)
{
	uint64_t seen[4] = { 0 };
	int values = 0;

	if (n < RANDOM_BYTES)
		return false;
	bytes += n / 2 - RANDOM_BYTES / 2;
	for (int i = 0; i < RANDOM_BYTES; i++)
		seen[bytes[i] >> 6] |= UINT64_C(1) << (bytes[i] & 63);
	for (int i = 0; i < 4; i++)
		values += __builtin_popcountll(seen[i]);
	return values >= RANDOM_VALUES;
}

static enum content array_of(const struct shape_space *s,
			     const uint8_t *bytes, uint64_t n)
{
	struct counts c = { .words = 0 };
	uint64_t set;

	count(&c, s, bytes, n);
	set = c.words - c.zero;
	if (!set)
		return CONTENT_ZERO;
	if (most(c.printable, c.bytes - c.zero * s->word) &&
	    c.printable * 2 >= c.bytes)
		return CONTENT_PIECES;
	if (set < ARRAY_WORDS)
		return CONTENT_NONE;
	if (most(c.heap, set))
		return CONTENT_POINTERS;
	if (most(c.numbers, set))
		return CONTENT_NUMBERS;
	if (most(c.reals, set))
		return CONTENT_REALS;
	return is_random(bytes, n) ? CONTENT_RANDOM : CONTENT_NONE;
}

/* Could one of the first words be a part of text? */
static bool may_be_text(const struct shape *shape)
{
	for (unsigned i = 0; i < 4 && i < shape->words; i++) {
		enum word_kind kind = shape_kind(shape, i);

		if (kind == WORD_INT || kind >= WORD_TEXT)
			return true;
	}
	return false;
}

static bool all_zero(const struct shape *shape)
{
	return !shape->kinds[0] && !shape->kinds[1];
}

enum content content_of(const struct shape_space *s, const uint8_t *bytes,
			uint64_t n, uint64_t n_there,
			const struct shape *shape)
{
	static const enum content texts[] = {
		[TEXT_PLAIN] = CONTENT_TEXT,
		[TEXT_COUNTED] = CONTENT_COUNTED_TEXT,
		[TEXT_UTF16] = CONTENT_UTF16,
	};
	struct text text;

	if (!n_there)
		return CONTENT_ABSENT;
	if (may_be_text(shape) && text_find(bytes, n, n_there, &text))
		return texts[text.kind];
	if (n_there >= ARRAY_MIN)
		return array_of(s, bytes, n_there);
	return all_zero(shape) ? CONTENT_ZERO : CONTENT_NONE;
}
