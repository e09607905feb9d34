/* SPDX-License-Identifier: MIT */
#include "replay/replay.h"

#include <math.h>

#include "base/rand.h"
#include "check.h"
#include "replay/lifetimes.h"
#include "replay/rates.h"

enum { MAX_EVENTS = 20000, MAX_SITES = 40, MAX_LIVE = 300 };

static struct replay_site replay_site(const struct replay *r, uint32_t stack)
{
	if (stack < r->n_sites)
		return r->sites[stack];
	return (struct replay_site){ .live_bytes = 0 };
}

static struct trace_event events[MAX_EVENTS];
static size_t n_events;

static struct trace_event *event(unsigned kind, uint64_t tick, uint64_t addr,
				 uint64_t size, uint32_t stack)
{
	struct trace_event *e = &events[n_events++];

	*e = (struct trace_event){
		.kind = (uint8_t)kind, .tick = tick, .addr = addr,
		.size = size, .stack = stack,
	};
	return e;
}

static struct replay_options usual(void)
{
	return (struct replay_options){
		.rate = 512, .seed = 1, .ns_per_tick = 1,
		.n_stacks = MAX_SITES, .lifetimes = true, .blocks = true,
	};
}

static void run(struct replay *r, const struct replay_options *o)
{
	replay_init(r, o);
	replay_events(r, events, n_events);
	replay_finish(r);
}

TEST(a_handful_of_events)
{
	struct replay_options o = usual();
	struct replay r;
	struct replay_site s;

	n_events = 0;
	event(TRACE_MALLOC, 10, 0x100, 50, 1);
	event(TRACE_CALLOC, 20, 0x200, 30, 2);
	event(TRACE_FREE, 30, 0x100, 0, 0);
	event(TRACE_MALLOC, 40, 0x100, 60, 1);
	event(TRACE_FREE, 50, 0x200, 0, 0);
	event(TRACE_REALLOC_SAME, 60, 0x100, 20, 2);
	event(TRACE_FREE, 70, 0x999, 0, 0);
	event(TRACE_MALLOC, 80, 0x100, 5, 3);
	run(&r, &o);
	CHECK_U64(r.n_events, 8);
	CHECK_U64(r.allocations, 5);
	CHECK_U64(r.allocated_bytes, 165);
	CHECK_U64(r.frees, 3);
	CHECK_U64(r.unknown_frees, 1);
	CHECK_U64(r.lost_frees, 1);
	CHECK_U64(r.peak.bytes, 90);
	CHECK_U64(r.peak.tick, 40);
	CHECK_U64(r.peak.blocks, 2);
	CHECK_U64(r.live_bytes, 5);
	s = replay_site(&r, 1);
	CHECK_U64(s.marked_bytes, 60);
	CHECK_U64(s.live_bytes, 0);
	CHECK_U64(s.allocated_bytes, 110);
	s = replay_site(&r, 2);
	CHECK_U64(s.marked_bytes, 30);
	CHECK_U64(s.allocations, 2);
	CHECK_U64(replay_site(&r, 3).live_bytes, 5);
	CHECK_U64(replay_site(&r, 12345).allocations, 0);
	replay_fini(&r);
}

/* The free of a block is the next event of the thread that made it. */
TEST(temporary_by_thread)
{
	struct replay_options o = usual();
	struct replay r;

	n_events = 0;
	event(TRACE_MALLOC, 1, 0x10, 7, 1)->thread = 1;
	event(TRACE_MALLOC, 2, 0x20, 8, 2)->thread = 2;
	event(TRACE_FREE, 3, 0x10, 0, 0)->thread = 1;
	event(TRACE_FREE, 4, 0x20, 0, 0)->thread = 1;
	event(TRACE_MALLOC, 5, 0x10, 9, 1)->thread = 1;
	event(TRACE_FREE, 6, 0x99, 0, 0)->thread = 1;
	event(TRACE_FREE, 7, 0x10, 0, 0)->thread = 1;
	run(&r, &o);
	CHECK_U64(r.temporary, 1);
	CHECK_U64(r.temporary_bytes, 7);
	CHECK_U64(replay_site(&r, 1).temporary, 1);
	CHECK_U64(replay_site(&r, 2).temporary, 0);
	replay_fini(&r);
}

