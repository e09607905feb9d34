/* SPDX-License-Identifier: MIT */
#include "cmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "corewalk/alloc.h"
#include "report/filter.h"
#include "report/out.h"
#include "report/saved.h"
#include "report/table.h"

const struct option common_options[COMMON_OPTIONS] = {
	{ 'o', "output", "FILE", "write the report to FILE", OPTION_VALUE,
	  offsetof(struct common, output) },
	{ 0, "force", NULL, "replace FILE even if it is no report",
	  OPTION_FLAG, offsetof(struct common, force) },
	{ 0, "json", NULL, "one JSON document instead of text", OPTION_FLAG,
	  offsetof(struct common, json) },
	{ 0, "color", "auto|always|never", "NO_COLOR is honoured",
	  OPTION_VALUE, offsetof(struct common, color) },
	{ 0, "progress", "auto|plain",
	  "plain: a line for each phase on stderr", OPTION_VALUE,
	  offsetof(struct common, progress) },
	{ 'q', "quiet", NULL, "no progress and no warnings", OPTION_FLAG,
	  offsetof(struct common, quiet) },
	{ 'h', "help", NULL, "this text", OPTION_FLAG,
	  offsetof(struct common, help) },
	{ 'V', "version", NULL, "version and licence", OPTION_FLAG,
	  offsetof(struct common, version) },
};

static void list_add(struct list *l, const char *item)
{
	MEM_PUSH(l->items, l->n, l->cap) = item;
}

void list_fini(struct list *l)
{
	free(l->items);
	*l = (struct list){ 0 };
}

enum { NEAR_MAX_WORD = 31 };

/*
 * Edits that make one word of the other: a letter more, less, changed, or two
 * swapped (the optimal string alignment distance).
 */
static unsigned edit_distance(const char *a, const char *b)
{
	unsigned row[3][NEAR_MAX_WORD + 1];
	size_t n = strlen(a);
	size_t m = strlen(b);

	if (n > NEAR_MAX_WORD || m > NEAR_MAX_WORD)
		return NEAR_MAX_WORD;
	for (size_t k = 0; k <= m; k++)
		row[0][k] = (unsigned)k;
	for (size_t i = 1; i <= n; i++) {
		unsigned *now = row[i % 3];
		const unsigned *last = row[(i + 2) % 3];
		const unsigned *before = row[(i + 1) % 3];

		now[0] = (unsigned)i;
		for (size_t k = 1; k <= m; k++) {
			unsigned best = last[k - 1] + (a[i - 1] != b[k - 1]);

			if (last[k] + 1 < best)
				best = last[k] + 1;
			if (now[k - 1] + 1 < best)
				best = now[k - 1] + 1;
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] &&
			    a[i - 2] == b[k - 1] && before[k - 2] + 1 < best)
				best = before[k - 2] + 1;
			now[k] = best;
		}
	}
	return row[n % 3][m];
}

void near_init(struct words_near *near, const char *name)
{
	size_t n = strlen(name);

	/* Up to two slips, fewer in short words. */
	*near = (struct words_near){
		.name = name, .distance = n < 4 ? 2 : 3,
	};
}

void near_try(struct words_near *near, const char *word)
{
	unsigned distance = edit_distance(near->name, word);

	if (distance < near->distance) {
		near->distance = distance;
		near->best = word;
	}
}

static const struct option *find_option(const struct command *c,
					const char *name, size_t len,
					char letter, size_t *ret_base)
{
	for (size_t g = 0; g < c->n_groups; g++)
		for (size_t i = 0; i < c->groups[g].n_options; i++) {
			const struct option *o = &c->groups[g].options[i];

			*ret_base = c->groups[g].base;
			if (name && strlen(o->name) == len &&
			    !memcmp(o->name, name, len))
				return o;
			if (!name && o->letter == letter)
				return o;
		}
	return NULL;
}

static bool unknown_option(const struct command *c, const char *name,
			   size_t len, struct err *err)
{
	char word[64];
	struct words_near near;

	snprintf(word, sizeof(word), "%.*s", (int)min_u64(len, 60), name);
	near_init(&near, word);
	for (size_t g = 0; g < c->n_groups; g++)
		for (size_t i = 0; i < c->groups[g].n_options; i++)
			near_try(&near, c->groups[g].options[i].name);
	if (near.best)
		return err_set(err, ERR_USAGE, "unknown option '--%s'; did "
			       "you mean '--%s'?", word, near.best);
	return err_set(err, ERR_USAGE, "unknown option '--%s'", word);
}

