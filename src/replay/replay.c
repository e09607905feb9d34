/* SPDX-License-Identifier: MIT */
#include "replay/replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* How far ahead lines are fetched: buckets, then blocks they lead to. */
enum { FIRST_AHEAD = 24, THEN_AHEAD = 12, SMALL_HEAP = 1 << 15 };

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
	live_init(&r->live, options->blocks || options->span == SPAN_WINDOW);
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
	live_fini(&r->live);
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

static void *grow_zeroed(void *items, size_t old, size_t n, size_t size)
{
	char *ret = mem_realloc(items, n * size);

	memset(ret + old * size, 0, (n - old) * size);
	return ret;
}

static void more_sites(struct replay *r, uint32_t stack)
{
	size_t n = (size_t)stack + stack / 2 + 256;

	r->sites = grow_zeroed(r->sites, r->n_sites, n, sizeof(*r->sites));
	if (r->options.lifetimes)
		r->lives = grow_zeroed(r->lives, r->n_sites, n,
				       sizeof(*r->lives));
	if (r->options.span == SPAN_GROWTH)
		r->changes = grow_zeroed(r->changes, r->n_sites, n,
					 sizeof(*r->changes));
	r->n_sites = n;
}

/* Stacks that the trace does not have are unknown. */
static inline uint32_t stack_of(const struct replay *r,
				const struct trace_event *e)
{
	return e->stack <= r->options.n_stacks ? e->stack : 0;
}

static inline struct replay_site *site_of(struct replay *r, uint32_t stack)
{
	if (__builtin_expect(stack >= r->n_sites, 0))
		more_sites(r, stack);
	return &r->sites[stack];
}

static void new_thread(struct replay *r, uint32_t number)
{
	if (number >= r->n_threads) {
		size_t n = (size_t)number + number / 2 + 16;

		r->threads = grow_zeroed(r->threads, r->n_threads, n,
					 sizeof(*r->threads));
		r->n_threads = n;
	}
	r->threads[number].ready = true;
	sampler_init(&r->threads[number].sampler, r->options.rate,
		     r->options.seed, number);
}

static inline struct replay_thread *thread_of(struct replay *r,
					      uint32_t number)
{
	if (number >= REPLAY_MAX_THREADS)
		number = REPLAY_MAX_THREADS - 1;
	if (__builtin_expect(number >= r->n_threads ||
			     !r->threads[number].ready, 0))
		new_thread(r, number);
	return &r->threads[number];
}

/* Before a site changes: are its live figures those of the mark? */
static inline void keep_marked(const struct replay *r, struct replay_site *s)
{
	if (s->changed <= r->mark.number) {
		s->marked_bytes = s->live_bytes;
		s->marked_blocks = s->live_blocks;
	}
	s->changed = r->n_events;
}

static void set_mark(struct replay *r, uint64_t tick, uint64_t number)
{
	r->mark = (struct replay_moment){
		.tick = tick,
		.number = number,
		.bytes = r->live_bytes,
		.blocks = r->live.n,
	};
	r->n_gone = 0;
	if (r->options.mark != MARK_PEAK)
		profile_mark(&r->profile);
}

static inline void look_for_peak(struct replay *r, uint64_t tick)
{
	if (r->live_bytes <= r->peak.bytes)
		return;
	r->peak = (struct replay_moment){
		.tick = tick,
		.number = r->n_events,
		.bytes = r->live_bytes,
		.blocks = r->live.n,
	};
	if (r->options.mark != MARK_TIME)
		set_mark(r, tick, r->n_events);
}

/* The estimated curve has changed. */
static void follow_estimate(struct replay *r, uint64_t tick)
{
	uint64_t now = (uint64_t)(profile_live(&r->profile) >> 16);

	timeline_set(&r->timeline, 1, now);
	if (now <= r->estimated_peak.bytes)
		return;
	r->estimated_peak = (struct replay_moment){
		.tick = tick, .number = r->n_events, .bytes = now,
	};
	if (r->options.mark == MARK_PEAK)
		profile_mark(&r->profile);
}

/* Powers of two are closer than steps: at most one step ends among them. */
static inline unsigned age_step(const struct replay *r, uint64_t ticks)
{
	unsigned step = r->age_first[63 - __builtin_clzll(ticks | 1)];

	return step + (ticks >= r->age_limit[step]);
}

static void add_life(struct replay *r, const struct live_block *b,
		     uint64_t ticks)
{
	struct replay_life *life = &r->lives[b->stack];

	life->blocks++;
	life->ticks += (double)ticks;
	life->byte_ticks += (double)ticks * (double)b->size;
	life->longest = max_u64(life->longest, ticks);
	lifetimes_add(&r->lifetimes, b->stack, ticks)->freed++;
}

/* Numbers of events share their words with those of threads. */
enum { THREAD_BITS = 16 };
static inline void set_number(struct replay *r, const struct live_block *b,
			      const struct replay_thread *t)
{
	*live_number(&r->live, b) = r->n_events << THREAD_BITS |
				    (uint64_t)(t - r->threads);
}

