/* SPDX-License-Identifier: MIT */
#include "corewalk/own.h"
#include "corewalk/pages.h"
#include "corewalk/target.h"
#include "unit/check.h"

#include "base/mem.h"

enum { PAGE = 4096, BASE = 0x100000 };

static struct page_run run(vaddr page, uint32_t n, uint32_t flags)
{
	return (struct page_run){ BASE + page * PAGE, n, flags };
}

static void set_pages(struct space *sp, const struct page_run *runs, size_t n)
{
	free(sp->pages);
	sp->pages = mem_alloc((n + 1) * sizeof(*runs));
	memcpy(sp->pages, runs, n * sizeof(*runs));
	sp->n_pages = n;
}

/* 16 pages at BASE, a gap of 16, 16 more, 16 of the kernel's. */
static struct space *image(void)
{
	struct space *sp = target_mem_new(MACHINE_X86_64);
	uint32_t rw = SEG_R | SEG_W;

	target_mem_add(sp, BASE, 16 * PAGE, rw, NULL, 16 * PAGE, NULL);
	target_mem_add(sp, BASE + 32 * PAGE, 16 * PAGE, rw, NULL, 16 * PAGE,
		       NULL);
	target_mem_add(sp, BASE + 48 * PAGE, 16 * PAGE, SEG_R | SEG_KERNEL,
		       NULL, 0, NULL);
	target_mem_done(sp);
	return sp;
}

static struct space *known_image(void)
{
	struct space *sp = image();
	const struct page_run runs[] = {
		run(1, 2, PAGE_PRESENT),
		run(3, 1, PAGE_PRESENT | PAGE_ZERO),
		run(5, 2, PAGE_SWAPPED),
		run(7, 4, PAGE_PRESENT | PAGE_FILE),
		/* Crosses what is not mapped. */
		run(15, 18, PAGE_PRESENT | PAGE_HUGE | PAGE_SHARED),
	};

	set_pages(sp, runs, countof(runs));
	return sp;
}

TEST(each_state_is_counted)
{
	struct space *sp = known_image();
	struct residency r;

	CHECK(space_pages_known(sp));
	space_residency(sp, 0, UINT64_MAX, &r);
	CHECK_U64(r.resident, 8 * PAGE);
	CHECK_U64(r.zero, PAGE);
	CHECK_U64(r.swapped, 2 * PAGE);
	CHECK_U64(r.absent, 21 * PAGE);
	CHECK_U64(r.unknown, 16 * PAGE);
	CHECK_U64(r.huge, 2 * PAGE);
	CHECK_U64(r.shared, 2 * PAGE);
	CHECK_U64(r.file, 4 * PAGE);
	CHECK_U64(r.touched + r.untouched, 0);
	space_close(sp);
}

/* Every range against the sum of its bytes' pages, in any order. */
TEST(ranges_add_up)
{
	struct space *sp = known_image();
	unsigned seed = 1;
	int i;

	for (i = 0; i < 5000; i++) {
		struct residency a, b, whole;
		vaddr from, mid, to;

		seed = seed * 1103515245 + 12345;
		from = BASE + (seed >> 8) % (50 * PAGE);
		seed = seed * 1103515245 + 12345;
		to = from + (seed >> 8) % (20 * PAGE);
		mid = from + (to - from) / 3;
		space_residency(sp, from, to, &whole);
		space_residency(sp, mid, to, &b);
		space_residency(sp, from, mid, &a);
		residency_add(&a, &b);
		if (!CHECK_MEM(&a, &whole, sizeof(a)))
			break;
	}
	space_close(sp);
}

TEST(bytes_count_by_their_part)
{
	struct space *sp = known_image();
	struct residency r;

	space_residency(sp, BASE + PAGE - 10, BASE + PAGE + 20, &r);
	CHECK_U64(r.absent, 10);
	CHECK_U64(r.resident, 20);
	space_residency(sp, BASE + 20 * PAGE, BASE + 30 * PAGE, &r);
	CHECK_U64(r.resident + r.absent + r.unknown, 0);
	space_residency(sp, BASE + 5, BASE + 5, &r);
	CHECK_U64(r.absent, 0);
	space_close(sp);
}

/* Without a list: what the holes of a core tell. */
TEST(holes_tell_touched_pages)
{
	struct space *sp = image();
	struct residency r;

	CHECK(!space_pages_known(sp));
	space_residency(sp, BASE, BASE + 16 * PAGE, &r);
	CHECK_U64(r.unknown, 16 * PAGE);
	sp->holes = HOLES_KEPT;
	sp->runs = mem_alloc(sizeof(*sp->runs));
	sp->runs[0] = (struct extent_run){ 2 * PAGE, 5 * PAGE };
	sp->n_runs = 1;
	space_index(sp);
	space_residency(sp, BASE, BASE + 16 * PAGE, &r);
	CHECK_U64(r.touched, 3 * PAGE);
	CHECK_U64(r.untouched, 13 * PAGE);
	CHECK_U64(r.resident + r.unknown, 0);
	CHECK_U64(space_next_stored(sp, BASE), BASE + 2 * PAGE);
	CHECK_U64(space_next_stored(sp, BASE + 3 * PAGE + 1),
		  BASE + 3 * PAGE + 1);
	CHECK_U64(space_next_stored(sp, BASE + 5 * PAGE), UINT64_MAX);
	space_close(sp);
}

