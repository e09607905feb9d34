/* SPDX-License-Identifier: MIT */
/*
 * The report of a comparison: the tables.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/where.h"
#include "base/mem.h"
#include "base/num.h"
#include "report/compare_rows.h"

#define IN_BOTH (SECTION_IN_TEXT | SECTION_IN_JSON)
#define JSON_ALWAYS (SECTION_IN_JSON | SECTION_ALWAYS_JSON | SECTION_NO_WORD)

static const struct report_section words[DIFF_SECTIONS] = {
	[DIFF_TARGETS] = { "targets", JSON_ALWAYS },
	[DIFF_TOTALS] = { "totals", SECTION_IN_JSON | SECTION_NO_WORD },
	[DIFF_WHERE] = { "where", IN_BOTH },
	[DIFF_CHANGED] = { "changed", IN_BOTH },
	[DIFF_ARENAS] = { "arenas", IN_BOTH },
	[DIFF_LEAKS] = { "leaks", IN_BOTH },
	[DIFF_CLASSES] = { "classes", IN_BOTH },
	[DIFF_TYPES] = { "types", IN_BOTH },
	[DIFF_PHP] = { "php", IN_BOTH },
	[DIFF_NOTES] = { "notes", JSON_ALWAYS },
};

const struct report_kind report_diff = {
	.schema = "heapcore-diff/1",
	.sections = words,
	.n_sections = DIFF_SECTIONS,
};

/* ---- the two sides ---- */

enum {
	S_PATH, S_KIND, S_PROGRAM, S_PID, S_THREADS, S_PRIVATE, S_STORED,
	S_TORN, S_SCHEMA, S_COMPLETE, S_COLUMNS
};

static const struct column side_columns[S_COLUMNS] = {
	[S_PATH] = COLUMN("path", "", TEXT, .flags = COLUMN_RAW | COLUMN_PATH),
	[S_KIND] = COLUMN("kind", "", TEXT),
	[S_PROGRAM] = COLUMN("program", "", TEXT,
			     .flags = COLUMN_RAW | COLUMN_PATH),
	[S_PID] = COLUMN("pid", "", COUNT),
	[S_THREADS] = COLUMN("threads", "", COUNT),
	[S_PRIVATE] = COLUMN("private_bytes", "", BYTES),
	[S_STORED] = COLUMN("stored_bytes", "", BYTES),
	[S_TORN] = COLUMN("torn", "", FLAG),
	[S_SCHEMA] = COLUMN("schema", "", COUNT),
	[S_COMPLETE] = COLUMN("complete", "", FLAG),
};

static void build_side(struct report *r, const struct compare_side *side,
		       const char *name)
{
	static const unsigned from[][2] = {
		{ S_KIND, TARGET_KIND }, { S_PROGRAM, TARGET_PROGRAM },
		{ S_PID, TARGET_PID }, { S_THREADS, TARGET_THREADS },
		{ S_PRIVATE, TARGET_PRIVATE }, { S_STORED, TARGET_STORED },
		{ S_TORN, TARGET_TORN },
	};
	const struct table *target = &side->list[COMPARE_TARGET];
	struct table *t = report_add(r, DIFF_TARGETS, name, "", side_columns,
				     S_COLUMNS);

	t->form = TABLE_OBJECT;
	table_row(t);
	table_set_text(t, S_PATH, side->name);
	for (size_t i = 0; target->n_rows && i < countof(from); i++) {
		const struct cell *c = &target->cells[from[i][1]];

		if (!c->known)
			continue;
		if (side_columns[from[i][0]].type == COLUMN_TEXT)
			table_set_bytes(t, from[i][0], table_text(target, c),
					c->text.len);
		else
			table_set(t, from[i][0], c->u);
	}
	if (side->schema)
		table_set(t, S_SCHEMA, side->schema);
	table_set(t, S_COMPLETE, side->complete);
}

static void build_targets(struct report *r, const struct compare *c)
{
	build_side(r, c->side[0], "old");
	build_side(r, c->side[1], "new");
}

/* ---- totals ---- */

