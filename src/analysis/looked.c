/* SPDX-License-Identifier: MIT */
#include "analysis/looked.h"

void looked_add(struct looked_sample *s, vaddr start)
{
	uint32_t kept;

	while (s->n == LOOKED_SAMPLES && s->mask != UINT64_MAX) {
		s->mask = s->mask >> 1 | UINT64_C(1) << 63;
		kept = 0;
		for (uint32_t i = 0; i < LOOKED_SAMPLES; i++)
			if (!(looked_hash(s->start[i]) & s->mask))
				s->start[kept++] = s->start[i];
		s->n = kept;
	}
	if (s->n < LOOKED_SAMPLES && !(looked_hash(start) & s->mask))
		s->start[s->n++] = start;
}

/* Keep the most frequent looks; the order of equal ones is that of address. */
static void keep_looks(struct looked *ret, const struct look *looks,
		       const uint32_t *seen, size_t n)
{
	bool taken[LOOKED_SAMPLES] = { false };

	for (int i = 0; i < LOOKED_KINDS; i++) {
		size_t best = n;

		for (size_t k = 0; k < n; k++)
			if (!taken[k] && (best == n || seen[k] > seen[best]))
				best = k;
		if (best == n)
			return;
		taken[best] = true;
		ret->looks[i] = looks[best];
		ret->seen[i] = seen[best];
	}
}

void looked_at(struct looked *ret, const struct looked_sample *s,
	       struct space *sp, struct heap *h)
{
	struct look looks[LOOKED_SAMPLES];
	uint32_t seen[LOOKED_SAMPLES];
	size_t n = 0;

	for (uint32_t i = 0; i < s->n; i++) {
		struct block b;
		struct look look;
		size_t j = 0;

		if (!heap_find(h, s->start[i], &b))
			continue;
		look = usage_look(sp, h, &b);
		ret->looked++;
		while (j < n && !look_alike(&looks[j], &look))
			j++;
		if (j == n) {
			looks[n] = look;
			seen[n++] = 0;
		}
		seen[j]++;
	}
	keep_looks(ret, looks, seen, n);
}
