/* SPDX-License-Identifier: MIT */
/*
 * From chunk to chunk: the forward walk of glibc's heaps, what it does at a
 * damaged header, and the search for memory that no structure names.
 */
#include "corewalk/glibc.h"

#include <string.h>

#include "base/mem.h"

enum {
	RESYNC_STEPS = 64,	/* a chain this long is no accident */
	SWALLOWED = 4,		/* nor are so many chunks inside of one */
	MAX_RESYNCS = 4096,	/* in one process; then the rest is given up */
};

enum stop {
	STOP_TOP,		/* behind the arena's top */
	STOP_FENCE,		/* behind a fencepost */
	STOP_BAD,		/* at a header that cannot be one */
	STOP_HOLE,		/* at a header that is not in the file */
	STOP_WINDOW,		/* at a chunk whose next one lies elsewhere */
};

/*
 * One uninterrupted run of chunks in bytes that lie in one piece: an extent's
 * planes are as large as what can be read, never as what a mapping claims.
 */
struct run {
	struct glibc *g;
	struct glibc_arena *a;
	vaddr at;		/* the chunk looked at; the end when stopped */
	vaddr end;		/* of the region */
	uint64_t size_word;	/* of the chunk at `at' */
	vaddr before;		/* the chunk before `at'; 0 none */
	const uint8_t *host;	/* window: bytes of [start, limit) */
	vaddr start, limit;
	uint64_t walked;
};

/* Make the two header words at addr readable through the window. */
static bool run_window(struct run *r, vaddr addr)
{
	uint64_t n;
	const uint8_t *host = space_view_max(r->g->sp, addr, &n);

	if (!host || n < 2 * r->g->W)
		return false;
	r->host = host;
	r->start = addr;
	r->limit = addr + min_u64(n, r->end - addr);
	return true;
}

/* Any header field, window or not. */
static bool run_word(struct run *r, vaddr addr, uint64_t *ret)
{
	if (addr >= r->start && addr < r->limit &&
	    r->limit - addr >= r->g->W) {
		*ret = load_word(r->host + (addr - r->start), r->g->W);
		return true;
	}
	return space_word(r->g->sp, addr, ret);
}

static bool is_fence(const struct glibc *g, uint64_t size_word)
{
	uint64_t size = size_word & ~(uint64_t)CHUNK_FLAGS;

	if (size == 0)
		return size_word & CHUNK_PREV_INUSE;
	return size == 2 * g->W && g->MIN > 2 * g->W;
}

/* A size field that can be a chunk's with room bytes to the region's end. */
static bool plausible(const struct glibc *g, const struct glibc_arena *a,
		      uint64_t size_word, uint64_t room)
{
	uint64_t size = size_word & ~(uint64_t)CHUNK_FLAGS;

	return size >= g->MIN && !(size & (g->A - 1)) && size <= room &&
	       !(size_word & CHUNK_MMAPPED) &&
	       !(a->main && (size_word & CHUNK_NON_MAIN));
}

static void try_tcache(struct glibc *g, vaddr chunk, uint64_t size)
{
	for (int kind = TCACHE_CHAR; kind < TCACHE_KINDS; kind++) {
		uint64_t want = glibc_tcache_chunk(g, kind);
		int mangled = -1, score;

		/* One path of 2.43 rounds the size of the struct twice. */
		if (size < want || size > want + 2 * g->A)
			continue;
		score = glibc_tcache_score(g, chunk + 2 * g->W, kind,
					   &mangled);
		/* Zeros alone prove nothing; free places in each bin do. */
		if (score > (kind == TCACHE_SLOTS ? 0 : 1))
			MEM_PUSH(g->tcaches, g->n_tcaches, g->cap_tcaches) =
				(struct glibc_tcache){
					.mem = chunk + 2 * g->W, .kind = kind,
					.score = score,
				};
	}
}

/*
 * The next header says that the chunk is free, but its footer disagrees: one
 * of the two was overwritten.  A sound next header wins.
 */
