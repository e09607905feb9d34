/* SPDX-License-Identifier: MIT */
#include "analysis/php_shape.h"

#include <inttypes.h>

#include "analysis/php_layout.h"

enum {
	COUNT_MAX = 1 << 28,
	OFFSET_MAX = 400,		/* of the object in its block */
	NAME_MAX_LEN = 200,
};

static bool is_string(const uint8_t *p, uint64_t size)
{
	uint64_t len;

	if (size < PHP_STRING_BYTES + 1)
		return false;
	len = load_u64(p + PHP_STRING_LEN);
	return len <= size - PHP_STRING_BYTES - 1 &&
	       !p[PHP_STRING_BYTES + len];
}

static bool is_array(const uint8_t *p, uint64_t size)
{
	return size == PHP_ARRAY_BYTES &&
	       load_u32(p + PHP_ARRAY_MASK) >> 31 &&
	       load_u32(p + PHP_ARRAY_USED) <= load_u32(p + PHP_ARRAY_SIZE) &&
	       load_u32(p + PHP_ARRAY_COUNT) <= load_u32(p + PHP_ARRAY_USED);
}

/* A zval's type is at most that of an internal pointer. */
static bool is_reference(const uint8_t *p, uint64_t size)
{
	return size == PHP_REFERENCE_BYTES &&
	       p[PHP_REFERENCE_VALUE + PHP_ZVAL_TYPE] <= 15;
}

/*
 * Names are made of identifiers; what is anonymous has a zero and a path.
 * Returns the length up to there; 0: it is no class.
 */
static size_t name_of_class(struct space *sp, vaddr entry,
			    uint8_t bytes[NAME_MAX_LEN])
{
	uint64_t name = 0, len = 0;
	uint32_t kind = 0;
	size_t n, i;

	if (entry & 7 || !space_u64(sp, entry + PHP_CLASS_NAME, &name) ||
	    name & 7 || !space_u32(sp, name + 4, &kind) ||
	    (kind & PHP_TYPE_MASK) != PHP_STRING ||
	    !space_u64(sp, name + PHP_STRING_LEN, &len))
		return 0;
	n = (size_t)min_u64(len, NAME_MAX_LEN);
	if (space_read(sp, name + PHP_STRING_BYTES, bytes, n) != n)
		return 0;
	for (i = 0; i < n && bytes[i]; i++)
		if (bytes[i] < 0x80 && !strchr("_\\@", bytes[i]) &&
		    !(bytes[i] >= '0' && bytes[i] <= '9') &&
		    !((bytes[i] | 0x20) >= 'a' && (bytes[i] | 0x20) <= 'z'))
			return 0;
	return i;
}

bool php_class_is_made(struct space *sp, vaddr entry)
{
	uint8_t type = 0;

	return !space_u8(sp, entry, &type) || type != PHP_INTERNAL;
}

bool php_class_name(struct space *sp, vaddr entry, struct str *ret)
{
	uint8_t bytes[NAME_MAX_LEN];
	size_t n = name_of_class(sp, entry, bytes);

	if (n && sp->nameless && php_class_is_made(sp, entry))
		str_printf(ret, "0x%" PRIx64, entry);
	else
		str_add(ret, bytes, n);
	return n != 0;
}

bool php_is_object(struct space *sp, const uint8_t *p, uint64_t size,
		   uint32_t off)
{
	uint8_t name[NAME_MAX_LEN];
	uint32_t at;

	if (off > size || size - off < PHP_OBJECT_BYTES ||
	    (load_u32(p + off + 4) & PHP_TYPE_MASK) != PHP_OBJECT ||
	    !load_u32(p + off) || load_u32(p + off) >= COUNT_MAX ||
	    !space_u32(sp, load_u64(p + off + PHP_OBJECT_HANDLERS), &at) ||
	    at != off)
		return false;
	return name_of_class(sp, load_u64(p + off + PHP_OBJECT_CLASS),
			     name) != 0;
}

uint32_t php_object_behind(struct space *sp, const uint8_t *p, uint64_t size)
{
	for (uint32_t off = 8; off <= OFFSET_MAX; off += 8)
		if (php_is_object(sp, p, size, off))
			return off;
	return 0;
}

uint32_t php_shape(struct space *sp, const uint8_t *p, uint64_t size)
{
	uint32_t count, type;
	bool listed;

	if (size < 8)
		return 0;
	count = load_u32(p);
	type = load_u32(p + 4) & PHP_TYPE_MASK;
	/* Else this is the upper half of an address, 0x7f16 for one. */
	listed = load_u32(p + 4) >> PHP_COLLECTOR_SHIFT;
	if (!count || count >= COUNT_MAX)
		return 0;
	if ((type == PHP_STRING && !listed && is_string(p, size)) ||
	    (type == PHP_ARRAY && is_array(p, size)) ||
	    (type == PHP_REFERENCE && !listed && is_reference(p, size)) ||
	    (type == PHP_OBJECT && php_is_object(sp, p, size, 0)))
		return type;
	return 0;
}
