/* SPDX-License-Identifier: MIT */
/*
 * The tables of what repeats in blocks: equal ones, records in large ones, and
 * what is unused at their ends.
 */
#include "report/build.h"

#include <inttypes.h>
#include <string.h>

#include "analysis/dup_blocks.h"
#include "analysis/period.h"
#include "analysis/refs.h"
#include "analysis/tails.h"
#include "base/num.h"

/* In text a sentence says that there is no row. */
static bool wants_rows(const struct report *r, size_t n)
{
	return n || r->options->format != REPORT_TEXT;
}

static void add_size(struct str *s, uint64_t bytes)
{
	char size[NUM_MAX];

	num_format_size(size, bytes);
	str_adds(s, size);
}

static void add_tally(struct str *s, const struct tally *t)
{
	add_size(s, t->bytes);
	str_printf(s, " in %" PRIu64 " block%s", t->blocks,
		   t->blocks == 1 ? "" : "s");
}

/* ---- equal blocks ---- */

enum {
	D_WHAT, D_COPIES, D_BYTES, D_SHARE, D_SAVED, D_USABLE, D_EXAMPLE,
	D_BEGINS, D_USED, D_COLUMNS
};

static const struct column dup_columns[D_COLUMNS] = {
	[D_WHAT] = COLUMN("name", "", TEXT, .flags = COLUMN_RAW),
	[D_COPIES] = COLUMN("copies", "copies", COUNT, .width = 9),
	[D_BYTES] = COLUMN("bytes", "bytes", BYTES, .width = 9),
	[D_SHARE] = COLUMN("share", "", SHARE, .part = D_BYTES + 1,
			   .whole = D_USED + 1, .flags = COLUMN_NO_TEXT),
	[D_SAVED] = COLUMN("saved_bytes", "if shared", BYTES),
	[D_USABLE] = DATA_COLUMN("usable_bytes", BYTES),
	[D_EXAMPLE] = COLUMN("example", "example", ADDR),
	[D_BEGINS] = COLUMN("begins", "begins with", TEXT,
			    .flags = COLUMN_RAW | COLUMN_CONTENT |
				     COLUMN_LEFT),
	[D_USED] = OF_USED,
};

enum { BEGINS = 16 };

static void add_dup(struct table *t, const struct report_input *in,
		    const struct dup_entry *e)
{
	uint64_t first = 0;
	struct str s;

	memcpy(&first, e->text, min_u64(in->sp->word, e->n));
	str_init(&s);
	table_row(t);
	if (first && refs_class(in->names, first, &s))
		table_set_bytes(t, D_WHAT, s.text, s.len);
	else
		table_printf(t, D_WHAT, "%" PRIu64 " bytes", e->n);
	str_fini(&s);
	table_set(t, D_COPIES, e->copies);
	table_set(t, D_BYTES, e->bytes);
	table_set(t, D_SAVED, dup_saved(e));
	table_set(t, D_USABLE, e->n);
	table_set_bytes(t, D_BEGINS, e->text, min_u64(e->n, BEGINS));
	table_set(t, D_EXAMPLE, e->addr);
	table_set(t, D_USED, sum_heap(in->heap).used);
}

enum {
	E_SENTENCE, E_LOOKED, E_COMPARED, E_COMPARED_BYTES, E_DISTINCT,
	E_COPIES, E_BYTES, E_SAVED, E_ZERO, E_ZERO_BYTES, E_FILLED,
	E_FILLED_BYTES, E_PARTS, E_PARTS_BYTES, E_FLOOR, E_GIVEN_UP,
	E_COLUMNS
};

static const struct column dup_sums[E_COLUMNS] = {
	[E_SENTENCE] = COLUMN("sentence", "", TEXT, .flags = COLUMN_NO_DATA),
	[E_LOOKED] = DATA_COLUMN("looked", FLAG),
	[E_COMPARED] = DATA_COLUMN("compared_blocks", COUNT),
	[E_COMPARED_BYTES] = DATA_COLUMN("compared_bytes", BYTES),
	[E_DISTINCT] = DATA_COLUMN("repeated", COUNT),
	[E_COPIES] = DATA_COLUMN("total_copies", COUNT),
	[E_BYTES] = DATA_COLUMN("total_bytes", BYTES),
	[E_SAVED] = DATA_COLUMN("total_saved_bytes", BYTES),
	[E_ZERO] = DATA_COLUMN("zero_blocks", COUNT),
	[E_ZERO_BYTES] = DATA_COLUMN("zero_bytes", BYTES),
	[E_FILLED] = DATA_COLUMN("filled_blocks", COUNT),
	[E_FILLED_BYTES] = DATA_COLUMN("filled_bytes", BYTES),
	[E_PARTS] = DATA_COLUMN("not_compared_blocks", COUNT),
	[E_PARTS_BYTES] = DATA_COLUMN("not_compared_bytes", BYTES),
	[E_FLOOR] = DATA_COLUMN("exact_from_bytes", BYTES),
	[E_GIVEN_UP] = DATA_COLUMN("not_counted", COUNT),
};

