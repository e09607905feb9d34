/* SPDX-License-Identifier: MIT */
#include "analysis/php.h"

#include <string.h>

#include "analysis/php_layout.h"
#include "analysis/php_shape.h"
#include "base/mem.h"
#include "base/str.h"

enum { CACHE = 1 << 12 };

struct class {
	vaddr entry;
	uint32_t type;		/* 0: it is no class */
};

struct php {
	struct types *types;
	const struct census_input *in;
	struct space *sp;
	uint32_t string, array, elements, reference;
	struct class classes[CACHE];	/* by hash; the last one stays */
};

static uint32_t type_of_class(struct php *php, vaddr entry)
{
	struct class *c = &php->classes[(entry >> 4 ^ entry >> 16) %
					CACHE];
	struct str name;

	if (c->entry == entry)
		return c->type;
	*c = (struct class){ .entry = entry };
	str_init(&name);
	str_adds(&name, "php object ");
	if (php_class_name(php->sp, entry, &name)) {
		c->type = types_add(php->types, name.text, TYPE_RUNTIME, 0,
				    entry);
		if (!php->sp->nameless && php_class_is_made(php->sp, entry))
			types_hide(php->types, c->type, "php object ");
	}
	str_fini(&name);
	return c->type;
}

/* ---- blocks ---- */

/* The elements lie behind a hash part; arData points between them. */
static void name_elements(struct php *php, const uint8_t *p)
{
	const struct index *ix = php->in->ix;
	uint64_t hash = 4 * (uint64_t)(0 - load_u32(p + PHP_ARRAY_MASK));
	vaddr data = load_u64(p + PHP_ARRAY_DATA) - hash;
	uint32_t number;

	if (load_u32(p + PHP_ARRAY_FLAGS) & PHP_ARRAY_EMPTY)
		return;
	number = index_find(ix, data);
	if (number && index_starts(ix, data - ix->base))
		types_set(php->types, number, php->elements);
}

static uint32_t type_of_block(struct php *php, const uint8_t *p,
			      uint64_t size)
{
	uint32_t off = 0;

	switch (php_shape(php->sp, p, size)) {
	case PHP_STRING:
		return php->string;
	case PHP_ARRAY:
		name_elements(php, p);
		return php->array;
	case PHP_REFERENCE:
		return php->reference;
	case PHP_OBJECT:
		break;
	default:
		off = php_object_behind(php->sp, p, size);
		if (!off)
			return 0;
	}
	return type_of_class(php, load_u64(p + off + PHP_OBJECT_CLASS));
}

static bool is_zend(const struct heap *h, uint32_t arena)
{
	const struct heap_allocator *a =
		&h->allocators[h->arenas[arena].allocator];

	return !strcmp(a->name, "zend");
}

static void name_extent(struct php *php, const struct heap_extent *x)
{
	const struct index *ix = php->in->ix;
	struct heap_iter it;
	struct block b;

	heap_iter_range(&it, php->in->heap, x->start, x->end);
	while (heap_iter_next(&it, &b)) {
		const uint8_t *p;
		uint32_t number, type;

		if (b.state != BLOCK_USED || b.usable < 8)
			continue;
		number = index_find(ix, b.addr);
		p = space_view(php->sp, b.addr, b.usable);
		if (!number || !p || (php->in->only &&
		    !(php->in->only[number >> 6] >> (number & 63) & 1)))
			continue;
		type = type_of_block(php, p, b.usable);
		if (type)
			types_set(php->types, number, type);
	}
}

static uint32_t add_type(struct types *t, const char *name)
{
	return types_add(t, name, TYPE_RUNTIME, 0, 0);
}

void php_name(struct types *t, const struct census_input *in)
{
	const struct heap *h = in->heap;
	struct php *php = NULL;

	for (size_t i = 0; i < h->n_extents; i++) {
		const struct heap_extent *x = &h->extents[i];

		if ((x->kind != EXTENT_BLOCKS && x->kind != EXTENT_MMAPPED) ||
		    !is_zend(h, x->arena))
			continue;
		if (!php) {
			php = mem_zalloc(sizeof(*php));
			php->types = t;
			php->in = in;
			php->sp = in->sp;
			php->string = add_type(t, "php string");
			php->array = add_type(t, "php array");
			php->elements = add_type(t, "php array elements");
			php->reference = add_type(t, "php reference");
		}
		name_extent(php, x);
	}
	free(php);
}