static enum block_state judge_footer(struct run *r, vaddr chunk,
				     uint64_t size, uint64_t footer,
				     uint64_t next_word)
{
	struct glibc *g = r->g;
	vaddr next = chunk + size;

	if (!plausible(g, r->a, next_word, r->end - next) &&
	    !is_fence(g, next_word))
		return BLOCK_USED;
	heap_note(g->heap, "bad-footer", r->a->id, chunk, 0,
		  "free chunk 0x%llx is %llu bytes, but the word behind it "
		  "says %llu", (unsigned long long)chunk,
		  (unsigned long long)size, (unsigned long long)footer);
	heap_note_is_minor(g->heap);
	r->a->unlisted++;
	return BLOCK_UNLISTED;
}

/* A chunk whose successor has bit 0 clear. */
static void take_free(struct run *r, struct heap_extent *x, vaddr chunk,
		      uint64_t size, uint64_t next_word)
{
	struct glibc *g = r->g;
	uint64_t footer = 0, fd, bk;

	if (!run_word(r, chunk + size, &footer) || footer != size) {
		extent_set_state(x, chunk, judge_footer(r, chunk, size, footer,
							next_word));
		return;
	}
	extent_set_state(x, chunk, BLOCK_BINNED);
	if (!run_word(r, chunk + 2 * g->W, &fd) ||
	    !run_word(r, chunk + 3 * g->W, &bk))
		return;
	r->a->fd_edges += glibc_edge(chunk, fd);
	r->a->bk_edges += glibc_edge(bk, chunk);
	r->a->binned++;
}

/*
 * Free by its own flags and its footer, in use by the next header: that header
 * was overwritten.
 */
static bool free_by_footer(struct run *r, vaddr chunk, uint64_t size)
{
	uint64_t footer;

	return !r->a->main && run_word(r, chunk + size, &footer) &&
	       footer == size;
}

static enum stop take_top(struct run *r, struct heap_extent *x)
{
	struct glibc *g = r->g;
	uint64_t size = r->size_word & ~(uint64_t)CHUNK_FLAGS;

	/* top has bit 0 set, always; on i386 its size is no multiple of A. */
	if (size < 2 * g->W || size > r->end - r->at ||
	    !(r->size_word & CHUNK_PREV_INUSE)) {
		heap_note(g->heap, "bad-top-size", r->a->id, r->at, 0,
			  "top chunk 0x%llx has size field 0x%llx",
			  (unsigned long long)r->at,
			  (unsigned long long)r->size_word);
		size = r->end - r->at;
	}
	extent_mark(x, r->at);
	extent_set_state(x, r->at, BLOCK_TOP);
	r->at += size;
	return STOP_TOP;
}

/*
 * The end of a piece or heap: two chunks of two words each, or one and a word
 * of 0, or in a heap with no room for that only the 0.
 */
static enum stop take_fence(struct run *r, struct heap_extent *x)
{
	unsigned W = r->g->W;
	uint64_t size = r->size_word & ~(uint64_t)CHUNK_FLAGS, second;
	uint64_t bytes = 2 * W;

	if (size) {
		if (r->end - r->at < 4 * W ||
		    !run_word(r, r->at + 3 * W, &second) ||
		    !is_fence(r->g, second))
			return STOP_BAD;
		bytes = 4 * W;
	}
	if (bytes > r->end - r->at)
		bytes = r->end - r->at;
	extent_mark(x, r->at);
	extent_set_state(x, r->at, BLOCK_OVERHEAD);
	r->at += bytes;
	return STOP_FENCE;
}

/* Top, a fencepost, or damage: what ends the plain loop below. */
static enum stop run_stop(struct run *r, struct heap_extent *x)
{
	/* A top that we lost fills the rest, whatever the alignment. */
	if (!r->a->top &&
	    (r->size_word & ~(uint64_t)CHUNK_FLAGS) == r->end - r->at)
		r->a->top = r->at;
	if (r->at == r->a->top)
		return take_top(r, x);
	if (is_fence(r->g, r->size_word))
		return take_fence(r, x);
	return STOP_BAD;
}

