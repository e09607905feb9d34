/* SPDX-License-Identifier: MIT */
#include "replay/models.h"

#include <stdlib.h>
#include <string.h>

#include "base/rand.h"
#include "check.h"
#include "replay/filters.h"
#include "replay/replay.h"

static struct size_classes classes;

/* Zend/zend_alloc_sizes.h of PHP 7.0 to 8.3: size, slots, pages. */
TEST(bins_of_zend)
{
	static const uint32_t want[][3] = {
		{ 8, 512, 1 }, { 16, 256, 1 }, { 24, 170, 1 }, { 32, 128, 1 },
		{ 40, 102, 1 }, { 48, 85, 1 }, { 56, 73, 1 }, { 64, 64, 1 },
		{ 80, 51, 1 }, { 96, 42, 1 }, { 112, 36, 1 }, { 128, 32, 1 },
		{ 160, 25, 1 }, { 192, 21, 1 }, { 224, 18, 1 }, { 256, 16, 1 },
		{ 320, 64, 5 }, { 384, 32, 3 }, { 448, 9, 1 }, { 512, 8, 1 },
		{ 640, 32, 5 }, { 768, 16, 3 }, { 896, 9, 2 }, { 1024, 8, 2 },
		{ 1280, 16, 5 }, { 1536, 8, 3 }, { 1792, 16, 7 },
		{ 2048, 8, 4 }, { 2560, 8, 5 }, { 3072, 4, 3 },
	};

	size_classes_init(&classes, MODEL_ZEND);
	CHECK_U64(classes.n, countof(want));
	for (size_t i = 0; i < countof(want); i++) {
		const struct size_class *c = &classes.list[i];

		CHECK_U64(c->size, want[i][0]);
		CHECK_U64(c->span / c->size, want[i][1]);
		CHECK_U64(c->span, want[i][2] * 4096);
	}
	CHECK(size_class_of(&classes, 3073) < 0);
	CHECK_U64(size_class_large(&classes, 3073, false), 4096);
	CHECK_U64(size_class_large(&classes, 4097, false), 8192);
}

/* As tc_nallocx() of gperftools 2.10 says: what a request of a size gets. */
TEST(classes_of_tcmalloc)
{
	static const uint64_t want[][2] = {
		{ 0, 8 }, { 8, 8 }, { 9, 16 }, { 17, 32 }, { 129, 144 },
		{ 800, 896 }, { 2817, 3072 }, { 3329, 4096 },
		{ 10241, 12288 }, { 26625, 32768 }, { 90113, 98304 },
		{ 262144, 262144 }, { 262145, 270336 },
	};

	size_classes_init(&classes, MODEL_TCMALLOC);
	CHECK_U64(classes.n, 85);
	for (size_t i = 0; i < countof(want); i++) {
		int k = size_class_of(&classes, want[i][0]);

		CHECK_U64(k < 0 ? size_class_large(&classes, want[i][0], false)
				: classes.list[k].size, want[i][1]);
	}
}

/* jemalloc(3): 8, 16 apart up to 128, then four for each doubling. */
TEST(classes_of_jemalloc)
{
	static const uint64_t want[][2] = {
		{ 0, 8 }, { 9, 16 }, { 17, 32 }, { 113, 128 }, { 129, 160 },
		{ 257, 320 }, { 8193, 10240 }, { 14336, 14336 },
		{ 14337, 16384 }, { 16385, 20480 }, { 65537, 81920 },
		{ 1048577, 1310720 },
	};

	size_classes_init(&classes, MODEL_JEMALLOC);
	CHECK_U64(classes.n, 36);
	for (size_t i = 0; i < countof(want); i++) {
		int k = size_class_of(&classes, want[i][0]);

		CHECK_U64(k < 0 ? size_class_large(&classes, want[i][0], false)
				: classes.list[k].size, want[i][1]);
	}
	/* 5 pages are 128 blocks of 160 bytes, and nothing is left. */
	CHECK_U64(classes.list[size_class_of(&classes, 160)].span, 20480);
}

