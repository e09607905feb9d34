/* SPDX-License-Identifier: MIT */
#include "report/saved_tables.h"

#include <ctype.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/num.h"
#include "report/saved_in.h"

enum { KEY_MAX = 60, LABEL_ROOM = 30, LINE_ROOM = 76 };

struct saved_table {
	char *name, *title;	/* owned */
	const json_t *value;	/* a list, or an object; borrowed */
	bool is_sums;		/* the object's own figures, not its list */
	bool is_sentences;
	struct column *columns;	/* owned; the label first */
	char **keys;		/* owned; as the file has them, by column */
	size_t n_columns;
};

/* Headings of tables whose names say too little. */
static const struct {
	const char *name, *title;
} titles[] = {
	{ "where", "WHERE THE MEMORY IS" }, { "standout", "WHAT STANDS OUT" },
	{ "types", "WHAT THE BLOCKS ARE" }, { "classes", "SIZE CLASSES" },
	{ "retainers", "WHO KEEPS IT" }, { "timeline", "LIVE HEAP" },
	{ "sites", "CALL SITES" }, { "tree", "CALLS" },
};

/* Columns that give way first. */
static const char *const lesser[] = {
	"low_", "high_", "covers_", "error_", "bound_", "example", "evidence",
};

/* ---- names ---- */

static char *clean(const char *text, bool title)
{
	struct str s;

	str_init(&s);
	for (size_t i = 0; text[i] && i < KEY_MAX; i++) {
		char c = text[i];

		if (c < 0x21 || c > 0x7e || c == '\\')
			c = '?';
		else if (title && c == '_')
			c = ' ';
		str_addc(&s, c);
	}
	return str_take(&s);
}

static char *table_title(const char *name)
{
	char *ret;

	for (size_t i = 0; i < countof(titles); i++)
		if (!strcmp(name, titles[i].name))
			return mem_strdup(titles[i].title);
	ret = clean(name, true);
	for (char *p = ret; *p; p++)
		*p = (char)toupper((unsigned char)*p);
	return ret;
}

static bool ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), k = strlen(end);

	return n >= k && !strcmp(text + n - k, end);
}

/* The borders of a size class: a unit would make neighbours alike. */
static bool is_border(const char *key)
{
	return !strcmp(key, "min_bytes") || !strcmp(key, "max_bytes");
}

static char *column_title(const char *key)
{
	char *ret = clean(key, true);

	if (is_border(key))
		return ret;
	if (ends_in(ret, " share"))
		strcpy(ret + strlen(ret) - 5, "%");
	else if (ends_in(ret, " bytes"))
		ret[strlen(ret) - 6] = '\0';
	else if (ends_in(ret, " s"))
		ret[strlen(ret) - 2] = '\0';
	return ret;
}

/* ---- columns ---- */

static bool is_bytes(const char *key)
{
	return ends_in(key, "_bytes") || !strcmp(key, "bytes") ||
	       !strcmp(key, "size") || !strcmp(key, "usable");
}

static enum column_type integer_type(const char *key, json_int_t value)
{
	bool change = strstr(key, "change") != NULL;

	if (change)
		return strstr(key, "bytes") ? COLUMN_CHANGE
					    : COLUMN_CHANGE_COUNT;
	if (value < 0)
		return COLUMN_SIGNED;
	if (ends_in(key, "_s"))
		return COLUMN_SECONDS;
	if (ends_in(key, "share"))
		return COLUMN_SHARE;
	return is_bytes(key) && !is_border(key) ? COLUMN_BYTES : COLUMN_COUNT;
}

static bool is_address(const json_t *value)
{
	const char *text = json_string_value(value);
	vaddr addr;

	return text && !strncmp(text, "0x", 2) && num_parse_addr(text, &addr);
}

static struct column make_column(const char *key, const json_t *value)
{
	struct column c = { .type = COLUMN_TEXT, .flags = COLUMN_RAW };

