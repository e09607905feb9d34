/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include "analysis/damage.h"

#include "analysis/abortmsg.h"
#include "base/mem.h"
#include "corewalk/target.h"
#include "unit/check.h"

enum {
	RW = SEG_R | SEG_W,
	LIBC = 0x20000000,
	BUFFER = 0x30000000,
	STACK = 0x40000000,
	HEAP = 0x10000000, SIZE = 0x10000,
};

struct world {
	struct space *sp;
	struct heap heap;
	struct damage d;
	struct where where;
	size_t extent;
};

static void put(struct space *sp, vaddr addr, uint64_t value)
{
	memcpy(target_mem_at(sp, addr), &value, sp->word);
}

/* A heap of chunks of 0x30, in use, all user bytes 1. */
static void begin(struct world *w)
{
	uint32_t id;
	struct heap_extent *x;

	w->sp = target_mem_new(MACHINE_X86_64);
	target_mem_add(w->sp, HEAP, SIZE, RW, NULL, SIZE, NULL);
	target_mem_add(w->sp, LIBC, 0x1000, SEG_R, NULL, 0x1000,
		       "/lib/libc.so.6");
	target_mem_add(w->sp, LIBC + 0x1000, 0x1000, RW, NULL, 0x1000,
		       "/lib/libc.so.6");
	target_mem_add(w->sp, BUFFER, 0x3000, RW, NULL, 0x2000, NULL);
	target_mem_add(w->sp, STACK, 0x2000, RW, NULL, 0x2000, NULL);
	w->sp->modules = mem_zalloc(sizeof(*w->sp->modules));
	w->sp->n_modules = 1;
	w->sp->modules[0] = (struct module){
		.start = LIBC, .end = LIBC + 0x2000,
	};
	w->sp->files[0].module = 0;
	w->sp->threads = mem_zalloc(sizeof(*w->sp->threads));
	w->sp->n_threads = 1;
	w->sp->threads[0] = (struct thread){ .tid = 7, .sp = STACK + 0x100 };
	target_mem_done(w->sp);
	heap_init(&w->heap);
	id = heap_add_allocator(&w->heap, "glibc", "x", "x");
	heap_add_arena(&w->heap, id, 0, "glibc main");
	w->extent = heap_add_blocks(&w->heap, 0, HEAP, HEAP + 0x3000, 4, 16, 8);
	x = &w->heap.extents[w->extent];
	for (vaddr at = HEAP; at < HEAP + 0x3000; at += 0x30) {
		extent_mark(x, at);
		put(w->sp, at + 8, 0x31);
		memset(target_mem_at(w->sp, at + 16), 1, 32);
	}
}

static void finish(struct world *w)
{
	heap_finish(&w->heap);
	damage_init(&w->d, w->sp, &w->heap);
	where_init(&w->where, w->sp, &w->heap);
}

static void end(struct world *w)
{
	where_fini(&w->where);
	damage_fini(&w->d);
	heap_fini(&w->heap);
	space_close(w->sp);
}

static void set_state(struct world *w, vaddr at, enum block_state state)
{
	extent_set_state(&w->heap.extents[w->extent], at, state);
}

/* ---- glibc's message ---- */

static void put_message(struct world *w, vaddr at, const char *text)
{
	uint32_t size = 0x1000;

	memcpy(target_mem_at(w->sp, at), &size, 4);
	memcpy(target_mem_at(w->sp, at + 4), text, strlen(text) + 1);
}

TEST(a_message_in_its_buffer)
{
	struct world w;

	begin(&w);
	put_message(&w, BUFFER + 0x1000, "free(): invalid pointer\n");
	/* Things that look a little like it. */
	put(w.sp, BUFFER, 0x1000);
	put(w.sp, LIBC + 0x1100, BUFFER);
	put(w.sp, LIBC + 0x1108, BUFFER + 0x2000);
	put(w.sp, LIBC + 0x1110, BUFFER + 0x1000);
	finish(&w);
	CHECK(w.d.abort.found && !w.d.abort.on_stack);
	CHECK_U64(w.d.abort.addr, BUFFER + 0x1004);
	CHECK_STR(w.d.abort.text, "free(): invalid pointer");
	CHECK_STR(w.d.abort.code, "free-invalid-pointer");
	end(&w);
}

