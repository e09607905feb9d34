/* SPDX-License-Identifier: MIT */
#include <inttypes.h>

#include "analysis/where.h"
#include "base/mem.h"
#include "corewalk/target.h"
#include "unit/check.h"

enum {
	RW = SEG_R | SEG_W,
	EXE = 0x400000,		/* r-x, then data, then bss */
	BREAK = 0x500000,
	LIB = 0x10000000,
	HEAP2 = 0x20000000,
	STACKS = 0x30000000,
	TOP = 0x40000000,
};

struct world {
	struct space *sp;
	struct heap heap;
	struct where where;
};

static void put(struct space *sp, vaddr addr, uint64_t value)
{
	memcpy(target_mem_at(sp, addr), &value, sp->word);
}

static void add_module(struct space *sp, size_t i, const char *name,
		       vaddr start, vaddr end)
{
	sp->modules = mem_realloc(sp->modules, (i + 1) * sizeof(*sp->modules));
	sp->n_modules = i + 1;
	sp->modules[i] = (struct module){
		.start = start, .end = end, .is_exe = !i,
	};
	for (uint32_t k = 0; k < sp->n_files; k++)
		if (!strcmp(sp->files[k].name, name)) {
			sp->modules[i].file = k;
			sp->files[k].module = (uint32_t)i;
		}
}

static void add_thread(struct space *sp, uint32_t tid, vaddr at, vaddr tls)
{
	size_t n = sp->n_threads++;

	sp->threads = mem_realloc(sp->threads,
				  sp->n_threads * sizeof(*sp->threads));
	sp->threads[n] = (struct thread){ .tid = tid, .sp = at, .tls = tls };
}

/* A program of one library and two bytes of everything. */
static void begin(struct world *w)
{
	struct space *sp = target_mem_new(MACHINE_X86_64);

	w->sp = sp;
	sp->pid = 100;
	target_mem_add(sp, EXE, 0x2000, SEG_R | SEG_X, NULL, 0x1000,
		       "/bin/appd");
	target_mem_add(sp, EXE + 0x2000, 0x1000, RW, NULL, 0x1000,
		       "/bin/appd");
	target_mem_add(sp, EXE + 0x3000, 0x2000, RW, NULL, 0x2000, NULL);
	target_mem_add(sp, BREAK, 0x21000, RW, NULL, 0x21000, NULL);
	target_mem_add(sp, LIB, 0x4000, SEG_R | SEG_X, NULL, 0,
		       "/lib/libfoo.so.1");
	target_mem_add(sp, LIB + 0x4000, 0x1000, RW, NULL, 0x1000,
		       "/lib/libfoo.so.1");
	target_mem_add(sp, TOP, 0x10000, RW, NULL, 0x10000, NULL);
	target_mem_add(sp, TOP + 0x20000, 0x2000, SEG_R | SEG_X | SEG_KERNEL,
		       NULL, 0x2000, NULL);
	sp->at_sysinfo = TOP + 0x20000;
	add_module(sp, 0, "/bin/appd", EXE, EXE + 0x5000);
	add_module(sp, 1, "/lib/libfoo.so.1", LIB, LIB + 0x5000);
	add_thread(sp, 100, TOP + 0x8000, 0);
	heap_init(&w->heap);
	heap_add_arena(&w->heap, heap_add_allocator(&w->heap, "glibc", "x",
						    "x"), 0, "glibc main");
}

static void finish(struct world *w)
{
	heap_finish(&w->heap);
	where_init(&w->where, w->sp, &w->heap);
}

static void end(struct world *w)
{
	where_fini(&w->where);
	heap_fini(&w->heap);
	space_close(w->sp);
}

static void check_sum(const struct world *w)
{
	int64_t off = 0;

	CHECK(where_check(&w->where, &off));
	CHECK_U64((uint64_t)off, 0);
}

static const char *what_at(const struct world *w, vaddr addr)
{
	const struct where_map *map = where_map_at(&w->where, addr);

	return map ? map->what : "nothing";
}

