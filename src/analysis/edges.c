/* SPDX-License-Identifier: MIT */
#include "analysis/edges.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <string.h>

#include "analysis/kin.h"
#include "analysis/scan.h"
#include "base/mem.h"

enum {
	EDGES_MIN = 1 << 16,
	WINDOW = 64 << 10,
};

void edges_init(struct edges *e, const struct index *ix,
		const struct space *sp)
{
	*e = (struct edges){ .ix = ix };
	weak_census_init(&e->census, ix, sp);
	e->strings = mem_zalloc(((size_t)ix->n / 64 + 1) *
				sizeof(*e->strings));
}

void edges_fini(struct edges *e)
{
	if (e->dst)
		mem_unmap(e->dst, e->cap * sizeof(*e->dst));
	weak_census_fini(&e->census);
	free(e->text);
	free(e->vectors);
	free(e->strings);
	free(e->met.refs);
	*e = (struct edges){ 0 };
}

/* ---- where an edge starts ---- */

static void set_end(struct edges *e, vaddr next)
{
	e->block.next = next;
	e->block.end = next - index_own(e->ix, next - e->ix->base);
}

/* The block that holds addr; its start may be far away. */
static void seek(struct edges *e, vaddr addr)
{
	const struct index *ix = e->ix;

	e->block.number = index_number(ix, addr - ix->base);
	e->block.used = index_used(ix, e->block.number);
	e->block.start = index_start(ix, addr);
	set_end(e, index_next(ix, addr));
}

/* The next one, which starts where the last one ended. */
static void step(struct edges *e)
{
	e->block.start = e->block.next;
	e->block.number++;
	e->block.used = index_used(e->ix, e->block.number);
	set_end(e, index_next(e->ix, e->block.start));
}

/* The node that addr lies in, 0 if that is no block in use. */
static uint32_t source(struct edges *e, vaddr addr)
{
	if (addr - e->block.start >= 2 * (e->block.next - e->block.start)) {
		seek(e, addr);
	} else if (addr >= e->block.next) {
		step(e);
		if (addr >= e->block.next)
			seek(e, addr);
	}
	if (!e->block.used || addr >= e->block.end)
		return 0;
	return e->block.number;
}

static bool room(struct edges *e)
{
	size_t cap = e->cap ? e->cap * 2 : EDGES_MIN;

	if (e->n < e->cap)
		return true;
	if (e->n >= e->max_edges) {
		e->too_many = true;
		return false;
	}
	e->dst = mem_map_grow(e->dst, e->cap * sizeof(*e->dst),
			      cap * sizeof(*e->dst));
	e->cap = cap;
	return true;
}

static void add_edge(struct edges *e, uint32_t from, uint32_t to)
{
	while (e->next <= from)
		e->off[e->next++] = (uint32_t)e->n;
	if (room(e))
		e->dst[e->n++] = to;
}

/* ---- what is to be said of one ---- */

/* The word's surroundings, cut off at the borders of its block. */
static struct weak_word around(const struct edges *e,
			       const struct edges_piece *p, uint64_t at)
{
	struct weak_word w = {
		.bytes = p->bytes + at, .addr = p->start + at,
		.before = at, .after = p->n - at,
	};

	if (p->root)
		return w;
	w.before = min_u64(w.before, w.addr - e->block.start);
	w.after = min_u64(w.after, e->block.end - w.addr);
	return w;
}

/* Is the word among the last ones, which blocks of its class leave unused? */
static bool is_slack(const struct edges *e, const struct edges_piece *p,
		     vaddr addr)
{
	uint64_t left = e->block.end - addr;
	uint64_t at = e->block.start - p->start;
	const struct weak_class *class;

	/* The block's beginning may be in another piece, or in none. */
	if (p->root || left > (uint64_t)WEAK_TAIL * p->word ||
	    e->block.start < p->start || addr == e->block.start)
		return false;
	class = weak_class_of(e->classes, &(struct weak_block){
		.bytes = p->bytes + at, .n = p->n - at, .word = p->word,
		.size = e->block.next - e->block.start,
	});
	return class && left <= (uint64_t)class->slack * p->word;
}

static bool printable(uint8_t c)
{
	return c >= 0x20 && c < 0x7f;
}

/* Does the block begin with a text that ends before or in the word? */
static bool behind_text(const struct weak_word *w)
{
	const uint8_t *text = w->bytes - w->before;

	return w->before && printable(text[0]) &&
	       memchr(text, 0, w->before + 8);
}

/* n bytes of the heap; NULL if they are not in one piece. */
static const uint8_t *heap_bytes(const struct edges *e, vaddr addr,
				 uint64_t n)
{
	size_t lo = BISECT(mid, 0, e->n_heap, e->heap[mid].start <= addr);
	const struct edges_piece *p;

	if (!lo)
		return NULL;
	p = &e->heap[lo - 1];
	if (addr - p->start > p->n || n > p->n - (addr - p->start))
		return NULL;
	return p->bytes + (addr - p->start);
}

