/* SPDX-License-Identifier: MIT */
/*
 * google/tcmalloc, which is linked into programs and has no releases: what
 * gtcmalloc_find.c finds, gtcmalloc_layout.c decodes, gtcmalloc_table.c and
 * gtcmalloc_front.c complete, and gtcmalloc_walk.c walks.
 * docs/allocators/tcmalloc.md has the layouts.
 *
 * Vocabulary.  A *page* is tcmalloc's, 8 KiB in most builds.  A *span* is a
 * run of pages: one block, or objects of one *size class*.  The *page map*
 * leads from a page to its span by a *root*, perhaps *middles*, and *leaves*.
 * Free objects lie in their span, in a *transfer cache*, or in front of it: in
 * a *slab*, which belongs to a CPU, or in a *thread cache*.  A block that the
 * sampler picked is a span of its own and has a *record*; builds until July
 * 2026 also held an ordinary object back for it, its *proxy*.  A *region* is
 * the GiB of address space that tcmalloc reserves at once.
 */
#ifndef COREWALK_GTCMALLOC_H
#define COREWALK_GTCMALLOC_H

#include "corewalk/heap.h"
#include "corewalk/space.h"

enum {
	GTC_MAX_CLASSES = 1024,
	GTC_BIGGEST = 262144,	/* size of a class */
	GTC_SPAN_BYTES = 64,	/* read of a span's structure; some have 48 */
	GTC_HUGE_SHIFT = 21,	/* log2 of a huge page */
};

/* Where a build keeps what in a span's structure. */
struct gtc_layout {
	const char *era;	/* when upstream had it */
	uint8_t allocated, embed, freelist;	/* offsets of 16 bits */
	uint8_t cache_mask;	/* of the byte at 22: entries of the cache */
	uint8_t first;		/* offset of the word with the first page */
	uint8_t pages;		/* how the number of pages is kept */
	uint8_t list;		/* offset of cache and bitmap */
	uint8_t list_bytes;	/* of both */
	uint8_t bitmap_bits;
	uint8_t record;		/* offset of a sampled span's record */
	/* In the word with the first page, counted from behind its number. */
	uint8_t large_bit, sampled_bit;
};

enum gtc_pages {
	GTC_PAGES_NEXT,		/* the word behind the first page */
	GTC_PAGES_LOW6,		/* the same; below 64 unless it is large */
	GTC_PAGES_LOW6_TIME,	/* its low 6 bits, all of it if large */
	GTC_PAGES_LOW6_LIST,	/* its low 6 bits, the list's word if large */
	GTC_PAGES_HIGH6,	/* bits 38 to 43 of first, the list's word */
};

struct gtc_span {
	vaddr addr;		/* of its structure */
	vaddr start;		/* of its memory */
	uint64_t bytes;
	vaddr record;		/* of a sampled one; else 0 */
	uint16_t size_class;	/* 0: one block */
	uint16_t allocated, embed, freelist;
	uint8_t n_cache;
	bool sampled;
	bool in_page_heap;	/* free; only builds until 2024 have such */
	bool readable;		/* all its bytes are in the file */
	uint8_t list[24];	/* cache or bitmap */
};

/* An entry of the map that leads to a span which begins there. */
struct gtc_head {
	uint64_t page;
	vaddr span;
	uint16_t size_class;
};

struct gtc_map {
	vaddr root;
	uint8_t shift;		/* log2 of the page */
	uint8_t leaf_bits, mid_bits, root_bits;	/* mid_bits 0: no middle */
	uint8_t class_bytes;	/* of a page's class in a leaf, 1 or 2 */
	uint8_t first;		/* offset of the first page in a span */
	unsigned votes;
};

/* Where a build keeps what in a sampled block's record. */
struct gtc_record {
	uint16_t proxy;		/* 0: there is none */
	uint16_t requested, allocated, weight, time, span_start, depth;
};

struct gtcmalloc {
	struct space *sp;
	const struct module *module;
	vaddr lo, hi;		/* its writable memory */
	struct gtc_map map;
	const struct gtc_layout *layout;	/* NULL: none fits */
	char why[160];		/* none does: the reason */

	struct gtc_head *heads;	/* owned; by page */
	size_t n_heads, cap_heads;
	struct gtc_span *spans;	/* owned; by address */
	size_t n_spans, cap_spans;
	vaddr *nodes;		/* owned; middles and leaves */
	size_t n_nodes, cap_nodes;
	vaddr *covered;		/* owned; where what a leaf is for begins */
	size_t n_covered, cap_covered;
	uint64_t *huge;		/* owned; numbers of the filler's huge pages */
	size_t n_huge, cap_huge;
	size_t n_faults;	/* spans that the layout does not explain */
	size_t rival_faults;	/* of the next best one */

