/* SPDX-License-Identifier: MIT */
/*
 * Samples grouped by a key: a call site, a size class.
 *
 * A *profile* follows each sampled block from profile_add() to
 * profile_remove() by a handle, and keeps for each key three *views*: what was
 * allocated, what is live, and what was live at the *marked* moment, of which
 * there is one at a time, the last one.  Marking costs O(1), whatever the
 * number of keys: a row learns that it must keep its live figures when it
 * changes next.
 *
 * Sums are integers, in 2^-16 of a byte and of a block: they do not depend on
 * the order of what was added and removed, and what was removed leaves
 * nothing behind.
 *
 * Between two instants, profile_compare() on and off, what has come and what is
 * gone is summed up apart: the *change* of a row is one less the other.  What
 * was live at both is in neither, as its samples are the same.
 *
 * Sampling *stops* when the owner no longer adds; blocks are followed on.
 */
#ifndef SAMPLER_PROFILE_H
#define SAMPLER_PROFILE_H

#include "base/types.h"
#include "sampler/geom.h"

enum profile_view {
	VIEW_ALLOCATED,
	VIEW_LIVE,
	VIEW_MARKED,
	VIEW_COME,		/* since the first, live at the second */
	VIEW_GONE,		/* live at the first, and not at the second */
};
enum { PROFILE_VIEWS = 5 };

/* Fixed point sums; the variances are those of the values. */
struct profile_sum {
	unsigned __int128 bytes, bytes_variance;
	unsigned __int128 blocks, blocks_variance;
	uint64_t n;
};

struct profile_row {
	uint32_t key;
	uint64_t stamp;		/* of the last change */
	struct profile_sum view[PROFILE_VIEWS];
};

struct profile_sample {
	struct sample sample;
	uint32_t row;		/* or next free handle */
	bool young;		/* came while two instants are compared */
};

struct profile {
	enum estimator estimator;
	struct profile_row *rows;	/* owned; in order of appearance */
	size_t n_rows, cap_rows;
	uint32_t *index;	/* owned; by key: row + 1, 0 none */
	size_t n_index;
	struct profile_sample *samples;	/* owned; by handle - 1 */
	size_t n_samples, cap_samples;
	uint32_t free_sample;	/* handle; 0 none */
	uint64_t stamp, marked;	/* changes so far, and when it was marked */
	uint64_t n_freed;	/* of the samples, while followed */
	bool comparing;
	struct profile_row total;
};

void profile_init(struct profile *p, enum estimator estimator);
void profile_fini(struct profile *p);

/*
 * A block was sampled.  The handle is never 0.  Keys are small numbers: the
 * index is as long as the largest.
 */
uint32_t profile_add(struct profile *p, uint32_t key, const struct sample *s);
/* It is gone.  One that was discarded is passed over. */
void profile_remove(struct profile *p, uint32_t handle);
/* The sample behind a live handle. */
static inline const struct sample *profile_sample(const struct profile *p,
						  uint32_t handle)
{
	return &p->samples[handle - 1].sample;
}

/* Live as it is now becomes the marked view; the older one is dropped. */
void profile_mark(struct profile *p);

/* The first of two instants, and the second.  Once for a profile. */
void profile_compare(struct profile *p, bool on);

/* Live bytes in 2^-16: for those who look for a peak. */
static inline unsigned __int128 profile_live(const struct profile *p)
{
	return p->total.view[VIEW_LIVE].bytes;
}

/* NULL if nothing of the key was sampled. */
const struct profile_row *profile_find(const struct profile *p, uint32_t key);
const struct profile_row *profile_total(const struct profile *p);

/* All rows' marked views are right from now on; before they are read. */
void profile_finish(struct profile *p);

/* The figures of one view; they may be added up over rows. */
struct profile_figures {
	struct estimate bytes, blocks;
};
void profile_get(const struct profile_row *row, enum profile_view view,
		 struct profile_figures *ret);
void profile_sum_add(struct profile_sum *to, const struct profile_sum *from);
void profile_sum_get(const struct profile_sum *sum,
		     struct profile_figures *ret);

#endif
