/* SPDX-License-Identifier: MIT */
/*
 * The tables of who refers: to an address, and to the block before a damaged
 * place.
 */
#include "report/build.h"

#include <inttypes.h>

#include "analysis/reach.h"
#include "analysis/refs.h"

enum { R_KIND, R_WHERE, R_ADDRESS, R_BLOCK, R_VALUE, R_OFFSET, R_COLUMNS };

static const struct column ref_columns[R_COLUMNS] = {
	[R_KIND] = COLUMN("kind", "", TEXT, .width = 10),
	[R_WHERE] = COLUMN("where", "where", TEXT, .flags = COLUMN_LEFT,
			   .width = 40),
	[R_ADDRESS] = DATA_COLUMN("address", ADDR),
	[R_BLOCK] = DATA_COLUMN("block", ADDR),
	[R_VALUE] = COLUMN("value", "value", ADDR, .flags = COLUMN_CONTENT),
	[R_OFFSET] = COLUMN("offset", "points to", COUNT),
};

static const char *kind_name(unsigned kind)
{
	return kind == REFS_BLOCK ? "block" : root_kind_name(kind);
}

static void ref_text(struct refs_names *names, const struct ref *ref,
		     struct str *s)
{
	if (ref->kind != REFS_BLOCK)
		refs_root_text(names, &ref->root, ref->word, s);
	else
		str_printf(s, "block 0x%" PRIx64 "+%" PRIu64 ", %" PRIu64
			   " bytes", ref->block.addr,
			   ref->word - ref->block.addr, ref->block.size);
}

static void add_ref(struct table *t, struct refs_names *names,
		    const struct ref *ref, vaddr target)
{
	struct str s;

	str_init(&s);
	ref_text(names, ref, &s);
	table_row(t);
	table_set_text(t, R_KIND, kind_name(ref->kind));
	table_set_bytes(t, R_WHERE, s.text, s.len);
	if (ref->kind != ROOT_REGISTERS)
		table_set(t, R_ADDRESS, ref->word);
	if (ref->kind == REFS_BLOCK)
		table_set(t, R_BLOCK, ref->block.addr);
	table_set(t, R_VALUE, ref->value);
	table_set(t, R_OFFSET, ref->value - target);
	str_fini(&s);
}

/* What is asked about: the block at the address, or the byte. */
static void range_of(const struct damage_at *a, vaddr *from, vaddr *to)
{
	*from = a->addr;
	*to = a->addr + 1;
	if (a->has_block && a->block.usable) {
		*from = a->block.addr;
		*to = a->block.addr + a->block.usable;
	}
}

enum { C_KIND, C_COUNT, C_COLUMNS };

static const struct column count_columns[C_COLUMNS] = {
	[C_KIND] = COLUMN("kind", "", TEXT, .width = 12),
	[C_COUNT] = COLUMN("words", "words", COUNT),
};

static void build_counts(struct report *r, const struct refs *refs)
{
	struct table *t = report_add(r, SECTION_AT, "referrer_counts",
				     "HOW MANY REFER TO IT", count_columns,
				     C_COLUMNS);

	for (unsigned k = 0; k <= ROOT_KINDS; k++) {
		if (!refs->count[k])
			continue;
		table_row(t);
		table_set_text(t, C_KIND, kind_name(k));
		table_set(t, C_COUNT, refs->count[k]);
	}
}

static void build_referrers(struct report *r, const struct report_input *in)
{
	struct table *t = report_add(r, SECTION_AT, "referrers",
				     "WHO REFERS TO IT", ref_columns,
				     R_COLUMNS);
	vaddr from, to;
	struct refs refs;

	t->whole = true;
	range_of(in->at, &from, &to);
	refs_find(&refs, in->sp, in->heap, in->where,
		  in->reach ? &in->reach->g->asked : NULL, from, to);
	for (size_t i = 0; i < refs.n; i++)
		add_ref(t, in->names, &refs.item[i], from);
	build_counts(r, &refs);
}

enum { P_STEP, P_WHERE, P_ADDRESS, P_COLUMNS };
enum { PATH_HEAD = 12, PATH_TAIL = 4 };

static const struct column path_columns[P_COLUMNS] = {
	[P_STEP] = COLUMN("step", "", COUNT, .width = 8,
			  .flags = COLUMN_LEFT),
	[P_WHERE] = COLUMN("where", "each points into the next", TEXT,
			   .flags = COLUMN_LEFT),
	[P_ADDRESS] = DATA_COLUMN("address", ADDR),
};

