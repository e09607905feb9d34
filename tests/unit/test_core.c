/* SPDX-License-Identifier: MIT */
/*
 * Cores made by hand: every kind of header, right and wrong.
 */
#include "corewalk/target.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "core_build.h"

static const struct target_options no_files = { .no_files = true };

static struct space *open_built(const struct core_build *b, uint8_t **data,
				struct err *err)
{
	size_t size;

	*data = build_core(b, &size);
	return target_open_core_memory(*data, size, &no_files, err);
}

static uint8_t page_of[4096];

static const void *page(uint8_t byte)
{
	memset(page_of, byte, sizeof(page_of));
	return page_of;
}

static void fresh(struct core_build *b)
{
	memset(b, 0, sizeof(*b));
	b->is64 = true;
	b->machine = 62;
}

static struct core_build b;

static bool has_warning(const struct space *sp, const char *part)
{
	size_t i;

	for (i = 0; i < sp->n_warnings; i++)
		if (strstr(sp->warnings[i], part))
			return true;
	return false;
}

TEST(segments_and_holes)
{
	struct space *sp;
	uint8_t *data;
	struct err err;
	uint64_t v;

	fresh(&b);
	build_load(&b, 0x10000, 0x3000, PF_RW, page(0x55), 0x1000);
	build_load(&b, 0x20000, 0x1000, PF_R, NULL, 0);
	build_load(&b, 0x21000, 0x1000, PF_RX, page(0x55), 0x1000);
	sp = open_built(&b, &data, &err);
	if (!CHECK(sp))
		return;
	CHECK_U64(sp->n_segs, 3);
	CHECK_U64(sp->word, 8);
	CHECK_U64(sp->segs[0].avail, 0x1000);
	CHECK_U64(sp->segs[0].stored, 0x1000);
	CHECK_U64(sp->segs[0].flags, SEG_R | SEG_W);
	CHECK_U64(sp->segs[1].avail, 0);
	CHECK_U64(sp->segs[2].flags, SEG_R | SEG_X);
	CHECK_U64(space_why(sp, 0x11000), SPACE_UNDUMPED);
	CHECK_U64(space_why(sp, 0x13000), SPACE_UNMAPPED);
	CHECK(space_u64(sp, 0x10000, &v));
	CHECK_U64(v, 0x5555555555555555);
	CHECK_U64(sp->core_wanted, sp->core_size);
	CHECK_U64(sp->missing_segs, 0);
	CHECK_U64(sp->n_warnings, 0);
	CHECK_STR(sp->kind, "core");
	space_close(sp);
	free(data);
}

TEST(unsorted_headers_are_sorted)
{
	struct space *sp;
	uint8_t *data;
	struct err err;
	int i;

	fresh(&b);
	for (i = 99; i >= 0; i--)
		build_load(&b, 0x10000 + (uint64_t)(i * 7 % 100) * 0x2000,
			   0x1000, PF_RW, NULL, 0x1000);
	sp = open_built(&b, &data, &err);
	if (!CHECK(sp))
		return;
	CHECK_U64(sp->n_segs, 100);
	for (i = 0; i < 100; i++)
		CHECK_U64(sp->segs[i].start, 0x10000 + (uint64_t)i * 0x2000);
	CHECK_U64(sp->n_warnings, 0);
	space_close(sp);
	free(data);
}

