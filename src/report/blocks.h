/* SPDX-License-Identifier: MIT */
/*
 * Blocks as rows: the columns of --blocks and the keys of --filter.
 *
 * Blocks are streamed, not collected: a heap of 10^8 blocks needs no memory
 * here.  A line costs some tens of ns, a filter that looks only at numbers
 * a few.
 */
#ifndef REPORT_BLOCKS_H
#define REPORT_BLOCKS_H

#include "analysis/usage.h"
#include "corewalk/heap.h"
#include "analysis/reach.h"
#include "report/filter.h"
#include "report/report.h"

/* The first line of the list as text. */
#define BLOCKS_HEADING \
	"ADDRESS                   SIZE  STATE     ARENA          TYPE\n"

const struct column *block_columns(size_t *ret_n);

/* Does the filter look at what only references tell, dominators, a census? */
bool blocks_want_reach(const struct filter *filter);
bool blocks_want_retained(const struct filter *filter);
bool blocks_want_types(const struct filter *filter);

/*
 * One line per block of the input's heap, at most max; filter may be NULL.
 * Without the input's reach nothing is known of what is lost and who refers,
 * without its census not what blocks are.  How many were written.
 */
uint64_t blocks_write(const struct report_input *in,
		      const struct filter *filter, uint64_t max,
		      enum report_format format, struct out *o);

/* usage_init() of those blocks that match; usage_fini() frees it. */
void blocks_usage(struct usage *u, const struct report_input *in,
		  const struct filter *filter);

/*
 * The same list with a number for each row, for the browser: any row is found
 * in some microseconds, and nothing is stored for a block but 4 bytes while
 * the list is sorted.  Made in one pass over all blocks.
 */
struct block_rows;
struct block_rows *block_rows_new(const struct report_input *in,
				  const struct filter *filter);
void block_rows_free(struct block_rows *r);
struct tally block_rows_total(const struct block_rows *r);
/* By a column: numbers from large to small, words from a to z; reverse: not. */
void block_rows_sort(struct block_rows *r, size_t column, bool reverse);
/* Rows from first on, at most n, to a table of block_columns(). */
void block_rows_get(struct block_rows *r, uint64_t first, size_t n,
		    struct table *t);
/* The row of the block at an address, or of the first one behind it. */
uint64_t block_rows_find(struct block_rows *r, vaddr addr);

#endif