TEST(a_known_message_beats_an_unknown_one)
{
	struct world w;

	begin(&w);
	put_message(&w, BUFFER, "hello\x1b[2J\n");
	put_message(&w, BUFFER + 0x1000, "prog: x.c:3: f: Assertion `0' "
		    "failed.\n");
	put(w.sp, LIBC + 0x1100, BUFFER);
	put(w.sp, LIBC + 0x1108, BUFFER + 0x1000);
	finish(&w);
	CHECK_STR(w.d.abort.code, "assertion");
	end(&w);
}

TEST(the_form_of_old_releases)
{
	struct world w;

	begin(&w);
	put_message(&w, BUFFER, "*** Error in `./a': double free or corruption"
		    " (!prev): 0x000055d0c1e3f8a0 ***\n");
	put(w.sp, LIBC + 0x1100, BUFFER);
	finish(&w);
	CHECK_STR(w.d.abort.code, "double-free-not-prev");
	end(&w);
}

TEST(a_message_on_the_stack)
{
	struct world w;

	begin(&w);
	put_message(&w, BUFFER, "malloc(): corrupted top size\n");
	put(w.sp, STACK + 0x800, BUFFER);
	finish(&w);
	CHECK(w.d.abort.on_stack);
	CHECK_STR(w.d.abort.code, "corrupted-top-size");
	end(&w);

	/* Only a pointer to the constant in libc's read-only data. */
	begin(&w);
	memcpy(target_mem_at(w.sp, LIBC + 0x203), "free(): invalid size", 21);
	put(w.sp, STACK + 0x900, LIBC + 0x203);
	finish(&w);
	CHECK(w.d.abort.on_stack);
	CHECK_STR(w.d.abort.text, "free(): invalid size");
	end(&w);
}

TEST(no_message)
{
	struct world w;

	begin(&w);
	put_message(&w, BUFFER, "text that no line ends");
	put(w.sp, LIBC + 0x1100, BUFFER);
	put(w.sp, LIBC + 0x1108, UINT64_C(0xfffffffffffff000));
	finish(&w);
	CHECK(!w.d.abort.found);
	CHECK(!w.d.abort.code);
	end(&w);
}

