/* SPDX-License-Identifier: MIT */
/*
 * What commands that look at a target share: the options that say how, and the
 * way from a file or a process to what is known of it.
 */
#ifndef CMD_SUBJECT_H
#define CMD_SUBJECT_H

#include "analysis/backtrace.h"
#include "analysis/census.h"
#include "analysis/damage.h"
#include "analysis/dup_blocks.h"
#include "analysis/fragment.h"
#include "analysis/period.h"
#include "analysis/php_say.h"
#include "analysis/pyarenas.h"
#include "analysis/reach.h"
#include "analysis/refs.h"
#include "analysis/residency.h"
#include "analysis/retain.h"
#include "analysis/search.h"
#include "analysis/standout.h"
#include "analysis/strings.h"
#include "analysis/tails.h"
#include "analysis/typed.h"
#include "analysis/usage.h"
#include "analysis/where.h"
#include "cmd.h"
#include "corewalk/alloc.h"
#include "corewalk/heap.h"
#include "report/profiled.h"
#include "report/report.h"

struct subject_args {
	const char *max_pause;
	bool no_stop;
	bool no_swapin;
	const char *exe;
	struct list sysroots;
	struct list debug_dirs;
	bool no_files;
	const char *tmpdir;
	const char *allocator;
};
enum { SUBJECT_PROCESS_OPTIONS = 3, SUBJECT_FILE_OPTIONS = 6 };
/* Of the latter, those that say where names come from. */
enum { SUBJECT_NAMES_FIRST = 1, SUBJECT_NAME_OPTIONS = 2 };
extern const struct option subject_process_options[SUBJECT_PROCESS_OPTIONS];
extern const struct option subject_file_options[SUBJECT_FILE_OPTIONS];

void subject_args_fini(struct subject_args *a);
/* An option that only processes know, and that was given; NULL if none. */
const char *subject_process_option(const struct subject_args *a);

/* One target: opened, walked, asked; freed in the reverse order. */
struct subject {
	bool nameless;		/* --redact; from subject_init() on */
	struct space *sp;
	struct heap heap;
	struct where where;
	struct usage usage;
	struct fragment fragment;
	struct residency_heap residency;	/* of usage too */
	struct damage damage;
	struct standout standout;
	struct target_options options;
	struct debug *debug;	/* NULL: nothing has needed it */
	struct cfi *cfi;	/* the same */
	struct backtraces backtraces;
	struct refs_names names;
	struct graph graph;
	struct reach reach;
	struct retain retain;
	struct index index;	/* of the census, if there is no graph */
	struct hints *hints;	/* borrowed: of --hints; NULL */
	struct typed typed;
	struct census census;
	struct census sampled;	/* of sampled blocks, if there is none of all */
	struct strings strings;
	struct dup_blocks dup_blocks;
	struct periods periods;
	struct tails tails;
	struct search search;
	struct php_view php;
	struct profiled profiled;
	struct err reach_err;	/* why there is none of it */
	struct report_input input;	/* points to the others */
};

void subject_init(struct subject *s);
void subject_fini(struct subject *s);

/* The allocator of --allocator; *ret is NULL if there is no such option. */
bool subject_allocator(const struct subject_args *a,
		       const struct allocator **ret,
		       struct err *err) MUST_CHECK;

/* Of a path that cannot be opened: was a process meant?  Always false. */
bool subject_no_file(const char *path, struct err *err);

bool subject_open_core(struct subject *s, const struct subject_args *a,
		       const char *path, struct progress *p, struct err *err)
	MUST_CHECK;
bool subject_open_live(struct subject *s, const struct subject_args *a,
		       const char *pid, struct progress *p, struct err *err)
	MUST_CHECK;

/*
 * No allocator is an answer too: then the result is true, input.heap_found
 * false, and err says why.  Not so if one was asked for.
 */
bool subject_walk(struct subject *s, const struct allocator *allocator,
		  struct progress *p, struct err *err) MUST_CHECK;
/* Where the memory is, and no more; then all the rest. */
void subject_where(struct subject *s, struct progress *p);
/* last: the contents of blocks are hardly looked at from then on. */
void subject_analyse(struct subject *s, bool last);
/* The sentences of what stands out anew, with what is known by now. */
void subject_say(struct subject *s);
/*
 * References and what is lost.  Without being asked only if that is quick:
 * for heaps below SUBJECT_REACH_FREELY.
 */
void subject_reach(struct subject *s, bool asked, struct progress *p);
/*
 * What the blocks are; after subject_reach(), whose index it shares.  Without
 * being asked as above.
 */
void subject_census(struct subject *s, bool asked, struct progress *p);
/*
 * Of the block at an address and of those that it points to, alone; and how
 * it can be reached, if subject_reach() did not look.
 */
void subject_census_near(struct subject *s, vaddr addr, struct progress *p);
/*
 * Of the accumulations and some of what they hold, alone, unless more has been
 * looked at; after subject_retain().
 */
void subject_census_top(struct subject *s, struct progress *p);
/* The same of sampled blocks only, if not all were looked at. */
void subject_sample(struct subject *s, uint64_t rate, uint64_t seed,
		    struct progress *p);
/* Who keeps how much; after subject_reach(). */
void subject_retain(struct subject *s, struct progress *p);
/* The stacks of threads; after subject_where(). */
void subject_backtraces(struct subject *s, struct progress *p);
/*
 * Strings that repeat.  Without being asked only if that is quick: for heaps
 * below SUBJECT_STRINGS_FREELY.
 */
void subject_strings(struct subject *s, bool asked, struct progress *p);
#define SUBJECT_STRINGS_FREELY (16 * MIB)
/* Blocks that are equal. */
void subject_duplicates(struct subject *s, struct progress *p);
/* What large blocks hold, and what is unused of all; after subject_where(). */
void subject_patterns(struct subject *s, struct progress *p);
/*
 * What PHP programs hold, if there are any; after subject_reach(), whose index
 * it shares.  Without being asked for heaps as above.
 */
void subject_php(struct subject *s, bool asked, struct progress *p);
/* Where a pattern is; at most limit places are kept. */
void subject_search(struct subject *s, const struct search_pattern *pattern,
		    enum search_in in, size_t limit, struct progress *p);
/*
 * The profile that an allocator keeps; rate is its rate if that is known
 * better, else 0.  After subject_where().
 */
bool subject_profile(struct subject *s, uint64_t rate, struct progress *p,
		     struct err *err) MUST_CHECK;
#define SUBJECT_REACH_FREELY (512 * MIB)

#endif
