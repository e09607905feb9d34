/* SPDX-License-Identifier: MIT */
#include "analysis/php_arrays.h"

#include <stdlib.h>

#include "analysis/php_names.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"

/* Rows by place; those beyond so many are one place. */
enum { MAX_PLACES = 1 << 20, ALL_OTHERS = 1 };

struct places {
	uint64_t *of;			/* owned: place by node */
	struct map rows;		/* rows + 1 by place */
};

static uint64_t mix(uint64_t place, uint64_t step)
{
	/* Not symmetric: both can be small numbers. */
	uint64_t h = (place * UINT64_C(0xff51afd7ed558ccd) ^ place >> 32) +
		step;

	h = (h ^ h >> 31) * UINT64_C(0x9e3779b97f4a7c15);
	return (h ^ h >> 29) * UINT64_C(0xbf58476d1ce4e5b9) | 1;
}

/* Which property leads to the child; dynamic ones are one place. */
static uint64_t property(struct php_graph *g, vaddr object, vaddr child)
{
	const struct php_class *c;
	uint64_t entry, value;

	if (!space_u64(g->sp, object + PHP_OBJECT_CLASS, &entry))
		return 0;
	c = php_class_at(g, entry);
	for (uint32_t i = 0; c && i < c->n_props && php_pay(g, 1); i++)
		if (space_u64(g->sp, object + PHP_OBJECT_BYTES +
			      (uint64_t)i * PHP_ZVAL, &value) &&
		    value == child)
			return mix(entry, i);
	return mix(entry, UINT32_MAX);
}

/* Parents come before their children. */
static void find_places(struct places *p, struct php_graph *g)
{
	p->of = mem_zalloc((g->n + 1) * sizeof(*p->of));
	for (uint32_t i = 1; i < g->n; i++) {
		const struct php_node *node = &g->nodes[i];
		uint32_t up = node->parent;
		uint64_t step = 0;

		if (!up || up & PHP_ROOT_BIT) {
			p->of[i] = mix(up, node->kind);
			continue;
		}
		if (g->nodes[up].kind == PHP_KIND_REFERENCE) {
			p->of[i] = p->of[up];
			continue;
		}
		if (g->nodes[up].kind == PHP_KIND_OBJECT)
			step = property(g, g->nodes[up].addr, node->addr);
		p->of[i] = mix(p->of[up], step);
	}
}

static struct php_array_row *row_of(struct php_request *r, struct places *p,
				    uint64_t key)
{
	uint32_t *row = map_at(&p->rows, p->rows.n < MAX_PLACES ||
			       map_get(&p->rows, key) ? key : ALL_OTHERS);

	if (!*row) {
		MEM_PUSH(r->arrays, r->n_arrays, r->cap_arrays) =
			(struct php_array_row){ 0 };
		*row = (uint32_t)r->n_arrays;
	}
	return &r->arrays[*row - 1];
}

static void add_array(struct php_request *r, struct places *p,
		      struct php_graph *g, uint32_t node, uint64_t holds)
{
	struct php_array_row *row = row_of(r, p, p->of[node]);
	struct php_table t;

	if (!row->arrays++) {
		row->node = node;
		row->addr = g->nodes[node].addr;
	}
	row->bytes += g->nodes[node].bytes;
	row->holds += holds;
	if (php_table_open(&t, g, g->nodes[node].addr)) {
		row->elements += t.count;
		row->room += t.size;
	}
}

static int compare_rows(const void *a, const void *b)
{
	const struct php_array_row *x = a, *y = b;

	return ORDER(y->holds, x->holds) ?:
	       ORDER(y->bytes, x->bytes) ?:
	       ORDER(x->addr, y->addr);
}

static void name_row(struct php_graph *g, struct php_array_row *row)
{
	const struct php_root *root = php_root_of(g, row->node);
	struct str s;

	str_init(&s);
	if (root)
		php_root_text(g, root, &s);
	row->holder = str_take(&s);
	str_init(&s);
	php_path_text(g, row->node, &s);
	row->path = str_take(&s);
}

void php_arrays(struct php_request *r, struct php_graph *g,
		const uint64_t *holds)
{
	struct places p = { 0 };

	find_places(&p, g);
	for (uint32_t i = 1; i < g->n; i++)
		if (g->nodes[i].kind == PHP_KIND_ARRAY && g->nodes[i].bytes)
			add_array(r, &p, g, i, holds[i]);
	free(p.of);
	map_fini(&p.rows);
	SORT(r->arrays, r->n_arrays, compare_rows);
	r->n_arrays = min_u64(r->n_arrays, PHP_ROWS_KEPT);
	for (size_t i = 0; i < r->n_arrays; i++)
		name_row(g, &r->arrays[i]);
}