/* The first by address keeps its bytes, in whatever order they stand. */
TEST(overlaps_are_cut)
{
	uint8_t first[0x3000], second[0x3000], inner[0x1000];
	struct space *sp;
	uint8_t *data;
	struct err err;
	uint8_t v;
	int order;

	memset(first, 1, sizeof(first));
	memset(second, 2, sizeof(second));
	memset(inner, 3, sizeof(inner));
	second[0x1000] = 9;
	for (order = 0; order < 2; order++) {
		fresh(&b);
		if (order)
			build_load(&b, 0x12000, 0x3000, PF_R, second, 0x3000);
		build_load(&b, 0x10000, 0x3000, PF_RW, first, 0x3000);
		build_load(&b, 0x11000, 0x1000, PF_R, inner, 0x1000);
		if (!order)
			build_load(&b, 0x12000, 0x3000, PF_R, second, 0x3000);
		sp = open_built(&b, &data, &err);
		if (!CHECK(sp))
			return;
		CHECK_U64(sp->n_segs, 2);
		CHECK_U64(sp->segs[0].end, 0x13000);
		CHECK_U64(sp->segs[1].start, 0x13000);
		CHECK_U64(sp->segs[1].end, 0x15000);
		CHECK_U64(sp->segs[1].avail, 0x2000);
		CHECK(space_u8(sp, 0x12fff, &v) && v == 1);
		CHECK(space_u8(sp, 0x11000, &v) && v == 1);
		CHECK(space_u8(sp, 0x13000, &v) && v == 9);
		CHECK(space_u8(sp, 0x14fff, &v) && v == 2);
		CHECK(has_warning(sp, "overlap, the first by address is "
				  "believed; mappings cut: 2"));
		space_close(sp);
		free(data);
	}
}

TEST(sizes_that_do_not_fit)
{
	struct space *sp;
	uint8_t *data;
	struct err err;
	uint64_t v;

	fresh(&b);
	/* Beyond the end of the address space; filesz above memsz; empty. */
	build_load(&b, 0xffffffffffeff000, UINT64_MAX, PF_RW, page(1), 0x1000);
	build_load(&b, 0xfffffffffffff000, 0x2000, PF_RW, page(1), 0x1000);
	build_load(&b, 0x10000, 0x800, PF_RW, page(1), 0x1000);
	build_load(&b, 0x20000, 0, PF_RW, NULL, 0);
	sp = open_built(&b, &data, &err);
	if (!CHECK(sp))
		return;
	CHECK_U64(sp->n_segs, 2);
	CHECK_U64(sp->segs[0].avail, 0x800);
	/* At a border of pages, whatever their size is. */
	CHECK_U64(sp->segs[1].end, 0xfffffffffff00000);
	CHECK(space_u64(sp, 0xffffffffffeffff8, &v));
	CHECK(!space_u64(sp, 0xfffffffffffff000, &v));
	CHECK(!space_u64(sp, 0x10000 + 0x7fc, &v));
	space_close(sp);
	free(data);
}

/* No more is read than the file has twice, however often it is claimed. */
TEST(mappings_that_share_bytes)
{
	struct space *sp;
	uint8_t *data;
	struct err err;
	uint64_t sum = 0;
	size_t i, size;

	fresh(&b);
	for (i = 0; i < 1000; i++)
		build_load(&b, 0x10000 + i * 0x100000, 0x100000, PF_RW,
			   NULL, 64);
	data = build_core(&b, &size);
	for (i = 0; i < 1000; i++) {
		put_n(data + 64 + (i + 1) * 56 + 8, 0, 8);
		put_n(data + 64 + (i + 1) * 56 + 32, 0x100000, 8);
	}
	sp = target_open_core_memory(data, size, &no_files, &err);
	if (!CHECK(sp))
		return;
	for (i = 0; i < sp->n_segs; i++) {
		sum += sp->segs[i].avail;
		CHECK(!sp->segs[i].host == !sp->segs[i].avail);
	}
	CHECK(sum <= 2 * size);
	CHECK(has_warning(sp, "claim bytes"));
	space_close(sp);
	free(data);
}

