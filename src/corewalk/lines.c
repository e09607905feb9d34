/* SPDX-License-Identifier: MIT */
#include "corewalk/lines.h"

#include <dwarf.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"

enum {
	MAX_RANGES = 1 << 22,	/* of all units of a module */
	MAX_UNITS = 1 << 20,
	MAX_NESTING = 64,	/* scopes in scopes */
	MAX_DEPTH = 32,		/* namespaces and classes in each other */
	MAX_REFERENCES = 16,	/* from an entry to the one with its name */
};

/* Entries that all look-ups together may look at. */
static const uint64_t LOOKUP_BUDGET = UINT64_C(1) << 28;

/* Addresses [start, end) are of the entry or unit at a place. */
struct range {
	uint64_t start, end;
	uint64_t at;		/* unit: its number; function: offset of it */
};

struct ranges {
	struct range *items;	/* owned; sorted by start */
	size_t n, cap;
};

/* What an entry is in: entries do not know it themselves. */
struct scope {
	Dwarf_Off die, parent;	/* parent: 0 in none */
};

struct unit {
	Dwarf_Off die;
	uint64_t bytes;
	bool read;
	struct ranges functions;
	struct scope *scopes;	/* owned; of functions and scopes, by die */
	size_t n_scopes, cap_scopes;
};

struct table {
	const struct debug_module *module;
	bool whole;		/* by the units themselves */
	struct unit *units;	/* owned */
	size_t n_units, cap_units;
	struct ranges ranges;	/* of the units */
};

struct lines {
	struct table **tables;	/* owned; by module, as they came */
	size_t n, cap;
	uint64_t budget;
	char **names;		/* owned; put together here */
	size_t n_names, cap_names;
};

static void forget_units(struct table *t)
{
	for (size_t i = 0; i < t->n_units; i++) {
		free(t->units[i].functions.items);
		free(t->units[i].scopes);
	}
	t->n_units = t->ranges.n = 0;
}

struct lines *lines_new(void)
{
	struct lines *l = mem_zalloc(sizeof(*l));

	l->budget = LOOKUP_BUDGET;
	return l;
}

void lines_free(struct lines *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n; i++) {
		struct table *t = l->tables[i];

		forget_units(t);
		free(t->units);
		free(t->ranges.items);
		free(t);
	}
	for (size_t i = 0; i < l->n_names; i++)
		free(l->names[i]);
	free(l->names);
	free(l->tables);
	free(l);
}

/* ---- ranges ---- */

/*
 * What the linker threw away is said to be at 0.  Many entries can share one
 * long list: each range of it costs a step of the budget, added or not.
 */
static void add_ranges(struct ranges *r, Dwarf_Die *die, uint64_t at,
		       uint64_t *budget)
{
	Dwarf_Addr base, start, end;

	for (ptrdiff_t off = 0; *budget &&
	     (off = dwarf_ranges(die, off, &base, &start, &end)) > 0;
	     --*budget)
		if (start && start < end)
			MEM_PUSH(r->items, r->n, r->cap) =
				(struct range){ start, end, at };
}

static int by_start(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return ORDER(x->start, y->start) ?: ORDER(x->at, y->at);
}

static void sort_ranges(struct ranges *r)
{
	SORT(r->items, r->n, by_start);
}

/* The range that holds addr and starts last; NULL if none does. */
static const struct range *find_range(const struct ranges *r, uint64_t addr)
{
	size_t lo = BISECT(mid, 0, r->n, r->items[mid].start <= addr);

	return lo && addr < r->items[lo - 1].end ? &r->items[lo - 1] : NULL;
}

/* ---- units ---- */

