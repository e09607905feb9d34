/* SPDX-License-Identifier: MIT */
#include "corewalk/gtcmalloc.h"

#include "check.h"
#include "corewalk/alloc.h"
#include "gtc_image.h"

struct world {
	struct gi image;
	struct heap heap;
	struct err err;
	bool found;
};

static void walk(struct world *w)
{
	heap_init(&w->heap);
	w->found = alloc_walk(w->image.sp, alloc_by_name("gtcmalloc"), false,
			      &w->heap, NULL, &w->err);
}

static void end(struct world *w)
{
	heap_fini(&w->heap);
	space_close(w->image.sp);
}

static const char *note(const struct world *w)
{
	return w->heap.n_notes ? w->heap.notes[0].code : "none";
}

static const struct arena *arena(const struct world *w)
{
	return &w->heap.arenas[0];
}

/* All that was put there is found, in the layout of that era. */
static void check_era(const struct gi_era *era, unsigned header)
{
	struct world w;

	gi_init(&w.image, era, header);
	walk(&w);
	if (CHECK(w.found) && CHECK_U64(w.heap.n_arenas, 1)) {
		const struct arena *a = arena(&w);

		CHECK_STR(w.heap.allocators[0].version, era->name);
		CHECK_STR(note(&w), "none");
		CHECK_U64(a->state[BLOCK_USED].blocks, w.image.used_blocks);
		CHECK_U64(a->state[BLOCK_USED].bytes, w.image.used_bytes);
		CHECK_U64(a->state[BLOCK_FAST].blocks, 2);
		CHECK_U64(a->state[BLOCK_CACHED].blocks, 2);
		CHECK_U64(a->extent_bytes, GI_HEAP_BYTES + GI_META_BYTES);
	}
	end(&w);
}

TEST(each_era_is_told_from_the_others)
{
	for (size_t i = 0; i < countof(gi_eras); i++)
		check_era(&gi_eras[i], 0);
}

TEST(slabs)
{
	check_era(&gi_eras[0], 8);
	for (size_t i = 1; i < countof(gi_eras); i++)
		check_era(&gi_eras[i], 4);
}

TEST(a_sampled_block_has_its_record)
{
	for (size_t i = 0; i < countof(gi_eras); i++) {
		struct world w;
		const struct heap_sample *s;

		gi_init(&w.image, &gi_eras[i], 0);
		walk(&w);
		if (!CHECK_U64(w.heap.n_profiles, 1) ||
		    !CHECK_U64(w.heap.profiles[0].n, 1)) {
			end(&w);
			continue;
		}
		s = &w.heap.profiles[0].samples[0];
		CHECK_U64(s->requested, 100);
		CHECK_U64(s->allocated, 112);
		CHECK_U64(s->weight, 2020000);
		CHECK_U64(s->born_ns, 12345 * UINT64_C(1000000000));
		CHECK_U64(s->depth, 1);
		CHECK_U64(w.heap.profiles[0].pcs[s->pc], GI_PROG + 16);
		end(&w);
	}
}

/* Bits that mean nothing, in all spans: a layout of another time. */
TEST(an_unknown_layout_is_refused)
{
	struct world w;

	gi_init(&w.image, &gi_eras[GI_LAST_ERA], 0);
	for (unsigned i = 0; i < w.image.n; i++)
		*target_mem_at(w.image.sp, GI_SPAN + 64 * i + 31) |= 1 << 7;
	walk(&w);
	CHECK(w.found);
	CHECK_STR(note(&w), "gtcmalloc-layout");
	CHECK(w.heap.n_notes == 1 && w.heap.notes[0].grave);
	CHECK(strstr(w.heap.notes[0].text, "no known layout explains its 163"));
	CHECK_U64(arena(&w)->extent_bytes, 0);
	end(&w);
}

/* Counters that fit no list, in a few spans and in many. */
TEST(some_damage_is_a_finding_much_is_a_refusal)
{
	for (unsigned n = 1; n <= 40; n += 39) {
		struct world w;

		gi_init(&w.image, &gi_eras[GI_LAST_ERA], 0);
		for (unsigned i = 0; i < n; i++)
			gi_put16(&w.image, GI_SPAN + 64 * i + 20, 0x7fff);
		walk(&w);
		CHECK_STR(note(&w), n == 1 ? "gtcmalloc-list" :
			  "gtcmalloc-layout");
		CHECK_U64(arena(&w)->state[BLOCK_USED].blocks,
			  n == 1 ? w.image.used_blocks : 0);
		end(&w);
	}
}

TEST(no_size_classes_no_tcmalloc)
{
	struct world w;

	gi_init(&w.image, &gi_eras[GI_LAST_ERA], 0);
	gi_put32(&w.image, GI_PROG + GI_SIZES + 8, 17);
	walk(&w);
	CHECK(!w.found);
	CHECK(strstr(w.err.hint, "no size classes"));
	end(&w);
}

TEST(what_is_not_found_is_said)
{
	static const struct {
		vaddr at;
		const char *code;
	} gone[] = {
		{ GI_PROG + 0x200, "gtcmalloc-caches" },
		{ GI_PROG + GI_CENTRAL + 5 * GI_STRIDE + GI_CLASS_AT,
		  "gtcmalloc-central" },
	};

	for (size_t i = 0; i < countof(gone); i++) {
		struct world w;

		gi_init(&w.image, &gi_eras[GI_LAST_ERA], 0);
		gi_put64(&w.image, gone[i].at, 0);
		walk(&w);
		CHECK_STR(note(&w), gone[i].code);
		CHECK(w.heap.n_notes && w.heap.notes[0].grave);
		end(&w);
	}
}

/* A link into nowhere: those behind it are said to be uncertain. */
TEST(a_broken_thread_cache)
{
	struct world w;

	gi_init(&w.image, &gi_eras[GI_LAST_ERA], 0);
	gi_put64(&w.image, GI_HEAP + 2 * GI_PAGE, 0x4141414141414141);
	walk(&w);
	CHECK_STR(note(&w), "gtcmalloc-list");
	CHECK_U64(arena(&w)->state[BLOCK_CACHED].blocks, 1);
	end(&w);
}

TEST(a_hostile_file_name)
{
	struct world w;
	struct mapped_file *file;

	gi_init(&w.image, &gi_eras[GI_LAST_ERA], 0);
	file = &w.image.sp->files[w.image.sp->modules[0].file];
	free(file->name);
	file->name = mem_strdup("/tmp/x\033[31m\n\xffy");
	walk(&w);
	if (CHECK(w.found))
		CHECK(strstr(w.heap.allocators[0].evidence,
			     " in x\\x1b[31m\\x0a\\xffy,"));
	end(&w);
}
