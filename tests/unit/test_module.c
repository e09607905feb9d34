/* SPDX-License-Identifier: MIT */
/*
 * Programs and libraries of cores made by hand, with and without their files.
 */
#include "corewalk/module.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "check.h"
#include "core_build.h"
#include "corewalk/target.h"
#include "image_build.h"

static char dir[] = "/tmp/heapcore-test.XXXXXX";
static struct core_build b;

static void fresh(void)
{
	memset(&b, 0, sizeof(b));
	b.is64 = true;
	b.machine = 62;
	if (strstr(dir, "XXXXXX") && !mkdtemp(dir))
		abort();
}

static struct space *open_built(const struct target_options *options,
				uint8_t **data)
{
	struct err err = { 0 };
	struct space *sp;
	size_t size;

	*data = build_core(&b, &size);
	sp = target_open_core_memory(*data, size, options, &err);
	if (!CHECK(sp))
		printf("# %s\n", err.msg);
	return sp;
}

static bool warned(const struct space *sp, const char *part)
{
	size_t i;

	for (i = 0; i < sp->n_warnings; i++)
		if (strstr(sp->warnings[i], part))
			return true;
	return false;
}

/* A path below dir, in turn of four buffers. */
static const char *below(const char *name)
{
	static char paths[4][200];
	static unsigned turn;
	char *path = paths[turn++ % 4];

	snprintf(path, sizeof(paths[0]), "%s%s", dir, name);
	return path;
}

static void write_file(const char *path, const uint8_t *p, size_t n)
{
	FILE *f = fopen(path, "wb");

	if (!f || fwrite(p, 1, n, f) != n || fclose(f))
		abort();
}

/* A core of one library of this id at 0x100000, named name. */
static struct space *open_library(uint8_t id, const char *name,
				  const struct target_options *options,
				  uint8_t **data)
{
	static uint8_t image[IMAGE];
	struct build_file files[3];

	fresh();
	make_image(image, id, false);
	build_files(&b, 4096, files, image_files(files, 0x100000, name));
	load_image(&b, 0x100000, image);
	return open_built(options, data);
}

static void check_text(struct space *sp, bool there)
{
	uint8_t v = 0;

	CHECK(space_u8(sp, 0x101234, &v) == there);
	CHECK(!there || v == 0xcc);
	/* All of it is one piece, and the data is the core's. */
	CHECK(!there || space_view(sp, 0x101000, 0x1000));
	CHECK(space_u8(sp, 0x102001, &v) && v == 'd');
	CHECK(!(space_seg(sp, 0x102000)->flags & SEG_FROM_FILE));
}

TEST(bytes_from_the_file_itself)
{
	static uint8_t image[IMAGE];
	struct space *sp;
	uint8_t *data;

	fresh();
	make_image(image, 7, false);
	write_file(below("/lib"), image, IMAGE);
	sp = open_library(7, below("/lib"), NULL, &data);
	if (!sp)
		return;
	CHECK_U64(sp->n_modules, 1);
	CHECK_U64(sp->modules[0].start, 0x100000);
	CHECK_U64(sp->modules[0].end, 0x100000 + SPAN);
	CHECK_U64(sp->modules[0].build_id_len, 20);
	CHECK_U64(sp->modules[0].build_id[19], 7);
	CHECK_STR(sp->modules[0].path, below("/lib"));
	check_text(sp, true);
	CHECK(space_seg(sp, 0x101000)->flags & SEG_FROM_FILE);
	CHECK_U64(space_stored(sp, 0x100000, 0x104000), 0x3000);
	CHECK_U64(sp->n_warnings, 0);
	CHECK(!space_seg_private(sp, space_seg(sp, 0x100000)));
	CHECK(!space_seg_private(sp, space_seg(sp, 0x101000)));
	CHECK(space_seg_private(sp, space_seg(sp, 0x102000)));
	space_close(sp);
	free(data);
}

