/* SPDX-License-Identifier: MIT */
#include "replay/replay_in.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

double replay_age_start(unsigned step)
{
	double ret = 1e-6;

	for (unsigned i = 1; i < step; i++)
		ret *= 10;
	return step ? ret : 0;
}

static void set_age_limits(struct replay *r)
{
	double ns = r->options.ns_per_tick > 0 ? r->options.ns_per_tick : 1;

	for (unsigned i = 0; i + 1 < LIFE_STEPS; i++)
		r->age_limit[i] = (uint64_t)fmin(
			ceil(replay_age_start(i + 1) * 1e9 / ns), 0x1p63);
	/* The last has no end; and none ends at 0, of which there is one. */
	r->age_limit[LIFE_STEPS - 1] = UINT64_MAX;
	for (unsigned bit = 0; bit < 64; bit++) {
		unsigned step = 0;

		while (step + 1 < LIFE_STEPS &&
		       UINT64_C(1) << bit >= r->age_limit[step])
			step++;
		r->age_first[bit] = (uint8_t)step;
	}
}

void replay_init(struct replay *r, const struct replay_options *options)
{
	*r = (struct replay){
		.options = *options,
		.last_tick = options->first_tick,
	};
	r->numbered = options->blocks || options->span == SPAN_WINDOW;
	stock_init(&r->live, options->objects, r->numbered);
	if (options->lifetimes)
		lifetimes_init(&r->lifetimes);
	if (options->n_instants)
		r->instants = mem_alloc(options->n_instants *
					sizeof(*r->instants));
	if (options->span == SPAN_ALL)
		r->stage = STAGE_INSIDE;
	profile_init(&r->profile, options->estimator);
	timeline_init(&r->timeline, options->first_tick);
	maps_init(&r->maps);
	set_age_limits(r);
}

void replay_fini(struct replay *r)
{
	stock_fini(&r->live);
	maps_fini(&r->maps);
	profile_fini(&r->profile);
	free(r->sites);
	free(r->lives);
	if (r->options.lifetimes)
		lifetimes_fini(&r->lifetimes);
	free(r->changes);
	free(r->owned);
	free(r->instants);
	free(r->threads);
	free(r->gone);
	*r = (struct replay){ .n_events = 0 };
}

/* ---- instants ---- */

/* Who allocated what is live as the window ends. */
static void find_owners(struct replay *r)
{
	struct stock_walk w = { .place = 0 };

	r->owned = mem_zalloc((r->n_threads + 1) * sizeof(*r->owned));
	while (stock_next(&r->live, &w)) {
		struct replay_owned *o = &r->owned[w.number &
			((1 << THREAD_BITS) - 1)];

		o->blocks++;
		o->bytes += w.block.size;
		o->samples += w.block.sample != 0;
	}
}

/* All that lives on has lived at least so long. */
static void add_survivors(struct replay *r)
{
	struct stock_walk w = { .place = 0 };

	while (stock_next(&r->live, &w))
		lifetimes_add(&r->lifetimes, w.block.stack,
			      r->last_tick > w.block.tick
			      ? r->last_tick - w.block.tick : 0)->alive++;
}

/* Of a window nothing changes any more. */
static void close_all(struct replay *r)
{
	timeline_at(&r->timeline, r->last_tick);
	r->live_blocks = r->live.n;
	if (r->options.lifetimes)
		add_survivors(r);
	if (r->options.span == SPAN_WINDOW) {
		find_owners(r);
		/* Those were allocated before it. */
		r->unknown_frees = 0;
	}
}

static void begin_span(struct replay *r)
{
	r->stage = STAGE_INSIDE;
	profile_compare(&r->profile, r->options.span == SPAN_GROWTH);
}

/* Behind the last event that counts: what is live now was live then. */
static void end_span(struct replay *r, uint64_t tick)
{
	r->stage = STAGE_AFTER;
	profile_compare(&r->profile, false);
	if (r->options.mark == MARK_TIME)
		replay_set_mark(r, tick);
	if (r->options.span == SPAN_WINDOW) {
		r->last_tick = tick;
		close_all(r);
	}
}

