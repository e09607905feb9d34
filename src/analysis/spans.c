/* SPDX-License-Identifier: MIT */
#include "analysis/spans.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"

enum { NEARLY_PART = 8, PAGE = 4096 };

struct scan {
	struct spans *spans;
	struct heap *h;
	struct looked_sample *samples;	/* owned; of each class */
	size_t cap_samples;
	struct map classes;	/* class + 1, by allocator and size */
};

static size_t class_of(struct scan *s, uint32_t allocator, uint32_t size)
{
	struct spans *all = s->spans;
	uint32_t *class = map_at(&s->classes, (uint64_t)allocator << 32 | size);
	size_t n = all->n_classes;

	if (*class)
		return *class - 1;
	MEM_PUSH(s->samples, n, s->cap_samples) = (struct looked_sample){ 0 };
	MEM_PUSH(all->classes, all->n_classes, all->cap_classes) =
		(struct span_class){ .allocator = allocator, .size = size };
	*class = (uint32_t)all->n_classes;
	return all->n_classes - 1;
}

static enum span_fill fill_of(uint64_t used, uint64_t n)
{
	if (!used)
		return SPAN_UNUSED;
	if (used == n)
		return SPAN_FULL;
	if (used <= n / NEARLY_PART)
		return SPAN_NEARLY;
	return used <= n / 2 ? SPAN_HALF : SPAN_MORE;
}

static void add_tally(struct tally *t, uint64_t blocks, uint64_t size)
{
	t->blocks += blocks;
	t->bytes += blocks * size;
}

static void add_pins(struct scan *s, const struct heap_extent *x,
		     const struct heap_span *span, size_t class)
{
	struct span_class *c = &s->spans->classes[class];

	for (uint32_t off = 0; off < span->bytes; off += span->size) {
		vaddr at = span->start + off;

		if (!extent_is_start(x, at) ||
		    extent_state(x, at) != BLOCK_USED)
			continue;
		if (!c->pinning++)
			c->example = at + x->user_off;
		looked_add(&s->samples[class], at);
	}
}

/* What was never handed out may be one block, which starts somewhere here. */
static void add_span(struct scan *s, const struct heap_extent *x,
		     const struct heap_span *span)
{
	uint32_t allocator = s->h->arenas[x->arena].allocator;
	const uint8_t *roles = s->h->allocators[allocator].roles;
	uint64_t n = span->bytes / span->size, used = 0, cached = 0;
	struct span_class *c;
	enum span_fill fill;
	size_t class;

	if (!roles)
		return;
	class = class_of(s, allocator, span->size);
	for (uint32_t off = 0; off < span->bytes; off += span->size) {
		enum block_state state = BLOCK_UNSORTED;

		if (extent_is_start(x, span->start + off))
			state = extent_state(x, span->start + off);
		used += state == BLOCK_USED;
		cached += block_state_free(state) &&
			roles[state] == FREE_IN_CACHE;
	}
	c = &s->spans->classes[class];
	fill = fill_of(used, n);
	c->spans++;
	c->bytes += span->bytes;
	add_tally(&c->used, used, span->size);
	add_tally(&c->cached, cached, span->size);
	add_tally(&c->free, n - used - cached, span->size);
	c->fill[fill]++;
	c->idle[fill] += (n - used) * span->size;
	if (!used && !cached)
		c->empty_bytes += round_up(span->bytes, PAGE);
	if (fill == SPAN_NEARLY)
		add_pins(s, x, span, class);
}

static int by_allocator_and_size(const void *a, const void *b)
{
	const struct span_class *x = a, *y = b;

	return ORDER(x->allocator, y->allocator) ?: ORDER(x->size, y->size);
}

void spans_init(struct spans *ret, struct space *sp, struct heap *h)
{
	struct scan s = { .spans = ret, .h = h };

	*ret = (struct spans){ 0 };
	for (size_t i = 0; i < h->n_spans; i++) {
		const struct heap_span *span = &h->spans[i];
		const struct heap_extent *x = heap_extent_at(h, span->start);

		/* Where two claim one place the walk's own may be gone. */
		if (x && x->kind == EXTENT_BLOCKS &&
		    span->bytes <= x->end - span->start &&
		    extent_is_start(x, span->start))
			add_span(&s, x, span);
	}
	for (size_t i = 0; i < ret->n_classes; i++)
		looked_at(&ret->classes[i].looked, &s.samples[i], sp, h);
	SORT(ret->classes, ret->n_classes, by_allocator_and_size);
	free(s.samples);
	map_fini(&s.classes);
}

void spans_fini(struct spans *s)
{
	free(s->classes);
	*s = (struct spans){ 0 };
}
