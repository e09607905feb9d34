/* SPDX-License-Identifier: MIT */
#include "analysis/tails.h"

#include "analysis/index.h"
#include "analysis/pattern.h"
#include "analysis/roots.h"
#include "analysis/scan.h"
#include "analysis/weak.h"
#include "base/mem.h"

const char *tails_kind_name(enum tails_kind kind)
{
	static const char *const names[TAILS_KINDS] = {
		[TAILS_VECTOR] = "vector",
		[TAILS_STRING] = "string",
		[TAILS_ZERO] = "zero",
	};

	return names[kind];
}

/* ---- claims ---- */

/*
 * A claim in 32 bits, and 0 is none: is it a string, then is it in units of
 * 4 KiB, then the length of the tail and one more.
 */
enum { CLAIM_STRING = 1, CLAIM_COARSE = 2, CLAIM_SHIFT = 2 };
#define CLAIM_MAX ((UINT64_C(1) << 30) - 2)

static uint32_t claim_pack(uint64_t tail, bool string)
{
	uint32_t flags = string ? CLAIM_STRING : 0;

	if (tail > CLAIM_MAX) {
		flags |= CLAIM_COARSE;
		tail = min_u64(tail >> 12, CLAIM_MAX);
	}
	return (uint32_t)(tail + 1) << CLAIM_SHIFT | flags;
}

static uint64_t claim_tail(uint32_t claim)
{
	uint64_t tail = (claim >> CLAIM_SHIFT) - 1;

	return claim & CLAIM_COARSE ? tail << 12 : tail;
}

/* Shorter tails come first, and of equal ones vectors. */
static bool claim_less(uint32_t a, uint32_t b)
{
	if (claim_tail(a) != claim_tail(b))
		return claim_tail(a) < claim_tail(b);
	return a < b;
}

struct claims {
	const struct index *ix;
	uint32_t *items;	/* owned; by number of the block */
	size_t bytes;
};

