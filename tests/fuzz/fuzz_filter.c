/* SPDX-License-Identifier: MIT */
/*
 * Any text as a filter.  What compiles and what its negation, term by term,
 * says of a row cannot both hold; a refusal has a message.
 *
 * Code: report/filter
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/filter.h"

enum { SIZE, SHARE, DIFF, NAME, FREE, COLUMNS };

static const struct column columns[COLUMNS] = {
	[SIZE] = COLUMN("size_bytes", "", BYTES),
	[SHARE] = COLUMN("share", "", SHARE),
	[DIFF] = COLUMN("diff", "", SIGNED),
	[NAME] = COLUMN("name", "", TEXT),
	[FREE] = COLUMN("free", "", FLAG),
};
static const char pool[] = "glibc 1";
static const struct cell row[COLUMNS] = {
	[SIZE] = { .u = 2048, .known = true },
	[SHARE] = { .share = 0.25, .known = true },
	[DIFF] = { .i = -5, .known = true },
	[NAME] = { .text = { 0, 7 }, .known = true },
	[FREE] = { .u = 1, .known = true },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* 1 or 0: whether it holds; -1: it does not compile. */
static int holds(const char *text)
{
	struct err err = { .kind = ERR_NONE };
	struct filter f;
	int ret = -1;

	if (filter_compile(&f, "--filter", text, columns, COLUMNS, &err))
		ret = filter_match(&f, row, pool);
	else if (err.kind == ERR_NONE || !*err.msg)
		abort();
	filter_fini(&f);
	return ret;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_FREE char *text = mem_printf("%.*s", (int)size,
					  (const char *)data);
	AUTO_FREE char *same = mem_printf(" %s ", text);
	AUTO_FREE char *both = mem_printf("%s !free", text);
	int got = holds(text);

	if (got >= 0 && holds(same) != got)
		abort();
	/* The row is free, so with this term nothing holds. */
	if (got >= 0 && holds(both) > 0)
		abort();
	return 0;
}
