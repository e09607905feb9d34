/* SPDX-License-Identifier: MIT */
#include "analysis/content.h"
#include "corewalk/target.h"
#include "unit/check.h"

#include "base/mem.h"

/* The library is in the same megabyte as the heap. */
enum { HEAP = 0x10080000, LIBRARY = HEAP - 0x20000, PROGRAM = 0x20000000,
       STACK = 0x30000000, SIZE = 0x10000 };

static struct space *sp;
static struct heap heap;
static struct index ix;
static struct shape_space space;

static void begin(void)
{
	uint32_t rw = SEG_R | SEG_W;
	struct err err;
	size_t x;

	sp = target_mem_new(MACHINE_X86_64);
	target_mem_add(sp, LIBRARY, SIZE, rw, NULL, SIZE, "/lib/library");
	target_mem_add(sp, HEAP, SIZE, rw, NULL, SIZE, NULL);
	target_mem_add(sp, PROGRAM, SIZE, SEG_R, NULL, SIZE, "/bin/program");
	target_mem_add(sp, STACK, SIZE, rw, NULL, SIZE, NULL);
	sp->modules = mem_zalloc(2 * sizeof(*sp->modules));
	sp->n_modules = 2;
	sp->modules[0] = (struct module){ .start = LIBRARY,
					  .end = LIBRARY + SIZE };
	sp->modules[1] = (struct module){ .start = PROGRAM,
					  .end = PROGRAM + SIZE };
	target_mem_done(sp);
	heap_init(&heap);
	heap_add_allocator(&heap, "test", "1", "none");
	heap_add_arena(&heap, 0, 0, "test");
	x = heap_add_blocks(&heap, 0, HEAP, HEAP + SIZE, 4, 16, 8);
	extent_mark(&heap.extents[x], HEAP);
	heap_finish(&heap);
	CHECK(index_init(&ix, &heap, GIB, &err));
	shape_space_init(&space, &ix, sp);
}

static void end(void)
{
	shape_space_fini(&space);
	index_fini(&ix);
	heap_fini(&heap);
	space_close(sp);
}

TEST(kinds_of_words)
{
	begin();
	CHECK_U64(shape_word(&space, 0), WORD_ZERO);
	CHECK_U64(shape_word(&space, 4711), WORD_SMALL);
	CHECK_U64(shape_word(&space, 0xdeadbeef), WORD_INT);
	CHECK_U64(shape_word(&space, HEAP + 0x123), WORD_HEAP);
	CHECK_U64(shape_word(&space, PROGRAM + 8), WORD_MODULE);
	CHECK_U64(shape_word(&space, LIBRARY + 8), WORD_MODULE);
	CHECK_U64(shape_word(&space, LIBRARY + SIZE), WORD_HEAP);
	CHECK_U64(shape_word(&space, STACK + 8), WORD_ADDR);
	CHECK_U64(shape_word(&space, 0x6867666564636261), WORD_TEXT);
	CHECK_U64(shape_word(&space, 0x636261), WORD_TEXT);
	CHECK_U64(shape_word(&space, 0x0163626100000000), WORD_OTHER);
	CHECK_U64(shape_word(&space, 0x3ff8000000000000), WORD_REAL);
	CHECK_U64(shape_word(&space, UINT64_MAX), WORD_OTHER);
	end();
}

/* "0n" is two words, zero and a small number. */
static struct shape shape(uint32_t size, const char *kinds)
{
	static const char letters[] = "0nihmatr?";
	struct shape s = { .size = size, .words = (uint32_t)strlen(kinds) };

	for (unsigned i = 0; kinds[i]; i++)
		shape_set(&s, i, (enum word_kind)
			  (strchr(letters, kinds[i]) - letters));
	return s;
}

/* The clusters that these shapes become, apart by blanks. */
static const char *merged(const char *const *kinds)
{
	static char ret[400];
	struct shape_group groups[8];
	struct shape *clusters;
	size_t n = 0, n_clusters;
	struct str s;

	str_init(&s);
	for (; kinds[n]; n++)
		groups[n] = (struct shape_group){
			shape(40, kinds[n]), 100 - n, (uint32_t)n, 0,
		};
	clusters = shape_merge(groups, n, &n_clusters);
	for (size_t i = 0; i < n_clusters; i++)
		shape_name(&clusters[i], &s);
	snprintf(ret, sizeof(ret), "%s", s.text);
	str_fini(&s);
	free(clusters);
	return ret;
}

#define MERGED(...) merged((const char *const []){ __VA_ARGS__, NULL })

