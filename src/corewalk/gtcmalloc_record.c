/* SPDX-License-Identifier: MIT */
/*
 * google/tcmalloc's records of sampled blocks: one for each, with what was
 * asked for, by whom, when, and how many bytes it stands for.
 */
#include "corewalk/gtcmalloc.h"

#include "base/mem.h"

enum { MAX_DEPTH = 64 };

/* Upstream's internal/logging.h, StackTrace. */
static const struct gtc_record records[] = {
	/* Until 2025. */
	{ .proxy = 32, .requested = 40, .allocated = 64, .weight = 600,
	  .time = 608, .span_start = 624, .depth = 80 },
	/* 2025. */
	{ .proxy = 32, .requested = 40, .allocated = 56, .weight = 72,
	  .time = 80, .span_start = 96, .depth = 104 },
	/* January to July 2026. */
	{ .proxy = 32, .requested = 40, .allocated = 64, .weight = 80,
	  .time = 88, .span_start = 104, .depth = 112 },
	/* Since. */
	{ .requested = 32, .allocated = 56, .weight = 72,
	  .time = 80, .span_start = 96, .depth = 104 },
};

struct values {
	uint64_t proxy, requested, allocated, weight, span_start, depth;
	uint64_t seconds;
	uint32_t quarters;	/* of a nanosecond */
};

bool gtc_record_fits(const struct gtcmalloc *t, const struct gtc_span *s)
{
	for (size_t i = 0; i < countof(records); i++) {
		uint64_t start;

		if (!(s->record & 7) &&
		    space_u64(t->sp, s->record + records[i].span_start,
			      &start) && start == s->start)
			return true;
	}
	return false;
}

static bool read_record(const struct gtcmalloc *t, const struct gtc_span *s,
			const struct gtc_record *r, struct values *v)
{
	const struct gtc_span *of;
	vaddr at = s->record;

	*v = (struct values){ 0 };
	if (at & 7 || !space_u64(t->sp, at + r->requested, &v->requested) ||
	    !space_u64(t->sp, at + r->allocated, &v->allocated) ||
	    !space_u64(t->sp, at + r->weight, &v->weight) ||
	    !space_u64(t->sp, at + r->time, &v->seconds) ||
	    !space_u32(t->sp, at + r->time + 8, &v->quarters) ||
	    !space_u64(t->sp, at + r->span_start, &v->span_start) ||
	    !space_u64(t->sp, at + r->depth, &v->depth) ||
	    (r->proxy && !space_u64(t->sp, at + r->proxy, &v->proxy)))
		return false;
	of = v->proxy ? gtc_span_of(t, v->proxy) : NULL;
	return v->span_start == s->start && v->depth <= MAX_DEPTH &&
		v->requested <= v->allocated && v->allocated <= s->bytes &&
		(!v->proxy ||
		 (of && gtc_is_object(t, v->proxy, of->size_class)));
}

/* The kind that most sampled blocks have. */
void gtc_elect_record(struct gtcmalloc *t)
{
	size_t most = 0;

	for (size_t k = 0; k < countof(records); k++) {
		size_t n = 0;

		for (size_t i = 0; i < t->n_spans; i++) {
			struct values v;

			if (t->spans[i].sampled)
				n += read_record(t, &t->spans[i], &records[k],
						 &v);
		}
		if (n > most) {
			t->record = &records[k];
			most = n;
		}
	}
}

uint64_t gtc_sampled_bytes(const struct gtcmalloc *t,
			   const struct gtc_span *s)
{
	struct values v;

	return s->sampled && t->record &&
		read_record(t, s, t->record, &v) && v.allocated ?
		round_up(v.allocated, 8) : s->bytes;
}

static void add_sample(const struct gtcmalloc *t, struct heap_profile *p,
		       const struct gtc_span *s, const struct gtc_record *r,
		       const struct values *v)
{
	vaddr pcs[MAX_DEPTH];
	size_t n = 0;
	uint64_t ns = 0;

	while (n < v->depth &&
	       space_u64(t->sp, s->record + r->depth + 8 + 8 * n, &pcs[n]))
		n++;
	if (mul_ok(v->seconds, UINT64_C(1000000000), &ns))
		ns += v->quarters / 4;
	heap_add_sample(p, &(struct heap_sample){
		.addr = s->start, .requested = v->requested,
		.allocated = v->allocated,
		.length = v->requested + 1,
		.weight = v->weight, .born_ns = ns }, pcs, n);
}

vaddr *gtc_add_profile(const struct gtcmalloc *t, struct heap *heap,
		       uint32_t allocator, uint32_t arena, size_t *ret_n)
{
	const struct gtc_record *r = t->record;
	struct heap_profile *p;
	vaddr *proxies = NULL;
	size_t cap = 0, bad = 0;

	*ret_n = 0;
	if (!t->n_sampled)
		return NULL;
	p = heap_add_profile(heap, allocator, HEAP_PROFILE_LIVE);
	p->module = t->module;
	for (size_t i = 0; i < t->n_spans; i++) {
		struct values v;

		if (!t->spans[i].sampled)
			continue;
		if (!r || !read_record(t, &t->spans[i], r, &v)) {
			bad++;
			continue;
		}
		add_sample(t, p, &t->spans[i], r, &v);
		if (v.proxy)
			MEM_PUSH(proxies, *ret_n, cap) = v.proxy;
	}
	if (bad) {
		heap_note(heap, "gtcmalloc-sampled", arena, t->map.root, 0,
			  "%zu of %zu sampled blocks have no record that can "
			  "be read: the heap profile lacks them", bad,
			  t->n_sampled);
		heap_note_is_minor(heap);
	}
	return proxies;
}
