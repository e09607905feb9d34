/* SPDX-License-Identifier: MIT */
#include "unit/check.h"

#include "analysis/dup.h"
#include "analysis/dup_blocks.h"
#include "analysis/period.h"
#include "analysis/search.h"
#include "analysis/strings.h"
#include "analysis/tails.h"
#include "base/rand.h"
#include "unit/toy_heap.h"

/* ---- bounded memory ---- */

enum { MANY = 10000000, LENGTH = 9, PLANTED = 3, COPIES = 5000 };

static uint8_t planted[PLANTED][LENGTH] = {
	"planted1", "planted2", "planted3",
};

/* Ten million strings that overlap, and three that come again and again. */
static void add_many(struct dup_table *t, const uint8_t *bytes)
{
	for (uint32_t i = 0; i < MANY; i++) {
		struct dup_item item = {
			.bytes = bytes + i, .n = LENGTH, .cost = LENGTH,
			.addr = i,
		};

		dup_add(t, &item);
		if (i % (MANY / COPIES))
			continue;
		for (unsigned k = 0; k < PLANTED; k++) {
			item.bytes = planted[k];
			dup_add(t, &item);
		}
	}
	dup_flush(t);
}

TEST(memory_is_bounded_and_what_is_left_is_exact)
{
	uint8_t *bytes = mem_alloc(MANY + LENGTH);
	const uint64_t heap = (uint64_t)MANY * LENGTH;
	struct dup_sketch sketch;
	struct dup_table t;
	struct rand rand;
	size_t most;

	rand_init(&rand, 1, 1);
	for (size_t i = 0; i < MANY + LENGTH; i++)
		bytes[i] = (uint8_t)rand_u64(&rand);
	dup_sketch_init(&sketch, heap);
	dup_table_init(&t, &sketch);
	add_many(&t, bytes);
	t.second = true;
	add_many(&t, bytes);
	CHECK_U64(t.items, MANY + PLANTED * COPIES);
	most = t.cap * sizeof(*t.entries) + sketch.bytes +
		(t.index_mask + 1) * sizeof(*t.index);
	CHECK(t.n <= t.room);
	CHECK(most < heap / 5);
	CHECK(t.floor > 2 && !dup_is_exact(&t));
	CHECK_U64(t.given_up, 0);
	dup_finish(&t);
	CHECK(t.n >= PLANTED);
	for (size_t i = 0; i < PLANTED && i < t.n; i++) {
		CHECK_U64(t.entries[i].copies, COPIES);
		CHECK_U64(t.entries[i].bytes, COPIES * LENGTH);
	}
	CHECK(t.floor <= COPIES * LENGTH);
	dup_table_fini(&t);
	dup_sketch_fini(&sketch);
	free(bytes);
}

/* Two workers, each half of the items, and then one with all of them. */
TEST(two_tables_are_as_good_as_one)
{
	enum { N = 200000, TEXTS = 30011 };
	char (*texts)[12] = mem_alloc(TEXTS * sizeof(*texts));
	struct dup_sketch sketch;
	struct dup_table two[2];
	uint64_t copies = 0;

	for (unsigned i = 0; i < TEXTS; i++)
		snprintf(texts[i], sizeof(texts[i]), "text %u", i);
	dup_sketch_init(&sketch, 8 << 20);
	dup_table_init(&two[0], &sketch);
	dup_table_init(&two[1], &sketch);
	for (unsigned pass = 0; pass < 2; pass++) {
		for (unsigned i = 0; i < N; i++) {
			const char *text = texts[(uint64_t)i * i % TEXTS];
			struct dup_item item = {
				.bytes = (const uint8_t *)text,
				.n = strlen(text), .cost = 16,
				.addr = i + 1, .own = i & 1,
			};

			dup_add(&two[i / 64 % 2], &item);
		}
		for (unsigned k = 0; k < 2; k++) {
			dup_flush(&two[k]);
			two[k].second = true;
		}
	}
	dup_merge(&two[0], &two[1]);
	dup_finish(&two[0]);
	CHECK(dup_is_exact(&two[0]));
	for (size_t i = 0; i < two[0].n; i++) {
		copies += two[0].entries[i].copies;
		CHECK_U64(two[0].entries[i].bytes,
			  16 * two[0].entries[i].copies);
	}
	/* Squares of a prime's rests: each but that of 0 has two roots. */
	CHECK_U64(two[0].n, TEXTS / 2 + 1);
	CHECK_U64(copies, N);
	CHECK_U64(two[0].entries[0].addr != 0, 1);
	dup_table_fini(&two[0]);
	dup_table_fini(&two[1]);
	dup_sketch_fini(&sketch);
	free(texts);
}

/* ---- records ---- */

