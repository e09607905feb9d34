/* SPDX-License-Identifier: MIT */
/*
 * The report of a comparison: the tables.
 *
 * A column says by .from which one of the list it is made of.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/where.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/num.h"
#include "report/compare.h"

enum diff_section {
	DIFF_TARGETS,		/* JSON only */
	DIFF_TOTALS,		/* JSON only */
	DIFF_WHERE,
	DIFF_CHANGED,
	DIFF_ARENAS,
	DIFF_LEAKS,
	DIFF_CLASSES,
	DIFF_TYPES,
	DIFF_PHP,
	DIFF_NOTES,		/* JSON only */
};
enum { DIFF_SECTIONS = 10 };

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

/* ---- rows ---- */

/*
 * An amount has three columns: old, new, change.  Of the second kind, text
 * shows the change alone, of the third nothing.
 */
#define HIDDEN COLUMN_NO_TEXT
#define OF(column) .from = (column) + 1
#define AMOUNT(at, list, key, unit, type, flag, last_type, last, last_flag) \
	[at] = COLUMN(key "old" unit, "old", type, .flags = flag,	\
		      .width = 10),					\
	[(at) + 1] = COLUMN(key "new" unit, "new", type, .flags = flag,	\
			    .width = 10),				\
	[(at) + 2] = COLUMN(key "change" unit, last, last_type,		\
			    .flags = last_flag, .width = 10, OF(list))
#define BYTES_ALL(at, list, key) \
	AMOUNT(at, list, key, "_bytes", BYTES, COLUMN_SUM, CHANGE,	\
	       "change", COLUMN_SUM)
#define BYTES_CHANGE(at, list, key, title) \
	AMOUNT(at, list, key, "_bytes", BYTES, COLUMN_SUM | HIDDEN,	\
	       CHANGE, title, COLUMN_SUM)
#define BYTES_DATA(at, list, key) \
	AMOUNT(at, list, key, "_bytes", BYTES, HIDDEN, CHANGE, "", HIDDEN)
#define COUNT_DATA(at, list, key) \
	AMOUNT(at, list, key, "", COUNT, HIDDEN, CHANGE_COUNT, "", HIDDEN)
#define COUNT_CHANGE(at, list, key, title) \
	AMOUNT(at, list, key, "", COUNT, HIDDEN, CHANGE_COUNT, title,	\
	       COLUMN_SUM)

static void set_change(struct table *t, size_t last, const struct change *c)
{
	if (c->known[0])
		table_set(t, last - 2, c->amount[0]);
	if (c->known[1])
		table_set(t, last - 1, c->amount[1]);
	if (c->sure)
		table_set_signed(t, last, c->change);
}

static void set_label(struct table *t, size_t column, const struct compare *c,
		      enum compare_list list, size_t pair, size_t from)
{
	const struct table *own;
	const struct cell *cell = compare_label(c, list, pair, from, &own);

	table_copy(t, column, own, cell);
}

/*
 * A new row for a pair.  How far it moved: the largest change of bytes that
 * the text shows.
 */
static uint64_t add_pair(struct table *t, const struct compare *c,
			 enum compare_list list, size_t pair)
{
	uint64_t moved = 0;

	table_row(t);
	for (size_t i = 0; i < t->n_columns; i++) {
		const struct column *column = &t->columns[i];
		struct change x;

		if (!column->from)
			continue;
		if (column->type != COLUMN_CHANGE &&
		    column->type != COLUMN_CHANGE_COUNT) {
			set_label(t, i, c, list, pair, column->from - 1);
			continue;
		}
		x = compare_change(c, list, pair, column->from - 1);
		set_change(t, i, &x);
		if (column->type == COLUMN_CHANGE && x.sure &&
		    !(column->flags & HIDDEN))
			moved = max_u64(moved, num_abs(x.change));
	}
	return moved;
}