/* Every size has the least class that holds it. */
TEST(classes_hold_what_they_are_for)
{
	for (int m = MODEL_TCMALLOC; m < SIZE_MODELS; m++) {
		size_classes_init(&classes, (enum size_model)m);
		for (uint64_t s = 0; s <= classes.list[classes.n - 1].size;
		     s++) {
			int k = size_class_of(&classes, s);

			CHECK(k >= 0 && classes.list[k].size >= s);
			CHECK(!k || classes.list[k - 1].size < s);
		}
	}
}

/* ---- spans, against the simplest that can be written ---- */

enum { EVENTS = 6000, LIVE = 400, SPANS = 2000 };

static struct trace_event events[EVENTS];
static size_t n_events;

static struct plain {
	uint64_t size;
	bool live;
	int class, span;
} blocks[LIVE];
static unsigned used[SIZE_CLASSES][SPANS];

static void make_events(uint64_t seed, struct plain *b)
{
	size_t live = 0;
	struct rand r;

	rand_init(&r, seed, 1);
	memset(b, 0, LIVE * sizeof(*b));
	for (n_events = 0; n_events < EVENTS; n_events++) {
		uint64_t i = rand_u64(&r) % LIVE;
		/* Mostly up, then mostly down. */
		bool up = rand_u64(&r) % 8 < (n_events < EVENTS / 2 ? 6 : 3);

		up = !live || (up && live < LIVE);
		live += up ? 1 : (size_t)-1;
		while (b[i].live == up)
			i = (i + 1) % LIVE;
		b[i].live = up;
		events[n_events] = (struct trace_event){
			.kind = up ? TRACE_MALLOC : TRACE_FREE,
			.tick = n_events, .addr = 0x10000 + i * 0x100010,
			.size = up ? rand_u64(&r) % (i % 7 ? 700 : 400000) : 0,
			.thread = (uint32_t)(i % 3),
		};
	}
}

/* Rounded and spans at the end. */
static void simulate(enum size_model model, struct model_sum *ret)
{
	*ret = (struct model_sum){ .rounded = 0 };
	size_classes_init(&classes, model);
	memset(blocks, 0, sizeof(blocks));
	memset(used, 0, sizeof(used));
	for (size_t i = 0; i < n_events; i++) {
		struct plain *b = &blocks[(events[i].addr - 0x10000) /
					  0x100010];
		int s = 0;

		b->live = events[i].kind == TRACE_MALLOC;
		if (!b->live && b->class >= 0)
			used[b->class][b->span]--;
		if (!b->live)
			continue;
		b->size = events[i].size;
		b->class = size_class_of(&classes, b->size);
		if (b->class < 0)
			continue;
		const struct size_class *c = &classes.list[b->class];

		while (used[b->class][s] == c->span / c->size)
			s++;
		used[b->class][s]++;
		b->span = s;
	}
	for (int i = 0; i < LIVE; i++)
		if (blocks[i].live)
			ret->rounded += blocks[i].class >= 0
				? classes.list[blocks[i].class].size
				: size_class_large(&classes, blocks[i].size,
						   false);
	for (int i = 0; i < LIVE; i++)
		if (blocks[i].live && blocks[i].class < 0)
			ret->spans += size_class_large(&classes,
						       blocks[i].size, false);
	for (int k = 0; k < SIZE_CLASSES; k++)
		for (int s = 0; s < SPANS; s++)
			ret->spans += used[k][s] ? classes.list[k].span : 0;
}

TEST(spans)
{
	for (uint64_t seed = 1; seed <= 8; seed++) {
		static struct models m;

		make_events(seed, blocks);
		models_init(&m);
		models_events(&m, events, n_events / 3);
		models_events(&m, events + n_events / 3,
			      n_events - n_events / 3);
		for (int i = MODEL_TCMALLOC; i < SIZE_MODELS; i++) {
			struct model_sum want;

			simulate((enum size_model)i, &want);
			CHECK_U64(m.now.sum[i].rounded, want.rounded);
			CHECK_U64(m.now.sum[i].spans, want.spans);
		}
		CHECK(m.peak.requested >= m.now.requested);
		CHECK(m.now.sum[0].rounded >= m.now.requested +
		      8 * m.now.blocks);
		models_fini(&m);
	}
}

