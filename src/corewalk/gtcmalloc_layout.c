/* SPDX-License-Identifier: MIT */
/*
 * How google/tcmalloc lays out a span changes every few months, and nowhere
 * is written which way a program has it.  So all spans are decoded in every
 * way that is known, and the one way that explains all of them is taken: each
 * span of objects has as many free ones as its counter says, each sampled
 * block has a record that leads back, and no bit is set that means nothing.
 */
#include "corewalk/gtcmalloc.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

enum {
	FLAGS_AT = 23,			/* the byte of layouts without bits */
	FLAGS_PLACE = 3 << 4,		/* not 0: free, in the page heap */
	FLAGS_SAMPLED = 1 << 6,
	CACHE_AT = 22,
	SMALL_PAGES = 64,		/* a span of fewer is not large */
	LIST_END = 0xffff,
	MAX_INDICES = 1 << 16,
	TOLERATED = 64,			/* of so many spans, one unexplained */
};

/* src/span.h of upstream; bits count from behind the page number. */
static const struct gtc_layout layouts[] = {
	{ "2021 to March 2024", .allocated = 16, .embed = 18, .freelist = 20,
	  .cache_mask = 255, .first = 32, .pages = GTC_PAGES_NEXT, .list = 24,
	  .list_bytes = 8, .bitmap_bits = 64, .record = 24 },
	{ "March to September 2024", .embed = 16, .freelist = 18,
	  .allocated = 20, .cache_mask = 255, .first = 24,
	  .pages = GTC_PAGES_NEXT, .list = 40, .list_bytes = 24,
	  .bitmap_bits = 64, .record = 40 },
	{ "September 2024 to April 2025", .embed = 16, .freelist = 18,
	  .allocated = 20, .cache_mask = 15, .first = 24,
	  .pages = GTC_PAGES_LOW6, .list = 40, .list_bytes = 16,
	  .bitmap_bits = 64, .record = 40, .large_bit = 26,
	  .sampled_bit = 27 },
	{ "May to August 2025", .embed = 16, .freelist = 18,
	  .allocated = 20, .cache_mask = 15, .first = 24,
	  .pages = GTC_PAGES_LOW6, .list = 40, .list_bytes = 16,
	  .bitmap_bits = 128, .record = 40, .large_bit = 26,
	  .sampled_bit = 27 },
	{ "August to December 2025", .embed = 16, .freelist = 18,
	  .allocated = 20, .cache_mask = 15, .first = 24,
	  .pages = GTC_PAGES_LOW6, .list = 40, .list_bytes = 16,
	  .bitmap_bits = 128, .record = 40, .large_bit = 25,
	  .sampled_bit = 26 },
	{ "December 2025 to March 2026", .embed = 16, .freelist = 18,
	  .allocated = 20, .cache_mask = 15, .first = 24,
	  .pages = GTC_PAGES_LOW6, .list = 40, .list_bytes = 16,
	  .bitmap_bits = 128, .record = 40, .large_bit = 23,
	  .sampled_bit = 24 },
	{ "March to July 2026", .embed = 16, .freelist = 18,
	  .allocated = 20, .cache_mask = 15, .first = 24,
	  .pages = GTC_PAGES_LOW6, .list = 40, .list_bytes = 16,
	  .bitmap_bits = 128, .record = 40, .large_bit = 24,
	  .sampled_bit = 25 },
	{ "6 to 28 July 2026", .embed = 16, .freelist = 18,
	  .allocated = 20, .cache_mask = 255, .first = 24,
	  .pages = GTC_PAGES_LOW6_TIME, .list = 40, .list_bytes = 24,
	  .bitmap_bits = 192, .record = 40, .large_bit = 24,
	  .sampled_bit = 25 },
	{ "July to August 2026", .embed = 16, .freelist = 18,
	  .allocated = 20, .cache_mask = 255, .first = 24,
	  .pages = GTC_PAGES_LOW6_LIST, .list = 40, .list_bytes = 24,
	  .bitmap_bits = 192, .record = 48, .large_bit = 24,
	  .sampled_bit = 25 },
	{ "11 August 2026", .embed = 16, .freelist = 18,
	  .allocated = 20, .cache_mask = 255, .first = 24,
	  .pages = GTC_PAGES_LOW6_LIST, .list = 40, .list_bytes = 24,
	  .bitmap_bits = 192, .record = 48, .large_bit = 25,
	  .sampled_bit = 26 },
	{ "August 2026 on", .embed = 16, .freelist = 18,
	  .allocated = 20, .cache_mask = 255, .first = 24,
	  .pages = GTC_PAGES_HIGH6, .list = 40, .list_bytes = 24,
	  .bitmap_bits = 192, .record = 48, .sampled_bit = 1 },
};

/* ---- a span ---- */

static uint64_t bits(uint64_t word, unsigned at, unsigned n)
{
	return word >> at & ((UINT64_C(1) << n) - 1);
}

