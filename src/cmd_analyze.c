/* SPDX-License-Identifier: MIT */
/*
 * heapcore analyze: open the core, walk its heaps, ask the questions, print.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/progress.h"
#include "cmd.h"
#include "cmd_export.h"
#include "cmd_report.h"
#include "cmd_subject.h"
#include "report/blocks.h"
#include "report/filter.h"
#include "report/report.h"
#include "report/sample.h"
#include "sampler/geom.h"

struct args {
	struct common common;
	const char *pid;
	struct subject_args how;
	struct report_args report;
	const char *filter;
	bool blocks;
	bool leaks;
	const char *at;
	const char *hints;
	const char *sample, *seed, *budget;
	bool profile;
	const char *rate;
	struct export_args export;
	const char *search, *search_hex, *search_in, *limit;
	struct list files;
};

#define ARG(field) offsetof(struct args, field)

static const struct option pid_option[] = {
	{ 'p', "pid", "PID", "a running process instead of a core",
	  OPTION_ONE, ARG(pid) },
};

static const struct option only_option[] = {
	{ 0, "only", "SECTION,...", "where, standout, types, allocators, "
	  "arenas,\nleaks, retainers, strings, duplicates, patterns,\n"
	  "php, classes, profile, fragmentation, residency,\nthreads, "
	  "mappings, modules, settings, findings, all",
	  OPTION_VALUE, ARG(report.only) },
};

static const struct option block_options[] = {
	{ 'f', "filter", "EXPR", "only blocks that match, as in\n"
	  "'size>1k state=tcache arena=\"glibc 1\" !mmapped'",
	  OPTION_VALUE, ARG(filter) },
	{ 0, "blocks", NULL, "one line per block, NDJSON with --json",
	  OPTION_FLAG, ARG(blocks) },
	{ 0, "leaks", NULL, "look for leaks in a large heap too, and with\n"
	  "--blocks say who is leaked", OPTION_FLAG, ARG(leaks) },
	{ 0, "hints", "FILE", "what void * of the program points to: see\n"
	  "heapcore-hints(5)", OPTION_VALUE, ARG(hints) },
	{ 0, "at", "ADDR", "what is at this address", OPTION_VALUE,
	  ARG(at) },
	{ 0, "search", "REGEX", "where a PCRE2 pattern is, block by block",
	  OPTION_VALUE, ARG(search) },
	{ 0, "search-hex", "BYTES", "the same for bytes, as in '7f 45 4c 46'",
	  OPTION_VALUE, ARG(search_hex) },
	{ 0, "search-in", "blocks|heap|all",
	  "blocks in use, the whole heap, or all [blocks]",
	  OPTION_VALUE, ARG(search_in) },
	{ 0, "limit", "N|all", "places that a search lists [1000]",
	  OPTION_VALUE, ARG(limit) },
	{ 0, "sample", "RATE", "what a sampler would see of the blocks at\n"
	  "this many bytes a sample, and how wrong it is", OPTION_VALUE,
	  ARG(sample) },
	{ 0, "budget", "TIME", "types of all blocks if that takes about this\n"
	  "time, else of a sample for which it suffices", OPTION_VALUE,
	  ARG(budget) },
	{ 0, "seed", "N", "of the generator for a sample [1]", OPTION_VALUE,
	  ARG(seed) },
	{ 0, "fail-if", "COND", "exit 1 if COND holds: used, free,\n"
	  "free_share, free_resident_share, undecoded,\nfindings, leaked; "
	  "may be repeated",
	  OPTION_LIST, ARG(report.fail_if) },
};

static const struct option profile_options[] = {
	{ 0, "profile", NULL, "only the heap profile that an allocator keeps,\n"
	  "and how wrong it is", OPTION_FLAG, ARG(profile) },
	{ 0, "rate", "SIZE", "of that profile, if it is not known",
	  OPTION_VALUE, ARG(rate) },
};

/* One without a title goes on with the one before. */
static const struct option_group groups[] = {
	{ "Input", pid_option, countof(pid_option), 0 },
	{ NULL, subject_process_options, SUBJECT_PROCESS_OPTIONS, ARG(how) },
	{ NULL, subject_file_options, SUBJECT_FILE_OPTIONS, ARG(how) },
	{ "Report", only_option, countof(only_option), 0 },
	{ NULL, report_shape_options, REPORT_SHAPE_OPTIONS, ARG(report) },
	{ NULL, block_options, countof(block_options), 0 },
	{ "Profile", profile_options, countof(profile_options), 0 },
	{ NULL, export_options, EXPORT_OPTIONS, ARG(export) },
	{ "Output", common_options, COMMON_OPTIONS, ARG(common) },
};

