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

#endif
