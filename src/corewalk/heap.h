/* SPDX-License-Identifier: MIT */
/*
 * The heap model: what the allocators' walkers found.
 *
 * Vocabulary.  An *extent* is an address range that an allocator owns and that
 * has one meaning; extents are sorted, do not overlap, and together are the
 * allocator's mappings to the byte.  A *block* is what malloc hands out, with
 * the allocator's own words around it; the blocks of a EXTENT_BLOCKS extent
 * tile it without gaps.  An *arena* is a pool that blocks belong to.
 *
 * Storage.  One bit for each possible block start (a granule of 8 or 16 bytes)
 * in a start plane, and three more planes for the state at that start.  An
 * extent whose blocks are all in use costs 1/128 of its size; state planes
 * become resident only where blocks are free.  A block's size is the distance
 * to the next start.  Nothing is stored for a block besides these bits, so ten
 * million blocks of 128 bytes cost 10 MB.
 *
 * Invariant: used + free + overhead + not decoded = sum of the extents, by
 * arena and in total.  usage_check() says whether it holds.
 *
 * Costs.  heap_find: a binary search over extents and a scan back over start
 * bits.  heap_iter: a few ns for each block.
 */
#ifndef COREWALK_HEAP_H
#define COREWALK_HEAP_H

#include "base/types.h"
#include "corewalk/space.h"

/* Kept in three bits; 0 must be the state that most blocks have. */
enum block_state {
	BLOCK_USED,		/* belongs to the program */
	BLOCK_CACHED,		/* free, in a thread's cache */
	BLOCK_FAST,		/* free, in a fastbin */
	BLOCK_UNSORTED,		/* free, in the unsorted bin */
	BLOCK_BINNED,		/* free, in a small or large bin */
	BLOCK_UNLISTED,		/* free by its header, but in no list */
	BLOCK_TOP,		/* free, the rest at an arena's end */
	BLOCK_OVERHEAD,		/* the allocator's own: cache struct, fence */
};
enum { BLOCK_STATES = 8 };

/* "used", "tcache", "fastbin", "unsorted", "bin", "unlisted", "top", ... */
const char *block_state_name(enum block_state state);
bool block_state_free(enum block_state state);

enum extent_kind {
	EXTENT_BLOCKS,		/* tiled with blocks */
	EXTENT_MMAPPED,		/* one block that is a mapping of its own */
	EXTENT_OVERHEAD,	/* arena headers, alignment, unused tail */
	EXTENT_FOREIGN,		/* inside a heap, but somebody else's */
	EXTENT_UNDECODED,	/* damaged or not in the file */
	EXTENT_RUNTIME,		/* a language runtime's, not walked */
};

struct heap_extent {
	vaddr start, end;
	enum extent_kind kind;
	uint32_t arena;		/* index in heap.arenas */
	uint8_t shift;		/* log2 of the granule */
	uint8_t user_off;	/* from a block's start to the user's pointer */
	uint8_t overlap;	/* usable bytes behind a block's end */
	vaddr user;		/* EXTENT_MMAPPED: what malloc returned */
	uint8_t tail;		/* EXTENT_MMAPPED: unusable bytes at the end */
	uint64_t *planes[4];	/* EXTENT_BLOCKS: start, state bits 0, 1, 2 */
	/* In each plane.  No block starts behind them: the last may be long. */
	size_t n_words;
};

struct block {
	vaddr addr;		/* what malloc returned */
	vaddr start;		/* of the block with the allocator's words */
	uint64_t size;		/* from start: the chunk size */
	uint64_t usable;	/* bytes at addr that the program may use */
	enum block_state state;
	bool mmapped;
	uint32_t arena;		/* index in heap.arenas */
};

struct tally {
	uint64_t blocks, bytes;
};

