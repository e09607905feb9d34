/* SPDX-License-Identifier: MIT */
/*
 * Finding gperftools' tcmalloc without symbols.  The root of the page map is
 * an array in the bss of the library or program.  A word there that points to
 * an array of pointers to spans, each of which says that it belongs at that
 * place, votes for where the array begins; behind the right one follow a
 * pointer into the module's code and counters that the spans add up to.
 */
#include "corewalk/tcmalloc.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/sort.h"
#include "corewalk/words.h"

enum {
	SPAN_BYTES = 48,
	MIN_SHIFT = 12, MAX_SHIFT = 18,
	TRIED_ENTRIES = 64,		/* of a leaf, for votes */
	MIN_VOTES = 2,
	LEAF_PIECE = 1024,		/* of one that may be none */
	MAX_CANDIDATES = 64,
	VOTE_BUDGET = 64 << 20,		/* bytes read for a page size */
	PACKED_CACHE = 0x80000,		/* bytes before the root */
	LISTS_OFF = 8 + 96,		/* from the function behind the root */
	LIST_PAIR = 96,
};

static uint64_t root_bytes(unsigned shift)
{
	return UINT64_C(8) << tc_root_bits(shift);
}

static uint64_t leaf_bytes(unsigned shift)
{
	return UINT64_C(8) << tc_leaf_bits(shift);
}

/* ---- candidates ---- */

struct candidate {
	vaddr root;
	unsigned shift, votes;
};

struct finder {
	struct space *sp;
	const struct module *module;
	vaddr lo, hi;
	struct candidate all[MAX_CANDIDATES];
	size_t n;
	struct words outer, leaf;
	uint64_t budget, leaf_budget;
};

/* The start page of the span at addr, if it can be one. */
static bool span_start(struct space *sp, vaddr addr, unsigned shift,
		       uint64_t *ret)
{
	uint64_t word[2];

	if (addr & 7 || space_read(sp, addr, word, sizeof(word)) !=
	    sizeof(word) || !word[0] || !word[1] ||
	    word[0] >> (48 - shift) || word[1] >> (48 - shift))
		return false;
	*ret = word[0];
	return true;
}

static void add_vote(struct finder *f, vaddr root, unsigned shift)
{
	size_t i = 0;

	while (i < f->n && (f->all[i].root != root ||
			    f->all[i].shift != shift))
		i++;
	if (i == MAX_CANDIDATES)
		return;
	if (i == f->n)
		f->all[f->n++] = (struct candidate){ root, shift, 0 };
	f->all[i].votes++;
}

/* Is what word at points to a leaf?  Its entries say for which place. */
static void try_leaf(struct finder *f, vaddr at, vaddr leaf, unsigned shift)
{
	uint64_t mask = (UINT64_C(1) << tc_leaf_bits(shift)) - 1;
	unsigned bad = 0;
	vaddr addr;
	uint64_t span, start;

	if (f->hi - f->lo < root_bytes(shift) + 8 ||
	    !space_mapped(f->sp, leaf, leaf_bytes(shift)))
		return;
	words_init(&f->leaf, f->sp, leaf, leaf + leaf_bytes(shift),
		   LEAF_PIECE, &f->leaf_budget);
	for (int i = 0; i < TRIED_ENTRIES && bad < 4 &&
	     words_next(&f->leaf, &addr, &span); i++) {
		vaddr root;

		if (!span_start(f->sp, span, shift, &start)) {
			bad++;
			continue;
		}
		/* All pages of a span of objects lead to it. */
		if ((start & mask) != (addr - leaf) / 8)
			continue;
		root = at - 8 * (start >> tc_leaf_bits(shift));
		if (root >= f->lo && root + root_bytes(shift) + 8 <= f->hi)
			add_vote(f, root, shift);
	}
}

/* Behind the root: the function that gets memory for leaves. */
static bool function_behind(struct finder *f, const struct candidate *c)
{
	uint64_t function;
	const struct seg *seg;

	if (!space_u64(f->sp, c->root + root_bytes(c->shift), &function) ||
	    space_module(f->sp, function) != f->module)
		return false;
	seg = space_seg(f->sp, function);
	return !seg || !(seg->flags & SEG_W);
}