TEST(another_build_is_not_used)
{
	static uint8_t image[IMAGE];
	struct space *sp;
	uint8_t *data;

	fresh();
	make_image(image, 8, false);
	write_file(below("/lib"), image, IMAGE);
	sp = open_library(7, below("/lib"), NULL, &data);
	if (!sp)
		return;
	CHECK(!sp->modules[0].path);
	CHECK_U64(sp->modules[0].why, SPACE_MISMATCH);
	CHECK_U64(space_why(sp, 0x101000), SPACE_MISMATCH);
	check_text(sp, false);
	CHECK_U64(sp->n_warnings, 1);
	CHECK(warned(sp, "/lib: build id 0707070707070707070707070707070707"
		     "070707 in the core, 0808080808080808080808080808080808"
		     "080808 on disk: not used"));
	space_close(sp);
	free(data);
}

TEST(a_file_that_is_not_there)
{
	struct space *sp;
	uint8_t *data;

	sp = open_library(7, "/nonexistent/libx.so.1", NULL, &data);
	if (!sp)
		return;
	CHECK_U64(sp->modules[0].why, SPACE_NO_FILE);
	CHECK_U64(space_why(sp, 0x101000), SPACE_NO_FILE);
	check_text(sp, false);
	CHECK(warned(sp, "not found: 1 of 1 programs and libraries, "
		     "first /nonexistent/libx.so.1"));
	CHECK(warned(sp, "--sysroot=DIR"));
	space_close(sp);
	free(data);
}

TEST(places_to_look)
{
	const char *roots[] = { "/nonexistent", dir };
	struct target_options sysroot = { .sysroots = roots, .n_sysroots = 2 };
	struct target_options debug = { .debug_dirs = roots + 1,
					.n_debug_dirs = 1 };
	struct target_options none = { .sysroots = roots, .n_sysroots = 2,
				       .no_files = true };
	static uint8_t image[IMAGE];
	struct space *sp;
	uint8_t *data;

	fresh();
	make_image(image, 0xab, false);
	mkdir(below("/opt"), 0700);
	write_file(below("/opt/libx.so"), image, IMAGE);
	sp = open_library(0xab, "/opt/libx.so", &sysroot, &data);
	CHECK(sp && sp->modules[0].path &&
	      strstr(sp->modules[0].path, "/opt/libx.so"));
	space_close(sp);
	free(data);
	sp = open_library(0xab, "/opt/libx.so", &none, &data);
	CHECK(sp && !sp->modules[0].path && !sp->n_warnings);
	space_close(sp);
	free(data);
	unlink(below("/opt/libx.so"));
	rmdir(below("/opt"));
	mkdir(below("/.build-id"), 0700);
	mkdir(below("/.build-id/ab"), 0700);
	write_file(below("/.build-id/ab/abababababababababababababababababab"
			 "ab"), image, IMAGE);
	sp = open_library(0xab, "/opt/libx.so", &debug, &data);
	CHECK(sp && sp->modules[0].path);
	space_close(sp);
	free(data);
	unlink(below("/.build-id/ab/abababababababababababababababababab"
		     "ab"));
	rmdir(below("/.build-id/ab"));
	rmdir(below("/.build-id"));
}

/* Opening a FIFO for reading waits for a writer. */
TEST(only_regular_files_are_opened)
{
	static const char *const names[] = {
		"/dev/zero", "/dev/full", "/proc/kmsg", "/", "", "[x]",
	};
	struct space *sp;
	uint8_t *data;
	size_t i;

	fresh();
	CHECK(!mkfifo(below("/fifo"), 0600));
	for (i = 0; i < 7; i++) {
		sp = open_library(7, i < 6 ? names[i] : below("/fifo"), NULL,
				  &data);
		CHECK(sp && (!sp->n_modules || !sp->modules[0].path));
		space_close(sp);
		free(data);
	}
	unlink(below("/fifo"));
}

/* A file that is no ELF, too short, or all header. */
TEST(files_that_are_no_library)
{
	static uint8_t image[IMAGE];
	size_t sizes[] = { 1, 63, 64, 100, 0x410, 0x1000 }, i;
	struct space *sp;
	uint8_t *data;

	fresh();
	make_image(image, 7, false);
	for (i = 0; i < 6; i++) {
		write_file(below("/lib"), image, sizes[i]);
		sp = open_library(7, below("/lib"), NULL, &data);
		CHECK(sp);
		/* Its id can be read only from the last one. */
		CHECK(sp && !sp->modules[0].path == (i < 5));
		CHECK(sp && space_why(sp, 0x101000) != SPACE_OK);
		space_close(sp);
		free(data);
	}
	unlink(below("/lib"));
}