/* Blocks of 0x1000 bytes from start on, their states from text. */
static size_t add_blocks(struct world *w, uint32_t arena, vaddr start,
			 const char *states)
{
	size_t n = strlen(states);
	size_t i = heap_add_blocks(&w->heap, arena, start, start + n * 0x1000,
				   4, 16, 8);

	for (size_t k = 0; k < n; k++) {
		vaddr at = start + k * 0x1000;
		static const char letters[] = "ucfnblto";
		const char *state = strchr(letters, states[k]);

		extent_mark(&w->heap.extents[i], at);
		extent_set_state(&w->heap.extents[i], at,
				 (enum block_state)(state - letters));
	}
	return i;
}

TEST(names)
{
	CHECK_STR(where_row_name(WHERE_DEAD_STACKS), "dead_stacks");
	CHECK_STR(where_row_text(WHERE_CACHED),
		  "free, in thread caches and fastbins");
	for (int i = 0; i < WHERE_ROWS; i++)
		CHECK(where_row_name((enum where_row)i) &&
		      where_row_text((enum where_row)i));
}

TEST(without_a_heap)
{
	struct world w;

	begin(&w);
	target_mem_done(w.sp);
	finish(&w);
	check_sum(&w);
	CHECK_U64(w.where.row[WHERE_DATA].bytes, 0x1000 + 0x2000 + 0x1000);
	CHECK_U64(w.where.row[WHERE_STACKS].bytes, 0x10000);
	CHECK_U64(w.where.row[WHERE_ANONYMOUS].bytes, 0x21000);
	CHECK_U64(w.where.total.bytes, 0x35000);
	CHECK_STR(what_at(&w, EXE), "code of appd");
	CHECK_STR(what_at(&w, EXE + 0x2000), "data of appd");
	CHECK_STR(what_at(&w, EXE + 0x3000), "bss of appd");
	CHECK_STR(what_at(&w, BREAK), "anonymous");
	CHECK_STR(what_at(&w, LIB), "code of libfoo.so.1");
	CHECK_STR(what_at(&w, TOP), "stack, main thread 1 (tid 100)");
	CHECK_STR(what_at(&w, TOP + 0x20000), "[vdso]");
	CHECK_STR(what_at(&w, TOP + 0x10000), "nothing");
	end(&w);
}

TEST(every_state_has_its_row)
{
	struct world w;

	begin(&w);
	target_mem_done(w.sp);
	add_blocks(&w, 0, BREAK + 0x1000, "uuuucfnnblltttoou");
	heap_add_range(&w.heap, 0, EXTENT_UNDECODED, BREAK + 0x12000,
		       BREAK + 0x15000);
	heap_add_range(&w.heap, 0, EXTENT_FOREIGN, BREAK + 0x15000,
		       BREAK + 0x16000);
	heap_add_range(&w.heap, 0, EXTENT_OVERHEAD, BREAK + 0x16000,
		       BREAK + 0x17000);
	heap_add_mmapped(&w.heap, 0, BREAK + 0x17000, BREAK + 0x1c000,
			 BREAK + 0x17010, 0);
	finish(&w);
	check_sum(&w);
	CHECK_U64(w.where.row[WHERE_USED].bytes, 5 * 0x1000 + 0x5000);
	CHECK_U64(w.where.row[WHERE_CACHED].bytes, 2 * 0x1000);
	CHECK_U64(w.where.row[WHERE_FREE].bytes, 8 * 0x1000);
	CHECK_U64(w.where.row[WHERE_OVERHEAD].bytes, 2 * 0x1000 + 0x1000);
	CHECK_U64(w.where.row[WHERE_UNDECODED].bytes, 0x3000);
	CHECK_U64(w.where.row[WHERE_ANONYMOUS].bytes, 0x1000 + 0x5000);
	/* What lies in the break before the heap is the program's. */
	CHECK_U64(w.where.row[WHERE_DATA].bytes, 0x4000 + 0x1000);
	CHECK_STR(what_at(&w, BREAK), "data before the heap of appd; "
		  "heap, glibc main; not malloc's, inside its heap; "
		  "and 2 more");
	CHECK_U64(where_map_at(&w.where, BREAK)->stored_row[WHERE_USED],
		  0xa000);
	end(&w);
}

