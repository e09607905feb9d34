/* SPDX-License-Identifier: MIT */
/*
 * One pass over the entries of a module: where aggregates and variables are.
 */
#include <dwarf.h>

#include "base/mem.h"
#include "corewalk/dwarf_names.h"

enum { MAX_UNITS = 1 << 22, MAX_VARS = 1 << 24, MAX_ENTRIES = 1 << 26 };

/* One unit on its way. */
struct pass {
	struct dwarf_types *t;
	uint32_t file;
	uint64_t budget;	/* entries that its bytes can hold */
};

static void visit_children(struct pass *p, Dwarf_Die *die, uint32_t scope,
			   unsigned depth);

/* ---- variables ---- */

/* An address that stands alone; false if that is not where it is. */
static bool fixed_address(Dwarf_Attribute *at, uint64_t *ret, bool *ret_tls)
{
	Dwarf_Op *ops;
	size_t n;
	Dwarf_Addr addr;
	Dwarf_Attribute part;

	if (dwarf_getlocation(at, &ops, &n) || !n)
		return false;
	*ret_tls = false;
	*ret = ops[0].number;
	if (n == 1 && ops[0].atom == DW_OP_addr)
		return true;
	if (n == 1 && (ops[0].atom == DW_OP_addrx ||
		       ops[0].atom == DW_OP_GNU_addr_index) &&
	    !dwarf_getlocation_attr(at, &ops[0], &part) &&
	    !dwarf_formaddr(&part, &addr)) {
		*ret = addr;
		return true;
	}
	*ret_tls = true;
	return n == 2 && (ops[0].atom == DW_OP_const8u ||
			  ops[0].atom == DW_OP_const4u) &&
	       (ops[1].atom == DW_OP_form_tls_address ||
		ops[1].atom == DW_OP_GNU_push_tls_address);
}

/*
 * What is defined apart from its declaration, as variables of a class and what
 * is in type units, is in the declaration's scope.
 */
static uint32_t scope_of(struct pass *p, Dwarf_Die *die, uint32_t scope)
{
	Dwarf_Attribute at;
	Dwarf_Die spec;
	uint32_t name;

	if (!dwarf_attr(die, DW_AT_specification, &at) ||
	    !dwarf_formref_die(&at, &spec))
		return scope;
	name = map_get(&p->t->entries, dwarf_key(spec.addr));
	return name ? p->t->names[name].scope : scope;
}

static void note_var(struct pass *p, Dwarf_Die *die, uint32_t scope)
{
	struct dwarf_types *t = p->t;
	Dwarf_Attribute at;
	struct dvar v = { .die = die->addr, .file = p->file };
	unsigned form;

	if (!dwarf_attr(die, DW_AT_location, &at))
		return;
	/* Others are lists, of locals. */
	form = dwarf_whatform(&at);
	if (form != DW_FORM_exprloc && form != DW_FORM_block1)
		return;
	if (!fixed_address(&at, &v.addr, &v.tls))
		return;
	if (t->n_vars >= MAX_VARS) {
		t->n_skipped++;
		return;
	}
	if (!v.tls)
		v.addr += t->files[p->file].bias;
	v.scope = scope_of(p, die, scope);
	MEM_PUSH(t->vars, t->n_vars, t->cap_vars) = v;
}

/* ---- names ---- */

static bool is_declaration(Dwarf_Die *die)
{
	return dwarf_hasattr(die, DW_AT_declaration);
}

/* Its number, noted for who refers to the entry; 0 if it has no name. */
static uint32_t note_name(struct pass *p, Dwarf_Die *die, uint32_t scope,
			  bool defines)
{
	struct dwarf_types *t = p->t;
	const char *text = dwarf_diename(die);
	bool alias = dwarf_tag(die) == DW_TAG_typedef;
	uint32_t name;

	if (!text || !*text || t->entries.n >= MAX_ENTRIES)
		return 0;
	name = dwarf_name_add(t, scope, text);
	if (!name)
		return 0;
	map_put(&t->entries, dwarf_key(die->addr), name);
	if (defines && (!t->names[name].die ||
			(t->names[name].alias && !alias))) {
		t->names[name].die = die->addr;
		t->names[name].file = p->file;
		t->names[name].alias = alias;
	}
	return name;
}

