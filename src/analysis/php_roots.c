/* SPDX-License-Identifier: MIT */
#include "analysis/php_roots.h"

enum {
	MAX_STATICS = 1 << 16,
	MAX_CHAIN = 1 << 20,		/* pages of stacks and arenas */
	LIST_INDEX = 0xfffff,		/* of a value in the list of roots */
	LIST_SHIFT = 10,
	CANDIDATES = 64,
};

static uint64_t get(struct php_graph *g, vaddr addr)
{
	uint64_t ret = 0;

	return space_u64(g->sp, addr, &ret) ? ret : 0;
}

static bool is_user(struct php_graph *g, vaddr addr)
{
	uint8_t kind = 0;

	return space_u8(g->sp, addr, &kind) && kind == PHP_USER;
}

/* A table of the engine's: it has the elements, roots have what is in it. */
static bool open_table(struct php_graph *g, struct php_table *t, vaddr table)
{
	uint32_t node = php_reserve(g, table, PHP_KIND_ENGINE);

	if (!node || !php_table_open(t, g, table))
		return false;
	php_claim(g, node, t->data);
	return true;
}

/* ---- what is the engine's own ---- */

/* Pages that are linked at an offset. */
static void reserve_chain(struct php_graph *g, vaddr page, unsigned link,
			  enum php_kind kind)
{
	for (unsigned i = 0; page && i < MAX_CHAIN && php_block(g, page) &&
	     php_pay(g, 1); i++) {
		if (php_node_at(g, page))
			return;
		php_reserve(g, page, kind);
		page = get(g, page + link);
	}
}

static void reserve(struct php_graph *g, const struct php_engine *e,
		    const struct zend_heap *z)
{
	reserve_chain(g, get(g, e->executor + g->at->stack + 16),
		      PHP_STACK_PREV, PHP_KIND_STACK);
	if (e->compiler)
		reserve_chain(g, get(g, e->compiler + g->at->arena), 16,
			      PHP_KIND_ARENA);
	php_reserve(g, get(g, e->executor + g->at->objects), PHP_KIND_ENGINE);
	reserve_chain(g, get(g, z->addr + z->at.main_chunk - 8), 16,
		      PHP_KIND_ENGINE);
}

/* ---- variables ---- */

static void add_globals(struct php_graph *g, vaddr symbols)
{
	struct php_table t;
	struct php_element e;

	if (!open_table(g, &t, symbols))
		return;
	while (php_table_next(&t, &e)) {
		php_root(g, PHP_ROOT_GLOBAL, 0, e.key);
		php_follow_zval(g, e.value, e.type);
	}
}

/* Static variables: those of a function that was not called are constants. */
static void add_statics_of(struct php_graph *g, vaddr function)
{
	vaddr table;
	struct php_table t;
	struct php_element e;

	if (!php_pay(g, 1) || !is_user(g, function))
		return;
	table = php_map(g, get(g, function + g->at->statics - 8));
	if (!table || php_node_at(g, table) || !open_table(g, &t, table))
		return;
	while (php_table_next(&t, &e)) {
		php_root(g, PHP_ROOT_STATIC_VAR, function, e.key);
		php_follow_zval(g, e.value, e.type);
	}
}

static void add_functions(struct php_graph *g, vaddr table)
{
	struct php_table t;
	struct php_element e;

	if (!php_table_open(&t, g, table))
		return;
	while (php_table_next(&t, &e))
		add_statics_of(g, e.value);
}

/* Inherited ones are of the class that declares them. */
static void add_properties(struct php_graph *g, vaddr class)
{
	vaddr props = class + g->at->props;
	vaddr values = php_map(g, get(g, props + PHP_STATIC_MAP));
	uint32_t n = 0, place, flags;
	struct php_table t;
	struct php_element e;

	if (!values || !space_u32(g->sp, class + g->at->n_props + 4, &n) ||
	    !n || n > MAX_STATICS ||
	    !php_table_open(&t, g, props + PHP_PROPERTIES))
		return;
	php_reserve(g, values, PHP_KIND_ENGINE);
	while (php_table_next(&t, &e)) {
		if (!space_u32(g->sp, e.value, &place) || place >= n ||
		    !space_u32(g->sp, e.value + PHP_PROPERTY_FLAGS, &flags) ||
		    !(flags & PHP_STATIC) ||
		    get(g, e.value + g->at->property_class) != class)
			continue;
		php_root(g, PHP_ROOT_STATIC, class, e.key);
		php_follow_zvals(g, values + (uint64_t)place * PHP_ZVAL, 1);
	}
}

