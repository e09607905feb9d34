/* SPDX-License-Identifier: MIT */
/*
 * heapcore tui: what analyze prints, to go through.
 *
 * Nothing is computed before a page wants it, but for what analyze shows
 * first.  What was computed stays.
 */
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "cmd_subject.h"
#include "cmd_trace.h"
#include "base/mem.h"
#include "report/blocks.h"
#include "report/compare.h"
#include "report/filter.h"
#include "report/saved.h"
#include "tui/saved_view.h"
#include "tui/term.h"
#include "tui/trace.h"
#include "tui/tui.h"
#include "tui/undo.h"

struct args {
	struct common common;
	const char *pid;
	struct subject_args how;
	const char *script, *size;
	bool ascii, redact;
	struct list files;
};

#define ARG(field) offsetof(struct args, field)

static const struct option pid_option[] = {
	{ 'p', "pid", "PID", "a running process instead of a core",
	  OPTION_ONE, ARG(pid) },
};

static const struct option screen_options[] = {
	{ 0, "script", "FILE", "keys from a file; screens go to the output",
	  OPTION_VALUE, ARG(script) },
	{ 0, "size", "WxH", "of the screen of a script [80x24]", OPTION_VALUE,
	  ARG(size) },
	{ 0, "ascii", NULL, "no other characters, whatever the locale says",
	  OPTION_FLAG, ARG(ascii) },
	{ 0, "redact", NULL, "no content of the process: no bytes, no\n"
	  "texts, no names that PHP or Python made;\nnot for saved reports",
	  OPTION_FLAG, ARG(redact) },
};

static const struct option output_option[] = {
	{ 'o', "output", "FILE", "where the screens of a script go",
	  OPTION_VALUE, ARG(common) + offsetof(struct common, output) },
};

static const struct option_group groups[] = {
	{ "Input", pid_option, countof(pid_option), 0 },
	{ NULL, subject_process_options, SUBJECT_PROCESS_OPTIONS, ARG(how) },
	{ NULL, subject_file_options, SUBJECT_FILE_OPTIONS, ARG(how) },
	{ "Screen", screen_options, countof(screen_options), 0 },
	{ "Output", output_option, countof(output_option), 0 },
	COMMON_ONE(COMMON_FORCE, ARG(common)),
	COMMON_FROM(COMMON_COLOR, ARG(common)),
};

struct run {
	struct args args;
	bool color, utf8;
	bool cancelled;		/* what was computed for a page */
	unsigned said;		/* knowledge() of what stands out */
	int w, h;
	const struct allocator *allocator;
	struct progress progress;
	struct subject *subject;	/* owned */
	/* Of a process: the last look, and the one before. */
	struct compare_side side[2];
	struct compare compare;
	bool compared;
	struct trace_source *trace;	/* NULL: it is no trace */
	struct saved_source *saved;	/* NULL: it is no saved report */
	struct damage_at at;
	struct out out;
	struct tui tui;
};

/* ---- what pages want ---- */

#define WANTS(section) (sections >> (section) & 1)

/* What takes no time is done without being asked for. */
static bool is_small(const struct run *run)
{
	return run->subject->where.row[WHERE_USED].bytes <=
	       SUBJECT_REACH_FREELY;
}

static bool takes_long(void *context)
{
	return !is_small(context);
}

static bool may_compute(struct run *run)
{
	if (!run->cancelled)
		run->cancelled = !tui_may_compute(&run->tui);
	return !run->cancelled;
}

/* Was what the page needs cancelled?  Then there is no page. */
static bool went_through(struct run *run, struct err *err)
{
	bool cancelled = run->cancelled;

	run->cancelled = false;
	progress_phase(&run->progress, NULL);
	return !cancelled || err_set(err, ERR_USAGE, "cancelled");
}

static void want_reach(struct run *run)
{
	struct report_input *in = &run->subject->input;

	if (in->reach || in->reach_refused || !may_compute(run))
		return;
	in->no_reach = NULL;
	subject_reach(run->subject, true, &run->progress);
}

/* By debug information too: what a census without it said goes away. */
static void want_types(struct run *run)
{
	struct subject *s = run->subject;

	if (s->input.typed || s->input.census_refused || !may_compute(run))
		return;
	if (s->input.census)
		census_fini(&s->census);
	s->input.census = NULL;
	subject_census(s, true, &run->progress);
}

static void want_retain(struct run *run)
{
	want_reach(run);
	if (!run->subject->input.retain && may_compute(run))
		subject_retain(run->subject, &run->progress);
}

