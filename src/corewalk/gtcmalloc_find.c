/* SPDX-License-Identifier: MIT */
/*
 * Finding google/tcmalloc without symbols.  The root of the page map lies in
 * the bss of the program.  A word there that leads, over a middle or at once,
 * to a leaf whose entries are spans that belong at that place, votes for where
 * the root begins, and for the shape of the map and the size of a page.
 */
#include "corewalk/gtcmalloc.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "corewalk/words.h"

enum {
	ADDRESS_BITS = 48,
	TRIED_ENTRIES = 512, TRIED_LEAVES = 8, BAD_ENTRIES = 4,
	ENOUGH_VOTES = 64,	/* of a leaf */
	MIN_VOTES = 4,
	MIN_REFUSED = 16,	/* of what no layout explains; else chance */
	MAX_CANDIDATES = 128,
	PIECE = 256,		/* of a node that may be none */
	VOTE_BUDGET = 64 << 20,	/* bytes read of a module for votes */
	LOOK_BUDGET = 256 << 20,	/* and of what its words lead to */
	MAX_MID_BITS = 12,
	SPAN_WORDS = 5,		/* of a span that may be none */
};

/* ---- candidates ---- */

/* All pages of a shape have leaves of one size; see docs. */
static const struct shape {
	uint8_t leaf_bits, mid_bits;
	uint8_t shifts[4];	/* of pages, 0 ends them */
} shapes[] = {
	{ 12, 12, { 13, 12 } },
	{ 11, 11, { 15 } },
	{ 10, 10, { 18 } },
	{ 15, 0, { 13, 12, 15, 18 } },
};

/* Bytes of its smallest root. */
static uint64_t shape_root(const struct shape *s)
{
	unsigned shift = s->shifts[0];

	for (int i = 1; i < 4 && s->shifts[i]; i++)
		if (s->shifts[i] > shift)
			shift = s->shifts[i];
	return UINT64_C(8) << (ADDRESS_BITS - shift - s->leaf_bits -
			       s->mid_bits);
}

struct finder {
	struct space *sp;
	vaddr lo, hi;
	struct gtc_map all[MAX_CANDIDATES];
	size_t n, oldest;
	struct words outer, mids, leaf;
	uint64_t budget, mid_budget;
	uint64_t leaf_budget[2];	/* below a middle, and without */
};

static uint64_t mask(unsigned bits)
{
	return (UINT64_C(1) << bits) - 1;
}

static bool same_map(const struct gtc_map *a, const struct gtc_map *b)
{
	return a->root == b->root && a->shift == b->shift &&
		a->leaf_bits == b->leaf_bits &&
		a->class_bytes == b->class_bytes && a->first == b->first;
}

/* If there are too many, one that a single entry spoke for makes room. */
static void add_vote(struct finder *f, const struct gtc_map *map)
{
	size_t i = 0;

	while (i < f->n && !same_map(&f->all[i], map))
		i++;
	if (i == MAX_CANDIDATES) {
		i = f->oldest++ % MAX_CANDIDATES;
		if (f->all[i].votes > 1)
			return;
		f->all[i] = *map;
	} else if (i == f->n) {
		f->all[f->n++] = *map;
	}
	f->all[i].votes++;
}

/* Memory that a map or a span can lie in. */
static bool plausible(struct finder *f, vaddr addr)
{
	const struct seg *seg;

	if (addr & 7 || !addr || addr >> 47 ||
	    (addr >= f->lo && addr < f->hi))
		return false;
	seg = space_seg(f->sp, addr);
	return seg && seg->flags & SEG_W && space_seg_anon(seg);
}

/* A leaf's entry number i, and the middle's entry that led there. */
static unsigned vote(struct finder *f, const struct shape *shape, vaddr at,
		     uint64_t mid, uint64_t i, const uint64_t *span,
		     unsigned class_bytes)
{
	unsigned low = shape->leaf_bits + shape->mid_bits, votes = 0;

	for (unsigned first = 24; first <= 32; first += 8)
		for (int k = 0; k < 4 && shape->shifts[k]; k++) {
			unsigned shift = shape->shifts[k];
			unsigned bits = ADDRESS_BITS - shift;
			uint64_t page = span[first / 8] & mask(bits);
			struct gtc_map map = {
				.root = at - 8 * (page >> low), .shift = shift,
				.leaf_bits = shape->leaf_bits,
				.mid_bits = shape->mid_bits,
				.root_bits = bits - low, .first = first,
				.class_bytes = class_bytes,
			};

			if (page && (page & mask(shape->leaf_bits)) == i &&
			    (page >> shape->leaf_bits &
			     mask(shape->mid_bits)) == mid &&
			    map.root >= f->lo && map.root <= at &&
			    map.root + (UINT64_C(8) << map.root_bits) <=
				f->hi && space_seg(f->sp, page << shift)) {
				add_vote(f, &map);
				votes++;
			}
		}
	return votes;
}

