/* SPDX-License-Identifier: MIT */
#include "analysis/heat.h"

#include <string.h>

#include "corewalk/pages.h"

static void add_block(struct heat_cell *c, const struct block *b,
		      uint64_t bytes)
{
	if (b->state == BLOCK_USED)
		c->used += bytes;
	else if (block_state_free(b->state))
		c->free += bytes;
	else
		c->overhead += bytes;
}

static void add_pages(struct space *sp, vaddr start, vaddr end,
		      struct heat_cell *ret)
{
	struct residency r = { 0 };

	if (!space_pages_known(sp)) {
		ret->stored = space_stored(sp, start, end);
		return;
	}
	space_residency(sp, start, end, &r);
	ret->stored = r.resident;
	ret->swapped = r.swapped;
}

void heat_cells(struct space *sp, const struct heap *h, vaddr from,
		uint64_t size, struct heat_cell *ret, size_t n)
{
	struct heap_iter it;
	struct block b;
	vaddr end;

	memset(ret, 0, n * sizeof(*ret));
	if (!n || !add_ok(from, size * n, &end))
		return;
	heap_iter_range(&it, h, from, end);
	while (heap_iter_next(&it, &b)) {
		vaddr at = max_u64(b.start, from);
		vaddr to = min_u64(b.start + b.size, end);

		while (at < to) {
			size_t i = (size_t)((at - from) / size);
			vaddr next = min_u64(to, from + (i + 1) * size);

			add_block(&ret[i], &b, next - at);
			at = next;
		}
	}
	for (size_t i = 0; i < n; i++)
		add_pages(sp, from + i * size, from + (i + 1) * size, &ret[i]);
}
