/* SPDX-License-Identifier: MIT */
#include "report/report.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "analysis/reach.h"
#include "analysis/search.h"
#include "base/file.h"
#include "base/num.h"
#include "report/blocks.h"
#include "report/build.h"

#define IN_BOTH (SECTION_IN_TEXT | SECTION_IN_JSON)

static const struct report_section words[SECTIONS] = {
	[SECTION_TARGET] = { "target", SECTION_IN_JSON | SECTION_ALWAYS_JSON |
			     SECTION_NO_WORD },
	[SECTION_TOTALS] = { "totals", SECTION_IN_JSON | SECTION_NO_WORD },
	[SECTION_WHERE] = { "where", IN_BOTH },
	[SECTION_STANDOUT] = { "standout", IN_BOTH },
	[SECTION_TYPES] = { "types", IN_BOTH },
	[SECTION_ALLOCATORS] = { "allocators", SECTION_IN_JSON },
	[SECTION_ARENAS] = { "arenas", IN_BOTH },
	[SECTION_LEAKS] = { "leaks", IN_BOTH },
	[SECTION_RETAINERS] = { "retainers", 0 },
	[SECTION_STRINGS] = { "strings", 0 },
	[SECTION_DUPLICATES] = { "duplicates", 0 },
	[SECTION_PATTERNS] = { "patterns", 0 },
	[SECTION_PHP] = { "php", SECTION_IN_JSON },
	[SECTION_CLASSES] = { "classes", SECTION_IN_JSON },
	[SECTION_SAMPLE] = { "sample", SECTION_NO_WORD },
	[SECTION_PROFILE] = { "profile", 0 },
	[SECTION_FRAGMENTATION] = { "fragmentation", SECTION_IN_JSON },
	[SECTION_RESIDENCY] = { "residency", SECTION_IN_JSON },
	[SECTION_THREADS] = { "threads", SECTION_IN_JSON },
	[SECTION_MAPPINGS] = { "mappings", SECTION_IN_JSON },
	[SECTION_MODULES] = { "modules", SECTION_IN_JSON },
	[SECTION_SETTINGS] = { "settings", SECTION_IN_JSON },
	[SECTION_SEARCH] = { "search", SECTION_NO_WORD },
	[SECTION_AT] = { "at", SECTION_NO_WORD },
	[SECTION_ABORT] = { "abort", IN_BOTH | SECTION_NO_WORD |
			    SECTION_WITH_NEXT },
	[SECTION_CULPRITS] = { "culprits", IN_BOTH | SECTION_NO_WORD |
			       SECTION_WITH_NEXT },
	[SECTION_FINDINGS] = { "findings", IN_BOTH },
};

const struct report_kind report_analyze = {
	.schema = "heapcore-report/1",
	.sections = words,
	.n_sections = SECTIONS,
};

static void (*const builders[SECTIONS])(struct report *r,
					const struct report_input *in) = {
	[SECTION_TARGET] = build_target,
	[SECTION_TOTALS] = build_totals,
	[SECTION_WHERE] = build_where,
	[SECTION_STANDOUT] = build_standout,
	[SECTION_TYPES] = build_types,
	[SECTION_ALLOCATORS] = build_allocators,
	[SECTION_ARENAS] = build_arenas,
	[SECTION_LEAKS] = build_leaks,
	[SECTION_RETAINERS] = build_retainers,
	[SECTION_STRINGS] = build_strings,
	[SECTION_DUPLICATES] = build_duplicates,
	[SECTION_PATTERNS] = build_patterns,
	[SECTION_PHP] = build_php,
	[SECTION_CLASSES] = build_classes,
	[SECTION_SAMPLE] = build_sample,
	[SECTION_PROFILE] = build_profile,
	[SECTION_FRAGMENTATION] = build_fragmentation,
	[SECTION_RESIDENCY] = build_residency,
	[SECTION_THREADS] = build_threads,
	[SECTION_MAPPINGS] = build_mappings,
	[SECTION_MODULES] = build_modules,
	[SECTION_SETTINGS] = build_settings,
	[SECTION_SEARCH] = build_search,
	[SECTION_AT] = build_at,
	[SECTION_ABORT] = build_abort,
	[SECTION_CULPRITS] = build_culprits,
	[SECTION_FINDINGS] = build_findings,
};

unsigned report_default_sections(const struct report_kind *kind, bool json)
{
	unsigned flag = json ? SECTION_IN_JSON : SECTION_IN_TEXT;
	unsigned ret = 0;

	for (unsigned i = 0; i < kind->n_sections; i++)
		if (kind->sections[i].flags & flag)
			ret |= 1u << i;
	return ret;
}

