/* SPDX-License-Identifier: MIT */
#include "report/report.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "report/blocks.h"
#include "report/build.h"

enum section_flag {
	IN_TEXT = 1 << 0,	/* in the text report without --only */
	IN_JSON = 1 << 1,	/* in JSON without --only */
	ALWAYS_JSON = 1 << 2,	/* in JSON with --only too */
	NO_WORD = 1 << 3,	/* --only does not know it */
};

/* The order of every output, except that text has no target. */
static const struct {
	const char *word;
	unsigned flags;
	void (*build)(struct report *r, const struct report_input *in);
} sections[SECTIONS] = {
	[SECTION_TARGET] = { "target", IN_JSON | ALWAYS_JSON | NO_WORD,
			     build_target },
	[SECTION_TOTALS] = { "totals", IN_JSON | NO_WORD, build_totals },
	[SECTION_WHERE] = { "where", IN_TEXT | IN_JSON, build_where },
	[SECTION_STANDOUT] = { "standout", IN_TEXT | IN_JSON, build_standout },
	[SECTION_ALLOCATORS] = { "allocators", IN_JSON, build_allocators },
	[SECTION_ARENAS] = { "arenas", IN_TEXT | IN_JSON, build_arenas },
	[SECTION_CLASSES] = { "classes", IN_JSON, build_classes },
	[SECTION_FRAGMENTATION] = { "fragmentation", IN_JSON,
				    build_fragmentation },
	[SECTION_RESIDENCY] = { "residency", IN_JSON, build_residency },
	[SECTION_THREADS] = { "threads", IN_JSON, build_threads },
	[SECTION_MAPPINGS] = { "mappings", IN_JSON, build_mappings },
	[SECTION_MODULES] = { "modules", IN_JSON, build_modules },
	[SECTION_SETTINGS] = { "settings", IN_JSON, build_settings },
	[SECTION_AT] = { "at", NO_WORD, build_at },
	[SECTION_ABORT] = { "abort", IN_TEXT | IN_JSON | NO_WORD, build_abort },
	[SECTION_FINDINGS] = { "findings", IN_TEXT | IN_JSON, build_findings },
};

unsigned report_default_sections(bool json)
{
	unsigned ret = 0;

	for (unsigned i = 0; i < SECTIONS; i++)
		if (sections[i].flags & (json ? IN_JSON : IN_TEXT))
			ret |= 1u << i;
	return ret;
}

void report_section_names(struct str *ret)
{
	for (unsigned i = 0; i < SECTIONS; i++)
		if (!(sections[i].flags & NO_WORD))
			str_printf(ret, "%s, ", sections[i].word);
	str_adds(ret, "all");
}

static unsigned section_bits(const char *word, size_t len)
{
	unsigned ret = 0;

	for (unsigned i = 0; i < SECTIONS; i++) {
		const char *name = sections[i].word;

		if (sections[i].flags & NO_WORD)
			continue;
		if ((len == 3 && !memcmp(word, "all", 3)) ||
		    (strlen(name) == len && !memcmp(word, name, len)))
			ret |= 1u << i;
	}
	if (ret & 1u << SECTION_FINDINGS)
		ret |= 1u << SECTION_ABORT;
	return ret;
}

bool report_parse_sections(const char *list, unsigned *ret, struct err *err)
{
	unsigned sum = 0;
	struct str names;

	for (;;) {
		size_t len = strcspn(list, ",");
		unsigned bits = section_bits(list, len);

		if (!bits) {
			str_init(&names);
			report_section_names(&names);
			err_set(err, ERR_USAGE, "--only: no section '%.*s'",
				(int)min_u64(len, 40), list);
			err_hint(err, "There are %s.", names.text);
			str_fini(&names);
			return false;
		}
		sum |= bits;
		if (!list[len])
			break;
		list += len + 1;
	}
	*ret = sum;
	return true;
}

void report_init(struct report *r, const struct report_options *options)
{
	*r = (struct report){ .options = options };
	for (size_t i = 0; i < countof(r->head); i++)
		str_init(&r->head[i]);
}

void report_fini(struct report *r)
{
	for (size_t i = 0; i < countof(r->head); i++)
		str_fini(&r->head[i]);
	for (size_t i = 0; i < r->n_tables; i++)
		table_fini(&r->tables[i]);
}

struct table *report_add(struct report *r, enum section section,
			 const char *name, const char *title,
			 const struct column *columns, size_t n_columns)
{
	struct table *t = &r->tables[r->n_tables];

	r->section[r->n_tables++] = section;
	table_init(t, name, title, columns, n_columns);
	return t;
}