static void set_dup_sums(struct table *t, const struct dup_blocks *d)
{
	table_set(t, E_COMPARED, d->compared.blocks);
	table_set(t, E_COMPARED_BYTES, d->compared.bytes);
	table_set(t, E_DISTINCT, d->distinct);
	table_set(t, E_COPIES, d->copies);
	table_set(t, E_BYTES, d->bytes);
	table_set(t, E_SAVED, d->saved);
	table_set(t, E_ZERO, d->zero.blocks);
	table_set(t, E_ZERO_BYTES, d->zero.bytes);
	table_set(t, E_FILLED, d->filled.blocks);
	table_set(t, E_FILLED_BYTES, d->filled.bytes);
	table_set(t, E_PARTS, d->in_parts.blocks);
	table_set(t, E_PARTS_BYTES, d->in_parts.bytes);
	table_set(t, E_FLOOR, d->floor);
	table_set(t, E_GIVEN_UP, d->given_up);
}

static void explain_dups(struct str *s, const struct dup_blocks *d)
{
	str_printf(s, "%" PRIu64 " of %" PRIu64 " blocks in use are equal to "
		   "another one", d->copies, d->compared.blocks);
	if (d->saved) {
		str_adds(s, "; one of each would save ");
		add_size(s, d->saved);
	}
	str_addc(s, '.');
	if (d->zero.blocks) {
		str_adds(s, "  Not among them: ");
		add_tally(s, &d->zero);
		str_adds(s, " with nothing but zeros.");
	}
	if (d->filled.blocks) {
		str_adds(s, "  And ");
		add_tally(s, &d->filled);
		str_adds(s, " that are one other word again and again.");
	}
	if (d->in_parts.blocks) {
		str_adds(s, "  Not compared, since pages are missing or were "
			 "never touched: ");
		add_tally(s, &d->in_parts);
		str_addc(s, '.');
	}
	if (d->floor) {
		str_adds(s, "  There are too many to count all: complete are "
			 "those that take ");
		add_size(s, d->floor);
		str_adds(s, " or more.");
	}
}

void build_duplicates(struct report *r, const struct report_input *in)
{
	static const char title[] = "BLOCKS THAT ARE EQUAL";
	const struct dup_blocks *d = in->dup_blocks;
	size_t n = d ? d->n : 0;
	struct table *t;
	struct str s;

	if (wants_rows(r, n)) {
		t = report_add(r, SECTION_DUPLICATES, "duplicates", title,
			       dup_columns, D_COLUMNS);
		for (size_t i = 0; i < n; i++)
			add_dup(t, in, &d->items[i]);
	}
	t = add_sums(r, SECTION_DUPLICATES, "duplicates",
		     n ? "EQUAL BLOCKS, IN WORDS" : title, dup_sums,
		     E_COLUMNS);
	table_set(t, E_LOOKED, d != NULL);
	str_init(&s);
	if (d) {
		set_dup_sums(t, d);
		explain_dups(&s, d);
	} else {
		str_adds(&s, "No heap was found.");
	}
	table_set_bytes(t, E_SENTENCE, s.text, s.len);
	str_fini(&s);
}

/* ---- large blocks ---- */

enum {
	P_WHAT, P_FORM, P_PERIOD, P_BLOCKS, P_BYTES, P_SHARE, P_RECORDS,
	P_LARGEST, P_SIZE, P_USED, P_COLUMNS
};

static const char *const form_words[PERIOD_FORMS + 1] = {
	[PERIOD_NONE] = "mixed",
	[PERIOD_RECORDS] = "records",
	[PERIOD_ADDRESSES] = "addresses",
	[PERIOD_SMALL] = "small_numbers",
	[PERIOD_NUMBERS] = "numbers",
	[PERIOD_FLOATS] = "floats",
	[PERIOD_TEXT] = "text",
	[PERIOD_VALUE] = "one_value",
	[PERIOD_ZERO] = "zero",
};

static const char *const form_texts[PERIOD_FORMS] = {
	[PERIOD_NONE] = "no pattern",
	[PERIOD_RECORDS] = "records",
	[PERIOD_ADDRESSES] = "addresses",
	[PERIOD_SMALL] = "small numbers",
	[PERIOD_NUMBERS] = "numbers",
	[PERIOD_FLOATS] = "floating point",
	[PERIOD_TEXT] = "text",
	[PERIOD_VALUE] = "one value",
	[PERIOD_ZERO] = "nothing but zeros",
};

