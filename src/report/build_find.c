/* SPDX-License-Identifier: MIT */
/*
 * The tables of what is remarkable: sentences, damage, one address.
 */
#include "report/build.h"

#include <ctype.h>
#include <inttypes.h>

#include "analysis/typed.h"
#include "base/num.h"

enum {
	I_SENTENCE, I_RULE, I_BYTES, I_TEXT, I_REASON, I_COMMAND, I_COLUMNS
};

static const struct column item_columns[I_COLUMNS] = {
	[I_SENTENCE] = COLUMN("sentence", "", TEXT, .flags = COLUMN_NO_DATA),
	[I_RULE] = DATA_COLUMN("rule", TEXT),
	[I_BYTES] = DATA_COLUMN("bytes", BYTES),
	[I_TEXT] = DATA_COLUMN("text", TEXT),
	[I_REASON] = DATA_COLUMN("reason", TEXT),
	[I_COMMAND] = COLUMN("command", "", TEXT, .flags = COLUMN_OWN_LINE),
};

static void build_advice(struct report *r, const struct standout *s)
{
	struct table *t = report_add(r, SECTION_STANDOUT, "advice", "ADVICE",
				     item_columns, I_COLUMNS);

	t->form = TABLE_SENTENCES;
	for (size_t i = 0; i < s->n_advice; i++) {
		const struct standout_advice *a = &s->advice[i];

		table_row(t);
		table_set_text(t, I_RULE, a->rule);
		if (a->bytes)
			table_set(t, I_BYTES, a->bytes);
		table_set_text(t, I_TEXT, a->text);
		table_set_text(t, I_REASON, a->reason);
		table_printf(t, I_SENTENCE, "%s  %s", a->text, a->reason);
		if (a->command)
			table_set_text(t, I_COMMAND, a->command);
	}
}

void build_standout(struct report *r, const struct report_input *in)
{
	const struct standout *s = in->standout;
	struct table *t = report_add(r, SECTION_STANDOUT, "standout",
				     "WHAT STANDS OUT", item_columns,
				     I_COLUMNS);

	t->form = s->n_items ? TABLE_NUMBERED : TABLE_SENTENCES;
	for (size_t i = 0; i < s->n_items; i++) {
		table_row(t);
		table_set_text(t, I_RULE, s->item[i].rule);
		/* Damage weighs more than any number of bytes. */
		if (s->item[i].weight < UINT64_MAX / 2)
			table_set(t, I_BYTES, s->item[i].weight);
		table_set_text(t, I_TEXT, s->item[i].text);
		table_set_text(t, I_SENTENCE, s->item[i].text);
	}
	if (!s->n_items && s->nothing) {
		table_row(t);
		table_set_text(t, I_RULE, "nothing");
		table_set_text(t, I_TEXT, s->nothing);
		table_set_text(t, I_SENTENCE, s->nothing);
	}
	build_advice(r, s);
}

enum {
	N_SENTENCE, N_CODE, N_ARENA, N_ADDRESS, N_SKIPPED, N_TEXT, N_KIND,
	N_MEANING, N_FILL, N_BEFORE, N_BEFORE_SIZE, N_BEFORE_STATE, N_VALUE,
	N_VALUE_TEXT, N_WRITTEN, N_MINOR, N_COLUMNS
};

static const struct column finding_columns[N_COLUMNS] = {
	[N_SENTENCE] = COLUMN("sentence", "", TEXT, .flags = COLUMN_NO_DATA),
	[N_CODE] = DATA_COLUMN("code", TEXT),
	[N_ARENA] = DATA_COLUMN("arena", TEXT),
	[N_ADDRESS] = DATA_COLUMN("address", ADDR),
	[N_SKIPPED] = DATA_COLUMN("skipped_bytes", BYTES),
	[N_TEXT] = COLUMN("text", "", TEXT,
			  .flags = COLUMN_NO_TEXT | COLUMN_CONTENT),
	[N_KIND] = DATA_COLUMN("kind", TEXT),
	[N_MEANING] = DATA_COLUMN("meaning", TEXT),
	[N_FILL] = DATA_COLUMN("fill", TEXT),
	[N_BEFORE] = DATA_COLUMN("block_before", ADDR),
	[N_BEFORE_SIZE] = DATA_COLUMN("block_before_size", BYTES),
	[N_BEFORE_STATE] = DATA_COLUMN("block_before_state", TEXT),
	[N_VALUE] = COLUMN("value", "", ADDR,
			   .flags = COLUMN_NO_TEXT | COLUMN_CONTENT),
	[N_VALUE_TEXT] = COLUMN("value_text", "", TEXT,
				.flags = COLUMN_NO_TEXT | COLUMN_CONTENT),
	[N_WRITTEN] = COLUMN("written_text", "", TEXT,
			     .flags = COLUMN_NO_TEXT | COLUMN_CONTENT),
	[N_MINOR] = DATA_COLUMN("minor", FLAG),
};