static bool wants(const struct report_options *options, unsigned section)
{
	return options->sections >> section & 1 ||
	       (options->format == REPORT_JSON &&
		sections[section].flags & ALWAYS_JSON);
}

/* "process 1234: appd, running, 9 threads, stopped for 0.8 s" */
static void head_process(struct str *s, const struct space *sp)
{
	str_printf(s, ", running, %zu thread%s", sp->n_threads,
		   sp->n_threads == 1 ? "" : "s");
	if (sp->torn)
		str_adds(s, ", read while it ran");
	else
		str_printf(s, ", stopped for %.1f s", sp->stopped_s);
}

/* "core.1234: appd, pid 1234, killed by SIGABRT, 9 threads" */
static void head_target(struct report *r, const struct space *sp)
{
	struct str *s = &r->head[0];
	const char *path = sp->path ? sp->path : "?";
	const char *slash = strrchr(path, '/');
	char name[16];

	if (r->options->redact && slash)
		path = slash + 1;
	str_add_escaped(s, path, strlen(path));
	str_adds(s, ": ");
	if (sp->program)
		str_add_escaped(s, sp->program, strlen(sp->program));
	else
		str_adds(s, "?");
	if (is_process(sp)) {
		head_process(s, sp);
		return;
	}
	if (sp->pid)
		str_printf(s, ", pid %" PRIu32, sp->pid);
	/* A debugger writes down a signal that killed nobody. */
	if (sp->signal && !(sp->writer && !strcmp(sp->writer, "gdb")))
		str_printf(s, ", killed by %s",
			   signal_name(sp->signal, name));
	str_printf(s, ", %zu thread%s", sp->n_threads,
		   sp->n_threads == 1 ? "" : "s");
}

static void head_allocators(struct str *s, const struct heap *h)
{
	for (size_t i = 0; i < h->n_allocators; i++) {
		const struct heap_allocator *a = &h->allocators[i];
		bool glibc = !strcmp(a->name, "glibc");

		str_printf(s, "%s %s%s %s", i ? "," : ";", a->name,
			   glibc ? " malloc" : "", a->version);
	}
	if (!h->n_allocators)
		str_adds(s, "; no known allocator");
}

/* "1.80G of private memory, 3.6K not decoded; glibc malloc 2.36" */
static void head_memory(struct report *r, const struct report_input *in)
{
	struct str *s = &r->head[1];
	uint64_t undecoded = in->where->row[WHERE_UNDECODED].bytes;
	size_t missing = count_missing(in->sp);
	char size[NUM_MAX];

	num_format_size(size, in->where->total.bytes);
	str_printf(s, "%s" REPORT_OF_MEMORY, size);
	if (is_process(in->sp)) {
		num_format_size(size, in->where->total.stored);
		str_printf(s, "%s resident, ", size);
	}
	num_format_size(size, undecoded);
	if (missing)
		str_printf(s, "INCOMPLETE: %zu of %zu mappings are not in "
			   "the file", missing, in->sp->n_segs);
	else if (undecoded)
		str_printf(s, "%s not decoded", size);
	else if (in->heap_found)
		str_adds(s, "all decoded");
	else
		str_adds(s, "no heap decoded");
	head_allocators(s, in->heap);
}

bool report_complete(const struct report_input *in)
{
	const struct space *sp = in->sp;
	const struct where_amount *row = in->where->row;
	int64_t off;

	if (row[WHERE_UNDECODED].bytes || sum_heap(in->heap).undecoded)
		return false;
	if (count_missing(sp) || sp->core_size < sp->core_wanted)
		return false;
	if (!where_check(in->where, &off) ||
	    (!in->heap_found && row[WHERE_ANONYMOUS].bytes))
		return false;
	for (size_t i = 0; i < in->heap->n_notes; i++)
		if (!strcmp(in->heap->notes[i].code, "sum"))
			return false;
	return true;
}

bool report_single_section(const struct report_options *options,
			   enum section *ret)
{
	unsigned bits = options->sections & ~(1u << SECTION_ABORT);

	if (!bits || bits & (bits - 1))
		return false;
	*ret = (enum section)__builtin_ctz(bits);
	return true;
}

/* The first table of the only section; NULL if there are several. */
static struct table *only_table(const struct report *r)
{
	enum section section;

	if (!report_single_section(r->options, &section))
		return NULL;
	for (size_t i = 0; i < r->n_tables; i++)
		if (r->section[i] == section)
			return (struct table *)&r->tables[i];
	return NULL;
}

