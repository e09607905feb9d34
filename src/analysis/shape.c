/* SPDX-License-Identifier: MIT */
#include "analysis/shape.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"

enum {
	MAX_CLUSTERS = 64,	/* of one size */
	NAME_WORDS = 8,
	RUN = 3,		/* so many alike are "ptr*3" */
};

static const char *const kind_names[WORD_KINDS] = {
	[WORD_ZERO] = "0", [WORD_SMALL] = "num", [WORD_INT] = "int",
	[WORD_HEAP] = "ptr", [WORD_MODULE] = "prog", [WORD_ADDR] = "addr",
	[WORD_TEXT] = "text", [WORD_REAL] = "real", [WORD_OTHER] = "?",
};

/* ---- kinds ---- */

static void add_shared(struct shape_space *s, const struct shape_range *r)
{
	const struct index *ix = s->ix;
	uint64_t unit = r->start <= ix->base ? 0 :
		(r->start - ix->base) >> INDEX_UNIT_SHIFT;

	for (; unit < ix->n_units && ix->base + (unit << INDEX_UNIT_SHIFT) <
	     r->end; unit++)
		s->shared[unit >> 6] |= UINT64_C(1) << (unit & 63);
}

void shape_space_init(struct shape_space *s, const struct index *ix,
		      const struct space *sp)
{
	*s = (struct shape_space){ .ix = ix, .word = sp->word };
	for (size_t i = 0; i < sp->n_segs; i++) {
		const struct seg *seg = &sp->segs[i];
		enum word_kind kind = space_module(sp, seg->start)
			? WORD_MODULE : WORD_ADDR;
		struct shape_range *last = s->n ? &s->ranges[s->n - 1] : NULL;

		if (!(seg->flags & (SEG_R | SEG_W | SEG_X)))
			continue;
		if (last && last->end == seg->start && last->kind == kind)
			last->end = seg->end;
		else
			MEM_PUSH(s->ranges, s->n, s->cap) =
				(struct shape_range){ seg->start, seg->end,
						      kind };
	}
	s->shared = mem_zalloc((ix->n_units / 64 + 1) * sizeof(*s->shared));
	for (size_t i = 0; i < s->n; i++)
		if (s->ranges[i].kind == WORD_MODULE)
			add_shared(s, &s->ranges[i]);
}

void shape_space_fini(struct shape_space *s)
{
	free(s->ranges);
	free(s->shared);
	*s = (struct shape_space){ 0 };
}

enum word_kind shape_addr(const struct shape_space *s, uint64_t v)
{
	size_t lo = BISECT(mid, 0, s->n, s->ranges[mid].end <= v);

	return lo < s->n && v >= s->ranges[lo].start ? s->ranges[lo].kind
						     : WORD_ZERO;
}

uint32_t shape_size(uint64_t usable)
{
	if (usable <= SHAPE_EXACT)
		return (uint32_t)usable;
	return SHAPE_LARGE | (uint32_t)(63 - __builtin_clzll(usable));
}

/* ---- merging ---- */

static int by_size_and_blocks(const void *a, const void *b)
{
	const struct shape_group *x = a, *y = b;

	return ORDER(x->shape.size, y->shape.size) ?:
	       ORDER(y->blocks, x->blocks) ?:
	       ORDER(x->shape.kinds[0], y->shape.kinds[0]) ?:
	       ORDER(x->shape.kinds[1], y->shape.kinds[1]) ?:
	       ORDER(x->key, y->key);
}

/* The kind that covers both; false if none does. */
static bool join(enum word_kind a, enum word_kind b, enum word_kind *ret)
{
	enum word_kind low = a < b ? a : b;

	*ret = a < b ? b : a;
	return low == *ret || low == WORD_ZERO ||
	       (low <= WORD_INT && (*ret == WORD_INT || *ret == WORD_OTHER));
}

/* Join the shape into the cluster if the words allow it. */
static bool merge(struct shape *cluster, const struct shape *shape)
{
	struct shape joined = { .size = cluster->size,
				.words = cluster->words };
	unsigned differ = 0;

	if (shape->words != cluster->words)
		return false;
	for (unsigned i = 0; i < shape->words; i++) {
		enum word_kind old = shape_kind(cluster, i);
		enum word_kind kind;

		if (!join(old, shape_kind(shape, i), &kind)) {
			kind = old;
			if (++differ > shape->words / 8)
				return false;
		}
		shape_set(&joined, i, kind);
	}
	*cluster = joined;
	return true;
}

struct shape *shape_merge(struct shape_group *groups, size_t n, size_t *ret_n)
{
	struct shape *clusters = NULL;
	size_t n_clusters = 0, cap = 0, first = 0;

	SORT(groups, n, by_size_and_blocks);
	for (size_t i = 0; i < n; i++) {
		struct shape_group *g = &groups[i];
		size_t c;

		if (!i || g->shape.size != groups[i - 1].shape.size)
			first = n_clusters;
		for (c = first; c < n_clusters; c++)
			if (merge(&clusters[c], &g->shape))
				break;
		/* What is left of a size with too many is rare. */
		if (c == n_clusters && c - first >= MAX_CLUSTERS)
			c--;
		if (c == n_clusters)
			MEM_PUSH(clusters, n_clusters, cap) = g->shape;
		g->cluster = (uint32_t)c;
	}
	*ret_n = n_clusters;
	return clusters;
}

/* ---- names ---- */

static void add_size(uint32_t size, struct str *ret)
{
	uint64_t low = UINT64_C(1) << (size & 63);

	if (!(size & SHAPE_LARGE))
		str_printf(ret, "%" PRIu32 ":", size);
	else if (low < MIB)
		str_printf(ret, "%" PRIu64 "K-%" PRIu64 "K:", low >> 10,
			   low >> 9);
	else
		str_printf(ret, "%" PRIu64 "M-%" PRIu64 "M:", low >> 20,
			   low >> 19);
}

void shape_name(const struct shape *s, struct str *ret)
{
	unsigned n = s->words, shown = 0, run;

	add_size(s->size, ret);
	for (unsigned i = 0; i < n; i += run) {
		enum word_kind kind = shape_kind(s, i);

		run = 1;
		while (i + run < n && shape_kind(s, i + run) == kind)
			run++;
		if (shown++ == NAME_WORDS) {
			str_adds(ret, " ...");
			return;
		}
		if (run < RUN)
			run = 1;
		str_printf(ret, " %s", kind_names[kind]);
		if (run > 1)
			str_printf(ret, "*%u", run);
	}
}
