/* SPDX-License-Identifier: MIT */
#include "corewalk/own.h"

#include <stdlib.h>

#include "base/mem.h"
#include "corewalk/pages.h"

enum {
	VERSION_NOW = 1,
	HEAD = 48,
	ENTRY = 12,

	OWN_TORN = 1 << 0,

	OWN_SHARED = 1 << 0,
	OWN_KERNEL = 1 << 1,
	OWN_SWAPPED = 1 << 2,

	PAGE_FLAGS = PAGE_PRESENT | PAGE_SWAPPED | PAGE_FILE | PAGE_ZERO |
		     PAGE_HUGE | PAGE_SHARED,
};

/* ---- writing ---- */

static void add_le(struct str *s, uint64_t value, unsigned bytes)
{
	for (; bytes; bytes--, value >>= 8)
		str_addc(s, (char)(value & 0xff));
}

static void add_leb(struct str *s, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		str_addc(s, (char)(value | 0x80));
	str_addc(s, (char)value);
}

static uint32_t seg_flags(const struct seg *seg)
{
	return (seg->flags & SEG_SHARED ? OWN_SHARED : 0) |
	       (seg->flags & SEG_KERNEL ? OWN_KERNEL : 0) |
	       (seg->why == SPACE_SWAPPED ? OWN_SWAPPED : 0);
}

void own_make(const struct space *sp, struct str *ret)
{
	uint64_t last = 0;
	size_t i;

	add_le(ret, VERSION_NOW, 4);
	add_le(ret, sp->torn ? OWN_TORN : 0, 4);
	add_le(ret, (uint64_t)(sp->stopped_s * 1e9), 8);
	add_le(ret, sp->page, 8);
	add_le(ret, sp->n_segs, 8);
	add_le(ret, sp->n_pages, 8);
	add_le(ret, 0, 8);
	for (i = 0; i < sp->n_segs; i++) {
		add_le(ret, sp->segs[i].start, 8);
		add_le(ret, seg_flags(&sp->segs[i]), 4);
	}
	for (i = 0; i < sp->n_pages; i++) {
		const struct page_run *run = &sp->pages[i];
		uint64_t at = run->start / sp->page;

		add_leb(ret, at - last);
		add_leb(ret, run->n);
		str_addc(ret, (char)run->flags);
		last = at + run->n;
	}
}

/* ---- reading ---- */

struct reader {
	const uint8_t *at, *end;
};

static bool get_leb(struct reader *r, uint64_t *ret)
{
	uint64_t value = 0;
	unsigned shift;

	for (shift = 0; shift < 63; shift += 7) {
		uint8_t byte;

		if (r->at == r->end)
			return false;
		byte = *r->at++;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = value;
			return true;
		}
	}
	return false;
}

static bool get_run(struct reader *r, uint64_t page, uint64_t *last,
		    struct page_run *ret)
{
	uint64_t gap, n, at, end, limit = UINT64_MAX / page;

	if (!get_leb(r, &gap) || !get_leb(r, &n) || r->at == r->end ||
	    !n || n > UINT32_MAX || !add_ok(*last, gap, &at) ||
	    !add_ok(at, n, &end) || end > limit || *r->at & ~PAGE_FLAGS)
		return false;
	*ret = (struct page_run){ at * page, (uint32_t)n, *r->at++ };
	*last = end;
	return true;
}

/* Each run takes three bytes or more: their number is bounded by the note. */
static struct page_run *get_runs(struct reader *r, uint64_t n, uint64_t page)
{
	struct page_run *runs;
	uint64_t i, last = 0;

	if (n > (uint64_t)(r->end - r->at) / 3)
		return NULL;
	runs = mem_alloc((n + 1) * sizeof(*runs));
	for (i = 0; i < n; i++) {
		if (get_run(r, page, &last, &runs[i]))
			continue;
		free(runs);
		return NULL;
	}
	return runs;
}

/* Both lists are sorted by address. */
static void set_flags(struct space *sp, const uint8_t *list, uint64_t n)
{
	uint64_t i;
	size_t s = 0;

	for (i = 0; i < n; i++) {
		vaddr start = load_u64(list + i * ENTRY);
		uint32_t flags = load_u32(list + i * ENTRY + 8);
		struct seg *seg;

		while (s < sp->n_segs && sp->segs[s].start < start)
			s++;
		if (s == sp->n_segs || sp->segs[s].start != start)
			continue;
		seg = &sp->segs[s];
		seg->flags |= (flags & OWN_SHARED ? SEG_SHARED : 0) |
			      (flags & OWN_KERNEL ? SEG_KERNEL : 0);
		if (flags & OWN_SWAPPED && seg->why == SPACE_UNDUMPED)
			seg->why = SPACE_SWAPPED;
	}
}

bool own_apply(struct space *sp, const uint8_t *desc, uint64_t size)
{
	struct page_run *runs;
	struct reader r;
	uint64_t n_maps;

	if (size < HEAD || load_u32(desc) != VERSION_NOW ||
	    load_u64(desc + 16) != sp->page)
		return false;
	n_maps = load_u64(desc + 24);
	if (n_maps > (size - HEAD) / ENTRY)
		return false;
	r.at = desc + HEAD + n_maps * ENTRY;
	r.end = desc + size;
	runs = get_runs(&r, load_u64(desc + 32), sp->page);
	if (!runs)
		return false;
	set_flags(sp, desc + HEAD, n_maps);
	free(sp->pages);
	sp->pages = runs;
	sp->n_pages = load_u64(desc + 32);
	sp->torn = load_u32(desc + 4) & OWN_TORN;
	sp->stopped_s = (double)load_u64(desc + 8) / 1e9;
	return true;
}
