/* SPDX-License-Identifier: MIT */
/*
 * heapcore analyze: open the core, walk its heaps, ask the questions, print.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/damage.h"
#include "analysis/fragment.h"
#include "analysis/standout.h"
#include "analysis/usage.h"
#include "analysis/where.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/progress.h"
#include "cmd.h"
#include "corewalk/alloc.h"
#include "corewalk/heap.h"
#include "corewalk/target.h"
#include "report/blocks.h"
#include "report/filter.h"
#include "report/report.h"

struct args {
	struct common common;
	const char *pid;
	const char *max_pause;
	bool no_stop;
	bool no_swapin;
	const char *exe;
	struct list sysroots;
	struct list debug_dirs;
	bool no_files;
	const char *tmpdir;
	const char *allocator;
	const char *only;
	const char *rows;
	const char *sort;
	const char *filter;
	bool blocks;
	const char *at;
	bool bytes;
	bool csv;
	bool redact;
	struct list fail_if;
	struct list files;
};

#define ARG(field) offsetof(struct args, field)

static const struct option input_options[] = {
	{ 'p', "pid", "PID", "a running process instead of a core",
	  OPTION_VALUE, ARG(pid) },
	{ 0, "max-pause", "SECONDS", "give up if it had to stand still for "
	  "longer [10]", OPTION_VALUE, ARG(max_pause) },
	{ 0, "no-stop", NULL, "read it while it runs; less is sure",
	  OPTION_FLAG, ARG(no_stop) },
	{ 0, "no-swapin", NULL, "leave in swap what is there", OPTION_FLAG,
	  ARG(no_swapin) },
	{ 0, "exe", "FILE", "the program, if the core's own path is wrong",
	  OPTION_VALUE, ARG(exe) },
	{ 0, "sysroot", "DIR", "look for programs and libraries below DIR;\n"
	  "may be repeated", OPTION_LIST, ARG(sysroots) },
	{ 0, "debug-dir", "DIR", "more places for debug files",
	  OPTION_LIST, ARG(debug_dirs) },
	{ 0, "no-files", NULL, "read nothing but the core", OPTION_FLAG,
	  ARG(no_files) },
	{ 0, "tmpdir", "DIR", "where a compressed core is unpacked\n"
	  "[$TMPDIR or /tmp]", OPTION_VALUE, ARG(tmpdir) },
	{ 0, "allocator", "NAME", "do not guess: glibc", OPTION_VALUE,
	  ARG(allocator) },
};

static const struct option report_options_table[] = {
	{ 0, "only", "SECTION,...", "where, standout, allocators, arenas, "
	  "classes,\nfragmentation, residency, threads, mappings,\n"
	  "modules, settings, findings, all", OPTION_VALUE, ARG(only) },
	{ 0, "rows", "N|all", "rows per table [6]", OPTION_VALUE,
	  ARG(rows) },
	{ 0, "sort", "COLUMN", "-COLUMN for ascending", OPTION_VALUE,
	  ARG(sort) },
	{ 'f', "filter", "EXPR", "only blocks that match, as in\n"
	  "'size>1k state=tcache arena=\"glibc 1\" !mmapped'",
	  OPTION_VALUE, ARG(filter) },
	{ 0, "blocks", NULL, "one line per block, NDJSON with --json",
	  OPTION_FLAG, ARG(blocks) },
	{ 0, "at", "ADDR", "what is at this address", OPTION_VALUE,
	  ARG(at) },
	{ 0, "bytes", NULL, "exact bytes instead of K, M, G", OPTION_FLAG,
	  ARG(bytes) },
	{ 0, "csv", NULL, "the table of one section as CSV", OPTION_FLAG,
	  ARG(csv) },
	{ 0, "redact", NULL, "no content of the process: no strings,\n"
	  "bytes, command line or paths", OPTION_FLAG, ARG(redact) },
	{ 0, "fail-if", "COND", "exit 1 if COND holds: used, free,\n"
	  "free_share, undecoded, findings; may be repeated",
	  OPTION_LIST, ARG(fail_if) },
};

static const struct option_group groups[] = {
	{ "Input", input_options, countof(input_options), 0 },
	{ "Report", report_options_table, countof(report_options_table), 0 },
	{ "Output", common_options, COMMON_OPTIONS, ARG(common) },
};

/* What one run holds; made in this order, freed in the reverse. */
struct run {
	struct args args;
	struct report_options options;
	struct filter filter;		/* of blocks */
	struct filter *conditions;	/* owned; by args.fail_if */
	size_t n_conditions;
	const struct allocator *allocator;
	vaddr at;
	struct progress progress;
	struct out out;
	struct space *sp;
	struct heap heap;
	struct where where;
	struct usage usage;
	struct fragment fragment;
	struct damage damage;
	struct standout standout;
	struct damage_at damage_at;
	struct report_input input;
};

