/* SPDX-License-Identifier: MIT */
/*
 * What blocks of real cores retain, held to the slow way: take the block out,
 * search again, and add up what is not reached any more.
 */
#include "unit/check.h"

#include "analysis/retain.h"
#include "corewalk/alloc.h"
#include "corewalk/target.h"

enum { MOST_BLOCKS = 400 };

struct core {
	struct space *sp;
	struct heap heap;
	struct where where;
	struct graph g;
	struct refs_names names;
	struct retain r;
};

static bool core_init(struct core *c, const char *name)
{
	struct target_options options = { .no_files = true };
	struct err err = { .kind = ERR_NONE };
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s/core.xz", getenv("FIXTURES"),
		 name);
	c->sp = target_open_core(path, &options, &err);
	heap_init(&c->heap);
	if (!CHECK(c->sp) ||
	    !CHECK(alloc_walk(c->sp, NULL, false, &c->heap, NULL, &err)))
		return false;
	where_init(&c->where, c->sp, &c->heap);
	refs_names_init(&c->names, c->sp, &c->heap, &c->where, NULL);
	if (!CHECK(graph_init(&c->g, c->sp, &c->heap, &c->where, GIB, NULL,
			      &err)))
		return false;
	retain_init(&c->r, &c->g, &c->names, NULL);
	return true;
}

static void core_fini(struct core *c)
{
	retain_fini(&c->r);
	graph_fini(&c->g);
	refs_names_fini(&c->names);
	where_fini(&c->where);
	heap_fini(&c->heap);
	space_close(c->sp);
}

/*
 * Mark what roots of one rank lead to without going through block out: what
 * variables and mappings lead to is theirs, threads share the rest.
 */
static uint8_t *reached(const struct graph *g, bool threads, uint32_t out)
{
	uint8_t *mark = calloc(g->n_nodes + 1, 1);
	uint32_t *list = calloc(g->n_nodes + 1, sizeof(*list)), n = 0;

	for (size_t i = 0; i < g->roots.n; i++) {
		enum root_kind kind = g->roots.items[i].kind;

		if (kind != ROOT_STALE && (kind >= ROOT_STACK) == threads)
			list[n++] = graph_root_node(g, i);
	}
	while (n) {
		uint32_t node = list[--n];

		for (uint32_t e = g->off[node]; e < g->off[node + 1]; e++) {
			uint32_t to = g->dst[e];

			if (to & (GRAPH_WEAK | GRAPH_SPARE) || mark[to] ||
			    to == out)
				continue;
			mark[to] = 1;
			list[n++] = to;
		}
	}
	free(list);
	return mark;
}

static uint64_t size_of(struct core *c, uint32_t block)
{
	struct block b;

	return heap_find(&c->heap, index_addr(&c->g.ix, block), &b) ? b.size
								    : 0;
}

/* The slow way; first: what variables lead to. */
static uint64_t retained(struct core *c, const uint8_t *first,
			 const uint8_t *second, uint32_t block)
{
	bool threads = !first[block];
	const uint8_t *with = threads ? second : first;
	uint8_t *without = reached(&c->g, threads, block);
	uint64_t sum = 0;

	for (uint32_t i = 1; i < c->g.ix.n; i++)
		if (with[i] && !without[i] && !(threads && first[i]))
			sum += size_of(c, i);
	free(without);
	return sum;
}

static void check_core(const char *name)
{
	struct core c;
	uint8_t *first, *second;
	uint32_t checked = 0;

	if (!core_init(&c, name))
		return;
	first = reached(&c.g, false, 0);
	second = reached(&c.g, true, 0);
	for (uint32_t i = 1; i < c.g.ix.n; i += c.g.ix.n / MOST_BLOCKS + 1) {
		if (!first[i] && !second[i]) {
			CHECK_U64(c.r.bytes[i], 0);
			continue;
		}
		CHECK_U64(c.r.bytes[i], retained(&c, first, second, i));
		checked++;
	}
	printf("# %s: %u blocks\n", name, checked);
	CHECK(checked > 0);
	free(first);
	free(second);
	core_fini(&c);
}

TEST(blocks_of_real_cores)
{
	static const char *const names[] = {
		"plain", "threads", "static", "i386", "gcore", "damaged",
	};

	if (!getenv("FIXTURES"))
		SKIP("tests/run says where the cores are");
	for (size_t i = 0; i < countof(names); i++)
		check_core(names[i]);
}