struct arena {
	char name[32];		/* "glibc main", "glibc 1", "glibc mmapped" */
	vaddr addr;		/* of the allocator's own structure, or 0 */
	uint32_t allocator;	/* index in heap.allocators */
	uint64_t claimed_bytes;	/* what the allocator itself says it has */
	uint64_t max_bytes;	/* the most it ever had; 0 unknown */
	uint32_t heaps;		/* separate address ranges */
	int64_t attached;	/* threads that use it; -1 not known */
	bool contiguous;	/* only main arenas of glibc */
	bool locked;		/* its lock was held */
	vaddr top;		/* of its last heap; 0 none */
	/* Of a runtime whose values tell, garbage among those in use. */
	uint64_t runtime_used, runtime_free;
	/* From the walk, by heap_finish(): */
	struct tally state[BLOCK_STATES];	/* blocks of EXTENT_BLOCKS */
	struct tally mmapped;
	uint64_t overhead_bytes;	/* EXTENT_OVERHEAD */
	uint64_t foreign_bytes;
	uint64_t undecoded_bytes;
	uint64_t runtime_bytes;
	uint64_t extent_bytes;	/* sum of its extents */
	uint64_t trimmable_bytes;	/* what a trim call would give back */
};

/* A thread's cache. */
struct thread_cache {
	vaddr addr;		/* of the structure, as the program sees it */
	uint32_t allocator;
	uint32_t tid;		/* 0: belongs to no thread that still lives */
	uint32_t arena;		/* where the structure lies */
	uint64_t blocks, bytes;	/* cached */
};

/* Which thread uses which arena. */
struct thread_arena {
	uint32_t tid;
	uint32_t arena;
};

/* A block in a thread's cache and whose; sorted by start. */
struct cached {
	vaddr start;
	uint32_t cache;		/* index in heap.caches */
	uint32_t bin;
};

/* A setting in force: "mmap_threshold", bytes or a count. */
struct setting {
	const char *name;	/* static */
	uint64_t value;
	bool is_bytes;
	bool is_default;	/* value is the allocator's own default */
};

/*
 * A *span* is a run of pages that an allocator cut into blocks of one size: its
 * pages go back only when the last of them is free.  Also called slab, run, or
 * pool.  Sorted by start after heap_finish().
 */
struct heap_span {
	vaddr start;
	uint32_t bytes;		/* of the blocks, all that fit */
	uint32_t size;		/* of each */
};

/* Who can have the bytes of a free block, for allocators that have spans. */
enum free_role {
	FREE_IN_SPAN,		/* the next request of its size */
	FREE_IN_CACHE,		/* the same, of some threads only */
	FREE_PAGES,		/* all: whole pages of no size class */
	FREE_RETURNED,		/* the kernel has them: address space only */
};

struct heap_allocator {
	const char *name;	/* static: "glibc" */
	char *version;		/* owned: "2.35 to 2.41" */
	char *evidence;		/* owned; one line, names in it harmless */
	const char *const *state_names;	/* static; see heap_name_states() */
	const uint8_t *roles;	/* static; of states; NULL: has no spans */
	struct setting *settings;	/* owned */
	size_t n_settings, cap_settings;
	uint64_t mmapped_claimed_bytes, mmapped_claimed_blocks;
	bool mmapped_known;	/* the two above were found */
};

/*
 * A block in use that the allocator's own sampler picked when it was asked
 * for, or memory that the allocator itself asked for.
 */
struct heap_sample {
	vaddr addr;		/* what malloc returned; 0 not known */
	uint64_t requested;	/* bytes asked for */
	uint64_t allocated;	/* of the block, were it not a sample */
	uint64_t length;	/* as it was counted; see sampler/geom.h */
	uint64_t weight;	/* length that it stands for; 0: not kept */
	uint64_t born_ns;	/* by a clock of the allocator's; 0: not kept */
	size_t pc;		/* its first one in heap_profile.pcs */
	uint32_t depth;		/* return addresses, innermost first */
};

enum heap_profile_kind {
	HEAP_PROFILE_LIVE,	/* a sample of the blocks in use */
	HEAP_PROFILE_GROWTH,	/* all memory that it got from the system */
};

/* What an allocator keeps for the day that it is asked for a heap profile. */
struct heap_profile {
	uint32_t allocator;	/* index in heap.allocators */
	enum heap_profile_kind kind;
	const struct module *module;	/* that the allocator is in; or NULL */
	uint64_t rate;		/* bytes from one mark to the next; 0 unknown */
	uint64_t blind;		/* bytes that its first thread gets unseen */
	struct heap_sample *samples;	/* owned */
	size_t n, cap;
	vaddr *pcs;		/* owned */
	size_t n_pcs, cap_pcs;
};

