/* SPDX-License-Identifier: MIT */
/*
 * What a sampling profiler would have said of the live blocks, beside what
 * there is: by size, and by type.
 */
#include <inttypes.h>

#include "analysis/census.h"
#include "report/build.h"
#include "report/estimate.h"
#include "report/sample.h"
#include "sampler/profile.h"

enum {
	S_SIZE, S_ALLOCATOR, S_MIN, S_MAX, S_SAMPLES,
	S_BYTES, S_BLOCKS = S_BYTES + ESTIMATE_COLUMNS,
	S_COLUMNS = S_BLOCKS + ESTIMATE_COLUMNS
};

static const struct column sample_columns[S_COLUMNS] = {
	[S_SIZE] = COLUMN("size", "", TEXT, .flags = COLUMN_NO_DATA,
			  .width = 26),
	[S_ALLOCATOR] = COLUMN("allocator", "allocator", TEXT),
	[S_MIN] = DATA_COLUMN("min_bytes", BYTES),
	[S_MAX] = DATA_COLUMN("max_bytes", BYTES),
	[S_SAMPLES] = COLUMN("samples", "samples", COUNT,
			     .flags = COLUMN_SUM, .width = 9),
	ESTIMATE_OF_BYTES(S_BYTES, ESTIMATE_SHOWN, ESTIMATE_SHOWN),
	ESTIMATE_OF_BLOCKS(S_BLOCKS, ESTIMATE_HIDDEN, ESTIMATE_HIDDEN),
};

/* One walk for both tables: by size class, and by type if there is a census. */
static void take_samples(struct profile *classes, struct profile *types,
			 const struct report *r,
			 const struct report_input *in)
{
	const struct census *c = in->sampled;
	const struct arena *arenas = in->heap->arenas;
	struct sample_walk w;
	struct sample hit;
	struct block b;

	profile_init(classes, ESTIMATOR_HT);
	profile_init(types, ESTIMATOR_HT);
	if (!in->usage->n_classes)
		return;
	sample_walk_init(&w, in->heap, r->options->sample_rate,
			 r->options->sample_seed);
	while (sample_walk_next(&w, &b, &hit)) {
		profile_add(classes, (uint32_t)
			    usage_find(in->usage, arenas[b.arena].allocator,
				       b.size), &hit);
		if (c)
			profile_add(types,
				    types_of(&c->types,
					     index_number(c->ix, b.addr -
							  c->ix->base)),
				    &hit);
	}
	sample_walk_fini(&w);
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

static void add_rows(struct table *t, const struct profile *p,
		     const struct usage *u, const struct heap *h,
		     uint64_t rate)
{
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
		table_set_text(t, S_ALLOCATOR,
			       h->allocators[c->allocator].name);
		table_set(t, S_MIN, c->min);
		table_set(t, S_MAX, c->max);
		set_row(t, profile_find(p, (uint32_t)i), c,
			unseen_weight(c, rate), true);
	}
	table_total_row(t);
	table_set_text(t, S_SIZE, "total");
	/* Of mixed sizes, small blocks may be missing: no interval. */
	set_row(t, profile_total(p), &u->total, (double)rate, false);
}

struct table *sample_add_classes(struct report *r, unsigned section,
				 const char *name, const char *title,
				 const struct profile *profile,
				 const struct usage *u, const struct heap *h,
				 uint64_t rate)
{
	struct table *t = report_add(r, section, name, title, sample_columns,
				     S_COLUMNS);

	t->more = "other sizes";
	add_rows(t, profile, u, h, rate);
	table_hide_same(t, S_ALLOCATOR);
	table_sort(t, S_BYTES + ESTIMATE_EXACT, false);
	return t;
}

/* ---- by type ---- */

enum {
	Y_NAME, Y_SAMPLES, Y_BYTES, Y_BLOCKS = Y_BYTES + ESTIMATE_COLUMNS,
	Y_KNOWN = Y_BLOCKS + ESTIMATE_COLUMNS, Y_COLUMNS
};

static const struct column type_columns[Y_COLUMNS] = {
	[Y_NAME] = COLUMN("name", "", TEXT, .width = 26),
	[Y_SAMPLES] = COLUMN("samples", "samples", COUNT,
			     .flags = COLUMN_SUM, .width = 9),
	ESTIMATE_OF_BYTES(Y_BYTES, ESTIMATE_SHOWN, ESTIMATE_SHOWN),
	ESTIMATE_OF_BLOCKS(Y_BLOCKS, ESTIMATE_HIDDEN, ESTIMATE_HIDDEN),
	[Y_KNOWN] = DATA_COLUMN("known_by", TEXT),
};

/* Of mixed sizes, blocks may be missing: only bytes have an interval. */
static void set_type(struct table *t, const struct profile_row *row,
		     const struct tally *exact, uint64_t rate)
{
	struct profile_figures f = { .bytes.n = 0 };

	if (row)
		profile_get(row, VIEW_LIVE, &f);
	table_set(t, Y_SAMPLES, f.bytes.n);
	estimate_set(t, Y_BYTES, &f.bytes, (double)rate,
		     exact ? &exact->bytes : NULL);
	estimate_set(t, Y_BLOCKS, &f.blocks, -1,
		     exact ? &exact->blocks : NULL);
}

/* Rows of the census, which are exact if it was of all blocks. */
static void build_types_sample(struct report *r,
			       const struct report_input *in,
			       const struct profile *profile)
{
	const struct census *c = in->sampled;
	bool exact = c == in->census;
	struct table *t = report_add(r, SECTION_SAMPLE, "sample_types",
				     "TYPES, AS A SAMPLER SEES THEM",
				     type_columns, Y_COLUMNS);

	t->more = "other types";
	for (size_t i = 0; i < c->n_rows; i++) {
		const struct census_row *row = &c->rows[i];
		const struct type *type = &c->types.items[row->type];

		/* Blocks that were not looked at. */
		if (!exact && !profile_find(profile, row->type))
			continue;
		table_row(t);
		table_set_text(t, Y_NAME, type->name);
		table_set_text(t, Y_KNOWN, type_known_name(type->known));
		set_type(t, profile_find(profile, row->type),
			 exact ? &row->total : NULL,
			 r->options->sample_rate);
	}
	table_total_row(t);
	table_set_text(t, Y_NAME, "total");
	set_type(t, profile_total(profile), exact ? &c->total : NULL,
		 r->options->sample_rate);
	table_sort(t, Y_BYTES + (exact ? ESTIMATE_EXACT : ESTIMATE_VALUE),
		   false);
}

void build_sample(struct report *r, const struct report_input *in)
{
	struct profile classes, types;

	take_samples(&classes, &types, r, in);
	sample_add_classes(r, SECTION_SAMPLE, "sample", "AS A SAMPLER SEES IT",
			   &classes, in->usage, in->heap,
			   r->options->sample_rate);
	if (in->sampled)
		build_types_sample(r, in, &types);
	profile_fini(&classes);
	profile_fini(&types);
}
