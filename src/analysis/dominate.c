/* SPDX-License-Identifier: MIT */
#include "analysis/dominate.h"

#include <stdlib.h>

#include "base/mem.h"

/* What the algorithm needs of a place, in one cache line. */
struct work {
	uint32_t up;		/* parent in the search, compressed */
	uint32_t label;		/* place of least semidominator on the way */
	uint32_t semi;
	uint32_t dominator;	/* at first the parent in the search */
};

struct edge {
	uint32_t to, from;	/* a block, a place */
};

struct builder {
	const struct dominate_graph *g;
	struct dominate *d;
	uint32_t *place;	/* owned; by block */
	struct work *work;	/* owned; by place */
	uint32_t second;	/* places from here on are of the second rank */
	struct edge *stack;	/* owned */
	size_t n_stack, cap_stack;
	uint32_t *in_off, *in;	/* owned; places that refer, by place */
	size_t in_bytes;
	uint32_t *path;		/* owned; of compress() */
	size_t n_path, cap_path;
};

static size_t places_bytes(const struct builder *b, size_t size)
{
	return ((size_t)b->g->n + b->g->n_groups + 2) * size;
}

/* ---- numbers in depth first order ---- */

static void row_of(const struct dominate_graph *g, uint32_t node,
		   const uint32_t **ret, uint32_t *ret_n)
{
	const uint32_t *off = g->off, *dst = g->dst;

	if (node & DOMINATE_GROUP) {
		off = g->group_off;
		dst = g->group_dst;
		node &= ~DOMINATE_GROUP;
	}
	*ret = dst + off[node];
	*ret_n = off[node + 1] - off[node];
}

static uint32_t enter(struct builder *b, uint32_t node, uint32_t from)
{
	uint32_t place = b->d->n++;

	b->d->places[place].node = node;
	b->work[place] = (struct work){
		.up = from, .label = place, .semi = place, .dominator = from,
	};
	return place;
}

/* The last edge pushed is the first one followed: that is depth first. */
static void push_row(struct builder *b, uint32_t node, uint32_t place)
{
	const uint32_t *row;
	uint32_t n;

	row_of(b->g, node, &row, &n);
	for (uint32_t i = 0; i < n; i++)
		if (!(row[i] & b->g->skip)) {
			__builtin_prefetch(&b->place[row[i]]);
			__builtin_prefetch(&b->g->off[row[i]]);
		}
	for (uint32_t i = 0; i < n; i++) {
		if (row[i] & b->g->skip || b->place[row[i]])
			continue;
		MEM_PUSH(b->stack, b->n_stack, b->cap_stack) =
			(struct edge){ row[i], place };
	}
}

static void search_group(struct builder *b, uint32_t group)
{
	uint32_t node = DOMINATE_GROUP | group;

	push_row(b, node, enter(b, node, 0));
	while (b->n_stack) {
		struct edge e = b->stack[--b->n_stack];

		if (b->n_stack) {
			uint32_t next = b->stack[b->n_stack - 1].to;

			__builtin_prefetch(&b->g->dst[b->g->off[next]]);
		}
		if (b->place[e.to])
			continue;
		b->place[e.to] = enter(b, e.to, e.from);
		push_row(b, e.to, b->place[e.to]);
	}
}

static void search(struct builder *b)
{
	b->d->n = 1;
	for (uint32_t i = 0; i < b->g->n_groups; i++) {
		if (i == b->g->n_first)
			b->second = b->d->n;
		search_group(b, i);
	}
	if (b->g->n_first >= b->g->n_groups)
		b->second = b->d->n;
	free(b->stack);
	b->stack = NULL;
}

/* ---- who refers ---- */

/* What the second rank refers to of the first one's does not count. */
static bool counts(const struct builder *b, uint32_t from, uint32_t to)
{
	return to && (from < b->second || to >= b->second);
}

static uint32_t place_of(const struct builder *b, uint32_t edge)
{
	return edge & b->g->skip ? 0 : b->place[edge];
}

/*
 * The two passes go through blocks in their own order, for which memory is
 * fast, and ask for the places of edges ahead.
 */
enum { AHEAD_PLACE = 48, AHEAD_LIST = 16 };

static void fetch(const struct builder *b, const uint32_t *edges, uint32_t e,
		  uint32_t end)
{
	const struct dominate_graph *g = b->g;

	if (e + AHEAD_PLACE < end && !(edges[e + AHEAD_PLACE] & g->skip))
		__builtin_prefetch(&b->place[edges[e + AHEAD_PLACE]]);
	if (e + AHEAD_LIST < end)
		__builtin_prefetch(&b->in_off[
			place_of(b, edges[e + AHEAD_LIST])]);
}