TEST(ages)
{
	struct replay_options o = usual();
	struct replay r;

	n_events = 0;
	o.ns_per_tick = 100;
	event(TRACE_MALLOC, 0, 0x10, 1, 1);
	event(TRACE_FREE, 9, 0x10, 0, 0);	/* 0.9 us */
	event(TRACE_MALLOC, 10, 0x10, 2, 1);
	event(TRACE_FREE, 20, 0x10, 0, 0);	/* 1 us */
	event(TRACE_MALLOC, 30, 0x10, 4, 1);
	event(TRACE_FREE, 30 + 10000000, 0x10, 0, 0);	/* 1 s */
	event(TRACE_MALLOC, 40 + 10000000, 0x10, 8, 1);
	event(TRACE_FREE, 39 + 10000000, 0x10, 0, 0);	/* a clock of its own */
	run(&r, &o);
	CHECK_U64(r.ages[0].blocks, 2);
	CHECK_U64(r.ages[0].bytes, 9);
	CHECK_U64(r.ages[1].bytes, 2);
	CHECK_U64(r.ages[7].bytes, 4);
	CHECK_NEAR(replay_age_start(7), 1, 1e-9);
	CHECK_U64(r.lives[1].blocks, 4);
	CHECK_NEAR(r.lives[1].byte_ticks, 9 + 20 + 4e7, 0.1);
	replay_fini(&r);
}

/* ---- against a model that is too simple to be wrong ---- */

struct model_block {
	uint64_t addr, size;
	uint32_t stack;
	bool live;
};

struct model {
	struct model_block blocks[MAX_LIVE];
	uint64_t live, peak, at;
	uint64_t site[MAX_SITES + 1];
	uint64_t site_peak[MAX_SITES + 1], site_at[MAX_SITES + 1];
	struct model_block peak_blocks[MAX_LIVE];
};

static void model_sum(const struct model *m, uint64_t *ret)
{
	memset(ret, 0, sizeof(m->site));
	for (size_t i = 0; i < MAX_LIVE; i++)
		if (m->blocks[i].live)
			ret[m->blocks[i].stack] += m->blocks[i].size;
}

static void model_step(struct model *m, struct rand *r, uint64_t tick,
		       uint64_t at)
{
	struct model_block *b = &m->blocks[rand_u64(r) % MAX_LIVE];
	struct trace_event *e;

	if (b->live) {
		e = event(TRACE_FREE, tick, b->addr, 0, 0);
		b->live = false;
		m->live -= b->size;
	} else {
		b->stack = 1 + (uint32_t)(rand_u64(r) % MAX_SITES);
		b->size = rand_u64(r) % 3000;
		b->live = true;
		e = event(TRACE_MALLOC, tick, b->addr, b->size, b->stack);
		m->live += b->size;
	}
	e->thread = (uint32_t)(rand_u64(r) % 5);
	if (m->live > m->peak) {
		m->peak = m->live;
		model_sum(m, m->site_peak);
		memcpy(m->peak_blocks, m->blocks, sizeof(m->blocks));
	}
	if (tick <= at) {
		m->at = m->live;
		model_sum(m, m->site_at);
	}
}

static struct model model;

static void make_model(uint64_t seed, uint64_t at)
{
	struct rand r;

	rand_init(&r, seed, 0);
	model = (struct model){ .live = 0 };
	n_events = 0;
	for (size_t i = 0; i < MAX_LIVE; i++)
		model.blocks[i].addr = 0x1000 + i * 48;
	for (uint64_t i = 0; i < MAX_EVENTS; i++)
		model_step(&model, &r, i / 3, at);
}

static uint64_t sum_of_blocks(const struct replay_block *blocks, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += blocks[i].size * (1 + blocks[i].stack);
	return sum;
}

static uint64_t sum_of_peak_blocks(size_t *ret_n)
{
	uint64_t sum = 0;

	*ret_n = 0;
	for (size_t i = 0; i < MAX_LIVE; i++)
		if (model.peak_blocks[i].live) {
			sum += model.peak_blocks[i].size *
			       (1 + model.peak_blocks[i].stack);
			++*ret_n;
		}
	return sum;
}

