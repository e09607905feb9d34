/* SPDX-License-Identifier: MIT */
#include "analysis/dup.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"

enum {
	/*
	 * Slots for a heap: one in so many bytes of a large one; a small one
	 * has as many as it can need.  And how many there may be.
	 */
	SLOT_BYTES = 256, SMALL_SLOT_BYTES = 8, SMALL_SLOTS = 1 << 20,
	SLOTS_LOG_MIN = 12, SLOTS_LOG_MAX = 27, SLOTS_PER_ENTRY = 32,
	/*
	 * By chance a place in the index is near; who goes further, or meets
	 * one of his hash that is not equal again and again, is a trap.
	 */
	MAX_PROBES = 256, MAX_TWINS = 4,
};

/*
 * Of a slot the low bits are copies, and the others cost.  Both stop before
 * they overflow, even if two workers at once find that there is room.
 */
enum { COPIES_BITS = 2, COPIES_ENOUGH = 2 };
#define COST_ENOUGH (UINT32_C(1) << 29)
#define COST_MAX (UINT32_C(1) << 28)

#define FLOOR_LEAST 2

/* ---- hashing ---- */

static uint64_t fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Odd numbers without a pattern: digits of pi. */
#define KEY_1 UINT64_C(0x243f6a8885a308d3)
#define KEY_2 UINT64_C(0x13198a2e03707345)

static uint64_t hash_bytes(const uint8_t *p, uint64_t n)
{
	uint64_t h = n * KEY_1, a = 0, b = 0;

	for (; n > 16; n -= 16, p += 16)
		h = fold(load_u64(p) ^ KEY_2 ^ h, load_u64(p + 8) ^ KEY_1);
	memcpy(&a, p, n < 8 ? n : 8);
	if (n > 8)
		memcpy(&b, p + 8, n - 8);
	h = fold(a ^ KEY_2 ^ h, b ^ KEY_1);
	return fold(h ^ KEY_1, KEY_2);
}

/* ---- the sketch ---- */

void dup_sketch_init(struct dup_sketch *s, uint64_t heap_bytes)
{
	uint64_t few = min_u64(heap_bytes / SMALL_SLOT_BYTES, SMALL_SLOTS);
	uint64_t want = max_u64(few, heap_bytes / SLOT_BYTES);
	unsigned log = SLOTS_LOG_MIN;

	while (log < SLOTS_LOG_MAX && UINT64_C(1) << log < want)
		log++;
	/* Half of them for each row. */
	s->shift = 64 - (log - 1);
	s->bytes = sizeof(*s->slots) << log;
	s->slots = mem_map_huge(s->bytes);
}

void dup_sketch_fini(struct dup_sketch *s)
{
	mem_unmap(s->slots, s->bytes);
}

enum { ROWS = 2 };

/* In each row another part of the hash decides. */
static uint32_t *slot_of(const struct dup_sketch *s, uint64_t hash,
			 unsigned row)
{
	uint64_t at = (row ? hash * KEY_2 : hash) >> s->shift;

	return &s->slots[((uint64_t)row << (64 - s->shift)) + at];
}

static void slot_add(uint32_t *slot, uint64_t cost)
{
	uint32_t old = __atomic_load_n(slot, __ATOMIC_RELAXED), add = 0;

	if (old % (1 << COPIES_BITS) < COPIES_ENOUGH)
		add = 1;
	if (old >> COPIES_BITS < COST_ENOUGH)
		add += (uint32_t)min_u64(cost, COST_MAX) << COPIES_BITS;
	if (add)
		__atomic_fetch_add(slot, add, __ATOMIC_RELAXED);
}

/* Can an entry of this hash have two copies and cost so much? */
static bool sketch_has(const struct dup_sketch *s, uint64_t hash,
		       uint64_t floor)
{
	for (unsigned row = 0; row < ROWS; row++) {
		uint32_t slot = *slot_of(s, hash, row);

		if (slot % (1 << COPIES_BITS) < COPIES_ENOUGH ||
		    slot >> COPIES_BITS < min_u64(floor, COST_ENOUGH))
			return false;
	}
	return true;
}

