/* SPDX-License-Identifier: MIT */
#include "corewalk/alloc.h"
#include "corewalk/runtime.h"

#include <stdio.h>
#include <string.h>

extern const struct allocator alloc_glibc, alloc_gtcmalloc, alloc_jemalloc,
	alloc_pymalloc, alloc_tcmalloc, alloc_zend;

const struct allocator *const allocators[] = {
	&alloc_glibc,
	&alloc_gtcmalloc,
	&alloc_jemalloc,
	&alloc_pymalloc,
	&alloc_tcmalloc,
	&alloc_zend,
	NULL,
};

/* The score from which a sighting is walked without being asked to. */
enum { SCORE_SURE = 50 };

const struct allocator *alloc_by_name(const char *name)
{
	for (size_t i = 0; allocators[i]; i++)
		if (!strcmp(allocators[i]->name, name))
			return allocators[i];
	return NULL;
}

/* What was looked for in vain, and how near it came. */
struct misses {
	char names[120];
	char best[240];
	unsigned score;
};

static void miss(struct misses *m, const struct allocator *a,
		 const struct sighting *s)
{
	size_t used = strlen(m->names);

	snprintf(m->names + used, sizeof(m->names) - used, "%s%s",
		 used ? ", " : "", a->name);
	if (s->text[0] && (!m->best[0] || s->score > m->score)) {
		m->score = s->score;
		snprintf(m->best, sizeof(m->best), "%s: %.200s", a->name,
			 s->text);
	}
}

static bool try_allocator(struct space *sp, const struct allocator *a,
			  bool force, struct heap *heap,
			  struct progress *progress, struct misses *misses)
{
	struct sighting s = { 0 };
	bool sure;

	a->probe(sp, &s);
	sure = s.score >= SCORE_SURE || (force && s.score > 0);
	if (sure)
		a->walk(sp, &s, heap, progress);
	else
		miss(misses, a, &s);
	a->drop(s.priv, s.n);
	return sure;
}

bool alloc_walk(struct space *sp, const struct allocator *only, bool force,
		struct heap *heap, struct progress *progress, struct err *err)
{
	struct misses misses = { 0 };
	bool found = false;

	for (size_t i = 0; allocators[i]; i++)
		if (!only || allocators[i] == only)
			found |= try_allocator(sp, allocators[i], force, heap,
					       progress, &misses);
	if (!only)
		runtime_find(sp, heap);
	heap_finish(heap);
	if (found)
		return true;
	err_set(err, ERR_FORMAT, "no known allocator found; looked for %s",
		misses.names);
	if (misses.best[0])
		err_hint(err, "%s", misses.best);
	return false;
}