static void check_peak(uint64_t seed)
{
	struct replay_options o = usual();
	struct replay r;
	struct replay_block *blocks;
	size_t n, want;

	make_model(seed, 0);
	run(&r, &o);
	CHECK_U64(r.peak.bytes, model.peak);
	CHECK_U64(r.live_bytes, model.live);
	for (uint32_t i = 1; i <= MAX_SITES; i++)
		CHECK_U64(replay_site(&r, i).marked_bytes,
			  model.site_peak[i]);
	blocks = replay_marked_blocks(&r, &n);
	CHECK_U64(sum_of_blocks(blocks, n), sum_of_peak_blocks(&want));
	CHECK_U64(n, want);
	free(blocks);
	replay_fini(&r);
}

TEST(the_peak_by_site_and_block)
{
	for (uint64_t seed = 1; seed <= 20; seed++)
		check_peak(seed);
}

/* What is compiled apart for those that ask for little: the same figures. */
static void check_usual(const struct replay *want, bool objects)
{
	struct replay_options o = usual();
	struct replay r;

	o.blocks = o.lifetimes = false;
	o.objects = objects;
	run(&r, &o);
	CHECK_U64(r.peak.bytes, want->peak.bytes);
	CHECK_U64(r.peak.number, want->peak.number);
	CHECK_U64(r.live_blocks, want->live_blocks);
	CHECK_U64(r.temporary_bytes, want->temporary_bytes);
	CHECK_U64(r.estimated_peak.bytes, want->estimated_peak.bytes);
	CHECK(!memcmp(r.ages, want->ages, sizeof(r.ages)));
	CHECK(!memcmp(&r.timeline, &want->timeline, sizeof(r.timeline)));
	for (uint32_t i = 0; i <= MAX_SITES; i++) {
		struct replay_site a = replay_site(&r, i);
		struct replay_site b = replay_site(want, i);

		CHECK(!memcmp(&a, &b, sizeof(a)));
	}
	replay_fini(&r);
}

/* Addresses as a packed trace has them: the number of the block. */
static void number_events(void)
{
	uint64_t number[MAX_LIVE], next = 1;

	for (size_t i = 0; i < n_events; i++) {
		uint64_t *at = &number[(events[i].addr - 0x1000) / 48];

		if (events[i].kind == TRACE_MALLOC)
			*at = next++;
		events[i].addr = *at;
	}
}

TEST(the_usual_run_is_the_same)
{
	struct replay_options o = usual();
	struct replay r;

	for (uint64_t seed = 1; seed <= 5; seed++) {
		make_model(seed, 0);
		run(&r, &o);
		check_usual(&r, false);
		/* What are no numbers of objects does no harm. */
		check_usual(&r, true);
		replay_fini(&r);
		number_events();
		run(&r, &o);
		check_usual(&r, true);
		replay_fini(&r);
	}
}

TEST(any_moment_by_site)
{
	static const uint64_t at[] = { 0, 1, 100, 5000, 6665, 6666, 1000000 };
	struct replay_options o = usual();
	struct replay r;

	for (size_t k = 0; k < countof(at); k++) {
		make_model(3, at[k]);
		o.mark = MARK_TIME;
		o.to_tick = at[k];
		run(&r, &o);
		CHECK_U64(r.mark.bytes, model.at);
		CHECK_U64(r.peak.bytes, model.peak);
		for (uint32_t i = 1; i <= MAX_SITES; i++)
			CHECK_U64(replay_site(&r, i).marked_bytes,
				  model.site_at[i]);
		replay_fini(&r);
	}
}

static double marked(const struct replay *r, uint32_t site)
{
	const struct profile_row *row = profile_find(&r->profile, site);
	struct profile_figures f;

	if (!row)
		return 0;
	profile_get(row, VIEW_MARKED, &f);
	return f.bytes.value;
}

/* At rate 1 the estimates are what they estimate, to the rounding. */
TEST(rate_one_is_exact)
{
	struct replay_options o = usual();
	struct replay r;

	make_model(5, 0);
	o.rate = 1;
	run(&r, &o);
	CHECK_U64(r.estimated_peak.bytes, model.peak);
	for (uint32_t i = 1; i <= MAX_SITES; i++)
		CHECK_NEAR(marked(&r, i), (double)model.site_peak[i], 0);
	replay_fini(&r);
}

