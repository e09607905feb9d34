/* SPDX-License-Identifier: MIT */
#include "analysis/retain_in.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"

/* An accumulation has at least such a part of all. */
enum { TOP_PART = 1000 };

/* How many places before its use what is far away is asked for. */
enum { AHEAD = 32 };

/* ---- groups ---- */

static void new_group(struct retain_builder *b, enum root_kind kind,
		      vaddr addr, uint32_t thread)
{
	MEM_PUSH(b->r->groups, b->r->n_groups, b->r->cap_groups) =
		(struct retain_group){
			.kind = kind, .addr = addr, .thread = thread,
		};
	MEM_PUSH(b->off, b->n_off, b->cap_off) = (uint32_t)b->n_dst;
}

static void add_row(struct retain_builder *b, uint32_t node)
{
	const struct graph *g = b->g;

	for (uint32_t e = g->off[node]; e < g->off[node + 1]; e++)
		MEM_PUSH(b->dst, b->n_dst, b->cap_dst) = g->dst[e];
}

/* The variable that the word at addr is of; false: it has no symbol. */
static bool variable_of(struct retain_builder *b, vaddr addr, vaddr *ret)
{
	const struct symbol *s = &b->symbol;
	bool found = s->size && addr - s->start < s->size;

	if (!found) {
		b->symbol = (struct symbol){ .size = 0 };
		found = symbols_find(b->names->symbols, addr, &b->symbol);
	}
	*ret = found ? s->start : addr;
	return found;
}

/* A word of a module that refers to a block: edge e of its root. */
static void add_variable(struct retain_builder *b, vaddr word, uint32_t e)
{
	struct retain *r = b->r;
	vaddr addr;
	bool known = variable_of(b, word, &addr);

	if (!r->n_groups || r->groups[r->n_groups - 1].kind != ROOT_DATA ||
	    r->groups[r->n_groups - 1].addr != addr) {
		new_group(b, ROOT_DATA, addr, WHERE_NO_THREAD);
		r->groups[r->n_groups - 1].words = !known;
	}
	MEM_PUSH(b->dst, b->n_dst, b->cap_dst) = b->g->dst[e];
}

/* The root's words in the order of its edges. */
static void add_variables(struct retain_builder *b, const struct root *root,
			  uint32_t node)
{
	const struct graph *g = b->g;
	uint32_t e = g->off[node], end = g->off[node + 1];
	uint64_t v;

	for (vaddr at = round_up(root->start, g->sp->word);
	     at < root->end && e < end; at += g->sp->word)
		if (space_word(g->sp, at, &v) && index_find(&g->ix, v))
			add_variable(b, at, e++);
}

static void add_lasting(struct retain_builder *b)
{
	const struct graph *g = b->g;

	for (size_t i = 0; i < g->roots.n; i++) {
		const struct root *root = &g->roots.items[i];
		uint32_t node = graph_root_node(g, i);

		if (root->kind >= ROOT_STACK ||
		    g->off[node] == g->off[node + 1])
			continue;
		if (root->kind == ROOT_DATA) {
			add_variables(b, root, node);
		} else {
			new_group(b, root->kind, root->start,
				  WHERE_NO_THREAD);
			add_row(b, node);
		}
	}
	b->n_first = b->r->n_groups;
}

struct of_thread {
	uint32_t thread, node;
};

