/* SPDX-License-Identifier: MIT */
#include "report/calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"

enum { NO_CALL = UINT32_MAX };

/* The tree while it is made: nodes in order of appearance. */
struct growing {
	const struct replay_input *in;
	struct call *nodes;	/* owned; parent NO_CALL at the top */
	size_t n, cap;
	struct map children;	/* index + 1, by parent and function */
};

static void add_sum(struct call_sum *to, const struct call_sum *s)
{
	to->exact += s->exact;
	to->temporary += s->temporary;
	profile_sum_add(&to->sum, &s->sum);
}

void call_sum_of(struct call_sum *ret, const struct site *s,
		 enum replay_metric metric)
{
	*ret = (struct call_sum){
		.exact = replay_exact_bytes(metric, &s->exact),
		.temporary = s->exact.temporary,
		.sum = s->view[replay_view(metric)],
	};
}

/* ---- growing ---- */

/* The call of a function by a node; the node itself if there is no room. */
static uint32_t child_of(struct growing *g, uint32_t parent,
			 uint32_t function)
{
	uint64_t key = ((uint64_t)parent << 32 | function) + 1;
	uint32_t found = map_get(&g->children, key);

	if (found)
		return found - 1;
	if (g->n == CALLS_MAX && parent != NO_CALL)
		return parent;
	MEM_PUSH(g->nodes, g->n, g->cap) = (struct call){
		.function = function, .parent = parent,
	};
	map_put(&g->children, key, (uint32_t)g->n);
	return (uint32_t)g->n - 1;
}

static void add_stack(struct growing *g, uint32_t stack)
{
	const struct replay *r = g->in->replay;
	struct frames *f = g->in->frames;
	enum profile_view view = replay_view(g->in->metric);
	const struct profile_row *row = profile_find(&r->profile, stack);
	uint32_t frames[TRACE_DEPTH_MAX];
	size_t n = sites_frames(f, stack, frames, TRACE_DEPTH_MAX);
	uint32_t at = NO_CALL;
	struct call_sum sum = {
		.exact = replay_exact_bytes(g->in->metric, &r->sites[stack]),
		.temporary = r->sites[stack].temporary,
	};

	if (g->in->only_site && g->in->sites->of_stack[stack] + 1 !=
	    g->in->only_site)
		return;
	if (row)
		sum.sum = row->view[view];
	if (!sum.exact && !sum.sum.n)
		return;
	while (n--) {
		uint32_t next = child_of(g, at, f->frames[frames[n]].function);

		if (next == at)
			break;
		at = next;
		add_sum(&g->nodes[at].all, &sum);
	}
	if (at != NO_CALL)
		add_sum(&g->nodes[at].own, &sum);
}

/* ---- in order ---- */

struct branch {
	uint32_t parent, node;
	uint64_t exact;
	double estimate;
	const char *name;
	bool by_exact;
};

static int by_parent(const void *a, const void *b)
{
	const struct branch *x = a, *y = b;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	if (!x->by_exact && x->estimate != y->estimate)
		return x->estimate > y->estimate ? -1 : 1;
	return ORDER(y->exact, x->exact) ?: strcmp(x->name, y->name);
}

/* Nodes by their parents; those of the top are the last ones. */
static struct branch *sort_branches(const struct growing *g)
{
	struct branch *ret = mem_alloc((g->n + 1) * sizeof(*ret));

	for (uint32_t i = 0; i < g->n; i++) {
		const struct call *c = &g->nodes[i];
		struct profile_figures f;

		profile_sum_get(&c->all.sum, &f);
		ret[i] = (struct branch){
			.parent = c->parent, .node = i,
			.exact = c->all.exact, .estimate = f.bytes.value,
			.name = g->in->frames->functions[c->function].name,
			.by_exact = g->in->only_exact,
		};
	}
	SORT(ret, g->n, by_parent);
	return ret;
}

/* Where the branches of each node begin; one more for the end. */
static uint32_t *find_first(const struct branch *branches, size_t n)
{
	uint32_t *ret = mem_alloc((n + 2) * sizeof(*ret));
	size_t at = 0;

	for (uint32_t node = 0; node <= n; node++) {
		while (at < n && branches[at].parent < node)
			at++;
		ret[node] = (uint32_t)at;
	}
	return ret;
}

