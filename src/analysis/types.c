/* SPDX-License-Identifier: MIT */
#include "analysis/types.h"

#include <inttypes.h>

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

enum { NAME_CUT = 4096, SLOTS_MIN = 256 };

static const char *const known_names[TYPE_KNOWN] = {
	[TYPE_UNKNOWN] = "unknown", [TYPE_SHAPE] = "shape",
	[TYPE_CONTENT] = "content", [TYPE_TEXT] = "text",
	[TYPE_HINT] = "hint", [TYPE_CONTAINER] = "container",
	[TYPE_DWARF] = "dwarf",
	[TYPE_SYMBOL] = "symbol", [TYPE_RUNTIME] = "runtime",
	[TYPE_RTTI] = "rtti", [TYPE_VTABLE] = "vtable",
};

const char *type_known_name(enum type_known known)
{
	return known_names[known];
}

void types_init(struct types *t, uint32_t n)
{
	*t = (struct types){ .n_blocks = n, .n_slots = SLOTS_MIN };
	t->slots = mem_zalloc(t->n_slots * sizeof(*t->slots));
	t->of = mem_map((size_t)n * sizeof(*t->of));
	MEM_PUSH(t->items, t->n, t->cap) =
		(struct type){ .name = mem_strdup("not known") };
}

void types_fini(struct types *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free((char *)t->items[i].name);
		free((char *)t->items[i].hidden);
	}
	free(t->items);
	free(t->slots);
	if (t->of)
		mem_unmap(t->of, (size_t)t->n_blocks * sizeof(*t->of));
	*t = (struct types){ 0 };
}

static uint64_t hash_of(const char *name, size_t n, enum type_known known)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325) + known;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (uint8_t)name[i]) * UINT64_C(0x100000001b3);
	return h ^ h >> 32;
}

/* The slot that has the type, or is free for it. */
static uint32_t *slot_of(const struct types *t, const char *name, size_t n,
			 enum type_known known)
{
	size_t at = hash_of(name, n, known) & (t->n_slots - 1);

	for (; t->slots[at]; at = (at + 1) & (t->n_slots - 1)) {
		const struct type *type = &t->items[t->slots[at]];

		if (type->known == known && !strncmp(type->name, name, n) &&
		    !type->name[n])
			break;
	}
	return &t->slots[at];
}

static void more_slots(struct types *t)
{
	if (t->n * 2 < t->n_slots)
		return;
	free(t->slots);
	t->n_slots *= 2;
	t->slots = mem_zalloc(t->n_slots * sizeof(*t->slots));
	for (uint32_t i = 1; i < t->n; i++) {
		const struct type *type = &t->items[i];

		*slot_of(t, type->name, strlen(type->name), type->known) = i;
	}
}

static uint32_t add_safe(struct types *t, const char *name, size_t n,
			 enum type_known known, uint64_t size, vaddr source)
{
	uint32_t *slot = slot_of(t, name, n, known);
	struct type *type;

	if (!*slot && t->n >= TYPES_MAX) {
		name = "other types";
		n = strlen(name);
		slot = slot_of(t, name, n, known);
	}
	if (*slot) {
		type = &t->items[*slot];
		if (!type->size)
			type->size = size;
		return *slot;
	}
	*slot = (uint32_t)t->n;
	type = &MEM_PUSH(t->items, t->n, t->cap);
	*type = (struct type){ mem_printf("%.*s", (int)n, name), size, known,
			       source, NULL };
	more_slots(t);
	return (uint32_t)t->n - 1;
}

uint32_t types_add(struct types *t, const char *name, enum type_known known,
		   uint64_t size, vaddr source)
{
	struct str safe;
	uint32_t ret;

	str_init(&safe);
	str_add_escaped(&safe, name, strnlen(name, NAME_CUT));
	ret = add_safe(t, safe.text, min_u64(safe.len, NAME_CUT), known, size,
		       source);
	str_fini(&safe);
	return ret;
}

void types_hide(struct types *t, uint32_t type, const char *word)
{
	struct type *to = &t->items[type];

	if (!to->hidden)
		to->hidden = mem_printf("%s0x%" PRIx64, word, to->source);
}
