/* SPDX-License-Identifier: MIT */
/*
 * Which arena of one report is which of the other: see compare.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "report/compare.h"

static const struct cell *cell_of(const struct compare_side *side, size_t row,
				  size_t column)
{
	const struct table *t = &side->list[COMPARE_ARENAS];

	return &t->cells[row * t->n_columns + column];
}

/* Where the main arena is; 0 if that is not known. */
static vaddr main_arena(const struct compare_side *side)
{
	const struct table *t = &side->list[COMPARE_ARENAS];

	for (size_t i = 0; i < t->n_rows; i++)
		if (table_says(t, cell_of(side, i, ARENAS_NAME),
			       "glibc main"))
			return cell_of(side, i, ARENAS_ADDRESS)->u;
	return 0;
}

bool compare_same_process(const struct compare *c)
{
	vaddr addr = main_arena(c->side[0]);

	return addr && addr == main_arena(c->side[1]);
}

/* A pair that has a row of one side only. */
struct single {
	const char *name;	/* borrowed */
	size_t len;
	int side;
	size_t pair;
};

static int compare_names(const struct single *a, const struct single *b)
{
	int order = memcmp(a->name, b->name, min_u64(a->len, b->len));

	return order ? order : (a->len > b->len) - (a->len < b->len);
}

static int by_name(const void *x, const void *y)
{
	const struct single *a = x, *b = y;
	int order = compare_names(a, b);

	if (order)
		return order;
	return a->side != b->side ? a->side - b->side :
	       (a->pair > b->pair) - (a->pair < b->pair);
}

static struct single *find_singles(const struct compare *c, size_t *ret_n)
{
	size_t all = c->n_pairs[COMPARE_ARENAS], n = 0;
	struct single *ret = mem_alloc((all + 1) * sizeof(*ret));

	for (size_t i = 0; i < all; i++) {
		const struct compare_pair *p = &c->pairs[COMPARE_ARENAS][i];
		int side = p->row[0] == COMPARE_NO_ROW;
		const struct table *t = &c->side[side]->list[COMPARE_ARENAS];
		const struct cell *name;

		if (p->row[!side] != COMPARE_NO_ROW)
			continue;
		name = cell_of(c->side[side], p->row[side], ARENAS_NAME);
		if (name->known)
			ret[n++] = (struct single){
				table_text(t, name), name->text.len, side, i,
			};
	}
	*ret_n = n;
	return ret;
}

/* Those left without any row go. */
static void drop_empty(struct compare *c)
{
	struct compare_pair *pairs = c->pairs[COMPARE_ARENAS];
	size_t n = 0;

	for (size_t i = 0; i < c->n_pairs[COMPARE_ARENAS]; i++)
		if (pairs[i].row[0] != COMPARE_NO_ROW ||
		    pairs[i].row[1] != COMPARE_NO_ROW)
			pairs[n++] = pairs[i];
	c->n_pairs[COMPARE_ARENAS] = n;
}

void compare_join_arenas(struct compare *c)
{
	struct compare_pair *pairs = c->pairs[COMPARE_ARENAS];
	size_t n, end;
	struct single *s = find_singles(c, &n);

	qsort(s, n, sizeof(*s), by_name);
	for (size_t i = 0; i < n; i = end) {
		end = i + 1;
		while (end < n && !compare_names(&s[i], &s[end]))
			end++;
		if (end - i != 2 || s[i].side == s[i + 1].side)
			continue;
		pairs[s[i].pair].row[1] = pairs[s[i + 1].pair].row[1];
		pairs[s[i + 1].pair].row[1] = COMPARE_NO_ROW;
	}
	free(s);
	drop_empty(c);
}