/* Every text with which malloc of 2.17 to 2.43 ends a process. */
TEST(every_message_has_a_meaning)
{
	static const char *const rows[][2] = {
		{ "_int_memalign(): unaligned chunk detected",
		  "unaligned-tcache" },
		{ "break adjusted to free malloc space", "break-moved" },
		{ "corrupted double-linked list (not small)", "broken-list" },
		{ "corrupted double-linked list", "broken-list" },
		{ "corrupted size vs. prev_size in fastbins",
		  "size-vs-prev-size" },
		{ "corrupted size vs. prev_size while consolidating",
		  "size-vs-prev-size" },
		{ "corrupted size vs. prev_size", "size-vs-prev-size" },
		{ "double free or corruption (!prev)",
		  "double-free-not-prev" },
		{ "double free or corruption (fasttop)",
		  "double-free-fasttop" },
		{ "double free or corruption (out)", "double-free-out" },
		{ "double free or corruption (top)", "double-free-top" },
		{ "free(): chunks in smallbin corrupted",
		  "free-smallbin-list" },
		{ "free(): corrupted unsorted chunks", "free-unsorted-list" },
		{ "free(): double free detected in tcache 2",
		  "double-free-tcache" },
		{ "free(): invalid next size (fast)",
		  "free-invalid-next-size" },
		{ "free(): invalid next size (normal)",
		  "free-invalid-next-size" },
		{ "free(): invalid pointer", "free-invalid-pointer" },
		{ "free(): invalid size", "free-invalid-size" },
		{ "free(): too many chunks detected in tcache",
		  "tcache-count" },
		{ "free(): unaligned chunk detected in tcache 2",
		  "unaligned-tcache" },
		{ "invalid fastbin entry (free)", "free-fastbin-entry" },
		{ "malloc(): chunk size mismatch in fastbin",
		  "fastbin-size" },
		{ "malloc(): corrupted top size", "corrupted-top-size" },
		{ "malloc(): corrupted unsorted chunks 2", "unsorted-list" },
		{ "malloc(): corrupted unsorted chunks 3", "unsorted-list" },
		{ "malloc(): corrupted unsorted chunks", "unsorted-list" },
		{ "malloc(): invalid next size (unsorted)",
		  "unsorted-next-size" },
		{ "malloc(): invalid next->prev_inuse (unsorted)",
		  "unsorted-prev-inuse" },
		{ "malloc(): invalid size (unsorted)", "unsorted-size" },
		{ "malloc(): largebin double linked list corrupted (bk)",
		  "largebin-list" },
		{ "malloc(): largebin double linked list corrupted "
		  "(nextsize)", "largebin-list" },
		{ "malloc(): memory corruption (fast)", "fastbin-size" },
		{ "malloc(): memory corruption", "unsorted-size" },
		{ "malloc(): mismatching next->prev_size (unsorted)",
		  "size-vs-prev-size" },
		{ "malloc(): smallbin double linked list corrupted",
		  "smallbin-list" },
		{ "malloc(): unaligned fastbin chunk detected 2",
		  "unaligned-fastbin" },
		{ "malloc(): unaligned fastbin chunk detected 3",
		  "unaligned-fastbin" },
		{ "malloc(): unaligned fastbin chunk detected",
		  "unaligned-fastbin" },
		{ "malloc(): unaligned tcache chunk detected",
		  "unaligned-tcache" },
		{ "malloc(): unsorted double linked list corrupted",
		  "unsorted-list" },
		{ "malloc: top chunk is corrupt", "corrupted-top-size" },
		{ "malloc_check_get_size: memory corruption", "check-size" },
		{ "malloc_consolidate(): invalid chunk size",
		  "fastbin-size" },
		{ "malloc_consolidate(): unaligned fastbin chunk detected",
		  "unaligned-fastbin" },
		{ "memory clobbered before allocated block",
		  "check-before" },
		{ "memory clobbered past end of allocated block",
		  "check-behind" },
		{ "block freed twice", "double-free" },
		{ "mremap_chunk(): invalid pointer",
		  "munmap-invalid-pointer" },
		{ "munmap_chunk(): invalid pointer",
		  "munmap-invalid-pointer" },
		{ "realloc(): invalid next size",
		  "realloc-invalid-next-size" },
		{ "realloc(): invalid old size", "realloc-invalid-size" },
		{ "realloc(): invalid pointer", "realloc-invalid-pointer" },
		{ "tcache_thread_shutdown(): unaligned tcache chunk detected",
		  "unaligned-tcache" },
		{ "*** stack smashing detected ***: terminated",
		  "stack-smashing" },
		{ "*** buffer overflow detected ***: terminated",
		  "fortify" },
		{ "a.out: malloc.c:2617: sysmalloc: Assertion `(old_top == "
		  "initial_top (av)", "malloc-assertion" },
		{ "a.out: x.c:1: main: Assertion `0' failed.", "assertion" },
	};

	for (size_t i = 0; i < countof(rows); i++) {
		struct damage_abort a = { 0 };

		abortmsg_explain(&a, rows[i][0]);
		if (!CHECK_STR(a.code, rows[i][1]))
			printf("# %s\n", rows[i][0]);
		CHECK(a.noticed && a.meaning);
	}
}

/* ---- damaged places ---- */

TEST(text_written_past_the_end)
{
	struct world w;
	const struct damage_case *c;

	begin(&w);
	memcpy(target_mem_at(w.sp, HEAP + 0x60 + 16),
	       "0123456789012345678901234567890123456789AAAA\x1b", 44);
	put(w.sp, HEAP + 0x98, UINT64_C(0x4242424241414141));
	heap_note(&w.heap, "bad-chunk-size", 0, HEAP + 0x90, 0x30, "x");
	finish(&w);
	if (!CHECK(w.d.n_cases == 1))
		return;
	c = w.d.cases;
	CHECK_STR(damage_kind_name(c->kind), "overflow");
	CHECK_STR(damage_fill_name(c->fill), "text");
	CHECK_U64(c->addr, HEAP + 0x98);
	CHECK_STR(c->value_text, "AAAABBBB");
	CHECK_U64(c->before.addr, HEAP + 0x70);
	CHECK_U64(c->before.usable, 40);
	CHECK_U64(c->fill_addr, HEAP + 0x70);
	CHECK_U64(c->fill_bytes, 48);
	CHECK_STR(c->text, "40 usable bytes at 0x10000070, in use, were "
		  "written past their end: the size field behind them, at "
		  "0x10000098, holds text");
	CHECK_STR(c->fill_text, "0123456789012345678901234567890123456789"
		  "AAAABBBB");
	/* No byte of the target in the sentence. */
	CHECK(!strstr(c->text, "AAAA"));
	end(&w);
}

