/* SPDX-License-Identifier: MIT */
#include "report/saved.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "check.h"

#define HEAD "{\"schema\":\"heapcore-report/1\",\"complete\":true"

static struct saved *open_text(const char *text, struct err *err)
{
	return saved_open_memory("x.json", text, strlen(text), err);
}

/* The message of a text that is refused. */
static const char *refusal(const char *text, struct err *err)
{
	struct saved *s = open_text(text, err);

	saved_close(s);
	return s ? "accepted" : err->msg;
}

enum { NAME, COUNT, WHERE, FLAG, COLUMNS };
static const struct column columns[COLUMNS] = {
	[NAME] = COLUMN("name", "", TEXT),
	[COUNT] = COLUMN("count", "", COUNT),
	[WHERE] = COLUMN("address", "", ADDR),
	[FLAG] = COLUMN("flag", "", FLAG),
};

/* The rows of "list" in a document; how many values were odd. */
static size_t rows_of(const char *list, struct table *t)
{
	AUTO_FREE char *text = mem_printf(HEAD ",\"list\":%s}", list);
	struct err err;
	struct saved *s = open_text(text, &err);
	size_t odd = 99;

	table_init(t, "list", "", columns, COLUMNS);
	if (CHECK(s))
		CHECK(saved_rows(s, t, &odd));
	saved_close(s);
	return odd;
}

TEST(a_report_says_what_it_is)
{
	struct err err;
	struct saved *s = open_text("\xef\xbb\xbf\n " HEAD "}\n", &err);

	if (!CHECK(s))
		return;
	CHECK_U64(saved_schema(s), 1);
	CHECK(saved_complete(s));
	saved_close(s);
	s = open_text("{\"schema\":\"heapcore-report/17\"}", &err);
	if (!CHECK(s))
		return;
	CHECK_U64(saved_schema(s), 17);
	CHECK(!saved_complete(s));
	saved_close(s);
}

TEST(what_is_no_report_is_refused)
{
	struct err err;

	CHECK_STR(refusal("{}", &err), "x.json: not a report: it is other "
		  "JSON");
	CHECK_STR(refusal("[1]", &err), "x.json: not a report: it is other "
		  "JSON");
	CHECK_STR(refusal("{\"schema\":1}", &err),
		  "x.json: not a report: it is other JSON");
	CHECK_STR(refusal("{\"schema\":\"heapcore-diff/1\"}", &err),
		  "x.json: not a report: it is a comparison");
	CHECK_STR(refusal("{\"schema\":\"heapcore-report/0\"}", &err),
		  "x.json: not a report: its schema is unknown");
	CHECK_STR(refusal("{\"schema\":\"heapcore-report/x\"}", &err),
		  "x.json: not a report: its schema is unknown");
	CHECK_STR(refusal("{\"schema\":", &err), "x.json: is cut off: the "
		  "JSON ends too soon, in line 1");
	CHECK_STR(refusal(HEAD "} {}", &err), "x.json: malformed JSON in "
		  "line 1, column 48");
	CHECK_STR(refusal("{\"a\":1,\"a\":2}", &err),
		  "x.json: malformed JSON in line 1, column 10");
	CHECK_STR(refusal("{\"a\":1e999}", &err),
		  "x.json: malformed JSON in line 1, column 10");
}

TEST(rows_are_read_by_key)
{
	struct table t;

	CHECK_U64(rows_of("[{\"count\":7,\"name\":\"a\\u0000b\",\"more\":[]},"
			  "{\"address\":\"0x7f00\",\"flag\":true}]", &t), 0);
	CHECK_U64(t.n_rows, 2);
	CHECK_U64(t.cells[COUNT].u, 7);
	CHECK_U64(t.cells[NAME].text.len, 3);
	CHECK_MEM(table_text(&t, &t.cells[NAME]), "a\0b", 3);
	CHECK(!t.cells[WHERE].known);
	CHECK_U64(t.cells[COLUMNS + WHERE].u, 0x7f00);
	CHECK_U64(t.cells[COLUMNS + FLAG].u, 1);
	CHECK(!t.cells[COLUMNS + NAME].known);
	table_fini(&t);
}

