/* SPDX-License-Identifier: MIT */
#include "analysis/rings.h"

#include <stdlib.h>

#include "base/mem.h"

/*
 * What is neither direct nor hangs on a direct one is *closed*: rings, and
 * what hangs on rings.  Closed blocks have places of their own, without gaps,
 * so that the work costs memory for them only.
 */
struct finder {
	struct rings *r;
	const struct graph *g;
	const uint64_t *live;
	uint64_t *closed;	/* owned; bits by number */
	uint32_t *rank;		/* owned; by word of closed: first place */
	uint32_t *block;	/* owned; by place */
	uint32_t n;
	/* Tarjan's algorithm, by place; owned. */
	uint32_t *order;	/* from 1 on; 0 not yet visited */
	uint32_t *low;
	uint32_t *ring;		/* from 1 on; 0 still open */
	uint32_t *open;		/* stack of places */
	uint32_t *path;		/* stack of places being visited */
	uint32_t *edge;		/* of the path: the next edge to follow */
	uint32_t n_open, n_path, n_order, n_rings;
	bool *entered;		/* owned; by ring: referred to from outside */
};

static bool bit(const uint64_t *bits, uint32_t i)
{
	return bits[i >> 6] >> (i & 63) & 1;
}

static void set_bit(uint64_t *bits, uint32_t i)
{
	bits[i >> 6] |= UINT64_C(1) << (i & 63);
}

static size_t n_words(const struct graph *g)
{
	return (size_t)g->ix.n / 64 + 1;
}

static uint64_t *new_bits(const struct graph *g)
{
	return mem_zalloc(n_words(g) * sizeof(uint64_t));
}

static bool is_dead(const struct finder *f, uint32_t block)
{
	return index_used(&f->g->ix, block) && !bit(f->live, block);
}

/* Does edge e of block refer to another one that is not live? */
static bool dead_edge(const struct finder *f, uint32_t block, uint32_t e,
		      uint32_t *ret)
{
	uint32_t to = f->g->dst[e];

	if (to & (GRAPH_WEAK | GRAPH_SPARE) || to == block ||
	    !is_dead(f, to))
		return false;
	*ret = to;
	return true;
}

#define FOR_DEAD(f, w, bits, block)					\
	for (size_t w = 0; w < n_words((f)->g); w++)			\
		for (uint64_t bits = (f)->g->ix.used[w] &		\
		     ~(f)->live[w]; bits; bits &= bits - 1)		\
			for (uint32_t block = (uint32_t)(w * 64) +	\
			     (uint32_t)__builtin_ctzll(bits), once = 1;	\
			     once; once = 0)

static void mark_referred(struct finder *f)
{
	const struct graph *g = f->g;
	uint32_t to;

	FOR_DEAD(f, w, bits, block)
		for (uint32_t e = g->off[block]; e < g->off[block + 1]; e++)
			if (dead_edge(f, block, e, &to))
				set_bit(f->r->indirect, to);
}

/* Take what hangs on direct blocks out of closed. */
static void mark_hanging(struct finder *f)
{
	const struct graph *g = f->g;
	uint32_t *queue = NULL;
	size_t head = 0, tail = 0, cap = 0;
	uint32_t to;

	FOR_DEAD(f, w, bits, block) {
		if (bit(f->r->indirect, block))
			set_bit(f->closed, block);
		else
			MEM_PUSH(queue, tail, cap) = block;
	}
	while (head < tail) {
		uint32_t block = queue[head++];

		for (uint32_t e = g->off[block]; e < g->off[block + 1]; e++) {
			if (!dead_edge(f, block, e, &to) ||
			    !bit(f->closed, to))
				continue;
			f->closed[to >> 6] &= ~(UINT64_C(1) << (to & 63));
			MEM_PUSH(queue, tail, cap) = to;
		}
	}
	free(queue);
}

/* ---- rings ---- */

static uint32_t place_of(const struct finder *f, uint32_t block)
{
	uint64_t below = f->closed[block >> 6] &
			 ((UINT64_C(1) << (block & 63)) - 1);

	return f->rank[block >> 6] +
	       (uint32_t)__builtin_popcountll(below);
}

static uint32_t *new_places(const struct finder *f)
{
	return mem_zalloc(((size_t)f->n + 1) * sizeof(uint32_t));
}