static bool set_rows(struct run *run, struct err *err)
{
	const char *rows = run->args.rows;
	uint64_t n = 6;

	if (rows && !strcmp(rows, "all")) {
		run->options.rows = TABLE_ALL_ROWS;
		return true;
	}
	if (rows && (!num_parse_u64(rows, &n) || !n || n > SIZE_MAX))
		return err_set(err, ERR_USAGE, "--rows: '%.40s' is neither a "
			       "number from 1 on nor all", rows);
	run->options.rows = n;
	return true;
}

static bool set_format(struct run *run, struct err *err)
{
	const struct args *a = &run->args;

	if (a->common.json && a->csv)
		return err_set(err, ERR_USAGE,
			       "--json and --csv exclude each other");
	run->options.kind = &report_analyze;
	run->options.format = a->common.json ? REPORT_JSON
			      : a->csv ? REPORT_CSV : REPORT_TEXT;
	run->options.exact = a->bytes;
	run->options.redact = a->redact;
	run->options.sort = a->sort;
	return set_rows(run, err) &&
	       cmd_color(&a->common, &run->options.color, err);
}

static bool set_sections(struct run *run, struct err *err)
{
	const struct args *a = &run->args;
	struct report_options *o = &run->options;

	if (a->at) {
		if (!num_parse_addr(a->at, &run->at))
			return err_set(err, ERR_USAGE, "--at: '%.40s' is no "
				       "address", a->at);
		if (a->only || a->blocks || a->filter || a->sort)
			return err_set(err, ERR_USAGE, "--at stands alone: "
				       "no --only, --blocks, --filter or "
				       "--sort");
		o->sections = 1u << SECTION_AT;
		return true;
	}
	if (a->blocks && (a->only || a->sort))
		return err_set(err, ERR_USAGE, "--blocks is one list by "
			       "address: no --only, no --sort");
	if (a->only)
		return report_parse_sections(o->kind, a->only, &o->sections,
					     err);
	o->sections = report_default_sections(o->kind, a->common.json);
	if (a->filter)
		o->sections |= 1u << SECTION_CLASSES;
	return true;
}

/* A filter is of rows if there is one section and that is not of blocks. */
static bool set_filter(struct run *run, struct err *err)
{
	struct report_options *o = &run->options;
	const char *expr = run->args.filter;
	unsigned section;
	size_t n;

	if (!expr)
		return true;
	if (!run->args.blocks && run->args.only &&
	    report_single_section(o, &section) &&
	    section != SECTION_CLASSES) {
		o->row_filter = expr;
		return true;
	}
	if (!run->args.blocks && !(o->sections >> SECTION_CLASSES & 1)) {
		err_set(err, ERR_USAGE, "--filter needs one section, or "
			"classes among them");
		return err_hint(err, "Or --blocks, which lists what "
				"matches.");
	}
	const struct column *columns = block_columns(&n);

	if (!filter_compile(&run->filter, "--filter", expr, columns, n, err))
		return false;
	o->filter = &run->filter;
	return true;
}

static bool set_conditions(struct run *run, struct err *err)
{
	const struct list *list = &run->args.fail_if;
	size_t n;
	const struct column *columns = report_total_columns(&n);

	run->conditions = mem_zalloc(list->n * sizeof(*run->conditions));
	for (size_t i = 0; i < list->n; i++) {
		if (!strncmp(list->items[i], "leak", 4))
			return err_set(err, ERR_USAGE, "--fail-if: this "
				       "version cannot tell what is leaked");
		if (!filter_compile(&run->conditions[i], "--fail-if",
				    list->items[i], columns, n, err))
			return false;
		run->n_conditions++;
	}
	return true;
}

