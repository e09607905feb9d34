/* SPDX-License-Identifier: MIT */
#include "analysis/fields.h"

#include <string.h>

#include "analysis/hints.h"
#include "base/mem.h"
#include "base/sort.h"

enum {
	FEW = 16,		/* elements of an array that are listed */
	MAX_STEPS = 1 << 15,	/* members that a type is searched for */
};

/* For all types together. */
#define ALL_STEPS (UINT64_C(1) << 26)

/*
 * Inside a container, a pointer to a node's base means the node.  base is the
 * beginning of a qualified name, as are all of these.
 */
struct rule {
	const char *container;
	const char *base;
	const char *node;	/* NULL: the type itself */
	unsigned arg;		/* of the container's, which the node has */
};

static const struct rule rules[] = {
	{ "std::__cxx11::_List_base<", "std::__detail::_List_node_base",
	  "std::_List_node<", 0 },
	{ "std::_List_base<", "std::__detail::_List_node_base",
	  "std::_List_node<", 0 },
	{ "std::_List_iterator<", "std::__detail::_List_node_base",
	  "std::_List_node<", 0 },
	{ "std::_List_const_iterator<", "std::__detail::_List_node_base",
	  "std::_List_node<", 0 },
	{ "std::_List_node<", "std::__detail::_List_node_base", NULL, 0 },
	{ "std::_Fwd_list_base<", "std::_Fwd_list_node_base",
	  "std::_Fwd_list_node<", 0 },
	{ "std::_Fwd_list_node<", "std::_Fwd_list_node_base", NULL, 0 },
	{ "std::_Rb_tree<", "std::_Rb_tree_node_base",
	  "std::_Rb_tree_node<", 1 },
	{ "std::_Rb_tree_iterator<", "std::_Rb_tree_node_base",
	  "std::_Rb_tree_node<", 0 },
	{ "std::_Rb_tree_const_iterator<", "std::_Rb_tree_node_base",
	  "std::_Rb_tree_node<", 0 },
	{ "std::_Rb_tree_node<", "std::_Rb_tree_node_base", NULL, 0 },
	{ "std::_Hashtable<", "std::__detail::_Hash_node_base",
	  "std::__detail::_Hash_node<", 1 },
	{ "std::__detail::_Hash_node<", "std::__detail::_Hash_node_base",
	  NULL, 0 },
	{ "std::__1::__tree<", "std::__1::__tree_",
	  "std::__1::__tree_node<", 0 },
	{ "std::__1::__tree_node<", "std::__1::__tree_", NULL, 0 },
};

/* What surrounds a field that is being laid flat. */
struct context {
	const char *base;	/* static; NULL: no container */
	uint32_t node;
	unsigned depth;
	uint8_t flags;		/* enum field_flag */
};

struct builder {
	struct fields *f;
	struct field *items;	/* owned */
	size_t n, cap;
	uint32_t steps;		/* that are left */
};

static void add_type(struct builder *b, uint32_t type, uint64_t off,
		     struct context in);

void fields_init(struct fields *f, struct dwarf_types *t,
		 const struct hints *hints)
{
	*f = (struct fields){ .t = t, .hints = hints, .steps = ALL_STEPS };
	str_init(&f->name);
}

void fields_fini(struct fields *f)
{
	free(f->items);
	free(f->of);
	str_fini(&f->name);
	*f = (struct fields){ 0 };
}

static void push(struct builder *b, const struct field *field)
{
	if (b->n < FIELDS_MAX)
		MEM_PUSH(b->items, b->n, b->cap) = *field;
	else
		b->n = FIELDS_MAX + 1;	/* there are more */
}

/* ---- names ---- */

static const char *name_of(struct fields *f, uint32_t type)
{
	str_clear(&f->name);
	dwarf_type_name(f->t, type, &f->name);
	return f->name.text;
}

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/*
 * Template argument number arg of a name whose first "<" is at open: false if
 * it has not so many.
 */
static bool text_arg(const char *open, unsigned arg, const char **ret,
		     size_t *ret_len)
{
	unsigned depth = 0, at = 0;
	const char *start = open + 1;

	for (const char *p = start; *p; p++) {
		bool ends = !depth && (*p == ',' || *p == '>');

		if (*p == '<' || *p == '(')
			depth++;
		else if ((*p == '>' || *p == ')') && depth)
			depth--;
		if (!ends)
			continue;
		if (at++ == arg) {
			*ret = start;
			*ret_len = (size_t)(p - start);
			return true;
		}
		if (*p == '>')
			return false;
		start = p[1] == ' ' ? p + 2 : p + 1;
	}
	return false;
}

