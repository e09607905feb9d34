/* SPDX-License-Identifier: MIT */
#include "analysis/php_strings.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"

/* Longer ones than this are not compared. */
#define LONGEST (1 * MIB)

/* Nodes sorted by what they hash to. */
struct item {
	uint64_t hash, len;
	uint32_t node;
};

static uint64_t hash_bytes(const uint8_t *p, uint64_t n)
{
	uint64_t h = n * UINT64_C(0x9e3779b97f4a7c15);

	for (; n >= 8; n -= 8, p += 8) {
		h = (h ^ load_u64(p)) * UINT64_C(0xff51afd7ed558ccd);
		h ^= h >> 32;
	}
	for (; n; n--, p++)
		h = (h ^ *p) * UINT64_C(0xff51afd7ed558ccd);
	return h ^ h >> 29;
}

static const uint8_t *text_of(const struct php_graph *g, vaddr addr,
			      uint64_t len)
{
	return space_view(g->sp, addr + PHP_STRING_BYTES, len);
}

static bool item_of(const struct php_graph *g, uint32_t i, struct item *ret)
{
	const struct php_node *node = &g->nodes[i];
	uint32_t type;
	uint64_t len;
	const uint8_t *p;

	if (node->kind != PHP_KIND_STRING || !node->blocks ||
	    !space_u32(g->sp, node->addr + 4, &type) ||
	    type & PHP_IMMUTABLE ||
	    !space_u64(g->sp, node->addr + PHP_STRING_LEN, &len) ||
	    len > LONGEST || len + PHP_STRING_BYTES > node->bytes)
		return false;
	p = text_of(g, node->addr, len);
	if (!p)
		return false;
	*ret = (struct item){ hash_bytes(p, len), len, i };
	return true;
}

static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return ORDER(x->hash, y->hash) ?:
	       ORDER(x->len, y->len) ?:
	       ORDER(x->node, y->node);
}

static bool are_equal(const struct php_graph *g, const struct item *a,
		      const struct item *b)
{
	const uint8_t *x, *y;

	if (a->hash != b->hash || a->len != b->len)
		return false;
	x = text_of(g, g->nodes[a->node].addr, a->len);
	y = text_of(g, g->nodes[b->node].addr, b->len);
	return x && y && !memcmp(x, y, a->len);
}

static int compare_rows(const void *a, const void *b)
{
	const struct php_string_row *x = a, *y = b;

	return ORDER(y->saved, x->saved) ?: ORDER(x->addr, y->addr);
}

/* Only the best ones stay when there are twice as many as are kept. */
static void shorten(struct php_request *r)
{
	SORT(r->strings, r->n_strings, compare_rows);
	r->n_strings = min_u64(r->n_strings, PHP_ROWS_KEPT);
}

static void add_row(struct php_request *r, const struct php_graph *g,
		    const struct item *first, const struct item *end)
{
	struct php_string_row row = {
		.addr = g->nodes[first->node].addr, .len = first->len,
		.copies = (uint64_t)(end - first),
	};
	uint64_t least = UINT64_MAX;

	for (const struct item *i = first; i < end; i++) {
		row.bytes += g->nodes[i->node].bytes;
		least = min_u64(least, g->nodes[i->node].bytes);
		row.addr = min_u64(row.addr, g->nodes[i->node].addr);
	}
	row.saved = row.bytes - least;
	r->repeated.blocks += row.copies;
	r->repeated.bytes += row.bytes;
	r->saved += row.saved;
	MEM_PUSH(r->strings, r->n_strings, r->cap_strings) = row;
	if (r->n_strings == 2 * PHP_ROWS_KEPT)
		shorten(r);
}

void php_strings(struct php_request *r, const struct php_graph *g)
{
	struct item *items = NULL, item;
	size_t n = 0, cap = 0;

	for (uint32_t i = 1; i < g->n; i++)
		if (item_of(g, i, &item))
			MEM_PUSH(items, n, cap) = item;
	SORT(items, n, compare_items);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n &&
		     are_equal(g, &items[i], &items[end]);)
			end++;
		if (end - i > 1)
			add_row(r, g, &items[i], &items[end]);
	}
	if (r->n_strings)
		shorten(r);
	free(items);
}
