/* SPDX-License-Identifier: MIT */
/*
 * glibc malloc from outside, releases 2.17 to 2.43: shared by the files
 * glibc_*.c and included by nothing else.
 *
 * Vocabulary.  A *chunk* is a block with its two header words in front:
 *
 *   p        prev_size   the previous chunk's, only if that is free
 *   p + W    size        low bits: 1 the previous chunk is in use, 2 a
 *                        mapping of its own, 4 of an arena that is not main
 *   p + 2W   user data; fd and bk while the chunk is in a bin
 *
 * A chunk is free if the *next* chunk's bit 0 is clear.  Chunks in a thread
 * cache (tcache) or fastbin keep that bit set and look in use; only their
 * lists tell.  An *arena* (struct malloc_state) has 127 bins, doubly linked,
 * ten fastbins up to 2.42, and its last chunk, *top*.  The main arena lies in
 * libc's data and grows by sbrk; the others lie at the start of their first
 * *heap*, a mapping aligned to 64 MiB (32-bit: 1 MiB).  mp_ (struct
 * malloc_par) holds the settings of the process.
 *
 *   heap of another arena                main arena
 *   +-----------+ aligned                +-----------+ mp_.sbrk_base
 *   | heap_info |  arena, prev, size     | chunk     |
 *   | arena     |  only in the first     | chunk     |
 *   | chunk ... |                        | ...       |
 *   | top       |                        | top       |
 *   +-----------+ heap + size            +-----------+ program break
 *
 * W is the target's word, A the alignment of malloc, MIN the least chunk.
 * Facts: malloc/malloc.c and malloc/arena.c of the releases named, and
 * docs/allocators/glibc.md, which says how each was checked.
 */
#ifndef COREWALK_GLIBC_H
#define COREWALK_GLIBC_H

#include <string.h>

#include "corewalk/alloc.h"

enum {
	CHUNK_PREV_INUSE = 1,
	CHUNK_MMAPPED = 2,
	CHUNK_NON_MAIN = 4,
	CHUNK_FLAGS = 7,

	GLIBC_BINS = 127,
	GLIBC_MAX_FAST = 11,
	GLIBC_MAX_ARENAS = 65536,
	GLIBC_MAX_HEAPS = 65536,
	GLIBC_MAX_ANCHORS = 1 << 22,
};

/*
 * Where the fields of struct malloc_state are.  Everything from top on is at
 * a fixed distance from bins; see state_next() and the others.
 */
struct state_layout {
	int first, last;	/* releases 2.first to 2.last */
	unsigned word, align;
	unsigned fast, n_fast;	/* offset and number of fastbins */
	unsigned top;
};

/* Where the fields of struct malloc_par are; 0: there is none. */
struct par_layout {
	int first, last;
	unsigned word;
	unsigned hp_pagesize;
	unsigned n_mmaps;	/* n_mmaps_max, max_n_mmaps, no_dyn_threshold
				   follow, four bytes each */
	unsigned mmapped_mem;	/* max_mmapped_mem follows */
	unsigned sbrk_base;
	unsigned tcache_bins;	/* max_bytes, count, unsorted_limit follow */
	unsigned size;
};

/* The forms of struct tcache_perthread_struct. */
enum tcache_kind {
	TCACHE_NONE,
	TCACHE_CHAR,		/* 2.26 to 2.29: char counts[64] */
	TCACHE_SHORT,		/* 2.30 to 2.41: uint16_t counts[64] */
	TCACHE_SLOTS,		/* 2.42 on: uint16_t num_slots[76], free ones */
	TCACHE_KINDS,
};

struct tcache_layout {
	int first, last;
	unsigned bins;
	unsigned count_size;
};

