/* SPDX-License-Identifier: MIT */
/*
 * An allocator that heapcore can walk.  Adding one: write alloc_NAME.c with
 * a const struct allocator at its bottom and list it in alloc.c.
 *
 * probe is cheap: signatures and a few pages, never the whole heap.  An absent
 * allocator is a score of 0, not an error.
 */
#ifndef COREWALK_ALLOC_H
#define COREWALK_ALLOC_H

#include "base/err.h"
#include "base/progress.h"
#include "corewalk/heap.h"
#include "corewalk/space.h"

struct sighting {
	unsigned score;		/* 0: absent; 1 to 99: a guess; 100: certain */
	char text[200];		/* what was seen, or what was missing */
	void *priv;		/* owned by the allocator; see drop */
	size_t n;		/* of what priv has */
};

struct allocator {
	const char *name;	/* as in --allocator=NAME and in reports */
	const char *summary;	/* one line for --help */

	void (*probe)(struct space *sp, struct sighting *ret);
	/*
	 * Report every arena, extent and block, and every damaged place.
	 * Damage becomes a heap_note() and the walk goes on.
	 */
	void (*walk)(struct space *sp, struct sighting *at, struct heap *heap,
		     struct progress *progress);
	/* Frees priv and its n; NULL and 0 are fine. */
	void (*drop)(void *priv, size_t n);
};

/* All allocators, ended by NULL. */
extern const struct allocator *const allocators[];

const struct allocator *alloc_by_name(const char *name);

/*
 * Find and walk every allocator of the target (only NULL) or just one, then
 * heap_finish().  False if none was found; err says what was looked for and
 * how near it came.
 */
bool alloc_walk(struct space *sp, const struct allocator *only, bool force,
		struct heap *heap, struct progress *progress, struct err *err)
	MUST_CHECK;

#endif
