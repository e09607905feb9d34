/* SPDX-License-Identifier: MIT */
#include "corewalk/unpack.h"

#include <fcntl.h>
#include <lz4frame.h>
#include <lzma.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "check.h"
#include "core_build.h"
#include "corewalk/target.h"

static const struct target_options no_files = { .no_files = true };

struct bytes {
	uint8_t *p;		/* owned */
	size_t n;
};

static struct bytes bytes_new(size_t n)
{
	return (struct bytes){ calloc(1, n ? n : 1), n };
}

static struct bytes join(struct bytes a, const void *p, size_t n)
{
	struct bytes both = bytes_new(a.n + n);

	memcpy(both.p, a.p, a.n);
	memcpy(both.p + a.n, p, n);
	free(a.p);
	return both;
}

/* ---- a core to compress: 1 MB of noise, 15 MB of zeros, noise ---- */

enum { NOISE = 1 << 20, ZEROS = 15 << 20 };

static struct bytes noisy_core(void)
{
	static struct core_build b;
	static uint8_t noise[NOISE];
	struct bytes core;
	uint64_t x = 1;
	size_t i;

	if (!b.n_loads) {
		b.is64 = true;
		b.machine = 62;
		for (i = 0; i < NOISE; i++) {
			x = x * 6364136223846793005 + 1442695040888963407;
			/* Half of the bits: it compresses a little. */
			noise[i] = (uint8_t)(x >> 60);
		}
		build_status(&b, 4711, 0x10000);
		build_load(&b, 0x1000000, NOISE, PF_RW, noise, NOISE);
		build_load(&b, 0x2000000, ZEROS, PF_RW, NULL, ZEROS);
		build_load(&b, 0x8000000, NOISE, PF_RW, noise, NOISE);
	}
	core.p = build_core(&b, &core.n);
	return core;
}

/* ---- compressors ---- */

static struct bytes by_zstd(const void *p, size_t n)
{
	struct bytes out = bytes_new(ZSTD_compressBound(n));
	ZSTD_CCtx *c = ZSTD_createCCtx();

	ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
	out.n = ZSTD_compress2(c, out.p, out.n, p, n);
	ZSTD_freeCCtx(c);
	return out;
}

static struct bytes by_lz4(const void *p, size_t n)
{
	LZ4F_preferences_t checked = {
		.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled,
	};
	struct bytes out = bytes_new(LZ4F_compressFrameBound(n, &checked));

	out.n = LZ4F_compressFrame(out.p, out.n, p, n, &checked);
	return out;
}

static struct bytes by_xz(const void *p, size_t n)
{
	struct bytes out = bytes_new(lzma_stream_buffer_bound(n));
	size_t pos = 0;

	lzma_easy_buffer_encode(0, LZMA_CHECK_CRC64, NULL, p, n, out.p, &pos,
				out.n);
	out.n = pos;
	return out;
}

static struct bytes by_gzip(const void *p, size_t n)
{
	struct bytes out = bytes_new(n + (n >> 8) + 1000);
	z_stream z = { 0 };

	deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY);
	z.next_in = (Bytef *)p;
	z.avail_in = (uInt)n;
	z.next_out = out.p;
	z.avail_out = (uInt)out.n;
	deflate(&z, Z_FINISH);
	out.n -= z.avail_out;
	deflateEnd(&z);
	return out;
}

static const struct form {
	const char *name;
	enum unpack_format format;
	struct bytes (*compress)(const void *p, size_t n);
	const char *tool;	/* reads stdin, writes stdout */
} forms[] = {
	{ "zstd", UNPACK_ZSTD, by_zstd, "zstd -q -c" },
	{ "xz", UNPACK_XZ, by_xz, "xz -0 -T2 -c" },
	{ "lz4", UNPACK_LZ4, by_lz4, "lz4 -q -c" },
	{ "gzip", UNPACK_GZIP, by_gzip, "gzip -1 -c" },
};

#define EACH_FORM(f) \
	(const struct form *f = forms; f < forms + 4; f++)