/* Mean over seeds at the peak as it was; a third of the blocks are seen. */
TEST(estimates_of_the_peak_are_unbiased)
{
	enum { SEEDS = 200 };
	struct replay_options o = usual();
	double sum = 0, squares = 0, covered = 0;
	struct profile_figures f;
	struct replay r;

	make_model(5, 0);
	o.mark = MARK_EXACT_PEAK;
	o.rate = 4096;
	for (o.seed = 1; o.seed <= SEEDS; o.seed++) {
		run(&r, &o);
		profile_get(profile_total(&r.profile), VIEW_MARKED, &f);
		double off = f.bytes.value - (double)model.peak;
		struct interval i = interval_score(&f.bytes, 4096);

		sum += off;
		squares += off * off;
		covered += i.low <= (double)model.peak &&
			   (double)model.peak <= i.high;
		replay_fini(&r);
	}
	CHECK_NEAR(sum / SEEDS, 0, 4 * sqrt(squares / SEEDS / SEEDS));
	CHECK_NEAR(covered / SEEDS, 0.95, 4 * sqrt(0.95 * 0.05 / SEEDS));
}

/* Growth by site: two moments of the model, one less the other. */
TEST(growth_is_the_difference)
{
	struct replay_options o = usual();
	uint64_t before[MAX_SITES + 1];
	struct profile_figures come, gone;
	uint64_t n_come = 0, n_gone = 0;
	struct replay r;

	make_model(3, 2000);
	memcpy(before, model.site_at, sizeof(before));
	make_model(3, 5000);
	o.span = SPAN_GROWTH;
	o.mark = MARK_TIME;
	o.from_tick = 2000;
	o.to_tick = 5000;
	o.rate = 1;
	run(&r, &o);
	for (uint32_t i = 1; i <= MAX_SITES; i++) {
		struct replay_change *c = &r.changes[i];
		const struct profile_row *row = profile_find(&r.profile, i);

		CHECK_U64(c->come_bytes - c->gone_bytes,
			  model.site_at[i] - before[i]);
		n_come += c->come_blocks;
		n_gone += c->gone_blocks;
		profile_get(row, VIEW_COME, &come);
		profile_get(row, VIEW_GONE, &gone);
		CHECK_NEAR(come.bytes.value, (double)c->come_bytes, 0.5);
		CHECK_NEAR(gone.bytes.value, (double)c->gone_bytes, 0.5);
	}
	CHECK(n_come > 100 && n_gone > 100);
	replay_fini(&r);
}

/* Over seeds: unbiased, and the interval of a difference covers. */
TEST(growth_has_an_interval)
{
	enum { SEEDS = 400 };
	struct replay_options o = usual();
	double sum = 0, squares = 0, covered = 0, truth;
	struct profile_figures come, gone;
	struct replay r;

	make_model(3, 2000);
	truth = -(double)model.at;
	make_model(3, 5000);
	truth += (double)model.at;
	o.span = SPAN_GROWTH;
	o.mark = MARK_TIME;
	o.from_tick = 2000;
	o.to_tick = 5000;
	o.rate = 8192;
	for (o.seed = 1; o.seed <= SEEDS; o.seed++) {
		run(&r, &o);
		profile_get(profile_total(&r.profile), VIEW_COME, &come);
		profile_get(profile_total(&r.profile), VIEW_GONE, &gone);
		double off = come.bytes.value - gone.bytes.value - truth;
		struct interval i = interval_change(&come.bytes, &gone.bytes,
						    8192);

		sum += off;
		squares += off * off;
		covered += i.low <= truth && truth <= i.high;
		replay_fini(&r);
	}
	CHECK_NEAR(sum / SEEDS, 0, 4 * sqrt(squares / SEEDS / SEEDS));
	CHECK_NEAR(covered / SEEDS, 0.95, 4 * sqrt(0.95 * 0.05 / SEEDS));
}

