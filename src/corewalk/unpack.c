/* SPDX-License-Identifier: MIT */
#include "corewalk/unpack.h"

#include <errno.h>
#include <lz4frame.h>
#include <lzma.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/temp.h"

enum {
	PAGE = 4096,
	BUFFER = 1 << 20,	/* a multiple of PAGE */
	MAX_HEAD = 64 << 20,	/* room for 1.2 million program headers */
	MAX_WINDOW_LOG = 27,	/* what zstd itself decodes without asking */
	MAX_XZ_MEMORY = 512 << 20,
};

/*
 * Where decoded bytes go.  Until the limit is known they are only collected;
 * a sink that counts writes nothing.
 */
struct sink {
	const struct unpack_job *job;
	const char *dir;	/* of the file */
	int fd;
	uint8_t *buf;		/* owned; BUFFER bytes */
	size_t n;		/* bytes in buf */
	uint8_t *head;		/* owned; while the limit is unknown */
	size_t head_n, head_cap;
	uint64_t need;		/* bytes of head to ask for */
	bool has_limit;
	uint64_t limit, pos;
	bool counting;
	uint64_t data;		/* bytes in pages that are not zero */
	uint64_t free;		/* bytes free in dir */
	bool failed;		/* err says why */
	struct err *err;
	/* The input, for progress. */
	uint64_t in_size;
};

/* ---- which format ---- */

static uint32_t le32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
	       (uint32_t)p[3] << 24;
}

/*
 * zstd and lz4 share the magic of skippable frames, 0x184D2A50 to 0x184D2A5F
 * (zstd, doc/zstd_compression_format.md; lz4, doc/lz4_Frame_format.md): the
 * first other frame decides.  Every frame has 8 bytes, so this ends.
 */
static enum unpack_format frame_format(const uint8_t *p, uint64_t size)
{
	bool skipped = false;

	while (size >= 8 && (le32(p) & 0xfffffff0) == 0x184d2a50) {
		uint64_t n = 8 + (uint64_t)le32(p + 4);

		skipped = true;
		if (n > size)
			break;
		p += n;
		size -= n;
	}
	if (size >= 4 && le32(p) == 0x184d2204)
		return UNPACK_LZ4;
	if (skipped || (size >= 4 && le32(p) == 0xfd2fb528))
		return UNPACK_ZSTD;
	return UNPACK_NONE;
}

enum unpack_format unpack_format(const void *data, uint64_t size)
{
	if (size >= 6 && !memcmp(data, "\3757zXZ", 6))
		return UNPACK_XZ;
	if (size >= 3 && !memcmp(data, "\37\213\10", 3))
		return UNPACK_GZIP;
	return frame_format(data, size);
}

const char *unpack_format_name(enum unpack_format format)
{
	static const char *const names[] = {
		[UNPACK_NONE] = "plain", [UNPACK_ZSTD] = "zstd",
		[UNPACK_XZ] = "xz", [UNPACK_LZ4] = "lz4",
		[UNPACK_GZIP] = "gzip",
	};

	return names[format];
}

/* ---- the sink ---- */

static bool fail(struct sink *s)
{
	s->failed = true;
	return false;
}

static bool put(struct sink *s, const uint8_t *bytes, size_t n, uint64_t at)
{
	while (n) {
		ssize_t done = pwrite(s->fd, bytes, n, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			err_system(s->err, "%s: cannot decompress into %s",
				   s->job->name, s->dir);
			err_hint(s->err, "Give a larger place with "
				 "--tmpdir=DIR.");
			return fail(s);
		}
		bytes += done;
		at += (uint64_t)done;
		n -= (size_t)done;
	}
	return true;
}

static bool zeros(const uint8_t *p, size_t n)
{
	return !p[0] && !memcmp(p, p + 1, n - 1);
}

