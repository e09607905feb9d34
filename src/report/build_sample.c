/* SPDX-License-Identifier: MIT */
/*
 * What a sampling profiler would have said of the live blocks, beside what
 * there is.
 *
 * Marks are independent of each other, so sampling the blocks of a core has
 * the law of a live heap profile of that moment, taken by usable size as
 * jemalloc does.  Each arena has a stream of its own: a damaged one does not
 * shift the samples of the others.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/num.h"
#include "report/build.h"
#include "report/estimate.h"
#include "sampler/profile.h"

enum {
	S_SIZE, S_MIN, S_MAX, S_SAMPLES,
	S_BYTES, S_BLOCKS = S_BYTES + ESTIMATE_COLUMNS,
	S_COLUMNS = S_BLOCKS + ESTIMATE_COLUMNS
};

static const struct column sample_columns[S_COLUMNS] = {
	[S_SIZE] = COLUMN("size", "", TEXT, .flags = COLUMN_NO_DATA,
			  .width = 26),
	[S_MIN] = COLUMN("min_bytes", "", BYTES, .flags = COLUMN_NO_TEXT),
	[S_MAX] = COLUMN("max_bytes", "", BYTES, .flags = COLUMN_NO_TEXT),
	[S_SAMPLES] = COLUMN("samples", "samples", COUNT,
			     .flags = COLUMN_SUM, .width = 9),
	ESTIMATE_OF_BYTES(S_BYTES, ESTIMATE_SHOWN, ESTIMATE_SHOWN),
	ESTIMATE_OF_BLOCKS(S_BLOCKS, ESTIMATE_HIDDEN, ESTIMATE_HIDDEN),
};

/* Both as the table of size classes has them: in use, by chunk size. */
struct sampling {
	struct profile profile;
	struct sampler *streams;	/* owned; by arena */
	const struct usage *usage;
};

/* The class of a size that the usage has. */
static size_t find_class(const struct usage *u, uint64_t size)
{
	size_t low = 0, high = u->n_classes;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (u->classes[middle].min <= size)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static void sample_blocks(struct sampling *s, const struct heap *h)
{
	struct heap_iter it;
	struct sample hit;
	struct block b;

	heap_iter_init(&it, h);
	while (heap_iter_next(&it, &b)) {
		if (b.state != BLOCK_USED)
			continue;
		uint64_t length = sampler_length(UNIT_USABLE, b.usable);

		if (!sampler_step(&s->streams[b.arena], length, &hit))
			continue;
		hit.size = b.size;
		profile_add(&s->profile,
			    (uint32_t)find_class(s->usage, b.size), &hit);
	}
}

/* Variance by value for the blocks of a class of which none was seen. */
static double unseen_weight(const struct usage_class *c, uint64_t rate)
{
	uint64_t length = sampler_length(UNIT_USABLE, c->min);

	return estimator_variance(ESTIMATOR_HT, length, rate, 1) *
	       (double)c->min;
}

static void set_row(struct table *t, const struct profile_row *row,
		    const struct usage_class *c, double unseen, bool counts)
{
	struct profile_figures f = { .bytes.n = 0 };

	if (row)
		profile_get(row, VIEW_LIVE, &f);
	table_set(t, S_SAMPLES, f.bytes.n);
	estimate_set(t, S_BYTES, &f.bytes, unseen, &c->used.bytes);
	estimate_set(t, S_BLOCKS, &f.blocks,
		     counts ? unseen / (double)c->min : -1, &c->used.blocks);
}

static void add_rows(struct table *t, const struct sampling *s, uint64_t rate)
{
	const struct usage *u = s->usage;

	for (size_t i = 0; i < u->n_classes; i++) {
		const struct usage_class *c = &u->classes[i];

		if (!c->used.blocks)
			continue;
		table_row(t);
		if (c->min == c->max)
			table_printf(t, S_SIZE, "%" PRIu64, c->min);
		else
			table_printf(t, S_SIZE, "%" PRIu64 " to %" PRIu64,
				     c->min, c->max);
		table_set(t, S_MIN, c->min);
		table_set(t, S_MAX, c->max);
		set_row(t, profile_find(&s->profile, (uint32_t)i), c,
			unseen_weight(c, rate), true);
	}
	table_total_row(t);
	table_set_text(t, S_SIZE, "total");
	/* Of mixed sizes, small blocks may be missing: no interval. */
	set_row(t, profile_total(&s->profile), &u->total, (double)rate,
		false);
}

void build_sample(struct report *r, const struct report_input *in)
{
	const struct report_options *o = r->options;
	struct table *t = report_add(r, SECTION_SAMPLE, "sample",
				     "AS A SAMPLER SEES IT", sample_columns,
				     S_COLUMNS);
	struct sampling s = { .usage = in->usage };

	t->more = "other sizes";
	profile_init(&s.profile, ESTIMATOR_HT);
	s.streams = mem_alloc(in->heap->n_arenas * sizeof(*s.streams));
	for (size_t i = 0; i < in->heap->n_arenas; i++)
		sampler_init(&s.streams[i], o->sample_rate, o->sample_seed, i);
	if (in->usage->n_classes)
		sample_blocks(&s, in->heap);
	add_rows(t, &s, o->sample_rate);
	table_sort(t, S_BYTES + ESTIMATE_EXACT, false);
	free(s.streams);
	profile_fini(&s.profile);
}
