/* SPDX-License-Identifier: MIT */
#include "analysis/standout.h"

#include "unit/check.h"

/* Everything that the rules read, with nothing remarkable in it. */
struct world {
	struct space sp;
	struct heap heap;
	struct where where;
	struct usage usage;
	struct fragment fragment;
	struct damage damage;
	struct standout s;
	struct arena arenas[9];
	struct fragment_arena free_of[9];
};

static void set_row(struct world *w, enum where_row row, uint64_t bytes,
		    uint64_t stored)
{
	w->where.row[row] = (struct where_amount){
		.bytes = bytes, .stored = stored,
	};
	w->where.total.bytes += bytes;
	w->where.total.stored += stored;
}

static void begin(struct world *w)
{
	*w = (struct world){ .sp = { .holes = HOLES_KEPT } };
	w->heap.arenas = w->arenas;
	w->heap.n_arenas = 1;
	w->fragment.arenas = w->free_of;
	w->fragment.n_arenas = 1;
	strcpy(w->arenas[0].name, "glibc main");
	w->arenas[0].contiguous = true;
	w->arenas[0].addr = 1;
	set_row(w, WHERE_USED, 96 * MIB, 96 * MIB);
	set_row(w, WHERE_FREE, 4 * MIB, 4 * MIB);
}

static void finish(struct world *w)
{
	standout_init(&w->s, &(struct standout_input){
		&w->sp, &w->heap, &w->where, &w->usage, &w->fragment,
		&w->damage,
	});
}

static void end(struct world *w)
{
	standout_fini(&w->s);
}

TEST(nothing_unusual)
{
	struct world w;

	begin(&w);
	finish(&w);
	CHECK_U64(w.s.n_items, 0);
	CHECK_STR(w.s.nothing, "Nothing unusual: 4.0% free.");
	CHECK(!w.s.n_advice);
	standout_add(&w.s, "leaks", 3, "%d leaks.", 7);
	CHECK(!w.s.nothing);
	CHECK_STR(w.s.item[0].text, "7 leaks.");
	end(&w);
}

TEST(an_empty_process)
{
	struct world w = { .sp = { .holes = HOLES_LOST } };

	finish(&w);
	CHECK_U64(w.s.n_items, 0);
	CHECK_STR(w.s.nothing, "No heap was found.");
	end(&w);
}

TEST(whole_pages_are_free)
{
	struct world w;

	begin(&w);
	set_row(&w, WHERE_FREE, 64 * MIB, 64 * MIB);
	w.fragment.total.trimmable = (struct fragment_bytes){ 1 << 30,
							      40 * MIB };
	w.free_of[0].trimmable.stored = 40 * MIB;
	finish(&w);
	CHECK_U64(w.s.n_items, 1);
	CHECK_STR(w.s.item[0].rule, "trimmable");
	CHECK_STR(w.s.item[0].text, "40.0M of the free memory lies in whole "
		  "pages: malloc_trim(3) would return it.");
	CHECK_STR(w.s.advice[0].rule, "trim");
	CHECK_STR(w.s.advice[0].text, "malloc_trim(3) with 0 would give back "
		  "40.0M: let the program call it after a peak, or do it from "
		  "outside as below.");
	CHECK_U64(w.s.advice[0].bytes, 40 * MIB);
	end(&w);
}

/* Below the threshold, and too little to speak of. */
TEST(thresholds)
{
	struct world w;

	begin(&w);
	w.fragment.total.trimmable.stored = 10 * MIB - 1;
	finish(&w);
	CHECK_U64(w.s.n_items, 0);
	CHECK(!w.s.n_advice);
	end(&w);

	begin(&w);
	w.fragment.total.trimmable.stored = 10 * MIB;
	finish(&w);
	CHECK_U64(w.s.n_items, 1);
	end(&w);

	begin(&w);
	w.where = (struct where){ 0 };
	set_row(&w, WHERE_ANONYMOUS, MIB - 1, MIB - 1);
	finish(&w);
	CHECK_U64(w.s.n_items, 0);
	end(&w);
}

