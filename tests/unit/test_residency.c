/* SPDX-License-Identifier: MIT */
#include "analysis/residency.h"

#include "analysis/where.h"
#include "base/mem.h"
#include "unit/check.h"
#include "unit/toy_heap.h"

enum {
	PAGE = 4096, PAGES = (TOY_SIZE + TOY_DATA_SIZE) / PAGE,
	BIG = 0x2000000, BIG_SIZE = 64 * PAGE,
};

/* The same numbers in every run: xorshift64. */
static uint64_t below(uint64_t *state, uint64_t n)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state % n;
}

static const uint32_t kinds[] = {
	PAGE_PRESENT, PAGE_PRESENT, PAGE_PRESENT, 0, PAGE_SWAPPED,
	PAGE_PRESENT | PAGE_ZERO, PAGE_PRESENT | PAGE_HUGE,
	PAGE_PRESENT | PAGE_SHARED,
};

/* Pages of [start, end), in runs of 1 to most. */
static void add_pages(struct space *sp, vaddr start, vaddr end, uint64_t most,
		      uint64_t *seed)
{
	while (start < end) {
		uint64_t n = min_u64(1 + below(seed, most),
				     (end - start) / PAGE);
		uint32_t flags = kinds[below(seed, countof(kinds))];

		sp->pages = mem_realloc(sp->pages, (sp->n_pages + 1) *
					sizeof(*sp->pages));
		if (flags)
			sp->pages[sp->n_pages++] = (struct page_run){
				start, (uint32_t)n, flags,
			};
		start += n * PAGE;
	}
}

/* Chunks of all sizes and states, one of its own mapping, odd ones. */
static void begin(struct toy *t, uint64_t seed, uint64_t most)
{
	size_t arena;

	toy_init(t);
	space_close(t->sp);
	t->sp = target_mem_new(MACHINE_X86_64);
	target_mem_add(t->sp, TOY_HEAP, TOY_SIZE, SEG_R | SEG_W, NULL,
		       TOY_SIZE, NULL);
	target_mem_add(t->sp, TOY_DATA, TOY_DATA_SIZE, SEG_R | SEG_W, NULL,
		       TOY_DATA_SIZE, NULL);
	target_mem_add(t->sp, BIG, BIG_SIZE, SEG_R | SEG_W, NULL, BIG_SIZE,
		       NULL);
	target_mem_done(t->sp);
	arena = t->h.n_arenas;
	heap_add_arena(&t->h, 0, 0, "toy mmapped");
	heap_add_mmapped(&t->h, (uint32_t)arena, BIG, BIG + BIG_SIZE,
			 BIG + 16, 0);
	/* What mappings, pages and blocks have in common is only this. */
	heap_sort(&t->h);
	t->extent = t->h.extents[0].start == TOY_HEAP ? 0 : 1;
	while (t->next < TOY_HEAP + TOY_SIZE - (1 << 20)) {
		uint64_t size = below(&seed, 50) ? 32 + 16 *
			below(&seed, 100) : 16 * (2 + below(&seed, 16384));

		toy_chunk(t, size, below(&seed, 3) ? BLOCK_USED :
			  (enum block_state)below(&seed, BLOCK_TOP));
	}
	toy_chunk(t, 656, BLOCK_OVERHEAD);
	toy_done(t);
	add_pages(t->sp, TOY_HEAP, TOY_HEAP + TOY_SIZE, most, &seed);
	add_pages(t->sp, TOY_DATA, TOY_DATA + TOY_DATA_SIZE, most, &seed);
	add_pages(t->sp, BIG, BIG + BIG_SIZE, most, &seed);
}

static void end(struct toy *t)
{
	heap_fini(&t->h);
	space_close(t->sp);
}

/* Page by page, from the list itself. */
static struct residency slow(const struct space *sp, vaddr from, vaddr to)
{
	struct residency r = { 0 };

	for (vaddr at = from; at < to; ) {
		vaddr next = min_u64(to, at / PAGE * PAGE + PAGE);
		uint32_t flags = 0;
		uint64_t n = next - at;

		for (size_t i = 0; i < sp->n_pages; i++)
			if (at >= sp->pages[i].start && at <
			    sp->pages[i].start + sp->pages[i].n * PAGE)
				flags = sp->pages[i].flags;
		r.absent += flags ? 0 : n;
		r.swapped += flags & PAGE_SWAPPED ? n : 0;
		r.zero += flags & PAGE_ZERO ? n : 0;
		r.resident += flags & PAGE_PRESENT && !(flags & PAGE_ZERO) ?
			n : 0;
		r.huge += flags & PAGE_HUGE ? n : 0;
		r.shared += flags & PAGE_SHARED ? n : 0;
		at = next;
	}
	return r;
}

static void check_same(const struct residency *a, const struct residency *b)
{
	CHECK_U64(a->resident, b->resident);
	CHECK_U64(a->swapped, b->swapped);
	CHECK_U64(a->zero, b->zero);
	CHECK_U64(a->absent, b->absent);
}

/* Arenas and rows also tell huge and shared pages. */
static void check_all(const struct residency *a, const struct residency *b)
{
	check_same(a, b);
	CHECK_U64(a->huge, b->huge);
	CHECK_U64(a->shared, b->shared);
}