static void want(struct run *run, unsigned sections)
{
	struct subject *s = run->subject;

	if (WANTS(SECTION_LEAKS) || WANTS(SECTION_AT))
		want_reach(run);
	if (WANTS(SECTION_TYPES) || WANTS(SECTION_AT))
		want_types(run);
	/* Who refers to it is looked for each time. */
	if (WANTS(SECTION_AT) && !is_small(run))
		may_compute(run);
	if (WANTS(SECTION_RETAINERS))
		want_retain(run);
	if (WANTS(SECTION_RETAINERS) && is_small(run))
		want_types(run);
	if (WANTS(SECTION_THREADS) && !s->input.backtraces &&
	    may_compute(run))
		subject_backtraces(s, &run->progress);
	if (WANTS(SECTION_STRINGS) && !s->input.strings && may_compute(run))
		subject_strings(s, true, &run->progress);
	if (WANTS(SECTION_PHP) && !s->input.php && php_present(&s->heap) &&
	    may_compute(run))
		subject_php(s, true, &run->progress);
}

static void look_at(struct run *run, vaddr at)
{
	struct subject *s = run->subject;

	if (s->input.at)
		damage_at_fini(&run->at);
	damage_at_init(&run->at, s->sp, &s->heap, &s->where, at);
	s->input.at = &run->at;
}

/* Another number when more is known. */
static unsigned knowledge(void *context)
{
	const struct report_input *in =
		&((const struct run *)context)->subject->input;

	return (in->reach ? 1 : 0) + (in->typed ? 2 : 0) +
	       (in->strings ? 4 : 0) + (in->php ? 8 : 0) + 16;
}

/* What stands out; that leaks are still to be looked for is said last. */
static void say(struct run *run)
{
	struct subject *s = run->subject;
	struct standout *out = &s->standout;
	const char *why = s->input.no_reach;
	uint64_t weight = out->n_items < STANDOUT_MAX ? 0 :
			  out->item[STANDOUT_MAX - 1].weight + 1;

	if (run->said == knowledge(run))
		return;
	if (run->said)
		subject_say(s);
	run->said = knowledge(run);
	/* The rest is about options. */
	if (!s->input.reach && why)
		standout_add(out, "leaked", weight, "Leaks were not looked "
			     "for yet: %.*s.  8 does, or Enter here.",
			     (int)strcspn(why, ";"), why);
}

static bool build(void *context, struct report *r, vaddr at, struct err *err)
{
	struct run *run = context;

	if (r->options->kind == &report_diff)
		return compare_build(r, &run->compare, err);
	if (!r->options->glance)
		want(run, r->options->sections);
	if (!went_through(run, err))
		return false;
	if (r->options->sections >> SECTION_AT & 1)
		look_at(run, at);
	if (r->options->sections >> SECTION_STANDOUT & 1)
		say(run);
	return report_build(r, &run->subject->input, err);
}

static void find_goal(void *context, const struct page *p,
		      const struct table *t, const struct cell *row,
		      struct goal *ret)
{
	(void)context;
	(void)p;
	view_goal(t, row, ret);
}

static void picture(void *context, vaddr from, uint64_t size,
		    struct heat_cell *ret, size_t n)
{
	const struct subject *s = ((struct run *)context)->subject;

	heat_cells(s->sp, &s->heap, from, size, ret, n);
}

/*
 * A list of blocks says what they are, and more if it is asked for; that of a
 * large heap what is known already, so that it is there at once.
 */
static const struct report_input *list_blocks(void *context,
					      const char *expr,
					      struct err *ret_err)
{
	struct run *run = context;
	struct filter filter;
	struct err err;
	size_t n;
	const struct column *columns = block_columns(&n);

	if (is_small(run))
		want_types(run);
	else
		may_compute(run);
	if (*expr && filter_compile(&filter, "filter", expr, columns, n,
				    &err)) {
		if (blocks_want_types(&filter))
			want_types(run);
		if (blocks_want_retained(&filter))
			want_retain(run);
		if (blocks_want_reach(&filter))
			want_reach(run);
		filter_fini(&filter);
	}
	return went_through(run, ret_err) ? &run->subject->input : NULL;
}

/* ---- from the command line to a screen ---- */