TEST(one_byte_over_and_over)
{
	struct world w;

	begin(&w);
	memset(target_mem_at(w.sp, HEAP + 0x70), 0xff, 60);
	heap_note(&w.heap, "bad-chunk-size", 0, HEAP + 0x90, 0x30, "x");
	finish(&w);
	CHECK_STR(damage_kind_name(w.d.cases[0].kind), "overflow");
	CHECK_STR(damage_fill_name(w.d.cases[0].fill), "repeated");
	CHECK_U64(w.d.cases[0].fill_bytes, 60);
	CHECK_STR(w.d.cases[0].value_text,
		  "\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff");
	end(&w);
}

/* From the size field on into the block: through a pointer to the block. */
TEST(written_before_the_start)
{
	struct world w;

	begin(&w);
	memset(target_mem_at(w.sp, HEAP + 0x98), 0xee, 24);
	heap_note(&w.heap, "bad-chunk-size", 0, HEAP + 0x90, 0x30, "x");
	finish(&w);
	CHECK_STR(damage_kind_name(w.d.cases[0].kind), "underflow");
	end(&w);
}

TEST(zeros_and_addresses_prove_nothing)
{
	struct world w;

	begin(&w);
	put(w.sp, HEAP + 0x98, 0);
	put(w.sp, HEAP + 0xf8, STACK + 0x10);
	put(w.sp, HEAP + 0x158, UINT64_C(0xdeadbeefcafef00d));
	heap_note(&w.heap, "bad-chunk-size", 0, HEAP + 0x150, 0x30, "x");
	heap_note(&w.heap, "bad-chunk-size", 0, HEAP + 0xf0, 0x30, "x");
	heap_note(&w.heap, "bad-chunk-size", 0, HEAP + 0x90, 0x30, "x");
	finish(&w);
	CHECK_U64(w.d.n_cases, 3);
	for (size_t i = 0; i < 3; i++)
		CHECK_STR(damage_kind_name(w.d.cases[i].kind), "unknown");
	/* The lowest address first: nearest to the cause. */
	CHECK_STR(damage_fill_name(w.d.cases[0].fill), "zero");
	CHECK_STR(damage_fill_name(w.d.cases[1].fill), "address");
	CHECK_STR(damage_fill_name(w.d.cases[2].fill), "none");
	end(&w);
}

/* In a locked arena, as it was met; how many cases come of it. */
static size_t cases_when(bool locked, int signal, const char *word)
{
	struct world w;
	uint64_t value = 0x1230;
	size_t n;

	begin(&w);
	if (word)
		memcpy(&value, word, sizeof(value));
	memcpy(target_mem_at(w.sp, HEAP + 0x98), &value, sizeof(value));
	w.heap.arenas[0].locked = locked;
	w.sp->signal = signal;
	heap_note(&w.heap, "bad-chunk-size", 0, HEAP + 0x90, 0, "x");
	finish(&w);
	n = w.d.n_cases;
	CHECK_STR(w.heap.notes[0].code, n ? "bad-chunk-size" : "in-progress");
	end(&w);
	return n;
}

TEST(an_operation_that_was_not_finished_is_no_damage)
{
	CHECK_U64(cases_when(true, SIGABRT, NULL), 0);
	CHECK_U64(cases_when(true, 0, NULL), 0);
	CHECK_U64(cases_when(false, SIGABRT, NULL), 1);
	/* The processor gave up over it, or somebody wrote text there. */
	CHECK_U64(cases_when(true, SIGSEGV, NULL), 1);
	CHECK_U64(cases_when(true, SIGABRT, "overflow"), 1);
}

