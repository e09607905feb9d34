/* SPDX-License-Identifier: MIT */
#include "analysis/dominate.h"

#include <pthread.h>
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

/*
 * The search is one long chain of cache misses.  What it needs of a block is
 * in one line, so that a step costs one: its place, then where its edges lead,
 * 0 behind the last; or LONG, and from where to where they are in the graph.
 */
enum { VISIT = 4, VISIT_EDGES = VISIT - 1 };
#define LONG (UINT32_C(1) << 31)

struct builder {
	const struct dominate_graph *g;
	struct dominate *d;
	uint32_t *visit;	/* owned; by block, VISIT each */
	uint32_t *place;	/* owned; by block: of visit, packed */
	struct work *work;	/* owned; by place */
	uint32_t second;	/* places from here on are of the second rank */
	struct edge *stack;	/* owned */
	size_t n_stack, cap_stack;
	uint32_t *group_place;	/* owned; by group */
	/* Who refers, as in dominate_place, by block: ends of lists; owned. */
	uint32_t *in_off, *in;
	size_t in_bytes;
	uint32_t *path;		/* owned; of compress() */
	size_t n_path, cap_path;
};

static size_t work_bytes(const struct builder *b)
{
	return ((size_t)b->d->n + 1) * sizeof(*b->work);
}

/* ---- numbers in depth first order ---- */

static size_t visit_bytes(const struct builder *b, size_t each)
{
	return ((size_t)b->g->n + 1) * each * sizeof(*b->visit);
}

static void make_visit(struct builder *b, uint32_t block)
{
	const struct dominate_graph *g = b->g;
	uint32_t *v = &b->visit[(size_t)block * VISIT] + 1, n = 0;

	for (uint32_t e = g->off[block]; e < g->off[block + 1]; e++) {
		if (g->dst[e] & g->skip)
			continue;
		if (n == VISIT_EDGES) {
			v[0] = LONG;
			v[1] = g->off[block];
			v[2] = g->off[block + 1];
			return;
		}
		v[n++] = g->dst[e];
	}
}

static inline void fetch_visit(const struct builder *b, uint32_t block)
{
	__builtin_prefetch(&b->visit[(size_t)block * VISIT]);
}

static uint32_t enter(struct builder *b, uint32_t node, uint32_t from)
{
	uint32_t place = b->d->n++;

	b->d->places[place] = (struct dominate_place){ node, from };
	return place;
}

/* The last edge pushed is the first one followed: that is depth first. */
static void push_row(struct builder *b, const uint32_t *row, uint32_t n,
		     uint32_t place)
{
	uint32_t skip = b->g->skip;

	for (uint32_t i = 0; i < n; i++)
		fetch_visit(b, row[i] & ~skip);
	for (uint32_t i = 0; i < n; i++) {
		if (row[i] & skip || b->visit[(size_t)row[i] * VISIT])
			continue;
		MEM_PUSH(b->stack, b->n_stack, b->cap_stack) =
			(struct edge){ row[i], place };
	}
}

static void search_block(struct builder *b, struct edge e)
{
	uint32_t *v = &b->visit[(size_t)e.to * VISIT], n = 0;

	if (v[0])
		return;
	v[0] = enter(b, e.to, e.from);
	if (v[1] == LONG) {
		push_row(b, b->g->dst + v[2], v[3] - v[2], v[0]);
		return;
	}
	while (n < VISIT_EDGES && v[1 + n])
		n++;
	push_row(b, v + 1, n, v[0]);
}

static void search_group(struct builder *b, uint32_t group)
{
	const struct dominate_graph *g = b->g;
	uint32_t from = g->group_off[group];

	b->group_place[group] = enter(b, DOMINATE_GROUP | group, 0);
	push_row(b, g->group_dst + from, g->group_off[group + 1] - from,
		 b->group_place[group]);
	while (b->n_stack) {
		struct edge e = b->stack[--b->n_stack];

		if (b->n_stack)
			fetch_visit(b, b->stack[b->n_stack - 1].to);
		search_block(b, e);
	}
}

/* Leaves of visit the places alone. */
static void pack_places(struct builder *b)
{
	for (size_t i = 0; i <= b->g->n; i++)
		b->visit[i] = b->visit[i * VISIT];
	b->place = mem_map_shrink(b->visit, visit_bytes(b, VISIT),
				  visit_bytes(b, 1));
}

static void search(struct builder *b)
{
	b->visit = mem_map_huge(visit_bytes(b, VISIT));
	for (uint32_t i = 0; i < b->g->n; i++)
		make_visit(b, i);
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
	pack_places(b);
}

/* ---- who refers ---- */

/* How far ahead of use: found by measurement, anything near is as good. */
enum { AHEAD_EDGE = 32, AHEAD_LIST = 16, FEW = 4 };

static size_t in_off_bytes(const struct builder *b)
{
	return ((size_t)b->g->n + 2) * sizeof(*b->in_off);
}

static void count_edges(struct builder *b, const uint32_t *edges, uint32_t n)
{
	uint32_t skip = b->g->skip;

	for (uint32_t e = 0; e < n; e++) {
		if (e + AHEAD_EDGE < n)
			__builtin_prefetch(&b->in_off[
				(edges[e + AHEAD_EDGE] & ~skip) + 1]);
		if (!(edges[e] & skip))
			b->in_off[edges[e] + 1]++;
	}
}

