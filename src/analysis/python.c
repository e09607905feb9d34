/* SPDX-License-Identifier: MIT */
#include "analysis/python.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
	NAME_MAX_LEN = 200,
	/* struct _typeobject, the same from 3.6 to 3.13 */
	T_TYPE = 8, T_NAME = 24, T_SIZE = 32, T_ITEM = 40, T_FLAGS = 168,
	T_DICT = 264,
	F_INLINE = 1 << 2, F_HEAP = 1 << 9, F_READY = 1 << 12,
	SIZE_MAX_OBJECT = 1 << 20,
	/* What a block may be larger: by rounding, by the values of 3.13. */
	ROUNDED = 32, VALUES = 512,
	METACLASSES = 3,	/* a class's class's class */
	/*
	 * Words before an object: the collector's, of 3.8 and later, and from
	 * 3.11 on before these its dict's.
	 */
	GC_WORDS = 2, HEAD_WORDS = 4,
	WORDS = HEAD_WORDS + 2,
	/* A compact string's length and state, and where its text can be. */
	S_LENGTH = 16, S_STATE = 32,
	DICT_KEYS = 32, KEYS_WORDS = 256,
	CACHE = 1 << 12,
};
#define F_TYPE_SUBCLASS (UINT64_C(1) << 31)

struct class {
	vaddr at;		/* 0: none */
	uint32_t type;		/* 0: it is not a class */
	uint64_t size;		/* of an instance */
	uint64_t room;		/* how much larger its block can be */
};

struct namer {
	const struct census_input *in;
	struct types *types;
	vaddr type_type;	/* the type object of type objects */
	vaddr module_key;	/* the string "__module__"; 0 not yet */
	struct class *cache;	/* owned; by address */
};

/* "Node", "_io.TextIOWrapper" */
static bool is_name(const char *name)
{
	if (!isalpha((unsigned char)*name) && *name != '_')
		return false;
	while (isalnum((unsigned char)*name) || *name == '_' || *name == '.')
		name++;
	return !*name;
}

bool python_type(struct space *sp, vaddr type, struct str *ret)
{
	char text[NAME_MAX_LEN + 1];
	uint64_t meta, own, name;

	if (sp->word != 8 || type & 7 ||
	    !space_word(sp, type + T_TYPE, &meta) ||
	    meta & 7 || !space_word(sp, meta + T_TYPE, &own) || own != meta ||
	    !space_word(sp, type + T_NAME, &name) ||
	    !space_module(sp, name) ||
	    !space_string(sp, name, text, NAME_MAX_LEN) ||
	    !is_name(text))
		return false;
	str_printf(ret, "python %s", text);
	return true;
}

/* ---- classes ---- */

/* A string of ASCII that is a name; up to 3.11 a word more is before it. */
static bool read_name(struct space *sp, vaddr at, char ret[NAME_MAX_LEN + 1])
{
	uint64_t length;
	uint32_t state;

	if (at & 7 || !space_u64(sp, at + S_LENGTH, &length) || !length ||
	    length > NAME_MAX_LEN || !space_u32(sp, at + S_STATE, &state) ||
	    /* kind 1, compact, ASCII */
	    (state >> 2 & 31) != (1 | 1 << 3 | 1 << 4))
		return false;
	for (vaddr text = at + 40; text <= at + 48; text += 8)
		if (space_string(sp, text, ret, NAME_MAX_LEN) &&
		    strlen(ret) == length && is_name(ret))
			return true;
	return false;
}

/*
 * The value of "__module__" in a class's dict.  Its keys may be kept in
 * several ways, but a value always follows its key.
 */
static bool module_of(struct namer *n, vaddr class,
		      char ret[NAME_MAX_LEN + 1])
{
	struct space *sp = n->in->sp;
	uint64_t dict, keys, w[KEYS_WORDS];
	size_t count;

	if (!space_u64(sp, class + T_DICT, &dict) ||
	    !space_u64(sp, dict + DICT_KEYS, &keys) || keys & 7)
		return false;
	count = (size_t)space_read(sp, keys, w, sizeof(w)) / 8;
	for (size_t i = 0; i + 1 < count; i++) {
		if (n->module_key ? w[i] != n->module_key :
		    !read_name(sp, w[i], ret) || strcmp(ret, "__module__"))
			continue;
		n->module_key = w[i];
		return read_name(sp, w[i + 1], ret);
	}
	return false;
}

