/* SPDX-License-Identifier: MIT */
/*
 * What all commands share: their table, their options, their messages.
 *
 * An option is declared once, in its command's table: that yields parsing and
 * the help text; tests/sh/options.sh holds manual and completion against it.
 */
#ifndef CMD_H
#define CMD_H

#include "base/err.h"
#include "base/progress.h"
#include "base/types.h"
#include "corewalk/space.h"

/* 2 beats 1 beats 3. */
enum status {
	STATUS_COMPLETE = 0,
	STATUS_CONDITION = 1,	/* a --fail-if condition holds */
	STATUS_FAILED = 2,	/* no report */
	STATUS_INCOMPLETE = 3,
};

/* Values of options that may be repeated; items point into argv. */
struct list {
	const char **items;	/* owned */
	size_t n, cap;
};

enum option_kind {
	OPTION_FLAG,		/* bool */
	OPTION_VALUE,		/* const char *; the last one counts */
	OPTION_ONE,		/* the same; a second one is an error */
	OPTION_LIST,		/* struct list */
};

struct option {
	char letter;		/* 0: none */
	const char *name;
	const char *value;	/* "FILE"; NULL: takes none */
	const char *help;	/* lines; NULL: not shown */
	enum option_kind kind;
	size_t offset;		/* of the value in the command's struct */
};

struct option_group {
	const char *title;	/* "Input"; NULL: goes on with the last one */
	const struct option *options;
	size_t n_options;
	size_t base;		/* added to the offsets */
};

struct command {
	const char *name;
	const char *summary;	/* for heapcore --help */
	const char *usage;	/* lines up to the options */
	const struct option_group *groups;
	size_t n_groups;
	int (*run)(const struct command *self, int argc, char **argv);
};

/* Options that every command has. */
struct common {
	const char *output;
	bool json;
	bool quiet;
	bool force;
	bool help;
	bool version;
	const char *color;
	const char *progress;
};
enum { COMMON_OPTIONS = 8 };
extern const struct option common_options[COMMON_OPTIONS];

/* Those of them from one on, for a command that has its own words or less. */
enum { COMMON_FORCE = 1, COMMON_COLOR = 3, COMMON_PROGRESS, COMMON_QUIET,
       COMMON_HELP };
#define COMMON_FROM(first, base) \
	{ NULL, common_options + (first), COMMON_OPTIONS - (first), (base) }
#define COMMON_ONE(which, base) \
	{ NULL, common_options + (which), 1, (base) }

extern const struct command command_analyze;
extern const struct command command_diff;
extern const struct command command_replay;
extern const struct command command_record;
extern const struct command command_snapshot;
extern const struct command command_trace;
extern const struct command command_tui;
extern const struct command command_watch;

/*
 * Fill values from argv[1] on; what is no option goes to rest.  Anything that
 * starts with - is an option, before and behind the target, until "--".
 */
bool cmd_parse(const struct command *c, int argc, char **argv, void *values,
	       struct list *rest, struct err *err) MUST_CHECK;
void list_fini(struct list *l);

/*
 * The same, and --help, --version or what is wrong: true if the command is to
 * go on, else *ret_status is set.  values begins with a struct common.
 */
bool cmd_begin(const struct command *c, int argc, char **argv, void *values,
	       struct list *rest, int *ret_status) MUST_CHECK;

/*
 * Of a command that writes a report, with what preparing it found: the output
 * is opened and progress begun, or *ret_status is set.
 */
struct out;
bool cmd_start(const struct command *c, bool prepared,
	       const struct common *common, struct progress *ret_progress,
	       struct out *ret_out, struct err *err,
	       int *ret_status) MUST_CHECK;

/* --version, on stdout.  The status. */
int cmd_version(void);

/* "heapcore: THING: what" and the hint line; the status. */
int cmd_fail(const struct err *err);
/* A usage error names the command's --help if there is no better hint. */
int cmd_usage(const struct command *c, struct err *err);

/* The sentences about the input, on stderr; redact: with no path in them. */
void cmd_warn(const struct space *sp, bool redact);

/* What --color and --progress and the terminals say. */
bool cmd_color(const struct common *common, bool *ret, struct err *err)
	MUST_CHECK;
bool cmd_progress(const struct common *common, struct progress *ret,
		  struct err *err) MUST_CHECK;

/* The number of a process; seconds, which stay as they are without text. */
bool cmd_pid(const char *text, uint32_t *ret, struct err *err) MUST_CHECK;
/* "500ms", "10s", "1.5m", "2h", "1d", "10": nanoseconds. */
bool cmd_time(const char *option, const char *text, uint64_t *ret,
	      struct err *err) MUST_CHECK;
bool cmd_seconds(const char *text, double *ret, struct err *err) MUST_CHECK;

/* The word nearest to name, NULL if none is near. */
struct words_near {
	const char *name;
	const char *best;
	unsigned distance;
};
void near_init(struct words_near *near, const char *name);
void near_try(struct words_near *near, const char *word);

#endif
