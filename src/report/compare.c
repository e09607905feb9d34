/* SPDX-License-Identifier: MIT */
#include "report/compare.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/build.h"

static const struct column target_columns[TARGET_COLUMNS] = {
	[TARGET_KIND] = COLUMN("kind", "", TEXT),
	[TARGET_PROGRAM] = COLUMN("program", "", TEXT),
	[TARGET_PID] = COLUMN("pid", "", COUNT),
	[TARGET_THREADS] = COLUMN("threads", "", COUNT),
	[TARGET_PRIVATE] = COLUMN("private_bytes", "", BYTES),
	[TARGET_STORED] = COLUMN("stored_bytes", "", BYTES),
	[TARGET_TORN] = COLUMN("torn", "", FLAG),
	[TARGET_REDACTED] = COLUMN("redacted", "", FLAG),
};

static const struct column totals_columns[TOTALS_COLUMNS] = {
	[TOTALS_PRIVATE] = COLUMN("private_bytes", "", BYTES),
	[TOTALS_MAPPED] = COLUMN("mapped_bytes", "", BYTES),
	[TOTALS_USED] = COLUMN("used_bytes", "", BYTES),
	[TOTALS_USED_BLOCKS] = COLUMN("used_blocks", "", COUNT),
	[TOTALS_FREE] = COLUMN("free_bytes", "", BYTES),
	[TOTALS_UNDECODED] = COLUMN("undecoded_bytes", "", BYTES),
	[TOTALS_FINDINGS] = COLUMN("findings", "", COUNT),
	[TOTALS_LEAKED] = COLUMN("leaked_bytes", "", BYTES),
	[TOTALS_LEAKED_BLOCKS] = COLUMN("leaked_blocks", "", COUNT),
};

static const struct column where_columns[WHERE_COLUMNS] = {
	[WHERE_WHAT] = COLUMN("what", "", TEXT),
	[WHERE_BYTES] = COLUMN("bytes", "", BYTES),
	[WHERE_STORED] = COLUMN("stored_bytes", "", BYTES),
	[WHERE_RESIDENT] = COLUMN("resident_bytes", "", BYTES),
	[WHERE_SWAPPED] = COLUMN("swapped_bytes", "", BYTES),
};

static const struct column arena_columns[ARENAS_COLUMNS] = {
	[ARENAS_NAME] = COLUMN("name", "", TEXT),
	[ARENAS_ADDRESS] = COLUMN("address", "", ADDR),
	[ARENAS_MAPPED] = COLUMN("mapped_bytes", "", BYTES),
	[ARENAS_USED] = COLUMN("used_bytes", "", BYTES),
	[ARENAS_FREE] = COLUMN("free_bytes", "", BYTES),
	[ARENAS_TRIMMABLE] = COLUMN("trimmable_bytes", "", BYTES),
	[ARENAS_USED_BLOCKS] = COLUMN("used_blocks", "", COUNT),
};

static const struct column class_columns[CLASSES_COLUMNS] = {
	[CLASSES_MIN] = COLUMN("min_bytes", "", BYTES),
	[CLASSES_MAX] = COLUMN("max_bytes", "", BYTES),
	[CLASSES_USED] = COLUMN("used_bytes", "", BYTES),
	[CLASSES_USED_BLOCKS] = COLUMN("used_blocks", "", COUNT),
	[CLASSES_FREE] = COLUMN("free_bytes", "", BYTES),
	[CLASSES_FREE_BLOCKS] = COLUMN("free_blocks", "", COUNT),
	[CLASSES_ALLOCATOR] = COLUMN("allocator", "", TEXT),
};

static const struct column leak_columns[LEAKS_COLUMNS] = {
	[LEAKS_NAME] = COLUMN("name", "", TEXT),
	[LEAKS_GRADE] = COLUMN("grade", "", TEXT),
	[LEAKS_HIDDEN] = HIDDEN_NAME,
	[LEAKS_BYTES] = COLUMN("bytes", "", BYTES),
	[LEAKS_BLOCKS] = COLUMN("blocks", "", COUNT),
};

static const struct column type_columns[TYPES_COLUMNS] = {
	[TYPES_NAME] = COLUMN("name", "", TEXT),
	[TYPES_KNOWN_BY] = COLUMN("known_by", "", TEXT),
	[TYPES_SHAPE] = COLUMN("shape", "", TEXT),
	[TYPES_HIDDEN] = HIDDEN_NAME,
	[TYPES_BYTES] = COLUMN("bytes", "", BYTES),
	[TYPES_BLOCKS] = COLUMN("blocks", "", COUNT),
};

