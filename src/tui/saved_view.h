/* SPDX-License-Identifier: MIT */
/*
 * A saved report as something to browse: its own tables, without the core or
 * the trace that it is of.  What it does not hold is said.
 */
#ifndef TUI_SAVED_VIEW_H
#define TUI_SAVED_VIEW_H

struct saved;
struct saved_source;
struct tui_source;

/* Takes the report over. */
struct saved_source *saved_source_new(struct saved *s, const char *path);
void saved_source_free(struct saved_source *s);

/* For the browser; its context is the source. */
void saved_source_views(struct saved_source *s, struct tui_source *ret);

#endif
