/* SPDX-License-Identifier: MIT */
/* What leads to a block, by sweeps over a heap made by hand. */
#include "analysis/kin.h"
#include "unit/check.h"
#include "unit/toy_heap.h"

enum { BLOCKS = 8, ALL = 100 };

struct family {
	struct toy toy;
	struct index ix;
	struct kin kin;
	struct edges_piece pieces[2];	/* halves of the heap */
	vaddr at[BLOCKS];
};

/* Blocks of two pages, so that each has one to itself. */
static void begin(struct family *f)
{
	toy_init(&f->toy);
	for (size_t i = 0; i < BLOCKS; i++)
		f->at[i] = toy_malloc(&f->toy, 0x2000);
}

static void complete(struct family *f)
{
	vaddr middle = f->at[BLOCKS / 2] - 16;
	struct err err;

	toy_done(&f->toy);
	CHECK(index_init(&f->ix, &f->toy.h, GIB, &err));
	kin_init(&f->kin, &f->ix);
	f->pieces[0] = (struct edges_piece){
		.bytes = target_mem_at(f->toy.sp, TOY_HEAP),
		.start = TOY_HEAP, .n = middle - TOY_HEAP, .word = 8,
	};
	f->pieces[1] = (struct edges_piece){
		.bytes = target_mem_at(f->toy.sp, middle), .start = middle,
		.n = TOY_HEAP + TOY_SIZE - middle, .word = 8,
	};
}

static void end(struct family *f)
{
	kin_fini(&f->kin);
	index_fini(&f->ix);
	toy_fini(&f->toy);
}

static void add(struct family *f, size_t i)
{
	kin_add(&f->kin, index_find(&f->ix, f->at[i]));
}

/* "..x..xx.": which blocks are in the set after a sweep. */
static const char *sweep(struct family *f, bool back)
{
	static char ret[BLOCKS + 1];

	CHECK(kin_sweep(&f->kin, f->pieces, 2, back, ALL));
	for (size_t i = 0; i < BLOCKS; i++)
		ret[i] = kin_has(&f->kin, index_find(&f->ix, f->at[i]))
			? 'x' : '.';
	return ret;
}

TEST(a_list_in_the_order_of_a_sweep_takes_one)
{
	struct family f;

	begin(&f);
	for (size_t i = 1; i + 1 < BLOCKS; i++)
		toy_put(&f.toy, f.at[i + 1] + 8, f.at[i]);
	complete(&f);
	add(&f, 1);
	CHECK_STR(sweep(&f, true), ".xx.....");
	CHECK_STR(sweep(&f, false), ".xxxxxxx");
	CHECK_STR(sweep(&f, true), ".xxxxxxx");
	CHECK_U64(f.kin.n, BLOCKS - 1);
	end(&f);
}

TEST(the_other_way_round)
{
	struct family f;

	begin(&f);
	for (size_t i = 0; i + 2 < BLOCKS; i++)
		toy_put(&f.toy, f.at[i] + 0x1ff8, f.at[i + 1] + 0x1fff);
	complete(&f);
	add(&f, BLOCKS - 2);
	CHECK_STR(sweep(&f, false), ".....xx.");
	CHECK_STR(sweep(&f, true), "xxxxxxx.");
	end(&f);
}

TEST(what_leads_nowhere_near)
{
	struct family f;

	begin(&f);
	toy_put(&f.toy, f.at[1], f.at[4] - 8);	/* a size field */
	toy_put(&f.toy, f.at[2], f.at[4] + 0x2008);	/* the next one's */
	toy_put(&f.toy, f.at[3], f.at[5]);
	toy_put(&f.toy, f.at[4], f.at[6]);	/* where it leads itself */
	toy_put(&f.toy, f.at[5] - 8, f.at[4]);	/* in nobody's words */
	extent_set_state(&f.toy.h.extents[0], f.at[7] - 16, BLOCK_BINNED);
	toy_put(&f.toy, f.at[7] + 16, f.at[4]);	/* in a free block */
	complete(&f);
	add(&f, 4);
	kin_add(&f.kin, 0);
	CHECK_STR(sweep(&f, false), "....x...");
	CHECK_STR(sweep(&f, true), "....x...");
	CHECK_U64(f.kin.n, 1);
	end(&f);
}

TEST(roots_are_not_kin)
{
	struct family f;

	begin(&f);
	toy_put(&f.toy, f.at[0], f.at[1]);
	toy_put(&f.toy, f.at[7], f.at[1]);
	complete(&f);
	f.pieces[0].root = 1;
	add(&f, 1);
	CHECK_STR(sweep(&f, false), ".x.....x");
	end(&f);
}

TEST(all_pages_of_a_block_count)
{
	struct family f;

	begin(&f);
	complete(&f);
	add(&f, 3);
	for (uint64_t in = 0; in < 0x2000; in += 0x800)
		CHECK(kin_may_have(&f.kin, f.at[3] + in - f.ix.base));
	CHECK(!kin_may_have(&f.kin, f.at[5] - f.ix.base));
	end(&f);
}

TEST(a_sweep_ends_at_its_limit)
{
	struct family f;

	begin(&f);
	for (size_t i = 0; i + 1 < BLOCKS; i++)
		toy_put(&f.toy, f.at[i + 1], f.at[i]);
	complete(&f);
	add(&f, 0);
	CHECK(!kin_sweep(&f.kin, f.pieces, 2, false, 4));
	CHECK_U64(f.kin.n, 5);
	CHECK(kin_sweep(&f.kin, f.pieces, 2, false, BLOCKS));
	CHECK_U64(f.kin.n, BLOCKS);
	end(&f);
}