static void claim(struct claims *c, uint32_t number, uint32_t new)
{
	uint32_t old = __atomic_load_n(&c->items[number], __ATOMIC_RELAXED);

	while (!old || claim_less(new, old))
		if (__atomic_compare_exchange_n(&c->items[number], &old, new,
						true, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return;
}

/* A word that points to a block's start. */
static void try_word(struct claims *c, const struct weak_word *w, uint64_t off)
{
	uint32_t number = index_number(c->ix, off);
	struct weak_vector v;

	if (!index_used(c->ix, number))
		return;
	if (weak_vector_head(c->ix, w, off, &v))
		claim(c, number, claim_pack(v.size - v.used, false));
	else if (weak_string_head(c->ix, w, off))
		claim(c, number, claim_pack(load_u64(w->bytes + 16) -
					    load_u64(w->bytes + 8), true));
}

static void scan_piece(void *claims, const struct pattern_piece *p)
{
	struct claims *c = claims;
	uint64_t skip = -p->addr & 7;
	struct scan_hits hits;

	for (uint64_t at = skip; at + 24 <= p->n; at += 8 * SCAN_WORDS) {
		size_t n = scan_words(p->bytes + at,
				      min_u64((p->n - at) / 8, SCAN_WORDS), 8,
				      c->ix->base, c->ix->span, &hits);

		for (size_t i = 0; i < n; i++) {
			uint64_t from = at + 8u * hits.pos[i];
			struct weak_word w = {
				.bytes = p->bytes + from,
				.addr = p->addr + from,
				.before = from, .after = p->n - from,
			};

			if (index_starts(c->ix, hits.off[i]))
				try_word(c, &w, hits.off[i]);
		}
	}
}

static void scan_roots(struct claims *c, struct space *sp,
		       const struct heap *h, const struct where *w)
{
	struct pattern_piece piece = { .block = NULL };
	struct roots roots;

	roots_init(&roots, sp, h, w);
	for (size_t i = 0; i < roots.n; i++) {
		const struct root *r = &roots.items[i];
		vaddr at = r->start;

		if (r->kind == ROOT_REGISTERS || r->kind == ROOT_STALE)
			continue;
		while (pattern_next(sp, &at, r->end, true, &piece)) {
			scan_piece(c, &piece);
			at += piece.n;
		}
	}
	roots_fini(&roots);
}

/* ---- tails ---- */

/* What one worker adds up, and the block it is at. */
struct adder {
	struct tails sum;
	const struct claims *claims;	/* NULL: none */
	struct block block;
	vaddr end;		/* of the last byte that is not zero */
	bool open;
};

/* The end of the last byte that is not zero; 0: none. */
static uint64_t last_set(const uint8_t *bytes, uint64_t n)
{
	while (n >= 8 && !load_u64(bytes + n - 8))
		n -= 8;
	while (n && !bytes[n - 1])
		n--;
	return n;
}

static void add_tail(struct tails *t, enum tails_kind kind,
		     const struct block *b, uint64_t tail)
{
	unsigned log = 63 - (unsigned)__builtin_clzll(b->size | 1);
	struct tails_group *g = &t->groups[kind][log];

	tail = min_u64(tail, b->usable);
	g->min = UINT64_C(1) << log;
	g->total.blocks++;
	g->total.bytes += b->size;
	g->tail_bytes += tail;
	if (tail > g->longest) {
		g->longest = tail;
		g->example = b->addr;
	}
}

static void end_block(struct adder *a)
{
	const struct block *b = &a->block;
	uint64_t tail = b->addr + b->usable - a->end;
	uint32_t number = 0, claim = 0;

	if (!a->open)
		return;
	a->open = false;
	if (a->claims) {
		number = index_find(a->claims->ix, b->addr);
		claim = number ? a->claims->items[number] : 0;
	}
	if (claim) {
		if (claim_tail(claim))
			add_tail(&a->sum, claim & CLAIM_STRING ? TAILS_STRING :
				 TAILS_VECTOR, b, claim_tail(claim));
	} else if (b->usable >= TAILS_ZERO_MIN && tail >= b->usable / 2) {
		add_tail(&a->sum, TAILS_ZERO, b, tail);
	}
}

static void add_piece(void *worker, const struct pattern_piece *p)
{
	struct adder *a = worker;
	uint64_t n = last_set(p->bytes, p->n);

	if (!a->open || a->block.addr != p->block->addr) {
		end_block(a);
		a->block = *p->block;
		a->end = p->block->addr;
		a->open = true;
	}
	if (n)
		a->end = p->addr + n;
}

static void merge(struct tails_group *sum, const struct tails_group *more)
{
	if (!more->total.blocks)
		return;
	sum->min = more->min;
	sum->total.blocks += more->total.blocks;
	sum->total.bytes += more->total.bytes;
	sum->tail_bytes += more->tail_bytes;
	if (more->longest > sum->longest ||
	    (more->longest == sum->longest && more->example < sum->example)) {
		sum->longest = more->longest;
		sum->example = more->example;
	}
}

static void add_all(struct tails *t, const struct space *sp,
		    const struct heap *h, const struct claims *claims,
		    struct progress *p)
{
	struct adder *adders = mem_zalloc(PATTERN_WORKERS * sizeof(*adders));
	void *workers[PATTERN_WORKERS];

	for (size_t i = 0; i < PATTERN_WORKERS; i++) {
		adders[i].claims = claims;
		workers[i] = &adders[i];
	}
	pattern_each(sp, h, PATTERN_USED, add_piece, workers, p);
	for (size_t i = 0; i < PATTERN_WORKERS; i++) {
		end_block(&adders[i]);
		for (int k = 0; k < TAILS_KINDS; k++)
			for (int s = 0; s < 64; s++)
				merge(&t->groups[k][s],
				      &adders[i].sum.groups[k][s]);
	}
	for (int k = 0; k < TAILS_KINDS; k++)
		for (int s = 0; s < 64; s++)
			merge(&t->total[k], &t->groups[k][s]);
	free(adders);
}

void tails_init(struct tails *t, struct space *sp, const struct heap *h,
		const struct where *w, struct progress *p)
{
	void *workers[PATTERN_WORKERS];
	struct claims claims;
	struct index ix;
	struct err err;

	*t = (struct tails){ .no_claims = true };
	progress_phase(p, "looking for unused tails");
	if (sp->word != 8 ||
	    !index_init(&ix, h, GIB + pattern_stored(sp, h) / 16, &err)) {
		add_all(t, sp, h, NULL, p);
		return;
	}
	t->no_claims = false;
	claims.ix = &ix;
	claims.bytes = ((size_t)ix.n + 1) * sizeof(*claims.items);
	claims.items = mem_map(claims.bytes);
	for (size_t i = 0; i < PATTERN_WORKERS; i++)
		workers[i] = &claims;
	pattern_each(sp, h, PATTERN_USED, scan_piece, workers, p);
	scan_roots(&claims, sp, h, w);
	add_all(t, sp, h, &claims, p);
	mem_unmap(claims.items, claims.bytes);
	index_fini(&ix);
}
