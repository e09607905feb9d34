/* SPDX-License-Identifier: MIT */
/*
 * How a sampling profiler that runs inside a program notices the free of a
 * sampled block, and what it costs that all other frees are looked at.
 *
 * Each *filter* is asked at every free: "was this block sampled?"  It *loads*
 * so many words from memory that the free would not have touched, and may be
 * *wrong*, saying yes to a block that was not: then it asks the table, too.
 * Counts are exact; what a load costs depends on the cache, and is not said.
 *
 *	table	addresses of sampled blocks, open addressing, a quarter full at
 *		most, 16 bytes a slot
 *	bytes	65536 counters by the hash of the address, before the table
 *	bitmap	a bit for each 8 bytes, 64 bytes for each page with a sample,
 *		found by a tree of three levels of 4096; nodes stay
 *	page bit	in the allocator's own word for the page, which it
 *		loads anyway: some block on this page was sampled; then the
 *		table.  It stays until the page has no sampled block
 *	footer	a word behind each block, sampled or not
 *
 * Samples are those that the replay takes.
 */
#ifndef REPLAY_FILTERS_H
#define REPLAY_FILTERS_H

#include "replay/objects.h"
#include "replay/trace_read.h"
#include "sampler/geom.h"

enum free_filter {
	FILTER_TABLE, FILTER_BYTES, FILTER_BITMAP, FILTER_PAGE_BIT,
	FILTER_FOOTER,
};
enum { FILTERS = 5, FILTER_COUNTERS = 1 << 16, FILTER_LEVELS = 3 };

struct filter_cost {
	uint64_t loads;
	uint64_t wrong;
	uint64_t bytes;		/* of its own, at most */
};

/* The table, with back-shift; linear. */
struct filter_table {
	uint64_t *slots;	/* owned; address + 1 */
	size_t size, n;
};

struct filters_options {
	uint64_t rate, seed;
	enum sampler_unit unit;
	bool one_stream;
};

struct filters {
	struct filters_options options;
	struct sampler *samplers;	/* owned; by thread */
	bool *ready;		/* owned */
	size_t n_samplers;
	struct filter_table table;
	uint8_t *counters;	/* owned; saturated ones stay */
	struct objects pages;	/* sampled blocks of each page; see filters.c */
	struct objects nodes[FILTER_LEVELS];	/* of the tree, by prefix */
	uint64_t frees, sampled_frees, samples, most_samples;
	uint64_t live, most_live;
	struct filter_cost costs[FILTERS];
};

void filters_init(struct filters *f, const struct filters_options *options);
void filters_fini(struct filters *f);
void filters_events(struct filters *f, const struct trace_event *events,
		    size_t n);

const char *free_filter_name(enum free_filter filter);

#endif
