/* SPDX-License-Identifier: MIT */
#include "analysis/reach.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/kin.h"
#include "analysis/mark.h"
#include "analysis/rings.h"
#include "base/mem.h"
#include "base/sort.h"

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

/* ---- marking ---- */

static void mark_roots(struct mark *m)
{
	const struct graph *g = m->g;
	uint32_t *nodes = NULL;
	size_t n = 0, cap = 0;

	for (size_t i = 0; i < g->roots.n; i++)
		if (g->roots.items[i].kind != ROOT_STALE)
			MEM_PUSH(nodes, n, cap) = graph_root_node(g, i);
	mark_from(m, nodes, n);
	free(nodes);
}

/* What stale stack words point to is for later. */
static void mark_stale(struct mark *m)
{
	const struct graph *g = m->g;

	for (size_t i = 0; i < g->roots.n; i++) {
		uint32_t node = graph_root_node(g, i);

		if (g->roots.items[i].kind != ROOT_STALE)
			continue;
		for (uint32_t e = g->off[node]; e < g->off[node + 1]; e++)
			MEM_PUSH(m->later, m->n_later, m->cap_later) =
				(struct mark_edge){ node, g->dst[e] };
	}
}

/*
 * Follow the edges put off, but for those that are still to be.  Each begins a
 * cluster, held by a word of a node, unless an earlier one led there.
 */
static void mark_later(struct reach *r, struct mark *m)
{
	uint32_t *nodes = NULL;
	size_t n = 0, cap = 0, kept = 0;

	for (size_t i = 0; i < m->n_later; i++) {
		uint32_t to = m->later[i].to & GRAPH_NODE;

		if (mark_is(m, to) || r->seed[to] == to)
			continue;
		if (m->later[i].to & m->put_off) {
			m->later[kept++] = m->later[i];
			continue;
		}
		r->seed[to] = to;
		r->holder[to] = m->later[i].from;
		MEM_PUSH(nodes, n, cap) = to;
	}
	m->n_later = kept;
	mark_from(m, nodes, n);
	free(nodes);
}

static void mark_all(struct reach *r)
{
	struct mark m;

	mark_init(&m, r->g);
	m.put_off = GRAPH_WEAK | GRAPH_SPARE;
	mark_roots(&m);
	r->live = mark_bits(&m);

	m.seed = r->seed;
	m.put_off = GRAPH_WEAK;
	mark_later(r, &m);
	r->possible = mark_bits(&m);

	m.put_off = 0;
	mark_stale(&m);
	mark_later(r, &m);
	r->likely = mark_bits(&m);
	mark_fini(&m);
}

enum reach_grade reach_grade(const struct reach *r, uint32_t block)
{
	if (bit(r->live, block))
		return REACH_LIVE;
	if (bit(r->possible, block))
		return REACH_POSSIBLE;
	return bit(r->likely, block) || roots_missing(&r->g->roots)
		? REACH_LIKELY : REACH_CERTAIN;
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
	const struct types *types;	/* or NULL */
	uint32_t *slots;	/* owned; 1 + place in groups */
	size_t n_slots;
};

/* What tells groups apart. */
struct group_key {
	uint64_t size, first;
	enum reach_grade grade;
	uint32_t type;
};

static uint64_t key_hash(const struct group_key *k)
{
	uint64_t x = (k->size + k->type * UINT64_C(0xff51afd7ed558ccd)) *
		UINT64_C(0x9e3779b97f4a7c15) + k->first;

	x = (x ^ x >> 31) * UINT64_C(0xd6e8feb86659fd93) + k->grade;
	return x ^ x >> 29;
}

static bool key_is(const struct reach_group *g, const struct group_key *k)
{
	return (k->type || g->size == k->size) && g->first == k->first &&
	       g->grade == k->grade && g->type == k->type;
}

