/* SPDX-License-Identifier: MIT */
#include "analysis/php.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* Types of refcounted values: the low bits of the word behind the count. */
enum {
	PHP_STRING = 6, PHP_ARRAY, PHP_OBJECT, PHP_REFERENCE = 10,
	TYPE_MASK = 15,
};

enum {
	COUNT_MAX = 1 << 28,
	STRING_LEN = 16, STRING_BYTES = 24,
	ARRAY_BLOCK = 56, ARRAY_FLAGS = 8, ARRAY_MASK = 12, ARRAY_DATA = 16,
	ARRAY_USED = 24, ARRAY_COUNT = 28, ARRAY_SIZE = 32,
	NO_ELEMENTS = 1 << 3,		/* flag */
	OBJECT_BYTES = 40, OBJECT_CLASS = 16, OBJECT_HANDLERS = 24,
	OFFSET_MAX = 400,		/* of the object in its block */
	REFERENCE_BLOCK = 32, REFERENCE_TYPE = 16,
	CLASS_NAME = 8,			/* in struct zend_class_entry */
	NAME_MAX_LEN = 200,
	CACHE = 1 << 12,
};

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

static bool is_string(const uint8_t *p, uint64_t size)
{
	uint64_t len;

	if (size < STRING_BYTES + 1)
		return false;
	len = load_u64(p + STRING_LEN);
	return len <= size - STRING_BYTES - 1 && !p[STRING_BYTES + len];
}

static bool is_array(const uint8_t *p, uint64_t size)
{
	return size == ARRAY_BLOCK && load_u32(p + ARRAY_MASK) >> 31 &&
	       load_u32(p + ARRAY_USED) <= load_u32(p + ARRAY_SIZE) &&
	       load_u32(p + ARRAY_COUNT) <= load_u32(p + ARRAY_USED);
}

/* A zval's type is at most that of an internal pointer. */
static bool is_reference(const uint8_t *p, uint64_t size)
{
	return size == REFERENCE_BLOCK && p[REFERENCE_TYPE] <= 15;
}

/* ---- classes ---- */

/* Names are made of identifiers; what is anonymous has a zero and a path. */
static bool class_name(struct space *sp, vaddr entry, struct str *ret)
{
	uint64_t name = 0, len = 0;
	uint8_t bytes[NAME_MAX_LEN];
	uint32_t kind = 0;
	size_t n;

	if (entry & 7 || !space_u64(sp, entry + CLASS_NAME, &name) ||
	    name & 7 || !space_u32(sp, name + 4, &kind) ||
	    (kind & TYPE_MASK) != PHP_STRING ||
	    !space_u64(sp, name + STRING_LEN, &len) || !len)
		return false;
	n = (size_t)min_u64(len, NAME_MAX_LEN);
	if (space_read(sp, name + STRING_BYTES, bytes, n) != n)
		return false;
	for (size_t i = 0; i < n && bytes[i]; i++)
		if (bytes[i] < 0x80 && !strchr("_\\@", bytes[i]) &&
		    !(bytes[i] >= '0' && bytes[i] <= '9') &&
		    !((bytes[i] | 0x20) >= 'a' && (bytes[i] | 0x20) <= 'z'))
			return false;
	if (!bytes[0])
		return false;
	str_adds(ret, "php object ");
	str_add(ret, bytes, strnlen((const char *)bytes, n));
	return true;
}

static uint32_t type_of_class(struct php *php, vaddr entry)
{
	struct class *c = &php->classes[(entry >> 4 ^ entry >> 16) %
					CACHE];
	struct str name;

	if (c->entry == entry)
		return c->type;
	*c = (struct class){ .entry = entry };
	str_init(&name);
	if (class_name(php->sp, entry, &name))
		c->type = types_add(php->types, name.text, TYPE_RUNTIME, 0,
				    entry);
	str_fini(&name);
	return c->type;
}

/* An object's handlers say how far behind its block's start it lies. */
static uint32_t object_at(struct php *php, const uint8_t *p, uint64_t size,
			  uint32_t off)
{
	uint32_t at;

	if (off + OBJECT_BYTES > size ||
	    (load_u32(p + off + 4) & TYPE_MASK) != PHP_OBJECT ||
	    !load_u32(p + off) || load_u32(p + off) >= COUNT_MAX ||
	    !space_u32(php->sp, load_u64(p + off + OBJECT_HANDLERS), &at) ||
	    at != off)
		return 0;
	return type_of_class(php, load_u64(p + off + OBJECT_CLASS));
}

static uint32_t object_behind(struct php *php, const uint8_t *p,
			      uint64_t size)
{
	uint32_t type = 0;

	for (uint32_t off = 8; off <= OFFSET_MAX && !type; off += 8) {
		if (off + OBJECT_BYTES > size)
			break;
		type = object_at(php, p, size, off);
	}
	return type;
}

/* ---- blocks ---- */

/* The elements lie behind a hash part; arData points between them. */
static void name_elements(struct php *php, const uint8_t *p)
{
	const struct index *ix = php->in->ix;
	uint64_t hash = 4 * (uint64_t)(0 - load_u32(p + ARRAY_MASK));
	vaddr data = load_u64(p + ARRAY_DATA) - hash;
	uint32_t number;

	if (load_u32(p + ARRAY_FLAGS) & NO_ELEMENTS)
		return;
	number = index_find(ix, data);
	if (number && index_starts(ix, data - ix->base))
		types_set(php->types, number, php->elements);
}

static uint32_t type_of_block(struct php *php, const uint8_t *p,
			      uint64_t size)
{
	uint32_t count = load_u32(p), kind = load_u32(p + 4) & TYPE_MASK;
	uint32_t type = 0;

	if (count && count < COUNT_MAX) {
		if (kind == PHP_STRING && is_string(p, size))
			return php->string;
		if (kind == PHP_ARRAY && is_array(p, size)) {
			name_elements(php, p);
			return php->array;
		}
		if (kind == PHP_REFERENCE && is_reference(p, size))
			return php->reference;
		if (kind == PHP_OBJECT)
			type = object_at(php, p, size, 0);
	}
	return type ? type : object_behind(php, p, size);
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
