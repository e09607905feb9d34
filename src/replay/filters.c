/* SPDX-License-Identifier: MIT */
#include "replay/filters.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
	FIRST_SLOTS = 64, SPARSE = 4, SLOT_BYTES = 16, WORD = 8,
	PAGE_SHIFT = 12, LEVEL_BITS = 12, NODE_BYTES = 8 << LEVEL_BITS,
	BITMAP_BYTES = 64, MAX_THREADS = 1 << 16,
};

void filters_init(struct filters *f, const struct filters_options *options)
{
	*f = (struct filters){ .options = *options };
	f->table.size = FIRST_SLOTS;
	f->table.slots = mem_zalloc(FIRST_SLOTS * sizeof(*f->table.slots));
	f->counters = mem_zalloc(FILTER_COUNTERS);
	objects_init(&f->pages);
	for (unsigned i = 0; i < FILTER_LEVELS; i++)
		objects_init(&f->nodes[i]);
}

void filters_fini(struct filters *f)
{
	free(f->samplers);
	free(f->ready);
	free(f->table.slots);
	free(f->counters);
	objects_fini(&f->pages);
	for (unsigned i = 0; i < FILTER_LEVELS; i++)
		objects_fini(&f->nodes[i]);
}

/* ---- the table ---- */

static size_t home(const struct filter_table *t, uint64_t addr)
{
	return (size_t)(addr * UINT64_C(0x9e3779b97f4a7c15) >> 32) &
	       (t->size - 1);
}

/* Where addr is, or would be; *loads grows by the slots looked at. */
static size_t probe(const struct filter_table *t, uint64_t addr,
		    uint64_t *loads)
{
	size_t i = home(t, addr);

	for (++*loads; t->slots[i] && t->slots[i] != addr + 1; ++*loads)
		i = (i + 1) & (t->size - 1);
	return i;
}

static void insert(struct filter_table *t, uint64_t addr)
{
	uint64_t loads = 0;

	if (++t->n * SPARSE > t->size) {
		uint64_t *old = t->slots;
		size_t size = t->size;

		t->size *= 2;
		t->slots = mem_zalloc(t->size * sizeof(*t->slots));
		for (size_t i = 0; i < size; i++)
			if (old[i])
				t->slots[probe(t, old[i] - 1, &loads)] =
					old[i];
		free(old);
	}
	t->slots[probe(t, addr, &loads)] = addr + 1;
}

/* What would not be found any more moves up. */
static void erase(struct filter_table *t, size_t i)
{
	size_t mask = t->size - 1;

	t->n--;
	for (size_t j = (i + 1) & mask; t->slots[j]; j = (j + 1) & mask) {
		size_t from = (j - home(t, t->slots[j] - 1)) & mask;

		if (from < ((j - i) & mask))
			continue;
		t->slots[i] = t->slots[j];
		i = j;
	}
	t->slots[i] = 0;
}

/* ---- what filters know ---- */

static uint8_t *counter(struct filters *f, uint64_t addr)
{
	return &f->counters[addr * UINT64_C(0x9e3779b97f4a7c15) >> 48];
}

/* The prefix of an address that a node of the tree is for. */
static uint64_t prefix(uint64_t addr, unsigned level)
{
	return addr >> PAGE_SHIFT >> (FILTER_LEVELS - 1 - level) * LEVEL_BITS;
}

static void note_memory(struct filters *f)
{
	uint64_t table = f->table.size * SLOT_BYTES;

	f->costs[FILTER_TABLE].bytes = table;
	f->costs[FILTER_BYTES].bytes = table + FILTER_COUNTERS;
	f->costs[FILTER_PAGE_BIT].bytes = table;
	f->costs[FILTER_BITMAP].bytes = NODE_BYTES +
		NODE_BYTES * (f->nodes[0].used + f->nodes[1].used) +
		BITMAP_BYTES * f->nodes[2].used;
	f->costs[FILTER_FOOTER].bytes = WORD * f->most_live;
}

