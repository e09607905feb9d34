/* SPDX-License-Identifier: MIT */
/*
 * From an address to the number of the block that holds it, in constant time.
 *
 * Vocabulary.  Blocks of all states are *numbered* in address order from 1 on;
 * 0 is no block.  A few numbers belong to no block either: each range of
 * blocks is followed by a *fence*, so that what lies behind it is nobody's.
 * A number is *used* if its block belongs to the program.
 *
 * Form.  The address space from the first heap to the last is cut into units
 * of a megabyte.  A unit that blocks start in has a leaf: for every 64 granules
 * one bit for each block that starts there, by the address that malloc
 * returned, and the number of the first.  A unit that lies in one block has
 * that block's number.  So a lookup costs two cache lines, one of them hot.
 * A granule holds one start only; the bytes before a start, where an allocator
 * keeps its own words, are told from the block before by index_own_word().
 *
 * Cost.  A sixty-fourth of the heap and a bit for each block; building takes
 * some 10 ms for a gigabyte.
 */
#ifndef ANALYSIS_INDEX_H
#define ANALYSIS_INDEX_H

#include "base/err.h"
#include "base/types.h"
#include "corewalk/heap.h"

enum {
	INDEX_UNIT_SHIFT = 20,
	/* Two bits of a number are free for those who store numbers. */
	INDEX_MAX_BLOCKS = 1 << 30,
};
#define INDEX_SOLID (UINT32_C(1) << 31)

struct index_word {
	uint64_t starts;	/* one bit for each granule */
	uint32_t rank;		/* number of the first start from here on */
	uint32_t pad;
};

struct index {
	vaddr base;		/* of the first unit */
	uint64_t span;		/* bytes from base on that can be in blocks */
	unsigned shift;		/* log2 of the granule */
	unsigned leaf_shift;	/* log2 of the words in a leaf */
	unsigned own;		/* allocator's own bytes before each start */
	uint32_t *units;	/* owned: 0, leaf from 1, or SOLID | number */
	size_t n_units;
	struct index_word *words;	/* owned; leaf 0 is not in use */
	size_t n_words;
	uint32_t *leaf_unit;	/* owned: which unit a leaf is of */
	size_t n_leaves;	/* with leaf 0 */
	uint64_t *used;		/* owned: bits by number */
	uint64_t *plain;	/* owned: starts with no own bytes before */
	uint32_t n;		/* numbers in use are below */
	uint32_t n_used;
};

/*
 * False, with words for the user, if there are too many blocks, they lie too
 * far apart, or it would take more than max_bytes.
 */
bool index_init(struct index *ix, const struct heap *h, uint64_t max_bytes,
		struct err *err) MUST_CHECK;
void index_fini(struct index *ix);

/* Bytes that it takes. */
uint64_t index_bytes(const struct index *ix);

static inline struct index_word *index_word_at(const struct index *ix,
					       uint32_t leaf, uint64_t off)
{
	return &ix->words[((size_t)leaf << ix->leaf_shift) +
			  (off >> (6 + ix->shift) &
			   ((UINT64_C(1) << ix->leaf_shift) - 1))];
}

/* The number at off bytes from base; off < span. */
static inline uint32_t index_number(const struct index *ix, uint64_t off)
{
	uint32_t unit = ix->units[off >> INDEX_UNIT_SHIFT];
	const struct index_word *w;
	uint64_t below;

	if ((int32_t)unit <= 0)
		return unit & ~INDEX_SOLID;
	w = index_word_at(ix, unit, off);
	below = w->starts & ~UINT64_C(0) >> (63 - (off >> ix->shift & 63));
	return w->rank + (uint32_t)__builtin_popcountll(below) - 1;
}

static inline bool index_used(const struct index *ix, uint32_t number)
{
	return ix->used[number >> 6] >> (number & 63) & 1;
}

/* Does a block start exactly at base + off?  Any off. */
static inline bool index_starts(const struct index *ix, uint64_t off)
{
	uint32_t unit;

	if (off >= ix->span || off & ((UINT64_C(1) << ix->shift) - 1))
		return false;
	unit = ix->units[off >> INDEX_UNIT_SHIFT];
	if ((int32_t)unit <= 0)
		return false;
	return index_word_at(ix, unit, off)->starts >>
		(off >> ix->shift & 63) & 1;
}