/* Pages of a span of a layout with bits; 0 if it cannot be. */
static uint64_t count_pages(const struct gtc_layout *l, const uint8_t *raw,
			    uint64_t high, bool large, bool whole)
{
	uint64_t next = load_u64(raw + l->first + 8);
	uint64_t list = load_u64(raw + l->list), n;

	if (l->pages == GTC_PAGES_HIGH6)
		n = whole ? list : bits(high, 3, 6);
	else if (l->pages == GTC_PAGES_LOW6_LIST)
		n = whole ? list : bits(next, 0, 6);
	else if (l->pages == GTC_PAGES_LOW6_TIME)
		n = whole ? next : bits(next, 0, 6);
	else	/* Nothing else is in that word. */
		n = whole || next < SMALL_PAGES ? next : 0;
	return large && n < SMALL_PAGES ? 0 : n;
}

/* The flags and the pages; false if it can be no span. */
static bool decode_size(const struct gtcmalloc *t, const struct gtc_layout *l,
			const uint8_t *raw, uint64_t *pages, bool *sampled)
{
	unsigned page_bits = 48 - t->map.shift;
	uint64_t high = load_u64(raw + l->first) >> page_bits, known;
	bool large;

	if (l->pages == GTC_PAGES_NEXT) {
		*sampled = raw[FLAGS_AT] & FLAGS_SAMPLED;
		*pages = load_u64(raw + l->first + 8);
		return !high;
	}
	known = UINT64_C(1) << l->large_bit | UINT64_C(1) << l->sampled_bit;
	if (l->pages == GTC_PAGES_HIGH6)
		known |= bits(UINT64_MAX, 2, 7) << 2;
	large = bits(high, l->large_bit, 1);
	*sampled = bits(high, l->sampled_bit, 1);
	*pages = count_pages(l, raw, high, large, large || *sampled);
	return !(high & ~known);
}

/* False, if this layout does not explain what is there. */
static bool decode(const struct gtcmalloc *t, const struct gtc_layout *l,
		   const struct gtc_head *head, struct gtc_span *ret)
{
	uint8_t raw[GTC_SPAN_BYTES] = { 0 };
	uint64_t pages;
	bool sampled;

	if (l->first != t->map.first)
		return false;
	space_read(t->sp, head->span, raw, sizeof(raw));
	*ret = (struct gtc_span){
		.addr = head->span, .start = gtc_addr(t, head->page),
		.size_class = head->size_class,
		.allocated = load_u16(raw + l->allocated),
		.embed = load_u16(raw + l->embed),
		.freelist = load_u16(raw + l->freelist),
		.n_cache = raw[CACHE_AT] & l->cache_mask,
	};
	if (!decode_size(t, l, raw, &pages, &sampled) || !pages ||
	    pages >> (48 - t->map.shift) ||
	    (sampled && ret->size_class))
		return false;
	ret->bytes = pages << t->map.shift;
	if (sampled)
		ret->record = load_u64(raw + l->record);
	ret->in_page_heap = l->pages == GTC_PAGES_NEXT &&
		raw[FLAGS_AT] & FLAGS_PLACE;
	ret->sampled = sampled;
	memcpy(ret->list, raw + l->list, l->list_bytes);
	return space_mapped(t->sp, ret->start, ret->bytes);
}

/* ---- its free objects ---- */

struct indices {
	uint16_t *at;
	size_t n;
	uint64_t size, capacity;
};

/* Lists have offsets in units of 8 bytes. */
static bool add_offset(struct indices *x, uint64_t offset)
{
	uint64_t off = offset * 8;

	if (off % x->size || off / x->size >= x->capacity ||
	    x->n >= x->capacity)
		return false;
	x->at[x->n++] = (uint16_t)(off / x->size);
	return true;
}

static bool add_bitmap(struct indices *x, const struct gtc_layout *l,
		       const struct gtc_span *s)
{
	for (unsigned i = 0; i < l->bitmap_bits; i++) {
		if (!(s->list[i / 8] >> (i & 7) & 1))
			continue;
		if (i >= x->capacity)
			return false;
		x->at[x->n++] = (uint16_t)i;
	}
	return true;
}

/* Free objects hold the offsets of others: host by host. */
static bool add_hosts(const struct gtcmalloc *t, struct indices *x,
		      const struct gtc_span *s)
{
	unsigned full = (unsigned)(x->size / 2 - 1), embed = s->embed;
	uint16_t host = s->freelist, link;

	while (host != LIST_END) {
		vaddr at = s->start + (vaddr)host * 8;

		if (embed > full || !add_offset(x, host) ||
		    !space_u16(t->sp, at, &link))
			return false;
		for (unsigned i = 1; i <= embed; i++) {
			uint16_t offset;

			if (!space_u16(t->sp, at + 2 * i, &offset) ||
			    !add_offset(x, offset))
				return false;
		}
		host = link;
		embed = full;
	}
	return true;
}

