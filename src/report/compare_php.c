/* SPDX-License-Identifier: MIT */
/*
 * What a PHP program holds more or less of.
 */
#include "report/compare_rows.h"

enum { O_NAME, O_HOLDS, O_COLUMNS = O_HOLDS + 3 };

static const struct column holder_columns[O_COLUMNS] = {
	[O_NAME] = COLUMN("name", "", TEXT, .width = 34,
			  .flags = COLUMN_RAW | COLUMN_BACKSLASH),
	BYTES_ALL(O_HOLDS, "holds_"),
};

enum {
	K_NAME, K_BYTES, K_OBJECTS = K_BYTES + 3, K_COLUMNS = K_OBJECTS + 3
};

static const struct column class_columns[K_COLUMNS] = {
	[K_NAME] = COLUMN("name", "", TEXT, .width = 30,
			  .flags = COLUMN_RAW | COLUMN_BACKSLASH),
	BYTES_ALL(K_BYTES, ""),
	COUNT_CHANGE(K_OBJECTS, "objects_", "objects"),
};

static const struct measure holder_measures[] = {
	{ PHP_HOLDERS_HOLDS, O_HOLDS, true },
};
static const struct measure class_measures[] = {
	{ PHP_CLASSES_BYTES, K_BYTES, true },
	{ PHP_CLASSES_OBJECTS, K_OBJECTS, false },
};

static void build(struct report *r, const struct compare *c,
		  enum compare_list list, struct table *t,
		  const struct measure *measures, size_t n)
{
	uint64_t any = 0;

	t->one_unit = true;
	for (size_t i = 0; i < c->n_pairs[list]; i++) {
		table_row(t);
		set_label(t, 0, c, list, i, 0);
		any |= set_measures(t, c, list, i, measures, n);
	}
	table_sort(t, 3, false);
	if (is_idle(r, DIFF_PHP, any))
		drop_last(r);
}

void compare_build_php(struct report *r, const struct compare *c)
{
	build(r, c, COMPARE_PHP_HOLDERS,
	      report_add(r, DIFF_PHP, "php_holders", "PHP VARIABLES, AND WHAT "
			 "THEY ALONE HOLD", holder_columns, O_COLUMNS),
	      holder_measures, countof(holder_measures));
	if (c->has[COMPARE_PHP_CLASSES])
		build(r, c, COMPARE_PHP_CLASSES,
		      report_add(r, DIFF_PHP, "php_classes",
				 "PHP OBJECTS BY CLASS", class_columns,
				 K_COLUMNS),
		      class_measures, countof(class_measures));
}
