/* SPDX-License-Identifier: MIT */
#include "analysis/fragment.h"

#include "base/mem.h"
#include "corewalk/target.h"
#include "unit/check.h"

enum { HEAP = 0x10000000, SIZE = 0x100000, END = HEAP + SIZE };

struct world {
	struct space *sp;
	struct heap heap;
	struct fragment f;
	size_t extent;
};

static void begin(struct world *w, const char *arena)
{
	uint32_t id;

	w->sp = target_mem_new(MACHINE_X86_64);
	target_mem_add(w->sp, HEAP, SIZE, SEG_R | SEG_W, NULL, SIZE, NULL);
	target_mem_done(w->sp);
	heap_init(&w->heap);
	id = heap_add_allocator(&w->heap, "glibc", "x", "x");
	heap_add_arena(&w->heap, id, 0, "%s", arena)->contiguous =
		!strcmp(arena, "glibc main");
	w->extent = heap_add_blocks(&w->heap, 0, HEAP, END, 4, 16, 8);
}

static void mark(struct world *w, vaddr at, enum block_state state)
{
	extent_mark(&w->heap.extents[w->extent], at);
	extent_set_state(&w->heap.extents[w->extent], at, state);
	if (state == BLOCK_TOP)
		w->heap.arenas[0].top = at;
}

static void finish(struct world *w)
{
	heap_finish(&w->heap);
	fragment_init(&w->f, w->sp, &w->heap);
}

static void end(struct world *w)
{
	fragment_fini(&w->f);
	heap_fini(&w->heap);
	space_close(w->sp);
}

TEST(nothing_is_free)
{
	struct world w;

	begin(&w, "glibc main");
	mark(&w, HEAP, BLOCK_USED);
	mark(&w, HEAP + 0x40, BLOCK_USED);
	finish(&w);
	CHECK_U64(w.f.total.free.bytes, 0);
	CHECK_U64(w.f.total.pinned_pages, 0);
	CHECK_U64(w.f.n_pins, 0);
	end(&w);
}

/* One block of 0x100 at the start of each of four pages; then one in use. */
TEST(one_block_pins_each_page)
{
	struct world w;

	begin(&w, "glibc main");
	for (vaddr at = HEAP; at < HEAP + 0x4000; at += 0x1000) {
		memset(target_mem_at(w.sp, at + 16), 0xa1, 0xf0);
		mark(&w, at, BLOCK_USED);
		mark(&w, at + 0x100, BLOCK_BINNED);
	}
	mark(&w, HEAP + 0x4000, BLOCK_USED);
	finish(&w);
	CHECK_U64(w.f.total.free.bytes, 4 * 0xf00);
	CHECK_U64(w.f.total.pinned_pages, 4);
	CHECK_U64(w.f.total.pinned_bytes, 4 * 0xf00);
	CHECK_U64(w.f.total.trimmable.bytes, 0);
	CHECK_U64(w.f.total.below_top_bytes, 4 * 0xf00);
	CHECK_U64(w.f.total.runs, 4);
	CHECK_U64(w.f.runs[11].runs, 4);
	CHECK_U64(w.f.runs[11].page_bytes, 0);
	if (CHECK(w.f.n_pins == 1)) {
		const struct fragment_pin *p = w.f.pins;
		char text[LOOK_TEXT_MAX];

		CHECK_U64(p->size, 0x100);
		CHECK_U64(p->blocks, 4);
		CHECK_U64(p->pages, 4);
		CHECK_U64(p->free_bytes, 4 * 0xf00);
		CHECK_U64(p->sole_pages, 4);
		CHECK_U64(p->example, HEAP + 16);
		CHECK_U64(p->looked.looked, 4);
		CHECK_U64(p->looked.seen[0], 4);
		look_text(text, w.sp, &p->looked.looks[0]);
		CHECK_STR(text, "bytes 0xa1");
	}
	end(&w);
}

