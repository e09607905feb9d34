/* SPDX-License-Identifier: MIT */
/*
 * A report: two lines that say what was looked at and how much of it could be
 * read, then tables.
 *
 * A *section* is a word of --only and stands for one or two tables.  The list
 * of sections, in report.c, is the order of every output.  report_build() fills
 * the tables that are wanted; rendering adds nothing to them.
 */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "analysis/damage.h"
#include "analysis/fragment.h"
#include "analysis/residency.h"
#include "analysis/standout.h"
#include "analysis/usage.h"
#include "analysis/where.h"
#include "base/err.h"
#include "corewalk/heap.h"
#include "corewalk/space.h"
#include "report/filter.h"
#include "report/table.h"

/* What the second head of the text has; see is_report() in out.c. */
#define REPORT_OF_MEMORY " of private memory,"
/* ... and how that of a report on a trace begins. */
#define REPORT_OF_SAMPLES "sampled every "
#define REPORT_OF_TRACE "exact: all of "
/* How the text of heapcore watch begins. */
#define WATCH_HEADING "watch of process "

/*
 * A kind of report: its sections, in the order of every output.  Text has no
 * target.
 */
enum section_flag {
	SECTION_IN_TEXT = 1 << 0,	/* in text without --only */
	SECTION_IN_JSON = 1 << 1,	/* in JSON without --only */
	SECTION_ALWAYS_JSON = 1 << 2,	/* in JSON with --only too */
	SECTION_NO_WORD = 1 << 3,	/* --only does not know it */
	SECTION_WITH_NEXT = 1 << 4,	/* it comes with the one behind it */
};

struct report_section {
	const char *word;
	unsigned flags;		/* enum section_flag */
};

struct report_kind {
	const char *schema;	/* what JSON begins with */
	const struct report_section *sections;
	unsigned n_sections;	/* at most 32 */
};

/* That of one core or process. */
extern const struct report_kind report_analyze;

/* The order is that of the output. */
enum section {
	SECTION_TARGET,		/* JSON only */
	SECTION_TOTALS,		/* JSON only */
	SECTION_WHERE,
	SECTION_STANDOUT,
	SECTION_TYPES,
	SECTION_ALLOCATORS,
	SECTION_ARENAS,
	SECTION_LEAKS,
	SECTION_RETAINERS,
	SECTION_STRINGS,
	SECTION_DUPLICATES,
	SECTION_PATTERNS,
	SECTION_PHP,
	SECTION_CLASSES,
	SECTION_SAMPLE,		/* with --sample only */
	SECTION_PROFILE,
	SECTION_FRAGMENTATION,
	SECTION_RESIDENCY,
	SECTION_THREADS,
	SECTION_MAPPINGS,
	SECTION_MODULES,
	SECTION_SETTINGS,
	SECTION_AT,
	SECTION_SEARCH,		/* with --search only */
	SECTION_ABORT,		/* with findings */
	SECTION_CULPRITS,	/* the same */
	SECTION_FINDINGS,
};
enum { SECTIONS = 27 };

/* What text shows without --only, and what JSON does. */
unsigned report_default_sections(const struct report_kind *kind, bool json);

/*
 * "where,arenas": bits by section; an unknown word names the others.  "all" has
 * in JSON what has no word too.
 */
bool report_parse_sections(const struct report_kind *kind, const char *list,
			   bool json, unsigned *ret,
			   struct err *err) MUST_CHECK;

enum report_format {
	REPORT_TEXT,
	REPORT_JSON,
	REPORT_CSV,
};

struct report_options {
	const struct report_kind *kind;
	enum report_format format;
	unsigned sections;	/* bits by the kind's sections */
	size_t rows;		/* in text; TABLE_ALL_ROWS */
	bool exact;
	bool color;
	bool redact;
	bool glance;		/* only what is known, or found at once */
	const char *sort;	/* a column of the only section; or NULL */
	/* Nodes of the dominator tree whose children are shown, if is_tree. */
	bool is_tree;
	const uint32_t *opened;
	size_t n_opened;
	const struct filter *filter;	/* of blocks; or NULL */
	uint64_t sample_rate, sample_seed;	/* SECTION_SAMPLE */
	const char *row_filter;	/* for the rows of the only section; or NULL */
};

