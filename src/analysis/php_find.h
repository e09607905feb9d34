/* SPDX-License-Identifier: MIT */
/*
 * The engine's variables that belong to a heap, without symbols: the stack of
 * calls is a large block of the heap that begins with its top and its end, and
 * executor_globals is what points to both.  compiler_globals has the same two
 * tables.
 *
 * Within analysis/ only.
 */
#ifndef ANALYSIS_PHP_FIND_H
#define ANALYSIS_PHP_FIND_H

#include "analysis/php_graph.h"
#include "corewalk/words.h"

struct php_engine {
	vaddr executor;		/* executor_globals; 0: not found */
	vaddr compiler;		/* compiler_globals; 0: not found */
};

/*
 * Those of one arena of the heap.  layout is tried first, or all if it is
 * NULL; the one that fits is in *ret_layout, NULL if none does.
 */
void php_find_engine(struct space *sp, struct heap *h, uint32_t arena,
		     const struct php_layout *layout,
		     struct php_engine *ret,
		     const struct php_layout **ret_layout);

/* The words, not zero, of writable memory that is in no heap of PHP. */
struct php_native {
	struct space *sp;	/* borrowed, as heap */
	struct heap *heap;
	struct words words;
	size_t seg, extent;
	vaddr at, end;		/* what is left of the segment */
	bool open;
	uint64_t budget;	/* of bytes */
};

void php_native_init(struct php_native *n, struct space *sp, struct heap *h);
bool php_native_next(struct php_native *n, vaddr *addr, uint64_t *word);

#endif
