/* SPDX-License-Identifier: MIT */
/*
 * Finding jemalloc without symbols.  The root of its radix tree is an array
 * in the bss of the library or program.  A word there that points to an array
 * of pointers to extents' structures, each of which says that it belongs at
 * that place, votes for where the root begins.  Which release and which size
 * classes it has is what the most extents agree with: the tree, the structure,
 * the bitmap and the size of an extent say the same things.
 */
#include "corewalk/jemalloc.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/sort.h"
#include "corewalk/words.h"

enum {
	NARROW_BITS = 18, WIDE_BITS = 15,	/* of a page, at each level */
	META_FLAGS_BITS = 5,		/* in a wide entry, before the class */
	TRIED_LEAVES = 16,		/* of a node, for votes */
	PAGE_SHIFT = 12,
	ADDR_BITS = 48,
	TRIED_ENTRIES = 64,		/* of a leaf, for votes */
	MIN_VOTES = 2,
	MAX_BAD = 4,
	LEAF_PIECE = 1024,		/* of one that may be none */
	MAX_CANDIDATES = 64,
	TRIED_CANDIDATES = 8,
	TRIED_EXTENTS = 4096,		/* for the layout */
	VOTE_BUDGET = 64 << 20,		/* bytes read */

	/* An extent's structure. */
	EXTENT_READ = 128,
	ADDR_WORD = 1, SIZE_WORD = 2, BITMAP_WORD = 8,
	SLAB_BIT = 12,
	FREE_BITS = 10,

	SMALL_MAX = 14336,		/* for pages of 4 KiB */
	TOP_BIT = 62,			/* of the largest class */
};

#define ENTRY_ADDR UINT64_C(0x0000ffffffffffc0)
#define MAX_ADDR (UINT64_C(1) << 47)

static unsigned level_bits(bool wide)
{
	return wide ? WIDE_BITS : NARROW_BITS;
}

static uint64_t node_bytes(bool wide)
{
	return UINT64_C(8) << level_bits(wide);
}

static uint64_t leaf_bytes(bool wide)
{
	return node_bytes(wide) << wide;
}

static const struct je_layout layouts[] = {
	{ .release = "5.3", .state_shift = 17, .state_bits = 3,
	  .class_shift = 20, .free_shift = 28, .alignment = 128,
	  .entry_state_shift = 2, .entry_flags = 0x1f,
	  .bins_have_heads = true, .wide = true },
	{ .release = "5.3", .state_shift = 17, .state_bits = 3,
	  .class_shift = 20, .free_shift = 28, .alignment = 128,
	  .entry_state_shift = 2, .entry_flags = 0x1f,
	  .bins_have_heads = true },
	{ .release = "5.1 to 5.2", .state_shift = 16,
	  .state_bits = 2, .class_shift = 18, .free_shift = 26,
	  .alignment = 64, .entry_flags = 1 },
};

/* ---- size classes ---- */

/* Four a doubling, the first ones the quantum apart: src/sc.c. */
static void make_classes(struct jemalloc *j, unsigned quantum)
{
	unsigned n = 0, lg = quantum == 8 ? 3 : 4;

	j->quantum = quantum;
	if (quantum > 8)
		j->size[n++] = 8;
	for (unsigned i = 1; i <= 4; i++)
		j->size[n++] = i * quantum;
	for (unsigned base = lg + 2; base <= TOP_BIT; base++)
		for (uint64_t i = 1; i <= 4; i++)
			if (base < TOP_BIT || i < 4)
				j->size[n++] = (UINT64_C(1) << base) +
					(i << (base - 2));
	j->n_classes = n;
	j->n_small = 0;
	while (j->size[j->n_small] <= SMALL_MAX)
		j->n_small++;
}

/* ---- extents ---- */

static uint64_t bits(uint64_t word, unsigned shift, unsigned n)
{
	return word >> shift & ((UINT64_C(1) << n) - 1);
}