/* What chunks of an arena in use look like, and which may be caches. */
struct form {
	uint64_t used_flags;
	uint64_t tc_min, tc_span;
};

static struct form form_of(const struct run *r)
{
	uint64_t least = glibc_tcache_chunk(r->g, TCACHE_CHAR);
	uint64_t most = glibc_tcache_chunk(r->g, TCACHE_SLOTS) + 2 * r->g->A;

	return (struct form){
		.used_flags = r->a->main ? 0 : CHUNK_NON_MAIN,
		.tc_min = least, .tc_span = most - least,
	};
}

/* A chunk of plausible size; false if it is none after all. */
static bool take_chunk(struct run *r, struct heap_extent *x, vaddr p,
		       uint64_t size_word, uint64_t *next_word,
		       const struct form *f)
{
	uint64_t size = size_word & ~(uint64_t)CHUNK_FLAGS;

	if ((*next_word & CHUNK_PREV_INUSE) &&
	    (size_word & CHUNK_NON_MAIN) != f->used_flags) {
		if (!free_by_footer(r, p, size))
			return false;
		*next_word &= ~(uint64_t)CHUNK_PREV_INUSE;
	}
	extent_mark(x, p);
	if (!(*next_word & CHUNK_PREV_INUSE))
		take_free(r, x, p, size, *next_word);
	else if (size - f->tc_min <= f->tc_span)
		try_tcache(r->g, p, size);
	return true;
}

/* The last chunk of a window: its successor is elsewhere, or missing. */
static enum stop run_leave(struct run *r, struct heap_extent *x,
			   const struct form *f)
{
	uint64_t size = r->size_word & ~(uint64_t)CHUNK_FLAGS, next_word;

	if (!space_word(r->g->sp, r->at + size + r->g->W, &next_word))
		return STOP_HOLE;
	if (!take_chunk(r, x, r->at, r->size_word, &next_word, f))
		return STOP_BAD;
	r->before = r->at;
	r->at += size;
	return STOP_WINDOW;
}

/* What was found in a piece, be it walked ahead or now. */
static void take_piece(struct run *r, const struct glibc_piece *p)
{
	r->a->fd_edges += p->fd_edges;
	r->a->bk_edges += p->bk_edges;
	r->a->binned += p->binned;
	for (size_t i = 0; i < p->n_caches; i++) {
		uint64_t word;

		if (run_word(r, p->caches[i] + r->g->W, &word))
			try_tcache(r->g, p->caches[i],
				   word & ~(uint64_t)CHUNK_FLAGS);
	}
	r->at = p->at;
	r->size_word = p->size_word;
	if (p->before)
		r->before = p->before;
}

/* All plain chunks from r->at on: those walked ahead are there already. */
static void run_plain(struct run *r, struct glibc_ahead *ahead)
{
	const struct glibc_piece *next;

	for (;;) {
		struct glibc_piece p = {
			.at = r->at, .size_word = r->size_word,
		};

		while ((next = glibc_ahead_next(ahead)) &&
		       (next->start < r->at ||
			(next->start == r->at &&
			 next->start_word != r->size_word)))
			glibc_ahead_drop(ahead);
		if (next && next->start == r->at) {
			take_piece(r, next);
			glibc_ahead_take(ahead);
			continue;
		}
		p.to = next ? next->start : r->end;
		glibc_plain_chunks(&ahead->window, &p);
		take_piece(r, &p);
		free(p.caches);
		if (r->at < p.to)
			return;
	}
}

/* A chunk that is not plain: top, damaged, or still one that can be taken. */
static bool run_odd(struct run *r, struct heap_extent *x,
		    const struct form *f, enum stop *ret)
{
	const struct glibc *g = r->g;
	uint64_t size = r->size_word & ~(uint64_t)CHUNK_FLAGS, next_word;
	vaddr next = r->at + size;

	*ret = STOP_BAD;
	if (r->at == r->a->top ||
	    !plausible(g, r->a, r->size_word, r->end - r->at) ||
	    r->end - next < 2 * g->W) {	/* nothing but top can end there */
		*ret = run_stop(r, x);
		return false;
	}
	if (next >= r->limit || r->limit - next < 2 * g->W) {
		*ret = run_leave(r, x, f);
		return false;
	}
	next_word = load_word(r->host + (next - r->start) + g->W, g->W);
	if (!take_chunk(r, x, r->at, r->size_word, &next_word, f)) {
		*ret = run_stop(r, x);
		return false;
	}
	r->before = r->at;
	r->at = next;
	r->size_word = next_word;
	return true;
}