/* ---- tables ---- */

void dup_table_init(struct dup_table *t, struct dup_sketch *s)
{
	size_t room = (size_t)ROWS << (64 - s->shift);

	*t = (struct dup_table){ .sketch = s, .floor = FLOOR_LEAST };
	t->room = room / SLOTS_PER_ENTRY;
	/* Merged, there may be twice as many. */
	t->index_mask = 4 * t->room - 1;
	t->index = mem_map((t->index_mask + 1) * sizeof(*t->index));
}

void dup_table_fini(struct dup_table *t)
{
	free(t->entries);
	mem_unmap(t->index, (t->index_mask + 1) * sizeof(*t->index));
}

/* The place of an entry that is equal, or the free place; false: given up. */
static bool find_place(const struct dup_table *t, const uint8_t *bytes,
		       uint64_t n, uint64_t hash, size_t *ret)
{
	size_t at = hash & t->index_mask;
	unsigned twins = 0;

	for (unsigned i = 0; i < MAX_PROBES; i++) {
		const struct dup_entry *e;

		*ret = at;
		if (!t->index[at])
			return true;
		e = &t->entries[t->index[at] - 1];
		if (e->hash == hash) {
			if (e->n == n && !memcmp(e->text, bytes, n))
				return true;
			if (++twins == MAX_TWINS)
				return false;
		}
		at = (at + 1) & t->index_mask;
	}
	return false;
}

static void rebuild_index(struct dup_table *t)
{
	size_t at;

	memset(t->index, 0, (t->index_mask + 1) * sizeof(*t->index));
	for (size_t i = 0; i < t->n; i++) {
		const struct dup_entry *e = &t->entries[i];

		at = e->hash & t->index_mask;
		while (t->index[at])
			at = (at + 1) & t->index_mask;
		t->index[at] = (uint32_t)i + 1;
	}
}

static void raise_floor(struct dup_table *t, uint64_t floor)
{
	size_t n = 0;

	t->floor = floor;
	for (size_t i = 0; i < t->n; i++)
		if (sketch_has(t->sketch, t->entries[i].hash, floor))
			t->entries[n++] = t->entries[i];
	t->n = n;
	rebuild_index(t);
}

static void count_item(struct dup_entry *e, const struct dup_item *item)
{
	e->copies++;
	e->bytes += item->cost;
	if (!item->own)
		return;
	if (!e->own.copies || item->cost < e->own.least)
		e->own.least = item->cost;
	if (!e->own.copies)
		e->own.addr = item->addr;
	e->own.copies++;
	e->own.bytes += item->cost;
}

static void add_entry(struct dup_table *t, size_t place,
		      const struct dup_item *item, uint64_t hash)
{
	struct dup_entry *e = &MEM_PUSH(t->entries, t->n, t->cap);

	*e = (struct dup_entry){
		.text = item->bytes, .n = item->n, .addr = item->addr,
		.hash = hash,
	};
	t->index[place] = (uint32_t)t->n;
	count_item(e, item);
	while (t->n > t->room && t->floor < COST_ENOUGH)
		raise_floor(t, t->floor * 2);
	/* Only if very many entries cost gigabytes, as their slots have it. */
	if (t->n > t->room) {
		t->n--;
		rebuild_index(t);
		t->given_up++;
	}
}

static void take_item(struct dup_table *t, const struct dup_item *item,
		      uint64_t hash)
{
	size_t place;

	if (!sketch_has(t->sketch, hash, t->floor))
		return;
	if (!find_place(t, item->bytes, item->n, hash, &place))
		t->given_up++;
	else if (t->index[place])
		count_item(&t->entries[t->index[place] - 1], item);
	else
		add_entry(t, place, item, hash);
}

void dup_flush(struct dup_table *t)
{
	for (size_t i = 0; i < t->n_batch; i++)
		if (t->second)
			take_item(t, &t->batch[i], t->hash[i]);
		else
			for (unsigned row = 0; row < ROWS; row++)
				slot_add(slot_of(t->sketch, t->hash[i], row),
					 t->batch[i].cost);
	t->n_batch = 0;
}