enum {
	T_PRIVATE = 0, T_MAPPED = 3, T_USED = 6, T_USED_BLOCKS = 9,
	T_FREE = 12, T_UNDECODED = 15, T_FINDINGS = 18, T_LEAKED = 21,
	T_LEAKED_BLOCKS = 24, T_GROWTH = 27,
	T_COLUMNS
};

static const struct column total_columns[T_COLUMNS] = {
	BYTES_DATA(T_PRIVATE, "private_"),
	BYTES_DATA(T_MAPPED, "mapped_"),
	BYTES_DATA(T_USED, "used_"),
	COUNT_DATA(T_USED_BLOCKS, "used_blocks_"),
	BYTES_DATA(T_FREE, "free_"),
	BYTES_DATA(T_UNDECODED, "undecoded_"),
	COUNT_DATA(T_FINDINGS, "findings_"),
	BYTES_DATA(T_LEAKED, "leaked_"),
	COUNT_DATA(T_LEAKED_BLOCKS, "leaked_blocks_"),
	[T_GROWTH] = COLUMN("used_growth_share", "", SHARE, .flags = HIDDEN),
};

static const struct measure total_measures[] = {
	{ TOTALS_PRIVATE, T_PRIVATE, false },
	{ TOTALS_MAPPED, T_MAPPED, false },
	{ TOTALS_USED, T_USED, false },
	{ TOTALS_USED_BLOCKS, T_USED_BLOCKS, false },
	{ TOTALS_FREE, T_FREE, false },
	{ TOTALS_UNDECODED, T_UNDECODED, false },
	{ TOTALS_FINDINGS, T_FINDINGS, false },
	{ TOTALS_LEAKED, T_LEAKED, false },
	{ TOTALS_LEAKED_BLOCKS, T_LEAKED_BLOCKS, false },
};

const struct column *compare_total_columns(size_t *ret_n)
{
	*ret_n = T_COLUMNS;
	return total_columns;
}

static void fill_totals(struct table *t, const struct compare *c)
{
	struct change used = compare_total(c, TOTALS_USED);

	table_row(t);
	if (!c->n_pairs[COMPARE_TOTALS])
		return;
	set_measures(t, c, COMPARE_TOTALS, 0, total_measures,
		     countof(total_measures));
	if (used.sure && used.amount[0])
		table_set_real(t, T_GROWTH, (double)used.change /
					    (double)used.amount[0]);
}

static void build_totals(struct report *r, const struct compare *c)
{
	struct table *t = report_add(r, DIFF_TOTALS, "totals", "TOTALS",
				     total_columns, T_COLUMNS);

	t->form = TABLE_OBJECT;
	fill_totals(t, c);
}

void compare_totals(const struct compare *c, struct cell *ret)
{
	struct table t;

	table_init(&t, "totals", "", total_columns, T_COLUMNS);
	fill_totals(&t, c);
	memcpy(ret, t.cells, T_COLUMNS * sizeof(*ret));
	table_fini(&t);
}

/* ---- WHERE ---- */

enum {
	W_WHAT, W_TEXT, W_BYTES, W_STORED = W_BYTES + 3,
	W_RESIDENT = W_STORED + 3, W_SWAPPED = W_RESIDENT + 3,
	W_COLUMNS = W_SWAPPED + 3
};

static const struct column where_columns[W_COLUMNS] = {
	[W_WHAT] = COLUMN("what", "what", TEXT, .flags = COLUMN_NO_TEXT),
	[W_TEXT] = COLUMN("text", "", TEXT, .flags = COLUMN_NO_DATA,
			  .width = 35),
	BYTES_ALL(W_BYTES, ""),
	BYTES_CHANGE(W_STORED, "stored_", "in files"),
	BYTES_DATA(W_RESIDENT, "resident_"),
	BYTES_DATA(W_SWAPPED, "swapped_"),
};

static const struct measure where_measures[] = {
	{ WHERE_BYTES, W_BYTES, true },
	{ WHERE_STORED, W_STORED, true },
	{ WHERE_RESIDENT, W_RESIDENT, false },
	{ WHERE_SWAPPED, W_SWAPPED, false },
};

