/* SPDX-License-Identifier: MIT */
#include "analysis/reach.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/rings.h"
#include "base/mem.h"

/* A weak or spare edge met on the way, whose target was not marked. */
struct later {
	uint32_t from, to;	/* to as in graph.dst */
};

struct marker {
	struct reach *r;
	const struct graph *g;
	uint64_t *mark;		/* owned; bits by node */
	uint32_t *queue;	/* owned by reach */
	size_t head, tail;
	uint32_t put_off;	/* GRAPH_WEAK, SPARE: edges for later */
	bool clusters;		/* seeds are handed on */
	struct later *later;	/* owned */
	size_t n_later, cap_later;
};

/* How far ahead of use: found by measurement, anything near is as good. */
enum { AHEAD_OFF = 24, AHEAD_ROW = 12 };

const char *reach_grade_name(enum reach_grade grade)
{
	static const char *const names[REACH_GRADES] = {
		[REACH_LIVE] = "live",
		[REACH_CERTAIN] = "certain",
		[REACH_LIKELY] = "likely",
		[REACH_POSSIBLE] = "possible",
	};

	return names[grade];
}

const char *reach_kind_name(enum reach_kind kind)
{
	static const char *const names[REACH_KINDS] = {
		[REACH_DIRECT] = "direct",
		[REACH_INDIRECT] = "indirect",
		[REACH_CYCLE] = "cycle",
	};

	return names[kind];
}

static bool bit(const uint64_t *bits, uint32_t i)
{
	return bits[i >> 6] >> (i & 63) & 1;
}

static void set_bit(uint64_t *bits, uint32_t i)
{
	bits[i >> 6] |= UINT64_C(1) << (i & 63);
}

/* ---- marking ---- */

static void visit(struct marker *m, uint32_t from, uint32_t edge)
{
	uint32_t to = edge & GRAPH_NODE;

	if (bit(m->mark, to))
		return;
	if (edge & m->put_off) {
		MEM_PUSH(m->later, m->n_later, m->cap_later) =
			(struct later){ from, edge };
		return;
	}
	set_bit(m->mark, to);
	m->queue[m->tail++] = to;
	if (m->clusters)
		m->r->seed[to] = m->r->seed[from];
}

static void drain(struct marker *m)
{
	const struct graph *g = m->g;

	while (m->head < m->tail) {
		uint32_t node = m->queue[m->head];

		if (m->head + AHEAD_OFF < m->tail)
			__builtin_prefetch(
				&g->off[m->queue[m->head + AHEAD_OFF]]);
		if (m->head + AHEAD_ROW < m->tail)
			__builtin_prefetch(&g->dst[
				g->off[m->queue[m->head + AHEAD_ROW]]]);
		m->head++;
		for (uint32_t e = g->off[node]; e < g->off[node + 1]; e++)
			visit(m, node, g->dst[e]);
	}
	m->head = m->tail = 0;
}

/* A block that begins a cluster, held by a word of a node. */
static void begin_cluster(struct marker *m, uint32_t node, uint32_t to)
{
	if (bit(m->mark, to))
		return;
	m->r->seed[to] = to;
	m->r->holder[to] = node;
	set_bit(m->mark, to);
	m->queue[m->tail++] = to;
}

static void mark_roots(struct marker *m)
{
	const struct graph *g = m->g;

	for (size_t i = 0; i < g->roots.n; i++)
		if (g->roots.items[i].kind != ROOT_STALE)
			m->queue[m->tail++] = graph_root_node(g, i);
	drain(m);
}

/* What stale stack words point to is for later. */
static void mark_stale(struct marker *m)
{
	const struct graph *g = m->g;

	for (size_t i = 0; i < g->roots.n; i++) {
		uint32_t node = graph_root_node(g, i);

		if (g->roots.items[i].kind != ROOT_STALE)
			continue;
		for (uint32_t e = g->off[node]; e < g->off[node + 1]; e++)
			if (!bit(m->mark, g->dst[e] & GRAPH_NODE))
				MEM_PUSH(m->later, m->n_later, m->cap_later) =
					(struct later){ node, g->dst[e] };
	}
}

