/* SPDX-License-Identifier: MIT */
#include "analysis/content.h"

#include <string.h>

#include "analysis/text.h"

enum {
	REPEATED_MIN = 32,
	PADDED_TEXT = 8,	/* shorter ones may be a field */
	/* Fewer bytes than this are a structure, whatever they are. */
	ARRAY_MIN = 128,
	ARRAY_WORDS = 4,	/* that are not zero */
	PERCENT = 90,		/* of them alike */
	PRINTABLE = 75,		/* percent of bytes: texts and their lengths */
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
	[CONTENT_REPEATED] = "one value repeated",
	[CONTENT_COUNTED_TEXT] = "text behind its length",
	[CONTENT_UTF16] = "text, UTF-16",
	[CONTENT_PADDED] = "text, then zeros",
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
	uint64_t words, zero, addresses, numbers, reals;
	uint64_t bytes, printable;
};

static void count_words(struct counts *c, const struct shape_space *s,
			const uint8_t *p, uint64_t n)
{
	for (uint64_t i = 0; i + s->word <= n; i += s->word) {
		uint64_t v = load_word(p + i, s->word);
		enum word_kind kind;

		c->words++;
		if ((uint32_t)v < SMALL_HALF && v >> 32 < SMALL_HALF) {
			c->zero += !v;
			c->numbers += v != 0;
			continue;
		}
		kind = shape_word(s, v);
		c->addresses += kind == WORD_HEAP || kind == WORD_ADDR ||
			kind == WORD_MODULE;
		c->reals += kind == WORD_REAL;
	}
}

static void count_bytes(struct counts *c, const uint8_t *p, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		c->printable += (uint8_t)(p[i] - 0x20) < 0x5f;
	c->bytes += n;
}

/* How far apart the places are that are looked at; 0: all is one. */
static uint64_t place_step(uint64_t n)
{
	return n <= LARGE ? 0 :
			    round_down((n - PLACE_BYTES) / (PLACES - 1), 8);
}

static void count(struct counts *c, const struct shape_space *s,
		  const uint8_t *p, uint64_t n)
{
	uint64_t step = place_step(n), part = step ? PLACE_BYTES : n;

	for (uint64_t i = 0; i < (step ? PLACES : 1); i++)
		count_words(c, s, p + i * step, part);
	/* Text is seldom an address or a number. */
	if ((c->addresses + c->numbers) * 2 > c->words - c->zero)
		return;
	for (uint64_t i = 0; i < (step ? PLACES : 1); i++)
		count_bytes(c, p + i * step, part);
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

static bool most(uint64_t part, uint64_t whole)
{
	return part * 100 >= whole * PERCENT;
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
	if (c.printable * 100 >= (c.bytes - c.zero * s->word) * PRINTABLE &&
	    c.bytes && c.printable * 2 >= c.bytes)
		return CONTENT_PIECES;
	if (set < ARRAY_WORDS)
		return CONTENT_NONE;
	if (most(c.addresses, set))
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

/* Does one word fill it?  A rest at the end may be slack. */
static bool is_repeated(const uint8_t *bytes, uint64_t n, unsigned word)
{
	uint64_t step = place_step(n);
	uint64_t part = (step ? PLACE_BYTES : n) - 2 * (uint64_t)word;

	if (n < REPEATED_MIN ||
	    load_word(bytes, word) != load_word(bytes + word, word))
		return false;
	for (uint64_t i = 0; i < (step ? PLACES : 1); i++)
		if (memcmp(bytes, bytes + i * step, word) ||
		    memcmp(bytes + i * step, bytes + i * step + word, part))
			return false;
	return true;
}

/* A string at the start, and only zeros behind it. */
static bool is_padded(const uint8_t *bytes, uint64_t n)
{
	uint64_t len = n <= LARGE ? text_run(bytes, n) : 0;

	return len >= PADDED_TEXT && len < n && !bytes[len] &&
	       !memcmp(bytes + len, bytes + len + 1, n - len - 1);
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
	if (shape_kind(shape, 0) == WORD_TEXT && is_padded(bytes, n_there))
		return CONTENT_PADDED;
	if (!all_zero(shape) && is_repeated(bytes, n_there, s->word))
		return CONTENT_REPEATED;
	if (n_there >= ARRAY_MIN)
		return array_of(s, bytes, n_there);
	return all_zero(shape) ? CONTENT_ZERO : CONTENT_NONE;
}