/* As if the trace had only the events of blocks that came in the window. */
TEST(a_window_knows_what_came_in_it)
{
	struct replay_options o = usual();
	struct replay r;
	uint64_t alive = 0;

	n_events = 0;
	event(TRACE_MALLOC, 1, 0x10, 1, 1);
	event(TRACE_MALLOC, 10, 0x20, 2, 1);	/* the last before */
	event(TRACE_MALLOC, 11, 0x30, 4, 1)->thread = 2;
	event(TRACE_FREE, 12, 0x10, 0, 0);	/* older */
	event(TRACE_MALLOC, 13, 0x10, 8, 2)->thread = 1;
	event(TRACE_MALLOC, 14, 0x40, 16, 2);
	event(TRACE_FREE, 16, 0x40, 0, 0);
	event(TRACE_MALLOC, 20, 0x50, 32, 1);	/* the last in it */
	event(TRACE_MALLOC, 21, 0x60, 64, 1);
	event(TRACE_FREE, 22, 0x60, 0, 0);
	event(TRACE_FREE, 23, 0x10, 0, 0);
	event(TRACE_FREE, 24, 0x20, 0, 0);
	o.span = SPAN_WINDOW;
	o.from_tick = 10;
	o.to_tick = 20;
	o.rate = 1;
	run(&r, &o);
	CHECK_U64(r.allocations, 4);
	CHECK_U64(r.allocated_bytes, 60);
	CHECK_U64(r.frees, 1);
	CHECK_U64(r.unknown_frees, 0);
	CHECK_U64(r.live_bytes, 44);
	CHECK_U64(r.live_blocks, 3);
	CHECK_U64(r.peak.bytes, 44);
	CHECK_U64(r.last_tick, 20);
	CHECK_U64(r.later.blocks, 1);
	CHECK_U64(r.later.bytes, 8);
	CHECK_U64(r.later.samples, 1);
	CHECK_U64(r.owned[1].bytes, 8);
	CHECK_U64(r.owned[2].bytes, 4);
	CHECK_U64(r.owned[0].bytes, 32);
	CHECK_U64(replay_site(&r, 2).live_bytes, 8);
	for (size_t i = 0; i < r.lifetimes.size; i++)
		alive += r.lifetimes.slots[i].alive;
	CHECK_U64(alive, 3);
	replay_fini(&r);
}

TEST(nothing_is_seen_at_rate_zero)
{
	struct replay_options o = usual();
	struct replay r;

	make_model(5, 0);
	o.rate = SAMPLER_NEVER;
	run(&r, &o);
	CHECK_U64(r.estimated_peak.bytes, 0);
	CHECK_U64(r.peak.bytes, model.peak);
	CHECK_U64(r.profile.n_rows, 0);
	replay_fini(&r);
}

/* The same in two pieces, of any length. */
TEST(pieces_do_not_matter)
{
	struct replay_options o = usual();
	struct replay r, whole;

	make_model(9, 0);
	run(&whole, &o);
	for (size_t cut = 0; cut < 60; cut += 7) {
		replay_init(&r, &o);
		replay_events(&r, events, cut);
		replay_events(&r, events + cut, n_events - cut);
		replay_finish(&r);
		CHECK_U64(r.peak.bytes, whole.peak.bytes);
		CHECK_U64(r.estimated_peak.bytes, whole.estimated_peak.bytes);
		CHECK_U64(r.estimated_peak.tick, whole.estimated_peak.tick);
		for (uint32_t i = 1; i <= MAX_SITES; i++)
			CHECK_NEAR(marked(&r, i), marked(&whole, i), 0);
		replay_fini(&r);
	}
	replay_fini(&whole);
}

/* A trace that was sampled by its recorder has its weights inside. */
TEST(recorded_samples_count_by_their_rate)
{
	struct replay_options o = usual();
	struct replay r;
	struct trace_event *e;

	n_events = 0;
	e = event(TRACE_SAMPLE, 1, 0x10, 1000, 1);
	e->rate = 100000;
	e->gap = 10;
	run(&r, &o);
	CHECK(r.sampled);
	CHECK_NEAR(marked(&r, 1), 1000 / -expm1(1001 * log1p(-1e-5)), 0.1);
	replay_fini(&r);
}

TEST(impossible_events)
{
	struct replay_options o = usual();
	struct replay r;
	struct trace_event *e;

	n_events = 0;
	event(TRACE_MALLOC, UINT64_MAX, UINT64_MAX, 10, 1);
	event(TRACE_MALLOC, UINT64_MAX, 0, UINT64_MAX, 1);
	event(TRACE_MALLOC, 5, 0, 7, UINT32_MAX)->thread = UINT32_MAX;
	event(TRACE_FREE, 0, UINT64_MAX, 0, 0);
	event(TRACE_OTHER, 0, 1, 1, 1);
	event(0, 0, 1, 1, 1);
	e = event(TRACE_SAMPLE, 1, 0x10, 1, 1);
	e->rate = UINT64_MAX;
	e->gap = UINT64_MAX;
	run(&r, &o);
	CHECK_U64(r.impossible, 1);
	CHECK_U64(r.frees, 1);
	CHECK_U64(replay_site(&r, 0).live_bytes, 7);
	CHECK_U64(r.live_bytes, 8);
	CHECK(r.n_sites < 10000);
	replay_fini(&r);
}

