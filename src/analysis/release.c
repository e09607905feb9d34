/* SPDX-License-Identifier: MIT */
#include "analysis/release.h"

#include <string.h>

/*
 * tcmalloc: src/gperftools/malloc_extension.h, of MallocExtension; jemalloc:
 * jemalloc(3), where 4096 stands for all arenas; PHP: Zend/zend_alloc.c,
 * zend_mm_gc.
 */
static const struct {
	const char *name;
	bool spans;	/* what goes is empty spans, not free pages */
	const char *call, *setting;
} calls[] = {
	{ "tcmalloc", false, "ReleaseFreeMemory()",
	  "TCMALLOC_RELEASE_RATE=10" },
	{ "jemalloc", false, "mallctl(\"arena.4096.purge\")",
	  "MALLOC_CONF=dirty_decay_ms:500" },
	{ "zend", true, "gc_mem_caches()", NULL },
};

static uint64_t free_pages(const struct fragment *f, const struct heap *h,
			   uint32_t allocator)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < f->n_arenas; i++)
		if (h->arenas[i].allocator == allocator)
			bytes += f->arenas[i].role[FREE_PAGES].stored;
	return bytes;
}

static uint64_t empty_spans(const struct fragment *f, uint32_t allocator)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < f->spans.n_classes; i++)
		if (f->spans.classes[i].allocator == allocator)
			bytes += f->spans.classes[i].empty_bytes;
	return bytes;
}

bool release_of(const struct fragment *f, const struct heap *h,
		uint32_t allocator, struct release *ret)
{
	const struct heap_allocator *a = &h->allocators[allocator];

	for (size_t i = 0; a->roles && i < countof(calls); i++) {
		if (strcmp(calls[i].name, a->name))
			continue;
		*ret = (struct release){
			.allocator = allocator,
			.bytes = calls[i].spans ? empty_spans(f, allocator) :
				free_pages(f, h, allocator),
			.call = calls[i].call, .setting = calls[i].setting,
		};
		return ret->bytes != 0;
	}
	return false;
}
