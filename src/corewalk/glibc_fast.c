/* SPDX-License-Identifier: MIT */
/*
 * The fastbins of all arenas.  Their chunks look in use, and only the lists
 * tell, so each list has to be followed: a cache miss for each member.  All
 * lists are followed at the same time, so that the misses overlap.
 */
#include "corewalk/glibc.h"

#include "base/mem.h"

/*
 * A member that was lost to damage is no chunk of the walk's, but the list
 * goes on behind it if its link leads to a chunk of the right size.
 */
static bool leads_on(struct glibc *g, const struct glibc_member *m)
{
	uint64_t next, word;

	if (glibc_extent(g, m->chunk) ||
	    !space_word(g->sp, m->chunk + 2 * g->W, &next))
		return false;
	next = glibc_link(g, m->chunk + 2 * g->W, next);
	return glibc_extent(g, next) &&
	       space_word(g->sp, next + g->W, &word) &&
	       (word & ~(uint64_t)CHUNK_FLAGS) == m->size;
}

/* One list that is being followed. */
struct fast_list {
	struct glibc_member m;
	vaddr link;		/* where the address of the next member is */
	bool head;		/* link is in the arena, never mangled */
};

static void prefetch_chunk(struct glibc *g, vaddr chunk)
{
	const uint8_t *host = space_view(g->sp, chunk, 4 * g->W);
	const struct heap_extent *x = heap_extent_at(g->heap, chunk);
	uint64_t word;

	if (!host || !x || x->kind != EXTENT_BLOCKS)
		return;
	__builtin_prefetch(host + g->W);
	word = (chunk - x->start) >> x->shift >> 6;
	for (size_t i = 0; i < countof(x->planes); i++)
		if (word < x->n_words)
			__builtin_prefetch(&x->planes[i][word]);
}

/* Mark the member that arrived and ask for the next; false at the end. */
static bool fast_step(struct glibc *g, struct fast_list *l)
{
	uint64_t word;

	if (!l->head) {
		if (!glibc_mark(g, &l->m) && !leads_on(g, &l->m))
			return false;
		l->link = l->m.chunk + 2 * g->W;
	}
	if (!space_word(g->sp, l->link, &word)) {
		glibc_note_unread(g, &l->m, l->link);
		return false;
	}
	l->m.chunk = l->head ? word : glibc_link(g, l->link, word);
	l->head = false;
	if (!l->m.chunk)
		return false;
	prefetch_chunk(g, l->m.chunk);
	return true;
}

void glibc_mark_fastbins(struct glibc *g)
{
	struct fast_list *lists = mem_alloc(g->n_arenas * GLIBC_MAX_FAST *
					    sizeof(*lists));
	size_t n = 0;

	for (size_t i = 0; i < g->n_arenas; i++)
		for (unsigned b = 0; b < g->state->n_fast; b++)
			if (!g->arenas[i].lost)
				lists[n++] = (struct fast_list){
					.m = {
						.want = BLOCK_USED,
						.set = BLOCK_FAST,
						.a = &g->arenas[i],
						.list = "fastbin", .bin = b,
						.size = g->MIN + (uint64_t)b *
							2 * g->W,
					},
					.link = g->arenas[i].addr +
						g->state->fast +
						(uint64_t)b * g->W,
					.head = true,
				};
	while (n && g->budget)
		for (size_t i = 0; i < n && g->budget; g->budget--) {
			if (fast_step(g, &lists[i]))
				i++;
			else
				lists[i] = lists[--n];
		}
	free(lists);
}