static bool check_args(struct run *run, struct err *err)
{
	const struct args *a = &run->args;
	char end;

	run->w = 80;
	run->h = 24;
	if (a->size && !a->script)
		return err_set(err, ERR_USAGE, "--size is for --script");
	if (a->size && (sscanf(a->size, "%dx%d%c", &run->w, &run->h, &end) !=
			2 || run->w < 1 || run->h < 1 ||
			run->w > SCREEN_MAX || run->h > SCREEN_MAX))
		return err_set(err, ERR_USAGE, "--size: '%.40s' is no size "
			       "as 80x24", a->size);
	if (a->common.output && !a->script)
		return err_set(err, ERR_USAGE, "--output is for --script");
	if (a->pid && a->files.n)
		return err_set(err, ERR_USAGE, "--pid or a file, not both");
	if (!a->pid && subject_process_option(&a->how))
		return err_set(err, ERR_USAGE, "--%s is for processes: give "
			       "--pid", subject_process_option(&a->how));
	if (!a->pid && a->files.n != 1)
		return err_set(err, ERR_USAGE, a->files.n ?
			       "one file, not %zu" : "no file given",
			       a->files.n);
	return subject_allocator(&a->how, &run->allocator, err) &&
	       cmd_color(&a->common, &run->color, err);
}

static struct subject *new_subject(void)
{
	struct subject *s = mem_zalloc(sizeof(*s));

	subject_init(s);
	return s;
}

/* Opened: from there to what a core's first page shows. */
static bool walk_target(struct run *run, struct err *err)
{
	const struct args *a = &run->args;
	struct subject *s = run->subject;

	if (!subject_walk(s, run->allocator, &run->progress, err))
		return false;
	subject_where(s, &run->progress);
	subject_reach(s, false, &run->progress);
	subject_census(s, false, &run->progress);
	subject_strings(s, false, &run->progress);
	subject_php(s, false, &run->progress);
	subject_analyse(s, false);
	progress_phase(&run->progress, NULL);
	/* There is a screen already if it is another look. */
	if (!a->common.quiet && !run->tui.root[0])
		cmd_warn(s->sp, a->redact);
	if (!s->input.heap_found && !run->tui.root[0])
		cmd_fail(err);
	return true;
}

/* ---- another look at a process ---- */

static void drop_comparison(struct run *run)
{
	if (!run->compared)
		return;
	compare_fini(&run->compare);
	compare_side_fini(&run->side[0]);
	compare_side_fini(&run->side[1]);
	run->compared = false;
}

static bool compare_with(struct run *run, struct subject *before,
			 struct err *err)
{
	struct subject *looks[2] = { before, run->subject };

	drop_comparison(run);
	for (int i = 0; i < 2; i++) {
		compare_side_init(&run->side[i], looks[i]->sp->path);
		if (!compare_side_from_input(&run->side[i], &looks[i]->input,
					     err)) {
			while (i >= 0)
				compare_side_fini(&run->side[i--]);
			return false;
		}
	}
	compare_init(&run->compare, &run->side[0], &run->side[1],
		     run->args.redact);
	run->compared = true;
	return true;
}

/* If it cannot be had, what was seen before stays. */
static bool look_again(void *context, struct err *err)
{
	struct run *run = context;
	const struct args *a = &run->args;
	struct subject *before = run->subject;
	bool ok;

	run->subject = new_subject();
	run->subject->nameless = a->redact;
	ok = subject_open_live(run->subject, &a->how, a->pid, &run->progress,
			       err) && walk_target(run, err) &&
	     compare_with(run, before, err);
	if (!ok) {
		subject_fini(run->subject);
		free(run->subject);
		run->subject = before;
		return false;
	}
	run->said = 0;
	if (before->input.at)
		damage_at_fini(&run->at);
	subject_fini(before);
	free(before);
	return true;
}

/* What is no core may be a trace; if it is not, it is no core. */
static bool open_trace(struct run *run, struct tui_source *ret)
{
	const struct args *a = &run->args;
	struct err err = { .kind = ERR_NONE };
	struct trace *t = cmd_trace_open(a->files.items[0], a->how.tmpdir,
					 &run->progress, &err);

	if (!t)
		return false;
	run->trace = trace_source_new(t, &run->progress, &run->tui);
	trace_source_views(run->trace, ret);
	progress_phase(&run->progress, NULL);
	if (!a->common.quiet)
		cmd_trace_warn(t);
	return true;
}

static bool open_target(struct run *run, struct tui_source *ret,
			struct err *err)
{
	const struct args *a = &run->args;
	struct subject *s = run->subject;
	struct saved *saved;