static bool store(const struct option *o, size_t base, const char *value,
		  void *values, struct err *err)
{
	char *at = (char *)values + base + o->offset;

	if (o->value && !*value)
		return err_set(err, ERR_USAGE, "option '--%s' has an empty "
			       "value: --%s=%s", o->name, o->name, o->value);
	switch (o->kind) {
	case OPTION_FLAG:
		*(bool *)at = true;
		break;
	case OPTION_ONE:
		if (*(const char **)at)
			return err_set(err, ERR_USAGE, "option '--%s' is "
				       "there twice", o->name);
		/* fallthrough */
	case OPTION_VALUE:
		*(const char **)at = value;
		break;
	case OPTION_LIST:
		list_add((struct list *)at, value);
		break;
	}
	return true;
}

/* Where the parser stands in argv. */
struct cursor {
	int argc, at;
	char **argv;
};

static bool take_value(struct cursor *cur, const struct option *o,
		       const char **ret, struct err *err)
{
	if (cur->at + 1 >= cur->argc)
		return err_set(err, ERR_USAGE, "option '--%s' needs a value: "
			       "--%s=%s", o->name, o->name, o->value);
	*ret = cur->argv[++cur->at];
	return true;
}

static bool parse_long(const struct command *c, struct cursor *cur,
		       void *values, struct err *err)
{
	const char *name = cur->argv[cur->at] + 2;
	const char *value = strchr(name, '=');
	size_t len = value ? (size_t)(value - name) : strlen(name);
	size_t base;
	const struct option *o = find_option(c, name, len, 0, &base);

	if (!o)
		return unknown_option(c, name, len, err);
	if (value && !o->value)
		return err_set(err, ERR_USAGE, "option '--%s' takes no value",
			       o->name);
	if (value)
		value++;
	else if (o->value && !take_value(cur, o, &value, err))
		return false;
	return store(o, base, value, values, err);
}

static bool parse_letters(const struct command *c, struct cursor *cur,
			  void *values, struct err *err)
{
	const char *p = cur->argv[cur->at] + 1;

	for (; *p; p++) {
		const char *value = NULL;
		size_t base;
		const struct option *o = find_option(c, NULL, 0, *p, &base);

		if (!o)
			return err_set(err, ERR_USAGE,
				       "unknown option '-%c'",
				       *p >= 0x20 && *p < 0x7f ? *p : '?');
		if (o->value && p[1])
			value = p + 1;
		else if (o->value && !take_value(cur, o, &value, err))
			return false;
		if (!store(o, base, value, values, err))
			return false;
		if (o->value)
			break;
	}
	return true;
}

/* Even by force: no command destroys what it reads. */
static bool check_output(const struct command *c, const void *values,
			 const struct list *rest, struct err *err)
{
	size_t base;
	const struct option *o = find_option(c, "output", 6, 0, &base);
	const char *path = o ? *(const char *const *)((const char *)values +
					base + o->offset) : NULL;
	struct stat out, in;

	if (!path || stat(path, &out) || !S_ISREG(out.st_mode))
		return true;
	for (size_t i = 0; i < rest->n; i++)
		if (!stat(rest->items[i], &in) && in.st_dev == out.st_dev &&
		    in.st_ino == out.st_ino)
			return err_set(err, ERR_USAGE, "-o %s: this is the "
				       "same file as %s, which is read", path,
				       rest->items[i]);
	return true;
}

bool cmd_parse(const struct command *c, int argc, char **argv, void *values,
	       struct list *rest, struct err *err)
{
	struct cursor cur = { .argc = argc, .at = 1, .argv = argv };

	for (; cur.at < argc; cur.at++) {
		const char *arg = argv[cur.at];

		if (!strcmp(arg, "--")) {
			while (++cur.at < argc)
				list_add(rest, argv[cur.at]);
		} else if (arg[0] != '-' || !arg[1]) {
			list_add(rest, arg);
		} else if (arg[1] == '-') {
			if (!parse_long(c, &cur, values, err))
				return false;
		} else if (!parse_letters(c, &cur, values, err)) {
			return false;
		}
	}
	return check_output(c, values, rest, err);
}