void dup_add(struct dup_table *t, const struct dup_item *item)
{
	uint64_t hash = hash_bytes(item->bytes, item->n);

	for (unsigned row = 0; row < ROWS; row++)
		__builtin_prefetch(slot_of(t->sketch, hash, row));
	if (!t->second) {
		t->items++;
		t->bytes += item->n;
	}
	t->batch[t->n_batch] = *item;
	t->hash[t->n_batch++] = hash;
	if (t->n_batch == DUP_BATCH)
		dup_flush(t);
}

/* ---- the result ---- */

static void merge_entry(struct dup_entry *e, const struct dup_entry *other)
{
	if (other->addr < e->addr) {
		e->addr = other->addr;
		e->text = other->text;
	}
	e->copies += other->copies;
	e->bytes += other->bytes;
	if (!other->own.copies)
		return;
	if (!e->own.copies || other->own.least < e->own.least)
		e->own.least = other->own.least;
	if (!e->own.copies || other->own.addr < e->own.addr)
		e->own.addr = other->own.addr;
	e->own.copies += other->own.copies;
	e->own.bytes += other->own.bytes;
}

void dup_merge(struct dup_table *t, const struct dup_table *other)
{
	if (other->floor > t->floor)
		raise_floor(t, other->floor);
	t->given_up += other->given_up;
	t->items += other->items;
	t->bytes += other->bytes;
	for (size_t i = 0; i < other->n; i++) {
		const struct dup_entry *e = &other->entries[i];
		size_t at;

		if (!sketch_has(t->sketch, e->hash, t->floor))
			continue;
		if (!find_place(t, e->text, e->n, e->hash, &at)) {
			t->given_up += e->copies;
		} else if (t->index[at]) {
			merge_entry(&t->entries[t->index[at] - 1], e);
		} else {
			MEM_PUSH(t->entries, t->n, t->cap) = *e;
			t->index[at] = (uint32_t)t->n;
		}
	}
}

static int by_bytes(const void *a, const void *b)
{
	const struct dup_entry *x = a, *y = b;

	return ORDER(y->bytes, x->bytes) ?:
	       ORDER(y->copies, x->copies) ?:
	       ORDER(x->addr, y->addr);
}

void dup_sort(struct dup_entry *entries, size_t n)
{
	SORT(entries, n, by_bytes);
}

void dup_finish(struct dup_table *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		if (t->entries[i].copies > 1)
			t->entries[n++] = t->entries[i];
	t->n = n;
	dup_sort(t->entries, n);
}

bool dup_is_exact(const struct dup_table *t)
{
	return t->floor == FLOOR_LEAST && !t->given_up;
}

uint64_t dup_saved(const struct dup_entry *e)
{
	return e->own.bytes - e->own.least;
}

/* ---- the heap ---- */

void dup_count_init(struct dup_count *c, const struct space *sp,
		    const struct heap *h)
{
	dup_sketch_init(&c->sketch, pattern_stored(sp, h));
	c->second = false;
	for (size_t i = 0; i < PATTERN_WORKERS; i++)
		dup_table_init(&c->tables[i], &c->sketch);
}

void dup_count_pass(struct dup_count *c, const struct space *sp,
		    const struct heap *h, pattern_fn *fn,
		    void *const workers[PATTERN_WORKERS], struct progress *p)
{
	for (size_t i = 0; i < PATTERN_WORKERS; i++)
		c->tables[i].second = c->second;
	pattern_each(sp, h, PATTERN_USED, fn, workers, p);
	for (size_t i = 0; i < PATTERN_WORKERS; i++)
		dup_flush(&c->tables[i]);
	c->second = true;
}

void dup_count_finish(struct dup_count *c)
{
	for (size_t i = 1; i < PATTERN_WORKERS; i++)
		dup_merge(&c->tables[0], &c->tables[i]);
	dup_finish(&c->tables[0]);
}

void dup_count_fini(struct dup_count *c)
{
	for (size_t i = 0; i < PATTERN_WORKERS; i++)
		dup_table_fini(&c->tables[i]);
	dup_sketch_fini(&c->sketch);
}