static bool was_marked(const struct replay *r, const struct live_block *b)
{
	return *live_number(&r->live, b) >> THREAD_BITS <= r->mark.number;
}

static void keep_gone(struct replay *r, const struct live_block *b)
{
	MEM_PUSH(r->gone, r->n_gone, r->cap_gone) =
		(struct replay_block){ .size = b->size, .stack = b->stack };
}

static void count_gone(struct replay *r, const struct live_block *b)
{
	struct replay_change *c = &r->changes[b->stack];

	if (b->tick > r->options.from_tick) {
		c->come_bytes -= b->size;
		c->come_blocks--;
	} else {
		c->gone_bytes += b->size;
		c->gone_blocks++;
	}
}

static void count_come(struct replay *r, const struct live_block *b)
{
	struct replay_change *c = &r->changes[b->stack];

	c->come_bytes += b->size;
	c->come_blocks++;
}

static inline bool comparing(const struct replay *r)
{
	return r->changes && r->stage == STAGE_INSIDE;
}

static inline void end_block(struct replay *r, struct live_block *b,
			     uint64_t tick)
{
	struct replay_site *s = &r->sites[b->stack];
	uint64_t ticks = tick > b->tick ? tick - b->tick : 0;
	struct replay_age *age = &r->ages[age_step(r, ticks)];

	keep_marked(r, s);
	s->live_bytes -= b->size;
	s->live_blocks--;
	r->live_bytes -= b->size;
	r->timeline.now[0] = r->live_bytes;
	age->blocks++;
	age->bytes += b->size;
	if (r->lives)
		add_life(r, b, ticks);
	if (comparing(r))
		count_gone(r, b);
	if (r->options.blocks && was_marked(r, b))
		keep_gone(r, b);
	if (b->sample) {
		profile_remove(&r->profile, b->sample);
		follow_estimate(r, tick);
	}
	live_remove(&r->live, b);
}

/* The handle of its sample, or 0. */
static inline uint32_t sample_block(struct replay *r,
				    const struct trace_event *e,
				    uint32_t stack, struct replay_thread *t)
{
	const struct replay_options *o = &r->options;
	struct replay_thread *stream = o->one_stream ? &r->threads[0] : t;
	uint64_t length = o->unit == UNIT_REQUESTED
		? e->size + 1 : sampler_length(o->unit, e->size);
	struct sample hit;

	if (__builtin_expect(e->kind == TRACE_SAMPLE, 0)) {
		hit = (struct sample){
			.length = sampler_length(UNIT_REQUESTED, e->size),
			.rate = min_u64(max_u64(e->rate, 1), SAMPLER_MAX_RATE),
		};
		hit.first = min_u64(max_u64(e->gap, 1), hit.length);
		hit.marks = 1;
		r->sampled = true;
	} else if (o->estimator == ESTIMATOR_STATMEMPROF) {
		if (!sampler_marks(&stream->sampler, length, &hit))
			return 0;
	} else if (!sampler_step(&stream->sampler, length, &hit)) {
		return 0;
	}
	hit.size = e->size;
	return profile_add(&r->profile, stack, &hit);
}

static inline void begin_block(struct replay *r, const struct trace_event *e,
			       struct replay_thread *t)
{
	uint32_t stack = stack_of(r, e);
	struct replay_site *s = site_of(r, stack);
	struct live_block *b = live_add(&r->live, e->addr);

	keep_marked(r, s);
	s->allocations++;
	s->allocated_bytes += e->size;
	s->live_bytes += e->size;
	s->live_blocks++;
	r->allocated_bytes += e->size;
	r->live_bytes += e->size;
	b->size = e->size;
	b->tick = e->tick;
	b->stack = stack;
	b->sample = sample_block(r, e, stack, t);
	if (r->live.numbers)
		set_number(r, b, t);
	if (comparing(r))
		count_come(r, b);
	look_for_peak(r, e->tick);
	timeline_set(&r->timeline, 0, r->live_bytes);
	if (b->sample)
		follow_estimate(r, e->tick);
	t->last = e->addr + 1;
}

static inline void do_free(struct replay *r, const struct trace_event *e,
			   struct replay_thread *t)
{
	struct live_block *b = live_find(&r->live, e->addr);
	uint64_t temporary;

	if (!b) {
		r->unknown_frees++;
		t->last = 0;
		return;
	}
	/* Without a branch: nobody could foresee it. */
	temporary = t->last == e->addr + 1;
	r->sites[b->stack].temporary += temporary;
	r->temporary += temporary;
	r->temporary_bytes += temporary * b->size;
	t->last = 0;
	r->frees++;
	end_block(r, b, e->tick);
}

/*
 * Sizes whose sum does not fit: no program had them.  They would spoil every
 * figure of the others.
 */
static bool plausible(const struct replay *r, const struct trace_event *e)
{
	uint64_t sum;

	return e->size < REPLAY_MAX_SIZE &&
	       add_ok(r->allocated_bytes, e->size, &sum);
}

static inline void do_alloc(struct replay *r, const struct trace_event *e,
			    struct replay_thread *t)
{
	struct live_block *old;

