/* SPDX-License-Identifier: MIT */
/*
 * The loop over chunks that are as they should be, and several of it at the
 * same time.
 *
 * A walk knows where a chunk begins only when it has come there.  But where
 * dozens of plausible headers follow each other, chunks most likely begin: so
 * the range is cut into pieces, a start is guessed in each, and threads walk
 * the pieces ahead.  The walk itself then takes over what was found in a piece
 * if, and only if, it arrives at just the start that was guessed: from there on
 * it would have done the same.  A wrong guess costs time and nothing else.
 */
#include "corewalk/glibc.h"

#include <pthread.h>
#include <sched.h>

#include "base/mem.h"

enum {
	PIECE = 4 << 20,	/* as little as this, */
	MAX_PIECES = 4096,	/* and as many */
	MIN_AHEAD = 16 << 20,	/* less is soon walked */
	MAX_THREADS = 8,
	GUESSES = 4096,		/* addresses tried for each piece */
	RUN_UP = 4096,		/* before it, where the first one is tried */
	CHAIN = 48,		/* headers that make a guess */
	LINE = 64,		/* of a cache */
	FAR = 2048,		/* half of it and twice it are slower */
};

/* A header that does not end the loop, with room bytes behind it. */
static inline bool sound(const struct glibc_window *w, uint64_t size_word,
			 uint64_t room)
{
	uint64_t size = size_word & ~(uint64_t)CHUNK_FLAGS;

	return !(size_word & w->never) && size >= w->least && size <= room;
}

/*
 * Everything else waits for this loop: at each chunk one load, of the next
 * chunk's size.  W is a constant in each of the two copies.
 */
static inline __attribute__((always_inline)) void
plain_chunks(const struct glibc_window *w, struct glibc_piece *p,
	     const unsigned W)
{
	const struct glibc_window in = *w;
	uint64_t *starts = in.x->planes[0], *binned = in.x->planes[3];
	vaddr at = p->at, to = min_u64(p->to, in.last), base = in.x->start;
	uint64_t s = p->size_word;

	_Static_assert(BLOCK_BINNED == 4, "a bit of the last plane");
	while (at < to && at != in.top && sound(&in, s, in.last - at)) {
		uint64_t size = s & ~(uint64_t)CHUNK_FLAGS;
		vaddr next = at + size;
		const uint8_t *host = in.host + (next - in.start);
		uint64_t next_word = load_word(host + W, W);
		uint64_t granule = (at - base) >> in.x->shift;
		uint64_t bit = UINT64_C(1) << (granule & 63);

		/*
		 * The processor's own prefetcher stops at each page.  Two
		 * lines: of small blocks, most that hold a header are asked
		 * for then.
		 */
		__builtin_prefetch(host + FAR);
		__builtin_prefetch(host + FAR + LINE);
		if (!(next_word & CHUNK_PREV_INUSE)) {
			const uint8_t *here = in.host + (at - in.start);
			vaddr fd = load_word(here + 2 * W, W);
			vaddr bk = load_word(here + 3 * W, W);

			if (load_word(host, W) != size)
				break;
			binned[granule >> 6] |= bit;
			p->fd_edges += glibc_edge(at, fd);
			p->bk_edges += glibc_edge(bk, at);
			p->binned++;
		} else if ((s & CHUNK_NON_MAIN) != in.used_flags) {
			break;
		} else if (size - in.cache_min <= in.cache_span) {
			MEM_PUSH(p->caches, p->n_caches, p->cap_caches) = at;
		}
		starts[granule >> 6] |= bit;
		p->before = at;
		at = next;
		s = next_word;
	}
	p->at = at;
	p->size_word = s;
}

void glibc_plain_chunks(const struct glibc_window *w, struct glibc_piece *p)
{
	if (w->word == 8)
		plain_chunks(w, p, 8);
	else
		plain_chunks(w, p, 4);
}

static uint64_t word_at(const struct glibc_window *w, vaddr chunk)
{
	return load_word(w->host + (chunk - w->start) + w->word, w->word);
}

/* Do so many chunks follow each other from here?  *steps are left to go. */
static bool is_chain(const struct glibc_window *w, vaddr at, unsigned *steps)
{
	for (unsigned n = 0; n < CHAIN && *steps; n++, --*steps) {
		uint64_t s = at < w->last ? word_at(w, at) : 0;

		if (!sound(w, s, w->last - at))
			return false;
		at += s & ~(uint64_t)CHUNK_FLAGS;
		if (at == w->top)
			return true;
	}
	return *steps;
}