/* What one run holds; made in this order, freed in the reverse. */
struct run {
	struct args args;
	struct report_options options;
	struct filter filter;		/* of blocks */
	struct conditions conditions;
	uint64_t budget_ns;
	uint64_t profile_rate;		/* 0: as the allocator has it */
	const struct allocator *allocator;
	vaddr at;
	struct progress progress;
	struct out out;
	struct subject subject;
	struct damage_at damage_at;
	struct hints hints;
	struct search_pattern *pattern;	/* owned; NULL: no search */
	enum search_in search_in;
	size_t search_limit;
};

static bool set_search_in(struct run *run, struct err *err)
{
	static const char *const words[] = {
		[SEARCH_BLOCKS] = "blocks",
		[SEARCH_HEAP] = "heap",
		[SEARCH_ALL] = "all",
	};
	const char *in = run->args.search_in, *limit = run->args.limit;
	uint64_t n = 1000;

	for (size_t i = 0; in && i < countof(words); i++)
		if (!strcmp(in, words[i])) {
			run->search_in = (enum search_in)i;
			in = NULL;
		}
	if (in)
		return err_set(err, ERR_USAGE, "--search-in: '%.40s' is "
			       "neither blocks nor heap nor all", in);
	if (limit && !strcmp(limit, "all"))
		n = SIZE_MAX;
	else if (limit && (!num_parse_u64(limit, &n) || !n))
		return err_set(err, ERR_USAGE, "--limit: '%.40s' is neither a "
			       "number from 1 on nor all", limit);
	run->search_limit = n;
	return true;
}

/* It makes a report of its own. */
static bool set_search(struct run *run, struct err *err)
{
	const struct args *a = &run->args;

	if (!a->search && !a->search_hex) {
		if (a->search_in || a->limit)
			return err_set(err, ERR_USAGE, "--%s is for --search",
				       a->limit ? "limit" : "search-in");
		return true;
	}
	if (a->search && a->search_hex)
		return err_set(err, ERR_USAGE, "--search or --search-hex, not "
			       "both");
	if (a->at || a->report.only || a->blocks || a->sample || a->budget)
		return err_set(err, ERR_USAGE, "a search stands alone: no "
			       "--only, --blocks, --at, --sample or --budget");
	run->pattern = a->search ? search_compile(a->search, err)
				 : search_compile_hex(a->search_hex, err);
	return run->pattern && set_search_in(run, err);
}

static bool set_sections(struct run *run, struct err *err)
{
	const struct args *a = &run->args;
	struct report_options *o = &run->options;

	if (run->pattern) {
		o->sections = 1u << SECTION_SEARCH;
		return true;
	}
	if (a->at) {
		if (!num_parse_addr(a->at, &run->at))
			return err_set(err, ERR_USAGE, "--at: '%.40s' is no "
				       "address", a->at);
		if (a->report.only || a->blocks || a->filter || a->report.sort)
			return err_set(err, ERR_USAGE, "--at stands alone: "
				       "no --only, --blocks, --filter or "
				       "--sort");
		o->sections = 1u << SECTION_AT;
		return true;
	}
	if (a->blocks && (a->report.only || a->report.sort))
		return err_set(err, ERR_USAGE, "--blocks is one list by "
			       "address: no --only, no --sort");
	if (a->report.only)
		return report_parse_sections(o->kind, a->report.only,
					     a->common.json, &o->sections, err);
	o->sections = report_default_sections(o->kind, a->common.json);
	if (a->filter)
		o->sections |= 1u << SECTION_CLASSES;
	return true;
}

/* Said before anything else: a missing rate takes the file for one. */
static bool set_rate(struct run *run, struct err *err)
{
	const char *text = run->args.sample;
	uint64_t *rate = &run->options.sample_rate;

	if (!text || (num_parse_size(text, rate) && *rate &&
		      *rate <= SAMPLER_MAX_RATE))
		return true;
	err_set(err, ERR_USAGE, "--sample: '%.160s' is no rate", text);
	return err_hint(err, "It is a number of bytes from 1 to 1T, as in "
			"--sample=512k.");
}

