/* SPDX-License-Identifier: MIT */
#include "analysis/types.h"
#include "unit/check.h"

TEST(a_better_name_replaces_a_lesser_one)
{
	struct types t;
	uint32_t shape, class;

	types_init(&t, 10);
	shape = types_add(&t, "64 bytes", TYPE_SHAPE, 64, 0);
	class = types_add(&t, "Session", TYPE_VTABLE, 0, 0x1000);
	CHECK_STR(types_get(&t, 3)->name, "not known");
	CHECK(types_set(&t, 3, shape));
	CHECK(types_set(&t, 3, class));
	CHECK_U64(types_of(&t, 3), class);
	CHECK(!types_set(&t, 3, shape));
	CHECK_U64(types_of(&t, 3), class);
	CHECK(types_set(&t, 3, class));
	types_fini(&t);
}

TEST(equal_trust_replaces_nothing)
{
	struct types t;
	uint32_t a, b;

	types_init(&t, 10);
	a = types_add(&t, "A", TYPE_DWARF, 8, 0);
	b = types_add(&t, "B", TYPE_DWARF, 8, 0);
	CHECK(types_set(&t, 1, a));
	CHECK(!types_set(&t, 1, b));
	CHECK_STR(types_get(&t, 1)->name, "A");
	types_fini(&t);
}

TEST(names_are_interned_by_how_they_are_known)
{
	struct types t;
	uint32_t a, b;

	types_init(&t, 1);
	a = types_add(&t, "A", TYPE_DWARF, 0, 0);
	b = types_add(&t, "A", TYPE_RTTI, 0, 0);
	CHECK(a != b);
	CHECK_U64(types_add(&t, "A", TYPE_DWARF, 24, 0), a);
	CHECK_U64(t.items[a].size, 24);
	CHECK_U64(t.n, 3);
	types_fini(&t);
}

TEST(many_types_are_found_again)
{
	struct types t;
	char name[16];
	uint32_t wrong = 0;

	types_init(&t, 1);
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 1; i <= 5000; i++) {
			snprintf(name, sizeof(name), "T%u", i);
			wrong += types_add(&t, name, TYPE_DWARF, 1, 0) != i;
		}
	CHECK_U64(wrong, 0);
	types_fini(&t);
}

TEST(names_are_harmless)
{
	struct types t;
	uint32_t a;

	types_init(&t, 1);
	a = types_add(&t, "a\x1b[31m\xff", TYPE_SYMBOL, 0, 0);
	CHECK_STR(t.items[a].name, "a\\x1b[31m\\xff");
	CHECK_U64(types_add(&t, "a\x1b[31m\xff", TYPE_SYMBOL, 0, 0), a);
	types_fini(&t);
}
