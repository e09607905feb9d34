/* SPDX-License-Identifier: MIT */
/*
 * A file of pauses, a JSON object a line, as read by jansson.
 */
#include "replay/pauses.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

struct reader {
	struct pauses *pauses;
	const struct pauses_options *options;
	const char *path;
	unsigned long line;
};

/* The first of these keys that is there; NULL: none. */
static json_t *member(json_t *object, const char *const *keys)
{
	json_t *ret = NULL;

	for (; !ret && *keys; keys++)
		ret = json_object_get(object, *keys);
	return ret;
}

static bool get_time(const struct reader *r, json_t *object,
		     const char *const *keys, double *ret, struct err *err)
{
	json_t *value = member(object, keys);

	if (!value)
		return err_set(err, ERR_FORMAT, "%s:%lu: no \"%s\"", r->path,
			       r->line, keys[0]);
	if (!json_is_number(value))
		return err_set(err, ERR_FORMAT, "%s:%lu: \"%s\" is no number",
			       r->path, r->line, keys[0]);
	*ret = json_number_value(value) * r->options->unit;
	if (*ret >= 0 && *ret <= PAUSE_SECONDS_MAX)
		return true;
	return err_set(err, ERR_FORMAT, "%s:%lu: \"%s\" is out of range",
		       r->path, r->line, keys[0]);
}

static bool add_object(struct reader *r, json_t *object, struct err *err)
{
	static const char *const starts[] = { "start", "at", "ts", NULL };
	static const char *const durations[] = { "duration", "dur", NULL };
	json_t *kind = json_object_get(object, "kind");
	json_t *full = json_object_get(object, "full");
	struct pause p = { .full = json_is_true(full) };

	if (!json_is_object(object))
		return err_set(err, ERR_FORMAT, "%s:%lu: not an object",
			       r->path, r->line);
	if (json_is_string(kind) && strcmp(json_string_value(kind), "pause"))
		return true;
	if (full && !json_is_boolean(full))
		return err_set(err, ERR_FORMAT, "%s:%lu: \"full\" is neither "
			       "true nor false", r->path, r->line);
	if (!get_time(r, object, starts, &p.start, err) ||
	    !get_time(r, object, durations, &p.duration, err))
		return false;
	if (r->pauses->n == PAUSES_MAX)
		return err_set(err, ERR_FORMAT, "%s:%lu: more than %d pauses",
			       r->path, r->line, PAUSES_MAX);
	p.start += r->options->at;
	MEM_PUSH(r->pauses->list, r->pauses->n, r->pauses->cap) = p;
	return true;
}

static bool add_line(struct reader *r, const char *text, size_t n,
		     struct err *err)
{
	json_error_t why;
	json_t *object;
	bool ok;

	if (strspn(text, " \t\r\n") == n)
		return true;
	object = json_loadb(text, n, JSON_REJECT_DUPLICATES |
			    JSON_ALLOW_NUL | JSON_DECODE_ANY, &why);
	if (!object)
		return err_set(err, ERR_FORMAT, "%s:%lu: no JSON, at byte %d",
			       r->path, r->line, why.position);
	ok = add_object(r, object, err);
	json_decref(object);
	return ok;
}

/* Lines are read whole, but never more of one than is allowed. */
static bool read_lines(struct reader *r, FILE *f, struct err *err)
{
	AUTO_FREE char *line = mem_alloc(PAUSE_LINE_MAX);

	while (fgets(line, PAUSE_LINE_MAX, f)) {
		size_t n = strlen(line);

		r->line++;
		if (n + 1 == PAUSE_LINE_MAX && line[n - 1] != '\n')
			return err_set(err, ERR_FORMAT, "%s:%lu: the line is "
				       "too long", r->path, r->line);
		if ((!n || line[n - 1] != '\n') && !feof(f))
			return err_set(err, ERR_FORMAT, "%s:%lu: a zero byte",
				       r->path, r->line);
		if (!add_line(r, line, n, err))
			return false;
	}
	if (ferror(f))
		return err_system(err, "%s", r->path);
	return true;
}

bool pauses_read(struct pauses *p, const char *path,
		 const struct pauses_options *options, struct err *err)
{
	struct reader r = { .pauses = p, .options = options, .path = path };
	FILE *f = fopen(path, "re");
	bool ok;

	*p = (struct pauses){ .n = 0 };
	if (!f)
		return err_system(err, "%s", path);
	ok = read_lines(&r, f, err);
	fclose(f);
	if (!ok) {
		pauses_fini(p);
		return false;
	}
	pauses_sort(p);
	return true;
}
