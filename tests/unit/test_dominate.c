/* SPDX-License-Identifier: MIT */
/*
 * Dominators against what the word means: a node is taken away, and what can
 * no longer be reached was dominated by it.
 */
#include "unit/check.h"

#include "analysis/dominate.h"

enum { MAX_NODES = 40, MAX_EDGES = 400, SKIP = 1 << 30 };

static uint64_t state = 1;

static uint32_t rnd(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 11) % below);
}

/* Blocks are 1 to n - 1; groups follow from n on. */
struct random_graph {
	struct dominate_graph g;
	uint32_t off[MAX_NODES + 2], dst[MAX_EDGES];
	uint32_t group_off[MAX_NODES + 2], group_dst[MAX_EDGES];
	bool first[MAX_NODES];	/* blocks that the first rank reaches */
};

static void make_rows(uint32_t *off, uint32_t *dst, uint32_t n, uint32_t to,
		      uint32_t degree)
{
	uint32_t e = 0;

	for (uint32_t i = 0; i < n; i++) {
		off[i] = e;
		for (uint32_t k = rnd(degree); k; k--)
			dst[e++] = (1 + rnd(to - 1)) |
				   (rnd(8) ? 0 : (uint32_t)SKIP);
	}
	off[n] = e;
}

/* Mark what can be reached from groups in [from, to) without one node. */
static void reach(const struct random_graph *r, uint32_t from, uint32_t to,
		  uint32_t without, bool ranked, bool *mark)
{
	const struct dominate_graph *g = &r->g;
	uint32_t queue[2 * MAX_NODES], head = 0, tail = 0;

	for (uint32_t i = from; i < to; i++)
		if (g->n + i != without)
			queue[tail++] = g->n + i;
	while (head < tail) {
		uint32_t node = queue[head++];
		bool group = node >= g->n;
		bool second = group ? node - g->n >= g->n_first
				    : !r->first[node];
		const uint32_t *off = group ? g->group_off - g->n : g->off;
		const uint32_t *dst = group ? g->group_dst : g->dst;

		for (uint32_t e = off[node]; e < off[node + 1]; e++) {
			uint32_t next = dst[e];

			if (next & SKIP || next == without || mark[next] ||
			    (ranked && second && r->first[next]))
				continue;
			mark[next] = true;
			queue[tail++] = next;
		}
	}
}

static void make(struct random_graph *r)
{
	memset(r, 0, sizeof(*r));
	r->g = (struct dominate_graph){
		.n = 2 + rnd(MAX_NODES - 2), .off = r->off, .dst = r->dst,
		.skip = SKIP, .n_groups = rnd(6), .group_off = r->group_off,
		.group_dst = r->group_dst,
	};
	r->g.n_first = rnd(r->g.n_groups + 1);
	make_rows(r->off, r->dst, r->g.n, r->g.n, 1 + rnd(5));
	make_rows(r->group_off, r->group_dst, r->g.n_groups, r->g.n, 4);
	reach(r, 0, r->g.n_first, UINT32_MAX, false, r->first);
}

static uint32_t node_of(const struct random_graph *r, uint32_t node)
{
	return node & DOMINATE_GROUP ? r->g.n + (node & ~DOMINATE_GROUP)
				     : node;
}

/* Is the node at place p, or above it, the one asked for? */
static bool above(const struct random_graph *r, const struct dominate *d,
		  uint32_t p, uint32_t node)
{
	for (; p; p = d->places[p].dominator)
		if (node_of(r, d->places[p].node) == node)
			return true;
	return false;
}

static uint32_t check_one(const struct random_graph *r)
{
	uint32_t place[2 * MAX_NODES] = { 0 }, wrong = 0;
	bool all[2 * MAX_NODES] = { false };
	struct dominate d;

	dominate_init(&d, &r->g);
	for (uint32_t p = 1; p < d.n; p++) {
		place[node_of(r, d.places[p].node)] = p;
		wrong += d.places[p].dominator >= p;
	}
	reach(r, 0, r->g.n_groups, UINT32_MAX, true, all);
	for (uint32_t v = 1; v < r->g.n; v++)
		wrong += all[v] != (place[v] != 0);
	for (uint32_t node = 1; node < r->g.n + r->g.n_groups; node++) {
		bool left[2 * MAX_NODES] = { false };

		reach(r, 0, r->g.n_groups, node, true, left);
		for (uint32_t v = 1; v < r->g.n; v++)
			if (all[v] && v != node)
				wrong += left[v] ==
					 above(r, &d, place[v], node);
	}
	dominate_fini(&d);
	return wrong;
}

TEST(what_is_lost_without_a_node_was_its)
{
	uint32_t wrong = 0;

	for (int i = 0; i < 3000; i++) {
		struct random_graph r;

		make(&r);
		wrong += check_one(&r);
	}
	CHECK_U64(wrong, 0);
}

/* 1 leads to 2 and 3, both to 4; 4 to 5. */
TEST(a_diamond_belongs_to_its_top)
{
	const uint32_t off[] = { 0, 0, 2, 3, 4, 5, 5 };
	const uint32_t dst[] = { 2, 3, 4, 4, 5 };
	const uint32_t group_off[] = { 0, 1 }, group_dst[] = { 1 };
	struct dominate_graph g = {
		.n = 6, .off = off, .dst = dst, .n_groups = 1, .n_first = 1,
		.group_off = group_off, .group_dst = group_dst,
	};
	uint32_t dominator[6] = { 0 };
	struct dominate d;

	dominate_init(&d, &g);
	CHECK_U64(d.n, 7);
	for (uint32_t p = 1; p < d.n; p++)
		if (!(d.places[p].node & DOMINATE_GROUP))
			dominator[d.places[p].node] =
				d.places[d.places[p].dominator].node;
	CHECK_U64(dominator[1], DOMINATE_GROUP);
	CHECK_U64(dominator[2], 1);
	CHECK_U64(dominator[3], 1);
	CHECK_U64(dominator[4], 1);
	CHECK_U64(dominator[5], 4);
	dominate_fini(&d);
}

TEST(a_stack_does_not_share_what_a_variable_leads_to)
{
	const uint32_t off[] = { 0, 0, 1, 1, 2 };
	const uint32_t dst[] = { 2, 2 };
	const uint32_t group_off[] = { 0, 1, 3 }, group_dst[] = { 1, 1, 3 };
	struct dominate_graph g = {
		.n = 4, .off = off, .dst = dst, .n_groups = 2, .n_first = 1,
		.group_off = group_off, .group_dst = group_dst,
	};
	struct dominate d;

	dominate_init(&d, &g);
	for (uint32_t p = 1; p < d.n; p++) {
		uint32_t above_it = d.places[d.places[p].dominator].node;

		if (d.places[p].node == 1)
			CHECK_U64(above_it, DOMINATE_GROUP | 0);
		if (d.places[p].node == 2)
			CHECK_U64(above_it, 1);
		if (d.places[p].node == 3)
			CHECK_U64(above_it, DOMINATE_GROUP | 1);
	}
	dominate_fini(&d);
}

TEST(nothing_is_no_graph_of_trouble)
{
	const uint32_t off[] = { 0, 0 }, group_off[] = { 0 };
	struct dominate_graph g = { .n = 1, .off = off,
				    .group_off = group_off };
	struct dominate d;

	dominate_init(&d, &g);
	CHECK_U64(d.n, 1);
	dominate_fini(&d);
}