/* ---- the parts ---- */

TEST(the_table_of_live_blocks)
{
	struct live l;
	size_t place = 0, n = 0;

	live_init(&l, false);
	for (uint64_t i = 0; i < 100000; i++)
		live_add(&l, i * 16)->size = i;
	for (uint64_t i = 0; i < 100000; i += 2)
		live_remove(&l, live_find(&l, i * 16));
	for (uint64_t i = 0; i < 100000; i++) {
		const struct live_block *b = live_find(&l, i * 16);

		if (CHECK(!b == !(i % 2)) && b)
			CHECK_U64(b->size, i);
	}
	while (live_next(&l, &place))
		n++;
	CHECK_U64(n, 50000);
	CHECK_U64(l.n, 50000);
	live_fini(&l);
}

enum { STOCK_NUMBERS = 1 << 17 };

struct stock_model {
	uint64_t size[STOCK_NUMBERS];	/* + 1; 0: not there */
	size_t n;
};

/* One that is there goes, one that is not comes. */
static void stock_step(struct stock *s, struct stock_model *m,
		       uint64_t number, uint64_t size)
{
	struct live_block b = {
		.addr = number, .size = size, .stack = (uint32_t)(size % 77),
		.tick = size / 2, .sample = size % 9 == 0,
	};
	struct live_block is;
	bool was = m->size[number];

	if (!CHECK_U64(stock_take(s, number, &is), was))
		return;
	if (was) {
		CHECK_U64(is.size, m->size[number] - 1);
		CHECK_U64(is.stack, is.size % 77);
		CHECK_U64(is.tick, is.size / 2);
		CHECK_U64(is.sample, is.size % 9 == 0);
	} else {
		stock_add(s, &b);
	}
	m->size[number] = was ? 0 : size + 1;
	m->n += was ? (size_t)-1 : 1;
	CHECK_U64(s->n, m->n);
}

/*
 * Numbers that mostly rise, and skip some, and blocks that are freed soon, or
 * late, or never: for many of the last kind the ring grows.
 */
static void check_stock(uint64_t seed, unsigned frees)
{
	static struct stock_model m;
	struct stock_walk w = { .place = 0 };
	struct stock s;
	struct rand r;
	uint64_t next = 1;
	size_t n = 0;

	memset(&m, 0, sizeof(m));
	rand_init(&r, seed, 0);
	stock_init(&s, true, false);
	while (next < STOCK_NUMBERS) {
		uint64_t x = rand_u64(&r), number = next;
		uint64_t size = x >> 62 ? x >> 50 : x >> 20;

		if (x % 100 < frees)
			number = next - 1 - x / 128 % min_u64(next, 300);
		else if (x % 1000 == 999)
			number = x / 1024 % next;
		else if (x % 5000 == 998)
			next += x / 8192 % 9000;
		else
			next++;
		if (number < STOCK_NUMBERS)
			stock_step(&s, &m, number, size);
	}
	while (stock_next(&s, &w)) {
		CHECK_U64(w.block.size + 1, m.size[w.block.addr]);
		n++;
	}
	CHECK_U64(n, m.n);
	for (uint64_t i = 0; i < STOCK_NUMBERS; i++)
		if (m.size[i])
			stock_step(&s, &m, i, 0);
	CHECK_U64(s.n, 0);
	stock_fini(&s);
}

TEST(numbers_of_objects)
{
	static const unsigned frees[] = { 0, 10, 45, 60 };

	for (size_t i = 0; i < countof(frees); i++)
		check_stock(i, frees[i]);
}

/* Far apart and close together, beyond all that objects can be. */
TEST(numbers_that_leap)
{
	static const uint64_t numbers[] = {
		5, 6, 1 << 20, (1 << 20) + 1, 7, UINT64_MAX, 0,
		UINT64_C(1) << 63, (UINT64_C(1) << 63) - 1, 1 << 20 | 2, 4,
	};
	struct live_block b = { .size = 3 };
	struct stock s;

	stock_init(&s, true, false);
	for (size_t i = 0; i < countof(numbers); i++) {
		b.addr = numbers[i];
		stock_add(&s, &b);
	}
	CHECK_U64(s.n, countof(numbers));
	for (size_t i = 0; i < countof(numbers); i++) {
		CHECK(stock_take(&s, numbers[i], &b));
		CHECK_U64(b.addr, numbers[i]);
		CHECK(!stock_take(&s, numbers[i], &b));
	}
	CHECK_U64(s.n, 0);
	stock_fini(&s);
}