static const struct column php_holder_columns[PHP_HOLDERS_COLUMNS] = {
	[PHP_HOLDERS_NAME] = COLUMN("name", "", TEXT),
	[PHP_HOLDERS_KIND] = COLUMN("kind", "", TEXT),
	[PHP_HOLDERS_HEAP] = COLUMN("heap", "", TEXT),
	[PHP_HOLDERS_HIDDEN] = HIDDEN_NAME,
	[PHP_HOLDERS_HOLDS] = COLUMN("holds_bytes", "", BYTES),
};

static const struct column php_class_columns[PHP_CLASSES_COLUMNS] = {
	[PHP_CLASSES_NAME] = COLUMN("name", "", TEXT),
	[PHP_CLASSES_HEAP] = COLUMN("heap", "", TEXT),
	[PHP_CLASSES_HIDDEN] = HIDDEN_NAME,
	[PHP_CLASSES_BYTES] = COLUMN("bytes", "", BYTES),
	[PHP_CLASSES_OBJECTS] = COLUMN("objects", "", COUNT),
};

#define BIT(column) (1u << (column))

/* Every list that is compared. */
static const struct {
	const char *name;	/* in the report */
	const char *people;	/* for messages */
	const struct column *columns;
	size_t n_columns;
	unsigned keys;		/* bits: what names a row */
	unsigned optional;	/* bits: what a row may lack */
	bool may_lack;		/* a report may have no such list */
} lists[COMPARE_LISTS] = {
	[COMPARE_TARGET] = { "target", "description of the process",
		target_columns, TARGET_COLUMNS, 0, ~0u, false },
	[COMPARE_TOTALS] = { "totals", "totals", totals_columns,
		TOTALS_COLUMNS, 0,
		BIT(TOTALS_LEAKED) | BIT(TOTALS_LEAKED_BLOCKS), false },
	[COMPARE_WHERE] = { "where", "rows of where", where_columns,
		WHERE_COLUMNS, BIT(WHERE_WHAT), BIT(WHERE_STORED) |
		BIT(WHERE_RESIDENT) | BIT(WHERE_SWAPPED), false },
	[COMPARE_ARENAS] = { "arenas", "arenas", arena_columns,
		ARENAS_COLUMNS, BIT(ARENAS_NAME),
		BIT(ARENAS_ADDRESS) | BIT(ARENAS_TRIMMABLE), false },
	[COMPARE_CLASSES] = { "classes", "size classes", class_columns,
		CLASSES_COLUMNS, BIT(CLASSES_MIN) | BIT(CLASSES_MAX) |
		BIT(CLASSES_ALLOCATOR), BIT(CLASSES_ALLOCATOR), false },
	[COMPARE_LEAKS] = { "leaks", "leaks", leak_columns, LEAKS_COLUMNS,
		BIT(LEAKS_NAME) | BIT(LEAKS_GRADE), BIT(LEAKS_HIDDEN), true },
	[COMPARE_TYPES] = { "types", "types", type_columns, TYPES_COLUMNS,
		BIT(TYPES_NAME), BIT(TYPES_KNOWN_BY) | BIT(TYPES_SHAPE) |
		BIT(TYPES_HIDDEN), true },
	[COMPARE_PHP_HOLDERS] = { "php_holders", "variables of PHP",
		php_holder_columns, PHP_HOLDERS_COLUMNS,
		BIT(PHP_HOLDERS_NAME) | BIT(PHP_HOLDERS_KIND) |
		BIT(PHP_HOLDERS_HEAP), BIT(PHP_HOLDERS_HIDDEN), true },
	[COMPARE_PHP_CLASSES] = { "php_classes", "classes of PHP",
		php_class_columns, PHP_CLASSES_COLUMNS,
		BIT(PHP_CLASSES_NAME) | BIT(PHP_CLASSES_HEAP),
		BIT(PHP_CLASSES_HIDDEN), true },
};

/* ---- sides ---- */

void compare_side_init(struct compare_side *side, const char *name)
{
	*side = (struct compare_side){ .name = mem_strdup(name) };
	for (size_t i = 0; i < COMPARE_LISTS; i++)
		table_init(&side->list[i], lists[i].name, "",
			   lists[i].columns, lists[i].n_columns);
}

