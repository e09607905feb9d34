/* SPDX-License-Identifier: MIT */
/*
 * The terminal: the only user of curses.
 *
 * Whatever ends the program, by its own will or by a signal, leaves the
 * terminal as it was: what that takes is prepared when it is opened, so that
 * the handler of a signal does nothing but write and set modes.
 */
#ifndef TUI_TERM_H
#define TUI_TERM_H

#include "base/err.h"
#include "base/types.h"
#include "tui/screen.h"

/* Can stdin and stdout be a screen?  Before any work is done. */
bool term_check(struct err *err) MUST_CHECK;
bool term_open(bool color, struct err *err) MUST_CHECK;
void term_close(void);

/* Before a fork: what is to be put back is then known to both processes. */
void term_share(void);
/* The terminal as it was, if a process that had it open could not do so. */
void term_restore(void);

void term_size(int *ret_w, int *ret_h);
/* all: as if nothing were there yet. */
void term_show(const struct screen *s, bool utf8, bool all);

/* The next key; KEY_RESIZED; KEY_CTRL_C for SIGINT too. */
int term_key(void);

/* Clicks and the wheel are keys; false if this terminal has none. */
bool term_mouse(bool on);

/* Between these Ctrl-C ends the program at once. */
void term_busy(bool busy);

#endif