static unsigned section_bits(const struct report_kind *kind, const char *word,
			     size_t len, bool json)
{
	bool all = len == 3 && !memcmp(word, "all", 3);
	unsigned ret = all && json ? report_default_sections(kind, true) : 0;

	for (unsigned i = 0; i < kind->n_sections; i++) {
		const char *name = kind->sections[i].word;

		if (kind->sections[i].flags & SECTION_NO_WORD)
			continue;
		if (!all && (strlen(name) != len || memcmp(word, name, len)))
			continue;
		ret |= 1u << i;
		for (unsigned k = i; k && kind->sections[k - 1].flags &
		     SECTION_WITH_NEXT; k--)
			ret |= 1u << (k - 1);
	}
	return ret;
}

static bool unknown_section(const struct report_kind *kind, const char *word,
			    size_t len, struct err *err)
{
	struct str names;

	str_init(&names);
	for (unsigned i = 0; i < kind->n_sections; i++)
		if (!(kind->sections[i].flags & SECTION_NO_WORD))
			str_printf(&names, "%s, ", kind->sections[i].word);
	err_set(err, ERR_USAGE, "--only: no section '%.*s'",
		(int)min_u64(len, 40), word);
	err_hint(err, "There are %sall.", names.text);
	str_fini(&names);
	return false;
}

