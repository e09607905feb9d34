/* SPDX-License-Identifier: MIT */
/*
 * The members of the structure that an address lies in, and their values.
 */
#include "report/build.h"

#include <inttypes.h>
#include <string.h>

#include "analysis/refs.h"
#include "analysis/typed.h"

enum { M_NAME, M_OFFSET, M_VALUE, M_LEADS, M_TYPE, M_COLUMNS };
enum {
	MAX_ROWS = 256,
	MAX_STEPS = 1 << 16,
	MAX_DEPTH = 6,		/* of structures in structures */
	MAX_ELEMENTS = 4,	/* of an array that is shown */
	TEXT_SHOWN = 32,
};

static const struct column member_columns[M_COLUMNS] = {
	[M_NAME] = COLUMN("name", "", TEXT, .flags = COLUMN_RAW),
	[M_OFFSET] = COLUMN("offset", "at", COUNT),
	[M_VALUE] = COLUMN("value", "value", TEXT,
			   .flags = COLUMN_CONTENT),
	[M_LEADS] = COLUMN("leads_to", "which is", TEXT,
			   .flags = COLUMN_RAW | COLUMN_LEFT),
	[M_TYPE] = COLUMN("type", "", TEXT,
			  .flags = COLUMN_RAW | COLUMN_NO_TEXT),
};

/* One structure on its way into the table. */
struct walk {
	struct table *t;
	struct typed *ty;
	struct refs_names *names;
	struct str path;
	vaddr start;		/* of the outermost */
	unsigned steps;		/* that are left */
};

static void add_type(struct walk *w, uint32_t type, vaddr addr);

static void new_row(struct walk *w, uint32_t type, vaddr addr)
{
	struct str s;

	str_init(&s);
	dwarf_type_name(&w->ty->t, type, &s);
	table_row(w->t);
	table_set_bytes(w->t, M_NAME, w->path.text, w->path.len);
	table_set(w->t, M_OFFSET, addr - w->start);
	table_set_bytes(w->t, M_TYPE, s.text, s.len);
	str_fini(&s);
}

/* ---- values ---- */

static void add_pointer(struct walk *w, uint32_t type, vaddr addr)
{
	struct spread *sp = &w->ty->spread;
	uint64_t value;
	uint32_t block;
	struct str s;

	new_row(w, type, addr);
	if (!space_word(sp->sp, addr, &value))
		return;
	table_printf(w->t, M_VALUE, "0x%" PRIx64, value);
	str_init(&s);
	block = index_find(sp->ix, value);
	if (block && sp->blocks[block].fit)
		spread_name(sp, sp->blocks[block].type, &s);
	else if (block)
		str_adds(&s, "a block");
	else
		refs_symbol_text(w->names, value, &s);
	if (block && index_start(sp->ix, value) != value)
		str_printf(&s, " +%" PRIu64, value -
			   index_start(sp->ix, value));
	if (s.len)
		table_set_bytes(w->t, M_LEADS, s.text, s.len);
	str_fini(&s);
}

static void float_text(const uint8_t *bytes, uint64_t size, struct str *ret)
{
	float f;
	double d;

	if (size == sizeof(f)) {
		memcpy(&f, bytes, sizeof(f));
		str_printf(ret, "%g", (double)f);
	} else if (size == sizeof(d)) {
		memcpy(&d, bytes, sizeof(d));
		str_printf(ret, "%g", d);
	}
}

static void integer_text(const struct dtype *ty, const uint8_t *bytes,
			 const struct dmember *m, struct str *ret)
{
	uint64_t value = 0;
	unsigned bits = (unsigned)ty->size * 8;

	if (ty->size > 8)
		return;
	memcpy(&value, bytes, ty->size);
	if (m && m->bits) {
		value >>= m->bit;
		bits = m->bits;
	}
	if (bits < 64)
		value &= (UINT64_C(1) << bits) - 1;
	if (ty->flags & DTYPE_SIGNED && value >> (bits - 1) & 1)
		str_printf(ret, "%" PRId64, (int64_t)
			   (value | (bits < 64 ? ~UINT64_C(0) << bits : 0)));
	else
		str_printf(ret, "%" PRIu64, value);
}