TEST(without_build_id_the_first_page_decides)
{
	static uint8_t image[IMAGE];
	struct space *sp;
	uint8_t *data;

	fresh();
	make_image(image, 0, false);
	write_file(below("/lib"), image, IMAGE);
	sp = open_library(0, below("/lib"), NULL, &data);
	CHECK(sp && sp->modules[0].path && !sp->modules[0].build_id_len);
	CHECK(sp && !sp->n_warnings);
	space_close(sp);
	free(data);
	image[0x800] ^= 1;
	write_file(below("/lib"), image, IMAGE);
	sp = open_library(0, below("/lib"), NULL, &data);
	CHECK(sp && !sp->modules[0].path);
	CHECK(sp && warned(sp, "not the file that was mapped"));
	space_close(sp);
	free(data);
	unlink(below("/lib"));
}

/* With no first page in the core nothing can be checked; it is said. */
TEST(without_the_first_page)
{
	static uint8_t image[IMAGE];
	struct build_file files[3];
	struct space *sp;
	uint8_t *data, v;

	fresh();
	make_image(image, 7, false);
	write_file(below("/lib"), image, IMAGE);
	build_files(&b, 4096, files,
		    image_files(files, 0x100000, below("/lib")));
	load_image(&b, 0x100000, NULL);
	sp = open_built(NULL, &data);
	if (!sp)
		return;
	CHECK_U64(sp->n_modules, 1);
	CHECK(sp->modules[0].path && !sp->modules[0].build_id_len);
	CHECK(warned(sp, "not in the core: 1"));
	CHECK(space_u8(sp, 0x101000, &v) && v == 0xcc);
	CHECK(space_u8(sp, 0x100001, &v) && v == 'E');
	space_close(sp);
	free(data);
	unlink(below("/lib"));
}

/* Of a core without private memory, what may have been written is unknown. */
TEST(written_pages_do_not_come_from_the_file)
{
	static uint8_t image[IMAGE];
	struct build_file files[3];
	struct space *sp;
	uint8_t *data, v;
	int heap;

	for (heap = 0; heap < 2; heap++) {
		fresh();
		make_image(image, 7, false);
		write_file(below("/lib"), image, IMAGE);
		build_files(&b, 4096, files,
			    image_files(files, 0x100000, below("/lib")));
		build_load(&b, 0x100000, 0x1000, PF_R, image, 0x1000);
		build_load(&b, 0x101000, 0x1000, PF_RX, NULL, 0);
		build_load(&b, 0x102000, 0x1000, PF_RW, NULL, 0);
		build_load(&b, 0x200000, 0x1000, PF_RW, NULL,
			   heap ? 0x1000 : 0);
		sp = open_built(NULL, &data);
		if (!sp)
			return;
		CHECK(space_u8(sp, 0x101000, &v) && v == 0xcc);
		/* If other private memory is there, this was not written. */
		CHECK(space_u8(sp, 0x102000, &v) == heap);
		CHECK(!heap || v == 'd');
		space_close(sp);
		free(data);
	}
	unlink(below("/lib"));
}

