/* SPDX-License-Identifier: MIT */
/*
 * What gperftools' tcmalloc has for a heap profile.  A block that its sampler
 * picked is a span of its own, marked so, with a record where others have
 * their free objects: how much was asked for, and by whom.  These spans are
 * also a ring, whose head lies in the module.  Records of the same form, one
 * for each time the heap grew, are a list; what they add up to is what came
 * from the system, and no other list of the module does.
 */
#include "corewalk/tcmalloc.h"

#include "base/mem.h"
#include "base/sort.h"
#include "corewalk/words.h"

enum {
	MAX_DEPTH = 31,			/* src/stacktrace of 2.8 to 2.18 */
	RECORD_WORDS = 2 + MAX_DEPTH,	/* bytes, depth, return addresses */
	LIST_DEPTH = MAX_DEPTH - 1,	/* of a list: the last word links */
	SPAN_NEXT = 16,
	GROWTH_BUDGET = 1 << 20,	/* records looked at, in vain or not */
	LARGEST_COUNTED = 262144,	/* above, the request counts */
	/* The first gap is drawn before the rate has been read: sampler.cc. */
	BLIND = 16 << 20,
};

/* ---- sampled blocks ---- */

static uint64_t class_size(const struct tcmalloc *t, uint64_t requested)
{
	for (unsigned c = 1; c < t->n_classes; c++)
		if (t->size[c] >= requested)
			return t->size[c];
	return 0;
}

/* False if it is no record of a block in this span. */
static bool add_sampled(const struct tcmalloc *t, const struct tc_span *s,
			struct heap_profile *p)
{
	uint64_t word[RECORD_WORDS], size;
	struct heap_sample sample = { .addr = s->start };

	if (s->objects & 7 || space_read(t->sp, s->objects, word,
					 sizeof(word)) != sizeof(word) ||
	    word[0] > s->bytes || word[1] > MAX_DEPTH)
		return false;
	sample.requested = word[0];
	size = word[0] <= LARGEST_COUNTED ? class_size(t, word[0]) : 0;
	sample.allocated = size ? size : s->bytes;
	sample.length = max_u64(size ? size : word[0], 1);
	heap_add_sample(p, &sample, word + 2, (size_t)word[1]);
	return true;
}

/* How many of them follow from the head of their ring; 0 without one. */
static size_t ring_length(const struct tcmalloc *t, const vaddr *spans,
			  size_t n, vaddr head)
{
	vaddr at;
	size_t found = 0;

	if (!space_u64(t->sp, head + SPAN_NEXT, &at))
		return 0;
	while (at != head && found < n && FIND(spans, n, at)) {
		found++;
		if (!space_u64(t->sp, at + SPAN_NEXT, &at))
			return 0;
	}
	return at == head ? found : 0;
}

/* The head is where one's neighbour is that is none of them. */
static vaddr find_head(const struct tcmalloc *t, const vaddr *spans, size_t n)
{
	for (size_t i = 0; i < t->n_spans; i++) {
		const struct tc_span *s = &t->spans[i];

		if (!s->sampled || s->where != TC_IN_USE)
			continue;
		if (s->next >= t->lo && s->next < t->hi &&
		    !FIND(spans, n, s->next))
			return s->next;
	}
	return 0;
}

static void check_ring(const struct tcmalloc *t, struct heap *heap,
		       uint32_t arena, size_t bad)
{
	vaddr *spans = NULL, head;
	size_t n = 0, cap = 0, found;

	for (size_t i = 0; i < t->n_spans; i++)
		if (t->spans[i].sampled && t->spans[i].where == TC_IN_USE)
			MEM_PUSH(spans, n, cap) = t->spans[i].addr;
	SORT(spans, n, num_compare_u64);
	head = find_head(t, spans, n);
	found = head ? ring_length(t, spans, n, head) : 0;
	if (found != n || bad) {
		heap_note(heap, "tcmalloc-sampled", arena, head, 0,
			  "%zu spans are marked as samples, %zu are on the "
			  "list of them, %zu have no record: the heap "
			  "profile may lack some", n, found, bad);
		heap_note_is_minor(heap);
	}
	free(spans);
}

static void add_live(const struct tcmalloc *t, struct heap *heap,
		     uint32_t allocator, uint32_t arena)
{
	struct heap_profile *p = NULL;
	size_t bad = 0;

	for (size_t i = 0; i < t->n_spans; i++) {
		const struct tc_span *s = &t->spans[i];

		if (!s->sampled || s->where != TC_IN_USE || s->size_class)
			continue;
		if (!p) {
			p = heap_add_profile(heap, allocator,
					     HEAP_PROFILE_LIVE);
			p->module = t->module;
			p->blind = BLIND;
		}
		bad += !add_sampled(t, s, p);
	}
	if (p)
		check_ring(t, heap, arena, bad);
}

/* ---- growth ---- */

/* The next record and the bytes of this one; false if it is none. */
static bool read_growth(const struct tcmalloc *t, vaddr at,
			uint64_t word[RECORD_WORDS])
{
	return !(at & 7) && space_read(t->sp, at, word, RECORD_WORDS * 8) ==
		RECORD_WORDS * 8 && word[0] &&
		!(word[0] & ((UINT64_C(1) << t->shift) - 1)) &&
		word[1] <= LIST_DEPTH;
}

/* Each record has a page at least, so that a ring ends too. */
static bool adds_up(const struct tcmalloc *t, vaddr at, uint64_t *budget)
{
	uint64_t word[RECORD_WORDS], sum = 0;

	while (at && *budget) {
		--*budget;
		if (!read_growth(t, at, word))
			return false;
		sum += word[0];
		if (sum > t->stats.system_bytes || sum < word[0])
			return false;
		at = word[RECORD_WORDS - 1];
	}
	return !at && sum == t->stats.system_bytes;
}

static void add_growth(const struct tcmalloc *t, struct heap *heap,
		       uint32_t allocator, vaddr at)
{
	struct heap_profile *p = heap_add_profile(heap, allocator,
						  HEAP_PROFILE_GROWTH);
	uint64_t word[RECORD_WORDS];

	p->module = t->module;
	p->rate = 1;
	for (; at && read_growth(t, at, word); at = word[RECORD_WORDS - 1]) {
		struct heap_sample sample = {
			.requested = word[0], .allocated = word[0],
			.length = word[0],
		};

		heap_add_sample(p, &sample, word + 2, (size_t)word[1]);
	}
}

static void find_growth(const struct tcmalloc *t, struct heap *heap,
			uint32_t allocator)
{
	struct words *w = mem_alloc(sizeof(*w));
	uint64_t bytes = 64 * MIB, steps = GROWTH_BUDGET;
	vaddr at, first;

	words_init(w, t->sp, t->lo, t->hi, WORDS_BUFFER, &bytes);
	while (t->stats.system_bytes && steps && words_next(w, &at, &first)) {
		if (first & 7 || (first >= t->lo && first < t->hi) ||
		    !adds_up(t, first, &steps))
			continue;
		add_growth(t, heap, allocator, first);
		break;
	}
	free(w);
}

void tc_add_profiles(const struct tcmalloc *t, struct heap *heap,
		     uint32_t allocator, uint32_t arena)
{
	add_live(t, heap, allocator, arena);
	find_growth(t, heap, allocator);
}
