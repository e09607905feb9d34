/* SPDX-License-Identifier: MIT */
#include "analysis/php_names.h"

#include <inttypes.h>

enum {
	NAME_MAX_BYTES = 120,
	KEY_MAX_BYTES = 40,
	MAX_DEPTH = 12,			/* steps of a path that are told */
	NEVER = 1 << 28,		/* bound of a chain of parents */
};

bool php_string_text(struct php_graph *g, vaddr string, size_t max,
		     struct str *ret)
{
	uint8_t bytes[256];
	uint64_t len;
	uint32_t type;
	size_t n;

	if (!string || !space_u32(g->sp, string + 4, &type) ||
	    (type & PHP_TYPE_MASK) != PHP_STRING ||
	    !space_u64(g->sp, string + PHP_STRING_LEN, &len))
		return false;
	n = (size_t)min_u64(min_u64(len, max), sizeof(bytes));
	n = (size_t)space_read(g->sp, string + PHP_STRING_BYTES, bytes, n);
	str_add(ret, bytes, n);
	if (n < len)
		str_adds(ret, "...");
	return true;
}

static uint64_t get(struct php_graph *g, vaddr addr)
{
	uint64_t ret = 0;

	return space_u64(g->sp, addr, &ret) ? ret : 0;
}

static void add_name(struct php_graph *g, vaddr name, struct str *ret)
{
	if (g->sp->nameless)
		str_printf(ret, "0x%" PRIx64, name);
	else if (!php_string_text(g, name, NAME_MAX_BYTES, ret))
		str_addc(ret, '?');
}

static void add_class(struct php_graph *g, vaddr class, struct str *ret)
{
	if (!php_class_at(g, class))
		str_addc(ret, '?');
	else
		php_class_name(g->sp, class, ret);
}

void php_function_text(struct php_graph *g, vaddr function, struct str *ret)
{
	vaddr scope = get(g, function + PHP_FUNCTION_SCOPE);
	vaddr name = get(g, function + PHP_FUNCTION_NAME);
	uint8_t type = 0;

	if (!name) {
		str_adds(ret, "{main}");
		return;
	}
	if (scope) {
		add_class(g, scope, ret);
		str_adds(ret, "::");
	}
	/* The engine's own, and those of extensions, stand in their files. */
	if (space_u8(g->sp, function, &type) && type == PHP_INTERNAL &&
	    php_string_text(g, name, NAME_MAX_BYTES, ret))
		return;
	add_name(g, name, ret);
}

static void add_of(struct php_graph *g, const struct php_root *r,
		   struct str *ret)
{
	str_adds(ret, " of ");
	php_function_text(g, r->owner, ret);
	str_adds(ret, r->left ? "(), which was left" : "()");
}

void php_root_text(struct php_graph *g, const struct php_root *r,
		   struct str *ret)
{
	static const char *const words[] = {
		[PHP_ROOT_GLOBAL] = "global $",
		[PHP_ROOT_STATIC] = "static ",
		[PHP_ROOT_STATIC_VAR] = "static $",
		[PHP_ROOT_LOCAL] = "$",
		[PHP_ROOT_ARGUMENT] = "an argument",
		[PHP_ROOT_THIS] = "$this",
		[PHP_ROOT_TEMPORARY] = "an expression",
		[PHP_ROOT_CONSTANT] = "constant ",
		[PHP_ROOT_CLASS_CONSTANT] = "constant ",
		[PHP_ROOT_HANDLER] = "handler of errors",
		[PHP_ROOT_RESOURCE] = "open resources",
		[PHP_ROOT_CODE] = "classes and functions",
		[PHP_ROOT_ENGINE] = "the engine",
		[PHP_ROOT_NATIVE] = "an extension",
		[PHP_ROOT_GARBAGE] = "garbage",
	};

	str_adds(ret, words[r->kind]);
	if (r->kind == PHP_ROOT_STATIC || r->kind == PHP_ROOT_CLASS_CONSTANT) {
		add_class(g, r->owner, ret);
		str_adds(ret, r->kind == PHP_ROOT_STATIC ? "::$" : "::");
	}
	if (r->name)
		add_name(g, r->name, ret);
	switch (r->kind) {
	case PHP_ROOT_STATIC_VAR:
	case PHP_ROOT_LOCAL:
	case PHP_ROOT_ARGUMENT:
	case PHP_ROOT_THIS:
	case PHP_ROOT_TEMPORARY:
		add_of(g, r, ret);
		break;
	default:
		break;
	}
}

/* ---- paths ---- */

