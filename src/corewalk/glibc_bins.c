/* SPDX-License-Identifier: MIT */
/*
 * The bins of a glibc arena.  Which chunks are free is known from the walk;
 * here the lists are proved to hold just those, and the unsorted ones told
 * from the others.
 */
#include "corewalk/glibc.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"

enum {
	LONG_LIST = 20000,	/* free chunks: from here on many walks */
	MAX_STRETCHES = 8192,
	LANES = 48,
};

static void sum_header(struct glibc *g, struct glibc_arena *a, unsigned k)
{
	vaddr head = a->addr + state_bin(g->state, k);
	uint64_t fd, bk;

	if (!space_word(g->sp, head + 2 * g->W, &fd) ||
	    !space_word(g->sp, head + 3 * g->W, &bk))
		return;
	a->fd_edges += glibc_edge(head, fd);
	a->bk_edges += glibc_edge(bk, head);
}

static bool is_marked(struct glibc *g, const struct glibc_member *m)
{
	struct heap_extent *x = glibc_extent(g, m->chunk);

	return x && extent_state(x, m->chunk) == m->set;
}

/*
 * Follow a bin by fd or by bk, marking members.  True if it came back to its
 * header without a bad member.
 */
static bool mark_bin(struct glibc *g, struct glibc_arena *a, unsigned k,
		     bool backward, enum block_state want)
{
	vaddr head = a->addr + state_bin(g->state, k), at = head;
	unsigned link = (backward ? 3 : 2) * g->W;
	struct glibc_member m = {
		.want = want, .a = a, .list = "bin", .bin = k + 1,
		.set = k ? BLOCK_BINNED : BLOCK_UNSORTED,
	};

	while (g->budget) {
		uint64_t next;

		g->budget--;
		if (!space_word(g->sp, at + link, &next)) {
			glibc_note_unread(g, &m, at + link);
			return false;
		}
		if (next == head)
			return true;
		m.chunk = at = next;
		/* Back where the walk from the other end has come to. */
		if (backward && is_marked(g, &m))
			return false;
		if (!glibc_mark(g, &m))
			return false;
	}
	return false;
}

/* The arena of g that an extent belongs to, NULL if it is not g's. */
static struct glibc_arena *arena_of(struct glibc *g,
				    const struct heap_extent *x)
{
	uint32_t i = x->arena - g->arenas[0].id;

	return i < g->n_arenas ? &g->arenas[i] : NULL;
}

/* All free chunks of open arenas, as long as no list has named them. */
static void unlist_all(struct glibc *g)
{
	struct heap *h = g->heap;

	for (size_t i = 0; i < h->n_extents; i++) {
		struct heap_extent *x = &h->extents[i];
		struct glibc_arena *a = arena_of(g, x);

		if (!a || !a->open || x->kind != EXTENT_BLOCKS)
			continue;
		/* BLOCK_BINNED is 4, BLOCK_UNLISTED 5: set bit 0. */
		for (size_t w = 0; w < x->n_words; w++)
			x->planes[1][w] |= x->planes[3][w] &
				~x->planes[2][w] & x->planes[0][w];
	}
}

struct unlisted {
	uint64_t blocks, bytes;
	vaddr first;
};

static void note_unlisted(struct glibc *g)
{
	struct unlisted *found = mem_zalloc(g->n_arenas * sizeof(*found));
	uint32_t first = g->arenas[0].id;
	struct heap_iter it;
	struct block b;

	heap_iter_init(&it, g->heap);
	while (heap_iter_next(&it, &b)) {
		uint32_t i = b.arena - first;
		struct unlisted *u;

		if (b.state != BLOCK_UNLISTED || i >= g->n_arenas ||
		    !g->arenas[i].open)
			continue;
		u = &found[i];
		u->first = u->blocks ? u->first : b.start;
		u->blocks++;
		u->bytes += b.size;
	}
	for (size_t i = 0; i < g->n_arenas; i++) {
		if (!found[i].blocks)
			continue;
		heap_note(g->heap, "unlisted-free", g->arenas[i].id,
			  found[i].first, 0, "%llu free chunks (%llu bytes) "
			  "are in no bin, the first at 0x%llx",
			  (unsigned long long)found[i].blocks,
			  (unsigned long long)found[i].bytes,
			  (unsigned long long)found[i].first);
		heap_note_is_minor(g->heap);
	}
	free(found);
}

/*
 * Following one list of millions of chunks costs a cache miss each.  Many
 * walks at once do not wait for each other: they start at each bin's first
 * member and at every so-manieth free chunk, and each ends where another one
 * started, or at a header.  Put together they are the lists.
 */
struct stretch {
	vaddr first;		/* its first member */
	vaddr last;		/* where it ended: a first, or a header */
	uint64_t members;
	bool unsorted;
};