static void read_units(struct table *t)
{
	Dwarf *dwarf = t->module->dwarf;
	Dwarf_Off at = 0, next;
	size_t header;
	uint8_t address, offset;
	uint64_t budget = MAX_RANGES;

	while (t->n_units < MAX_UNITS &&
	       !dwarf_nextcu(dwarf, at, &next, &header, NULL, &address,
			     &offset)) {
		struct unit *u = &MEM_PUSH(t->units, t->n_units, t->cap_units);
		Dwarf_Die die;

		*u = (struct unit){ .die = at + header, .bytes = next - at };
		if (next <= at)
			break;
		if (dwarf_offdie(dwarf, u->die, &die))
			add_ranges(&t->ranges, &die, t->n_units - 1, &budget);
		at = next;
	}
	sort_ranges(&t->ranges);
}

/* How many bytes the unit of this entry has; 0: it is none. */
static uint64_t unit_bytes(Dwarf *dwarf, Dwarf_Off die_at)
{
	Dwarf_Off start, next;
	Dwarf_Die die;
	size_t header;
	uint8_t address, offset;

	if (!dwarf_offdie(dwarf, die_at, &die))
		return 0;
	start = die_at - dwarf_cuoffset(&die);
	return dwarf_nextcu(dwarf, start, &next, &header, NULL, &address,
			    &offset) || next <= start ? 0 : next - start;
}

/* Ranges have the entries of units: these become units, with numbers. */
static void number_units(struct table *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->ranges.n; i++)
		MEM_PUSH(t->units, t->n_units, t->cap_units) =
			(struct unit){ .die = t->ranges.items[i].at };
	SORT_BY(t->units, t->n_units, die);
	for (size_t i = 0; i < t->n_units; i++)
		if (!n || t->units[n - 1].die != t->units[i].die)
			t->units[n++] = t->units[i];
	t->n_units = n;
	for (size_t i = 0; i < t->ranges.n; i++) {
		struct range *r = &t->ranges.items[i];

		r->at = BISECT(mid, 0, n, t->units[mid].die < r->at);
	}
}

/*
 * The table that some compilers write says where units are without a look at
 * each.  It need not have all of them.
 */
static void read_aranges(struct table *t)
{
	Dwarf_Aranges *list;
	size_t n;

	if (dwarf_getaranges(t->module->dwarf, &list, &n))
		return;
	n = min_u64(n, MAX_RANGES);
	for (size_t i = 0; i < n; i++) {
		Dwarf_Addr start;
		Dwarf_Word length;
		Dwarf_Off die;

		if (!dwarf_getarangeinfo(dwarf_onearange(list, i), &start,
					 &length, &die) &&
		    start && length && start + length > start)
			MEM_PUSH(t->ranges.items, t->ranges.n, t->ranges.cap) =
				(struct range){ start, start + length, die };
	}
	number_units(t);
	sort_ranges(&t->ranges);
}

/* NULL if none has the address, by what is known so far. */
static struct unit *unit_at(struct table *t, uint64_t addr)
{
	const struct range *r = find_range(&t->ranges, addr);

	return r ? &t->units[r->at] : NULL;
}

static struct table *table_of(struct lines *l, const struct debug_module *m)
{
	struct table *t;

	for (size_t i = 0; i < l->n; i++)
		if (l->tables[i]->module == m)
			return l->tables[i];
	t = mem_zalloc(sizeof(*t));
	t->module = m;
	MEM_PUSH(l->tables, l->n, l->cap) = t;
	read_aranges(t);
	return t;
}

static bool holds_functions(int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_class_type ||
	       tag == DW_TAG_structure_type || tag == DW_TAG_union_type ||
	       tag == DW_TAG_module;
}

/*
 * Siblings can lead back into what was gone through, so only the budget of
 * one step for each byte of the unit ends this; ranges take steps too.
 */