TEST(names_that_mean_memory)
{
	static const struct build_file files[] = {
		{ 0x10000, 0x11000, 0, "/dev/zero (deleted)" },
		{ 0x20000, 0x21000, 0, "/memfd:zoo (deleted)" },
		{ 0x30000, 0x31000, 0, "/SYSV00000000 (deleted)" },
		{ 0x40000, 0x41000, 0, "/anon_hugepage (deleted)" },
		{ 0x50000, 0x51000, 0, "/dev/zero" },
		{ 0x60000, 0x61000, 5, "/tmp/gone (deleted)" },
		{ 0x70000, 0x71000, 0, "/var/db" },
		{ 0x80000, 0x81000, 0, "/var/db" },
	};
	static const char shared[] = "SSS  SS ", anon[] = "   AA   ";
	struct space *sp;
	uint8_t *data;
	size_t i;

	fresh();
	build_files(&b, 4096, files, 8);
	for (i = 0; i < 8; i++)
		build_load(&b, files[i].start, 0x1000, PF_RW, NULL,
			   i == 6 ? 0 : 0x1000);
	sp = open_built(NULL, &data);
	if (!sp)
		return;
	CHECK_U64(sp->n_modules, 0);
	for (i = 0; i < 8; i++) {
		const struct seg *seg = &sp->segs[i];

		CHECK_U64(!!(seg->flags & SEG_SHARED), shared[i] == 'S');
		CHECK_U64(space_seg_anon(seg), anon[i] == 'A');
		CHECK_U64(space_seg_private(sp, seg), shared[i] != 'S');
	}
	CHECK_STR(sp->files[sp->segs[5].file].name, "/tmp/gone");
	CHECK(sp->files[sp->segs[5].file].deleted);
	CHECK_U64(sp->segs[5].file_off, 5 * 4096);
	CHECK_U64(sp->segs[6].file, sp->segs[7].file);
	space_close(sp);
	free(data);
}

/* A library that was replaced while in use has private data all the same. */
TEST(a_deleted_library)
{
	struct space *sp;
	uint8_t *data;

	sp = open_library(7, "/nonexistent/lib (deleted)", NULL, &data);
	if (!sp)
		return;
	CHECK_U64(sp->n_modules, 1);
	CHECK_STR(sp->files[0].name, "/nonexistent/lib");
	CHECK(sp->files[0].deleted);
	CHECK(space_seg_private(sp, space_seg(sp, 0x102000)));
	space_close(sp);
	free(data);
}

TEST(mappings_that_gdb_left_out)
{
	static uint8_t image[IMAGE];
	struct build_file files[3];
	struct space *sp;
	uint8_t *data;
	size_t i;

	fresh();
	make_image(image, 7, false);
	image_files(files, 0x100000, "/nonexistent/lib");
	for (i = 0; i < 3; i++)
		files[i].off *= 4096;
	build_files(&b, 1, files, 3);
	build_load(&b, 0x100000, 0x1000, PF_R, image, 0x1000);
	build_load(&b, 0x102000, 0x1000, PF_RW, image + 0x2000, 0x1000);
	sp = open_built(NULL, &data);
	if (!sp)
		return;
	CHECK_STR(sp->writer, "gdb");
	CHECK_U64(sp->n_segs, 3);
	CHECK_U64(sp->segs[1].start, 0x101000);
	CHECK_U64(sp->segs[1].end, 0x102000);
	CHECK_U64(sp->segs[1].flags, SEG_R | SEG_X);
	CHECK_U64(sp->segs[1].file_off, 0x1000);
	CHECK_U64(sp->segs[2].file_off, 0x2000);
	CHECK_U64(space_why(sp, 0x101000), SPACE_NO_FILE);
	space_close(sp);
	free(data);
}

/* One file mapped twice is two modules; its first page twice is one. */
TEST(the_same_file_again)
{
	static uint8_t image[IMAGE];
	struct build_file files[7];
	struct space *sp;
	uint8_t *data, v;

	fresh();
	make_image(image, 7, false);
	write_file(below("/lib"), image, IMAGE);
	image_files(files, 0x100000, below("/lib"));
	files[1].off = 0;	/* within what the headers speak of */
	image_files(files + 3, 0x200000, files[0].name);
	files[6] = (struct build_file){ 0x300000, 0x301000, 0, "/data" };
	build_files(&b, 4096, files, 7);
	load_image(&b, 0x100000, image);
	load_image(&b, 0x200000, image);
	build_load(&b, 0x300000, 0x1000, PF_R, "data", 4);
	sp = open_built(NULL, &data);
	if (!sp)
		return;
	CHECK_U64(sp->n_modules, 2);
	CHECK_U64(sp->n_files, 2);
	CHECK_U64(sp->files[0].module, 0);
	CHECK_U64(sp->modules[1].start, 0x200000);
	CHECK_STR(sp->modules[1].path, sp->modules[0].path);
	CHECK(space_u8(sp, 0x201000, &v) && v == 0xcc);
	CHECK(!space_module(sp, 0x300000));
	space_close(sp);
	free(data);
	unlink(below("/lib"));
}