TEST(a_time_line_of_any_length)
{
	static struct timeline t;
	uint64_t first = 1000;

	timeline_init(&t, first);
	timeline_set(&t, 0, 5);
	for (uint64_t i = 0; i < 1000000; i++) {
		timeline_at(&t, first + i);
		timeline_set(&t, 0, i);
	}
	CHECK(timeline_steps(&t) > TIMELINE_STEPS / 4);
	CHECK_U64(timeline_max(&t, 0, 0, TIMELINE_STEPS), 999999);
	for (size_t i = 0; i + 1 < timeline_steps(&t); i++)
		CHECK_U64(timeline_max(&t, 0, i, i + 1),
			  ((i + 1) << t.shift) - 1);
	/* What was is still so, until there is something else. */
	timeline_set(&t, 0, 3);
	timeline_at(&t, UINT64_MAX);
	CHECK_U64(timeline_max(&t, 0, 5, timeline_steps(&t)), 3);
	CHECK_U64(timeline_max(&t, 0, 0, 1), 999999);
}

/* ---- many rates ---- */

enum { RATE_BLOCKS = 4000, RATE_GROUPS = 25, RATE_SEEDS = 500 };
static struct rates_block rate_blocks[RATE_BLOCKS];

static void make_rate_blocks(void)
{
	struct rand r;

	rand_init(&r, 8, 8);
	for (size_t i = 0; i < RATE_BLOCKS; i++)
		rate_blocks[i] = (struct rates_block){
			.size = rand_u64(&r) % (i % 50 ? 400 : 20000),
			.group = (uint32_t)(rand_u64(&r) % RATE_GROUPS),
		};
}

TEST(what_is_expected_of_a_rate_comes_true)
{
	static const uint64_t rate[] = { 1, 512, 4096, 65536 };
	struct rates_options o = { .first_seed = 1, .n_seeds = RATE_SEEDS };
	struct rate_result got;
	struct rates r;

	make_rate_blocks();
	for (int e = ESTIMATOR_HT; e <= ESTIMATOR_STATMEMPROF; e++) {
		o.estimator = e;
		rates_init(&r, &o, rate_blocks, RATE_BLOCKS, RATE_GROUPS);
		for (size_t i = 0; i < countof(rate); i++) {
			double rse;

			rates_try(&r, rate[i], &got);
			rse = got.error / SCORE_Z;
			CHECK_NEAR(got.tried_samples, got.samples,
				   4 * sqrt(got.samples / RATE_SEEDS) +
				   (e == ESTIMATOR_STATMEMPROF));
			CHECK_NEAR(got.bias, 0,
				   4 * rse / sqrt(RATE_SEEDS) + 1e-12);
			CHECK_NEAR(got.rms, rse, 0.15 * rse + 1e-12);
			if (e == ESTIMATOR_HT)
				CHECK_NEAR(got.covers, 0.955,
					   rate[i] == 1 ? 0.045 : 0.03);
		}
		rates_fini(&r);
	}
}

/* What has less than a hundredth of all bytes says nothing of a rate. */
TEST(tiny_groups_are_no_top_ones)
{
	const struct rates_block blocks[] = {
		{ .size = 100000, .group = 0 }, { .size = 999, .group = 1 },
		{ .size = 50000, .group = 2 }, { .size = 3, .group = 1 },
	};
	struct rates_options o = { .n_seeds = 0 };
	struct rates r;

	rates_init(&r, &o, blocks, countof(blocks), 3);
	CHECK_U64(r.n_top, 2);
	CHECK_U64(r.top[0], 0);
	CHECK_U64(r.top[1], 2);
	rates_fini(&r);
}

