/* SPDX-License-Identifier: MIT */
/*
 * To what size an allocator rounds a request, and in which spans it keeps
 * blocks of one size.
 *
 * A *class* is a size that is handed out; a *span* (TCMalloc), slab (jemalloc)
 * or run (ZendMM) is cut into blocks of one class.  Larger requests have no
 * class: they get whole pages, or in glibc's case just chunks.
 *
 *	glibc	2.26 and later: 8 more bytes, a multiple of 16, 32 at least.
 *		It has no spans.  From the mmap threshold on: 8 more again, in
 *		pages; the threshold follows what is freed, up to 32 MB.
 *	tcmalloc	gperftools 2.8 to 2.18, pages of 8 KiB.  The classes
 *		are computed as in its src/common.cc: steps of an eighth of a
 *		power of two; spans that lose no more than an eighth and hold
 *		at least a quarter of what moves at a time; classes that would
 *		hold as many blocks in as many pages are one.
 *	jemalloc	5.x, pages of 4 KiB: four classes for each power of
 *		two, slabs of the least number of pages that leaves nothing
 *		over, up to 14 KiB.
 *	zend	PHP 7.0 to 8.3, Zend/zend_alloc_sizes.h.
 */
#ifndef REPLAY_SIZE_CLASS_H
#define REPLAY_SIZE_CLASS_H

#include "base/types.h"

enum size_model { MODEL_GLIBC, MODEL_TCMALLOC, MODEL_JEMALLOC, MODEL_ZEND };
enum { SIZE_MODELS = 4, SIZE_CLASSES = 128, SIZE_CLASS_MAX = 256 << 10 };

struct size_class {
	uint32_t size;
	uint32_t span;		/* bytes; a multiple of the page */
};

struct size_classes {
	enum size_model model;
	struct size_class list[SIZE_CLASSES];	/* rising */
	unsigned n;		/* 0: no spans */
	uint8_t of[SIZE_CLASS_MAX / 8 + 1];	/* by (size + 7) / 8 */
};

void size_classes_init(struct size_classes *c, enum size_model model);

/* The class of a request; -1 if it has none. */
static inline int size_class_of(const struct size_classes *c, uint64_t size)
{
	if (!c->n || size > c->list[c->n - 1].size)
		return -1;
	return c->of[(size + 7) / 8];
}

/* What a request without a class gets; mapped: glibc, by mmap. */
uint64_t size_class_large(const struct size_classes *c, uint64_t size,
			  bool mapped);

const char *size_model_name(enum size_model model);

#endif