/* Memory that holds an allocator's own variables. */
struct heap_range {
	vaddr start, end;
};

/* Something wrong or remarkable in the target. */
struct heap_note {
	const char *code;	/* static, stable: "bad-chunk-size" */
	uint32_t arena;		/* index, or HEAP_NO_ARENA */
	vaddr addr;
	uint64_t skipped_bytes;	/* not decoded because of it */
	bool minor;		/* accounting is not affected */
	bool grave;		/* blocks are missing or in a wrong state */
	char *text;		/* owned; no newline, safe for a terminal */
};
enum { HEAP_NO_ARENA = UINT32_MAX, HEAP_MAX_NOTES = 10000 };

struct heap {
	struct heap_allocator *allocators;	/* owned */
	size_t n_allocators, cap_allocators;
	struct arena *arenas;			/* owned */
	size_t n_arenas, cap_arenas;
	struct heap_extent *extents;		/* owned; sorted after finish */
	size_t n_extents, cap_extents;
	struct thread_cache *caches;		/* owned */
	size_t n_caches, cap_caches;
	struct thread_arena *uses;		/* owned */
	size_t n_uses, cap_uses;
	struct cached *cached;			/* owned; sorted after finish */
	size_t n_cached, cap_cached;
	struct heap_range *own;			/* owned; sorted after finish */
	size_t n_own, cap_own;
	struct heap_span *spans;		/* owned; sorted after finish */
	size_t n_spans, cap_spans;
	struct heap_note *notes;		/* owned */
	size_t n_notes, cap_notes;
	uint64_t notes_dropped;			/* beyond HEAP_MAX_NOTES */
	struct heap_profile *profiles;		/* owned */
	size_t n_profiles, cap_profiles;
	size_t last;				/* extent of the last lookup */
};

void heap_init(struct heap *h);
void heap_fini(struct heap *h);

/* For walkers. */

uint32_t heap_add_allocator(struct heap *h, const char *name,
			    const char *version, const char *evidence);
void heap_add_setting(struct heap *h, uint32_t allocator, const char *name,
		      uint64_t value, bool is_bytes, bool is_default);
/*
 * What this allocator calls the states, BLOCK_STATES of them, NULL where it is
 * as glibc's; static.
 */
void heap_name_states(struct heap *h, uint32_t allocator,
		      const char *const *names);
/* It has spans; its free states are enum free_role, one of BLOCK_STATES. */
void heap_set_roles(struct heap *h, uint32_t allocator, const uint8_t *roles);
/* The struct arena pointer is valid until the next call. */
struct arena *heap_add_arena(struct heap *h, uint32_t allocator,
			     vaddr addr, const char *fmt, ...)
	PRINTF_LIKE(4, 5);
/*
 * Variables of the allocator that lie among those of a library, or a block
 * that it uses itself: what they point to is not thereby in use.
 */
void heap_add_own(struct heap *h, vaddr start, vaddr end);
/* A range that is not blocks. */
void heap_add_range(struct heap *h, uint32_t arena, enum extent_kind kind,
		    vaddr start, vaddr end);
/*
 * What of [start, end) is in none of the first n extents, which are sorted:
 * heap_sort(), then any number of these.
 */
void heap_add_rest(struct heap *h, uint32_t arena, enum extent_kind kind,
		   size_t n, vaddr start, vaddr end);
/* The last tail bytes of a mapping are the allocator's, as is its start. */
void heap_add_mmapped(struct heap *h, uint32_t arena, vaddr start, vaddr end,
		      vaddr user, unsigned tail);
/*
 * A range of blocks; index of the extent.  Planes are made for starts in
 * [start, end): so many bytes as there are headers to be read, not as a
 * mapping claims to have.  Then heap_trim_extent() says where the last block
 * ends, which may be behind that.
 */
size_t heap_add_blocks(struct heap *h, uint32_t arena, vaddr start, vaddr end,
		       unsigned shift, unsigned user_off, unsigned overlap);
void heap_trim_extent(struct heap *h, size_t extent, vaddr end);
/*
 * Blocks in use that are a runtime's heap become EXTENT_RUNTIME of an arena.
 * They are sorted, and so must extents be, which they are again then.
 */