/* Is the bitmap as it says, and nothing set behind the last region? */
static bool slab_agrees(const struct jemalloc *j, struct je_extent *x,
			const uint64_t *bitmap)
{
	uint64_t n, in_last, found = 0;

	if (x->class >= j->n_small || x->user != x->start)
		return false;
	x->size = j->size[x->class];
	n = x->bytes / x->size;
	if (!n || n > JE_MAX_REGIONS)
		return false;
	for (uint64_t i = 0; i < n; i += 64)
		found += (uint64_t)__builtin_popcountll(bitmap[i / 64]);
	in_last = n % 64;
	return found == x->free &&
	       (!in_last || !(bitmap[n / 64] >> in_last));
}

/* From 5.3.1 on a large block can have any number of pages of its class. */
static bool is_of_class(const struct jemalloc *j, unsigned class,
			uint64_t size)
{
	return size <= j->size[class] && size > j->size[class - 1];
}

/*
 * The size of a large block: its class's, or whole pages; 0 if neither fits.
 * A sampled small block has a whole large extent.
 */
static uint64_t large_size(const struct jemalloc *j,
			   const struct je_extent *x)
{
	uint64_t size = j->size[x->class], less = x->bytes - JE_PAGE;

	if (size <= x->bytes && x->user - x->start <= x->bytes - size &&
	    (x->class < j->n_small || size >= less))
		return size;
	if (x->class < j->n_small)
		return 0;
	if (less && is_of_class(j, x->class, less))
		return less;
	return is_of_class(j, x->class, x->bytes) ? x->bytes : 0;
}

static bool large_agrees(const struct jemalloc *j, struct je_extent *x)
{
	if (x->class >= j->n_classes || x->user & 7)
		return false;
	x->size = large_size(j, x);
	return x->size && x->user - x->start <= x->bytes - x->size;
}

/* One extent whose block is not as large as its class tells of them all. */
static void find_page_sizes(struct jemalloc *j)
{
	bool padded = false;

	for (size_t i = 0; i < j->n_extents; i++) {
		const struct je_extent *x = &j->extents[i];

		if (!x->size || x->slab)
			continue;
		j->by_pages |= x->size != j->size[x->class];
		padded |= x->user != x->start;
	}
	for (size_t i = 0; i < j->n_extents && j->by_pages; i++) {
		struct je_extent *x = &j->extents[i];

		if (x->size && !x->slab && x->class >= j->n_small)
			x->size = x->bytes - (padded ? JE_PAGE : 0);
	}
}

/* Does the rest of what an extent says fit, and the tree's entry to it? */
static bool agrees(const struct jemalloc *j, struct je_extent *x,
		   uint64_t entry, const uint64_t *word)
{
	const struct je_layout *l = j->layout;

	if (l->entry_state_shift &&
	    bits(entry, l->entry_state_shift, l->state_bits) != x->state)
		return false;
	/* What is left in a free one's entry is from when it was in use. */
	if (x->state != JE_ACTIVE || x->class == j->n_classes)
		return x->class == j->n_classes;
	if (entry >> ADDR_BITS != x->class || (entry & 1) != x->slab)
		return false;
	return x->slab ? slab_agrees(j, x, word + BITMAP_WORD) :
		large_agrees(j, x);
}

/* The extent that starts at page, by the tree's entry for it. */
static bool read_extent(const struct jemalloc *j, uint64_t entry,
			uint64_t page, struct je_extent *ret)
{
	const struct je_layout *l = j->layout;
	vaddr addr = entry & ENTRY_ADDR;
	uint64_t word[EXTENT_READ / 8];

	if (addr & (l->alignment - 1) ||
	    entry & (l->alignment - 1) & ~l->entry_flags ||
	    space_read(j->sp, addr, word, sizeof(word)) != sizeof(word) ||
	    word[ADDR_WORD] >> PAGE_SHIFT != page ||
	    word[ADDR_WORD] >= MAX_ADDR)
		return false;
	*ret = (struct je_extent){
		.addr = addr, .start = page << PAGE_SHIFT,
		.user = word[ADDR_WORD],
		.bytes = word[SIZE_WORD] & ~(uint64_t)(JE_PAGE - 1),
		.arena = bits(word[0], 0, 12),
		.slab = bits(word[0], SLAB_BIT, 1),
		.state = (uint8_t)bits(word[0], l->state_shift,
				       l->state_bits),
		.class = (uint8_t)bits(word[0], l->class_shift, 8),
		.free = (uint16_t)bits(word[0], l->free_shift, FREE_BITS),
	};
	ret->agrees = agrees(j, ret, entry, word);
	return ret->bytes && ret->bytes < MAX_ADDR &&
	       ret->state <= JE_MERGING &&
	       space_mapped(j->sp, ret->start, ret->bytes);
}