/* Write runs of pages that are not zero; skip the others. */
static bool store(struct sink *s, const uint8_t *bytes, size_t n)
{
	size_t at = 0;

	while (at < n) {
		size_t from = at;
		size_t len;

		while (at < n && !zeros(bytes + at, min_u64(PAGE, n - at)))
			at += min_u64(PAGE, n - at);
		len = at - from;
		s->data += len;
		if (len && !s->counting &&
		    !put(s, bytes + from, len, s->pos + from))
			return false;
		if (at < n)
			at += min_u64(PAGE, n - at);
	}
	s->pos += n;
	return true;
}

/*
 * Take what fits below the limit; false if there is more.  At the limit the
 * decoder still goes on to its checksum.
 */
static bool take(struct sink *s, const uint8_t *bytes, size_t n)
{
	size_t fits = min_u64(n, s->limit - s->pos);

	if (!store(s, bytes, fits))
		return false;
	return fits == n && !(s->counting && s->data > s->free);
}

static void measure_disk(struct sink *s)
{
	struct statvfs v;

	s->free = UINT64_MAX;
	if (fstatvfs(s->fd, &v) == 0 &&
	    !mul_ok(v.f_bavail, v.f_frsize, &s->free))
		s->free = UINT64_MAX;
	s->counting = s->limit > s->free;
}

/* Ask how long it will be; collect until the answer is there. */
static bool collect(struct sink *s, const uint8_t *bytes, size_t n, bool final)
{
	bool go_on;

	if (n) {
		if (s->head_n + n > s->head_cap) {
			s->head_cap = 2 * (s->head_n + n);
			s->head = mem_realloc(s->head, s->head_cap);
		}
		memcpy(s->head + s->head_n, bytes, n);
		s->head_n += n;
	}
	if (!final && s->head_n < s->need)
		return true;
	if (!s->job->size_of(s->head, s->head_n,
			     final || s->head_n >= MAX_HEAD, &s->need,
			     &s->limit, s->err)) {
		err_prefix(s->err, "%s", s->job->name);
		return fail(s);
	}
	if (!final && s->head_n < s->need && s->head_n < MAX_HEAD)
		return true;
	s->has_limit = true;
	measure_disk(s);
	go_on = take(s, s->head, s->head_n);
	free(s->head);
	s->head = NULL;
	return go_on;
}

/* Hand on what is in the buffer; false to stop. */
static bool flush(struct sink *s, bool final)
{
	size_t n = s->n;

	s->n = 0;
	if (!s->has_limit)
		return collect(s, s->buf, n, final);
	return take(s, s->buf, n);
}

/* The decoder wrote n bytes at buf + s->n; false to stop. */
static bool added(struct sink *s, size_t n, uint64_t in_pos)
{
	s->n += n;
	if (s->n < BUFFER)
		return true;
	progress_step(s->job->progress, in_pos, s->in_size, 0, NULL);
	return flush(s, false);
}

/*
 * What an error is that came after good bytes.  Where a checksum fails the
 * damage is somewhere before.
 */
static enum unpack_end error_end(bool whole, bool is_checksum)
{
	if (is_checksum)
		return UNPACK_CHECKSUM;
	return whole ? UNPACK_GARBAGE : UNPACK_DAMAGED;
}

/* ---- the decoders: each returns how it ended, *used is input taken ---- */

static enum unpack_end no_memory(struct sink *s)
{
	err_set(s->err, ERR_SYSTEM, "%s: no memory for its decoder",
		s->job->name);
	fail(s);
	return UNPACK_DAMAGED;
}

/*
 * A large frame that was all zeros.  Snapshots repeat it for what a process
 * has reserved and not touched, which can be terabytes: once seen, the same
 * bytes again are skipped.
 */
struct zero_frame {
	const uint8_t *packed;	/* borrowed from the input; NULL: none yet */
	uint64_t packed_size, size;
	uint64_t from, data, pos;	/* of the frame that is being decoded */
	bool large;			/* it might be one */
};

enum { LARGE_FRAME = 16 << 20 };