static void check_many(bool cut, bool reversed)
{
	enum { N = 70000 };
	size_t table = 64 + (N + 1) * 56, i, size;
	struct build_load note = { .filesz = 0 };
	struct core_build head = { .is64 = true, .machine = 62, .xnum = true };
	struct space *sp;
	struct err err;
	uint8_t *data;
	clock_t t = clock();
	uint64_t end = table + 4096 + 64;

	size = cut ? end - 64 : end;
	data = calloc(1, size);
	put_header(&head, data, 0, end - 64);
	put_phdr(&head, data + 64, 4, &note, table);
	for (i = 0; i < N; i++) {
		size_t at = reversed ? N - i : i + 1;
		struct build_load l = {
			.vaddr = at * 0x2000, .memsz = 0x1000, .flags = PF_RW,
			.filesz = at == 5 ? 4096 : 0,
		};

		put_phdr(&head, data + 64 + (i + 1) * 56, 1, &l, table);
	}
	if (!cut)
		put_n(data + end - 64 + 44, N + 1, 4);
	sp = target_open_core_memory(data, size, &no_files, &err);
	if (!CHECK(sp))
		return;
	CHECK_U64(sp->n_segs, N);
	CHECK_U64(sp->segs[N - 1].start, N * (uint64_t)0x2000);
	CHECK_U64(space_why(sp, 5 * 0x2000), SPACE_OK);
	CHECK_U64(space_why(sp, 6 * 0x2000), SPACE_UNDUMPED);
	space_close(sp);
	free(data);
	/* Nothing quadratic: that would take minutes. */
	CHECK(clock() - t < 5 * CLOCKS_PER_SEC);
}

TEST(seventy_thousand_headers)
{
	check_many(false, false);
	check_many(false, true);
}

TEST(their_count_when_the_end_is_cut_off)
{
	check_many(true, false);
}

TEST(xnum_of_32_bits)
{
	struct space *sp;
	uint8_t *data;
	struct err err;

	fresh(&b);
	b.is64 = false;
	b.machine = 3;
	b.xnum = true;
	build_load(&b, 0x10000, 0x1000, PF_RW, page(1), 0x1000);
	build_load(&b, 0x20000, 0x1000, PF_RW, page(1), 0x1000);
	sp = open_built(&b, &data, &err);
	if (!CHECK(sp))
		return;
	CHECK_U64(sp->n_segs, 2);
	CHECK_U64(sp->word, 4);
	space_close(sp);
	free(data);
}

static void add_process(void)
{
	const uint64_t auxv[] = {
		3, 0x10040, 5, 13, 6, 4096, 7, 0x7000, 9, 0x10100,
		33, 0x40000, 31, 0x30010,
	};
	uint8_t siginfo[128] = { 0 };

	build_status(&b, 1234, 0x30800);
	build_psinfo(&b, 1233, "appd", "appd --verbose   ");
	put_n(siginfo, 11, 4);
	put_n(siginfo + 8, 1, 4);
	put_n(siginfo + (b.is64 ? 16 : 12), 0xdead000, b.is64 ? 8 : 4);
	build_note(&b, "CORE", 0x53494749, siginfo, 128);
	build_auxv(&b, auxv, 7);
	build_note(&b, "CORE", 2, siginfo, 108);
}

TEST(notes_of_x86_64)
{
	struct space *sp;
	uint8_t *data;
	struct err err;

	fresh(&b);
	add_process();
	build_status(&b, 1235, 0x50000);
	build_load(&b, 0x30000, 0x1000, PF_RW, page(0), 0x1000);
	sp = open_built(&b, &data, &err);
	if (!CHECK(sp))
		return;
	CHECK_STR(sp->writer, "kernel");
	CHECK_STR(sp->program, "appd");
	CHECK_STR(sp->command, "appd --verbose");
	CHECK_U64(sp->pid, 1233);
	CHECK_U64((uint64_t)sp->signal, 11);
	CHECK(sp->has_fault_addr);
	CHECK_U64(sp->fault_addr, 0xdead000);
	CHECK_U64(sp->at_phdr, 0x10040);
	CHECK_U64(sp->at_phnum, 13);
	CHECK_U64(sp->at_base, 0x7000);
	CHECK_U64(sp->at_entry, 0x10100);
	CHECK_U64(sp->at_sysinfo, 0x40000);
	CHECK_U64(sp->n_threads, 2);
	CHECK_U64(sp->threads[0].tid, 1234);
	CHECK_U64(sp->threads[0].n_regs, 27);
	CHECK_U64(sp->threads[0].sp, 0x30800);
	CHECK_U64(sp->threads[0].pc, 0x100 + 16);
	CHECK_U64(sp->threads[0].tls, 0x100 + 21);
	CHECK_U64(sp->threads[0].regs[10], 0x10a);
	CHECK_U64(sp->threads[1].tid, 1235);
	CHECK(space_thread_on(sp, 0x30000, 0x31000) == &sp->threads[0]);
	space_close(sp);
	free(data);
}

