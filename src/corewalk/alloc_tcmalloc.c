/* SPDX-License-Identifier: MIT */
/*
 * gperftools' tcmalloc as a struct allocator: tcmalloc.h has the vocabulary,
 * tcmalloc_find.c and tcmalloc_table.c the discovery, tcmalloc_walk.c the
 * walk.
 */
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "corewalk/alloc.h"
#include "corewalk/module.h"
#include "corewalk/tcmalloc.h"

extern const struct allocator alloc_tcmalloc;

static const char *const state_names[BLOCK_STATES] = {
	[BLOCK_CACHED] = "thread-cache",
	[BLOCK_FAST] = "transfer-cache",
	[BLOCK_BINNED] = "central",
	[BLOCK_UNSORTED] = "page-heap",
	[BLOCK_TOP] = "returned",
};

static const uint8_t roles[BLOCK_STATES] = {
	[BLOCK_CACHED] = FREE_IN_CACHE,
	[BLOCK_FAST] = FREE_IN_CACHE,
	[BLOCK_UNSORTED] = FREE_PAGES,
	[BLOCK_TOP] = FREE_RETURNED,
};

static void tc_probe(struct space *sp, struct sighting *ret)
{
	struct tcmalloc *all;

	ret->n = tc_find(sp, &all, ret->text, sizeof(ret->text));
	ret->priv = all;
	ret->score = ret->n ? 100 : 0;
}

static void tc_drop(void *priv, size_t n)
{
	tc_free(priv, n);
}

/* By the layout; closer by the library's name, where a release is known. */
static const char *release(const struct tcmalloc *t)
{
	static const struct {
		const char *soname, *release;
	} known[] = {
		{ ".so.4.5.6", "gperftools 2.8.1" },
		{ ".so.4.5.10", "gperftools 2.10" },
		{ ".so.4.5.18", "gperftools 2.16" },
		{ ".so.4.6.5", "gperftools 2.18.1" },
	};
	const char *name = module_name(t->sp, t->module);

	for (size_t i = 0; i < countof(known); i++) {
		size_t n = strlen(name), k = strlen(known[i].soname);

		if (n > k && !strcmp(name + n - k, known[i].soname))
			return known[i].release;
	}
	if (t->cache_next == 4128)
		return "gperftools 2.16 to 2.18";
	if (t->smallest_span)
		return "gperftools 2.11 to 2.15";
	return t->cache_next ? "gperftools 2.8 to 2.10" : "gperftools";
}

static char *evidence_text(const struct tcmalloc *t)
{
	struct str s;

	str_init(&s);
	str_printf(&s, "page map 0x%" PRIx64 " in ", t->root);
	module_add_name(&s, t->sp, t->module);
	str_printf(&s, ", by structure: %zu spans of %u KiB pages, %zu "
		   "entries odd; system, free and returned bytes %s its "
		   "counters", t->n_spans, 1u << (t->shift - 10),
		   t->n_odd, tc_exact(t) ? "are" : "are not");
	if (t->n_classes)
		str_printf(&s, "; %u size classes", t->n_classes - 1);
	if (t->central)
		str_printf(&s, ", central lists by %u votes",
			   t->central_votes);
	str_printf(&s, ", %zu thread cache%s", t->n_caches,
		   t->n_caches == 1 ? "" : "s");
	return str_take(&s);
}

static void tc_walk_all(struct space *sp, struct sighting *at,
			struct heap *heap, struct progress *progress)
{
	struct tcmalloc *all = at->priv;

	(void)sp;
	(void)progress;
	for (size_t i = 0; i < at->n; i++) {
		struct tcmalloc *t = &all[i];
		char *evidence = evidence_text(t);
		uint32_t allocator = heap_add_allocator(heap, "tcmalloc",
							release(t), evidence);
		struct arena *a = i ?
			heap_add_arena(heap, allocator, t->root,
				       "tcmalloc#%zu", i + 1) :
			heap_add_arena(heap, allocator, t->root, "tcmalloc");

		free(evidence);
		heap_name_states(heap, allocator, state_names);
		heap_set_roles(heap, allocator, roles);
		a->claimed_bytes = t->stats.system_bytes;
		tc_walk(t, heap, allocator, (uint32_t)(heap->n_arenas - 1));
		tc_add_profiles(t, heap, allocator,
				(uint32_t)(heap->n_arenas - 1));
	}
}

const struct allocator alloc_tcmalloc = {
	.name = "tcmalloc",
	.summary = "tcmalloc of gperftools, 2.8 to 2.18",
	.probe = tc_probe,
	.walk = tc_walk_all,
	.drop = tc_drop,
};
