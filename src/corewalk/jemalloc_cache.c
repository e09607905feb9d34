/* SPDX-License-Identifier: MIT */
/*
 * jemalloc's thread caches and base blocks, by what must hold of them.  A
 * cache lies in its thread's static TLS and points to its bins twice, there
 * and back; those of an arena are a ring.  A base block says how large it is
 * and where its unused rest begins, which ends where the block does.
 */
#include "corewalk/jemalloc.h"

#include <string.h>

#include "base/mem.h"

enum {
	TLS_BELOW = 64 * 1024,		/* bytes of static TLS to search */
	NEAR = 16 * 1024,		/* the two parts of one cache */
	MAX_CACHES = 1 << 16,
	FEW_BLOCKS = 8,			/* pointers to blocks, and no cache */
	MAX_OFF = 64,			/* threads that are asked */

	/* 5.3: two structures, which point to each other. */
	SLOW_BINS = 32,			/* in the slow one, to the bins */
	FAST_BINS = 8,			/* in the other, the bins */
	/* 5.2: one. */
	OLD_BINS = 16,
	OLD_BACK = 56,			/* behind the small bins, to them */
	OLD_LARGE = 64,			/* to those of large classes */

	BASE_ALIGN = 2 << 20,		/* of a base block */
	BASE_READ = 40,
	MAX_BASE_STEPS = 1 << 20,
};

/* ---- thread caches ---- */

/* The slow structure's, if the fast one that it belongs to is at fast. */
static bool read_new(struct jemalloc *j, vaddr slow, struct je_cache *ret)
{
	uint64_t bins, back;

	if (slow & 7 || !space_u64(j->sp, slow + SLOW_BINS, &bins) ||
	    bins & 7 || !space_u64(j->sp, bins - FAST_BINS, &back) ||
	    back != slow)
		return false;
	*ret = (struct je_cache){
		.addr = slow, .small = bins,
		.large = bins + j->n_small * JE_BIN_BYTES,
	};
	return true;
}

static bool read_old(struct jemalloc *j, vaddr addr, struct je_cache *ret)
{
	vaddr small = addr + OLD_BINS;
	vaddr behind = small + j->n_small * JE_BIN_BYTES;
	uint64_t back, large;

	if (addr & 7 || !space_u64(j->sp, behind + OLD_BACK, &back) ||
	    back != small || !space_u64(j->sp, behind + OLD_LARGE, &large) ||
	    large <= behind || large - behind > NEAR || large & 7)
		return false;
	*ret = (struct je_cache){
		.addr = addr, .small = small, .large = large,
	};
	return true;
}

static bool read_cache(struct jemalloc *j, vaddr addr, struct je_cache *ret)
{
	return j->layout->bins_have_heads ? read_new(j, addr, ret) :
		read_old(j, addr, ret);
}

/* Which cache the word at, value, may be a pointer of, in its own thread. */
static vaddr cache_of_word(const struct jemalloc *j, vaddr at, uint64_t value)
{
	if (j->layout->bins_have_heads)
		return value < at && at - value < NEAR ? value : 0;
	return at - OLD_BACK - j->n_small * JE_BIN_BYTES == value ?
		value - OLD_BINS : 0;
}

/* Where it is or belongs, in order of addresses. */
static size_t cache_place(const struct jemalloc *j, vaddr addr)
{
	return BISECT(mid, 0, j->n_caches, j->caches[mid].addr < addr);
}

/* False if it is there already. */
static bool add_cache(struct jemalloc *j, const struct je_cache *c)
{
	size_t at = cache_place(j, c->addr);

	if ((at < j->n_caches && j->caches[at].addr == c->addr) ||
	    j->n_caches == MAX_CACHES)
		return false;
	MEM_PUSH(j->caches, j->n_caches, j->cap_caches) = *c;
	memmove(&j->caches[at + 1], &j->caches[at],
		(j->n_caches - 1 - at) * sizeof(*j->caches));
	j->caches[at] = *c;
	return true;
}

static void find_in_thread(struct jemalloc *j, const struct thread *thread)
{
	vaddr lo = thread->tls - min_u64(TLS_BELOW, thread->tls);
	const struct seg *seg = space_seg(j->sp, thread->tls);

	/* The main thread's lies at the start of a small mapping. */
	if (!thread->tls || !seg)
		return;
	for (vaddr at = thread->tls - 8; at >= max_u64(lo, seg->start);
	     at -= 8) {
		struct je_cache c;
		uint64_t word;
		vaddr addr;

		if (!space_u64(j->sp, at, &word))
			return;
		addr = cache_of_word(j, at, word);
		if (!addr || !read_cache(j, addr, &c))
			continue;
		c.tid = thread->tid;
		add_cache(j, &c);
		return;
	}
}

/* The other caches of its arena: those that no thread's TLS holds. */
static void follow_ring(struct jemalloc *j, vaddr first, size_t *budget)
{
	/* Where its links are, behind the small bins in 5.2. */
	vaddr off = j->layout->bins_have_heads ? 0 :
		OLD_BINS + j->n_small * JE_BIN_BYTES;
	struct je_cache c;
	uint64_t at = first;

	while (*budget && space_u64(j->sp, at + off, &at) && at != first &&
	       read_cache(j, at, &c)) {
		(*budget)--;
		/* One that is known is a thread's, and its ring was or
		 * will be followed to here. */
		add_cache(j, &c);
	}
}

