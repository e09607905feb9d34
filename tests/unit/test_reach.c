/* SPDX-License-Identifier: MIT */
#include "unit/check.h"

#include "analysis/reach.h"
#include "analysis/refs.h"
#include "unit/toy_heap.h"

static uint64_t state = 99;

static uint64_t rnd(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 11) % below;
}

/* A toy whose questions are answered; then made again for the next test. */
struct answer {
	struct graph g;
	struct reach r;
};

static void ask(struct toy *t, struct answer *a)
{
	struct err err = { .kind = ERR_NONE };

	toy_done(t);
	if (!graph_init(&a->g, t->sp, &t->h, &t->w, GIB, NULL, &err)) {
		printf("# %s\n", err.msg);
		abort();
	}
	reach_init(&a->r, &a->g, &t->h, NULL);
}

static void forget(struct toy *t, struct answer *a)
{
	reach_fini(&a->r);
	graph_fini(&a->g);
	toy_fini(t);
}

/* "live", "certain direct", "likely cycle", ...; "none": no block in use. */
static const char *what(const struct answer *a, vaddr addr)
{
	static char ret[40];
	uint32_t block = index_find(&a->g.ix, addr);
	enum reach_grade grade;

	if (!block)
		return "none";
	grade = reach_grade(&a->r, block);
	if (grade == REACH_LIVE)
		return "live";
	snprintf(ret, sizeof(ret), "%s %s", reach_grade_name(grade),
		 reach_kind_name(reach_kind(&a->r, block)));
	return ret;
}

TEST(chains_trees_and_rings)
{
	struct answer a;
	struct toy t;
	vaddr b[10];

	toy_init(&t);
	for (int i = 0; i < 10; i++)
		b[i] = toy_malloc(&t, 40);
	toy_put(&t, TOY_DATA, b[0]);
	toy_put(&t, b[0], b[1]);
	toy_put(&t, b[2], b[3]);	/* a lost chain */
	toy_put(&t, b[3] + 8, b[4]);
	toy_put(&t, b[5], b[6]);	/* a lost ring with a tail */
	toy_put(&t, b[6], b[5]);
	toy_put(&t, b[6] + 8, b[7]);
	toy_put(&t, b[8], b[8]);	/* to itself: nobody else does */
	toy_put(&t, b[9], b[0]);	/* a live one does not save it */
	ask(&t, &a);
	CHECK_STR(what(&a, b[0]), "live");
	CHECK_STR(what(&a, b[1]), "live");
	CHECK_STR(what(&a, b[2]), "certain direct");
	CHECK_STR(what(&a, b[3]), "certain indirect");
	CHECK_STR(what(&a, b[4]), "certain indirect");
	CHECK_STR(what(&a, b[5]), "certain cycle");
	CHECK_STR(what(&a, b[6]), "certain cycle");
	CHECK_STR(what(&a, b[7]), "certain indirect");
	CHECK_STR(what(&a, b[8]), "certain direct");
	CHECK_STR(what(&a, b[9]), "certain direct");
	CHECK_U64(a.r.n_cycles, 1);
	CHECK_U64(reach_lost(&a.r).blocks, 8);
	CHECK_U64(reach_lost(&a.r).bytes, 8 * 48);
	forget(&t, &a);
}

TEST(where_in_a_block_a_pointer_may_point)
{
	struct answer a;
	struct toy t;
	vaddr b[6];

	toy_init(&t);
	for (int i = 0; i < 6; i++)
		b[i] = toy_malloc(&t, 40);
	toy_put(&t, TOY_DATA, b[0] + 39);	/* the last byte */
	toy_put(&t, TOY_DATA + 8, b[1] + 40);	/* one past it */
	toy_put(&t, TOY_DATA + 16, b[3] - 8);	/* a size field */
	toy_put(&t, TOY_DATA + 24, b[5] - 16);	/* the word before */
	toy_put(&t, TOY_DATA + 36, b[2]);	/* not aligned */
	ask(&t, &a);
	CHECK_STR(what(&a, b[0]), "live");
	CHECK_STR(what(&a, b[1]), "certain direct");
	CHECK_STR(what(&a, b[2]), "certain direct");
	CHECK_STR(what(&a, b[3]), "certain direct");
	CHECK_STR(what(&a, b[4]), "live");
	CHECK_STR(what(&a, b[5]), "certain direct");
	forget(&t, &a);
}

