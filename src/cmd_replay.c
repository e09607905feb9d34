/* SPDX-License-Identifier: MIT */
/*
 * heapcore replay: read a trace once, sample it on the way, compare.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "cmd.h"
#include "cmd_export.h"
#include "cmd_report.h"
#include "cmd_subject.h"
#include "report/replay.h"
#include "report/replay_export.h"
#include "report/replay_run.h"

enum { MAX_SEEDS = 1000000 };

struct args {
	struct common common;
	const char *rate, *by, *estimator, *seed, *seeds, *streams;
	const char *metric, *at, *peak, *depth, *window, *growth;
	bool no_exact, only_exact;
	struct subject_args names;
	const char *pauses, *pause_unit, *pause_start, *pause_total;
	struct export_args export;
	const char *massif;
	struct report_args report;
	struct list files;
};

#define ARG(field) offsetof(struct args, field)

static const struct option sampler_options[] = {
	{ 0, "rate", "SIZE,...", "mean bytes between samples [512k], or of\n"
	  "what --by counts [64k words, 1000]; 1 keeps\n"
	  "all; several are compared", OPTION_VALUE, ARG(rate) },
	{ 0, "by", "bytes|words|count", "what the gap is counted in; words\n"
	  "as OCaml's statmemprof does", OPTION_VALUE, ARG(by) },
	{ 0, "estimator", "ht|tcmalloc|statmemprof",
	  "what a sample stands for [ht]", OPTION_VALUE, ARG(estimator) },
	{ 0, "seed", "N", "seed of the generator [1]", OPTION_VALUE,
	  ARG(seed) },
	{ 0, "seeds", "N", "try each rate with so many seeds", OPTION_VALUE,
	  ARG(seeds) },
	{ 0, "streams", "thread|process",
	  "who has a generator of its own [thread]", OPTION_VALUE,
	  ARG(streams) },
};

static const struct option metric_options[] = {
	{ 0, "metric", "peak|end|allocated|temporary|lifetime",
	  "what sites are ranked by [peak]", OPTION_VALUE, ARG(metric) },
	{ 0, "at", "TIME", "the heap at this second instead of the peak",
	  OPTION_VALUE, ARG(at) },
	{ 0, "window", "T1..T2", "what is allocated between these seconds,\n"
	  "as if a profiler ran from T1 to T2", OPTION_VALUE, ARG(window) },
	{ 0, "growth", "T1..T2", "by site: what has come and gone between\n"
	  "these seconds", OPTION_VALUE, ARG(growth) },
	{ 0, "peak", "own|exact", "where estimates have their\n"
	  "peak, at that of the estimated or of the\n"
	  "exact curve [own]", OPTION_VALUE, ARG(peak) },
	{ 0, "depth", "N|all", "frames per call site [1]", OPTION_VALUE,
	  ARG(depth) },
	{ 0, "no-exact", NULL, "estimates only, as a sampler would report",
	  OPTION_FLAG, ARG(no_exact) },
	{ 0, "exact", NULL, "no estimates: what the trace itself says",
	  OPTION_FLAG, ARG(only_exact) },
	{ 0, "fail-if", "COND", "exit 1 if COND holds: peak, end, growth,\n"
	  "temporary_share, ... such as 'peak>1G'", OPTION_LIST,
	  ARG(report.fail_if) },
	{ 0, "only", "SECTION,...", "pauses, overview, timeline, growth,\n"
	  "sites, tree, functions, sizes, lifetimes,\n"
	  "rates, models, filters, notes, all", OPTION_VALUE,
	  ARG(report.only) },
};

static const struct option pause_options[] = {
	{ 0, "pauses", "FILE", "pauses of a collector: JSON lines with start,\n"
	  "duration, full", OPTION_VALUE, ARG(pauses) },
	{ 0, "pause-unit", "s|ms|us|ns", "of their times [s]",
	  OPTION_VALUE, ARG(pause_unit) },
	{ 0, "pause-start", "TIME", "second of the trace at their 0 [0]",
	  OPTION_VALUE, ARG(pause_start) },
	{ 0, "pause-total", "TIME", "what somebody else says that they are\n"
	  "together", OPTION_VALUE, ARG(pause_total) },
};

static const struct option file_options[] = {
	{ 0, "massif", "FILE", "also write what ms_print reads",
	  OPTION_VALUE, ARG(massif) },
};

static const struct option_group groups[] = {
	{ "Sampler", sampler_options, countof(sampler_options), 0 },
	{ "Report", metric_options, countof(metric_options), 0 },
	{ NULL, report_shape_options, REPORT_SHAPE_OPTIONS, ARG(report) },
	{ "Names", subject_file_options + SUBJECT_NAMES_FIRST,
	  SUBJECT_NAME_OPTIONS, ARG(names) },
	{ "Pauses", pause_options, countof(pause_options), 0 },
	{ "Files", export_options, EXPORT_OPTIONS, ARG(export) },
	{ NULL, file_options, countof(file_options), 0 },
	{ "Output", common_options, COMMON_OPTIONS, ARG(common) },
};

/* What one run holds; made in this order, freed in the reverse. */
struct run {
	struct args args;
	struct report_options options;
	struct replay_run pass;
	struct replay_input input;
	double from, to;		/* seconds: span; to: --at */
	struct progress progress;
	struct out out;
	struct trace *trace;
	struct frames frames;
	struct conditions conditions;
	struct target_options target_options;
	struct pauses_options pauses_options;
	struct pauses pauses;
	uint64_t *pause_ticks;		/* owned */
};

