/* SPDX-License-Identifier: MIT */
#include "corewalk/space.h"

#include <time.h>

#include "check.h"
#include "core_build.h"
#include "corewalk/target.h"

/*
 * 0x10000  4 KB of bytes 1, 2, 3, ...
 * 0x11000  8 KB of which the first 16 bytes are there
 * 0x13000  4 KB, nothing there
 * 0x20000  4 KB of a file
 */
static struct space *make_image(void)
{
	struct space *sp = target_mem_new(MACHINE_X86_64);
	uint8_t bytes[4096];
	size_t i;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i + 1);
	/* Not in order: done() sorts. */
	target_mem_add(sp, 0x20000, 4096, SEG_R | SEG_W, bytes, 4096, "/f");
	target_mem_add(sp, 0x13000, 4096, SEG_R | SEG_W, NULL, 0, NULL);
	target_mem_add(sp, 0x10000, 4096, SEG_R | SEG_W, bytes, 4096, NULL);
	target_mem_add(sp, 0x11000, 8192, SEG_R | SEG_W, bytes, 16, NULL);
	target_mem_done(sp);
	return sp;
}

TEST(three_answers)
{
	struct space *sp = make_image();

	CHECK_U64(space_why(sp, 0x10000), SPACE_OK);
	CHECK_U64(space_why(sp, 0x1100f), SPACE_OK);
	CHECK_U64(space_why(sp, 0x11010), SPACE_UNDUMPED);
	CHECK_U64(space_why(sp, 0x13fff), SPACE_UNDUMPED);
	CHECK_U64(space_why(sp, 0x14000), SPACE_UNMAPPED);
	CHECK_U64(space_why(sp, 0xffff), SPACE_UNMAPPED);
	CHECK_U64(space_why(sp, 0), SPACE_UNMAPPED);
	CHECK_U64(space_why(sp, UINT64_MAX), SPACE_UNMAPPED);
	CHECK_STR(space_why_text(SPACE_UNMAPPED), "not mapped");
	CHECK_STR(space_why_text(SPACE_UNDUMPED), "not in the core file");
	space_close(sp);
}

TEST(words_of_each_width)
{
	struct space *sp = make_image();
	uint64_t v64 = 7, word = 7;
	uint32_t v32;
	uint16_t v16;
	uint8_t v8;

	CHECK(space_u8(sp, 0x10002, &v8));
	CHECK_U64(v8, 3);
	CHECK(space_u16(sp, 0x10001, &v16));
	CHECK_U64(v16, 0x0302);
	CHECK(space_u32(sp, 0x10001, &v32));
	CHECK_U64(v32, 0x05040302);
	CHECK(space_u64(sp, 0x10001, &v64));
	CHECK_U64(v64, 0x0908070605040302);
	CHECK(space_word(sp, 0x10001, &word));
	CHECK_U64(word, v64);
	sp->word = 4;
	CHECK(space_word(sp, 0x10001, &word));
	CHECK_U64(word, 0x05040302);
	space_close(sp);
}

TEST(a_word_across_segments)
{
	struct space *sp = make_image();
	uint64_t v = 7;

	/* Not adjacent in our memory: no view, but a word. */
	CHECK(!space_view(sp, 0x10ffc, 8));
	CHECK(space_u64(sp, 0x10ffc, &v));
	CHECK_U64(v, 0x0403020100fffefd);
	space_close(sp);
}

TEST(nothing_is_written_at_a_hole)
{
	struct space *sp = make_image();
	uint64_t v = 7;
	uint8_t b = 7;

	CHECK(!space_u64(sp, 0x11009, &v));
	CHECK(!space_u64(sp, 0x13000, &v));
	CHECK(!space_u64(sp, 0x14000, &v));
	CHECK(!space_u64(sp, UINT64_MAX - 3, &v));
	CHECK(!space_u8(sp, 0x11010, &b));
	CHECK_U64(v, 7);
	CHECK_U64(b, 7);
	CHECK(space_u64(sp, 0x11008, &v));
	space_close(sp);
}