static bool warned(const struct space *sp, const char *part)
{
	size_t i;

	for (i = 0; i < sp->n_warnings; i++)
		if (strstr(sp->warnings[i], part))
			return true;
	return false;
}

/* It opens, is the core, and says what it should or nothing. */
static void check_core(struct bytes packed, const char *warning)
{
	struct bytes core = noisy_core();
	struct space *sp;
	struct err err = { 0 };
	const void *view;
	size_t i;

	sp = target_open_core_memory(packed.p, packed.n, &no_files, &err);
	if (CHECK(sp)) {
		CHECK_U64(sp->core_size, core.n);
		CHECK_U64(sp->holes, HOLES_LOST);
		CHECK_U64(sp->n_segs, 3);
		CHECK_U64(sp->threads ? sp->threads[0].tid : 0, 4711);
		for (i = 0; i < sp->n_segs; i++) {
			uint64_t n = sp->segs[i].end - sp->segs[i].start;

			view = space_view(sp, sp->segs[i].start, n);
			if (CHECK(view))
				CHECK_MEM(view, core.p + sp->segs[i].core_off,
					  n);
		}
		CHECK_U64(sp->n_warnings, warning != NULL);
		CHECK(!warning || warned(sp, warning));
	} else {
		printf("# %s\n", err.msg);
	}
	space_close(sp);
	free(core.p);
}

TEST(by_the_libraries)
{
	for EACH_FORM(f) {
		struct bytes core = noisy_core();
		struct bytes packed = f->compress(core.p, core.n);

		CHECK_U64(unpack_format(packed.p, packed.n), f->format);
		CHECK_STR(unpack_format_name(f->format), f->name);
		check_core(packed, NULL);
		free(packed.p);
		free(core.p);
	}
}

static struct bytes by_tool(const char *tool, struct bytes in)
{
	char path[] = "/tmp/heapcore-test.XXXXXX", command[200];
	struct bytes out = bytes_new(in.n + (1 << 20));
	int fd = mkstemp(path);
	FILE *f;

	if (fd < 0 || write(fd, in.p, in.n) != (ssize_t)in.n)
		abort();
	snprintf(command, sizeof(command), "%s <%s 2>/dev/null", tool, path);
	f = popen(command, "r");
	out.n = fread(out.p, 1, out.n, f);
	if (pclose(f))
		out.n = 0;
	close(fd);
	unlink(path);
	return out;
}

TEST(by_the_tools)
{
	for EACH_FORM(f) {
		struct bytes core = noisy_core();
		struct bytes packed = by_tool(f->tool, core);

		if (packed.n)
			check_core(packed, NULL);
		else
			printf("# no %s here\n", f->name);
		free(packed.p);
		free(core.p);
	}
}

/* Several frames, members or streams are one core. */
TEST(in_pieces)
{
	for EACH_FORM(f) {
		struct bytes core = noisy_core();
		size_t third = core.n / 3;
		struct bytes a = f->compress(core.p, third);
		struct bytes m = f->compress(core.p + third, third);
		struct bytes z = f->compress(core.p + 2 * third,
					     core.n - 2 * third);

		a = join(a, m.p, m.n);
		a = join(a, z.p, z.n);
		check_core(a, NULL);
		free(a.p);
		free(m.p);
		free(z.p);
		free(core.p);
	}
}

TEST(skippable_frames)
{
	static const uint8_t skip[] = { 0x51, 0x2a, 0x4d, 0x18, 3, 0, 0, 0,
					1, 2, 3 };
	static const int which[] = { 0, 2 };
	size_t i;

	for (i = 0; i < 2; i++) {
		const struct form *f = &forms[which[i]];
		struct bytes core = noisy_core();
		struct bytes packed = f->compress(core.p, core.n);
		struct bytes all = bytes_new(0);

		all = join(all, skip, sizeof(skip));
		all = join(all, skip, sizeof(skip));
		all = join(all, packed.p, packed.n);
		all = join(all, skip, sizeof(skip));
		CHECK_U64(unpack_format(all.p, all.n), f->format);
		check_core(all, NULL);
		free(all.p);
		free(packed.p);
		free(core.p);
	}
	/* Lengths that lead outside. */
	CHECK_U64(unpack_format("\x51\x2a\x4d\x18\xff\xff\xff\xff", 8),
		  UNPACK_ZSTD);
	CHECK_U64(unpack_format("\x51\x2a\x4d\x18\xff", 5), UNPACK_NONE);
}

