/* SPDX-License-Identifier: MIT */
/*
 * One event after the other: what costs time.  The figures that change with
 * each are in registers, as far as there are any; what most replays do not
 * ask for is compiled in a second time with it.
 */
#include "replay/replay_in.h"

#include <string.h>

#include "base/mem.h"

#define INLINE static inline __attribute__((always_inline))

/* How far ahead lines are fetched: buckets, then blocks they lead to. */
enum { FIRST_AHEAD = 24, THEN_AHEAD = 12, SMALL_HEAP = 1 << 15 };

/* Those of struct replay, while events are gone through. */
struct sums {
	uint64_t n_events, last_tick;
	uint64_t allocated_bytes, frees;
	uint64_t live_bytes;
	uint64_t temporary, temporary_bytes;
	uint64_t peak, marked;	/* bytes; number of an event */
	uint64_t step;		/* the most of this step of the time line */
	struct replay_thread *thread;	/* of the last event */
	uint32_t thread_number;
	bool at_peak;		/* the mark is there */
};

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
INLINE uint32_t stack_of(const struct replay *r, const struct trace_event *e)
{
	return e->stack <= r->options.n_stacks ? e->stack : 0;
}

INLINE struct replay_site *site_of(struct replay *r, uint32_t stack)
{
	if (__builtin_expect(stack >= r->n_sites, 0))
		more_sites(r, stack);
	return &r->sites[stack];
}

static struct replay_thread *thread_of(struct replay *r, uint32_t number)
{
	if (number >= REPLAY_MAX_THREADS)
		number = REPLAY_MAX_THREADS - 1;
	if (number >= r->n_threads) {
		size_t n = (size_t)number + number / 2 + 16;

		r->threads = grow_zeroed(r->threads, r->n_threads, n,
					 sizeof(*r->threads));
		r->n_threads = n;
	}
	if (!r->threads[number].ready)
		sampler_init(&r->threads[number].sampler, r->options.rate,
			     r->options.seed, number);
	r->threads[number].ready = true;
	return &r->threads[number];
}

void replay_set_mark(struct replay *r, uint64_t tick)
{
	r->mark = (struct replay_moment){
		.tick = tick,
		.number = r->n_events,
		.bytes = r->live_bytes,
		.blocks = r->live.n,
	};
	r->n_gone = 0;
	if (r->options.mark != MARK_PEAK)
		profile_mark(&r->profile);
}

INLINE void look_for_peak(struct replay *r, struct sums *s, uint64_t tick)
{
	if (s->live_bytes <= s->peak)
		return;
	s->peak = s->live_bytes;
	r->peak = (struct replay_moment){
		.tick = tick,
		.number = s->n_events,
		.bytes = s->live_bytes,
		.blocks = r->live.n,
	};
	if (!s->at_peak)
		return;
	s->marked = s->n_events;
	r->mark = r->peak;
	r->n_gone = 0;
	if (r->options.mark != MARK_PEAK)
		profile_mark(&r->profile);
}

/* The estimated curve has changed. */
static void follow_estimate(struct replay *r, uint64_t number, uint64_t tick)
{
	uint64_t now = (uint64_t)(profile_live(&r->profile) >> 16);

	timeline_set(&r->timeline, 1, now);
	if (now <= r->estimated_peak.bytes)
		return;
	r->estimated_peak = (struct replay_moment){
		.tick = tick, .number = number, .bytes = now,
	};
	if (r->options.mark == MARK_PEAK)
		profile_mark(&r->profile);
}

/* The exact curve, which is kept in the sums. */
static void advance_timeline(struct replay *r, struct sums *s, uint64_t tick)
{
	struct timeline *t = &r->timeline;

	t->now[0] = s->live_bytes;
	t->max[t->step][0] = s->step;
	timeline_at(t, tick);
	s->step = t->max[t->step][0];
}

/* Powers of two are closer than steps: at most one step ends among them. */
INLINE unsigned age_step(const struct replay *r, uint64_t ticks)
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
	lifetimes_add(&r->lifetimes, b->stack, ticks)->freed++;
}

void replay_keep_gone(struct replay *r, const struct live_block *b)
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

/* What not every replay asks for. */
static void end_more(struct replay *r, const struct live_block *b,
		     uint64_t ticks)
{
	if (r->lives)
		add_life(r, b, ticks);
	if (comparing(r))
		count_gone(r, b);
	if (r->options.blocks && replay_was_marked(r, r->live.number))
		replay_keep_gone(r, b);
}