static bool set_allocator(struct run *run, struct err *err)
{
	const char *name = run->args.allocator;

	if (!name)
		return true;
	run->allocator = alloc_by_name(name);
	if (run->allocator)
		return true;
	err_set(err, ERR_USAGE, "--allocator: '%.40s' is not known", name);
	err_hint(err, "Known are");
	for (size_t i = 0; allocators[i]; i++) {
		size_t used = strlen(err->hint);

		snprintf(err->hint + used, sizeof(err->hint) - used,
			 "%s %s%s", i ? "," : "", allocators[i]->name,
			 allocators[i + 1] ? "" : ".");
	}
	return false;
}

static bool check_files(const struct args *a, struct err *err)
{
	if (a->pid && a->files.n)
		return err_set(err, ERR_USAGE, "--pid or a core file, not "
			       "both");
	if (a->pid)
		return true;
	if (a->no_stop || a->no_swapin || a->max_pause)
		return err_set(err, ERR_USAGE, "--%s is for processes: give "
			       "--pid", a->no_stop ? "no-stop" :
			       a->no_swapin ? "no-swapin" : "max-pause");
	if (!a->files.n)
		return err_set(err, ERR_USAGE, "no core file given");
	if (a->files.n > 1)
		return err_set(err, ERR_USAGE, "one core file, not %zu",
			       a->files.n);
	if (!strcmp(a->files.items[0], "-"))
		return err_set(err, ERR_USAGE, "a core is read in any order: "
			       "give a file, not a pipe");
	return true;
}

/* All that can be wrong with the command line is said before any work. */
static bool prepare(struct run *run, struct err *err)
{
	unsigned section;

	if (!check_files(&run->args, err) || !set_format(run, err) ||
	    !set_sections(run, err) || !set_filter(run, err) ||
	    !set_conditions(run, err) || !set_allocator(run, err))
		return false;
	if (run->args.blocks || report_single_section(&run->options,
						      &section))
		return true;
	if (run->args.csv || run->args.sort) {
		err_set(err, ERR_USAGE, "--%s needs one section",
			run->args.csv ? "csv" : "sort");
		return err_hint(err, "Name it with --only.");
	}
	return true;
}

static bool open_target(struct run *run, struct err *err)
{
	const struct args *a = &run->args;
	struct target_options options = {
		.exe = a->exe,
		.sysroots = a->sysroots.items,
		.n_sysroots = a->sysroots.n,
		.debug_dirs = a->debug_dirs.items,
		.n_debug_dirs = a->debug_dirs.n,
		.no_files = a->no_files,
		.tmpdir = a->tmpdir,
		.progress = &run->progress,
	};

	if (a->pid) {
		uint32_t pid = 0;

		if (!cmd_pid(a->pid, &pid, err) ||
		    !cmd_seconds(a->max_pause, &options.max_pause_s, err))
			return false;
		options.no_stop = a->no_stop;
		options.no_swapin = a->no_swapin;
		progress_phase(&run->progress, "reading the process");
		run->sp = target_open_live(pid, &options, err);
	} else {
		progress_phase(&run->progress, "opening the core");
		run->sp = target_open_core(a->files.items[0], &options, err);
	}
	return run->sp != NULL;
}

/*
 * No allocator is an answer too: the table of mappings says what the memory
 * is instead.  Not so if one was asked for, or blocks.
 */
static bool walk(struct run *run, struct err *err)
{
	struct report_input *in = &run->input;

	progress_phase(&run->progress, "walking the heap");
	in->heap_found = alloc_walk(run->sp, run->allocator, run->allocator,
				    &run->heap, &run->progress, err);
	if (in->heap_found)
		return true;
	err_prefix(err, "%s", run->sp->path ? run->sp->path : "?");
	return !run->allocator && !run->args.blocks;
}

static void analyse(struct run *run)
{
	struct report_input *in = &run->input;
	struct standout_input standout = {
		.sp = run->sp, .heap = &run->heap, .where = &run->where,
		.usage = &run->usage, .fragment = &run->fragment,
		.damage = &run->damage,
	};

	progress_phase(&run->progress, "adding up");
	where_init(&run->where, run->sp, &run->heap);
	if (run->args.blocks)
		return;
	usage_init(&run->usage, &run->heap, USAGE_ALL_ARENAS);
	fragment_init(&run->fragment, run->sp, &run->heap);
	damage_init(&run->damage, run->sp, &run->heap);
	standout_init(&run->standout, &standout);
	if (run->args.at) {
		damage_at_init(&run->damage_at, run->sp, &run->heap,
			       &run->where, run->at);
		in->at = &run->damage_at;
	}
}