static void add_class_constants(struct php_graph *g, vaddr class)
{
	struct php_table t;
	struct php_element e;

	if (!php_table_open(&t, g, class + g->at->props + PHP_CONSTANTS))
		return;
	while (php_table_next(&t, &e)) {
		if (get(g, e.value + g->at->constant_class) != class)
			continue;
		php_root(g, PHP_ROOT_CLASS_CONSTANT, class, e.key);
		php_follow_zvals(g, e.value, 1);
	}
}

static void add_classes(struct php_graph *g, vaddr table)
{
	struct php_table t;
	struct php_element e;

	if (!php_table_open(&t, g, table))
		return;
	while (php_table_next(&t, &e)) {
		if (!is_user(g, e.value))
			continue;
		add_properties(g, e.value);
		add_class_constants(g, e.value);
		add_functions(g, e.value + g->at->props + PHP_METHODS);
	}
}

static void add_constants(struct php_graph *g, vaddr table)
{
	struct php_table t;
	struct php_element e;

	if (!php_table_open(&t, g, table))
		return;
	while (php_table_next(&t, &e)) {
		php_root(g, PHP_ROOT_CONSTANT, 0, e.key);
		php_follow_zvals(g, e.value, 1);
	}
}

static void add_resources(struct php_graph *g, vaddr table)
{
	struct php_table t;
	struct php_element e;

	if (!open_table(g, &t, table))
		return;
	while (php_table_next(&t, &e)) {
		php_root(g, PHP_ROOT_RESOURCE, 0, 0);
		php_follow_zval(g, e.value, e.type);
	}
}

static void add_variables(struct php_graph *g, const struct php_engine *e,
			  const struct php_frames *frames)
{
	vaddr eg = e->executor, tables = eg + g->at->functions;

	add_globals(g, eg + PHP_EG_SYMBOLS);
	add_classes(g, get(g, tables + 8));
	add_functions(g, get(g, tables));
	php_frames_roots(frames, g, eg);
	php_root(g, PHP_ROOT_HANDLER, 0, 0);
	php_follow_zvals(g, eg + g->at->handlers, 2);
	add_constants(g, get(g, tables + 16));
	add_resources(g, eg + g->at->resources);
	php_drain(g);
}

/* ---- code ---- */

static void follow_functions(struct php_graph *g, vaddr table)
{
	struct php_table t;
	struct php_element e;

	if (!php_table_open(&t, g, table))
		return;
	while (php_table_next(&t, &e))
		if (is_user(g, e.value))
			php_follow(g, e.value, PHP_KIND_FUNCTION);
}

/* Classes and functions lie in the arena, one behind the other. */
static void scan_arena(struct php_graph *g, vaddr page)
{
	uint64_t words[128], used = get(g, page);
	vaddr end, at = page;

	php_follow(g, page, PHP_KIND_ARENA);
	end = php_block_start(g, page) + php_block_bytes(g, page);
	for (end = min_u64(used, end); at < end; at += sizeof(words)) {
		uint64_t n = min_u64(end - at, sizeof(words)) / 8;

		if (!php_pay(g, n) ||
		    space_read(g->sp, at, words, n * 8) != n * 8)
			return;
		for (uint64_t i = 0; i < n; i++)
			php_follow_word(g, words[i]);
	}
}

static void add_interned(struct php_graph *g, vaddr table)
{
	struct php_table t;
	struct php_element e;

	if (!open_table(g, &t, table))
		return;
	while (php_table_next(&t, &e))
		php_follow(g, e.key, PHP_KIND_STRING);
}

static void add_code(struct php_graph *g, const struct php_engine *e)
{
	vaddr tables = e->executor + g->at->functions, page;
	struct php_table t;
	struct php_element el;

	php_root(g, PHP_ROOT_CODE, 0, 0);
	follow_functions(g, get(g, tables));
	if (php_table_open(&t, g, get(g, tables + 8)))
		while (php_table_next(&t, &el))
			if (is_user(g, el.value))
				follow_functions(g, el.value + g->at->props +
						 PHP_METHODS);
	php_drain(g);
	if (e->compiler) {
		page = get(g, e->compiler + g->at->arena);
		g->code = true;
		for (unsigned i = 0; i < MAX_CHAIN && page &&
		     php_block(g, page); i++) {
			scan_arena(g, page);
			page = get(g, page + 16);
		}
		add_interned(g, e->compiler + g->at->arena + 8);
		g->code = false;
	}
	php_drain(g);
	php_root(g, PHP_ROOT_ENGINE, 0, 0);
	for (size_t i = 1, n = g->n; i < n; i++)
		if (!g->nodes[i].parent)
			php_follow(g, g->nodes[i].addr, g->nodes[i].kind);
}

