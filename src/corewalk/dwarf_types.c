/* SPDX-License-Identifier: MIT */
#include "corewalk/dwarf_types.h"

#include <dwarf.h>
#include <string.h>

#include "base/mem.h"
#include "corewalk/dwarf_names.h"

/* Elements of an array that a size may speak of. */
enum { DWARF_MAX_DEPTH = 8 };	/* of bases and parts without a name */
#define MAX_ELEMENTS (UINT64_C(1) << 32)

void dwarf_types_init(struct dwarf_types *t)
{
	*t = (struct dwarf_types){ .word = 8 };
	dwarf_names_init(t);
	MEM_PUSH(t->types, t->n_types, t->cap_types) = (struct dtype){ 0 };
}

void dwarf_types_fini(struct dwarf_types *t)
{
	dwarf_names_fini(t);
	map_fini(&t->entries);
	map_fini(&t->known);
	map_fini(&t->derived);
	map_fini(&t->classes);
	free(t->types);
	free(t->members);
	free(t->args);
	free(t->vars);
	free(t->files);
	*t = (struct dwarf_types){ 0 };
}

/* ---- attributes ---- */

static bool constant(Dwarf_Die *die, unsigned name, uint64_t *ret)
{
	Dwarf_Attribute at;
	Dwarf_Word word;

	if (!dwarf_attr(die, name, &at) || dwarf_formudata(&at, &word))
		return false;
	*ret = word;
	return true;
}

static bool flag(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute at;
	bool set;

	return dwarf_attr(die, name, &at) && !dwarf_formflag(&at, &set) && set;
}

static bool refers(Dwarf_Die *die, unsigned name, Dwarf_Die *ret)
{
	Dwarf_Attribute at;

	return dwarf_attr(die, name, &at) && dwarf_formref_die(&at, ret);
}

/* ---- making types ---- */

static uint32_t new_type(struct dwarf_types *t, const struct dtype *type)
{
	if (t->n_types >= DWARF_MAX_TYPES) {
		t->n_skipped++;
		return DWARF_NO_TYPE;
	}
	MEM_PUSH(t->types, t->n_types, t->cap_types) = *type;
	return (uint32_t)t->n_types - 1;
}

/* Pointers and arrays are one if what they are of is. */
static uint32_t derive(struct dwarf_types *t, enum dtype_kind kind,
		       uint32_t target, uint64_t n, uint64_t size)
{
	uint64_t key = (uint64_t)(kind == DTYPE_ARRAY ? 3 : 2) << 62 |
		       (uint64_t)target << 34 | (n & (MAX_ELEMENTS * 4 - 1));
	uint32_t type = map_get(&t->derived, key);

	if (type)
		return type;
	type = new_type(t, &(struct dtype){
		.kind = kind, .target = target, .n = n, .size = size,
		.flags = DTYPE_LOADED });
	map_put(&t->derived, key, type);
	return type;
}

uint32_t dwarf_pointer_to(struct dwarf_types *t, uint32_t target)
{
	return derive(t, DTYPE_POINTER, target, 0, t->word);
}

static uint32_t make_pointer(struct dwarf_types *t, Dwarf_Die *die, bool ref)
{
	uint32_t target = dwarf_type_of(t, die);
	uint32_t type = derive(t, DTYPE_POINTER, target, ref, t->word);

	if (ref)
		t->types[type].flags |= DTYPE_REFERENCE;
	return type;
}

/* 0: it has no bound. */
static uint64_t elements(Dwarf_Die *range)
{
	uint64_t n;

	if (constant(range, DW_AT_count, &n))
		return n < MAX_ELEMENTS ? n : 0;
	if (constant(range, DW_AT_upper_bound, &n))
		return n + 1 < MAX_ELEMENTS ? n + 1 : 0;
	return 0;
}