/* Nothing if it is not in the file, or of a size that is not known. */
static void number_text(struct space *sp, const struct dtype *ty, vaddr addr,
			const struct dmember *m, struct str *ret)
{
	uint8_t bytes[16] = { 0 };

	if (!ty->size || ty->size > sizeof(bytes) ||
	    space_read(sp, addr, bytes, ty->size) != ty->size)
		return;
	if (ty->flags & DTYPE_FLOAT)
		float_text(bytes, ty->size, ret);
	else
		integer_text(ty, bytes, m, ret);
}

static void add_number(struct walk *w, uint32_t type, vaddr addr,
		       const struct dmember *m)
{
	struct str s;

	new_row(w, type, addr);
	str_init(&s);
	number_text(w->ty->spread.sp, dwarf_type_head(&w->ty->t, type), addr,
		    m, &s);
	if (s.len)
		table_set_bytes(w->t, M_VALUE, s.text, s.len);
	str_fini(&s);
}

/* Up to its zero. */
static void add_text(struct walk *w, uint32_t type, vaddr addr, uint64_t n)
{
	char bytes[TEXT_SHOWN];
	struct str s;

	new_row(w, type, addr);
	n = space_read(w->ty->spread.sp, addr, bytes,
		       min_u64(n, TEXT_SHOWN));
	str_init(&s);
	str_addc(&s, '"');
	str_add_escaped(&s, bytes, strnlen(bytes, n));
	str_adds(&s, n == TEXT_SHOWN && strnlen(bytes, n) == n ? "..." :
		 "\"");
	table_set_bytes(w->t, M_VALUE, s.text, s.len);
	str_fini(&s);
}

/* ---- structures ---- */

static void add_array(struct walk *w, uint32_t type, vaddr addr)
{
	struct dtype ty = *dwarf_type_head(&w->ty->t, type);
	const struct dtype *element = dwarf_type_head(&w->ty->t, ty.target);
	size_t len = w->path.len;

	if (element->kind == DTYPE_CHAR) {
		add_text(w, type, addr, ty.n ? ty.n : TEXT_SHOWN);
		return;
	}
	if (!ty.n || !element->size) {
		new_row(w, type, addr);
		return;
	}
	for (uint64_t i = 0; i < min_u64(ty.n, MAX_ELEMENTS); i++) {
		str_printf(&w->path, "[%" PRIu64 "]", i);
		add_type(w, ty.target, addr + i *
			 dwarf_type_size(&w->ty->t, ty.target));
		w->path.len = len;
		w->path.text[len] = 0;
	}
}

/* Of a container's raw bytes: as if the value in them were declared so. */
static struct dmember member(struct typed *ty, const struct dtype *of,
			     uint32_t i)
{
	struct dmember m = ty->t.members[of->members + i];
	uint32_t value = fields_raw_value(&ty->t, m.type);

	if (value)
		m.type = value;
	return m;
}

static void add_members(struct walk *w, uint32_t type, vaddr addr,
			unsigned depth)
{
	struct dtype ty = *dwarf_type(&w->ty->t, type);

	for (uint32_t i = 0; i < ty.n_members; i++) {
		struct dmember m = member(w->ty, &ty, i);
		const struct dtype *of = dwarf_type_head(&w->ty->t, m.type);
		size_t len = w->path.len;

		if (w->t->n_rows >= MAX_ROWS || !w->steps)
			return;
		w->steps--;
		if (*m.name)
			str_printf(&w->path, "%s%s", len ? "." : "", m.name);
		if (m.bits)
			add_number(w, m.type, addr + m.off, &m);
		else if (of->kind == DTYPE_STRUCT || of->kind == DTYPE_UNION) {
			if (depth < MAX_DEPTH)
				add_members(w, m.type, addr + m.off,
					    depth + 1);
		} else {
			add_type(w, m.type, addr + m.off);
		}
		w->path.len = len;
		if (w->path.text)
			w->path.text[len] = 0;
	}
}