static bool sort_only(struct report *r, struct table *t, struct err *err)
{
	if (!r->options->sort)
		return true;
	if (!t) {
		err_set(err, ERR_USAGE, "--sort needs one section");
		return err_hint(err, "Name it with --only.");
	}
	return table_sort_by(t, r->options->sort, err);
}

static bool filter_only(struct report *r, struct table *t, struct err *err)
{
	struct filter filter;

	if (!r->options->row_filter || !t)
		return true;
	if (!filter_compile(&filter, "--filter", r->options->row_filter,
			    t->columns, t->n_columns, err))
		return false;
	table_filter(t, &filter);
	filter_fini(&filter);
	return true;
}

bool report_build(struct report *r, const struct report_input *in,
		  struct err *err)
{
	struct table *only;

	r->path = in->sp->path;
	r->heap_found = in->heap_found;
	r->pid = is_process(in->sp) ? in->sp->pid : 0;
	head_target(r, in->sp);
	head_memory(r, in);
	r->complete = report_complete(in);
	for (unsigned i = 0; i < SECTIONS; i++)
		if (wants(r->options, i))
			sections[i].build(r, in);
	only = only_table(r);
	if (!filter_only(r, only, err) || !sort_only(r, only, err))
		return false;
	for (size_t i = 0; r->options->redact && i < r->n_tables; i++)
		table_redact(&r->tables[i]);
	return true;
}

/* A word for the shell, quoted if it has to be. */
static void write_shell_word(struct out *o, const char *word)
{
	bool plain = *word && *word != '-';

	for (const char *p = word; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("/._-+:,@%", *p))
			plain = false;
	if (plain) {
		out_adds(o, word);
		return;
	}
	out_addc(o, '\'');
	for (const char *p = word; *p; p++)
		if (*p == '\'')
			out_adds(o, "'\\''");
		else if (*p >= 0x20 && *p < 0x7f)
			out_addc(o, *p);
		else
			out_addc(o, '?');
	out_addc(o, '\'');
}

/* The last lines name the next two commands. */
static void write_more(const struct report *r, struct out *o)
{
	const char *const commands[] = {
		"\nMore: heapcore analyze --only=all --rows=20 ",
		r->heap_found ? "      heapcore analyze --only=classes "
				"--filter='used size>1k' "
			      : "      heapcore analyze --only=mappings "
				"--rows=all ",
	};

	for (size_t i = 0; i < countof(commands); i++) {
		out_adds(o, commands[i]);
		if (r->pid)
			out_printf(o, "-p %" PRIu32, r->pid);
		else
			write_shell_word(o, r->path);
		out_addc(o, '\n');
	}
}

static bool is_default(const struct report_options *options)
{
	return options->sections == report_default_sections(false);
}

static void write_text(const struct report *r, struct out *o)
{
	struct text_style style = {
		.rows = r->options->rows,
		.exact = r->options->exact,
		.color = r->options->color,
	};

	for (size_t i = 0; i < countof(r->head); i++)
		out_printf(o, "%s\n", r->head[i].text);
	for (size_t i = 0; i < r->n_tables; i++) {
		const struct table *t = &r->tables[i];

		if (t->n_rows) {
			out_addc(o, '\n');
			table_write_text(t, &style, o);
		} else if (t == only_table(r)) {
			out_printf(o, "\n%s\n  none\n", t->title);
		}
	}
	if (is_default(r->options) && !r->options->redact && r->path)
		write_more(r, o);
}

static void write_json(const struct report *r, struct out *o)
{
	out_printf(o, "{\n  \"schema\": \"%s\",\n  \"heapcore\": \"%s\",\n"
		   "  \"complete\": %s", REPORT_SCHEMA, VERSION,
		   r->complete ? "true" : "false");
	for (size_t i = 0; i < r->n_tables; i++) {
		out_adds(o, ",\n");
		table_write_json(&r->tables[i], o);
	}
	out_adds(o, "\n}\n");
}

static bool write_csv(const struct report *r, struct out *o, struct err *err)
{
	const struct table *only = only_table(r);

	if (only) {
		table_write_csv(only, o);
		return true;
	}
	err_set(err, ERR_USAGE, "--csv needs one section");
	return err_hint(err, "Name it with --only.");
}

bool report_write(const struct report *r, struct out *o, struct err *err)
{
	switch (r->options->format) {
	case REPORT_TEXT:
		write_text(r, o);
		return true;
	case REPORT_JSON:
		write_json(r, o);
		return true;
	case REPORT_CSV:
		return write_csv(r, o, err);
	}
	return true;
}