struct backtraces;
struct reach;
struct refs_names;
struct census;
struct retain;
struct typed;
struct strings;
struct dup_blocks;
struct periods;
struct tails;
struct search;
struct php_view;
struct profiled;

/* What the report is made of; at NULL: no --at. */
struct report_input {
	struct space *sp;
	struct heap *heap;
	const struct where *where;
	const struct usage *usage;
	const struct fragment *fragment;
	const struct residency_heap *residency;
	const struct damage *damage;
	const struct standout *standout;
	const struct damage_at *at;
	const struct reach *reach;	/* NULL: not looked for */
	const char *no_reach;	/* then: why not */
	bool reach_refused;	/* it was wanted */
	const struct retain *retain;	/* NULL: not asked for */
	struct typed *typed;	/* NULL: not asked for */
	const struct census *census;	/* NULL: not looked for */
	/* For --sample: the same, or of the sampled blocks only; or NULL. */
	const struct census *sampled;
	bool census_refused;	/* it was wanted */
	uint64_t census_limit;	/* not looked for as more is in use; or 0 */
	struct refs_names *names;
	const struct backtraces *backtraces;	/* NULL: not asked for */
	const struct strings *strings;	/* NULL: not counted */
	const struct dup_blocks *dup_blocks;	/* NULL: not compared */
	const struct periods *periods;	/* NULL: not asked for */
	const struct tails *tails;	/* with them */
	const struct search *search;	/* NULL: not asked for */
	const struct php_view *php;	/* NULL: not looked for, no PHP */
	struct profiled *profiled;	/* NULL: not asked for */
	bool heap_found;	/* an allocator was found */
};

enum { REPORT_TABLES = 64 };

struct report {
	const struct report_options *options;
	struct str head[2];	/* the first two lines, of any length */
	struct str more;	/* the last lines: commands to go on with */
	bool complete;
	struct str incomplete;	/* a sentence that says why not; or empty */
	struct table tables[REPORT_TABLES];
	unsigned section[REPORT_TABLES];	/* of each table */
	size_t n_tables;
};

void report_init(struct report *r, const struct report_options *options);
void report_fini(struct report *r);

/* A new table of a section, for those who fill it; see table_init(). */
struct table *report_add(struct report *r, unsigned section,
			 const char *name, const char *title,
			 const struct column *columns, size_t n_columns);

/* All tables, sorted, filtered and redacted as the options say. */
bool report_build(struct report *r, const struct report_input *in,
		  struct err *err) MUST_CHECK;

/* For makers of other kinds: is the section to be made?  Is it the only one? */
bool report_wants(const struct report_options *options, unsigned section);
bool report_is_only(const struct report_options *options, unsigned section);
/* When all tables are there: sorts, filters and redacts them. */
bool report_finish(struct report *r, struct err *err) MUST_CHECK;
/* A word for the shell, quoted if it has to be. */
void report_add_word(struct str *s, const char *word);
/*
 * A command and its words; too long for a line, it goes on on the next one.
 * first ends in a space.
 */
void report_add_command(struct str *s, const char *first,
			const struct str *word, size_t n);

/*
 * Is there exactly one section to show?  What --csv and --sort need, and what
 * makes --filter look at rows; blocks are looked at for the size classes.
 */
bool report_single_section(const struct report_options *options,
			   unsigned *ret);

/* False if the format cannot show it: CSV of several tables. */
bool report_write(const struct report *r, struct out *o, struct err *err)
	MUST_CHECK;

/* The totals that --fail-if knows, and their values. */
const struct column *report_total_columns(size_t *ret_n);
void report_totals(const struct report_input *in, struct cell *ret);

/*
 * Nothing is missing of what the report speaks of: memory that the writer of
 * the core left out or that was cut off, bytes that no walker could decode,
 * a sum that is off.  Else *ret says what, in a sentence.
 */
bool report_complete(const struct report_input *in, struct str *ret);

#endif
