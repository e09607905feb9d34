/* SPDX-License-Identifier: MIT */
#include "report/table.h"

#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

enum { NAME, SIZE, FREE, SHARE, COUNT, ADDR, FLAG, DIFF, SECRET, COLUMNS };

static const struct column columns[COLUMNS] = {
	[NAME] = COLUMN("name", "", TEXT, .flags = COLUMN_RAW, .width = 20),
	[SIZE] = COLUMN("size_bytes", "size", BYTES,
			.flags = COLUMN_SUM | COLUMN_BAR, .width = 10),
	[FREE] = COLUMN("free_bytes", "free", BYTES, .flags = COLUMN_SUM),
	[SHARE] = COLUMN("free_share", "free%", SHARE, .part = FREE + 1,
			 .whole = SIZE + 1),
	[COUNT] = COLUMN("count", "", COUNT, .flags = COLUMN_NO_TEXT),
	[ADDR] = COLUMN("address", "", ADDR, .flags = COLUMN_NO_TEXT),
	[FLAG] = COLUMN("flag", "", FLAG, .flags = COLUMN_NO_TEXT),
	[DIFF] = COLUMN("diff", "", SIGNED, .flags = COLUMN_NO_TEXT),
	[SECRET] = COLUMN("secret", "", TEXT,
			  .flags = COLUMN_NO_TEXT | COLUMN_CONTENT),
};

static void add(struct table *t, const char *name, uint64_t size,
		uint64_t free_bytes)
{
	table_row(t);
	table_set_text(t, NAME, name);
	table_set(t, SIZE, size);
	table_set(t, FREE, free_bytes);
}

static void make(struct table *t)
{
	table_init(t, "rows", "ROWS", columns, COLUMNS);
	add(t, "small", 1, 1);
	add(t, "large", 100 * MIB, 50 * MIB);
	add(t, "equal", 20 * MIB, 0);
	add(t, "twin", 20 * MIB, 10 * MIB);
}

static char *read_back(int fd)
{
	static char text[20000];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	text[n < 0 ? 0 : n] = '\0';
	return text;
}

enum form { AS_TEXT, AS_JSON, AS_CSV };

static const char *written(const struct table *t, enum form form,
			   const struct text_style *style)
{
	int fd = memfd_create("table", 0);
	int copy = dup(fd);
	struct err err = { .msg = "" };
	struct out o;
	const char *text;

	out_open_fd(&o, fd);
	if (form == AS_TEXT)
		table_write_text(t, style, &o);
	else if (form == AS_JSON)
		table_write_json(t, &o);
	else
		table_write_csv(t, &o);
	CHECK(out_close(&o, &err));
	text = read_back(copy);
	close(copy);
	return text;
}

static const struct text_style plain = { .rows = TABLE_ALL_ROWS };

TEST(text_has_units_shares_bars_and_a_total)
{
	struct table t;

	make(&t);
	table_add_total(&t);
	table_sort(&t, SIZE, false);
	CHECK_STR(written(&t, AS_TEXT, &plain),
"ROWS                      size   free   free%\n"
"  large                 100.0M  50.0M   50.0%  ########################\n"
"  equal                  20.0M      0    0.0%  #####\n"
"  twin                   20.0M  10.0M   50.0%  #####\n"
"  small                  <0.1M  <0.1M  100.0%\n"
"  total                 140.0M  60.0M   42.9%\n");
	table_fini(&t);
}

TEST(what_is_cut_off_is_summed)
{
	const struct text_style style = { .rows = 2 };
	struct table t;

	make(&t);
	table_add_total(&t);
	table_sort(&t, SIZE, false);
	CHECK_STR(written(&t, AS_TEXT, &style),
"ROWS                      size   free  free%\n"
"  large                 100.0M  50.0M  50.0%  ########################\n"
"  equal                  20.0M      0   0.0%  #####\n"
"  2 more                 20.0M  10.0M  50.0%\n"
"  total                 140.0M  60.0M  42.9%\n");
	t.whole = true;
	CHECK(strstr(written(&t, AS_TEXT, &style), "  small"));
	table_fini(&t);
}

TEST(exact_bytes_and_hidden_columns)
{
	const struct text_style style = { .exact = true };
	struct table t;

	make(&t);
	t.hidden = 1 << FREE;
	CHECK_STR(written(&t, AS_TEXT, &style),
"ROWS                       size   free%\n"
"  small                       1  100.0%\n"
"  large               104857600   50.0%  ########################\n"
"  equal                20971520    0.0%  #####\n"
"  twin                 20971520   50.0%  #####\n");
	table_fini(&t);
}