static enum stop run_go(struct run *r, struct heap_extent *x)
{
	const struct form f = form_of(r);
	const struct glibc *g = r->g;
	struct glibc_window w = {
		.x = x, .host = r->host, .start = r->start,
		.last = r->limit - 2 * g->W, .top = r->a->top, .word = g->W,
		.least = g->MIN,
		.never = CHUNK_MMAPPED | ((g->A - 1) & ~CHUNK_FLAGS) |
			(r->a->main ? CHUNK_NON_MAIN : 0),
		.used_flags = f.used_flags, .cache_min = f.tc_min,
		.cache_span = f.tc_span,
	};
	struct glibc_ahead ahead;
	enum stop stop;

	r->size_word = load_word(r->host + g->W, g->W);
	r->before = 0;
	glibc_ahead_init(&ahead, r->g, &w);
	do
		run_plain(r, &ahead);
	while (run_odd(r, x, &f, &stop));
	glibc_ahead_fini(&ahead);
	return stop;
}

/* Where a chain of plausible headers ends. */
enum chain {
	CHAIN_BROKEN,
	CHAIN_LONG,		/* max_steps and still sound */
	CHAIN_FENCE,		/* *ret_end is behind the fence */
	CHAIN_TOP,		/* *ret_end is the top chunk */
};

/*
 * Follow headers from p.  through, if not 0, is an address that the chain must
 * meet exactly; a chain that jumps over it is broken.
 */
static enum chain follow(struct glibc *g, const struct glibc_arena *a,
			 vaddr p, vaddr end, vaddr through,
			 unsigned max_steps, vaddr *ret_end)
{
	bool met = !through || p == through;

	for (unsigned steps = 0; g->budget; steps++) {
		uint64_t s, size, next_word, footer;

		g->budget--;
		if (p == a->top) {
			*ret_end = p;
			return met || p == through ? CHAIN_TOP : CHAIN_BROKEN;
		}
		if (steps >= max_steps && met)
			return CHAIN_LONG;
		if (end - p < 2 * g->W || !space_word(g->sp, p + g->W, &s))
			return CHAIN_BROKEN;
		size = s & ~(uint64_t)CHUNK_FLAGS;
		if (is_fence(g, s)) {
			size = (size ? 4 : 2) * g->W;
			*ret_end = p + min_u64(size, end - p);
			return met && steps ? CHAIN_FENCE : CHAIN_BROKEN;
		}
		if (!a->top && size == end - p) {
			*ret_end = p;
			return met ? CHAIN_TOP : CHAIN_BROKEN;
		}
		if (!plausible(g, a, s, end - p) || end - p - size < 2 * g->W ||
		    !space_word(g->sp, p + size + g->W, &next_word))
			return CHAIN_BROKEN;
		if (next_word & CHUNK_PREV_INUSE) {
			if (!a->main && !(s & CHUNK_NON_MAIN))
				return CHAIN_BROKEN;
		} else if (!space_word(g->sp, p + size, &footer) ||
			   footer != size) {
			return CHAIN_BROKEN;
		}
		p += size;
		if (!met && p > through)
			return CHAIN_BROKEN;
		met |= p == through;
	}
	return CHAIN_BROKEN;
}

/* The first known list member of the arena at or behind addr; 0 none. */
static vaddr next_anchor(const struct glibc_arena *a, vaddr addr, vaddr end)
{
	size_t lo = BISECT(mid, 0, a->n_anchors, a->anchors[mid] < addr);

	return lo < a->n_anchors && a->anchors[lo] < end ? a->anchors[lo] : 0;
}

