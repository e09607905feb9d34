/* SPDX-License-Identifier: MIT */
/*
 * Which tables make a page, and where a row of them leads.
 */
#ifndef TUI_VIEW_H
#define TUI_VIEW_H

#include "base/str.h"
#include "report/report.h"

struct view {
	const char *name;	/* "Arenas" */
	const char *help;	/* "by arena and by size" */
	unsigned sections;	/* bits; 0: the list of blocks */
};

enum { CORE_VIEWS = 8 };
extern const struct view core_views[CORE_VIEWS];

enum goal_kind {
	GOAL_NONE,
	GOAL_SECTIONS,		/* a page of these */
	GOAL_BLOCKS,		/* those that match a filter */
	GOAL_ADDRESS,		/* what is there */
	GOAL_PICTURE,		/* of the mapping from addr to end */
	GOAL_BRANCH,		/* of a tree: opened or closed */
	GOAL_REST,		/* of the page, which was left out at first */
};

struct goal {
	enum goal_kind kind;
	const char *name;	/* static; of the page */
	unsigned sections;
	struct str filter;	/* owned */
	vaddr addr, end;
};

void goal_init(struct goal *g);
void goal_fini(struct goal *g);

/* Where a row of a core's table leads. */
void view_goal(const struct table *t, const struct cell *row,
	       struct goal *ret);

#endif
