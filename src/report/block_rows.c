/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/blocks.h"
#include "report/blocks_in.h"

/* A place in the walk over all blocks, every MARK_STEP of them. */
enum { MARK_STEP = 1024, DIGIT = 11 };

struct mark {
	struct heap_iter at;
	uint64_t row;		/* how many matched before */
	vaddr addr;		/* of the first block from here on */
};

struct block_rows {
	const struct report_input *in;	/* borrowed */
	const struct filter *filter;	/* borrowed; or NULL */
	struct block_words *words;	/* owned */
	struct mark *marks;		/* owned */
	size_t n_marks, cap_marks;
	struct tally total;
	uint32_t *order;		/* owned; NULL: by address */
	bool backwards;			/* by address, from the last on */
};

static bool matches(const struct block_rows *r, const struct block *b)
{
	struct cell cells[BLOCK_COLUMNS] = { { .known = false } };

	if (!r->filter)
		return true;
	block_words_cells(r->words, b, cells);
	return block_words_match(r->words, r->filter, cells);
}

struct block_rows *block_rows_new(const struct report_input *in,
				  const struct filter *filter)
{
	struct block_rows *r = mem_zalloc(sizeof(*r));
	struct heap_iter it;
	struct block b;
	uint64_t n = 0;

	r->in = in;
	r->filter = filter;
	r->words = block_words_new(in);
	heap_iter_init(&it, in->heap);
	for (;; n++) {
		struct heap_iter before = it;

		if (!heap_iter_next(&it, &b))
			break;
		if (n % MARK_STEP == 0)
			MEM_PUSH(r->marks, r->n_marks, r->cap_marks) =
				(struct mark){ before, r->total.blocks,
					       b.addr };
		if (!matches(r, &b))
			continue;
		r->total.blocks++;
		r->total.bytes += b.size;
	}
	return r;
}

void block_rows_free(struct block_rows *r)
{
	if (!r)
		return;
	block_words_free(r->words);
	free(r->marks);
	free(r->order);
	free(r);
}

struct tally block_rows_total(const struct block_rows *r)
{
	return r->total;
}

/* The last mark with at most so many rows before it. */
static const struct mark *mark_of_row(const struct block_rows *r, uint64_t row)
{
	size_t low = 0, high = r->n_marks;

	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;

		if (r->marks[mid].row <= row)
			low = mid;
		else
			high = mid;
	}
	return &r->marks[low];
}

/* The block of a row in the order of addresses; row is below the total. */
static bool block_of_row(const struct block_rows *r, uint64_t row,
			 struct block *ret)
{
	const struct mark *m = mark_of_row(r, row);
	struct heap_iter it = m->at;
	uint64_t at = m->row;

	while (heap_iter_next(&it, ret))
		if (matches(r, ret) && at++ == row)
			return true;
	return false;
}

void block_rows_get(struct block_rows *r, uint64_t first, size_t n,
		    struct table *t)
{
	struct block b;

	for (uint64_t i = first; i < r->total.blocks && i - first < n; i++) {
		struct cell cells[BLOCK_COLUMNS] = { { .known = false } };
		uint64_t row = r->order ? r->order[i] :
			       r->backwards ? r->total.blocks - 1 - i : i;

		if (!block_of_row(r, row, &b))
			break;
		block_words_cells(r->words, &b, cells);
		block_words_row(r->words, cells, t);
	}
}

uint64_t block_rows_find(struct block_rows *r, vaddr addr)
{
	size_t low = 0, high = r->n_marks;
	struct heap_iter it;
	struct block b;
	uint64_t row;

	if (!r->n_marks)
		return 0;
	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;

		if (r->marks[mid].addr <= addr)
			low = mid;
		else
			high = mid;
	}
	it = r->marks[low].at;
	row = r->marks[low].row;
	while (heap_iter_next(&it, &b) && b.start + b.size <= addr)
		row += matches(r, &b);
	return r->backwards && row < r->total.blocks
		       ? r->total.blocks - 1 - row : row;
}

/* What a column is sorted by: of words their first bytes. */
static uint64_t sort_key(const struct block_rows *r, const struct block *b,
			 size_t column, bool reverse)
{
	struct cell cells[BLOCK_COLUMNS] = { { .known = false } };
	size_t n;
	bool text = block_columns(&n)[column].type == COLUMN_TEXT;
	uint64_t key;

	block_words_cells(r->words, b, cells);
	key = text ? block_words_prefix(r->words, &cells[column])
		   : cells[column].known ? cells[column].u : 0;
	return text == reverse ? ~key : key;
}

struct sort_item {
	uint64_t key;
	uint32_t row;
};

/* One digit of the keys; stable. */
static void sort_digit(const struct sort_item *from, struct sort_item *to,
		       size_t n, unsigned shift)
{
	enum { SLOTS = 1 << DIGIT };
	size_t at[SLOTS] = { 0 }, sum = 0;

	for (size_t i = 0; i < n; i++)
		at[from[i].key >> shift & (SLOTS - 1)]++;
	for (size_t i = 0; i < SLOTS; i++) {
		size_t count = at[i];

		at[i] = sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++)
		to[at[from[i].key >> shift & (SLOTS - 1)]++] = from[i];
}

/* Digits in which no two keys differ are left out. */
static struct sort_item *sort_items(struct sort_item *a, struct sort_item *b,
				    size_t n)
{
	uint64_t differ = 0;

	for (size_t i = 1; i < n; i++)
		differ |= a[i].key ^ a[0].key;
	for (unsigned shift = 0; shift < 64; shift += DIGIT) {
		struct sort_item *swap = a;

		if (!(differ >> shift & ((1u << DIGIT) - 1)))
			continue;
		sort_digit(a, b, n, shift);
		a = b;
		b = swap;
	}
	return a;
}

void block_rows_sort(struct block_rows *r, size_t column, bool reverse)
{
	size_t n = min_u64(r->total.blocks, UINT32_MAX), i = 0;
	struct sort_item *a, *b, *sorted;
	struct heap_iter it;
	struct block block;

	free(r->order);
	r->order = NULL;
	r->backwards = column == 0 && reverse;
	if (column == 0)
		return;
	a = mem_alloc((n + 1) * sizeof(*a));
	b = mem_alloc((n + 1) * sizeof(*b));
	heap_iter_init(&it, r->in->heap);
	while (i < n && heap_iter_next(&it, &block)) {
		if (!matches(r, &block))
			continue;
		a[i] = (struct sort_item){
			sort_key(r, &block, column, reverse), (uint32_t)i };
		i++;
	}
	sorted = sort_items(a, b, n);
	r->order = mem_alloc((n + 1) * sizeof(*r->order));
	for (i = 0; i < n; i++)
		r->order[i] = sorted[i].row;
	free(a);
	free(b);
}