static int by_thread(const void *a, const void *b)
{
	const struct of_thread *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

static void add_threads(struct retain_builder *b)
{
	const struct graph *g = b->g;
	struct of_thread *list = NULL;
	size_t n = 0, cap = 0;

	for (size_t i = 0; i < g->roots.n; i++) {
		const struct root *root = &g->roots.items[i];

		if (root->kind == ROOT_STACK || root->kind == ROOT_REGISTERS)
			MEM_PUSH(list, n, cap) = (struct of_thread){
				root->thread, graph_root_node(g, i),
			};
	}
	SORT(list, n, by_thread);
	for (size_t i = 0; i < n; i++) {
		if (!i || list[i].thread != list[i - 1].thread)
			new_group(b, ROOT_STACK, 0, list[i].thread);
		add_row(b, list[i].node);
	}
	free(list);
}

/* ---- sizes ---- */

/* Chunk sizes in granules, cut off at 2^32 of them: 64 GB. */
static void find_sizes(struct retain_builder *b)
{
	const struct index *ix = &b->g->ix;
	size_t cursor = 0;

	b->size = mem_map(((size_t)ix->n + 1) * sizeof(*b->size));
	for (uint32_t w = 0; w <= ix->n / 64; w++) {
		uint64_t used = ix->used[w];

		for (; used; used &= used - 1) {
			uint32_t block = w * 64 +
				(uint32_t)__builtin_ctzll(used);
			vaddr addr = index_addr_next(ix, &cursor, block);
			vaddr next = index_next(ix, addr);
			uint64_t size = next - addr;
			struct block mapped;

			/* A mapping of its own has more than we see. */
			if (!index_own(ix, next - ix->base) &&
			    heap_find(b->names->heap, addr, &mapped))
				size = mapped.size;
			b->size[block] = (uint32_t)min_u64(size >> ix->shift,
							   UINT32_MAX);
		}
	}
}

static uint64_t size_of(const struct retain_builder *b, uint32_t place)
{
	uint32_t node = b->tree.places[place].node;

	if (node & DOMINATE_GROUP || !place)
		return 0;
	return (uint64_t)b->size[node] << b->g->ix.shift;
}

/* Sizes are by number, and their order is not that of places. */
static inline void fetch_size(const struct retain_builder *b, uint32_t place)
{
	__builtin_prefetch(&b->size[b->tree.places[place].node &
				    ~DOMINATE_GROUP]);
}

static size_t tree_bytes(const struct retain_builder *b, size_t size)
{
	return ((size_t)b->tree.n + 1) * size;
}

/* A dominator has a lower place: from the last one on, all is added up. */
static void add_up(struct retain_builder *b)
{
	b->bytes = mem_map(tree_bytes(b, sizeof(*b->bytes)));
	b->largest = mem_map(tree_bytes(b, sizeof(*b->largest)));
	b->blocks = mem_map(tree_bytes(b, sizeof(*b->blocks)));
	for (uint32_t p = b->tree.n - 1; p > 0; p--) {
		uint32_t up = b->tree.places[p].dominator;
		bool group = b->tree.places[p].node & DOMINATE_GROUP;

		if (p > AHEAD)
			fetch_size(b, p - AHEAD);
		b->bytes[p] += size_of(b, p);
		b->blocks[p] += !group;
		b->bytes[up] += b->bytes[p];
		b->blocks[up] += b->blocks[p];
		b->largest[up] = max_u64(b->largest[up], b->bytes[p]);
	}
}

/* ---- results ---- */

static uint64_t drop_of(const struct retain_builder *b, uint32_t place)
{
	return b->bytes[place] - b->largest[place];
}

static uint32_t group_above(const struct retain_builder *b, uint32_t place)
{
	while (place && !(b->tree.places[place].node & DOMINATE_GROUP))
		place = b->tree.places[place].dominator;
	return place ? b->tree.places[place].node & ~DOMINATE_GROUP
		     : RETAIN_SEVERAL;
}

/* What at least two groups lead to is too little if no list shows it. */
static bool matters(const struct retain_builder *b)
{
	uint64_t of_one = 0;

	for (uint32_t p = 1; p < b->tree.n; p++)
		if (b->tree.places[p].node & DOMINATE_GROUP)
			of_one += b->bytes[p];
	return b->bytes[0] - of_one > b->bytes[0] / TOP_PART;
}

static struct retain_block top_block(const struct retain_builder *b,
				     uint32_t place)
{
	uint32_t block = b->tree.places[place].node;
	struct retain_block ret = {
		.block = block,
		.addr = index_addr(&b->g->ix, block),
		.size = size_of(b, place),
		.retained = { b->blocks[place], b->bytes[place] },
		.group = { group_above(b, place), RETAIN_SEVERAL },
	};

	if (ret.group[0] == RETAIN_SEVERAL && b->near[0]) {
		ret.group[0] = b->near[0][block] - 1;
		ret.group[1] = b->near[1][block] - 1;
	}
	return ret;
}

/* Places of the blocks with the largest drops, the largest first. */
static void find_top(struct retain_builder *b)
{
	struct retain *r = b->r;
	uint32_t top[RETAIN_BLOCKS];
	size_t n = 0;

	for (uint32_t p = 1; p < b->tree.n; p++) {
		size_t at = n;

		/* Not worth a word, such as each member of a long list. */
		if (b->tree.places[p].node & DOMINATE_GROUP ||
		    drop_of(b, p) < b->bytes[0] / TOP_PART ||
		    (n == RETAIN_BLOCKS &&
		     drop_of(b, p) <= drop_of(b, top[n - 1])))
			continue;
		if (n < RETAIN_BLOCKS)
			n++;
		else
			at--;
		for (; at && drop_of(b, top[at - 1]) < drop_of(b, p); at--)
			top[at] = top[at - 1];
		top[at] = p;
	}
	for (size_t i = 0; i < n; i++)
		r->top[i] = top_block(b, top[i]);
	r->n_top = n;
}

static inline void fetch_results(const struct retain *r, uint32_t node)
{
	__builtin_prefetch(&r->bytes[node & ~DOMINATE_GROUP], 1);
	__builtin_prefetch(&r->dominator[node & ~DOMINATE_GROUP], 1);
}

static void share_out(struct retain_builder *b)
{
	struct retain *r = b->r;

	r->bytes_size = ((size_t)b->g->ix.n + 1) * sizeof(*r->bytes);
	r->bytes = mem_map(r->bytes_size);
	r->dominator_size = ((size_t)b->g->ix.n + 1) * sizeof(*r->dominator);
	r->dominator = mem_map(r->dominator_size);
	for (uint32_t p = 1; p < b->tree.n; p++) {
		uint32_t node = b->tree.places[p].node;
		struct tally t = { b->blocks[p], b->bytes[p] };

		if (p + AHEAD < b->tree.n)
			fetch_results(r, b->tree.places[p + AHEAD].node);
		if (node & DOMINATE_GROUP) {
			r->groups[node & ~DOMINATE_GROUP].retained = t;
			continue;
		}
		r->bytes[node] = t.bytes;
		r->dominator[node] =
			b->tree.places[b->tree.places[p].dominator].node;
		if (!b->tree.places[p].dominator)
			r->dominator[node] = retain_several(r, 0);
		if (!b->tree.places[p].dominator) {
			r->several.blocks += t.blocks;
			r->several.bytes += t.bytes;
		}
	}
	r->total = (struct tally){ b->blocks[0], b->bytes[0] };
}

/* Every second one goes where there is no room, and from then on comes. */
static void add_member(struct retain_block *top, uint32_t block,
		       uint32_t *seen, uint32_t *step)
{
	if ((*seen)++ % *step)
		return;
	if (top->n_members == RETAIN_MEMBERS) {
		for (uint32_t i = 0; i < RETAIN_MEMBERS / 2; i++)
			top->members[i] = top->members[2 * i];
		top->n_members = RETAIN_MEMBERS / 2;
		*step *= 2;
	}
	top->members[top->n_members++] = block;
}

static void find_members(struct retain *r)
{
	const struct index *ix = &r->g->ix;
	uint64_t *is_top = mem_zalloc(((size_t)ix->n / 64 + 1) * 8);
	uint32_t seen[RETAIN_BLOCKS] = { 0 }, step[RETAIN_BLOCKS];

	for (size_t i = 0; i < r->n_top; i++) {
		step[i] = 1;
		is_top[r->top[i].block >> 6] |= UINT64_C(1) <<
			(r->top[i].block & 63);
	}
	for (uint32_t i = 1; i < ix->n; i++) {
		uint32_t up = r->dominator[i];
		size_t at = 0;

		if (!up || up & RETAIN_GROUP ||
		    !(is_top[up >> 6] >> (up & 63) & 1))
			continue;
		while (r->top[at].block != up)
			at++;
		add_member(&r->top[at], i, &seen[at], &step[at]);
	}
	free(is_top);
}

struct ranked {
	struct retain_group group;
	uint32_t was;
};

static int by_bytes(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->group.retained.bytes != y->group.retained.bytes)
		return x->group.retained.bytes > y->group.retained.bytes ? -1
									 : 1;
	return (x->was > y->was) - (x->was < y->was);
}