	s->nameless = a->redact;
	*ret = (struct tui_source){
		.kind = &report_analyze, .views = core_views,
		.n_views = CORE_VIEWS, .context = run, .build = build,
		.blocks = list_blocks, .goal = find_goal,
		.knowledge = knowledge, .takes_long = takes_long,
	};
	if (a->pid)
		ret->look = look_again;
	if (a->pid)
		return subject_open_live(s, &a->how, a->pid, &run->progress,
					 err) && walk_target(run, err);
	if (!saved_open_any(a->files.items[0], &saved, err))
		return subject_no_file(a->files.items[0], err);
	if (saved && a->redact) {
		saved_close(saved);
		return err_set(err, ERR_USAGE, "a saved report shows what it "
			       "was saved with: --redact is for analyze --json "
			       "then");
	}
	if (saved) {
		run->saved = saved_source_new(saved, a->files.items[0]);
		saved_source_views(run->saved, ret);
		return true;
	}
	if (subject_open_core(s, &a->how, a->files.items[0], &run->progress,
			      err))
		return walk_target(run, err);
	return err->kind == ERR_FORMAT && open_trace(run, ret);
}

/* While the screen is there progress is a line of it. */
static void show_progress(void *context, const char *text)
{
	struct run *run = context;

	tui_say(&run->tui, false, "%s", text);
	tui_draw(&run->tui);
	term_show(&run->tui.screen, run->utf8, false);
}

static bool browse(struct run *run, const struct tui_source *source,
		   struct err *err)
{
	int w, h;

	if (!term_open(run->color, err))
		return false;
	term_size(&w, &h);
	term_busy(true);
	tui_init(&run->tui, source, run->utf8, w, h);
	term_busy(false);
	run->progress.call = show_progress;
	run->progress.context = run;
	run->progress.mode = PROGRESS_CALL;
	tui_loop(&run->tui);
	term_close();
	tui_fini(&run->tui);
	return true;
}

static bool play(struct run *run, const struct tui_source *source,
		 struct err *err)
{
	const struct args *a = &run->args;
	bool ok;

	if (!out_open(&run->out, a->common.output, a->common.force, err))
		return false;
	tui_init(&run->tui, source, run->utf8, run->w, run->h);
	ok = tui_script(&run->tui, a->script, &run->out, err);
	tui_fini(&run->tui);
	if (ok)
		return out_close(&run->out, err);
	out_abandon(&run->out);
	return false;
}

static int show(struct run *run, struct err *err)
{
	struct heat_source heat = { .cells = picture, .context = run };
	struct tui_source source;
	bool ok = run->args.script || term_check(err);

	if (ok && !run->args.script)
		undo_begin();
	setlocale(LC_CTYPE, "");
	run->utf8 = !run->args.ascii &&
		    !strcmp(nl_langinfo(CODESET), "UTF-8");
	ok = ok && open_target(run, &source, err);
	if (ok && source.blocks) {
		heat.pages_known = space_pages_known(run->subject->sp);
		source.heat = &heat;
	}
	source.redact = run->args.redact;
	progress_fini(&run->progress);
	if (ok)
		ok = run->args.script ? play(run, &source, err)
				      : browse(run, &source, err);
	return ok ? STATUS_COMPLETE : cmd_fail(err);
}

static int tui(const struct command *self, int argc, char **argv)
{
	struct run run = { .args.pid = NULL };
	struct args *a = &run.args;
	struct err err = { .kind = ERR_NONE };
	int status;

	run.subject = new_subject();
	if (cmd_begin(self, argc, argv, a, &a->files, &status)) {
		if (check_args(&run, &err) &&
		    cmd_progress(&a->common, &run.progress, &err))
			status = show(&run, &err);
		else
			status = cmd_usage(self, &err);
	}
	if (run.subject->input.at)
		damage_at_fini(&run.at);
	trace_source_free(run.trace);
	saved_source_free(run.saved);
	drop_comparison(&run);
	subject_fini(run.subject);
	free(run.subject);
	subject_args_fini(&a->how);
	list_fini(&a->files);
	return status;
}

const struct command command_tui = {
	.name = "tui",
	.summary = "browse a core file, a process, a trace or a report",
	.usage =
"Usage: heapcore tui [OPTION]... CORE|TRACE|REPORT.json\n"
"  or:  heapcore tui [OPTION]... -p PID\n"
"Go through what analyze prints: from the memory to its blocks, from a block\n"
"to who refers to it; or what replay prints, along the time of a trace.\n"
"Press ? for the keys.\n"
"\n"
"  heapcore tui core.1234\n"
"  heapcore tui -p 1234\n"
"  heapcore tui heapcore.appd.1234.trace\n"
"  heapcore tui --script=keys --size=120x40 core.1234\n",
	.groups = groups,
	.n_groups = countof(groups),
	.run = tui,
};
