/* SPDX-License-Identifier: MIT */
#include "analysis/retain_in.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"

/*
 * Words of one object: the largest container of libstdc++ has 80 bytes, and
 * locks and counters stand between the words of others.
 */
enum { REACH = 256 };

/* What two words share is worth a thought from such a part of all on. */
enum { PAIR_PART = 1000 };

/* ---- sets of words ---- */

struct word {
	uint32_t up;		/* itself: the first one of its set */
	vaddr end;		/* of a set: its last word */
	uint64_t alone;		/* what only it leads to */
	uint64_t reached;	/* what it is the first or last to lead to */
	uint64_t shared;	/* of a set: what joined it */
};

struct joiner {
	struct retain_builder *b;
	struct word *words;	/* owned; by group */
	/* Owned; by number: 1 + the first and the last group that leads there,
	   of the first rank if one of that does; 0: none. */
	uint32_t *first, *last;
	bool any;
};

/* ---- the first and the last group that leads to a block ---- */

static void mark_from(struct joiner *j, uint32_t group, uint32_t **todo,
		      size_t *cap)
{
	const struct retain_builder *b = j->b;
	const struct graph *g = b->g;
	const uint32_t *dst = b->dst;
	uint32_t e = b->off[group], end = b->off[group + 1];
	size_t n = 0;

	for (;;) {
		for (; e < end; e++) {
			if (dst[e] & (GRAPH_WEAK | GRAPH_SPARE) ||
			    j->last[dst[e]])
				continue;
			j->last[dst[e]] = group + 1;
			MEM_PUSH(*todo, n, *cap) = dst[e];
			__builtin_prefetch(&g->off[dst[e]]);
		}
		if (!n)
			return;
		dst = g->dst;
		e = g->off[(*todo)[--n]];
		end = g->off[(*todo)[n] + 1];
	}
}

static void find_ends(struct joiner *j)
{
	struct retain_builder *b = j->b;
	uint32_t n_first = (uint32_t)b->n_first, group = 0, *todo = NULL;
	size_t cap = 0;

	/* Places are those of a search that begins at each group in turn. */
	for (uint32_t p = 1; p < b->tree.n; p++) {
		uint32_t node = b->tree.places[p].node;

		if (node & DOMINATE_GROUP)
			group = (node & ~DOMINATE_GROUP) + 1;
		else
			j->first[node] = group;
	}
	for (uint32_t i = n_first; i > 0; i--)
		mark_from(j, i - 1, &todo, &cap);
	for (uint32_t i = (uint32_t)b->r->n_groups; i > n_first; i--)
		mark_from(j, i - 1, &todo, &cap);
	free(todo);
}

static bool is_close(const struct retain_builder *b,
		     const struct retain_pair *pair)
{
	const struct retain_group *x = &b->r->groups[pair->a];
	const struct retain_group *y = &b->r->groups[pair->b];

	return x->words && y->words && y->addr - x->addr < REACH &&
	       space_module(b->g->sp, x->addr) ==
	       space_module(b->g->sp, y->addr);
}

/* ---- which words belong together ---- */

static uint32_t set_of(struct joiner *j, uint32_t i)
{
	while (j->words[i].up != i) {
		j->words[i].up = j->words[j->words[i].up].up;
		i = j->words[i].up;
	}
	return i;
}

static void join(struct joiner *j, uint32_t a, uint32_t b, uint64_t shared)
{
	struct word *x, *y;

	a = set_of(j, a);
	b = set_of(j, b);
	x = &j->words[a < b ? a : b];
	y = &j->words[a < b ? b : a];
	if (x != y && max_u64(x->end, y->end) -
		      j->b->r->groups[x - j->words].addr >= REACH)
		return;
	j->any |= x != y;
	y->up = (uint32_t)(x - j->words);
	x->end = max_u64(x->end, y->end);
	x->shared += shared + (x == y ? 0 : y->shared);
}

static void find_reached(struct joiner *j)
{
	const struct retain_builder *b = j->b;

	for (uint32_t i = 0; i < b->r->n_groups; i++)
		j->words[i] = (struct word){
			.up = i, .end = b->r->groups[i].addr,
		};
	for (uint32_t p = 1; p < b->tree.n; p++) {
		uint32_t node = b->tree.places[p].node;

		if (node & DOMINATE_GROUP)
			j->words[node & ~DOMINATE_GROUP].alone = b->bytes[p];
	}
	for (uint32_t i = 1; i < b->g->ix.n; i++) {
		uint64_t size = (uint64_t)b->size[i] << b->g->ix.shift;

		if (!j->first[i])
			continue;
		j->words[j->first[i] - 1].reached += size;
		if (j->last[i] != j->first[i])
			j->words[j->last[i] - 1].reached += size;
	}
}