static void try_leaf(struct finder *f, const struct shape *shape, vaddr at,
		     uint64_t mid, vaddr leaf)
{
	for (unsigned class = 1; class <= 2; class++) {
		vaddr entries = leaf + ((vaddr)class << shape->leaf_bits);
		vaddr end = entries + (UINT64_C(8) << shape->leaf_bits), addr;
		uint64_t word, span[SPAN_WORDS];
		unsigned bad = 0, votes = 0;

		if (!space_mapped(f->sp, leaf, end - leaf))
			continue;
		words_init(&f->leaf, f->sp, entries, end, PIECE,
			   &f->leaf_budget[!shape->mid_bits]);
		for (int n = 0; n < TRIED_ENTRIES && bad < BAD_ENTRIES &&
		     votes < ENOUGH_VOTES &&
		     words_next(&f->leaf, &addr, &word); n++) {
			word &= mask(48);
			/* Freed ones have a constant of the program. */
			if (space_module(f->sp, word))
				continue;
			if (!plausible(f, word) || space_read(f->sp, word,
				span, sizeof(span)) != sizeof(span))
				bad++;
			else
				votes += vote(f, shape, at, mid,
					      (addr - entries) / 8, span,
					      class);
		}
	}
}

/* The leaves that a middle leads to: all its first words must be pointers. */
static size_t read_leaves(struct finder *f, vaddr node, vaddr *leaves,
			  uint64_t *index)
{
	size_t n = 0;
	vaddr addr;

	words_init(&f->mids, f->sp, node, node + (UINT64_C(8) << MAX_MID_BITS),
		   PIECE, &f->mid_budget);
	while (n < TRIED_LEAVES && words_next(&f->mids, &addr, &leaves[n])) {
		if (!plausible(f, leaves[n]))
			break;
		index[n++] = (addr - node) / 8;
	}
	return n;
}

/* Does the word at lead to leaves? */
static void try_word(struct finder *f, vaddr at, vaddr node)
{
	vaddr leaves[TRIED_LEAVES];
	uint64_t index[TRIED_LEAVES];
	size_t n = read_leaves(f, node, leaves, index);

	for (size_t i = 0; i < countof(shapes); i++) {
		const struct shape *shape = &shapes[i];

		if (!shape->mid_bits && f->hi - f->lo >= shape_root(shape))
			try_leaf(f, shape, at, 0, node);
		for (size_t k = 0; k < n && shape->mid_bits; k++)
			if (index[k] >> shape->mid_bits == 0)
				try_leaf(f, shape, at, index[k], leaves[k]);
	}
}

static void collect_votes(struct finder *f)
{
	vaddr at;
	uint64_t word, last = 0;

	f->n = f->oldest = 0;
	f->budget = VOTE_BUDGET;
	f->mid_budget = f->leaf_budget[0] = f->leaf_budget[1] = LOOK_BUDGET;
	words_init(&f->outer, f->sp, f->lo, f->hi, WORDS_BUFFER, &f->budget);
	while (words_next(&f->outer, &at, &word)) {
		if (word != last && plausible(f, word))
			try_word(f, at, word);
		last = word;
	}
}

/* ---- the map ---- */

struct reader {
	struct gtcmalloc *t;
	struct words root, mid, leaf;
	uint64_t budget;
	vaddr last;		/* span of the entry before */
};

static void add_entry(struct reader *r, uint64_t page, vaddr leaf,
		      vaddr span)
{
	struct gtcmalloc *t = r->t;
	uint64_t first, i = page & mask(t->map.leaf_bits);
	uint16_t class = 0;
	uint8_t small = 0;

	/* The other pages of a span of objects lead to it too. */
	if (span == r->last || span & 7 ||
	    !space_u64(t->sp, span + t->map.first, &first) ||
	    (first & mask(ADDRESS_BITS - t->map.shift)) != page)
		return;
	r->last = span;
	if (t->map.class_bytes == 2)
		space_u16(t->sp, leaf + 2 * i, &class);
	else if (space_u8(t->sp, leaf + i, &small))
		class = small;
	MEM_PUSH(t->heads, t->n_heads, t->cap_heads) =
		(struct gtc_head){ page, span, class };
}

/*
 * A node has a page at least, and the budget is that of all there are: many
 * words that lead to one, or to a hole, soon use it up.
 */
static bool new_node(struct reader *r, vaddr node)
{
	enum { LEAST = 4096 };

	if (node >> 47 || r->budget < LEAST)
		return false;
	r->budget -= LEAST;
	MEM_PUSH(r->t->nodes, r->t->n_nodes, r->t->cap_nodes) = node;
	return true;
}

static void read_leaf(struct reader *r, uint64_t high, vaddr leaf)
{
	struct gtcmalloc *t = r->t;
	unsigned bits = t->map.leaf_bits, huge = GTC_HUGE_SHIFT - t->map.shift;
	vaddr entries = leaf + ((vaddr)t->map.class_bytes << bits), at;
	vaddr trackers = entries + (UINT64_C(8) << bits);
	uint64_t word;

	if (!new_node(r, leaf))
		return;
	MEM_PUSH(t->covered, t->n_covered, t->cap_covered) =
		gtc_addr(t, high << bits);
	r->last = 0;
	words_init(&r->leaf, t->sp, entries, trackers, WORDS_BUFFER,
		   &r->budget);
	while (words_next(&r->leaf, &at, &word))
		add_entry(r, high << bits | (at - entries) / 8, leaf,
			  word & mask(48));
	words_init(&r->leaf, t->sp, trackers,
		   trackers + (UINT64_C(8) << (bits - huge)), WORDS_BUFFER,
		   &r->budget);
	while (words_next(&r->leaf, &at, &word))
		MEM_PUSH(t->huge, t->n_huge, t->cap_huge) =
			(high << bits >> huge) + (at - trackers) / 8;
}

