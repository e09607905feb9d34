/* SPDX-License-Identifier: MIT */
/*
 * What takes long can be taken back at any moment, half done as it is.
 *
 * At an *undo point* the process forks.  The child computes and is from then
 * on the browser; the parent only waits.  Ctrl-C while the child computes ends
 * the child, and the parent goes on from the point, knowing nothing of it.
 * Else the parent ends as the child did.  Signals that end a program are passed
 * on.
 *
 * When it is computed, the parent has nothing to go back to: it ends, and the
 * child belongs to the *supervisor*, a process that holds nothing, began all
 * this and ends as the browser does.  So there are two processes, and three
 * while one computes.
 *
 * Both share all memory that is not written to, so a point costs what fork()
 * does, and later what the computation changes of what was there before.
 */
#ifndef TUI_UNDO_H
#define TUI_UNDO_H

#include "base/types.h"

/*
 * Before anything is read: becomes the supervisor of a child, which returns.
 * Without one, where there can be none, each point adds a process.
 */
void undo_begin(void);

/*
 * True: go on and compute, then call undo_done().  False: that was cancelled,
 * or it cannot be done here, which *ret_cancelled tells.  Before undo_done()
 * another point is the same one.
 */
bool undo_point(bool *ret_cancelled);
void undo_done(void);

/* In a handler of SIGINT: ends the process if it computes. */
void undo_on_interrupt(void);

#endif
