/* SPDX-License-Identifier: MIT */
#include "analysis/kin.h"

#include <stdlib.h>

#include "analysis/scan.h"
#include "base/mem.h"

enum { WINDOW = SCAN_WORDS };	/* words */

void kin_init(struct kin *k, const struct index *ix)
{
	*k = (struct kin){ .ix = ix };
	k->bits = mem_zalloc(((size_t)ix->n / 64 + 1) * sizeof(*k->bits));
	k->pages = mem_zalloc(KIN_PAGES / 8);
}

void kin_fini(struct kin *k)
{
	free(k->bits);
	free(k->pages);
	*k = (struct kin){ 0 };
}

void kin_add(struct kin *k, uint32_t block)
{
	vaddr start = index_addr(k->ix, block);
	uint64_t first, last;

	if (!block || kin_has(k, block))
		return;
	k->bits[block >> 6] |= UINT64_C(1) << (block & 63);
	k->n++;
	first = (start - k->ix->base) >> 12;
	last = (index_end(k->ix, start) - k->ix->base) >> 12;
	last = min_u64(last, first + KIN_PAGES - 1);
	for (; first <= last; first++) {
		uint32_t page = first & (KIN_PAGES - 1);

		k->pages[page >> 6] |= UINT64_C(1) << (page & 63);
	}
}

/* Words from at on; from the last to the first if back. */
static void look(struct kin *k, const struct edges_piece *p, uint64_t at,
		 bool back)
{
	uint64_t n = min_u64(p->n - at, (uint64_t)WINDOW * p->word);
	struct scan_hits hits;
	size_t n_hits = scan_words(p->bytes + at, n / p->word, p->word,
				   k->ix->base, k->ix->span, &hits);

	for (size_t i = 0; i < n_hits; i++) {
		size_t h = back ? n_hits - 1 - i : i;
		vaddr word = p->start + at + hits.pos[h] * (uint64_t)p->word;

		if (kin_may_have(k, hits.off[h]) &&
		    kin_has(k, index_find(k->ix, k->ix->base + hits.off[h])))
			kin_add(k, index_find(k->ix, word));
	}
}

static void sweep(struct kin *k, const struct edges_piece *p, bool back,
		  size_t max)
{
	uint64_t step = (uint64_t)WINDOW * p->word;
	uint64_t n = (p->n + step - 1) / step;

	for (uint64_t i = 0; i < n && k->n <= max; i++)
		look(k, p, (back ? n - 1 - i : i) * step, back);
}

bool kin_sweep(struct kin *k, const struct edges_piece *pieces,
	       size_t n_pieces, bool back, size_t max)
{
	for (size_t i = 0; i < n_pieces && k->n <= max; i++) {
		const struct edges_piece *p =
			&pieces[back ? n_pieces - 1 - i : i];

		if (!p->root)
			sweep(k, p, back, max);
	}
	return k->n <= max;
}
