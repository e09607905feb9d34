/* SPDX-License-Identifier: MIT */
#include "report/compare_rows.h"

#include "base/num.h"

static void set_change(struct table *t, size_t at, const struct change *c)
{
	if (c->known[0])
		table_set(t, at, c->amount[0]);
	if (c->known[1])
		table_set(t, at + 1, c->amount[1]);
	if (c->sure)
		table_set_signed(t, at + 2, c->change);
}

uint64_t set_measures(struct table *t, const struct compare *c,
		      enum compare_list list, size_t pair,
		      const struct measure *m, size_t n)
{
	uint64_t moved = 0;

	for (size_t i = 0; i < n; i++) {
		struct change x = compare_change(c, list, pair, m[i].from);

		set_change(t, m[i].at, &x);
		if (m[i].ranks && x.sure)
			moved = max_u64(moved, num_abs(x.change));
	}
	return moved;
}

void set_label(struct table *t, size_t column, const struct compare *c,
	       enum compare_list list, size_t pair, size_t from)
{
	const struct table *own;
	const struct cell *cell = compare_label(c, list, pair, from, &own);

	if (!cell->known)
		return;
	if (t->columns[column].type == COLUMN_TEXT)
		table_set_bytes(t, column, table_text(own, cell),
				cell->text.len);
	else
		table_set(t, column, cell->u);
}

bool is_idle(const struct report *r, unsigned section, uint64_t moved)
{
	return !moved && r->options->format == REPORT_TEXT &&
	       !report_is_only(r->options, section);
}

void drop_last(struct report *r)
{
	table_fini(&r->tables[--r->n_tables]);
}
