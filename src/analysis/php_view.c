/* SPDX-License-Identifier: MIT */
#include "analysis/php_view.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/dominate.h"
#include "analysis/php_arrays.h"
#include "analysis/php_find.h"
#include "analysis/php_frames.h"
#include "analysis/php_names.h"
#include "analysis/php_roots.h"
#include "analysis/php_strings.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "corewalk/zend.h"

enum {
	NAMING_STEPS = 1 << 24,	/* of each heap, for paths */
	FRAME_IS_CODE = 1 << 16,
	CALL_MAX_FILE = 250,
};

/* What is held, by node and by root. */
struct held {
	uint64_t *nodes, *roots;	/* owned; bytes */
	uint32_t *above;		/* owned: dominator by node, or 0 */
};

const char *php_told_name(unsigned told)
{
	static const char *const names[PHP_TOLD] = {
		[PHP_KIND_NONE] = "not referred to",
		[PHP_KIND_STRING] = "strings",
		[PHP_KIND_ARRAY] = "arrays",
		[PHP_KIND_OBJECT] = "objects",
		[PHP_KIND_REFERENCE] = "references",
		[PHP_KIND_RESOURCE] = "resources",
		[PHP_KIND_AST] = "constant expressions",
		[PHP_KIND_FUNCTION] = "op arrays",
		[PHP_KIND_CODE] = "opcodes and literals",
		[PHP_KIND_ARENA] = "compiler arena",
		[PHP_KIND_STACK] = "stack of calls",
		[PHP_KIND_ENGINE] = "engine",
		[PHP_KIND_OPAQUE] = "extensions",
		[PHP_TOLD_CLOSURE] = "closures",
		[PHP_TOLD_GENERATOR] = "generators",
	};

	return names[told];
}

const char *php_root_word(enum php_root_kind kind)
{
	static const char *const words[] = {
		[PHP_ROOT_GLOBAL] = "global",
		[PHP_ROOT_STATIC] = "static_property",
		[PHP_ROOT_STATIC_VAR] = "static_variable",
		[PHP_ROOT_LOCAL] = "local_variable",
		[PHP_ROOT_ARGUMENT] = "argument",
		[PHP_ROOT_THIS] = "this",
		[PHP_ROOT_TEMPORARY] = "expression",
		[PHP_ROOT_CONSTANT] = "constant",
		[PHP_ROOT_CLASS_CONSTANT] = "class_constant",
		[PHP_ROOT_HANDLER] = "handler",
		[PHP_ROOT_RESOURCE] = "resource",
		[PHP_ROOT_CODE] = "code",
		[PHP_ROOT_ENGINE] = "engine",
		[PHP_ROOT_NATIVE] = "native",
		[PHP_ROOT_GARBAGE] = "garbage",
	};

	return words[kind];
}

static bool is_zend(const struct heap *h, const struct arena *a)
{
	return !strcmp(h->allocators[a->allocator].name, "zend");
}

bool php_present(const struct heap *h)
{
	for (size_t i = 0; i < h->n_arenas; i++)
		if (is_zend(h, &h->arenas[i]))
			return true;
	return false;
}

/* ---- who holds what ---- */

static void held_init(struct held *held, struct php_graph *g)
{
	AUTO_FREE uint32_t *groups = mem_alloc((g->n_roots + 1) *
					       sizeof(*groups));
	AUTO_FREE uint64_t *bytes = NULL;
	struct dominate tree;
	struct dominate_graph dg = {
		.n = (uint32_t)g->n,
		.n_groups = (uint32_t)g->n_roots, .group_off = groups,
	};

	for (size_t i = 0; i < g->n_roots; i++) {
		groups[i] = g->roots[i].first;
		dg.n_first += g->roots[i].kind < PHP_FIRST_RANK;
	}
	groups[g->n_roots] = (uint32_t)g->n_root_dst;
	MEM_PUSH(g->off, g->n_off, g->cap_off) = (uint32_t)g->n_dst;
	/* No list is NULL, if nothing refers to anything. */
	g->dst = mem_grow(g->dst, g->n_dst, &g->cap_dst, sizeof(*g->dst));
	g->root_dst = mem_grow(g->root_dst, g->n_root_dst, &g->cap_root_dst,
			       sizeof(*g->root_dst));
	dg.off = g->off;
	dg.dst = g->dst;
	dg.group_dst = g->root_dst;
	dominate_init(&tree, &dg);
	held->nodes = mem_zalloc((g->n + 1) * sizeof(*held->nodes));
	held->above = mem_zalloc((g->n + 1) * sizeof(*held->above));
	held->roots = mem_zalloc((g->n_roots + 1) * sizeof(*held->roots));
	bytes = mem_zalloc(((size_t)tree.n + 1) * sizeof(*bytes));
	for (uint32_t i = tree.n; i-- > 1;) {
		const struct dominate_place *p = &tree.places[i];

		if (p->node & DOMINATE_GROUP) {
			held->roots[p->node & ~DOMINATE_GROUP] = bytes[i];
		} else {
			uint32_t up = tree.places[p->dominator].node;

			bytes[i] += g->nodes[p->node].bytes;
			held->nodes[p->node] = bytes[i];
			if (p->dominator && !(up & DOMINATE_GROUP))
				held->above[p->node] = up;
		}
		bytes[p->dominator] += bytes[i];
	}
	dominate_fini(&tree);
}

