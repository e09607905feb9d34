/* SPDX-License-Identifier: MIT */
#include "analysis/index.h"

#include <string.h>

#include "base/mem.h"
#include "corewalk/planes.h"

enum {
	UNIT = 1 << INDEX_UNIT_SHIFT,
	/* 48 bits of address, what kernels give without being asked. */
	MAX_UNITS = 1 << 28,
};

static bool has_blocks(const struct heap_extent *x)
{
	return x->kind == EXTENT_BLOCKS || x->kind == EXTENT_MMAPPED;
}

/* Where the first block that can start in the extent does, for the program. */
static vaddr first_user(const struct heap_extent *x)
{
	return x->kind == EXTENT_MMAPPED ? x->user : x->start + x->user_off;
}

/*
 * The fence behind the extent's last block: where the next block would start
 * if one followed, so that the bytes before it are the allocator's own.  A
 * mapping just ends.
 */
static vaddr fence(const struct index *ix, const struct heap_extent *x)
{
	vaddr end = x->kind == EXTENT_MMAPPED ? x->end - x->tail
					      : x->end + x->user_off;

	return round_up(end, UINT64_C(1) << ix->shift);
}

static size_t unit_of(const struct index *ix, vaddr addr)
{
	return (addr - ix->base) >> INDEX_UNIT_SHIFT;
}

/* ---- layout ---- */

/* Units from first on get leaves; those already there are not counted. */
static void want_leaves(struct index *ix, size_t first, size_t last)
{
	for (size_t u = first; u <= last; u++)
		if (!ix->units[u] || ix->units[u] & INDEX_SOLID)
			ix->units[u] = 1;
}

static void want_solid(struct index *ix, size_t first, size_t end)
{
	for (size_t u = first; u < end; u++)
		if (!ix->units[u])
			ix->units[u] = INDEX_SOLID;
}

/*
 * A unit of a range of blocks that none starts in lies in one, or is a hole:
 * the planes of a damaged heap may span much and hold little.
 */
static void lay_out_blocks(struct index *ix, const struct heap_extent *x)
{
	uint64_t g = planes_next(x, 0), end = planes_granules(x);
	size_t next = unit_of(ix, first_user(x));

	while (g < end) {
		size_t unit = unit_of(ix, planes_addr(x, g) + x->user_off);
		vaddr behind = ix->base + ((uint64_t)(unit + 1)
					   << INDEX_UNIT_SHIFT);

		want_solid(ix, next, unit);
		want_leaves(ix, unit, unit);
		next = unit + 1;
		g = planes_next(x, (behind - x->user_off - x->start)
				   >> x->shift);
	}
	want_solid(ix, next, unit_of(ix, fence(ix, x)));
}

static void lay_out(struct index *ix, const struct heap *h)
{
	for (size_t i = 0; i < h->n_extents; i++) {
		const struct heap_extent *x = &h->extents[i];
		size_t end;

		if (!has_blocks(x))
			continue;
		end = unit_of(ix, fence(ix, x));
		if (x->kind == EXTENT_BLOCKS) {
			lay_out_blocks(ix, x);
		} else {
			size_t first = unit_of(ix, x->user);

			want_leaves(ix, first, first);
			want_solid(ix, first + 1, end);
		}
		want_leaves(ix, end, end);
	}
}

/* Base, span and granule. False if no extent has blocks. */
static bool measure(struct index *ix, const struct heap *h)
{
	vaddr low = UINT64_MAX, high = 0;

	ix->shift = 4;
	ix->own = 16;
	for (size_t i = 0; i < h->n_extents; i++) {
		const struct heap_extent *x = &h->extents[i];

		if (x->kind != EXTENT_BLOCKS)
			continue;
		ix->shift = (unsigned)min_u64(ix->shift, x->shift);
		ix->own = (unsigned)min_u64(ix->own,
					    x->user_off - x->overlap);
	}
	ix->own &= 15;
	for (size_t i = 0; i < h->n_extents; i++) {
		const struct heap_extent *x = &h->extents[i];

		if (!has_blocks(x))
			continue;
		low = min_u64(low, first_user(x));
		high = max_u64(high, fence(ix, x));
	}
	ix->base = round_down(low, UNIT);
	/* The last fence is inside. */
	ix->span = high + 1 - ix->base;
	ix->n_units = (ix->span >> INDEX_UNIT_SHIFT) + 1;
	ix->leaf_shift = INDEX_UNIT_SHIFT - 6 - ix->shift;
	return low < high;
}

