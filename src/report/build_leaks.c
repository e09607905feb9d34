/* SPDX-License-Identifier: MIT */
/*
 * The table of what is lost: groups of blocks, never a list of addresses.
 */
#include "report/build.h"

#include <inttypes.h>
#include <string.h>

#include "analysis/census.h"
#include "analysis/reach.h"
#include "analysis/refs.h"
#include "base/num.h"

enum {
	L_WHAT, L_SIZE, L_BLOCKS, L_BYTES, L_SHARE, L_GRADE, L_HOW, L_KNOWN,
	L_DIRECT, L_INDIRECT, L_CYCLE, L_EXAMPLE, L_HELD, L_HIDDEN, L_USED,
	L_COLUMNS
};

static const char *const grade_words[] = {
	"certain", "likely", "possible", NULL
};

static const struct column leak_columns[L_COLUMNS] = {
	[L_WHAT] = COLUMN("name", "", TEXT, .width = 26, .flags = COLUMN_RAW),
	[L_SIZE] = DATA_COLUMN("size", BYTES),
	[L_BLOCKS] = COLUMN("blocks", "blocks", COUNT, .flags = COLUMN_SUM,
			    .width = 9),
	[L_BYTES] = COLUMN("bytes", "bytes", BYTES, .flags = COLUMN_SUM,
			   .width = 9),
	[L_SHARE] = COLUMN("share", "of use", SHARE,
			   .part = L_BYTES + 1, .whole = L_USED + 1,
			   .flags = COLUMN_OF_TOTAL),
	[L_GRADE] = COLUMN("grade", "grade", TEXT, .words = grade_words),
	[L_HOW] = COLUMN("how", "how", TEXT, .flags = COLUMN_NO_DATA),
	[L_KNOWN] = DATA_COLUMN("known_by", TEXT),
	[L_DIRECT] = COLUMN("direct", "", COUNT,
			    .flags = COLUMN_SUM | COLUMN_NO_TEXT),
	[L_INDIRECT] = COLUMN("indirect", "", COUNT,
			      .flags = COLUMN_SUM | COLUMN_NO_TEXT),
	[L_CYCLE] = COLUMN("in_cycles", "", COUNT,
			   .flags = COLUMN_SUM | COLUMN_NO_TEXT),
	[L_EXAMPLE] = COLUMN("example", "example", ADDR),
	[L_HELD] = DATA_COLUMN("held_by", TEXT),
	[L_HIDDEN] = HIDDEN_NAME,
	[L_USED] = OF_USED,
};

/* What the group's blocks are, as far as it is known. */
static void set_what(struct table *t, const struct report_input *in,
		     const struct reach_group *g)
{
	enum type_known known = TYPE_UNKNOWN;
	struct str name;

	if (g->type) {
		const struct type *type =
			&in->census->types.items[g->type];

		table_set_text(t, L_WHAT, type->name);
		if (type->hidden)
			table_set_text(t, L_HIDDEN, type->hidden);
		table_set_text(t, L_KNOWN, type_known_name(type->known));
		return;
	}
	str_init(&name);
	if (g->first)
		known = refs_class(in->names, g->first, &name);
	if (known) {
		table_set_bytes(t, L_WHAT, name.text, name.len);
		table_set_text(t, L_KNOWN, type_known_name(known));
	} else {
		table_printf(t, L_WHAT, "%" PRIu64 " bytes", g->size);
		table_set_text(t, L_KNOWN, "size");
	}
	str_fini(&name);
}

static const char *how(const struct reach_group *g)
{
	static const char *const words[REACH_KINDS] = {
		[REACH_DIRECT] = "direct",
		[REACH_INDIRECT] = "indirect",
		[REACH_CYCLE] = "cycles",
	};
	const char *ret = NULL;

	for (int k = 0; k < REACH_KINDS; k++) {
		if (!g->kind[k].blocks)
			continue;
		if (ret)
			return "mixed";
		ret = words[k];
	}
	return ret;
}

static void set_held(struct table *t, const struct report_input *in,
		     const struct reach_group *g)
{
	struct reach_hold hold;
	struct str s;

	if (!reach_held_by(in->reach, g->example, &hold))
		return;
	str_init(&s);
	refs_word_text(in->names, in->reach->g, hold.node, hold.word, &s);
	table_set_bytes(t, L_HELD, s.text, s.len);
	str_fini(&s);
}

