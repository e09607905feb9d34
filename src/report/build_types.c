/* SPDX-License-Identifier: MIT */
/*
 * The table of what the blocks in use are.
 */
#include "report/build.h"

#include "analysis/census.h"

enum {
	Y_NAME, Y_BLOCKS, Y_BYTES, Y_SHARE, Y_AVERAGE, Y_KNOWN, Y_EXAMPLE,
	Y_OBJECT, Y_SOURCE, Y_HIDDEN, Y_USED, Y_COLUMNS
};

static const struct column type_columns[Y_COLUMNS] = {
	[Y_NAME] = COLUMN("name", "", TEXT, .width = 34, .flags = COLUMN_RAW),
	[Y_BLOCKS] = COLUMN("blocks", "blocks", COUNT, .flags = COLUMN_SUM,
			    .width = 9),
	[Y_BYTES] = COLUMN("bytes", "bytes", BYTES, .flags = COLUMN_SUM,
			   .width = 9),
	[Y_SHARE] = COLUMN("share", "of use", SHARE, .part = Y_BYTES + 1,
			   .whole = Y_USED + 1, .flags = COLUMN_OF_TOTAL),
	[Y_AVERAGE] = DATA_COLUMN("average_bytes", BYTES),
	[Y_KNOWN] = COLUMN("known_by", "known by", TEXT,
			   .flags = COLUMN_LEFT),
	[Y_EXAMPLE] = COLUMN("example", "example", ADDR),
	[Y_OBJECT] = DATA_COLUMN("object_bytes", BYTES),
	[Y_SOURCE] = DATA_COLUMN("source", ADDR),
	[Y_HIDDEN] = HIDDEN_NAME,
	[Y_USED] = OF_USED,
};

static void add_row(struct table *t, const struct census *c,
		    const struct census_row *row)
{
	const struct type *type = &c->types.items[row->type];

	table_row(t);
	table_set_text(t, Y_NAME, type->name);
	table_set(t, Y_BLOCKS, row->total.blocks);
	table_set(t, Y_BYTES, row->total.bytes);
	table_set(t, Y_AVERAGE, row->total.bytes / row->total.blocks);
	table_set_text(t, Y_KNOWN, type_known_name(type->known));
	table_set(t, Y_EXAMPLE, row->example);
	if (type->size)
		table_set(t, Y_OBJECT, type->size);
	if (type->source)
		table_set(t, Y_SOURCE, type->source);
	if (type->hidden)
		table_set_text(t, Y_HIDDEN, type->hidden);
}

void build_types(struct report *r, const struct report_input *in)
{
	const struct census *c = in->census;
	struct table *t;

	if (!c)
		return;
	t = report_add(r, SECTION_TYPES, "types", "WHAT THE BLOCKS ARE",
		       type_columns, Y_COLUMNS);
	t->more = "other types";
	t->shapes = true;
	for (size_t i = 0; i < c->n_rows; i++)
		add_row(t, c, &c->rows[i]);
	add_total_of_used(t, Y_USED, in);
}