/* The last of the functions that all stacks begin with. */
static uint32_t find_top(const struct growing *g, const struct branch *b,
			 const uint32_t *first)
{
	size_t n_top = g->n - first[g->n];
	uint32_t top = n_top == 1 && !g->in->only_site
		? b[first[g->n]].node : NO_CALL;

	while (top != NO_CALL && first[top + 1] - first[top] == 1 &&
	       !g->nodes[top].own.exact && !g->nodes[top].own.sum.n)
		top = b[first[top]].node;
	return top;
}

/* Each node below the one it belongs to; depth is set on the way. */
static void put_in_order(struct calls *c, const struct growing *g,
			 const struct branch *b, const uint32_t *first)
{
	uint32_t *waiting = mem_alloc((g->n + 1) * sizeof(*waiting));
	uint32_t *place = mem_zalloc((g->n + 1) * sizeof(*place));
	uint32_t top = find_top(g, b, first);
	size_t n = 0;

	if (top != NO_CALL)
		waiting[n++] = top;
	else
		for (size_t i = g->n; i > first[g->n]; i--)
			waiting[n++] = b[i - 1].node;
	while (n) {
		uint32_t node = waiting[--n];
		struct call *to = &c->list[c->n];
		uint32_t parent = g->nodes[node].parent;
		bool is_top = node == top || parent == NO_CALL;

		*to = g->nodes[node];
		to->parent = is_top ? (uint32_t)c->n : place[parent];
		to->depth = is_top ? 0 : c->list[to->parent].depth + 1;
		place[node] = (uint32_t)c->n++;
		for (uint32_t i = first[node + 1]; i > first[node]; i--)
			waiting[n++] = b[i - 1].node;
	}
	free(waiting);
	free(place);
}

void calls_init(struct calls *c, const struct replay_input *in)
{
	struct growing g = { .in = in };
	struct branch *branches;
	uint32_t *first;

	for (uint32_t i = 0; i < in->replay->n_sites; i++)
		if (in->replay->sites[i].allocations)
			add_stack(&g, i);
	*c = (struct calls){ .n = 0 };
	c->list = mem_alloc((g.n + 1) * sizeof(*c->list));
	branches = sort_branches(&g);
	first = find_first(branches, g.n);
	put_in_order(c, &g, branches, first);
	free(first);
	free(branches);
	map_fini(&g.children);
	free(g.nodes);
}

void calls_fini(struct calls *c)
{
	free(c->list);
	*c = (struct calls){ .n = 0 };
}

/* ---- the largest ---- */

static uint64_t size_of(const struct call *c)
{
	struct profile_figures f;

	profile_sum_get(&c->all.sum, &f);
	return max_u64(c->all.exact, (uint64_t)f.bytes.value);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x < y) - (x > y);
}

void calls_keep_largest(struct calls *c, size_t n)
{
	AUTO_FREE uint64_t *sizes = mem_alloc((c->n + 1) * sizeof(*sizes));
	AUTO_FREE uint32_t *place = mem_alloc((c->n + 1) * sizeof(*place));
	size_t kept = 0, equal = n;
	uint64_t least;

	if (c->n <= n || !n)
		return;
	for (size_t i = 0; i < c->n; i++)
		sizes[i] = size_of(&c->list[i]);
	SORT(sizes, c->n, by_size);
	least = sizes[n - 1];
	while (equal && sizes[equal - 1] == least)
		equal--;
	equal = n - equal;	/* so many of those that are just as large */
	for (size_t i = 0; i < c->n; i++) {
		struct call *from = &c->list[i];
		uint64_t size = size_of(from);
		bool is_top = from->parent == i;

		place[i] = UINT32_MAX;
		if (size < least || (size == least && !equal) ||
		    (!is_top && place[from->parent] == UINT32_MAX))
			continue;
		equal -= size == least;
		place[i] = (uint32_t)kept;
		c->list[kept] = *from;
		c->list[kept].parent = is_top ? (uint32_t)kept
					      : place[from->parent];
		kept++;
	}
	c->n = kept;
}
