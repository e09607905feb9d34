/* SPDX-License-Identifier: MIT */
/*
 * Bitmaps of blocks cost memory by the bytes that extents have.  Structures of
 * a hundred bytes may claim megabytes that are not in the file: of these only
 * the start may cost something.
 */
#include "check.h"
#include "corewalk/gtcmalloc.h"
#include "corewalk/jemalloc.h"
#include "corewalk/target.h"
#include "corewalk/tcmalloc.h"

enum {
	N = 64,			/* side by side, free and in use by turns */
	BYTES = 512 << 10,
	WORD_BYTES = 64 * 8,	/* that one word of a plane is for */
};

#define BASE UINT64_C(0x7f1200000000)

static struct space *memory(uint64_t avail)
{
	struct space *sp = target_mem_new(MACHINE_X86_64);

	target_mem_add(sp, BASE, (uint64_t)N * BYTES, SEG_R | SEG_W, NULL,
		       avail, NULL);
	target_mem_done(sp);
	return sp;
}

static vaddr start_of(size_t i)
{
	return BASE + i * BYTES;
}

static void walk_je(struct space *sp, struct heap *h, uint32_t allocator)
{
	struct je_extent x[N];
	struct jemalloc j = {
		.sp = sp, .layout = &(struct je_layout){ .release = "5.3" },
		.n_classes = 1, .size = { BYTES }, .extents = x,
		.n_extents = N,
	};

	for (size_t i = 0; i < N; i++)
		x[i] = (struct je_extent){
			.start = start_of(i), .user = start_of(i),
			.bytes = BYTES, .size = i & 1 ? 0 : BYTES,
			.class = i & 1, .state = i & 1 ? JE_DIRTY : JE_ACTIVE,
			.agrees = true,
		};
	je_walk(&j, h, allocator);
}

static void walk_tc(struct space *sp, struct heap *h, uint32_t allocator)
{
	struct tc_span s[N];
	struct tcmalloc t = { .sp = sp, .spans = s, .n_spans = N };

	for (size_t i = 0; i < N; i++)
		s[i] = (struct tc_span){
			.start = start_of(i), .bytes = BYTES,
			.where = i & 1 ? TC_NORMAL : TC_IN_USE,
		};
	heap_add_arena(h, allocator, 0, "tcmalloc");
	tc_walk(&t, h, allocator, 0);
}

static void walk_gtc(struct space *sp, struct heap *h, uint32_t allocator)
{
	struct gtc_span s[N / 2];
	uint64_t huge[N / 4];
	struct gtcmalloc t = {
		.sp = sp, .spans = s, .n_spans = N / 2, .huge = huge,
		.n_huge = N / 4,
	};

	for (size_t i = 0; i < N / 2; i++)
		s[i] = (struct gtc_span){
			.start = start_of(2 * i), .bytes = BYTES,
		};
	for (size_t i = 0; i < N / 4; i++)
		huge[i] = start_of(4 * i) >> GTC_HUGE_SHIFT;
	heap_add_arena(h, allocator, 0, "tcmalloc");
	gtc_walk(&t, h, allocator, 0);
}

typedef void walker(struct space *, struct heap *, uint32_t);

/* Words of the planes; all blocks must be there in any case. */
static uint64_t words(walker *walk, uint64_t avail)
{
	struct space *sp = memory(avail);
	struct heap h;
	uint64_t sum = 0;

	heap_init(&h);
	walk(sp, &h, heap_add_allocator(&h, "test", "", ""));
	heap_finish(&h);
	for (size_t i = 0; i < h.n_extents; i++)
		sum += h.extents[i].n_words;
	if (CHECK_U64(h.n_arenas, 1)) {
		const struct arena *a = &h.arenas[0];

		CHECK_U64(a->state[BLOCK_USED].blocks, N / 2);
		CHECK_U64(a->state[BLOCK_USED].bytes, BYTES * (N / 2));
		CHECK_U64(a->state[BLOCK_UNSORTED].bytes, BYTES * (N / 2));
		CHECK_U64(a->undecoded_bytes, 0);
	}
	heap_fini(&h);
	space_close(sp);
	return sum;
}

static void check(walker *walk)
{
	uint64_t whole = words(walk, (uint64_t)N * BYTES);

	CHECK(whole >= (uint64_t)N * BYTES / WORD_BYTES);
	CHECK_U64(words(walk, 0), N);
	/* A half that is there costs what it costs. */
	CHECK(words(walk, (uint64_t)N / 2 * BYTES) <= whole / 2 + N);
}

TEST(jemalloc)
{
	check(walk_je);
}

TEST(tcmalloc)
{
	check(walk_tc);
}

TEST(google_tcmalloc)
{
	check(walk_gtc);
}

TEST(sparse_is_less_than_a_64th)
{
	struct space *sp = memory(2 * BYTES);

	CHECK(!space_sparse(sp, BASE, BASE + 2 * BYTES));
	CHECK(!space_sparse(sp, BASE, BASE + 128 * BYTES));
	CHECK(space_sparse(sp, BASE, BASE + 129 * BYTES));
	CHECK(space_sparse(sp, BASE + 2 * BYTES, BASE + 3 * BYTES));
	CHECK(space_sparse(sp, BASE - 1, BASE));
	space_close(sp);
}