TEST(garbage_behind)
{
	for EACH_FORM(f) {
		struct bytes core = noisy_core();
		struct bytes packed = f->compress(core.p, core.n);

		packed = join(packed, "and now for more", 16);
		check_core(packed, "16 bytes behind");
		free(packed.p);
		free(core.p);
	}
}

/* What comes before the cut can be used. */
TEST(cut_off)
{
	for EACH_FORM(f) {
		struct bytes core = noisy_core();
		struct bytes packed = f->compress(core.p, core.n);
		struct err err = { 0 };
		struct space *sp;

		/* The first MB of noise is there for sure. */
		sp = target_open_core_memory(packed.p, packed.n * 3 / 4,
					     &no_files, &err);
		if (CHECK(sp)) {
			CHECK(warned(sp, "stream ends early"));
			CHECK(warned(sp, "truncated"));
			CHECK(sp->core_size >= 1 << 19);
			CHECK(sp->core_size < core.n);
			CHECK_U64(sp->core_wanted, core.n);
			CHECK(space_view(sp, 0x1000000, 1 << 19));
			CHECK_U64(space_why(sp, 0x8000000 + NOISE - 1),
				  SPACE_TRUNCATED);
		} else {
			printf("# %s: %s\n", f->name, err.msg);
		}
		space_close(sp);
		free(packed.p);
		free(core.p);
	}
}

/* Cut anywhere in the first bytes: a sentence, no more. */
TEST(cut_off_at_once)
{
	for EACH_FORM(f) {
		struct bytes core = noisy_core();
		struct bytes packed = f->compress(core.p, 1 << 16);
		size_t n;

		for (n = 1; n < 64; n++) {
			struct err err = { 0 };
			uint8_t *cut = malloc(n);
			struct space *sp;

			memcpy(cut, packed.p, n);
			sp = target_open_core_memory(cut, n, &no_files, &err);
			CHECK(!sp && err.msg[0]);
			space_close(sp);
			free(cut);
		}
		free(packed.p);
		free(core.p);
	}
}

/* All is decoded, but the last bytes say that it is something else. */
TEST(a_wrong_checksum)
{
	for EACH_FORM(f) {
		struct bytes core = noisy_core();
		struct bytes packed = f->compress(core.p, core.n);
		struct err err = { 0 };
		struct space *sp;
		/* CRC and length; block, index and footer; the others: hash. */
		size_t back = f->format == UNPACK_GZIP ? 8 :
			      f->format == UNPACK_XZ ? 40 : 4;

		packed.p[packed.n - back] ^= 1;
		sp = target_open_core_memory(packed.p, packed.n, &no_files,
					     &err);
		if (CHECK(sp)) {
			CHECK(sp->damaged);
			CHECK(warned(sp, "stream is damaged"));
			if (f->format != UNPACK_XZ)
				CHECK(warned(sp, "checksum is wrong"));
		}
		space_close(sp);
		free(packed.p);
		free(core.p);
	}
}

TEST(damaged_in_the_middle)
{
	for EACH_FORM(f) {
		struct bytes core = noisy_core();
		struct bytes packed = f->compress(core.p, core.n);
		struct err err = { 0 };
		struct space *sp;

		memset(packed.p + packed.n * 3 / 4, 0xff, 64);
		sp = target_open_core_memory(packed.p, packed.n, &no_files,
					     &err);
		if (CHECK(sp)) {
			CHECK(sp->core_size <= core.n);
			CHECK(space_view(sp, 0x1000000, 1 << 19));
			CHECK(warned(sp, "stream is damaged"));
		}
		space_close(sp);
		free(packed.p);
		free(core.p);
	}
}