TEST(free_blocks_and_the_allocator_hold_nothing)
{
	struct answer a;
	struct toy t;
	vaddr cached, binned, own, b[3];

	toy_init(&t);
	cached = toy_chunk(&t, 48, BLOCK_CACHED);
	binned = toy_chunk(&t, 48, BLOCK_BINNED);
	own = toy_chunk(&t, 48, BLOCK_OVERHEAD);
	for (int i = 0; i < 3; i++)
		b[i] = toy_malloc(&t, 40);
	toy_put(&t, TOY_DATA, cached);
	toy_put(&t, TOY_DATA + 8, binned);
	toy_put(&t, TOY_DATA + 16, own);
	toy_put(&t, cached, b[0]);
	toy_put(&t, binned + 16, b[1]);
	toy_put(&t, own, b[2]);
	/* As in main_arena. */
	toy_put(&t, TOY_DATA + 64, b[0]);
	heap_add_own(&t.h, TOY_DATA + 64, TOY_DATA + 72);
	ask(&t, &a);
	CHECK_STR(what(&a, cached), "none");
	CHECK_STR(what(&a, binned), "none");
	CHECK_STR(what(&a, own), "none");
	for (int i = 0; i < 3; i++)
		CHECK_STR(what(&a, b[i]), "certain direct");
	CHECK_U64(a.r.n_groups, 1);
	CHECK_U64(a.r.groups[0].total.blocks, 3);
	forget(&t, &a);
}

TEST(mappings_are_blocks_of_their_own)
{
	struct answer a;
	struct toy t;
	vaddr b, mapped = TOY_DATA + 0x4000, lost = mapped + 0x2000;

	toy_init(&t);
	b = toy_malloc(&t, 40);
	heap_add_mmapped(&t.h, 0, mapped, mapped + 0x2000, mapped + 16, 0);
	heap_add_mmapped(&t.h, 0, lost, lost + 0x1000, lost + 16, 0);
	/* Its last word belongs to it, as source and as target. */
	toy_put(&t, TOY_DATA, mapped + 0x2000 - 8);
	toy_put(&t, mapped + 0x2000 - 8, b);
	toy_put(&t, TOY_DATA + 8, lost);	/* its header */
	ask(&t, &a);
	CHECK_STR(what(&a, mapped + 16), "live");
	CHECK_STR(what(&a, b), "live");
	CHECK_STR(what(&a, lost + 16), "certain direct");
	CHECK_U64(a.r.grade[REACH_CERTAIN].bytes, 0x1000);
	forget(&t, &a);
}

/* Threads with stacks in the data: one alive, one gone. */
static void add_stacks(struct toy *t)
{
	static const struct where_stack stacks[] = {
		{ .start = TOY_DATA + 0x1000, .end = TOY_DATA + 0x2000 },
		{ .start = TOY_DATA + 0x2000, .end = TOY_DATA + 0x3000,
		  .tcb = TOY_DATA + 0x2f00, .thread = WHERE_NO_THREAD },
		{ .start = TOY_DATA + 0x3000, .end = TOY_DATA + 0x4000,
		  .thread = 1 },
	};

	t->w.stacks = mem_alloc(sizeof(stacks));
	memcpy(t->w.stacks, stacks, sizeof(stacks));
	t->w.n_stacks = countof(stacks);
	t->sp->threads = mem_zalloc(2 * sizeof(*t->sp->threads));
	t->sp->n_threads = 2;
	t->sp->threads[0].sp = TOY_DATA + 0x1800;
	t->sp->threads[0].n_regs = 27;
	/* On a stack of its own: it may come back. */
	t->sp->threads[1].sp = TOY_DATA + 0x8000;
}