TEST(double_frees_are_told_apart)
{
	struct world w;

	begin(&w);
	set_state(&w, HEAP + 0x90, BLOCK_CACHED);
	heap_note(&w.heap, "double-free", 0, HEAP + 0x90, 0, "x");
	heap_note(&w.heap, "bad-list-member", 0, HEAP + 0x97, 0, "x");
	heap_note(&w.heap, "bad-list-member", 0, HEAP + 0xc0, 0, "x");
	heap_note(&w.heap, "broken-tcache", 0, HEAP + 0x10, 0, "x");
	heap_note(&w.heap, "bad-footer", 0, HEAP + 0x120, 0, "x");
	heap_note(&w.heap, "claim", 0, HEAP, 0, "not damage");
	heap_note(&w.heap, "missing", 0, HEAP, 0x100, "not damage");
	finish(&w);
	CHECK_U64(w.d.n_cases, 5);
	CHECK_STR(damage_kind_name(w.d.cases[0].kind), "double-free");
	CHECK_STR(w.d.cases[0].text, "the block 0x100000a0 is in two free "
		  "lists, or twice in one: it was freed twice");
	CHECK_STR(damage_kind_name(w.d.cases[1].kind), "use-after-free");
	CHECK_STR(damage_kind_name(w.d.cases[2].kind), "unknown");
	CHECK_STR(damage_kind_name(w.d.cases[3].kind), "use-after-free");
	CHECK_U64(w.d.cases[3].addr, HEAP + 0x150);
	/* A list that is cut says the least: it comes last. */
	CHECK_U64(w.d.cases[4].addr, HEAP + 0x10);
	end(&w);
}

/* Links of freed blocks, plain and mixed with their own address. */
TEST(links_that_lead_nowhere)
{
	struct world w;
	vaddr lost = UINT64_C(0x4141414141414130);

	begin(&w);
	set_state(&w, HEAP + 0x90, BLOCK_FAST);
	put(w.sp, HEAP + 0xa0, lost ^ (HEAP + 0xa0) >> 12);
	set_state(&w, HEAP + 0xc0, BLOCK_CACHED);
	put(w.sp, HEAP + 0xd0, 0x999);
	set_state(&w, HEAP + 0x120, BLOCK_BINNED);
	memset(target_mem_at(w.sp, HEAP + 0x130), 'q', 16);
	heap_note(&w.heap, "bad-list-member", 0, lost, 0, "x");
	heap_note(&w.heap, "bad-list-member", 0, 0x999 - 16, 0, "x");
	heap_note(&w.heap, "double-free", 0, HEAP + 0x120, 0, "x");
	finish(&w);
	CHECK_U64(w.d.n_cases, 3);
	for (size_t i = 0; i < 3; i++)
		CHECK_STR(damage_kind_name(w.d.cases[i].kind),
			  "use-after-free");
	CHECK_STR(w.d.cases[0].text, "the links of the free block 0x10000130 "
		  "were overwritten: it was written to after it was freed");
	CHECK_STR(damage_fill_name(w.d.cases[0].fill), "repeated");
	CHECK_U64(w.d.cases[1].addr, HEAP + 0xd0);
	CHECK_U64(w.d.cases[2].addr, HEAP + 0xa0);
	CHECK_STR(w.d.cases[2].text, "40 usable bytes at 0x100000a0 were "
		  "written to after they were freed: the block's link at "
		  "0x100000a0 leads to no block");
	end(&w);
}

/* A link that was handed out with its block: the list begins where it led. */
TEST(a_link_in_a_block_handed_out_again)
{
	struct world w;
	uint64_t text = 0;
	vaddr at = HEAP + 0xa0;

	memcpy(&text, "Session", 7);
	begin(&w);
	put(w.sp, at, text);
	heap_note(&w.heap, "bad-list-member", 0, (text ^ at >> 12) - 16, 0,
		  "x");
	finish(&w);
	CHECK_U64(w.d.n_cases, 1);
	CHECK_STR(damage_kind_name(w.d.cases[0].kind), "use-after-free");
	CHECK(w.d.cases[0].has_block);
	CHECK_U64(w.d.cases[0].block.addr, at);
	CHECK_STR(w.d.cases[0].text, "40 usable bytes at 0x100000a0 were "
		  "written to after they were freed: what was the block's "
		  "link leads to no block; it has been handed out again "
		  "since");
	CHECK_STR(w.d.cases[0].fill_text, "Session");
	end(&w);

	/* Two of them: nobody knows which. */
	begin(&w);
	put(w.sp, at, text);
	put(w.sp, at + 0x30, text);
	heap_note(&w.heap, "bad-list-member", 0, (text ^ at >> 12) - 16, 0,
		  "x");
	finish(&w);
	CHECK(!w.d.cases[0].has_block && !w.d.cases[0].addr);
	end(&w);
}