/* A row that another release knows keeps its word. */
static void set_where_text(struct table *t, const struct compare *c,
			   size_t pair)
{
	const struct table *own;
	const struct cell *cell = compare_label(c, COMPARE_WHERE, pair,
						WHERE_WHAT, &own);
	const char *word = cell->known ? table_text(own, cell) : "";

	for (int i = 0; i < WHERE_ROWS; i++) {
		const char *name = where_row_name(i);

		if (strlen(name) == cell->text.len &&
		    !memcmp(name, word, cell->text.len)) {
			table_set_text(t, W_TEXT, where_row_text(i));
			return;
		}
	}
	set_label(t, W_TEXT, c, COMPARE_WHERE, pair, WHERE_WHAT);
}

/* What is really there moved otherwise than the sizes did. */
static bool stored_says_more(const struct compare *c)
{
	bool differs = false;

	for (size_t i = 0; i < c->n_pairs[COMPARE_WHERE]; i++) {
		struct change b = compare_change(c, COMPARE_WHERE, i,
						 WHERE_BYTES);
		struct change s = compare_change(c, COMPARE_WHERE, i,
						 WHERE_STORED);

		if (!s.sure)
			return false;
		differs |= b.change != s.change;
	}
	return differs;
}

static bool is_process_side(const struct compare_side *side)
{
	static const char process[] = "process";
	const struct table *t = &side->list[COMPARE_TARGET];
	const struct cell *kind = &t->cells[TARGET_KIND];

	return t->n_rows && kind->known && kind->text.len == strlen(process) &&
	       !memcmp(table_text(t, kind), process, kind->text.len);
}

/* Of a core and a process neither word is right. */
static const char *stored_title(const struct compare *c)
{
	bool old = is_process_side(c->side[0]);
	bool new = is_process_side(c->side[1]);

	return old != new ? "touched" : new ? "resident" : "in files";
}

static void build_where(struct report *r, const struct compare *c)
{
	struct table *t = report_add(r, DIFF_WHERE, "where",
				     "WHERE THE MEMORY IS", where_columns,
				     W_COLUMNS);

	t->whole = true;
	t->one_unit = true;
	for (size_t i = 0; i < c->n_pairs[COMPARE_WHERE]; i++) {
		table_row(t);
		set_label(t, W_WHAT, c, COMPARE_WHERE, i, WHERE_WHAT);
		set_where_text(t, c, i);
		set_measures(t, c, COMPARE_WHERE, i, where_measures,
			     countof(where_measures));
	}
	table_add_total(t);
	table_set_text(t, W_TEXT, "total private memory");
	/* What is touched counts, as in a report on one of them. */
	table_sort(t, W_BYTES + 2, false);
	if (stored_says_more(c))
		table_sort(t, W_STORED + 2, false);
	else
		t->hidden |= UINT64_C(1) << (W_STORED + 2);
	table_retitle(t, W_STORED + 2, stored_title(c));
}

/* ---- what changed ---- */

enum { C_RULE, C_CHANGE, C_TEXT, C_COLUMNS };

static const struct column changed_columns[C_COLUMNS] = {
	[C_RULE] = COLUMN("rule", "", TEXT, .flags = COLUMN_NO_TEXT),
	[C_CHANGE] = COLUMN("change_bytes", "", CHANGE, .flags = HIDDEN),
	[C_TEXT] = COLUMN("text", "", TEXT),
};

static void build_changed(struct report *r, const struct compare *c)
{
	struct table *t = report_add(r, DIFF_CHANGED, "changed",
				     "WHAT CHANGED", changed_columns,
				     C_COLUMNS);
	struct said said;

	said_init(&said, c);
	t->whole = true;
	t->form = said.n > 1 ? TABLE_NUMBERED : TABLE_SENTENCES;
	for (size_t i = 0; i < said.n; i++) {
		table_row(t);
		table_set_text(t, C_RULE, said.item[i].rule);
		table_set_signed(t, C_CHANGE, said.item[i].change);
		table_set_text(t, C_TEXT, said.item[i].text);
	}
	said_fini(&said);
}

/* ---- arenas ---- */

enum {
	A_NAME, A_OLD_NAME, A_ADDRESS, A_MAPPED, A_USED = A_MAPPED + 3,
	A_FREE = A_USED + 3, A_TRIMMABLE = A_FREE + 3,
	A_USED_BLOCKS = A_TRIMMABLE + 3, A_MOVED = A_USED_BLOCKS + 3,
	A_COLUMNS
};