TEST(pages_make_runs)
{
	struct space *sp = known_image();
	vaddr at = BASE;

	pages_to_runs(sp);
	CHECK_U64(space_stored(sp, at, at + 16 * PAGE), 9 * PAGE);
	CHECK_U64(space_stored(sp, at + 32 * PAGE, at + 48 * PAGE), PAGE);
	CHECK_U64(space_stored(sp, at + 3 * PAGE, at + 5 * PAGE), 0);
	CHECK_U64(space_next_stored(sp, at), at + PAGE);
	CHECK_U64(space_next_stored(sp, at + 3 * PAGE), at + 5 * PAGE);
	CHECK_U64(space_next_stored(sp, at + 17 * PAGE), at + 32 * PAGE);
	/* An empty list: nothing is stored, which is not "all is". */
	sp->n_pages = 0;
	pages_to_runs(sp);
	CHECK_U64(space_stored(sp, at, at + 16 * PAGE), 0);
	CHECK_U64(space_next_stored(sp, at), UINT64_MAX);
	space_close(sp);
}

TEST(neighbours_join)
{
	struct page_run runs[] = {
		run(0, 1, PAGE_PRESENT), run(1, 2, PAGE_PRESENT),
		run(3, 1, PAGE_SWAPPED), run(5, 1, PAGE_SWAPPED),
		run(6, UINT32_MAX, PAGE_SWAPPED),
	};

	CHECK_U64(pages_join(runs, countof(runs), PAGE), 4);
	CHECK_U64(runs[0].n, 3);
	CHECK_U64(runs[3].n, UINT32_MAX);
}

/* ---- the note ---- */

/* As the kernel can tell them of a process that runs. */
TEST(runs_in_disorder)
{
	struct page_run runs[] = {
		{ 0x10000, 4, PAGE_PRESENT },
		{ 0x11000, 1, PAGE_SWAPPED },	/* inside the one before */
		{ 0x13000, 3, PAGE_SWAPPED },	/* begins inside it */
		{ 0x8000, 2, PAGE_PRESENT },	/* belongs in front */
		{ 0x20000, 1, PAGE_PRESENT },
		{ 0x20000, 1, PAGE_PRESENT },	/* twice */
		{ 0xa000, 6, PAGE_PRESENT },	/* joins its neighbours */
	};

	CHECK_U64(pages_sort(runs, countof(runs), PAGE), 3);
	CHECK_U64(runs[0].start, 0x8000);
	CHECK_U64(runs[0].n, 12);
	CHECK_U64(runs[1].start, 0x14000);
	CHECK_U64(runs[1].n, 2);
	CHECK_U64(runs[1].flags, PAGE_SWAPPED);
	CHECK_U64(runs[2].start, 0x20000);
	CHECK_U64(runs[2].n, 1);
	CHECK_U64(pages_sort(runs, 0, PAGE), 0);
}

TEST(note_there_and_back)
{
	struct space *sp = known_image(), *to = image();
	struct str note;
	size_t i;

	sp->stopped_s = 0.25;
	sp->torn = true;
	sp->segs[1].flags |= SEG_SHARED;
	str_init(&note);
	own_make(sp, &note);
	CHECK(own_apply(to, (uint8_t *)note.text, note.len));
	CHECK_NEAR(to->stopped_s, 0.25, 1e-9);
	CHECK(to->torn);
	CHECK(!(to->segs[0].flags & SEG_SHARED));
	CHECK(to->segs[1].flags & SEG_SHARED);
	CHECK(to->segs[2].flags & SEG_KERNEL);
	if (CHECK_U64(to->n_pages, sp->n_pages))
		for (i = 0; i < sp->n_pages; i++)
			CHECK_MEM(&to->pages[i], &sp->pages[i],
				  sizeof(*sp->pages));
	str_fini(&note);
	space_close(sp);
	space_close(to);
}

/* Sorted, apart, inside the address space. */
static bool sane(const struct space *sp)
{
	vaddr last = 0;
	size_t i;

	for (i = 0; i < sp->n_pages; i++) {
		const struct page_run *r = &sp->pages[i];

		if (!r->n || r->start < last ||
		    r->n > (UINT64_MAX - r->start) / PAGE)
			return false;
		last = r->start + (uint64_t)r->n * PAGE;
	}
	return true;
}

/* No note that was cut or changed makes a list that is not one. */
TEST(damaged_notes)
{
	struct space *sp = known_image(), *to = image();
	struct residency r;
	unsigned seed = 7;
	struct str note;
	size_t i, n_bad = 0;

	str_init(&note);
	own_make(sp, &note);
	for (i = 0; i < note.len; i++) {
		AUTO_FREE uint8_t *cut = mem_alloc(i + 1);

		memcpy(cut, note.text, i);
		CHECK(!own_apply(to, cut, i));
	}
	for (i = 0; i < 20000; i++) {
		AUTO_FREE uint8_t *copy = mem_alloc(note.len);
		unsigned k;

		memcpy(copy, note.text, note.len);
		for (k = 0; k < 1 + i % 3; k++) {
			seed = seed * 1103515245 + 12345;
			copy[(seed >> 16) % note.len] = (uint8_t)(seed >> 8);
		}
		n_bad += !own_apply(to, copy, note.len);
		if (!CHECK(sane(to)))
			break;
		pages_to_runs(to);
		space_residency(to, 0, UINT64_MAX, &r);
		to->segs[0].flags = to->segs[1].flags = SEG_R | SEG_W;
	}
	CHECK(n_bad > 1000);
	str_fini(&note);
	space_close(sp);
	space_close(to);
}