/* The second half of a block and a block behind it have no bytes. */
TEST(holes_are_charged_to_their_blocks)
{
	struct world w;

	begin(&w);
	target_mem_add(w.sp, HEAP2, 0x8000, RW, NULL, 0x2800, NULL);
	target_mem_add(w.sp, HEAP2 + 0x8000, 0x8000, RW, NULL, 0x8000, NULL);
	target_mem_done(w.sp);
	add_blocks(&w, 0, HEAP2, "uubuuubbuuuuuuuc");
	finish(&w);
	check_sum(&w);
	CHECK_U64(w.where.row[WHERE_USED].bytes, 12 * 0x1000);
	CHECK_U64(w.where.row[WHERE_USED].stored, 9 * 0x1000);
	CHECK_U64(w.where.row[WHERE_FREE].bytes, 3 * 0x1000);
	CHECK_U64(w.where.row[WHERE_FREE].stored, 0x800);
	CHECK_U64(w.where.row[WHERE_CACHED].stored, 0x1000);
	/* All of it is behind the end, and none of it a hole. */
	CHECK_U64(w.where.row[WHERE_USED].left_out, 3 * 0x1000);
	CHECK_U64(w.where.row[WHERE_FREE].left_out, 3 * 0x1000 - 0x800);
	CHECK_U64(w.where.row[WHERE_CACHED].left_out, 0);
	end(&w);
}

/* Holes of the file itself, found through the runs of stored bytes. */
TEST(holes_of_the_file)
{
	struct world w;
	uint64_t off;

	begin(&w);
	target_mem_add(w.sp, HEAP2, 0x8000, RW, NULL, 0x8000, NULL);
	target_mem_done(w.sp);
	off = space_seg(w.sp, HEAP2)->core_off;
	w.sp->runs = mem_zalloc(3 * sizeof(*w.sp->runs));
	w.sp->runs[0] = (struct extent_run){ 0, off + 0x1000 };
	w.sp->runs[1] = (struct extent_run){ off + 0x4000, off + 0x5800 };
	w.sp->runs[2] = (struct extent_run){ off + 0x7000, 1 << 30 };
	w.sp->n_runs = 3;
	space_index(w.sp);
	add_blocks(&w, 0, HEAP2, "uubbubcu");
	finish(&w);
	check_sum(&w);
	CHECK_U64(w.where.row[WHERE_USED].stored, 0x3000);
	CHECK_U64(w.where.row[WHERE_FREE].stored, 0x800);
	CHECK_U64(w.where.row[WHERE_CACHED].stored, 0);
	CHECK_U64(w.where.total.bytes - w.where.total.stored,
		  0x3000 + 0x800 + 0x1000);
	CHECK_U64(w.where.row[WHERE_USED].left_out, 0);
	CHECK_U64(w.where.row[WHERE_FREE].left_out, 0);
	end(&w);
}

/* An extent that runs out of its mapping, into a hole between mappings. */
TEST(claims_outside_private_memory)
{
	struct world w;

	begin(&w);
	target_mem_add(w.sp, HEAP2, 0x2000, RW, NULL, 0x2000, NULL);
	target_mem_add(w.sp, HEAP2 + 0x4000, 0x2000, RW, NULL, 0x2000, NULL);
	target_mem_add(w.sp, HEAP2 + 0x6000, 0x2000, 0, NULL, 0, NULL);
	target_mem_done(w.sp);
	add_blocks(&w, 0, HEAP2 + 0x1000, "ubuubbu");
	heap_add_arena(&w.heap, 0, 0, "glibc 1");
	finish(&w);
	check_sum(&w);
	CHECK_U64(w.where.row[WHERE_USED].bytes, 2 * 0x1000);
	CHECK_U64(w.where.row[WHERE_FREE].bytes, 0x1000);
	CHECK_U64(w.where.row[WHERE_ANONYMOUS].bytes, 0x21000 + 0x1000);
	CHECK_STR(what_at(&w, HEAP2), "anonymous; heap, glibc main");
	end(&w);
}