/* Of several dimensions, all elements count; one without a bound is outer. */
static uint32_t make_array(struct dwarf_types *t, Dwarf_Die *die)
{
	uint32_t element = dwarf_type_of(t, die);
	uint64_t n = 1, size;
	Dwarf_Die child, next;
	bool open = false, any = false;

	if (!dwarf_child(die, &child)) {
		for (unsigned i = 0; i < DWARF_MAX_CHAIN; i++) {
			uint64_t m = dwarf_tag(&child) == DW_TAG_subrange_type
				? elements(&child) : 1;

			any |= dwarf_tag(&child) == DW_TAG_subrange_type;
			open |= !m;
			if (m && (!mul_ok(n, m, &n) || n >= MAX_ELEMENTS))
				return DWARF_NO_TYPE;
			if (dwarf_siblingof(&child, &next))
				break;
			child = next;
		}
	}
	if (open || !any)
		n = 0;
	if (!mul_ok(n, dwarf_type_size(t, element), &size))
		return DWARF_NO_TYPE;
	return derive(t, DTYPE_ARRAY, element, n, size);
}

/* Of that name, kind and size, made if it is new. */
static uint32_t named_type(struct dwarf_types *t, uint32_t name,
			   const struct dtype *like)
{
	struct dtype type = *like;
	uint32_t id = name ? t->names[name].type : 0;

	for (unsigned i = 0; id && i < DWARF_MAX_CHAIN; i++) {
		struct dtype *old = &t->types[id];

		if (old->kind == type.kind && old->size == type.size) {
			/* An entry in a type unit may be an outline only. */
			if (!old->die.addr)
				old->die = type.die;
			return id;
		}
		id = old->same_name;
	}
	type.name = name;
	type.same_name = name ? t->names[name].type : 0;
	id = new_type(t, &type);
	if (name && id)
		t->names[name].type = id;
	return id;
}

static uint32_t make_scalar(struct dwarf_types *t, Dwarf_Die *die)
{
	struct dtype type = { .kind = DTYPE_SCALAR, .flags = DTYPE_LOADED };
	const char *text = dwarf_diename(die);
	uint64_t encoding = 0;
	uint32_t name = map_get(&t->entries, dwarf_key(die->addr));

	constant(die, DW_AT_byte_size, &type.size);
	constant(die, DW_AT_encoding, &encoding);
	if (type.size == 1 && (encoding == DW_ATE_signed_char ||
			       encoding == DW_ATE_unsigned_char ||
			       encoding == DW_ATE_UTF))
		type.kind = DTYPE_CHAR;
	if (encoding == DW_ATE_float)
		type.flags |= DTYPE_FLOAT;
	if (encoding == DW_ATE_signed || encoding == DW_ATE_signed_char)
		type.flags |= DTYPE_SIGNED;
	if (!name && text && *text)
		name = dwarf_name_add(t, 0, text);
	return named_type(t, name, &type);
}

/*
 * A declaration is what some unit defines by that name; a type unit defines
 * what a signature leads to.
 */
static uint32_t declared(struct dwarf_types *t, Dwarf_Die *die, uint32_t name,
			 enum dtype_kind kind)
{
	Dwarf_Die other;

	if (refers(die, DW_AT_signature, &other) && other.addr != die->addr)
		return dwarf_type_of_entry(t, &other);
	if (!name)
		return DWARF_NO_TYPE;
	if (t->names[name].die && !t->names[name].alias &&
	    t->names[name].die != die->addr &&
	    dwarf_die_addr_die(t->files[t->names[name].file].dw,
			       t->names[name].die, &other))
		return dwarf_type_of_entry(t, &other);
	return named_type(t, name, &(struct dtype){ .kind = kind,
						     .flags = DTYPE_LOADED });
}