static void add_group(struct table *t, const struct report_input *in,
		      const struct reach_group *g)
{
	table_row(t);
	set_what(t, in, g);
	if (g->size)
		table_set(t, L_SIZE, g->size);
	table_set(t, L_BLOCKS, g->total.blocks);
	table_set(t, L_BYTES, g->total.bytes);
	table_set_text(t, L_GRADE, reach_grade_name(g->grade));
	table_set_text(t, L_HOW, how(g));
	table_set(t, L_DIRECT, g->kind[REACH_DIRECT].blocks);
	table_set(t, L_INDIRECT, g->kind[REACH_INDIRECT].blocks);
	table_set(t, L_CYCLE, g->kind[REACH_CYCLE].blocks);
	table_set(t, L_EXAMPLE, g->addr);
	set_held(t, in, g);
}

enum {
	T_SENTENCE, T_LOOKED, T_BLOCKS, T_BYTES, T_CERTAIN_BLOCKS,
	T_CERTAIN_BYTES, T_LIKELY_BLOCKS, T_LIKELY_BYTES, T_POSSIBLE_BLOCKS,
	T_POSSIBLE_BYTES, T_DIRECT, T_INDIRECT, T_IN_CYCLES, T_CYCLES,
	T_UPPER, T_WHY, T_COLUMNS
};

static const struct column sum_columns[T_COLUMNS] = {
	[T_SENTENCE] = COLUMN("sentence", "", TEXT, .flags = COLUMN_NO_DATA),
	[T_LOOKED] = DATA_COLUMN("looked", FLAG),
	[T_BLOCKS] = DATA_COLUMN("total_blocks", COUNT),
	[T_BYTES] = DATA_COLUMN("total_bytes", BYTES),
	[T_CERTAIN_BLOCKS] = DATA_COLUMN("certain_blocks", COUNT),
	[T_CERTAIN_BYTES] = DATA_COLUMN("certain_bytes", BYTES),
	[T_LIKELY_BLOCKS] = DATA_COLUMN("likely_blocks", COUNT),
	[T_LIKELY_BYTES] = DATA_COLUMN("likely_bytes", BYTES),
	[T_POSSIBLE_BLOCKS] = DATA_COLUMN("possible_blocks", COUNT),
	[T_POSSIBLE_BYTES] = DATA_COLUMN("possible_bytes", BYTES),
	[T_DIRECT] = DATA_COLUMN("direct_blocks", COUNT),
	[T_INDIRECT] = DATA_COLUMN("indirect_blocks", COUNT),
	[T_IN_CYCLES] = DATA_COLUMN("cycle_blocks", COUNT),
	[T_CYCLES] = DATA_COLUMN("cycles", COUNT),
	[T_UPPER] = DATA_COLUMN("upper_bound", FLAG),
	[T_WHY] = DATA_COLUMN("why_not", TEXT),
};

static void set_sums(struct table *t, const struct reach *r)
{
	struct tally lost = reach_lost(r);

	table_set(t, T_BLOCKS, lost.blocks);
	table_set(t, T_BYTES, lost.bytes);
	table_set(t, T_CERTAIN_BLOCKS, r->grade[REACH_CERTAIN].blocks);
	table_set(t, T_CERTAIN_BYTES, r->grade[REACH_CERTAIN].bytes);
	table_set(t, T_LIKELY_BLOCKS, r->grade[REACH_LIKELY].blocks);
	table_set(t, T_LIKELY_BYTES, r->grade[REACH_LIKELY].bytes);
	table_set(t, T_POSSIBLE_BLOCKS, r->grade[REACH_POSSIBLE].blocks);
	table_set(t, T_POSSIBLE_BYTES, r->grade[REACH_POSSIBLE].bytes);
	table_set(t, T_DIRECT, r->kind[REACH_DIRECT].blocks);
	table_set(t, T_INDIRECT, r->kind[REACH_INDIRECT].blocks);
	table_set(t, T_IN_CYCLES, r->kind[REACH_CYCLE].blocks);
	table_set(t, T_CYCLES, r->n_cycles);
}

static void amount_text(struct str *s, const struct tally *t)
{
	char size[NUM_MAX];

	num_format_size(size, t->bytes);
	str_printf(s, "%s in %" PRIu64 " block%s", size, t->blocks,
		   t->blocks == 1 ? "" : "s");
}

