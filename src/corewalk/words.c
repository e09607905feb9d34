/* SPDX-License-Identifier: MIT */
#include "corewalk/words.h"

#include <string.h>

enum { STRIDE = 64 };	/* words that are compared at once */

void words_init(struct words *w, struct space *sp, vaddr start, vaddr end,
		uint64_t piece, uint64_t *budget)
{
	w->sp = sp;
	w->piece = piece;
	w->at = start;
	w->end = end;
	w->i = w->n = 0;
	w->budget = budget;
}

static bool fill(struct words *w)
{
	vaddr next = space_next_stored(w->sp, w->at) & ~UINT64_C(7);
	uint64_t want;

	if (next > w->at)
		w->at = next;
	if (w->at >= w->end)
		return false;
	want = min_u64(w->end - w->at, w->piece);
	want = min_u64(want, *w->budget);
	w->n = (size_t)(space_read(w->sp, w->at, w->buf, want) / 8);
	*w->budget -= w->n * 8;
	w->i = 0;
	return w->n != 0;
}

/* Most of a .bss is zeros. */
static size_t skip_zeros(const uint64_t *buf, size_t i, size_t n)
{
	while (i + STRIDE < n && !buf[i] &&
	       !memcmp(buf + i, buf + i + 1, STRIDE * sizeof(*buf)))
		i += STRIDE;
	while (i < n && !buf[i])
		i++;
	return i;
}

bool words_next(struct words *w, vaddr *addr, uint64_t *value)
{
	for (;;) {
		w->i = skip_zeros(w->buf, w->i, w->n);
		if (w->i < w->n) {
			*addr = w->at + w->i * 8;
			*value = w->buf[w->i++];
			return true;
		}
		w->at += w->n * 8;
		w->n = 0;
		if (!fill(w))
			return false;
	}
}

bool words_module_range(struct space *sp, const struct module *m, size_t *i,
			vaddr *lo, vaddr *hi)
{
	*lo = *hi = 0;
	for (; *i < sp->n_segs; (*i)++) {
		const struct seg *seg = &sp->segs[*i];
		bool ours = seg->flags & SEG_W &&
			!(seg->flags & SEG_SHARED) && seg->start < m->end;

		if (*lo && (!ours || seg->start != *hi))
			return true;
		if (seg->start >= m->end)
			return false;
		if (!ours)
			continue;
		if (!*lo)
			*lo = seg->start;
		/* What was mapped right behind the bss joins it. */
		*hi = min_u64(seg->end, m->end);
	}
	return *lo != 0;
}
