/* SPDX-License-Identifier: MIT */
/*
 * What stands in front of google/tcmalloc's transfer caches: thread caches, or
 * slabs, one for each CPU, where the kernel lends its restartable sequences.
 * Thread caches are a chain whose lists start with objects of their class; the
 * word that leads to the slabs is the one where all that they hold are.
 */
#include "corewalk/gtcmalloc.h"

#include "base/mem.h"
#include "corewalk/words.h"

enum {
	MAX_LIST_BYTES = 32,
	NEXT_SEARCH = 64,	/* bytes behind the lists: where next may be */
	MAX_CACHES = 1 << 16,
	MAX_CACHED = 1 << 20,	/* objects of a class in a thread cache */
	BUDGET = 64 << 20,	/* bytes read of the module */
	LOOK_BUDGET = 256 << 20,	/* bytes read of what may be none */
	MIN_SHIFT = 12, MAX_SHIFT = 20,	/* of slabs */
	MAX_CPUS = 4096,
	MAX_GAP = 4,		/* damaged slabs before one that is not */
	LOCKED = 0xffff,	/* begin of a list that is being changed */
	SLOT = 8,
	BEGIN_WORDS = 4,	/* behind the slabs' word: may lead to begins */
};

/* ---- thread caches ---- */

bool gtc_cache_list(const struct gtcmalloc *t, vaddr cache, unsigned class,
		    struct gtc_list *ret)
{
	vaddr at = cache + (vaddr)class * t->list_bytes;
	uint32_t n;

	*ret = (struct gtc_list){ .linked = true };
	if (!space_u64(t->sp, at, &ret->at) || !space_u32(t->sp, at + 8, &n))
		return false;
	ret->n = n;
	return !ret->at == !n && n <= MAX_CACHED &&
		(!n || gtc_is_object(t, ret->at, class));
}

/*
 * Classes with objects; -1 if it is no cache.  Of many some may be damaged.
 */
static int count_lists(struct gtcmalloc *t, vaddr cache, uint64_t *budget)
{
	int good = 0, bad = 0;
	uint64_t zero;

	/* Class 0 never has objects: this alone tells of most. */
	if (cache & 7 || *budget < (uint64_t)t->n_classes * MAX_LIST_BYTES ||
	    !space_u64(t->sp, cache, &zero) || zero)
		return -1;
	for (unsigned c = 0; c < t->n_classes && bad <= 2; c++) {
		struct gtc_list list;

		*budget -= 16;
		if (!gtc_cache_list(t, cache, c, &list))
			bad++;
		else
			good += list.n != 0;
	}
	return bad * 8 <= good ? good : -1;
}

/* How many caches follow, both ways; 0 if it is no chain. */
static size_t chain_length(struct gtcmalloc *t, vaddr first, unsigned next_off,
			   uint64_t *budget)
{
	vaddr cache = first, before = 0;
	size_t n = 0;

	while (cache) {
		vaddr prev;

		if (n == MAX_CACHES || count_lists(t, cache, budget) < 0 ||
		    !space_u64(t->sp, cache + next_off + 8, &prev) ||
		    prev != before)
			return 0;
		before = cache;
		n++;
		if (!space_u64(t->sp, cache + next_off, &cache))
			return 0;
	}
	return n;
}

static void keep_caches(struct gtcmalloc *t, vaddr cache, unsigned next_off,
			size_t n)
{
	t->n_caches = 0;
	while (n--) {
		MEM_PUSH(t->caches, t->n_caches, t->cap_caches) = cache;
		if (!space_u64(t->sp, cache + next_off, &cache))
			break;
	}
}

static void try_cache(struct gtcmalloc *t, vaddr first, uint64_t *budget)
{
	for (unsigned bytes = 24; bytes <= MAX_LIST_BYTES; bytes += 8) {
		unsigned was = t->list_bytes, end = t->n_classes * bytes;
		bool better = false;

		t->list_bytes = bytes;
		if (count_lists(t, first, budget) < 1) {
			t->list_bytes = was;
			continue;
		}
		for (unsigned off = end; off < end + NEXT_SEARCH; off += 8) {
			size_t n = chain_length(t, first, off, budget);

			if (n > t->n_caches) {
				keep_caches(t, first, off, n);
				better = true;
			}
		}
		if (!better)
			t->list_bytes = was;
	}
}

/* ---- slabs ---- */

bool gtc_slab_list(const struct gtcmalloc *t, uint32_t cpu, unsigned class,
		   struct gtc_list *ret)
{
	vaddr slab = t->slabs + ((vaddr)cpu << t->slab_shift);
	vaddr header = slab + (vaddr)class * t->slab_header;
	uint16_t current, end, begin = 0;