static void visit_aggregate(struct pass *p, Dwarf_Die *die, uint32_t scope,
			    unsigned depth)
{
	uint32_t name = note_name(p, die, scope_of(p, die, scope),
				  !is_declaration(die));

	visit_children(p, die, name, depth);
}

static void visit_namespace(struct pass *p, Dwarf_Die *die, uint32_t scope,
			    unsigned depth)
{
	const char *text = dwarf_diename(die);
	uint32_t name = dwarf_name_add(p->t, scope, text && *text ? text :
				       "(anonymous namespace)");

	visit_children(p, die, name, depth);
}

/* Types and variables that are local to it. */
static void visit_function(struct pass *p, Dwarf_Die *die, uint32_t scope,
			   unsigned depth)
{
	const char *text = dwarf_diename(die);

	if (is_declaration(die))
		return;
	if (text && *text)
		scope = dwarf_name_add(p->t, scope_of(p, die, scope), text);
	visit_children(p, die, scope, depth);
}

static void visit(struct pass *p, Dwarf_Die *die, uint32_t scope,
		  unsigned depth)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
		visit_aggregate(p, die, scope, depth);
		break;
	case DW_TAG_namespace:
		visit_namespace(p, die, scope, depth);
		break;
	case DW_TAG_subprogram:
		visit_function(p, die, scope, depth);
		break;
	case DW_TAG_lexical_block:
		visit_children(p, die, scope, depth);
		break;
	case DW_TAG_typedef:
	case DW_TAG_enumeration_type:
		note_name(p, die, scope, !is_declaration(die));
		break;
	case DW_TAG_variable:
		if (is_declaration(die))
			note_name(p, die, scope, false);
		note_var(p, die, scope);
		break;
	case DW_TAG_member:
		/* A static one, which is defined elsewhere. */
		if (is_declaration(die))
			note_name(p, die, scope, false);
		break;
	}
}

static void visit_children(struct pass *p, Dwarf_Die *die, uint32_t scope,
			   unsigned depth)
{
	Dwarf_Die child;

	if (depth >= DWARF_MAX_CHAIN || dwarf_child(die, &child))
		return;
	do {
		if (!p->budget) {
			p->t->n_skipped++;
			return;
		}
		p->budget--;
		p->t->n_entries++;
		visit(p, &child, scope, depth + 1);
	} while (dwarf_forward(&child));
}

/* ---- units ---- */

static void visit_units(struct dwarf_types *t, uint32_t file, bool types)
{
	Dwarf *dw = t->files[file].dw;
	Dwarf_Off off = 0, next, abbrev, type_off;
	uint64_t signature;
	size_t header;
	Dwarf_Half version;
	uint8_t address, offset;

	for (unsigned i = 0; i < MAX_UNITS; i++) {
		struct pass p = { .t = t, .file = file };
		Dwarf_Die die;

		if (dwarf_next_unit(dw, off, &next, &header, &version, &abbrev,
				    &address, &offset,
				    types ? &signature : NULL,
				    types ? &type_off : NULL) || next <= off)
			return;
		p.budget = next - off;
		t->word = address == 4 ? 4 : 8;
		if (types ? dwarf_offdie_types(dw, off + header, &die) :
			    dwarf_offdie(dw, off + header, &die)) {
			t->n_split += dwarf_hasattr(&die, DW_AT_dwo_name) ||
				dwarf_hasattr(&die, DW_AT_GNU_dwo_name);
			visit_children(&p, &die, 0, 0);
		} else {
			t->n_skipped++;
		}
		off = next;
	}
}

static void add_file(struct dwarf_types *t, Dwarf *dw, vaddr bias,
		     uint32_t module)
{
	uint32_t file = (uint32_t)t->n_files;

	MEM_PUSH(t->files, t->n_files, t->cap_files) =
		(struct dwarf_file){ dw, bias, module };
	visit_units(t, file, false);
	visit_units(t, file, true);
}

bool dwarf_types_add(struct dwarf_types *t, Dwarf *dw, vaddr bias,
		     uint32_t module)
{
	uint64_t before = t->n_entries;
	Dwarf *alt = dwarf_getalt(dw);

	if (alt)
		add_file(t, alt, bias, module);
	add_file(t, dw, bias, module);
	return t->n_entries > before;
}