TEST(an_object_is_one_row)
{
	struct table t;

	CHECK_U64(rows_of("{\"count\":9223372036854775807}", &t), 0);
	CHECK_U64(t.n_rows, 1);
	CHECK_U64(t.cells[COUNT].u, INT64_MAX);
	table_fini(&t);
}

TEST(a_list_may_stand_beside_its_sums)
{
	struct table t;

	CHECK_U64(rows_of("{\"count\":99,\"rows\":[{\"count\":1},"
			  "{\"count\":2}]}", &t), 0);
	CHECK_U64(t.n_rows, 2);
	CHECK_U64(t.cells[COUNT].u, 1);
	table_fini(&t);
}

TEST(values_of_a_wrong_kind_are_unknown_and_counted)
{
	struct table t;

	CHECK_U64(rows_of("[{\"count\":-1,\"name\":5},{\"count\":1.5},"
			  "{\"address\":\"zz\"},{\"flag\":1},3,null]", &t),
		  7);
	CHECK_U64(t.n_rows, 4);
	for (size_t i = 0; i < t.n_cells; i++)
		CHECK(!t.cells[i].known);
	table_fini(&t);
}

TEST(bytes_that_are_no_utf8_come_from_their_hexadecimal)
{
	struct table t;

	CHECK_U64(rows_of("[{\"name\":\"caf\\ufffd\",\"name_hex\":"
			  "\"636166e9\"},{\"name\":\"n\",\"name_hex\":\"6\"},"
			  "{\"name\":\"n\",\"name_hex\":\"zz\"}]", &t), 0);
	CHECK_U64(t.cells[NAME].text.len, 4);
	CHECK_MEM(table_text(&t, &t.cells[NAME]), "caf\xe9", 4);
	CHECK_U64(t.cells[COLUMNS + NAME].text.len, 1);
	CHECK_U64(t.cells[2 * COLUMNS + NAME].text.len, 1);
	table_fini(&t);
}

TEST(a_list_that_is_not_there)
{
	struct err err;
	struct saved *s = open_text(HEAD ",\"list\":\"none\"}", &err);
	struct table t;
	size_t odd = 99;

	table_init(&t, "list", "", columns, COLUMNS);
	CHECK(!saved_rows(s, &t, &odd));
	t.name = "other";
	CHECK(!saved_rows(s, &t, &odd));
	CHECK_U64(t.n_rows, 0);
	table_fini(&t);
	saved_close(s);
}

/* Three bytes that would become a hundred each, and depth. */
TEST(too_much_is_refused)
{
	struct err err;
	struct str s;

	str_init(&s);
	str_adds(&s, HEAD ",\"list\":[[]");
	for (int i = 0; i < SAVED_MAX_VALUES / 2; i++)
		str_adds(&s, ",[]");
	str_adds(&s, "]}");
	CHECK_STR(refusal(s.text, &err),
		  "x.json: not a report: it is too large for one");
	str_clear(&s);
	for (int i = 0; i < 100000; i++)
		str_adds(&s, "[");
	CHECK(strstr(refusal(s.text, &err), "x.json: malformed JSON"));
	str_fini(&s);
}

static void write_file(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/* What a file holds says what it is, not its name. */
TEST(files_are_told_apart_by_content)
{
	struct saved *s = NULL;
	struct err err;

	write_file("core", "\n\t " HEAD "}");
	CHECK(saved_open("core", &s, &err) && s);
	saved_close(s);
	write_file("a.json", "\177ELF and no more");
	CHECK(saved_open("a.json", &s, &err) && !s);
	write_file("empty", "");
	CHECK(saved_open("empty", &s, &err) && !s);
	CHECK(saved_open(".", &s, &err) && !s);
	CHECK(!saved_open("nowhere", &s, &err));
	CHECK_STR(err.msg, "nowhere: No such file or directory");
	unlink("core");
	unlink("a.json");
	unlink("empty");
}