static void held_fini(struct held *held)
{
	free(held->nodes);
	free(held->above);
	free(held->roots);
}

/* ---- rows ---- */

/* By class entry: rows that are being added up. */
struct classes {
	struct php_class_row *rows;	/* owned */
	size_t n, cap;
	struct map by_entry;		/* rows + 1 */
};

static struct php_class_row *class_row(struct classes *c, vaddr entry)
{
	uint32_t *row = map_at(&c->by_entry, entry);

	if (!*row) {
		MEM_PUSH(c->rows, c->n, c->cap) =
			(struct php_class_row){ .entry = entry };
		*row = (uint32_t)c->n;
	}
	return &c->rows[*row - 1];
}

static vaddr class_of(struct php_graph *g, uint32_t node)
{
	uint64_t entry;

	if (g->nodes[node].kind != PHP_KIND_OBJECT ||
	    !space_u64(g->sp, g->nodes[node].addr + PHP_OBJECT_CLASS, &entry))
		return 0;
	return php_class_at(g, entry) ? entry : 0;
}

/* An object that one of its own class holds is in what that one holds. */
static bool held_by_same(struct php_graph *g, const struct held *held,
			 uint32_t node, vaddr class)
{
	uint32_t up = held->above[node];

	while (up && g->nodes[up].kind != PHP_KIND_OBJECT)
		up = held->above[up];
	return up && class_of(g, up) == class;
}

static void count_object(struct php_graph *g, const struct held *held,
			 uint32_t node, struct php_class_row *row)
{
	row->objects.blocks++;
	row->objects.bytes += g->nodes[node].bytes;
	if (!held_by_same(g, held, node, row->entry))
		row->holds += held->nodes[node];
}

/* Redacted or not, as the space says. */
static char *class_name(struct php_graph *g, vaddr class)
{
	struct str s;

	str_init(&s);
	if (!php_class_name(g->sp, class, &s))
		str_addc(&s, '?');
	return str_take(&s);
}

static char *root_name(struct php_graph *g, const struct php_root *root)
{
	struct str s;

	str_init(&s);
	php_root_text(g, root, &s);
	return str_take(&s);
}

/* What it is called in a redacted report; NULL: the same. */
static char *hidden_name(struct php_graph *g, const struct php_root *root,
			 vaddr class, const char *name)
{
	bool was = g->sp->nameless;
	char *ret;

	g->sp->nameless = true;
	ret = root ? root_name(g, root) : class_name(g, class);
	g->sp->nameless = was;
	if (strcmp(ret, name))
		return ret;
	free(ret);
	return NULL;
}

static int compare_classes(const void *a, const void *b)
{
	const struct php_class_row *x = a, *y = b;

	return ORDER(y->objects.bytes, x->objects.bytes) ?:
	       ORDER(y->objects.blocks, x->objects.blocks) ?:
	       strcmp(x->name, y->name);
}

static void finish_classes(struct php_graph *g, struct classes *c,
			   struct php_class_row **rows, size_t *n)
{
	for (size_t i = 0; i < c->n; i++) {
		struct php_class_row *row = &c->rows[i];

		row->name = class_name(g, row->entry);
		row->hidden = hidden_name(g, NULL, row->entry, row->name);
	}
	SORT(c->rows, c->n, compare_classes);
	*rows = c->rows;
	*n = c->n;
	map_fini(&c->by_entry);
}

static unsigned told_as(struct php_graph *g, uint32_t node, vaddr class)
{
	const struct php_class *c = class ? php_class_at(g, class) : NULL;

	if (c && c->kind == PHP_CLOSURE)
		return PHP_TOLD_CLOSURE;
	if (c && c->kind == PHP_GENERATOR)
		return PHP_TOLD_GENERATOR;
	return g->nodes[node].kind;
}