TEST(stacks_and_registers)
{
	struct answer a;
	struct reach_hold hold;
	struct toy t;
	vaddr b[7];

	toy_init(&t);
	for (int i = 0; i < 7; i++)
		b[i] = toy_malloc(&t, 40);
	add_stacks(&t);
	toy_put(&t, TOY_DATA + 0x1900, b[0]);
	toy_put(&t, TOY_DATA + 0x1800 - 128, b[1]);	/* the red zone */
	toy_put(&t, TOY_DATA + 0x1800 - 136, b[2]);
	toy_put(&t, TOY_DATA + 0x2500, b[3]);
	toy_put(&t, TOY_DATA + 0x2f08, b[4]);		/* a descriptor */
	toy_put(&t, TOY_DATA + 0x3010, b[5]);
	t.sp->threads[0].regs[5] = b[6] + 8;
	ask(&t, &a);
	CHECK_STR(what(&a, b[0]), "live");
	CHECK_STR(what(&a, b[1]), "live");
	CHECK_STR(what(&a, b[2]), "likely direct");
	CHECK_STR(what(&a, b[3]), "likely direct");
	CHECK_STR(what(&a, b[4]), "live");
	CHECK_STR(what(&a, b[5]), "live");
	CHECK_STR(what(&a, b[6]), "live");
	if (CHECK(reach_held_by(&a.r, index_find(&a.g.ix, b[3]), &hold)))
		CHECK_U64(hold.word, TOY_DATA + 0x2500);
	forget(&t, &a);
}

/* A table of n blocks, which keeps them all alive. */
static void keep_all(struct toy *t, const vaddr *b, int n)
{
	vaddr table = toy_malloc(t, 8 * (uint64_t)n);

	toy_put(t, TOY_DATA, table);
	for (int i = 0; i < n; i++)
		toy_put(t, table + 8 * (uint64_t)i, b[i]);
}

/*
 * n blocks of 16 bytes, which have 24: in the last eight one in so many has
 * something that is no block, and the second one names a block.  They begin
 * with a number of four bytes, which one in so many pads with other than 0.
 */
static void last_word(int n, int junk_every, int padded_every,
		      const char *want)
{
	struct answer a;
	struct toy t;
	vaddr b[200] = { 0 }, lost;

	toy_init(&t);
	lost = toy_malloc(&t, 100);
	for (int i = 0; i < n; i++) {
		b[i] = toy_malloc(&t, 16);
		toy_put(&t, b[i], i % padded_every == 1 ? 0x777700000005 : 5);
		if (i % junk_every == junk_every - 1)
			toy_put(&t, b[i] + 16, 0x7777000000000 + rnd(9999));
	}
	keep_all(&t, b, n);
	toy_put(&t, b[1] + 16, lost);
	ask(&t, &a);
	CHECK_STR(what(&a, lost), want);
	for (int i = 0; i < n; i++)
		CHECK_STR(what(&a, b[i]), "live");
	forget(&t, &a);
}

TEST(slack_is_told_by_what_others_have_there)
{
	last_word(100, 10, 1000, "likely direct");
	last_word(100, 10, 3, "likely direct");
	/* Too few to tell, and a link that is seldom set. */
	last_word(40, 10, 1000, "live");
	last_word(100, 1000, 1000, "live");
}

TEST(links_at_the_end_are_links)
{
	struct answer a;
	struct toy t;
	vaddr b[200];

	toy_init(&t);
	for (int i = 0; i < 200; i++) {
		b[i] = toy_malloc(&t, 24);
		toy_put(&t, b[i], 5);
		if (i)
			toy_put(&t, b[i - 1] + 16, b[i]);
	}
	toy_put(&t, TOY_DATA, b[0]);
	ask(&t, &a);
	CHECK_U64(reach_lost(&a.r).blocks, 0);
	forget(&t, &a);
}