/* Follow the edges put off, but for those that are still to be. */
static void mark_later(struct marker *m)
{
	size_t n = m->n_later, kept = 0;

	for (size_t i = 0; i < n; i++) {
		struct later l = m->later[i];

		if (l.to & m->put_off)
			m->later[kept++] = l;
		else
			begin_cluster(m, l.from, l.to & GRAPH_NODE);
	}
	m->n_later = kept;
	drain(m);
}

static size_t bits_bytes(uint32_t n)
{
	return ((size_t)n / 64 + 1) * sizeof(uint64_t);
}

static uint64_t *copy_bits(const uint64_t *bits, uint32_t n)
{
	return memcpy(mem_alloc(bits_bytes(n)), bits, bits_bytes(n));
}

static void mark_all(struct reach *r)
{
	const struct graph *g = r->g;
	struct marker m = { .r = r, .g = g, .queue = r->queue };

	m.mark = mem_zalloc(bits_bytes(g->n_nodes));
	m.put_off = GRAPH_WEAK | GRAPH_SPARE;
	mark_roots(&m);
	r->live = copy_bits(m.mark, g->ix.n);

	m.clusters = true;
	m.put_off = GRAPH_WEAK;
	mark_later(&m);
	r->possible = copy_bits(m.mark, g->ix.n);

	m.put_off = 0;
	mark_stale(&m);
	mark_later(&m);
	r->likely = m.mark;
	free(m.later);
}

enum reach_grade reach_grade(const struct reach *r, uint32_t block)
{
	if (bit(r->live, block))
		return REACH_LIVE;
	if (bit(r->possible, block))
		return REACH_POSSIBLE;
	return bit(r->likely, block) ? REACH_LIKELY : REACH_CERTAIN;
}

enum reach_kind reach_kind(const struct reach *r, uint32_t block)
{
	if (bit(r->cycle, block))
		return REACH_CYCLE;
	return bit(r->indirect, block) ? REACH_INDIRECT : REACH_DIRECT;
}

/* ---- groups ---- */

struct grouper {
	struct reach *r;
	struct heap *h;
	uint32_t *slots;	/* owned; 1 + place in groups */
	size_t n_slots;
};

/* What tells groups apart. */
struct group_key {
	uint64_t size, first;
	enum reach_grade grade;
};

static uint64_t key_hash(const struct group_key *k)
{
	uint64_t x = k->size * UINT64_C(0x9e3779b97f4a7c15) + k->first;

	x = (x ^ x >> 31) * UINT64_C(0xd6e8feb86659fd93) + k->grade;
	return x ^ x >> 29;
}

static bool key_is(const struct reach_group *g, const struct group_key *k)
{
	return g->size == k->size && g->first == k->first &&
	       g->grade == k->grade;
}

static void grow_slots(struct grouper *gr)
{
	struct reach *r = gr->r;

	gr->n_slots = gr->n_slots ? 2 * gr->n_slots : 1024;
	free(gr->slots);
	gr->slots = mem_zalloc(gr->n_slots * sizeof(*gr->slots));
	for (size_t i = 0; i < r->n_groups; i++) {
		const struct reach_group *g = &r->groups[i];
		struct group_key key = { g->size, g->first, g->grade };
		size_t at = key_hash(&key) & (gr->n_slots - 1);

		while (gr->slots[at])
			at = (at + 1) & (gr->n_slots - 1);
		gr->slots[at] = (uint32_t)i + 1;
	}
}

static struct reach_group *group_of(struct grouper *gr,
				    const struct group_key *key)
{
	struct reach *r = gr->r;
	size_t at;

	if (2 * r->n_groups >= gr->n_slots)
		grow_slots(gr);
	at = key_hash(key) & (gr->n_slots - 1);
	for (; gr->slots[at]; at = (at + 1) & (gr->n_slots - 1))
		if (key_is(&r->groups[gr->slots[at] - 1], key))
			return &r->groups[gr->slots[at] - 1];
	MEM_PUSH(r->groups, r->n_groups, r->cap_groups) =
		(struct reach_group){
			.size = key->size, .first = key->first,
			.grade = key->grade,
		};
	gr->slots[at] = (uint32_t)r->n_groups;
	return &r->groups[r->n_groups - 1];
}

/* The size of the block at addr; a mapping of its own has more than we see. */
static uint64_t block_size(struct grouper *gr, vaddr addr)
{
	const struct index *ix = &gr->r->g->ix;
	vaddr next = index_next(ix, addr);
	struct block b;

	if (!index_own(ix, next - ix->base) && heap_find(gr->h, addr, &b))
		return b.size;
	return next - addr;
}