/* ---- the command line ---- */

/* The place of a word in a list; an unknown one names them all. */
static bool parse_word(const char *option, const char *word,
		       const char *const *words, unsigned *ret,
		       struct err *err)
{
	struct str list;

	if (!word)
		return true;
	for (unsigned i = 0; words[i]; i++)
		if (!strcmp(word, words[i])) {
			*ret = i;
			return true;
		}
	str_init(&list);
	for (unsigned i = 0; words[i]; i++)
		str_printf(&list, "%s%s", i ? ", " : "", words[i]);
	err_set(err, ERR_USAGE, "--%s: no '%.40s'", option, word);
	err_hint(err, "There are %s.", list.text);
	str_fini(&list);
	return false;
}

static bool parse_number(const char *option, const char *text, uint64_t max,
			 uint64_t *ret, struct err *err)
{
	if (!text || (num_parse_u64(text, ret) && *ret <= max))
		return true;
	return err_set(err, ERR_USAGE, "--%s: '%.40s' is no number up to %"
		       PRIu64, option, text, max);
}

static bool parse_rates(struct run *run, const char *p, struct err *err)
{
	for (;;) {
		size_t len = strcspn(p, ",");
		char word[NUM_MAX] = "";
		uint64_t rate;

		if (len < sizeof(word))
			memcpy(word, p, len);
		if (run->pass.n_rates == RUN_MAX_RATES)
			return err_set(err, ERR_USAGE, "--rate: more than %d",
				       RUN_MAX_RATES);
		if (!num_parse_size(word, &rate) || !rate ||
		    rate > SAMPLER_MAX_RATE)
			return err_set(err, ERR_USAGE, "--rate: '%.40s' is no "
				       "size from 1 to 1T", p);
		run->pass.rates[run->pass.n_rates++] = rate;
		if (!p[len])
			return true;
		p += len + 1;
	}
}

/* "12", "12.5s": how many bytes it is long, 0 if it is no such thing. */
static size_t seconds_at(const char *text, double *ret)
{
	size_t digits = strspn(text, "0123456789");
	size_t n = digits;
	char *end;

	if (text[n] == '.' && text[n + 1] >= '0' && text[n + 1] <= '9')
		n += 1 + strspn(text + n + 1, "0123456789");
	if (!n || n > 24)
		return 0;
	*ret = strtod(text, &end);
	return n + (text[n] == 's');
}

/* A number of seconds, if there is one. */
static bool parse_seconds(const char *option, const char *text, double *ret,
			  struct err *err)
{
	size_t n;

	if (!text)
		return true;
	n = seconds_at(text, ret);
	if (n && !text[n])
		return true;
	return err_set(err, ERR_USAGE, "--%s: '%.40s' is no number of seconds",
		       option, text);
}

static bool parse_time(struct run *run, struct err *err)
{
	if (run->args.at)
		run->pass.options.mark = MARK_TIME;
	return parse_seconds("at", run->args.at, &run->to, err);
}

/* "T1..T2"; where one is missing, the start or the end. */
static bool parse_span(struct run *run, const char *option, const char *text,
		       struct err *err)
{
	size_t n = seconds_at(text, &run->from);
	const char *to = text + n;