/* Nothing that a trace says lets sums wrap around. */
TEST(sizes_that_cannot_be)
{
	static struct models m;

	n_events = 0;
	for (int i = 0; i < 300; i++)
		events[n_events++] = (struct trace_event){
			.kind = TRACE_MALLOC, .addr = (uint64_t)i,
			.size = i % 2 ? UINT64_MAX - (uint64_t)i
				      : UINT64_C(1) << 55,
		};
	models_init(&m);
	models_events(&m, events, n_events);
	CHECK(m.now.sum[2].rounded >= m.now.requested);
	CHECK(m.now.requested < UINT64_C(1) << 63);
	models_fini(&m);
}

/* ---- filters ---- */

TEST(filters_see_what_the_replay_samples)
{
	struct replay_options o = {
		.rate = 2000, .seed = 3, .ns_per_tick = 1,
	};
	struct filters_options fo = { .rate = 2000, .seed = 3 };
	struct filters f;
	struct replay r;

	make_events(5, blocks);
	replay_init(&r, &o);
	replay_events(&r, events, n_events);
	replay_finish(&r);
	filters_init(&f, &fo);
	filters_events(&f, events, 100);
	filters_events(&f, events + 100, n_events - 100);
	CHECK_U64(f.samples, r.profile.total.view[VIEW_ALLOCATED].n);
	CHECK_U64(f.sampled_frees, r.profile.n_freed);
	CHECK_U64(f.frees, r.frees);
	CHECK(f.sampled_frees > 100 && f.sampled_frees < f.frees);
	CHECK_U64(f.costs[FILTER_TABLE].wrong, 0);
	CHECK_U64(f.costs[FILTER_BITMAP].wrong, 0);
	CHECK_U64(f.costs[FILTER_FOOTER].loads, f.frees);
	CHECK_U64(f.costs[FILTER_FOOTER].bytes, 8 * f.most_live);
	CHECK(f.costs[FILTER_TABLE].loads >= f.frees);
	CHECK(f.costs[FILTER_BYTES].loads >= f.frees + f.sampled_frees);
	CHECK(f.costs[FILTER_BYTES].loads < f.costs[FILTER_TABLE].loads * 2);
	/* Blocks are a page and more apart: what is on its page is its own. */
	CHECK_U64(f.costs[FILTER_PAGE_BIT].wrong, 0);
	filters_fini(&f);
	replay_fini(&r);
}

/* Two blocks on a page, one of them sampled; and on another, none. */
TEST(a_page_with_a_sample)
{
	const struct filters_options o = { .rate = 1, .seed = 1 };
	struct filters_options never = { .rate = SAMPLER_NEVER };
	struct trace_event e[] = {
		{ .kind = TRACE_MALLOC, .addr = 0x5000, .size = 10 },
		{ .kind = TRACE_FREE, .addr = 0x5800 },
		{ .kind = TRACE_FREE, .addr = 0x6000 },
		{ .kind = TRACE_FREE, .addr = 0x5000 },
		{ .kind = TRACE_FREE, .addr = 0x5000 },
	};
	struct filters f;

	filters_init(&f, &o);
	filters_events(&f, e, countof(e));
	CHECK_U64(f.frees, 4);
	CHECK_U64(f.sampled_frees, 1);
	CHECK_U64(f.costs[FILTER_PAGE_BIT].wrong, 1);
	/* To the bit of 0x5800, to the node of 0x6000, to the bit twice. */
	CHECK_U64(f.costs[FILTER_BITMAP].loads, 4 + 3 + 4 + 4);
	CHECK_U64(f.costs[FILTER_BITMAP].bytes, 3 * 32768 + 64);
	filters_fini(&f);
	filters_init(&f, &never);
	filters_events(&f, e, countof(e));
	CHECK_U64(f.samples, 0);
	CHECK_U64(f.costs[FILTER_BITMAP].loads, f.frees);
	CHECK_U64(f.costs[FILTER_PAGE_BIT].loads, 0);
	filters_fini(&f);
}