struct stretches {
	struct glibc *g;
	struct glibc_arena *a;
	struct stretch *all;	/* owned, sorted by first */
	size_t n, cap;
	const uint8_t *host;	/* window of the target: [start, end) */
	vaddr start, end;
	struct heap_extent *x;	/* of the last member looked at */
	uint64_t left;		/* members that may still be counted */
};

/* A word of a chunk, mostly without a lookup; 0 if it cannot be read. */
static uint64_t stretch_word(struct stretches *s, vaddr addr)
{
	unsigned W = s->g->W;
	uint64_t n;

	if (addr < s->start || addr >= s->end || s->end - addr < W) {
		const uint8_t *host = space_view_max(s->g->sp, addr, &n);

		if (!host || n < W)
			return 0;
		s->host = host;
		s->start = addr;
		s->end = addr + n;
	}
	return load_word(s->host + (addr - s->start), W);
}

/*
 * Does a walk start at this member?  The sums have shown that each link leads
 * to a free chunk or a header, so that one bit is all there is to look at.
 */
static bool is_first(struct stretches *s, vaddr chunk)
{
	struct heap_extent *x = s->x;
	uint64_t granule;

	if (!x || chunk < x->start || chunk >= x->end)
		x = glibc_extent(s->g, chunk);
	if (!x)
		return true;
	s->x = x;
	granule = (chunk - x->start) >> x->shift;
	if (granule >> 6 >= x->n_words)
		return true;
	return x->planes[1][granule >> 6] >> (granule & 63) & 1;
}

/*
 * What the next step at this member will look at.  The empty asm is an effect:
 * gcc 12 drops a call of a function that does nothing but prefetch.
 */
static void stretch_prefetch(const struct stretches *s, vaddr chunk)
{
	const struct heap_extent *x = s->x;
	vaddr link = chunk + 2 * s->g->W;

	__asm__ volatile("");
	if (link >= s->start && link < s->end)
		__builtin_prefetch(s->host + (link - s->start));
	if (x && chunk >= x->start && chunk < x->end)
		__builtin_prefetch(&x->planes[1][(chunk - x->start) >>
						 x->shift >> 6]);
}

static bool is_header(const struct stretches *s, vaddr addr)
{
	return addr - s->a->addr < state_size(s->g);
}

static struct stretch *stretch_from(struct stretches *s, vaddr first)
{
	return FIND(s->all, s->n, first);
}

static void add_stretch(struct stretches *s, vaddr first)
{
	struct heap_extent *x = glibc_extent(s->g, first);

	/* BLOCK_UNLISTED marks a start for as long as this goes on. */
	if (!x || extent_state(x, first) != BLOCK_BINNED)
		return;
	extent_set_state(x, first, BLOCK_UNLISTED);
	MEM_PUSH(s->all, s->n, s->cap) = (struct stretch){ .first = first };
}

static void choose_starts(struct stretches *s)
{
	uint64_t step = s->a->binned / MAX_STRETCHES + 1, n = 0;
	struct heap *h = s->g->heap;

	for (unsigned k = 0; k < GLIBC_BINS; k++) {
		vaddr head = s->a->addr + state_bin(s->g->state, k);

		add_stretch(s, stretch_word(s, head + 2 * s->g->W));
	}
	for (size_t i = 0; i < h->n_extents; i++) {
		struct heap_extent *x = &h->extents[i];

		if (x->arena != s->a->id || x->kind != EXTENT_BLOCKS)
			continue;
		for (size_t w = 0; w < x->n_words; w++) {
			uint64_t binned = x->planes[3][w] & ~x->planes[1][w] &
				~x->planes[2][w] & x->planes[0][w];
			unsigned bit;

			if (!binned)
				continue;
			n += (unsigned)__builtin_popcountll(binned);
			if (n < step)
				continue;
			n = 0;
			bit = (unsigned)__builtin_ctzll(binned);
			add_stretch(s, x->start + (((uint64_t)w << 6 | bit) <<
						   x->shift));
		}
	}
	SORT_BY(s->all, s->n, first);
}

/* One of the walks that go on at the same time. */
struct lane {
	struct stretch *stretch;	/* NULL: nothing left to do */
	vaddr at;
	uint64_t left;		/* members to be marked */
	bool fresh;		/* at may be another walk's start */
};

/* The next stretch that the pass is about: all, or those of one kind. */
static void lane_load(struct stretches *s, struct lane *l, size_t *next,
		      const bool *only)
{
	l->stretch = NULL;
	while (*next < s->n) {
		struct stretch *t = &s->all[(*next)++];

		if (only && t->unsorted != *only)
			continue;
		l->stretch = t;
		l->at = t->first;
		l->left = t->members;
		l->fresh = false;
		stretch_prefetch(s, l->at);
		return;
	}
}

/*
 * One step.  In the first pass (set NULL) members are counted until the walk
 * meets a start; in the second the known number of them is marked.  False at
 * the end of the stretch.
 */
