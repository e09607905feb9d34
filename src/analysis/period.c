/* SPDX-License-Identifier: MIT */
#include "analysis/period.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/pattern.h"
#include "base/mem.h"
#include "base/sort.h"

enum kind {
	KIND_ZERO, KIND_SMALL, KIND_ADDRESS, KIND_TEXT, KIND_NUMBER,
	KIND_FLOAT, KIND_OTHER,
};
enum { KINDS = 7, WORDS = 4096, STEPS = PERIOD_MAX / 4 };

/* Shares, in percent, and pairs that say something. */
enum {
	UNIFORM = 95,
	LIKE_BEST = 97,		/* of the best distance's share */
	GOOD = 85,		/* of the pairs of the best one agree */
	HOLDS = 80,		/* elsewhere in the block */
	PAIRS_MIN = 32,
};

/* ---- kinds of words ---- */

/* All bytes are text, but for zeros behind the last one. */
static bool is_text(uint64_t v, unsigned bytes)
{
	unsigned n = 0;

	for (; n < bytes && v; n++, v >>= 8) {
		uint8_t c = (uint8_t)v;

		if (!((c >= 0x20 && c < 0x7f) || c == '\t' || c == '\n' ||
		      c == '\r'))
			return false;
	}
	return n >= 3;
}

/* User space ends at 2^47; what has four bytes is rather a number. */
static bool is_address(uint64_t v)
{
	return v >> 47 == 0 && v >= UINT64_C(1) << 32 && v % 8 == 0;
}

static enum kind kind8(uint64_t v)
{
	unsigned exponent = (unsigned)(v >> 52) & 0x7ff;

	if (!v)
		return KIND_ZERO;
	if (v < UINT64_C(1) << 20)
		return KIND_SMALL;
	if (is_text(v, 8))
		return KIND_TEXT;
	if (is_address(v))
		return KIND_ADDRESS;
	if (v >> 32 == 0 || v >> 32 == UINT32_MAX)
		return KIND_NUMBER;
	return exponent >= 0x3c0 && exponent <= 0x43f ? KIND_FLOAT
						      : KIND_OTHER;
}

static enum kind kind4(uint32_t v)
{
	unsigned exponent = v >> 23 & 0xff;

	if (!v)
		return KIND_ZERO;
	if (v < 1 << 16)
		return KIND_SMALL;
	if (is_text(v, 4))
		return KIND_TEXT;
	return exponent >= 0x60 && exponent <= 0x9f ? KIND_FLOAT : KIND_OTHER;
}

/* The kinds of n words of 8 or 4 bytes. */
static void set_kinds(const uint8_t *bytes, size_t n, unsigned word,
		      uint8_t *ret)
{
	for (size_t i = 0; i < n; i++)
		ret[i] = (uint8_t)(word == 8 ? kind8(load_u64(bytes + i * 8))
					     : kind4(load_u32(bytes + i * 4)));
}

/* ---- distances ---- */

struct pairs {
	unsigned all, agree;	/* neither is zero; and both are of a kind */
};

/* In bytes, and so in 255 rounds at most before it is added up. */
static struct pairs pairs_at(const uint8_t *kinds, size_t n, size_t step)
{
	struct pairs ret = { 0, 0 };

	for (size_t i = 0; i + step < n;) {
		size_t end = min_u64(n - step, i + 255);
		uint8_t all = 0, agree = 0;

		for (; i < end; i++) {
			uint8_t both = kinds[i] && kinds[i + step];

			all = (uint8_t)(all + both);
			agree = (uint8_t)(agree +
					  (both & (kinds[i] ==
						   kinds[i + step])));
		}
		ret.all += all;
		ret.agree += agree;
	}
	return ret;
}

static bool is_share(unsigned part, unsigned whole, unsigned percent)
{
	return (uint64_t)part * 100 >= (uint64_t)whole * percent;
}

/* Is part / whole of a at least percent of that of b? */
static bool is_like(struct pairs a, struct pairs b, unsigned percent)
{
	return (uint64_t)a.agree * b.all * 100 >=
	       (uint64_t)b.agree * a.all * percent;
}

