/* SPDX-License-Identifier: MIT */
#include "report/saved_in.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"

/*
 * Where JSON begins: blanks do not count, nor does the mark that some editors
 * put in front of UTF-8.
 */
static size_t json_start(const char *text, size_t n)
{
	size_t i = 0;

	if (n >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
		i = 3;
	while (i < n && strchr(" \t\r\n", text[i]) && text[i])
		i++;
	return i;
}

/*
 * Each value but the first has a comma, a bracket or a brace in front of it or
 * around it, so this is no less than their number.  Without the bound, three
 * bytes of "[],[]" become a hundred bytes of memory.
 */
static bool too_many_values(const char *text, size_t n)
{
	size_t values = 0;

	for (size_t i = 0; i < n; i++)
		values += text[i] == ',' || text[i] == '[' || text[i] == '{';
	return values > SAVED_MAX_VALUES;
}

static bool not_report(const char *name, const char *why, struct err *err)
{
	err_set(err, ERR_FORMAT, "%s: not a report: %s", name, why);
	return err_hint(err, "heapcore analyze --json -o FILE writes one.");
}

static bool bad_json(const char *name, const json_error_t *e, struct err *err)
{
	/* The library's text quotes the input: not for a terminal. */
	if (json_error_code(e) == json_error_premature_end_of_input)
		return err_set(err, ERR_FORMAT, "%s: is cut off: the JSON "
			       "ends too soon, in line %d", name, e->line);
	return err_set(err, ERR_FORMAT, "%s: malformed JSON in line %d, "
		       "column %d", name, e->line, e->column);
}

static const char *const schemas[SAVED_KINDS] = {
	[SAVED_REPORT] = "heapcore-report/",
	[SAVED_REPLAY] = "heapcore-replay/",
	[SAVED_DIFF] = "heapcore-diff/",
};

/* "heapcore-report/1": false if it is of something else. */
static bool read_schema(struct saved *s, const char *name, struct err *err)
{
	const char *text = json_string_value(json_object_get(s->root,
							     "schema"));
	uint64_t number;
	unsigned kind = 0;

	while (text && kind < SAVED_KINDS &&
	       strncmp(text, schemas[kind], strlen(schemas[kind])))
		kind++;
	if (!text || kind == SAVED_KINDS)
		return not_report(name, "it is other JSON", err);
	text += strlen(schemas[kind]);
	if (!num_parse_u64(text, &number) || !number || number > UINT32_MAX)
		return not_report(name, "its schema is unknown", err);
	s->kind = kind;
	s->schema = (unsigned)number;
	return true;
}

/* What compares wants two looks at memory. */
static struct saved *only_report(struct saved *s, const char *name,
				 struct err *err)
{
	if (!s || s->kind == SAVED_REPORT)
		return s;
	not_report(name, s->kind == SAVED_DIFF ? "it is a comparison"
					       : "it is other JSON", err);
	saved_close(s);
	return NULL;
}

struct saved *saved_open_any_memory(const char *name, const char *text,
				    size_t n, struct err *err)
{
	size_t start = json_start(text, n);
	struct saved *s;
	json_error_t e;

	if (n > SAVED_MAX_BYTES || too_many_values(text, n)) {
		not_report(name, "it is too large for one", err);
		return NULL;
	}
	s = mem_zalloc(sizeof(*s));
	s->root = json_loadb(text + start, n - start,
			     JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &e);
	if (s->root ? read_schema(s, name, err) : bad_json(name, &e, err))
		return s;
	saved_close(s);
	return NULL;
}

struct saved *saved_open_memory(const char *name, const char *text, size_t n,
				struct err *err)
{
	return only_report(saved_open_any_memory(name, text, n, err), name,
			   err);
}

void saved_close(struct saved *s)
{
	if (!s)
		return;
	json_decref(s->root);
	free(s);
}

/* Up to one byte more than is allowed. */
static bool read_all(int fd, struct str *ret)
{
	enum { CHUNK = 1 << 16 };
	AUTO_FREE char *chunk = mem_alloc(CHUNK);
	ssize_t n = 1;

	while (n && ret->len <= SAVED_MAX_BYTES) {
		n = read(fd, chunk, CHUNK);
		if (n > 0)
			str_add(ret, chunk, (size_t)n);
		else if (n < 0 && errno != EINTR)
			return false;
	}
	return true;
}

/* Could it be JSON?  What cannot be looked at twice must be. */
static bool may_be_json(int fd)
{
	char head[4096];
	struct stat st;
	ssize_t n;
	size_t start;

	if (fstat(fd, &st) || S_ISDIR(st.st_mode))
		return false;
	if (!S_ISREG(st.st_mode))
		return true;
	n = pread(fd, head, sizeof(head), 0);
	if (n <= 0)
		return false;
	start = json_start(head, (size_t)n);
	return start < (size_t)n && strchr("{[", head[start]) && head[start];
}

static struct saved *read_report(int fd, const char *name, struct err *err)
{
	struct saved *s = NULL;
	struct str text;

	str_init(&text);
	if (!read_all(fd, &text))
		err_system(err, "%s", name);
	else if (!text.len)
		not_report(name, "it is empty", err);
	else
		s = saved_open_any_memory(name, text.text, text.len, err);
	str_fini(&text);
	return s;
}

bool saved_open(const char *path, struct saved **ret, struct err *err)
{
	bool none;

	if (!saved_open_any(path, ret, err))
		return false;
	none = !*ret;
	*ret = only_report(*ret, path, err);
	return *ret || none;
}

bool saved_open_any(const char *path, struct saved **ret, struct err *err)
{
	bool is_stdin = !strcmp(path, "-");
	int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	struct saved *s = NULL;
	bool ok = true;

	if (fd < 0)
		return err_system(err, "%s", path);
	if (is_stdin || may_be_json(fd)) {
		s = read_report(fd, is_stdin ? "standard input" : path, err);
		ok = s != NULL;
	}
	if (!is_stdin)
		close(fd);
	if (ok)
		*ret = s;
	return ok;
}

enum saved_kind saved_kind(const struct saved *s)
{
	return s->kind;
}

unsigned saved_schema(const struct saved *s)
{
	return s->schema;
}

bool saved_complete(const struct saved *s)
{
	return json_is_true(json_object_get(s->root, "complete"));
}

bool saved_set_hex(struct table *t, size_t column, const char *name,
		   const json_t *object)
{
	AUTO_FREE char *key = mem_printf("%s_hex", name);
	const char *hex = json_string_value(json_object_get(object, key));
	size_t n = hex ? strlen(hex) : 0;
	AUTO_FREE char *bytes = mem_alloc(n / 2 + 1);

	if (!hex || n % 2)
		return false;
	for (size_t i = 0; i < n / 2; i++) {
		const char digits[3] = { hex[2 * i], hex[2 * i + 1] };
		vaddr byte;

		if (!num_parse_addr(digits, &byte))
			return false;
		bytes[i] = (char)byte;
	}
	table_set_bytes(t, column, bytes, n / 2);
	return true;
}

bool saved_set(struct table *t, size_t column, const json_t *value)
{
	json_int_t number = json_integer_value(value);
	vaddr addr;

	switch (t->columns[column].type) {
	case COLUMN_TEXT:
		if (!json_is_string(value))
			return false;
		table_set_bytes(t, column, json_string_value(value),
				json_string_length(value));
		return true;
	case COLUMN_COUNT:
	case COLUMN_BYTES:
		if (!json_is_integer(value) || number < 0)
			return false;
		table_set(t, column, (uint64_t)number);
		return true;
	case COLUMN_ADDR:
		if (!json_is_string(value) ||
		    !num_parse_addr(json_string_value(value), &addr))
			return false;
		table_set(t, column, addr);
		return true;
	case COLUMN_FLAG:
		if (!json_is_boolean(value))
			return false;
		table_set(t, column, json_is_true(value));
		return true;
	case COLUMN_SHARE:
	case COLUMN_SECONDS:
		if (!json_is_number(value))
			return false;
		table_set_real(t, column, json_number_value(value));
		return true;
	case COLUMN_SIGNED:
	case COLUMN_CHANGE:
	case COLUMN_CHANGE_COUNT:
		if (!json_is_integer(value))
			return false;
		table_set_signed(t, column, number);
		return true;
	}
	return false;
}

static size_t add_row(struct table *t, const json_t *object)
{
	size_t odd = 0;

	if (!json_is_object(object))
		return 1;
	table_row(t);
	for (size_t i = 0; i < t->n_columns; i++) {
		const json_t *value = json_object_get(object,
						      t->columns[i].key);

		if (!value)
			continue;
		if (t->columns[i].type == COLUMN_TEXT &&
		    saved_set_hex(t, i, t->columns[i].key, object))
			continue;
		odd += !saved_set(t, i, value);
	}
	return odd;
}

bool saved_rows(const struct saved *s, struct table *t, size_t *ret_odd)
{
	const json_t *list = json_object_get(s->root, t->name);
	const json_t *rows = json_object_get(list, "rows");
	size_t odd = 0;

	/* A list that sums stand beside. */
	if (json_is_array(rows))
		list = rows;
	if (json_is_object(list))
		odd = add_row(t, list);
	else if (json_is_array(list))
		for (size_t i = 0; i < json_array_size(list); i++)
			odd += add_row(t, json_array_get(list, i));
	else
		return false;
	*ret_odd = odd;
	return true;
}

const char *saved_library(void)
{
	return jansson_version_str();
}
