/* SPDX-License-Identifier: MIT */
#include "analysis/stored.h"

/* The same as stored_next_hole() inside the stored part of a segment. */
static bool hole_in_seg(const struct space *sp, const struct seg *seg,
			vaddr from, vaddr *ret_start, vaddr *ret_end)
{
	vaddr end = seg->start + seg->stored;
	uint64_t off = seg->core_off + (from - seg->start);
	size_t i;

	if (!sp->runs)
		return false;
	for (i = space_first_run(sp, off); from < end; i++) {
		const struct extent_run *r = &sp->runs[i];

		if (i == sp->n_runs || r->start > off) {
			*ret_start = from;
			*ret_end = i == sp->n_runs ? end :
				min_u64(end, from + (r->start - off));
			return true;
		}
		from += r->end - off;
		off = r->end;
	}
	return false;
}

bool stored_next_hole(struct space *sp, vaddr from, vaddr to,
		      vaddr *ret_start, vaddr *ret_end)
{
	for (size_t i = space_first_seg(sp, from); from < to; i++) {
		const struct seg *seg = &sp->segs[i];
		vaddr start, end;

		if (i == sp->n_segs || seg->start > from) {
			start = from;
			end = i == sp->n_segs ? to : seg->start;
		} else if (from - seg->start < seg->stored &&
			   hole_in_seg(sp, seg, from, &start, &end)) {
			if (start >= to)
				return false;
		} else if (seg->stored < seg->end - seg->start) {
			start = max_u64(from, seg->start + seg->stored);
			end = seg->end;
			if (start >= to)
				return false;
		} else {
			from = seg->end;
			continue;
		}
		*ret_start = start;
		*ret_end = min_u64(end, to);
		return true;
	}
	return false;
}

void stored_missing(struct space *sp, struct planes_cursor *at, vaddr from,
		    vaddr to, uint64_t missing[BLOCK_STATES])
{
	vaddr start, end;

	if (space_stored(sp, from, to) == to - from)
		return;
	for (; stored_next_hole(sp, from, to, &start, &end); from = end)
		planes_bytes(at, start, end, missing);
}