static void add_sampled(struct filters *f, uint64_t addr)
{
	uint8_t *count = counter(f, addr);
	uint64_t page = addr >> PAGE_SHIFT;

	insert(&f->table, addr);
	*count += *count < UINT8_MAX;
	objects_put(&f->pages, page, objects_find(&f->pages, page) + 1);
	for (unsigned i = 0; i < FILTER_LEVELS; i++)
		objects_put(&f->nodes[i], prefix(addr, i), 1);
	f->samples++;
	f->most_samples = max_u64(f->most_samples, f->table.n);
}

static void remove_sampled(struct filters *f, uint64_t addr, size_t slot)
{
	uint8_t *count = counter(f, addr);
	uint64_t page = addr >> PAGE_SHIFT;
	uint64_t left = objects_take(&f->pages, page) - 1;

	erase(&f->table, slot);
	/* One that was full does not know how many there were. */
	*count -= *count < UINT8_MAX;
	if (left)
		objects_put(&f->pages, page, left);
}

/* ---- events ---- */

static void ask_bitmap(struct filters *f, uint64_t addr)
{
	uint64_t *loads = &f->costs[FILTER_BITMAP].loads;

	/* Entries down to the bitmap, and the word in it. */
	for (unsigned i = 0; i < FILTER_LEVELS; i++) {
		++*loads;
		if (!objects_find(&f->nodes[i], prefix(addr, i)))
			return;
	}
	++*loads;
}

static void do_free(struct filters *f, uint64_t addr)
{
	struct filter_cost *c = f->costs;
	uint64_t probes = 0;
	size_t slot = probe(&f->table, addr, &probes);
	bool hit = f->table.slots[slot];

	f->frees++;
	f->sampled_frees += hit;
	f->live -= f->live > 0;
	c[FILTER_TABLE].loads += probes;
	c[FILTER_BYTES].loads++;
	if (*counter(f, addr)) {
		c[FILTER_BYTES].loads += probes;
		c[FILTER_BYTES].wrong += !hit;
	}
	if (objects_find(&f->pages, addr >> PAGE_SHIFT)) {
		c[FILTER_PAGE_BIT].loads += probes;
		c[FILTER_PAGE_BIT].wrong += !hit;
	}
	ask_bitmap(f, addr);
	c[FILTER_FOOTER].loads++;
	if (hit)
		remove_sampled(f, addr, slot);
}

static struct sampler *sampler_of(struct filters *f, uint32_t thread)
{
	const struct filters_options *o = &f->options;

	thread = o->one_stream ? 0
		 : (uint32_t)min_u64(thread, MAX_THREADS - 1);
	if (thread >= f->n_samplers) {
		size_t n = (size_t)thread + thread / 2 + 16;

		f->samplers = mem_realloc(f->samplers,
					  n * sizeof(*f->samplers));
		f->ready = mem_realloc(f->ready, n * sizeof(*f->ready));
		memset(f->ready + f->n_samplers, 0,
		       (n - f->n_samplers) * sizeof(*f->ready));
		f->n_samplers = n;
	}
	if (!f->ready[thread])
		sampler_init(&f->samplers[thread], o->rate, o->seed, thread);
	f->ready[thread] = true;
	return &f->samplers[thread];
}

static void do_alloc(struct filters *f, const struct trace_event *e)
{
	uint64_t length = sampler_length(f->options.unit, e->size);
	uint64_t probes = 0;
	size_t slot = probe(&f->table, e->addr, &probes);
	struct sample hit;

	/* Its free was lost. */
	if (f->table.slots[slot])
		remove_sampled(f, e->addr, slot);
	f->most_live = max_u64(f->most_live, ++f->live);
	if (sampler_step(sampler_of(f, e->thread), length, &hit))
		add_sampled(f, e->addr);
}

void filters_events(struct filters *f, const struct trace_event *events,
		    size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (trace_is_free(events[i].kind))
			do_free(f, events[i].addr);
		if (trace_is_alloc(events[i].kind))
			do_alloc(f, &events[i]);
	}
	note_memory(f);
}

const char *free_filter_name(enum free_filter filter)
{
	static const char *const names[] = {
		[FILTER_TABLE] = "table", [FILTER_BYTES] = "bytes",
		[FILTER_BITMAP] = "bitmap", [FILTER_PAGE_BIT] = "page bit",
		[FILTER_FOOTER] = "footer",
	};

	return names[filter];
}