TEST(pinned_pages)
{
	struct fragment_pin pin = {
		.size = 208, .blocks = 2001, .free_bytes = 30 * MIB,
	};
	struct world w;

	begin(&w);
	w.fragment.pins = &pin;
	w.fragment.n_pins = 1;
	w.fragment.total.pinned_bytes = 31 * MIB;
	w.fragment.total.pinned_pages = 8000;
	w.fragment.total.trimmable.stored = 2 * MIB;
	finish(&w);
	CHECK_STR(w.s.item[0].text, "31.0M of the free memory is on 8000 pages"
		  " that also hold blocks in use, and cannot be returned; 2001 "
		  "blocks of 208 bytes hold 30.0M of it.");
	CHECK_STR(w.s.advice[0].text,
		  "Allocate what lives long apart from what is freed soon: "
		  "malloc_trim(3) would give back 2.00M.");
	CHECK_STR(w.s.advice[0].reason,
		  "Up to 31.0M of the free memory is pinned, most by "
		  "2001 blocks of 208 bytes.");
	end(&w);
}

/* Of an allocator that malloc_trim does not know, by its own data. */
TEST(pinned_by_overhead)
{
	struct fragment_pin pin = {
		.size = 64, .blocks = 5432, .free_bytes = 19 * MIB,
		.state = BLOCK_OVERHEAD,
	};
	struct heap_allocator zend = { .name = "zend" };
	struct world w;

	begin(&w);
	w.heap.allocators = &zend;
	w.heap.n_allocators = 1;
	w.heap.n_arenas = w.fragment.n_arenas = 1;
	w.fragment.pins = &pin;
	w.fragment.n_pins = 1;
	w.fragment.total.pinned_bytes = 20 * MIB;
	w.fragment.total.pinned_pages = 5488;
	finish(&w);
	CHECK_STR(w.s.item[0].text, "20.0M of the free memory is on 5488 pages"
		  " that also hold blocks in use or the allocator's own data,"
		  " and cannot be returned; 5432 pieces of overhead of 64 bytes"
		  " hold 19.0M of it.");
	CHECK_STR(w.s.advice[0].text, "Allocate what lives long apart from "
		  "what is freed soon: malloc_trim(3) does not reach the "
		  "memory of zend.");
	end(&w);
}

static void give_arenas(struct world *w)
{
	begin(w);
	w->heap.n_arenas = w->fragment.n_arenas = 9;
	for (int i = 1; i < 9; i++) {
		snprintf(w->arenas[i].name, sizeof(w->arenas[i].name),
			 "glibc %d", i);
		w->arenas[i].addr = 1;
		w->arenas[i].attached = i < 5 ? 0 : 1;
		w->free_of[i].free.stored = i == 3 ? 6 * MIB : 4 * MIB;
	}
	w->fragment.total.free.stored = 36 * MIB;
}

/* The largest one would keep what it has, and may get more. */
TEST(many_arenas)
{
	struct world w;

	give_arenas(&w);
	finish(&w);
	CHECK_STR(w.s.item[0].text, "34.0M is free in 8 thread arenas; 4 of "
		  "them have no thread.");
	CHECK_U64(w.s.n_advice, 1);
	CHECK_STR(w.s.advice[0].rule, "arenas");
	CHECK_U64(w.s.advice[0].bytes, 28 * MIB);
	CHECK(strstr(w.s.advice[0].text, "may keep up to 28.0M less"));
	CHECK(!w.s.advice[0].command);
	end(&w);
}

/* What is certain goes before what may help more. */
TEST(advice_is_ranked)
{
	struct world w;

	give_arenas(&w);
	w.fragment.total.trimmable.stored = 20 * MIB;
	w.free_of[3].trimmable.stored = 20 * MIB;
	w.sp.kind = "process";
	w.sp.pid = 1234;
	finish(&w);
	CHECK_U64(w.s.n_advice, 2);
	CHECK_STR(w.s.advice[0].rule, "trim");
	CHECK_STR(w.s.advice[0].command,
		  "gdb -p 1234 -batch -ex 'call (int)malloc_trim(0)'");
	CHECK_STR(w.s.advice[1].rule, "arenas");
	CHECK(strstr(w.s.advice[1].reason, "gives back most of it too"));
	end(&w);

	w.sp.kind = "core";
	finish(&w);
	CHECK(!strncmp(w.s.advice[0].command, "gdb -p PID ", 11));
	end(&w);
}

