/* SPDX-License-Identifier: MIT */
/*
 * Where the pages of a target are: in memory, in swap, nowhere yet.
 *
 * Vocabulary.  A page is *resident* if it takes memory of the machine,
 * *swapped* if it takes swap, *zero* if it was only ever read and stands for
 * the one page of zeros that all processes share, and *absent* if it takes
 * nothing: never touched, or given back.  A process, and a snapshot that
 * heapcore itself wrote, know this of each page: the space then has a list of
 * runs of pages, sorted and without overlap, with everything in it that is
 * not absent.  A core of another writer does not know: where its holes were
 * kept, a page of anonymous memory is *touched* (it was resident or swapped)
 * or *untouched* (absent or zero), and everything else is *unknown*.
 *
 * A question about a range costs a binary search, less if it continues where
 * the last one ended, and then one step for each run in the range.
 */
#ifndef COREWALK_PAGES_H
#define COREWALK_PAGES_H

#include "corewalk/space.h"

enum page_flag {
	PAGE_PRESENT = 1 << 0,
	PAGE_SWAPPED = 1 << 1,
	PAGE_FILE = 1 << 2,	/* of a file, or of shared memory */
	PAGE_ZERO = 1 << 3,	/* present, and the page of zeros */
	PAGE_HUGE = 1 << 4,	/* part of a huge page */
	PAGE_SHARED = 1 << 5,	/* private, but a relative still has it too */
};

/* n pages of the same kind. */
struct page_run {
	vaddr start;
	uint32_t n;
	uint32_t flags;		/* enum page_flag */
};

/*
 * The mapped bytes of a range: the sum of the first seven is all of them.
 * Bytes of the kernel's own mappings ([vvar] and the like) are unknown.
 */
struct residency {
	uint64_t resident, swapped, zero, absent;
	uint64_t touched, untouched;
	uint64_t unknown;
	/* Of the resident bytes. */
	uint64_t huge, file, shared;
};

/* Each page is known, not guessed from the holes of a file. */
bool space_pages_known(const struct space *sp);

/* Of the bytes in [start, end); pages count by their part in the range. */
void space_residency(struct space *sp, vaddr start, vaddr end,
		     struct residency *ret);

/* A range of which all pages are of the same kind; nothing about mappings. */
struct page_piece {
	vaddr start, end;
	uint32_t flags;		/* enum page_flag; 0: absent */
};

/* The widest one that holds addr, if each page is known. */
struct page_piece space_pages_at(struct space *sp, vaddr addr);

/* So many bytes of pages with these flags. */
void residency_add_pages(struct residency *r, uint32_t flags, uint64_t bytes);

/* Adds b to a. */
void residency_add(struct residency *a, const struct residency *b);

/*
 * Make sp->runs, which space_stored() asks, of the list of pages: of each
 * segment the bytes that are resident, not the page of zeros, or swapped.
 * For targets, after segs is sorted.
 */
void pages_to_runs(struct space *sp);

/*
 * Sorts runs, cuts off what an earlier one has too, and joins neighbours of
 * the same kind; returns how many are left.
 */
size_t pages_sort(struct page_run *runs, size_t n, uint64_t page);

/* Joins neighbours of the same kind; returns how many are left. */
size_t pages_join(struct page_run *runs, size_t n, uint64_t page);

#endif
