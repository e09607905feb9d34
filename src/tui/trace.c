/* SPDX-License-Identifier: MIT */
#include "tui/trace_in.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"

#define BIT(section) (1u << (section))
#define CALLS BIT(REPLAY_TREE)
#define HOLDERS (BIT(REPLAY_SITES) | BIT(REPLAY_TREE))

/* What a sampler usually takes; and rates worth a comparison. */
enum { DEFAULT_RATE = 512 << 10, TRIED_SEEDS = 20, FIRST_ROWS = 8 };
static const uint64_t tried[] = {
	1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 512 << 10, 1 << 20,
	4 << 20, 16 << 20,
};

/* With fewer events the tables follow each step along the time line. */
enum { FOLLOW_MAX = 1 << 21 };

enum { TIME_VIEW = 1 };

static const struct view views[TRACE_VIEWS] = {
	{ "Overview", "peak, end, and who holds the peak",
	  BIT(REPLAY_OVERVIEW) | BIT(REPLAY_SITES) | BIT(REPLAY_NOTES) },
	{ "Timeline", "the heap at an instant, or between two",
	  BIT(REPLAY_GROWTH) | HOLDERS },
	{ "Sites", "who holds, allocates, frees at once",
	  BIT(REPLAY_SITES) },
	{ "Tree", "the calls that led there", BIT(REPLAY_TREE) },
	{ "Functions", "each with what it calls", BIT(REPLAY_FUNCTIONS) },
	{ "Sizes", "of requests, and in other allocators",
	  BIT(REPLAY_SIZES) | BIT(REPLAY_MODELS) | BIT(REPLAY_NOTES) },
	{ "Lifetimes", "for how long blocks live, and whose",
	  BIT(REPLAY_LIFETIMES) | BIT(REPLAY_SITES) },
	{ "Rates", "what a sampling profiler would see",
	  BIT(REPLAY_RATES) | BIT(REPLAY_NOTES) },
};
static const vaddr view_at[TRACE_VIEWS] = {
	[TIME_VIEW] = TRACE_AT_INSTANT,
	[6] = METRIC_LIFETIME + 1,
};

/* ---- passes ---- */

static void need_pass(struct trace_source *s, enum trace_pass pass)
{
	struct replay_run *run = &s->pass[pass];

	run->progress = s->progress;
	if (!run->done)
		replay_run(run, s->trace, &s->frames, &s->input[pass]);
}

static void begin_pass(struct trace_source *s, enum trace_pass pass)
{
	struct replay_run *run = &s->pass[pass];

	run->options = (struct replay_options){
		.rate = DEFAULT_RATE, .seed = 1, .unit = UNIT_REQUESTED,
		.lifetimes = pass == PASS_LIVES,
	};
	run->depth = 1;
	replay_run_of(run, s->trace);
	s->input[pass] = (struct replay_input){
		.exact = s->exact, .pause_total = -1,
	};
	if (pass != PASS_BLOCKS)
		return;
	run->wants_rates = run->wants_sizes = run->wants_models = true;
	run->n_seeds = TRIED_SEEDS;
	run->n_rates = countof(tried);
	memcpy(run->rates, tried, sizeof(tried));
}

struct trace_source *trace_source_new(struct trace *t, struct progress *p,
				      struct tui *tui)
{
	struct trace_source *s = mem_alloc(sizeof(*s));

	*s = (struct trace_source){
		.trace = t, .progress = p, .tui = tui, .metric = METRIC_PEAK,
		.exact = !(trace_info(t)->flags & TRACE_SAMPLED),
	};
	s->estimates = !s->exact;
	frames_init(&s->frames, t, &s->options);
	for (enum trace_pass i = 0; i < PASSES; i++)
		begin_pass(s, i);
	need_pass(s, PASS_PEAK);
	s->at = s->exact ? s->pass[PASS_PEAK].replay.mark.tick
			 : s->pass[PASS_PEAK].replay.estimated_peak.tick;
	return s;
}

void trace_source_free(struct trace_source *s)
{
	if (!s)
		return;
	for (enum trace_pass i = 0; i < PASSES; i++)
		replay_run_fini(&s->pass[i]);
	frames_fini(&s->frames);
	trace_close(s->trace);
	free(s);
}

/*
 * What the time line's tables are made of: at the peak nobody has to read the
 * trace again.
 */
static enum trace_pass instant_pass(const struct trace_source *s)
{
	return s->moved || s->marked ? PASS_INSTANT : PASS_PEAK;
}

