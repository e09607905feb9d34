/* SPDX-License-Identifier: MIT */
#include "analysis/retain_in.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"

/* Two that have less of all in common are among the rest. */
enum { SHARED_PART = 100 };

/* ---- pairs ---- */

static int by_groups(const void *a, const void *b)
{
	const struct retain_pair *x = a, *y = b;

	if (x->a != y->a)
		return x->a < y->a ? -1 : 1;
	return (x->b > y->b) - (x->b < y->b);
}

int retain_pair_compare(const void *a, const void *b)
{
	const struct retain_pair *x = a, *y = b;

	if (x->t.bytes != y->t.bytes)
		return x->t.bytes > y->t.bytes ? -1 : 1;
	return by_groups(a, b);
}

static void add_tally(struct tally *to, const struct tally *t)
{
	to->blocks += t->blocks;
	to->bytes += t->bytes;
}

static size_t merge(struct retain_pair *list, size_t n)
{
	size_t kept = 0;

	SORT(list, n, by_groups);
	for (size_t i = 0; i < n; i++)
		if (kept && !by_groups(&list[kept - 1], &list[i]))
			add_tally(&list[kept - 1].t, &list[i].t);
		else
			list[kept++] = list[i];
	return kept;
}

struct retain_pair *
retain_pairs(const struct retain_builder *b, const uint32_t *of[2],
	     bool (*wants)(const struct retain_builder *b,
			   const struct retain_pair *pair),
	     size_t *ret_n)
{
	struct retain_pair *list = NULL;
	size_t n = 0, cap = 0, limit = 1 << 16;

	for (uint32_t i = 1; i < b->g->ix.n; i++) {
		struct retain_pair pair = { of[0][i] - 1, of[1][i] - 1,
			{ 1, (uint64_t)b->size[i] << b->g->ix.shift } };

		if (!of[1][i] || of[0][i] == of[1][i] ||
		    (wants && !wants(b, &pair)))
			continue;
		/* Neighbours are alike. */
		if (n && !by_groups(&list[n - 1], &pair)) {
			add_tally(&list[n - 1].t, &pair.t);
			continue;
		}
		if (n == limit) {
			n = merge(list, n);
			limit = n > limit / 2 ? 2 * limit : limit;
		}
		MEM_PUSH(list, n, cap) = pair;
	}
	*ret_n = merge(list, n);
	return list;
}

/* ---- the two nearest groups ---- */

struct step {
	uint32_t block, group;	/* 1 + group */
};

struct steps {
	struct step *items;	/* owned */
	size_t n, cap;
};

/* Blocks whose nearest group has a number up to done are not ours. */
static void go(struct retain_builder *b, const uint32_t *row, uint32_t n,
	       uint32_t group, uint32_t done, struct steps *to)
{
	for (uint32_t e = 0; e < n; e++) {
		uint32_t block = row[e];
		int at;

		if (block & (GRAPH_WEAK | GRAPH_SPARE))
			continue;
		at = !b->near[0][block] ? 0 : 1;
		if (at && (b->near[1][block] || b->near[0][block] == group ||
			   b->near[0][block] <= done))
			continue;
		b->near[at][block] = group;
		MEM_PUSH(to->items, to->n, to->cap) =
			(struct step){ block, group };
	}
}

/* Breadth first from groups of one rank: each block is passed twice. */
static void near_of_rank(struct retain_builder *b, uint32_t first,
			 uint32_t end)
{
	const struct graph *g = b->g;
	struct steps now = { 0 }, next = { 0 };

	for (uint32_t i = first; i < end; i++)
		go(b, b->dst + b->off[i], b->off[i + 1] - b->off[i], i + 1,
		   first, &now);
	while (now.n) {
		struct steps was = now;

		next.n = 0;
		for (size_t i = 0; i < now.n; i++) {
			const struct step *s = &now.items[i];

			if (i + 8 < now.n)
				__builtin_prefetch(
					&g->off[now.items[i + 8].block]);
			go(b, g->dst + g->off[s->block],
			   g->off[s->block + 1] - g->off[s->block], s->group,
			   first, &next);
		}
		now = next;
		next = was;
	}
	free(now.items);
	free(next.items);
}

void retain_find_near(struct retain_builder *b)
{
	size_t bytes = ((size_t)b->g->ix.n + 1) * sizeof(uint32_t);

	b->near[0] = mem_map(bytes);
	b->near[1] = mem_map(bytes);
	near_of_rank(b, 0, (uint32_t)b->n_first);
	near_of_rank(b, (uint32_t)b->n_first, (uint32_t)b->r->n_groups);
}

static void add_shared(struct retain *r, uint32_t a, uint32_t b,
		       const struct tally *t)
{
	if (t->blocks && t->bytes >= r->total.bytes / SHARED_PART)
		r->shared[r->n_shared++] = (struct retain_shared){
			{ a, b }, *t,
		};
}

/* Of pairs that get no row of their own: which group is in the most. */
static void add_nearest(struct retain *r, const struct retain_pair *list,
			size_t n)
{
	struct tally *sums = mem_zalloc((r->n_groups + 1) * sizeof(*sums));
	uint32_t best = 0;

	for (size_t i = 0; i < n; i++) {
		add_tally(&sums[list[i].a], &list[i].t);
		add_tally(&sums[list[i].b], &list[i].t);
	}
	for (uint32_t i = 1; i < r->n_groups; i++)
		if (sums[i].bytes > sums[best].bytes)
			best = i;
	add_shared(r, best, RETAIN_SEVERAL, &sums[best]);
	free(sums);
}

/* Which of the results a block with these two is of; n_shared: of none. */
static size_t shared_of(const struct retain *r, uint32_t a, uint32_t b)
{
	size_t i;

	for (i = 0; i < r->n_shared; i++) {
		const uint32_t *group = r->shared[i].group;

		if (group[1] == RETAIN_SEVERAL ?
		    group[0] == a || group[0] == b :
		    group[0] == a && group[1] == b)
			break;
	}
	return i;
}

static void find_nodes(struct retain_builder *b)
{
	struct retain *r = b->r;
	uint32_t several = retain_several(r, 0);

	for (uint32_t i = 1; i < b->g->ix.n; i++)
		if (r->dominator[i] == several)
			r->dominator[i] = retain_several(r,
				shared_of(r, b->near[0][i] - 1,
					  b->near[1][i] - 1));
}

void retain_find_shared(struct retain_builder *b)
{
	struct retain *r = b->r;
	const uint32_t *near[2] = { b->near[0], b->near[1] };
	size_t n;
	struct retain_pair *list = retain_pairs(b, near, NULL, &n);

	SORT(list, n, retain_pair_compare);
	for (size_t i = 0; i < n && i < RETAIN_SHARED - 1; i++)
		add_shared(r, list[i].a, list[i].b, &list[i].t);
	add_nearest(r, list + r->n_shared, n - r->n_shared);
	find_nodes(b);
	free(list);
}