/* Fields of many kinds, of which so many percent are zero. */
static void fill_record(uint8_t *to, unsigned size, unsigned empty,
			struct rand *rand, uint32_t i)
{
	uint64_t pointer = 0x7f1200000000 + rand_u64(rand) % 4096 * 16;
	double real = rand_unit(rand) * 1000;
	uint32_t words[14];

	for (unsigned k = 0; k < size / 4; k++)
		words[k] = k % 2 ? 0 : i + k + 1;
	if (size >= 16 && rand_u64(rand) % 100 >= empty)
		memcpy(words, &pointer, 8);
	else if (size >= 16)
		memset(words, 0, 8);
	if (size >= 24)
		memcpy(words + 2, &real, 8);
	if (size == 12) {
		float x = (float)real;

		memcpy(words + 1, &x, 4);
		words[2] = (uint32_t)rand_u64(rand) % 1000 + 1;
	}
	if (size >= 40)
		memcpy(words + 6, "nameno.1", 8);
	memcpy(to, words, size);
}

TEST(records_of_many_sizes)
{
	static const unsigned sizes[] = { 12, 16, 24, 40, 48, 56 };
	struct rand rand;

	rand_init(&rand, 1, 2);
	for (size_t s = 0; s < countof(sizes); s++)
		for (unsigned empty = 0; empty <= 50; empty += 25) {
			unsigned n = 65536 / sizes[s], period;
			uint8_t *bytes = mem_zalloc(65536);

			for (unsigned i = 0; i < n; i++)
				fill_record(bytes + i * sizes[s], sizes[s],
					    empty, &rand, i);
			CHECK_U64(period_find(bytes, 65536, &period),
				  PERIOD_RECORDS);
			CHECK_U64(period, sizes[s]);
			free(bytes);
		}
}

TEST(blocks_without_records)
{
	enum { N = 65536 };
	uint8_t *bytes = mem_zalloc(N);
	unsigned period;
	struct rand rand;

	CHECK_U64(period_find(bytes, N, &period), PERIOD_ZERO);
	memset(bytes, 0x5a, N);
	CHECK_U64(period_find(bytes, N, &period), PERIOD_VALUE);
	rand_init(&rand, 1, 3);
	for (size_t i = 0; i < N; i++)
		bytes[i] = (uint8_t)rand_u64(&rand);
	CHECK_U64(period_find(bytes, N, &period), PERIOD_NONE);
	for (size_t i = 0; i < N; i++)
		bytes[i] = (uint8_t)(' ' + rand_u64(&rand) % 90);
	CHECK_U64(period_find(bytes, N, &period), PERIOD_TEXT);
	CHECK_U64(period, 0);
	for (size_t i = 0; i < N; i += 8) {
		uint64_t v = 0x7f1200000000 + rand_u64(&rand) % 65536 * 16;

		memcpy(bytes + i, &v, 8);
	}
	CHECK_U64(period_find(bytes, N, &period), PERIOD_ADDRESSES);
	/* What holds in the first part alone is no period of the block. */
	for (size_t i = 0; i < N / 2; i++)
		fill_record(bytes + i / 24 * 24, 24, 0, &rand, (uint32_t)i);
	CHECK(period_find(bytes, N, &period) != PERIOD_RECORDS);
	free(bytes);
}

/* ---- a heap ---- */

static void put_text(struct toy *t, vaddr addr, const char *text)
{
	memcpy(target_mem_at(t->sp, addr), text, strlen(text));
}

TEST(strings_end_with_their_block)
{
	struct strings s;
	struct toy t;

	toy_init(&t);
	for (int i = 0; i < 3; i++) {
		vaddr a = toy_malloc(&t, 40), b = toy_malloc(&t, 40);

		/* 40 usable bytes, then 8 of the next header. */
		put_text(&t, a + 34, "behind");
		put_text(&t, b, i == 2 ? "other text" : "some text");
		put_text(&t, b + 20, "cut\1off\1tab\there");
		/* Not printable and not cleared either. */
		put_text(&t, b + 38, "\xc3\xa4");
	}
	toy_done(&t);
	strings_init(&s, t.sp, &t.h, NULL);
	CHECK_U64(s.n, 3);
	for (size_t i = 0; i < s.n; i++) {
		const struct dup_entry *e = &s.items[i];
		bool some = e->n == 9 && !memcmp(e->text, "some text", 9);
		bool tab = e->n == 8 && !memcmp(e->text, "tab\there", 8);
		bool behind = e->n == 6 && !memcmp(e->text, "behind", 6);

		CHECK(some || tab || behind);
		CHECK_U64(e->copies, some ? 2 : 3);
	}
	/* With "other text", which is there once. */
	CHECK_U64(s.found, 9);
	CHECK_U64(s.floor, 0);
	strings_fini(&s);
	toy_fini(&t);
}

static uint64_t count_matches(struct toy *t, const char *regex,
			      enum search_in in)
{
	struct err err = { .kind = ERR_NONE };
	struct search_pattern *p = search_compile(regex, &err);
	struct search s;
	uint64_t ret;