TEST(notes_of_i386)
{
	struct space *sp;
	uint8_t *data, tls[48] = { 0 };
	struct err err;

	fresh(&b);
	b.is64 = false;
	b.machine = 3;
	add_process();
	/* %gs is register 10, 0x10a here: its descriptor is number 33. */
	put_n(tls, 12, 4);
	put_n(tls + 4, 0x111, 4);
	put_n(tls + 16, 33, 4);
	put_n(tls + 20, 0xf7c00000, 4);
	build_note(&b, "LINUX", 0x200, tls, 48);
	build_load(&b, 0x30000, 0x1000, PF_RW, page(0xff), 0x1000);
	sp = open_built(&b, &data, &err);
	if (!CHECK(sp))
		return;
	CHECK_STR(sp->command, "appd --verbose");
	CHECK_U64(sp->pid, 1233);
	CHECK_U64(sp->fault_addr, 0xdead000);
	CHECK_U64(sp->n_threads, 1);
	CHECK_U64(sp->threads[0].tid, 1234);
	CHECK_U64(sp->threads[0].n_regs, 17);
	CHECK_U64(sp->threads[0].sp, 0x30800);
	CHECK_U64(sp->threads[0].pc, 0x100 + 12);
	CHECK_U64(sp->threads[0].tls, 0xf7c00000);
	CHECK_U64(sp->at_phdr, 0x10040);
	space_close(sp);
	free(data);
}

TEST(notes_of_aarch64)
{
	struct space *sp;
	uint8_t *data, tls[16] = { 0 };
	struct err err;

	fresh(&b);
	b.machine = 183;
	add_process();
	put_n(tls, 0xffff87654000, 8);
	build_note(&b, "LINUX", 0x401, tls, 16);
	build_load(&b, 0x30000, 0x1000, PF_RW, page(0), 0x1000);
	sp = open_built(&b, &data, &err);
	if (!CHECK(sp))
		return;
	CHECK_U64(sp->machine, MACHINE_AARCH64);
	CHECK_U64(sp->threads[0].n_regs, 34);
	CHECK_U64(sp->threads[0].sp, 0x30800);
	CHECK_U64(sp->threads[0].pc, 0x100 + 32);
	CHECK_U64(sp->threads[0].tls, 0xffff87654000);
	space_close(sp);
	free(data);
}

TEST(who_wrote_it)
{
	static const struct build_file one = { 0x30000, 0x31000, 0, "/x" };
	uint8_t siginfo[128] = { 0 };
	struct space *sp;
	uint8_t *data;
	struct err err;

	/* gdb stopped it, which is not what ended it. */
	fresh(&b);
	put_n(siginfo, SIGSTOP, 4);
	build_status(&b, 1, 0x30000);
	build_note(&b, "CORE", 0x53494749, siginfo, 128);
	build_files(&b, 1, &one, 1);
	build_load(&b, 0x30000, 0x1000, PF_RW, page(0), 0x1000);
	sp = open_built(&b, &data, &err);
	if (!CHECK(sp))
		return;
	CHECK_STR(sp->writer, "gdb");
	CHECK_U64((uint64_t)sp->signal, 0);
	space_close(sp);
	free(data);
	/* qemu writes no siginfo, no files and no floating point. */
	fresh(&b);
	build_status(&b, 1, 0x30000);
	build_auxv(&b, (const uint64_t[]){ 6, 4096 }, 1);
	build_load(&b, 0x30000, 0x1000, PF_RW, page(0), 0x1000);
	sp = open_built(&b, &data, &err);
	if (!CHECK(sp))
		return;
	CHECK_STR(sp->writer, "qemu");
	CHECK_U64((uint64_t)sp->signal, 11);
	CHECK(!sp->has_file_note);
	CHECK_STR(sp->program, "?");
	space_close(sp);
	free(data);
}