/* "  -o, --output=FILE        write the report to FILE" */
static void help_option(struct out *out, const struct option *o)
{
	enum { HELP_COLUMN = 27 };
	const char *line = o->help;
	char left[80];
	int n;

	if (o->letter)
		n = snprintf(left, sizeof(left), "  -%c, --%s%s%s", o->letter,
			     o->name, o->value ? "=" : "",
			     o->value ? o->value : "");
	else
		n = snprintf(left, sizeof(left), "      --%s%s%s", o->name,
			     o->value ? "=" : "", o->value ? o->value : "");
	out_adds(out, left);
	if (n + 2 > HELP_COLUMN) {
		out_addc(out, '\n');
		n = 0;
	}
	while (*line) {
		size_t len = strcspn(line, "\n");

		out_pad(out, ' ', (size_t)(HELP_COLUMN - n));
		out_add(out, line, len);
		out_addc(out, '\n');
		line += len + (line[len] == '\n');
		n = 0;
	}
}

static int finish(struct out *out)
{
	struct err err;

	return out_close(out, &err) ? STATUS_COMPLETE : cmd_fail(&err);
}

static int help(const struct command *c)
{
	struct out out;

	out_open_fd(&out, STDOUT_FILENO);
	out_adds(&out, c->usage);
	for (size_t g = 0; g < c->n_groups; g++) {
		if (c->groups[g].title)
			out_printf(&out, "\n%s:\n", c->groups[g].title);
		for (size_t i = 0; i < c->groups[g].n_options; i++)
			if (c->groups[g].options[i].help)
				help_option(&out, &c->groups[g].options[i]);
	}
	out_printf(&out, "\nManual: man heapcore-%s\n", c->name);
	return finish(&out);
}

int cmd_version(void)
{
	struct out out;

	out_open_fd(&out, STDOUT_FILENO);
	out_printf(&out, "heapcore %s\nPCRE2 %s, Jansson %s; allocators:",
		   VERSION, filter_library(), saved_library());
	for (size_t i = 0; allocators[i]; i++)
		out_printf(&out, "%s %s", i ? "," : "", allocators[i]->name);
	out_adds(&out, "\nCopyright (C) 2026 the heapcore authors\n"
		       "Licence MIT: free software, no warranty.\n");
	return finish(&out);
}

bool cmd_begin(const struct command *c, int argc, char **argv, void *values,
	       struct list *rest, int *ret_status)
{
	const struct common *common = values;
	struct err err = { .kind = ERR_NONE };

	if (!cmd_parse(c, argc, argv, values, rest, &err))
		*ret_status = cmd_usage(c, &err);
	else if (common->help)
		*ret_status = help(c);
	else if (common->version)
		*ret_status = cmd_version();
	else
		return true;
	return false;
}

bool cmd_start(const struct command *c, bool prepared,
	       const struct common *common, struct progress *ret_progress,
	       struct out *ret_out, struct err *err, int *ret_status)
{
	if (!prepared || !cmd_progress(common, ret_progress, err)) {
		*ret_status = cmd_usage(c, err);
		return false;
	}
	if (!out_open(ret_out, common->output, common->force, err)) {
		*ret_status = cmd_fail(err);
		return false;
	}
	return true;
}

/*
 * A message may quote a name from the target: nothing of it may move the
 * cursor.  Paths become base names if base is set.
 */
static void add_safe(struct str *s, const char *text, size_t n, bool base)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if (base && c == '/' && (!i || text[i - 1] == ' ')) {
			size_t start = i;

			while (i < n && !strchr(" ,:;", text[i])) {
				if (text[i] == '/')
					start = i + 1;
				i++;
			}
			i = start;
			c = i < n ? (unsigned char)text[i] : ' ';
		}
		if (c >= 0x20 && c < 0x7f)
			str_addc(s, (char)c);
		else
			str_printf(s, "\\x%02x", c);
	}
}

static void print_safe(const char *text, size_t n, bool base)
{
	struct str s;

	str_init(&s);
	add_safe(&s, text, n, base);
	fwrite(s.text, 1, s.len, stderr);
	str_fini(&s);
}

