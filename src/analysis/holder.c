/* SPDX-License-Identifier: MIT */
#include "analysis/holder.h"

#include "base/mem.h"

/* Stacks are for the moment: what a variable leads to as well is its. */
static size_t add_roots(const struct graph *g, bool stacks, uint32_t *queue,
			size_t n)
{
	for (size_t i = 0; i < g->roots.n; i++) {
		enum root_kind kind = g->roots.items[i].kind;
		bool stack = kind == ROOT_STACK || kind == ROOT_REGISTERS;

		if (kind != ROOT_STALE && stack == stacks)
			queue[n++] = graph_root_node(g, i);
	}
	return n;
}

void holder_init(struct holder *h, const struct graph *g)
{
	size_t bytes = ((size_t)g->n_nodes + 1) * sizeof(uint32_t);
	uint32_t *queue = mem_map_huge(bytes);
	size_t head = 0, tail;

	*h = (struct holder){ .g = g, .bytes = bytes };
	h->parent = mem_map_huge(bytes);
	tail = add_roots(g, false, queue, 0);
	for (unsigned pass = 0; pass < 2; pass++) {
		while (head < tail) {
			uint32_t node = queue[head++];

			for (uint32_t e = g->off[node]; e < g->off[node + 1];
			     e++) {
				uint32_t to = g->dst[e];

				/* 0 is no node, so a parent is never 0. */
				if (to & (GRAPH_WEAK | GRAPH_SPARE) ||
				    h->parent[to])
					continue;
				h->parent[to] = node;
				queue[tail++] = to;
			}
		}
		if (!pass)
			tail = add_roots(g, true, queue, tail);
	}
	mem_unmap(queue, bytes);
}

void holder_fini(struct holder *h)
{
	mem_unmap(h->parent, h->bytes);
}

bool holder_find(const struct holder *h, vaddr addr, uint32_t *ret_root,
		 vaddr *ret_word)
{
	const struct graph *g = h->g;
	uint32_t block = index_find(&g->ix, addr);

	/* Each step was reached before the one it leads to: it ends. */
	while (block && h->parent[block]) {
		uint32_t node = h->parent[block];

		if (graph_is_root(g, node)) {
			*ret_root = node;
			return graph_word(g, node, block, ret_word);
		}
		block = node;
	}
	return false;
}
