/* SPDX-License-Identifier: MIT */
/*
 * google/tcmalloc as a struct allocator: gtcmalloc.h has the vocabulary and
 * says which file does what.
 */
#include <inttypes.h>

#include "base/mem.h"
#include "base/str.h"
#include "corewalk/alloc.h"
#include "corewalk/gtcmalloc.h"
#include "corewalk/module.h"

extern const struct allocator alloc_gtcmalloc;

static const char *const with_threads[BLOCK_STATES] = {
	[BLOCK_CACHED] = "thread-cache",
	[BLOCK_FAST] = "transfer-cache",
	[BLOCK_BINNED] = "central",
	[BLOCK_UNSORTED] = "page-heap",
	[BLOCK_TOP] = "huge-cache",
};

static const char *const with_slabs[BLOCK_STATES] = {
	[BLOCK_CACHED] = "cpu-cache",
	[BLOCK_FAST] = "transfer-cache",
	[BLOCK_BINNED] = "central",
	[BLOCK_UNSORTED] = "page-heap",
	[BLOCK_TOP] = "huge-cache",
};

static const uint8_t roles[BLOCK_STATES] = {
	[BLOCK_CACHED] = FREE_IN_CACHE,
	[BLOCK_FAST] = FREE_IN_CACHE,
	[BLOCK_UNSORTED] = FREE_PAGES,
	[BLOCK_TOP] = FREE_PAGES,
};

static void gtc_probe(struct space *sp, struct sighting *ret)
{
	struct gtcmalloc *all;

	ret->n = gtc_find(sp, &all, ret->text, sizeof(ret->text));
	ret->priv = all;
	ret->score = ret->n ? 100 : 0;
}

static void gtc_drop(void *priv, size_t n)
{
	gtc_free(priv, n);
}

static void say_fronts(const struct gtcmalloc *t, struct str *s)
{
	if (t->slabs)
		str_printf(s, ", slabs of %u KiB for each CPU",
			   1u << (t->slab_shift - 10));
	if (t->n_caches || !t->slabs)
		str_printf(s, ", %zu thread cache%s", t->n_caches,
			   t->n_caches == 1 ? "" : "s");
}

static char *evidence_text(const struct gtcmalloc *t)
{
	struct str s;

	str_init(&s);
	str_printf(&s, "page map 0x%" PRIx64 " in ", t->map.root);
	module_add_name(&s, t->sp, t->module);
	str_printf(&s, ", by structure: %zu spans of %u KiB pages",
		   t->n_heads, 1u << (t->map.shift - 10));
	if (!t->layout) {
		str_printf(&s, "; not walked: %s", t->why);
		return str_take(&s);
	}
	str_printf(&s, ", the layout of %s explains all but %zu",
		   t->layout->era, t->n_faults);
	if (t->rival_faults > t->n_faults)
		str_printf(&s, ", each other fails on %zu or more",
			   t->rival_faults);
	else
		str_printf(&s, " and more sampled blocks than any other");
	if (t->n_classes)
		str_printf(&s, "; %u size classes, transfer caches%s",
			   t->n_classes, t->transfer ? "" : " not found");
	say_fronts(t, &s);
	return str_take(&s);
}

static void refuse(const struct gtcmalloc *t, struct heap *heap,
		   uint32_t arena)
{
	heap_note(heap, "gtcmalloc-layout", arena, t->map.root, 0,
		  "a page map like google/tcmalloc's, %u entries fit, but %s: "
		  "not walked", t->map.votes, t->why);
	heap_note_is_grave(heap);
}

static void gtc_walk_all(struct space *sp, struct sighting *at,
			 struct heap *heap, struct progress *progress)
{
	struct gtcmalloc *all = at->priv;

	(void)sp;
	(void)progress;
	for (size_t i = 0; i < at->n; i++) {
		struct gtcmalloc *t = &all[i];
		char *evidence = evidence_text(t);
		uint32_t allocator = heap_add_allocator(heap, "gtcmalloc",
			t->layout ? t->layout->era : "unknown layout",
			evidence);
		uint32_t arena = (uint32_t)heap->n_arenas;

		free(evidence);
		if (i)
			heap_add_arena(heap, allocator, t->map.root,
				       "gtcmalloc#%zu", i + 1);
		else
			heap_add_arena(heap, allocator, t->map.root,
				       "gtcmalloc");
		heap_name_states(heap, allocator,
				 t->slabs ? with_slabs : with_threads);
		heap_set_roles(heap, allocator, roles);
		if (t->layout)
			gtc_walk(t, heap, allocator, arena);
		else
			refuse(t, heap, arena);
	}
}

const struct allocator alloc_gtcmalloc = {
	.name = "gtcmalloc",
	.summary = "google/tcmalloc, 2021 to 2026",
	.probe = gtc_probe,
	.walk = gtc_walk_all,
	.drop = gtc_drop,
};