/* A hint: as many lines as it takes, indented. */
static void print_hint(const char *text, bool base)
{
	struct out out;
	struct str s, lines;

	str_init(&s);
	str_init(&lines);
	add_safe(&s, text, strlen(text), base);
	out_open_text(&out, &lines);
	text_write_wrapped(&out, s.text, s.len, "  ", "  ");
	out_close_text(&out);
	fwrite(lines.text, 1, lines.len, stderr);
	str_fini(&lines);
	str_fini(&s);
}

int cmd_fail(const struct err *err)
{
	fputs("heapcore: ", stderr);
	print_safe(err->msg, strlen(err->msg), false);
	fputc('\n', stderr);
	if (err->hint[0])
		print_hint(err->hint, false);
	return STATUS_FAILED;
}

int cmd_usage(const struct command *c, struct err *err)
{
	if (!err->hint[0])
		err_hint(err, "Try heapcore %s --help.", c->name);
	return cmd_fail(err);
}

/* The first sentence, and what follows it on a line of its own. */
void cmd_warn(const struct space *sp, bool redact)
{
	const char *path = sp->path ? sp->path : "?";

	for (size_t i = 0; i < sp->n_warnings; i++) {
		const char *text = sp->warnings[i];
		const char *end = strstr(text, ".  ");
		size_t n = end ? (size_t)(end - text) : strlen(text);

		fputs("heapcore: ", stderr);
		print_safe(path, strlen(path), redact);
		fputs(": ", stderr);
		print_safe(text, n, redact);
		fputc('\n', stderr);
		if (end)
			print_hint(end + 3, redact);
	}
}

bool cmd_color(const struct common *common, bool *ret, struct err *err)
{
	const char *when = common->color ? common->color : "auto";
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	if (!strcmp(when, "always"))
		*ret = true;
	else if (!strcmp(when, "never"))
		*ret = false;
	else if (!strcmp(when, "auto"))
		*ret = (!common->output || !strcmp(common->output, "-")) &&
		       isatty(STDOUT_FILENO) && term &&
		       strcmp(term, "dumb") && !(no_color && *no_color);
	else
		return err_set(err, ERR_USAGE, "--color is auto, always or "
			       "never, not '%.40s'", when);
	return true;
}

bool cmd_progress(const struct common *common, struct progress *ret,
		  struct err *err)
{
	const char *how = common->progress ? common->progress : "auto";
	enum progress_mode mode = PROGRESS_NONE;

	if (strcmp(how, "plain") && strcmp(how, "auto"))
		return err_set(err, ERR_USAGE,
			       "--progress is auto or plain, not '%.40s'",
			       how);
	if (!common->quiet && !strcmp(how, "plain"))
		mode = PROGRESS_PLAIN;
	else if (!common->quiet && isatty(STDERR_FILENO))
		mode = PROGRESS_TERMINAL;
	progress_init(ret, mode);
	return true;
}

bool cmd_pid(const char *text, uint32_t *ret, struct err *err)
{
	uint64_t pid;

	if (!num_parse_u64(text, &pid) || !pid || pid > INT32_MAX)
		return err_set(err, ERR_USAGE, "--pid: '%.40s' is not the "
			       "number of a process", text);
	*ret = (uint32_t)pid;
	return true;
}

bool cmd_time(const char *option, const char *text, uint64_t *ret,
	      struct err *err)
{
	static const struct {
		const char *unit;
		double seconds;
	} units[] = {
		{ "", 1 }, { "ms", 0.001 }, { "s", 1 }, { "m", 60 },
		{ "min", 60 }, { "h", 3600 }, { "d", 86400 },
	};
	char *end;
	double value = strtod(text, &end);

	for (size_t i = 0; end != text && i < countof(units); i++) {
		double seconds = value * units[i].seconds;

		if (strcmp(end, units[i].unit))
			continue;
		if (!(seconds >= 0.001 && seconds <= 1000.0 * 86400))
			break;
		*ret = (uint64_t)(seconds * 1e9);
		return true;
	}
	return err_set(err, ERR_USAGE, "--%s: '%.40s' is no time from 1ms to "
		       "1000d, such as 500ms, 10s or 1m", option, text);
}

bool cmd_seconds(const char *text, double *ret, struct err *err)
{
	uint64_t ns;

	if (!text)
		return true;
	if (!cmd_time("max-pause", text, &ns, err))
		return false;
	*ret = (double)ns / 1e9;
	return true;
}