struct glibc_arena {
	vaddr addr;
	vaddr top;
	uint64_t system_mem, max_system_mem;
	uint32_t flags;
	int64_t attached;	/* -1: this release does not count */
	bool locked;
	bool main;
	bool lost;		/* its struct is not readable */
	uint32_t id;		/* index in heap.arenas */
	vaddr *heaps;		/* owned, sorted */
	size_t n_heaps, cap_heaps;
	vaddr *anchors;		/* owned, sorted: known list members */
	size_t n_anchors, cap_anchors;
	bool has_anchors;
	size_t strays;		/* anchors before this one are explained */
	uint64_t walked;	/* bytes explained so far */
	uint64_t fd_edges, bk_edges;	/* see glibc_edge() */
	uint64_t binned;	/* free chunks met in the walk */
	uint64_t unlisted;	/* free ones whose footer is wrong */
	bool open;		/* its lists do not close */
};

struct glibc_tcache {
	vaddr mem;		/* the struct; user data of its chunk */
	enum tcache_kind kind;
	int score;
	uint32_t tid;
	uint32_t id;		/* index in heap.caches */
};

/* Address ranges that are explained; sorted, merged. */
struct glibc_range {
	vaddr start, end;
};

struct glibc {
	struct space *sp;
	struct heap *heap;
	struct progress *progress;
	unsigned W, A, MIN;
	uint64_t heap_max;
	unsigned heap_info_size;	/* 0 until a heap was seen */

	const struct state_layout *state;
	bool has_attached;
	const struct par_layout *par;	/* NULL: mp_ not found */
	vaddr mp;
	unsigned mp_score;
	int first, last;	/* releases the structures allow */
	unsigned good_bins;	/* of the main arena, of 127 */
	bool weak;		/* lists were caught in a change */

	struct glibc_arena *arenas;	/* owned; the main one first */
	size_t n_arenas, cap_arenas;
	uint32_t *by_addr;	/* owned: arenas in the order of addresses */
	struct glibc_tcache *tcaches;	/* owned */
	size_t n_tcaches, cap_tcaches;
	enum tcache_kind tcache;
	bool mangled;		/* safe-linking */
	bool mangled_known;
	long tcache_tls;	/* offset of `tcache' from the thread pointer */
	bool tcache_tls_known;
	unsigned tcache_tls_votes;
	uint64_t tcache_count;	/* mp_.tcache_count; 0 unknown */

	uint64_t sbrk_base;
	uint64_t n_mmaps, mmapped_mem;
	uint32_t allocator;	/* index in heap.allocators */
	uint32_t mmapped_id;	/* index in heap.arenas */

	struct glibc_range *ranges;	/* owned */
	size_t n_ranges, cap_ranges;
	uint64_t budget;	/* steps left for repairs; bounds the time */
	uint64_t ahead_left;	/* bytes that may be walked ahead; likewise */
	uint64_t anchors_left;	/* of all arenas; bounds the memory */
	uint64_t resyncs;
};

/* glibc_find.c */

static inline unsigned state_bins(const struct state_layout *l)
{
	return l->top + 2 * l->word;
}

static inline unsigned state_next(const struct state_layout *l)
{
	return state_bins(l) + 254 * l->word + 16;
}

static inline unsigned state_attached(const struct state_layout *l)
{
	return state_next(l) + 2 * l->word;
}

/* The offset of bin k's header, as if it were a chunk; k from 0. */
static inline unsigned state_bin(const struct state_layout *l, unsigned k)
{
	return state_bins(l) + k * 2 * l->word - 2 * l->word;
}

static inline unsigned state_system_mem(const struct glibc *g)
{
	return state_attached(g->state) + (g->has_attached ? g->W : 0);
}

static inline unsigned state_size(const struct glibc *g)
{
	return state_system_mem(g) + 2 * g->W;
}

extern const struct tcache_layout glibc_tcache_layouts[TCACHE_KINDS];

/*
 * Find every main arena by the form of its bins; each becomes one struct
 * glibc with its arenas, layouts and mp_.  The number found; 0 with text
 * saying what was missing.
 */
