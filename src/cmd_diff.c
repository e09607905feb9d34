/* SPDX-License-Identifier: MIT */
/*
 * heapcore diff: two looks at a program, and what changed between them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cmd.h"
#include "cmd_report.h"
#include "cmd_subject.h"
#include "report/compare.h"
#include "report/saved.h"

struct args {
	struct common common;
	struct list pids;
	struct subject_args how;
	struct report_args report;
	struct list files;
};

#define ARG(field) offsetof(struct args, field)

static const struct option pid_option[] = {
	{ 'p', "pid", "PID", "a running process as one side, or as both",
	  OPTION_LIST, ARG(pids) },
};

static const struct option only_option[] = {
	{ 0, "only", "SECTION,...", "where, changed, arenas, leaks, "
	  "classes,\ntypes, php, all", OPTION_VALUE, ARG(report.only) },
};

static const struct option fail_option[] = {
	{ 0, "fail-if", "COND", "exit 1 if COND holds: used_change,\n"
	  "used_growth_share, leaked_change, free_change\n"
	  "and more, as in 'used_change>10M'; may be repeated",
	  OPTION_LIST, ARG(report.fail_if) },
};

static const struct option_group groups[] = {
	{ "Input", pid_option, countof(pid_option), 0 },
	{ NULL, subject_process_options, SUBJECT_PROCESS_OPTIONS, ARG(how) },
	{ NULL, subject_file_options, SUBJECT_FILE_OPTIONS, ARG(how) },
	{ "Report", only_option, countof(only_option), 0 },
	{ NULL, report_shape_options, REPORT_SHAPE_OPTIONS, ARG(report) },
	{ NULL, fail_option, countof(fail_option), 0 },
	{ "Output", common_options, COMMON_OPTIONS, ARG(common) },
};

/* What one run holds; made in this order, freed in the reverse. */
struct run {
	struct args args;
	const char *target[2];		/* a path, or a process's number */
	bool is_pid[2];
	struct report_options options;
	struct conditions conditions;
	const struct allocator *allocator;
	struct progress progress;
	struct out out;
	struct compare_side side[2];
	struct compare compare;
};

/* ---- the command line ---- */

/* The argument that holds text, which is a part of it. */
static int place_of(int argc, char **argv, const char *text)
{
	for (int i = 1; i < argc; i++)
		for (const char *p = argv[i]; ; p++) {
			if (p == text)
				return i;
			if (!*p)
				break;
		}
	return argc;
}

/* Processes and files are sides in the order in which they were given. */
static bool set_targets(struct run *run, int argc, char **argv,
			struct err *err)
{
	const struct args *a = &run->args;
	size_t n = a->pids.n + a->files.n;
	size_t pid = 0, file = 0;

	if (n != 2)
		return err_set(err, ERR_USAGE, n < 2 ? "two of files and "
			       "--pid are needed" : "two of files and --pid "
			       "can be compared, not %zu", n);
	for (int i = 0; i < 2; i++) {
		run->is_pid[i] = file == a->files.n ||
			(pid < a->pids.n &&
			 place_of(argc, argv, a->pids.items[pid]) <
			 place_of(argc, argv, a->files.items[file]));
		run->target[i] = run->is_pid[i] ? a->pids.items[pid++]
						: a->files.items[file++];
	}
	if (a->files.n == 2 && !strcmp(run->target[0], "-") &&
	    !strcmp(run->target[1], "-"))
		return err_set(err, ERR_USAGE, "standard input can be read "
			       "once only");
	if (!a->pids.n && subject_process_option(&a->how))
		return err_set(err, ERR_USAGE, "--%s is for processes: give "
			       "--pid", subject_process_option(&a->how));
	return true;
}

static bool set_sections(struct run *run, struct err *err)
{
	struct report_options *o = &run->options;

	if (run->args.report.only)
		return report_parse_sections(o->kind, run->args.report.only,
					     run->args.common.json,
					     &o->sections, err);
	o->sections = report_default_sections(o->kind,
					      run->args.common.json);
	return true;
}

static bool prepare(struct run *run, int argc, char **argv, struct err *err)
{
	const struct args *a = &run->args;
	size_t n;
	const struct column *totals = compare_total_columns(&n);
	uint32_t pid;

	run->options.kind = &report_diff;
	for (size_t i = 0; i < a->pids.n; i++)
		if (!cmd_pid(a->pids.items[i], &pid, err))
			return false;
	return set_targets(run, argc, argv, err) &&
	       report_args_shape(&a->report, &a->common, &run->options, err) &&
	       set_sections(run, err) &&
	       conditions_compile(&run->conditions, &a->report.fail_if, totals,
				  n, err) &&
	       subject_allocator(&a->how, &run->allocator, err) &&
	       report_args_check(&a->report, &run->options, err);
}

/* ---- the sides ---- */

/* Leaks are looked for where it takes no time, or if they are asked for. */
static bool asks_for_leaks(const struct args *a)
{
	if (a->report.only && strstr(a->report.only, "leaks"))
		return true;
	for (size_t i = 0; i < a->report.fail_if.n; i++)
		if (!strncmp(a->report.fail_if.items[i], "leaked", 6))
			return true;
	return false;
}

/* Types likewise. */
static bool asks_for_types(const struct args *a)
{
	return a->report.only && strstr(a->report.only, "types");
}

/* What PHP programs hold, likewise. */
static bool asks_for_php(const struct args *a)
{
	return a->report.only && strstr(a->report.only, "php");
}