TEST(sort_is_stable_and_unknown_comes_last)
{
	struct table t;
	struct err err;
	struct cell c;

	make(&t);
	table_row(&t);
	table_set_text(&t, NAME, "nothing known");
	CHECK(table_sort_by(&t, "-size", &err));
	c = table_cell(&t, 1, NAME);
	CHECK_MEM(table_text(&t, &c), "equal", 5);
	c = table_cell(&t, 2, NAME);
	CHECK_MEM(table_text(&t, &c), "twin", 4);
	c = table_cell(&t, 4, NAME);
	CHECK_MEM(table_text(&t, &c), "nothing", 7);
	CHECK(table_sort_by(&t, "size_bytes", &err));
	c = table_cell(&t, 1, NAME);
	CHECK_MEM(table_text(&t, &c), "equal", 5);
	c = table_cell(&t, 4, NAME);
	CHECK_MEM(table_text(&t, &c), "nothing", 7);
	CHECK(table_sort_by(&t, "free_share", &err));
	c = table_cell(&t, 0, NAME);
	CHECK_MEM(table_text(&t, &c), "small", 5);
	CHECK(table_sort_by(&t, "name", &err));
	c = table_cell(&t, 0, NAME);
	CHECK_MEM(table_text(&t, &c), "equal", 5);
	CHECK(!table_sort_by(&t, "nome", &err));
	CHECK_STR(err.msg, "--sort: no column 'nome' in section rows");
	CHECK(strstr(err.hint, "name, "));
	table_fini(&t);
}

TEST(json_leaves_out_what_is_unknown)
{
	struct table t;

	table_init(&t, "rows", "ROWS", columns, COLUMNS);
	CHECK_STR(written(&t, AS_JSON, NULL), "  \"rows\": []");
	table_row(&t);
	table_row(&t);
	table_set_text(&t, NAME, "a");
	table_set(&t, SIZE, UINT64_MAX);
	table_set(&t, FREE, 0);
	table_set(&t, ADDR, UINT64_C(0x7f12a4003f40));
	table_set(&t, FLAG, 1);
	table_set_signed(&t, DIFF, INT64_MIN);
	CHECK_STR(written(&t, AS_JSON, NULL),
"  \"rows\": [\n"
"    { },\n"
"    { \"name\": \"a\", \"size_bytes\": 18446744073709551615, "
"\"free_bytes\": 0, \"free_share\": 0.0000, "
"\"address\": \"0x7f12a4003f40\", \"flag\": true, "
"\"diff\": -9223372036854775808 }\n"
"  ]");
	table_fini(&t);
}

static const char *json_name(const void *bytes, size_t n)
{
	static char ret[1000];
	struct table t;

	table_init(&t, "t", "T", columns, COLUMNS);
	t.form = TABLE_OBJECT;
	table_row(&t);
	table_set_bytes(&t, NAME, bytes, n);
	snprintf(ret, sizeof(ret), "%s", written(&t, AS_JSON, NULL));
	table_fini(&t);
	return ret;
}

TEST(json_text_is_utf8_whatever_the_target_holds)
{
	CHECK_STR(json_name("a\"\\\n\t\33\x7f", 7), "  \"t\": { \"name\": "
		  "\"a\\\"\\\\\\n\\t\\u001b\\u007f\" }");
	CHECK_STR(json_name("\0", 1), "  \"t\": { \"name\": \"\\u0000\" }");
	CHECK_STR(json_name("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", 11),
		  "  \"t\": { \"name\": "
		  "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\" }");
	/* So are lines that no line editor sees, and words from the right. */
	CHECK_STR(json_name("\xe2\x80\xa8\xe2\x80\xae\xe2\x81\xa6\xe2\x80\x8f",
			    12), "  \"t\": { \"name\": "
		  "\"\\u2028\\u202e\\u2066\\u200f\" }");
	CHECK_STR(json_name("\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa",
			    12), "  \"t\": { \"name\": "
		  "\"\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa\" }");
	/* C1 controls are valid, and a terminal may act upon them. */
	CHECK_STR(json_name("\xc2\x9b", 2),
		  "  \"t\": { \"name\": \"\\u009b\" }");
	CHECK_STR(json_name("a\xff", 2), "  \"t\": { \"name\": "
		  "\"a\\ufffd\", \"name_hex\": \"61ff\" }");
}