/* Long texts are cut; what would move a cursor is not printed as it is. */
TEST(a_long_text_is_cut)
{
	struct world w;
	char want[DAMAGE_TEXT + 4];

	begin(&w);
	memset(target_mem_at(w.sp, HEAP + 0x70), 'x', 39);
	memset(target_mem_at(w.sp, HEAP + 0x70 + 39), '\\', 41);
	heap_note(&w.heap, "bad-chunk-size", 0, HEAP + 0x90, 0x30, "x");
	finish(&w);
	CHECK_U64(w.d.cases[0].fill_bytes, 80);
	memset(want, 'x', 39);
	want[39] = '\0';
	CHECK(!strncmp(w.d.cases[0].fill_text, want, 39));
	CHECK_U64(strlen(w.d.cases[0].fill_text), 39 + 25 * 4 + 3);
	CHECK(strstr(w.d.cases[0].fill_text, "x\\x5c\\x5c"));
	CHECK(strstr(w.d.cases[0].fill_text, "\\x5c..."));
	end(&w);
}

/* ---- the block that was freed twice ---- */

static void begin_double_free(struct world *w, const char *text)
{
	begin(w);
	put_message(w, BUFFER, text);
	put(w->sp, LIBC + 0x1100, BUFFER);
	w->heap.caches = mem_zalloc(2 * sizeof(*w->heap.caches));
	w->heap.n_caches = 2;
	w->heap.caches[0].tid = 7;
	w->heap.caches[1].tid = 8;
	w->heap.cached = mem_zalloc(3 * sizeof(*w->heap.cached));
	w->heap.n_cached = 3;
	w->heap.cached[0] = (struct cached){ HEAP + 0x60, 0, 1 };
	w->heap.cached[1] = (struct cached){ HEAP + 0x90, 0, 1 };
	w->heap.cached[2] = (struct cached){ HEAP + 0xc0, 1, 1 };
	for (int i = 0; i < 3; i++)
		set_state(w, HEAP + 0x60 + i * 0x30, BLOCK_CACHED);
}

/* As the frames of free() and _int_free() hold it. */
static void put_pair(struct world *w, vaddr at, vaddr chunk)
{
	put(w->sp, at, chunk + 16);
	put(w->sp, at + 0x18, chunk);
}

TEST(which_block_was_freed_twice)
{
	static const char text[] = "free(): double free detected in tcache 2\n";
	struct world w;

	begin_double_free(&w, text);
	put_pair(&w, STACK + 0x200, HEAP + 0x90);
	/* In another thread's cache; in use; only the pointer; too deep. */
	put_pair(&w, STACK + 0x300, HEAP + 0xc0);
	put_pair(&w, STACK + 0x340, HEAP + 0x120);
	put(w.sp, STACK + 0x180, HEAP + 0x70);
	put_pair(&w, STACK + 0x1200, HEAP + 0x60);
	finish(&w);
	CHECK(w.d.abort.has_block);
	CHECK_U64(w.d.abort.block.addr, HEAP + 0xa0);
	end(&w);

	/* Two that fit: not known. */
	begin_double_free(&w, text);
	put_pair(&w, STACK + 0x200, HEAP + 0x90);
	put_pair(&w, STACK + 0x300, HEAP + 0x60);
	finish(&w);
	CHECK(w.d.abort.found && !w.d.abort.has_block);
	end(&w);

	/* Another message: the block may be anything. */
	begin_double_free(&w, "free(): invalid pointer\n");
	put_pair(&w, STACK + 0x200, HEAP + 0x90);
	finish(&w);
	CHECK(w.d.abort.found && !w.d.abort.has_block);
	end(&w);
}

/* The head of a fastbin: the arena itself leads to it. */
TEST(which_fastbin_block_was_freed_twice)
{
	struct world w;

	for (int good = 0; good < 2; good++) {
		begin_double_free(&w, "double free or corruption (fasttop)\n");
		set_state(&w, HEAP + 0x90, BLOCK_FAST);
		w.heap.arenas[0].addr = LIBC + 0x1800;
		put(w.sp, LIBC + 0x1818, good ? HEAP + 0x90 : HEAP + 0x120);
		put_pair(&w, STACK + 0x200, HEAP + 0x90);
		finish(&w);
		CHECK_U64(w.d.abort.has_block, (uint64_t)good);
		end(&w);
	}
}

TEST(headers_that_are_not_in_the_file)
{
	struct world w;

	begin(&w);
	heap_note(&w.heap, "bad-chunk-size", 0, BUFFER + 0x2800, 8, "x");
	heap_note(&w.heap, "bad-chunk-size", 0, 0, 8, "x");
	heap_note(&w.heap, "bad-footer", 0, UINT64_MAX - 3, 8, "x");
	finish(&w);
	CHECK_U64(w.d.n_cases, 3);
	CHECK_STR(damage_kind_name(w.d.cases[1].kind), "not-in-file");
	CHECK_STR(w.d.cases[1].text,
		  "the size field at 0x30002808 is not in the file");
	end(&w);
}

