/* SPDX-License-Identifier: MIT */
#include "analysis/pattern.h"

#include <pthread.h>

#include "analysis/stored.h"
#include "corewalk/planes.h"

enum {
	WINDOW = 1 << 20,
	/* Smaller blocks have no page of their own to be passed over. */
	SPARSE_MIN = 1 << 14,
};
#define THREAD_MIN (4 * MIB)

struct walk {
	struct space sp;	/* a copy, for cursors of its own */
	const struct heap *h;
	pattern_fn *fn;
	void *worker;
	unsigned states;	/* of the blocks wanted */
	unsigned part;		/* which windows are ours */
	struct progress *progress;	/* or NULL */
	uint64_t done, total;
};

/* The first address behind addr that may be readable. */
static vaddr behind_hole(const struct space *sp, vaddr addr)
{
	size_t i = space_first_seg(sp, addr);

	if (i == sp->n_segs)
		return UINT64_MAX;
	return sp->segs[i].start > addr ? sp->segs[i].start : sp->segs[i].end;
}

/* Up to where bytes are worth reading from *at on; *at moves to them. */
static vaddr stored_until(struct space *sp, vaddr *at, vaddr end)
{
	vaddr hole, behind;

	*at = space_next_stored(sp, *at);
	if (*at >= end || !stored_next_hole(sp, *at, end, &hole, &behind))
		return end;
	return hole;
}

bool pattern_next(struct space *sp, vaddr *at, vaddr end, bool sparse,
		  struct pattern_piece *ret)
{
	while (*at < end) {
		vaddr stop = sparse ? stored_until(sp, at, end) : end;

		if (*at >= end)
			break;
		ret->n = stop - *at;
		ret->bytes = space_view(sp, *at, ret->n);
		if (!ret->bytes)
			ret->bytes = space_view_max(sp, *at, &ret->n);
		if (ret->bytes) {
			ret->n = min_u64(ret->n, stop - *at);
			ret->addr = *at;
			return true;
		}
		*at = behind_hole(sp, *at);
	}
	return false;
}

static void walk_block(struct walk *w, const struct block *b)
{
	struct pattern_piece piece = { .block = b };
	vaddr at = b->addr, end;

	if (!add_ok(b->addr, b->usable, &end))
		return;
	while (pattern_next(&w->sp, &at, end, b->usable >= SPARSE_MIN,
			    &piece)) {
		w->fn(w->worker, &piece);
		at += piece.n;
	}
}

static void walk_window(struct walk *w, vaddr from, vaddr to)
{
	struct heap_iter it;
	struct block b;

	heap_iter_range(&it, w->h, from, to);
	while (heap_iter_next(&it, &b))
		if (b.start >= from && b.start < to &&
		    w->states >> b.state & 1)
			walk_block(w, &b);
	w->done += to - from;
	if (w->progress)
		progress_step(w->progress, w->done, w->total, 0, NULL);
}

static bool is_ours(const struct walk *w, vaddr addr)
{
	return (addr / WINDOW) % PATTERN_WORKERS == w->part;
}

/* Where the next block starts, terabytes away in a damaged heap. */
static vaddr next_window(const struct heap_extent *x, vaddr at)
{
	uint64_t g = planes_next(x, planes_granule(x, at));

	return g == planes_granules(x) ? x->end :
		round_down(planes_addr(x, g), WINDOW);
}

static void walk_extent(struct walk *w, const struct heap_extent *x)
{
	if (x->kind == EXTENT_MMAPPED && is_ours(w, x->start))
		walk_window(w, x->start, x->end);
	if (x->kind != EXTENT_BLOCKS)
		return;
	for (vaddr from = x->start; from < x->end;) {
		vaddr to = min_u64(x->end, round_up(from + 1, WINDOW));

		if (is_ours(w, from))
			walk_window(w, from, to);
		from = max_u64(to, next_window(x, to));
	}
}

static void *walk_heap(void *arg)
{
	struct walk *w = arg;

	for (size_t i = 0; i < w->h->n_extents; i++)
		walk_extent(w, &w->h->extents[i]);
	return NULL;
}

void pattern_each(const struct space *sp, const struct heap *h,
		  unsigned states, pattern_fn *fn,
		  void *const workers[PATTERN_WORKERS], struct progress *p)
{
	struct walk walks[PATTERN_WORKERS];
	pthread_t thread;
	uint64_t bytes = 0;
	bool started;

	for (size_t i = 0; i < h->n_extents; i++)
		bytes += h->extents[i].end - h->extents[i].start;
	for (unsigned i = 0; i < PATTERN_WORKERS; i++)
		walks[i] = (struct walk){
			.sp = *sp, .h = h, .states = states, .fn = fn,
			.worker = workers[i], .part = i,
			.progress = i ? NULL : p,
			.total = bytes / PATTERN_WORKERS,
		};
	started = bytes >= THREAD_MIN &&
		!pthread_create(&thread, NULL, walk_heap, &walks[1]);
	walk_heap(&walks[0]);
	if (started)
		pthread_join(thread, NULL);
	else
		walk_heap(&walks[1]);
}

uint64_t pattern_stored(const struct space *sp, const struct heap *h)
{
	struct space copy = *sp;
	uint64_t bytes = 0;

	for (size_t i = 0; i < h->n_extents; i++)
		bytes += space_stored(&copy, h->extents[i].start,
				      h->extents[i].end);
	return bytes;
}