/*
 * The place of an entry in its leaf, by one of its words.  A wide entry has
 * its class and flags in a word of their own: it is made like a narrow one.
 */
static bool entry_at(struct space *sp, bool wide, vaddr leaf, vaddr at,
		     uint64_t *entry, uint64_t *index)
{
	uint32_t meta;

	*index = (at - leaf) / 8;
	if (!wide)
		return true;
	if (*index & 1 || *entry & ~ENTRY_ADDR ||
	    !space_u32(sp, at + 8, &meta))
		return false;
	*index /= 2;
	*entry |= (uint64_t)(meta >> META_FLAGS_BITS) << ADDR_BITS |
		(meta & ((1 << META_FLAGS_BITS) - 1));
	return true;
}

/* Entries inside an extent lead to it again: go from extent to extent. */
static bool read_leaf(struct jemalloc *j, struct words *w, uint64_t high,
		      vaddr leaf, uint64_t *next, uint64_t *budget,
		      size_t max)
{
	bool wide = j->layout->wide;
	vaddr at;
	uint64_t entry, index;

	MEM_PUSH(j->leaves, j->n_leaves, j->cap_leaves) = leaf;
	words_init(w, j->sp, leaf, leaf + leaf_bytes(wide), WORDS_BUFFER,
		   budget);
	while (words_next(w, &at, &entry)) {
		struct je_extent x;
		uint64_t page;

		if (!entry_at(j->sp, wide, leaf, at, &entry, &index))
			continue;
		page = high << level_bits(wide) | index;
		if (page < *next || !(entry & ENTRY_ADDR))
			continue;
		if (j->n_extents + j->n_odd >= max)
			return false;
		if (!read_extent(j, entry, page, &x)) {
			j->n_odd++;
			continue;
		}
		MEM_PUSH(j->extents, j->n_extents, j->cap_extents) = x;
		j->n_agree += x.agrees;
		*next = page + (x.bytes >> PAGE_SHIFT);
	}
	return true;
}

/* Each word leads to a leaf or, from the root of a wide tree, to a node. */
static bool read_node(struct jemalloc *j, struct words *w, uint64_t high,
		      vaddr node, bool above, uint64_t *next,
		      uint64_t *budget, size_t max)
{
	unsigned n = level_bits(j->layout->wide);
	vaddr at;
	uint64_t child;

	words_init(w, j->sp, node, node + node_bytes(j->layout->wide),
		   WORDS_BUFFER, budget);
	while (words_next(w, &at, &child)) {
		uint64_t key = high << n | (at - node) / 8;

		if (above ? !read_node(j, w + 1, key, child, false, next,
				       budget, max) :
		    !read_leaf(j, w + 1, key, child, next, budget, max))
			return false;
	}
	return true;
}

/* The extents by the radix tree, at most max; false if there are none. */
static bool je_read_extents(struct jemalloc *j, size_t max)
{
	struct words *levels = mem_alloc(3 * sizeof(*levels));
	/* Each leaf is memory of its own, however many the root names. */
	uint64_t budget = 64 * MIB + space_bytes(j->sp), next = 0;

	read_node(j, levels, 0, j->root, j->layout->wide, &next, &budget, max);
	free(levels);
	find_page_sizes(j);
	return j->n_extents != 0;
}

const struct je_extent *je_extent_at(const struct jemalloc *j, vaddr addr)
{
	size_t lo = BISECT(mid, 0, j->n_extents,
			   j->extents[mid].start <= addr);

	return lo && addr - j->extents[lo - 1].start <
		j->extents[lo - 1].bytes ? &j->extents[lo - 1] : NULL;
}

