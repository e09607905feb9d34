/* SPDX-License-Identifier: MIT */
/*
 * Where a report goes: standard output, or a file that appears under its name
 * only when all of it has been written.
 *
 * Writing never fails at once: the first error is kept, the rest is dropped,
 * and out_close() reports it.  A million short lines cost no system call each.
 */
#ifndef REPORT_OUT_H
#define REPORT_OUT_H

#include "base/err.h"
#include "base/str.h"
#include "base/types.h"

enum { OUT_BUFFER = 1 << 16 };

struct out {
	int fd;
	int error;		/* errno of the first failure; 0 none */
	char *path;		/* owned; NULL: standard output */
	bool unnamed;		/* a file that has no name yet */
	char *temporary;	/* owned; renamed to path at the end, or NULL */
	/* owned; what the first line must be, as in the file it replaces */
	char *first_line;
	bool folded;		/* it replaces folded stacks */
	struct str *text;	/* borrowed; in place of a file, or NULL */
	char *buf;		/* owned */
	size_t len;
};

/*
 * path NULL or "-": standard output.  A regular file is replaced only if it
 * holds a report of heapcore's own, or if force is set; it is written without
 * a name, or beside its place if that file system makes no such files, readable
 * by nobody else, and gets its name by out_close().  A link is followed.
 */
bool out_open(struct out *o, const char *path, bool force, struct err *err)
	MUST_CHECK;

/* Flush, check, and put a file in its place; frees everything either way. */
bool out_close(struct out *o, struct err *err) MUST_CHECK;

/*
 * For what is read while it is written: the file gets its name now, and what
 * was added so far goes there.  False if something could not be written.
 */
bool out_publish(struct out *o, struct err *err) MUST_CHECK;
bool out_flush(struct out *o) MUST_CHECK;

/* Give up: a file leaves nothing behind. */
void out_abandon(struct out *o);

/* An open descriptor, which out_close() closes. */
void out_open_fd(struct out *o, int fd);

/* To the end of a text, which is there after each out_flush(). */
void out_open_text(struct out *o, struct str *text);
void out_close_text(struct out *o);

void out_add(struct out *o, const void *bytes, size_t n);
void out_adds(struct out *o, const char *text);
void out_addc(struct out *o, char c);
void out_pad(struct out *o, char c, size_t n);
void out_printf(struct out *o, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Room for n bytes, n <= OUT_BUFFER; out_done() says how many were used. */
char *out_room(struct out *o, size_t n);
static inline void out_done(struct out *o, size_t n)
{
	o->len += n;
}

#endif