	*ret = (struct gtc_list){ 0 };
	if (!space_u16(t->sp, header, &current) ||
	    !space_u16(t->sp, header + 2, &end))
		return false;
	if (!current && !end)
		return true;
	if (t->slab_header == 4 ?
	    !space_u16(t->sp, t->begins + 2 * class, &begin) :
	    !space_u16(t->sp, header + 4, &begin) ||
	    !space_u16(t->sp, header + 6, &end))
		return false;
	if (t->slab_header == 8 && begin == LOCKED)
		return true;
	if (begin > current || current > end ||
	    (uint64_t)end * SLOT > UINT64_C(1) << t->slab_shift)
		return false;
	ret->at = slab + (vaddr)begin * SLOT;
	ret->n = current - begin;
	return true;
}

/* A CPU that has not run a thread yet has only zeros. */
static bool slab_untouched(const struct gtcmalloc *t, uint32_t cpu,
			   uint64_t *budget)
{
	vaddr at = t->slabs + ((vaddr)cpu << t->slab_shift);
	uint64_t word;

	for (unsigned i = 0; i < t->n_classes * t->slab_header; i += 8) {
		*budget -= min_u64(*budget, 8);
		if (!space_u64(t->sp, at + i, &word) || word)
			return false;
	}
	return true;
}

/* Its objects; -1 if it is no slab.  Of many some may be damaged. */
static int64_t count_slab(const struct gtcmalloc *t, uint32_t cpu,
			  uint64_t *budget)
{
	int64_t good = 0, bad = 0;

	for (unsigned c = 1; c < t->n_classes; c++) {
		struct gtc_list list;
		vaddr object;
		uint64_t i = 0;

		if (!gtc_slab_list(t, cpu, c, &list)) {
			bad++;
			continue;
		}
		while (i < list.n && *budget > 8 &&
		       space_u64(t->sp, list.at + SLOT * i, &object) &&
		       gtc_is_object(t, object, c)) {
			i++;
			*budget -= 8;
		}
		bad += i < list.n;
		good += (int64_t)i;
		if (bad > 2 && bad * 8 > good)
			return -1;
	}
	return bad * 8 <= good ? good : -1;
}

/*
 * All CPUs' objects, with the number of regions to look at; a few that are
 * damaged do not end them if others follow.
 */
static int64_t count_slabs(struct gtcmalloc *t, uint64_t *budget)
{
	int64_t all = 0;
	unsigned gap = 0;

	t->n_slabs = 0;
	for (uint32_t cpu = 0; cpu < MAX_CPUS && gap <= MAX_GAP && *budget;
	     cpu++) {
		int64_t n;

		if (!space_mapped(t->sp, t->slabs +
				  ((vaddr)cpu << t->slab_shift),
				  UINT64_C(1) << t->slab_shift))
			break;
		if (slab_untouched(t, cpu, budget))
			continue;
		n = count_slab(t, cpu, budget);
		if (n <= 0) {
			gap++;
			continue;
		}
		gap = 0;
		all += n;
		t->n_slabs = cpu + 1;
	}
	return all;
}

struct slabs {
	vaddr slabs, begins;
	uint32_t n;
	unsigned shift, header;
	int64_t objects;
};

static void try_header(struct gtcmalloc *t, vaddr slabs, unsigned shift,
		       unsigned header, vaddr begins, struct slabs *best,
		       uint64_t *budget)
{
	int64_t n;

	t->slabs = slabs;
	t->slab_shift = shift;
	t->slab_header = header;
	t->begins = begins;
	n = count_slabs(t, budget);
	if (n > best->objects)
		*best = (struct slabs){ slabs, begins, t->n_slabs, shift,
					header, n };
}

/* The word has the address, and in its low bits the shift. */
static void try_slabs(struct gtcmalloc *t, vaddr at, uint64_t word,
		      struct slabs *best, uint64_t *budget)
{
	unsigned shift = word & 0xff;
	vaddr slabs = word & ~UINT64_C(0xff), begins;

	if (shift < MIN_SHIFT || shift > MAX_SHIFT || slabs & 0xfff ||
	    slabs >> 47 || !space_mapped(t->sp, slabs, UINT64_C(1) << shift))
		return;
	try_header(t, slabs, shift, 8, 0, best, budget);
	for (int i = 1; i <= BEGIN_WORDS; i++)
		if (space_u64(t->sp, at + 8 * i, &begins) && !(begins & 1) &&
		    begins && space_mapped(t->sp, begins, 2 * t->n_classes))
			try_header(t, slabs, shift, 4, begins, best, budget);
}

void gtc_find_fronts(struct gtcmalloc *t)
{
	struct words *w;
	uint64_t budget = BUDGET, look = LOOK_BUDGET, word, last = 0;
	struct slabs best = { 0 };
	vaddr at;

	if (!t->n_classes)
		return;
	w = mem_alloc(sizeof(*w));
	words_init(w, t->sp, t->lo, t->hi, WORDS_BUFFER, &budget);
	while (words_next(w, &at, &word)) {
		if (word == last || word >> 47)
			continue;
		last = word;
		if (!(word & 7) && (word < t->lo || word >= t->hi))
			try_cache(t, word, &look);
		try_slabs(t, at, word, &best, &look);
	}
	free(w);
	t->slabs = best.slabs;
	t->slab_shift = best.shift;
	t->slab_header = best.header;
	t->begins = best.begins;
	t->n_slabs = best.n;
}