static const struct column arena_columns[A_COLUMNS] = {
	[A_NAME] = COLUMN("name", "", TEXT, .flags = COLUMN_RAW, .width = 20),
	[A_OLD_NAME] = COLUMN("old_name", "", TEXT, .flags = COLUMN_RAW |
			      HIDDEN),
	[A_ADDRESS] = COLUMN("address", "", ADDR, .flags = HIDDEN),
	BYTES_ALL(A_MAPPED, "mapped_"),
	BYTES_CHANGE(A_USED, "used_", "in use"),
	BYTES_CHANGE(A_FREE, "free_", "free"),
	BYTES_DATA(A_TRIMMABLE, "trimmable_"),
	COUNT_DATA(A_USED_BLOCKS, "used_blocks_"),
	[A_MOVED] = COLUMN("moved_bytes", "", BYTES, .flags = HIDDEN),
};

static const struct measure arena_measures[] = {
	{ ARENAS_MAPPED, A_MAPPED, true },
	{ ARENAS_USED, A_USED, true },
	{ ARENAS_FREE, A_FREE, true },
	{ ARENAS_TRIMMABLE, A_TRIMMABLE, false },
	{ ARENAS_USED_BLOCKS, A_USED_BLOCKS, false },
};

/* Of one that both have: its name in the older report, if it was another. */
static void set_old_name(struct table *t, const struct compare *c,
			 size_t pair)
{
	const struct compare_pair *p = &c->pairs[COMPARE_ARENAS][pair];
	const struct table *old = &c->side[0]->list[COMPARE_ARENAS];
	const struct table *new = &c->side[1]->list[COMPARE_ARENAS];
	const struct cell *a, *b;

	if (p->row[0] == COMPARE_NO_ROW || p->row[1] == COMPARE_NO_ROW)
		return;
	a = &old->cells[p->row[0] * old->n_columns + ARENAS_NAME];
	b = &new->cells[p->row[1] * new->n_columns + ARENAS_NAME];
	if (!a->known || (b->known && a->text.len == b->text.len &&
			  !memcmp(table_text(old, a), table_text(new, b),
				  a->text.len)))
		return;
	table_set_bytes(t, A_OLD_NAME, table_text(old, a), a->text.len);
}

static void build_arenas(struct report *r, const struct compare *c)
{
	struct table *t = report_add(r, DIFF_ARENAS, "arenas", "ARENAS",
				     arena_columns, A_COLUMNS);
	uint64_t any = 0;

	t->one_unit = true;
	for (size_t i = 0; i < c->n_pairs[COMPARE_ARENAS]; i++) {
		uint64_t moved;

		table_row(t);
		set_label(t, A_NAME, c, COMPARE_ARENAS, i, ARENAS_NAME);
		set_old_name(t, c, i);
		set_label(t, A_ADDRESS, c, COMPARE_ARENAS, i, ARENAS_ADDRESS);
		moved = set_measures(t, c, COMPARE_ARENAS, i, arena_measures,
				     countof(arena_measures));
		table_set(t, A_MOVED, moved);
		any |= moved;
	}
	table_add_total(t);
	table_sort(t, A_MOVED, false);
	if (is_idle(r, DIFF_ARENAS, any))
		drop_last(r);
}

/* ---- size classes ---- */

enum {
	K_SIZE, K_ALLOCATOR, K_MIN, K_MAX, K_USED, K_USED_BLOCKS = K_USED + 3,
	K_FREE = K_USED_BLOCKS + 3, K_FREE_BLOCKS = K_FREE + 3,
	K_MOVED = K_FREE_BLOCKS + 3, K_COLUMNS
};