	if (is_address(value))
		c = (struct column){ .type = COLUMN_ADDR };
	else if (json_is_boolean(value))
		c = (struct column){ .type = COLUMN_FLAG };
	else if (json_is_integer(value))
		c = (struct column){ .type = integer_type(key,
			json_integer_value(value)) };
	else if (json_is_real(value))
		c = (struct column){ .type = ends_in(key, "share")
			? COLUMN_SHARE : COLUMN_SECONDS };
	else if (json_is_array(value) || json_is_object(value))
		c = (struct column){ .type = COLUMN_COUNT };
	if (c.type == COLUMN_SECONDS)
		c.flags |= COLUMN_FINE;
	return c;
}

static bool has_key(const struct saved_table *t, const char *key)
{
	for (size_t i = 0; i < t->n_columns; i++)
		if (!strcmp(t->keys[i], key))
			return true;
	return false;
}

/* Is it the bytes of another key, in hexadecimal? */
static bool is_hex(const char *key, const json_t *row)
{
	AUTO_FREE char *other = mem_strdup(key);

	if (!ends_in(key, "_hex"))
		return false;
	other[strlen(key) - 4] = '\0';
	return json_object_get(row, other) != NULL;
}

static void add_columns(struct saved_table *t, const json_t *row, size_t max)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)row, key, value) {
		if (t->n_columns >= max)
			return;
		if (has_key(t, key) || is_hex(key, row) ||
		    (t->is_sums && json_is_array(value)))
			continue;
		t->columns = mem_realloc(t->columns, (t->n_columns + 1) *
					 sizeof(*t->columns));
		t->keys = mem_realloc(t->keys, (t->n_columns + 1) *
				      sizeof(*t->keys));
		t->keys[t->n_columns] = mem_strdup(key);
		t->columns[t->n_columns] = make_column(key, value);
		t->columns[t->n_columns].key = clean(key, false);
		t->columns[t->n_columns].title = column_title(key);
		t->n_columns++;
	}
}

/* Which words say what a row is: without any, what the file has first. */
static size_t find_label(const struct saved_table *t)
{
	static const char *const words[] = {
		"text", "name", "site", "what", "function", "lifetime",
		"min_bytes",
	};

	for (size_t w = !t->is_sentences; w < countof(words); w++)
		for (size_t i = 0; i < t->n_columns; i++)
			if (!strcmp(t->keys[i], words[w]))
				return i;
	return 0;
}

/* The label stands first: the words that say what a row is. */
static void label_first(struct saved_table *t)
{
	size_t label = find_label(t);
	struct column c;
	char *key;

	if (!label)
		return;
	c = t->columns[label];
	key = t->keys[label];
	memmove(t->columns + 1, t->columns, label * sizeof(c));
	memmove(t->keys + 1, t->keys, label * sizeof(key));
	t->columns[0] = c;
	t->keys[0] = key;
}

/* ---- what fits ---- */

static bool is_lesser(const char *key)
{
	for (size_t i = 0; i < countof(lesser); i++)
		if (!strncmp(key, lesser[i], strlen(lesser[i])))
			return true;
	return false;
}

static size_t column_room(const struct saved_table *t, size_t i)
{
	static const size_t widths[] = {
		[COLUMN_TEXT] = 18, [COLUMN_COUNT] = 9, [COLUMN_BYTES] = 9,
		[COLUMN_SHARE] = 7, [COLUMN_SECONDS] = 10, [COLUMN_ADDR] = 14,
		[COLUMN_FLAG] = 5, [COLUMN_SIGNED] = 9, [COLUMN_CHANGE] = 9,
		[COLUMN_CHANGE_COUNT] = 9,
	};

	return 2 + max_u64(widths[t->columns[i].type],
			   strlen(t->columns[i].title));
}

/* A line has room for some columns; all of them are a key away. */
static void choose_columns(struct saved_table *t)
{
	size_t room = LABEL_ROOM;

	for (size_t i = 1; i < t->n_columns; i++) {
		size_t more = column_room(t, i);

		if (t->is_sentences || is_lesser(t->keys[i]) ||
		    room + more > LINE_ROOM)
			t->columns[i].flags |= COLUMN_NO_TEXT;
		else
			room += more;
	}
}

static size_t max_columns(const json_t *list)
{
	size_t rows = json_array_size(list) + 1;

	return max_u64(1, min_u64(SAVED_MAX_COLUMNS, SAVED_MAX_CELLS / rows));
}

/* ---- tables ---- */

