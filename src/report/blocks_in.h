/* SPDX-License-Identifier: MIT */
/*
 * For the makers of lists of blocks: a block as cells, and the pool of words
 * that those point into.
 */
#ifndef REPORT_BLOCKS_IN_H
#define REPORT_BLOCKS_IN_H

#include "report/blocks.h"

enum { BLOCK_COLUMNS = 18 };

struct block_words;
struct block_words *block_words_new(const struct report_input *in);
void block_words_free(struct block_words *w);
void block_words_cells(struct block_words *w, const struct block *b,
		       struct cell ret[BLOCK_COLUMNS]);
/* The same for one column. */
struct cell block_words_cell(struct block_words *w, const struct block *b,
			     size_t column);
bool block_words_match(const struct block_words *w,
		       const struct filter *filter, const struct cell *cells);
/* The first eight bytes of a word, to compare. */
uint64_t block_words_prefix(const struct block_words *w, const struct cell *c);
/* A row of a table of block_columns(). */
void block_words_row(const struct block_words *w, const struct cell *cells,
		     struct table *t);

#endif
