/* SPDX-License-Identifier: MIT */
/*
 * glibc malloc, releases 2.17 to 2.43: glibc.h has the vocabulary and the
 * drawing, glibc_find.c the discovery, glibc_walk.c the walk and glibc_lists.c
 * what is free.  Here these become one struct allocator.
 */
#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "corewalk/glibc.h"
#include "corewalk/module.h"

extern const struct allocator alloc_glibc;

/* What probe hands to walk. */
static void glibc_probe(struct space *sp, struct sighting *ret)
{
	struct glibc *all;
	size_t n = glibc_find(sp, &all, ret->text, sizeof(ret->text));

	ret->score = 100;
	if (!n) {
		ret->score = glibc_find_orphans(sp, &all);
		if (ret->score < 50)
			return;
		n = 1;
	}
	ret->priv = all;
	ret->n = n;
}

static void glibc_drop(void *priv, size_t n)
{
	glibc_free(priv, n);
}

/*
 * Steps that repairs may take: enough for any real heap, and in proportion to
 * the bytes that can be read, so that a small hostile file ends soon.
 */
static uint64_t step_budget(const struct space *sp)
{
	return MIB + space_bytes(sp) / 4;
}

/* The file that holds the main arena: its own data, or bss behind it. */
static const struct module *home(const struct glibc *g)
{
	return space_module(g->sp, g->arenas[0].addr);
}

/*
 * The release: what the structures allow, or the number in the file's name if
 * that is among them ("libc-2.31.so", up to 2.33).
 */
static void release_text(struct glibc *g, char *ret, size_t size)
{
	const struct module *m = home(g);
	int minor;

	if (m && sscanf(module_name(g->sp, m), "libc-2.%d.so", &minor) == 1 &&
	    minor >= g->first && minor <= g->last)
		g->first = g->last = minor;
	if (g->first > g->last)
		snprintf(ret, size, "of unknown release");
	else if (g->first == g->last)
		snprintf(ret, size, "2.%d", g->first);
	else
		snprintf(ret, size, "2.%d to 2.%d", g->first, g->last);
}

/* Is all data of programs and libraries there?  Then it was overwritten. */
static const char *why_lost(const struct glibc *g)
{
	for (size_t i = 0; i < g->sp->n_segs; i++) {
		const struct seg *seg = &g->sp->segs[i];

		if (seg->file != SEG_NO_FILE && (seg->flags & SEG_W) &&
		    !(seg->flags & SEG_SHARED) &&
		    seg->avail < seg->end - seg->start)
			return "libc's data is not in the file";
	}
	if (!g->sp->n_files)
		return "libc's data was not found";
	return "libc's data is there, but its main arena was overwritten";
}

static void evidence_text(struct glibc *g, struct str *s)
{
	const struct module *m = home(g);
	size_t owned = 0;

	for (size_t i = 0; i < g->n_tcaches; i++)
		owned += g->tcaches[i].tid != 0;
	if (g->arenas[0].lost) {
		str_printf(s, "%s: %zu arenas by their heaps, the main heap "
			   "by its chain of chunks", why_lost(g),
			   g->n_arenas - 1);
		return;
	}
	str_printf(s, "main_arena 0x%llx in ",
		   (unsigned long long)g->arenas[0].addr);
	if (m)
		module_add_name(s, g->sp, m);
	else
		str_adds(s, "anonymous memory");
	str_printf(s, ", by structure: %u of %d bins consistent",
		   g->good_bins, GLIBC_BINS);
	if (g->weak)
		str_adds(s, " (leniently)");
	str_printf(s, "; ring of %zu arena%s closes", g->n_arenas,
		   g->n_arenas == 1 ? "" : "s");
	if (g->par)
		str_printf(s, "; mp_ 0x%llx, score %u of 15",
			   (unsigned long long)g->mp, g->mp_score);
	else
		str_adds(s, "; mp_ not found");
	if (g->tcache)
		str_printf(s, "; %zu thread cache%s by content, %zu of %zu "
			   "thread%s", g->n_tcaches,
			   g->n_tcaches == 1 ? "" : "s", owned,
			   g->sp->n_threads, g->sp->n_threads == 1 ? "" : "s");
	if (g->mangled_known)
		str_printf(s, "; links %s", g->mangled ? "mangled" : "plain");
}