/* A list whose rows become those of a table. */
struct diff_list {
	enum compare_list list;
	unsigned section;
	const char *name, *title;
	const struct column *columns;
	size_t n_columns;
	size_t sort;		/* the column that ranks the rows */
	size_t moved;		/* the one of how far it moved; 0: none */
	/* Text has no row with nothing from this column on; 0: it has all. */
	size_t zero;
	size_t same;		/* not in text if all rows have one; 0 */
	bool no_total;
	void (*set_name)(struct table *t, const struct compare *c,
			 size_t pair);	/* or NULL */
};

/* A table without any change says nothing in text, unless asked for. */
static void build_list(struct report *r, const struct compare *c,
		       const struct diff_list *l)
{
	struct table *t = report_add(r, l->section, l->name, l->title,
				     l->columns, l->n_columns);
	bool text = r->options->format == REPORT_TEXT;
	uint64_t any = 0;

	t->one_unit = true;
	t->shapes = l->list == COMPARE_TYPES;
	for (size_t i = 0; i < c->n_pairs[l->list]; i++) {
		uint64_t moved = add_pair(t, c, l->list, i);

		any |= moved;
		if (l->moved)
			table_set(t, l->moved, moved);
		if (l->set_name)
			l->set_name(t, c, i);
		if (l->zero && text && table_row_is_zero(t, l->zero))
			table_drop_row(t);
	}
	if (l->same)
		table_hide_same(t, l->same);
	if (!l->no_total)
		table_add_total(t);
	table_sort(t, l->sort, false);
	if (!any && text && !report_is_only(r->options, l->section))
		table_fini(&r->tables[--r->n_tables]);
}

/* ---- the two sides ---- */

enum {
	S_PATH, S_KIND, S_PROGRAM, S_PID, S_THREADS, S_PRIVATE, S_STORED,
	S_TORN, S_SCHEMA, S_COMPLETE, S_COLUMNS
};

static const struct column side_columns[S_COLUMNS] = {
	[S_PATH] = COLUMN("path", "", TEXT, .flags = COLUMN_RAW | COLUMN_PATH),
	[S_KIND] = COLUMN("kind", "", TEXT, OF(TARGET_KIND)),
	[S_PROGRAM] = COLUMN("program", "", TEXT,
			     .flags = COLUMN_RAW | COLUMN_PATH,
			     OF(TARGET_PROGRAM)),
	[S_PID] = COLUMN("pid", "", COUNT, OF(TARGET_PID)),
	[S_THREADS] = COLUMN("threads", "", COUNT, OF(TARGET_THREADS)),
	[S_PRIVATE] = COLUMN("private_bytes", "", BYTES, OF(TARGET_PRIVATE)),
	[S_STORED] = COLUMN("stored_bytes", "", BYTES, OF(TARGET_STORED)),
	[S_TORN] = COLUMN("torn", "", FLAG, OF(TARGET_TORN)),
	[S_SCHEMA] = COLUMN("schema", "", COUNT),
	[S_COMPLETE] = COLUMN("complete", "", FLAG),
};

static void build_side(struct report *r, const struct compare_side *side,
		       const char *name)
{
	const struct table *target = &side->list[COMPARE_TARGET];
	struct table *t = report_add(r, DIFF_TARGETS, name, "", side_columns,
				     S_COLUMNS);

	t->form = TABLE_OBJECT;
	table_row(t);
	table_set_text(t, S_PATH, side->name);
	for (size_t i = 0; target->n_rows && i < S_COLUMNS; i++)
		if (side_columns[i].from)
			table_copy(t, i, target,
				   &target->cells[side_columns[i].from - 1]);
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
	BYTES_DATA(T_PRIVATE, TOTALS_PRIVATE, "private_"),
	BYTES_DATA(T_MAPPED, TOTALS_MAPPED, "mapped_"),
	BYTES_DATA(T_USED, TOTALS_USED, "used_"),
	COUNT_DATA(T_USED_BLOCKS, TOTALS_USED_BLOCKS, "used_blocks_"),
	BYTES_DATA(T_FREE, TOTALS_FREE, "free_"),
	BYTES_DATA(T_UNDECODED, TOTALS_UNDECODED, "undecoded_"),
	COUNT_DATA(T_FINDINGS, TOTALS_FINDINGS, "findings_"),
	BYTES_DATA(T_LEAKED, TOTALS_LEAKED, "leaked_"),
	COUNT_DATA(T_LEAKED_BLOCKS, TOTALS_LEAKED_BLOCKS, "leaked_blocks_"),
	[T_GROWTH] = DATA_COLUMN("used_growth_share", SHARE),
};