void compare_side_fini(struct compare_side *side)
{
	for (size_t i = 0; i < COMPARE_LISTS; i++)
		table_fini(&side->list[i]);
	free(side->name);
	*side = (struct compare_side){ .name = NULL };
}

/* A list of leaks that nobody looked for is empty and means nothing. */
static void check_looked(struct compare_side *side)
{
	const struct table *totals = &side->list[COMPARE_TOTALS];

	if (!totals->n_rows || !totals->cells[TOTALS_LEAKED].known)
		side->has[COMPARE_LEAKS] = false;
}

/* ---- look-alike blocks ---- */

/*
 * What a shape is called changes with a few blocks ("40: ptr ptr num"): those
 * of one size are one row here.  How much of the name counts.
 */
static size_t fold_len(const struct table *t, const struct cell *c)
{
	const char *text = table_text(t, c);
	const char *colon = c->text.len ? memchr(text, ':', c->text.len)
					: NULL;

	return colon && isdigit((unsigned char)*text)
		? (size_t)(colon - text) : c->text.len;
}

static int by_fold(const void *a, const void *b, void *arg)
{
	const struct table *t = arg;
	const struct cell *x = &t->cells[*(const uint32_t *)a * t->n_columns];
	const struct cell *y = &t->cells[*(const uint32_t *)b * t->n_columns];
	size_t n = fold_len(t, x), m = fold_len(t, y);
	int order = memcmp(table_text(t, x), table_text(t, y), min_u64(n, m));

	return order ? order : n != m ? (n > m) - (n < m) :
	       (x > y) - (x < y);
}

static void fold_row(struct table *to, const struct table *from,
		     const struct cell *cells, bool same)
{
	struct cell *last;
	size_t n = fold_len(from, &cells[TYPES_NAME]);

	if (!same) {
		table_row(to);
		table_printf(to, TYPES_NAME, n < cells[TYPES_NAME].text.len
			     ? "%.*s bytes, look-alike" : "%.*s", (int)n,
			     table_text(from, &cells[TYPES_NAME]));
	}
	if (!same && cells[TYPES_KNOWN_BY].known)
		table_copy(to, TYPES_KNOWN_BY, from, &cells[TYPES_KNOWN_BY]);
	if (!same && cells[TYPES_HIDDEN].known)
		table_copy(to, TYPES_HIDDEN, from, &cells[TYPES_HIDDEN]);
	if (n < cells[TYPES_NAME].text.len)
		table_printf(to, TYPES_SHAPE, same ? "%.*s: several shapes"
			     : "%.*s", same ? (int)n :
			     (int)cells[TYPES_NAME].text.len,
			     table_text(from, &cells[TYPES_NAME]));
	last = &to->cells[to->current];
	for (size_t i = TYPES_BYTES; i < TYPES_COLUMNS; i++)
		if (cells[i].known)
			table_set(to, i, (last[i].known ? last[i].u : 0) +
					 cells[i].u);
}

/* Without it the same blocks have other names. */
static bool has_debug_types(const struct table *t)
{
	static const char *const known[] = { "dwarf", "container", "hint" };

	for (size_t i = 0; i < t->n_rows; i++) {
		const struct cell *c =
			&t->cells[i * t->n_columns + TYPES_KNOWN_BY];

		for (size_t k = 0; k < countof(known); k++)
			if (table_says(t, c, known[k]))
				return true;
	}
	return false;
}

static void fold_shapes(struct table *t)
{
	struct table to;
	uint32_t *rows;

	if (!t->pool.len)
		return;
	rows = mem_alloc((t->n_rows + 1) * sizeof(*rows));
	table_init(&to, t->name, t->title, t->columns, t->n_columns);
	for (size_t i = 0; i < t->n_rows; i++)
		rows[i] = (uint32_t)i;
	qsort_r(rows, t->n_rows, sizeof(*rows), by_fold, t);
	for (size_t i = 0; i < t->n_rows; i++) {
		const struct cell *cells = &t->cells[rows[i] * t->n_columns];
		const struct cell *old =
			&t->cells[rows[i ? i - 1 : 0] * t->n_columns];
		size_t n = fold_len(t, cells);

		fold_row(&to, t, cells, i && n == fold_len(t, old) &&
			 !memcmp(table_text(t, cells), table_text(t, old), n));
	}
	free(rows);
	table_fini(t);
	*t = to;
}