static void grow_slots(struct grouper *gr)
{
	struct reach *r = gr->r;

	gr->n_slots = gr->n_slots ? 2 * gr->n_slots : 1024;
	free(gr->slots);
	gr->slots = mem_zalloc(gr->n_slots * sizeof(*gr->slots));
	for (size_t i = 0; i < r->n_groups; i++) {
		const struct reach_group *g = &r->groups[i];
		struct group_key key = {
			g->type ? 0 : g->size, g->first, g->grade, g->type,
		};
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
			.grade = key->grade, .type = key->type,
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

/* The type that a group is of; 0: its name says too little. */
static uint32_t type_of(const struct grouper *gr, uint32_t block)
{
	uint32_t type = gr->types ? types_of(gr->types, block) : 0;

	return type && gr->types->items[type].known > TYPE_TEXT ? type : 0;
}

static void add_to_group(struct grouper *gr, uint32_t block, vaddr addr)
{
	struct reach *r = gr->r;
	enum reach_kind kind = reach_kind(r, block);
	uint64_t size = block_size(gr, addr);
	struct group_key key = {
		.type = type_of(gr, block), .grade = reach_grade(r, block),
	};
	struct reach_group *g;

	if (!key.type) {
		key.size = size;
		key.first = first_word(gr, addr);
	}
	g = group_of(gr, &key);
	g->size = !g->total.blocks || g->size == size ? size : 0;
	tally_add(&g->total, size);
	tally_add(&g->kind[kind], size);
	tally_add(&r->grade[key.grade], size);
	if (key.grade != REACH_POSSIBLE)
		tally_add(&r->kind[kind], size);
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

	return ORDER(px, py) ?: ORDER(y->total.bytes, x->total.bytes) ?:
	       ORDER(x->addr, y->addr);
}

/* What blocks begin with is on its way before the first is looked at. */
static void add_lost(struct grouper *gr, uint32_t first, uint64_t lost,
		     size_t *cursor)
{
	struct space *sp = gr->r->g->sp;
	vaddr addr[64];
	size_t n = 0;

	for (uint64_t bits = lost; bits; bits &= bits - 1) {
		uint32_t block = first + (uint32_t)__builtin_ctzll(bits);
		const uint8_t *bytes;

		addr[n] = index_addr_next(&gr->r->g->ix, cursor, block);
		bytes = space_view(sp, addr[n++], sp->word);
		if (bytes)
			__builtin_prefetch(bytes);
	}
	n = 0;
	for (uint64_t bits = lost; bits; bits &= bits - 1)
		add_to_group(gr, first + (uint32_t)__builtin_ctzll(bits),
			     addr[n++]);
}

static void make_groups(struct reach *r, struct heap *h,
			const struct types *types)
{
	const struct index *ix = &r->g->ix;
	struct grouper gr = { .r = r, .h = h, .types = types };
	size_t cursor = 0;

	for (uint32_t w = 0; w <= ix->n / 64; w++)
		add_lost(&gr, w * 64, ix->used[w] & ~r->live[w], &cursor);
	SORT(r->groups, r->n_groups, by_bytes);
	free(gr.slots);
}

/* ---- outside ---- */

void reach_group_types(struct reach *r, struct heap *h,
		       const struct types *types)
{
	r->n_groups = 0;
	memset(r->grade, 0, sizeof(r->grade));
	memset(r->kind, 0, sizeof(r->kind));
	make_groups(r, h, types);
}

/* Of blocks that are not asked about nothing is known: they are not lost. */
static void add_strangers(struct reach *r)
{
	for (uint32_t w = 0; w <= r->g->ix.n / 64; w++)
		r->live[w] |= ~r->g->kin->bits[w];
}

void reach_init(struct reach *r, const struct graph *g, struct heap *h,
		struct progress *progress)
{
	struct rings rings;

	progress_phase(progress, "marking what can be reached");
	*r = (struct reach){ .g = g };
	r->node_bytes = ((size_t)g->n_nodes + 1) * sizeof(uint32_t);
	r->seed = mem_map(r->node_bytes);
	r->holder = mem_map(r->node_bytes);
	mark_all(r);
	if (g->kin)
		add_strangers(r);
	rings_find(&rings, g, r->live, r->possible);
	r->indirect = rings.indirect;
	r->cycle = rings.cycle;
	r->n_cycles = rings.n_cycles;
	if (!g->kin)
		make_groups(r, h, NULL);
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

	if ((grade != REACH_LIKELY && grade != REACH_POSSIBLE) ||
	    !r->seed[block])
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
