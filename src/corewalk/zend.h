/* SPDX-License-Identifier: MIT */
/*
 * ZendMM, the allocator of PHP 7.0 to 8.6: what zend_find.c finds and
 * zend_walk.c walks.  docs/allocators/zendmm.md has the layout.
 *
 * Vocabulary.  A *heap* gets memory in *chunks* of 2 MiB, aligned to their
 * size, that form a ring.  A chunk is 512 pages; page 0 is its header, which
 * in the *main chunk* holds the heap's structure too.  A *run* is one or more
 * pages: a small run is cut into slots of one *bin*, a large one is a block.
 * Larger blocks are *huge*: a mapping of their own, in a list.  Emptied chunks
 * are *cached*.
 */
#ifndef COREWALK_ZEND_H
#define COREWALK_ZEND_H

#include "corewalk/heap.h"
#include "corewalk/space.h"

enum {
	ZEND_BINS = 30,
	ZEND_PAGES = 512,
	ZEND_PAGE = 4096,	/* whatever the kernel's page is */
	ZEND_CHUNK = ZEND_PAGES * ZEND_PAGE,
	ZEND_HEAP_OFF = 64,	/* of the heap in the main chunk */
	ZEND_LIMIT_HEAPS = 4096,
};

/* Of a chunk's pages; below them are the bins. */
enum zend_page {
	ZEND_FREE = ZEND_BINS,
	ZEND_LARGE,
	ZEND_BAD,		/* in use, but its entry in the map is none */
	ZEND_HEADER,
};

/* What the last word of a free slot whose next is not NULL holds. */
enum zend_shadow {
	ZEND_SHADOW_NONE,	/* old contents: up to 8.3 */
	ZEND_SHADOW_SWAPPED,	/* next, its bytes swapped, xor the key: 8.4 */
	ZEND_SHADOW_PLACED,	/* the same xor its own address: 8.6 */
};

/* Offsets, probed from the heap itself: updates of one release differ. */
struct zend_layout {
	unsigned main_chunk;	/* in the heap: M */
	unsigned free_slot;	/* in the heap: F */
	unsigned free_pages;	/* in the chunk */
	unsigned map;		/* in the chunk, behind the free map */
	enum zend_shadow shadow;
	unsigned good, bad;	/* heads of free lists that fit, do not */
};

struct zend_chunk {
	vaddr addr;
	uint16_t head[ZEND_PAGES];	/* first page of the run of a page */
	uint8_t kind[ZEND_PAGES];	/* a bin or enum zend_page */
	uint32_t extent;	/* first of its extents in the heap model */
	uint32_t n_extents;	/* more than one where pages are damaged */
};

struct zend_heap {
	vaddr main_chunk;
	vaddr addr;		/* of the heap's structure */
	struct zend_layout at;
	uint64_t size, real_size, real_peak, limit;	/* its own figures */
	uint64_t key;		/* of the shadows */
	uint32_t custom;	/* other functions serve the program */
	uint32_t n_ring, n_cache;	/* chunks that it counts itself */
	bool damaged;		/* its main chunk's header; others named it */
	bool lost;		/* and nothing of its structure is left */
};

/* A module of the engine: which PHP it is. */
struct zend_php {
	uint32_t api;		/* 20220829; 0: no module was found */
	bool zts, debug;
	unsigned modules;	/* that say so */
};

extern const uint16_t zend_slot_size[ZEND_BINS];
extern const uint16_t zend_slot_count[ZEND_BINS];
extern const uint8_t zend_run_pages[ZEND_BINS];

/*
 * All heaps of the process, in the order of address; the caller frees *ret.
 * near says how far the best candidate came that is none.
 */
size_t zend_find(struct space *sp, struct zend_heap **ret, char *near,
		 size_t near_size);

/*
 * Goes through the places where a chunk can begin and of whose 2 MiB something
 * is stored, in the order of address: from { 0 } on, false at the end.
 */
struct zend_scan {
	size_t seg;
	vaddr next;
};
bool zend_scan_next(struct space *sp, struct zend_scan *s, vaddr *ret);

/* "8.2", or NULL if no release of the engine has this number. */
const char *zend_release(uint32_t api);
void zend_find_php(struct space *sp, struct zend_php *ret);

/*
 * What the pages of a chunk are, by the map of its header page; ret->addr and
 * the extents are not touched.  Returns how many pages are damaged.
 */
unsigned zend_read_map(const uint8_t *header, const struct zend_layout *at,
		       struct zend_chunk *ret);

/* Is addr a slot of this bin in a chunk? */
bool zend_is_slot(const struct zend_chunk *c, vaddr addr, unsigned bin);

/* What the walk of a heap gave, beside what is in the heap model. */
struct zend_sum {
	uint64_t used_bytes;	/* as the engine's own size */
	uint64_t real_bytes;	/* as its real size */
	unsigned marked_pages;	/* with bit 29, a profiler's, in the map */
};

/* Adds arena, extents and notes. */
void zend_walk_heap(struct space *sp, const struct zend_heap *z,
		    struct heap *heap, uint32_t arena, struct zend_sum *ret);

#endif