TEST(lengths_of_notes_that_lie)
{
	size_t size, i, off = 64 + 2 * 56;
	uint8_t *data, *copy;
	struct space *sp;
	struct err err;

	fresh(&b);
	add_process();
	build_load(&b, 0x30000, 0x1000, PF_RW, page(0), 0x1000);
	data = build_core(&b, &size);
	copy = malloc(size);
	for (i = 0; i + 4 <= b.n_notes; i += 4) {
		memcpy(copy, data, size);
		memset(copy + off + i, i & 4 ? 0xff : 0x7f, 4);
		sp = target_open_core_memory(copy, size, &no_files, &err);
		if (!CHECK(sp))
			break;
		CHECK(sp->n_segs == 1);
		space_close(sp);
	}
	free(copy);
	free(data);
}

/* Every length of a small core: an error with a sentence, or an answer. */
TEST(truncated_at_every_length)
{
	static const struct build_file one = { 0x30000, 0x31000, 0, "/x" };
	size_t size, n, n_open = 0;
	struct space *sp;
	struct err err;
	uint8_t *data, v;

	fresh(&b);
	add_process();
	build_files(&b, 4096, &one, 1);
	build_load(&b, 0x10000, 0x1000, PF_RW, page(7), 0x1000);
	build_load(&b, 0x30000, 0x1000, PF_RW, page(7), 0x1000);
	data = build_core(&b, &size);
	for (n = 0; n < size; n++) {
		/* Of exactly this size: a sanitizer sees a byte too far. */
		uint8_t *cut = malloc(n ? n : 1);

		memcpy(cut, data, n);
		err.msg[0] = '\0';
		sp = target_open_core_memory(cut, n, &no_files, &err);
		if (!sp) {
			CHECK(err.msg[0] && n < 64 + 2 * 56);
		} else {
			uint64_t there = sp->segs[0].avail;

			n_open++;
			CHECK(sp->n_warnings > 0);
			CHECK(sp->core_wanted == size || n < 64 + 3 * 56);
			CHECK(space_why(sp, 0x10000 + there) ==
			      SPACE_TRUNCATED || there == 0x1000);
			CHECK(!there ||
			      space_u8(sp, 0x10000 + there - 1, &v));
			CHECK(!space_u8(sp, 0x30fff, &v));
		}
		space_close(sp);
		free(cut);
	}
	CHECK_U64(n_open, size - (64 + 2 * 56));
	free(data);
}

TEST(words_for_truncation)
{
	struct space *sp;
	struct err err;
	uint8_t *data;
	size_t size;
	int i;

	fresh(&b);
	for (i = 0; i < 4; i++)
		build_load(&b, 0x10000 + (uint64_t)i * 0x10000, 0x1000, PF_RW,
			   page(7), 0x1000);
	data = build_core(&b, &size);
	sp = target_open_core_memory(data, size - 0x1800, &no_files, &err);
	if (!CHECK(sp))
		return;
	CHECK_U64(sp->missing_segs, 2);
	CHECK_U64(sp->core_size, size - 0x1800);
	CHECK_U64(sp->core_wanted, size);
	CHECK_U64(sp->segs[2].avail, 0x800);
	CHECK_U64(space_why(sp, 0x30900), SPACE_TRUNCATED);
	CHECK(has_warning(sp, "2 of 4 mappings are not in the file"));
	space_close(sp);
	free(data);
}