/* "std::_Rb_tree_node<" and the argument; 0 if nobody describes it. */
static uint32_t node_type(struct fields *f, const struct rule *rule,
			  const char *name)
{
	const char *open = strchr(name, '<'), *arg, *end = ">";
	size_t len;
	struct str s;
	uint32_t type;

	if (!open || !text_arg(open, rule->arg, &arg, &len))
		return 0;
	if (begins(rule->node, "std::__detail::_Hash_node<"))
		end = strstr(name, "_Hashtable_traits<true") ? ", true>" :
							       ", false>";
	if (begins(rule->node, "std::__1::__tree_node<"))
		end = ", void *>";
	str_init(&s);
	str_adds(&s, rule->node);
	str_add(&s, arg, len);
	str_adds(&s, end);
	type = dwarf_find_type(f->t, s.text, s.len);
	if (!type && begins(end, ", void *")) {
		s.len -= strlen(end);
		str_adds(&s, ", void*>");
		type = dwarf_find_type(f->t, s.text, s.len);
	}
	str_fini(&s);
	return type;
}

/* The context inside a type of that name. */
static void enter(struct fields *f, uint32_t type, const char *name,
		  struct context *in)
{
	for (size_t i = 0; i < countof(rules); i++) {
		if (!begins(name, rules[i].container))
			continue;
		in->node = rules[i].node ? node_type(f, &rules[i], name)
					 : type;
		in->base = in->node ? rules[i].base : NULL;
		return;
	}
}

/*
 * libc++ declares pointers to bases that name their node: replace the one name
 * by the other, or take the argument.
 */
static uint32_t named_node(struct fields *f, uint32_t type, const char *name)
{
	static const char list[] = "std::__1::__list_node_base<";
	static const char hash[] = "std::__1::__hash_node_base<";
	uint32_t node = 0;

	if (begins(name, list)) {
		char *text = mem_printf("std::__1::__list_node<%s",
					name + strlen(list));

		node = dwarf_find_type(f->t, text, strlen(text));
		free(text);
	} else if (begins(name, hash)) {
		const struct dtype *ty = dwarf_type(f->t, type);

		if (ty->n_args)
			node = dwarf_type_head(f->t, f->t->args[ty->args])
				->target;
	}
	return node;
}

/* The node that a pointer to type means; 0: it means what it says. */
static uint32_t meant(struct fields *f, uint32_t type,
		      const struct context *in)
{
	const struct dtype *ty = dwarf_type_head(f->t, type);
	const char *name;
	uint32_t node;

	if (ty->kind == DTYPE_POINTER) {
		const struct dtype *to = dwarf_type_head(f->t, ty->target);

		node = to->kind == DTYPE_POINTER ? 0 :
		       meant(f, ty->target, in);
		return node ? dwarf_pointer_to(f->t, node) : 0;
	}
	if (ty->kind != DTYPE_STRUCT || !ty->name)
		return 0;
	name = name_of(f, type);
	if (in->base && begins(name, in->base))
		return in->node;
	return named_node(f, type, name);
}

/* ---- members ---- */

static void add_pointer(struct builder *b, uint32_t type, uint64_t off,
			const struct context *in)
{
	uint32_t target = dwarf_type_head(b->f->t, type)->target;
	uint32_t node = meant(b->f, target, in);

	push(b, &(struct field){
		.off = off, .kind = FIELD_POINTER,
		.type = node ? node : target,
		.flags = in->flags | (node ? FIELD_NODE : 0),
	});
}

static void add_array(struct builder *b, uint32_t type, uint64_t off,
		      struct context in)
{
	/* Copies: what is added below may make other types, and move these. */
	struct dtype ty = *dwarf_type_head(b->f->t, type);
	struct dtype element = *dwarf_type_head(b->f->t, ty.target);

	if (!element.size || element.kind == DTYPE_SCALAR ||
	    element.kind == DTYPE_CHAR)
		return;
	if (!ty.n || ty.n > FEW) {
		push(b, &(struct field){
			.off = off, .kind = FIELD_REPEAT, .type = ty.target,
			.n = ty.n, .flags = in.flags });
		return;
	}
	for (uint64_t i = 0; i < ty.n; i++)
		add_type(b, ty.target, off + i * element.size, in);
}