static void add_arenas(struct glibc *g, unsigned instance)
{
	char prefix[16] = "glibc";

	if (instance)
		snprintf(prefix, sizeof(prefix), "glibc#%u", instance + 1);
	for (size_t i = 0; i < g->n_arenas; i++) {
		struct glibc_arena *a = &g->arenas[i];
		struct arena *out = a->main ?
			heap_add_arena(g->heap, g->allocator, a->addr,
				       "%s main", prefix) :
			heap_add_arena(g->heap, g->allocator, a->addr,
				       "%s %zu", prefix, i);

		a->id = (uint32_t)(g->heap->n_arenas - 1);
		out->claimed_bytes = a->system_mem;
		out->max_bytes = a->max_system_mem;
		out->heaps = a->main ? 1 : (uint32_t)a->n_heaps;
		out->attached = a->attached;
		out->contiguous = a->main && !(a->flags & 2);
		out->locked = a->locked;
	}
	heap_add_arena(g->heap, g->allocator, 0, "%s mmapped", prefix);
	g->mmapped_id = (uint32_t)(g->heap->n_arenas - 1);
}

/* Does each arena have as much as it says?  Damage that nothing else shows. */
static void check_claims(struct glibc *g)
{
	for (size_t i = 0; i < g->n_arenas; i++) {
		struct glibc_arena *a = &g->arenas[i];
		struct arena *out = &g->heap->arenas[a->id];

		out->top = a->top;
		if (a->lost || a->walked == a->system_mem)
			continue;
		heap_note(g->heap, "claim", a->id, a->addr, 0,
			  "malloc counts %llu bytes in %s, %llu were found",
			  (unsigned long long)a->system_mem, out->name,
			  (unsigned long long)a->walked);
	}
}

/* What main_arena and mp_ point to is not in use for that. */
static void add_own(struct glibc *g)
{
	if (!g->arenas[0].lost)
		heap_add_own(g->heap, g->arenas[0].addr,
			     g->arenas[0].addr + state_size(g));
	if (g->par)
		heap_add_own(g->heap, g->mp, g->mp + g->par->size);
}

static void walk_one(struct glibc *g, unsigned instance)
{
	char release[64];
	struct str evidence;

	g->allocator = heap_add_allocator(g->heap, "glibc", "", "");
	add_arenas(g, instance);
	add_own(g);
	glibc_walk_arenas(g);
	if (g->arenas[0].walked < g->arenas[0].system_mem)
		glibc_walk_pieces(g);
	if (g->arenas[0].lost) {
		heap_note(g->heap, "main-arena-missing", g->arenas[0].id, 0,
			  0, "%s: the main arena was walked without its "
			  "lists; chunks in its fastbins count as in use",
			  why_lost(g));
		heap_note_is_grave(g->heap);
	}
	glibc_settle_tcaches(g);
	glibc_mark_lists(g);
	glibc_add_settings(g);
	check_claims(g);
	release_text(g, release, sizeof(release));
	str_init(&evidence);
	evidence_text(g, &evidence);
	free(g->heap->allocators[g->allocator].version);
	free(g->heap->allocators[g->allocator].evidence);
	g->heap->allocators[g->allocator].version = mem_strdup(release);
	g->heap->allocators[g->allocator].evidence = str_take(&evidence);
}

static void glibc_walk(struct space *sp, struct sighting *at,
		       struct heap *heap, struct progress *progress)
{
	struct glibc *all = at->priv;

	for (size_t i = 0; i < at->n; i++) {
		struct glibc *g = &all[i];

		g->heap = heap;
		g->progress = progress;
		g->budget = step_budget(sp);
		/* Twice the bytes there are: damage makes it start anew. */
		g->ahead_left = 8 * g->budget;
		g->anchors_left = min_u64(g->budget / 8, GLIBC_MAX_ANCHORS);
		walk_one(g, (unsigned)i);
	}
	glibc_walk_mmapped(all, at->n);
}

const struct allocator alloc_glibc = {
	.name = "glibc",
	.summary = "GNU libc malloc, 2.17 to 2.43",
	.probe = glibc_probe,
	.walk = glibc_walk,
	.drop = glibc_drop,
};
