/* SPDX-License-Identifier: MIT */
/* Arenas of Perl's values made by hand, whole and damaged. */
#include <stdlib.h>

#include "analysis/perl.h"
#include "unit/check.h"
#include "unit/toy_heap.h"

enum { ARENAS = 4, SLOTS = 170, HEAD = 24, ARENA = SLOTS * HEAD };

struct perl {
	struct toy toy;
	vaddr at[ARENAS];
};

static void put_head(struct perl *p, vaddr addr, uint64_t body,
		     uint32_t count, uint32_t flags)
{
	toy_put(&p->toy, addr, body);
	toy_put(&p->toy, addr + 8, count | (uint64_t)flags << 32);
}

/* Each leads to the one before; the newest is the root. */
static void begin(struct perl *p)
{
	toy_init(&p->toy);
	for (size_t i = 0; i < ARENAS; i++) {
		p->at[i] = toy_malloc(&p->toy, ARENA);
		toy_malloc(&p->toy, 40);
		put_head(p, p->at[i], i ? p->at[i - 1] : 0, SLOTS, 0);
		for (unsigned s = 1; s < SLOTS; s++)
			put_head(p, p->at[i] + s * HEAD, 0x1000,
				 s % 3 ? 1 : 0, s % 3 ? 0x4407 : 0xff);
	}
}

/*
 * How many blocks are named, if but the one at only is asked about, which is 0
 * for all; ends it.
 */
static unsigned named_of(struct perl *p, vaddr only)
{
	uint64_t *bits = NULL;
	struct census_input in = { .sp = p->toy.sp, .heap = &p->toy.h };
	struct index ix;
	struct types t;
	struct err err;
	unsigned n = 0;

	toy_done(&p->toy);
	CHECK(index_init(&ix, &p->toy.h, GIB, &err));
	in.ix = &ix;
	types_init(&t, ix.n);
	if (only) {
		uint32_t number = index_find(&ix, only);

		bits = mem_zalloc((ix.n / 64 + 1) * sizeof(*bits));
		bits[number >> 6] |= UINT64_C(1) << (number & 63);
		in.only = bits;
	}
	perl_name(&t, &in);
	free(bits);
	for (uint32_t i = 0; i < ix.n; i++)
		n += t.of[i] != 0;
	types_fini(&t);
	index_fini(&ix);
	toy_fini(&p->toy);
	return n;
}

static unsigned named(struct perl *p)
{
	return named_of(p, 0);
}

TEST(a_chain_of_arenas)
{
	struct perl p;

	begin(&p);
	CHECK_U64(named(&p), ARENAS);
}

TEST(only_where_one_is_asked_about)
{
	struct perl p;

	begin(&p);
	CHECK_U64(named_of(&p, p.at[1]), ARENAS);
	begin(&p);
	CHECK_U64(named_of(&p, p.at[1] + ARENA + 16), 0);
}

/* The chain breaks there: the older ones are one of their own. */
TEST(what_no_value_is)
{
	static const struct {
		uint32_t count, flags;
	} bad[] = { { 0, 0x4407 }, { 1, 0x4412 }, { 0, 0x1ff } };

	for (size_t i = 0; i < countof(bad); i++) {
		struct perl p;

		begin(&p);
		put_head(&p, p.at[2] + (SLOTS - 1) * HEAD, 0x1000,
			 bad[i].count, bad[i].flags);
		CHECK_U64(named(&p), 2);
	}
}

TEST(a_chain_that_has_no_end)
{
	struct perl p;

	begin(&p);
	toy_put(&p.toy, p.at[0], p.at[2]);
	CHECK_U64(named(&p), 0);
	begin(&p);
	toy_put(&p.toy, p.at[0], p.at[3]);
	CHECK_U64(named(&p), 0);
	begin(&p);
	toy_put(&p.toy, p.at[0], 0x4141414141414141);
	CHECK_U64(named(&p), 0);
}

TEST(one_arena_is_none)
{
	struct perl p;

	begin(&p);
	toy_put(&p.toy, p.at[1] + 8, SLOTS + 1);
	toy_put(&p.toy, p.at[2] + 8, SLOTS - 1);
	CHECK_U64(named(&p), 0);
}