/* Give the leaves their numbers; how many there are. */
static size_t number_leaves(struct index *ix, const struct heap *h)
{
	size_t leaf = 1, next = 0;

	for (size_t i = 0; i < h->n_extents; i++) {
		const struct heap_extent *x = &h->extents[i];
		size_t end;

		if (!has_blocks(x))
			continue;
		end = unit_of(ix, fence(ix, x)) + 1;
		next = max_u64(next, unit_of(ix, first_user(x)));
		for (; next < end; next++)
			if (ix->units[next] == 1)
				ix->units[next] = (uint32_t)leaf++;
	}
	return leaf;
}

/* ---- start bits ---- */

static void set_start(struct index *ix, vaddr addr)
{
	uint64_t off = addr - ix->base;
	uint32_t leaf = ix->units[off >> INDEX_UNIT_SHIFT];

	index_word_at(ix, leaf, off)->starts |=
		UINT64_C(1) << (off >> ix->shift & 63);
}

/* 64 starts whose first granule is at off. */
static void set_word(struct index *ix, uint64_t off, uint64_t bits)
{
	unsigned low = off >> ix->shift & 63;
	uint32_t leaf = ix->units[off >> INDEX_UNIT_SHIFT];

	if ((int32_t)leaf > 0)
		index_word_at(ix, leaf, off)->starts |= bits << low;
	bits = low ? bits >> (64 - low) : 0;
	if (!bits)
		return;
	off += UINT64_C(64) << ix->shift;
	index_word_at(ix, ix->units[off >> INDEX_UNIT_SHIFT], off)->starts |=
		bits;
}

static void set_starts(struct index *ix, const struct heap_extent *x)
{
	uint64_t off = first_user(x) - ix->base;
	uint64_t step = UINT64_C(64) << x->shift;

	if (x->kind == EXTENT_MMAPPED) {
		set_start(ix, x->user);
	} else if (x->shift == ix->shift) {
		for (size_t w = 0; w < x->n_words; w++, off += step)
			if (x->planes[0][w])
				set_word(ix, off, x->planes[0][w]);
	} else {
		uint64_t end = planes_granules(x);

		for (uint64_t g = planes_next(x, 0); g < end;
		     g = planes_next(x, g + 1))
			set_start(ix, planes_addr(x, g) + x->user_off);
	}
	set_start(ix, fence(ix, x));
}

/* ---- numbers ---- */

static uint32_t rank_leaf(struct index *ix, uint32_t leaf, uint64_t *rank)
{
	struct index_word *w = &ix->words[(size_t)leaf << ix->leaf_shift];

	for (size_t i = 0; i < (size_t)1 << ix->leaf_shift; i++) {
		w[i].rank = (uint32_t)*rank;
		*rank += (unsigned)__builtin_popcountll(w[i].starts);
	}
	return leaf;
}

/* False if there are more blocks than numbers. */
static bool set_ranks(struct index *ix, const struct heap *h)
{
	uint64_t rank = 1;
	size_t next = 0;

	for (size_t i = 0; i < h->n_extents; i++) {
		const struct heap_extent *x = &h->extents[i];
		size_t end;

		if (!has_blocks(x))
			continue;
		end = unit_of(ix, fence(ix, x)) + 1;
		next = max_u64(next, unit_of(ix, first_user(x)));
		for (; next < end && rank < INDEX_MAX_BLOCKS; next++) {
			uint32_t unit = ix->units[next];

			if (unit == INDEX_SOLID)
				ix->units[next] |= (uint32_t)(rank - 1);
			else if (unit)
				ix->leaf_unit[rank_leaf(ix, unit, &rank)] =
					(uint32_t)next;
		}
	}
	ix->n = (uint32_t)rank;
	return rank < INDEX_MAX_BLOCKS;
}

static void set_used(struct index *ix, uint32_t number)
{
	ix->used[number >> 6] |= UINT64_C(1) << (number & 63);
	ix->n_used++;
}