void compare_side_from_saved(struct compare_side *side, const struct saved *s)
{
	side->schema = saved_schema(s);
	side->complete = saved_complete(s);
	for (size_t i = 0; i < COMPARE_LISTS; i++) {
		size_t odd = 0;

		/* Of what has no keys there is exactly one row. */
		side->has[i] = saved_rows(s, &side->list[i], &odd) &&
			       (lists[i].keys || side->list[i].n_rows);
		side->odd += odd;
	}
	check_looked(side);
	side->by_debug = has_debug_types(&side->list[COMPARE_TYPES]);
	fold_shapes(&side->list[COMPARE_TYPES]);
}

/* What a list wants of a report's own table. */
static void copy_rows(struct table *to, const struct table *from)
{
	for (size_t row = 0; row < from->n_rows; row++) {
		table_row(to);
		for (size_t i = 0; i < to->n_columns; i++) {
			int k = column_find(from->columns, from->n_columns,
					    to->columns[i].key);
			struct cell c;

			if (k < 0)
				continue;
			c = table_cell(from, row, (size_t)k);
			table_copy(to, i, from, &c);
		}
	}
}

/* The first table of that name; another one may hold its sums. */
static void copy_table(struct compare_side *side, size_t list,
		       const struct report *r)
{
	for (size_t k = 0; k < r->n_tables; k++) {
		if (strcmp(r->tables[k].name, lists[list].name))
			continue;
		copy_rows(&side->list[list], &r->tables[k]);
		side->has[list] = true;
		return;
	}
}

bool compare_side_from_input(struct compare_side *side,
			     const struct report_input *in, struct err *err)
{
	const struct report_options options = {
		.kind = &report_analyze,
		.format = REPORT_JSON,
		.sections = 1u << SECTION_TARGET | 1u << SECTION_TOTALS |
			    1u << SECTION_WHERE | 1u << SECTION_ARENAS |
			    1u << SECTION_CLASSES |
			    (in->census ? 1u << SECTION_TYPES : 0) |
			    (in->php ? 1u << SECTION_PHP : 0) |
			    (in->reach ? 1u << SECTION_LEAKS : 0),
	};
	struct report r;
	bool ok;

	report_init(&r, &options);
	ok = report_build(&r, in, err);
	for (size_t i = 0; ok && i < COMPARE_LISTS; i++)
		copy_table(side, i, &r);
	check_looked(side);
	side->by_debug = has_debug_types(&side->list[COMPARE_TYPES]);
	fold_shapes(&side->list[COMPARE_TYPES]);
	side->complete = r.complete;
	side->pid = is_process(in->sp) ? in->sp->pid : 0;
	report_fini(&r);
	return ok;
}

static const struct cell *cell_of(const struct compare_side *side,
				  enum compare_list list, size_t row,
				  size_t column)
{
	const struct table *t = &side->list[list];

	return &t->cells[row * t->n_columns + column];
}

/* ---- notes ---- */

static void add_note(struct compare *c, unsigned side, const char *code,
		     const char *fmt, ...) PRINTF_LIKE(4, 5);

static void add_note(struct compare *c, unsigned side, const char *code,
		     const char *fmt, ...)
{
	struct compare_note *note = &MEM_PUSH(c->notes, c->n_notes,
					      c->cap_notes);
	va_list ap;

	*note = (struct compare_note){ .side = side, .code = code };
	va_start(ap, fmt);
	if (vasprintf(&note->text, fmt, ap) < 0)
		note->text = mem_strdup("?");
	va_end(ap);
	c->complete = false;
}

/* One that tells of what was not asked for, or of both sides. */
static void add_hint(struct compare *c, unsigned side, const char *code,
		     const char *text)
{
	bool complete = c->complete;

	add_note(c, side, code, "%s", text);
	c->notes[c->n_notes - 1].harmless = true;
	c->complete = complete;
}

static void missing_list(struct compare *c, unsigned side, unsigned list)
{
	AUTO_FREE char *text = mem_printf("it has no %s: these are not "
					  "compared", lists[list].people);

	/* A report has them only where they were asked for. */
	if (lists[list].may_lack)
		add_hint(c, side, "missing-list", text);
	else
		add_note(c, side, "missing-list", "%s", text);
}