static bool find_member(struct fields *f, uint32_t type, const char *name,
			struct dmember *ret)
{
	return dwarf_find_member(f->t, type, name, strlen(name), ret);
}

static uint32_t first_arg(struct fields *f, uint32_t type)
{
	const struct dtype *ty = dwarf_type(f->t, type);

	return ty->n_args ? f->t->args[ty->args] : DWARF_NO_TYPE;
}

/* begin, end and end of room follow each other in both libraries. */
static bool add_vector(struct builder *b, uint32_t type, uint64_t off,
		       const struct context *in, const char *begin)
{
	struct dmember m;
	const struct dtype *pointer;

	if (!find_member(b->f, type, begin, &m))
		return false;
	pointer = dwarf_type_head(b->f->t, m.type);
	if (pointer->kind != DTYPE_POINTER)
		return false;
	push(b, &(struct field){
		.off = off + m.off, .kind = FIELD_VECTOR,
		.type = pointer->target, .flags = in->flags });
	return true;
}

/* A value and a byte that says whether, or which one, it is. */
static bool add_guarded(struct builder *b, uint32_t type, uint64_t off,
			const struct context *in, enum field_kind kind,
			const char *guard)
{
	struct dmember m;
	uint32_t arg = kind == FIELD_VARIANT ? type :
		       first_arg(b->f, type);

	if (!arg || !find_member(b->f, type, guard, &m))
		return false;
	push(b, &(struct field){ .off = off, .n = m.off, .kind = kind,
				 .type = arg, .flags = in->flags });
	return true;
}

static bool add_simple(struct builder *b, uint64_t off, uint32_t type,
		       const struct context *in, enum field_kind kind)
{
	push(b, &(struct field){ .off = off, .kind = kind, .type = type,
				 .flags = in->flags });
	return true;
}

static bool is_raw_value(const char *name)
{
	return begins(name, "__gnu_cxx::__aligned_membuf<") ||
	       begins(name, "__gnu_cxx::__aligned_buffer<");
}

/* Containers that are no plain structures; false: it is none. */
static bool add_special(struct builder *b, uint32_t type, uint64_t off,
			const struct context *in, const char *name)
{
	struct dmember m;

	if (is_raw_value(name)) {
		add_type(b, first_arg(b->f, type), off, *in);
		return true;
	}
	if (begins(name, "std::__cxx11::basic_string<char,"))
		return add_simple(b, off, 0, in, FIELD_STRING);
	if (begins(name, "std::__1::basic_string<char,"))
		return add_simple(b, off, 0, in, FIELD_LONG_STRING);
	if (begins(name, "std::_Function_base"))
		return add_simple(b, off, 0, in, FIELD_FUNCTION);
	if (begins(name, "std::_Vector_base<") && strstr(name, "_Vector_impl"))
		return add_vector(b, type, off, in, "_M_start");
	if (begins(name, "std::__1::vector<"))
		return add_vector(b, type, off, in, "__begin_");
	if (begins(name, "std::_Optional_payload_base<") &&
	    !strstr(name, "::_Storage"))
		return add_guarded(b, type, off, in, FIELD_OPTIONAL,
				   "_M_engaged");
	if (begins(name, "std::__detail::__variant::_Variant_storage<"))
		return add_guarded(b, type, off, in, FIELD_VARIANT,
				   "_M_index");
	if (begins(name, "std::_Deque_base<") &&
	    strstr(name, "::_Deque_impl") &&
	    find_member(b->f, type, "_M_map", &m)) {
		uint32_t map = dwarf_type_head(b->f->t, m.type)->target;

		return add_simple(b, off + m.off,
				  dwarf_type_head(b->f->t, map)->target, in,
				  FIELD_DEQUE);
	}
	return false;
}

static void add_members(struct builder *b, uint32_t type, uint64_t off,
			struct context in)
{
	struct dtype ty = *dwarf_type(b->f->t, type);
	bool emplace = ty.name && ty.n_args &&
		begins(name_of(b->f, type), "std::__1::__shared_ptr_emplace<");
	size_t before = b->n;