static bool instant_is_made(const struct trace_source *s)
{
	return instant_pass(s) == PASS_PEAK ||
	       (s->pass[PASS_INSTANT].done && s->made_at == s->at &&
		s->made_mark == (s->marked ? s->mark : s->at));
}

static void make_instant(struct trace_source *s)
{
	struct replay_run *run = &s->pass[PASS_INSTANT];

	if (instant_is_made(s))
		return;
	replay_run_fini(run);
	begin_pass(s, PASS_INSTANT);
	s->made_at = s->at;
	s->made_mark = s->marked ? s->mark : s->at;
	run->options.mark = MARK_TIME;
	run->options.to_tick = max_u64(s->made_at, s->made_mark);
	run->options.from_tick = min_u64(s->made_at, s->made_mark);
	if (s->made_at != s->made_mark)
		run->options.span = SPAN_GROWTH;
	need_pass(s, PASS_INSTANT);
}

/* ---- pages ---- */

static enum trace_pass pass_of(const struct trace_source *s,
			       unsigned sections, vaddr at)
{
	if (at & TRACE_AT_INSTANT)
		return instant_pass(s);
	if ((at & TRACE_AT_METRIC) == METRIC_LIFETIME + 1)
		return PASS_LIVES;
	if (sections & (BIT(REPLAY_SIZES) | BIT(REPLAY_RATES)))
		return PASS_BLOCKS;
	return PASS_PEAK;
}

/* Then Ctrl-C is to end it, and not the browser. */
static bool takes_long(const struct trace_source *s, enum trace_pass pass)
{
	bool made = pass == PASS_INSTANT ? instant_is_made(s)
					 : s->pass[pass].done;

	return !made && s->pass[PASS_PEAK].replay.n_events > FOLLOW_MAX;
}

static bool build(void *context, struct report *r, vaddr at, struct err *err)
{
	struct trace_source *s = context;
	enum trace_pass pass = pass_of(s, r->options->sections, at);
	struct replay_input in;

	/* Beside a page stands nothing that needs another pass. */
	if (r->options->glance && !s->pass[pass].done)
		return true;
	if (takes_long(s, pass) && !tui_may_compute(s->tui))
		return err_set(err, ERR_USAGE, "cancelled");
	if (pass == PASS_INSTANT)
		make_instant(s);
	need_pass(s, pass);
	in = s->input[pass];
	in.only_exact = s->exact && !s->estimates;
	in.metric = at & TRACE_AT_METRIC ? (at & TRACE_AT_METRIC) - 1
		  : at & TRACE_AT_INSTANT ? METRIC_PEAK : s->metric;
	in.only_site = (uint32_t)(at >> TRACE_AT_SITE);
	return replay_build(r, &in, err);
}

/* ---- where rows lead ---- */

/* A moment of the overview: who is it? */
static void moment_goal(const struct table *t, const struct cell *row,
			struct goal *ret)
{
	static const struct {
		const char *what, *name;
		enum replay_metric metric;
	} moments[] = {
		{ "peak", "The peak", METRIC_PEAK },
		{ "end", "The end", METRIC_END },
		{ "allocated", "All", METRIC_ALLOCATED },
		{ "temporary", "Freed at once", METRIC_TEMPORARY },
	};
	const struct cell *what = table_known(t, row, "what");

	for (size_t i = 0; what && i < countof(moments); i++) {
		if (!table_says(t, what, moments[i].what))
			continue;
		ret->kind = GOAL_SECTIONS;
		ret->name = moments[i].name;
		ret->sections = HOLDERS;
		ret->addr = moments[i].metric + 1;
	}
}

/* Sites have no number in their tables; those of all passes are the same. */
static uint32_t find_site(const struct trace_source *s, const struct table *t,
			  const struct cell *name)
{
	const struct sites *sites = &s->pass[PASS_PEAK].sites;

	for (size_t i = 0; i < sites->n; i++)
		if (table_says(t, name, sites->sites[i].name))
			return (uint32_t)i + 1;
	return 0;
}

/* Who called it? */
static void site_goal(const struct trace_source *s, vaddr at,
		      const struct table *t, const struct cell *row,
		      struct goal *ret)
{
	const struct cell *name = table_known(t, row, "site");
	uint32_t site = name ? find_site(s, t, name) : 0;

	if (!site)
		return;
	ret->kind = GOAL_SECTIONS;
	ret->name = "Callers";
	ret->sections = CALLS;
	ret->addr = (vaddr)site << TRACE_AT_SITE |
		    (at & (TRACE_AT_METRIC | TRACE_AT_INSTANT));
}