static const struct column class_columns[K_COLUMNS] = {
	[K_SIZE] = COLUMN("size", "", TEXT, .flags = COLUMN_NO_DATA,
			  .width = 18),
	[K_ALLOCATOR] = COLUMN("allocator", "allocator", TEXT),
	[K_MIN] = COLUMN("min_bytes", "", BYTES, .flags = HIDDEN),
	[K_MAX] = COLUMN("max_bytes", "", BYTES, .flags = HIDDEN),
	BYTES_ALL(K_USED, "used_"),
	COUNT_CHANGE(K_USED_BLOCKS, "used_blocks_", "blocks"),
	BYTES_CHANGE(K_FREE, "free_", "free"),
	COUNT_DATA(K_FREE_BLOCKS, "free_blocks_"),
	[K_MOVED] = COLUMN("moved_bytes", "", BYTES, .flags = HIDDEN),
};

static const struct measure class_measures[] = {
	{ CLASSES_USED, K_USED, true },
	{ CLASSES_USED_BLOCKS, K_USED_BLOCKS, false },
	{ CLASSES_FREE, K_FREE, true },
	{ CLASSES_FREE_BLOCKS, K_FREE_BLOCKS, false },
};

/* "96K", "1M": a power of two, or a number just as it is. */
static void add_size(struct str *s, uint64_t bytes)
{
	static const char units[] = "\0KMGTPE";
	unsigned power = 0;

	while (power < 6 && bytes && !(bytes & 1023)) {
		bytes >>= 10;
		power++;
	}
	str_printf(s, "%" PRIu64, bytes);
	if (power)
		str_addc(s, units[power]);
}

void compare_size_text(const struct compare *c, size_t pair, struct str *ret)
{
	const struct table *t;
	const struct cell *min = compare_label(c, COMPARE_CLASSES, pair,
					       CLASSES_MIN, &t);
	const struct cell *max = compare_label(c, COMPARE_CLASSES, pair,
					       CLASSES_MAX, &t);

	if (!min->known || !max->known) {
		str_addc(ret, '?');
	} else if (min->u == max->u) {
		str_printf(ret, "%" PRIu64 " bytes", min->u);
	} else {
		add_size(ret, min->u);
		str_adds(ret, " to ");
		add_size(ret, max->u + 1);
	}
}

static uint64_t add_class(struct table *t, const struct compare *c,
			  size_t pair, struct str *size)
{
	uint64_t moved;

	table_row(t);
	str_clear(size);
	compare_size_text(c, pair, size);
	table_set_text(t, K_SIZE, size->text);
	set_label(t, K_ALLOCATOR, c, COMPARE_CLASSES, pair,
		  CLASSES_ALLOCATOR);
	set_label(t, K_MIN, c, COMPARE_CLASSES, pair, CLASSES_MIN);
	set_label(t, K_MAX, c, COMPARE_CLASSES, pair, CLASSES_MAX);
	moved = set_measures(t, c, COMPARE_CLASSES, pair, class_measures,
			     countof(class_measures));
	table_set(t, K_MOVED, moved);
	return moved;
}

static void build_classes(struct report *r, const struct compare *c)
{
	struct table *t = report_add(r, DIFF_CLASSES, "classes",
				     "SIZES OF BLOCKS", class_columns,
				     K_COLUMNS);
	uint64_t any = 0;
	struct str size;

	t->one_unit = true;
	str_init(&size);
	for (size_t i = 0; i < c->n_pairs[COMPARE_CLASSES]; i++) {
		any |= add_class(t, c, i, &size);
		/* The allocator's own blocks: neither in use nor free. */
		if (r->options->format == REPORT_TEXT &&
		    table_row_is_zero(t, K_USED))
			table_drop_row(t);
	}
	str_fini(&size);
	table_hide_same(t, K_ALLOCATOR);
	table_add_total(t);
	table_sort(t, K_MOVED, false);
	if (is_idle(r, DIFF_CLASSES, any))
		drop_last(r);
}

/* ---- leaks ---- */

enum {
	L_NAME, L_GRADE, L_BYTES, L_BLOCKS = L_BYTES + 3,
	L_COLUMNS = L_BLOCKS + 3
};

static const struct column leak_columns[L_COLUMNS] = {
	[L_NAME] = COLUMN("name", "", TEXT, .flags = COLUMN_RAW, .width = 20),
	[L_GRADE] = COLUMN("grade", "grade", TEXT, .flags = COLUMN_RAW),
	BYTES_ALL(L_BYTES, ""),
	COUNT_CHANGE(L_BLOCKS, "blocks_", "blocks"),
};