	run->to = HUGE_VAL;
	if (!strncmp(to, "..", 2)) {
		to += 2;
		to += seconds_at(to, &run->to);
		if (!*to && run->to > run->from)
			return true;
	}
	err_set(err, ERR_USAGE, "--%s: '%.40s' are no two seconds", option,
		text);
	return err_hint(err, "Such as 2..10, 0.5..0.7, or 10.. up to the "
			"end.");
}

static bool set_span(struct run *run, struct err *err)
{
	const struct args *a = &run->args;
	struct replay_options *o = &run->pass.options;

	if (!!a->at + !!a->window + !!a->growth > 1)
		return err_set(err, ERR_USAGE, "--at, --window and --growth "
			       "exclude each other");
	if (a->window) {
		o->span = SPAN_WINDOW;
		return parse_span(run, "window", a->window, err);
	}
	if (!a->growth)
		return parse_time(run, err);
	o->span = SPAN_GROWTH;
	o->mark = MARK_TIME;
	return parse_span(run, "growth", a->growth, err);
}

static bool parse_depth(struct run *run, struct err *err)
{
	const char *text = run->args.depth;
	uint64_t n = 1;

	if (text && !strcmp(text, "all"))
		n = SITES_ALL_FRAMES;
	else if (text && (!num_parse_u64(text, &n) || !n ||
			  n > TRACE_DEPTH_MAX))
		return err_set(err, ERR_USAGE, "--depth: '%.40s' is neither a "
			       "number from 1 to %d nor all", text,
			       TRACE_DEPTH_MAX);
	run->pass.depth = n;
	return true;
}

static bool set_sampler(struct run *run, struct err *err)
{
	static const char *const units[] = { "bytes", "words", "count", NULL };
	static const enum sampler_unit unit_of[] = {
		UNIT_REQUESTED, UNIT_WORDS, UNIT_COUNT,
	};
	static const char *const estimators[] = {
		[ESTIMATOR_HT] = "ht", [ESTIMATOR_TCMALLOC] = "tcmalloc",
		[ESTIMATOR_STATMEMPROF] = "statmemprof", NULL,
	};
	static const char *const streams[] = { "thread", "process", NULL };
	static const char *const rates[] = { "512k", "64k", "1000" };
	struct replay_options *o = &run->pass.options;
	const struct args *a = &run->args;
	unsigned unit = 0, estimator = 0, stream = 0;

	o->seed = 1;
	if (!parse_word("by", a->by, units, &unit, err) ||
	    !parse_rates(run, a->rate ? a->rate : rates[unit], err) ||
	    !parse_word("estimator", a->estimator, estimators, &estimator,
			err) ||
	    !parse_word("streams", a->streams, streams, &stream, err) ||
	    !parse_number("seed", a->seed, UINT64_MAX, &o->seed, err) ||
	    !parse_number("seeds", a->seeds, MAX_SEEDS,
			  &run->pass.n_seeds, err))
		return false;
	o->rate = run->pass.rates[0];
	o->unit = unit_of[unit];
	o->estimator = estimator;
	o->one_stream = stream;
	run->pass.wants_rates = run->pass.n_rates > 1 || run->pass.n_seeds;
	return true;
}

static bool set_metric(struct run *run, struct err *err)
{
	static const char *const metrics[] = {
		[METRIC_PEAK] = "peak", [METRIC_END] = "end",
		[METRIC_ALLOCATED] = "allocated",
		[METRIC_TEMPORARY] = "temporary",
		[METRIC_LIFETIME] = "lifetime", NULL,
	};
	static const char *const peaks[] = { "own", "exact", NULL };
	const struct args *a = &run->args;
	unsigned metric = METRIC_PEAK, peak = MARK_PEAK;

	if (!parse_word("metric", a->metric, metrics, &metric, err) ||
	    !parse_word("peak", a->peak, peaks, &peak, err))
		return false;
	if ((a->at || a->growth) && (a->peak || metric != METRIC_PEAK))
		return err_set(err, ERR_USAGE, "--%s takes the place of the "
			       "peak: no --peak, no other --metric",
			       a->at ? "at" : "growth");
	if (a->no_exact && metric > METRIC_ALLOCATED)
		return err_set(err, ERR_USAGE, "--no-exact: what a sampler "
			       "does not tell is %s", metrics[metric]);
	if (a->no_exact && a->only_exact)
		return err_set(err, ERR_USAGE, "--exact and --no-exact "
			       "exclude each other");
	run->input.metric = metric;
	run->input.exact = !a->no_exact;
	run->input.redact = a->report.redact;
	run->pass.options.mark = peak;
	run->pass.options.lifetimes = metric == METRIC_LIFETIME;
	return set_span(run, err) && parse_depth(run, err);
}

