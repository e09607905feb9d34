/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "report/blocks.h"
#include "report/blocks_in.h"

/* A place in the walk over all blocks, every MARK_STEP of them. */
enum { MARK_STEP = 1024 };

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
	size_t above = BISECT(mid, 1, r->n_marks, r->marks[mid].row <= row);

	return &r->marks[above - 1];
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
	struct heap_iter it;
	struct block b;
	uint64_t row;
	size_t at;

	if (!r->n_marks)
		return 0;
	at = BISECT(mid, 1, r->n_marks, r->marks[mid].addr <= addr) - 1;
	it = r->marks[at].at;
	row = r->marks[at].row;
	while (heap_iter_next(&it, &b) && b.start + b.size <= addr)
		row += matches(r, &b);
	return r->backwards && row < r->total.blocks
		       ? r->total.blocks - 1 - row : row;
}

/* ---- sorting ---- */

/* What a column is sorted by: of words their first bytes. */
static uint64_t sort_key(const struct block_rows *r, const struct block *b,
			 size_t column, bool reverse)
{
	struct cell c = block_words_cell(r->words, b, column);
	size_t n;
	bool text = block_columns(&n)[column].type == COLUMN_TEXT;
	uint64_t key = text ? block_words_prefix(r->words, &c)
			    : c.known ? c.u : 0;

	return text == reverse ? ~key : key;
}

/*
 * Most columns have few values: these are counted in a first pass over all
 * blocks, and a second one puts each row where it belongs.  So nothing is
 * stored but the order itself.
 */
enum { KINDS_BITS = 14, KINDS = 1 << KINDS_BITS, KINDS_MAX = KINDS / 2 };

struct kind {
	uint64_t key;
	uint32_t n;		/* rows; 0: a free place */
	uint32_t at;		/* where the next one goes */
};

static struct kind *kind_of(struct kind *kinds, uint64_t key)
{
	uint64_t at = key * 0x9e3779b97f4a7c15u >> (64 - KINDS_BITS);

	while (kinds[at].n && kinds[at].key != key)
		at = (at + 1) % KINDS;
	return &kinds[at];
}

static int by_key(const void *a, const void *b)
{
	const struct kind *x = *(struct kind *const *)a;
	const struct kind *y = *(struct kind *const *)b;

	return ORDER(x->key, y->key);
}

static void place_kinds(struct kind *kinds)
{
	struct kind **list = mem_alloc(KINDS_MAX * sizeof(struct kind *));
	size_t n = 0;
	uint32_t sum = 0;

	for (size_t i = 0; i < KINDS; i++)
		if (kinds[i].n)
			list[n++] = &kinds[i];
	SORT(list, n, by_key);
	for (size_t i = 0; i < n; i++) {
		list[i]->at = sum;
		sum += list[i]->n;
	}
	free(list);
}

/* The next block that matches and its key. */
static bool next_key(struct block_rows *r, struct heap_iter *it, size_t column,
		     bool reverse, uint64_t *ret)
{
	struct block b;

	while (heap_iter_next(it, &b))
		if (matches(r, &b)) {
			*ret = sort_key(r, &b, column, reverse);
			return true;
		}
	return false;
}

/* False if there are too many values. */
static bool sort_kinds(struct block_rows *r, size_t column, bool reverse,
		       uint32_t n)
{
	struct kind *kinds = mem_zalloc(KINDS * sizeof(*kinds));
	struct heap_iter it;
	uint32_t i = 0, n_kinds = 0;
	uint64_t key;

	heap_iter_init(&it, r->in->heap);
	for (; i < n && next_key(r, &it, column, reverse, &key); i++) {
		struct kind *k = kind_of(kinds, key);

		if (!k->n++ && ++n_kinds == KINDS_MAX) {
			free(kinds);
			return false;
		}
		k->key = key;
	}
	place_kinds(kinds);
	heap_iter_init(&it, r->in->heap);
	for (i = 0; i < n && next_key(r, &it, column, reverse, &key); i++)
		r->order[kind_of(kinds, key)->at++] = i;
	free(kinds);
	return true;
}

/* Bits 32 to 95 are the key's, those below the row's. */
static bool bit_of(uint64_t key, uint32_t row, int bit)
{
	return bit < 32 ? row >> bit & 1 : key >> (bit - 32) & 1;
}

/* Radix exchange, which needs no other memory than what it sorts. */
static void sort_bits(uint64_t *keys, uint32_t *rows, size_t n, int bit)
{
	size_t low = 0, high = n;

	while (bit >= 0 && n > 1) {
		for (low = 0, high = n; low < high;) {
			uint64_t key = keys[low];
			uint32_t row = rows[low];

			if (!bit_of(key, row, bit)) {
				low++;
				continue;
			}
			high--;
			keys[low] = keys[high];
			rows[low] = rows[high];
			keys[high] = key;
			rows[high] = row;
		}
		bit--;
		sort_bits(keys + low, rows + low, n - low, bit);
		n = low;
	}
}

static void sort_keys(struct block_rows *r, size_t column, bool reverse,
		      uint32_t n)
{
	uint64_t *keys = mem_alloc(((size_t)n + 1) * sizeof(*keys));
	uint64_t differ = 0;
	struct heap_iter it;
	int bits = 0;

	heap_iter_init(&it, r->in->heap);
	for (uint32_t i = 0;
	     i < n && next_key(r, &it, column, reverse, &keys[i]); i++) {
		r->order[i] = i;
		differ |= keys[i] ^ keys[0];
	}
	while (bits < 64 && differ >> bits)
		bits++;
	sort_bits(keys, r->order, n, 31 + bits);
	free(keys);
}

void block_rows_sort(struct block_rows *r, size_t column, bool reverse)
{
	uint32_t n = (uint32_t)min_u64(r->total.blocks, UINT32_MAX - 1);

	free(r->order);
	r->order = NULL;
	r->backwards = column == 0 && reverse;
	if (column == 0)
		return;
	r->order = mem_alloc(((size_t)n + 1) * sizeof(*r->order));
	if (!sort_kinds(r, column, reverse, n))
		sort_keys(r, column, reverse, n);
}
