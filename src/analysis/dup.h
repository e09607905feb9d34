/* SPDX-License-Identifier: MIT */
/*
 * Which byte strings occur how often, in memory that is known beforehand.
 *
 * Vocabulary.  An *item* is a byte string at a place, and costs so many bytes
 * there.  All that are equal make an *entry*.
 *
 * Two passes over the same items.  The first adds up in a *sketch*: two rows
 * of slots, in each of which one slot stands for a hash, so that no slot ever
 * has less than any entry of its hash.  The second makes entries of those
 * items alone both of whose slots have two copies and cost the *floor* at
 * least.  If there are more entries than room, the floor doubles and those
 * below go.  What is left was never turned away and so is counted exactly; and
 * all that cost the floor or more are left.  Equal means that the bytes were
 * compared.
 *
 * Floor and entries do not depend on the order of items.
 *
 * Memory: 1/64 to 1/32 of the heap for the sketch and twice as much for
 * entries, at most 16M of a small one; no more whatever the items are.  Time:
 * some 50 ns for an item and pass, most of it waiting for memory.
 *
 * Within analysis/ only.
 */
#ifndef ANALYSIS_DUP_H
#define ANALYSIS_DUP_H

#include "analysis/pattern.h"
#include "base/types.h"

struct dup_item {
	const uint8_t *bytes;	/* borrowed as long as the table lives */
	uint64_t n;
	uint64_t cost;
	vaddr addr;
	bool own;		/* a block of its own, which could go */
};

struct dup_entry {
	const uint8_t *text;	/* of the first one; borrowed */
	uint64_t n;
	vaddr addr;		/* of the first one, by address */
	uint64_t copies, bytes;	/* bytes: what they cost */
	struct {
		uint64_t copies, bytes;
		uint64_t least;	/* what the cheapest one costs */
		vaddr addr;	/* the first one; 0: none */
	} own;
	uint64_t hash;
};

struct dup_sketch {
	uint32_t *slots;	/* owned: copies, and cost above them */
	size_t bytes;
	unsigned shift;		/* of the hash, to the slot */
};

/* For a heap of so many bytes. */
void dup_sketch_init(struct dup_sketch *s, uint64_t heap_bytes);
void dup_sketch_fini(struct dup_sketch *s);

enum { DUP_BATCH = 32 };

/* What one worker counts; several may share a sketch. */
struct dup_table {
	struct dup_sketch *sketch;	/* borrowed */
	struct dup_entry *entries;	/* owned */
	size_t n, cap;
	size_t room;		/* entries there may be */
	uint32_t *index;	/* owned: entry + 1 by hash */
	size_t index_mask;
	uint64_t floor;
	bool second;		/* which pass this is */
	uint64_t given_up;	/* items whose hash too many others have */
	uint64_t items, bytes;	/* seen in the first pass */
	struct dup_item batch[DUP_BATCH];
	uint64_t hash[DUP_BATCH];
	size_t n_batch;
};

void dup_table_init(struct dup_table *t, struct dup_sketch *s);
void dup_table_fini(struct dup_table *t);

void dup_add(struct dup_table *t, const struct dup_item *item);
/* Ends a pass; the second one begins when all tables have ended the first. */
void dup_flush(struct dup_table *t);

/* After the second pass: the other table's entries too. */
void dup_merge(struct dup_table *t, const struct dup_table *other);
/* Only what there are two of, the most bytes first. */
void dup_finish(struct dup_table *t);
void dup_sort(struct dup_entry *entries, size_t n);
/* Is all there, or only what costs as much as t->floor? */
bool dup_is_exact(const struct dup_table *t);

/* The two passes over the blocks in use; the result is the first table. */
struct dup_count {
	struct dup_sketch sketch;
	bool second;		/* the next pass is the second one */
	struct dup_table tables[PATTERN_WORKERS];
};

void dup_count_init(struct dup_count *c, const struct space *sp,
		    const struct heap *h);
/* One pass: fn adds items to the tables, each worker to its own. */
void dup_count_pass(struct dup_count *c, const struct space *sp,
		    const struct heap *h, pattern_fn *fn,
		    void *const workers[PATTERN_WORKERS], struct progress *p);
/* After two passes. */
void dup_count_finish(struct dup_count *c);
void dup_count_fini(struct dup_count *c);

/* What would go if all copies in blocks of their own were one. */
uint64_t dup_saved(const struct dup_entry *e);

#endif