/* More than the headers speak of is not decoded. */
TEST(bombs)
{
	for EACH_FORM(f) {
		struct bytes core = noisy_core();
		struct bytes packed = f->compress(core.p, core.n);
		struct bytes bomb;
		size_t i;

		bomb = bytes_new(16 << 20);
		memset(bomb.p, 0xaa, bomb.n);
		{
			struct bytes more = f->compress(bomb.p, bomb.n);

			for (i = 0; i < 20; i++)
				packed = join(packed, more.p, more.n);
			free(more.p);
		}
		check_core(packed, NULL);
		free(bomb.p);
		free(packed.p);
		free(core.p);
	}
}

TEST(what_is_in_it_is_no_core)
{
	for EACH_FORM(f) {
		struct bytes text = bytes_new(100000);
		struct bytes packed = f->compress(text.p, text.n);
		struct err err = { 0 };
		struct space *sp;

		sp = target_open_core_memory(packed.p, packed.n, &no_files,
					     &err);
		CHECK(!sp);
		CHECK_STR(err.msg, "core: compressed, but not a core file");
		CHECK_U64(err.kind, ERR_FORMAT);
		space_close(sp);
		free(packed.p);
		free(text.p);
	}
}

/* ---- the file ---- */

static bool no_size(const void *head, uint64_t size, bool final,
		    uint64_t *ret_need, uint64_t *ret_limit, struct err *err)
{
	(void)head, (void)final, (void)err;
	*ret_need = size;
	*ret_limit = 1 << 30;
	return true;
}

TEST(zeros_are_holes_and_nothing_has_a_name)
{
	char dir[] = "/tmp/heapcore-test.XXXXXX";
	struct unpack_job job = { .name = "x", .size_of = no_size };
	struct bytes core = noisy_core();
	struct bytes packed = by_zstd(core.p, core.n);
	struct unpacked got;
	struct err err;
	struct stat st;

	job.tmpdir = mkdtemp(dir);
	if (!CHECK(unpack(&job, packed.p, packed.n, &got, &err)))
		return;
	CHECK(!fstat(got.fd, &st));
	CHECK_U64((uint64_t)st.st_size, core.n);
	CHECK_U64(st.st_nlink, 0);
	CHECK_U64(st.st_mode & 0777, 0600);
	CHECK_U64(got.end, UNPACK_WHOLE);
	CHECK_U64(got.used, packed.n);
	/* The noise and little more. */
	CHECK(st.st_blocks * 512 < 2 * NOISE + (1 << 20));
	close(got.fd);
	/* Empty again. */
	CHECK(!rmdir(dir));
	free(packed.p);
	free(core.p);
}

enum { FRAME = 16 << 20, LIMIT = NOISE + FRAME + FRAME / 2 };

static bool a_limit(const void *head, uint64_t size, bool final,
		    uint64_t *ret_need, uint64_t *ret_limit, struct err *err)
{
	no_size(head, size, final, ret_need, ret_limit, err);
	*ret_limit = LIMIT;
	return true;
}

/* A frame of zeros that came before is skipped: as far as the limit is. */
TEST(zeros_reach_the_limit)
{
	struct unpack_job job = { .name = "x", .size_of = a_limit };
	struct bytes core = noisy_core(), empty = bytes_new(FRAME);
	struct bytes packed = by_zstd(core.p, NOISE);
	struct bytes frame = by_zstd(empty.p, empty.n);
	struct unpacked got;
	struct err err;

	for (int i = 0; i < 3; i++)
		packed = join(packed, frame.p, frame.n);
	if (CHECK(unpack(&job, packed.p, packed.n, &got, &err))) {
		CHECK_U64(got.size, LIMIT);
		close(got.fd);
	}
	free(frame.p);
	free(packed.p);
	free(empty.p);
	free(core.p);
}