/* The least step that is nearly the best one; 0: none is good. */
static size_t find_step(const uint8_t *kinds, size_t n, size_t max)
{
	struct pairs at[STEPS + 1], best = { 1, 0 };
	unsigned set = 0;

	for (size_t i = 0; i < n; i++)
		set += kinds[i] != KIND_ZERO;
	max = min_u64(max, n / 4);
	for (size_t step = 1; step <= max; step++) {
		at[step] = pairs_at(kinds, n, step);
		if (at[step].all < PAIRS_MIN || at[step].all < set / 8)
			at[step].all = 0;
		else if (!is_like(best, at[step], 100))
			best = at[step];
	}
	if (!is_share(best.agree, best.all, GOOD))
		return 0;
	for (size_t step = 1; step <= max; step++)
		if (at[step].all && is_like(at[step], best, LIKE_BEST))
			return step;
	return 0;
}

static enum period_form uniform(const uint8_t *kinds, size_t n)
{
	static const enum period_form forms[KINDS] = {
		[KIND_ZERO] = PERIOD_ZERO,
		[KIND_SMALL] = PERIOD_SMALL,
		[KIND_ADDRESS] = PERIOD_ADDRESSES,
		[KIND_TEXT] = PERIOD_TEXT,
		[KIND_NUMBER] = PERIOD_NUMBERS,
		[KIND_FLOAT] = PERIOD_FLOATS,
		[KIND_OTHER] = PERIOD_NONE,
	};
	unsigned count[KINDS] = { 0 }, set;

	for (size_t i = 0; i < n; i++)
		count[kinds[i]]++;
	set = (unsigned)n - count[KIND_ZERO];
	if (!set)
		return PERIOD_ZERO;
	for (unsigned k = 1; k < KIND_OTHER; k++)
		if (is_share(count[k], set, UNIFORM))
			return forms[k];
	return PERIOD_NONE;
}

static bool holds(const uint8_t *bytes, size_t n, unsigned word, size_t step)
{
	uint8_t kinds[WORDS];
	enum period_form form;
	struct pairs p;

	n = min_u64(n, WORDS);
	set_kinds(bytes, n, word, kinds);
	form = uniform(kinds, n);
	p = pairs_at(kinds, n, step);
	/* Values of one kind agree at any distance. */
	if (form != PERIOD_NONE && form != PERIOD_ZERO)
		return false;
	return p.all < PAIRS_MIN || is_share(p.agree, p.all, HOLDS);
}

/* In the middle and at the end too, in whole records from the start. */
static bool holds_elsewhere(const uint8_t *bytes, uint64_t words,
			    unsigned word, size_t step)
{
	uint64_t end = words - min_u64(words, WORDS);

	return holds(bytes + words / 2 / step * step * word,
		     words - words / 2 / step * step, word, step) &&
	       holds(bytes + end / step * step * word,
		     words - end / step * step, word, step);
}

/* Of 8-byte words the period is even; of 4-byte words half of it may do. */
static size_t half_step(const uint8_t *bytes, uint64_t n, size_t step)
{
	uint8_t kinds[WORDS];
	size_t words = min_u64(n / 4, WORDS);
	struct pairs half, whole;

	if (step % 2 == 0)
		return 0;
	set_kinds(bytes, words, 4, kinds);
	half = pairs_at(kinds, words, step);
	whole = pairs_at(kinds, words, 2 * step);
	return half.all >= PAIRS_MIN && is_like(half, whole, LIKE_BEST) &&
	       holds_elsewhere(bytes, n / 4, 4, step) ? step : 0;
}