/* Two kinds on one page, a cached block on it too; the bytes add up. */
TEST(several_kinds_share_a_page)
{
	struct world w;
	uint64_t sum = 0;

	begin(&w, "glibc main");
	mark(&w, HEAP, BLOCK_USED);
	mark(&w, HEAP + 0x20, BLOCK_BINNED);
	mark(&w, HEAP + 0x70, BLOCK_CACHED);
	mark(&w, HEAP + 0x100, BLOCK_USED);
	mark(&w, HEAP + 0x120, BLOCK_UNSORTED);
	/* A large block pins two pages and is one block. */
	mark(&w, HEAP + 0x800, BLOCK_USED);
	mark(&w, HEAP + 0x5800, BLOCK_BINNED);
	mark(&w, HEAP + 0x6000, BLOCK_USED);
	finish(&w);
	CHECK_U64(w.f.total.pinned_pages, 2);
	CHECK_U64(w.f.total.pinned_bytes, 0x50 + 0x6e0 + 0x800);
	CHECK_U64(w.f.total.cached_bytes, 0x90);
	CHECK_U64(w.f.n_pins, 3);
	for (size_t i = 0; i < w.f.n_pins; i++) {
		sum += w.f.pins[i].free_bytes;
		if (w.f.pins[i].size != 0x5000)
			continue;
		CHECK_U64(w.f.pins[i].blocks, 1);
		CHECK_U64(w.f.pins[i].pages, 2);
		CHECK_U64(w.f.pins[i].sole_pages, 1);
		CHECK_U64(w.f.pins[i].sole_bytes, 0x800);
	}
	CHECK_U64(sum, w.f.total.pinned_bytes);
	end(&w);
}

/* Whole pages behind the six words of the free chunk. */
TEST(trim_gives_back_whole_pages)
{
	struct world w;

	begin(&w, "glibc 1");
	mark(&w, HEAP, BLOCK_USED);
	mark(&w, HEAP + 0xfd0, BLOCK_BINNED);	/* + 0x30: a page's start */
	mark(&w, HEAP + 0x3000, BLOCK_USED);
	mark(&w, HEAP + 0x4fe0, BLOCK_BINNED);	/* + 0x30: behind it */
	mark(&w, HEAP + 0x7000, BLOCK_USED);
	mark(&w, HEAP + 0x8000, BLOCK_UNLISTED);
	mark(&w, HEAP + 0xb000, BLOCK_USED);
	finish(&w);
	CHECK_U64(w.f.total.trimmable.bytes, 0x2000 + 0x1000);
	CHECK_U64(w.heap.arenas[0].trimmable_bytes, 0x3000);
	end(&w);
}

/* malloc_consolidate: fastbin blocks join their neighbours, cached do not. */
TEST(trim_merges_fastbin_blocks)
{
	struct world w;

	begin(&w, "glibc 1");
	mark(&w, HEAP, BLOCK_BINNED);
	mark(&w, HEAP + 0x1800, BLOCK_FAST);
	mark(&w, HEAP + 0x1840, BLOCK_FAST);
	mark(&w, HEAP + 0x1880, BLOCK_BINNED);
	mark(&w, HEAP + 0x4000, BLOCK_CACHED);
	mark(&w, HEAP + 0x4040, BLOCK_BINNED);
	mark(&w, HEAP + 0x6000, BLOCK_USED);
	finish(&w);
	CHECK_U64(w.f.total.trimmable.bytes, 0x3000 + 0x1000);
	CHECK_U64(w.f.total.runs, 2);
	CHECK_U64(w.f.total.largest_run, 0x4000);
	end(&w);
}

/* systrim leaves MINSIZE and a byte, rounded up to a page. */
TEST(the_top_of_the_main_arena)
{
	static const struct { uint64_t top, left; } rows[] = {
		{ 0x10000, 0x1000 },
		{ 0x10020, 0x1020 },
		{ 0x10021 + 15, 0x30 },
		{ 0x1020, 0x1020 },
		{ 0x1030, 0x30 },
		{ 0x20, 0x20 },
	};

	for (size_t i = 0; i < countof(rows); i++) {
		struct world w;

		begin(&w, "glibc main");
		mark(&w, HEAP, BLOCK_USED);
		mark(&w, END - rows[i].top, BLOCK_TOP);
		finish(&w);
		CHECK_U64(w.f.total.trimmable_top.bytes,
			  rows[i].top - rows[i].left);
		CHECK_U64(w.f.total.top_bytes, rows[i].top);
		CHECK_U64(w.f.total.below_top_bytes, 0);
		end(&w);
	}
}

TEST(a_fastbin_block_joins_the_top)
{
	struct world w;

	begin(&w, "glibc main");
	mark(&w, HEAP, BLOCK_USED);
	mark(&w, END - 0x3030, BLOCK_FAST);
	mark(&w, END - 0x3000, BLOCK_TOP);
	finish(&w);
	CHECK_U64(w.f.total.trimmable.bytes, 0x3000);
	end(&w);
}