/*
 * The earliest address behind q, and below limit, where the arena's chunks go
 * on: a chain that reaches top, a fencepost or RESYNC_STEPS, and meets the
 * next address that a list names.  0 if there is none.
 */
static vaddr resync(struct glibc *g, struct glibc_arena *a, vaddr q,
		    vaddr limit, vaddr end, bool after_fence)
{
	vaddr y = after_fence ? q : q + g->MIN;
	vaddr last;

	if (g->resyncs++ >= MAX_RESYNCS)
		return 0;
	glibc_collect_anchors(g, a);
	for (y = glibc_first_chunk(g, y); y < limit && g->budget; y += g->A) {
		uint64_t s;

		if (y == a->top)
			return y;
		if (!space_word(g->sp, y + g->W, &s)) {
			const struct seg *seg = space_seg(g->sp, y);

			/* Not in the file: nothing can begin before its end. */
			if (!seg || seg->end >= end)
				return 0;
			y = glibc_first_chunk(g, seg->end) - g->A;
			continue;
		}
		g->budget--;
		if ((after_fence && !(s & CHUNK_PREV_INUSE)) ||
		    !plausible(g, a, s, end - y))
			continue;
		if (follow(g, a, y, end, next_anchor(a, y, end), RESYNC_STEPS,
			   &last) != CHAIN_BROKEN)
			return y;
	}
	return 0;
}

/* How many chunks follow each other from p to q, at most `most'. */
static unsigned count_chain(struct glibc *g, vaddr p, vaddr q, unsigned most)
{
	unsigned n = 0;
	uint64_t s;

	for (; n < most && p < q && space_word(g->sp, p + g->W, &s); n++)
		p += s & ~(uint64_t)CHUNK_FLAGS;
	return n;
}

/*
 * A size that was overwritten with a larger one leads into the middle of a
 * block, where the walk ends.  Then sound chunks go on inside of the block
 * before: it is the damaged one.  A few may be stale headers in its data.
 */
static void step_back(struct run *r, struct heap_extent *x)
{
	struct glibc *g = r->g;
	uint64_t word;
	vaddr y;

	if (!r->before || extent_state(x, r->before) != BLOCK_USED ||
	    r->at - r->before < SWALLOWED * g->MIN)
		return;
	y = resync(g, r->a, r->before, r->at, r->end, false);
	if (!y || count_chain(g, y, r->at, SWALLOWED) < SWALLOWED ||
	    !space_word(g->sp, r->before + g->W, &word))
		return;
	r->at = r->before;
	r->size_word = word;
}

static void note_damage(struct run *r, enum stop stop, vaddr resumed)
{
	struct glibc *g = r->g;
	vaddr at = r->at;
	const char *why = space_why_text(space_why(g->sp, at + g->W));

	if (stop == STOP_HOLE) {
		/* The chunk is known; what follows it is not. */
		at += r->size_word & ~(uint64_t)CHUNK_FLAGS;
		if (at < r->at || at >= r->end)
			at = r->at;
		why = space_why_text(space_why(g->sp, at + g->W));
		heap_note(g->heap, "missing", r->a->id, r->at,
			  resumed - r->at,
			  "chunk header at 0x%llx is %s; resumed at 0x%llx",
			  (unsigned long long)at, why,
			  (unsigned long long)resumed);
		return;
	}
	heap_note(g->heap, "bad-chunk-size", r->a->id, at, resumed - at,
		  "chunk 0x%llx has size field 0x%llx; resumed at 0x%llx",
		  (unsigned long long)at, (unsigned long long)r->size_word,
		  (unsigned long long)resumed);
}

/*
 * What lies between two runs, from at on: somebody else's sbrk, or damage.
 * Returns where the next run starts, end if there is none, 0 if the region
 * itself ends at `at'.
 */