/* Is the word the padding in front of a std::map's tree? */
static bool before_tree(const struct edges *e, const struct weak_word *w)
{
	const uint8_t *bytes;
	vaddr root;

	if (!weak_tree_follows(e->ix, w, &root))
		return false;
	if (!root)
		return true;
	bytes = heap_bytes(e, root + 8, 8);
	if (!bytes)
		return false;
	return load_u64(bytes) == w->addr + 8;
}

/* A text in a block ends in a zero. */
static bool text_ends(const struct edges *e, vaddr end)
{
	const uint8_t *byte = heap_bytes(e, end, 1);

	return byte && !*byte;
}

/* Is the word in the space of a std::string that its text does not fill? */
static bool in_string(const struct edges *e, const struct weak_word *w)
{
	vaddr end;

	return weak_in_string(e->ix, w, &end) && (!end || text_ends(e, end));
}

/* The word leads to off; behind it is the text's length. */
static bool has_text(const struct edges *e, const struct weak_word *w,
		     uint64_t off)
{
	return weak_string_head(e->ix, w, off) &&
	       text_ends(e, e->ix->base + off + load_u64(w->bytes + 8));
}

static void note_heads(struct edges *e, const struct weak_word *w,
		       uint32_t to, uint64_t off)
{
	struct weak_vector vector;

	if (has_text(e, w, off))
		e->strings[to >> 6] |= UINT64_C(1) << (to & 63);
	else if (weak_vector_head(e->ix, w, off, &vector))
		MEM_PUSH(e->vectors, e->n_vectors, e->cap_vectors) =
			(struct edges_vector){ to, vector };
}

/* The word at at of the piece points to off, which is in block to. */
static void add(struct edges *e, const struct edges_piece *p, uint64_t at,
		uint32_t to, uint64_t off)
{
	uint32_t from = p->root ? p->root : source(e, p->start + at);
	struct weak_word w;

	if (!from)
		return;
	w = around(e, p, at);
	if (w.after < p->word)
		return;
	if (p->word == 8) {
		if (!p->fixed &&
		    (in_string(e, &w) || before_tree(e, &w)))
			to |= GRAPH_WEAK;
		else if (index_starts(e->ix, off))
			note_heads(e, &w, to, off);
		if (!p->root && behind_text(&w))
			MEM_PUSH(e->text, e->n_text, e->cap_text) =
				(struct edges_text){ (uint32_t)e->n, from };
	}
	if (is_slack(e, p, w.addr))
		to |= GRAPH_WEAK;
	add_edge(e, from, to);
}

/* ---- the pass ---- */

/* Keeps the words of the heap that point into the block asked about. */
static void note_asked(struct edges *e, const struct edges_piece *p,
		       uint64_t at, const struct scan_hits *hits, size_t n)
{
	uint64_t off = e->asked - e->ix->base, size = e->asked_end - e->asked;
	struct graph_asked *met = &e->met;

	if (!size || p->root)
		return;
	for (size_t i = 0; i < n; i++) {
		vaddr word = p->start + at + hits->pos[i] * (uint64_t)p->word;

		if (hits->off[i] - off >= size || word - e->asked < size)
			continue;
		if (met->n < GRAPH_ASKED_MAX)
			MEM_PUSH(met->refs, met->n, met->cap) =
				(struct graph_ref){
					word, e->ix->base + hits->off[i],
				};
		else
			met->n_more++;
	}
}

/* Leaves those that may lead to one of few blocks. */
static size_t keep_hits(const struct kin *only, struct scan_hits *hits,
			size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		hits->pos[kept] = hits->pos[i];
		hits->off[kept] = hits->off[i];
		kept += kin_may_have(only, hits->off[i]);
	}
	return kept;
}

/*
 * The index lines of all hits are on their way before the first is needed,
 * and so are those of the bits that say which blocks are in use.
 */
static void add_hits(struct edges *e, const struct edges_piece *p,
		     uint64_t at, const struct scan_hits *hits, size_t n)
{
	const struct index *ix = e->ix;
	uint32_t to[SCAN_WORDS];

	for (size_t i = 0; i < n; i++) {
		uint32_t unit = ix->units[hits->off[i] >> INDEX_UNIT_SHIFT];

		if ((int32_t)unit > 0)
			__builtin_prefetch(index_word_at(ix, unit,
							 hits->off[i]));
	}
	for (size_t i = 0; i < n; i++) {
		to[i] = index_number(ix, hits->off[i]);
		__builtin_prefetch(&ix->used[to[i] >> 6]);
	}
	for (size_t i = 0; i < n; i++)
		if (index_used(ix, to[i]) &&
		    !index_own_word(ix, hits->off[i]) &&
		    (!e->only || kin_has(e->only, to[i])))
			add(e, p, at + hits->pos[i] * (uint64_t)p->word,
			    to[i], hits->off[i]);
}