/* Two belong together if they share half of what one of them leads to. */
static void join_ends(struct joiner *j)
{
	const uint32_t *ends[2] = { j->first, j->last };
	size_t n;
	struct retain_pair *list = retain_pairs(j->b, ends, is_close, &n);

	SORT(list, n, retain_pair_compare);
	for (size_t i = 0; i < n; i++) {
		uint64_t bytes = list[i].t.bytes;

		if (bytes < j->b->bytes[0] / PAIR_PART)
			break;
		if (bytes >= min_u64(j->words[list[i].a].reached,
				     j->words[list[i].b].reached) / 2)
			join(j, list[i].a, list[i].b, bytes);
	}
	free(list);
}

/* Words between two of a set that lead to the same and to little else. */
static void join_middle(struct joiner *j)
{
	struct retain_builder *b = j->b;

	for (uint32_t i = 0; i < b->n_first; i++) {
		uint32_t to = b->dst[b->off[i]], first, last;

		if (!b->r->groups[i].words ||
		    to & (GRAPH_WEAK | GRAPH_SPARE))
			continue;
		first = j->first[to] - 1;
		last = j->last[to] - 1;
		if (first < i && i < last &&
		    set_of(j, first) == set_of(j, last) &&
		    j->words[i].alone <= j->words[set_of(j, first)].shared)
			join(j, first, i, 0);
	}
}

/* ---- rows of what is joined ---- */

static void add_set(struct joiner *j, uint32_t first, struct retain *r,
		    struct retain_builder *to)
{
	const struct retain_builder *b = j->b;
	const struct retain_group *groups = b->r->groups;
	struct retain_group sum = groups[first];

	MEM_PUSH(to->off, to->n_off, to->cap_off) = (uint32_t)to->n_dst;
	for (uint32_t i = first; i == first ||
	     (groups[first].words && i < b->n_first &&
	      groups[i].addr - groups[first].addr < REACH); i++) {
		if (set_of(j, i) != first)
			continue;
		sum.words += i == first ? 0 : 1;
		for (uint32_t e = b->off[i]; e < b->off[i + 1]; e++)
			MEM_PUSH(to->dst, to->n_dst, to->cap_dst) =
				b->dst[e];
	}
	MEM_PUSH(r->groups, r->n_groups, r->cap_groups) = sum;
}

static void new_rows(struct joiner *j)
{
	struct retain_builder *b = j->b;
	struct retain_builder to = { .n_first = b->n_first };
	struct retain r = { 0 };

	for (uint32_t i = 0; i < b->r->n_groups; i++) {
		if (i == b->n_first)
			to.n_first = r.n_groups;
		if (set_of(j, i) == i)
			add_set(j, i, &r, &to);
	}
	if (b->n_first == b->r->n_groups)
		to.n_first = r.n_groups;
	MEM_PUSH(to.off, to.n_off, to.cap_off) = (uint32_t)to.n_dst;
	free(b->off);
	free(b->dst);
	free(b->r->groups);
	b->off = to.off;
	b->n_off = to.n_off;
	b->cap_off = to.cap_off;
	b->dst = to.dst;
	b->n_dst = to.n_dst;
	b->cap_dst = to.cap_dst;
	b->n_first = to.n_first;
	b->r->groups = r.groups;
	b->r->n_groups = r.n_groups;
	b->r->cap_groups = r.cap_groups;
}

bool retain_join(struct retain_builder *b)
{
	size_t bytes = ((size_t)b->g->ix.n + 1) * sizeof(uint32_t);
	struct joiner j = { .b = b };

	j.words = mem_alloc((b->r->n_groups + 1) * sizeof(*j.words));
	j.first = mem_map(bytes);
	j.last = mem_map(bytes);
	find_ends(&j);
	find_reached(&j);
	join_ends(&j);
	if (j.any) {
		join_middle(&j);
		new_rows(&j);
	}
	mem_unmap(j.first, bytes);
	mem_unmap(j.last, bytes);
	free(j.words);
	return j.any;
}