	uint32_t size[GTC_MAX_CLASSES];	/* 0: no such class */
	vaddr sizes;		/* the table; 0: not found */
	unsigned n_classes;	/* with class 0; 0: not found */
	vaddr central;		/* of list 0, the word with its class */
	uint32_t stride;	/* bytes from one to the next */
	bool transfer;		/* the next two were found */
	int used_off, slots_off;	/* of a transfer cache, from there */

	vaddr *caches;		/* owned; thread caches */
	size_t n_caches, cap_caches;
	unsigned list_bytes;	/* of a class's list in one */
	vaddr slabs;		/* of all CPUs; 0: not found */
	uint32_t n_slabs;	/* regions to look at; not all are in use */
	unsigned slab_shift;	/* log2 of the bytes from one to the next */
	unsigned slab_header;	/* bytes for a class at its start, 4 or 8 */
	vaddr begins;		/* where each class begins, for headers of 4 */
	size_t n_sampled;
	const struct gtc_record *record;	/* NULL: none could be read */
};

/*
 * All instances: one a module.  The caller frees them with gtc_free(); near
 * says how far the last candidate came that is none.
 */
size_t gtc_find(struct space *sp, struct gtcmalloc **ret, char *near,
		size_t near_size);
void gtc_free(struct gtcmalloc *all, size_t n);

/* The first address behind the page map's entry of page. */
static inline vaddr gtc_addr(const struct gtcmalloc *t, uint64_t page)
{
	return page << t->map.shift;
}

/* The span of that address, NULL if none; spans are by address. */
const struct gtc_span *gtc_span_of(const struct gtcmalloc *t, vaddr addr);
/* Is it the start of an object of this class? */
bool gtc_is_object(const struct gtcmalloc *t, vaddr addr, unsigned class);
/* Objects in a span of a class; 0 if it has none. */
uint64_t gtc_capacity(const struct gtcmalloc *t, const struct gtc_span *s);

/*
 * gtcmalloc_layout.c: the layout that explains all spans, or why.  Then spans
 * are those of it.
 */
void gtc_elect(struct gtcmalloc *t);
/*
 * The free objects of a span, at most capacity: their indices, owned by the
 * caller.  False if its list is damaged or does not agree with its counter.
 */
bool gtc_span_free(const struct gtcmalloc *t, const struct gtc_span *s,
		   uint16_t *ret, size_t *ret_n);

/* gtcmalloc_table.c: size classes, central lists and transfer caches. */
void gtc_find_sizes(struct gtcmalloc *t);
void gtc_find_central(struct gtcmalloc *t);

/* A list of free objects that all are of one class. */
struct gtc_list {
	vaddr at;		/* of the pointers, or the first object */
	uint64_t n;
	bool linked;		/* each object has the address of the next */
};
/* A class's objects in transfer caches; false if its fields cannot be. */
bool gtc_transfer_list(const struct gtcmalloc *t, unsigned class,
		       int used_off, int slots_off, struct gtc_list *ret);

/* gtcmalloc_front.c: thread caches and slabs. */
void gtc_find_fronts(struct gtcmalloc *t);
/* A class's list in a thread cache; false if it cannot be one. */
bool gtc_cache_list(const struct gtcmalloc *t, vaddr cache, unsigned class,
		    struct gtc_list *ret);
/* And in a CPU's slab. */
bool gtc_slab_list(const struct gtcmalloc *t, uint32_t cpu, unsigned class,
		   struct gtc_list *ret);

/* gtcmalloc_record.c: is there a record of the sampled block s? */
bool gtc_record_fits(const struct gtcmalloc *t, const struct gtc_span *s);
/* What most records are like. */
void gtc_elect_record(struct gtcmalloc *t);
/*
 * What the one block of a span has, which is all of it unless it is sampled:
 * then what it would have if it were not.
 */
uint64_t gtc_sampled_bytes(const struct gtcmalloc *t,
			   const struct gtc_span *s);
/*
 * The records of all sampled blocks as a heap profile.  Returns the proxies,
 * owned by the caller.
 */
vaddr *gtc_add_profile(const struct gtcmalloc *t, struct heap *heap,
		       uint32_t allocator, uint32_t arena, size_t *ret_n);

/* gtcmalloc_walk.c: adds extents, caches, the profile, and notes. */
void gtc_walk(struct gtcmalloc *t, struct heap *heap, uint32_t allocator,
	      uint32_t arena);

#endif
