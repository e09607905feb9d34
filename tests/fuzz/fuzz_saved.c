/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a saved report, as the browser shows it: what comes out as text
 * is printable.
 *
 * Code: report/saved
 */
#include <stdlib.h>
#include <string.h>

#include "report/saved_tables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct report_section words[] = { { "all", 0 } };
static const struct report_kind kind = {
	.schema = "heapcore-report/1", .sections = words, .n_sections = 1,
};

static void must_be_printable(const struct str *s)
{
	for (size_t i = 0; i < s->len; i++)
		if (s->text[i] != '\n' &&
		    (s->text[i] < 0x20 || s->text[i] > 0x7e))
			abort();
}

static void write_as(const struct report *r, enum report_format format,
		     struct str *text)
{
	struct report_options *o = (struct report_options *)r->options;
	struct err err;
	struct out out;

	o->format = format;
	out_open_text(&out, text);
	if (!report_write(r, &out, &err))
		abort();
	out_close_text(&out);
}

static void show(const struct saved *s)
{
	struct report_options options = { .kind = &kind, .sections = 1 };
	struct saved_tables tables;
	struct report r;
	struct str text, json;
	struct err err = { .kind = ERR_NONE };

	str_init(&text);
	str_init(&json);
	report_init(&r, &options);
	saved_tables_init(&tables, s);
	if (tables.n > SAVED_MAX_TABLES)
		abort();
	saved_head(s, "report.json", &r.head[0]);
	for (size_t i = 0; i < tables.n; i++)
		saved_table_add(&tables, i, &r, 0);
	if (!report_finish(&r, &err))
		abort();
	write_as(&r, REPORT_TEXT, &text);
	must_be_printable(&text);
	write_as(&r, REPORT_JSON, &json);
	report_fini(&r);
	saved_tables_fini(&tables);
	str_fini(&text);
	str_fini(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = { .kind = ERR_NONE };
	struct saved *s = saved_open_any_memory("input", (const char *)data,
						size, &err);

	if (s)
		show(s);
	else if (err.kind == ERR_NONE || !*err.msg)
		abort();
	saved_close(s);
	return 0;
}