TEST(read_stops_at_the_first_hole)
{
	struct space *sp = make_image();
	uint8_t buf[64] = { 0 };

	CHECK_U64(space_read(sp, 0x10ff8, buf, 64), 24);
	CHECK_U64(buf[7], 0);
	CHECK_U64(buf[8], 1);
	CHECK_U64(buf[23], 16);
	CHECK_U64(buf[24], 0);
	CHECK_U64(space_read(sp, 0x12000, buf, 64), 0);
	CHECK_U64(space_read(sp, 0x20fff, buf, 64), 1);
	space_close(sp);
}

TEST(views_end_where_bytes_end)
{
	struct space *sp = make_image();
	const uint8_t *p;
	uint64_t n = 9;

	CHECK(space_view(sp, 0x10000, 4096));
	CHECK(space_view(sp, 0x10fff, 1));
	CHECK(!space_view(sp, 0x11000, 17));
	CHECK(!space_view(sp, 0x11000, UINT64_MAX));
	CHECK(!space_view(sp, 0x13000, 0));
	p = space_view_max(sp, 0x11004, &n);
	CHECK_U64(n, 12);
	CHECK(p && p[0] == 5);
	CHECK(!space_view_max(sp, 0x11010, &n));
	CHECK_U64(n, 0);
	CHECK(!space_view_max(sp, 0x50000, &n));
	space_close(sp);
}

/* Two mappings that follow each other in memory and in the file are one. */
TEST(a_view_across_segments_of_a_core)
{
	static struct core_build b = { .is64 = true, .machine = 62 };
	uint8_t bytes[4096];
	struct space *sp;
	struct err err;
	uint8_t *data;
	const uint8_t *p;
	uint64_t n;
	size_t size;

	memset(bytes, 'a', sizeof(bytes));
	build_load(&b, 0x10000, 4096, PF_RW, bytes, 4096);
	build_load(&b, 0x11000, 4096, PF_R, bytes, 4096);
	build_load(&b, 0x13000, 4096, PF_RW, bytes, 4096);
	data = build_core(&b, &size);
	sp = target_open_core_memory(data, size, NULL, &err);
	if (!CHECK(sp))
		return;
	p = space_view(sp, 0x10ff0, 4096);
	CHECK(p && p[0] == 'a' && p[4095] == 'a');
	CHECK(space_view(sp, 0x10000, 8192));
	CHECK(!space_view(sp, 0x10000, 8193));
	space_view_max(sp, 0x10001, &n);
	CHECK_U64(n, 8191);
	/* Adjacent in the file, not in memory. */
	CHECK(!space_view(sp, 0x11ff8, 16));
	space_close(sp);
	free(data);
}

TEST(strings)
{
	struct space *sp = target_mem_new(MACHINE_X86_64);
	char text[9] = "unset";

	target_mem_add(sp, 0x1000, 8, SEG_R, "abc\0defg", 8, NULL);
	target_mem_add(sp, 0x1008, 8, SEG_R, "hi\0", 3, NULL);
	target_mem_done(sp);
	CHECK(space_string(sp, 0x1000, text, 8));
	CHECK_STR(text, "abc");
	CHECK(space_string(sp, 0x1003, text, 8));
	CHECK_STR(text, "");
	CHECK(space_string(sp, 0x1004, text, 8));
	CHECK_STR(text, "defghi");
	CHECK(space_string(sp, 0x1004, text, 6));
	CHECK(!space_string(sp, 0x1004, text, 5));
	CHECK(!space_string(sp, 0x100b, text, 8));
	CHECK(!space_string(sp, 0x900, text, 8));
	space_close(sp);
}