TEST(json_refuses_what_is_not_utf8)
{
	static const char *const bad[] = {
		"\x80", "\xc0\x80", "\xc1\xbf", "\xc3", "\xe0\x9f\xbf",
		"\xed\xa0\x80", "\xe2\x82", "\xf0\x8f\xbf\xbf",
		"\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf0\x9f\x98",
	};

	for (size_t i = 0; i < countof(bad); i++)
		if (!CHECK(strstr(json_name(bad[i], strlen(bad[i])),
				  "name_hex")))
			printf("# accepted: %zu\n", i);
}

TEST(csv_is_quoted_and_safe)
{
	struct table t;

	table_init(&t, "rows", "ROWS", columns, COLUMNS);
	table_row(&t);
	table_set_text(&t, NAME, "a,\"b\"\n\xff");
	table_set(&t, SIZE, 4);
	table_set(&t, FREE, 1);
	table_set(&t, FLAG, 0);
	CHECK_STR(written(&t, AS_CSV, NULL),
"name,size_bytes,free_bytes,free_share,count,address,flag,diff,secret\n"
"\"a,\"\"b\"\"\\x0a\\xff\",4,1,0.2500,,,false,,\n");
	table_fini(&t);
}

TEST(a_terminal_is_safe)
{
	struct table t;

	table_init(&t, "rows", "ROWS", columns, COLUMNS);
	add(&t, "\33[2J\\x\x9b", 1, 1);
	CHECK(strstr(written(&t, AS_TEXT, &plain),
		     "  \\x1b[2J\\x5cx\\x9b "));
	table_fini(&t);
}

TEST(long_labels_are_cut_to_the_line)
{
	struct table t;
	const char *text;

	table_init(&t, "rows", "ROWS", columns, COLUMNS);
	add(&t, "a name that is much longer than a line of eighty columns can "
		"ever hold", 1, 1);
	text = written(&t, AS_TEXT, &plain);
	text = strchr(text, '\n') + 1;
	CHECK_U64(strcspn(text, "\n"), 79);
	CHECK(strstr(text, "...  "));
	table_fini(&t);
}

TEST(words_at_the_end_have_the_room_that_is_left)
{
	static const struct column names[] = {
		COLUMN("n", "n", COUNT, .width = 20),
		COLUMN("m", "m", COUNT, .width = 38),
		COLUMN("path", "path", TEXT, .flags = COLUMN_PATH),
	};
	static const struct column words[] = {
		COLUMN("n", "n", COUNT, .width = 20),
		COLUMN("m", "m", COUNT, .width = 38),
		COLUMN("words", "words", TEXT),
	};
	struct table t;

	for (int i = 0; i < 2; i++) {
		table_init(&t, "t", "T", i ? words : names, 3);
		table_row(&t);
		table_set_text(&t, 2, "/one/two/three/four/five");
		CHECK_STR(strchr(written(&t, AS_TEXT, &plain), '\n') + 1, i ?
"  -                                                      -  "
"/one/two/three/f...\n" :
"  -                                                      -  "
".../three/four/five\n");
		table_fini(&t);
	}
}

TEST(a_redacted_table_has_no_content)
{
	static const struct column paths[] = {
		COLUMN("path", "", TEXT, .flags = COLUMN_PATH),
		COLUMN("text", "", TEXT, .flags = COLUMN_CONTENT),
	};
	struct table t;

	table_init(&t, "t", "T", paths, countof(paths));
	table_row(&t);
	table_set_text(&t, 0, "/home/secret/libx.so");
	table_set_text(&t, 1, "password");
	table_row(&t);
	table_set_text(&t, 0, "no slash");
	table_redact(&t);
	CHECK_STR(written(&t, AS_JSON, NULL), "  \"t\": [\n"
		  "    { \"path\": \"libx.so\" },\n"
		  "    { \"path\": \"no slash\" }\n  ]");
	table_fini(&t);
}

TEST(sentences_are_wrapped_and_numbered)
{
	static const struct column sentence[] = {
		COLUMN("text", "", TEXT),
	};
	struct table t;

	table_init(&t, "standout", "WHAT STANDS OUT", sentence, 1);
	t.form = TABLE_NUMBERED;
	table_row(&t);
	table_set_text(&t, 0, "402.0M of the free memory lies in whole pages: "
		       "malloc_trim(3) would return it.  385.8M of that is "
		       "in the thread arenas.");
	table_row(&t);
	table_set_text(&t, 0, "short");
	CHECK_STR(written(&t, AS_TEXT, &plain),
"WHAT STANDS OUT\n"
"  1. 402.0M of the free memory lies in whole pages: malloc_trim(3) would\n"
"     return it.  385.8M of that is in the thread arenas.\n"
"  2. short\n");
	table_fini(&t);
}