/* A core or a process: looked at, put into lists, and let go. */
static bool look(struct run *run, int side, struct err *err)
{
	const struct args *a = &run->args;
	struct compare_side *to = &run->side[side];
	struct subject s;
	bool ok;

	subject_init(&s);
	ok = run->is_pid[side] ?
	     subject_open_live(&s, &a->how, run->target[side], &run->progress,
			       err) :
	     subject_open_core(&s, &a->how, run->target[side], &run->progress,
			       err);
	if (ok)
		ok = subject_walk(&s, run->allocator, &run->progress, err);
	if (ok) {
		subject_where(&s, &run->progress);
		subject_reach(&s, asks_for_leaks(a), &run->progress);
		subject_census(&s, asks_for_types(a), &run->progress);
		subject_php(&s, asks_for_php(a), &run->progress);
		subject_analyse(&s, true);
		compare_side_init(to, s.sp->path);
		ok = compare_side_from_input(to, &s.input, err);
	}
	progress_phase(&run->progress, NULL);
	if (s.sp && !a->common.quiet)
		cmd_warn(s.sp, a->report.redact);
	if (ok && !s.input.heap_found)
		cmd_fail(err);
	subject_fini(&s);
	return ok;
}

static bool read_side(struct run *run, int side, struct err *err)
{
	struct saved *saved = NULL;

	if (!run->is_pid[side] && !saved_open(run->target[side], &saved, err))
		return subject_no_file(run->target[side], err);
	if (!saved)
		return look(run, side, err);
	compare_side_init(&run->side[side], run->target[side]);
	compare_side_from_saved(&run->side[side], saved);
	saved_close(saved);
	return true;
}

/* Files first: for one that cannot be read no process need stand still. */
static bool read_sides(struct run *run, struct err *err)
{
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < 2; i++)
			if (run->is_pid[i] == pass && !read_side(run, i, err))
				return false;
	return true;
}

/* On stderr, like what a core or a process gives to warn of. */
static void say_notes(const struct run *run)
{
	const struct compare *c = &run->compare;

	for (size_t i = 0; i < c->n_notes; i++) {
		const struct compare_note *note = &c->notes[i];
		struct err err;

		err_set(&err, ERR_NONE, "%s", note->text);
		if (note->side < COMPARE_BOTH_SIDES &&
		    !run->options.redact)
			err_prefix(&err, "%s", c->side[note->side]->name);
		cmd_fail(&err);
	}
}

/* ---- the report ---- */

static bool write_report(struct run *run, struct err *err)
{
	struct report report;
	bool ok;

	report_init(&report, &run->options);
	ok = compare_build(&report, &run->compare, err) &&
	     report_write(&report, &run->out, err);
	report_fini(&report);
	return ok;
}

static int status_of(const struct run *run)
{
	size_t n;
	AUTO_FREE struct cell *totals = NULL;

	compare_total_columns(&n);
	totals = mem_zalloc(n * sizeof(*totals));
	compare_totals(&run->compare, totals);
	if (conditions_hold(&run->conditions, totals))
		return STATUS_CONDITION;
	return run->compare.complete ? STATUS_COMPLETE : STATUS_INCOMPLETE;
}

/* From an open output to a closed one. */
static int make_report(struct run *run, struct err *err)
{
	bool ok = read_sides(run, err);

	progress_fini(&run->progress);
	if (ok) {
		compare_init(&run->compare, &run->side[0], &run->side[1],
			     run->options.redact);
		if (!run->args.common.quiet)
			say_notes(run);
		ok = write_report(run, err);
	}
	if (!ok) {
		out_abandon(&run->out);
		return cmd_fail(err);
	}
	if (!out_close(&run->out, err))
		return cmd_fail(err);
	return status_of(run);
}

static void run_fini(struct run *run)
{
	compare_fini(&run->compare);
	compare_side_fini(&run->side[1]);
	compare_side_fini(&run->side[0]);
	conditions_fini(&run->conditions);
	subject_args_fini(&run->args.how);
	report_args_fini(&run->args.report);
	list_fini(&run->args.pids);
	list_fini(&run->args.files);
}

static int diff(const struct command *self, int argc, char **argv)
{
	struct run run = { .compare.complete = false };
	struct args *a = &run.args;
	struct err err = { .kind = ERR_NONE };
	int status;

	if (cmd_begin(self, argc, argv, a, &a->files, &status) &&
	    cmd_start(self, prepare(&run, argc, argv, &err), &a->common,
		      &run.progress, &run.out, &err, &status))
		status = make_report(&run, &err);
	run_fini(&run);
	return status;
}

const struct command command_diff = {
	.name = "diff",
	.summary = "compare two cores, processes or saved reports",
	.usage =
"Usage: heapcore diff [OPTION]... OLD NEW\n"
"Say what changed between two looks at a program.  Each side is a core file,\n"
"a snapshot, a report saved with analyze --json, or a process (-p PID).\n"
"\n"
"  heapcore diff core.1 core.2\n"
"  heapcore analyze --json -p 1234 -o before.json\n"
"  heapcore diff before.json -p 1234\n"
"  heapcore diff --only=classes --rows=20 core.1 core.2\n"
"  heapcore diff --fail-if='used_change>10M' before.json -p 1234\n",
	.groups = groups,
	.n_groups = countof(groups),
	.run = diff,
};