/* Count the blocks that start in [from, to) of a piece. */
static void count_blocks(struct edges *e, const struct edges_piece *p,
			 uint64_t from, uint64_t to)
{
	const struct index *ix = e->ix;
	vaddr at = p->start + from, end = p->start + to;
	uint32_t number;

	/* A long block is not looked through again for each window. */
	if (at < e->uncounted)
		at = e->uncounted;
	else if (!index_starts(ix, at - ix->base))
		at = index_next(ix, at);
	e->uncounted = at;
	if (at >= end)
		return;
	number = index_number(ix, at - ix->base);
	while (at < end) {
		vaddr next = index_next(ix, at);
		uint64_t off = at - p->start;

		if (index_used(ix, number))
			weak_census_block(&e->census, &(struct weak_block){
				.bytes = p->bytes + off, .n = p->n - off,
				.word = p->word, .size = next - at,
			});
		at = next;
		number++;
	}
	e->uncounted = at;
}

void *edges_count(void *arg)
{
	struct edges *e = arg;
	uint64_t window = 0;

	for (size_t i = 0; i < e->n_pieces; i++) {
		const struct edges_piece *p = &e->pieces[i];

		for (uint64_t at = 0; at < p->n && !p->root; at += WINDOW)
			if (window++ % e->one_in == 0)
				count_blocks(e, p, at,
					     min_u64(at + WINDOW, p->n));
	}
	return NULL;
}

static void scan_window(struct edges *e, const struct edges_piece *p,
			uint64_t from, uint64_t to)
{
	uint64_t step_bytes = (uint64_t)SCAN_WORDS * p->word;
	struct scan_hits hits;

	for (uint64_t at = from; at < to; at += step_bytes) {
		uint64_t n = min_u64(to - at, step_bytes) / p->word;
		size_t n_hits = scan_words(p->bytes + at, n, p->word,
					   e->ix->base, e->ix->span, &hits);

		if (e->only) {
			n_hits = keep_hits(e->only, &hits, n_hits);
			note_asked(e, p, at, &hits, n_hits);
		}
		add_hits(e, p, at, &hits, n_hits);
	}
}

/* The same with what it calls as a part of it. */
__attribute__((flatten))
static void window_plain(struct edges *e, const struct edges_piece *p,
			 uint64_t from, uint64_t to)
{
	scan_window(e, p, from, to);
}

#if defined(__x86_64__)
/* The same with an instruction that counts bits, which the baseline lacks. */
__attribute__((target("popcnt,bmi,lzcnt"), flatten))
static void window_fast(struct edges *e, const struct edges_piece *p,
			uint64_t from, uint64_t to)
{
	scan_window(e, p, from, to);
}

static bool has_fast(void)
{
	unsigned a, b, c, d;

	/* Bit 5 is LZCNT, which clang 14 does not know by name. */
	return __builtin_cpu_supports("popcnt") &&
	       __builtin_cpu_supports("bmi") &&
	       __get_cpuid(0x80000001, &a, &b, &c, &d) && (c & 1u << 5);
}
#else
static void window_fast(struct edges *e, const struct edges_piece *p,
			uint64_t from, uint64_t to)
{
	window_plain(e, p, from, to);
}

static bool has_fast(void)
{
	return false;
}
#endif

/*
 * Address space for as many edges as there can be, if the kernel has it: to
 * grow means to copy, and to lose large pages.
 */
static void reserve(struct edges *e)
{
	uint64_t words = EDGES_MIN;

	for (size_t i = 0; i < e->n_pieces; i++)
		words += e->pieces[i].n / e->pieces[i].word;
	words = min_u64(words, e->max_edges);
	e->dst = mem_map_maybe(words * sizeof(*e->dst));
	if (e->dst)
		e->cap = words;
}

void *edges_run(void *arg)
{
	struct edges *e = arg;

	void (*window)(struct edges *, const struct edges_piece *, uint64_t,
		       uint64_t) = has_fast() ? window_fast : window_plain;

	reserve(e);
	e->next = e->first;
	for (size_t i = 0; i < e->n_pieces; i++) {
		const struct edges_piece *p = &e->pieces[i];

		for (uint64_t at = 0; at < p->n && !e->too_many; at += WINDOW)
			window(e, p, at, min_u64(at + WINDOW, p->n));
	}
	while (e->next < e->end)
		e->off[e->next++] = (uint32_t)e->n;
	return NULL;
}
