/* SPDX-License-Identifier: MIT */
/*
 * A picture of a mapping: a cell for some power of two of its bytes, darker
 * the more of them are in use, or are in memory.
 */
#ifndef TUI_HEAT_H
#define TUI_HEAT_H

#include "analysis/heat.h"
#include "tui/keys.h"
#include "tui/screen.h"

struct heat {
	vaddr start, end;
	vaddr at;		/* the cell with the cursor: its start */
	vaddr top;		/* the first one on the screen */
	uint64_t size;		/* of a cell; 0: so that all can be seen */
	bool residency;
	/* All of it, in cells that are small enough for most pictures. */
	struct heat_cell *all;		/* owned; NULL: not looked at */
	uint64_t all_size;
	/* What is on the screen: */
	struct heat_cell *cells;	/* owned */
	size_t n, columns;
	int y, x;		/* of the first one */
	vaddr cells_top;
	uint64_t cells_size;
};

/* Where cells come from. */
struct heat_source {
	void (*cells)(void *context, vaddr from, uint64_t size,
		      struct heat_cell *ret, size_t n);
	void *context;
	bool pages_known;
};

struct heat *heat_new(vaddr start, vaddr end);
void heat_free(struct heat *h);

/* In lines y and on, from column x to s->right. */
void heat_draw(struct heat *h, const struct heat_source *source,
	       struct screen *s, int y, int x, int rows, bool active);

/* The cell at a place of the screen; false if there is none. */
bool heat_cell_at(const struct heat *h, int y, int x, vaddr *ret);

/* Is it a key for the picture?  Done then.  Enter and Backspace are not. */
bool heat_key(struct heat *h, enum action action, int code);

#endif
