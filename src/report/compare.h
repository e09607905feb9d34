/* SPDX-License-Identifier: MIT */
/*
 * Two reports, row by row.
 *
 * Vocabulary.  A *list* is one of a report's tables that can be compared; its
 * first column or columns name a row, the others are amounts.  A *side* is
 * what is known of one report: the lists, read from a report that was just
 * made or from one that was saved.  A *pair* is a row of one or both sides.
 * All of it goes by one table of lists, in compare.c: what reports learn to
 * list is compared once it stands there.
 *
 * Arenas have the same names in each process and are numbered by their order
 * in a ring to which new ones are added in front.  So those of the same
 * process at two times are paired by address.  What is at an address that
 * the other side does not have, as an allocator's only arena whose table was
 * moved, is paired by name, if one of each side is left with that name.
 */
#ifndef REPORT_COMPARE_H
#define REPORT_COMPARE_H

#include "base/err.h"
#include "base/types.h"
#include "report/report.h"
#include "report/saved.h"
#include "report/table.h"

enum compare_list {
	COMPARE_TARGET,
	COMPARE_TOTALS,
	COMPARE_WHERE,
	COMPARE_ARENAS,
	COMPARE_CLASSES,
	COMPARE_LEAKS,
	COMPARE_TYPES,
	COMPARE_PHP_HOLDERS,
	COMPARE_PHP_CLASSES,
};
enum { COMPARE_LISTS = 9 };

/*
 * Columns of the lists.  What is hidden of a name is the name in a redacted
 * report, where that is another one.
 */
enum {
	TARGET_KIND, TARGET_PROGRAM, TARGET_PID, TARGET_THREADS,
	TARGET_PRIVATE, TARGET_STORED, TARGET_TORN, TARGET_REDACTED,
	TARGET_COLUMNS
};
enum {
	TOTALS_PRIVATE, TOTALS_MAPPED, TOTALS_USED, TOTALS_USED_BLOCKS,
	TOTALS_FREE, TOTALS_UNDECODED, TOTALS_FINDINGS, TOTALS_LEAKED,
	TOTALS_LEAKED_BLOCKS, TOTALS_COLUMNS
};
enum {
	WHERE_WHAT, WHERE_BYTES, WHERE_STORED, WHERE_RESIDENT, WHERE_SWAPPED,
	WHERE_COLUMNS
};
enum {
	ARENAS_NAME, ARENAS_ADDRESS, ARENAS_MAPPED, ARENAS_USED,
	ARENAS_FREE, ARENAS_TRIMMABLE, ARENAS_USED_BLOCKS, ARENAS_COLUMNS
};
enum {
	CLASSES_MIN, CLASSES_MAX, CLASSES_USED, CLASSES_USED_BLOCKS,
	CLASSES_FREE, CLASSES_FREE_BLOCKS, CLASSES_ALLOCATOR, CLASSES_COLUMNS
};
enum {
	LEAKS_NAME, LEAKS_GRADE, LEAKS_HIDDEN, LEAKS_BYTES, LEAKS_BLOCKS,
	LEAKS_COLUMNS
};
enum {
	TYPES_NAME, TYPES_KNOWN_BY,
	TYPES_SHAPE,		/* its name in a report; of look-alikes only */
	TYPES_HIDDEN,
	TYPES_BYTES, TYPES_BLOCKS, TYPES_COLUMNS
};

enum {
	PHP_HOLDERS_NAME, PHP_HOLDERS_KIND, PHP_HOLDERS_HEAP,
	PHP_HOLDERS_HIDDEN, PHP_HOLDERS_HOLDS, PHP_HOLDERS_COLUMNS
};
enum {
	PHP_CLASSES_NAME, PHP_CLASSES_HEAP, PHP_CLASSES_HIDDEN,
	PHP_CLASSES_BYTES, PHP_CLASSES_OBJECTS, PHP_CLASSES_COLUMNS
};

struct compare_side {
	char *name;		/* owned; the file, or "process 1234" */
	uint32_t pid;		/* of a process that was read; else 0 */
	struct table list[COMPARE_LISTS];
	bool has[COMPARE_LISTS];
	unsigned schema;	/* of a saved report; else 0 */
	bool complete;		/* as the report says of itself */
	size_t odd;		/* values of a wrong kind */
	bool by_debug;		/* some types are from debug information */
};

