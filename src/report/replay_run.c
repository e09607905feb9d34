/* SPDX-License-Identifier: MIT */
#include "report/replay_run.h"

#include <math.h>
#include <pthread.h>

#include "base/mem.h"

/* As the recorder says, else as the first sample has it; rewinds. */
static uint64_t recorded_rate(struct trace *t)
{
	const char *said = trace_meta_value(t, "rate");
	const struct trace_event *events;
	uint64_t ret = 0;
	size_t n;

	if (said && num_parse_u64(said, &ret) && ret)
		return min_u64(ret, SAMPLER_MAX_RATE);
	while (!ret && (n = trace_read(t, &events)))
		for (size_t i = 0; i < n && !ret; i++)
			if (events[i].kind == TRACE_SAMPLE)
				ret = events[i].rate;
	trace_rewind(t);
	return min_u64(max_u64(ret, 1), SAMPLER_MAX_RATE);
}

void replay_run_of(struct replay_run *run, struct trace *t)
{
	const struct trace_info *info = trace_info(t);
	struct replay_options *o = &run->options;

	o->first_tick = info->first_tick;
	o->n_stacks = info->n_stacks;
	o->objects = info->flags & TRACE_OBJECTS;
	o->ns_per_tick = info->ticks_per_s > 0 ? 1e9 / info->ticks_per_s : 1;
	if (info->flags & TRACE_SAMPLED) {
		o->rate = recorded_rate(t);
		o->unit = UNIT_REQUESTED;
	}
}

uint64_t replay_tick(const struct replay_options *o, double seconds)
{
	double ticks = seconds * 1e9 / o->ns_per_tick;
	uint64_t ret;

	if (!add_ok(o->first_tick, (uint64_t)fmin(ticks, 0x1p63), &ret))
		return UINT64_MAX;
	return ret;
}

static void say(const struct replay_run *run, const char *phase)
{
	if (run->progress)
		progress_phase(run->progress, phase);
}

/* Of what a sampled recording has, none of these can be told. */
static void start_consumers(struct replay_run *run, struct replay_input *in)
{
	const struct replay_options *o = &run->options;
	const struct filters_options filters = {
		.rate = o->rate, .seed = o->seed, .unit = o->unit,
		.one_stream = o->one_stream,
	};

	run->has_models = in->exact && run->wants_models;
	run->has_filters = in->exact && run->wants_filters;
	if (run->has_models)
		models_init(&run->models);
	if (run->has_filters)
		filters_init(&run->filters, &filters);
	run->sizes = (struct sizes){ .n = 0 };
	in->models = run->has_models ? &run->models : NULL;
	in->filters = run->has_filters ? &run->filters : NULL;
	in->sizes = in->exact && run->wants_sizes ? &run->sizes : NULL;
}

static void read_events(struct replay_run *run, struct trace *t,
			struct replay_input *in)
{
	const struct trace_event *events;
	uint64_t size = trace_info(t)->file_size;
	size_t n;

	in->end_tick = run->options.first_tick;
	while ((n = trace_read(t, &events))) {
		in->end_tick = max_u64(in->end_tick, events[n - 1].tick);
		replay_events(&run->replay, events, n);
		if (in->models)
			models_events(&run->models, events, n);
		if (in->filters)
			filters_events(&run->filters, events, n);
		if (in->sizes)
			sizes_events(&run->sizes, events, n);
		progress_step(run->progress, trace_position(t), size,
			      run->replay.n_events, "events");
	}
	replay_finish(&run->replay);
}

/* ---- names ---- */

struct namer {
	struct frames *frames;
	size_t depth;
	pthread_t thread;
};

static void *name_stacks(void *arg)
{
	const struct namer *n = arg;

	sites_name(n->frames, n->depth);
	return NULL;
}

/*
 * Opening debug information takes longer than replaying a million events, and
 * the stacks are known before the first: a second processor names them.
 */
static void replay_and_name(struct replay_run *run, struct trace *t,
			    struct frames *f, struct replay_input *in)
{
	struct namer n = { .frames = f, .depth = run->depth };
	bool named = !pthread_create(&n.thread, NULL, name_stacks, &n);

	read_events(run, t, in);
	say(run, "naming call sites");
	if (named)
		pthread_join(n.thread, NULL);
}

/* ---- rates ---- */

static void try_all(struct replay_run *run, struct rates *rates)
{
	for (size_t i = 0; i < run->n_rates; i++) {
		rates_try(rates, run->rates[i], &run->results[i]);
		progress_step(run->progress, i + 1, run->n_rates, i + 1,
			      "rates");
	}
}

static void try_rates(struct replay_run *run, const struct replay_block *b,
		      size_t n, struct replay_input *in)
{
	const struct rates_options o = {
		.first_seed = run->options.seed,
		.n_seeds = run->n_seeds,
		.estimator = run->options.estimator,
		.unit = run->options.unit,
	};
	struct rates rates;
	AUTO_FREE struct rates_block *grouped =
		mem_alloc((n + 1) * sizeof(*grouped));

	for (size_t i = 0; i < n; i++)
		grouped[i] = (struct rates_block){
			.size = b[i].size,
			.group = run->sites.of_stack[b[i].stack],
		};
	rates_init(&rates, &o, grouped, n, run->sites.n);
	try_all(run, &rates);
	in->n_top = rates.n_top;
	in->needed_rate = rates_needed(&rates, 0.05, in->n_top);
	in->n_large = rates_n_large(&rates, 0.05);
	in->needed_large = rates_needed(&rates, 0.05, in->n_large);
	rates_fini(&rates);
	in->rates = run->results;
	in->n_rates = run->n_rates;
	in->n_seeds = run->n_seeds;
}

/* The blocks that were live at the mark, one by one. */
static void use_blocks(struct replay_run *run, struct replay_input *in)
{
	size_t n;
	AUTO_FREE struct replay_block *blocks =
		replay_marked_blocks(&run->replay, &n);

	if (in->sizes)
		sizes_marked(&run->sizes, blocks, n);
	if (run->wants_rates)
		try_rates(run, blocks, n, in);
}

void replay_run(struct replay_run *run, struct trace *t, struct frames *f,
		struct replay_input *in)
{
	say(run, "replaying events");
	trace_rewind(t);
	run->options.blocks = run->wants_rates || run->wants_sizes;
	replay_init(&run->replay, &run->options);
	start_consumers(run, in);
	replay_and_name(run, t, f, in);
	sites_init(&run->sites, &run->replay, f, run->depth);
	run->done = true;
	in->trace = t;
	in->replay = &run->replay;
	in->frames = f;
	in->sites = &run->sites;
	if (run->options.blocks) {
		say(run, "trying rates");
		use_blocks(run, in);
	}
	say(run, NULL);
}

void replay_run_fini(struct replay_run *run)
{
	if (!run->done)
		return;
	sites_fini(&run->sites);
	replay_fini(&run->replay);
	if (run->has_models)
		models_fini(&run->models);
	if (run->has_filters)
		filters_fini(&run->filters);
	run->done = run->has_models = run->has_filters = false;
}