TEST(more_cases_than_a_person_reads)
{
	struct world w;

	begin(&w);
	for (unsigned i = 0; i < 250; i++)
		heap_note(&w.heap, "bad-chunk-size", 0, HEAP + i * 0x30, 0,
			  "x");
	finish(&w);
	CHECK_U64(w.d.n_cases, DAMAGE_MAX);
	CHECK_U64(w.d.cases_dropped, 150);
	end(&w);
}

/* ---- what is at an address ---- */

static void check_at(struct world *w, vaddr addr, const char *text)
{
	struct damage_at a;

	damage_at_init(&a, w->sp, &w->heap, &w->where, addr);
	CHECK_STR(a.text, text);
	damage_at_fini(&a);
}

TEST(what_is_at_an_address)
{
	struct damage_at a;
	struct world w;

	begin(&w);
	set_state(&w, HEAP + 0x60, BLOCK_CACHED);
	set_state(&w, HEAP + 0x90, BLOCK_BINNED);
	set_state(&w, HEAP + 0xc0, BLOCK_CACHED);
	w.heap.caches = mem_zalloc(sizeof(*w.heap.caches));
	w.heap.n_caches = 1;
	w.heap.caches[0].tid = 4711;
	w.heap.cached = mem_zalloc(sizeof(*w.heap.cached));
	w.heap.n_cached = 1;
	w.heap.cached[0] = (struct cached){ HEAP + 0x60, 0, 1 };
	heap_add_range(&w.heap, 0, EXTENT_UNDECODED, HEAP + 0x3000,
		       HEAP + 0x3100);
	heap_add_mmapped(&w.heap, 0, HEAP + 0x8000, HEAP + 0xa000,
			 HEAP + 0x8010, 0);
	heap_note(&w.heap, "bad-chunk-size", 0, HEAP + 0x3000, 0x100, "x");
	finish(&w);
	check_at(&w, 0x1234, "0x1234 is not mapped");
	check_at(&w, HEAP + 0x40,
		 "0x10000040 is the start of a block of 48 bytes in glibc "
		 "main: in use");
	check_at(&w, HEAP + 0x38,
		 "0x10000038 is in the header of block 0x10000040 of 48 bytes "
		 "in glibc main: in use");
	check_at(&w, HEAP + 0x74,
		 "0x10000074 is 4 bytes into block 0x10000070 of 48 bytes in "
		 "glibc main: free, in the cache of thread 4711");
	check_at(&w, HEAP + 0xa0,
		 "0x100000a0 is the start of a block of 48 bytes in glibc "
		 "main: free, in a bin");
	check_at(&w, HEAP + 0xd0,
		 "0x100000d0 is the start of a block of 48 bytes in glibc "
		 "main: free, in a thread's cache");
	check_at(&w, HEAP + 0x3050,
		 "0x10003050 is in a part of glibc main that was not decoded;"
		 " damaged at 0x10003000");
	check_at(&w, HEAP + 0x8020,
		 "0x10008020 is 16 bytes into block 0x10008010 of 8192 bytes "
		 "in glibc main: in use, a mapping of its own");
	check_at(&w, LIBC + 0x1010,
		 "0x20001010 is in a mapping: data of libc.so.6");
	check_at(&w, BUFFER + 0x2800,
		 "0x30002800 is in a mapping: anonymous; its bytes are not in "
		 "the core file");

	damage_at_init(&a, w.sp, &w.heap, &w.where, HEAP + 0x70);
	CHECK(a.has_before && a.has_after);
	CHECK_U64(a.before.addr, HEAP + 0x40);
	CHECK_U64(a.after.addr, HEAP + 0xa0);
	CHECK(a.has_header);
	CHECK_U64(a.header[1], 0x31);
	CHECK(a.cache && a.cache->tid == 4711);
	damage_at_fini(&a);

	/* Neighbours of a hole in the walk. */
	damage_at_init(&a, w.sp, &w.heap, &w.where, HEAP + 0x3050);
	CHECK(a.has_before && !a.has_after && !a.has_block);
	CHECK_U64(a.before.addr, HEAP + 0x2fe0);
	damage_at_fini(&a);
	end(&w);
}