/* The same notes, said to be many; and notes that are a hole. */
TEST(notes_are_read_once)
{
	struct space *sp;
	struct err err;
	uint8_t *data;
	size_t size, i;

	fresh(&b);
	build_status(&b, 1, 0x10800);
	build_status(&b, 2, 0x10900);
	build_load(&b, 0x10000, 0x1000, PF_RW, page(7), 0x1000);
	for (i = 0; i < 50; i++)
		build_load(&b, 0x20000 + i * 0x1000, 0x1000, PF_R, NULL, 0);
	data = build_core(&b, &size);
	/* 50 copies of the header of the notes. */
	for (i = 0; i < 50; i++)
		memcpy(data + 64 + (i + 2) * 56, data + 64, 56);
	sp = target_open_core_memory(data, size, &no_files, &err);
	if (!CHECK(sp))
		return;
	CHECK_U64(sp->n_threads, 2);
	CHECK(has_warning(sp, "notes that overlap others: 50"));
	space_close(sp);
	free(data);
}

/* Zeros behind the last note are no notes, however many they are. */
TEST(notes_end_at_a_hole)
{
	struct space *sp;
	struct err err;
	uint8_t *data;
	size_t size;

	fresh(&b);
	build_status(&b, 1, 0x10800);
	b.n_notes += 48;
	build_status(&b, 2, 0x10900);
	build_load(&b, 0x10000, 0x1000, PF_RW, page(7), 0x1000);
	data = build_core(&b, &size);
	sp = target_open_core_memory(data, size, &no_files, &err);
	if (!CHECK(sp))
		return;
	CHECK_U64(sp->n_threads, 1);
	space_close(sp);
	free(data);
}

/* Two pages are stored of a table of 2^32 - 1 headers, 240 GB long. */
TEST(a_table_that_is_a_hole)
{
	char path[] = "/tmp/heapcore-test.XXXXXX";
	uint8_t head[64 + 64] = { 0 }, ph[2 * 56] = { 0 };
	struct build_load load = { 0x10000, 0x1000, PF_RW, NULL, 0x80 };
	struct timespec from, to;
	struct space *sp;
	struct err err;
	int fd = mkstemp(path);

	fresh(&b);
	b.xnum = true;
	put_header(&b, head, 0, 64);
	put_n(head + 32, 4096, 8);
	put_n(head + 64 + 44, UINT32_MAX, 4);
	put_phdr(&b, ph, 1, &load, 0);
	load = (struct build_load){ .filesz = UINT64_C(1) << 37 };
	put_phdr(&b, ph + 56, 4, &load, 8192);
	if (!CHECK(fd >= 0) ||
	    !CHECK(pwrite(fd, head, sizeof(head), 0) == sizeof(head)) ||
	    !CHECK(pwrite(fd, ph, sizeof(ph), 4096) == sizeof(ph)) ||
	    !CHECK(!ftruncate(fd, 240518176712)))
		return;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	sp = target_open_core(path, &no_files, &err);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	if (CHECK(sp)) {
		CHECK_U64(sp->n_segs, 1);
		CHECK(has_warning(sp, "4294967295 program headers"));
	}
	CHECK(to.tv_sec - from.tv_sec <= 1);
	space_close(sp);
	close(fd);
	unlink(path);
}

/* Guards of memory that was written come with a core; zeros are no memory. */
TEST(memory_without_access)
{
	struct build_file files[] = { { 0x90000, 0x91000, 0, "/x" } };
	struct space *sp;
	struct err err;
	uint8_t *data;

	fresh(&b);
	build_files(&b, 4096, files, 1);
	build_load(&b, 0x10000, 0x1000, 0, page(7), 0x1000);
	build_load(&b, 0x20000, 0x1000, PF_X, page_of, 0x1000);
	build_load(&b, 0x30000, 0x1000, 0, NULL, 0x1000);
	build_load(&b, 0x40000, 0x1000, 0, NULL, 0);
	sp = open_built(&b, &data, &err);
	if (!CHECK(sp))
		return;
	CHECK(space_seg_private(sp, space_seg(sp, 0x10000)));
	CHECK(space_seg_private(sp, space_seg(sp, 0x20000)));
	CHECK(!space_seg_private(sp, space_seg(sp, 0x30000)));
	CHECK(!space_seg_private(sp, space_seg(sp, 0x40000)));
	space_close(sp);
	free(data);
}