TEST(strings_do_not_hold)
{
	struct answer a;
	struct toy t;
	vaddr text, lost[4], short_one = TOY_DATA, long_one = TOY_DATA + 64;

	toy_init(&t);
	for (int i = 0; i < 4; i++)
		lost[i] = toy_malloc(&t, 40);
	text = toy_malloc(&t, 31);
	/* "abc", and what was there before. */
	toy_put(&t, short_one, short_one + 16);
	toy_put(&t, short_one + 8, 3);
	toy_put(&t, short_one + 16, 0x636261);
	toy_put(&t, short_one + 24, lost[0]);
	/* Ten bytes of thirty. */
	toy_put(&t, long_one, text);
	toy_put(&t, long_one + 8, 10);
	toy_put(&t, long_one + 16, 30);
	toy_put(&t, long_one + 24, lost[1]);
	toy_put(&t, text, 0x6161616161616161);
	toy_put(&t, text + 8, 0x6161);
	toy_put(&t, text + 16, lost[2]);
	/* Not a string: what it points to is no text of that length. */
	toy_put(&t, TOY_DATA + 128, TOY_DATA + 144);
	toy_put(&t, TOY_DATA + 136, 3);
	toy_put(&t, TOY_DATA + 144, 0x64636261);
	toy_put(&t, TOY_DATA + 152, lost[3]);
	ask(&t, &a);
	CHECK_STR(what(&a, text), "live");
	CHECK_STR(what(&a, lost[0]), "likely direct");
	CHECK_STR(what(&a, lost[1]), "likely direct");
	CHECK_STR(what(&a, lost[2]), "likely direct");
	CHECK_STR(what(&a, lost[3]), "live");
	forget(&t, &a);
}

TEST(capacity_and_trees)
{
	struct answer a;
	struct toy t;
	vaddr items, root, b[4];

	toy_init(&t);
	for (int i = 0; i < 4; i++)
		b[i] = toy_malloc(&t, 40);
	items = toy_malloc(&t, 64);
	/* Others of that size, which do not end in a link. */
	for (uint64_t i = 0; i < 3; i++)
		toy_put(&t, TOY_DATA + 256 + 8 * i, toy_malloc(&t, 64));
	root = toy_malloc(&t, 48);
	toy_put(&t, TOY_DATA, items);
	toy_put(&t, TOY_DATA + 8, items + 16);
	toy_put(&t, TOY_DATA + 16, items + 64);
	toy_put(&t, items + 8, b[0]);
	toy_put(&t, items + 16, b[1]);
	toy_put(&t, items + 64, b[2]);	/* behind the capacity */
	/* std::map: padding, colour, root, first, last, count. */
	toy_put(&t, TOY_DATA + 64, b[3]);
	toy_put(&t, TOY_DATA + 80, root);
	toy_put(&t, TOY_DATA + 88, root);
	toy_put(&t, TOY_DATA + 96, root);
	toy_put(&t, TOY_DATA + 104, 1);
	toy_put(&t, root + 8, TOY_DATA + 72);
	ask(&t, &a);
	CHECK_STR(what(&a, b[0]), "live");
	CHECK_STR(what(&a, b[1]), "possible direct");
	CHECK_STR(what(&a, b[2]), "likely direct");
	CHECK_STR(what(&a, b[3]), "likely direct");
	CHECK_U64(reach_lost(&a.r).blocks, 2);
	forget(&t, &a);
}

/* Blocks with random words; marking word by word must say the same. */
enum { MANY = 300, WORDS = 5 };

static void mark_slowly(struct toy *t, const vaddr *b, uint64_t value,
			bool *mark)
{
	for (int i = 0; i < MANY; i++) {
		if (value < b[i] || value >= b[i] + 40 || mark[i])
			continue;
		mark[i] = true;
		for (int k = 0; k < WORDS; k++) {
			uint64_t v = 0;

			space_u64(t->sp, b[i] + 8 * (uint64_t)k, &v);
			mark_slowly(t, b, v, mark);
		}
	}
}