static void check_arenas(struct toy *t, const struct residency_heap *r)
{
	struct residency_arena want[2] = { 0 };
	struct residency all;
	struct heap_iter it;
	struct block b;

	heap_iter_init(&it, &t->h);
	while (heap_iter_next(&it, &b)) {
		struct residency one = slow(t->sp, b.start, b.start + b.size);

		residency_add(&want[b.arena].all, &one);
		if (b.state == BLOCK_USED)
			residency_add(&want[b.arena].used, &one);
		else if (block_state_free(b.state))
			residency_add(&want[b.arena].free, &one);
	}
	for (size_t i = 0; i < 2; i++) {
		check_all(&r->arenas[i].used, &want[i].used);
		check_all(&r->arenas[i].free, &want[i].free);
		check_all(&r->arenas[i].all, &want[i].all);
	}
	all = slow(t->sp, TOY_HEAP, TOY_HEAP + TOY_SIZE);
	check_all(&r->arenas[0].all, &all);
}

static void check_classes(struct toy *t, const struct usage *u)
{
	for (size_t i = 0; i < u->n_classes; i++) {
		struct usage_class want = { 0 };
		const struct usage_class *c = &u->classes[i];
		struct residency_cursor at;
		struct heap_iter it;
		struct block b;

		residency_seek(&at, t->sp);
		heap_iter_init(&it, &t->h);
		while (heap_iter_next(&it, &b))
			if (b.size >= c->min && b.size <= c->max)
				residency_of(&at, b.start, b.start + b.size,
					     residency_of_class(&want,
								b.state));
		check_same(&c->used_pages, &want.used_pages);
		check_same(&c->free_pages, &want.free_pages);
		check_same(&c->own_pages, &want.own_pages);
	}
}

/* Against the arenas, which were checked, and the data beside them. */
static void check_rows(struct toy *t, const struct residency_heap *r)
{
	struct where w;
	struct residency free, data;
	int64_t off;

	where_init(&w, t->sp, &t->h);
	CHECK(where_check(&w, &off));
	check_all(&w.row[WHERE_USED].pages, &r->total.used);
	free = w.row[WHERE_FREE].pages;
	residency_add(&free, &w.row[WHERE_CACHED].pages);
	check_all(&free, &r->total.free);
	data = slow(t->sp, TOY_DATA, TOY_DATA + TOY_DATA_SIZE);
	check_all(&w.row[WHERE_ANONYMOUS].pages, &data);
	for (size_t i = 0; i < w.n_maps; i++) {
		struct residency map = slow(t->sp, w.maps[i].start,
					    w.maps[i].end);

		check_all(&w.maps[i].pages, &map);
	}
	where_fini(&w);
}

static void check_heap(uint64_t seed, uint64_t most)
{
	struct residency_heap r;
	struct usage u;
	struct toy t;

	begin(&t, seed, most);
	usage_init(&u, &t.h, USAGE_ALL_ARENAS);
	CHECK(usage_check(&u, &t.h));
	residency_init(&r, t.sp, &t.h, &u);
	check_arenas(&t, &r);
	check_classes(&t, &u);
	check_rows(&t, &r);
	residency_fini(&r);
	usage_fini(&u);
	end(&t);
}

TEST(page_by_page)
{
	for (uint64_t seed = 1; seed < 4; seed++)
		check_heap(seed, 1);
}

TEST(long_runs)
{
	for (uint64_t seed = 4; seed < 8; seed++)
		check_heap(seed, 300);
}

/* Any order gives the same. */
TEST(cursor_goes_anywhere)
{
	struct residency_cursor at;
	uint64_t seed = 99;
	struct toy t;

	begin(&t, 9, 4);
	residency_seek(&at, t.sp);
	for (int i = 0; i < 1000; i++) {
		vaddr from = TOY_HEAP + below(&seed, TOY_SIZE);
		vaddr to = from + below(&seed, 10 * PAGE);
		struct residency r = { 0 }, want = slow(t.sp, from, to);

		residency_of(&at, from, to, &r);
		check_all(&r, &want);
	}
	end(&t);
}

/* Where pages are not known nothing is said, and nothing is resident. */
TEST(not_known)
{
	struct residency_cursor at;
	struct residency r = { 0 };
	struct residency_heap rh;
	struct usage u;
	struct toy t;

	begin(&t, 5, 4);
	free(t.sp->pages);
	t.sp->pages = NULL;
	t.sp->n_pages = 0;
	usage_init(&u, &t.h, USAGE_ALL_ARENAS);
	residency_init(&rh, t.sp, &t.h, &u);
	CHECK(!rh.arenas);
	CHECK_U64(rh.total.all.resident, 0);
	CHECK_U64(u.total.used_pages.resident, 0);
	residency_seek(&at, t.sp);
	residency_of(&at, TOY_HEAP, TOY_HEAP + TOY_SIZE, &r);
	CHECK_U64(r.resident + r.absent, 0);
	residency_fini(&rh);
	usage_fini(&u);
	end(&t);
}

/* A block of very many pages, and each of them of another kind. */
TEST(pages_inside_one_block)
{
	struct residency_heap r;
	struct usage u;
	struct toy t;
	uint64_t seed = 3;
	struct residency want;

	toy_init(&t);
	toy_chunk(&t, TOY_SIZE - 4096, BLOCK_USED);
	toy_done(&t);
	add_pages(t.sp, TOY_HEAP, TOY_HEAP + TOY_SIZE, 1, &seed);
	usage_init(&u, &t.h, USAGE_ALL_ARENAS);
	residency_init(&r, t.sp, &t.h, &u);
	want = slow(t.sp, TOY_HEAP, TOY_HEAP + TOY_SIZE - 4096);
	check_all(&r.arenas[0].used, &want);
	CHECK_U64(u.n_classes, 2);
	check_same(&u.classes[1].used_pages, &want);
	residency_fini(&r);
	usage_fini(&u);
	end(&t);
}