	if (!CHECK(p))
		return 0;
	search_init(&s, p, t->sp, &t->h, in, 10, NULL);
	ret = s.matches;
	CHECK(s.n == min_u64(ret, 10) && !s.gave_up);
	search_fini(&s);
	search_pattern_free(p);
	return ret;
}

TEST(matches_cross_pages_but_not_blocks)
{
	struct toy t;
	vaddr a, b, big, freed;

	toy_init(&t);
	a = toy_malloc(&t, 40);
	b = toy_malloc(&t, 40);
	freed = toy_chunk(&t, 48, BLOCK_BINNED);
	big = toy_malloc(&t, 3 << 20);
	put_text(&t, a + 36, "needle");
	put_text(&t, b, "needle");
	put_text(&t, b + 37, "needle");
	put_text(&t, freed, "needle");
	/* Over the border of a page, and over that of a window. */
	put_text(&t, big + 0x2000 - (big & 0xfff) - 3, "needle");
	put_text(&t, big + (1 << 20) - 2, "needle");
	put_text(&t, TOY_DATA + 16, "needle");
	toy_done(&t);
	CHECK_U64(count_matches(&t, "needle", SEARCH_BLOCKS), 3);
	CHECK_U64(count_matches(&t, "needle", SEARCH_HEAP), 4);
	CHECK_U64(count_matches(&t, "needle", SEARCH_ALL), 5);
	CHECK_U64(count_matches(&t, "^needle", SEARCH_BLOCKS), 3);
	CHECK_U64(count_matches(&t, "\\Aneedle", SEARCH_BLOCKS), 1);
	CHECK_U64(count_matches(&t, "nee$", SEARCH_BLOCKS), 1);
	CHECK_U64(count_matches(&t, "needle\\x00{60000}", SEARCH_BLOCKS), 2);
	/* One that is longer than what a window sees of the next one. */
	CHECK_U64(count_matches(&t, "needle\\x00{60000}\\x00{60000}"
				"\\x00*", SEARCH_BLOCKS), 2);
	CHECK_U64(count_matches(&t, "(?s)needle.*?needle", SEARCH_BLOCKS), 1);
	toy_fini(&t);
}

TEST(equal_blocks)
{
	struct dup_blocks d;
	struct toy t;

	toy_init(&t);
	for (int i = 0; i < 6; i++) {
		vaddr a = toy_malloc(&t, 56), b = toy_malloc(&t, 56);

		/* Two pairs, and two that are alone in their last byte. */
		put_text(&t, a, i < 4 ? "pairs" : "alone");
		toy_put(&t, a + 48, i < 4 ? 7 + (uint64_t)i % 2 : 7 +
			(uint64_t)i);
		for (unsigned k = 0; k < 56; k += 8)
			toy_put(&t, b + k, i < 4 ? 0 : 0x1234);
	}
	toy_done(&t);
	dup_blocks_init(&d, t.sp, &t.h, NULL);
	CHECK_U64(d.compared.blocks, 6);
	CHECK_U64(d.zero.blocks, 4);
	CHECK_U64(d.filled.blocks, 2);
	CHECK_U64(d.distinct, 2);
	CHECK_U64(d.copies, 4);
	CHECK_U64(d.saved, 2 * 64);
	dup_blocks_fini(&d);
	toy_fini(&t);
}

static void put_three(struct toy *t, vaddr at, vaddr start, uint64_t used,
		      uint64_t size)
{
	toy_put(t, at, start);
	toy_put(t, at + 8, start + used);
	toy_put(t, at + 16, start + size);
}

TEST(of_two_claims_the_shorter_tail_counts)
{
	struct tails tails;
	struct toy t;
	vaddr block, heads, string;

	toy_init(&t);
	block = toy_malloc(&t, 1000);
	string = toy_malloc(&t, 504);
	heads = toy_malloc(&t, 200);
	put_three(&t, heads, block, 400, 1000);
	put_three(&t, heads + 32, block, 600, 1000);
	put_three(&t, heads + 64, block, 200, 1000);
	/* Text, length, capacity. */
	toy_put(&t, heads + 128, string);
	toy_put(&t, heads + 136, 100);
	toy_put(&t, heads + 144, 503);
	toy_done(&t);
	tails_init(&tails, t.sp, &t.h, &t.w, NULL);
	CHECK(!tails.no_claims);
	CHECK_U64(tails.total[TAILS_VECTOR].total.blocks, 1);
	CHECK_U64(tails.total[TAILS_VECTOR].tail_bytes, 400);
	CHECK_U64(tails.total[TAILS_STRING].total.blocks, 1);
	CHECK_U64(tails.total[TAILS_STRING].tail_bytes, 403);
	CHECK_U64(tails.total[TAILS_ZERO].total.blocks, 0);
	toy_fini(&t);
}