size_t glibc_find(struct space *sp, struct glibc **ret, char *text,
		  size_t text_size);
void glibc_free(struct glibc *all, size_t n);

/* The layouts by index, NULL behind the last. */
const struct state_layout *glibc_state_layout(size_t i);
/* How many of the 127 bins at base are sound; 0 if too few. */
unsigned glibc_good_bins(struct space *sp, unsigned word, vaddr base);
void glibc_add_arena(struct glibc *g, vaddr addr, bool main);
/* The arena at addr, NULL if none; once glibc_complete() was there. */
struct glibc_arena *glibc_arena_at(struct glibc *g, vaddr addr);
/* Fill in the rest once arenas and state are known. */
void glibc_complete(struct glibc *g);

/* The settings in mp_ go to the heap model; heap and allocator are set. */
void glibc_add_settings(struct glibc *g);

/* Narrow the range of releases. */
void glibc_releases(struct glibc *g, int first, int last);

/* glibc_orphan.c */

/*
 * When no main arena can be found: heaps alone, as one struct glibc whose main
 * arena is lost.  Returns a score as in struct sighting; *ret only from 50 on.
 */
unsigned glibc_find_orphans(struct space *sp, struct glibc **ret);

/* glibc_walk.c */

/* Walk every chunk of every arena; planes, ranges, tcache candidates. */
void glibc_walk_arenas(struct glibc *g);
/* Pieces of the main arena that are not at sbrk_base. */
void glibc_walk_pieces(struct glibc *g);

/* Is [start, end) explained?  If addr is covered *ret_end is behind it. */
bool glibc_covered(const struct glibc *g, vaddr addr, vaddr *ret_end);
/*
 * The end of the anonymous memory that begins at addr, whatever its protection
 * is: a program may have made pages of its own blocks inaccessible.  At most
 * limit, but not less than what is readable and writable in one run.
 */
vaddr glibc_mapped_end(struct glibc *g, vaddr addr, vaddr limit);
/* The start of the first explained range behind addr, at most limit. */
vaddr glibc_next_covered(const struct glibc *g, vaddr addr, vaddr limit);
/*
 * The next page behind p that can be read: a mapping may claim any size, only
 * the bytes that are there are looked at.  limit if there is none.
 */
vaddr glibc_next_page(const struct glibc *g, vaddr p, vaddr limit);

/* The first address from start on where a chunk can begin. */
static inline vaddr glibc_first_chunk(const struct glibc *g, vaddr start)
{
	return round_up(start + 2 * g->W, g->A) - 2 * g->W;
}

/*
 * A link from one list member to the next, as a number that can be summed.
 * Over all free chunks and bin headers of an arena the sum by fd must equal
 * the sum by bk: then each is the other's inverse, every free chunk is in a
 * list that closes, and no list has to be followed.
 */
static inline uint64_t glibc_edge(vaddr from, vaddr to)
{
	uint64_t x = from * UINT64_C(0x9e3779b97f4a7c15) + to;

	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	return x ^ x >> 29;
}

/* glibc_ahead.c */

/* Bytes that lie in one piece, and what chunks in them look like. */
struct glibc_window {
	struct heap_extent *x;	/* its planes get the chunks */
	const uint8_t *host;	/* of `start' */
	vaddr start;
	vaddr last;		/* two words can be read up to here */
	vaddr top;		/* of the arena; 0 unknown */
	unsigned word;
	uint64_t least;		/* the least chunk */
	uint64_t never;		/* bits that no size field has */
	uint64_t used_flags;	/* of a chunk in use: CHUNK_NON_MAIN or 0 */
	uint64_t cache_min, cache_span;	/* sizes that thread caches have */
};