TEST(segments_by_address)
{
	struct space *sp = make_image();

	CHECK(!space_seg(sp, 0xffff));
	CHECK_U64(space_seg(sp, 0x10000)->start, 0x10000);
	CHECK_U64(space_seg(sp, 0x10fff)->start, 0x10000);
	CHECK_U64(space_seg(sp, 0x13fff)->start, 0x13000);
	CHECK(!space_seg(sp, 0x1ffff));
	CHECK_U64(space_seg(sp, 0x20000)->start, 0x20000);
	CHECK(!space_seg(sp, 0x21000));
	/* The last hit does not matter. */
	CHECK_U64(space_seg(sp, 0x11000)->start, 0x11000);
	space_close(sp);
	sp = target_mem_new(MACHINE_I386);
	target_mem_done(sp);
	CHECK(!space_seg(sp, 0));
	CHECK(!space_view(sp, 0, 1));
	CHECK_U64(sp->word, 4);
	space_close(sp);
}

TEST(stored_bytes)
{
	struct space *sp = make_image();

	CHECK_U64(space_stored(sp, 0x10000, 0x14000), 4096 + 16);
	CHECK_U64(space_stored(sp, 0x10ff0, 0x11008), 24);
	CHECK_U64(space_stored(sp, 0, UINT64_MAX), 2 * 4096 + 16);
	CHECK_U64(space_stored(sp, 0x12000, 0x20000), 0);
	CHECK_U64(space_stored(sp, 0x10008, 0x10008), 0);
	/* File offsets: 0x10000 is at 0, 0x11000 at 4096, 0x20000 behind. */
	sp->n_runs = 2;
	sp->runs = calloc(2, sizeof(*sp->runs));
	sp->runs[0] = (struct extent_run){ 1024, 2048 };
	sp->runs[1] = (struct extent_run){ 4096 + 8, 4096 + 32 };
	CHECK_U64(space_stored(sp, 0x10000, 0x11000), 1024);
	CHECK_U64(space_stored(sp, 0x10600, 0x10700), 0x100);
	CHECK_U64(space_stored(sp, 0x11000, 0x13000), 8);
	CHECK_U64(space_stored(sp, 0x20000, 0x21000), 16);
	CHECK_U64(space_stored(sp, 0x10000, 0x10400), 0);
	space_close(sp);
}

/* Each segment that holds nothing is passed over, at no cost of its own. */
TEST(next_stored_byte)
{
	struct space *sp = make_image();

	CHECK_U64(space_next_stored(sp, 0), 0x10000);
	CHECK_U64(space_next_stored(sp, 0x10007), 0x10007);
	CHECK_U64(space_next_stored(sp, 0x11010), 0x20000);
	CHECK_U64(space_next_stored(sp, 0x13008), 0x20000);
	CHECK_U64(space_next_stored(sp, 0x15000), 0x20000);
	CHECK_U64(space_next_stored(sp, 0x20fff), 0x20fff);
	CHECK_U64(space_next_stored(sp, 0x21000), UINT64_MAX);
	CHECK_U64(space_next_stored(sp, UINT64_MAX), UINT64_MAX);
	sp->n_runs = 1;
	sp->runs = calloc(1, sizeof(*sp->runs));
	sp->runs[0] = (struct extent_run){ 4096 + 8, 4096 + 32 };
	space_index(sp);
	CHECK_U64(space_next_stored(sp, 0), 0x11008);
	CHECK_U64(space_next_stored(sp, 0x1100f), 0x1100f);
	CHECK_U64(space_next_stored(sp, 0x11010), 0x20000);
	CHECK_U64(space_next_stored(sp, 0x20010), UINT64_MAX);
	space_close(sp);
}

enum { UNSTORED = 1 << 16 };

/* Of each segment one page was mapped, and nothing written. */
static struct space *unstored(size_t n)
{
	struct space *sp = target_mem_new(MACHINE_X86_64);

	for (size_t i = 0; i < n; i++)
		target_mem_add(sp, (i + 1) << 13, 4096, SEG_R | SEG_W, NULL, 0,
			       NULL);
	target_mem_add(sp, (n + 1) << 13, 4096, SEG_R | SEG_W, NULL, 4096,
		       NULL);
	target_mem_done(sp);
	return sp;
}