/* The heap may follow .bss without a gap: it is not the module's. */
TEST(the_heap_behind_bss)
{
	static uint8_t image[IMAGE];
	struct build_file files[3];
	struct space *sp;
	uint8_t *data;

	fresh();
	make_image(image, 7, false);
	build_files(&b, 4096, files,
		    image_files(files, 0x100000, "/nonexistent/lib"));
	load_image(&b, 0x100000, image);
	b.loads[b.n_loads - 1].memsz = b.loads[b.n_loads - 1].filesz = 0x9000;
	sp = open_built(NULL, &data);
	if (!sp)
		return;
	CHECK_U64(sp->modules[0].end, 0x104000);
	space_close(sp);
	free(data);
}

/* The program, its interpreter, and a library: addresses of each. */
enum { EXE = 0x100000, LIB = 0x200000, LD = 0x300000, STACK = 0x700000 };

static void add_auxv(uint64_t phdr, uint64_t base)
{
	const uint64_t auxv[] = { 3, phdr, 7, base, 9, phdr + 0x1000,
				  31, STACK + 0x100 };

	build_psinfo(&b, 77, "worker", "appd -v");
	build_auxv(&b, auxv, 4);
}

TEST(which_one_is_the_program)
{
	static uint8_t exe[IMAGE], lib[IMAGE];
	struct build_file files[6];
	struct space *sp;
	uint8_t *data;
	int by_hand;

	for (by_hand = 0; by_hand < 2; by_hand++) {
		fresh();
		make_image(exe, 1, true);
		make_image(lib, 2, false);
		image_files(files, EXE, "/usr/bin/appd");
		image_files(files + 3, LD, "/lib/ld.so");
		build_files(&b, 4096, files, 6);
		/* "ld.so appd" as it is after an explicit call. */
		if (by_hand)
			add_auxv(LD + 64, 0);
		else
			add_auxv(EXE + 64, LD);
		load_image(&b, EXE, exe);
		load_image(&b, LD, lib);
		sp = open_built(NULL, &data);
		if (!sp)
			return;
		CHECK(module_exe(sp) == &sp->modules[0]);
		CHECK_STR(sp->program, "appd");
		CHECK_STR(sp->command, "appd -v");
		space_close(sp);
		free(data);
	}
}

TEST(only_the_program_is_missing)
{
	static uint8_t exe[IMAGE], lib[IMAGE];
	struct build_file files[6];
	struct target_options options = { .exe = below("/appd-2") };
	struct space *sp;
	uint8_t *data;

	fresh();
	make_image(exe, 1, true);
	make_image(lib, 2, false);
	write_file(below("/ld"), lib, IMAGE);
	image_files(files, EXE, "./appd");
	image_files(files + 3, LD, below("/ld"));
	build_files(&b, 4096, files, 6);
	add_auxv(EXE + 64, LD);
	load_image(&b, EXE, exe);
	load_image(&b, LD, lib);
	sp = open_built(NULL, &data);
	CHECK(sp && sp->n_warnings == 1);
	CHECK(sp && warned(sp, "the program ./appd was not found; give it "
			   "with --exe=FILE"));
	space_close(sp);
	free(data);
	options.exe = below("/appd-2");
	write_file(options.exe, exe, IMAGE);
	sp = open_built(&options, &data);
	CHECK(sp && sp->n_warnings == 0);
	CHECK(sp && sp->modules[0].path &&
	      strstr(sp->modules[0].path, "/appd-2"));
	space_close(sp);
	free(data);
	unlink(options.exe);
	unlink(below("/ld"));
}