static void add_step(struct table *t, struct refs_names *names,
		     const struct graph *g, const struct refs_step *step,
		     size_t number)
{
	struct str s;

	str_init(&s);
	refs_word_text(names, g, step->node, step->word, &s);
	table_row(t);
	table_set(t, P_STEP, number);
	table_set_bytes(t, P_WHERE, s.text, s.len);
	if (step->word >= THREAD_MAX_WORDS)
		table_set(t, P_ADDRESS, step->word);
	str_fini(&s);
}

/* Lists are long: of a long way the beginning and the end. */
static void build_path(struct report *r, const struct report_input *in)
{
	const struct graph *g = in->reach->g;
	uint32_t block = index_find(&g->ix, in->at->block.addr);
	struct refs_path path;
	struct table *t;

	if (!block)
		return;
	t = report_add(r, SECTION_AT, "path", "ONE WAY THERE FROM A ROOT",
		       path_columns, P_COLUMNS);
	t->whole = true;
	refs_path(&path, g, block);
	for (size_t i = 0; i < path.n; i++)
		if (i < PATH_HEAD || i + PATH_TAIL >= path.n)
			add_step(t, in->names, g, &path.steps[i], i + 1);
	refs_path_fini(&path);
}

enum { G_GRADE, G_KIND, G_HELD, G_COLUMNS };

static const struct column grade_columns[G_COLUMNS] = {
	[G_GRADE] = COLUMN("leak_grade", "leaked", TEXT),
	[G_KIND] = COLUMN("leak_kind", "how", TEXT),
	[G_HELD] = COLUMN("held_by", "only held by", TEXT),
};

static void build_grade(struct report *r, const struct report_input *in)
{
	const struct reach *reach = in->reach;
	uint32_t block = index_find(&reach->g->ix, in->at->block.addr);
	struct reach_hold hold;
	struct table *t;
	struct str s;

	if (!block)
		return;
	t = report_add(r, SECTION_AT, "leak", "CAN IT BE REACHED",
		       grade_columns, G_COLUMNS);
	t->form = TABLE_OBJECT;
	table_row(t);
	table_set_text(t, G_GRADE,
		       reach_grade_name(reach_grade(reach, block)));
	if (reach_grade(reach, block) == REACH_LIVE)
		return;
	table_set_text(t, G_KIND, reach_kind_name(reach_kind(reach, block)));
	if (!reach_held_by(reach, block, &hold))
		return;
	str_init(&s);
	refs_word_text(in->names, reach->g, hold.node, hold.word, &s);
	table_set_bytes(t, G_HELD, s.text, s.len);
	str_fini(&s);
}

void build_at_refs(struct report *r, const struct report_input *in)
{
	if (!in->at || !in->names || !in->heap_found)
		return;
	build_referrers(r, in);
	if (!in->reach || !in->at->has_block ||
	    in->at->block.state != BLOCK_USED)
		return;
	build_grade(r, in);
	build_path(r, in);
}

enum { B_BLOCK, B_SIZE, B_DAMAGE, B_WHO, B_COLUMNS };
/* Each one costs a pass over memory. */
enum { CULPRITS = 4 };

static const struct column culprit_columns[B_COLUMNS] = {
	[B_BLOCK] = COLUMN("block", "", ADDR, .width = 18,
			   .flags = COLUMN_LEFT),
	[B_SIZE] = COLUMN("size", "size", COUNT, .width = 8),
	[B_DAMAGE] = DATA_COLUMN("damage", ADDR),
	[B_WHO] = COLUMN("referred_to_by", "is referred to by", TEXT,
			 .flags = COLUMN_LEFT),
};

static void add_culprit(struct table *t, const struct report_input *in,
			const struct damage_case *c)
{
	struct refs refs;
	struct str s;

	refs_find(&refs, in->sp, in->heap, in->where, NULL, c->before.addr,
		  c->before.addr + c->before.usable);
	table_row(t);
	table_set(t, B_BLOCK, c->before.addr);
	table_set(t, B_SIZE, c->before.size);
	table_set(t, B_DAMAGE, c->addr);
	str_init(&s);
	if (refs.n)
		ref_text(in->names, &refs.item[0], &s);
	else
		str_adds(&s, "nobody");
	table_set_bytes(t, B_WHO, s.text, s.len);
	str_fini(&s);
}

void build_culprits(struct report *r, const struct report_input *in)
{
	const struct damage *d = in->damage;
	struct table *t = NULL;
	int n = 0;

	if (!in->names || !in->heap_found)
		return;
	for (size_t i = 0; i < d->n_cases && n < CULPRITS; i++) {
		if (!d->cases[i].has_before || !d->cases[i].before.usable)
			continue;
		if (!t)
			t = report_add(r, SECTION_CULPRITS, "culprits",
				       "BLOCK BEFORE THE DAMAGE",
				       culprit_columns, B_COLUMNS);
		add_culprit(t, in, &d->cases[i]);
		n++;
	}
}
