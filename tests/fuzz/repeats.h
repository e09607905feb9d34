/* SPDX-License-Identifier: MIT */
/*
 * What must hold of all that repeats in a heap, however damaged it is.
 */
#ifndef FUZZ_REPEATS_H
#define FUZZ_REPEATS_H

#include "analysis/dup_blocks.h"
#include "analysis/period.h"
#include "analysis/search.h"
#include "analysis/strings.h"
#include "analysis/tails.h"

static void must_be_entries(const struct dup_entry *items, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct dup_entry *e = &items[i];

		MUST(e->copies > 1 && e->own.copies <= e->copies, e->addr);
		MUST(e->own.bytes <= e->bytes, e->addr);
		MUST(dup_saved(e) <= e->own.bytes, e->addr);
		MUST(!i || e[-1].bytes >= e->bytes, e->addr);
	}
}

static void must_be_strings(struct space *sp, struct heap *h)
{
	struct strings s;

	strings_init(&s, sp, h, NULL);
	must_be_entries(s.items, s.n);
	MUST(s.copies <= s.found && s.distinct * 2 <= s.copies, s.copies);
	MUST(s.saved <= s.cost && s.given_up == 0, s.saved);
	strings_fini(&s);
}

static void must_be_blocks(struct space *sp, struct heap *h, uint64_t used)
{
	struct dup_blocks d;
	struct periods p;

	dup_blocks_init(&d, sp, h, NULL);
	must_be_entries(d.items, d.n);
	MUST(d.compared.bytes + d.zero.bytes + d.filled.bytes +
	     d.in_parts.bytes <= used, used);
	MUST(d.copies <= d.compared.blocks, d.copies);
	MUST(d.saved <= d.bytes && d.bytes <= d.compared.bytes, d.saved);
	dup_blocks_fini(&d);
	periods_init(&p, sp, h, NULL);
	MUST(p.total.bytes <= used, p.total.bytes);
	for (size_t i = 0; i < p.n; i++) {
		const struct period_group *g = &p.groups[i];

		MUST(g->records * g->period <= g->total.bytes, g->largest);
		MUST((g->form == PERIOD_RECORDS) == (g->period > 0),
		     g->largest);
	}
	periods_fini(&p);
}

static void must_be_tails(struct space *sp, struct heap *h,
			  const struct where *w, uint64_t used)
{
	struct tails t;
	uint64_t sum = 0;

	tails_init(&t, sp, h, w, NULL);
	for (int k = 0; k < TAILS_KINDS; k++) {
		MUST(t.total[k].tail_bytes <= t.total[k].total.bytes, k);
		sum += t.total[k].total.bytes;
	}
	MUST(sum <= used, sum);
}

/* A match lies in its block; other memory is in none. */
static void must_be_found(struct space *sp, struct heap *h)
{
	struct search_pattern *p;
	struct search s;
	struct block b;
	struct err err;

	p = search_compile("[a-z]{3}.{0,40}?(?<=\\w)\\x00|^\\x01", &err);
	MUST(p, 0);
	search_init(&s, p, sp, h, SEARCH_ALL, 1000, NULL);
	for (size_t i = 0; i < s.n; i++) {
		const struct search_hit *hit = &s.hits[i];
		bool found = heap_find(h, hit->addr, &b);

		MUST(!i || hit[-1].addr <= hit->addr, hit->addr);
		/* A last word may lie behind the extent, which is damaged. */
		MUST(hit->n, hit->addr);
		MUST(!hit->in_block || found ||
		     hit->addr >= hit->block.start + hit->block.size,
		     hit->addr);
		if (hit->in_block)
			MUST(hit->addr - hit->block.addr + hit->n <=
			     hit->block.usable, hit->addr);
	}
	MUST(s.n <= s.matches && s.blocks <= s.matches, s.matches);
	search_fini(&s);
	search_pattern_free(p);
}

static void must_repeat(struct space *sp, struct heap *h)
{
	struct where where;
	uint64_t used = 0;

	for (size_t i = 0; i < h->n_arenas; i++)
		used += h->arenas[i].state[BLOCK_USED].bytes +
			h->arenas[i].mmapped.bytes;
	where_init(&where, sp, h);
	must_be_strings(sp, h);
	must_be_blocks(sp, h, used);
	must_be_tails(sp, h, &where, used);
	must_be_found(sp, h);
	where_fini(&where);
}

#endif