static void read_functions(struct unit *u, Dwarf_Die *parent, Dwarf_Off scope,
			   unsigned depth, uint64_t *budget)
{
	Dwarf_Die die;

	if (depth == MAX_DEPTH || dwarf_child(parent, &die))
		return;
	do {
		int tag = dwarf_tag(&die);
		Dwarf_Off at = dwarf_dieoffset(&die);

		if (!*budget)
			return;
		--*budget;
		if (tag != DW_TAG_subprogram && !holds_functions(tag))
			continue;
		MEM_PUSH(u->scopes, u->n_scopes, u->cap_scopes) =
			(struct scope){ at, scope };
		if (tag == DW_TAG_subprogram)
			add_ranges(&u->functions, &die, at, budget);
		else
			read_functions(u, &die, at, depth + 1, budget);
	} while (!dwarf_siblingof(&die, &die));
}

static void read_unit(struct unit *u, Dwarf_Die *die)
{
	uint64_t budget = u->bytes;

	u->read = true;
	read_functions(u, die, 0, 0, &budget);
	sort_ranges(&u->functions);
	SORT_BY(u->scopes, u->n_scopes, die);
}

/* ---- names ---- */

static const char *linkage_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const char *name = dwarf_formstring(
		dwarf_attr_integrate(die, DW_AT_linkage_name, &attr));

	return name ? name : dwarf_formstring(dwarf_attr_integrate(
		die, DW_AT_MIPS_linkage_name, &attr));
}

/* The entry that was written down where the function is declared. */
static Dwarf_Die declared(const Dwarf_Die *die)
{
	Dwarf_Die at = *die, next;
	Dwarf_Attribute attr;

	for (unsigned i = 0; i < MAX_REFERENCES; i++) {
		if (!dwarf_attr(&at, DW_AT_abstract_origin, &attr) &&
		    !dwarf_attr(&at, DW_AT_specification, &attr))
			break;
		if (!dwarf_formref_die(&attr, &next))
			break;
		at = next;
	}
	return at;
}

static Dwarf_Off scope_of(const struct unit *u, Dwarf_Off die)
{
	const struct scope *found = FIND(u->scopes, u->n_scopes, die);

	return found ? found->parent : 0;
}

static const char *scope_name(Dwarf_Die *die)
{
	const char *name = dwarf_diename(die);

	if (name)
		return name;
	return dwarf_tag(die) == DW_TAG_namespace ? "(anonymous namespace)"
						  : "{unnamed type}";
}

static const char *source_name(struct lines *l, Dwarf *dwarf,
			       const struct unit *u, Dwarf_Die *die)
{
	Dwarf_Die at = declared(die), scopes[MAX_DEPTH];
	const char *name = dwarf_diename(die);
	struct str s;
	size_t n = 0;

	for (Dwarf_Off off = scope_of(u, dwarf_dieoffset(&at));
	     off && n < MAX_DEPTH &&
	     dwarf_offdie(dwarf, off, &scopes[n]);
	     off = scope_of(u, off))
		n++;
	if (!name || !n)
		return name;
	str_init(&s);
	while (n--)
		str_printf(&s, "%s::", scope_name(&scopes[n]));
	str_adds(&s, name);
	return MEM_PUSH(l->names, l->n_names, l->cap_names) = str_take(&s);
}

static void set_function(struct lines *l, Dwarf *dwarf, const struct unit *u,
			 Dwarf_Die *die, struct line_place *p)
{
	p->linkage = linkage_name(die);
	p->function = p->linkage ? NULL : source_name(l, dwarf, u, die);
}

/* ---- one address ---- */

/* The scope directly below *at that holds addr. */
static bool step_in(struct lines *l, Dwarf_Die *at, uint64_t addr)
{
	Dwarf_Die die;

	if (dwarf_child(at, &die))
		return false;
	do {
		int tag = dwarf_tag(&die);

		if (!l->budget)
			return false;
		l->budget--;
		if ((tag == DW_TAG_inlined_subroutine ||
		     tag == DW_TAG_lexical_block ||
		     tag == DW_TAG_try_block || tag == DW_TAG_catch_block) &&
		    dwarf_haspc(&die, addr) > 0) {
			*at = die;
			return true;
		}
	} while (!dwarf_siblingof(&die, &die));
	return false;
}