/* garbage: the first node of it, all behind are garbage too. */
static void count_nodes(struct php_request *r, struct php_graph *g,
			const struct held *held, uint32_t garbage)
{
	struct classes all = { 0 }, lost = { 0 };
	uint64_t claimed = 0, blocks = 0, all_blocks = 0;

	for (uint32_t i = 1; i < g->n; i++) {
		const struct php_node *node = &g->nodes[i];
		vaddr class = class_of(g, i);
		unsigned told = told_as(g, i, class);

		claimed += node->bytes;
		blocks += node->blocks;
		r->told[told].blocks += node->kind == PHP_KIND_FUNCTION ||
			node->blocks;
		r->told[told].bytes += node->bytes;
		if (i >= garbage) {
			r->lost.blocks++;
			r->lost.bytes += node->bytes;
		}
		if (!class || !node->blocks)
			continue;
		count_object(g, held, i, class_row(&all, class));
		if (i >= garbage) {
			r->lost_objects++;
			count_object(g, held, i, class_row(&lost, class));
		}
	}
	for (uint32_t i = 0; i < g->ix->n; i += 64)
		all_blocks += (unsigned)__builtin_popcountll(g->mine[i / 64]);
	r->told[PHP_KIND_NONE].bytes = r->walked - claimed;
	r->told[PHP_KIND_NONE].blocks = all_blocks - blocks;
	finish_classes(g, &all, &r->classes, &r->n_classes);
	finish_classes(g, &lost, &r->garbage, &r->n_garbage);
}

/* Of equal ones the one that was found first. */
static int compare_holders(const void *a, const void *b)
{
	const struct php_holder_row *x = a, *y = b;

	return ORDER(y->holds, x->holds) ?: ORDER(x->root, y->root);
}

/* Native words and garbage are many: each kind is one row. */
static void list_holders(struct php_request *r, struct php_graph *g,
			 const struct held *held)
{
	struct php_holder_row kinds[PHP_ROOT_GARBAGE + 1] = { { 0 } };

	for (size_t i = 0; i < g->n_roots; i++) {
		struct php_holder_row row = {
			.kind = g->roots[i].kind, .root = (uint32_t)i,
			.holds = held->roots[i],
		};

		if (row.kind == PHP_ROOT_RESOURCE ||
		    row.kind >= PHP_FIRST_RANK) {
			row.holds += kinds[row.kind].holds;
			kinds[row.kind] = row;
		} else if (row.holds) {
			MEM_PUSH(r->holders, r->n_holders, r->cap_holders) =
				row;
		}
	}
	for (size_t i = 0; i < countof(kinds); i++)
		if (kinds[i].holds)
			MEM_PUSH(r->holders, r->n_holders, r->cap_holders) =
				kinds[i];
	SORT(r->holders, r->n_holders, compare_holders);
	r->n_holders = min_u64(r->n_holders, PHP_ROWS_KEPT);
	for (size_t i = 0; i < r->n_holders; i++) {
		struct php_holder_row *row = &r->holders[i];
		const struct php_root *root = &g->roots[row->root];

		row->name = root_name(g, root);
		row->hidden = hidden_name(g, root, 0, row->name);
	}
}

/* ---- calls ---- */

/* "data:..." has code in its name. */
static bool is_told(const struct php_graph *g, const char *file)
{
	return !g->sp->nameless || *file == '/';
}

static void add_call(struct php_request *r, struct php_graph *g,
		     const struct php_frame *f, bool last)
{
	struct php_call call = { .line = f->line, .left = f->left };
	uint64_t file;
	struct str s;

	if (!f->function || f->pending || r->n_calls == PHP_CALLS_KEPT)
		return;
	str_init(&s);
	if (f->info & FRAME_IS_CODE)
		str_adds(&s, last ? "{main}" : "{include}");
	else
		php_function_text(g, f->function, &s);
	call.function = str_take(&s);
	str_init(&s);
	if (!f->internal &&
	    space_u64(g->sp, f->function + g->at->file, &file) &&
	    php_string_text(g, file, CALL_MAX_FILE, &s) &&
	    is_told(g, s.text))
		call.file = str_take(&s);
	str_fini(&s);
	MEM_PUSH(r->calls, r->n_calls, r->cap_calls) = call;
}

static void list_calls(struct php_request *r, struct php_graph *g,
		       const struct php_frames *f)
{
	for (size_t i = 0; i < f->n; i++) {
		add_call(r, g, &f->items[i], i + 1 == f->n_running ||
			 i + 1 == f->n);
		if (i + 1 == f->n_running)
			r->n_running = r->n_calls;
	}
}

/* ---- the collector ---- */

/*
 * struct _zend_gc_globals: the list, four flags, the first free entry, two
 * numbers of entries, threshold, room, roots, runs, collected.
 */
