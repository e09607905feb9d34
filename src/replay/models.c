/* SPDX-License-Identifier: MIT */
#include "replay/models.h"

#include <stdlib.h>

#include "base/mem.h"

/* malloc/malloc.c of glibc: DEFAULT_MMAP_THRESHOLD and its _MAX. */
#define FIRST_THRESHOLD (UINT64_C(128) << 10)
#define LAST_THRESHOLD (UINT64_C(32) << 20)
/* live_block.sample: glibc has mapped it. */
enum { IN_HEAP, MAPPED };

void models_init(struct models *m)
{
	*m = (struct models){ .threshold = FIRST_THRESHOLD };
	for (int i = 0; i < SIZE_MODELS; i++) {
		size_classes_init(&m->classes[i], (enum size_model)i);
		m->spans[i] = mem_zalloc((m->classes[i].n + 1) *
					 sizeof(**m->spans));
	}
	live_init(&m->live, false);
}

void models_fini(struct models *m)
{
	for (int i = 0; i < SIZE_MODELS; i++) {
		for (unsigned k = 0; k < m->classes[i].n; k++) {
			free(m->spans[i][k].used);
			free(m->spans[i][k].queued);
			free(m->spans[i][k].heap);
		}
		free(m->spans[i]);
	}
	live_fini(&m->live);
	free(m->places);
}

/* ---- the lowest span with room ---- */

static void heap_push(struct model_class *c, uint32_t span)
{
	uint32_t i = c->n_heap;

	if (c->queued[span])
		return;
	c->queued[span] = 1;
	for (c->n_heap++; i && c->heap[(i - 1) / 2] > span; i = (i - 1) / 2)
		c->heap[i] = c->heap[(i - 1) / 2];
	c->heap[i] = span;
}

static void heap_pop(struct model_class *c)
{
	uint32_t last = c->heap[--c->n_heap], i = 0;

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child >= c->n_heap)
			break;
		if (child + 1 < c->n_heap &&
		    c->heap[child + 1] < c->heap[child])
			child++;
		if (c->heap[child] >= last)
			break;
		c->heap[i] = c->heap[child];
		i = child;
	}
	c->heap[i] = last;
}

static uint32_t new_span(struct model_class *c)
{
	if (c->n == c->cap) {
		c->cap = c->cap ? c->cap * 2 : 16;
		c->used = mem_realloc(c->used, c->cap * sizeof(*c->used));
		c->queued = mem_realloc(c->queued, c->cap);
		c->heap = mem_realloc(c->heap, c->cap * sizeof(*c->heap));
	}
	c->used[c->n] = 0;
	c->queued[c->n] = 0;
	return c->n++;
}

static uint32_t take_slot(struct model_class *c, const struct size_class *size,
			  struct model_sum *sum)
{
	uint32_t slots = size->span / size->size;
	uint32_t span;

	while (c->n_heap && c->used[c->heap[0]] == slots) {
		c->queued[c->heap[0]] = 0;
		heap_pop(c);
	}
	if (!c->n_heap)
		heap_push(c, new_span(c));
	span = c->heap[0];
	if (!c->used[span]++)
		sum->spans += size->span;
	return span;
}

static void give_slot(struct model_class *c, const struct size_class *size,
		      uint32_t span, struct model_sum *sum)
{
	if (!--c->used[span])
		sum->spans -= size->span;
	heap_push(c, span);
}

/* ---- blocks ---- */

static void add_block(struct models *m, struct live_block *b)
{
	uint32_t *span = m->places[b - m->live.blocks];

	for (int i = 0; i < SIZE_MODELS; i++) {
		const struct size_classes *c = &m->classes[i];
		struct model_sum *sum = &m->now.sum[i];
		int k = size_class_of(c, b->size);

		if (k >= 0) {
			sum->rounded += c->list[k].size;
			span[i] = take_slot(&m->spans[i][k], &c->list[k],
					    sum);
			continue;
		}
		uint64_t large = size_class_large(c, b->size,
						  b->sample == MAPPED);

		sum->rounded += large;
		sum->spans += c->n ? large : 0;
	}
}

static void end_block(struct models *m, struct live_block *b)
{
	const uint32_t *span = m->places[b - m->live.blocks];

	for (int i = 0; i < SIZE_MODELS; i++) {
		const struct size_classes *c = &m->classes[i];
		struct model_sum *sum = &m->now.sum[i];
		int k = size_class_of(c, b->size);

		if (k >= 0) {
			sum->rounded -= c->list[k].size;
			give_slot(&m->spans[i][k], &c->list[k], span[i], sum);
			continue;
		}
		uint64_t large = size_class_large(c, b->size,
						  b->sample == MAPPED);

		sum->rounded -= large;
		sum->spans -= c->n ? large : 0;
		if (i == MODEL_GLIBC && b->sample == MAPPED &&
		    large > m->threshold && large <= LAST_THRESHOLD)
			m->threshold = large;
	}
	m->now.requested -= b->size;
	m->now.blocks--;
	live_remove(&m->live, b);
}

static void do_alloc(struct models *m, const struct trace_event *e)
{
	struct live_block *b;

	/* Sizes that no program had; see replay.c. */
	if (e->size >= UINT64_C(1) << 56 ||
	    m->now.requested >= UINT64_C(1) << 62)
		return;
	b = live_find(&m->live, e->addr);
	if (b)
		end_block(m, b);
	b = live_add(&m->live, e->addr);
	if (m->n_places < m->live.cap_places) {
		m->n_places = m->live.cap_places;
		m->places = mem_realloc(m->places, m->n_places *
					sizeof(*m->places));
	}
	b->size = e->size;
	b->tick = e->tick;
	b->stack = 0;
	b->sample = round_up(e->size + 8, 16) >= m->threshold ? MAPPED
							      : IN_HEAP;
	add_block(m, b);
	m->now.requested += e->size;
	m->now.blocks++;
	if (m->now.requested > m->peak.requested)
		m->peak = m->now;
}

void models_events(struct models *m, const struct trace_event *events,
		   size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct trace_event *e = &events[i];

		if (trace_is_free(e->kind)) {
			struct live_block *b = live_find(&m->live, e->addr);

			if (b)
				end_block(m, b);
		}
		if (trace_is_alloc(e->kind))
			do_alloc(m, e);
	}
}