static bool set_pauses(struct run *run, struct err *err)
{
	static const char *const units[] = { "s", "ms", "us", "ns", NULL };
	static const double seconds[] = { 1, 1e-3, 1e-6, 1e-9 };
	const struct args *a = &run->args;
	unsigned unit = 0;

	run->input.pause_total = -1;
	if (!parse_word("pause-unit", a->pause_unit, units, &unit, err) ||
	    !parse_seconds("pause-start", a->pause_start,
			   &run->pauses_options.at, err) ||
	    !parse_seconds("pause-total", a->pause_total,
			   &run->input.pause_total, err))
		return false;
	run->pauses_options.unit = seconds[unit];
	if (a->pauses || !(a->pause_unit || a->pause_start))
		return true;
	return err_set(err, ERR_USAGE, "--%s is of --pauses",
		       a->pause_unit ? "pause-unit" : "pause-start");
}

/* What follows the whole trace has nothing to say of a window. */
static bool check_whole(struct run *run, struct err *err)
{
	static const unsigned whole[] = { REPLAY_SIZES, REPLAY_MODELS,
					  REPLAY_FILTERS };
	struct report_options *o = &run->options;

	if (!run->args.window)
		return true;
	for (size_t i = 0; i < countof(whole); i++) {
		if (report_wants(o, whole[i]) &&
		    strcmp(run->args.report.only, "all"))
			return err_set(err, ERR_USAGE, "--only=%s is of the "
				       "whole trace: no --window",
				       o->kind->sections[whole[i]].word);
		o->sections &= ~(1u << whole[i]);
	}
	return true;
}

static bool set_sections(struct run *run, struct err *err)
{
	struct report_options *o = &run->options;

	o->kind = &report_replay;
	if (!run->args.report.only) {
		o->sections = report_default_sections(o->kind,
						      run->args.common.json);
		return true;
	}
	if (!report_parse_sections(o->kind, run->args.report.only,
				   run->args.common.json, &o->sections, err))
		return false;
	if (report_is_only(o, REPLAY_GROWTH) && !run->args.growth)
		return err_set(err, ERR_USAGE, "--only=growth needs "
			       "--growth=T1..T2");
	run->pass.wants_rates |= report_is_only(o, REPLAY_RATES);
	return check_whole(run, err);
}

/* All that can be wrong with the command line is said before any work. */
static bool prepare(struct run *run, struct err *err)
{
	const struct args *a = &run->args;
	size_t n;
	const struct column *totals = replay_total_columns(&n);

	if (!a->files.n)
		return err_set(err, ERR_USAGE, "no trace given");
	if (a->files.n > 1)
		return err_set(err, ERR_USAGE, "one trace, not %zu",
			       a->files.n);
	return report_args_shape(&a->report, &a->common, &run->options, err) &&
	       set_sampler(run, err) && set_metric(run, err) &&
	       set_pauses(run, err) && set_sections(run, err) &&
	       conditions_compile(&run->conditions, &a->report.fail_if,
				  totals, n, err) &&
	       report_args_check(&a->report, &run->options, err);
}

/* ---- the work ---- */

/* The file's, or else those that the trace has. */
static bool read_pauses(struct run *run, struct err *err)
{
	struct replay_options *o = &run->pass.options;
	struct pauses *p = &run->pauses;

	if (!run->args.pauses)
		pauses_of_trace(p, run->trace);
	else if (!pauses_read(p, run->args.pauses, &run->pauses_options, err))
		return false;
	if (!p->n && !run->args.pauses)
		return true;
	run->input.pauses = p;
	run->pause_ticks = mem_alloc((p->n + 1) * sizeof(*run->pause_ticks));
	for (size_t i = 0; i < p->n; i++)
		run->pause_ticks[i] = replay_tick(o, p->list[i].start);
	o->instants = run->pause_ticks;
	o->n_instants = p->n;
	return true;
}