static const struct measure leak_measures[] = {
	{ LEAKS_BYTES, L_BYTES, true },
	{ LEAKS_BLOCKS, L_BLOCKS, false },
};

static void build_leaks(struct report *r, const struct compare *c)
{
	struct table *t = report_add(r, DIFF_LEAKS, "leaks", "LEAKED",
				     leak_columns, L_COLUMNS);
	uint64_t any = 0;

	t->one_unit = true;
	for (size_t i = 0; i < c->n_pairs[COMPARE_LEAKS]; i++) {
		table_row(t);
		set_label(t, L_NAME, c, COMPARE_LEAKS, i, LEAKS_NAME);
		set_label(t, L_GRADE, c, COMPARE_LEAKS, i, LEAKS_GRADE);
		any |= set_measures(t, c, COMPARE_LEAKS, i, leak_measures,
				    countof(leak_measures));
	}
	table_add_total(t);
	table_sort(t, L_BYTES + 2, false);
	if (is_idle(r, DIFF_LEAKS, any))
		drop_last(r);
}

/* ---- types ---- */

enum {
	Y_NAME, Y_BYTES, Y_BLOCKS = Y_BYTES + 3, Y_COLUMNS = Y_BLOCKS + 3
};

static const struct column type_columns[Y_COLUMNS] = {
	[Y_NAME] = COLUMN("name", "", TEXT, .flags = COLUMN_RAW, .width = 30),
	BYTES_ALL(Y_BYTES, ""),
	COUNT_CHANGE(Y_BLOCKS, "blocks_", "blocks"),
};

static const struct measure type_measures[] = {
	{ TYPES_BYTES, Y_BYTES, true },
	{ TYPES_BLOCKS, Y_BLOCKS, false },
};

static void build_types(struct report *r, const struct compare *c)
{
	struct table *t = report_add(r, DIFF_TYPES, "types", "TYPES",
				     type_columns, Y_COLUMNS);
	uint64_t any = 0;

	t->one_unit = true;
	for (size_t i = 0; i < c->n_pairs[COMPARE_TYPES]; i++) {
		table_row(t);
		set_label(t, Y_NAME, c, COMPARE_TYPES, i, TYPES_NAME);
		any |= set_measures(t, c, COMPARE_TYPES, i, type_measures,
				    countof(type_measures));
	}
	table_add_total(t);
	table_sort(t, Y_BYTES + 2, false);
	if (is_idle(r, DIFF_TYPES, any))
		drop_last(r);
}

/* ---- notes ---- */

enum { N_SIDE, N_CODE, N_TEXT, N_COLUMNS };

static const struct column note_columns[N_COLUMNS] = {
	[N_SIDE] = COLUMN("side", "", TEXT),
	[N_CODE] = COLUMN("code", "", TEXT),
	[N_TEXT] = COLUMN("text", "", TEXT),
};

static void build_notes(struct report *r, const struct compare *c)
{
	static const char *const sides[] = { "old", "new", "both" };
	struct table *t = report_add(r, DIFF_NOTES, "notes", "NOTES",
				     note_columns, N_COLUMNS);

	for (size_t i = 0; i < c->n_notes; i++) {
		table_row(t);
		table_set_text(t, N_SIDE, sides[c->notes[i].side]);
		table_set_text(t, N_CODE, c->notes[i].code);
		table_set_text(t, N_TEXT, c->notes[i].text);
	}
}

/* ---- the report ---- */

static void (*const builders[DIFF_SECTIONS])(struct report *r,
					     const struct compare *c) = {
	[DIFF_TARGETS] = build_targets,
	[DIFF_TOTALS] = build_totals,
	[DIFF_WHERE] = build_where,
	[DIFF_CHANGED] = build_changed,
	[DIFF_ARENAS] = build_arenas,
	[DIFF_LEAKS] = build_leaks,
	[DIFF_CLASSES] = build_classes,
	[DIFF_TYPES] = build_types,
	[DIFF_PHP] = compare_build_php,
	[DIFF_NOTES] = build_notes,
};