/* r_debug and a link map of three, in a page of data at 0x400000. */
static void make_link_map(uint8_t *p, bool circular)
{
	uint64_t at = 0x400000;

	memset(p, 0, 0x1000);
	put_n(p, 1, 8);
	put_n(p + 8, at + 0x100, 8);
	put_n(p + 0x100, EXE, 8);
	put_n(p + 0x108, at + 0x800, 8);
	put_n(p + 0x118, at + 0x200, 8);
	put_n(p + 0x200, LIB, 8);
	put_n(p + 0x208, at + 0x810, 8);
	put_n(p + 0x218, at + 0x300, 8);
	put_n(p + 0x300, LD, 8);
	put_n(p + 0x308, at + 0x830, 8);
	put_n(p + 0x318, circular ? at + 0x100 : 0, 8);
	strcpy((char *)p + 0x810, "/nonexistent/libx.so");
	strcpy((char *)p + 0x830, "/nonexistent/ld.so");
}

static struct space *open_without_note(bool circular, bool link_map,
				       uint8_t **data)
{
	static uint8_t exe[IMAGE], lib[IMAGE], ld[IMAGE], map[0x1000];
	static uint8_t stack[0x1000];

	fresh();
	make_image(exe, 1, true);
	put_n(exe + DYNAMIC + 8, link_map ? 0x400000 : 0, 8);
	make_image(lib, 2, false);
	make_image(ld, 3, false);
	make_link_map(map, circular);
	strcpy((char *)stack + 0x100, "/nonexistent/appd");
	add_auxv(EXE + 64, LD);
	load_image(&b, EXE, exe);
	load_image(&b, LIB, lib);
	load_image(&b, LD, ld);
	build_load(&b, 0x400000, 0x1000, PF_RW, map, 0x1000);
	build_load(&b, STACK, 0x1000, PF_RW, stack, 0x1000);
	return open_built(NULL, data);
}

TEST(without_file_note_by_the_link_map)
{
	struct space *sp;
	uint8_t *data;
	int circular;

	for (circular = 0; circular < 2; circular++) {
		sp = open_without_note(circular, true, &data);
		if (!sp)
			return;
		CHECK(!sp->has_file_note);
		CHECK_U64(sp->n_modules, 3);
		CHECK_STR(sp->files[sp->modules[0].file].name,
			  "/nonexistent/appd");
		CHECK_STR(sp->files[sp->modules[1].file].name,
			  "/nonexistent/libx.so");
		CHECK_STR(sp->files[sp->modules[2].file].name,
			  "/nonexistent/ld.so");
		CHECK_U64(sp->modules[1].start, LIB);
		CHECK_U64(sp->modules[1].end, LIB + SPAN);
		CHECK_U64(sp->modules[1].build_id[0], 2);
		CHECK(sp->modules[0].is_exe);
		CHECK_STR(sp->program, "appd");
		CHECK_U64(space_seg(sp, LIB + 0x1000)->file_off, 0x1000);
		space_close(sp);
		free(data);
	}
}

/* With the link map lost, names are what else is known. */
TEST(without_file_note_and_link_map)
{
	struct space *sp;
	uint8_t *data;

	sp = open_without_note(false, false, &data);
	if (!sp)
		return;
	CHECK_U64(sp->n_modules, 3);
	CHECK_STR(sp->files[sp->modules[0].file].name, "/nonexistent/appd");
	CHECK_STR(sp->files[sp->modules[1].file].name, "[image at 200000]");
	CHECK_STR(sp->files[sp->modules[2].file].name, "/lib/ld.so");
	space_close(sp);
	free(data);
}

/* Ranges that overlap, are empty, or lie about their names. */
TEST(file_notes_that_lie)
{
	static const struct build_file files[] = {
		{ 0x30000, 0x20000, 0, "/a" },
		{ 0x10000, 0x18000, UINT64_MAX, "/b" },
		{ 0x12000, 0x14000, 3, "/c" },
		{ 0x20000, UINT64_MAX, 1, "/d" },
	};
	uint8_t note[64] = { 0 };
	struct space *sp;
	uint8_t *data;

	fresh();
	build_files(&b, 4096, files, 4);
	build_load(&b, 0x10000, 0x8000, PF_RW, NULL, 0x1000);
	build_load(&b, 0x20000, 0x1000, PF_RW, NULL, 0x1000);
	sp = open_built(NULL, &data);
	CHECK(sp && sp->n_segs == 3);
	CHECK(sp && !strcmp(sp->files[sp->segs[0].file].name, "/b"));
	CHECK(sp && sp->segs[2].end == UINT64_MAX);
	space_close(sp);
	free(data);
	/* More entries than there is room for. */
	fresh();
	put_n(note, 1 << 20, 8);
	put_n(note + 8, 4096, 8);
	build_note(&b, "CORE", 0x46494c45, note, 64);
	build_load(&b, 0x10000, 0x8000, PF_RW, NULL, 0x1000);
	sp = open_built(NULL, &data);
	CHECK(sp && sp->n_files == 0 && !sp->has_file_note);
	space_close(sp);
	free(data);
}

