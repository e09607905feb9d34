/* SPDX-License-Identifier: MIT */
/*
 * What jemalloc has for a heap profile.  A block that its sampler picked is an
 * extent of its own, whose structure leads to a *context*: what one thread has
 * sampled with one stack.  That leads to the stack's record, which is known by
 * a pointer in it to its own end, where the return addresses are.  A context
 * counts its blocks and bytes; with 5.3 also what these bytes stand for, from
 * which the rate follows.
 */
#include "corewalk/jemalloc.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"

enum {
	MAX_DEPTH = 128,		/* PROF_BT_MAX */
	MAX_LG = 40,
};

/* Offsets of the releases that have them: prof_structs.h, edata.h. */
struct prof_layout {
	unsigned born, requested;	/* in an extent's structure; 0: none */
	unsigned context;
	unsigned objects, bytes;	/* in a context */
	unsigned unbiased;		/* 0: none */
	unsigned record;
	unsigned vector;		/* in a record; its length follows */
};

static const struct prof_layout layouts[] = {
	/* 5.3 */
	{ .born = 64, .requested = 72, .context = 80,
	  .objects = 32, .bytes = 48, .unbiased = 56, .record = 96,
	  .vector = 104 },
	/* 5.2 */
	{ .born = 64, .context = 72,
	  .objects = 24, .bytes = 32, .record = 56, .vector = 72 },
	/* 5.1 */
	{ .context = 64,
	  .objects = 24, .bytes = 32, .record = 56, .vector = 72 },
};

/* A sampled block. */
struct picked {
	const struct je_extent *extent;
	vaddr context, stack;
	uint32_t depth;
};

struct finder {
	const struct jemalloc *j;
	const struct prof_layout *layout;
	struct picked *all;	/* owned; by context */
	size_t n, cap;
};

/* The stack of what an extent's structure leads to; false: not sampled. */
static bool read_picked(const struct jemalloc *j,
			const struct prof_layout *l,
			const struct je_extent *x, struct picked *ret)
{
	uint64_t context, record, vector;
	uint32_t depth;

	if (x->slab || x->state != JE_ACTIVE || !x->agrees ||
	    !space_u64(j->sp, x->addr + l->context, &context) ||
	    context <= 1 || context & 7 ||
	    !space_u64(j->sp, context + l->record, &record) || record & 7 ||
	    !space_u64(j->sp, record + l->vector, &vector) ||
	    vector != record + l->vector + 16 ||
	    !space_u32(j->sp, record + l->vector + 8, &depth) ||
	    depth > MAX_DEPTH ||
	    !space_readable(j->sp, vector, depth * UINT64_C(8)))
		return false;
	*ret = (struct picked){ x, context, vector, depth };
	return true;
}

static void collect(struct finder *f)
{
	struct picked one;

	f->n = 0;
	for (size_t i = 0; i < f->j->n_extents; i++)
		if (read_picked(f->j, f->layout, &f->j->extents[i], &one))
			MEM_PUSH(f->all, f->n, f->cap) = one;
}

static int by_context(const void *a, const void *b)
{
	const struct picked *x = a, *y = b;

	return ORDER(x->context, y->context) ?:
	       ORDER(x->extent->start, y->extent->start);
}

/* Where the blocks of the context end that begin at from. */
static size_t context_end(const struct finder *f, size_t from)
{
	size_t end = from + 1;

	while (end < f->n && f->all[end].context == f->all[from].context)
		end++;
	return end;
}

/* How many contexts have other blocks than they count. */
static size_t count_off(const struct finder *f)
{
	size_t off = 0, end;

	for (size_t i = 0; i < f->n; i = end) {
		uint64_t objects = 0, bytes = 0, sum = 0;
		vaddr context = f->all[i].context;

		end = context_end(f, i);
		for (size_t k = i; k < end; k++)
			sum += f->all[k].extent->size;
		space_u64(f->j->sp, context + f->layout->objects, &objects);
		space_u64(f->j->sp, context + f->layout->bytes, &bytes);
		off += objects != end - i || bytes != sum;
	}
	return off;
}

/* ---- the rate ---- */

/* As prof_unbias_map_init() does. */
static uint64_t stands_for(uint64_t size, unsigned lg)
{
	double rate = (double)(UINT64_C(1) << lg);

	return (uint64_t)round((double)size / (1 - exp(-(double)size / rate)));
}

static bool rate_fits(const struct finder *f, unsigned lg)
{
	size_t end;

	for (size_t i = 0; i < f->n; i = end) {
		uint64_t want = 0, sum = 0;

		end = context_end(f, i);
		for (size_t k = i; k < end; k++)
			sum += stands_for(f->j->size[f->all[k].extent->class],
					  lg);
		if (!space_u64(f->j->sp, f->all[i].context +
			       f->layout->unbiased, &want) || want != sum)
			return false;
	}
	return true;
}

static uint64_t find_rate(const struct finder *f)
{
	for (unsigned lg = 0; f->layout->unbiased && lg <= MAX_LG; lg++)
		if (rate_fits(f, lg))
			return UINT64_C(1) << lg;
	return 0;
}

/* ---- out ---- */

static void add_picked(const struct finder *f, const struct picked *p,
		       struct heap_profile *profile)
{
	const struct je_extent *x = p->extent;
	struct heap_sample sample = {
		.addr = x->user, .requested = x->size, .allocated = x->size,
		.length = x->size,
	};
	vaddr pcs[MAX_DEPTH];
	uint64_t requested;

	if (f->layout->requested &&
	    space_u64(f->j->sp, x->addr + f->layout->requested, &requested) &&
	    requested <= x->size)
		sample.requested = requested;
	if (f->layout->born)
		space_u64(f->j->sp, x->addr + f->layout->born,
			  &sample.born_ns);
	space_read(f->j->sp, p->stack, pcs, p->depth * sizeof(*pcs));
	heap_add_sample(profile, &sample, pcs, p->depth);
}

void je_add_profile(const struct jemalloc *j, struct heap *heap,
		    uint32_t allocator)
{
	struct finder f, best = { .j = j };
	struct heap_profile *profile;
	size_t off;

	for (size_t i = 0; i < countof(layouts); i++) {
		f = (struct finder){ .j = j, .layout = &layouts[i] };
		collect(&f);
		if (f.n > best.n) {
			free(best.all);
			best = f;
		} else {
			free(f.all);
		}
	}
	if (!best.n)
		return;
	SORT(best.all, best.n, by_context);
	profile = heap_add_profile(heap, allocator, HEAP_PROFILE_LIVE);
	profile->module = j->module;
	profile->rate = find_rate(&best);
	for (size_t i = 0; i < best.n; i++)
		add_picked(&best, &best.all[i], profile);
	off = count_off(&best);
	if (off) {
		heap_note(heap, "jemalloc-sampled", HEAP_NO_ARENA, j->root, 0,
			  "%zu samples were found; for %zu stacks jemalloc "
			  "itself counts others: the heap profile may lack "
			  "some", best.n, off);
		heap_note_is_minor(heap);
	}
	free(best.all);
}