static void make_places(struct finder *f)
{
	f->rank = mem_alloc(n_words(f->g) * sizeof(*f->rank));
	for (size_t w = 0; w < n_words(f->g); w++) {
		f->rank[w] = f->n;
		f->n += (uint32_t)__builtin_popcountll(f->closed[w]);
	}
	f->block = new_places(f);
	f->n = 0;
	for (size_t w = 0; w < n_words(f->g); w++)
		for (uint64_t b = f->closed[w]; b; b &= b - 1)
			f->block[f->n++] = (uint32_t)(w * 64) +
				(uint32_t)__builtin_ctzll(b);
	f->order = new_places(f);
	f->low = new_places(f);
	f->ring = new_places(f);
	f->open = new_places(f);
	f->path = new_places(f);
	f->edge = new_places(f);
}

static void enter(struct finder *f, uint32_t place)
{
	f->order[place] = f->low[place] = ++f->n_order;
	f->open[f->n_open++] = place;
	f->edge[f->n_path] = f->g->off[f->block[place]];
	f->path[f->n_path++] = place;
}

/* All edges were followed: a ring may be complete. */
static void leave(struct finder *f)
{
	uint32_t place = f->path[--f->n_path];
	uint32_t member;

	if (f->n_path) {
		uint32_t up = f->path[f->n_path - 1];

		if (f->low[place] < f->low[up])
			f->low[up] = f->low[place];
	}
	if (f->low[place] != f->order[place])
		return;
	f->n_rings++;
	do {
		member = f->open[--f->n_open];
		f->ring[member] = f->n_rings;
	} while (member != place);
}

/* One edge of the node at the path's end. */
static void follow(struct finder *f)
{
	uint32_t place = f->path[f->n_path - 1];
	uint32_t block = f->block[place];
	uint32_t e = f->edge[f->n_path - 1]++;
	uint32_t to;

	if (e >= f->g->off[block + 1]) {
		leave(f);
		return;
	}
	if (!dead_edge(f, block, e, &to) || !bit(f->closed, to))
		return;
	to = place_of(f, to);
	if (!f->order[to])
		enter(f, to);
	else if (!f->ring[to] && f->order[to] < f->low[place])
		f->low[place] = f->order[to];
}

static void find_rings(struct finder *f)
{
	for (uint32_t place = 0; place < f->n; place++) {
		if (f->order[place])
			continue;
		enter(f, place);
		while (f->n_path)
			follow(f);
	}
}

static void mark_entered(struct finder *f)
{
	const struct graph *g = f->g;
	uint32_t to;

	f->entered = mem_zalloc((size_t)f->n_rings + 1);
	for (uint32_t p = 0; p < f->n; p++) {
		uint32_t block = f->block[p];

		for (uint32_t e = g->off[block]; e < g->off[block + 1]; e++)
			if (dead_edge(f, block, e, &to) &&
			    bit(f->closed, to) &&
			    f->ring[place_of(f, to)] != f->ring[p])
				f->entered[f->ring[place_of(f, to)]] = true;
	}
}

static void mark_cycles(struct finder *f, const uint64_t *possible)
{
	bool *counted = mem_zalloc((size_t)f->n_rings + 1);

	for (uint32_t p = 0; p < f->n; p++) {
		uint32_t ring = f->ring[p];

		if (f->entered[ring])
			continue;
		set_bit(f->r->cycle, f->block[p]);
		if (!counted[ring] && !bit(possible, f->block[p]))
			f->r->n_cycles++;
		counted[ring] = true;
	}
	free(counted);
}

void rings_find(struct rings *r, const struct graph *g, const uint64_t *live,
		const uint64_t *possible)
{
	struct finder f = { .r = r, .g = g, .live = live };

	*r = (struct rings){ new_bits(g), new_bits(g), 0 };
	f.closed = new_bits(g);
	mark_referred(&f);
	mark_hanging(&f);
	make_places(&f);
	find_rings(&f);
	mark_entered(&f);
	mark_cycles(&f, possible);
	free(f.closed);
	free(f.rank);
	free(f.block);
	free(f.order);
	free(f.low);
	free(f.ring);
	free(f.open);
	free(f.path);
	free(f.edge);
	free(f.entered);
}