const struct column *compare_total_columns(size_t *ret_n)
{
	*ret_n = T_COLUMNS;
	return total_columns;
}

static void fill_totals(struct table *t, const struct compare *c)
{
	struct change used = compare_total(c, TOTALS_USED);

	if (!c->n_pairs[COMPARE_TOTALS]) {
		table_row(t);
		return;
	}
	add_pair(t, c, COMPARE_TOTALS, 0);
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
	[W_WHAT] = COLUMN("what", "what", TEXT, .flags = HIDDEN,
			  OF(WHERE_WHAT)),
	[W_TEXT] = COLUMN("text", "", TEXT, .flags = COLUMN_NO_DATA,
			  .width = 35),
	BYTES_ALL(W_BYTES, WHERE_BYTES, ""),
	BYTES_CHANGE(W_STORED, WHERE_STORED, "stored_", "in files"),
	BYTES_DATA(W_RESIDENT, WHERE_RESIDENT, "resident_"),
	BYTES_DATA(W_SWAPPED, WHERE_SWAPPED, "swapped_"),
};

/* A row that another release knows keeps its word. */
static void set_where_text(struct table *t, const struct compare *c,
			   size_t pair)
{
	const struct table *own;
	const struct cell *cell = compare_label(c, COMPARE_WHERE, pair,
						WHERE_WHAT, &own);

	for (int i = 0; i < WHERE_ROWS; i++)
		if (table_says(own, cell, where_row_name(i))) {
			table_set_text(t, W_TEXT, where_row_text(i));
			return;
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

bool compare_side_is_process(const struct compare_side *side)
{
	const struct table *t = &side->list[COMPARE_TARGET];
	const struct cell *kind = &t->cells[TARGET_KIND];

	return t->n_rows && table_says(t, kind, "process");
}

/* Of a core and a process neither word is right. */
static const char *stored_title(const struct compare *c)
{
	bool old = compare_side_is_process(c->side[0]);
	bool new = compare_side_is_process(c->side[1]);

	return old != new ? "touched" : new ? "resident" : "in files";
}

static void build_where(struct report *r, const struct compare *c)
{
	struct table *t;

	if (!c->has[COMPARE_WHERE] && !report_is_only(r->options, DIFF_WHERE))
		return;
	t = report_add(r, DIFF_WHERE, "where", "WHERE THE MEMORY IS",
		       where_columns, W_COLUMNS);
	t->whole = true;
	t->one_unit = true;
	for (size_t i = 0; i < c->n_pairs[COMPARE_WHERE]; i++) {
		add_pair(t, c, COMPARE_WHERE, i);
		set_where_text(t, c, i);
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
	[C_RULE] = DATA_COLUMN("rule", TEXT),
	[C_CHANGE] = DATA_COLUMN("change_bytes", CHANGE),
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
	[A_NAME] = COLUMN("name", "", TEXT, .flags = COLUMN_RAW, .width = 20,
			  OF(ARENAS_NAME)),
	[A_OLD_NAME] = COLUMN("old_name", "", TEXT, .flags = COLUMN_RAW |
			      HIDDEN),
	[A_ADDRESS] = COLUMN("address", "", ADDR, .flags = HIDDEN,
			     OF(ARENAS_ADDRESS)),
	BYTES_ALL(A_MAPPED, ARENAS_MAPPED, "mapped_"),
	BYTES_CHANGE(A_USED, ARENAS_USED, "used_", "in use"),
	BYTES_CHANGE(A_FREE, ARENAS_FREE, "free_", "free"),
	BYTES_DATA(A_TRIMMABLE, ARENAS_TRIMMABLE, "trimmable_"),
	COUNT_DATA(A_USED_BLOCKS, ARENAS_USED_BLOCKS, "used_blocks_"),
	[A_MOVED] = DATA_COLUMN("moved_bytes", BYTES),
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

/* ---- size classes ---- */

enum {
	K_SIZE, K_ALLOCATOR, K_MIN, K_MAX, K_USED, K_USED_BLOCKS = K_USED + 3,
	K_FREE = K_USED_BLOCKS + 3, K_FREE_BLOCKS = K_FREE + 3,
	K_MOVED = K_FREE_BLOCKS + 3, K_COLUMNS
};

static const struct column class_columns[K_COLUMNS] = {
	[K_SIZE] = COLUMN("size", "", TEXT, .flags = COLUMN_NO_DATA,
			  .width = 18),
	[K_ALLOCATOR] = COLUMN("allocator", "allocator", TEXT,
			       OF(CLASSES_ALLOCATOR)),
	[K_MIN] = COLUMN("min_bytes", "", BYTES, .flags = HIDDEN,
			 OF(CLASSES_MIN)),
	[K_MAX] = COLUMN("max_bytes", "", BYTES, .flags = HIDDEN,
			 OF(CLASSES_MAX)),
	BYTES_ALL(K_USED, CLASSES_USED, "used_"),
	COUNT_CHANGE(K_USED_BLOCKS, CLASSES_USED_BLOCKS, "used_blocks_",
		     "blocks"),
	BYTES_CHANGE(K_FREE, CLASSES_FREE, "free_", "free"),
	COUNT_DATA(K_FREE_BLOCKS, CLASSES_FREE_BLOCKS, "free_blocks_"),
	[K_MOVED] = DATA_COLUMN("moved_bytes", BYTES),
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

static void set_size(struct table *t, const struct compare *c, size_t pair)
{
	struct str size;

	str_init(&size);
	compare_size_text(c, pair, &size);
	table_set_text(t, K_SIZE, size.text);
	str_fini(&size);
}

/* ---- leaks ---- */

enum {
	L_NAME, L_GRADE, L_BYTES, L_BLOCKS = L_BYTES + 3,
	L_COLUMNS = L_BLOCKS + 3
};

static const struct column leak_columns[L_COLUMNS] = {
	[L_NAME] = COLUMN("name", "", TEXT, .flags = COLUMN_RAW, .width = 20,
			  OF(LEAKS_NAME)),
	[L_GRADE] = COLUMN("grade", "grade", TEXT, .flags = COLUMN_RAW,
			   OF(LEAKS_GRADE)),
	BYTES_ALL(L_BYTES, LEAKS_BYTES, ""),
	COUNT_CHANGE(L_BLOCKS, LEAKS_BLOCKS, "blocks_", "blocks"),
};

/* ---- types ---- */

enum {
	Y_NAME, Y_BYTES, Y_BLOCKS = Y_BYTES + 3, Y_COLUMNS = Y_BLOCKS + 3
};

static const struct column type_columns[Y_COLUMNS] = {
	[Y_NAME] = COLUMN("name", "", TEXT, .flags = COLUMN_RAW, .width = 30,
			  OF(TYPES_NAME)),
	BYTES_ALL(Y_BYTES, TYPES_BYTES, ""),
	COUNT_CHANGE(Y_BLOCKS, TYPES_BLOCKS, "blocks_", "blocks"),
};

/* Look-alike blocks have the name that analyze gives them. */
static void set_shape(struct table *t, const struct compare *c, size_t pair)
{
	const struct table *own;

	if (compare_label(c, COMPARE_TYPES, pair, TYPES_SHAPE, &own)->known)
		set_label(t, Y_NAME, c, COMPARE_TYPES, pair, TYPES_SHAPE);
}

/* ---- what PHP programs hold ---- */

enum { O_NAME, O_HOLDS, O_COLUMNS = O_HOLDS + 3 };

static const struct column holder_columns[O_COLUMNS] = {
	[O_NAME] = COLUMN("name", "", TEXT, .width = 34,
			  .flags = COLUMN_RAW | COLUMN_BACKSLASH,
			  OF(PHP_HOLDERS_NAME)),
	BYTES_ALL(O_HOLDS, PHP_HOLDERS_HOLDS, "holds_"),
};

enum {
	B_NAME, B_BYTES, B_OBJECTS = B_BYTES + 3, B_COLUMNS = B_OBJECTS + 3
};

static const struct column object_columns[B_COLUMNS] = {
	[B_NAME] = COLUMN("name", "", TEXT, .width = 30,
			  .flags = COLUMN_RAW | COLUMN_BACKSLASH,
			  OF(PHP_CLASSES_NAME)),
	BYTES_ALL(B_BYTES, PHP_CLASSES_BYTES, ""),
	COUNT_CHANGE(B_OBJECTS, PHP_CLASSES_OBJECTS, "objects_", "objects"),
};

/* Of what has several lists, the first one must be there. */
static const struct diff_list lists[] = {
	{ COMPARE_ARENAS, DIFF_ARENAS, "arenas", "ARENAS", arena_columns,
	  A_COLUMNS, .sort = A_MOVED, .moved = A_MOVED,
	  .set_name = set_old_name },
	{ COMPARE_LEAKS, DIFF_LEAKS, "leaks", "LEAKED", leak_columns,
	  L_COLUMNS, .sort = L_BYTES + 2 },
	/* The allocator's own blocks are neither in use nor free. */
	{ COMPARE_CLASSES, DIFF_CLASSES, "classes", "SIZES OF BLOCKS",
	  class_columns, K_COLUMNS, .sort = K_MOVED, .moved = K_MOVED,
	  .zero = K_USED, .set_name = set_size, .same = K_ALLOCATOR },
	{ COMPARE_TYPES, DIFF_TYPES, "types", "TYPES", type_columns,
	  Y_COLUMNS, .sort = Y_BYTES + 2, .set_name = set_shape },
	{ COMPARE_PHP_HOLDERS, DIFF_PHP, "php_holders",
	  "PHP VARIABLES, AND WHAT THEY ALONE HOLD", holder_columns,
	  O_COLUMNS, .sort = O_HOLDS + 2, .no_total = true },
	{ COMPARE_PHP_CLASSES, DIFF_PHP, "php_classes",
	  "PHP OBJECTS BY CLASS", object_columns, B_COLUMNS,
	  .sort = B_BYTES + 2, .no_total = true },
};

static void build_lists(struct report *r, const struct compare *c,
			unsigned section)
{
	bool only = report_is_only(r->options, section);

	for (size_t i = 0; i < countof(lists); i++) {
		if (lists[i].section != section)
			continue;
		if (only || c->has[lists[i].list])
			build_list(r, c, &lists[i]);
		only = false;
	}
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

/* Of the others, lists become tables. */
static void (*const builders[DIFF_SECTIONS])(struct report *r,
					     const struct compare *c) = {
	[DIFF_TARGETS] = build_targets,
	[DIFF_TOTALS] = build_totals,
	[DIFF_WHERE] = build_where,
	[DIFF_CHANGED] = build_changed,
	[DIFF_NOTES] = build_notes,
};

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
	const char *name = r->options->redact ? file_base_name(s->name)
					      : s->name;
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
	struct str word[3];	/* options, and the two sides */

	str_init(&word[0]);
	str_adds(&word[0], "--only=classes --rows=20");
	for (int i = 0; i < 2; i++) {
		struct str *to = &word[i + 1];

		str_init(to);
		if (c->side[i]->pid)
			str_printf(to, "-p %" PRIu32, c->side[i]->pid);
		else
			report_add_word(to, c->side[i]->name);
	}
	str_addc(&r->more, '\n');
	report_add_command(&r->more, "More: heapcore diff ", word, 3);
	for (int i = 0; i < 3; i++)
		str_fini(&word[i]);
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
	for (unsigned i = 0; i < DIFF_SECTIONS; i++) {
		if (!report_wants(r->options, i))
			continue;
		if (builders[i])
			builders[i](r, c);
		else
			build_lists(r, c, i);
	}
	return report_finish(r, err);
}