TEST(what_does_not_contradict_is_one_shape)
{
	CHECK_STR(MERGED("hh0n", "0hin"), "40: ptr ptr int num");
	CHECK_STR(MERGED("hn", "hi", "h?"), "40: ptr ?");
	CHECK_STR(MERGED("hn", "nh"), "40: ptr num40: num ptr");
	CHECK_STR(MERGED("hm", "ha"), "40: ptr prog40: ptr addr");
	/* Two words are two, three are a run. */
	CHECK_STR(MERGED("hhnnn0"), "40: ptr ptr num*3 0");
}

TEST(one_word_in_eight_may_differ)
{
	CHECK_STR(MERGED("hhhhnnnn", "hhhtnnnn"), "40: ptr*4 num*4");
	CHECK_STR(MERGED("hhhhnnnn", "hhttnnnn"),
		  "40: ptr*4 num*440: ptr ptr text text num*4");
	CHECK_STR(MERGED("hhhhnnn", "hhhtnnn"),
		  "40: ptr*4 num*340: ptr*3 text num*3");
}

TEST(large_blocks_are_told_by_powers_of_two)
{
	struct shape s = shape(shape_size(1025), "h");
	struct str name;

	CHECK_U64(shape_size(1024), 1024);
	CHECK_U64(shape_size(1025), shape_size(2047));
	str_init(&name);
	shape_name(&s, &name);
	CHECK_STR(name.text, "1K-2K: ptr");
	str_clear(&name);
	s = shape(shape_size(3 * MIB), "h");
	shape_name(&s, &name);
	CHECK_STR(name.text, "2M-4M: ptr");
	str_fini(&name);
}

static uint8_t bytes[8192];

/* What a block of the first n of bytes holds. */
static enum content content(uint64_t n)
{
	struct shape s = { .size = shape_size(n) };

	s.words = (uint32_t)min_u64(n / 8, SHAPE_WORDS);
	for (unsigned i = 0; i < s.words; i++)
		shape_set(&s, i, shape_word(&space,
					    load_word(bytes + 8 * i, 8)));
	return content_of(&space, bytes, n, n, &s);
}

static enum content of_words(uint64_t first, uint64_t step, uint64_t n)
{
	memset(bytes, 0, sizeof(bytes));
	for (uint64_t i = 0; i < n / 8; i++) {
		uint64_t v = first + i * step;

		memcpy(bytes + 8 * i, &v, 8);
	}
	return content(n);
}

TEST(words_of_one_kind)
{
	begin();
	CHECK_U64(of_words(0, 0, 24), CONTENT_ZERO);
	CHECK_U64(of_words(0, 0, 8192), CONTENT_ZERO);
	CHECK_U64(of_words(HEAP, 16, 256), CONTENT_POINTERS);
	CHECK_U64(of_words(HEAP, 8, 8192), CONTENT_POINTERS);
	CHECK_U64(of_words(HEAP, 16, 120), CONTENT_NONE);
	CHECK_U64(of_words(3, 5, 8192), CONTENT_NUMBERS);
	CHECK_U64(of_words(3 | UINT64_C(4) << 32, 5, 256), CONTENT_NUMBERS);
	CHECK_U64(of_words(0x3ff8000000000000, 1 << 20, 256), CONTENT_REALS);
	CHECK_U64(of_words(UINT64_MAX, 0, 64), CONTENT_REPEATED);
	CHECK_U64(of_words(UINT64_MAX, 0, 8192), CONTENT_REPEATED);
	CHECK_U64(of_words(12345, UINT64_C(0x9e3779b97f4a7c15), 2048),
		  CONTENT_RANDOM);
	/* A hole in large zeros is seen if it is large. */
	of_words(0, 0, 8192);
	memset(bytes + 1024, 0xab, 1024);
	CHECK(content(8192) != CONTENT_ZERO);
	end();
}

static enum content of_text(const char *text, uint64_t n)
{
	memset(bytes, 0, sizeof(bytes));
	strcpy((char *)bytes, text);
	return content(n);
}

TEST(texts)
{
	begin();
	CHECK_U64(of_text("hello, world", 24), CONTENT_TEXT);
	CHECK_U64(of_text("hello, world", 200), CONTENT_PADDED);
	CHECK_U64(of_text("hello", 200), CONTENT_NONE);
	memset(bytes, 0, sizeof(bytes));
	for (int i = 0; i < 40; i++)
		memcpy(bytes + 20 * i, "\x01\x02words of a text\x03", 18);
	CHECK_U64(content(800), CONTENT_PIECES);
	end();
}

TEST(nothing_in_the_file)
{
	struct shape s = { .size = 64 };

	begin();
	CHECK_U64(content_of(&space, NULL, 64, 0, &s), CONTENT_ABSENT);
	end();
}