TEST(a_folder_that_is_not_there)
{
	struct target_options options = { .tmpdir = "/nonexistent/x" };
	struct bytes core = noisy_core();
	struct bytes packed = by_zstd(core.p, core.n);
	struct err err = { 0 };

	CHECK(!target_open_core_memory(packed.p, packed.n, &options, &err));
	CHECK_U64(err.kind, ERR_SYSTEM);
	CHECK_STR(err.msg, "core: cannot make a file in /nonexistent/x: "
		  "No such file or directory");
	free(packed.p);
	free(core.p);
}

TEST(a_limit_on_file_sizes)
{
	struct rlimit old, low = { 1 << 20, RLIM_INFINITY };
	struct bytes core = noisy_core();
	struct bytes packed = by_lz4(core.p, core.n);
	struct err err = { 0 };

	getrlimit(RLIMIT_FSIZE, &old);
	low.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_FSIZE, &low);
	CHECK(!target_open_core_memory(packed.p, packed.n, &no_files, &err));
	setrlimit(RLIMIT_FSIZE, &old);
	CHECK_U64(err.kind, ERR_SYSTEM);
	CHECK(strstr(err.msg, "File too large"));
	CHECK(strstr(err.hint, "--tmpdir=DIR"));
	free(packed.p);
	free(core.p);
}

static bool mount_small(const char *dir, const char *size)
{
	return mount("heapcore-test", dir, "tmpfs", 0, size) == 0;
}

/*
 * Less room than the headers speak of: it is enough if the rest is zeros,
 * else the number is told before anything is written.
 */
TEST(a_small_disk)
{
	char dir[] = "/tmp/heapcore-test.XXXXXX";
	struct target_options options = { .no_files = true };
	struct bytes core = noisy_core();
	struct bytes packed = by_zstd(core.p, core.n);
	struct err err = { 0 };
	struct space *sp;

	options.tmpdir = mkdtemp(dir);
	if (!mount_small(dir, "size=4m")) {
		rmdir(dir);
		free(packed.p);
		free(core.p);
		SKIP("cannot mount a file system");
	}
	sp = target_open_core_memory(packed.p, packed.n, &options, &err);
	CHECK(sp && space_view(sp, 0x8000000, NOISE));
	space_close(sp);
	umount(dir);
	if (CHECK(mount_small(dir, "size=1m"))) {
		sp = target_open_core_memory(packed.p, packed.n, &options,
					     &err);
		CHECK(!sp);
		CHECK_U64(err.kind, ERR_SYSTEM);
		if (!CHECK(strstr(err.msg, "needs up to 17.0M in /tmp/") &&
			   strstr(err.msg, "which has 1.00M free")))
			printf("# %s\n", err.msg);
		CHECK(strstr(err.hint, "--tmpdir=DIR"));
		umount(dir);
	}
	rmdir(dir);
	free(packed.p);
	free(core.p);
}

/* A table of headers that is longer than the first look. */
TEST(a_long_table_of_headers)
{
	enum { N = 60000 };
	struct core_build head = { .is64 = true, .machine = 62 };
	struct build_load l = { .memsz = 0x1000, .flags = PF_RW };
	size_t table = 64 + N * 56, i;
	struct bytes core = bytes_new(table + 4096);

	put_header(&head, core.p, N, 0);
	for (i = 0; i < N; i++) {
		l.vaddr = (i + 1) * 0x2000;
		l.filesz = i == N - 1 ? 4096 : 0;
		put_phdr(&head, core.p + 64 + i * 56, 1, &l, table);
	}
	memset(core.p + table, 0x77, 4096);
	for EACH_FORM(f) {
		struct bytes packed = f->compress(core.p, core.n);
		struct err err = { 0 };
		struct space *sp;
		uint64_t v = 0;

		sp = target_open_core_memory(packed.p, packed.n, &no_files,
					     &err);
		if (CHECK(sp)) {
			CHECK_U64(sp->n_segs, N);
			CHECK(space_u64(sp, N * (uint64_t)0x2000 + 0xff8, &v));
			CHECK_U64(v, 0x7777777777777777);
		}
		space_close(sp);
		free(packed.p);
	}
	free(core.p);
}