/* The one section that was asked for is not to be empty. */
static bool check_known(const struct run *run, struct err *err)
{
	static const unsigned exact[] = { REPLAY_SIZES, REPLAY_LIFETIMES,
					  REPLAY_MODELS, REPLAY_FILTERS };
	const struct report_options *o = &run->options;
	const struct report_section *words = o->kind->sections;

	if (report_is_only(o, REPLAY_PAUSES) && !run->input.pauses) {
		err_set(err, ERR_USAGE, "the trace has no pauses");
		return err_hint(err, "--pauses=FILE reads a collector's log.");
	}
	for (size_t i = 0; i < countof(exact) && !run->input.exact; i++)
		if (report_is_only(o, exact[i]))
			return err_set(err, ERR_USAGE,
				       "--only=%s is exact, and %s",
				       words[exact[i]].word,
				       run->args.no_exact ? "--no-exact is not"
				       : "the trace itself is a sample");
	return true;
}

/* What was sampled once has its rate, and nothing that is exact. */
static bool check_sampled(struct run *run, struct err *err)
{
	const struct args *a = &run->args;
	uint64_t rate = run->pass.options.rate;
	bool rates = report_is_only(&run->options, REPLAY_RATES);
	const char *option = a->only_exact ? "exact" : a->by ? "by" :
		a->seed ? "seed" : a->seeds ? "seeds" :
		a->streams ? "streams" : rates ? "only=rates" : NULL;

	if (!(trace_info(run->trace)->flags & TRACE_SAMPLED))
		return true;
	run->input.exact = false;
	if (!option && a->rate &&
	    (run->pass.n_rates > 1 || run->pass.rates[0] != rate))
		option = "rate";
	run->pass.rates[0] = rate;
	if (!option)
		return true;
	err_set(err, ERR_USAGE, "--%s: the trace is a sample itself, of one "
		"block every %" PRIu64 " bytes", option, rate);
	return err_hint(err, "Without --rate in heapcore record, a trace has "
			"everything.");
}

static bool open_trace(struct run *run, struct err *err)
{
	const char *path = run->args.files.items[0];
	struct replay_options *o = &run->pass.options;

	progress_phase(&run->progress, "opening trace");
	if (!strcmp(path, "-"))
		run->trace = trace_open_fd(dup(STDIN_FILENO),
					   "standard input", err);
	else
		run->trace = trace_open(path, err);
	if (!run->trace)
		return false;
	replay_run_of(&run->pass, run->trace);
	/* From the start: with the first event. */
	o->from_tick = replay_tick(o, run->from);
	o->from_tick -= !(run->from > 0) && o->from_tick;
	o->to_tick = replay_tick(o, run->to);
	run->input.only_exact = run->args.only_exact;
	return check_sampled(run, err) && read_pauses(run, err) &&
	       check_known(run, err);
}

static void analyse(struct run *run)
{
	struct replay_run *pass = &run->pass;

	run->target_options = (struct target_options){
		.sysroots = run->args.names.sysroots.items,
		.n_sysroots = run->args.names.sysroots.n,
		.debug_dirs = run->args.names.debug_dirs.items,
		.n_debug_dirs = run->args.names.debug_dirs.n,
	};
	frames_init(&run->frames, run->trace, &run->target_options);
	pass->progress = &run->progress;
	pass->wants_models = report_wants(&run->options, REPLAY_MODELS);
	pass->wants_filters = report_wants(&run->options, REPLAY_FILTERS);
	pass->wants_sizes = report_wants(&run->options, REPLAY_SIZES);
	replay_run(pass, run->trace, &run->frames, &run->input);
}

/* A report about seconds that were not would pass for one of a quiet time. */
static bool check_span(const struct run *run, struct err *err)
{
	const struct replay_options *o = &run->pass.options;
	double end = replay_seconds(&run->input, run->input.end_tick);

	if (o->span == SPAN_ALL || o->from_tick <= run->input.end_tick)
		return true;
	err_set(err, ERR_USAGE, "--%s begins behind the end of the trace",
		o->span == SPAN_WINDOW ? "window" : "growth");
	return err_hint(err, "That is at %.3g s.", end);
}