/* It comes with the other sections; as CSV it is the only one. */
static bool set_sample(struct run *run, struct err *err)
{
	const struct args *a = &run->args;
	struct report_options *o = &run->options;

	o->sample_seed = 1;
	if (a->budget && !cmd_time("budget", a->budget, &run->budget_ns, err))
		return false;
	if (a->budget && (a->sample || a->blocks || a->at || a->report.csv))
		return err_set(err, ERR_USAGE, "--budget chooses a rate for "
			       "a report: no --sample, no --blocks, no --at, "
			       "no --csv");
	if (a->seed && !num_parse_u64(a->seed, &o->sample_seed))
		return err_set(err, ERR_USAGE, "--seed: '%.40s' is no number",
			       a->seed);
	if (a->seed && !a->sample && !a->budget)
		return err_set(err, ERR_USAGE, "--seed is for --sample "
			       "and --budget");
	if (!a->sample)
		return true;
	if (a->blocks || a->at)
		return err_set(err, ERR_USAGE, "--sample makes a table: no "
			       "--blocks, no --at");
	if (a->report.csv && !a->report.only)
		o->sections = 0;
	o->sections |= 1u << SECTION_SAMPLE;
	return true;
}

/* It is one section, and files for other tools. */
static bool set_profile(struct run *run, struct err *err)
{
	const struct args *a = &run->args;
	struct report_options *o = &run->options;
	const char *file = export_wanted(&a->export);

	if (a->profile && (a->blocks || a->at || run->pattern))
		return err_set(err, ERR_USAGE, "--profile is a report of its "
			       "own: no --blocks, no --at, no search");
	if (a->profile && !a->report.only)
		o->sections = 0;
	if (a->profile)
		o->sections |= 1u << SECTION_PROFILE;
	if (!(o->sections >> SECTION_PROFILE & 1) && (a->rate || file))
		return err_set(err, ERR_USAGE, "--%s is for --profile",
			       a->rate ? "rate" : file);
	if (a->rate && (!num_parse_size(a->rate, &run->profile_rate) ||
			!run->profile_rate ||
			run->profile_rate > SAMPLER_MAX_RATE))
		return err_set(err, ERR_USAGE, "--rate: '%.40s' is not a "
			       "number of bytes from 1 to 1T", a->rate);
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
	if (!run->args.blocks && (run->args.report.only || run->pattern ||
				  run->args.profile) &&
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

static bool check_files(const struct args *a, struct err *err)
{
	if (a->pid && a->files.n)
		return err_set(err, ERR_USAGE, "--pid or a core file, not "
			       "both");
	if (a->pid)
		return true;
	if (subject_process_option(&a->how))
		return err_set(err, ERR_USAGE, "--%s is for processes: give "
			       "--pid", subject_process_option(&a->how));
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
static bool set_hints(struct run *run, struct err *err)
{
	if (!run->args.hints)
		return true;
	run->subject.hints = &run->hints;
	return hints_read(&run->hints, run->args.hints, err);
}

static bool prepare(struct run *run, struct err *err)
{
	const struct args *a = &run->args;
	size_t n;
	const struct column *totals = report_total_columns(&n);

	run->options.kind = &report_analyze;
	return set_rate(run, err) && check_files(a, err) &&
	       report_args_shape(&a->report, &a->common, &run->options, err) &&
	       set_search(run, err) &&
	       set_sections(run, err) && set_sample(run, err) &&
	       set_profile(run, err) &&
	       set_filter(run, err) && set_hints(run, err) &&
	       conditions_compile(&run->conditions, &a->report.fail_if, totals,
				  n, err) &&
	       subject_allocator(&a->how, &run->allocator, err) &&
	       (a->blocks || report_args_check(&a->report, &run->options,
					       err));
}

static bool open_target(struct run *run, struct err *err)
{
	const struct args *a = &run->args;

	run->subject.nameless = run->options.redact;
	if (a->pid)
		return subject_open_live(&run->subject, &a->how, a->pid,
				      &run->progress, err);
	return subject_open_core(&run->subject, &a->how, a->files.items[0],
			      &run->progress, err);
}

/* Without a heap there are no blocks to list. */
static bool walk(struct run *run, struct err *err)
{
	return subject_walk(&run->subject, run->allocator, &run->progress,
			    err) &&
	       (run->subject.input.heap_found || !run->args.blocks);
}

/* A question that only references answer, in so many words. */
static bool asks_for_leaks(const struct run *run)
{
	const struct args *a = &run->args;

	if (a->leaks || (a->report.only && run->options.sections &
			 (1u << SECTION_LEAKS | 1u << SECTION_RETAINERS)))
		return true;
	for (size_t i = 0; i < a->report.fail_if.n; i++)
		if (!strncmp(a->report.fail_if.items[i], "leak", 4))
			return true;
	return blocks_want_reach(&run->filter);
}

/* A list of blocks is long anyway. */
static bool asks_for_types(const struct run *run)
{
	return run->args.blocks || run->args.hints ||
	       blocks_want_types(&run->filter) ||
	       (run->args.budget && !run->options.sample_rate) ||
	       (run->args.report.only &&
		run->options.sections >> SECTION_TYPES & 1);
}

/* Types of all blocks, or of a sample: what the budget has room for. */
static void spend_budget(struct run *run)
{
	struct report_options *o = &run->options;

	if (!run->args.budget)
		return;
	o->sample_rate = sample_rate_for(&run->subject.heap, run->budget_ns);
	o->sections &= ~(1u << SECTION_TYPES);
	o->sections |= 1u << (o->sample_rate ? SECTION_SAMPLE : SECTION_TYPES);
}

static void analyse(struct run *run)
{
	struct subject *s = &run->subject;
	bool asked = asks_for_leaks(run);

	subject_where(s, &run->progress);
	spend_budget(run);
	if (asked || (!run->args.blocks &&
		      run->options.sections &
		      (1u << SECTION_LEAKS | 1u << SECTION_STRINGS)))
		subject_reach(s, asked, &run->progress);
	if (run->args.at)
		subject_census_near(s, run->at, &run->progress);
	else if (asks_for_types(run) ||
	    run->options.sections & (1u << SECTION_TYPES |
				     1u << SECTION_LEAKS))
		subject_census(s, asks_for_types(run), &run->progress);
	if (run->options.sample_rate)
		subject_sample(s, run->options.sample_rate,
			       run->options.sample_seed, &run->progress);
	if (run->options.sections >> SECTION_RETAINERS & 1 ||
	    blocks_want_retained(&run->filter))
		subject_retain(s, &run->progress);
	if (run->options.sections >> SECTION_RETAINERS & 1)
		subject_census_top(s, &run->progress);
	if (run->args.report.only &&
	    run->options.sections >> SECTION_THREADS & 1)
		subject_backtraces(s, &run->progress);
	if (run->options.sections & (1u << SECTION_STRINGS |
				     1u << SECTION_STANDOUT))
		subject_strings(s, run->options.sections >> SECTION_STRINGS &
				1, &run->progress);
	if (run->options.sections >> SECTION_DUPLICATES & 1)
		subject_duplicates(s, &run->progress);
	if (run->options.sections >> SECTION_PATTERNS & 1)
		subject_patterns(s, &run->progress);
	if (run->options.sections & (1u << SECTION_PHP |
				     1u << SECTION_STANDOUT))
		subject_php(s, run->args.report.only &&
			    run->options.sections >> SECTION_PHP & 1,
			    &run->progress);
	if (run->pattern)
		subject_search(s, run->pattern, run->search_in,
			       run->search_limit, &run->progress);
	if (run->args.blocks)
		return;
	subject_analyse(s, true);
	if (run->args.at) {
		damage_at_init(&run->damage_at, s->sp, &s->heap, &s->where,
			       run->at);
		s->input.at = &run->damage_at;
	}
}

static void run_fini(struct run *run)
{
	if (run->subject.input.at)
		damage_at_fini(&run->damage_at);
	subject_fini(&run->subject);
	hints_fini(&run->hints);
	search_pattern_free(run->pattern);
	conditions_fini(&run->conditions);
	filter_fini(&run->filter);
	subject_args_fini(&run->args.how);
	report_args_fini(&run->args.report);
	list_fini(&run->args.files);
}

/* A list has no rest to sum up: all of it, if nothing else is wanted. */
static uint64_t max_blocks(const struct run *run)
{
	if (!run->args.report.rows || run->options.rows == TABLE_ALL_ROWS)
		return UINT64_MAX;
	return run->options.rows;
}

static bool write_report(struct run *run, struct err *err)
{
	struct report report;
	bool ok;

	if (run->args.blocks && run->subject.input.reach_refused) {
		*err = run->subject.reach_err;
		return false;
	}
	if (run->args.blocks) {
		progress_phase(&run->progress, "writing blocks");
		progress_fini(&run->progress);
		blocks_write(&run->subject.input, run->options.filter,
			     max_blocks(run), run->options.format, &run->out);
		return true;
	}
	report_init(&report, &run->options);
	ok = report_build(&report, &run->subject.input, err);
	progress_fini(&run->progress);
	ok = ok && report_write(&report, &run->out, err);
	report_fini(&report);
	return ok;
}

static bool condition_holds(const struct run *run)
{
	size_t n;
	AUTO_FREE struct cell *totals = NULL;

	report_total_columns(&n);
	totals = mem_zalloc(n * sizeof(*totals));
	report_totals(&run->subject.input, totals);
	return conditions_hold(&run->conditions, totals);
}

/* Lists and CSV have no room for a sentence about what is missing. */
static bool is_complete(const struct run *run)
{
	const struct args *a = &run->args;
	const char *path = run->subject.sp->path;
	bool complete, redact = run->options.redact;
	struct str why;

	str_init(&why);
	complete = report_complete(&run->subject.input, &why);
	if (!complete && !a->common.quiet &&
	    (a->blocks || run->options.format == REPORT_CSV))
		fprintf(stderr, "heapcore: %s: incomplete (status 3): %s\n",
			path && !redact ? path : "the target", why.text);
	str_fini(&why);
	return complete;
}

static int status_of(const struct run *run)
{
	bool complete = is_complete(run);

	if (condition_holds(run))
		return STATUS_CONDITION;
	return complete ? STATUS_COMPLETE : STATUS_INCOMPLETE;
}

/* The profile, and the files that are made of it. */
static bool profile(struct run *run, struct err *err)
{
	const struct subject *s = &run->subject;
	const struct args *a = &run->args;
	const struct export e = {
		.in = &s->profiled.live_input,
		.said = "heapcore analyze --profile",
	};

	if (!(run->options.sections >> SECTION_PROFILE & 1))
		return true;
	if (!subject_profile(&run->subject, run->profile_rate,
			     &run->progress, err))
		return false;
	if (export_wanted(&a->export) && !s->profiled.live.n_events)
		return err_set(err, ERR_FORMAT, "%s: no profile is in it: "
			       "nothing to export",
			       s->sp->path ? s->sp->path : "the process");
	run->subject.profiled.live_input.redact = run->options.redact;
	return export_profiles(&e, &a->export, a->common.force, err);
}

/* From an open output to a closed one. */
static int make_report(struct run *run, struct err *err)
{
	bool ok = open_target(run, err);

	if (ok)
		ok = walk(run, err);
	if (ok) {
		analyse(run);
		ok = profile(run, err);
	}
	progress_phase(&run->progress, NULL);
	if (run->subject.sp && !run->args.common.quiet)
		cmd_warn(run->subject.sp, run->args.report.redact);
	if (ok && !run->subject.input.heap_found)
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
	struct run run = { .args.pid = NULL };
	struct args *a = &run.args;
	struct err err = { .kind = ERR_NONE };
	int status;

	subject_init(&run.subject);
	if (cmd_begin(self, argc, argv, a, &a->files, &status) &&
	    cmd_start(self, prepare(&run, &err), &a->common, &run.progress,
		      &run.out, &err, &status))
		status = make_report(&run, &err);
	run_fini(&run);
	return status;
}

const struct command command_analyze = {
	.name = "analyze",
	.summary = "report on a core file or a running process",
	.usage =
"Usage: heapcore analyze [OPTION]... CORE\n"
"  or:  heapcore analyze [OPTION]... -p PID\n"
"Say where the memory of a crashed or running program went.  A running one\n"
"stands still while it is read, and then goes on.\n"
"\n"
"  heapcore analyze core.1234\n"
"  heapcore analyze -p 1234\n"
"  heapcore analyze --exe=./appd --sysroot=/srv/rootfs core.1234\n"
"  heapcore analyze --json core.1234 | jq '.where'\n"
"  heapcore analyze --only=classes --rows=all --sort=blocks core.1234\n"
"  heapcore analyze --blocks --filter='size>1M' core.1234\n"
"  heapcore analyze --profile --pprof=heap.pb.gz core.1234\n"
"  heapcore analyze --fail-if='free_resident_share>60%' -p 1234\n",
	.groups = groups,
	.n_groups = countof(groups),
	.run = analyze,
};