static void renumber(uint32_t group[2], const uint32_t *now)
{
	for (int i = 0; i < 2; i++)
		if (group[i] != RETAIN_SEVERAL)
			group[i] = now[group[i]];
}

/* Largest first; the blocks' groups are renumbered. */
static void rank_groups(struct retain *r)
{
	struct ranked *list = mem_alloc(r->n_groups * sizeof(*list));
	uint32_t *now = mem_alloc(r->n_groups * sizeof(*now));

	for (size_t i = 0; i < r->n_groups; i++)
		list[i] = (struct ranked){ r->groups[i], (uint32_t)i };
	SORT(list, r->n_groups, by_bytes);
	for (size_t i = 0; i < r->n_groups; i++) {
		r->groups[i] = list[i].group;
		now[list[i].was] = (uint32_t)i;
	}
	for (size_t i = 0; i < r->n_top; i++)
		renumber(r->top[i].group, now);
	for (size_t i = 0; i < r->n_shared; i++)
		renumber(r->shared[i].group, now);
	for (uint32_t i = 0; i <= r->g->ix.n; i++)
		if (r->dominator[i] & RETAIN_GROUP &&
		    (r->dominator[i] & ~RETAIN_GROUP) < r->n_groups)
			r->dominator[i] = RETAIN_GROUP |
				now[r->dominator[i] & ~RETAIN_GROUP];
	free(list);
	free(now);
}