/* Ticks of the processor's time for a search from each of n segments. */
static double search_each(size_t n)
{
	struct space *sp = unstored(n);
	clock_t start = clock(), took;

	for (size_t round = 0; round < UNSTORED / n; round++)
		for (size_t i = 0; i < n; i++)
			CHECK_U64(space_next_stored(sp, (i + 1) << 13),
				  (n + 1) << 13);
	took = clock() - start;
	space_close(sp);
	return (double)took;
}

/* As many searches; a search over 512 times as many segments is no walk. */
TEST(a_search_passes_over_many)
{
	CHECK(search_each(UNSTORED) < 20 * search_each(UNSTORED / 512));
}

TEST(kinds_of_segments)
{
	struct space *sp = target_mem_new(MACHINE_X86_64);
	const struct seg *s;

	target_mem_add(sp, 0x1000, 4096, SEG_R | SEG_W, NULL, 4096, NULL);
	target_mem_add(sp, 0x2000, 4096, 0, NULL, 4096, NULL);
	target_mem_add(sp, 0x3000, 8192, SEG_R, NULL, 4096, "/lib");
	target_mem_add(sp, 0x5000, 8192, SEG_R, NULL, 8192, "/lib");
	target_mem_add(sp, 0x7000, 4096, SEG_R | SEG_W, NULL, 0, "/lib");
	target_mem_add(sp, 0x8000, 4096, SEG_R | SEG_W | SEG_SHARED, NULL,
		       4096, NULL);
	target_mem_add(sp, 0x9000, 4096, SEG_R | SEG_KERNEL, NULL, 4096, NULL);
	target_mem_add(sp, 0xa000, 4096, SEG_R, NULL, 4096, NULL);
	target_mem_done(sp);
	s = sp->segs;
	CHECK(space_seg_private(sp, &s[0]) && space_seg_anon(&s[0]));
	/* Without access, but there; without access, and not there. */
	CHECK(space_seg_private(sp, &s[1]));
	sp->segs[1].stored = 0;
	CHECK(!space_seg_private(sp, &s[1]));
	sp->segs[1].stored = 4096;
	CHECK(!space_seg_private(sp, &s[2]) && !space_seg_anon(&s[2]));
	CHECK(space_seg_private(sp, &s[3]));
	CHECK(space_seg_private(sp, &s[4]));
	CHECK(!space_seg_private(sp, &s[5]) && !space_seg_anon(&s[5]));
	CHECK(!space_seg_private(sp, &s[6]) && !space_seg_anon(&s[6]));
	CHECK(space_seg_private(sp, &s[7]));
	/* Relocated constants: one page, but not the first of the file. */
	sp->segs[2].file_off = 0x1000;
	CHECK(space_seg_private(sp, &s[2]));
	/* gdb stores the first mapping of a file whole. */
	sp->writer = "gdb";
	CHECK(!space_seg_private(sp, &s[3]));
	/* And zeros where nothing can be read. */
	CHECK(!space_seg_private(sp, &s[1]));
	space_close(sp);
}

TEST(runs_of_segments)
{
	struct space *sp = target_mem_new(MACHINE_X86_64);

	target_mem_add(sp, 0x1000, 4096, SEG_R | SEG_W, NULL, 4096, NULL);
	target_mem_add(sp, 0x2000, 4096, SEG_R | SEG_W | SEG_X, NULL, 0, NULL);
	target_mem_add(sp, 0x3000, 4096, SEG_R, NULL, 4096, NULL);
	target_mem_add(sp, 0x4000, 4096, SEG_R | SEG_W, NULL, 4096, NULL);
	target_mem_add(sp, 0x6000, 4096, SEG_R | SEG_W, NULL, 4096, NULL);
	target_mem_done(sp);
	CHECK_U64(space_run_end(sp, 0x1800), 0x3000);
	CHECK_U64(space_run_end(sp, 0x2000), 0x3000);
	CHECK_U64(space_run_end(sp, 0x3010), 0x3010);
	CHECK_U64(space_run_end(sp, 0x4000), 0x5000);
	CHECK_U64(space_run_end(sp, 0x5000), 0x5000);
	space_close(sp);
}