/* Numbers of a file that nobody has; mappings counted as they are left. */
TEST(words_for_sizes_that_cannot_be)
{
	struct space *sp;
	struct err err;
	uint8_t *data;
	size_t size, i;

	fresh(&b);
	for (i = 0; i < 30; i++)
		build_load(&b, 0x10000, 0x1000, PF_RW, NULL, 0x1000);
	data = build_core(&b, &size);
	for (i = 0; i < 30; i++)
		put_n(data + 64 + (i + 1) * 56 + 8, UINT64_C(1) << 63, 8);
	sp = target_open_core_memory(data, size, &no_files, &err);
	if (!CHECK(sp))
		return;
	CHECK_U64(sp->missing_segs, 1);
	CHECK_U64(sp->core_wanted, size);
	CHECK(has_warning(sp, "damaged: the bytes of 1 of 1 mappings"));
	space_close(sp);
	free(data);
}

/* Two sizes that look the same are no answer. */
TEST(words_for_a_page_that_is_missing)
{
	char wanted[100];
	struct space *sp;
	struct err err;
	uint8_t *data;
	size_t size;

	fresh(&b);
	build_load(&b, 0x10000, 20 << 20, PF_RW, NULL, 20 << 20);
	data = build_core(&b, &size);
	snprintf(wanted, sizeof(wanted), "truncated, %zu of %zu bytes: 1 of 1",
		 size - 100, size);
	sp = target_open_core_memory(data, size - 100, &no_files, &err);
	if (!CHECK(sp))
		return;
	CHECK(has_warning(sp, wanted));
	space_close(sp);
	free(data);
}

/* A stack that is not in the file was left out on purpose. */
TEST(words_for_a_filtered_core)
{
	struct space *sp;
	struct err err;
	uint8_t *data;

	fresh(&b);
	build_status(&b, 1, 0x20800);
	build_load(&b, 0x10000, 0x1000, PF_RW, NULL, 0);
	build_load(&b, 0x20000, 0x1000, PF_RW, NULL, 0);
	build_load(&b, 0x30000, 0x1000, PF_R, page(7), 0x1000);
	sp = open_built(&b, &data, &err);
	if (!CHECK(sp))
		return;
	CHECK(has_warning(sp, "2 of 3 mappings are not in the file."));
	CHECK(has_warning(sp, "coredump_filter"));
	CHECK_U64(sp->missing_segs, 0);
	space_close(sp);
	free(data);
}

static void check_refused(const void *data, size_t size, enum err_kind kind,
			  const char *part)
{
	struct err err = { 0 };
	struct space *sp;

	sp = target_open_core_memory(data, size, &no_files, &err);
	if (!CHECK(!sp))
		space_close(sp);
	CHECK_U64(err.kind, kind);
	if (!CHECK(strstr(err.msg, part)))
		printf("# %s\n", err.msg);
}

static void check_machine(bool is64, uint16_t machine, const char *part)
{
	uint8_t *data;
	size_t size;

	fresh(&b);
	b.is64 = is64;
	b.machine = machine;
	build_load(&b, 0x10000, 0x1000, PF_RW, page(7), 0x1000);
	data = build_core(&b, &size);
	check_refused(data, size, ERR_UNSUPPORTED, part);
	free(data);
}

TEST(other_machines_are_named)
{
	check_machine(true, 243, "RISC-V");
	check_machine(false, 40, "32-bit ARM");
	check_machine(true, 777, "machine number 777");
	check_machine(false, 62, "x32");
}