/* Is it the class of itself, or of a class that is, in a few steps? */
static bool has_metaclass(struct namer *n, vaddr class)
{
	uint64_t flags;

	for (unsigned i = 0; i < METACLASSES; i++) {
		if (!space_u64(n->in->sp, class + T_TYPE, &class) || class & 7)
			return false;
		if (class == n->type_type)
			return true;
		if (!space_u64(n->in->sp, class + T_FLAGS, &flags) ||
		    !(flags & F_TYPE_SUBCLASS))
			return false;
	}
	return false;
}

static void look_at(struct namer *n, struct class *c)
{
	struct space *sp = n->in->sp;
	char name[NAME_MAX_LEN + 1], module[NAME_MAX_LEN + 1];
	uint64_t text, flags, item;
	struct str s;
	bool made;

	if (!has_metaclass(n, c->at) ||
	    !space_u64(sp, c->at + T_FLAGS, &flags) ||
	    (flags & (F_HEAP | F_READY)) != (F_HEAP | F_READY) ||
	    !space_u64(sp, c->at + T_SIZE, &c->size) || c->size < 16 ||
	    c->size > SIZE_MAX_OBJECT ||
	    !space_u64(sp, c->at + T_ITEM, &item) ||
	    !space_u64(sp, c->at + T_NAME, &text) ||
	    !space_string(sp, text, name, NAME_MAX_LEN) || !is_name(name))
		return;
	c->room = item ? UINT64_MAX : flags & F_INLINE ? VALUES : ROUNDED;
	made = !space_module(sp, text);
	str_init(&s);
	str_adds(&s, "python ");
	if (n->in->sp->nameless && made)
		str_printf(&s, "class 0x%" PRIx64, c->at);
	else if (n->in->sp->nameless)
		str_adds(&s, name);
	else if (!strchr(name, '.') && module_of(n, c->at, module))
		str_printf(&s, "%s.%s", module, name);
	else
		str_adds(&s, name);
	c->type = types_add(n->types, s.text, TYPE_RUNTIME, c->size, c->at);
	if (made && !n->in->sp->nameless)
		types_hide(n->types, c->type, "python class ");
	str_fini(&s);
}

/* The class at an address, behind the collector's words in a block. */
static const struct class *class_at(struct namer *n, vaddr at)
{
	struct class *c = &n->cache[(at >> 4) % CACHE];

	uint64_t off = at - n->in->ix->base;

	/* One that is too low wraps round, and is no start. */
	if (at & 7 || !index_starts(n->in->ix, off - GC_WORDS * 8))
		return NULL;
	if (c->at != at) {
		*c = (struct class){ .at = at };
		look_at(n, c);
	}
	return c->type ? c : NULL;
}

/* ---- instances ---- */

static void name_block(struct namer *n, const struct block *b)
{
	const struct index *ix = n->in->ix;
	uint64_t w[WORDS];
	size_t count = min_u64(b->usable, sizeof(w)) / 8;

	count = (size_t)space_read(n->in->sp, b->addr, w, count * 8) / 8;
	for (size_t i = 0; i + 1 < count; i += 2) {
		const struct class *c;

		/* A count of references. */
		if (!w[i] || w[i] >> 32)
			continue;
		c = class_at(n, w[i + 1]);
		if (c && b->usable >= i * 8 + c->size &&
		    b->usable - i * 8 - c->size < c->room) {
			types_set(n->types, index_number(ix, b->addr -
							 ix->base), c->type);
			return;
		}
	}
}

/* Blocks that are classes have been named; by what, is the type of types. */
static vaddr find_type_type(struct space *sp, const struct types *t)
{
	uint64_t own;

	for (size_t i = 0; i < t->n; i++)
		if (t->items[i].known == TYPE_RUNTIME &&
		    !strcmp(t->items[i].name, "python type") &&
		    space_u64(sp, t->items[i].source + T_TYPE, &own) &&
		    own == t->items[i].source)
			return own;
	return 0;
}

void python_name(struct types *t, const struct census_input *in)
{
	struct namer n = { .in = in, .types = t };
	struct heap_iter it;
	uint32_t number = 0;
	struct block b;

	n.type_type = find_type_type(in->sp, t);
	if (!n.type_type)
		return;
	n.cache = mem_zalloc(CACHE * sizeof(*n.cache));
	heap_iter_init(&it, in->heap);
	while (in->only ? census_next_only(in, &number, &b)
			: heap_iter_next(&it, &b))
		if (b.state == BLOCK_USED)
			name_block(&n, &b);
	free(n.cache);
}