/* Another arena, and a main arena whose top is not at the break. */
TEST(tops_that_stay)
{
	struct world w;

	begin(&w, "glibc 1");
	mark(&w, HEAP, BLOCK_USED);
	mark(&w, HEAP + 0x8000, BLOCK_TOP);
	finish(&w);
	CHECK_U64(w.f.total.trimmable.bytes, 0);
	CHECK_U64(w.f.total.top_bytes, SIZE - 0x8000);
	end(&w);

	begin(&w, "glibc main");
	mark(&w, HEAP, BLOCK_USED);
	mark(&w, HEAP + 0x8000, BLOCK_TOP);
	heap_trim_extent(&w.heap, w.extent, HEAP + 0x20000);
	finish(&w);
	CHECK_U64(w.f.total.trimmable.bytes, 0);
	end(&w);

	begin(&w, "glibc main");
	w.heap.arenas[0].contiguous = false;
	mark(&w, HEAP, BLOCK_USED);
	mark(&w, HEAP + 0x8000, BLOCK_TOP);
	finish(&w);
	CHECK_U64(w.f.total.trimmable.bytes, 0);
	end(&w);
}

TEST(only_stored_pages_cost_memory)
{
	struct world w;

	begin(&w, "glibc main");
	w.sp->runs = mem_zalloc(2 * sizeof(*w.sp->runs));
	w.sp->runs[0] = (struct extent_run){ 0, 0x3000 };
	w.sp->runs[1] = (struct extent_run){ 0x5000, SIZE };
	w.sp->n_runs = 2;
	space_index(w.sp);
	mark(&w, HEAP, BLOCK_USED);
	mark(&w, HEAP + 0x800, BLOCK_BINNED);
	mark(&w, HEAP + 0x8000, BLOCK_USED);
	finish(&w);
	CHECK_U64(w.f.total.trimmable.bytes, 0x7000);
	CHECK_U64(w.f.total.trimmable.stored, 0x5000);
	CHECK_U64(w.heap.arenas[0].trimmable_bytes, 0x5000);
	CHECK_U64(w.f.total.free.bytes, 0x7800);
	CHECK_U64(w.f.total.free.stored, 0x5800);
	end(&w);
}

TEST(other_allocators_have_no_trim)
{
	struct world w;

	begin(&w, "tcmalloc");
	w.heap.allocators[0].name = "tcmalloc";
	mark(&w, HEAP, BLOCK_USED);
	mark(&w, HEAP + 0x800, BLOCK_BINNED);
	mark(&w, HEAP + 0x8000, BLOCK_USED);
	finish(&w);
	CHECK_U64(w.f.total.trimmable.bytes, 0);
	CHECK_U64(w.f.runs[14].page_bytes, 0x7000);
	end(&w);
}

/* The samples of many blocks are spread over all of them. */
TEST(looks_of_many_blocks)
{
	struct world w;
	const struct looked *l;
	unsigned n = 0;

	begin(&w, "glibc main");
	for (vaddr at = HEAP; at + 0x100 <= END; at += 0x100, n++) {
		memset(target_mem_at(w.sp, at + 16), n % 4 ? 'r' : 0, 16);
		mark(&w, at, BLOCK_USED);
		mark(&w, at + 0x40, BLOCK_BINNED);
	}
	finish(&w);
	CHECK_U64(w.f.pins[0].blocks, n);
	l = &w.f.pins[0].looked;
	CHECK(l->looked >= 16 && l->looked <= 64);
	/* Three in four, although they come in step. */
	CHECK_NEAR((double)l->seen[0] / l->looked, 0.75, 0.25);
	CHECK_U64(l->seen[0] + l->seen[1], l->looked);
	CHECK(l->seen[1] > 0);
	CHECK_U64(w.f.total.pinned_pages, SIZE / 4096);
	CHECK_U64(w.f.total.pinned_bytes, n * 0xc0);
	end(&w);
}

/* The last block may be far longer than there are bits for starts. */
TEST(a_block_behind_the_planes)
{
	struct world w;

	begin(&w, "glibc main");
	heap_trim_extent(&w.heap, w.extent, HEAP + 0x800);
	mark(&w, HEAP, BLOCK_USED);
	mark(&w, HEAP + 0x400, BLOCK_BINNED);
	w.heap.extents[w.extent].end = HEAP + 0x8010;
	finish(&w);
	CHECK_U64(w.f.total.free.bytes, 0x7c10);
	CHECK_U64(w.f.total.pinned_pages, 1);
	CHECK_U64(w.f.total.pinned_bytes, 0xc00);
	CHECK_U64(w.f.total.trimmable.bytes, 0x7000);
	end(&w);
}