static void add_type(struct walk *w, uint32_t type, vaddr addr)
{
	if (w->t->n_rows >= MAX_ROWS)
		return;
	switch (dwarf_type_head(&w->ty->t, type)->kind) {
	case DTYPE_POINTER:
		add_pointer(w, type, addr);
		break;
	case DTYPE_SCALAR:
	case DTYPE_CHAR:
		add_number(w, type, addr, NULL);
		break;
	case DTYPE_ARRAY:
		add_array(w, type, addr);
		break;
	case DTYPE_STRUCT:
	case DTYPE_UNION:
		add_members(w, type, addr, MAX_DEPTH - 1);
		break;
	}
}

/* The structure that --at is in, by its type; 0: it is none we know. */
static uint32_t structure_at(const struct report_input *in, vaddr *ret_start)
{
	struct typed *ty = in->typed;
	const struct damage_at *at = in->at;
	uint32_t block, type;
	uint64_t size;
	bool array;

	if (!ty || !ty->any || !at->has_block)
		return 0;
	block = index_find(ty->spread.ix, at->block.addr);
	type = block ? ty->spread.blocks[block].type : 0;
	array = type & SPREAD_ARRAY;
	type &= ~(uint32_t)SPREAD_ARRAY;
	if (!type || type >= SPREAD_STRING)
		return 0;
	size = dwarf_type_size(&ty->t, type);
	if (!dwarf_type(&ty->t, type)->n_members || !size ||
	    size > at->block.usable)
		return 0;
	*ret_start = at->block.addr;
	/* Of an array, the element. */
	if (array && at->offset > 0)
		*ret_start += (uint64_t)at->offset / size * size;
	if (*ret_start + size > at->block.addr + at->block.usable)
		*ret_start = at->block.addr;
	return type;
}

/* The member of a structure that *off is in; *off is then the place in it. */
static uint32_t member_over(struct typed *ty, uint32_t type, uint64_t *off)
{
	struct dtype of = *dwarf_type(&ty->t, type);

	for (uint32_t i = 0; i < of.n_members; i++) {
		struct dmember m = member(ty, &of, i);

		if (m.bits || *off < m.off ||
		    *off - m.off >= dwarf_type_size(&ty->t, m.type))
			continue;
		/* An empty base has no place of its own. */
		if (m.base && !dwarf_type(&ty->t, m.type)->n_members)
			continue;
		*off -= m.off;
		return m.type;
	}
	return 0;
}

/* The type of what begins at off of a structure; 0: nothing does. */
static uint32_t type_at(struct typed *ty, uint32_t type, uint64_t off)
{
	for (unsigned depth = 0; type && depth < MAX_STEPS; depth++) {
		struct dtype of = *dwarf_type_head(&ty->t, type);
		uint64_t size;

		if (of.kind == DTYPE_STRUCT) {
			type = member_over(ty, type, &off);
		} else if (of.kind == DTYPE_ARRAY) {
			size = dwarf_type_size(&ty->t, of.target);
			if (!size)
				return 0;
			type = of.target;
			off %= size;
		} else {
			return off ? 0 : type;
		}
	}
	return 0;
}

uint64_t build_at_number(const struct report_input *in, vaddr addr,
			 struct str *ret)
{
	vaddr start;
	uint32_t type = structure_at(in, &start);
	const struct dtype *of;
	size_t before = ret->len;

	if (!type || addr < start)
		return 0;
	type = type_at(in->typed, type, addr - start);
	of = type ? dwarf_type_head(&in->typed->t, type) : NULL;
	if (!of || of->kind != DTYPE_SCALAR)
		return 0;
	number_text(in->sp, of, addr, NULL, ret);
	return ret->len > before ? of->size : 0;
}

void build_at_members(struct report *r, const struct report_input *in)
{
	struct walk w = {
		.ty = in->typed, .names = in->names, .steps = MAX_STEPS,
	};
	uint32_t type = structure_at(in, &w.start);

	if (!type)
		return;
	w.t = report_add(r, SECTION_AT, "members", "ITS MEMBERS",
			 member_columns, M_COLUMNS);
	w.t->whole = true;
	str_init(&w.path);
	add_members(&w, type, w.start, 0);
	str_fini(&w.path);
}