/* What the words of the table mean, as far as they are in it. */
static void explain(struct str *s, const struct reach *r)
{
	const struct tally *likely = &r->grade[REACH_LIKELY];
	struct tally lost = reach_lost(r);
	bool some = likely->blocks && !roots_missing(&r->g->roots);

	if (!lost.blocks) {
		str_adds(s, "No block is lost: all can be reached");
	} else if (some && likely->blocks == lost.blocks) {
		amount_text(s, &lost);
		str_adds(s, " is likely lost: only words that nobody will "
			 "read again refer to it");
	} else {
		amount_text(s, &lost);
		str_adds(s, " cannot be reached from any root");
		if (some) {
			str_adds(s, "; to ");
			amount_text(s, likely);
			str_adds(s, " of it only words refer that nobody will "
				 "read again (likely)");
		}
	}
	str_adds(s, ".");
	if (r->grade[REACH_POSSIBLE].blocks) {
		str_adds(s, "  Not counted: ");
		amount_text(s, &r->grade[REACH_POSSIBLE]);
		str_adds(s, " known only to the unused capacity of vectors "
			 "(possible).");
	}
}

/* Only so much can be told from what is in the file. */
static void qualify(struct str *s, const struct roots *roots)
{
	char size[NUM_MAX];

	if (roots->missing_bytes) {
		num_format_size(size, roots->missing_bytes);
		str_printf(s, "  %s of writable memory is not in the file and "
			   "may refer to some: none is certain.", size);
	}
	if (roots->missing_shared) {
		num_format_size(size, roots->missing_shared);
		str_printf(s, "  %s of shared memory is not in the file and "
			   "may refer to some: none is certain.", size);
	}
	if (roots->bytes[ROOT_UNDECODED]) {
		num_format_size(size, roots->bytes[ROOT_UNDECODED]);
		str_printf(s, "  %s of the heap could not be decoded; "
			   "what it refers to counts as in use.", size);
	}
}

/* A table that is not there is missed where the other question is answered. */
static void no_types(struct str *s, const struct report_input *in)
{
	char size[NUM_MAX];

	if (!in->census_limit)
		return;
	num_format_size(size, in->census_limit);
	str_printf(s, "  Types: not looked for above %s; --only=types does.",
		   size);
}

/* Is there a type of an interpreter that begins with that? */
static bool has_values(const struct report_input *in, const char *prefix)
{
	const struct types *types = in->census ? &in->census->types : NULL;

	for (size_t i = 1; types && i < types->n; i++)
		if (types->items[i].known == TYPE_RUNTIME &&
		    !strncmp(types->items[i].name, prefix, strlen(prefix)))
			return true;
	return false;
}

const char *leaks_all_listed(const struct report_input *in)
{
	bool pymalloc = false;

	for (size_t i = 0; i < in->heap->n_allocators; i++)
		if (!strcmp(in->heap->allocators[i].name, "pymalloc"))
			pymalloc = true;
	if (pymalloc || has_values(in, "python "))
		return "Python's collector lists all its objects";
	if (has_values(in, "perl "))
		return "Perl's arenas list all its values";
	return NULL;
}

static void build_sums(struct report *r, const struct report_input *in,
		       const char *title)
{
	struct table *t = add_sums(r, SECTION_LEAKS, "leaks", title,
				   sum_columns, T_COLUMNS);
	const char *listed = leaks_all_listed(in);
	struct str s;

	table_set(t, T_LOOKED, in->reach != NULL);
	str_init(&s);
	if (in->reach) {
		set_sums(t, in->reach);
		explain(&s, in->reach);
		qualify(&s, &in->reach->g->roots);
		if (listed)
			str_printf(&s, "  %s: one that the program has lost "
				   "counts as reached.", listed);
		table_set(t, T_UPPER, roots_missing(&in->reach->g->roots));
	} else {
		str_printf(&s, "Leaks were not looked for: %s.",
			   in->no_reach ? in->no_reach : "no heap was found");
		table_set_text(t, T_WHY, in->no_reach ? in->no_reach
						      : "no heap was found");
	}
	no_types(&s, in);
	table_set_bytes(t, T_SENTENCE, s.text, s.len);
	str_fini(&s);
}

void build_leaks(struct report *r, const struct report_input *in)
{
	struct table *t = report_add(r, SECTION_LEAKS, "leaks", "LEAKED",
				     leak_columns, L_COLUMNS);
	const struct reach *reach = in->reach;

	t->more = "others";
	t->shapes = true;
	for (size_t i = 0; reach && i < reach->n_groups; i++)
		if (reach->groups[i].grade != REACH_POSSIBLE ||
		    r->options->format != REPORT_TEXT)
			add_group(t, in, &reach->groups[i]);
	add_total_of_used(t, L_USED, in);
	build_sums(r, in, t->n_rows ? "LEAKED, IN WORDS" : "LEAKED");
}