static vaddr walk_gap(struct run *r, enum stop stop, vaddr end)
{
	struct glibc *g = r->g;
	bool foreign = stop == STOP_FENCE && r->a->main;
	vaddr next = resync(g, r->a, r->at, end, end, stop == STOP_FENCE);

	if (!next && foreign)
		return 0;
	if (!next)
		next = end;
	if (!foreign)
		note_damage(r, stop, next);
	else if (next > r->at)
		heap_note(g->heap, "foreign-sbrk", r->a->id, r->at, 0,
			  "0x%llx to 0x%llx was taken from the break by "
			  "somebody else", (unsigned long long)r->at,
			  (unsigned long long)next);
	heap_add_range(g->heap, r->a->id, foreign ? EXTENT_FOREIGN :
		       EXTENT_UNDECODED, r->at, next);
	return next;
}

/* How many of the explained ranges start at or below addr. */
static size_t ranges_up_to(const struct glibc *g, vaddr addr)
{
	return BISECT(mid, 0, g->n_ranges, g->ranges[mid].start <= addr);
}

static void cover(struct glibc *g, vaddr start, vaddr end)
{
	size_t i = ranges_up_to(g, start), last = i;

	if (start >= end)
		return;
	/* Those that it touches become one with it. */
	if (i && g->ranges[i - 1].end >= start) {
		start = g->ranges[--i].start;
		end = max_u64(end, g->ranges[i].end);
	}
	for (; last < g->n_ranges && g->ranges[last].start <= end; last++)
		end = max_u64(end, g->ranges[last].end);
	if (i == last) {
		(void)MEM_PUSH(g->ranges, g->n_ranges, g->cap_ranges);
		g->n_ranges--;
	}
	memmove(&g->ranges[i + 1], &g->ranges[last],
		(g->n_ranges - last) * sizeof(*g->ranges));
	g->n_ranges = g->n_ranges + 1 - (last - i);
	g->ranges[i] = (struct glibc_range){ start, end };
}

/* One region: runs, and what lies between them. */
static void walk_region(struct glibc *g, struct glibc_arena *a, vaddr start,
			vaddr end)
{
	struct heap *h = g->heap;
	vaddr at = glibc_first_chunk(g, start);
	unsigned shift = g->A == 16 ? 4 : 3;

	if (at >= end)
		return;
	heap_add_range(h, a->id, EXTENT_OVERHEAD, start, at);
	for (;;) {
		struct run r = { .g = g, .a = a, .at = at, .end = end };
		bool there = run_window(&r, at);
		size_t x = heap_add_blocks(h, a->id, at, there ? r.limit : at,
					   shift, 2 * g->W, g->W);
		enum stop stop = there ? run_go(&r, &h->extents[x]) :
			STOP_HOLE;
		vaddr next;

		if (stop == STOP_BAD)
			step_back(&r, &h->extents[x]);
		heap_trim_extent(h, x, r.at);
		at = r.at;
		progress_step(g->progress, at - start, end - start, 0, NULL);
		if (stop == STOP_WINDOW)
			continue;
		if (end - at < g->A || (stop == STOP_TOP && a->main))
			break;
		next = walk_gap(&r, stop, end);
		if (!next)
			break;
		at = next;
		if (at >= end)
			break;
	}
	/* Alignment behind the last fence. */
	if (end - at < g->A) {
		heap_add_range(h, a->id, EXTENT_OVERHEAD, at, end);
		at = end;
	}
	a->walked += at - start;
	cover(g, start, at);
}

bool glibc_covered(const struct glibc *g, vaddr addr, vaddr *ret_end)
{
	size_t lo = ranges_up_to(g, addr);

	if (!lo || addr >= g->ranges[lo - 1].end)
		return false;
	*ret_end = g->ranges[lo - 1].end;
	return true;
}

vaddr glibc_next_covered(const struct glibc *g, vaddr addr, vaddr limit)
{
	size_t lo = ranges_up_to(g, addr);

	return lo < g->n_ranges ? min_u64(limit, g->ranges[lo].start) : limit;
}

vaddr glibc_mapped_end(struct glibc *g, vaddr addr, vaddr limit)
{
	const struct seg *seg = space_seg(g->sp, addr);
	const struct seg *last = g->sp->segs + g->sp->n_segs;
	vaddr end = addr;

	for (; seg && seg < last && end < limit && g->budget; seg++) {
		if ((end != addr && seg->start != end) || !space_seg_anon(seg))
			break;
		end = seg->end;
		g->budget--;
	}
	return max_u64(space_run_end(g->sp, addr), min_u64(end, limit));
}