/* Of other modules too, and none beside damage. */
TEST(advice_of_others_is_ranked)
{
	struct world w;

	give_arenas(&w);
	w.fragment.total.trimmable.stored = 20 * MIB;
	w.free_of[3].trimmable.stored = 20 * MIB;
	finish(&w);
	standout_advise(&w.s, ADVICE_PERHAPS, "less", 27 * MIB, "x", "y");
	CHECK_STR(w.s.advice[0].rule, "trim");
	CHECK_STR(w.s.advice[1].rule, "arenas");
	standout_advise(&w.s, ADVICE_PERHAPS, "more", 29 * MIB, "x", "y");
	CHECK_STR(w.s.advice[0].rule, "trim");
	CHECK_STR(w.s.advice[1].rule, "more");
	standout_advise(&w.s, ADVICE_FIRST, "first", 0, "x", "y");
	CHECK_STR(w.s.advice[0].rule, "first");
	CHECK_STR(w.s.advice[1].rule, "trim");
	end(&w);
	w.damage.abort.code = "double-free-tcache";
	finish(&w);
	standout_advise(&w.s, ADVICE_FIRST, "first", 0, "x", "y");
	CHECK_U64(w.s.n_advice, 1);
	CHECK_STR(w.s.advice[0].rule, "damage");
	end(&w);
}

/* A limit that is in force, and arenas that are not glibc's. */
TEST(no_useless_advice)
{
	struct setting limit = { .name = "arena_max", .value = 2 };
	struct heap_allocator a = {
		.name = "glibc", .settings = &limit, .n_settings = 1,
	};
	struct world w;

	give_arenas(&w);
	w.heap.allocators = &a;
	w.heap.n_allocators = 1;
	finish(&w);
	CHECK(!w.s.n_advice);
	end(&w);
	limit.value = 8;
	finish(&w);
	CHECK_U64(w.s.n_advice, 1);
	end(&w);
	a.name = "jemalloc";
	finish(&w);
	CHECK(!w.s.n_items && !w.s.n_advice);
	end(&w);
}

/* What helps depends on what was done to the block. */
TEST(advice_fits_the_damage)
{
	static const struct {
		const char *code;
		enum damage_kind kind;
		bool has_case;
		const char *reason;
	} rows[] = {
		{ "double-free-tcache", 0, false, "the second one" },
		{ "double-free-not-prev", 0, false, "the second one" },
		{ "double-free-not-prev", DAMAGE_OVERFLOW, true, "header" },
		{ "double-free-out", 0, false, "header" },
		{ "unaligned-tcache", 0, false, "link" },
		{ "unsorted-list", DAMAGE_UNKNOWN, true, "link" },
		{ "corrupted-top-size", DAMAGE_UNKNOWN, true, "header" },
		{ NULL, DAMAGE_DOUBLE_FREE, true, "the second one" },
		{ NULL, DAMAGE_USE_AFTER_FREE, true, "link" },
	};

	for (size_t i = 0; i < countof(rows); i++) {
		static char text[] = "x";
		struct damage_case c = { .kind = rows[i].kind, .text = text };
		struct world w;

		begin(&w);
		w.damage.abort.code = rows[i].code;
		w.damage.cases = &c;
		w.damage.n_cases = rows[i].has_case;
		finish(&w);
		CHECK_U64(w.s.n_advice, 1);
		if (!CHECK(strstr(w.s.advice[0].reason, rows[i].reason)))
			printf("# %s\n", rows[i].code ? rows[i].code : "-");
		end(&w);
	}
}

TEST(not_the_heap)
{
	struct where_map map = { .start = 0x7f0000000000, .what = NULL };
	struct world w;

	begin(&w);
	map.stored_row[WHERE_ANONYMOUS] = 300 * MIB;
	w.where.maps = &map;
	w.where.n_maps = 1;
	set_row(&w, WHERE_ANONYMOUS, 300 * MIB, 300 * MIB);
	finish(&w);
	CHECK_STR(w.s.item[0].text, "300M is anonymous memory of no allocator "
		  "known here; the largest piece, 300M, begins at "
		  "0x7f0000000000.");
	CHECK_STR(w.s.advice[0].rule, "not-malloc");
	CHECK_STR(w.s.advice[0].reason, "300M, 75.0% of all, is anonymous "
		  "memory that no allocator known here has.");
	end(&w);
	/* Of what was touched both figures are, and that is said. */
	map.stored_row[WHERE_ANONYMOUS] = 200 * MIB;
	w.where.row[WHERE_ANONYMOUS].stored = 200 * MIB;
	w.sp.kind = "process";
	finish(&w);
	CHECK_STR(w.s.item[0].text, "200M resident is anonymous memory of no "
		  "allocator known here; the largest piece, 200M, begins at "
		  "0x7f0000000000.");
	end(&w);
}