static unsigned number_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	return dwarf_formudata(dwarf_attr(die, name, &attr), &value) ||
	       value > UINT32_MAX ? 0 : (unsigned)value;
}

/* Where the call is that an inlined function took the place of. */
static void set_call(struct line_place *p, Dwarf_Die *unit, Dwarf_Die *inlined)
{
	unsigned file = number_of(inlined, DW_AT_call_file);
	Dwarf_Files *files;
	size_t n;

	if (!dwarf_getsrcfiles(unit, &files, &n) && file < n)
		p->file = dwarf_filesrc(files, file, NULL, NULL);
	p->line = number_of(inlined, DW_AT_call_line);
	p->column = number_of(inlined, DW_AT_call_column);
}

static void set_line(struct line_place *p, Dwarf_Die *unit, uint64_t addr)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit, addr);
	int number = 0, column = 0;

	if (!line)
		return;
	p->file = dwarf_linesrc(line, NULL, NULL);
	if (!dwarf_lineno(line, &number) && number > 0)
		p->line = (unsigned)number;
	if (!dwarf_linecol(line, &column) && column > 0)
		p->column = (unsigned)column;
}

/* The function and what is inlined into it there, outermost first. */
static size_t find_scopes(struct lines *l, struct table *t, struct unit *u,
			  uint64_t addr, Dwarf_Die ret[LINES_MAX])
{
	const struct range *r = find_range(&u->functions, addr);
	Dwarf_Die at;
	size_t n = 0;

	if (!r || !dwarf_offdie(t->module->dwarf, r->at, &at))
		return 0;
	ret[n++] = at;
	for (unsigned i = 0; i < MAX_NESTING && n < LINES_MAX; i++) {
		if (!step_in(l, &at, addr))
			break;
		if (dwarf_tag(&at) == DW_TAG_inlined_subroutine)
			ret[n++] = at;
	}
	return n;
}

/* The unit that addr is in, its functions read; NULL if none is. */
static struct unit *find_unit(struct lines *l, const struct debug_module *m,
			      uint64_t addr, Dwarf_Die *ret)
{
	struct table *t;
	struct unit *u;

	if (!m->dwarf)
		return NULL;
	t = table_of(l, m);
	u = unit_at(t, addr);
	if (!u && !t->whole) {
		forget_units(t);
		t->whole = true;
		read_units(t);
		u = unit_at(t, addr);
	}
	if (!u)
		return NULL;
	if (!dwarf_offdie(m->dwarf, u->die, ret))
		return NULL;
	if (!u->read && !u->bytes)
		u->bytes = unit_bytes(m->dwarf, u->die);
	if (!u->read)
		read_unit(u, ret);
	return u;
}

bool lines_function(struct lines *l, const struct debug_module *m,
		    uint64_t addr, Dwarf_Die *ret)
{
	struct unit *u = find_unit(l, m, addr, ret);
	const struct range *r = u ? find_range(&u->functions, addr) : NULL;

	return r && dwarf_offdie(m->dwarf, r->at, ret);
}

size_t lines_at(struct lines *l, const struct debug_module *m, uint64_t addr,
		struct line_place ret[LINES_MAX])
{
	Dwarf_Die scopes[LINES_MAX], unit;
	struct unit *u = find_unit(l, m, addr, &unit);
	size_t n;

	if (!u)
		return 0;
	n = find_scopes(l, table_of(l, m), u, addr, scopes);
	ret[0] = (struct line_place){ 0 };
	set_line(&ret[0], &unit, addr);
	if (!n)
		return ret[0].file ? 1 : 0;
	for (size_t i = 0; i < n; i++) {
		Dwarf_Die *scope = &scopes[n - 1 - i];

		if (i) {
			ret[i] = (struct line_place){ 0 };
			set_call(&ret[i], &unit, scope + 1);
		}
		set_function(l, m->dwarf, u, scope, &ret[i]);
		ret[i].inlined = i + 1 < n;
	}
	return n;
}
