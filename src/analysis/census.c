/* SPDX-License-Identifier: MIT */
#include "analysis/census.h"

#include <stdlib.h>

#include "analysis/census_name.h"
#include "analysis/perl.h"
#include "analysis/php.h"
#include "analysis/python.h"
#include "analysis/typed.h"
#include "base/mem.h"
#include "base/sort.h"

/* In the order in which they run. */
static void (*const namers[])(struct types *t,
			      const struct census_input *in) = {
	census_name,
	php_name,
	perl_name,
	python_name,
	typed_name,
};

bool census_next_only(const struct census_input *in, uint32_t *number,
		      struct block *ret)
{
	const struct index *ix = in->ix;
	uint32_t n = *number + 1;

	while (n < ix->n) {
		uint64_t bits = in->only[n >> 6] >> (n & 63);

		if (!bits) {
			n = (n | 63) + 1;
			continue;
		}
		n += (uint32_t)__builtin_ctzll(bits);
		*number = n++;
		if (heap_find(in->heap, index_addr(ix, *number), ret))
			return true;
	}
	return false;
}

/* ---- adding up ---- */

static void count_block(struct census *c, uint32_t *row_of,
			const struct block *b)
{
	uint32_t type = types_of(&c->types, index_number(c->ix, b->addr -
							 c->ix->base));
	struct census_row *row;

	if (!row_of[type]) {
		c->rows[c->n_rows] = (struct census_row){
			.type = type, .example = b->addr,
		};
		row_of[type] = (uint32_t)++c->n_rows;
	}
	row = &c->rows[row_of[type] - 1];
	row->total.blocks++;
	row->total.bytes += b->size;
	c->total.blocks++;
	c->total.bytes += b->size;
}

static int by_bytes(const void *a, const void *b)
{
	const struct census_row *x = a, *y = b;

	return ORDER(y->total.bytes, x->total.bytes) ?: ORDER(x->type, y->type);
}

static void add_up(struct census *c, const struct census_input *in)
{
	uint32_t *row_of = mem_zalloc(c->types.n * sizeof(*row_of));
	struct heap_iter it;
	uint32_t number = 0;
	struct block b;

	c->rows = mem_alloc(c->types.n * sizeof(*c->rows));
	heap_iter_init(&it, in->heap);
	while (in->only ? census_next_only(in, &number, &b)
			: heap_iter_next(&it, &b))
		if (b.state == BLOCK_USED)
			count_block(c, row_of, &b);
	SORT(c->rows, c->n_rows, by_bytes);
	free(row_of);
}

void census_init(struct census *c, const struct census_input *in)
{
	*c = (struct census){ .ix = in->ix };
	types_init(&c->types, in->ix->n);
	progress_phase(in->progress, "naming blocks");
	for (size_t i = 0; i < countof(namers); i++)
		namers[i](&c->types, in);
	add_up(c, in);
}

void census_fini(struct census *c)
{
	types_fini(&c->types);
	free(c->rows);
	*c = (struct census){ 0 };
}