static void read_mid(struct reader *r, uint64_t high, vaddr mid)
{
	struct gtcmalloc *t = r->t;
	unsigned bits = t->map.mid_bits;
	vaddr at;
	uint64_t leaf;

	if (!new_node(r, mid))
		return;
	words_init(&r->mid, t->sp, mid, mid + (UINT64_C(8) << bits),
		   WORDS_BUFFER, &r->budget);
	while (words_next(&r->mid, &at, &leaf))
		read_leaf(r, high << bits | (at - mid) / 8, leaf);
}

static void read_map(struct gtcmalloc *t)
{
	struct reader *r = mem_zalloc(sizeof(*r));
	uint64_t node;
	vaddr at;

	r->t = t;
	r->budget = 64 * MIB + space_bytes(t->sp);
	words_init(&r->root, t->sp, t->map.root, t->map.root +
		   (UINT64_C(8) << t->map.root_bits), WORDS_BUFFER,
		   &r->budget);
	while (words_next(&r->root, &at, &node)) {
		uint64_t i = (at - t->map.root) / 8;

		if (t->map.mid_bits)
			read_mid(r, i, node);
		else
			read_leaf(r, i, node);
	}
	free(r);
}

/* ---- instances ---- */

static void drop(struct gtcmalloc *t)
{
	free(t->heads);
	free(t->spans);
	free(t->nodes);
	free(t->covered);
	free(t->huge);
	free(t->caches);
}

static bool find_in(struct finder *f, struct gtcmalloc *t)
{
	const struct gtc_map *best = NULL;

	collect_votes(f);
	for (size_t i = 0; i < f->n; i++)
		if (f->all[i].votes >= MIN_VOTES &&
		    (!best || f->all[i].votes > best->votes))
			best = &f->all[i];
	if (!best)
		return false;
	t->sp = f->sp;
	t->lo = f->lo;
	t->hi = f->hi;
	t->map = *best;
	gtc_find_sizes(t);
	if (!t->sizes)
		return false;
	read_map(t);
	gtc_elect(t);
	if (t->layout) {
		gtc_find_central(t);
		gtc_find_fronts(t);
	}
	return t->layout || t->map.votes >= MIN_REFUSED;
}

static void say_near(const struct gtcmalloc *t, char *near, size_t size)
{
	if (t->map.votes)
		snprintf(near, size, "0x%" PRIx64 " is like a page map, %u "
			 "entries fit, but %s", t->map.root, t->map.votes,
			 t->sizes ? t->why : "there are no size classes");
}

size_t gtc_find(struct space *sp, struct gtcmalloc **ret, char *near,
		size_t near_size)
{
	struct finder *f = mem_zalloc(sizeof(*f));
	struct gtcmalloc *all = NULL, t;
	size_t n = 0, cap = 0;

	f->sp = sp;
	for (size_t i = 0; sp->word == 8 && i < sp->n_modules; i++) {
		const struct module *m = &sp->modules[i];
		size_t seg = space_first_seg(sp, m->start);

		while (words_module_range(sp, m, &seg, &f->lo, &f->hi)) {
			t = (struct gtcmalloc){ .module = m };
			if (!find_in(f, &t)) {
				say_near(&t, near, near_size);
				drop(&t);
				continue;
			}
			MEM_PUSH(all, n, cap) = t;
			break;
		}
	}
	free(f);
	*ret = all;
	return n;
}

void gtc_free(struct gtcmalloc *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		drop(&all[i]);
	free(all);
}

const struct gtc_span *gtc_span_of(const struct gtcmalloc *t, vaddr addr)
{
	size_t lo = BISECT(mid, 0, t->n_spans, t->spans[mid].start <= addr);

	return lo && addr - t->spans[lo - 1].start < t->spans[lo - 1].bytes ?
		&t->spans[lo - 1] : NULL;
}

uint64_t gtc_capacity(const struct gtcmalloc *t, const struct gtc_span *s)
{
	return s->size_class && s->size_class < GTC_MAX_CLASSES &&
	       t->size[s->size_class] ?
		s->bytes / t->size[s->size_class] : 0;
}

bool gtc_is_object(const struct gtcmalloc *t, vaddr addr, unsigned class)
{
	const struct gtc_span *s = gtc_span_of(t, addr);
	uint64_t off, size;

	if (!s || s->size_class != class || !gtc_capacity(t, s))
		return false;
	off = addr - s->start;
	size = t->size[class];
	return off % size == 0 && off / size < gtc_capacity(t, s);
}