static const struct column period_columns[P_COLUMNS] = {
	[P_WHAT] = COLUMN("name", "", TEXT, .width = 25),
	[P_FORM] = COLUMN("form", "", TEXT, .flags = COLUMN_NO_TEXT,
			  .words = form_words),
	[P_PERIOD] = DATA_COLUMN("record_bytes", BYTES),
	[P_BLOCKS] = COLUMN("blocks", "blocks", COUNT, .flags = COLUMN_SUM),
	[P_BYTES] = COLUMN("bytes", "bytes", BYTES, .flags = COLUMN_SUM),
	[P_SHARE] = COLUMN("share", "of use", SHARE, .part = P_BYTES + 1,
			   .whole = P_USED + 1, .flags = COLUMN_OF_TOTAL),
	[P_RECORDS] = COLUMN("records", "records", COUNT),
	[P_LARGEST] = COLUMN("largest", "largest", ADDR),
	[P_SIZE] = DATA_COLUMN("largest_bytes", BYTES),
	[P_USED] = OF_USED,
};

static void add_period(struct table *t, const struct period_group *g)
{
	table_row(t);
	if (g->form == PERIOD_RECORDS)
		table_printf(t, P_WHAT, "records of %u bytes", g->period);
	else
		table_set_text(t, P_WHAT, form_texts[g->form]);
	table_set_text(t, P_FORM, form_words[g->form]);
	table_set(t, P_BLOCKS, g->total.blocks);
	table_set(t, P_BYTES, g->total.bytes);
	if (g->period) {
		table_set(t, P_PERIOD, g->period);
		table_set(t, P_RECORDS, g->records);
	}
	table_set(t, P_LARGEST, g->largest);
	table_set(t, P_SIZE, g->largest_size);
}

enum { R_SENTENCE, R_LOOKED, R_BLOCKS, R_BYTES, R_COLUMNS };

static const struct column period_sums[R_COLUMNS] = {
	[R_SENTENCE] = COLUMN("sentence", "", TEXT, .flags = COLUMN_NO_DATA),
	[R_LOOKED] = DATA_COLUMN("looked", FLAG),
	[R_BLOCKS] = DATA_COLUMN("total_blocks", COUNT),
	[R_BYTES] = DATA_COLUMN("total_bytes", BYTES),
};

/* The group whose largest block is the largest of all with records. */
static void explain_periods(struct str *s, const struct periods *p)
{
	const struct period_group *best = NULL;

	if (!p) {
		str_adds(s, "No heap was found.");
		return;
	}
	add_tally(s, &p->total);
	str_printf(s, " of %dK and more.", PERIOD_MIN / 1024);
	for (size_t i = 0; i < p->n; i++)
		if (p->groups[i].form == PERIOD_RECORDS &&
		    (!best || p->groups[i].largest_size > best->largest_size))
			best = &p->groups[i];
	if (!best)
		return;
	str_adds(s, "  The one of ");
	add_size(s, best->largest_size);
	str_printf(s, " at 0x%" PRIx64 " has room for %" PRIu64 " records of "
		   "%u bytes.", best->largest,
		   best->largest_size / best->period, best->period);
}

static void build_records(struct report *r, const struct report_input *in)
{
	static const char title[] = "WHAT LARGE BLOCKS HOLD";
	const struct periods *p = in->periods;
	size_t n = p ? p->n : 0;
	struct table *t;
	struct str s;

	if (wants_rows(r, n)) {
		t = report_add(r, SECTION_PATTERNS, "records", title,
			       period_columns, P_COLUMNS);
		for (size_t i = 0; i < n; i++)
			add_period(t, &p->groups[i]);
		add_total_of_used(t, P_USED, in);
	}
	t = add_sums(r, SECTION_PATTERNS, "records",
		     n ? "LARGE BLOCKS, IN WORDS" : title, period_sums,
		     R_COLUMNS);
	table_set(t, R_LOOKED, p != NULL);
	table_set(t, R_BLOCKS, p ? p->total.blocks : 0);
	table_set(t, R_BYTES, p ? p->total.bytes : 0);
	str_init(&s);
	explain_periods(&s, p);
	table_set_bytes(t, R_SENTENCE, s.text, s.len);
	str_fini(&s);
}

/* ---- tails ---- */

enum {
	U_WHAT, U_KIND, U_MIN, U_BLOCKS, U_BYTES, U_TAIL, U_SHARE, U_EXAMPLE,
	U_USED, U_COLUMNS
};