/* A descriptor at the top of a stack, as glibc has it. */
static void put_tcb(struct space *sp, vaddr tcb, vaddr start, uint64_t size)
{
	put(sp, tcb, tcb);
	put(sp, tcb + 0x10, tcb);
	put(sp, tcb + 0x690, start);
	put(sp, tcb + 0x698, size);
}

/* Four stacks became one mapping; the heads of their lists are in libfoo. */
TEST(stacks_in_one_mapping)
{
	struct world w;
	vaddr tcb[4];

	begin(&w);
	target_mem_add(w.sp, STACKS, 0x80000, RW, NULL, 0x80000, NULL);
	for (int i = 0; i < 4; i++) {
		tcb[i] = STACKS + 0x20000 * (vaddr)(i + 1) - 0x940;
		put_tcb(w.sp, tcb[i], STACKS + 0x20000 * (vaddr)i, 0x20000);
	}
	add_thread(w.sp, 101, tcb[0] - 0x400, tcb[0]);
	add_thread(w.sp, 102, tcb[2] - 0x400, tcb[2]);
	/* Used: 0, 2.  Cached: 1, 3. */
	put(w.sp, LIB + 0x4100, tcb[0] + 0x2c0);
	put(w.sp, tcb[0] + 0x2c0, tcb[2] + 0x2c0);
	put(w.sp, tcb[2] + 0x2c0, LIB + 0x4100);
	put(w.sp, LIB + 0x4110, tcb[1] + 0x2c0);
	put(w.sp, tcb[1] + 0x2c0, tcb[3] + 0x2c0);
	put(w.sp, tcb[3] + 0x2c0, LIB + 0x4110);
	target_mem_done(w.sp);
	finish(&w);
	check_sum(&w);
	CHECK_U64(w.where.n_stacks, 5);
	CHECK_U64(w.where.row[WHERE_STACKS].bytes, 0x40000 + 0x10000);
	CHECK_U64(w.where.row[WHERE_DEAD_STACKS].bytes, 0x40000);
	CHECK_U64(where_stack_at(&w.where, STACKS + 0x41000)->thread, 2);
	CHECK(where_stack_at(&w.where, STACKS + 0x20000)->thread ==
	      WHERE_NO_THREAD);
	CHECK(!where_stack_at(&w.where, STACKS + 0x80000));
	CHECK_STR(what_at(&w, STACKS), "stack, thread 2 (tid 101); "
		  "stack of a thread that is gone; "
		  "stack, thread 3 (tid 102); and 1 more");
	end(&w);
}

/* No lists: the end of the mapping shows one, and that one the next. */
TEST(stacks_by_the_ends_of_mappings)
{
	struct world w;

	begin(&w);
	target_mem_add(w.sp, STACKS, 0x60000, RW, NULL, 0x60000, NULL);
	put_tcb(w.sp, STACKS + 0x60000 - 0x900, STACKS + 0x40000, 0x20000);
	put_tcb(w.sp, STACKS + 0x40000 - 0x980, STACKS + 0x10000, 0x30000);
	target_mem_done(w.sp);
	finish(&w);
	check_sum(&w);
	CHECK_U64(w.where.row[WHERE_DEAD_STACKS].bytes, 0x50000);
	CHECK_U64(w.where.row[WHERE_ANONYMOUS].bytes, 0x21000 + 0x10000);
	end(&w);
}