/* Damage is said where warnings go, with what it means for the figures. */
static void warn(const struct run *run)
{
	const struct trace_damage *d = trace_damage(run->trace);

	if (run->args.common.quiet)
		return;
	if (replay_stopped_early(run->trace))
		fprintf(stderr, "heapcore: %s: recording ended before the "
			"program: see heapcore trace info\n",
			trace_info(run->trace)->path);
	if (!d->first[0])
		return;
	fprintf(stderr, "heapcore: %s: %s\n  Replayed %" PRIu64 " events.\n",
		trace_info(run->trace)->path, d->first,
		run->pass.replay.n_events);
}

/* ---- files for other tools ---- */

static bool export_massif(const struct export *e, struct out *o,
			  struct err *err)
{
	(void)err;
	massif_write(e->in, e->exact, e->said, o);
	return true;
}

static bool write_exports(const struct run *run, struct err *err)
{
	const struct args *a = &run->args;
	AUTO_FREE char *sampler = mem_printf("--rate=%" PRIu64 "%s%s --seed=%"
		PRIu64, run->pass.rates[0], a->by ? " --by=" : "",
		a->by ? a->by : "", run->pass.options.seed);
	AUTO_FREE char *said = mem_printf("heapcore replay %s",
		a->only_exact ? "--exact" : sampler);
	const struct export e = {
		.in = &run->input, .said = said,
		.exact = a->only_exact || (run->input.exact &&
			 run->pass.rates[0] == SAMPLER_ALL),
	};

	return export_profiles(&e, &a->export, a->common.force, err) &&
	       export_file(&e, a->massif, a->common.force, export_massif,
			   err);
}

static bool write_report(struct run *run, struct err *err)
{
	struct report report;
	bool ok;

	report_init(&report, &run->options);
	ok = replay_build(&report, &run->input, err);
	progress_fini(&run->progress);
	ok = ok && report_write(&report, &run->out, err);
	report_fini(&report);
	return ok;
}

/* From an open output to a closed one. */
static int make_report(struct run *run, struct err *err)
{
	struct cell totals[REPLAY_TOTAL_COLUMNS];
	bool ok = open_trace(run, err);

	if (ok) {
		analyse(run);
		warn(run);
		ok = check_span(run, err) && write_exports(run, err) &&
		     write_report(run, err);
	}
	progress_fini(&run->progress);
	if (!ok) {
		out_abandon(&run->out);
		return cmd_fail(err);
	}
	if (!out_close(&run->out, err))
		return cmd_fail(err);
	replay_totals(&run->input, totals);
	if (conditions_hold(&run->conditions, totals))
		return STATUS_CONDITION;
	return replay_complete(run->trace) ? STATUS_COMPLETE
					   : STATUS_INCOMPLETE;
}

static void run_fini(struct run *run)
{
	replay_run_fini(&run->pass);
	if (run->input.frames)
		frames_fini(&run->frames);
	if (run->trace)
		trace_close(run->trace);
	pauses_fini(&run->pauses);
	free(run->pause_ticks);
	conditions_fini(&run->conditions);
	report_args_fini(&run->args.report);
	list_fini(&run->args.files);
	subject_args_fini(&run->args.names);
}

static int replay(const struct command *self, int argc, char **argv)
{
	struct run *run = mem_zalloc(sizeof(*run));
	struct args *a = &run->args;
	struct err err = { .kind = ERR_NONE };
	int status;

	if (cmd_begin(self, argc, argv, a, &a->files, &status) &&
	    cmd_start(self, prepare(run, &err), &a->common, &run->progress,
		      &run->out, &err, &status))
		status = make_report(run, &err);
	run_fini(run);
	free(run);
	return status;
}

const struct command command_replay = {
	.name = "replay",
	.summary = "sample a recorded trace and report",
	.usage =
"Usage: heapcore replay [OPTION]... TRACE\n"
"Apply a sampling profiler to a recorded trace and compare it with the truth.\n"
"\n"
"  heapcore replay trace.bin --rate=512k\n"
"  heapcore replay --metric=allocated --rows=20 trace.bin\n"
"  heapcore replay --rate=64k,512k,2M --seeds=100 trace.bin\n"
"  heapcore replay --pprof=p.pb.gz trace.bin && go tool pprof -top p.pb.gz\n",
	.groups = groups,
	.n_groups = countof(groups),
	.run = replay,
};