static void count_row(struct builder *b, const uint32_t *edges,
		      const uint32_t range[2], uint32_t end, uint32_t from)
{
	for (uint32_t e = range[0]; e < range[1]; e++) {
		uint32_t to = place_of(b, edges[e]);

		fetch(b, edges, e, end);
		if (counts(b, from, to))
			b->in_off[to + 1]++;
	}
}

/* in_off[p] is where the next one of p goes, and so ends as p's end. */
static void fill_row(struct builder *b, const uint32_t *edges,
		     const uint32_t range[2], uint32_t end, uint32_t from)
{
	for (uint32_t e = range[0]; e < range[1]; e++) {
		uint32_t to = place_of(b, edges[e]);

		fetch(b, edges, e, end);
		if (counts(b, from, to))
			b->in[b->in_off[to]++] = from;
	}
}

/* All rows of what has a place; row is one of the two above. */
static void each_row(struct builder *b,
		     void (*row)(struct builder *, const uint32_t *,
				 const uint32_t *, uint32_t, uint32_t))
{
	const struct dominate_graph *g = b->g;

	/* Places of groups are found by their order. */
	for (uint32_t p = 1; p < b->d->n; p++) {
		uint32_t node = b->d->places[p].node;

		if (node & DOMINATE_GROUP)
			row(b, g->group_dst,
			    g->group_off + (node & ~DOMINATE_GROUP),
			    g->group_off[g->n_groups], p);
	}
	for (uint32_t block = 1; block < g->n; block++)
		if (b->place[block])
			row(b, g->dst, g->off + block, g->off[g->n],
			    b->place[block]);
}

static void invert(struct builder *b)
{
	b->in_off = mem_map(places_bytes(b, sizeof(*b->in_off)));
	each_row(b, count_row);
	for (uint32_t p = 0; p < b->d->n; p++)
		b->in_off[p + 1] += b->in_off[p];
	b->in_bytes = ((size_t)b->in_off[b->d->n] + 1) * sizeof(*b->in);
	b->in = mem_map(b->in_bytes);
	each_row(b, fill_row);
}
/* ---- dominators ---- */

/*
 * The place of least semidominator on the way from v up to what is linked:
 * places from last on.  On the way everything is hung up higher.
 */
static uint32_t eval(struct builder *b, uint32_t v, uint32_t last)
{
	struct work *w = b->work;
	uint32_t best;

	if (w[v].up < last)
		return w[v].label;
	b->n_path = 0;
	while (w[v].up >= last) {
		MEM_PUSH(b->path, b->n_path, b->cap_path) = v;
		v = w[v].up;
	}
	best = w[v].label;
	while (b->n_path) {
		uint32_t p = b->path[--b->n_path];

		w[p].up = w[v].up;
		if (w[best].semi < w[w[p].label].semi)
			w[p].label = best;
		else
			best = w[p].label;
	}
	return best;
}

static void find_semi(struct builder *b)
{
	struct work *w = b->work;

	for (uint32_t p = b->d->n - 1; p > 0; p--) {
		uint32_t semi = w[p].dominator;

		/* A list starts where the one before ends. */
		for (uint32_t i = b->in_off[p]; i-- > b->in_off[p - 1];) {
			uint32_t s;

			if (i >= AHEAD_PLACE)
				__builtin_prefetch(&w[b->in[i - AHEAD_PLACE]]);
			s = w[eval(b, b->in[i], p + 1)].semi;
			if (s < semi)
				semi = s;
		}
		w[p].semi = semi;
	}
}

static void find_dominators(struct builder *b)
{
	struct work *w = b->work;

	for (uint32_t p = 1; p < b->d->n; p++) {
		uint32_t at = w[p].dominator;

		while (at > w[p].semi)
			at = w[at].dominator;
		w[p].dominator = at;
		b->d->places[p].dominator = at;
	}
}

void dominate_init(struct dominate *d, const struct dominate_graph *g)
{
	struct builder b = { .g = g, .d = d };
	size_t place_bytes = ((size_t)g->n + 1) * sizeof(*b.place);

	*d = (struct dominate){ 0 };
	d->bytes = places_bytes(&b, sizeof(*d->places));
	d->places = mem_map(d->bytes);
	b.place = mem_map(place_bytes);
	b.work = mem_map(places_bytes(&b, sizeof(*b.work)));
	search(&b);
	invert(&b);
	mem_unmap(b.place, place_bytes);
	find_semi(&b);
	mem_unmap(b.in, b.in_bytes);
	mem_unmap(b.in_off, places_bytes(&b, sizeof(*b.in_off)));
	find_dominators(&b);
	mem_unmap(b.work, places_bytes(&b, sizeof(*b.work)));
	free(b.path);
}

void dominate_fini(struct dominate *d)
{
	if (d->places)
		mem_unmap(d->places, d->bytes);
	*d = (struct dominate){ 0 };
}