/* At in_pos a frame begins; false to stop. */
static bool begin_frame(struct sink *s, struct zero_frame *z,
			const uint8_t *data, uint64_t size, size_t *in_pos)
{
	unsigned long long content;

	while (z->packed && size - *in_pos >= z->packed_size &&
	       !memcmp(data + *in_pos, z->packed, z->packed_size)) {
		if (!flush(s, false))
			return false;
		if (z->size > s->limit - s->pos) {
			s->pos = s->limit;
			return false;
		}
		s->pos += z->size;
		*in_pos += z->packed_size;
		progress_step(s->job->progress, *in_pos, s->in_size, 0, NULL);
	}
	content = ZSTD_getFrameContentSize(data + *in_pos, size - *in_pos);
	z->large = s->has_limit && content >= LARGE_FRAME &&
		   content < ZSTD_CONTENTSIZE_ERROR;
	if (z->large && !flush(s, false))
		return false;
	z->from = *in_pos;
	z->data = s->data;
	z->pos = s->pos;
	return true;
}

/* The frame ended at in_pos; false to stop. */
static bool end_frame(struct sink *s, struct zero_frame *z,
		      const uint8_t *data, size_t in_pos)
{
	if (!z->large)
		return true;
	if (!flush(s, false))
		return false;
	if (s->data == z->data && s->pos > z->pos) {
		z->packed = data + z->from;
		z->packed_size = in_pos - z->from;
		z->size = s->pos - z->pos;
	}
	return true;
}

static enum unpack_end decode_zstd(struct sink *s, const uint8_t *data,
				   uint64_t size, uint64_t *used)
{
	struct zero_frame zero = { .packed = NULL };
	ZSTD_inBuffer in = { data, size, 0 };
	ZSTD_DCtx *d = ZSTD_createDCtx();
	enum unpack_end end = UNPACK_CUT;
	bool whole = false;		/* a frame has just ended */

	if (!d)
		return no_memory(s);
	ZSTD_DCtx_setParameter(d, ZSTD_d_windowLogMax, MAX_WINDOW_LOG);
	for (;;) {
		if ((whole || !in.pos) &&
		    !begin_frame(s, &zero, data, size, &in.pos)) {
			end = UNPACK_WHOLE;
			break;
		}
		ZSTD_outBuffer out = { s->buf + s->n, BUFFER - s->n, 0 };
		size_t from = in.pos;
		size_t left = ZSTD_decompressStream(d, &out, &in);

		if (ZSTD_isError(left)) {
			if (ZSTD_getErrorCode(left) ==
			    ZSTD_error_frameParameter_windowTooLarge) {
				err_set(s->err, ERR_UNSUPPORTED, "%s: needs "
					"more than 128M to decompress",
					s->job->name);
				err_hint(s->err, "Decompress it first, with "
					 "zstd -d --long=31.");
				fail(s);
			}
			end = error_end(whole, ZSTD_getErrorCode(left) ==
					ZSTD_error_checksum_wrong);
			break;
		}
		whole = left == 0;
		if (!added(s, out.pos, in.pos) ||
		    (whole && !end_frame(s, &zero, data, in.pos)) ||
		    (whole && in.pos == size)) {
			end = UNPACK_WHOLE;
			break;
		}
		if (in.pos == from && !out.pos)
			break;
	}
	*used = in.pos;
	ZSTD_freeDCtx(d);
	return end;
}

static enum unpack_end decode_lz4(struct sink *s, const uint8_t *data,
				  uint64_t size, uint64_t *used)
{
	LZ4F_dctx *d = NULL;
	enum unpack_end end = UNPACK_CUT;
	bool whole = false;
	uint64_t pos = 0;

	if (LZ4F_isError(LZ4F_createDecompressionContext(&d, LZ4F_VERSION)))
		return no_memory(s);
	for (;;) {
		size_t out_n = BUFFER - s->n, in_n = size - pos;
		size_t left = LZ4F_decompress(d, s->buf + s->n, &out_n,
					      data + pos, &in_n, NULL);

		if (LZ4F_isError(left)) {
			end = error_end(whole, strstr(LZ4F_getErrorName(left),
						      "ontentChecksum"));
			break;
		}
		pos += in_n;
		whole = left == 0;
		if (!added(s, out_n, pos) || (whole && pos == size)) {
			end = UNPACK_WHOLE;
			break;
		}
		if (!in_n && !out_n)
			break;
	}
	*used = pos;
	LZ4F_freeDecompressionContext(d);
	return end;
}