/* A change has its sign, is never "<0.1M", and ranks by its size. */
TEST(changes_have_signs_and_rank_by_size)
{
	static const struct column change_columns[] = {
		COLUMN("name", "", TEXT),
		COLUMN("change_bytes", "change", CHANGE, .flags = COLUMN_SUM),
		COLUMN("blocks", "blocks", CHANGE_COUNT,
		       .flags = COLUMN_SUM),
	};
	static const struct {
		const char *name;
		int64_t bytes, blocks;
	} rows[] = {
		{ "small", 100, 1 }, { "less", -40 * (int64_t)MIB, -7 },
		{ "none", 0, 0 }, { "more", 30 * (int64_t)MIB, 7 },
		{ "tiny", -100, -1 },
	};
	static const char want[] =
		"CHANGES    change  blocks\n"
		"  less     -40.0M      -7\n"
		"  more     +30.0M      +7\n"
		"  small    +<0.1M      +1\n"
		"  tiny     -<0.1M      -1\n"
		"  none          0       0\n"
		"  total    -10.0M       0\n";
	struct text_style style = { .rows = TABLE_ALL_ROWS };
	char got[sizeof(want) + 64] = "";
	int fd = memfd_create("changes", 0);
	struct table t;
	struct out o;
	struct err err;

	table_init(&t, "changes", "CHANGES", change_columns,
		   countof(change_columns));
	for (size_t i = 0; i < countof(rows); i++) {
		table_row(&t);
		table_set_text(&t, 0, rows[i].name);
		table_set_signed(&t, 1, rows[i].bytes);
		table_set_signed(&t, 2, rows[i].blocks);
	}
	table_add_total(&t);
	table_sort(&t, 1, false);
	out_open_fd(&o, dup(fd));
	table_write_text(&t, &style, &o);
	CHECK(out_close(&o, &err));
	CHECK(pread(fd, got, sizeof(got) - 1, 0) > 0);
	CHECK_STR(got, want);
	table_fini(&t);
	close(fd);
}

TEST(a_row_without_a_number_can_be_dropped)
{
	static const struct column some_columns[] = {
		COLUMN("name", "", TEXT),
		COLUMN("old", "old", BYTES, .flags = COLUMN_SUM),
		COLUMN("change", "change", CHANGE, .flags = COLUMN_SUM),
	};
	struct table t;

	table_init(&t, "t", "T", some_columns, countof(some_columns));
	table_row(&t);
	table_set_text(&t, 0, "kept");
	table_set(&t, 1, 0);
	table_set_signed(&t, 2, -1);
	CHECK(!table_row_is_zero(&t, 1));
	table_row(&t);
	table_set_text(&t, 0, "not");
	table_set(&t, 1, 0);
	CHECK(table_row_is_zero(&t, 1));
	table_drop_row(&t);
	table_row(&t);
	table_set_text(&t, 0, "kept too");
	table_set(&t, 1, 7);
	table_add_total(&t);
	CHECK_U64(t.n_rows, 2);
	CHECK_U64(table_cell(&t, 1, 1).u, 7);
	CHECK_U64(t.total[1].u, 7);
	table_fini(&t);
}

/* The words give way, wherever they stand; numbers never do. */
TEST(words_before_a_number_are_cut)
{
	static const struct column some_columns[] = {
		COLUMN("kind", "", TEXT),
		COLUMN("where", "where", TEXT),
		COLUMN("value", "value", ADDR),
	};
	struct text_style style = { .rows = TABLE_ALL_ROWS };
	char got[400] = "", word[81];
	int fd = memfd_create("words", 0);
	struct table t;
	struct out o;
	struct err err;

	memset(word, 'w', 80);
	word[80] = '\0';
	table_init(&t, "t", "T", some_columns, countof(some_columns));
	table_row(&t);
	table_set_text(&t, 0, "kind");
	table_set_text(&t, 1, word);
	table_set(&t, 2, UINT64_C(0x7f0011223344));
	out_open_fd(&o, dup(fd));
	table_write_text(&t, &style, &o);
	CHECK(out_close(&o, &err));
	CHECK(pread(fd, got, sizeof(got) - 1, 0) > 0);
	CHECK(strstr(got, "www...  0x7f0011223344\n"));
	CHECK_U64(strlen(strchr(got, '\n') + 1), 79 + 1);
	table_fini(&t);
	close(fd);
}