INLINE void end_block(struct replay *r, struct sums *s,
		      const struct live_block *b, uint64_t tick, bool more)
{
	struct replay_site *site = &r->sites[b->stack];
	uint64_t ticks = tick > b->tick ? tick - b->tick : 0;
	struct replay_age *age = &r->ages[age_step(r, ticks)];

	replay_keep_marked(site, s->marked, s->n_events);
	site->live_bytes -= b->size;
	site->live_blocks--;
	s->live_bytes -= b->size;
	age->blocks++;
	age->bytes += b->size;
	if (more)
		end_more(r, b, ticks);
	if (__builtin_expect(!!b->sample, 0)) {
		profile_remove(&r->profile, b->sample);
		follow_estimate(r, s->n_events, tick);
	}
}

/* The trace has a sample. */
static void read_sample(struct replay *r, const struct trace_event *e,
			struct sample *ret)
{
	*ret = (struct sample){
		.length = sampler_length(UNIT_REQUESTED, e->size),
		.rate = min_u64(max_u64(e->rate, 1), SAMPLER_MAX_RATE),
		.marks = 1,
	};
	ret->first = min_u64(max_u64(e->gap, 1), ret->length);
	r->sampled = true;
}

/* The handle of its sample, or 0. */
INLINE uint32_t sample_block(struct replay *r, const struct trace_event *e,
			     uint32_t stack, struct replay_thread *t,
			     bool more)
{
	const struct replay_options *o = &r->options;
	struct replay_thread *stream = more && o->one_stream ? &r->threads[0]
							     : t;
	uint64_t length = !more || o->unit == UNIT_REQUESTED
		? e->size + 1 : sampler_length(o->unit, e->size);
	struct sample hit;

	if (__builtin_expect(e->kind == TRACE_SAMPLE, 0)) {
		read_sample(r, e, &hit);
	} else if (more && o->estimator == ESTIMATOR_STATMEMPROF) {
		if (!sampler_marks(&stream->sampler, length, &hit))
			return 0;
	} else if (!sampler_step(&stream->sampler, length, &hit)) {
		return 0;
	}
	hit.size = e->size;
	return profile_add(&r->profile, stack, &hit);
}

INLINE void begin_block(struct replay *r, struct sums *s,
			const struct trace_event *e, bool more)
{
	struct live_block b = {
		.addr = e->addr, .size = e->size, .tick = e->tick,
		.stack = stack_of(r, e),
	};
	struct replay_site *site = site_of(r, b.stack);

	replay_keep_marked(site, s->marked, s->n_events);
	site->allocations++;
	site->allocated_bytes += e->size;
	site->live_bytes += e->size;
	site->live_blocks++;
	s->allocated_bytes += e->size;
	s->live_bytes += e->size;
	b.sample = sample_block(r, e, b.stack, s->thread, more);
	if (more) {
		r->live.number = s->n_events << THREAD_BITS |
				 (uint64_t)(s->thread - r->threads);
		if (comparing(r))
			count_come(r, &b);
	}
	stock_add(&r->live, &b);
	look_for_peak(r, s, e->tick);
	s->step = max_u64(s->step, s->live_bytes);
	if (__builtin_expect(!!b.sample, 0))
		follow_estimate(r, s->n_events, e->tick);
	s->thread->last = e->addr + 1;
}

INLINE void do_free(struct replay *r, struct sums *s,
		    const struct trace_event *e, bool more)
{
	uint64_t temporary = s->thread->last == e->addr + 1;
	struct live_block b;

	s->thread->last = 0;
	if (__builtin_expect(!stock_take(&r->live, e->addr, &b), 0)) {
		r->unknown_frees++;
		return;
	}
	/* Without a branch: nobody could foresee it. */
	r->sites[b.stack].temporary += temporary;
	s->temporary += temporary;
	s->temporary_bytes += -temporary & b.size;
	s->frees++;
	end_block(r, s, &b, e->tick, more);
}

/*
 * Sizes whose sum does not fit: no program had them.  They would spoil every
 * figure of the others.
 */
INLINE bool plausible(const struct sums *s, const struct trace_event *e)
{
	uint64_t sum;

	return e->size < REPLAY_MAX_SIZE &&
	       add_ok(s->allocated_bytes, e->size, &sum);
}