static enum unpack_end xz_end(struct sink *s, lzma_ret ret)
{
	switch (ret) {
	case LZMA_STREAM_END:
		return UNPACK_WHOLE;
	case LZMA_BUF_ERROR:
		return UNPACK_CUT;
	case LZMA_MEMLIMIT_ERROR:
		err_set(s->err, ERR_UNSUPPORTED, "%s: needs more than 512M "
			"to decompress", s->job->name);
		err_hint(s->err, "Decompress it first, with xz -d.");
		fail(s);
		return UNPACK_DAMAGED;
	default:
		return UNPACK_DAMAGED;
	}
}

/*
 * One stream after the other, each with its own decoder, so that garbage
 * behind the last one can be told from damage inside it.  Zeros between
 * streams are padding.
 */
static enum unpack_end decode_xz_stream(struct sink *s, lzma_stream *z,
					bool *ret_stop)
{
	uint64_t size = z->avail_in;

	*ret_stop = true;
	for (;;) {
		lzma_ret ret;

		z->next_out = s->buf + s->n;
		z->avail_out = BUFFER - s->n;
		ret = lzma_code(z, LZMA_FINISH);
		if (!added(s, BUFFER - s->n - z->avail_out,
			   size - z->avail_in))
			return UNPACK_WHOLE;
		if (ret == LZMA_OK)
			continue;
		*ret_stop = ret != LZMA_STREAM_END;
		return xz_end(s, ret);
	}
}

static enum unpack_end decode_xz(struct sink *s, const uint8_t *data,
				 uint64_t size, uint64_t *used)
{
	lzma_stream z = LZMA_STREAM_INIT;
	enum unpack_end end;
	bool stop;

	z.next_in = data;
	z.avail_in = size;
	do {
		if (lzma_stream_decoder(&z, MAX_XZ_MEMORY, 0) != LZMA_OK)
			return no_memory(s);
		end = decode_xz_stream(s, &z, &stop);
		while (!stop && z.avail_in && !*z.next_in) {
			z.next_in++;
			z.avail_in--;
		}
		if (!stop && z.avail_in &&
		    unpack_format(z.next_in, z.avail_in) != UNPACK_XZ) {
			end = UNPACK_GARBAGE;
			stop = true;
		}
	} while (!stop && z.avail_in);
	*used = size - z.avail_in;
	lzma_end(&z);
	return end;
}

/* One member; zlib counts input in 32 bits, so it is fed in pieces. */
static enum unpack_end decode_gzip_member(struct sink *s, z_stream *z,
					  const uint8_t *data, uint64_t size,
					  uint64_t *pos, bool *ret_stop)
{
	*ret_stop = true;
	for (;;) {
		uInt in_n = (uInt)min_u64(size - *pos, 1 << 30);
		int ret;

		z->next_in = (Bytef *)data + *pos;
		z->avail_in = in_n;
		z->next_out = s->buf + s->n;
		z->avail_out = (uInt)(BUFFER - s->n);
		ret = inflate(z, Z_NO_FLUSH);
		*pos += in_n - z->avail_in;
		if (!added(s, BUFFER - s->n - z->avail_out, *pos))
			return UNPACK_WHOLE;
		if (ret == Z_OK)
			continue;
		*ret_stop = ret != Z_STREAM_END;
		if (ret == Z_STREAM_END)
			return UNPACK_WHOLE;
		if (ret == Z_BUF_ERROR)
			return UNPACK_CUT;
		/* "incorrect data check", "incorrect length check" */
		return error_end(false, z->msg &&
				 (strstr(z->msg, "data check") ||
				  strstr(z->msg, "length check")));
	}
}

