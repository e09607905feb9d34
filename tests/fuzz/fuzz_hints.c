/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a file of hints.  What is understood is looked up in a program
 * that describes nothing.
 *
 * Code: analysis/hints
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/hints.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dwarf_types t;
	struct hints h;
	struct err err = { .kind = ERR_NONE };

	dwarf_types_init(&t);
	if (hints_parse(&h, (const char *)data, size, "input", &err)) {
		for (size_t i = 1; i < h.n; i++)
			if (!h.items[i].owner || !*h.items[i].path ||
			    (h.items[i].kind != HINT_TEXT &&
			     !*h.items[i].target))
				abort();
		hints_resolve(&h, &t);
		if (h.n_unknown != h.n - 1)
			abort();
	} else if (err.kind == ERR_NONE || !*err.msg) {
		abort();
	}
	hints_fini(&h);
	dwarf_types_fini(&t);
	return 0;
}