static bool is_leaf(const struct jemalloc *j, uint64_t word)
{
	for (size_t i = 0; !(word & 63) && i < j->n_leaves; i++)
		if (j->leaves[i] == word)
			return true;
	return false;
}

/*
 * jemalloc's data of a thread has some leaves of the radix tree, which it came
 * by last.  A cache would be behind them, with a pointer for each class into
 * its stacks, which are a block: where there are next to none, it is off.
 */
static bool has_no_cache(const struct jemalloc *j, const struct thread *thread)
{
	vaddr lo = thread->tls - min_u64(TLS_BELOW, thread->tls);
	const struct seg *seg = space_seg(j->sp, thread->tls);
	vaddr leaf = 0, at;
	unsigned blocks = 0;
	uint64_t word;

	if (!thread->tls || !seg)
		return false;
	lo = max_u64(lo, seg->start);
	for (at = thread->tls - 8; at >= lo && !leaf; at -= 8)
		if (space_u64(j->sp, at, &word) && word && is_leaf(j, word))
			leaf = at;
	if (!leaf)
		return false;
	for (at = leaf; at < min_u64(leaf + NEAR, thread->tls); at += 8)
		blocks += space_u64(j->sp, at, &word) && word &&
			je_extent_at(j, word);
	return blocks < FEW_BLOCKS;
}

static bool are_off(const struct jemalloc *j)
{
	size_t off = 0;

	for (size_t i = 0; i < j->sp->n_threads && i < MAX_OFF; i++)
		off += has_no_cache(j, &j->sp->threads[i]);
	return off && off == min_u64(j->sp->n_threads, MAX_OFF);
}

void je_find_caches(struct jemalloc *j)
{
	size_t budget = MAX_CACHES, n;
	vaddr *first;

	for (size_t i = 0; i < j->sp->n_threads; i++)
		find_in_thread(j, &j->sp->threads[i]);
	n = j->n_caches;
	first = mem_zalloc((n + 1) * sizeof(*first));
	for (size_t i = 0; i < n; i++)
		first[i] = j->caches[i].addr;
	for (size_t i = 0; i < n; i++)
		follow_ring(j, first[i], &budget);
	free(first);
	j->caches_off = !n && are_off(j);
}

/* ---- base blocks ---- */

/* size, next, and an extent: the rest that is not used yet. */
static bool read_base(struct jemalloc *j, vaddr addr, vaddr *end,
		      vaddr *next)
{
	uint64_t word[BASE_READ / 8];
	uint64_t size;

	if (space_read(j->sp, addr, word, BASE_READ) != BASE_READ)
		return false;
	size = word[0];
	*end = addr + size;
	*next = word[1];
	return size && !(size & (BASE_ALIGN - 1)) && *end > addr &&
	       !(*next & (BASE_ALIGN - 1)) && word[3] > addr &&
	       word[3] <= *end && word[4] == *end - word[3] &&
	       space_mapped(j->sp, addr, size);
}

static size_t base_place(const struct jemalloc *j, vaddr addr)
{
	return BISECT(mid, 0, j->n_bases, j->bases[mid].end <= addr);
}

/* Sorted, without overlaps; with those that its links lead to. */
static void add_base(struct jemalloc *j, vaddr addr, size_t *budget)
{
	vaddr end, next;

	while (addr && *budget && read_base(j, addr, &end, &next)) {
		size_t at = base_place(j, addr);

		(*budget)--;
		if (at < j->n_bases && j->bases[at].start < end)
			return;
		MEM_PUSH(j->bases, j->n_bases, j->cap_bases) =
			(struct heap_range){ 0, 0 };
		memmove(&j->bases[at + 1], &j->bases[at],
			(j->n_bases - 1 - at) * sizeof(*j->bases));
		j->bases[at] = (struct heap_range){ addr, end };
		addr = next;
	}
}

/* The one that holds addr: it starts at a multiple of 2 MiB below. */
static void find_base(struct jemalloc *j, vaddr addr, size_t *budget)
{
	vaddr at = addr & ~(vaddr)(BASE_ALIGN - 1), end, next;
	size_t i = base_place(j, addr);

	if (i < j->n_bases && j->bases[i].start <= addr)
		return;
	for (; at && *budget; at -= BASE_ALIGN) {
		(*budget)--;
		if (!space_seg(j->sp, at))
			return;
		if (read_base(j, at, &end, &next) && end > addr) {
			add_base(j, at, budget);
			return;
		}
	}
}

void je_find_bases(struct jemalloc *j)
{
	size_t budget = MAX_BASE_STEPS;

	for (size_t i = 0; i < j->n_leaves; i++)
		find_base(j, j->leaves[i], &budget);
	for (size_t i = 0; i < j->n_extents; i++)
		find_base(j, j->extents[i].addr, &budget);
}