static uint64_t first_word(struct grouper *gr, vaddr addr)
{
	struct space *sp = gr->r->g->sp;
	uint64_t v;

	if (!space_word(sp, addr, &v) || v & (sp->word - 1) ||
	    !space_module(sp, v))
		return 0;
	return v;
}

static void tally_add(struct tally *t, uint64_t bytes)
{
	t->blocks++;
	t->bytes += bytes;
}

static void add_to_group(struct grouper *gr, uint32_t block, vaddr addr)
{
	struct reach *r = gr->r;
	enum reach_kind kind = reach_kind(r, block);
	struct group_key key = {
		.size = block_size(gr, addr), .first = first_word(gr, addr),
		.grade = reach_grade(r, block),
	};
	struct reach_group *g = group_of(gr, &key);

	tally_add(&g->total, key.size);
	tally_add(&g->kind[kind], key.size);
	tally_add(&r->grade[key.grade], key.size);
	if (key.grade != REACH_POSSIBLE)
		tally_add(&r->kind[kind], key.size);
	if (!g->example || (kind == REACH_DIRECT &&
			    g->example_kind != REACH_DIRECT)) {
		g->example = block;
		g->example_kind = kind;
		g->addr = addr;
	}
}

static int by_bytes(const void *a, const void *b)
{
	const struct reach_group *x = a, *y = b;
	bool px = x->grade == REACH_POSSIBLE, py = y->grade == REACH_POSSIBLE;

	if (px != py)
		return px ? 1 : -1;
	if (x->total.bytes != y->total.bytes)
		return x->total.bytes > y->total.bytes ? -1 : 1;
	return (x->addr > y->addr) - (x->addr < y->addr);
}

static void make_groups(struct reach *r, struct heap *h)
{
	const struct index *ix = &r->g->ix;
	struct grouper gr = { .r = r, .h = h };
	size_t cursor = 0;

	for (uint32_t w = 0; w <= ix->n / 64; w++) {
		uint64_t lost = ix->used[w] & ~r->live[w];

		for (; lost; lost &= lost - 1) {
			uint32_t block = w * 64 +
				(uint32_t)__builtin_ctzll(lost);

			add_to_group(&gr, block,
				     index_addr_next(ix, &cursor, block));
		}
	}
	if (r->n_groups)
		qsort(r->groups, r->n_groups, sizeof(*r->groups), by_bytes);
	free(gr.slots);
}

/* ---- outside ---- */

void reach_init(struct reach *r, const struct graph *g, struct heap *h,
		struct progress *progress)
{
	struct rings rings;

	progress_phase(progress, "marking what can be reached");
	*r = (struct reach){ .g = g };
	r->node_bytes = ((size_t)g->n_nodes + 1) * sizeof(uint32_t);
	r->queue = mem_map_huge(r->node_bytes);
	r->seed = mem_map(r->node_bytes);
	r->holder = mem_map(r->node_bytes);
	mark_all(r);
	mem_unmap(r->queue, r->node_bytes);
	r->queue = NULL;
	rings_find(&rings, g, r->live, r->possible);
	r->indirect = rings.indirect;
	r->cycle = rings.cycle;
	r->n_cycles = rings.n_cycles;
	make_groups(r, h);
}

void reach_fini(struct reach *r)
{
	free(r->live);
	free(r->possible);
	free(r->likely);
	free(r->indirect);
	free(r->cycle);
	free(r->groups);
	mem_unmap(r->seed, r->node_bytes);
	mem_unmap(r->holder, r->node_bytes);
	*r = (struct reach){ 0 };
}

bool reach_held_by(const struct reach *r, uint32_t block,
		   struct reach_hold *ret)
{
	enum reach_grade grade = reach_grade(r, block);

	if (grade != REACH_LIKELY && grade != REACH_POSSIBLE)
		return false;
	ret->block = r->seed[block];
	ret->node = r->holder[ret->block];
	return graph_word(r->g, ret->node, ret->block, &ret->word);
}

struct tally reach_lost(const struct reach *r)
{
	struct tally sum = r->grade[REACH_CERTAIN];

	sum.blocks += r->grade[REACH_LIKELY].blocks;
	sum.bytes += r->grade[REACH_LIKELY].bytes;
	return sum;
}