/* Rows that lack what each row of that list has. */
static void check_rows(struct compare *c, unsigned side,
		       enum compare_list list)
{
	const struct table *t = &c->side[side]->list[list];
	const char *key = NULL;
	size_t n = 0;

	for (size_t row = 0; row < t->n_rows; row++)
		for (size_t i = 0; i < t->n_columns; i++) {
			if (lists[list].optional >> i & 1 ||
			    cell_of(c->side[side], list, row, i)->known)
				continue;
			key = t->columns[i].key;
			n++;
			break;
		}
	if (n)
		add_note(c, side, "missing-key", "%zu of its %s lack %s: "
			 "what is missing is not compared", n,
			 lists[list].people, key);
}

static uint64_t sum_of(const struct compare_side *side,
		       enum compare_list list, size_t column)
{
	uint64_t sum = 0;

	for (size_t row = 0; row < side->list[list].n_rows; row++)
		sum += cell_of(side, list, row, column)->u;
	return sum;
}

/* Of a report that was made with --filter: classes of some blocks only. */
static void check_filtered(struct compare *c, unsigned side)
{
	const struct compare_side *s = c->side[side];
	const struct cell *used;

	if (!s->has[COMPARE_CLASSES] || !s->list[COMPARE_TOTALS].n_rows)
		return;
	used = cell_of(s, COMPARE_TOTALS, 0, TOTALS_USED);
	if (used->known &&
	    sum_of(s, COMPARE_CLASSES, CLASSES_USED) != used->u)
		add_note(c, side, "filtered", "its size classes are not all "
			 "blocks in use: was it made with --filter?");
}

static void check_side(struct compare *c, unsigned side)
{
	const struct compare_side *s = c->side[side];

	if (s->schema > SAVED_SCHEMA)
		add_note(c, side, "schema", "it is of a newer kind, "
			 "heapcore-report/%u: only what is known of it is "
			 "compared", s->schema);
	if (s->odd)
		add_note(c, side, "odd", "%zu values in it are not what they "
			 "should be", s->odd);
	for (unsigned i = 0; i < COMPARE_LISTS; i++) {
		bool other = c->side[!side]->has[i];

		if (s->has[i])
			check_rows(c, side, i);
		else if (!lists[i].may_lack || other)
			missing_list(c, side, i);
	}
	check_filtered(c, side);
	c->complete &= s->complete;
}

/* Both with debug information, or both without. */
static bool same_namers(const struct compare *c)
{
	return c->side[0]->by_debug == c->side[1]->by_debug;
}

static void check_types(struct compare *c)
{
	unsigned lacks = c->side[0]->by_debug;

	if (c->side[0]->has[COMPARE_TYPES] &&
	    c->side[1]->has[COMPARE_TYPES] && !same_namers(c))
		add_hint(c, lacks, "other-types", "its types were named "
			 "without debug information, the other's with it: "
			 "they are not compared; analyze --json "
			 "--only=types, or two cores, names both");
}

/* The last part of a path: a redacted report has no more. */
static void base_name(const struct compare_side *side, const char **ret,
		      size_t *ret_n)
{
	const struct table *t = &side->list[COMPARE_TARGET];
	const struct cell *c = cell_of(side, COMPARE_TARGET, 0,
				       TARGET_PROGRAM);
	const char *text = table_text(t, c);
	const char *slash = memrchr(text, '/', c->text.len);

	*ret = slash ? slash + 1 : text;
	*ret_n = (size_t)(text + c->text.len - *ret);
}

static bool knows_program(const struct compare_side *side)
{
	return side->list[COMPARE_TARGET].n_rows &&
	       cell_of(side, COMPARE_TARGET, 0, TARGET_PROGRAM)->known;
}

static void check_programs(struct compare *c)
{
	const char *name[2];
	size_t n[2];
	struct str text;

	for (int i = 0; i < 2; i++) {
		if (!knows_program(c->side[i]))
			return;
		base_name(c->side[i], &name[i], &n[i]);
	}
	if (n[0] == n[1] && !memcmp(name[0], name[1], n[0]))
		return;
	str_init(&text);
	str_adds(&text, "these are of different programs: ");
	str_add_escaped(&text, name[0], n[0]);
	str_adds(&text, " and ");
	str_add_escaped(&text, name[1], n[1]);
	add_hint(c, COMPARE_BOTH_SIDES, "program", text.text);
	str_fini(&text);
}

/* ---- pairs ---- */