/* Lists that the builder of a section needs of both sides. */
static bool can_build(const struct compare *c, unsigned section)
{
	static const unsigned needs[DIFF_SECTIONS] = {
		[DIFF_WHERE] = COMPARE_WHERE,
		[DIFF_ARENAS] = COMPARE_ARENAS,
		[DIFF_LEAKS] = COMPARE_LEAKS,
		[DIFF_CLASSES] = COMPARE_CLASSES,
		[DIFF_TYPES] = COMPARE_TYPES,
		[DIFF_PHP] = COMPARE_PHP_HOLDERS,
	};

	return !needs[section] || c->has[needs[section]];
}

/* "all decoded", "3.6K not decoded", "INCOMPLETE". */
static void head_quality(struct str *s, const struct compare *c, int side)
{
	struct change undecoded = compare_where(c, "undecoded", WHERE_BYTES);
	char size[NUM_MAX];

	num_format_size(size, undecoded.amount[side]);
	for (size_t i = 0; i < c->n_notes; i++)
		if (c->notes[i].side == (unsigned)side &&
		    !c->notes[i].harmless) {
			str_adds(s, "INCOMPLETE as a report");
			return;
		}
	if (undecoded.amount[side])
		str_printf(s, "%s not decoded", size);
	else if (c->side[side]->complete)
		str_adds(s, "all decoded");
	else
		str_adds(s, "INCOMPLETE");
}

/* "old  core.1: appd, pid 1234, 1.80G of private memory, all decoded" */
static void head_side(struct report *r, const struct compare *c, int side)
{
	const struct compare_side *s = c->side[side];
	const struct table *t = &s->list[COMPARE_TARGET];
	const char *slash = strrchr(s->name, '/');
	const char *name = r->options->redact && slash ? slash + 1 : s->name;
	struct str *head = &r->head[side];
	const struct cell *cells = t->cells;
	char size[NUM_MAX];

	str_adds(head, side ? "new  " : "old  ");
	str_add_escaped(head, name, strlen(name));
	str_adds(head, ": ");
	if (t->n_rows && cells[TARGET_PROGRAM].known) {
		const char *program = table_text(t, &cells[TARGET_PROGRAM]);
		size_t n = cells[TARGET_PROGRAM].text.len;
		const char *last = memrchr(program, '/', n);

		if (r->options->redact && last) {
			n -= (size_t)(last + 1 - program);
			program = last + 1;
		}
		str_add_escaped(head, program, n);
	} else {
		str_addc(head, '?');
	}
	if (s->pid)
		str_adds(head, ", running");
	else if (t->n_rows && cells[TARGET_PID].known)
		str_printf(head, ", pid %" PRIu64, cells[TARGET_PID].u);
	if (t->n_rows && cells[TARGET_PRIVATE].known)
		num_format_size(size, cells[TARGET_PRIVATE].u);
	else
		snprintf(size, sizeof(size), "?");
	str_printf(head, ", %s" REPORT_OF_MEMORY " ", size);
	head_quality(head, c, side);
}

static void add_more(struct report *r, const struct compare *c)
{
	str_adds(&r->more, "\nMore: heapcore diff --only=classes --rows=20");
	for (int i = 0; i < 2; i++) {
		str_addc(&r->more, ' ');
		if (c->side[i]->pid)
			str_printf(&r->more, "-p %" PRIu32, c->side[i]->pid);
		else
			report_add_word(&r->more, c->side[i]->name);
	}
	str_addc(&r->more, '\n');
}

/* What status 3 stands for, but for the notes, which are on stderr. */
static void say_incomplete(struct str *s, const struct compare *c)
{
	bool old = !c->side[0]->complete, new = !c->side[1]->complete;

	if (old || new)
		str_printf(s, "%s: heapcore analyze says why.", old && new ?
			   "both reports are" : old ? "the old report is" :
			   "the new report is");
}

bool compare_build(struct report *r, const struct compare *c, struct err *err)
{
	head_side(r, c, 0);
	head_side(r, c, 1);
	add_more(r, c);
	r->complete = c->complete;
	say_incomplete(&r->incomplete, c);
	for (unsigned i = 0; i < DIFF_SECTIONS; i++)
		if (report_wants(r->options, i) &&
		    (can_build(c, i) || report_is_only(r->options, i)))
			builders[i](r, c);
	return report_finish(r, err);
}
