/* SPDX-License-Identifier: MIT */
/*
 * diff --redact, or of a report that was saved with it: names that a program
 * made while it ran.  A list that has such names has a column with what stands
 * for them.
 */
#include "report/compare.h"

#include "report/build.h"

/* Where a list has it; -1: its names are no secret. */
static int hidden_column(const struct table *t)
{
	static const struct column hidden = HIDDEN_NAME;

	return column_find(t->columns, t->n_columns, hidden.key);
}

static struct cell redacted(const struct compare_side *side)
{
	const struct table *t = &side->list[COMPARE_TARGET];

	return t->n_rows ? t->cells[TARGET_REDACTED]
			 : (struct cell){ .known = false };
}

bool compare_is_redacted(const struct compare_side *side)
{
	struct cell c = redacted(side);

	return c.known && c.u;
}

bool compare_hide_names(struct compare_side *side)
{
	bool ret = false;

	for (size_t i = 0; i < COMPARE_LISTS; i++) {
		struct table *t = &side->list[i];
		int hidden = hidden_column(t);

		for (size_t row = 0; hidden >= 0 && row < t->n_rows; row++) {
			struct cell *cells = &t->cells[row * t->n_columns];

			if (!cells[hidden].known)
				continue;
			cells[0] = cells[hidden];
			ret = true;
		}
	}
	return ret;
}

bool compare_drop_named(struct compare_side *side)
{
	bool ret = false;

	if (redacted(side).known)
		return false;
	for (size_t i = 0; i < COMPARE_LISTS; i++) {
		if (hidden_column(&side->list[i]) < 0)
			continue;
		ret |= side->has[i];
		side->has[i] = false;
	}
	return ret;
}
