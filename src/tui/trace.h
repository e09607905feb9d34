/* SPDX-License-Identifier: MIT */
/*
 * A recorded trace as something to browse: which tables make a page, from which
 * pass over the trace, and at which instant.
 *
 * Passes are made when a page first needs them and kept.  On the time line
 * there is a chosen instant, of which the tables below it are, and perhaps a
 * marked one, to which they are compared then.
 */
#ifndef TUI_TRACE_H
#define TUI_TRACE_H

#include "base/progress.h"

struct trace;
struct trace_source;
struct tui;
struct tui_source;

/*
 * Takes the trace over, and reads it once.  The others are borrowed; the
 * browser, which can cancel later passes, may still be to be set up.
 */
struct trace_source *trace_source_new(struct trace *t, struct progress *p,
				      struct tui *tui);
void trace_source_free(struct trace_source *s);

/* For the browser; its context is the source. */
void trace_source_views(struct trace_source *s, struct tui_source *ret);

#endif