/* alias: the typedef that led here, which names what has no name. */
static uint32_t make_aggregate(struct dwarf_types *t, Dwarf_Die *die,
			       const char *alias)
{
	struct dtype type = {
		.kind = dwarf_tag(die) == DW_TAG_union_type ? DTYPE_UNION
							    : DTYPE_STRUCT,
		.die = *die,
	};
	uint32_t name = map_get(&t->entries, dwarf_key(die->addr));

	/* A stub for what a type unit defines may be nothing else. */
	if (flag(die, DW_AT_declaration) ||
	    dwarf_hasattr(die, DW_AT_signature))
		return declared(t, die, name, type.kind);
	if (!name && alias)
		name = dwarf_name_add(t, 0, alias);
	constant(die, DW_AT_byte_size, &type.size);
	if (dwarf_hasattr(die, DW_AT_containing_type))
		type.flags |= DTYPE_VIRTUAL;
	return named_type(t, name, &type);
}

static uint32_t make(struct dwarf_types *t, Dwarf_Die *die, const char *alias)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_base_type:
	case DW_TAG_enumeration_type:
		return make_scalar(t, die);
	case DW_TAG_pointer_type:
		return make_pointer(t, die, false);
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		return make_pointer(t, die, true);
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
		return make_aggregate(t, die, alias);
	case DW_TAG_array_type:
		return make_array(t, die);
	case DW_TAG_subroutine_type:
		return new_type(t, &(struct dtype){ .kind = DTYPE_FUNCTION,
						    .flags = DTYPE_LOADED });
	case DW_TAG_ptr_to_member_type:
		return named_type(t, 0, &(struct dtype){
			.kind = DTYPE_SCALAR, .flags = DTYPE_LOADED,
			.size = 8 });
	default:
		return DWARF_NO_TYPE;
	}
}

/* Through typedef, const and the like; *ret_alias: the last typedef's name. */
static bool peel(Dwarf_Die *die, const char **ret_alias)
{
	for (unsigned i = 0; i < DWARF_MAX_CHAIN; i++) {
		Dwarf_Die next;

		switch (dwarf_tag(die)) {
		case DW_TAG_typedef:
			*ret_alias = dwarf_diename(die);
			break;
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
		case DW_TAG_subrange_type:
			break;
		default:
			return true;
		}
		if (!refers(die, DW_AT_type, &next))
			return false;
		*die = next;
	}
	return false;
}

uint32_t dwarf_type_of_entry(struct dwarf_types *t, const Dwarf_Die *entry)
{
	uint32_t type = map_get(&t->known, dwarf_key(entry->addr));
	const char *alias = NULL;
	Dwarf_Die die = *entry;

	if (type)
		return type - 1;
	if (t->depth >= DWARF_MAX_CHAIN) {
		t->n_skipped++;
		return DWARF_NO_TYPE;
	}
	t->depth++;
	if (peel(&die, &alias)) {
		type = map_get(&t->known, dwarf_key(die.addr));
		type = type ? type - 1 : make(t, &die, alias);
	}
	t->depth--;
	/* What was cut off for its depth is not known for good. */
	if (type || !t->depth) {
		map_put(&t->known, dwarf_key(entry->addr), type + 1);
		map_put(&t->known, dwarf_key(die.addr), type + 1);
	}
	return type;
}

uint32_t dwarf_type_of(struct dwarf_types *t, Dwarf_Die *die)
{
	Dwarf_Attribute at;
	Dwarf_Die other;

	if (!dwarf_attr_integrate(die, DW_AT_type, &at) ||
	    !dwarf_formref_die(&at, &other))
		return DWARF_NO_TYPE;
	return dwarf_type_of_entry(t, &other);
}

uint32_t dwarf_var_type(struct dwarf_types *t, const struct dvar *v)
{
	Dwarf_Die die;

	if (!dwarf_die_addr_die(t->files[v->file].dw, v->die, &die))
		return DWARF_NO_TYPE;
	return dwarf_type_of(t, &die);
}

/* ---- members ---- */