static const char *const kind_texts[TAILS_KINDS] = {
	[TAILS_VECTOR] = "capacity of vectors",
	[TAILS_STRING] = "capacity of strings",
	[TAILS_ZERO] = "zeros at the end",
};

static const struct column tail_columns[U_COLUMNS] = {
	[U_WHAT] = COLUMN("name", "", TEXT, .width = 22,
			  .flags = COLUMN_NO_DATA),
	[U_KIND] = DATA_COLUMN("kind", TEXT),
	[U_MIN] = COLUMN("min_bytes", "size from", BYTES),
	[U_BLOCKS] = COLUMN("blocks", "blocks", COUNT, .flags = COLUMN_SUM),
	[U_BYTES] = COLUMN("bytes", "", BYTES,
			   .flags = COLUMN_SUM | COLUMN_NO_TEXT),
	[U_TAIL] = COLUMN("tail_bytes", "unused", BYTES,
			  .flags = COLUMN_SUM),
	[U_SHARE] = COLUMN("share", "of use", SHARE, .part = U_TAIL + 1,
			   .whole = U_USED + 1, .flags = COLUMN_OF_TOTAL),
	[U_EXAMPLE] = COLUMN("example", "example", ADDR),
	[U_USED] = OF_USED,
};

static void add_tail(struct table *t, enum tails_kind kind,
		     const struct tails_group *g)
{
	table_row(t);
	table_set_text(t, U_WHAT, kind_texts[kind]);
	table_set_text(t, U_KIND, tails_kind_name(kind));
	table_set(t, U_MIN, g->min);
	table_set(t, U_BLOCKS, g->total.blocks);
	table_set(t, U_BYTES, g->total.bytes);
	table_set(t, U_TAIL, g->tail_bytes);
	table_set(t, U_EXAMPLE, g->example);
}

enum { V_SENTENCE, V_LOOKED, V_CLAIMS, V_VECTOR, V_STRING, V_ZERO, V_COLUMNS };

static const struct column tail_sums[V_COLUMNS] = {
	[V_SENTENCE] = COLUMN("sentence", "", TEXT, .flags = COLUMN_NO_DATA),
	[V_LOOKED] = DATA_COLUMN("looked", FLAG),
	[V_CLAIMS] = DATA_COLUMN("claims_looked", FLAG),
	[V_VECTOR] = DATA_COLUMN("vector_bytes", BYTES),
	[V_STRING] = DATA_COLUMN("string_bytes", BYTES),
	[V_ZERO] = DATA_COLUMN("zero_bytes", BYTES),
};

static void explain_tails(struct str *s, const struct tails *t)
{
	uint64_t sum = 0;

	if (!t) {
		str_adds(s, "No heap was found.");
		return;
	}
	for (int k = 0; k < TAILS_KINDS; k++)
		sum += t->total[k].tail_bytes;
	add_size(s, sum);
	str_adds(s, " of blocks in use is unused at their ends");
	for (int k = 0, n = 0; k < TAILS_KINDS; k++) {
		if (!t->total[k].tail_bytes)
			continue;
		str_adds(s, n++ ? ", " : ": ");
		add_size(s, t->total[k].tail_bytes);
		str_printf(s, " %s", kind_texts[k]);
	}
	str_addc(s, '.');
	if (t->no_claims)
		str_adds(s, "  Vectors and strings were not looked for.");
}

static void build_tails(struct report *r, const struct report_input *in)
{
	static const char title[] = "UNUSED TAILS";
	const struct tails *tails = in->tails;
	struct table *t = report_add(r, SECTION_PATTERNS, "tails", title,
				     tail_columns, U_COLUMNS);
	struct str s;

	for (int k = 0; tails && k < TAILS_KINDS; k++)
		for (size_t i = 0; i < countof(tails->groups[k]); i++)
			if (tails->groups[k][i].total.blocks)
				add_tail(t, (enum tails_kind)k,
					 &tails->groups[k][i]);
	table_sort(t, U_TAIL, false);
	add_total_of_used(t, U_USED, in);
	t = add_sums(r, SECTION_PATTERNS, "tails", t->n_rows ?
		     "TAILS, IN WORDS" : title, tail_sums, V_COLUMNS);
	table_set(t, V_LOOKED, tails != NULL);
	table_set(t, V_CLAIMS, tails && !tails->no_claims);
	for (int k = 0; tails && k < TAILS_KINDS; k++)
		table_set(t, V_VECTOR + (size_t)k, tails->total[k].tail_bytes);
	str_init(&s);
	explain_tails(&s, tails);
	table_set_bytes(t, V_SENTENCE, s.text, s.len);
	str_fini(&s);
}

void build_patterns(struct report *r, const struct report_input *in)
{
	build_records(r, in);
	build_tails(r, in);
}
