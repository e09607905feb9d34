/* SPDX-License-Identifier: MIT */
#include "analysis/mark.h"

#include <string.h>

#include "base/mem.h"

enum {
	/* How far ahead of use: found by measurement. */
	AHEAD_OFF = 24, AHEAD_ROW = 12,
	/* One node in so many still to be looked at: bits; fewer: a queue. */
	MANY = 64, FEW = 512,
};

static size_t bits_bytes(uint32_t n)
{
	return ((size_t)n / 64 + 1) * sizeof(uint64_t);
}

void mark_init(struct mark *m, const struct graph *g)
{
	*m = (struct mark){ .g = g };
	m->marked = mem_zalloc(bits_bytes(g->n_nodes));
	m->todo = mem_zalloc(bits_bytes(g->n_nodes));
}

void mark_fini(struct mark *m)
{
	free(m->marked);
	free(m->todo);
	free(m->later);
	free(m->queue);
	*m = (struct mark){ 0 };
}

static void set_bit(uint64_t *bits, uint32_t node)
{
	bits[node >> 6] |= UINT64_C(1) << (node & 63);
}

static void put_last(struct mark *m, uint32_t node)
{
	/* What was taken makes room if it is the larger part. */
	if (m->n_queue == m->cap_queue && m->head > m->n_queue / 2) {
		m->n_queue -= m->head;
		memcpy(m->queue, m->queue + m->head,
		       m->n_queue * sizeof(*m->queue));
		m->head = 0;
	}
	MEM_PUSH(m->queue, m->n_queue, m->cap_queue) = node;
}

/* A node that has just been marked. */
static void put(struct mark *m, bool sweeping, uint32_t node)
{
	set_bit(m->marked, node);
	if (sweeping) {
		set_bit(m->todo, node);
		m->n_todo++;
	} else {
		put_last(m, node);
	}
}

static void follow(struct mark *m, bool sweeping, uint32_t node)
{
	const struct graph *g = m->g;

	for (uint32_t e = g->off[node]; e < g->off[node + 1]; e++) {
		uint32_t edge = g->dst[e], to = edge & GRAPH_NODE;

		if (mark_is(m, to))
			continue;
		if (edge & m->put_off) {
			MEM_PUSH(m->later, m->n_later, m->cap_later) =
				(struct mark_edge){ node, edge };
			continue;
		}
		put(m, sweeping, to);
		if (m->seed)
			m->seed[to] = m->seed[node];
	}
}

/* In the order of numbers until few are left. */
static void sweep(struct mark *m)
{
	uint32_t n = m->g->n_nodes;

	while (m->n_todo > n / FEW)
		for (uint32_t w = 0; w <= n / 64; w++)
			/* Looking at one may add others before it. */
			while (m->todo[w]) {
				uint64_t bits = m->todo[w];

				m->todo[w] = 0;
				for (; bits; bits &= bits - 1, m->n_todo--)
					follow(m, true, w * 64 + (uint32_t)
					       __builtin_ctzll(bits));
			}
}

static void to_bits(struct mark *m)
{
	for (; m->head < m->n_queue; m->head++, m->n_todo++)
		set_bit(m->todo, m->queue[m->head]);
	m->head = m->n_queue = 0;
}

static void to_queue(struct mark *m)
{
	for (uint32_t w = 0; w <= m->g->n_nodes / 64 && m->n_todo; w++)
		for (; m->todo[w]; m->todo[w] &= m->todo[w] - 1, m->n_todo--)
			MEM_PUSH(m->queue, m->n_queue, m->cap_queue) =
				w * 64 + (uint32_t)__builtin_ctzll(m->todo[w]);
}

/* Breadth first until nothing is left, or much. */
static void drain(struct mark *m)
{
	const struct graph *g = m->g;

	while (m->head < m->n_queue &&
	       m->n_queue - m->head <= g->n_nodes / MANY + MANY) {
		const uint32_t *next = m->queue + m->head++;
		size_t left = m->n_queue - m->head;
		uint32_t node = *next;

		if (left > AHEAD_OFF)
			__builtin_prefetch(&g->off[next[AHEAD_OFF]]);
		if (left > AHEAD_ROW)
			__builtin_prefetch(&g->dst[g->off[next[AHEAD_ROW]]]);
		follow(m, false, node);
	}
}

void mark_from(struct mark *m, const uint32_t *nodes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put(m, false, nodes[i]);
	while (drain(m), m->head < m->n_queue) {
		to_bits(m);
		sweep(m);
		to_queue(m);
	}
}

uint64_t *mark_bits(const struct mark *m)
{
	size_t bytes = bits_bytes(m->g->ix.n);

	return memcpy(mem_alloc(bytes), m->marked, bytes);
}