static void find_tree(struct retain_builder *b)
{
	const struct graph *g = b->g;
	struct dominate_graph dg = {
		.n = g->ix.n, .off = g->off, .dst = g->dst,
		.skip = GRAPH_WEAK | GRAPH_SPARE,
		.n_groups = (uint32_t)b->r->n_groups,
		.n_first = (uint32_t)b->n_first,
		.group_off = b->off,
		.group_dst = b->dst,
	};

	dominate_init(&b->tree, &dg);
	add_up(b);
}

static void drop_tree(struct retain_builder *b)
{
	mem_unmap(b->bytes, tree_bytes(b, sizeof(*b->bytes)));
	mem_unmap(b->largest, tree_bytes(b, sizeof(*b->largest)));
	mem_unmap(b->blocks, tree_bytes(b, sizeof(*b->blocks)));
	dominate_fini(&b->tree);
}

void retain_init(struct retain *r, const struct graph *g,
		 struct refs_names *names, struct progress *progress)
{
	struct retain_builder b = { .r = r, .g = g, .names = names };
	size_t by_number = ((size_t)g->ix.n + 1) * sizeof(uint32_t);

	progress_phase(progress, "finding who keeps how much");
	*r = (struct retain){ .g = g };
	add_lasting(&b);
	add_threads(&b);
	MEM_PUSH(b.off, b.n_off, b.cap_off) = (uint32_t)b.n_dst;
	find_sizes(&b);
	find_tree(&b);
	if (matters(&b) && retain_join(&b)) {
		drop_tree(&b);
		find_tree(&b);
	}
	if (matters(&b))
		retain_find_near(&b);
	find_top(&b);
	share_out(&b);
	find_members(r);
	if (b.near[0])
		retain_find_shared(&b);
	rank_groups(r);
	drop_tree(&b);
	mem_unmap(b.size, by_number);
	for (int i = 0; i < 2 && b.near[i]; i++)
		mem_unmap(b.near[i], by_number);
	free(b.off);
	free(b.dst);
}

void retain_fini(struct retain *r)
{
	free(r->groups);
	mem_unmap(r->bytes, r->bytes_size);
	mem_unmap(r->dominator, r->dominator_size);
	*r = (struct retain){ 0 };
}

/* Into the list, which is sorted; what falls out of it is the rest. */
static size_t add_child(const struct retain *r, uint32_t block,
			struct retain_child *list, size_t n, size_t max,
			struct tally *rest)
{
	uint64_t bytes = r->bytes[block];
	size_t at = n;

	if (n == max) {
		rest->blocks++;
		rest->bytes += min_u64(bytes, list[n - 1].bytes);
		if (bytes <= list[n - 1].bytes)
			return n;
		at--;
	}
	for (; at && list[at - 1].bytes < bytes; at--)
		list[at] = list[at - 1];
	list[at] = (struct retain_child){ .block = block, .bytes = bytes };
	return n < max ? n + 1 : max;
}

uint32_t retain_several(const struct retain *r, size_t i)
{
	return RETAIN_GROUP | (uint32_t)(r->n_groups + i);
}

size_t retain_children(const struct retain *r, uint32_t node,
		       struct retain_child *ret, size_t n,
		       struct tally *ret_rest)
{
	const struct index *ix = &r->g->ix;
	size_t found = 0;

	*ret_rest = (struct tally){ 0 };
	for (uint32_t i = 1; node && i < ix->n; i++)
		if (r->dominator[i] == node)
			found = add_child(r, i, ret, found, n, ret_rest);
	for (size_t i = 0; i < found; i++) {
		ret[i].addr = index_addr(ix, ret[i].block);
		ret[i].size = index_next(ix, ret[i].addr) - ret[i].addr;
	}
	return found;
}

void retain_group_text(struct refs_names *names,
		       const struct retain_group *group, struct str *ret)
{
	struct root root = { .kind = group->kind, .thread = group->thread };

	if (group->kind != ROOT_STACK)
		refs_root_text(names, &root, group->addr, ret);
	else if (group->thread < names->sp->n_threads)
		str_printf(ret, "thread %u",
			   (unsigned)names->sp->threads[group->thread].tid);
	else
		str_adds(ret, "threads that are gone");
}