static void drop_extents(struct jemalloc *j)
{
	free(j->extents);
	free(j->leaves);
	j->extents = NULL;
	j->leaves = NULL;
	j->n_extents = j->cap_extents = j->n_leaves = j->cap_leaves = 0;
	j->n_agree = j->n_odd = 0;
	j->by_pages = false;
}

/* ---- candidates ---- */

struct candidate {
	vaddr root;
	unsigned votes;
	bool wide;
};

struct finder {
	struct space *sp;
	const struct module *module;
	vaddr lo, hi;
	struct candidate all[MAX_CANDIDATES];
	size_t n;
	struct words outer, node, leaf;
	uint64_t budget, leaf_budget;
};

static void add_vote(struct finder *f, vaddr root, bool wide)
{
	size_t i = 0;

	while (i < f->n && (f->all[i].root != root ||
			    f->all[i].wide != wide))
		i++;
	if (i == MAX_CANDIDATES)
		return;
	if (i == f->n)
		f->all[f->n++] = (struct candidate){ root, 0, wide };
	f->all[i].votes++;
}

/*
 * Is this a leaf?  Its entries say for which place of the root, that is at;
 * in a wide tree key is the place in the node between.
 */
static void try_leaf(struct finder *f, vaddr at, vaddr leaf, bool wide,
		     uint64_t key)
{
	unsigned n = level_bits(wide), bad = 0;
	vaddr addr, root;
	uint64_t entry, start, index, mask = (UINT64_C(1) << n) - 1;

	if (!space_mapped(f->sp, leaf, leaf_bytes(wide)))
		return;
	words_init(&f->leaf, f->sp, leaf, leaf + leaf_bytes(wide), LEAF_PIECE,
		   &f->leaf_budget);
	for (int i = 0; i < TRIED_ENTRIES && bad < MAX_BAD &&
	     words_next(&f->leaf, &addr, &entry);) {
		/* Where there was an extent its class is left, often of many
		 * one after the other. */
		if (!(entry & ENTRY_ADDR) && entry >> ADDR_BITS)
			continue;
		i++;
		if (!entry_at(f->sp, wide, leaf, addr, &entry, &index))
			continue;
		if (!space_u64(f->sp, (entry & ENTRY_ADDR) + 8 * ADDR_WORD,
			       &start) || start >= MAX_ADDR) {
			bad++;
			continue;
		}
		start >>= PAGE_SHIFT;
		/* All pages of a slab lead to it. */
		if ((start & mask) != index ||
		    (wide && (start >> n & mask) != key))
			continue;
		root = at - 8 * (start >> (wide ? 2 * n : n));
		if (root >= f->lo && root + node_bytes(wide) <= f->hi)
			add_vote(f, root, wide);
	}
}

static void try_node(struct finder *f, vaddr at, vaddr node)
{
	vaddr addr, last = 0;
	uint64_t leaf;

	if (!space_mapped(f->sp, node, node_bytes(true)))
		return;
	words_init(&f->node, f->sp, node, node + node_bytes(true), LEAF_PIECE,
		   &f->leaf_budget);
	for (int i = 0; i < TRIED_LEAVES &&
	     words_next(&f->node, &addr, &leaf); i++) {
		if (leaf & 63 || leaf >= MAX_ADDR || leaf == last)
			return;
		try_leaf(f, at, leaf, true, (addr - node) / 8);
		last = leaf;
	}
}

static void try_below(struct finder *f, vaddr at, vaddr below, bool wide)
{
	if (wide)
		try_node(f, at, below);
	else
		try_leaf(f, at, below, false, 0);
}

static void collect_votes(struct finder *f, bool wide)
{
	vaddr at;
	uint64_t word, last = 0;

	f->n = 0;
	f->budget = f->leaf_budget = VOTE_BUDGET;
	words_init(&f->outer, f->sp, f->lo, f->hi, WORDS_BUFFER, &f->budget);
	while (words_next(&f->outer, &at, &word)) {
		const struct seg *seg;

		if (word & 63 || word == last || word >= MAX_ADDR)
			continue;
		seg = space_seg(f->sp, word);
		if (seg && space_seg_anon(seg) && seg->flags & SEG_W &&
		    (word < f->lo || word >= f->hi))
			try_below(f, at, word, wide);
		last = word;
	}
}