/* Stack lists that lie: a cycle beside the head, ranges over others. */
TEST(lists_that_lie)
{
	struct world w;
	vaddr a = STACKS + 0x20000 - 0x900, b = STACKS + 0x40000 - 0x900;

	begin(&w);
	target_mem_add(w.sp, STACKS, 0x40000, RW, NULL, 0x40000, NULL);
	put_tcb(w.sp, a, STACKS + 0x1000, 0x3f000);
	put_tcb(w.sp, b, STACKS, UINT64_C(0xfffffffffffff000));
	put(w.sp, LIB + 0x4100, a + 0x2c0);
	put(w.sp, a + 0x2c0, b + 0x2c0);
	put(w.sp, b + 0x2c0, b + 0x2c0);
	for (vaddr at = LIB + 0x4200; at < LIB + 0x5000; at += 8)
		put(w.sp, at, a + 0x2c0);
	target_mem_done(w.sp);
	finish(&w);
	check_sum(&w);
	CHECK_U64(w.where.row[WHERE_DEAD_STACKS].bytes, 0x3f000);
	end(&w);
}

/* A thread without a descriptor, and one whose stack lies in a block. */
TEST(stacks_by_their_pointer)
{
	struct world w;

	begin(&w);
	target_mem_add(w.sp, STACKS, 0x8000, RW, NULL, 0x8000, NULL);
	add_thread(w.sp, 101, STACKS + 0x7000, 0);
	add_thread(w.sp, 102, BREAK + 0x1800, 0);
	target_mem_done(w.sp);
	add_blocks(&w, 0, BREAK, "uuu");
	finish(&w);
	check_sum(&w);
	CHECK_U64(w.where.n_stacks, 2);
	CHECK_U64(w.where.row[WHERE_STACKS].bytes, 0x8000 + 0x10000);
	CHECK_U64(w.where.row[WHERE_USED].bytes, 0x3000);
	CHECK(!where_stack_at(&w.where, STACKS)->exact);
	end(&w);
}

TEST(a_main_thread_that_is_gone)
{
	struct world w;

	begin(&w);
	w.sp->n_threads = 0;
	target_mem_done(w.sp);
	finish(&w);
	check_sum(&w);
	CHECK_U64(w.where.row[WHERE_DEAD_STACKS].bytes, 0x10000);
	CHECK_STR(what_at(&w, TOP), "stack of the main thread, gone");
	end(&w);
}

TEST(names_of_other_mappings)
{
	struct world w;

	begin(&w);
	target_mem_add(w.sp, HEAP2, 0x1000, 0, NULL, 0, NULL);
	target_mem_add(w.sp, HEAP2 + 0x10000, 0x1000, RW | SEG_SHARED, NULL,
		       0x1000, "/dev/zero");
	target_mem_add(w.sp, HEAP2 + 0x20000, 0x1000, RW | SEG_SHARED, NULL,
		       0x1000, "/memfd:ring\x1b[2J");
	target_mem_add(w.sp, HEAP2 + 0x30000, 0x1000, SEG_R, NULL, 0,
		       "/usr/share/zone");
	target_mem_add(w.sp, HEAP2 + 0x40000, 0x1000, SEG_R | SEG_W | SEG_X,
		       NULL, 0, NULL);
	target_mem_add(w.sp, HEAP2 + 0x41000, 0x1000, SEG_R | SEG_W | SEG_X,
		       NULL, 0, NULL);
	target_mem_done(w.sp);
	finish(&w);
	check_sum(&w);
	CHECK_STR(what_at(&w, HEAP2), "reserved, no access");
	CHECK_STR(what_at(&w, HEAP2 + 0x10000), "shared memory");
	CHECK_STR(what_at(&w, HEAP2 + 0x20000),
		  "shared memory /memfd:ring\\x1b[2J");
	CHECK_STR(what_at(&w, HEAP2 + 0x30000), "file /usr/share/zone");
	CHECK_STR(what_at(&w, HEAP2 + 0x40000), "anonymous, executable");
	CHECK_U64(where_map_at(&w.where, HEAP2 + 0x41000)->mappings, 2);
	CHECK_U64(w.where.row[WHERE_ANONYMOUS].bytes, 0x21000 + 0x2000);
	end(&w);
}