/* One aggregate on its way; members of others may be read meanwhile. */
struct loading {
	struct dmember *members;	/* owned */
	size_t n_members, cap_members;
	uint32_t *args;			/* owned */
	size_t n_args, cap_args;
	uint64_t size;
	bool is_union, flexible, is_virtual;
};

/* False: at no fixed place. */
static bool member_place(Dwarf_Die *die, struct dmember *m, uint64_t size,
			 bool is_union)
{
	Dwarf_Attribute at;
	Dwarf_Op *ops;
	size_t n;
	uint64_t bits = 0, bit;

	constant(die, DW_AT_bit_size, &bits);
	m->bits = bits < 64 ? (uint8_t)bits : 0;
	if (constant(die, DW_AT_data_bit_offset, &bit)) {
		/* From the start of the word that holds it. */
		if (!size || size > 8)
			return false;
		m->off = bit / (8 * size) * size;
		m->bit = (uint8_t)(bit % (8 * size));
		return true;
	}
	if (!dwarf_attr(die, DW_AT_data_member_location, &at))
		return is_union;
	if (constant(die, DW_AT_data_member_location, &m->off)) {
		/* Before DWARF 5: bits are counted from the unit's end. */
		if (bits && constant(die, DW_AT_bit_offset, &bit) && size &&
		    size <= 8 && bit + bits <= size * 8)
			m->bit = (uint8_t)(size * 8 - bit - bits);
		return true;
	}
	if (dwarf_getlocation(&at, &ops, &n) || n != 1 ||
	    ops[0].atom != DW_OP_plus_uconst)
		return false;
	m->off = ops[0].number;
	return true;
}

static void load_member(struct dwarf_types *t, struct loading *l,
			Dwarf_Die *die, bool base)
{
	const char *name = dwarf_diename(die);
	struct dmember m = { .name = name && !base ? name : "", .base = base };
	const struct dtype *type;

	if (dwarf_hasattr(die, DW_AT_external) ||
	    flag(die, DW_AT_declaration) ||
	    dwarf_hasattr(die, DW_AT_const_value))
		return;
	m.type = dwarf_type_of(t, die);
	type = dwarf_type_head(t, m.type);
	if (!member_place(die, &m, type->size, l->is_union) ||
	    m.off > l->size || type->size > l->size - m.off) {
		/* A base that is empty takes no room. */
		if (!base)
			t->n_skipped++;
		return;
	}
	if (!strncmp(m.name, "_vptr", 5))
		l->is_virtual = true;
	if (type->kind == DTYPE_ARRAY && !type->n && !l->is_union)
		l->flexible = true;
	MEM_PUSH(l->members, l->n_members, l->cap_members) = m;
}

static void load_args(struct dwarf_types *t, struct loading *l,
		      Dwarf_Die *pack)
{
	Dwarf_Die child;

	if (l->n_args >= DWARF_MAX_ARGS || dwarf_child(pack, &child))
		return;
	do {
		if (dwarf_tag(&child) == DW_TAG_template_type_parameter)
			MEM_PUSH(l->args, l->n_args, l->cap_args) =
				dwarf_type_of(t, &child);
	} while (l->n_args < DWARF_MAX_ARGS && dwarf_forward(&child));
}

static void load_child(struct dwarf_types *t, struct loading *l,
		       Dwarf_Die *child)
{
	switch (dwarf_tag(child)) {
	case DW_TAG_member:
		load_member(t, l, child, false);
		break;
	case DW_TAG_inheritance:
		load_member(t, l, child, true);
		break;
	case DW_TAG_template_type_parameter:
		if (l->n_args < DWARF_MAX_ARGS)
			MEM_PUSH(l->args, l->n_args, l->cap_args) =
				dwarf_type_of(t, child);
		break;
	case DW_TAG_GNU_template_parameter_pack:
		load_args(t, l, child);
		break;
	}
}