/* in_off[to] is where the next one of to goes, and so ends as its end. */
static void fill_row(struct builder *b, const uint32_t *edges,
		     const uint32_t range[2], uint32_t end, uint32_t from)
{
	uint32_t skip = b->g->skip;

	for (uint32_t e = range[0]; e < range[1]; e++) {
		if (e + AHEAD_EDGE < end)
			__builtin_prefetch(&b->in_off[
				edges[e + AHEAD_EDGE] & ~skip]);
		if (e + AHEAD_LIST < end)
			__builtin_prefetch(&b->in[b->in_off[
				edges[e + AHEAD_LIST] & ~skip]]);
		if (!(edges[e] & skip))
			b->in[b->in_off[edges[e]]++] = from;
	}
}

/*
 * By blocks, not by places, and so while these are still being found.  The
 * rows are read in their own order, for which memory is fast.
 */
static void *invert(void *arg)
{
	struct builder *b = arg;
	const struct dominate_graph *g = b->g;
	uint32_t n = g->off[g->n], n_group = g->group_off[g->n_groups];

	b->in_off = mem_map(in_off_bytes(b));
	count_edges(b, g->dst, n);
	count_edges(b, g->group_dst, n_group);
	for (uint32_t i = 0; i <= g->n; i++)
		b->in_off[i + 1] += b->in_off[i];
	b->in_bytes = ((size_t)b->in_off[g->n + 1] + 1) * sizeof(*b->in);
	b->in = mem_map(b->in_bytes);
	for (uint32_t i = 0; i < g->n; i++)
		fill_row(b, g->dst, g->off + i, n, i);
	for (uint32_t i = 0; i < g->n_groups; i++)
		fill_row(b, g->group_dst, g->group_off + i, n_group,
			 DOMINATE_GROUP | i);
	return NULL;
}

/* Who refers, as places; 0: nothing leads there. */
static void to_places(struct builder *b)
{
	const uint32_t *place = b->place;
	uint32_t *in = b->in, n = b->in_off[b->g->n];

	for (uint32_t i = 0; i < n; i++) {
		/* A group's bit would lead far away. */
		if (i + AHEAD_EDGE < n)
			__builtin_prefetch(&place[in[i + AHEAD_EDGE] &
						  ~DOMINATE_GROUP]);
		in[i] = in[i] & DOMINATE_GROUP
			? b->group_place[in[i] & ~DOMINATE_GROUP]
			: place[in[i]];
	}
}

/*
 * What nothing leads to does not count, nor what the second rank refers to of
 * the first one's.
 */
static bool counts(const struct builder *b, uint32_t from, uint32_t to)
{
	return from && (from < b->second || to >= b->second);
}

/* ---- dominators ---- */

static void *make_work(void *arg)
{
	struct builder *b = arg;

	b->work = mem_map(work_bytes(b));
	for (uint32_t p = 0; p < b->d->n; p++) {
		uint32_t from = b->d->places[p].dominator;

		b->work[p] = (struct work){
			.up = from, .label = p, .semi = p, .dominator = from,
		};
	}
	return NULL;
}

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

/* Ask for what the places some way down need, step by step. */
static inline __attribute__((always_inline))
void fetch(const struct builder *b, uint32_t p)
{
	const struct dominate_place *places = b->d->places;
	uint32_t node;

	if (p <= 3 * AHEAD_LIST)
		return;
	node = places[p - 3 * AHEAD_LIST].node;
	if (!(node & DOMINATE_GROUP))
		__builtin_prefetch(&b->in_off[node]);
	node = places[p - 2 * AHEAD_LIST].node;
	if (!(node & DOMINATE_GROUP))
		__builtin_prefetch(&b->in[b->in_off[node - 1]]);
	node = places[p - AHEAD_LIST].node;
	if (node & DOMINATE_GROUP)
		return;
	for (uint32_t i = b->in_off[node - 1], k = 0;
	     i < b->in_off[node] && k < FEW; i++, k++)
		__builtin_prefetch(&b->work[b->in[i]]);
}

static void find_semi(struct builder *b)
{
	struct work *w = b->work;

	for (uint32_t p = b->d->n - 1; p > 0; p--) {
		uint32_t node = b->d->places[p].node;
		uint32_t semi = w[p].dominator, i = 0, end = 0;

		fetch(b, p);
		/* Nothing refers to groups; lists follow each other. */
		if (!(node & DOMINATE_GROUP)) {
			i = b->in_off[node - 1];
			end = b->in_off[node];
		}
		for (; i < end; i++) {
			uint32_t from = b->in[i], s;

			if (!counts(b, from, p))
				continue;
			s = w[eval(b, from, p + 1)].semi;
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

/* Two at the same time, if there is another thread to be had. */
static void both(struct builder *b, void (*here)(struct builder *),
		 void *(*there)(void *))
{
	pthread_t thread;
	bool started = !pthread_create(&thread, NULL, there, b);

	here(b);
	if (started)
		pthread_join(thread, NULL);
	else
		there(b);
}

void dominate_init(struct dominate *d, const struct dominate_graph *g)
{
	struct builder b = { .g = g, .d = d };

	*d = (struct dominate){ 0 };
	d->bytes = ((size_t)g->n + g->n_groups + 2) * sizeof(*d->places);
	d->places = mem_map(d->bytes);
	b.group_place = mem_alloc(g->n_groups * sizeof(*b.group_place));
	both(&b, search, invert);
	both(&b, to_places, make_work);
	mem_unmap(b.place, visit_bytes(&b, 1));
	free(b.group_place);
	find_semi(&b);
	mem_unmap(b.in, b.in_bytes);
	mem_unmap(b.in_off, in_off_bytes(&b));
	find_dominators(&b);
	mem_unmap(b.work, work_bytes(&b));
	free(b.path);
}

void dominate_fini(struct dominate *d)
{
	if (d->places)
		mem_unmap(d->places, d->bytes);
	*d = (struct dominate){ 0 };
}
