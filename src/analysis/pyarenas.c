/* SPDX-License-Identifier: MIT */
#include "analysis/pyarenas.h"

#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "corewalk/planes.h"

enum {
	/* Parts of the arenas' bytes, and the least, that are worth saying. */
	SAID_PART = 8, SAID_MIN = 1 << 20,
};

static bool is_pymalloc(const struct heap *h, const struct heap_extent *x)
{
	return x->kind == EXTENT_BLOCKS &&
	       !strcmp(h->allocators[h->arenas[x->arena].allocator].name,
		       "pymalloc");
}

static struct tally used_in(const struct heap *h, const struct heap_extent *x)
{
	struct tally used = { 0, 0 };
	struct heap_iter it;
	struct block b;

	heap_iter_range(&it, h, x->start, x->end);
	while (heap_iter_next(&it, &b))
		if (b.state == BLOCK_USED) {
			used.blocks++;
			used.bytes += b.size;
		}
	return used;
}

static void count(struct pyarenas *a, const struct heap *h,
		  const struct heap_extent *x)
{
	uint64_t bytes[BLOCK_STATES] = { 0 }, all = x->end - x->start, used;
	struct planes_cursor at;

	planes_seek(&at, x);
	planes_bytes(&at, x->start, x->end, bytes);
	used = bytes[BLOCK_USED];
	a->n++;
	a->bytes += all;
	if (!used) {
		a->fill[PYARENA_EMPTY]++;
	} else if (used <= all / 8) {
		struct tally pinning = used_in(h, x);

		a->fill[PYARENA_NEARLY]++;
		a->pinning.blocks += pinning.blocks;
		a->pinning.bytes += pinning.bytes;
		a->held += all - used;
	} else {
		a->fill[used <= all / 2 ? PYARENA_HALF : PYARENA_MORE]++;
	}
}

void pyarenas_count(struct pyarenas *ret, const struct heap *h)
{
	*ret = (struct pyarenas){ 0 };
	for (size_t i = 0; i < h->n_extents; i++)
		if (is_pymalloc(h, &h->extents[i]))
			count(ret, h, &h->extents[i]);
}

void pyarenas_say(struct standout *s, const struct heap *h)
{
	char held[NUM_MAX], used[NUM_MAX];
	struct pyarenas a;

	pyarenas_count(&a, h);
	if (a.held < SAID_MIN || a.held < a.bytes / SAID_PART)
		return;
	num_format_size(held, a.held);
	num_format_size(used, a.pinning.bytes);
	standout_add(s, "python-arenas", a.held, "%s is kept by %" PRIu64
		     " of %" PRIu64 " arenas of pymalloc that are nearly empty:"
		     " %" PRIu64 " blocks of %s in them keep them from going "
		     "back to the system.", held, a.fill[PYARENA_NEARLY], a.n,
		     a.pinning.blocks, used);
	standout_advise(s, ADVICE_PERHAPS, "python-arenas", a.held,
			"Make what lives long before what is large and "
			"short-lived, or try PYTHONMALLOC=malloc.",
			"Python cuts objects of up to 512 bytes out of arenas; "
			"so set, each is a block of malloc, which malloc_trim "
			"and heapcore record see.");
}