/* ---- the list of possible roots of garbage ---- */

struct vote {
	vaddr base;
	uint32_t n;
};

/* A vote for where the list begins; the one with fewest gives way. */
static void add_vote(struct vote *votes, vaddr base)
{
	struct vote *least = votes;

	for (unsigned i = 0; i < CANDIDATES; i++) {
		if (votes[i].base == base) {
			votes[i].n++;
			return;
		}
		if (votes[i].n < least->n)
			least = &votes[i];
	}
	if (least->n)
		least->n--;
	else
		*least = (struct vote){ base, 1 };
}

/*
 * A value in the list knows its index: each word that leads to one says where
 * the list would begin.  Its low bits are flags.
 */
static void find_list(struct php_graph *g, struct php_garbage_list *ret)
{
	struct vote votes[CANDIDATES] = { 0 }, best = { 0 };
	struct php_native native;
	vaddr addr;
	uint64_t word;
	uint32_t type, max = 0;

	php_native_init(&native, g->sp, g->heap);
	while (php_native_next(&native, &addr, &word)) {
		word &= ~UINT64_C(7);
		if (!php_block(g, word) || !space_u32(g->sp, word + 4, &type) ||
		    !(type >> LIST_SHIFT & LIST_INDEX) ||
		    !(type & PHP_TYPE_MASK))
			continue;
		type = type >> LIST_SHIFT & LIST_INDEX;
		add_vote(votes, addr - 8 * (uint64_t)type);
		if (type > max)
			max = type;
	}
	for (unsigned i = 0; i < CANDIDATES; i++)
		if (votes[i].n > best.n)
			best = votes[i];
	*ret = (struct php_garbage_list){
		.base = best.base, .n = best.base ? max + 1 : 0,
	};
}

/* ---- the rest ---- */

/* Below its stack pointer a thread has what it once had. */
static bool is_stale(struct php_graph *g, vaddr addr)
{
	const struct seg *seg = space_seg(g->sp, addr);
	const struct thread *t;

	if (!seg)
		return true;
	t = space_thread_on(g->sp, seg->start, seg->end);
	if (t && addr < t->sp - 128)
		return true;
	/* In a block of malloc's that was freed? */
	return heap_extent_at(g->heap, addr) && !index_find(g->ix, addr);
}

static void add_native(struct php_graph *g, const struct php_garbage_list *l)
{
	struct php_native native;
	vaddr addr;
	uint64_t word;

	php_native_init(&native, g->sp, g->heap);
	while (!g->cut && php_native_next(&native, &addr, &word)) {
		uint32_t number = php_block(g, word);

		if (!number || g->owner[number] || is_stale(g, addr) ||
		    (l->base && addr - l->base < 8 * (uint64_t)l->n))
			continue;
		php_root(g, PHP_ROOT_NATIVE, addr, 0);
		php_follow_word(g, word);
	}
	php_drain(g);
}

static void add_garbage(struct php_graph *g, vaddr store)
{
	vaddr buckets = get(g, store);
	uint32_t n = 0;

	if (!space_u32(g->sp, store + 8, &n))
		return;
	for (uint32_t i = 0; i < n && php_pay(g, 1); i++) {
		uint64_t object;

		if (!space_u64(g->sp, buckets + 8 * (uint64_t)i, &object))
			return;
		if (!object || object & 1 || php_node_at(g, object))
			continue;
		php_root(g, PHP_ROOT_GARBAGE, 0, 0);
		php_follow(g, object, PHP_KIND_OBJECT);
		php_drain(g);
	}
}

void php_roots(struct php_graph *g, const struct php_engine *engine,
	       const struct zend_heap *z, const struct php_frames *frames,
	       struct php_garbage_list *ret)
{
	if (engine->compiler)
		g->map_base = get(g, engine->compiler + g->at->map_base);
	reserve(g, engine, z);
	add_variables(g, engine, frames);
	add_code(g, engine);
	find_list(g, ret);
	add_native(g, ret);
	ret->first = (uint32_t)g->n;
	add_garbage(g, engine->executor + g->at->objects);
}