static bool lane_step(struct stretches *s, struct lane *l,
		      const enum block_state *set)
{
	struct stretch *t = l->stretch;
	struct heap_extent *x;
	vaddr next;

	if (l->fresh && is_first(s, l->at))
		return false;
	next = stretch_word(s, l->at + 2 * s->g->W);
	if (set) {
		x = glibc_extent(s->g, l->at);
		if (x)
			extent_set_state(x, l->at, *set);
		if (!--l->left)
			return false;
	} else {
		t->members++;
		t->last = next;
		if (is_header(s, next) || !s->left)
			return false;
		s->left--;
		/* Looked at one round later, when it has arrived. */
		l->fresh = true;
	}
	l->at = next;
	stretch_prefetch(s, next);
	return true;
}

static void run_lanes(struct stretches *s, const bool *only,
		      const enum block_state *set)
{
	struct lane lanes[LANES];
	size_t next = 0, busy = 0;

	for (size_t i = 0; i < LANES; i++) {
		lane_load(s, &lanes[i], &next, only);
		busy += lanes[i].stretch != NULL;
	}
	while (busy)
		for (size_t i = 0; i < LANES; i++) {
			if (!lanes[i].stretch || lane_step(s, &lanes[i], set))
				continue;
			lane_load(s, &lanes[i], &next, only);
			busy -= lanes[i].stretch == NULL;
		}
}

static void set_binned(struct stretches *s, enum block_state state)
{
	struct heap *h = s->g->heap;

	for (size_t i = 0; i < h->n_extents; i++) {
		struct heap_extent *x = &h->extents[i];

		if (x->arena != s->a->id || x->kind != EXTENT_BLOCKS)
			continue;
		for (size_t w = 0; w < x->n_words; w++) {
			/* BINNED is 4, UNLISTED 5, UNSORTED 3. */
			uint64_t any = x->planes[3][w] & ~x->planes[2][w] &
				x->planes[0][w];

			if (!any)
				continue;
			x->planes[1][w] = (x->planes[1][w] & ~any) |
				(state & 1 ? any : 0);
			x->planes[2][w] |= state & 2 ? any : 0;
			x->planes[3][w] = (x->planes[3][w] & ~any) |
				(state & 4 ? any : 0);
		}
	}
}

static void mark_unsorted(struct glibc *g, struct glibc_arena *a)
{
	/* The sums can be forged so that walks meet and go in a circle. */
	struct stretches s = { .g = g, .a = a, .left = a->binned };
	vaddr at = stretch_word(&s, a->addr + state_bins(g->state));
	uint64_t unsorted = 0;
	enum block_state rare;
	bool which;

	choose_starts(&s);
	run_lanes(&s, NULL, NULL);
	for (size_t i = 0; i < s.n && !is_header(&s, at); i++) {
		struct stretch *t = stretch_from(&s, at);

		if (!t || t->unsorted)
			break;
		t->unsorted = true;
		unsorted += t->members;
		at = t->last;
	}
	/* Whatever most chunks are is set at once, the others one by one. */
	which = unsorted <= a->binned / 2;
	rare = which ? BLOCK_UNSORTED : BLOCK_BINNED;
	set_binned(&s, which ? BLOCK_BINNED : BLOCK_UNSORTED);
	run_lanes(&s, &which, &rare);
	free(s.all);
}

/* All lists of the arena close; only which chunks are unsorted is open. */
static void mark_closed(struct glibc *g, struct glibc_arena *a)
{
	if (a->binned < LONG_LIST || a->unlisted)
		mark_bin(g, a, 0, false, BLOCK_BINNED);
	else
		mark_unsorted(g, a);
}

static void mark_open(struct glibc *g, struct glibc_arena *a)
{
	for (unsigned k = 0; k < GLIBC_BINS; k++)
		if (!mark_bin(g, a, k, false, BLOCK_UNLISTED))
			mark_bin(g, a, k, true, BLOCK_UNLISTED);
}

void glibc_mark_bins(struct glibc *g)
{
	bool any = false;

	_Static_assert(BLOCK_BINNED == 4 && BLOCK_UNLISTED == 5,
		       "unlist_all() sets a bit");

	for (size_t i = 0; i < g->n_arenas; i++) {
		struct glibc_arena *a = &g->arenas[i];

		if (a->lost)
			continue;
		for (unsigned k = 0; k < GLIBC_BINS; k++)
			sum_header(g, a, k);
		a->open = a->fd_edges != a->bk_edges;
		any |= a->open;
	}
	if (any)
		unlist_all(g);
	for (size_t i = 0; i < g->n_arenas; i++) {
		if (g->arenas[i].open)
			mark_open(g, &g->arenas[i]);
		else if (!g->arenas[i].lost)
			mark_closed(g, &g->arenas[i]);
	}
	if (any)
		note_unlisted(g);
}
