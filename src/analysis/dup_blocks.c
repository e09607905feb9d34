/* SPDX-License-Identifier: MIT */
#include "analysis/dup_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* What one worker sees in a pass. */
struct sorter {
	struct dup_table *table;
	struct tally compared, zero, filled, in_parts;
	vaddr last;		/* the last block in parts */
};

static void count(struct tally *t, const struct block *b)
{
	t->blocks++;
	t->bytes += b->size;
}

/* Is it its first word over and over, and what is left of it at the end? */
static bool is_filled(const uint8_t *bytes, uint64_t n)
{
	uint64_t whole = n & ~UINT64_C(7);

	/* Overlapping, and so compared with what is 8 bytes before. */
	return n >= 16 && !memcmp(bytes, bytes + 8, whole - 8) &&
	       !memcmp(bytes, bytes + whole, n - whole);
}

static void sort_piece(void *worker, const struct pattern_piece *p)
{
	struct sorter *s = worker;
	const struct block *b = p->block;
	struct dup_item item = {
		.bytes = p->bytes, .n = p->n, .cost = b->size,
		.addr = b->addr, .own = true,
	};

	if (p->n != b->usable) {
		if (s->last != b->addr)
			count(&s->in_parts, b);
		s->last = b->addr;
		return;
	}
	if (is_filled(p->bytes, p->n)) {
		count(load_u64(p->bytes) ? &s->filled : &s->zero, b);
		return;
	}
	count(&s->compared, b);
	dup_add(s->table, &item);
}

static void add(struct tally *sum, const struct tally *more)
{
	sum->blocks += more->blocks;
	sum->bytes += more->bytes;
}

static void add_up(struct dup_blocks *d, const struct dup_table *t)
{
	d->distinct = t->n;
	d->given_up = t->given_up;
	d->floor = dup_is_exact(t) ? 0 : t->floor;
	for (size_t i = 0; i < t->n; i++) {
		d->copies += t->entries[i].copies;
		d->bytes += t->entries[i].bytes;
		d->saved += dup_saved(&t->entries[i]);
	}
}

void dup_blocks_init(struct dup_blocks *d, const struct space *sp,
		     const struct heap *h, struct progress *p)
{
	struct sorter sorters[PATTERN_WORKERS];
	void *workers[PATTERN_WORKERS];
	struct dup_count count;

	*d = (struct dup_blocks){ .n = 0 };
	progress_phase(p, "comparing blocks");
	dup_count_init(&count, sp, h);
	for (unsigned pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < PATTERN_WORKERS; i++) {
			sorters[i] = (struct sorter){
				.table = &count.tables[i] };
			workers[i] = &sorters[i];
		}
		dup_count_pass(&count, sp, h, sort_piece, workers, p);
	}
	for (size_t i = 0; i < PATTERN_WORKERS; i++) {
		add(&d->compared, &sorters[i].compared);
		add(&d->zero, &sorters[i].zero);
		add(&d->filled, &sorters[i].filled);
		add(&d->in_parts, &sorters[i].in_parts);
	}
	dup_count_finish(&count);
	add_up(d, &count.tables[0]);
	d->n = min_u64(count.tables[0].n, DUP_BLOCKS_KEPT);
	d->items = mem_alloc((d->n + 1) * sizeof(*d->items));
	if (d->n)
		memcpy(d->items, count.tables[0].entries,
		       d->n * sizeof(*d->items));
	dup_count_fini(&count);
}

void dup_blocks_fini(struct dup_blocks *d)
{
	free(d->items);
	*d = (struct dup_blocks){ .n = 0 };
}