struct order {
	const struct compare_side *side;
	enum compare_list list;
	unsigned keys;
};

static int compare_cells(const struct order *x, const struct cell *a,
			 const struct order *y, const struct cell *b,
			 size_t column)
{
	const struct table *s = &x->side->list[x->list];
	const struct table *t = &y->side->list[y->list];
	int order;

	if (!a->known || !b->known)
		return b->known - a->known;
	if (s->columns[column].type != COLUMN_TEXT)
		return (a->u > b->u) - (a->u < b->u);
	order = memcmp(table_text(s, a), table_text(t, b),
		       min_u64(a->text.len, b->text.len));
	return order ? order : (a->text.len > b->text.len) -
			       (a->text.len < b->text.len);
}

/* By the keys; what has an address is not named by its name then. */
static int compare_keys(const struct order *x, uint32_t row_x,
			const struct order *y, uint32_t row_y)
{
	size_t n = lists[x->list].n_columns;

	for (size_t i = n; i--; ) {
		const struct cell *a = cell_of(x->side, x->list, row_x, i);
		const struct cell *b = cell_of(y->side, y->list, row_y, i);
		int order;

		if (!(x->keys >> i & 1))
			continue;
		order = compare_cells(x, a, y, b, i);
		if (order)
			return order;
		if (x->list == COMPARE_ARENAS && i == ARENAS_ADDRESS &&
		    a->known)
			return 0;
	}
	return 0;
}

static int compare_rows(const void *a, const void *b, void *arg)
{
	uint32_t x = *(const uint32_t *)a;
	uint32_t y = *(const uint32_t *)b;
	int order = compare_keys(arg, x, arg, y);

	return order ? order : (x > y) - (x < y);
}

static uint32_t *sorted_rows(struct order *o, size_t n)
{
	uint32_t *rows = mem_alloc((n + 1) * sizeof(*rows));

	for (size_t i = 0; i < n; i++)
		rows[i] = (uint32_t)i;
	qsort_r(rows, n, sizeof(*rows), compare_rows, o);
	return rows;
}

/* ---- size classes of reports that do not say whose they are ---- */

static bool knows_allocators(const struct compare_side *side)
{
	for (size_t i = 0; i < side->list[COMPARE_CLASSES].n_rows; i++)
		if (!cell_of(side, COMPARE_CLASSES, i,
			     CLASSES_ALLOCATOR)->known)
			return false;
	return true;
}

/* One row for each size, of all allocators. */
static void fold_allocators(struct compare_side *side)
{
	struct table *t = &side->list[COMPARE_CLASSES], to;
	struct order o = {
		side, COMPARE_CLASSES, BIT(CLASSES_MIN) | BIT(CLASSES_MAX),
	};
	uint32_t *rows = sorted_rows(&o, t->n_rows);

	table_init(&to, t->name, t->title, t->columns, t->n_columns);
	for (size_t i = 0; i < t->n_rows; i++) {
		const struct cell *c = cell_of(side, o.list, rows[i], 0);
		bool same = i && !compare_keys(&o, rows[i - 1], &o, rows[i]);

		if (!same)
			table_row(&to);
		for (size_t k = 0; k < CLASSES_ALLOCATOR; k++) {
			const struct cell *sum = &to.cells[to.current + k];
			bool adds = same && k >= CLASSES_USED && sum->known;

			if (c[k].known)
				table_set(&to, k, c[k].u +
						  (adds ? sum->u : 0));
		}
	}
	free(rows);
	table_fini(t);
	*t = to;
}

static void match_classes(struct compare *c)
{
	if (knows_allocators(c->side[0]) && knows_allocators(c->side[1]))
		return;
	fold_allocators(c->side[0]);
	fold_allocators(c->side[1]);
}

static void pair_rows(struct compare *c, enum compare_list list,
		      unsigned keys)
{
	struct order o[2];
	uint32_t *rows[2];
	size_t n[2], at[2] = { 0, 0 };
	struct compare_pair *pairs;
	size_t n_pairs = 0;

	for (int i = 0; i < 2; i++) {
		o[i] = (struct order){ c->side[i], list, keys };
		n[i] = c->side[i]->list[list].n_rows;
		rows[i] = sorted_rows(&o[i], n[i]);
	}
	pairs = mem_alloc((n[0] + n[1] + 1) * sizeof(*pairs));
	while (at[0] < n[0] || at[1] < n[1]) {
		struct compare_pair *p = &pairs[n_pairs++];
		int order = at[0] == n[0] ? 1 : at[1] == n[1] ? -1 :
			    compare_keys(&o[0], rows[0][at[0]], &o[1],
					 rows[1][at[1]]);

		p->row[0] = order <= 0 ? rows[0][at[0]++] : COMPARE_NO_ROW;
		p->row[1] = order >= 0 ? rows[1][at[1]++] : COMPARE_NO_ROW;
	}
	free(rows[0]);
	free(rows[1]);
	c->pairs[list] = pairs;
	c->n_pairs[list] = n_pairs;
}