static bool span_free(const struct gtcmalloc *t, const struct gtc_layout *l,
		      const struct gtc_span *s, struct indices *x)
{
	bool ok = true;

	x->n = 0;
	x->capacity = gtc_capacity(t, s);
	if (!x->capacity || x->capacity >= MAX_INDICES)
		return false;
	/* A lone object has no list: it is out, or in a cache. */
	if (x->capacity == 1)
		return true;
	x->size = t->size[s->size_class];
	if (x->size >= (UINT64_C(1) << t->map.shift) / l->bitmap_bits) {
		ok = add_bitmap(x, l, s);
	} else {
		ok = s->n_cache <= l->list_bytes / 2;
		for (unsigned i = 0; ok && i < s->n_cache; i++)
			ok = add_offset(x, load_u16(s->list + 2 * i));
		ok = ok && add_hosts(t, x, s);
	}
	return ok && x->capacity - x->n == s->allocated;
}

bool gtc_span_free(const struct gtcmalloc *t, const struct gtc_span *s,
		   uint16_t *ret, size_t *ret_n)
{
	struct indices x = { .at = ret };
	bool ok = span_free(t, t->layout, s, &x);

	*ret_n = x.n;
	return ok;
}

/* ---- the election ---- */

struct score {
	const struct gtc_layout *layout;
	size_t spans, faults;
	size_t records;		/* of sampled blocks, that lead back */
	uint64_t hash;		/* of all that was decoded */
};

static void hash(struct score *score, uint64_t word)
{
	score->hash = (score->hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	score->hash ^= score->hash >> 29;
}

static bool explained(const struct gtcmalloc *t, struct score *score,
		      const struct gtc_head *head, struct gtc_span *s,
		      uint16_t *indices)
{
	struct indices x = { .at = indices };

	if (!decode(t, score->layout, head, s) ||
	    (s->sampled && !gtc_record_fits(t, s)) ||
	    (s->size_class && !span_free(t, score->layout, s, &x)))
		return false;
	score->records += s->sampled;
	hash(score, s->bytes);
	hash(score, s->record);
	for (size_t i = 0; i < x.n; i++)
		hash(score, x.at[i]);
	return true;
}

/*
 * Spans do not overlap: go from one to the next.  One that begins in another
 * is a fault as well.  Faults beyond limit are not counted.
 */
static void judge(struct gtcmalloc *t, struct score *score, size_t limit,
		  uint16_t *indices)
{
	uint64_t next = 0;

	for (size_t i = 0; i < t->n_heads && score->faults < limit; i++) {
		const struct gtc_head *head = &t->heads[i];
		struct gtc_span s;

		score->spans++;
		if (head->page < next ||
		    !explained(t, score, head, &s, indices))
			score->faults++;
		else
			next = head->page + (s.bytes >> t->map.shift);
	}
}

/* A span with a damaged list still is one, if its size is plausible. */
static void keep_spans(struct gtcmalloc *t)
{
	uint64_t next = 0;

	for (size_t i = 0; i < t->n_heads; i++) {
		const struct gtc_head *head = &t->heads[i];
		struct gtc_span s;

		if (head->page < next || !decode(t, t->layout, head, &s))
			continue;
		next = head->page + (s.bytes >> t->map.shift);
		if (s.in_page_heap)
			continue;
		s.readable = space_readable(t->sp, s.start, s.bytes);
		t->n_sampled += s.sampled;
		MEM_PUSH(t->spans, t->n_spans, t->cap_spans) = s;
	}
}

static void refuse(struct gtcmalloc *t, const struct score *best,
		   const struct score *rival)
{
	if (best->faults == rival->faults && best->hash != rival->hash)
		snprintf(t->why, sizeof(t->why), "the layouts of %s and of %s "
			 "explain its spans equally well, and differently",
			 best->layout->era, rival->layout->era);
	else
		snprintf(t->why, sizeof(t->why), "no known layout explains "
			 "its %zu spans; the best, of %s, fails on %zu",
			 best->spans, best->layout->era, best->faults);
}

static bool good(const struct score *s)
{
	return s->layout && s->faults <= s->spans / TOLERATED;
}

/* That a record leads back is no chance: it was found where it should be. */
static bool better(const struct score *a, const struct score *b)
{
	return a->faults < b->faults ||
		(a->faults == b->faults && a->records > b->records);
}

void gtc_elect(struct gtcmalloc *t)
{
	uint16_t *indices = mem_alloc(MAX_INDICES * sizeof(*indices));
	struct score best = { .faults = SIZE_MAX }, rival = best;

	for (size_t i = countof(layouts); i--;) {
		struct score score = { .layout = &layouts[i] };

		judge(t, &score, good(&best) ? 2 * best.faults + 1 +
		      t->n_heads / TOLERATED : SIZE_MAX, indices);
		if (better(&score, &best)) {
			rival = best;
			best = score;
		} else if (better(&score, &rival) &&
			   (score.faults > best.faults ||
			    score.hash != best.hash)) {
			rival = score;
		}
	}
	free(indices);
	t->n_faults = best.faults;
	t->rival_faults = rival.layout ? rival.faults : t->n_heads;
	if (!good(&best) || (rival.faults <= 2 * best.faults &&
			     rival.records >= best.records)) {
		refuse(t, &best, &rival);
		return;
	}
	t->layout = best.layout;
	keep_spans(t);
	gtc_elect_record(t);
}