TEST(the_rate_that_is_needed)
{
	struct rates_options o = { .n_seeds = 0 };
	struct rate_result got;
	struct rates r;
	uint64_t rate;

	make_rate_blocks();
	rates_init(&r, &o, rate_blocks, RATE_BLOCKS, RATE_GROUPS);
	CHECK_U64(r.n_top, RATES_TOP);
	for (size_t i = 1; i < r.n_top; i++)
		CHECK(r.group_bytes[r.top[i - 1]] >= r.group_bytes[r.top[i]]);
	rate = rates_needed(&r, 0.05, r.n_top);
	CHECK(rate > 1 && rate < 65536);
	/* Of fewer and larger ones, a coarser one; none asks for nothing. */
	CHECK(rates_needed(&r, 0.05, 1) >= rate);
	CHECK_U64(rates_n_large(&r, 0), r.n_top);
	CHECK_U64(rates_n_large(&r, 1.1), 0);
	rates_try(&r, rate, &got);
	CHECK(got.top_error <= 0.05);
	rates_try(&r, rate * 2, &got);
	CHECK(got.top_error > 0.05);
	CHECK_U64(rates_needed(&r, 0, r.n_top), 1);
	rates_fini(&r);
	rates_init(&r, &o, NULL, 0, 0);
	rates_try(&r, 512, &got);
	CHECK_NEAR(got.samples, 0, 0);
	rates_fini(&r);
}

TEST(buckets_of_lifetimes)
{
	uint64_t last = UINT64_MAX;

	for (unsigned i = 0; i < 976 + 32; i++) {
		uint64_t from = life_bucket_first(i), to = life_bucket_last(i);

		if (i >= 32 + 59 * 16)
			break;
		CHECK_U64(from, last + 1);
		CHECK(to >= from && to - from <= from / 16);
		CHECK_U64(life_bucket(from), i);
		CHECK_U64(life_bucket(to), i);
		last = to;
	}
	CHECK_U64(last, UINT64_MAX);
	CHECK(life_bucket(UINT64_MAX) < 1 << LIFE_BUCKET_BITS);
}

/* By hand: Kaplan and Meier's own steps on ten blocks. */
TEST(quantiles_with_survivors)
{
	static const struct life_count c[] = {
		{ 1, 2, 0 }, { 2, 0, 3 }, { 3, 1, 0 }, { 5, 2, 1 }, { 9, 0, 1 },
	};

	/* 0.8 left; then 5 at risk: 0.64; then 4: 0.32; then one lives on. */
	CHECK_NEAR(life_quantile(c, 5, 0.2, true), 1, 0);
	CHECK_NEAR(life_quantile(c, 5, 0.3, true), 3, 0);
	CHECK_NEAR(life_quantile(c, 5, 0.5, true), 5, 0);
	CHECK_NEAR(life_quantile(c, 5, 0.9, true), -1, 0);
	/* Of the five that were freed: 1 1 3 5 5. */
	CHECK_NEAR(life_quantile(c, 5, 0.5, false), 3, 0);
	CHECK_NEAR(life_quantile(c, 5, 0.9, false), 5, 0);
	CHECK_NEAR(life_quantile(c, 0, 0.5, false), -1, 0);
}

/* Many lifetimes: quantiles are those of the sorted list, to 1/16. */
TEST(quantiles_of_many)
{
	enum { N = 20000 };
	static double all[N];
	struct life_count counts[1 << LIFE_BUCKET_BITS] = { { 0, 0, 0 } };
	struct lifetimes l;
	struct rand r;

	rand_init(&r, 4, 4);
	lifetimes_init(&l);
	for (size_t i = 0; i < N; i++) {
		all[i] = floor(pow(10, 9 * rand_unit(&r)));
		lifetimes_add(&l, (uint32_t)i % 977, (uint64_t)all[i])
			->freed++;
	}
	for (size_t i = 0; i < l.size; i++)
		if (l.slots[i].key)
			counts[(l.slots[i].key - 1) % (1 << LIFE_BUCKET_BITS)]
				.freed += l.slots[i].freed;
	for (unsigned i = 0; i < countof(counts); i++)
		counts[i].bucket = i;
	for (int q = 10; q < 100; q += 10) {
		double got = life_quantile(counts, countof(counts), q / 100.0,
					   true);
		size_t below = 0;

		for (size_t i = 0; i < N; i++)
			below += all[i] <= got * (1 + 1 / 16.0);
		CHECK(below >= N / 100 * (size_t)q);
		below = 0;
		for (size_t i = 0; i < N; i++)
			below += all[i] < got * (1 - 1 / 16.0);
		CHECK(below <= N / 100 * (size_t)q);
	}
	lifetimes_fini(&l);
}