static uint64_t check_random(void)
{
	struct answer a;
	struct toy t;
	vaddr b[MANY], path_root;
	bool mark[MANY] = { false };
	uint64_t wrong = 0;
	struct refs_path path;

	toy_init(&t);
	for (int i = 0; i < MANY; i++)
		b[i] = toy_malloc(&t, 40);
	for (int i = 0; i < MANY; i++)
		for (int k = 0; k < WORDS - 1; k++)
			if (!rnd(4))
				toy_put(&t, b[i] + 8 * (uint64_t)k,
					b[rnd(MANY)] + rnd(60));
	for (int i = 0; i < 8; i++)
		toy_put(&t, TOY_DATA + 512 * (uint64_t)i, b[rnd(MANY)]);
	ask(&t, &a);
	for (int i = 0; i < 8; i++) {
		space_u64(t.sp, TOY_DATA + 512 * (uint64_t)i, &path_root);
		mark_slowly(&t, b, path_root, mark);
	}
	for (int i = 0; i < MANY; i++) {
		wrong += mark[i] != !strcmp(what(&a, b[i]), "live");
		refs_path(&path, &a.g, index_find(&a.g.ix, b[i]));
		wrong += mark[i] != (path.n > 0);
		refs_path_fini(&path);
	}
	forget(&t, &a);
	return wrong;
}

TEST(as_marking_word_by_word)
{
	uint64_t wrong = 0;

	for (int i = 0; i < 60; i++)
		wrong += check_random();
	CHECK_U64(wrong, 0);
}

TEST(who_refers)
{
	struct refs refs;
	struct toy t;
	vaddr b[3];

	toy_init(&t);
	for (int i = 0; i < 3; i++)
		b[i] = toy_malloc(&t, 40);
	add_stacks(&t);
	toy_put(&t, TOY_DATA + 8, b[0] + 4);
	toy_put(&t, TOY_DATA + 0x1900, b[0]);
	toy_put(&t, TOY_DATA + 0x2100, b[0]);
	toy_put(&t, b[1] + 32, b[0] + 39);
	toy_put(&t, b[0] + 8, b[0]);		/* itself does not count */
	toy_put(&t, b[2], b[0] + 40);		/* behind it neither */
	t.sp->threads[0].regs[3] = b[0];
	toy_done(&t);
	refs_find(&refs, t.sp, &t.h, &t.w, NULL, b[0], b[0] + 40);
	CHECK_U64(refs.n, 5);
	CHECK_U64(refs.count[ROOT_ANONYMOUS], 1);
	CHECK_U64(refs.count[ROOT_STACK], 1);
	CHECK_U64(refs.count[ROOT_STALE], 1);
	CHECK_U64(refs.count[ROOT_REGISTERS], 1);
	CHECK_U64(refs.count[REFS_BLOCK], 1);
	CHECK_U64(refs.item[refs.n - 1].block.addr, b[1]);
	CHECK_U64(refs.item[refs.n - 1].word, b[1] + 32);
	toy_fini(&t);
}

/* Two threads must find what one does: the heap is above their limit. */
TEST(halves_fit_together)
{
	struct answer a;
	struct toy t;
	uint64_t n = 0;
	vaddr last = 0;

	toy_init(&t);
	while (t.next < TOY_HEAP + TOY_SIZE - 0x1000) {
		vaddr b = toy_malloc(&t, 24 + rnd(rnd(50) ? 200 : 20000));

		/* In the first word: the end may be slack. */
		if (last)
			toy_put(&t, last, b);
		else
			toy_put(&t, TOY_DATA, b);
		last = b;
		n++;
	}
	ask(&t, &a);
	CHECK_U64(reach_lost(&a.r).blocks, 0);
	CHECK_U64(a.g.n_edges, n);
	CHECK_U64(a.g.ix.n_used, n);
	forget(&t, &a);
}