static enum unpack_end decode_gzip(struct sink *s, const uint8_t *data,
				   uint64_t size, uint64_t *used)
{
	enum unpack_end end = UNPACK_CUT;
	z_stream z = { 0 };
	bool stop = false;
	uint64_t pos = 0;

	if (inflateInit2(&z, 15 + 16) != Z_OK)
		return no_memory(s);
	while (!stop && pos < size) {
		end = decode_gzip_member(s, &z, data, size, &pos, &stop);
		while (!stop && pos < size && !data[pos])
			pos++;
		if (!stop && pos < size &&
		    unpack_format(data + pos, size - pos) != UNPACK_GZIP) {
			end = UNPACK_GARBAGE;
			break;
		}
		inflateReset(&z);
	}
	*used = pos;
	inflateEnd(&z);
	return end;
}

/* ---- the file ---- */

static bool too_large(const struct sink *s)
{
	char size[NUM_MAX], room[NUM_MAX];

	num_format_size(size, s->limit);
	num_format_size(room, s->free);
	err_set(s->err, ERR_SYSTEM, "%s: decompressed it needs up to %s in "
		"%s, which has %s free", s->job->name, size, s->dir, room);
	return err_hint(s->err, "Give a larger place with --tmpdir=DIR.");
}

static bool run(struct sink *s, enum unpack_format format, const void *data,
		uint64_t size, struct unpacked *ret)
{
	s->n = 0;
	s->pos = 0;
	s->data = 0;
	switch (format) {
	case UNPACK_ZSTD:
		ret->end = decode_zstd(s, data, size, &ret->used);
		break;
	case UNPACK_XZ:
		ret->end = decode_xz(s, data, size, &ret->used);
		break;
	case UNPACK_LZ4:
		ret->end = decode_lz4(s, data, size, &ret->used);
		break;
	default:
		ret->end = decode_gzip(s, data, size, &ret->used);
		break;
	}
	if (!s->failed && (s->n || !s->has_limit))
		flush(s, true);
	return !s->failed;
}

/*
 * If the headers speak of more than there is room for, most of it may still
 * be zeros: the first run then only counts, and a second one writes.
 */
static bool fill(struct sink *s, enum unpack_format format, const void *data,
		 uint64_t size, struct unpacked *ret)
{
	if (!run(s, format, data, size, ret))
		return false;
	if (s->counting) {
		if (s->data > s->free)
			return too_large(s);
		s->counting = false;
		if (!run(s, format, data, size, ret))
			return false;
	}
	ret->size = s->pos;
	if (ftruncate(s->fd, (off_t)s->pos))
		return err_system(s->err, "%s: cannot decompress into %s",
				  s->job->name, s->dir);
	return true;
}

bool unpack(const struct unpack_job *job, const void *data, uint64_t size,
	    struct unpacked *ret, struct err *err)
{
	struct sink s = {
		.job = job,
		.dir = temp_dir(job->tmpdir),
		.in_size = size,
		.need = 64 * KIB,
		.err = err,
	};
	struct sigaction ignore = { .sa_handler = SIG_IGN }, old;
	bool ok;

	s.fd = temp_file(s.dir);
	if (s.fd < 0)
		return err_system(err, "%s: cannot make a file in %s",
				  job->name, s.dir);
	s.buf = mem_alloc(BUFFER);
	progress_phase(job->progress, "decompressing");
	/* A limit of the shell on file sizes is an error, not a death. */
	sigaction(SIGXFSZ, &ignore, &old);
	ok = fill(&s, unpack_format(data, size), data, size, ret);
	sigaction(SIGXFSZ, &old, NULL);
	progress_phase(job->progress, NULL);
	free(s.buf);
	free(s.head);
	ret->fd = s.fd;
	if (!ok)
		close(s.fd);
	return ok;
}
