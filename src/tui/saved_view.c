/* SPDX-License-Identifier: MIT */
#include "tui/saved_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/saved_tables.h"
#include "tui/tui.h"

enum { VIEWS = 8, NAMES = 10, OTHER = VIEWS - 1 };

/*
 * Views of a kind of document, and the tables of each.  The last one's are all
 * that no other view has.
 */
struct saved_kind_views {
	struct view view[VIEWS];
	const char *tables[VIEWS][NAMES];
	const char *how;	/* to what is not in it */
	const char *behind;	/* what to do for what is behind a row */
};

#define VIEW(n, name, help) { name, help, 1u << (n) }

static const struct saved_kind_views kinds[SAVED_KINDS] = {
	[SAVED_REPORT] = {
		.view = {
			VIEW(0, "Overview", "where the memory is"),
			VIEW(1, "Arenas", "the heap by arena and by size"),
			VIEW(2, "Types", "what the blocks are"),
			VIEW(3, "Free", "what is free, and what pins it"),
			VIEW(4, "Map", "mappings, and what of them is there"),
			VIEW(5, "Retainers", "who keeps the memory alive"),
			VIEW(6, "Findings", "what is leaked or damaged"),
			VIEW(7, "Other", "all other tables"),
		},
		.tables = {
			{ "where", "standout", "advice", "allocators" },
			{ "arenas", "classes" },
			{ "types", "strings", "duplicates" },
			{ "fragmentation", "free_runs", "pinned_by" },
			{ "mappings", "residency" },
			{ "retainers", "accumulations" },
			{ "leaks", "abort", "culprits", "findings" },
		},
		.behind = "a saved report has no blocks: open the core for "
			"those",
		.how = "open the core itself, or write the report with --only",
	},
	[SAVED_REPLAY] = {
		.view = {
			VIEW(0, "Overview", "peak, end, and what is noted"),
			VIEW(1, "Timeline", "the live heap over time"),
			VIEW(2, "Sites", "who holds"),
			VIEW(3, "Tree", "the calls that led there"),
			VIEW(4, "Functions", "each with what it calls"),
			VIEW(5, "Sizes", "of requests"),
			VIEW(6, "Lifetimes", "for how long blocks live"),
			VIEW(7, "Other", "all other tables"),
		},
		.tables = {
			{ "overview", "peak", "at", "end", "allocated",
			  "notes" },
			{ "timeline", "growth" },
			{ "sites" }, { "tree" }, { "functions" },
			{ "sizes", "models" }, { "lifetimes" },
		},
		.behind = "a saved report has no more of it: open the trace",
		.how = "open the trace itself, or write the report with "
		       "--only",
	},
	[SAVED_DIFF] = {
		.view = {
			VIEW(0, "Overview", "what has changed"),
			VIEW(1, "Arenas", "the heap by arena and by size"),
			VIEW(2, "Types", "what the blocks are"),
			VIEW(3, "Leaks", "what is lost"),
			VIEW(4, "Map", "mappings"),
			VIEW(5, "Threads", "threads and their stacks"),
			VIEW(6, "Findings", "what is damaged"),
			VIEW(7, "Other", "all other tables"),
		},
		.tables = {
			{ "where", "standout", "notes", "totals" },
			{ "arenas", "classes" }, { "types" }, { "leaks" },
			{ "mappings", "residency" }, { "threads" },
			{ "findings" },
		},
		.behind = "a saved difference has no more of it",
		.how = "compare the two cores again",
	},
};

/* All that --only could name here are the views. */
static const struct report_section words[VIEWS] = {
	{ "1", 0 }, { "2", 0 }, { "3", 0 }, { "4", 0 }, { "5", 0 },
	{ "6", 0 }, { "7", 0 }, { "8", 0 },
};
static const struct report_kind kind = {
	.schema = "heapcore-saved/1", .sections = words, .n_sections = VIEWS,
};

struct saved_source {
	struct saved *saved;		/* owned */
	char *path;			/* owned */
	struct saved_tables tables;
	const struct saved_kind_views *views;
};

struct saved_source *saved_source_new(struct saved *saved, const char *path)
{
	struct saved_source *s = mem_zalloc(sizeof(*s));

	s->saved = saved;
	s->path = mem_strdup(path);
	s->views = &kinds[saved_kind(saved)];
	saved_tables_init(&s->tables, saved);
	return s;
}

void saved_source_free(struct saved_source *s)
{
	if (!s)
		return;
	saved_tables_fini(&s->tables);
	saved_close(s->saved);
	free(s->path);
	free(s);
}

static size_t view_of(const struct saved_source *s, const char *table)
{
	for (size_t v = 0; v < OTHER; v++)
		for (size_t i = 0; i < NAMES && s->views->tables[v][i]; i++)
			if (!strcmp(table, s->views->tables[v][i]))
				return v;
	return OTHER;
}

static const struct column absent_columns[] = {
	COLUMN("text", "", TEXT),
};

static void say_absent(const struct saved_source *s, struct report *r,
		       size_t view)
{
	struct table *t = report_add(r, (unsigned)view, "absent",
				     "NOT IN THIS REPORT", absent_columns,
				     countof(absent_columns));

	t->form = TABLE_SENTENCES;
	table_row(t);
	table_printf(t, 0, "%s: not in this report; %s.",
		     s->views->view[view].name, s->views->how);
}

static bool build(void *context, struct report *r, vaddr at, struct err *err)
{
	const struct saved_source *s = context;
	size_t view = (size_t)__builtin_ctz(r->options->sections);
	bool any = false;

	(void)at;
	saved_head(s->saved, s->path, &r->head[0]);
	r->complete = saved_complete(s->saved);
	for (size_t i = 0; i < s->tables.n; i++) {
		if (view_of(s, saved_table_name(&s->tables, i)) != view)
			continue;
		saved_table_add(&s->tables, i, r, (unsigned)view);
		any = true;
	}
	if (!any)
		say_absent(s, r, view);
	return report_finish(r, err);
}

/* Nothing is behind a row but the row. */
static void goal(void *context, const struct page *p, const struct table *t,
		 const struct cell *row, struct goal *ret)
{
	(void)context;
	(void)p;
	(void)t;
	(void)row;
	(void)ret;
}

void saved_source_views(struct saved_source *s, struct tui_source *ret)
{
	*ret = (struct tui_source){
		.kind = &kind, .views = s->views->view, .n_views = VIEWS,
		.context = s, .build = build, .goal = goal,
		.nowhere = s->views->behind,
	};
}