static const struct damage_case *case_of(const struct damage *d, size_t note)
{
	for (size_t i = 0; i < d->n_cases; i++)
		if (d->cases[i].note == note)
			return &d->cases[i];
	return NULL;
}

/*
 * For people: where, what the walk met, what that means.  What the walk met
 * may quote the process, so a redacted report has the code in its place.
 */
static void set_sentence(struct table *t, const struct report *r,
			 const struct heap *h, const struct heap_note *n,
			 vaddr addr, const struct damage_case *c)
{
	char size[NUM_MAX];
	struct str s;

	str_init(&s);
	if (n->arena < h->n_arenas)
		str_printf(&s, "arena %s: ", h->arenas[n->arena].name);
	if (!r->options->redact)
		str_adds(&s, n->text);
	else if (addr)
		str_printf(&s, "%s at 0x%" PRIx64, n->code, addr);
	else
		str_adds(&s, n->code);
	if (n->skipped_bytes) {
		num_format_size(size, n->skipped_bytes);
		str_printf(&s, ", %s skipped", size);
	}
	if (c && c->text && c->text[0])
		str_printf(&s, ".  %c%s.", toupper((unsigned char)c->text[0]),
			   c->text + 1);
	if (c && c->fill_text && !r->options->redact)
		str_printf(&s, "  What was written reads \"%s\".",
			   c->fill_text);
	table_set_bytes(t, N_SENTENCE, s.text, s.len);
	str_fini(&s);
}

static void set_case(struct table *t, const struct damage_case *c)
{
	table_set_text(t, N_KIND, damage_kind_name(c->kind));
	if (c->text)
		table_set_text(t, N_MEANING, c->text);
	table_set_text(t, N_FILL, damage_fill_name(c->fill));
	if (c->has_before) {
		table_set(t, N_BEFORE, c->before.addr);
		table_set(t, N_BEFORE_SIZE, c->before.size);
		table_set_text(t, N_BEFORE_STATE,
			       block_state_name(c->before.state));
	}
	if (c->has_value) {
		table_set(t, N_VALUE, c->value);
		table_set_text(t, N_VALUE_TEXT, c->value_text);
	}
	if (c->fill_text)
		table_set_text(t, N_WRITTEN, c->fill_text);
}

/*
 * Where a finding is.  An overwritten link is an address that the process
 * never had: the bytes written over it, and no business of a redacted report.
 */
static vaddr finding_addr(const struct report *r,
			  const struct report_input *in, vaddr addr)
{
	if (r->options->redact && space_why(in->sp, addr) == SPACE_UNMAPPED)
		return 0;
	return addr;
}

static void add_finding(struct table *t, const struct report *r,
			const struct report_input *in, size_t note)
{
	const struct heap_note *n = &in->heap->notes[note];
	const struct damage_case *c = case_of(in->damage, note);
	vaddr addr = finding_addr(r, in, n->addr);

	table_row(t);
	set_sentence(t, r, in->heap, n, addr, c);
	table_set_text(t, N_CODE, n->code);
	if (n->arena < in->heap->n_arenas)
		table_set_text(t, N_ARENA, in->heap->arenas[n->arena].name);
	if (addr)
		table_set(t, N_ADDRESS, addr);
	table_set(t, N_SKIPPED, n->skipped_bytes);
	table_set_text(t, N_TEXT, n->text);
	if (c)
		set_case(t, c);
	table_set(t, N_MINOR, n->minor);
}

