/* SPDX-License-Identifier: MIT */
#include "analysis/spans.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"

enum { HASHED = 4096, NEARLY_PART = 8, PAGE = 4096 };

struct scan {
	struct spans *spans;
	struct heap *h;
	struct looked_sample *samples;	/* owned; of each class */
	size_t cap_samples;
	uint32_t hash[HASHED];		/* class + 1 */
};

/* Allocators have at most some hundred classes: the table never fills. */
static size_t class_of(struct scan *s, uint32_t allocator, uint32_t size)
{
	struct spans *all = s->spans;
	uint32_t at = (allocator * 0x9e3779b1u + size * 0x85ebca6bu) >> 20;
	size_t n = 0;

	for (; n < HASHED && s->hash[at]; n++, at = (at + 1) % HASHED) {
		const struct span_class *c = &all->classes[s->hash[at] - 1];

		if (c->allocator == allocator && c->size == size)
			return s->hash[at] - 1;
	}
	if (all->n_classes == HASHED / 2)
		return SIZE_MAX;
	n = all->n_classes;
	MEM_PUSH(s->samples, n, s->cap_samples) = (struct looked_sample){ 0 };
	MEM_PUSH(all->classes, all->n_classes, all->cap_classes) =
		(struct span_class){ .allocator = allocator, .size = size };
	s->hash[at] = (uint32_t)all->n_classes;
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
	size_t class = class_of(s, allocator, span->size);
	const uint8_t *roles = s->h->allocators[allocator].roles;
	uint64_t n = span->bytes / span->size, used = 0, cached = 0;
	struct span_class *c;
	enum span_fill fill;

	if (class == SIZE_MAX || !roles)
		return;
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
	struct scan *s = mem_zalloc(sizeof(*s));

	*ret = (struct spans){ 0 };
	s->spans = ret;
	s->h = h;
	for (size_t i = 0; i < h->n_spans; i++) {
		const struct heap_span *span = &h->spans[i];
		const struct heap_extent *x = heap_extent_at(h, span->start);

		/* Where two claim one place the walk's own may be gone. */
		if (x && x->kind == EXTENT_BLOCKS &&
		    span->bytes <= x->end - span->start &&
		    extent_is_start(x, span->start))
			add_span(s, x, span);
	}
	for (size_t i = 0; i < ret->n_classes; i++)
		looked_at(&ret->classes[i].looked, &s->samples[i], sp, h);
	SORT(ret->classes, ret->n_classes, by_allocator_and_size);
	free(s->samples);
	free(s);
}

void spans_fini(struct spans *s)
{
	free(s->classes);
	*s = (struct spans){ 0 };
}
