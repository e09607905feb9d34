/* SPDX-License-Identifier: MIT */
/*
 * The start and state planes of an extent read word by word, for passes that
 * must not pay for a struct block each.  Positions are *granules* from the
 * extent's start; the granule behind the last one stands for the extent's end.
 * Only for EXTENT_BLOCKS.  Within corewalk/ and analysis/ only.
 */
#ifndef COREWALK_PLANES_H
#define COREWALK_PLANES_H

#include "base/types.h"
#include "corewalk/heap.h"

/* The last block may be shorter than one: a fencepost of i386. */
static inline uint64_t planes_granules(const struct heap_extent *x)
{
	uint64_t bytes = x->end - x->start, whole = bytes >> x->shift;

	return whole + (whole << x->shift != bytes);
}

static inline vaddr planes_addr(const struct heap_extent *x, uint64_t g)
{
	return g >= planes_granules(x) ? x->end : x->start + (g << x->shift);
}

/* The granule that holds addr, which lies in the extent. */
static inline uint64_t planes_granule(const struct heap_extent *x, vaddr addr)
{
	return (addr - x->start) >> x->shift;
}

/* Starts of word w whose blocks are not plainly in use. */
static inline uint64_t planes_odd(const struct heap_extent *x, size_t w)
{
	return x->planes[0][w] &
	       (x->planes[1][w] | x->planes[2][w] | x->planes[3][w]);
}

static inline enum block_state planes_state(const struct heap_extent *x,
					    uint64_t g)
{
	unsigned b = g & 63;
	size_t w = g >> 6;

	return (x->planes[1][w] >> b & 1) | (x->planes[2][w] >> b & 1) << 1 |
	       (x->planes[3][w] >> b & 1) << 2;
}

/* The first start from g on; the number of granules if there is none. */
static inline uint64_t planes_next(const struct heap_extent *x, uint64_t g)
{
	uint64_t end = planes_granules(x);
	size_t w = g >> 6;
	uint64_t bits;

	if (g >= end || w >= x->n_words)
		return end;
	bits = x->planes[0][w] & ~UINT64_C(0) << (g & 63);
	while (!bits) {
		if (++w >= x->n_words)
			return end;
		bits = x->planes[0][w];
	}
	return min_u64((uint64_t)w << 6 | (unsigned)__builtin_ctzll(bits), end);
}

/* The same for blocks that are not plainly in use. */
static inline uint64_t planes_next_odd(const struct heap_extent *x, uint64_t g)
{
	uint64_t end = planes_granules(x);
	size_t w = g >> 6;
	uint64_t bits;

	if (g >= end || w >= x->n_words)
		return end;
	bits = planes_odd(x, w) & ~UINT64_C(0) << (g & 63);
	while (!bits) {
		if (++w >= x->n_words)
			return end;
		bits = planes_odd(x, w);
	}
	return min_u64((uint64_t)w << 6 | (unsigned)__builtin_ctzll(bits), end);
}

/* The last start at or before g; false if there is none. */
static inline bool planes_prev(const struct heap_extent *x, uint64_t g,
			       uint64_t *ret)
{
	size_t w = g >> 6;
	uint64_t bits;

	if (w >= x->n_words) {
		w = x->n_words - 1;
		g = 63;
	}
	bits = x->planes[0][w] & ~UINT64_C(0) >> (63 - (g & 63));
	while (!bits) {
		if (!w)
			return false;
		bits = x->planes[0][--w];
	}
	*ret = (uint64_t)w << 6 | (63 - (unsigned)__builtin_clzll(bits));
	return true;
}

/*
 * The block that the last range ended in.  Ranges are asked for in address
 * order: a block is looked for once, however many ranges lie in it, and what
 * lies between two ranges is not looked at.
 */
struct planes_cursor {
	const struct heap_extent *x;
	uint64_t g;
	vaddr start, end;
};

static inline void planes_seek(struct planes_cursor *c,
			       const struct heap_extent *x)
{
	*c = (struct planes_cursor){ .x = x, .start = x->start,
				     .end = x->start };
}

static inline void planes_move(struct planes_cursor *c, uint64_t g)
{
	c->g = g;
	c->start = planes_addr(c->x, g);
	c->end = planes_addr(c->x, planes_next(c->x, g + 1));
}

/* To the block that holds addr, or the first one behind. */
static inline void planes_find(struct planes_cursor *c, vaddr addr)
{
	uint64_t g = planes_granule(c->x, addr), at;

	planes_move(c, planes_prev(c->x, g, &at) ? at : planes_next(c->x, g));
}

/*
 * Add the bytes of [from, to), a part of the extent behind all that was asked
 * for before, to the states of the blocks they lie in.
 */
static inline void planes_bytes(struct planes_cursor *c, vaddr from, vaddr to,
				uint64_t bytes[BLOCK_STATES])
{
	uint64_t used = to - from;

	if (from >= c->end)
		planes_find(c, from);
	while (c->start < to) {
		vaddr start = max_u64(c->start, from);
		vaddr end = min_u64(c->end, to);

		if (start < end) {
			bytes[planes_state(c->x, c->g)] += end - start;
			used -= end - start;
		}
		if (c->end > to)
			break;
		planes_move(c, planes_next_odd(c->x, c->g + 1));
	}
	bytes[BLOCK_USED] += used;
}

#endif
