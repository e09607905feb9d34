/* SPDX-License-Identifier: MIT */
#include "analysis/hints.h"

#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/num.h"

/* ---- parsing ---- */

struct line {
	char *at;		/* the rest */
	const char *name;	/* of the file */
	unsigned number;
	struct err *err;
};

static bool wrong(struct line *l, const char *what)
{
	return err_set(l->err, ERR_USAGE, "%.100s: line %u: %s", l->name,
		       l->number, what);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static void cut_blanks(char **start)
{
	char *end;

	while (is_blank(**start))
		++*start;
	end = *start + strlen(*start);
	while (end > *start && is_blank(end[-1]))
		*--end = 0;
}

/*
 * What stands before the separator, outside of any brackets, which is cut off;
 * NULL if the separator is not there.
 */
static char *split(char **at, const char *separator)
{
	size_t n = strlen(separator);
	int depth = 0;

	for (char *p = *at; *p; p++) {
		if (!depth && !strncmp(p, separator, n)) {
			char *start = *at;

			*p = 0;
			*at = p + n;
			cut_blanks(&start);
			cut_blanks(at);
			return start;
		}
		if (*p == '<' || *p == '(')
			depth++;
		else if ((*p == '>' || *p == ')') && depth &&
			 (p == *at || p[-1] != '-'))
			depth--;
	}
	return NULL;
}

static bool is_path(const char *text)
{
	if (!*text || *text == '.')
		return false;
	for (const char *p = text; *p; p++) {
		bool letter = (*p >= 'a' && *p <= 'z') ||
			      (*p >= 'A' && *p <= 'Z') || *p == '_' ||
			      (*p >= '0' && *p <= '9');

		if (!letter && (*p != '.' || p[1] == '.' || !p[1]))
			return false;
	}
	return true;
}

/* "encoding = 2", "flags != 0x10" */
static bool parse_condition(struct line *l, char *text, struct hint *hint)
{
	struct hint_condition *c;
	char *path;

	if (hint->n_when == HINT_CONDITIONS)
		return wrong(l, "more than 4 conditions");
	c = &hint->when[hint->n_when++];
	path = split(&text, "!=");
	c->differs = path;
	if (!path)
		path = split(&text, "=");
	if (!path || !is_path(path))
		return wrong(l, "a condition is 'MEMBER = NUMBER' or "
				"'MEMBER != NUMBER'");
	if (!num_parse_u64(text, &c->value))
		return wrong(l, "a condition ends with a number");
	c->path = path;
	return true;
}

static bool parse_when(struct line *l, char *text, struct hint *hint)
{
	char *part;

	while ((part = split(&text, " and ")))
		if (!parse_condition(l, part, hint))
			return false;
	return parse_condition(l, text, hint);
}

/* "text", "TYPE", "TYPE + text", "TYPE [MEMBER]", "TYPE.MEMBER" */
static bool parse_target(struct line *l, char *text, struct hint *hint)
{
	char *open = split(&text, "[");
	char *inner;

	hint->kind = HINT_ONE;
	if (!open) {
		char *tail = split(&text, "+");

		if (tail && strcmp(text, "text"))
			return wrong(l, "behind '+' can only be text");
		hint->tail = tail;
		text = tail ? tail : text;
	}
	if (open) {
		size_t n = strlen(text);

		if (!n || text[n - 1] != ']')
			return wrong(l, "'[' without ']' at the end");
		text[n - 1] = 0;
		cut_blanks(&text);
		if (!is_path(text))
			return wrong(l, "between '[' and ']' is a member "
					"that holds the number");
		hint->kind = HINT_COUNTED;
		hint->counter = text;
		text = open;
	} else if (!strcmp(text, "text")) {
		hint->kind = HINT_TEXT;
		return true;
	}
	hint->target = text;
	inner = text;
	text = split(&inner, ".");
	if (text && hint->kind == HINT_ONE) {
		hint->kind = HINT_INSIDE;
		hint->target = text;
		hint->inner = inner;
		if (!is_path(inner))
			return wrong(l, "no member behind '.'");
	} else if (text) {
		return wrong(l, "'[' behind a member");
	}
	return *hint->target || wrong(l, "no type behind '->'");
}

static bool parse_line(struct hints *h, struct line *l)
{
	struct hint hint = { .line = l->number };
	char *left = split(&l->at, "->"), *target, *when = NULL, *part;

	if (!left)
		return wrong(l, "a hint is 'TYPE.MEMBER -> WHAT'");
	hint.owner = split(&left, ".");
	hint.path = left;
	if (!hint.owner || !*hint.owner || !is_path(left))
		return wrong(l, "'TYPE.MEMBER' is missing before '->'");
	target = split(&l->at, " when ");
	if (target)
		when = l->at;
	else
		target = l->at;
	part = strrchr(target, ' ');
	if (!when && part && !strcmp(part, " when"))
		return wrong(l, "no condition behind 'when'");
	if (when && !parse_when(l, when, &hint))
		return false;
	do {
		part = split(&target, "|");
		if (h->n >= HINTS_MAX)
			return wrong(l, "too many hints");
		if (!parse_target(l, part ? part : target, &hint))
			return false;
		MEM_PUSH(h->items, h->n, h->cap) = hint;
	} while (part);
	return true;
}

bool hints_parse(struct hints *h, const char *bytes, size_t n,
		 const char *name, struct err *err)
{
	struct line l = { .name = name, .err = err };
	char *at, *next;

	*h = (struct hints){ 0 };
	if (n > HINTS_MAX_BYTES)
		return err_set(err, ERR_USAGE, "%.100s: larger than a "
			       "megabyte", name);
	if (memchr(bytes, 0, n))
		return err_set(err, ERR_USAGE, "%.100s: no text file", name);
	h->text = mem_alloc(n + 1);
	memcpy(h->text, bytes, n);
	h->text[n] = 0;
	MEM_PUSH(h->items, h->n, h->cap) = (struct hint){ 0 };
	for (at = h->text; *at; at = next) {
		size_t len = strcspn(at, "\n");

		next = at + len + (at[len] == '\n');
		at[len] = 0;
		at[strcspn(at, "#\r")] = 0;
		l.at = at;
		l.number++;
		cut_blanks(&l.at);
		if (len > HINTS_MAX_LINE)
			return wrong(&l, "longer than 4096 bytes");
		if (*l.at && !parse_line(h, &l))
			return false;
	}
	return true;
}

bool hints_read(struct hints *h, const char *path, struct err *err)
{
	struct file_bytes file;
	bool ok;

	*h = (struct hints){ 0 };
	if (!file_map(path, &file))
		return err_set(err, ERR_USAGE, "%.100s: cannot be read, or "
			       "is empty", path);
	ok = hints_parse(h, (const char *)file.data, file.size, path, err);
	file_unmap(&file);
	return ok;
}

void hints_fini(struct hints *h)
{
	free(h->text);
	free(h->items);
	*h = (struct hints){ 0 };
}

/* ---- looking up ---- */

/* The member at the end of a path, from a type on; false if it has none. */
static bool walk_path(struct dwarf_types *t, uint32_t type, const char *path,
		      struct dmember *ret)
{
	uint64_t off = 0;

	for (;;) {
		size_t n = strcspn(path, ".");
		struct dmember m;

		if (!dwarf_find_member(t, type, path, n, &m))
			return false;
		off += m.off;
		*ret = m;
		ret->off = off;
		if (!path[n])
			return true;
		path += n + 1;
		type = m.type;
	}
}

static bool find_number(struct dwarf_types *t, uint32_t type,
			const char *path, struct hint_number *ret)
{
	struct dmember m;
	uint64_t size;

	if (!walk_path(t, type, path, &m))
		return false;
	size = dwarf_type_size(t, m.type);
	if (!size || size > 8)
		return false;
	*ret = (struct hint_number){ m.off, (uint8_t)size, m.bit, m.bits };
	return true;
}

/* A name with stars behind it is a pointer. */
static uint32_t find_type(struct dwarf_types *t, const char *name)
{
	size_t n = strlen(name);
	unsigned stars = 0;
	uint32_t type;

	for (; n && (name[n - 1] == '*' || is_blank(name[n - 1])); n--)
		stars += name[n - 1] == '*';
	type = dwarf_find_type(t, name, n);
	for (; type && stars && stars <= DWARF_MAX_CHAIN; stars--)
		type = dwarf_pointer_to(t, type);
	return type;
}

static bool resolve(struct hint *hint, struct dwarf_types *t)
{
	struct dmember m;

	hint->type = find_type(t, hint->owner);
	if (!hint->type || !walk_path(t, hint->type, hint->path, &m))
		return false;
	hint->off = m.off;
	for (unsigned i = 0; i < hint->n_when; i++)
		if (!find_number(t, hint->type, hint->when[i].path,
				 &hint->when[i].of))
			return false;
	if (hint->kind == HINT_TEXT)
		return true;
	hint->to = find_type(t, hint->target);
	if (!hint->to)
		return false;
	if (hint->kind == HINT_COUNTED)
		return find_number(t, hint->type, hint->counter, &hint->count);
	if (hint->kind == HINT_INSIDE) {
		if (!walk_path(t, hint->to, hint->inner, &m))
			return false;
		hint->inside = m.off;
	}
	return true;
}

/* Behind an earlier one of the same member. */
static void chain(struct hints *h, size_t i)
{
	for (size_t k = 1; k < i; k++) {
		struct hint *other = &h->items[k];

		if (other->fits && !other->next &&
		    other->type == h->items[i].type &&
		    other->off == h->items[i].off) {
			other->next = (uint32_t)i;
			return;
		}
	}
}

void hints_resolve(struct hints *h, struct dwarf_types *t)
{
	for (size_t i = 1; i < h->n; i++) {
		struct hint *hint = &h->items[i];

		hint->fits = resolve(hint, t);
		if (hint->fits) {
			chain(h, i);
		} else if (!h->n_unknown++) {
			h->first_unknown = hint->line;
		}
	}
}

/* ---- asking ---- */

void hints_apply(const struct hints *h, uint32_t type, uint64_t off,
		 struct field *fields, size_t n)
{
	/* The first of a member stays: it leads to the others. */
	for (size_t i = h->n; i-- > 1;) {
		const struct hint *hint = &h->items[i];

		if (!hint->fits || hint->type != type)
			continue;
		for (size_t k = 0; k < n; k++)
			if (fields[k].kind == FIELD_POINTER &&
			    fields[k].off == off + hint->off)
				fields[k].hint = (uint32_t)i;
	}
}

bool hint_number(const struct hint_number *n, const uint8_t *bytes,
		 uint64_t size, uint64_t *ret)
{
	uint64_t value = 0;

	if (n->off > size || n->size > size - n->off)
		return false;
	memcpy(&value, bytes + n->off, n->size);
	if (n->bits)
		value = value >> n->bit & ((UINT64_C(1) << n->bits) - 1);
	*ret = value;
	return true;
}

bool hint_holds(const struct hint *hint, const uint8_t *bytes, uint64_t size)
{
	for (unsigned i = 0; i < hint->n_when; i++) {
		const struct hint_condition *c = &hint->when[i];
		uint64_t value;

		if (!hint_number(&c->of, bytes, size, &value) ||
		    (value == c->value) == c->differs)
			return false;
	}
	return true;
}
