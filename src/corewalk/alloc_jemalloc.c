/* SPDX-License-Identifier: MIT */
/*
 * jemalloc as a struct allocator: jemalloc.h has the vocabulary,
 * jemalloc_find.c and jemalloc_cache.c the discovery, jemalloc_walk.c the
 * walk.
 */
#include <inttypes.h>

#include "base/mem.h"
#include "base/str.h"
#include "corewalk/alloc.h"
#include "corewalk/jemalloc.h"
#include "corewalk/module.h"

extern const struct allocator alloc_jemalloc;

static const char *const state_names[BLOCK_STATES] = {
	[BLOCK_CACHED] = "thread-cache",
	[BLOCK_BINNED] = "slab",
	[BLOCK_UNSORTED] = "dirty",
	[BLOCK_UNLISTED] = "muzzy",
	[BLOCK_TOP] = "retained",
};

static const uint8_t roles[BLOCK_STATES] = {
	[BLOCK_CACHED] = FREE_IN_CACHE,
	[BLOCK_UNSORTED] = FREE_PAGES,
	[BLOCK_UNLISTED] = FREE_PAGES,
	[BLOCK_TOP] = FREE_RETURNED,
};

static void je_probe(struct space *sp, struct sighting *ret)
{
	struct jemalloc *all;

	ret->n = je_find(sp, &all, ret->text, sizeof(ret->text));
	ret->priv = all;
	ret->score = ret->n ? 100 : 0;
}

static void je_drop(void *priv, size_t n)
{
	je_free(priv, n);
}

static char *evidence_text(const struct jemalloc *j)
{
	struct str s;

	str_init(&s);
	str_printf(&s, "radix tree 0x%" PRIx64 " in ", j->root);
	module_add_name(&s, j->sp, j->module);
	str_printf(&s, ", for %u bits of address, by structure: %zu of %zu "
		   "extents agree with it, their bitmaps and size classes %u "
		   "bytes apart, %zu entries odd; %zu thread cache%s, %zu base "
		   "block%s", j->layout->wide ? 57 : 48, j->n_agree,
		   j->n_extents, j->quantum, j->n_odd, j->n_caches,
		   j->n_caches == 1 ? "" : "s", j->n_bases,
		   j->n_bases == 1 ? "" : "s");
	if (j->caches_off)
		str_adds(&s, "; thread caches are off");
	return str_take(&s);
}

static void je_walk_all(struct space *sp, struct sighting *at,
			struct heap *heap, struct progress *progress)
{
	struct jemalloc *all = at->priv;

	(void)sp;
	(void)progress;
	for (size_t i = 0; i < at->n; i++) {
		struct jemalloc *j = &all[i];
		char *evidence = evidence_text(j);
		uint32_t allocator = heap_add_allocator(heap, "jemalloc",
							j->layout->release,
							evidence);

		free(evidence);
		heap_name_states(heap, allocator, state_names);
		heap_set_roles(heap, allocator, roles);
		je_walk(j, heap, allocator);
		je_add_profile(j, heap, allocator);
	}
}

const struct allocator alloc_jemalloc = {
	.name = "jemalloc",
	.summary = "jemalloc 5.1 to 5.3",
	.probe = je_probe,
	.walk = je_walk_all,
	.drop = je_drop,
};