/* n ones from number on. */
static void set_run(uint64_t *bits, uint32_t number, unsigned n)
{
	unsigned low = number & 63;
	uint64_t ones;

	if (!n)
		return;
	ones = ~UINT64_C(0) >> (64 - n);
	bits[number >> 6] |= ones << low;
	if (low + n > 64)
		bits[(number >> 6) + 1] |= ones >> (64 - low);
}

static void mark_used(struct index *ix, const struct heap_extent *x)
{
	uint32_t number;

	if (x->kind == EXTENT_MMAPPED) {
		set_used(ix, index_number(ix, x->user - ix->base));
		number = index_number(ix, fence(ix, x) - ix->base);
		ix->plain[number >> 6] |= UINT64_C(1) << (number & 63);
		return;
	}
	if (planes_next(x, 0) == planes_granules(x))
		return;
	number = index_number(ix, planes_addr(x, planes_next(x, 0)) +
			      x->user_off - ix->base);
	for (size_t w = 0; w < x->n_words; w++) {
		uint64_t starts = x->planes[0][w];
		uint64_t odd = planes_odd(x, w);
		unsigned n = (unsigned)__builtin_popcountll(starts);

		set_run(ix->used, number, n);
		ix->n_used += n - (unsigned)__builtin_popcountll(odd);
		for (; odd; odd &= odd - 1) {
			uint64_t below = starts & ((odd & -odd) - 1);
			uint32_t at = number + (uint32_t)
				__builtin_popcountll(below);

			ix->used[at >> 6] &= ~(UINT64_C(1) << (at & 63));
		}
		number += n;
	}
}

/* ---- putting it together ---- */

static size_t units_bytes(const struct index *ix)
{
	return ix->n_units * sizeof(*ix->units);
}

static size_t words_bytes(const struct index *ix)
{
	return ix->n_words * sizeof(*ix->words);
}

static size_t used_bytes(const struct index *ix)
{
	return ((size_t)ix->n / 64 + 2) * sizeof(*ix->used);
}

uint64_t index_bytes(const struct index *ix)
{
	return words_bytes(ix) + 2 * used_bytes(ix) +
	       ix->n_leaves * sizeof(*ix->leaf_unit);
}

/* Units that will be looked at, each of which costs four bytes. */
static uint64_t count_units(const struct index *ix, const struct heap *h)
{
	uint64_t n = 0;

	for (size_t i = 0; i < h->n_extents; i++)
		if (has_blocks(&h->extents[i]))
			n += unit_of(ix, fence(ix, &h->extents[i])) + 1 -
			     unit_of(ix, first_user(&h->extents[i]));
	return n;
}

static bool too_large(struct err *err, uint64_t bytes, uint64_t max_bytes)
{
	return err_set(err, ERR_UNSUPPORTED, "an index of its blocks would "
		       "take %llu MB, more than the %llu MB allowed",
		       (unsigned long long)(bytes >> 20),
		       (unsigned long long)(max_bytes >> 20));
}

/* Zeros; address space that is refused does not end the whole report. */
static void *map(size_t size, struct err *err)
{
	void *p = mem_map_maybe(size);

	if (!p)
		err_set(err, ERR_UNSUPPORTED, "the system has no %zu MB for "
			"an index of its blocks", (size >> 20) + 1);
	return p;
}

static bool make_words(struct index *ix, const struct heap *h,
		       uint64_t max_bytes, struct err *err)
{
	uint64_t bytes = 4 * count_units(ix, h);

	if (bytes > max_bytes)
		return too_large(err, bytes, max_bytes);
	ix->units = map(units_bytes(ix), err);
	if (!ix->units)
		return false;
	lay_out(ix, h);
	ix->n_leaves = number_leaves(ix, h);
	ix->n_words = ix->n_leaves << ix->leaf_shift;
	if (words_bytes(ix) + bytes > max_bytes)
		return too_large(err, words_bytes(ix) + bytes, max_bytes);
	ix->words = map(words_bytes(ix), err);
	if (!ix->words)
		return false;
	ix->leaf_unit = mem_zalloc(ix->n_leaves * sizeof(*ix->leaf_unit));
	for (size_t i = 0; i < h->n_extents; i++)
		if (has_blocks(&h->extents[i]))
			set_starts(ix, &h->extents[i]);
	if (!set_ranks(ix, h))
		return err_set(err, ERR_UNSUPPORTED, "more than %d blocks",
			       INDEX_MAX_BLOCKS);
	return true;
}