INLINE void do_alloc(struct replay *r, struct sums *s,
		     const struct trace_event *e, bool more)
{
	struct live_block old;

	if (__builtin_expect(!plausible(s, e), 0)) {
		r->impossible++;
		return;
	}
	if (!stock_is_new(&r->live, e->addr) &&
	    stock_take(&r->live, e->addr, &old)) {
		r->lost_frees++;
		end_block(r, s, &old, e->tick, more);
	}
	begin_block(r, s, e, more);
}

static void do_map(struct replay *r, const struct trace_event *e)
{
	r->mapped = true;
	maps_event(&r->maps, e);
	timeline_set(&r->timeline, 2, r->maps.bytes);
}

INLINE void do_event(struct replay *r, struct sums *s,
		     const struct trace_event *e, bool more)
{
	if (e->thread != s->thread_number || !s->thread) {
		s->thread = thread_of(r, e->thread);
		s->thread_number = e->thread;
	}
	s->n_events++;
	s->last_tick = max_u64(s->last_tick, e->tick);
	if (__builtin_expect(e->tick > r->timeline.end, 0))
		advance_timeline(r, s, e->tick);
	if (trace_is_free(e->kind))
		do_free(r, s, e, more);
	if (trace_is_alloc(e->kind))
		do_alloc(r, s, e, more);
	else if (__builtin_expect(trace_is_map(e->kind), 0))
		do_map(r, e);
}

/* What events some way ahead will touch.  A macro: see live_bucket_line(). */
#define FETCH(r, e)							\
	do {								\
		__builtin_prefetch(stock_first_line(&(r)->live,	\
			(e)[FIRST_AHEAD].addr));			\
		__builtin_prefetch(stock_then_line(&(r)->live,	\
			(e)[THEN_AHEAD].addr));				\
		if ((e)[THEN_AHEAD].stack < (r)->n_sites)		\
			__builtin_prefetch(				\
				&(r)->sites[(e)[THEN_AHEAD].stack]);	\
	} while (0)

static struct sums get_sums(const struct replay *r)
{
	return (struct sums){
		.n_events = r->n_events, .last_tick = r->last_tick,
		.allocated_bytes = r->allocated_bytes, .frees = r->frees,
		.live_bytes = r->live_bytes, .temporary = r->temporary,
		.temporary_bytes = r->temporary_bytes,
		.peak = r->peak.bytes, .marked = r->mark.number,
		.step = r->timeline.max[r->timeline.step][0],
		.at_peak = r->options.mark != MARK_TIME,
	};
}

static void set_sums(struct replay *r, const struct sums *s)
{
	r->n_events = s->n_events;
	r->last_tick = s->last_tick;
	r->allocated_bytes = s->allocated_bytes;
	r->frees = s->frees;
	r->live_bytes = s->live_bytes;
	r->temporary = s->temporary;
	r->temporary_bytes = s->temporary_bytes;
	r->timeline.now[0] = s->live_bytes;
	r->timeline.max[r->timeline.step][0] = s->step;
}

INLINE void run(struct replay *r, const struct trace_event *events, size_t n,
		bool more)
{
	/* A small heap is in the cache anyway. */
	size_t n_fetch = r->live.n < SMALL_HEAP ? 0
			 : n - min_u64(n, FIRST_AHEAD);
	struct sums s = get_sums(r);
	size_t i = 0;

	for (; i < n_fetch; i++) {
		FETCH(r, events + i);
		do_event(r, &s, &events[i], more);
	}
	for (; i < n; i++)
		do_event(r, &s, &events[i], more);
	set_sums(r, &s);
}

/* Apart: that they are long is no use to each other. */
static __attribute__((noinline)) void
run_usual(struct replay *r, const struct trace_event *events, size_t n)
{
	run(r, events, n, false);
}

static __attribute__((noinline)) void
run_more(struct replay *r, const struct trace_event *events, size_t n)
{
	run(r, events, n, true);
}

void replay_some(struct replay *r, const struct trace_event *events, size_t n)
{
	const struct replay_options *o = &r->options;

	if (o->one_stream && !r->n_threads)
		(void)thread_of(r, 0);
	if (o->lifetimes || o->span == SPAN_GROWTH || r->numbered ||
	    o->one_stream || o->unit != UNIT_REQUESTED ||
	    o->estimator == ESTIMATOR_STATMEMPROF)
		run_more(r, events, n);
	else
		run_usual(r, events, n);
}