	if (ty.kind == DTYPE_UNION)
		in.flags |= FIELD_IN_UNION;
	for (uint32_t i = 0; i < ty.n_members; i++) {
		struct dmember m = b->f->t->members[ty.members + i];

		if (m.bits)
			continue;
		if (emplace && !strcmp(m.name, "__storage_"))
			m.type = b->f->t->args[ty.args];
		if (strncmp(m.name, "_vptr", 5))
			add_type(b, m.type, off + m.off, in);
	}
	/* Those of an outer type come later, and win. */
	if (b->f->hints && b->n <= FIELDS_MAX)
		hints_apply(b->f->hints, type, off, b->items + before,
			    b->n - before);
}

static void add_aggregate(struct builder *b, uint32_t type, uint64_t off,
			  struct context in)
{
	if (dwarf_type_head(b->f->t, type)->name) {
		AUTO_FREE char *name = mem_strdup(name_of(b->f, type));

		if (begins(name, "std::") || begins(name, "__gnu_cxx::")) {
			if (add_special(b, type, off, &in, name))
				return;
			enter(b->f, type, name, &in);
		}
	}
	add_members(b, type, off, in);
}

static void add_type(struct builder *b, uint32_t type, uint64_t off,
		     struct context in)
{
	if (in.depth++ >= FIELDS_MAX_DEPTH || b->n > FIELDS_MAX || !b->steps)
		return;
	b->steps--;
	switch (dwarf_type_head(b->f->t, type)->kind) {
	case DTYPE_POINTER:
		add_pointer(b, type, off, &in);
		break;
	case DTYPE_ARRAY:
		add_array(b, type, off, in);
		break;
	case DTYPE_STRUCT:
	case DTYPE_UNION:
		add_aggregate(b, type, off, in);
		break;
	}
}

/* ---- asking ---- */

static int by_off(const void *a, const void *b)
{
	const struct field *x = a, *y = b;

	return ORDER(x->off, y->off) ?: ORDER(x->kind, y->kind) ?:
	       ORDER(x->type, y->type);
}

/*
 * A union with pointers to two things: which one it is, only a hint can tell.
 * They stay for the hint, and point to nothing.
 */
static void drop_unclear(struct field *items, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct field *a = &items[i - 1], *b = &items[i];

		if (a->off != b->off || a->kind != FIELD_POINTER ||
		    b->kind != FIELD_POINTER || a->type == b->type)
			continue;
		a->type = DWARF_NO_TYPE;
		b->type = DWARF_NO_TYPE;
	}
}

static bool are_plain(const struct field *items, size_t n, uint64_t size)
{
	for (size_t i = 0; i < n; i++)
		if (items[i].kind != FIELD_POINTER || size < 8 ||
		    items[i].off > size - 8)
			return false;
	return true;
}

static void build(struct fields *f, uint32_t type)
{
	struct builder b = {
		.f = f, .steps = (uint32_t)min_u64(MAX_STEPS, f->steps),
	};
	uint32_t steps = b.steps;
	struct fields_of *of;

	add_type(&b, type, 0, (struct context){ 0 });
	f->steps -= steps - b.steps;
	if (b.n > FIELDS_MAX)
		b.n = FIELDS_MAX;
	SORT(b.items, b.n, by_off);
	drop_unclear(b.items, b.n);
	of = &f->of[type];
	*of = (struct fields_of){
		(uint32_t)f->n, (uint32_t)b.n, true,
		are_plain(b.items, b.n, dwarf_type_size(f->t, type)),
	};
	for (size_t i = 0; i < b.n; i++)
		MEM_PUSH(f->items, f->n, f->cap) = b.items[i];
	free(b.items);
}

void fields_learn(struct fields *f, uint32_t type)
{
	if (type >= f->n_of) {
		size_t n = type + type / 2 + 1024;

		f->of = mem_realloc(f->of, n * sizeof(*f->of));
		memset(f->of + f->n_of, 0, (n - f->n_of) * sizeof(*f->of));
		f->n_of = n;
	}
	if (!f->of[type].known)
		build(f, type);
}

uint32_t fields_raw_value(struct dwarf_types *t, uint32_t type)
{
	const struct dtype *ty = dwarf_type_head(t, type);
	struct str name;
	bool is;

	if (ty->kind != DTYPE_STRUCT || !ty->name)
		return 0;
	str_init(&name);
	dwarf_type_name(t, type, &name);
	is = is_raw_value(name.text);
	str_fini(&name);
	ty = is ? dwarf_type(t, type) : NULL;
	return ty && ty->n_args ? t->args[ty->args] : 0;
}