/* WHERE not adding up would be our mistake: it is told, not hidden. */
static void add_where_finding(struct table *t, const struct where *w)
{
	int64_t off;

	if (where_check(w, &off))
		return;
	table_row(t);
	table_printf(t, N_SENTENCE, "the rows of WHERE are %" PRId64
		     " bytes off private memory: a mistake of heapcore, "
		     "please report it", off);
	table_set_text(t, N_CODE, "where-sum");
	table_printf(t, N_TEXT, "rows of WHERE are %" PRId64 " bytes off",
		     off);
}

static void add_dropped(struct table *t, uint64_t dropped)
{
	if (!dropped)
		return;
	table_row(t);
	table_printf(t, N_SENTENCE, "%" PRIu64 " more findings were not kept",
		     dropped);
	table_set_text(t, N_CODE, "dropped");
	table_printf(t, N_TEXT, "%" PRIu64 " findings", dropped);
}

/* Sentences that may name files of this machine. */
static void add_typed(struct table *t, const struct report *r,
		      const struct typed *ty)
{
	for (size_t i = 0; ty && i < ty->n_notes; i++) {
		const struct typed_note *n = &ty->notes[i];

		table_row(t);
		table_set_text(t, N_SENTENCE, r->options->redact ? n->code
								: n->text);
		table_set_text(t, N_CODE, n->code);
		table_set_text(t, N_TEXT, n->text);
		table_set(t, N_MINOR, true);
	}
}

void build_findings(struct report *r, const struct report_input *in)
{
	struct table *t = report_add(r, SECTION_FINDINGS, "findings",
				     "FINDINGS", finding_columns, N_COLUMNS);

	t->form = TABLE_SENTENCES;
	for (size_t i = 0; i < in->heap->n_notes; i++) {
		add_finding(t, r, in, i);
		if (in->heap->notes[i].skipped_bytes)
			t->title = "NOT DECODED";
	}
	add_typed(t, r, in->typed);
	add_where_finding(t, in->where);
	add_dropped(t, in->heap->notes_dropped);
}

enum {
	D_TEXT, D_CODE, D_NOTICED, D_BLOCK_TEXT, D_BLOCK, D_BLOCK_SIZE,
	D_MEANING, D_ADDRESS, D_ON_STACK, D_COLUMNS
};

static const struct column abort_columns[D_COLUMNS] = {
	[D_TEXT] = COLUMN("text", "it said", TEXT, .flags = COLUMN_CONTENT),
	[D_CODE] = DATA_COLUMN("code", TEXT),
	[D_NOTICED] = COLUMN("noticed", "it noticed", TEXT),
	[D_BLOCK_TEXT] = COLUMN("block_text", "that block is", TEXT,
				.flags = COLUMN_NO_DATA),
	[D_BLOCK] = DATA_COLUMN("block", ADDR),
	[D_BLOCK_SIZE] = DATA_COLUMN("block_size", BYTES),
	[D_MEANING] = COLUMN("meaning", "which means", TEXT),
	[D_ADDRESS] = DATA_COLUMN("address", ADDR),
	[D_ON_STACK] = DATA_COLUMN("on_stack", FLAG),
};

void build_abort(struct report *r, const struct report_input *in)
{
	const struct damage_abort *a = &in->damage->abort;
	struct table *t;

	if (!a->found)
		return;
	t = report_add(r, SECTION_ABORT, "abort", "WHY THE C LIBRARY STOPPED",
		       abort_columns, D_COLUMNS);
	t->form = TABLE_OBJECT;
	table_row(t);
	table_set_text(t, D_TEXT, a->text);
	if (a->code)
		table_set_text(t, D_CODE, a->code);
	if (a->noticed)
		table_set_text(t, D_NOTICED, a->noticed);
	if (a->has_block) {
		table_printf(t, D_BLOCK_TEXT, "0x%" PRIx64 ", %" PRIu64
			     " usable bytes", a->block.addr, a->block.usable);
		table_set(t, D_BLOCK, a->block.addr);
		table_set(t, D_BLOCK_SIZE, a->block.size);
	}
	if (a->meaning)
		table_set_text(t, D_MEANING, a->meaning);
	table_set(t, D_ADDRESS, a->addr);
	table_set(t, D_ON_STACK, a->on_stack);
}