TEST(what_is_no_core)
{
	uint8_t *data;
	size_t size;

	check_refused("hello", 5, ERR_FORMAT, "not a core file");
	check_refused("", 0, ERR_FORMAT, "not a core file");
	check_refused("MDMP....", 8, ERR_FORMAT, "minidump");
	check_refused("ProblemType: Crash\n", 19, ERR_FORMAT, "apport");
	check_refused("KDUMP   ", 8, ERR_FORMAT, "kernel");
	check_refused("#!/bin/sh\n", 10, ERR_FORMAT, "script");
	check_refused("\177ELF\2\1", 6, ERR_FORMAT, "ELF header");
	fresh(&b);
	data = build_core(&b, &size);
	check_refused(data, size, ERR_FORMAT, "no mapping");
	put_n(data + 16, 2, 2);
	check_refused(data, size, ERR_FORMAT,
		      "not a core file: it is an ELF program");
	put_n(data + 16, 3, 2);
	check_refused(data, size, ERR_FORMAT, "an ELF program");
	put_n(data + 16, 1, 2);
	check_refused(data, size, ERR_FORMAT, "object file");
	data[5] = 2;
	check_refused(data, size, ERR_UNSUPPORTED, "big-endian");
	free(data);
	fresh(&b);
	build_note(&b, "VMCOREINFO", 0, "OSRELEASE=6.1", 13);
	build_load(&b, 0x10000, 0x1000, PF_RW, page(7), 0x1000);
	data = build_core(&b, &size);
	check_refused(data, size, ERR_FORMAT, "dump of a kernel");
	free(data);
}

static void check_path(const char *path, enum err_kind kind, const char *part)
{
	struct err err = { 0 };
	struct space *sp = target_open_core(path, &no_files, &err);

	if (!CHECK(!sp))
		space_close(sp);
	CHECK_U64(err.kind, kind);
	if (!CHECK(strstr(err.msg, part)))
		printf("# %s\n", err.msg);
}

TEST(paths_that_are_no_core)
{
	char dir[] = "/tmp/heapcore-test.XXXXXX", path[64];

	if (!CHECK(mkdtemp(dir)))
		return;
	check_path(dir, ERR_FORMAT, "directory");
	snprintf(path, sizeof(path), "%s/none", dir);
	check_path(path, ERR_SYSTEM, "No such file");
	snprintf(path, sizeof(path), "%s/empty", dir);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	check_path(path, ERR_FORMAT, "empty");
	unlink(path);
	snprintf(path, sizeof(path), "%s/fifo", dir);
	CHECK(!mkfifo(path, 0600));
	check_path(path, ERR_FORMAT, "not a regular file");
	unlink(path);
	check_path("/proc/self/exe", ERR_FORMAT, "an ELF program");
	rmdir(dir);
}

static void write_all(const char *path, const void *data, size_t size)
{
	FILE *f = fopen(path, "wb");

	if (!f || fwrite(data, 1, size, f) != size || fclose(f))
		abort();
}

/* Pages behind the new end of a mapped file cannot be read any more. */
TEST(a_file_that_shrinks)
{
	char path[] = "/tmp/heapcore-test.XXXXXX", text[200] = "";
	int out[2], status = 0;
	struct err err;
	uint8_t *data;
	size_t size;
	pid_t pid;

	fresh(&b);
	build_load(&b, 0x10000, 0x1000, PF_RW, page(7), 0x1000);
	build_load(&b, 0x20000, 0x1000, PF_RW, page(7), 0x1000);
	data = build_core(&b, &size);
	close(mkstemp(path));
	write_all(path, data, size);
	free(data);
	if (!CHECK(!pipe(out)))
		return;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		struct space *sp = target_open_core(path, &no_files, &err);
		uint64_t v = 0;

		dup2(out[1], 2);
		if (!sp || truncate(path, 4096))
			_exit(1);
		space_u64(sp, 0x20000, &v);
		_exit(0);
	}
	close(out[1]);
	waitpid(pid, &status, 0);
	CHECK(read(out[0], text, sizeof(text) - 1) > 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 2);
	CHECK(strstr(text, "the file shrank while being read\n"));
	CHECK(!strncmp(text, "heapcore: ", 10));
	close(out[0]);
	unlink(path);
}
