/* SPDX-License-Identifier: MIT */
/*
 * Getting the pages of a core's heaps while something else is being done: a
 * thread asks the kernel for them, in order of address, a few megabytes at a
 * time.  What walks behind it meets no page faults and no waiting for the
 * disk.  It reads nothing itself and changes nothing.
 */
#ifndef COREWALK_WARM_H
#define COREWALK_WARM_H

#include "corewalk/space.h"

struct warm;

/* NULL if there is nothing to gain; that is no error.  sp must outlive it. */
struct warm *warm_start(const struct space *sp);
/* Ends it at once; NULL is fine. */
void warm_stop(struct warm *w);

#endif
