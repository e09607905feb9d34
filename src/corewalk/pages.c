/* SPDX-License-Identifier: MIT */
#include "corewalk/pages.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"

bool space_pages_known(const struct space *sp)
{
	return sp->pages != NULL;
}

void residency_add(struct residency *a, const struct residency *b)
{
	a->resident += b->resident;
	a->swapped += b->swapped;
	a->zero += b->zero;
	a->absent += b->absent;
	a->touched += b->touched;
	a->untouched += b->untouched;
	a->unknown += b->unknown;
	a->huge += b->huge;
	a->file += b->file;
	a->shared += b->shared;
}

static vaddr run_end(const struct space *sp, const struct page_run *run)
{
	return run->start + run->n * sp->page;
}

/* The first run that ends behind addr; n_pages if none does. */
static size_t first_run(struct space *sp, vaddr addr)
{
	size_t lo = 0, n = sp->n_pages;

	/* Questions mostly come in order. */
	if (sp->last_run < n) {
		if (run_end(sp, &sp->pages[sp->last_run]) <= addr) {
			lo = sp->last_run + 1;
			n -= lo;
			if (!n || run_end(sp, &sp->pages[lo]) > addr)
				return lo;
		} else if (!sp->last_run ||
			   run_end(sp, &sp->pages[sp->last_run - 1]) <= addr) {
			return sp->last_run;
		} else {
			n = sp->last_run;
		}
	}
	while (n) {
		size_t half = n / 2;

		if (run_end(sp, &sp->pages[lo + half]) <= addr) {
			lo += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return lo;
}

void residency_add_pages(struct residency *r, uint32_t flags, uint64_t bytes)
{
	if (flags & PAGE_SWAPPED) {
		r->swapped += bytes;
	} else if (flags & PAGE_ZERO) {
		r->zero += bytes;
	} else if (flags & PAGE_PRESENT) {
		r->resident += bytes;
		r->huge += flags & PAGE_HUGE ? bytes : 0;
		r->file += flags & PAGE_FILE ? bytes : 0;
		r->shared += flags & PAGE_SHARED ? bytes : 0;
	} else {
		r->absent += bytes;
	}
}

struct page_piece space_pages_at(struct space *sp, vaddr addr)
{
	size_t i = first_run(sp, addr);
	struct page_piece ret = { .end = UINT64_MAX };

	if (i < sp->n_pages) {
		sp->last_run = i;
		ret.end = sp->pages[i].start;
		if (ret.end <= addr)
			return (struct page_piece){
				sp->pages[i].start, run_end(sp, &sp->pages[i]),
				sp->pages[i].flags,
			};
	}
	if (i)
		ret.start = run_end(sp, &sp->pages[i - 1]);
	return ret;
}

/* Of [from, to), which is mapped. */
static void known(struct space *sp, vaddr from, vaddr to, struct residency *r)
{
	while (from < to) {
		struct page_piece p = space_pages_at(sp, from);
		vaddr end = min_u64(to, p.end);

		residency_add_pages(r, p.flags, end - from);
		from = end;
	}
}

/* The same by the holes of a core. */
static void guessed(struct space *sp, const struct seg *seg, vaddr from,
		    vaddr to, struct residency *r)
{
	vaddr end = min_u64(to, seg->start + seg->stored);
	uint64_t stored;

	if (sp->holes != HOLES_KEPT || !space_seg_anon(seg) || from >= end) {
		r->unknown += to - from;
		return;
	}
	stored = space_stored(sp, from, end);
	r->touched += stored;
	r->untouched += end - from - stored;
	r->unknown += to - end;
}

void space_residency(struct space *sp, vaddr start, vaddr end,
		     struct residency *ret)
{
	size_t i;

	memset(ret, 0, sizeof(*ret));
	for (i = space_first_seg(sp, start); i < sp->n_segs; i++) {
		const struct seg *seg = &sp->segs[i];
		vaddr from = max_u64(start, seg->start);
		vaddr to = min_u64(end, seg->end);

		if (seg->start >= end)
			break;
		if (seg->flags & SEG_KERNEL)
			ret->unknown += to - from;
		else if (sp->pages)
			known(sp, from, to, ret);
		else
			guessed(sp, seg, from, to, ret);
	}
}

size_t pages_join(struct page_run *runs, size_t n, uint64_t page)
{
	size_t i, kept = 0;

	for (i = 0; i < n; i++) {
		struct page_run *last = kept ? &runs[kept - 1] : NULL;

		if (last && last->flags == runs[i].flags &&
		    last->start + last->n * page == runs[i].start &&
		    last->n <= UINT32_MAX - runs[i].n)
			last->n += runs[i].n;
		else
			runs[kept++] = runs[i];
	}
	return kept;
}

size_t pages_sort(struct page_run *runs, size_t n, uint64_t page)
{
	size_t i, kept = 0;
	vaddr end = 0;

	SORT_BY(runs, n, start);
	for (i = 0; i < n; i++) {
		struct page_run run = runs[i];
		uint64_t cut = end > run.start ? (end - run.start) / page : 0;

		if (cut >= run.n)
			continue;
		run.start += cut * page;
		run.n -= (uint32_t)cut;
		end = run.start + run.n * page;
		runs[kept++] = run;
	}
	return pages_join(runs, kept, page);
}

/* ---- runs of the file ---- */

static bool takes_memory(const struct page_run *run)
{
	return run->flags & PAGE_SWAPPED ||
	       (run->flags & (PAGE_PRESENT | PAGE_ZERO)) == PAGE_PRESENT;
}

static void seg_runs(struct space *sp, const struct seg *seg, size_t *cap)
{
	vaddr end = seg->start + seg->stored;
	size_t i;

	for (i = first_run(sp, seg->start); i < sp->n_pages; i++) {
		const struct page_run *run = &sp->pages[i];
		vaddr from = max_u64(run->start, seg->start);
		vaddr to = min_u64(run_end(sp, run), end);
		struct extent_run *last;

		sp->last_run = i;
		if (run->start >= end)
			break;
		if (!takes_memory(run) || from >= to)
			continue;
		last = sp->n_runs ? &sp->runs[sp->n_runs - 1] : NULL;
		from += seg->core_off - seg->start;
		to += seg->core_off - seg->start;
		if (last && last->end == from)
			last->end = to;
		else
			MEM_PUSH(sp->runs, sp->n_runs, *cap) =
				(struct extent_run){ from, to };
	}
}

void pages_to_runs(struct space *sp)
{
	size_t i, cap = 0;

	free(sp->runs);
	sp->runs = NULL;
	sp->n_runs = 0;
	sp->last_run = 0;
	for (i = 0; i < sp->n_segs; i++)
		if (sp->segs[i].stored)
			seg_runs(sp, &sp->segs[i], &cap);
	/* An empty list is not the same as none. */
	if (!sp->runs)
		sp->runs = mem_zalloc(sizeof(*sp->runs));
	SORT_BY(sp->runs, sp->n_runs, start);
	space_index(sp);
}