/*
 * Before rows are paired: what does not say which of its names are to be hidden
 * is not compared, and where one side has no names, no one has.
 */
static void prepare_hiding(struct compare *c, bool redact)
{
	unsigned nameless = compare_is_redacted(c->side[1]);
	bool differ = compare_is_redacted(c->side[0]) != nameless;

	if (!redact && !differ)
		return;
	for (unsigned i = 0; i < 2; i++)
		if (compare_drop_named(c->side[i]))
			add_note(c, i, "redact", "it does not say which of "
				 "its names --redact would hide: types, leaks "
				 "and variables are not compared");
	if (differ && compare_hide_names(c->side[!nameless]) && !redact)
		add_hint(c, nameless, "redacted", "it was saved with --redact: "
			 "names made at run time are hidden on both sides");
}

void compare_init(struct compare *c, struct compare_side *old,
		  struct compare_side *new, bool redact)
{
	*c = (struct compare){ .side = { old, new }, .complete = true };
	check_side(c, 0);
	check_side(c, 1);
	check_programs(c);
	check_types(c);
	prepare_hiding(c, redact);
	match_classes(c);
	for (unsigned i = 0; i < COMPARE_LISTS; i++) {
		unsigned keys = lists[i].keys;

		c->has[i] = old->has[i] && new->has[i] &&
			    (i != COMPARE_TYPES || same_namers(c));
		if (i == COMPARE_ARENAS && compare_same_process(c))
			keys |= BIT(ARENAS_ADDRESS);
		if (c->has[i])
			pair_rows(c, i, keys);
	}
	compare_join_arenas(c);
	if (redact) {
		compare_hide_names(old);
		compare_hide_names(new);
	}
}

void compare_fini(struct compare *c)
{
	for (size_t i = 0; i < COMPARE_LISTS; i++)
		free(c->pairs[i]);
	for (size_t i = 0; i < c->n_notes; i++)
		free(c->notes[i].text);
	free(c->notes);
}

/* ---- amounts ---- */

struct change compare_change(const struct compare *c, enum compare_list list,
			     size_t pair, size_t column)
{
	struct change ret = { .sure = true };

	for (int i = 0; i < 2; i++) {
		uint32_t row = c->pairs[list][pair].row[i];
		const struct cell *cell;

		if (row == COMPARE_NO_ROW)
			continue;
		cell = cell_of(c->side[i], list, row, column);
		ret.known[i] = cell->known;
		ret.sure &= cell->known;
		if (cell->known)
			ret.amount[i] = cell->u;
	}
	if (ret.sure)
		ret.change = (int64_t)(ret.amount[1] - ret.amount[0]);
	return ret;
}

struct change compare_total(const struct compare *c, size_t column)
{
	struct change none = { .sure = false };

	if (!c->n_pairs[COMPARE_TOTALS])
		return none;
	return compare_change(c, COMPARE_TOTALS, 0, column);
}

struct change compare_where(const struct compare *c, const char *what,
			    size_t column)
{
	struct change none = { .sure = c->has[COMPARE_WHERE] };

	for (size_t i = 0; i < c->n_pairs[COMPARE_WHERE]; i++) {
		const struct table *t;
		const struct cell *name = compare_label(c, COMPARE_WHERE, i,
							WHERE_WHAT, &t);

		if (table_says(t, name, what))
			return compare_change(c, COMPARE_WHERE, i, column);
	}
	return none;
}

const struct cell *compare_label(const struct compare *c,
				 enum compare_list list, size_t pair,
				 size_t column, const struct table **ret)
{
	int side = c->pairs[list][pair].row[1] != COMPARE_NO_ROW;

	*ret = &c->side[side]->list[list];
	return cell_of(c->side[side], list, c->pairs[list][pair].row[side],
		       column);
}
