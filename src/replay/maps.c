/* SPDX-License-Identifier: MIT */
#include "replay/maps.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void maps_init(struct maps *m)
{
	memset(m, 0, sizeof(*m));
	rand_init(&m->rand, 0, 0);
	MEM_PUSH(m->nodes, m->n_nodes, m->cap_nodes) =
		(struct maps_node){ .start = 0 };
}

void maps_fini(struct maps *m)
{
	free(m->nodes);
}

static void count(struct maps *m, const struct maps_node *n, bool more)
{
	uint64_t *sum = n->reserved ? &m->reserved : &m->bytes;
	uint64_t size = n->end - n->start;

	*sum += more ? size : -size;
}

static uint32_t new_node(struct maps *m, vaddr start, vaddr end,
			 bool reserved)
{
	uint32_t i = m->unused;
	struct maps_node n = {
		.start = start, .end = end, .reserved = reserved,
		.priority = (uint32_t)rand_u64(&m->rand),
	};

	if (i) {
		m->unused = m->nodes[i].left;
		m->nodes[i] = n;
	} else {
		i = (uint32_t)m->n_nodes;
		MEM_PUSH(m->nodes, m->n_nodes, m->cap_nodes) = n;
	}
	count(m, &n, true);
	return i;
}

/* A tree as two: what starts before at, and the rest. */
static void split(struct maps *m, uint32_t tree, vaddr at, uint32_t *ret_low,
		  uint32_t *ret_high)
{
	struct maps_node *n = &m->nodes[tree];

	if (!tree) {
		*ret_low = *ret_high = 0;
	} else if (n->start < at) {
		split(m, n->right, at, &n->right, ret_high);
		*ret_low = tree;
	} else {
		split(m, n->left, at, ret_low, &n->left);
		*ret_high = tree;
	}
}

/* All of low starts before all of high. */
static uint32_t join(struct maps *m, uint32_t low, uint32_t high)
{
	struct maps_node *a = &m->nodes[low], *b = &m->nodes[high];

	if (!low || !high)
		return low | high;
	if (a->priority >= b->priority) {
		a->right = join(m, a->right, high);
		return low;
	}
	b->left = join(m, low, b->left);
	return high;
}

/* The last range of a tree that is not empty. */
static uint32_t last_of(const struct maps *m, uint32_t tree)
{
	while (m->nodes[tree].right)
		tree = m->nodes[tree].right;
	return tree;
}

/* As split, and a range that lies across at is cut there. */
static void cut(struct maps *m, uint32_t tree, vaddr at, uint32_t *ret_low,
		uint32_t *ret_high)
{
	struct maps_node *n;
	uint32_t rest;
	vaddr end;

	split(m, tree, at, ret_low, ret_high);
	if (!*ret_low)
		return;
	n = &m->nodes[last_of(m, *ret_low)];
	if (n->end <= at)
		return;
	end = n->end;
	count(m, n, false);
	n->end = at;
	count(m, n, true);
	rest = new_node(m, at, end, n->reserved);
	*ret_high = join(m, rest, *ret_high);
}

static void drop(struct maps *m, uint32_t tree)
{
	uint32_t left, right;

	if (!tree)
		return;
	left = m->nodes[tree].left;
	right = m->nodes[tree].right;
	count(m, &m->nodes[tree], false);
	m->nodes[tree].left = m->unused;
	m->unused = tree;
	drop(m, left);
	drop(m, right);
}

/* Other access to all of a tree; what is not in it stays unknown. */
static void set_reserved(struct maps *m, uint32_t tree, bool reserved)
{
	struct maps_node *n = &m->nodes[tree];

	if (!tree)
		return;
	count(m, n, false);
	n->reserved = reserved;
	count(m, n, true);
	set_reserved(m, n->left, reserved);
	set_reserved(m, n->right, reserved);
}

void maps_event(struct maps *m, const struct trace_event *e)
{
	vaddr end = e->addr + min_u64(e->size, UINT64_MAX - e->addr);
	uint32_t low, middle, high;

	if (end == e->addr || m->n_nodes >= UINT32_MAX - 2)
		return;
	cut(m, m->root, e->addr, &low, &high);
	cut(m, high, end, &middle, &high);
	if (e->kind == TRACE_MAP && e->rate & TRACE_MAP_ACCESS) {
		set_reserved(m, middle, e->rate & TRACE_MAP_NONE);
		low = join(m, low, middle);
	} else {
		drop(m, middle);
		if (e->kind == TRACE_MAP)
			low = join(m, low, new_node(m, e->addr, end,
				   e->rate & TRACE_MAP_NONE));
	}
	m->root = join(m, low, high);
	m->peak_bytes = max_u64(m->peak_bytes, m->bytes);
}
