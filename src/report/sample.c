/* SPDX-License-Identifier: MIT */
#include "report/sample.h"

#include <stdlib.h>

#include "base/mem.h"

void sample_walk_init(struct sample_walk *w, const struct heap *h,
		      uint64_t rate, uint64_t seed)
{
	heap_iter_init(&w->it, h);
	w->streams = mem_alloc(h->n_arenas * sizeof(*w->streams));
	for (size_t i = 0; i < h->n_arenas; i++)
		sampler_init(&w->streams[i], rate, seed, i);
}

void sample_walk_fini(struct sample_walk *w)
{
	free(w->streams);
}

bool sample_walk_next(struct sample_walk *w, struct block *b,
		      struct sample *ret)
{
	while (heap_iter_next(&w->it, b)) {
		if (b->state != BLOCK_USED)
			continue;
		uint64_t length = sampler_length(UNIT_USABLE, b->usable);

		if (!sampler_step(&w->streams[b->arena], length, ret))
			continue;
		ret->size = b->size;
		return true;
	}
	return false;
}

uint64_t sample_rate_for(const struct heap *h, uint64_t budget_ns)
{
	/* Nanoseconds of one processor: docs/types.md, "What it costs". */
	enum { NAMED = 300, PASSED = 40, SAMPLED = 2000, LEAST = 1000 };
	uint64_t blocks = 0, bytes = 0, samples = LEAST, rate = 1;

	for (size_t i = 0; i < h->n_arenas; i++) {
		const struct arena *a = &h->arenas[i];

		blocks += a->state[BLOCK_USED].blocks + a->mmapped.blocks;
		bytes += a->state[BLOCK_USED].bytes + a->mmapped.bytes;
	}
	if (blocks * NAMED <= budget_ns)
		return 0;
	if (budget_ns > blocks * PASSED)
		samples = max_u64(samples, (budget_ns - blocks * PASSED) /
				  SAMPLED);
	while (rate < bytes / samples)
		rate *= 2;
	return rate;
}

uint64_t *sample_pick(const struct heap *h, const struct index *ix,
		      uint64_t rate, uint64_t seed)
{
	uint64_t *ret = mem_zalloc(((size_t)ix->n / 64 + 1) * sizeof(*ret));
	struct sample_walk w;
	struct sample sample;
	struct block b;

	sample_walk_init(&w, h, rate, seed);
	while (sample_walk_next(&w, &b, &sample)) {
		uint32_t number = index_number(ix, b.addr - ix->base);

		ret[number >> 6] |= UINT64_C(1) << (number & 63);
	}
	sample_walk_fini(&w);
	return ret;
}
