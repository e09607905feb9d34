/* SPDX-License-Identifier: MIT */
/*
 * The tables of what repeats: strings.
 */
#include "report/build.h"

#include <inttypes.h>

#include "analysis/holder.h"
#include "analysis/reach.h"
#include "analysis/refs.h"
#include "analysis/strings.h"
#include "base/num.h"

/* ---- strings ---- */

enum {
	S_TEXT, S_COPIES, S_BYTES, S_SHARE, S_SAVED, S_LENGTH, S_OWN,
	S_HELD, S_EXAMPLE, S_CUT, S_USED, S_COLUMNS
};

static const struct column string_columns[S_COLUMNS] = {
	[S_TEXT] = COLUMN("text", "", TEXT, .width = 30,
			  .flags = COLUMN_RAW | COLUMN_CONTENT),
	[S_COPIES] = COLUMN("copies", "copies", COUNT, .flags = COLUMN_SUM,
			    .width = 9),
	[S_BYTES] = COLUMN("bytes", "bytes", BYTES, .flags = COLUMN_SUM,
			   .width = 9),
	[S_SHARE] = COLUMN("share", "of use", SHARE, .part = S_BYTES + 1,
			   .whole = S_USED + 1,
			   .flags = COLUMN_OF_TOTAL | COLUMN_NO_TEXT),
	[S_SAVED] = COLUMN("saved_bytes", "if shared", BYTES,
			   .flags = COLUMN_SUM),
	[S_LENGTH] = DATA_COLUMN("length", COUNT),
	[S_OWN] = COLUMN("own_blocks", "", COUNT,
			 .flags = COLUMN_SUM | COLUMN_NO_TEXT),
	[S_HELD] = COLUMN("held_by", "held by", TEXT,
			  .flags = COLUMN_RAW | COLUMN_LEFT),
	[S_EXAMPLE] = DATA_COLUMN("example", ADDR),
	[S_CUT] = DATA_COLUMN("cut", FLAG),
	[S_USED] = OF_USED,
};

/* A page of text is known by its beginning. */
enum { TEXT_KEPT = 256 };

/* Who leads to the example; held may be NULL. */
static void set_held(struct table *t, const struct report_input *in,
		     const struct holder *held, vaddr addr)
{
	uint32_t root;
	vaddr word;
	struct str s;

	if (!held || !holder_find(held, addr, &root, &word))
		return;
	str_init(&s);
	refs_word_text(in->names, held->g, root, word, &s);
	table_set_bytes(t, S_HELD, s.text, s.len);
	str_fini(&s);
}

static void add_string(struct table *t, const struct report_input *in,
		       const struct dup_entry *e, const struct holder *held)
{
	table_row(t);
	table_set_bytes(t, S_TEXT, e->text, min_u64(e->n, TEXT_KEPT));
	table_set(t, S_COPIES, e->copies);
	table_set(t, S_BYTES, e->bytes);
	table_set(t, S_SAVED, dup_saved(e));
	table_set(t, S_LENGTH, e->n);
	table_set(t, S_OWN, e->own.copies);
	table_set(t, S_EXAMPLE, e->own.copies ? e->own.addr : e->addr);
	set_held(t, in, held, e->own.copies ? e->own.addr : e->addr);
	table_set(t, S_CUT, e->n > TEXT_KEPT);
}

enum {
	T_SENTENCE, T_LOOKED, T_FOUND, T_FOUND_BYTES, T_DISTINCT, T_COPIES,
	T_BYTES, T_OWN, T_SAVED, T_FLOOR, T_GIVEN_UP, T_WHY, T_COLUMNS
};

static const struct column sum_columns[T_COLUMNS] = {
	[T_SENTENCE] = COLUMN("sentence", "", TEXT, .flags = COLUMN_NO_DATA),
	[T_LOOKED] = DATA_COLUMN("looked", FLAG),
	[T_FOUND] = DATA_COLUMN("found", COUNT),
	[T_FOUND_BYTES] = DATA_COLUMN("found_bytes", BYTES),
	[T_DISTINCT] = DATA_COLUMN("repeated", COUNT),
	[T_COPIES] = DATA_COLUMN("total_copies", COUNT),
	[T_BYTES] = DATA_COLUMN("total_bytes", BYTES),
	[T_OWN] = DATA_COLUMN("total_own_blocks", COUNT),
	[T_SAVED] = DATA_COLUMN("total_saved_bytes", BYTES),
	[T_FLOOR] = DATA_COLUMN("exact_from_bytes", BYTES),
	[T_GIVEN_UP] = DATA_COLUMN("not_counted", COUNT),
	[T_WHY] = DATA_COLUMN("why_not", TEXT),
};

static void set_sums(struct table *t, const struct strings *s)
{
	table_set(t, T_FOUND, s->found);
	table_set(t, T_FOUND_BYTES, s->bytes);
	table_set(t, T_DISTINCT, s->distinct);
	table_set(t, T_COPIES, s->copies);
	table_set(t, T_BYTES, s->cost);
	table_set(t, T_OWN, s->own_copies);
	table_set(t, T_SAVED, s->saved);
	table_set(t, T_FLOOR, s->floor);
	table_set(t, T_GIVEN_UP, s->given_up);
}

static void explain(struct str *ret, const struct strings *s)
{
	char size[NUM_MAX];

	str_printf(ret, "%" PRIu64 " strings of %d characters or more in "
		   "blocks in use; %" PRIu64 " texts occur more than once, %"
		   PRIu64 " times in all.", s->found, STRINGS_MIN,
		   s->distinct, s->copies);
	num_format_size(size, s->saved);
	if (s->saved)
		str_printf(ret, "  Sharing those that have blocks of their "
			   "own would save %s.", size);
	num_format_size(size, s->floor);
	if (s->floor)
		str_printf(ret, "  There are too many to count all: complete "
			   "are those that take %s or more.", size);
	if (s->given_up)
		str_printf(ret, "  %" PRIu64 " were not counted: they were "
			   "made to look alike.", s->given_up);
}

static void build_sums(struct report *r, const struct report_input *in,
		       const char *title)
{
	struct table *t = add_sums(r, SECTION_STRINGS, "strings", title,
				   sum_columns, T_COLUMNS);
	struct str s;

	table_set(t, T_LOOKED, in->strings != NULL);
	str_init(&s);
	if (in->strings) {
		set_sums(t, in->strings);
		explain(&s, in->strings);
	} else {
		str_adds(&s, "Strings were not counted: no heap was found.");
		table_set_text(t, T_WHY, "no heap was found");
	}
	table_set_bytes(t, T_SENTENCE, s.text, s.len);
	str_fini(&s);
}

void build_strings(struct report *r, const struct report_input *in)
{
	const struct strings *s = in->strings;
	static const char title[] = "STRINGS THAT REPEAT";
	size_t n = s ? s->n : 0;
	struct holder held;
	struct table *t;

	/* The sentence says that there is nothing. */
	if (n || r->options->format != REPORT_TEXT) {
		t = report_add(r, SECTION_STRINGS, "strings", title,
			       string_columns, S_COLUMNS);
		t->more = "other texts";
		if (in->reach && n)
			holder_init(&held, in->reach->g);
		for (size_t i = 0; i < n; i++)
			add_string(t, in, &s->items[i],
				   in->reach ? &held : NULL);
		if (in->reach && n)
			holder_fini(&held);
		/* A total is of all. */
		if (s && n == s->distinct)
			add_total_of_used(t, S_USED, in);
	}
	build_sums(r, in, n ? "STRINGS, IN WORDS" : title);
}
