/* SPDX-License-Identifier: MIT */
#include "sampler/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define ONE 65536.0
/* No input makes more of one sample than this. */
#define MOST 0x1p110

void profile_init(struct profile *p, enum estimator estimator)
{
	/* Stamp 0 is before the first mark: rows start as marked with 0. */
	*p = (struct profile){ .estimator = estimator, .stamp = 1 };
}

void profile_fini(struct profile *p)
{
	free(p->rows);
	free(p->index);
	free(p->samples);
	*p = (struct profile){ 0 };
}

static unsigned __int128 fixed(double value)
{
	double scaled = value * ONE + 0.5;

	return (unsigned __int128)(scaled < MOST ? scaled : MOST);
}

static void weigh(const struct profile *p, const struct sample *s,
		  struct profile_sum *ret)
{
	double value, variance;

	sample_weigh(s, p->estimator, (double)s->size, &value, &variance);
	ret->bytes = fixed(value);
	ret->bytes_variance = fixed(variance);
	sample_weigh(s, p->estimator, 1, &value, &variance);
	ret->blocks = fixed(value);
	ret->blocks_variance = fixed(variance);
	ret->n = 1;
}

void profile_sum_add(struct profile_sum *to, const struct profile_sum *from)
{
	to->bytes += from->bytes;
	to->bytes_variance += from->bytes_variance;
	to->blocks += from->blocks;
	to->blocks_variance += from->blocks_variance;
	to->n += from->n;
}

static void sum_subtract(struct profile_sum *to,
			 const struct profile_sum *what)
{
	to->bytes -= what->bytes;
	to->bytes_variance -= what->bytes_variance;
	to->blocks -= what->blocks;
	to->blocks_variance -= what->blocks_variance;
	to->n -= what->n;
}

/* Before a row changes: is its live view that of the marked moment? */
static void keep_marked(const struct profile *p, struct profile_row *row)
{
	if (row->stamp <= p->marked)
		row->view[VIEW_MARKED] = row->view[VIEW_LIVE];
}

static void touch(const struct profile *p, struct profile_row *row)
{
	keep_marked(p, row);
	row->stamp = p->stamp;
}

static uint32_t row_of(struct profile *p, uint32_t key)
{
	if (key >= p->n_index) {
		size_t n = (size_t)key + key / 2 + 64;

		p->index = mem_realloc(p->index, n * sizeof(*p->index));
		memset(p->index + p->n_index, 0,
		       (n - p->n_index) * sizeof(*p->index));
		p->n_index = n;
	}
	if (!p->index[key]) {
		MEM_PUSH(p->rows, p->n_rows, p->cap_rows) =
			(struct profile_row){ .key = key };
		p->index[key] = (uint32_t)p->n_rows;
	}
	return p->index[key] - 1;
}

static uint32_t new_handle(struct profile *p)
{
	uint32_t handle = p->free_sample;

	if (handle) {
		p->free_sample = p->samples[handle - 1].row;
		return handle;
	}
	(void)MEM_PUSH(p->samples, p->n_samples, p->cap_samples);
	return (uint32_t)p->n_samples;
}

static void add_to(const struct profile *p, struct profile_row *row,
		   const struct profile_sum *sum)
{
	touch(p, row);
	profile_sum_add(&row->view[VIEW_ALLOCATED], sum);
	profile_sum_add(&row->view[VIEW_LIVE], sum);
	if (p->comparing)
		profile_sum_add(&row->view[VIEW_COME], sum);
}

static void take_from(const struct profile *p, struct profile_row *row,
		      const struct profile_sum *sum, bool young)
{
	touch(p, row);
	sum_subtract(&row->view[VIEW_LIVE], sum);
	if (!p->comparing)
		return;
	if (young)
		sum_subtract(&row->view[VIEW_COME], sum);
	else
		profile_sum_add(&row->view[VIEW_GONE], sum);
}

uint32_t profile_add(struct profile *p, uint32_t key, const struct sample *s)
{
	struct profile_sum sum;
	uint32_t row = row_of(p, key);
	uint32_t handle = new_handle(p);

	weigh(p, s, &sum);
	p->stamp++;
	add_to(p, &p->rows[row], &sum);
	add_to(p, &p->total, &sum);
	p->samples[handle - 1] = (struct profile_sample){
		.sample = *s, .row = row,
		.young = p->comparing,
	};
	return handle;
}

static void free_handle(struct profile *p, uint32_t handle)
{
	p->samples[handle - 1].row = p->free_sample;
	p->free_sample = handle;
}

void profile_remove(struct profile *p, uint32_t handle)
{
	const struct profile_sample *s = &p->samples[handle - 1];
	struct profile_sum sum;

	weigh(p, &s->sample, &sum);
	p->stamp++;
	p->n_freed++;
	take_from(p, &p->rows[s->row], &sum, s->young);
	take_from(p, &p->total, &sum, s->young);
	free_handle(p, handle);
}

void profile_mark(struct profile *p)
{
	p->marked = p->stamp;
}

void profile_compare(struct profile *p, bool on)
{
	p->comparing = on;
}

void profile_finish(struct profile *p)
{
	for (size_t i = 0; i < p->n_rows; i++)
		keep_marked(p, &p->rows[i]);
	keep_marked(p, &p->total);
}

const struct profile_row *profile_find(const struct profile *p, uint32_t key)
{
	if (key >= p->n_index || !p->index[key])
		return NULL;
	return &p->rows[p->index[key] - 1];
}

const struct profile_row *profile_total(const struct profile *p)
{
	return &p->total;
}

static struct estimate estimate_of(unsigned __int128 value,
				   unsigned __int128 variance, uint64_t n)
{
	return (struct estimate){
		.n = n,
		.value = (double)value / ONE,
		.variance = (double)variance / ONE,
	};
}

void profile_sum_get(const struct profile_sum *sum,
		     struct profile_figures *ret)
{
	ret->bytes = estimate_of(sum->bytes, sum->bytes_variance, sum->n);
	ret->blocks = estimate_of(sum->blocks, sum->blocks_variance, sum->n);
}

void profile_get(const struct profile_row *row, enum profile_view view,
		 struct profile_figures *ret)
{
	profile_sum_get(&row->view[view], ret);
}