static int most_votes(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return ORDER(y->votes, x->votes) ?: ORDER(x->root, y->root);
}

/* Read while it ran, a structure and its bitmap are of two moments. */
static bool enough_agree(const struct jemalloc *j)
{
	if (j->sp->torn)
		return j->n_odd < j->n_agree &&
			j->n_agree * 2 > j->n_extents;
	return j->n_odd * 8 < j->n_agree && j->n_agree * 8 > j->n_extents * 7;
}

/* The layout and the size classes that the first extents agree with. */
static bool elect_layout(struct jemalloc *j, bool wide)
{
	const struct je_layout *best = NULL;
	unsigned quantum = 0;
	size_t most = 0;

	for (size_t i = 0; i < countof(layouts); i++)
		for (unsigned q = 8; q <= 16; q += 8) {
			if (layouts[i].wide != wide)
				continue;
			j->layout = &layouts[i];
			make_classes(j, q);
			je_read_extents(j, TRIED_EXTENTS);
			if (j->n_agree > most && enough_agree(j)) {
				most = j->n_agree;
				best = j->layout;
				quantum = q;
			}
			drop_extents(j);
		}
	if (!best)
		return false;
	j->layout = best;
	make_classes(j, quantum);
	return true;
}

static bool elect(struct finder *f, struct jemalloc *ret, char *near,
		  size_t near_size)
{
	SORT(f->all, f->n, most_votes);
	for (size_t i = 0; i < f->n && i < TRIED_CANDIDATES; i++) {
		if (f->all[i].votes < MIN_VOTES)
			break;
		*ret = (struct jemalloc){
			.sp = f->sp, .module = f->module, .lo = f->lo,
			.hi = f->hi, .root = f->all[i].root,
			.votes = f->all[i].votes,
		};
		if (elect_layout(ret, f->all[i].wide) &&
		    je_read_extents(ret, SIZE_MAX))
			return true;
		drop_extents(ret);
	}
	if (f->n && f->all[0].votes >= MIN_VOTES)
		snprintf(near, near_size, "0x%llx is like the root of its "
			 "radix tree, %u entries fit, but what the extents "
			 "say fits no layout known here",
			 (unsigned long long)f->all[0].root,
			 f->all[0].votes);
	return false;
}

static bool find_in(struct finder *f, bool wide, struct jemalloc *ret,
		    char *near, size_t near_size)
{
	if (f->hi - f->lo < node_bytes(wide))
		return false;
	collect_votes(f, wide);
	return elect(f, ret, near, near_size);
}

/* Where modules are damaged, two may seem to have one root. */
static bool is_known(const struct jemalloc *all, size_t n, vaddr root)
{
	while (n && all[n - 1].root != root)
		n--;
	return n != 0;
}

size_t je_find(struct space *sp, struct jemalloc **ret, char *near,
	       size_t near_size)
{
	struct finder *f = mem_zalloc(sizeof(*f));
	struct jemalloc *all = NULL, j;
	size_t n = 0, cap = 0;

	f->sp = sp;
	for (size_t i = 0; sp->word == 8 && i < sp->n_modules; i++) {
		size_t seg = space_first_seg(sp, sp->modules[i].start);

		f->module = &sp->modules[i];
		while (words_module_range(sp, f->module, &seg, &f->lo,
					  &f->hi)) {
			if (!find_in(f, false, &j, near, near_size) &&
			    !find_in(f, true, &j, near, near_size))
				continue;
			if (is_known(all, n, j.root)) {
				drop_extents(&j);
				continue;
			}
			je_find_caches(&j);
			je_find_bases(&j);
			MEM_PUSH(all, n, cap) = j;
			break;
		}
	}
	free(f);
	*ret = all;
	return n;
}

void je_free(struct jemalloc *all, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		drop_extents(&all[i]);
		free(all[i].caches);
		free(all[i].bases);
	}
	free(all);
}