/* An event behind the window: blocks of it end. */
static void do_later(struct replay *r, const struct trace_event *e)
{
	struct live_block b;

	if (!trace_is_free(e->kind) && !trace_is_alloc(e->kind))
		return;
	if (!stock_take(&r->live, e->addr, &b))
		return;
	r->later.blocks++;
	r->later.bytes += b.size;
	r->later.samples += b.sample != 0;
	if (r->options.blocks && replay_was_marked(r, r->live.number))
		replay_keep_gone(r, &b);
}

/* How many events are not behind the instant. */
static size_t until(const struct trace_event *events, size_t n, uint64_t tick)
{
	size_t i = 0;

	while (i < n && events[i].tick <= tick)
		i++;
	return i;
}

static void pass_instant(struct replay *r)
{
	r->instants[r->n_instants++] = (struct replay_instant){
		.allocated = r->allocated_bytes, .live = r->live_bytes,
	};
}

/* Events with instants among them. */
static void do_until_instants(struct replay *r,
			      const struct trace_event *events, size_t n)
{
	const struct replay_options *o = &r->options;

	while (r->n_instants < o->n_instants) {
		size_t k = until(events, n, o->instants[r->n_instants]);

		replay_some(r, events, k);
		if (k == n)
			return;
		pass_instant(r);
		events += k;
		n -= k;
	}
	replay_some(r, events, n);
}

/* Events of one stage. */
static void do_stage(struct replay *r, const struct trace_event *events,
		     size_t n)
{
	if (r->options.span != SPAN_WINDOW || r->stage == STAGE_INSIDE) {
		do_until_instants(r, events, n);
		return;
	}
	for (size_t i = 0; r->stage == STAGE_AFTER && i < n; i++)
		do_later(r, &events[i]);
	r->n_events += n;
}

void replay_events(struct replay *r, const struct trace_event *events,
		   size_t n)
{
	bool instants = r->options.span != SPAN_ALL ||
			r->options.mark == MARK_TIME;

	while (instants && r->stage != STAGE_AFTER) {
		bool before = r->stage == STAGE_BEFORE;
		size_t k = until(events, n, before ? r->options.from_tick
						   : r->options.to_tick);

		do_stage(r, events, k);
		if (k == n)
			return;
		if (before)
			begin_span(r);
		else
			end_span(r, r->options.to_tick);
		events += k;
		n -= k;
	}
	do_stage(r, events, n);
}

void replay_finish(struct replay *r)
{
	bool ends = r->options.span != SPAN_ALL ||
		    r->options.mark == MARK_TIME;

	if (ends && r->stage != STAGE_AFTER)
		end_span(r, r->last_tick);
	if (r->options.span != SPAN_WINDOW)
		close_all(r);
	while (r->n_instants < r->options.n_instants)
		pass_instant(r);
	r->n_events++;
	for (size_t i = 0; i < r->n_sites; i++)
		replay_keep_marked(&r->sites[i], r->mark.number,
				   r->n_events);
	r->n_events--;
	for (size_t i = 0; i < r->n_sites; i++)
		r->allocations += r->sites[i].allocations;
	profile_finish(&r->profile);
}

struct replay_block *replay_marked_blocks(const struct replay *r,
					  size_t *ret_n)
{
	struct replay_block *ret =
		mem_alloc((r->n_gone + r->live.n + 1) * sizeof(*ret));
	struct stock_walk w = { .place = 0 };
	size_t n = r->n_gone;

	if (n)
		memcpy(ret, r->gone, n * sizeof(*ret));
	while (stock_next(&r->live, &w))
		if (replay_was_marked(r, w.number))
			ret[n++] = (struct replay_block){
				.size = w.block.size, .stack = w.block.stack,
			};
	*ret_n = n;
	return ret;
}
