/* SPDX-License-Identifier: MIT */
#include "report/filter.h"

#include "check.h"

enum { SIZE, ADDR, SHARE, DIFF, STATE, NAME, FREE, COLUMNS };

static const char *const states[] = { "used", "bin", NULL };

static const struct column columns[COLUMNS] = {
	[SIZE] = COLUMN("size_bytes", "", BYTES, .flags = COLUMN_SUM),
	[ADDR] = COLUMN("address", "", ADDR),
	[SHARE] = COLUMN("share", "", SHARE),
	[DIFF] = COLUMN("diff", "", SIGNED),
	[STATE] = COLUMN("state", "", TEXT, .words = states),
	[NAME] = COLUMN("name", "", TEXT),
	[FREE] = COLUMN("free", "", FLAG),
};

/* size 2048, address 0x1000, share 0.25, diff -5, state bin, free. */
static const char pool[] = "binglibc 1";
static const struct cell row[COLUMNS] = {
	[SIZE] = { .u = 2048, .known = true },
	[ADDR] = { .u = 0x1000, .known = true },
	[SHARE] = { .share = 0.25, .known = true },
	[DIFF] = { .i = -5, .known = true },
	[STATE] = { .text = { 0, 3 }, .known = true },
	[NAME] = { .text = { 3, 7 }, .known = true },
	[FREE] = { .u = 1, .known = true },
};

static struct err err;

static bool holds_for(const char *expr, const struct cell *cells)
{
	struct filter f;
	bool ret;

	err.msg[0] = err.hint[0] = '\0';
	if (!filter_compile(&f, "--filter", expr, columns, COLUMNS, &err)) {
		printf("# %s: %s\n", expr, err.msg);
		CHECK(false);
		return false;
	}
	ret = filter_match(&f, cells, pool);
	filter_fini(&f);
	return ret;
}

static bool holds(const char *expr)
{
	return holds_for(expr, row);
}

TEST(numbers_compare)
{
	CHECK(holds("size>1k"));
	CHECK(!holds("size>2k"));
	CHECK(holds("size>=2k"));
	CHECK(holds("size<=2048"));
	CHECK(!holds("size<2048"));
	CHECK(holds("size=0x800"));
	CHECK(holds("size_bytes!=3"));
	CHECK(holds("address=1000"));
	CHECK(holds("address=0x1000"));
	CHECK(holds("share>20%"));
	CHECK(!holds("share>0.3"));
	CHECK(holds("diff<0"));
	CHECK(holds("diff=-5"));
	CHECK(!holds("diff<-5"));
}

TEST(words_compare)
{
	CHECK(holds("state=bin"));
	CHECK(holds("state!=used"));
	CHECK(!holds("state=used"));
	CHECK(holds("name=\"glibc 1\""));
	CHECK(holds("name='glibc 1'"));
	CHECK(!holds("name=glibc"));
	CHECK(holds("name~^glibc"));
	CHECK(holds("name~'c [0-9]$'"));
	CHECK(!holds("name~^bin"));
}

TEST(terms_must_all_hold)
{
	CHECK(holds("  free   size>1k\tstate=bin "));
	CHECK(!holds("free size>2k state=bin"));
	CHECK(!holds("!free"));
	CHECK(holds("!!free"));
	CHECK(holds("!size>2k"));
	CHECK(holds("free=true"));
	CHECK(!holds("free=no"));
	CHECK(holds("free!=no"));
}

TEST(unknown_satisfies_only_a_denial)
{
	const struct cell nothing[COLUMNS] = { { .known = false } };

	CHECK(!holds_for("size=0", nothing));
	CHECK(!holds_for("size<1", nothing));
	CHECK(holds_for("size!=0", nothing));
	CHECK(holds_for("!size=0", nothing));
	CHECK(!holds_for("!size!=0", nothing));
	CHECK(!holds_for("free", nothing));
	CHECK(holds_for("!free", nothing));
	CHECK(!holds_for("name~.", nothing));
}

static const char *refusal(const char *expr)
{
	struct filter f;

	err.msg[0] = err.hint[0] = '\0';
	if (filter_compile(&f, "--filter", expr, columns, COLUMNS, &err)) {
		filter_fini(&f);
		return "accepted";
	}
	return err.msg;
}

TEST(mistakes_are_named)
{
	CHECK_STR(refusal(""), "--filter: empty expression");
	CHECK_STR(refusal("sise>1"), "--filter: unknown key 'sise'");
	CHECK_STR(err.hint, "Known are size_bytes, address, share, diff, "
		  "state, name, free.");
	CHECK_STR(refusal("size"),
		  "--filter: 'size_bytes' needs an operator and a value");
	CHECK_STR(refusal("size>x"),
		  "--filter: 'x' is no value for size_bytes");
	CHECK_STR(refusal("size~1"),
		  "--filter: 'size_bytes' is a number: ~ is for words");
	CHECK_STR(refusal("name<a"),
		  "--filter: 'name' is a word: it knows = != and ~");
	CHECK_STR(refusal("state=free"), "--filter: state is never 'free'");
	CHECK_STR(err.hint, "It is one of used, bin.");
	CHECK_STR(refusal("name=\"a"), "--filter: no closing \" in '\"a'");
	CHECK_STR(refusal("name=\"a\"b"), "--filter: cannot read 'b'");
	CHECK_STR(refusal("free size>1 >"), "--filter: no key at '>'");
	CHECK_STR(refusal("free>1"), "--filter: '1' is no value for free");
	CHECK(strstr(refusal("name~("), "missing closing parenthesis"));
}

TEST(a_pattern_cannot_take_forever)
{
	static const char long_pool[] =
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!";
	struct cell cells[COLUMNS] = {
		[NAME] = { .text = { 0, sizeof(long_pool) - 1 },
			   .known = true },
	};
	struct filter f;

	if (!CHECK(filter_compile(&f, "--filter", "name~^(a|a?)+$", columns,
				  COLUMNS, &err)))
		return;
	CHECK(!filter_match(&f, cells, long_pool));
	filter_fini(&f);
}

TEST(it_knows_what_it_looks_at)
{
	struct filter f;

	CHECK(filter_compile(&f, "--filter", "size>1 !free", columns,
			     COLUMNS, &err));
	CHECK(filter_uses(&f, SIZE));
	CHECK(filter_uses(&f, FREE));
	CHECK(!filter_uses(&f, NAME));
	filter_fini(&f);
}

TEST(rows_are_filtered_and_summed_again)
{
	struct table t;
	struct filter f;

	table_init(&t, "t", "T", columns, COLUMNS);
	for (uint64_t i = 1; i <= 5; i++) {
		table_row(&t);
		table_set(&t, SIZE, i * 10);
	}
	table_add_total(&t);
	table_sort(&t, SIZE, false);
	CHECK(filter_compile(&f, "--filter", "size>20", columns, COLUMNS,
			     &err));
	table_filter(&t, &f);
	filter_fini(&f);
	CHECK_U64(t.n_rows, 3);
	CHECK_U64(table_cell(&t, 0, SIZE).u, 50);
	CHECK_U64(table_cell(&t, 2, SIZE).u, 30);
	CHECK_U64(t.total[SIZE].u, 120);
	table_row(&t);
	table_set(&t, SIZE, 7);
	CHECK_U64(table_cell(&t, 3, SIZE).u, 7);
	table_fini(&t);
}
