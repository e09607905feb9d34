/* SPDX-License-Identifier: MIT */
/*
 * What must hold for every input, however damaged: the same checks for the
 * fuzz target, the mutations and the fault injection.  What does not hold
 * ends the program.
 */
#ifndef FUZZ_INVARIANTS_H
#define FUZZ_INVARIANTS_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/census.h"
#include "analysis/damage.h"
#include "analysis/fragment.h"
#include "analysis/standout.h"
#include "analysis/usage.h"
#include "analysis/where.h"
#include "corewalk/alloc.h"
#include "corewalk/heap.h"
#include "corewalk/space.h"
#include "corewalk/target.h"

#define MUST(cond, addr)						\
	do {								\
		if (!(cond))						\
			must_fail(__FILE__, __LINE__, #cond, (addr));	\
	} while (0)

/*
 * What takes long is for some inputs only: who knows which sets these.  No
 * analyses, and one of MANY_BLOCKS found by its address, or all of them; one
 * allocator, or all.
 */
enum { JUST_WALK, USUAL, ALL_OF_IT, MANY_BLOCKS = 16 };
static int how_much = USUAL;
static const struct allocator *just_one;

/* For an index of blocks: heaps that claim terabytes have none. */
enum { INDEX_ROOM = 32 << 20 };

static void must_fail(const char *file, int line, const char *what,
		      uint64_t addr)
{
	fprintf(stderr, "%s:%d: not true: %s (0x%" PRIx64 ")\n", file, line,
		what, addr);
	abort();
}

#include "fuzz/php.h"
#include "fuzz/repeats.h"

/* Extents are sorted, apart and not empty; arenas are those of the heap. */
static void must_be_extents(const struct heap *h)
{
	vaddr end = 0;

	for (size_t i = 0; i < h->n_extents; i++) {
		const struct heap_extent *x = &h->extents[i];

		MUST(x->start >= end, x->start);
		MUST(x->start < x->end, x->start);
		MUST(x->arena < h->n_arenas, x->start);
		MUST((x->kind == EXTENT_BLOCKS) == (x->planes[0] != NULL),
		     x->start);
		end = x->end;
	}
}

/* A block is found by its first and its last byte, and lies in its extent. */
static void must_be_block(struct heap *h, const struct block *b)
{
	struct block found;
	const struct heap_extent *x = heap_extent_at(h, b->start);

	MUST(x && b->start + b->size <= x->end, b->start);
	MUST(b->size > 0, b->start);
	MUST((int)b->state < BLOCK_STATES, b->start);
	MUST(b->addr >= b->start, b->start);
	MUST(b->usable <= b->size, b->start);
	MUST(heap_find(h, b->start, &found), b->start);
	MUST(found.start == b->start && found.size == b->size &&
	     found.addr == b->addr && found.usable == b->usable &&
	     found.state == b->state && found.arena == b->arena &&
	     found.mmapped == b->mmapped, b->start);
	MUST(heap_find(h, b->start + b->size - 1, &found), b->start);
	MUST(found.start == b->start, b->start);
}

/*
 * Blocks come in address order and tile their extents; counted one by one
 * they are what the arenas say.
 */
static void must_tile(struct heap *h)
{
	struct tally (*state)[BLOCK_STATES] =
		calloc(h->n_arenas + 1, sizeof(*state));
	struct tally *mmapped = calloc(h->n_arenas + 1, sizeof(*mmapped));
	struct heap_iter it;
	struct block b;
	vaddr end = 0;
	size_t n = 0;

	heap_iter_init(&it, h);
	while (heap_iter_next(&it, &b)) {
		const struct heap_extent *x = heap_extent_at(h, b.start);
		struct tally *t = b.mmapped ? &mmapped[b.arena] :
			&state[b.arena][b.state];

		MUST(b.start >= end, b.start);
		MUST(x && (b.start == end || b.start == x->start), b.start);
		end = b.start + b.size;
		t->blocks++;
		t->bytes += b.size;
		if (how_much != JUST_WALK || n++ % MANY_BLOCKS == 0)
			must_be_block(h, &b);
	}
	for (size_t i = 0; i < h->n_arenas; i++) {
		const struct arena *a = &h->arenas[i];

		MUST(!memcmp(state[i], a->state, sizeof(state[i])), i);
		MUST(mmapped[i].blocks == a->mmapped.blocks, i);
		MUST(mmapped[i].bytes == a->mmapped.bytes, i);
	}
	free(state);
	free(mmapped);
}

static void must_sum(const struct heap *h)
{
	uint64_t extents = 0, arenas = 0;

	for (size_t i = 0; i < h->n_extents; i++)
		extents += h->extents[i].end - h->extents[i].start;
	for (size_t i = 0; i < h->n_arenas; i++) {
		const struct arena *a = &h->arenas[i];
		uint64_t sum = a->mmapped.bytes + a->overhead_bytes +
			a->foreign_bytes + a->undecoded_bytes +
			a->runtime_bytes;

		for (int s = 0; s < BLOCK_STATES; s++)
			sum += a->state[s].bytes;
		MUST(sum == a->extent_bytes, a->addr);
		MUST(a->runtime_used <= a->runtime_bytes &&
		     a->runtime_free <= a->runtime_bytes - a->runtime_used,
		     a->addr);
		arenas += sum;
	}
	MUST(extents == arenas, 0);
	for (size_t i = 0; i < h->n_notes; i++)
		MUST(strcmp(h->notes[i].code, "sum") != 0, h->notes[i].addr);
}

static void must_be_caches(struct heap *h)
{
	struct block b;

	for (size_t i = 0; i < h->n_cached; i++) {
		MUST(h->cached[i].cache < h->n_caches, h->cached[i].start);
		MUST(!i || h->cached[i - 1].start < h->cached[i].start,
		     h->cached[i].start);
		/* Not so where two walkers claim one place. */
		if (heap_find(h, h->cached[i].start, &b))
			MUST(b.state == BLOCK_CACHED, b.start);
	}
}

/* Every private byte in exactly one row. */
static void must_be_where(const struct where *w)
{
	uint64_t bytes = 0, stored = 0;

	for (int i = 0; i < WHERE_ROWS; i++) {
		MUST(w->row[i].stored <= w->row[i].bytes, (uint64_t)i);
		bytes += w->row[i].bytes;
		stored += w->row[i].stored;
	}
	MUST(bytes == w->total.bytes, bytes);
	MUST(stored == w->total.stored, stored);
}

/* Each block in use has a type, and is in one row. */
static void must_be_types(struct space *sp, struct heap *h)
{
	struct tally used = { 0, 0 }, rows = { 0, 0 };
	struct symbols *symbols = symbols_new(sp, NULL);
	struct census_input in = { .sp = sp, .heap = h, .symbols = symbols };
	struct census c;
	struct index ix;
	struct err err;

	in.ix = &ix;
	for (size_t i = 0; i < h->n_arenas; i++) {
		const struct tally *t = &h->arenas[i].state[BLOCK_USED];

		used.blocks += t->blocks + h->arenas[i].mmapped.blocks;
		used.bytes += t->bytes + h->arenas[i].mmapped.bytes;
	}
	if (index_init(&ix, h, INDEX_ROOM, &err)) {
		census_init(&c, &in);
		for (size_t i = 0; i < c.n_rows; i++) {
			rows.blocks += c.rows[i].total.blocks;
			rows.bytes += c.rows[i].total.bytes;
		}
		MUST(rows.blocks == used.blocks, rows.blocks);
		MUST(rows.bytes == used.bytes, rows.bytes);
		census_fini(&c);
		index_fini(&ix);
	}
	symbols_free(symbols);
}

/* What the others answer is theirs to test: here they come to an end. */
static void run_analyses(struct space *sp, struct heap *h)
{
	struct fragment fragment;
	struct standout standout;
	struct damage damage;
	struct usage usage;
	struct where where;
	struct standout_input in = {
		.sp = sp, .heap = h, .where = &where, .usage = &usage,
		.fragment = &fragment, .damage = &damage,
	};

	where_init(&where, sp, h);
	must_be_where(&where);
	usage_init(&usage, h, USAGE_ALL_ARENAS);
	MUST(usage_check(&usage, h), 0);
	fragment_init(&fragment, sp, h);
	damage_init(&damage, sp, h);
	standout_init(&standout, &in);
	standout_fini(&standout);
	damage_fini(&damage);
	fragment_fini(&fragment);
	usage_fini(&usage);
	where_fini(&where);
}

/* Walk a space and check all of it; false if there is no heap in it. */
__attribute__((unused))
static bool walk_and_check(struct space *sp, struct heap *h)
{
	struct err err;
	bool found;

	heap_init(h);
	found = alloc_walk(sp, just_one, false, h, NULL, &err);
	must_be_extents(h);
	must_tile(h);
	must_sum(h);
	must_be_caches(h);
	if (how_much == JUST_WALK)
		return found;
	run_analyses(sp, h);
	must_be_types(sp, h);
	must_be_php(sp, h);
	if (how_much == ALL_OF_IT)
		must_repeat(sp, h);
	return found;
}

/* A core in memory: open, walk, check. */
__attribute__((unused))
static bool check_core(const void *data, size_t size)
{
	const struct target_options options = { .no_files = true };
	struct err err;
	struct heap h;
	struct space *sp = target_open_core_memory(data, size, &options,
						   &err);
	bool found;

	if (!sp)
		return false;
	found = walk_and_check(sp, &h);
	heap_fini(&h);
	space_close(sp);
	return found;
}

#endif