static void walk_heap(struct glibc *g, struct glibc_arena *a, vaddr h)
{
	vaddr run_end, first, end, tail, unused, claim;
	uint64_t size, mprotect_size;

	if (glibc_covered(g, h, &unused) ||
	    !space_word(g->sp, h + 2 * g->W, &size) ||
	    !space_word(g->sp, h + 3 * g->W, &mprotect_size))
		return;
	claim = h + min_u64(size, g->heap_max);
	run_end = min_u64(glibc_mapped_end(g, h, claim), h + g->heap_max);
	run_end = glibc_next_covered(g, h, run_end);
	end = size < run_end - h ? h + size : run_end;
	if (size > run_end - h)
		heap_note(g->heap, "heap-size", a->id, h, 0,
			  "heap 0x%llx says it has %llu bytes, %llu are mapped",
			  (unsigned long long)h, (unsigned long long)size,
			  (unsigned long long)(run_end - h));
	first = h + g->heap_info_size;
	if (a->addr == first)
		first += state_size(g);
	if (first >= end)
		return;
	heap_add_range(g->heap, a->id, EXTENT_OVERHEAD, h, first);
	a->walked += first - h;
	cover(g, h, first);
	walk_region(g, a, first, end);
	/* Shrunk: still accessible, but nobody's. */
	tail = mprotect_size < run_end - h ? h + mprotect_size : run_end;
	if (tail > end) {
		heap_add_range(g->heap, a->id, EXTENT_OVERHEAD, end, tail);
		cover(g, end, tail);
	}
}

/* Where the main arena says that it ends; 0 if it is in other pieces. */
static vaddr main_claim(struct glibc *g, const struct glibc_arena *a)
{
	uint64_t word, size;

	if (a->top < g->sbrk_base || a->top - g->sbrk_base > a->system_mem ||
	    !space_word(g->sp, a->top + g->W, &word))
		return 0;
	size = word & ~(uint64_t)CHUNK_FLAGS;
	return size > a->system_mem ? a->top : a->top + size;
}

static void walk_main(struct glibc *g, struct glibc_arena *a)
{
	vaddr end;

	if (!g->sbrk_base || (!a->top && !a->lost))
		return;
	end = glibc_mapped_end(g, g->sbrk_base, main_claim(g, a));
	if (end > g->sbrk_base)
		walk_region(g, a, g->sbrk_base, end);
}

void glibc_walk_arenas(struct glibc *g)
{
	progress_phase(g->progress, "walking glibc arenas");
	for (size_t i = 1; i < g->n_arenas; i++)
		for (size_t k = 0; k < g->arenas[i].n_heaps; k++)
			walk_heap(g, &g->arenas[i], g->arenas[i].heaps[k]);
	walk_main(g, &g->arenas[0]);
}

/*
 * Does a piece of the main arena start at addr?  Its first chunk has no
 * neighbour before it, and its chain ends at top or at a fencepost; through as
 * in follow().  *ret_end is its end.
 */
static bool piece_at(struct glibc *g, vaddr addr, vaddr end, vaddr through,
		     vaddr *ret_end)
{
	struct glibc_arena *a = &g->arenas[0];
	vaddr first = g->A > 2 * g->W ? addr + g->A - 2 * g->W : addr;
	uint64_t s, size;
	enum chain how;

	if (!space_word(g->sp, first + g->W, &s) ||
	    (s & CHUNK_FLAGS) != CHUNK_PREV_INUSE)
		return false;
	how = follow(g, a, first, end, through, UINT32_MAX, ret_end);
	if (how == CHAIN_FENCE)
		return true;
	if (how != CHAIN_TOP || !space_word(g->sp, a->top + g->W, &s))
		return false;
	size = s & ~(uint64_t)CHUNK_FLAGS;
	*ret_end = a->top + size;
	return size && size <= end - a->top;
}

