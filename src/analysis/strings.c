/* SPDX-License-Identifier: MIT */
#include "analysis/strings.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/pattern.h"
#include "base/mem.h"
#include "base/sort.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* What a block may be larger than the object in it, for rounding. */
enum { PYTHON_ROOM = 32 };

/* ---- where strings are ---- */

static bool is_text(uint8_t c)
{
	return (c >= 0x20 && c < 0x7f) || c == '\t';
}

#if defined(__SSE2__)
/* One bit for each of 64 bytes: is it text?  Compares are signed. */
static uint64_t text_mask(const uint8_t *p)
{
	const __m128i low = _mm_set1_epi8(0x1f), high = _mm_set1_epi8(0x7f);
	const __m128i tab = _mm_set1_epi8('\t');
	uint64_t mask = 0;

	for (unsigned i = 0; i < 4; i++) {
		__m128i v = _mm_loadu_si128((const void *)(p + 16 * i));
		__m128i t = _mm_and_si128(_mm_cmpgt_epi8(v, low),
					  _mm_cmpgt_epi8(high, v));

		t = _mm_or_si128(t, _mm_cmpeq_epi8(v, tab));
		mask |= (uint64_t)(unsigned)_mm_movemask_epi8(t) << (16 * i);
	}
	return mask;
}
#else
static uint64_t text_mask(const uint8_t *p)
{
	uint64_t mask = 0;

	for (unsigned i = 0; i < 64; i++)
		mask |= (uint64_t)is_text(p[i]) << i;
	return mask;
}
#endif

/*
 * Is the string up to end all of a Python object's text?  Then that begins at
 * the place returned, else 0.  Objects of bytes (text from 32 on) and str (40,
 * up to 3.11 48) begin with a reference count, a type, and the length; before
 * the text of bytes is its hash, which may end in what looks like text.
 */
static uint64_t python_text(const struct pattern_piece *p, uint64_t from,
			    uint64_t end)
{
	uint64_t head[5];

	if (from >= 24 && from < 32)
		from = 32;
	if ((from != 32 && from != 40 && from != 48) ||
	    end < from + STRINGS_MIN || p->n < sizeof(head) ||
	    p->addr != p->block->addr || end >= p->block->usable ||
	    p->block->usable - end > PYTHON_ROOM)
		return 0;
	memcpy(head, p->bytes, sizeof(head));
	if (!head[0] || head[0] >> 32 || !(head[1] >> 20) || head[1] & 7 ||
	    head[2] != end - from ||
	    /* Of str: kind 1, compact, ASCII (unicodeobject.h). */
	    (from != 32 && (head[4] >> 2 & 31) != (1 | 1 << 3 | 1 << 4)))
		return 0;
	return from;
}

static void add_string(struct dup_table *t, const struct pattern_piece *p,
		       uint64_t from, uint64_t to)
{
	const struct block *b = p->block;
	uint64_t python = python_text(p, from, to);
	struct dup_item item;

	from = python ? python : from;
	item = (struct dup_item){
		.bytes = p->bytes + from, .n = to - from, .cost = to - from,
		.addr = p->addr + from,
	};
	if (python || (item.addr == b->addr && item.n >= b->usable - item.n)) {
		item.own = true;
		item.cost = b->size;
	}
	dup_add(t, &item);
}

/*
 * Bits that are not set where the bit before is: with the strings that start
 * and end in 64 bytes; from is where the one that goes on began.
 */
static uint64_t take_mask(struct dup_table *t, const struct pattern_piece *p,
			  uint64_t mask, uint64_t base, uint64_t from)
{
	uint64_t edges = mask ^ (mask << 1 | (from != UINT64_MAX));

	for (; edges; edges &= edges - 1) {
		uint64_t at = base + (unsigned)__builtin_ctzll(edges);

		if (from == UINT64_MAX) {
			from = at;
			continue;
		}
		if (at - from >= STRINGS_MIN)
			add_string(t, p, from, at);
		from = UINT64_MAX;
	}
	return from;
}

static void find_strings(void *table, const struct pattern_piece *p)
{
	uint64_t from = UINT64_MAX, i;

	for (i = 0; i + 64 <= p->n; i += 64) {
		uint64_t mask = text_mask(p->bytes + i);

		/* Nothing, or all: most of what is no text, and of text. */
		if (mask == (from == UINT64_MAX ? 0 : ~UINT64_C(0)))
			continue;
		from = take_mask(table, p, mask, i, from);
	}
	for (; i < p->n; i++) {
		bool text = is_text(p->bytes[i]);

		if (text && from == UINT64_MAX)
			from = i;
		if (text || from == UINT64_MAX)
			continue;
		if (i - from >= STRINGS_MIN)
			add_string(table, p, from, i);
		from = UINT64_MAX;
	}
	if (from != UINT64_MAX && p->n - from >= STRINGS_MIN)
		add_string(table, p, from, p->n);
}

/* ---- the answer ---- */

static int by_copies(const void *a, const void *b)
{
	const struct dup_entry *x = a, *y = b;

	return ORDER(y->copies, x->copies) ?: ORDER(x->addr, y->addr);
}

/* Keep those that cost most, and behind them those of most copies. */
static void keep_most(struct strings *s, struct dup_table *t)
{
	size_t n = min_u64(t->n, STRINGS_KEPT);

	if (t->n > STRINGS_KEPT)
		SORT(t->entries + n, t->n - n, by_copies);
	s->n = min_u64(t->n, 2 * STRINGS_KEPT);
	s->items = mem_alloc((s->n + 1) * sizeof(*s->items));
	if (s->n)
		memcpy(s->items, t->entries, s->n * sizeof(*s->items));
	dup_sort(s->items, s->n);
}

static void add_up(struct strings *s, const struct dup_table *t)
{
	s->found = t->items;
	s->bytes = t->bytes;
	s->distinct = t->n;
	s->given_up = t->given_up;
	s->floor = dup_is_exact(t) ? 0 : t->floor;
	for (size_t i = 0; i < t->n; i++) {
		const struct dup_entry *e = &t->entries[i];

		s->copies += e->copies;
		s->cost += e->bytes;
		s->saved += dup_saved(e);
		if (e->own.copies < 2)
			continue;
		s->own_distinct++;
		s->own_copies += e->own.copies;
		s->own_bytes += e->own.bytes;
	}
}

void strings_init(struct strings *s, const struct space *sp,
		  const struct heap *h, struct progress *p)
{
	void *workers[PATTERN_WORKERS];
	struct dup_count count;

	*s = (struct strings){ .n = 0 };
	progress_phase(p, "counting strings");
	dup_count_init(&count, sp, h);
	for (size_t i = 0; i < PATTERN_WORKERS; i++)
		workers[i] = &count.tables[i];
	dup_count_pass(&count, sp, h, find_strings, workers, p);
	dup_count_pass(&count, sp, h, find_strings, workers, p);
	dup_count_finish(&count);
	add_up(s, &count.tables[0]);
	keep_most(s, &count.tables[0]);
	dup_count_fini(&count);
}

void strings_fini(struct strings *s)
{
	free(s->items);
	*s = (struct strings){ .n = 0 };
}