static void read_stats(struct tcmalloc *t)
{
	vaddr at = t->root + root_bytes(t->shift) + LISTS_OFF +
		((UINT64_C(1) << (20 - t->shift)) * LIST_PAIR);
	uint64_t word[3] = { 0 }, smallest = 0;

	space_read(t->sp, at, word, sizeof(word));
	t->stats = (struct tc_stats){ word[0], word[1], word[2] };
	t->smallest_span = space_u64(t->sp, t->root - PACKED_CACHE - 16,
				     &smallest) && smallest == 1;
}

bool tc_exact(const struct tcmalloc *t)
{
	return t->span_bytes[TC_IN_USE] + t->span_bytes[TC_NORMAL] +
		t->span_bytes[TC_RETURNED] == t->stats.system_bytes &&
		t->span_bytes[TC_NORMAL] == t->stats.free_bytes &&
		t->span_bytes[TC_RETURNED] == t->stats.returned_bytes;
}

/* ---- spans ---- */

static bool read_span(struct tcmalloc *t, vaddr addr, uint64_t page,
		      struct tc_span *ret)
{
	uint64_t word[SPAN_BYTES / 8], bytes;
	uint32_t bits;

	if (addr & 7 || space_read(t->sp, addr, word, SPAN_BYTES) !=
	    SPAN_BYTES || word[0] != page || !word[1] ||
	    word[1] >> (48 - t->shift))
		return false;
	bits = (uint32_t)word[5];
	bytes = word[1] << t->shift;
	*ret = (struct tc_span){
		.addr = addr, .start = page << t->shift, .bytes = bytes,
		.next = word[2], .prev = word[3], .objects = word[4],
		.taken = (uint16_t)bits, .size_class = bits >> 16 & 0xff,
		.where = bits >> 24 & 3, .sampled = bits >> 26 & 1,
		.readable = space_readable(t->sp, page << t->shift, bytes),
	};
	return ret->where <= TC_RETURNED &&
	       space_mapped(t->sp, ret->start, ret->bytes);
}

/* Entries inside a large or a free span are left over: go from span to span. */
static void read_leaf(struct tcmalloc *t, struct words *w, uint64_t high,
		      vaddr leaf, uint64_t *next, uint64_t *budget)
{
	vaddr at;
	uint64_t addr;

	words_init(w, t->sp, leaf, leaf + leaf_bytes(t->shift), WORDS_BUFFER,
		   budget);
	while (words_next(w, &at, &addr)) {
		uint64_t page = high << tc_leaf_bits(t->shift) |
			(at - leaf) / 8;
		struct tc_span span;

		if (page < *next)
			continue;
		if (!read_span(t, addr, page, &span)) {
			t->n_odd++;
			continue;
		}
		MEM_PUSH(t->spans, t->n_spans, t->cap_spans) = span;
		t->span_bytes[span.where] += span.bytes;
		*next = page + (span.bytes >> t->shift);
	}
}

static bool read_spans(struct tcmalloc *t)
{
	struct words *roots = mem_alloc(sizeof(*roots));
	struct words *entries = mem_alloc(sizeof(*entries));
	/* Each leaf is memory of its own, however many the root names. */
	uint64_t budget = 64 * MIB + space_bytes(t->sp), next = 0, leaf;
	vaddr at;

	words_init(roots, t->sp, t->root, t->root + root_bytes(t->shift),
		   WORDS_BUFFER, &budget);
	while (words_next(roots, &at, &leaf)) {
		MEM_PUSH(t->leaves, t->n_leaves, t->cap_leaves) = leaf;
		read_leaf(t, entries, (at - t->root) / 8, leaf, &next,
			  &budget);
	}
	free(roots);
	free(entries);
	return t->n_spans != 0;
}

/* ---- the best of them ---- */

static int most_votes(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return ORDER(y->votes, x->votes) ?:
	       ORDER(x->root, y->root) ?:
	       ORDER(x->shift, y->shift);
}

static void drop_spans(struct tcmalloc *t)
{
	free(t->spans);
	free(t->leaves);
	t->spans = NULL;
	t->leaves = NULL;
	t->n_spans = t->cap_spans = t->n_leaves = t->cap_leaves = 0;
}

