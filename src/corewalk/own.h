/* SPDX-License-Identifier: MIT */
/*
 * The note that heapcore's own snapshots carry: owner "HEAPCORE", type 1.  It
 * says what an ELF core cannot: where each page was, which mappings were
 * shared, how long the process stood still.
 *
 * All numbers are little-endian.  Head, 48 bytes:
 *
 *	u32 version	1
 *	u32 flags	bit 0: read while it ran
 *	u64 pause	nanoseconds for which the process stood still
 *	u64 page	bytes of a page
 *	u64 mappings	entries of the first list
 *	u64 runs	entries of the second list
 *	u64 reserved	0
 *
 * First list, 12 bytes each, by address: u64 start, u32 flags (bit 0 shared,
 * bit 1 the kernel's, bit 2 was left in swap).  Second list, by address: runs
 * of pages, each as two LEB128 numbers, the pages between it and the end of
 * the run before (the first: from address 0) and its own pages, and one byte,
 * enum page_flag.  Pages in no run were absent.
 */
#ifndef COREWALK_OWN_H
#define COREWALK_OWN_H

#include "base/str.h"
#include "corewalk/space.h"

#define OWN_OWNER "HEAPCORE"
enum { OWN_TYPE = 1 };

/* The contents of the note. */
void own_make(const struct space *sp, struct str *ret);

/*
 * The same backwards: flags of segments and the list of pages.  Segments must
 * be sorted.  False, and nothing changed, if the note is damaged.
 */
bool own_apply(struct space *sp, const uint8_t *desc, uint64_t size);

#endif