void compare_side_init(struct compare_side *side, const char *name);
void compare_side_fini(struct compare_side *side);
void compare_side_from_saved(struct compare_side *side, const struct saved *s);
/* It is of a process; false, too, if that is not known. */
bool compare_side_is_process(const struct compare_side *side);
/* False if the report cannot be built. */
bool compare_side_from_input(struct compare_side *side,
			     const struct report_input *in, struct err *err)
	MUST_CHECK;

enum { COMPARE_NO_ROW = UINT32_MAX, COMPARE_BOTH_SIDES = 2 };

struct compare_pair {
	uint32_t row[2];	/* old, new; COMPARE_NO_ROW */
};

/* What keeps the comparison from being whole, or right. */
struct compare_note {
	unsigned side;		/* 0 old, 1 new, COMPARE_BOTH_SIDES */
	const char *code;	/* static, stable */
	char *text;		/* owned; a sentence without its dot */
	bool harmless;		/* nothing is missing because of it */
};

struct compare {
	struct compare_side *side[2];	/* borrowed; old, new */
	struct compare_pair *pairs[COMPARE_LISTS];	/* owned */
	size_t n_pairs[COMPARE_LISTS];
	bool has[COMPARE_LISTS];	/* both sides have it */
	struct compare_note *notes;	/* owned */
	size_t n_notes, cap_notes;
	bool complete;
};

/*
 * Both lose what one of them does not tell apart: size classes' allocators,
 * and the names that a redacted report does not have if one side is such a
 * report.  With redact they lose these in any case; rows are paired by them
 * before if both sides have them.
 */
void compare_init(struct compare *c, struct compare_side *old,
		  struct compare_side *new, bool redact);
void compare_fini(struct compare *c);

/* One amount of one pair.  A row that is not there has none of it. */
struct change {
	uint64_t amount[2];	/* old, new */
	bool known[2];		/* the side has such a row with that amount */
	bool sure;		/* change is known */
	int64_t change;
};

struct change compare_change(const struct compare *c, enum compare_list list,
			     size_t pair, size_t column);
/* The same of a list with one row. */
struct change compare_total(const struct compare *c, size_t column);
/* The row of WHERE with that name; without one, nothing. */
struct change compare_where(const struct compare *c, const char *what,
			    size_t column);
/* A text of the newer row, of the older one if there is none; pool of side. */
const struct cell *compare_label(const struct compare *c,
				 enum compare_list list, size_t pair,
				 size_t column, const struct table **ret);

/* compare_arenas.c: within the comparison */

/*
 * The same process at two times: its C library is where it was, while for
 * each new process the kernel draws another place.
 */
bool compare_same_process(const struct compare *c);
/* Of the pairs with one row, those of one name become one. */
void compare_join_arenas(struct compare *c);

/* compare_hide.c: names that a redacted report does not have */

/* The report of the side was made with --redact, and says so. */
bool compare_is_redacted(const struct compare_side *side);
/* What stands in a redacted report; false if that is nothing else. */
bool compare_hide_names(struct compare_side *side);
/* Lists whose names may have to be hidden, if the report does not tell. */
bool compare_drop_named(struct compare_side *side);

/* compare_build.c: the report */

extern const struct report_kind report_diff;

bool compare_build(struct report *r, const struct compare *c,
		   struct err *err) MUST_CHECK;
/* What --fail-if knows, and the values. */
const struct column *compare_total_columns(size_t *ret_n);
void compare_totals(const struct compare *c, struct cell *ret);

/* compare_say.c: the sentences */

enum { SAID_MAX = 5 };

struct said {
	struct said_item {
		const char *rule;	/* static, stable */
		uint64_t weight;	/* orders them */
		int64_t change;		/* bytes it speaks of */
		char *text;		/* owned */
	} item[SAID_MAX];
	size_t n;
};

void said_init(struct said *s, const struct compare *c);
void said_fini(struct said *s);

/* "112 bytes", "128K to 256K" of a size class. */
void compare_size_text(const struct compare *c, size_t pair, struct str *ret);

#endif