/* Damage goes first whatever it weighs; five at most, by weight. */
TEST(order_and_number)
{
	static char text[] = "the size field is wrong";
	struct damage_case c = { .text = text };
	struct usage_class k = {
		.min = 112, .max = 112, .used = { 800000, 85 * MIB },
	};
	struct world w;

	begin(&w);
	set_row(&w, WHERE_UNDECODED, MIB, MIB);
	set_row(&w, WHERE_CACHED, 30 * MIB, 30 * MIB);
	set_row(&w, WHERE_STACKS, 20 * MIB, 20 * MIB);
	set_row(&w, WHERE_DEAD_STACKS, 40 * MIB, 40 * MIB);
	w.usage.classes = &k;
	w.usage.n_classes = 1;
	w.damage.cases = &c;
	w.damage.n_cases = 1;
	w.damage.cases_dropped = 2;
	finish(&w);
	CHECK_U64(w.s.n_items, 5);
	CHECK_STR(w.s.item[0].rule, "damage");
	CHECK_STR(w.s.item[0].text, "The heap is damaged in 3 places.  The "
		  "first: the size field is wrong.");
	CHECK_STR(w.s.item[1].rule, "undecoded");
	CHECK_STR(w.s.item[2].rule, "one-size");
	CHECK_STR(w.s.item[3].rule, "dead-stacks");
	CHECK_STR(w.s.item[4].rule, "cached");
	CHECK_STR(w.s.advice[0].rule, "damage");
	standout_add(&w.s, "small", 1, "least");
	CHECK_STR(w.s.item[4].rule, "cached");
	standout_add(&w.s, "leaks", 50 * MIB, "50M leaked.");
	CHECK_STR(w.s.item[3].rule, "leaks");
	CHECK_STR(w.s.item[4].rule, "dead-stacks");
	standout_drop(&w.s, "one-size");
	standout_drop(&w.s, "one-size");
	CHECK_U64(w.s.n_items, 4);
	CHECK_STR(w.s.item[2].rule, "leaks");
	CHECK_STR(w.s.item[3].rule, "dead-stacks");
	end(&w);
}

TEST(two_kinds_of_damage)
{
	struct damage_case c[3] = {
		{ .text = (char[]){ "one" }, .kind = DAMAGE_OVERFLOW },
		{ .text = (char[]){ "two" }, .kind = DAMAGE_OVERFLOW },
		{ .text = (char[]){ "three" }, .kind = DAMAGE_USE_AFTER_FREE },
	};
	struct world w;

	begin(&w);
	w.damage.cases = c;
	w.damage.n_cases = 3;
	finish(&w);
	CHECK_STR(w.s.item[0].text, "The heap is damaged in 3 places.  The "
		  "first: one.  The first of another kind: three.");
	end(&w);
}

/* As when libc's main arena was overwritten: bytes are decoded, lists lost. */
TEST(a_grave_note)
{
	struct heap_note notes[2] = {
		{ .code = "minor", .text = (char[]){ "a note" } },
		{ .code = "lost", .text = (char[]){ "the arena is lost" },
		  .grave = true },
	};
	struct world w;

	begin(&w);
	w.heap.notes = notes;
	w.heap.n_notes = 2;
	finish(&w);
	CHECK_U64(w.s.n_items, 1);
	CHECK_STR(w.s.item[0].rule, "unread");
	CHECK_STR(w.s.item[0].text, "Not all of the heap could be read: the "
		  "arena is lost.");
	end(&w);
}

TEST(blocks_never_touched)
{
	struct world w;

	begin(&w);
	set_row(&w, WHERE_USED, 400 * MIB, 96 * MIB);
	finish(&w);
	CHECK_STR(w.s.item[0].text, "304M of the blocks in use was never "
		  "touched and costs no memory.");
	CHECK(!w.s.n_advice);
	end(&w);

	/* Without a map of holes nobody knows. */
	begin(&w);
	set_row(&w, WHERE_USED, 400 * MIB, 96 * MIB);
	w.sp.holes = HOLES_LOST;
	finish(&w);
	CHECK_U64(w.s.n_items, 0);
	end(&w);
}

TEST(the_c_library_spoke)
{
	struct world w;

	begin(&w);
	w.damage.abort = (struct damage_abort){
		.found = true, .code = "corrupted-top-size", .noticed = "A",
		.meaning = "B",
	};
	finish(&w);
	CHECK_STR(w.s.item[0].text, "glibc ended the process: A.  Usual cause:"
		  " B.");
	CHECK_STR(w.s.advice[0].rule, "damage");
	end(&w);

	/* Not malloc's: no advice about it. */
	begin(&w);
	w.damage.abort = (struct damage_abort){
		.found = true, .code = "stack-smashing", .noticed = "A",
		.meaning = "B",
	};
	finish(&w);
	CHECK_STR(w.s.item[0].rule, "abort");
	CHECK(!w.s.n_advice);
	end(&w);
}
