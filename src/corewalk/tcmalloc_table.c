/* SPDX-License-Identifier: MIT */
/*
 * tcmalloc's tables, by what must hold of them: the sizes of the classes are a
 * rising row, each central list carries the number of its class, and the
 * thread caches are a list whose length stands before its head.
 */
#include "corewalk/tcmalloc.h"

#include <string.h>

#include "base/mem.h"
#include "corewalk/words.h"

enum {
	BIGGEST = 262144,		/* size class, for every page size */
	MAX_SPAN_PAGES = 256,
	CACHE_BYTES = TC_MAX_CLASSES * TC_LIST_BYTES,
	LIST_SIZE_OFF = 24,		/* of the class's size, in a list */
	CENTRAL_CLASS_OFF = 8,
	CENTRAL_EMPTY = 16, CENTRAL_NONEMPTY = 64,	/* list heads in one */
	PREV_AFTER_NEXT = 8,
	COUNT_BEFORE_HEAD = 8,
	MAX_CACHES = 1 << 20,
	MAX_MODULE = 64 << 20,		/* bytes of it that are searched */
};

/* ---- size classes ---- */

/* int32 size[128], 8-aligned uint64 pages[128]; before it what is moved. */
static bool read_table(struct tcmalloc *t, const uint8_t *p, uint64_t off,
		       uint64_t n)
{
	int32_t size[TC_MAX_CLASSES];
	uint64_t pages[TC_MAX_CLASSES];
	uint64_t behind = ((off + sizeof(size) + 7) & ~UINT64_C(7));
	unsigned classes = 1;

	if (behind + sizeof(pages) > n || off < sizeof(size))
		return false;
	memcpy(size, p + off, sizeof(size));
	while (classes < TC_MAX_CLASSES && size[classes] > size[classes - 1])
		classes++;
	if (size[classes - 1] != BIGGEST)
		return false;
	memcpy(pages, p + behind, sizeof(pages));
	for (unsigned c = 1; c < classes; c++)
		if (!pages[c] || pages[c] > MAX_SPAN_PAGES ||
		    pages[c] << t->shift < (uint64_t)size[c])
			return false;
	if (pages[0])
		return false;
	t->n_classes = classes;
	memcpy(t->size, size, sizeof(size));
	memcpy(t->to_move, p + off - sizeof(size), sizeof(size));
	return true;
}

static bool find_sizes_in(struct tcmalloc *t, const uint8_t *p, uint64_t n)
{
	for (uint64_t i = 0; i + 16 <= n; i += 4) {
		int32_t first[4];

		memcpy(first, p + i, sizeof(first));
		if (!first[0] && first[1] == 8 && first[2] == 16 &&
		    (first[3] == 24 || first[3] == 32) &&
		    read_table(t, p, i, n))
			return true;
	}
	return false;
}

static void find_sizes(struct tcmalloc *t)
{
	size_t n = (size_t)min_u64(t->hi - t->lo, MAX_MODULE);
	uint8_t *copy = mem_zalloc(n);

	space_read(t->sp, t->lo, copy, n);
	find_sizes_in(t, copy, n);
	free(copy);
}

/* ---- central lists ---- */

/* Where the array is if the list head of a span's class is at addr. */
static vaddr central_of(struct tcmalloc *t, const struct tc_span *span,
			vaddr addr)
{
	static const unsigned heads[] = { CENTRAL_EMPTY, CENTRAL_NONEMPTY };
	uint64_t class;

	if (addr < t->lo || addr >= t->hi)
		return 0;
	for (size_t i = 0; i < countof(heads); i++)
		if (space_u64(t->sp, addr - heads[i] + CENTRAL_CLASS_OFF,
			      &class) && class == span->size_class)
			return addr - heads[i] -
				(vaddr)class * TC_CENTRAL_BYTES;
	return 0;
}

/* All that vote must agree; the majority if a few do not. */
static void find_central(struct tcmalloc *t)
{
	unsigned against = 0;

	for (size_t i = 0; i < t->n_spans; i++) {
		const struct tc_span *span = &t->spans[i];
		vaddr ends[2] = { span->next, span->prev };

		if (span->where != TC_IN_USE || !span->size_class)
			continue;
		for (int k = 0; k < 2; k++) {
			vaddr at = central_of(t, span, ends[k]);

			if (!at)
				continue;
			if (at == t->central) {
				t->central_votes++;
			} else if (against >= t->central_votes) {
				t->central = at;
				t->central_votes = 1;
				against = 0;
			} else {
				against++;
			}
		}
	}
}

/* ---- thread caches ---- */

static bool is_cache(struct tcmalloc *t, vaddr addr)
{
	const vaddr second_size = addr + TC_LIST_BYTES + LIST_SIZE_OFF;
	uint8_t lists[CACHE_BYTES];
	uint32_t second;

	/* Most are none: one word tells. */
	if (addr & 7 || !space_u32(t->sp, second_size, &second) ||
	    second != t->size[1])
		return false;
	if (space_read(t->sp, addr, lists, sizeof(lists)) != sizeof(lists))
		return false;
	for (unsigned c = 0; c < t->n_classes; c++) {
		uint32_t size;

		memcpy(&size, lists + c * TC_LIST_BYTES + LIST_SIZE_OFF,
		       sizeof(size));
		if (size != t->size[c])
			return false;
	}
	return true;
}

/* How many caches follow from the first on; 0 if prev does not lead back. */
static size_t chain_length(struct tcmalloc *t, vaddr first, unsigned next_off,
			   uint32_t want)
{
	vaddr cache = first, before = 0;
	size_t n = 0;

	while (cache) {
		vaddr prev;

		if (n == want || !is_cache(t, cache) ||
		    !space_u64(t->sp, cache + next_off + PREV_AFTER_NEXT,
			       &prev) || prev != before)
			return 0;
		before = cache;
		n++;
		if (!space_u64(t->sp, cache + next_off, &cache))
			return 0;
	}
	return n;
}

static void keep_caches(struct tcmalloc *t, vaddr first, unsigned next_off,
			size_t n)
{
	vaddr cache = first;

	t->n_caches = 0;
	t->cache_next = next_off;
	for (size_t i = 0; i < n; i++) {
		MEM_PUSH(t->caches, t->n_caches, t->cap_caches) = cache;
		if (!space_u64(t->sp, cache + next_off, &cache))
			break;
	}
}

/*
 * Several words point to a cache: the list's head, the one to be robbed next,
 * the allocator's free list.  The head is the one with its count before it.
 */
static void find_caches(struct tcmalloc *t)
{
	static const unsigned next_offs[] = { 4128, 4144 };
	uint64_t budget = min_u64(t->hi - t->lo, MAX_MODULE);
	vaddr at, first;
	struct words w;

	words_init(&w, t->sp, t->lo, t->hi, WORDS_BUFFER, &budget);
	while (words_next(&w, &at, &first)) {
		uint32_t count;

		if (first & 7 || (first >= t->lo && first < t->hi) ||
		    !space_u32(t->sp, at - COUNT_BEFORE_HEAD, &count) ||
		    !count || count > MAX_CACHES || !is_cache(t, first))
			continue;
		for (size_t i = 0; i < countof(next_offs); i++)
			if (count > t->n_caches &&
			    chain_length(t, first, next_offs[i], count) ==
			    count)
				keep_caches(t, first, next_offs[i], count);
	}
}

void tc_find_tables(struct tcmalloc *t)
{
	find_sizes(t);
	if (!t->n_classes)
		return;
	find_central(t);
	find_caches(t);
}
