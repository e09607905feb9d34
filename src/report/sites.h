/* SPDX-License-Identifier: MIT */
/*
 * Stacks grouped into the rows of a report: by their innermost frames, those
 * of allocator functions left out.  Exact figures and estimates of a row are
 * sums over its stacks.
 */
#ifndef REPORT_SITES_H
#define REPORT_SITES_H

#include "replay/replay.h"
#include "report/frames.h"

enum { SITES_ALL_FRAMES = 0 };

/*
 * Of what a site allocated: how long it lived, in ticks; negative: not known.
 * Quantiles of all, those alive included, and of those that were freed.
 */
enum { SITE_QUANTILES = 3 };	/* 50, 90 and 99 % */
struct site_lives {
	uint64_t freed, alive;
	double quantile[SITE_QUANTILES];
	double pairs[SITE_QUANTILES];
};

struct site {
	char *name;		/* owned; "parse_batch  appd" */
	struct replay_site exact;
	struct profile_sum view[PROFILE_VIEWS];
	struct replay_life life;
	struct site_lives lives;	/* zeros without lifetimes */
	struct replay_change change;	/* zeros without growth */
};

struct sites {
	struct site *sites;	/* owned; in order of their first stack */
	size_t n, cap;
	struct site total;
	uint32_t *of_stack;	/* owned; index, by stack */
	size_t n_stacks;
};

/*
 * Names of the frames that make sites, ahead of time: by another thread than
 * that which reads events, but by no two at once.
 */
void sites_name(struct frames *f, size_t depth);

/* depth: how many frames make a site, SITES_ALL_FRAMES. */
void sites_init(struct sites *s, const struct replay *r, struct frames *f,
		size_t depth);
void sites_fini(struct sites *s);

/* All but quantiles and changes of one more site. */
void sites_add(struct site *to, const struct site *s);

/*
 * The frames of a stack that count, innermost first: without allocators, at
 * most max.  How many.  Of a stack that is nothing else, its last frame.
 */
size_t sites_frames(struct frames *f, uint32_t stack, uint32_t *ret,
		    size_t max);

/*
 * By function.  *Exclusive* is what it asked for itself, by its allocator;
 * *inclusive* what was asked for while it was on the stack, counted once if it
 * was there more than once.  So exclusive figures add up to the total, and the
 * inclusive ones of main are the total.
 */
struct function_sites {
	struct site *inclusive, *exclusive;	/* owned; by function */
	size_t n;
};

void function_sites_init(struct function_sites *s, const struct replay *r,
			 struct frames *f);
void function_sites_fini(struct function_sites *s);

#endif
