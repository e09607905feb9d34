/* SPDX-License-Identifier: MIT */
#include "base/demangle.h"

#include "check.h"

static void name_is(const char *name, const char *want)
{
	struct str s;

	str_init(&s);
	str_adds(&s, "x");
	CHECK(demangle(name, &s) == (want != NULL));
	CHECK_STR(s.text + 1, want ? want : "");
	str_fini(&s);
}

static void type_is(const char *name, const char *want)
{
	struct str s;

	str_init(&s);
	CHECK(demangle_type(name, &s) == (want != NULL));
	CHECK_STR(s.text, want ? want : "");
	str_fini(&s);
}

TEST(names)
{
	name_is("_ZN3foo3barEiRKSs", "foo::bar");
	name_is("_ZN12_GLOBAL__N_13fooEv", "(anonymous namespace)::foo");
	name_is("_ZTV7Session", "vtable for Session");
	name_is("_RNvCs1234_7mycrate3foo", "mycrate::foo");
	name_is("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE",
		  "core::fmt::Formatter::pad");
	name_is("main", NULL);
	name_is("_start", NULL);
	name_is("_Z", NULL);
	name_is("", NULL);
	type_is("7Session", "Session");
	type_is("St6vectorIiSaIiEE",
		  "std::vector<int, std::allocator<int> >");
	type_is("main", NULL);
	type_is("_ZTV7Session", NULL);
}

enum { LEVELS = 17 };

/*
 * A<A<A<int, int>, the same>, the same>: what comes out doubles with each
 * level.  The A are substitutions 0 to LEVELS - 1, then come the types, from
 * the innermost on; number i is written as digit i - 1 to the base of 36.
 */
static void add_bomb(struct str *s)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	for (unsigned i = 0; i < LEVELS; i++)
		str_adds(s, "1AI");
	str_adds(s, "iiE");
	for (unsigned i = 1; i < LEVELS; i++)
		str_printf(s, "S%c_E", digits[LEVELS + i - 2]);
}

TEST(a_name_that_doubles_stays_as_it_is)
{
	struct str in, out;

	str_init(&in);
	str_init(&out);
	add_bomb(&in);
	CHECK(in.len < 200);
	CHECK(!demangle_type(in.text, &out));
	CHECK_U64(out.len, 0);
	CHECK_STR(out.text, "");
	str_fini(&in);
	str_fini(&out);
}

TEST(a_long_name_stays_as_it_is)
{
	struct str in, out;

	str_init(&in);
	str_init(&out);
	for (unsigned i = 0; i < DEMANGLE_MAX_IN; i++)
		str_addc(&in, 'P');
	str_addc(&in, 'i');
	CHECK(!demangle_type(in.text, &out));
	str_fini(&in);
	str_fini(&out);
}