static void keep(struct dwarf_types *t, struct loading *l, uint32_t type)
{
	struct dtype *ty = &t->types[type];

	ty->members = (uint32_t)t->n_members;
	ty->n_members = (uint32_t)l->n_members;
	for (size_t i = 0; i < l->n_members; i++)
		MEM_PUSH(t->members, t->n_members, t->cap_members) =
			l->members[i];
	ty->args = (uint32_t)t->n_args;
	ty->n_args = (uint32_t)l->n_args;
	for (size_t i = 0; i < l->n_args; i++)
		MEM_PUSH(t->args, t->n_args, t->cap_args) = l->args[i];
	if (l->is_virtual)
		ty->flags |= DTYPE_VIRTUAL;
	if (l->flexible)
		ty->flags |= DTYPE_FLEXIBLE;
	free(l->members);
	free(l->args);
}

static void load(struct dwarf_types *t, uint32_t type)
{
	struct loading l = {
		.size = t->types[type].size,
		.is_union = t->types[type].kind == DTYPE_UNION,
	};
	Dwarf_Die die = t->types[type].die, child;

	t->types[type].flags |= DTYPE_LOADED;
	if (!die.addr || dwarf_child(&die, &child))
		return;
	do {
		if (l.n_members >= DWARF_MAX_MEMBERS) {
			t->n_skipped++;
			break;
		}
		load_child(t, &l, &child);
	} while (dwarf_forward(&child));
	keep(t, &l, type);
}

const struct dtype *dwarf_type(struct dwarf_types *t, uint32_t type)
{
	if (type >= t->n_types)
		type = DWARF_NO_TYPE;
	if (!(t->types[type].flags & DTYPE_LOADED))
		load(t, type);
	return &t->types[type];
}

static bool find_in(struct dwarf_types *t, uint32_t type, const char *name,
		    size_t len, unsigned depth, unsigned *budget,
		    struct dmember *ret)
{
	struct dtype ty = *dwarf_type(t, type);

	for (uint32_t i = 0; i < ty.n_members && *budget; i++, --*budget) {
		struct dmember m = t->members[ty.members + i];

		if (!strncmp(m.name, name, len) && !m.name[len]) {
			*ret = m;
			return true;
		}
		if (!*m.name && depth < DWARF_MAX_DEPTH &&
		    find_in(t, m.type, name, len, depth + 1, budget, ret)) {
			ret->off += m.off;
			return true;
		}
	}
	return false;
}

bool dwarf_find_member(struct dwarf_types *t, uint32_t type, const char *name,
		       size_t len, struct dmember *ret)
{
	unsigned budget = DWARF_MAX_MEMBERS;

	return len && find_in(t, type, name, len, 0, &budget, ret);
}

/* ---- names ---- */

void dwarf_type_name(struct dwarf_types *t, uint32_t type, struct str *s)
{
	uint32_t chain[DWARF_MAX_CHAIN];
	unsigned n = 0;
	const struct dtype *ty = dwarf_type_head(t, type);

	for (; n < DWARF_MAX_CHAIN && (ty->kind == DTYPE_POINTER ||
				       ty->kind == DTYPE_ARRAY);
	     ty = dwarf_type_head(t, type)) {
		chain[n++] = type;
		type = ty->target;
	}
	if (ty->kind == DTYPE_FUNCTION)
		str_adds(s, "function");
	else if (ty->name)
		dwarf_name_text(t, ty->name, s);
	else
		str_adds(s, ty->kind == DTYPE_NONE ? "void" :
			 ty->kind == DTYPE_UNION ? "(anonymous union)" :
			 ty->kind == DTYPE_STRUCT ? "(anonymous struct)" :
			 "(number)");
	while (n) {
		ty = dwarf_type_head(t, chain[--n]);
		if (ty->kind == DTYPE_POINTER)
			str_adds(s, ty->flags & DTYPE_REFERENCE ? " &" :
				 " *");
		else if (ty->n)
			str_printf(s, " [%llu]", (unsigned long long)ty->n);
		else
			str_adds(s, " []");
	}
}