/* The first chunk of a chain that begins at or behind an address; 0: none. */
static vaddr chain_at(const struct glibc_window *w, vaddr at, vaddr from)
{
	while (at < from) {
		uint64_t s = word_at(w, at);

		if (at == w->top || !sound(w, s, w->last - at))
			return 0;
		at += s & ~(uint64_t)CHUNK_FLAGS;
	}
	return at;
}

/*
 * What looks like a header may be data of a block, such as a size that is the
 * program's own.  Chains from there come to a true one soon: hence the run-up.
 */
static void guess(const struct glibc_window *w, struct glibc_piece *p)
{
	uint64_t step = UINT64_C(1) << w->x->shift;
	unsigned left = GUESSES;

	for (vaddr at = p->from - RUN_UP; at < p->to && left; at += step) {
		vaddr start;

		left--;
		if (!is_chain(w, at, &left))
			continue;
		start = chain_at(w, at, p->from);
		if (!start || start >= p->to)
			continue;
		p->start = p->at = start;
		p->start_word = p->size_word = word_at(w, start);
		return;
	}
}

static void *walk_pieces(void *arg)
{
	struct glibc_ahead *a = arg;
	size_t i;

	while ((i = __atomic_fetch_add(&a->taken, 1, __ATOMIC_RELAXED)) <
	       a->n) {
		struct glibc_piece *p = &a->pieces[i];

		if (i)
			guess(&a->window, p);
		if (p->start)
			glibc_plain_chunks(&a->window, p);
	}
	return NULL;
}

static unsigned processors(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 1;
	return (unsigned)min_u64((unsigned)CPU_COUNT(&set), MAX_THREADS);
}

static void run_threads(struct glibc_ahead *a, unsigned n)
{
	pthread_t threads[MAX_THREADS];
	unsigned started = 0;

	while (started < n - 1 &&
	       !pthread_create(&threads[started], NULL, walk_pieces, a))
		started++;
	walk_pieces(a);
	while (started)
		pthread_join(threads[--started], NULL);
}

void glibc_ahead_init(struct glibc_ahead *a, struct glibc *g,
		      const struct glibc_window *w)
{
	vaddr start = w->x->start;
	vaddr end = w->top > start && w->top < w->last ? w->top : w->last;
	uint64_t bytes = end > start ? end - start : 0, piece = PIECE;
	unsigned n = processors();

	*a = (struct glibc_ahead){ .window = *w };
	if (bytes < MIN_AHEAD || bytes > g->ahead_left || n < 2)
		return;
	g->ahead_left -= bytes;
	while (bytes / piece >= MAX_PIECES)
		piece *= 2;
	a->n = bytes / piece + 1;
	a->pieces = mem_zalloc(a->n * sizeof(*a->pieces));
	for (size_t i = 0; i < a->n; i++) {
		a->pieces[i].from = start + i * piece;
		a->pieces[i].to = min_u64(end, start + (i + 1) * piece);
	}
	/* The first start is no guess. */
	a->pieces[0].start = a->pieces[0].at = start;
	a->pieces[0].start_word = a->pieces[0].size_word = word_at(w, start);
	run_threads(a, n);
}

const struct glibc_piece *glibc_ahead_next(struct glibc_ahead *a)
{
	while (a->next < a->n && !a->pieces[a->next].start)
		a->next++;
	return a->next < a->n ? &a->pieces[a->next] : NULL;
}

void glibc_ahead_take(struct glibc_ahead *a)
{
	free(a->pieces[a->next].caches);
	a->next++;
}

/* No other piece has a bit in the words of this one. */
void glibc_ahead_drop(struct glibc_ahead *a)
{
	const struct glibc_piece *p = &a->pieces[a->next];
	struct heap_extent *x = a->window.x;
	uint64_t from = (p->start - x->start) >> x->shift;
	uint64_t to = (min_u64(p->at, p->to) - x->start) >> x->shift;

	for (size_t w = from >> 6; w <= to >> 6 && w < x->n_words; w++) {
		uint64_t keep = 0;

		if (w == from >> 6)
			keep |= (UINT64_C(1) << (from & 63)) - 1;
		if (w == to >> 6)
			keep |= ~UINT64_C(0) << (to & 63);
		x->planes[0][w] &= keep;
		x->planes[3][w] &= keep;
	}
	glibc_ahead_take(a);
}

void glibc_ahead_fini(struct glibc_ahead *a)
{
	while (glibc_ahead_next(a))
		glibc_ahead_drop(a);
	free(a->pieces);
	*a = (struct glibc_ahead){ 0 };
}