static void run_fini(struct run *run)
{
	if (run->input.at)
		damage_at_fini(&run->damage_at);
	standout_fini(&run->standout);
	damage_fini(&run->damage);
	fragment_fini(&run->fragment);
	usage_fini(&run->usage);
	where_fini(&run->where);
	heap_fini(&run->heap);
	space_close(run->sp);
	for (size_t i = 0; i < run->n_conditions; i++)
		filter_fini(&run->conditions[i]);
	free(run->conditions);
	filter_fini(&run->filter);
	list_fini(&run->args.sysroots);
	list_fini(&run->args.debug_dirs);
	list_fini(&run->args.fail_if);
	list_fini(&run->args.files);
}

static bool write_report(struct run *run, struct err *err)
{
	struct report report;
	bool ok;

	if (run->args.blocks) {
		progress_phase(&run->progress, "writing blocks");
		progress_fini(&run->progress);
		blocks_write(&run->heap, run->options.filter,
			     run->options.format, &run->out);
		return true;
	}
	report_init(&report, &run->options);
	ok = report_build(&report, &run->input, err);
	progress_fini(&run->progress);
	ok = ok && report_write(&report, &run->out, err);
	report_fini(&report);
	return ok;
}

static bool condition_holds(const struct run *run)
{
	size_t n;
	struct cell *totals;
	bool holds = false;

	report_total_columns(&n);
	totals = mem_zalloc(n * sizeof(*totals));
	report_totals(&run->input, totals);
	for (size_t i = 0; i < run->n_conditions; i++)
		holds |= filter_match(&run->conditions[i], totals, "");
	free(totals);
	return holds;
}

static int status_of(const struct run *run)
{
	if (condition_holds(run))
		return STATUS_CONDITION;
	return report_complete(&run->input) ? STATUS_COMPLETE
					    : STATUS_INCOMPLETE;
}

/* From an open output to a closed one. */
static int make_report(struct run *run, struct err *err)
{
	bool ok = open_target(run, err);

	run->input.sp = run->sp;
	if (ok)
		ok = walk(run, err);
	if (ok)
		analyse(run);
	progress_phase(&run->progress, NULL);
	if (run->sp && !run->args.common.quiet)
		cmd_warn(run->sp, run->args.redact);
	if (ok && !run->input.heap_found)
		cmd_fail(err);
	if (!ok || !write_report(run, err)) {
		progress_fini(&run->progress);
		out_abandon(&run->out);
		return cmd_fail(err);
	}
	if (!out_close(&run->out, err))
		return cmd_fail(err);
	return status_of(run);
}

static int analyze(const struct command *self, int argc, char **argv)
{
	enum progress_mode mode;
	struct run run = { .sp = NULL };
	struct args *a = &run.args;
	struct err err = { .kind = ERR_NONE };
	int status;

	heap_init(&run.heap);
	run.input = (struct report_input){
		.heap = &run.heap, .where = &run.where, .usage = &run.usage,
		.fragment = &run.fragment, .damage = &run.damage,
		.standout = &run.standout,
	};
	if (!cmd_parse(self, argc, argv, a, &a->files, &err))
		status = cmd_usage(self, &err);
	else if (a->common.help)
		status = cmd_help(self);
	else if (a->common.version)
		status = cmd_version();
	else if (!prepare(&run, &err) ||
		 !cmd_progress(&a->common, &mode, &err))
		status = cmd_usage(self, &err);
	else if (!out_open(&run.out, a->common.output, a->common.force, &err))
		status = cmd_fail(&err);
	else {
		progress_init(&run.progress, mode);
		status = make_report(&run, &err);
	}
	run_fini(&run);
	return status;
}

const struct command command_analyze = {
	.name = "analyze",
	.summary = "report on a core file",
	.usage =
"Usage: heapcore analyze [OPTION]... CORE\n"
"Say where the memory of a crashed program went.\n"
"\n"
"  heapcore analyze core.1234\n"
"  heapcore analyze --exe=./appd --sysroot=/srv/rootfs core.1234\n"
"  heapcore analyze --json core.1234 | jq '.where'\n"
"  heapcore analyze --only=classes --rows=all --sort=blocks core.1234\n"
"  heapcore analyze --blocks --filter='size>1M' core.1234\n"
"  heapcore analyze --fail-if='free_share>30%' core.1234\n",
	.groups = groups,
	.n_groups = countof(groups),
	.run = analyze,
};