enum period_form period_find(const uint8_t *bytes, uint64_t n,
			     unsigned *ret_period)
{
	uint8_t kinds[WORDS];
	enum period_form form;

	*ret_period = 0;
	if (n < PERIOD_MIN / 2)
		return PERIOD_NONE;
	/* Compared with what is a word before. */
	if (!memcmp(bytes, bytes + 8, n - 8))
		return load_u64(bytes) ? PERIOD_VALUE : PERIOD_ZERO;
	for (unsigned word = 8; word >= 4; word /= 2) {
		uint64_t words = n / word;
		size_t seen = min_u64(words, WORDS), step;

		set_kinds(bytes, seen, word, kinds);
		form = word == 8 ? uniform(kinds, seen) : PERIOD_NONE;
		if (form != PERIOD_NONE)
			return form;
		step = find_step(kinds, seen, PERIOD_MAX / word);
		if (step < 2)
			continue;
		if (!holds_elsewhere(bytes, words, word, step))
			return PERIOD_NONE;
		if (word == 8 && half_step(bytes, n, step))
			word = 4;
		*ret_period = (unsigned)step * word;
		return PERIOD_RECORDS;
	}
	return PERIOD_NONE;
}

/* ---- all large blocks ---- */

struct sorter {
	struct period_group groups[PERIOD_FORMS + STEPS + 1];
	vaddr last;		/* the last block that was looked at */
};

/* A block is judged by its first piece. */
static void sort_piece(void *worker, const struct pattern_piece *p)
{
	struct sorter *s = worker;
	const struct block *b = p->block;
	struct period_group *g;
	enum period_form form;
	unsigned period;

	if (b->usable < PERIOD_MIN || p->n < PERIOD_MIN / 2 ||
	    s->last == b->addr)
		return;
	s->last = b->addr;
	form = period_find(p->bytes, p->n, &period);
	g = &s->groups[form == PERIOD_RECORDS ? PERIOD_FORMS + period / 4
					      : (unsigned)form];
	g->form = form;
	g->period = period;
	g->total.blocks++;
	g->total.bytes += b->size;
	if (period)
		g->records += b->usable / period;
	if (b->usable > g->largest_size) {
		g->largest = b->addr;
		g->largest_size = b->usable;
	}
}

static void add_group(struct periods *p, struct period_group *sum,
		      const struct period_group *more)
{
	p->total.blocks += more->total.blocks;
	p->total.bytes += more->total.bytes;
	if (!more->total.blocks)
		return;
	sum->form = more->form;
	sum->period = more->period;
	sum->total.blocks += more->total.blocks;
	sum->total.bytes += more->total.bytes;
	sum->records += more->records;
	if (more->largest_size > sum->largest_size ||
	    (more->largest_size == sum->largest_size &&
	     more->largest < sum->largest)) {
		sum->largest = more->largest;
		sum->largest_size = more->largest_size;
	}
}

static int by_bytes(const void *a, const void *b)
{
	const struct period_group *x = a, *y = b;

	return ORDER(y->total.bytes, x->total.bytes) ?:
	       ORDER(x->largest, y->largest);
}

void periods_init(struct periods *p, const struct space *sp,
		  const struct heap *h, struct progress *progress)
{
	struct sorter *sorters = mem_zalloc((PATTERN_WORKERS + 1) *
					    sizeof(*sorters));
	struct sorter *sum = &sorters[PATTERN_WORKERS];
	void *workers[PATTERN_WORKERS];

	*p = (struct periods){ .n = 0 };
	progress_phase(progress, "looking for records");
	for (size_t i = 0; i < PATTERN_WORKERS; i++)
		workers[i] = &sorters[i];
	pattern_each(sp, h, PATTERN_USED, sort_piece, workers, progress);
	for (size_t g = 0; g < countof(sum->groups); g++) {
		for (size_t i = 0; i < PATTERN_WORKERS; i++)
			add_group(p, &sum->groups[g], &sorters[i].groups[g]);
		if (sum->groups[g].total.blocks)
			MEM_PUSH(p->groups, p->n, p->cap) = sum->groups[g];
	}
	free(sorters);
	SORT(p->groups, p->n, by_bytes);
}

void periods_fini(struct periods *p)
{
	free(p->groups);
	*p = (struct periods){ .n = 0 };
}
