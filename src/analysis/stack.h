/* SPDX-License-Identifier: MIT */
/*
 * Finding the stacks of threads, living and gone.  Within analysis/ only.
 *
 * glibc puts the descriptor of a thread (struct pthread) at the top of the
 * thread's stack.  Inside it are the words stackblock and stackblock_size,
 * one behind the other in all releases (nptl/descr.h, 2.17 to 2.43): the exact
 * range, even where adjacent stacks became one mapping.  Living threads are
 * known by their thread pointers, the others by the lists that libc keeps in
 * its data and by looking at the ends of mappings.
 */
#ifndef ANALYSIS_STACK_H
#define ANALYSIS_STACK_H

#include "analysis/where.h"

/* Fill w->stacks: sorted, without overlaps. */
void stack_find(struct where *w, struct space *sp, struct heap *h);

#endif