void heap_carve(struct heap *h, uint32_t arena, const struct block *blocks,
		size_t n);
/* n blocks of size bytes each from start on, in an extent of blocks. */
void heap_add_span(struct heap *h, vaddr start, uint64_t n, uint64_t size);

static inline void extent_mark(struct heap_extent *x, vaddr start)
{
	uint64_t g = (start - x->start) >> x->shift;

	x->planes[0][g >> 6] |= UINT64_C(1) << (g & 63);
}

static inline bool extent_is_start(const struct heap_extent *x, vaddr addr)
{
	uint64_t off = addr - x->start;
	uint64_t g = off >> x->shift;

	return !(off & ((UINT64_C(1) << x->shift) - 1)) &&
	       g >> 6 < x->n_words && x->planes[0][g >> 6] >> (g & 63) & 1;
}

static inline enum block_state extent_state(const struct heap_extent *x,
					    vaddr start)
{
	uint64_t g = (start - x->start) >> x->shift;
	unsigned b = g & 63;
	size_t w = g >> 6;

	return (x->planes[1][w] >> b & 1) | (x->planes[2][w] >> b & 1) << 1 |
	       (x->planes[3][w] >> b & 1) << 2;
}

static inline void extent_set_state(struct heap_extent *x, vaddr start,
				    enum block_state state)
{
	uint64_t g = (start - x->start) >> x->shift;
	uint64_t bit = UINT64_C(1) << (g & 63);
	size_t w = g >> 6;

	for (int i = 0; i < 3; i++)
		if (state >> i & 1)
			x->planes[i + 1][w] |= bit;
		else if (x->planes[i + 1][w] & bit)
			x->planes[i + 1][w] &= ~bit;
}

/* A thread's cache, blocks and bytes 0; its index.  Then what it holds. */
uint32_t heap_add_cache(struct heap *h, const struct thread_cache *c);
void heap_add_cached(struct heap *h, uint32_t cache, vaddr start, uint32_t bin,
		     uint64_t bytes);

/* The pointer is valid until the next call; the caller sets the rate. */
struct heap_profile *heap_add_profile(struct heap *h, uint32_t allocator,
				      enum heap_profile_kind kind);
/* pc and depth are set here, from n return addresses. */
void heap_add_sample(struct heap_profile *p, const struct heap_sample *s,
			const vaddr *pcs, size_t n);

void heap_note(struct heap *h, const char *code, uint32_t arena, vaddr addr,
	       uint64_t skipped_bytes, const char *fmt, ...)
	PRINTF_LIKE(6, 7);

/* The note just made does not affect accounting. */
void heap_note_is_minor(struct heap *h);
/*
 * The report is not complete because of it, although all bytes are decoded; its
 * text quotes nothing of the process, for it is in redacted reports too.
 */
void heap_note_is_grave(struct heap *h);

/*
 * Sort the extents, so that heap_find and heap_extent_at work before
 * heap_finish; indices of extents change.
 */
void heap_sort(struct heap *h);
/* Sort, add up, and verify the sum; call once, after all walkers. */
void heap_finish(struct heap *h);

/* For readers. */

/* The same, or what the arena's allocator calls it. */
const char *heap_state_name(const struct heap *h, uint32_t arena,
			    enum block_state state);

/* The block that holds addr, in any state; false if none does. */
bool heap_find(struct heap *h, vaddr addr, struct block *ret);
/* The extent that covers addr, NULL if none; extents must be sorted. */
const struct heap_extent *heap_extent_at(struct heap *h, vaddr addr);
/* The cache that holds the block at start; NULL if none does. */
const struct cached *heap_cached(const struct heap *h, vaddr start);

struct heap_iter {
	const struct heap *heap;
	size_t extent;
	uint64_t granule;	/* next one to look at */
	vaddr from, to;		/* only blocks that overlap [from, to) */
};

/* All blocks in address order, mmapped ones too. */
void heap_iter_init(struct heap_iter *it, const struct heap *h);
/* Only those that overlap [from, to). */
void heap_iter_range(struct heap_iter *it, const struct heap *h, vaddr from,
		     vaddr to);
bool heap_iter_next(struct heap_iter *it, struct block *ret);

#endif