TEST(threads_and_modules_by_address)
{
	struct space *sp = make_image();

	sp->n_threads = 2;
	sp->threads = calloc(2, sizeof(*sp->threads));
	sp->threads[0].sp = 0x13010;
	sp->threads[1].sp = 0x20000;
	CHECK(space_thread_on(sp, 0x13000, 0x14000) == &sp->threads[0]);
	CHECK(space_thread_on(sp, 0x20000, 0x21000) == &sp->threads[1]);
	CHECK(!space_thread_on(sp, 0x10000, 0x13010));
	sp->n_modules = 2;
	sp->modules = calloc(2, sizeof(*sp->modules));
	sp->modules[0].start = 0x10000;
	sp->modules[0].end = 0x12000;
	sp->modules[1].start = 0x20000;
	sp->modules[1].end = 0x21000;
	CHECK(space_module(sp, 0x11fff) == &sp->modules[0]);
	CHECK(!space_module(sp, 0x12000));
	CHECK(!space_module(sp, 0xffff));
	CHECK(space_module(sp, 0x20000) == &sp->modules[1]);
	CHECK(!space_module(sp, 0x21000));
	space_close(sp);
}

/* Every kind of read counts once, and fails when it is its turn. */
TEST(the_nth_read_fails)
{
	struct space *sp = make_image();
	uint8_t b;
	uint64_t v, n;
	char text[8];

	sp->fail_at = 3;
	CHECK(space_u8(sp, 0x10000, &b));
	CHECK(space_u64(sp, 0x10000, &v));
	CHECK(!space_u64(sp, 0x10000, &v));
	CHECK(space_u64(sp, 0x10000, &v));
	CHECK_U64(sp->reads, 4);
	sp->fail_at = 5;
	CHECK(!space_view(sp, 0x10000, 8));
	sp->fail_at = 6;
	CHECK(!space_view_max(sp, 0x10000, &n));
	CHECK_U64(n, 0);
	sp->fail_at = 7;
	CHECK_U64(space_read(sp, 0x10000, &v, 8), 0);
	sp->fail_at = 8;
	CHECK(!space_string(sp, 0x100fc, text, 7));
	sp->fail_at = 9;
	CHECK(!space_word(sp, 0x10000, &v));
	CHECK(space_word(sp, 0x10000, &v));
	CHECK_U64(sp->reads, 10);
	space_close(sp);
}

TEST(many_segments)
{
	struct space *sp = target_mem_new(MACHINE_X86_64);
	uint64_t i, n = 100000, wrong = 0;

	for (i = 0; i < n; i++)
		target_mem_add(sp, (n - i) * 0x2000, 0x1000, SEG_R | SEG_W,
			       NULL, 0, NULL);
	target_mem_done(sp);
	for (i = 1; i <= n; i++) {
		const struct seg *seg = space_seg(sp, i * 0x2000 + 0xfff);

		wrong += !seg || seg->start != i * 0x2000;
		wrong += space_seg(sp, i * 0x2000 + 0x1000) != NULL;
	}
	CHECK_U64(wrong, 0);
	space_close(sp);
}

TEST(image_bytes_can_be_changed)
{
	struct space *sp = make_image();
	uint64_t v;

	memset(target_mem_at(sp, 0x10010), 0xee, 8);
	CHECK(space_u64(sp, 0x10010, &v));
	CHECK_U64(v, 0xeeeeeeeeeeeeeeee);
	CHECK(!target_mem_at(sp, 0x11010));
	CHECK(!target_mem_at(sp, 0x30000));
	space_close(sp);
}
