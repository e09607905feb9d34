/* SPDX-License-Identifier: MIT */
#include "analysis/census_name.h"

#include <inttypes.h>
#include <stdlib.h>

#include "analysis/census_scan.h"
#include "analysis/python.h"
#include "analysis/vtable.h"
#include "base/mem.h"
#include "base/sort.h"

enum {
	/* Look-alike blocks with less than this part of all share a row. */
	SMALL_PART = 2000,
};

struct namer {
	struct types *types;
	const struct census_input *in;
	struct scan_keys keys;
	uint32_t *type_of;	/* owned: by key; 0 not yet */
	uint64_t bytes;		/* of all blocks */
};

/* ---- addresses ---- */

/* Left from when the block was free: the allocator's own list heads. */
static bool is_stale(const struct heap *h, vaddr word)
{
	for (size_t i = 0; i < h->n_own; i++)
		if (word >= h->own[i].start && word < h->own[i].end)
			return true;
	return false;
}

static uint32_t type_of_word(const struct namer *n, vaddr word)
{
	enum type_known known;
	struct str name;
	uint32_t ret = 0;

	if (is_stale(n->in->heap, word))
		return 0;
	str_init(&name);
	known = vtable_class(n->in->sp, n->in->symbols, word, &name);
	if (known == TYPE_UNKNOWN &&
	    vtable_symbol(n->in->symbols, word, &name))
		known = TYPE_SYMBOL;
	if (known != TYPE_UNKNOWN)
		ret = types_add(n->types, name.text, known, 0, word);
	str_fini(&name);
	return ret;
}

static uint32_t type_of_python(const struct namer *n, vaddr type)
{
	struct str name;
	uint32_t ret = 0;

	str_init(&name);
	if (python_type(n->in->sp, type, &name))
		ret = types_add(n->types, name.text, TYPE_RUNTIME, 0, type);
	str_fini(&name);
	return ret;
}

/* Keys by the address that may name them. */
struct by_addr {
	vaddr addr;
	uint32_t key;
};

static int by_addr(const void *a, const void *b)
{
	const struct by_addr *x = a, *y = b;

	return ORDER(x->addr, y->addr) ?: ORDER(x->key, y->key);
}

/* Each address is looked up once. */
static void name_by_address(struct namer *n)
{
	struct by_addr *list = mem_alloc(n->keys.n * sizeof(*list));
	size_t count = 0;
	uint32_t type = 0;

	for (uint32_t i = 1; i < n->keys.n; i++) {
		const struct scan_key *k = &n->keys.items[i];

		if (k->first || k->type)
			list[count++] = (struct by_addr){
				k->first ? k->first : k->type, i,
			};
	}
	SORT(list, count, by_addr);
	for (size_t i = 0; i < count; i++) {
		const struct scan_key *k = &n->keys.items[list[i].key];

		if (!i || list[i].addr != list[i - 1].addr ||
		    !k->first != !n->keys.items[list[i - 1].key].first)
			type = k->first ? type_of_word(n, k->first)
					: type_of_python(n, k->type);
		n->type_of[list[i].key] = type;
	}
	free(list);
}

/* ---- contents ---- */

static void name_by_content(struct namer *n)
{
	for (uint32_t i = 1; i < n->keys.n; i++) {
		enum content content = n->keys.items[i].content;

		if (content != CONTENT_NONE)
			n->type_of[i] = types_add(n->types,
				content_name(content),
				content_is_text(content) ? TYPE_TEXT
							 : TYPE_CONTENT,
				0, 0);
	}
}

/* ---- shapes ---- */

/* Those that are rare share a name by size: up to 64 bytes, up to 128, ... */
static uint32_t rare_type(const struct namer *n, uint32_t size)
{
	struct str name;
	unsigned log;
	uint32_t ret;

	if (size & SHAPE_LARGE)
		log = (size & 63) + 1;
	else
		log = size <= 64 ? 6 : (unsigned)(64 -
				__builtin_clzll((uint64_t)size - 1));
	str_init(&name);
	if (log < 10)
		str_printf(&name, "various, up to %u bytes", 1u << log);
	else if (log < 20)
		str_printf(&name, "various, up to %uK", 1u << (log - 10));
	else
		str_printf(&name, "various, up to %" PRIu64 "M",
			   UINT64_C(1) << (log - 20));
	ret = types_add(n->types, name.text, TYPE_SHAPE, 0, 0);
	str_fini(&name);
	return ret;
}

static uint32_t cluster_type(const struct namer *n, const struct shape *shape,
			     uint64_t bytes)
{
	struct str name;
	uint32_t ret;

	if (bytes < n->bytes / SMALL_PART)
		return rare_type(n, shape->size);
	str_init(&name);
	shape_name(shape, &name);
	ret = types_add(n->types, name.text, TYPE_SHAPE, 0, 0);
	str_fini(&name);
	return ret;
}

static size_t unnamed(const struct namer *n, struct shape_group *groups)
{
	size_t count = 0;

	for (uint32_t i = 1; i < n->keys.n; i++)
		if (!n->type_of[i])
			groups[count++] = (struct shape_group){
				n->keys.items[i].shape,
				n->keys.items[i].blocks, i, 0,
			};
	return count;
}

static void name_by_shape(struct namer *n)
{
	struct shape_group *groups = mem_alloc(n->keys.n * sizeof(*groups));
	size_t count = unnamed(n, groups), n_clusters;
	struct shape *clusters = shape_merge(groups, count, &n_clusters);
	uint64_t *bytes = mem_zalloc(n_clusters * sizeof(*bytes));
	uint32_t *types = mem_alloc(n_clusters * sizeof(*types));

	for (size_t i = 0; i < count; i++)
		bytes[groups[i].cluster] += n->keys.items[groups[i].key].bytes;
	for (size_t i = 0; i < n_clusters; i++)
		types[i] = cluster_type(n, &clusters[i], bytes[i]);
	for (size_t i = 0; i < count; i++)
		n->type_of[groups[i].key] = types[groups[i].cluster];
	free(types);
	free(bytes);
	free(clusters);
	free(groups);
}

void census_name(struct types *t, const struct census_input *in)
{
	struct namer n = { .types = t, .in = in };

	scan_blocks(&n.keys, t->of, in);
	for (uint32_t i = 0; i < n.keys.n; i++)
		n.bytes += n.keys.items[i].bytes;
	n.type_of = mem_zalloc(n.keys.n * sizeof(*n.type_of));
	name_by_address(&n);
	name_by_content(&n);
	name_by_shape(&n);
	for (uint32_t i = 0; i < t->n_blocks; i++)
		if (t->of[i])
			t->of[i] = n.type_of[t->of[i]];
	free(n.type_of);
	scan_keys_fini(&n.keys);
}