/*
 * The candidate whose spans add up to the counters, of any page size.  If none
 * does, the counters may be what is damaged: but then few entries are odd.
 */
static bool elect(struct finder *f, struct tcmalloc *ret, char *near,
		  size_t near_size)
{
	struct tcmalloc best = { 0 }, t;

	SORT(f->all, f->n, most_votes);
	for (size_t i = 0; i < f->n && i < 8; i++) {
		const struct candidate *c = &f->all[i];

		if (c->votes < MIN_VOTES || !function_behind(f, c))
			continue;
		t = (struct tcmalloc){
			.sp = f->sp, .module = f->module, .lo = f->lo,
			.hi = f->hi, .root = c->root, .shift = c->shift,
			.votes = c->votes,
		};
		read_stats(&t);
		if (read_spans(&t) && tc_exact(&t)) {
			drop_spans(&best);
			*ret = t;
			return true;
		}
		if (t.n_spans > best.n_spans && t.n_odd * 8 < t.n_spans) {
			drop_spans(&best);
			best = t;
		} else {
			drop_spans(&t);
		}
	}
	*ret = best;
	if (!best.n_spans && f->n)
		snprintf(near, near_size, "0x%llx is like a page map, %u "
			 "entries fit, but no layout known here does",
			 (unsigned long long)f->all[0].root,
			 f->all[0].votes);
	return best.n_spans != 0;
}

static void collect_votes(struct finder *f, unsigned shift)
{
	vaddr at;
	uint64_t word, last = 0;

	if (f->hi - f->lo < root_bytes(shift) + 8)
		return;
	f->budget = f->leaf_budget = VOTE_BUDGET;
	words_init(&f->outer, f->sp, f->lo, f->hi, WORDS_BUFFER, &f->budget);
	while (words_next(&f->outer, &at, &word)) {
		const struct seg *seg;

		if (word & 7 || word == last || word >> 47)
			continue;
		seg = space_seg(f->sp, word);
		if (seg && space_seg_anon(seg) && seg->flags & SEG_W &&
		    (word < f->lo || word >= f->hi))
			try_leaf(f, at, word, shift);
		last = word;
	}
}

/* Pages of 8 KiB are what all distributions build with. */
static bool find_in(struct finder *f, struct tcmalloc *ret, char *near,
		    size_t near_size)
{
	enum { USUAL = 13 };

	f->n = 0;
	collect_votes(f, USUAL);
	if (f->n && elect(f, ret, near, near_size) && tc_exact(ret))
		return true;
	if (f->n)
		drop_spans(ret);
	for (unsigned s = MIN_SHIFT; s <= MAX_SHIFT; s++)
		if (s != USUAL)
			collect_votes(f, s);
	return f->n && elect(f, ret, near, near_size);
}

/* Where modules are damaged, two may seem to have one root. */
static bool is_known(const struct tcmalloc *all, size_t n, vaddr root)
{
	while (n && all[n - 1].root != root)
		n--;
	return n != 0;
}

size_t tc_find(struct space *sp, struct tcmalloc **ret, char *near,
	       size_t near_size)
{
	struct finder *f = mem_zalloc(sizeof(*f));
	struct tcmalloc *all = NULL, t;
	size_t n = 0, cap = 0;

	f->sp = sp;
	for (size_t i = 0; sp->word == 8 && i < sp->n_modules; i++) {
		size_t seg = space_first_seg(sp, sp->modules[i].start);

		f->module = &sp->modules[i];
		while (words_module_range(sp, f->module, &seg, &f->lo,
					  &f->hi)) {
			if (f->hi - f->lo < root_bytes(MAX_SHIFT) ||
			    !find_in(f, &t, near, near_size))
				continue;
			if (is_known(all, n, t.root)) {
				drop_spans(&t);
				continue;
			}
			tc_find_tables(&t);
			MEM_PUSH(all, n, cap) = t;
			break;
		}
	}
	free(f);
	*ret = all;
	return n;
}

void tc_free(struct tcmalloc *all, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		drop_spans(&all[i]);
		free(all[i].caches);
	}
	free(all);
}