bool index_init(struct index *ix, const struct heap *h, uint64_t max_bytes,
		struct err *err)
{
	*ix = (struct index){ .n = 1 };
	if (!measure(ix, h)) {
		*ix = (struct index){ .n = 1, .shift = 4 };
		ix->used = mem_zalloc(used_bytes(ix));
		ix->plain = mem_zalloc(used_bytes(ix));
		return true;
	}
	if (ix->n_units > MAX_UNITS)
		return err_set(err, ERR_UNSUPPORTED, "its heaps lie too far "
			       "apart, %llu TB",
			       (unsigned long long)(ix->span >> 40));
	if (!make_words(ix, h, max_bytes, err)) {
		index_fini(ix);
		return false;
	}
	ix->used = mem_zalloc(used_bytes(ix));
	ix->plain = mem_zalloc(used_bytes(ix));
	for (size_t i = 0; i < h->n_extents; i++)
		if (has_blocks(&h->extents[i]))
			mark_used(ix, &h->extents[i]);
	return true;
}

void index_fini(struct index *ix)
{
	if (ix->units)
		mem_unmap(ix->units, units_bytes(ix));
	if (ix->words)
		mem_unmap(ix->words, words_bytes(ix));
	free(ix->leaf_unit);
	free(ix->used);
	free(ix->plain);
	*ix = (struct index){ 0 };
}

/* ---- from numbers to addresses ---- */

static vaddr word_addr(const struct index *ix, size_t word)
{
	uint32_t leaf = (uint32_t)(word >> ix->leaf_shift);
	uint64_t in = word & (((size_t)1 << ix->leaf_shift) - 1);

	return ix->base +
	       ((uint64_t)ix->leaf_unit[leaf] << INDEX_UNIT_SHIFT) +
	       (in << (6 + ix->shift));
}

/* The start in a word that has the number. */
static vaddr start_in(const struct index *ix, size_t word, uint32_t number)
{
	uint64_t bits = ix->words[word].starts;

	for (uint32_t skip = number - ix->words[word].rank; skip && bits;
	     skip--)
		bits &= bits - 1;
	if (!bits)
		return 0;
	return word_addr(ix, word) +
	       ((uint64_t)__builtin_ctzll(bits) << ix->shift);
}

vaddr index_addr(const struct index *ix, uint32_t number)
{
	size_t first = (size_t)1 << ix->leaf_shift;

	if (!number || number >= ix->n)
		return 0;
	/* The last word whose rank is not behind the number has it. */
	return start_in(ix, BISECT(mid, first + 1, ix->n_words,
				   ix->words[mid].rank <= number) - 1, number);
}

vaddr index_addr_next(const struct index *ix, size_t *cursor, uint32_t number)
{
	size_t at = max_u64(*cursor, (size_t)1 << ix->leaf_shift);

	if (!number || number >= ix->n)
		return 0;
	while (at + 1 < ix->n_words && ix->words[at + 1].rank <= number)
		at++;
	*cursor = at;
	return start_in(ix, at, number);
}

vaddr index_next_far(const struct index *ix, vaddr addr)
{
	uint64_t off = addr - ix->base;
	size_t unit = off >> INDEX_UNIT_SHIFT;
	unsigned bit = off >> ix->shift & 63;
	uint64_t mask = bit == 63 ? 0 : ~UINT64_C(0) << (bit + 1);

	for (; unit < ix->n_units; unit++, off = (uint64_t)unit
				   << INDEX_UNIT_SHIFT, mask = ~UINT64_C(0)) {
		uint32_t leaf = ix->units[unit];
		const struct index_word *w, *end;

		if ((int32_t)leaf <= 0)
			continue;
		w = index_word_at(ix, leaf, off);
		end = &ix->words[((size_t)leaf + 1) << ix->leaf_shift];
		for (; w < end; w++, mask = ~UINT64_C(0))
			if (w->starts & mask)
				return word_addr(ix, (size_t)(w - ix->words)) +
				       ((uint64_t)__builtin_ctzll(w->starts &
								  mask)
					<< ix->shift);
	}
	return ix->base + ix->span;
}