	if (__builtin_expect(!plausible(r, e), 0)) {
		r->impossible++;
		return;
	}
	old = live_find(&r->live, e->addr);
	if (__builtin_expect(!!old, 0)) {
		r->lost_frees++;
		end_block(r, old, e->tick);
	}
	begin_block(r, e, t);
}

static void do_map(struct replay *r, const struct trace_event *e)
{
	r->mapped = true;
	maps_event(&r->maps, e);
	timeline_set(&r->timeline, 2, r->maps.bytes);
}

static inline void do_event(struct replay *r, const struct trace_event *e)
{
	struct replay_thread *t = thread_of(r, e->thread);

	r->n_events++;
	if (__builtin_expect(e->tick > r->last_tick, 1))
		r->last_tick = e->tick;
	timeline_at(&r->timeline, e->tick);
	if (trace_is_free(e->kind))
		do_free(r, e, t);
	if (trace_is_alloc(e->kind))
		do_alloc(r, e, t);
	else if (__builtin_expect(trace_is_map(e->kind), 0))
		do_map(r, e);
}

/* What events some way ahead will touch.  A macro: see live_bucket_line(). */
#define FETCH(r, e)							\
	do {								\
		__builtin_prefetch(live_bucket_line(&(r)->live,		\
			(e)[FIRST_AHEAD].addr));			\
		__builtin_prefetch(live_block_line(&(r)->live,		\
			(e)[THEN_AHEAD].addr));				\
		if ((e)[THEN_AHEAD].stack < (r)->n_sites)		\
			__builtin_prefetch(				\
				&(r)->sites[(e)[THEN_AHEAD].stack]);	\
	} while (0)

static void do_events(struct replay *r, const struct trace_event *events,
		      size_t n)
{
	/* A small heap is in the cache anyway. */
	size_t n_fetch = r->live.n < SMALL_HEAP ? 0
			 : n - min_u64(n, FIRST_AHEAD);
	size_t i = 0;

	for (; i < n_fetch; i++) {
		FETCH(r, events + i);
		do_event(r, &events[i]);
	}
	for (; i < n; i++)
		do_event(r, &events[i]);
}

/* ---- instants ---- */

/* Who allocated what is live as the window ends. */
static void find_owners(struct replay *r)
{
	const struct live_block *b;
	size_t place = 0;

	r->owned = mem_zalloc((r->n_threads + 1) * sizeof(*r->owned));
	while ((b = live_next(&r->live, &place))) {
		struct replay_owned *o = &r->owned[*live_number(&r->live, b) &
			((1 << THREAD_BITS) - 1)];

		o->blocks++;
		o->bytes += b->size;
		o->samples += b->sample != 0;
	}
}

/* All that lives on has lived at least so long. */
static void add_survivors(struct replay *r)
{
	const struct live_block *b;
	size_t place = 0;

	while ((b = live_next(&r->live, &place)))
		lifetimes_add(&r->lifetimes, b->stack, r->last_tick > b->tick
			      ? r->last_tick - b->tick : 0)->alive++;
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
		set_mark(r, tick, r->n_events);
	if (r->options.span == SPAN_WINDOW) {
		r->last_tick = tick;
		close_all(r);
	}
}

/* An event behind the window: blocks of it end. */
static void do_later(struct replay *r, const struct trace_event *e)
{
	struct live_block *b;

	if (!trace_is_free(e->kind) && !trace_is_alloc(e->kind))
		return;
	b = live_find(&r->live, e->addr);
	if (!b)
		return;
	r->later.blocks++;
	r->later.bytes += b->size;
	r->later.samples += b->sample != 0;
	if (r->options.blocks && was_marked(r, b))
		keep_gone(r, b);
	live_remove(&r->live, b);
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

		do_events(r, events, k);
		if (k == n)
			return;
		pass_instant(r);
		events += k;
		n -= k;
	}
	do_events(r, events, n);
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

	if (r->options.one_stream && !r->n_threads)
		new_thread(r, 0);
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
		keep_marked(r, &r->sites[i]);
	r->n_events--;
	for (size_t i = 0; i < r->n_sites; i++)
		r->allocations += r->sites[i].allocations;
	profile_finish(&r->profile);
}

struct replay_site replay_site(const struct replay *r, uint32_t stack)
{
	if (stack < r->n_sites)
		return r->sites[stack];
	return (struct replay_site){ .live_bytes = 0 };
}

struct replay_block *replay_marked_blocks(const struct replay *r,
					  size_t *ret_n)
{
	struct replay_block *ret =
		mem_alloc((r->n_gone + r->live.n + 1) * sizeof(*ret));
	const struct live_block *b;
	size_t place = 0, n = r->n_gone;

	if (n)
		memcpy(ret, r->gone, n * sizeof(*ret));
	while ((b = live_next(&r->live, &place)))
		if (was_marked(r, b))
			ret[n++] = (struct replay_block){
				.size = b->size, .stack = b->stack,
			};
	*ret_n = n;
	return ret;
}