/* A walk over some of a window's chunks, and what it found. */
struct glibc_piece {
	vaddr from, to;		/* chunks that begin here are its own */
	vaddr start;		/* its first chunk; 0: it has none */
	uint64_t start_word;	/* the size field of that */
	vaddr at;		/* the chunk that it has come to */
	uint64_t size_word;	/* of that, as far as known */
	vaddr before;		/* the last one that was taken; 0 none */
	uint64_t fd_edges, bk_edges, binned;	/* as in struct glibc_arena */
	vaddr *caches;		/* owned: chunks that may be thread caches */
	size_t n_caches, cap_caches;
};

/*
 * Go from chunk to chunk until one begins at or behind p->to, or is not plain:
 * top, damaged, or with a successor that is not in the window.  That one is not
 * taken.  The state planes must have no bit from p->at on.
 */
void glibc_plain_chunks(const struct glibc_window *w, struct glibc_piece *p);

/* Pieces of one window that were walked before the walk came there. */
struct glibc_ahead {
	struct glibc_window window;
	struct glibc_piece *pieces;	/* owned; by address */
	size_t n, next;
	size_t taken;			/* by threads */
};

/*
 * Walk the whole window, whose start is that of its extent and a chunk, in
 * several threads; there are no pieces if that does not pay.
 */
void glibc_ahead_init(struct glibc_ahead *a, struct glibc *g,
		      const struct glibc_window *w);
/* The next piece that has chunks, NULL if there is none. */
const struct glibc_piece *glibc_ahead_next(struct glibc_ahead *a);
/* Done with it: its chunks stay, or were none and are removed. */
void glibc_ahead_take(struct glibc_ahead *a);
void glibc_ahead_drop(struct glibc_ahead *a);
/* Drops all that are left. */
void glibc_ahead_fini(struct glibc_ahead *a);

/* glibc_mmap.c */

/* Chunks that are mappings of their own; all of one process at once. */
void glibc_walk_mmapped(struct glibc *all, size_t n);

/* glibc_lists.c */

/* Known list members of the arena, for resuming after damage; sorted. */
void glibc_collect_anchors(struct glibc *g, struct glibc_arena *a);
/* Is the block at mem a thread cache of this kind?  0, or how sure. */
int glibc_tcache_score(struct glibc *g, vaddr mem, enum tcache_kind kind,
		       int *ret_mangled);
unsigned glibc_tcache_chunk(const struct glibc *g, enum tcache_kind kind);
/* Decide which of the candidates are thread caches, and whose. */
void glibc_settle_tcaches(struct glibc *g);
/* One list member, by its chunk. */
struct glibc_member {
	vaddr chunk;
	enum block_state want;	/* what the walk must have found */
	enum block_state set;	/* what it becomes */
	struct glibc_arena *a;	/* for notes */
	const char *list;	/* "thread cache", "fastbin", "bin" */
	unsigned bin;
	uint64_t size;		/* that it must have; 0 any */
};

/*
 * Mark a member.  False, with a note, if it cannot be one: then what follows
 * it in its list is not to be trusted either.
 */
bool glibc_mark(struct glibc *g, const struct glibc_member *m);
/* A link of a list cannot be read: what follows it is not known. */
void glibc_note_unread(struct glibc *g, const struct glibc_member *m,
		       vaddr addr);
/* The blocks that hold a chunk that starts at this address, else NULL. */
struct heap_extent *glibc_extent(struct glibc *g, vaddr chunk);
/* Mark the members of all lists in the planes, and check them. */
void glibc_mark_lists(struct glibc *g);

/* glibc_fast.c */

/* The fastbins of all arenas. */
void glibc_mark_fastbins(struct glibc *g);

/* glibc_bins.c */

/* Unsorted, small and large bins of all arenas. */
void glibc_mark_bins(struct glibc *g);

/* A stored link: fd of a fastbin or thread cache at addr. */
static inline uint64_t glibc_link(const struct glibc *g, vaddr addr,
				  uint64_t raw)
{
	if (g->mangled)
		raw ^= addr >> 12;
	return g->W == 4 ? (uint32_t)raw : raw;
}

#endif