bool report_parse_sections(const struct report_kind *kind, const char *list,
			   bool json, unsigned *ret, struct err *err)
{
	unsigned sum = 0;

	for (;;) {
		size_t len = strcspn(list, ",");
		unsigned bits = section_bits(kind, list, len, json);

		if (!bits)
			return unknown_section(kind, list, len, err);
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
	str_init(&r->more);
	str_init(&r->incomplete);
}

void report_fini(struct report *r)
{
	for (size_t i = 0; i < countof(r->head); i++)
		str_fini(&r->head[i]);
	str_fini(&r->more);
	str_fini(&r->incomplete);
	for (size_t i = 0; i < r->n_tables; i++)
		table_fini(&r->tables[i]);
}

struct table *report_add(struct report *r, unsigned section,
			 const char *name, const char *title,
			 const struct column *columns, size_t n_columns)
{
	struct table *t = &r->tables[r->n_tables];

	r->section[r->n_tables++] = section;
	table_init(t, name, title, columns, n_columns);
	return t;
}

bool report_wants(const struct report_options *options, unsigned section)
{
	return options->sections >> section & 1 ||
	       (options->format == REPORT_JSON &&
		options->kind->sections[section].flags & SECTION_ALWAYS_JSON);
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
	char name[16];

	if (r->options->redact)
		path = file_base_name(path);
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
	str_printf(s, "%s" REPORT_OF_MEMORY " ", size);
	if (is_process(in->sp)) {
		num_format_size(size, in->where->total.pages.resident);
		str_printf(s, "%s resident, ", size);
	}
	num_format_size(size, undecoded);
	if (missing)
		str_printf(s, "INCOMPLETE: %zu of %zu mappings are not in "
			   "the file", missing, in->sp->n_segs);
	else if (in->sp->damaged)
		str_adds(s, "INCOMPLETE: the compressed file is damaged");
	else if (undecoded)
		str_printf(s, "%s not decoded", size);
	else if (in->heap_found)
		str_adds(s, "all decoded");
	else
		str_adds(s, "no heap decoded");
	head_allocators(s, in->heap);
}

/*
 * A third line, that agrees with what top(1) and ps(1) say.  gdb writes pages
 * that were never touched as zeros.
 */
static void head_rss(struct report *r, const struct report_input *in)
{
	const struct residency *own = &in->where->total.pages;
	uint64_t rss = find_rss(in->where);
	struct str *s = &r->head[1];
	char size[NUM_MAX];

	if (in->sp->holes == HOLES_LOST && !strcmp(in->sp->writer, "gdb"))
		str_adds(s, "\nWhat is resident this core of gdb does not "
			 "tell: heapcore snapshot and -p do");
	if (!is_process(in->sp))
		return;
	num_format_size(size, rss);
	str_printf(s, "\nRSS %s: ", size);
	num_format_size(size, own->resident);
	str_printf(s, "%s private, ", size);
	num_format_size(size, rss - own->resident);
	str_printf(s, "%s shared or of files", size);
	num_format_size(size, own->swapped);
	if (own->swapped)
		str_printf(s, "; and %s in swap", size);
}

bool report_single_section(const struct report_options *options,
			   unsigned *ret)
{
	unsigned bits = options->sections;

	for (unsigned i = 0; i < options->kind->n_sections; i++)
		if (options->kind->sections[i].flags & SECTION_WITH_NEXT)
			bits &= ~(1u << i);
	if (!bits || bits & (bits - 1))
		return false;
	*ret = (unsigned)__builtin_ctz(bits);
	return true;
}

bool report_is_only(const struct report_options *options, unsigned section)
{
	unsigned only;

	return report_single_section(options, &only) && only == section;
}

/*
 * The first table of the only section that text and data have; NULL if there
 * are several sections.
 */
static struct table *only_table(const struct report *r)
{
	unsigned section;

	if (!report_single_section(r->options, &section))
		return NULL;
	for (size_t i = 0; i < r->n_tables; i++)
		if (r->section[i] == section && !r->tables[i].text_only &&
		    !r->tables[i].data_only && !r->tables[i].is_inner)
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

bool report_finish(struct report *r, struct err *err)
{
	struct table *only = only_table(r);

	if (!filter_only(r, only, err) || !sort_only(r, only, err))
		return false;
	for (size_t i = 0; r->options->redact && i < r->n_tables; i++)
		table_redact(&r->tables[i]);
	return true;
}

void report_add_word(struct str *s, const char *word)
{
	bool plain = *word && *word != '-';

	for (const char *p = word; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("/._-+:,@%", *p))
			plain = false;
	if (plain) {
		str_adds(s, word);
		return;
	}
	str_addc(s, '\'');
	for (const char *p = word; *p; p++)
		if (*p == '\'')
			str_adds(s, "'\\''");
		else if (*p >= 0x20 && *p < 0x7f)
			str_addc(s, *p);
		else
			str_addc(s, '?');
	str_addc(s, '\'');
}

/* The block that a look at the damage should begin with; 0: none is known. */
static vaddr culprit(const struct damage *d)
{
	for (size_t i = 0; i < d->n_cases; i++) {
		const struct damage_case *c = &d->cases[i];

		if (c->has_before)
			return c->before.addr;
		if (c->has_block)
			return c->block.addr;
	}
	return d->abort.has_block ? d->abort.block.addr : 0;
}

/* What goes deeper into a sentence of WHAT STANDS OUT. */
static const char *deeper_than(const char *rule)
{
	static const struct {
		const char *rule, *options;
	} rows[] = {
		{ "trimmable", "--only=fragmentation" },
		{ "releasable", "--only=fragmentation" },
		{ "pinned", "--only=fragmentation" },
		{ "arenas", "--only=fragmentation" },
		{ "cached", "--only=fragmentation" },
		{ "anonymous", "--only=mappings" },
		{ "data", "--only=mappings" },
		{ "runtime", "--only=mappings" },
		{ "stacks", "--only=threads" },
		{ "dead-stacks", "--only=mappings" },
		{ "untouched", "--only=residency" },
		{ "swapped", "--only=residency" },
		{ "strings", "--only=strings,duplicates" },
		{ "type", "--only=retainers" },
		{ "one-size", "--only=retainers" },
	};

	for (size_t i = 0; i < countof(rows); i++)
		if (!strcmp(rows[i].rule, rule))
			return rows[i].options;
	return NULL;
}

/* Goes by what stands out most, if there is more to know of that. */
static void add_deeper(struct str *s, const struct report_input *in)
{
	const struct standout *o = in->standout;
	const char *options = o->n_items ? deeper_than(o->item[0].rule) : NULL;
	bool leaked = false;

	/* What is leaked is of a type, too: of the two that is no news. */
	for (size_t i = 0; i < o->n_items; i++)
		leaked |= !strcmp(o->item[i].rule, "leaked") &&
			  o->item[i].weight >= o->item[0].weight / 2;
	if (!in->heap_found)
		str_adds(s, "--only=mappings --rows=all");
	else if (culprit(in->damage))
		str_printf(s, "--at=0x%" PRIx64, culprit(in->damage));
	else if (in->php)
		str_adds(s, "--only=php");
	else if (leaked && in->reach && in->reach->n_groups)
		str_printf(s, "--at=0x%" PRIx64, in->reach->groups[0].addr);
	else if (options && (in->reach || strcmp(options, "--only=retainers")))
		str_adds(s, options);
	else if (in->reach)
		str_adds(s, "--only=retainers");
	else
		str_adds(s, "--only=types,leaks");
}

void report_add_command(struct str *s, const char *first,
			const struct str *word, size_t n)
{
	size_t at = strlen(first);

	str_adds(s, first);
	for (size_t i = 0; i < n; i++) {
		if (i && at + 1 + word[i].len >= (i + 1 < n ? 78 : 80)) {
			str_adds(s, " \\\n        ");
			at = 8;
		} else if (i) {
			str_addc(s, ' ');
			at++;
		}
		str_add(s, word[i].text, word[i].len);
		at += word[i].len;
	}
	str_addc(s, '\n');
}

/* The last lines name the next two commands. */
static void add_more(struct str *s, const struct report_input *in)
{
	struct str word[2];	/* options, and the target */

	str_init(&word[0]);
	str_init(&word[1]);
	if (is_process(in->sp))
		str_printf(&word[1], "-p %" PRIu32, in->sp->pid);
	else
		report_add_word(&word[1], in->sp->path);
	str_adds(&word[0], "--only=all --rows=20");
	str_addc(s, '\n');
	report_add_command(s, "More: heapcore analyze ", word, 2);
	str_clear(&word[0]);
	add_deeper(&word[0], in);
	report_add_command(s, "      heapcore analyze ", word, 2);
	str_fini(&word[0]);
	str_fini(&word[1]);
}

bool report_build(struct report *r, const struct report_input *in,
		  struct err *err)
{
	head_target(r, in->sp);
	head_memory(r, in);
	head_rss(r, in);
	if (in->sp->path)
		add_more(&r->more, in);
	r->complete = report_complete(in, &r->incomplete);
	for (unsigned i = 0; i < SECTIONS; i++)
		if (report_wants(r->options, i))
			builders[i](r, in);
	return report_finish(r, err);
}

static bool is_default(const struct report_options *options)
{
	return options->sections ==
	       report_default_sections(options->kind, false);
}

#define SHAPES_IN_WORDS	"  Look-alikes: size and first words; num int real: " \
			"numbers; ptr: to a block\n"

/* "128: num ptr", "2M-4M: num*4": is there one in the rows that are shown? */
static bool shows_shape(const struct report *r, const struct table *t)
{
	size_t n = r->options->rows == TABLE_ALL_ROWS ? t->n_rows :
		   min_u64(r->options->rows, t->n_rows);

	for (size_t i = 0; t->shapes && i < n; i++) {
		struct cell c = table_cell(t, i, 0);
		const char *text = table_text(t, &c);
		const char *colon = c.known && c.text.len ?
				    memchr(text, ':', c.text.len - 1) : NULL;

		if (colon && isdigit((unsigned char)*text) && colon[1] == ' ')
			return true;
	}
	return false;
}

static void write_text(const struct report *r, struct out *o)
{
	struct text_style style = {
		.rows = r->options->rows,
		.exact = r->options->exact,
		.color = r->options->color,
	};
	bool explained = false;
	unsigned section;

	for (size_t i = 0; i < countof(r->head); i++)
		text_write_lines(o, r->head[i].text);
	for (size_t i = 0; i < r->n_tables; i++) {
		const struct table *t = &r->tables[i];

		if (t->is_inner || t->data_only)
			continue;
		if (t->n_rows) {
			out_addc(o, '\n');
			table_write_text(t, &style, o);
			if (t->listed)
				out_printf(o, "  %s: its data seems to "
					   "keep them alive.\n", t->listed);
			if (!explained && shows_shape(r, t)) {
				out_adds(o, SHAPES_IN_WORDS);
				explained = true;
			}
		} else if (t == only_table(r)) {
			out_printf(o, "\n%s\n  none\n", t->title);
		}
	}
	if (!r->n_tables && report_single_section(r->options, &section))
		out_printf(o, "\nNothing: there is no %s in it.\n",
			   r->options->kind->sections[section].word);
	if (r->incomplete.len) {
		out_addc(o, '\n');
		text_write_wrapped(o, r->incomplete.text, r->incomplete.len,
				   "Incomplete (status 3): ", "  ");
	}
	if (is_default(r->options) && !r->options->redact && r->more.len)
		out_add(o, r->more.text, r->more.len);
}

static void write_json(const struct report *r, struct out *o)
{
	out_printf(o, "{\n  \"schema\": \"%s\",\n  \"heapcore\": \"%s\",\n"
		   "  \"complete\": %s", r->options->kind->schema, VERSION,
		   r->complete ? "true" : "false");
	if (r->incomplete.len) {
		out_adds(o, ",\n  \"incomplete\": ");
		json_write_string(o, r->incomplete.text, r->incomplete.len);
	}
	for (size_t i = 0; i < r->n_tables; i++) {
		const struct table *t = &r->tables[i];

		if (t->is_inner || t->text_only)
			continue;
		out_adds(o, ",\n");
		/* Two of one name: rows, and what they add up to. */
		if (i + 1 < r->n_tables && !strcmp(t->name, t[1].name)) {
			table_write_json_object(&t[1], t, o);
			i++;
		} else {
			table_write_json(t, o);
		}
	}
	out_adds(o, "\n}\n");
}

static bool write_csv(const struct report *r, struct out *o, struct err *err)
{
	const struct table *only = only_table(r);
	unsigned section;

	if (only) {
		table_write_csv(only, o);
		return true;
	}
	if (report_single_section(r->options, &section))
		return err_set(err, ERR_USAGE, "there is no %s in it",
			       r->options->kind->sections[section].word);
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