static void goal(void *context, const struct page *p, const struct table *t,
		 const struct cell *row, struct goal *ret)
{
	const struct trace_source *s = context;

	if (t->depth)
		ret->kind = GOAL_BRANCH;
	else if (!strcmp(t->name, "overview"))
		moment_goal(t, row, ret);
	else if (!strcmp(t->name, "sites") || !strcmp(t->name, "growth"))
		site_goal(s, p->at, t, row, ret);
}

/* ---- keys ---- */

static void next_metric(struct trace_source *s, struct tui *t)
{
	static const char *const names[] = {
		[METRIC_PEAK] = "what is live at the peak",
		[METRIC_END] = "what is live at the end",
		[METRIC_ALLOCATED] = "all that was allocated",
		[METRIC_TEMPORARY] = "what is freed at once",
	};

	s->metric = (s->metric + 1) % METRIC_LIFETIME;
	if (!s->exact && s->metric == METRIC_TEMPORARY)
		s->metric = METRIC_PEAK;
	tui_refresh(t);
	tui_say(t, false, "by %s; o: the next one", names[s->metric]);
}

static void toggle_estimates(struct trace_source *s, struct tui *t)
{
	if (!s->exact) {
		tui_say(t, false, "the trace was sampled: there are only "
			"estimates");
		return;
	}
	s->estimates = !s->estimates;
	tui_refresh(t);
	tui_say(t, false, s->estimates ? "with what sampling every 512K "
		"would say; m: without" : "exact; m: with estimates");
}

static bool on_time_line(const struct tui *t)
{
	return t->view == TIME_VIEW && !t->depth && !t->in_side;
}

/* The tables follow, if that takes no time. */
static void follow(struct trace_source *s, struct tui *t)
{
	char text[NUM_MAX];

	num_format_duration(text, (double)trace_ns(s->trace, s->at) / 1e9);
	if (s->pass[PASS_PEAK].replay.n_events > FOLLOW_MAX &&
	    !instant_is_made(s)) {
		tui_say(t, false, "%s: Enter shows it", text);
		return;
	}
	tui_refresh(t);
}

static void mark(struct trace_source *s, struct tui *t)
{
	char text[NUM_MAX];

	s->marked = !s->marked || s->mark != s->at;
	s->mark = s->at;
	tui_refresh(t);
	num_format_duration(text, (double)trace_ns(s->trace, s->at) / 1e9);
	if (s->marked)
		tui_say(t, false, "marked %s: Left and Right show what has "
			"come and gone since", text);
	else
		tui_say(t, false, "no instant is marked");
}

static bool time_key(struct trace_source *s, struct tui *t,
		     enum action action, int code)
{
	bool left = code == KEY_ARROW_LEFT || code == 'h';
	bool right = code == KEY_ARROW_RIGHT || code == 'l';

	if (left || right) {
		trace_move(s, t, left ? -1 : 1);
		follow(s, t);
	} else if (action == DO_MARK) {
		mark(s, t);
	} else if (action == DO_METRIC) {
		tui_say(t, false, "here it is always what is live then");
	} else if (action == DO_ENTER && !instant_is_made(s)) {
		tui_refresh(t);
	} else {
		return false;
	}
	return true;
}

static bool key(void *context, struct tui *t, enum action action, int code)
{
	struct trace_source *s = context;

	if (on_time_line(t) && time_key(s, t, action, code))
		return true;
	if (action == DO_MARK)
		tui_say(t, false, "an instant is marked on the Timeline: 2");
	else if (action == DO_METRIC)
		next_metric(s, t);
	else if (action == DO_ESTIMATE)
		toggle_estimates(s, t);
	else
		return false;
	return true;
}

static const char *foot(void *context, const struct page *p)
{
	(void)context;
	if (p->at == TRACE_AT_INSTANT)
		return "Left Right time  d difference from here  Enter + - "
		       "tree  Tab next table  ? help";
	if (p->options.sections & HOLDERS)
		return "Enter open  o peak, end, all  m estimates  / search  "
		       "s sort  ? help  q quit";
	return NULL;
}

void trace_source_views(struct trace_source *s, struct tui_source *ret)
{
	*ret = (struct tui_source){
		.kind = &report_replay, .views = views,
		.n_views = TRACE_VIEWS, .view_at = view_at,
		.first_rows = FIRST_ROWS, .context = s, .build = build,
		.goal = goal, .key = key, .foot = foot,
		.picture = trace_picture,
	};
}
