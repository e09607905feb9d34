/* SPDX-License-Identifier: MIT */
/*
 * The message with which glibc ended the process, and what it means.  Within
 * analysis/ only.
 *
 * libc copies the message into a mapping of its own and leaves the mapping's
 * address in __abort_msg (sysdeps/posix/libc_fatal.c and assert/assert.c,
 * 2.17 to 2.43): struct abort_msg_s { unsigned int size; char msg[]; }, where
 * size is that of the mapping.  No symbol is needed: in libc's data there is
 * at most one pointer to such a thing.
 */
#ifndef ANALYSIS_ABORTMSG_H
#define ANALYSIS_ABORTMSG_H

#include "analysis/damage.h"

/* What glibc noticed, from its text; leaves the static fields NULL if not. */
void abortmsg_explain(struct damage_abort *a, const char *text);

/* Find and explain the message; a->found says whether. */
void abortmsg_find(struct damage_abort *a, struct space *sp, struct heap *h);

/* After a double free, the block; a->has_block says whether it is known. */
void abortmsg_find_block(struct damage_abort *a, struct space *sp,
			 struct heap *h);

#endif