vaddr glibc_next_page(const struct glibc *g, vaddr p, vaddr limit)
{
	uint64_t page = g->sp->page;
	const struct seg *seg;

	for (p += page; p < limit; p = round_up(seg->end, page)) {
		/* Headers were written: no page without bytes has one. */
		p = max_u64(p, round_down(space_next_stored(g->sp, p), page));
		seg = p < limit ? space_seg(g->sp, p) : NULL;
		if (!seg)
			return limit;
		if (p - seg->start < seg->avail)
			return p;
	}
	return limit;
}

/* Try each page of [from, to) as the start of a piece; false if none is. */
static bool find_piece(struct glibc *g, vaddr from, vaddr to, vaddr through)
{
	struct glibc_arena *a = &g->arenas[0];
	vaddr end, covered_end;

	for (vaddr p = from; p < to && g->budget;
	     p = glibc_next_page(g, p, to)) {
		g->budget--;
		if (glibc_covered(g, p, &covered_end)) {
			p = round_down(covered_end - 1, g->sp->page);
			continue;
		}
		if (through && p > through)
			return false;
		if (!piece_at(g, p, glibc_next_covered(g, p, to), through,
			      &end))
			continue;
		walk_region(g, a, p, end);
		/* A piece ends at a page border; less than A may be left. */
		if (round_up(end, g->sp->page) - end < g->A && end < to) {
			vaddr border = round_up(end, g->sp->page);

			heap_add_range(g->heap, a->id, EXTENT_OVERHEAD, end,
				       border);
			cover(g, end, border);
			a->walked += border - end;
		}
		return true;
	}
	return false;
}

/* A list member of the main arena in no explained range; 0 none. */
static vaddr stray(struct glibc *g)
{
	struct glibc_arena *a = &g->arenas[0];
	vaddr end;

	if (a->top && !glibc_covered(g, a->top, &end))
		return a->top;
	glibc_collect_anchors(g, a);
	for (; a->strays < a->n_anchors; a->strays++)
		if (!glibc_covered(g, a->anchors[a->strays], &end) &&
		    space_seg(g->sp, a->anchors[a->strays]))
			return a->anchors[a->strays];
	return 0;
}

/* The run of adjacent anonymous memory around addr; false if none. */
static bool run_around(struct glibc *g, vaddr addr, vaddr *ret_from,
		       vaddr *ret_to)
{
	const struct seg *seg = space_seg(g->sp, addr);
	size_t i;

	if (!seg || !space_seg_anon(seg) || !(seg->flags & SEG_W))
		return false;
	i = (size_t)(seg - g->sp->segs);
	while (i && g->sp->segs[i - 1].end == g->sp->segs[i].start &&
	       space_seg_anon(&g->sp->segs[i - 1]) &&
	       (g->sp->segs[i - 1].flags & SEG_W))
		i--;
	*ret_from = g->sp->segs[i].start;
	*ret_to = space_run_end(g->sp, *ret_from);
	return true;
}

static bool find_any_piece(struct glibc *g)
{
	struct space *sp = g->sp;

	for (size_t i = 0; i < sp->n_segs; i++) {
		vaddr from, to;

		if (i && sp->segs[i - 1].end == sp->segs[i].start &&
		    space_seg_anon(&sp->segs[i - 1]) &&
		    (sp->segs[i - 1].flags & SEG_W))
			continue;	/* not the first of its run */
		if (run_around(g, sp->segs[i].start, &from, &to) &&
		    find_piece(g, from, to, 0))
			return true;
	}
	return false;
}

void glibc_walk_pieces(struct glibc *g)
{
	struct glibc_arena *a = &g->arenas[0];
	size_t rounds = 4096;

	while (a->walked < a->system_mem && rounds-- && g->budget) {
		vaddr known = stray(g), from, to;

		if (known) {
			if (!run_around(g, known, &from, &to) ||
			    !find_piece(g, from, to, known))
				return;
		} else if (!find_any_piece(g)) {
			return;
		}
	}
}
