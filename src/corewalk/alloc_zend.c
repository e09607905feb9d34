/* SPDX-License-Identifier: MIT */
/*
 * ZendMM as a struct allocator: zend.h has the vocabulary, zend_find.c the
 * discovery, zend_walk.c the walk.
 */
#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "corewalk/alloc.h"
#include "corewalk/zend.h"

extern const struct allocator alloc_zend;

static const char *const state_names[BLOCK_STATES] = {
	[BLOCK_BINNED] = "free-slot",
	[BLOCK_UNSORTED] = "free-pages",
	[BLOCK_TOP] = "cached-chunk",
};

static const uint8_t roles[BLOCK_STATES] = {
	[BLOCK_UNSORTED] = FREE_PAGES,
	[BLOCK_TOP] = FREE_PAGES,
};

static void zend_probe(struct space *sp, struct sighting *ret)
{
	struct zend_heap *heaps;

	ret->n = zend_find(sp, &heaps, ret->text, sizeof(ret->text));
	ret->priv = heaps;
	ret->score = ret->n ? 100 : 0;
}

static void zend_drop(void *priv, size_t n)
{
	(void)n;
	free(priv);
}

static void release_text(struct space *sp, char *ret, size_t size)
{
	struct zend_php php;

	zend_find_php(sp, &php);
	if (!php.api)
		snprintf(ret, size, "of unknown release");
	else
		snprintf(ret, size, "%s%s%s", zend_release(php.api),
			 php.zts ? " ZTS" : "", php.debug ? " debug" : "");
}

static void evidence_text(const struct zend_heap *z, size_t n, size_t exact,
			  struct str *s)
{
	const struct zend_layout *at = &z->at;

	str_printf(s, "main chunk 0x%llx, by structure: free lists at heap+%u "
		   "(%u of %u fit), map at chunk+%u",
		   (unsigned long long)z->main_chunk, at->free_slot, at->good,
		   at->good + at->bad, at->map);
	if (at->shadow != ZEND_SHADOW_NONE)
		str_printf(s, ", shadows as in %s",
			   at->shadow == ZEND_SHADOW_PLACED ? "8.6" : "8.4");
	str_printf(s, "; %zu of %zu heap%s exact", exact, n,
		   n == 1 ? "" : "s");
	if (z->custom)
		str_adds(s, "; its functions are replaced, as by a profiler");
}

static void zend_walk(struct space *sp, struct sighting *at,
		      struct heap *heap, struct progress *progress)
{
	const struct zend_heap *heaps = at->priv;
	uint32_t allocator;
	char release[40];
	struct str evidence;
	size_t exact = 0;

	(void)progress;
	release_text(sp, release, sizeof(release));
	allocator = heap_add_allocator(heap, "zend", release, "");
	heap_name_states(heap, allocator, state_names);
	heap_set_roles(heap, allocator, roles);
	for (size_t i = 0; i < at->n; i++) {
		const struct zend_heap *z = &heaps[i];
		struct arena *a = at->n == 1 ?
			heap_add_arena(heap, allocator, z->addr, "zend") :
			heap_add_arena(heap, allocator, z->addr, "zend %zu",
				       i + 1);
		struct zend_sum sum;

		a->claimed_bytes = z->real_size;
		a->max_bytes = z->real_peak;
		zend_walk_heap(sp, z, heap, (uint32_t)(heap->n_arenas - 1),
			       &sum);
		exact += sum.used_bytes == z->size &&
			sum.real_bytes == z->real_size;
	}
	heap_add_setting(heap, allocator, "memory_limit", heaps[0].limit,
			 true, false);
	str_init(&evidence);
	evidence_text(&heaps[0], at->n, exact, &evidence);
	free(heap->allocators[allocator].evidence);
	heap->allocators[allocator].evidence = str_take(&evidence);
}

const struct allocator alloc_zend = {
	.name = "zend",
	.summary = "ZendMM of PHP, 7.0 to 8.6",
	.probe = zend_probe,
	.walk = zend_walk,
	.drop = zend_drop,
};