/* What is told of many: five by name, then their number. */
TEST(many_modules_without_a_file)
{
	enum { N_MODULES = 400 };
	static uint8_t image[IMAGE];
	static struct build_file files[N_MODULES];
	struct space *sp;
	uint8_t *data;
	size_t i;

	fresh();
	make_image(image, 7, false);
	for (i = 0; i < N_MODULES; i++) {
		files[i].start = (i + 1) * 0x10000;
		files[i].end = files[i].start + 0x1000;
		files[i].name = i % 4 == 1 ? "/proc/self/exe" : "/nowhere";
		build_load(&b, files[i].start, 0x1000, PF_R, image, 0x1000);
	}
	build_files(&b, 4096, files, N_MODULES);
	sp = open_built(NULL, &data);
	if (!sp)
		return;
	CHECK_U64(sp->n_modules, N_MODULES);
	CHECK_U64(sp->n_warnings, 7);
	CHECK(warned(sp, "another build id, besides these: 95"));
	CHECK(warned(sp, "not found: 300 of 400 programs and libraries, "
		     "first /nowhere"));
	space_close(sp);
	free(data);
}

/* As many files as there are, with few descriptors. */
TEST(many_modules_with_files)
{
	enum { N_MODULES = 100 };
	static char names[N_MODULES][300];
	static uint8_t image[IMAGE];
	static struct build_file files[N_MODULES];
	struct rlimit old, few;
	struct space *sp;
	uint8_t *data;
	size_t i, n_found = 0;

	fresh();
	make_image(image, 7, false);
	write_file(below("/lib"), image, IMAGE);
	for (i = 0; i < N_MODULES; i++) {
		/* Another name for the same file each time. */
		snprintf(names[i], sizeof(names[i]), "%s%.*s/lib", dir,
			 (int)i, "///////////////////////////////////////////"
			 "////////////////////////////////////////////////////"
			 "////////////////////////////");
		files[i].start = (i + 1) * 0x10000;
		files[i].end = files[i].start + 0x1000;
		files[i].name = names[i];
		build_load(&b, files[i].start, 0x1000, PF_R, image, 0x1000);
	}
	build_files(&b, 4096, files, N_MODULES);
	getrlimit(RLIMIT_NOFILE, &old);
	few = (struct rlimit){ 20, old.rlim_max };
	setrlimit(RLIMIT_NOFILE, &few);
	sp = open_built(NULL, &data);
	setrlimit(RLIMIT_NOFILE, &old);
	if (!sp)
		return;
	for (i = 0; i < sp->n_modules; i++)
		n_found += sp->modules[i].path != NULL;
	CHECK_U64(n_found, N_MODULES);
	CHECK_U64(sp->n_warnings, 0);
	space_close(sp);
	free(data);
	unlink(below("/lib"));
}

TEST(words)
{
	const uint8_t id[] = { 0, 0xab, 0x7f };
	char text[MODULE_ID_TEXT];

	module_id_text(text, id, 3);
	CHECK_STR(text, "00ab7f");
	module_id_text(text, id, 0);
	CHECK_STR(text, "none");
	CHECK_STR(file_base_name("/usr/bin/appd"), "appd");
	CHECK_STR(file_base_name("appd"), "appd");
	CHECK_STR(file_base_name("/"), "/");
	unlink(below("/lib"));
	CHECK(!rmdir(dir));
}