static void find_collector(struct php_request *r, struct php_graph *g,
			   const struct php_garbage_list *list)
{
	struct php_native native;
	vaddr addr;
	uint64_t word;

	php_native_init(&native, g->sp, g->heap);
	while (list->base && php_native_next(&native, &addr, &word)) {
		uint8_t p[40];

		if (word != list->base ||
		    space_read(g->sp, addr, p, sizeof(p)) != sizeof(p) ||
		    p[8] > 1 || p[9] > 1 || p[10] > 1 || p[11] > 1 ||
		    !load_u32(p + 24) || load_u32(p + 16) > load_u32(p + 24) ||
		    load_u32(p + 28) > load_u32(p + 16))
			continue;
		r->collector_found = true;
		r->collector_on = p[8];
		r->threshold = load_u32(p + 20);
		r->roots = load_u32(p + 28);
		r->runs = load_u32(p + 32);
		r->collected = load_u32(p + 36);
		return;
	}
}

/* ---- one heap ---- */

static void look_at_heap(struct php_request *r, struct php_graph *g,
			 const struct php_engine *engine,
			 const struct zend_heap *z, struct progress *p)
{
	struct php_garbage_list list;
	struct php_frames frames;
	struct held held;

	progress_phase(p, "following values of PHP");
	php_frames_init(&frames, g, engine->executor);
	php_roots(g, engine, z, &frames, &list);
	r->cut = g->cut;
	progress_phase(p, "finding who holds how much of PHP");
	held_init(&held, g);
	count_nodes(r, g, &held, list.first);
	g->steps = NAMING_STEPS;
	list_calls(r, g, &frames);
	list_holders(r, g, &held);
	php_arrays(r, g, held.nodes);
	php_strings(r, g);
	find_collector(r, g, &list);
	held_fini(&held);
	php_frames_fini(&frames);
}

static void add_heap(struct php_view *v, struct php_request *r,
		     struct space *sp, struct heap *h, const struct index *ix,
		     const struct zend_heap *z, struct progress *p)
{
	const struct arena *a = &h->arenas[r->arena];
	const struct php_layout *at = NULL;
	struct php_engine engine;
	struct php_graph g;

	r->used = z->size;
	space_u64(sp, z->addr + 24, &r->peak);
	r->real = z->real_size;
	r->real_peak = z->real_peak;
	r->limit = z->limit;
	r->walked = a->state[BLOCK_USED].bytes + a->mmapped.bytes;
	if (v->api && !v->known)
		return;
	php_find_engine(sp, h, r->arena, php_layout(v->api), &engine, &at);
	if (!at)
		return;
	r->found = true;
	php_graph_init(&g, sp, h, ix, r->arena, at);
	look_at_heap(r, &g, &engine, z, p);
	php_graph_fini(&g);
}

static int compare_requests(const void *a, const void *b)
{
	const struct php_request *x = a, *y = b;

	return ORDER(y->walked, x->walked) ?: ORDER(x->arena, y->arena);
}

void php_view_init(struct php_view *v, struct space *sp, struct heap *h,
		   const struct index *ix, struct progress *p)
{
	struct zend_heap *heaps;
	struct zend_php php;
	char near[200] = "";
	size_t n = zend_find(sp, &heaps, near, sizeof(near));

	*v = (struct php_view){ 0 };
	zend_find_php(sp, &php);
	v->api = php.api;
	v->release = zend_release(php.api);
	v->zts = php.zts;
	v->debug = php.debug;
	v->known = php_layout(php.api) != NULL;
	v->requests = mem_zalloc((h->n_arenas + 1) * sizeof(*v->requests));
	for (uint32_t i = 0; i < h->n_arenas; i++)
		for (size_t k = 0; is_zend(h, &h->arenas[i]) && k < n; k++)
			if (heaps[k].addr == h->arenas[i].addr) {
				struct php_request *r =
					&v->requests[v->n_requests++];

				r->arena = i;
				add_heap(v, r, sp, h, ix, &heaps[k], p);
				break;
			}
	SORT(v->requests, v->n_requests, compare_requests);
	free(heaps);
}

static void free_names(struct php_class_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(rows[i].name);
		free(rows[i].hidden);
	}
	free(rows);
}

void php_view_fini(struct php_view *v)
{
	for (size_t i = 0; i < v->n_requests; i++) {
		struct php_request *r = &v->requests[i];

		for (size_t k = 0; k < r->n_calls; k++) {
			free(r->calls[k].function);
			free(r->calls[k].file);
		}
		for (size_t k = 0; k < r->n_arrays; k++) {
			free(r->arrays[k].holder);
			free(r->arrays[k].path);
		}
		for (size_t k = 0; k < r->n_holders; k++) {
			free(r->holders[k].name);
			free(r->holders[k].hidden);
		}
		free_names(r->classes, r->n_classes);
		free_names(r->garbage, r->n_garbage);
		free(r->calls);
		free(r->arrays);
		free(r->holders);
		free(r->strings);
	}
	free(v->requests);
}