static void add_table(struct saved_tables *s, const char *name,
		      const json_t *value, bool is_sums)
{
	struct saved_table t = {
		.name = clean(name, false), .title = table_title(name),
		.value = value, .is_sums = is_sums,
	};
	const json_t *first = json_array_get(value, 0);

	t.is_sentences = json_is_string(json_object_get(first, "text")) &&
			 json_object_size(first) < 6;
	if (is_sums)
		add_columns(&t, value, SAVED_MAX_COLUMNS);
	for (size_t i = 0; i < json_array_size(value); i++)
		add_columns(&t, json_array_get(value, i), max_columns(value));
	if (!is_sums) {
		label_first(&t);
		choose_columns(&t);
	}
	MEM_PUSH(s->tables, s->n, s->cap) = t;
}

void saved_tables_init(struct saved_tables *s, const struct saved *saved)
{
	const char *key;
	json_t *value;

	*s = (struct saved_tables){ .saved = saved };
	json_object_foreach(saved->root, key, value) {
		json_t *rows = json_object_get(value, "rows");

		if (s->n + 2 > SAVED_MAX_TABLES)
			return;
		if (json_is_object(value))
			add_table(s, key, value, true);
		if (json_is_array(value) || json_is_array(rows))
			add_table(s, key, json_is_array(rows) ? rows : value,
				  false);
	}
}

void saved_tables_fini(struct saved_tables *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct saved_table *t = &s->tables[i];

		for (size_t k = 0; k < t->n_columns; k++) {
			free((char *)t->columns[k].key);
			free((char *)t->columns[k].title);
			free(t->keys[k]);
		}
		free(t->columns);
		free(t->keys);
		free(t->name);
		free(t->title);
	}
	free(s->tables);
	*s = (struct saved_tables){ .n = 0 };
}

const char *saved_table_name(const struct saved_tables *s, size_t i)
{
	return s->tables[i].name;
}

/* What does not fit its column stays unknown. */
static void add_row(const struct saved_table *from, struct table *t,
		    const json_t *object)
{
	table_row(t);
	for (size_t i = 0; i < from->n_columns; i++) {
		const json_t *value = json_object_get(object, from->keys[i]);

		if (!value)
			continue;
		if (from->columns[i].type == COLUMN_TEXT &&
		    saved_set_hex(t, i, from->keys[i], object))
			continue;
		if (json_is_array(value) || json_is_object(value)) {
			if (from->columns[i].type == COLUMN_COUNT)
				table_set(t, i, json_is_array(value)
					  ? json_array_size(value)
					  : json_object_size(value));
			continue;
		}
		saved_set(t, i, value);
	}
}

void saved_table_add(const struct saved_tables *s, size_t i, struct report *r,
		     unsigned section)
{
	const struct saved_table *from = &s->tables[i];
	struct table *t;

	if (!from->n_columns)
		return;
	t = report_add(r, section, from->name, from->title, from->columns,
		       from->n_columns);
	t->form = from->is_sums ? TABLE_OBJECT
		: from->is_sentences ? TABLE_SENTENCES : TABLE_ROWS;
	if (from->is_sums)
		add_row(from, t, from->value);
	for (size_t k = 0; k < json_array_size(from->value); k++)
		add_row(from, t, json_array_get(from->value, k));
}

/* ---- what it is of ---- */

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static void add_name(struct str *s, const char *text)
{
	text = file_base_name(text);
	str_add_escaped(s, text, min_u64(strlen(text), KEY_MAX));
}

void saved_head(const struct saved *s, const char *path, struct str *ret)
{
	static const char *const kinds[SAVED_KINDS] = {
		[SAVED_REPORT] = "report on", [SAVED_REPLAY] = "replay of",
		[SAVED_DIFF] = "comparison with",
	};
	const json_t *target = json_object_get(s->root,
		s->kind == SAVED_DIFF ? "new" : "target");
	const char *of = text_of(target, "path");
	const char *program = text_of(target, "program");

	add_name(ret, path);
	str_printf(ret, ": %s ", kinds[s->kind]);
	add_name(ret, of ? of : "?");
	if (program) {
		str_adds(ret, ", ");
		add_name(ret, program);
	}
	str_adds(ret, saved_complete(s) ? ", complete" : ", INCOMPLETE");
}