static bool leads_to(struct php_graph *g, uint64_t value, uint32_t type,
		     vaddr child)
{
	if ((type & 0xff) == g->at->indirect)
		value = get(g, value);
	return value == child;
}

static void add_key(struct php_graph *g, const struct php_element *e,
		    bool property, struct str *ret)
{
	str_adds(ret, property ? "->" : e->key ? "['" : "[");
	if (e->key)
		php_string_text(g, e->key, KEY_MAX_BYTES, ret);
	else
		str_printf(ret, "%" PRId64, (int64_t)e->hash);
	if (!property)
		str_adds(ret, e->key ? "']" : "]");
}

static void add_element(struct php_graph *g, vaddr array, vaddr child,
			bool property, struct str *ret)
{
	struct php_table t;
	struct php_element e;

	if (php_table_open(&t, g, array))
		while (php_table_next(&t, &e))
			if (e.key == child || leads_to(g, e.value, e.type,
						       child)) {
				add_key(g, &e, property, ret);
				return;
			}
	str_adds(ret, "[?]");
}

/* A private one's name has its class before it, between zeros. */
static void add_property_name(struct php_graph *g, vaddr name, struct str *ret)
{
	struct str raw;
	size_t at;

	str_init(&raw);
	php_string_text(g, name, NAME_MAX_BYTES, &raw);
	at = raw.len;
	while (at && raw.text[at - 1])
		at--;
	str_add(ret, raw.text + at, raw.len - at);
	str_fini(&raw);
}

/* The declared property in a place of the object. */
static bool add_declared(struct php_graph *g, vaddr object, uint32_t place,
			 struct str *ret)
{
	vaddr class = get(g, object + PHP_OBJECT_CLASS);
	struct php_table t;
	struct php_element e;
	uint32_t off, flags;

	if (!php_table_open(&t, g, class + g->at->props + PHP_PROPERTIES))
		return false;
	while (php_table_next(&t, &e)) {
		if (!space_u32(g->sp, e.value, &off) ||
		    !space_u32(g->sp, e.value + PHP_PROPERTY_FLAGS, &flags) ||
		    flags & PHP_STATIC ||
		    off != PHP_OBJECT_BYTES + place * PHP_ZVAL)
			continue;
		str_adds(ret, "->");
		add_property_name(g, get(g, e.value + PHP_PROPERTY_NAME), ret);
		return true;
	}
	return false;
}

static void add_member(struct php_graph *g, vaddr object, vaddr child,
		       struct str *ret)
{
	const struct php_class *c =
		php_class_at(g, get(g, object + PHP_OBJECT_CLASS));

	for (uint32_t i = 0; c && i < c->n_props && php_pay(g, 1); i++)
		if (get(g, object + PHP_OBJECT_BYTES + (uint64_t)i *
			PHP_ZVAL) == child) {
			if (!add_declared(g, object, i, ret))
				str_adds(ret, "->?");
			return;
		}
	str_adds(ret, "->?");
}

static void add_step(struct php_graph *g, const struct php_node *from,
		     const struct php_node *before, vaddr child,
		     struct str *ret)
{
	if (from->kind == PHP_KIND_ARRAY)
		add_element(g, from->addr, child, before &&
			    before->kind == PHP_KIND_OBJECT &&
			    get(g, before->addr + PHP_OBJECT_DYNAMIC) ==
			    from->addr, ret);
	else if (from->kind == PHP_KIND_OBJECT &&
		 get(g, from->addr + PHP_OBJECT_DYNAMIC) != child)
		add_member(g, from->addr, child, ret);
}

void php_path_text(struct php_graph *g, uint32_t node, struct str *ret)
{
	uint32_t way[MAX_DEPTH + 1];
	unsigned n = 0;

	while (node && !(node & PHP_ROOT_BIT) && n <= MAX_DEPTH) {
		way[n++] = node;
		node = g->nodes[node].parent;
	}
	if (node && !(node & PHP_ROOT_BIT))
		str_adds(ret, "...");
	for (unsigned i = n; i-- > 1;)
		add_step(g, &g->nodes[way[i]],
			 i + 1 < n ? &g->nodes[way[i + 1]] : NULL,
			 g->nodes[way[i - 1]].addr, ret);
}

const struct php_root *php_root_of(const struct php_graph *g, uint32_t node)
{
	/* A parent was found before its child. */
	for (uint32_t i = 0; i < NEVER && node && !(node & PHP_ROOT_BIT); i++)
		node = g->nodes[node].parent;
	return node & PHP_ROOT_BIT ? &g->roots[node & ~PHP_ROOT_BIT] : NULL;
}