/*
 * How far behind the start at base + off the next start, or fence, is; 0 if
 * that is not among the granules that lie next to it, at most 128.
 */
static inline uint64_t index_near(const struct index *ix, uint64_t off)
{
	const struct index_word *w = index_word_at(ix,
		ix->units[off >> INDEX_UNIT_SHIFT], off);
	unsigned bit = off >> ix->shift & 63;
	uint64_t bits = w->starts >> bit >> 1;

	if (bits)
		return (uint64_t)(1 + __builtin_ctzll(bits)) << ix->shift;
	/* Not behind the leaf's last word. */
	if (!(((off >> (6 + ix->shift)) + 1) &
	      ((UINT64_C(1) << ix->leaf_shift) - 1)) || !w[1].starts)
		return 0;
	return (uint64_t)(64 - bit + (unsigned)__builtin_ctzll(w[1].starts))
		<< ix->shift;
}

/* The allocator's own bytes before the start, or fence, at base + off. */
static inline uint64_t index_own(const struct index *ix, uint64_t off)
{
	uint32_t number;

	/* Mappings end with a page. */
	if (off & 4095)
		return ix->own;
	number = off < ix->span ? index_number(ix, off) : 0;
	return ix->plain[number >> 6] >> (number & 63) & 1 ? 0 : ix->own;
}

/* Is base + off among the allocator's own bytes before a start? */
static inline bool index_own_word(const struct index *ix, uint64_t off)
{
	uint64_t granule = UINT64_C(1) << ix->shift;
	uint64_t in = off & (granule - 1);

	return in >= granule - ix->own &&
	       index_starts(ix, off - in + granule) &&
	       index_own(ix, off - in + granule);
}

/* The number of the block in use that holds addr; 0 if none does. */
static inline uint32_t index_find(const struct index *ix, vaddr addr)
{
	uint64_t off = addr - ix->base;
	uint32_t number;

	if (off >= ix->span)
		return 0;
	number = index_number(ix, off);
	if (!index_used(ix, number) || index_own_word(ix, off))
		return 0;
	return number;
}

/* What malloc returned for a number; 0 if it is none. */
vaddr index_addr(const struct index *ix, uint32_t number);

/*
 * The same for rising numbers, one after the other: *cursor starts at 0 and
 * is kept for the next call.
 */
vaddr index_addr_next(const struct index *ix, size_t *cursor, uint32_t number);

/* The same when the next start is not among the same 64 granules. */
vaddr index_next_far(const struct index *ix, vaddr addr);

/* The first start, or fence, behind addr, which lies in a block or a leaf. */
static inline vaddr index_next(const struct index *ix, vaddr addr)
{
	uint64_t off = addr - ix->base;
	uint32_t unit = ix->units[off >> INDEX_UNIT_SHIFT];
	unsigned bit = off >> ix->shift & 63;
	uint64_t bits;

	if ((int32_t)unit <= 0)
		return index_next_far(ix, addr);
	bits = index_word_at(ix, unit, off)->starts >> bit >> 1;
	if (!bits)
		return index_next_far(ix, addr);
	return ix->base + (((off >> ix->shift) + 1 +
			    (unsigned)__builtin_ctzll(bits)) << ix->shift);
}

/* The end of what the program may use of the block that addr lies in. */
static inline vaddr index_end(const struct index *ix, vaddr addr)
{
	vaddr next = index_next(ix, addr);

	return next - index_own(ix, next - ix->base);
}

/* The last start, or fence, at or before addr; 0 if there is none. */
static inline vaddr index_start(const struct index *ix, vaddr addr)
{
	uint64_t off = addr - ix->base;
	uint32_t unit = ix->units[off >> INDEX_UNIT_SHIFT];
	unsigned bit = off >> ix->shift & 63;
	uint64_t bits;

	if ((int32_t)unit <= 0)
		return index_addr(ix, index_number(ix, off));
	bits = index_word_at(ix, unit, off)->starts << (63 - bit);
	if (!bits)
		return index_addr(ix, index_number(ix, off));
	return ix->base + (((off >> ix->shift) -
			    (unsigned)__builtin_clzll(bits)) << ix->shift);
}

#endif
