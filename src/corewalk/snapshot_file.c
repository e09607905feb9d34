/* SPDX-License-Identifier: MIT */
#include "corewalk/snapshot_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/mem.h"
#include "base/temp.h"

enum {
	FRAME = 256 << 10,
	ZERO_FRAME = 64 << 20,	/* a multiple of FRAME */
	LEVEL = 1,		/* as small as 3 on heaps, and faster */
	MAX_WRITE = 1 << 30,
};

/* An entry of the seek table. */
struct frame {
	uint32_t packed, size;
};

struct snapshot_file {
	char *path;		/* owned; the final name */
	char *temporary;	/* owned; NULL: it has no name */
	bool force;
	int fd;
	int error;		/* errno of the first failure */
	uint64_t on_disk;	/* bytes written, holes not counted */
	struct sigaction old_xfsz;

	/* Of compression; cctx is NULL without. */
	ZSTD_CCtx *cctx;
	uint8_t *frame;		/* owned; FRAME bytes, zeros behind n */
	uint8_t *packed;	/* owned; room for any frame */
	uint64_t frame_off;	/* where the frame begins */
	size_t frame_n;		/* its bytes so far */
	uint8_t *zeros[2];	/* owned; compressed FRAME, ZERO_FRAME zeros */
	size_t zeros_n[2];
	struct frame *frames;	/* owned */
	size_t n_frames, cap_frames;
};

/* ---- a name, or none yet ---- */

static bool open_beside(struct snapshot_file *f)
{
	f->temporary = mem_printf("%s.XXXXXX", f->path);
	f->fd = mkostemp(f->temporary, O_CLOEXEC);
	return f->fd >= 0;
}

/* Is there something that must not be overwritten? */
static bool may_write(const struct snapshot_file *f, struct err *err)
{
	struct stat st;

	if (lstat(f->path, &st))
		return true;
	if (S_ISDIR(st.st_mode))
		return err_set(err, ERR_USAGE, "%s: is a directory", f->path);
	/* Nor a link: the name would become a file, what it leads to not. */
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_USAGE, "%s: not a regular file",
			       f->path);
	if (f->force)
		return true;
	err_set(err, ERR_USAGE, "%s: exists", f->path);
	return err_hint(err, "Use --force to replace it.");
}

static void start_compression(struct snapshot_file *f)
{
	f->cctx = ZSTD_createCCtx();
	if (!f->cctx)
		abort();
	ZSTD_CCtx_setParameter(f->cctx, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(f->cctx, ZSTD_c_checksumFlag, 1);
	f->frame = mem_zalloc(FRAME);
	f->packed = mem_alloc(ZSTD_compressBound(FRAME));
}

struct snapshot_file *snapshot_file_new(const char *path, bool force,
					bool compress, struct err *err)
{
	struct snapshot_file *f = mem_zalloc(sizeof(*f));
	struct sigaction ignore = { .sa_handler = SIG_IGN };

	f->path = mem_strdup(path);
	f->force = force;
	f->fd = -1;
	/* A limit of the shell on file sizes is an error, not a death. */
	sigaction(SIGXFSZ, &ignore, &f->old_xfsz);
	if (!may_write(f, err)) {
		snapshot_file_abandon(f);
		return NULL;
	}
	f->fd = temp_unnamed(f->path);
	if (f->fd < 0 && !open_beside(f)) {
		err_system(err, "%s", f->path);
		free(f->temporary);
		f->temporary = NULL;
		snapshot_file_abandon(f);
		return NULL;
	}
	fchmod(f->fd, 0600);
	if (compress)
		start_compression(f);
	return f;
}

void snapshot_file_abandon(struct snapshot_file *f)
{
	if (!f)
		return;
	if (f->fd >= 0)
		close(f->fd);
	if (f->temporary)
		unlink(f->temporary);
	sigaction(SIGXFSZ, &f->old_xfsz, NULL);
	ZSTD_freeCCtx(f->cctx);
	free(f->frame);
	free(f->packed);
	free(f->zeros[0]);
	free(f->zeros[1]);
	free(f->frames);
	free(f->path);
	free(f->temporary);
	free(f);
}

/* ---- bytes ---- */

/* At off, or at the end if off is -1. */
static bool put_raw(struct snapshot_file *f, const uint8_t *bytes, uint64_t n,
		    off_t off)
{
	while (n && !f->error) {
		size_t part = min_u64(n, MAX_WRITE);
		ssize_t done = off < 0 ? write(f->fd, bytes, part) :
			       pwrite(f->fd, bytes, part, off);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			f->error = done < 0 ? errno : ENOSPC;
			break;
		}
		bytes += done;
		n -= (uint64_t)done;
		f->on_disk += (uint64_t)done;
		if (off >= 0)
			off += done;
	}
	return !f->error;
}

static bool put_packed(struct snapshot_file *f, const uint8_t *bytes,
		       size_t packed, size_t size)
{
	MEM_PUSH(f->frames, f->n_frames, f->cap_frames) =
		(struct frame){ (uint32_t)packed, (uint32_t)size };
	return put_raw(f, bytes, packed, -1);
}

/* Frames of zeros are made once each. */
static bool put_zeros(struct snapshot_file *f, bool large)
{
	size_t size = large ? ZERO_FRAME : FRAME;

	if (!f->zeros[large]) {
		AUTO_FREE void *from = mem_zalloc(size);
		size_t room = ZSTD_compressBound(size);
		AUTO_FREE void *to = mem_alloc(room);
		size_t n = ZSTD_compress2(f->cctx, to, room, from, size);

		if (ZSTD_isError(n))
			abort();
		f->zeros[large] = mem_alloc(n);
		memcpy(f->zeros[large], to, n);
		f->zeros_n[large] = n;
	}
	f->frame_off += size;
	return put_packed(f, f->zeros[large], f->zeros_n[large], size);
}

/* The first size bytes of the frame, which is full or the last one. */
static bool put_frame(struct snapshot_file *f, size_t size)
{
	size_t n = ZSTD_compress2(f->cctx, f->packed,
				  ZSTD_compressBound(FRAME), f->frame, size);

	if (ZSTD_isError(n))
		abort();
	memset(f->frame, 0, f->frame_n);
	f->frame_n = 0;
	f->frame_off += size;
	return put_packed(f, f->packed, n, size);
}

/* Zeros up to off, which ends in the frame that is then the current one. */
static bool skip_to(struct snapshot_file *f, uint64_t off)
{
	if (off - f->frame_off < FRAME)
		return true;
	if (f->frame_n && !put_frame(f, FRAME))
		return false;
	while (off - f->frame_off >= FRAME)
		if (!put_zeros(f, off - f->frame_off >= ZERO_FRAME))
			return false;
	return true;
}

static bool put_compressed(struct snapshot_file *f, uint64_t off,
			   const uint8_t *bytes, uint64_t n)
{
	while (n) {
		size_t at, part;

		if (!skip_to(f, off))
			return false;
		at = off - f->frame_off;
		part = min_u64(n, FRAME - at);
		memcpy(f->frame + at, bytes, part);
		f->frame_n = at + part;
		bytes += part;
		off += part;
		n -= part;
		if (f->frame_n == FRAME && !put_frame(f, FRAME))
			return false;
	}
	return true;
}

bool snapshot_file_put(struct snapshot_file *f, uint64_t off,
		       const void *bytes, uint64_t n)
{
	if (f->error)
		return false;
	if (f->cctx)
		return put_compressed(f, off, bytes, n);
	return put_raw(f, bytes, n, (off_t)off);
}

/* ---- the end ---- */

static void put_le32(uint8_t *p, uint32_t value)
{
	p[0] = (uint8_t)value;
	p[1] = (uint8_t)(value >> 8);
	p[2] = (uint8_t)(value >> 16);
	p[3] = (uint8_t)(value >> 24);
}

static bool put_seek_table(struct snapshot_file *f)
{
	size_t i, size = 8 + 8 * f->n_frames + 9;
	AUTO_FREE uint8_t *table = mem_alloc(size);
	uint8_t *p = table;

	put_le32(p, 0x184d2a5e);
	put_le32(p + 4, (uint32_t)(size - 8));
	p += 8;
	for (i = 0; i < f->n_frames; i++, p += 8) {
		put_le32(p, f->frames[i].packed);
		put_le32(p + 4, f->frames[i].size);
	}
	put_le32(p, (uint32_t)f->n_frames);
	p[4] = 0;
	put_le32(p + 5, 0x8f92eab1);
	return put_raw(f, table, size, -1);
}

static bool finish_bytes(struct snapshot_file *f, uint64_t size)
{
	if (f->error)
		return false;
	if (!f->cctx) {
		if (ftruncate(f->fd, (off_t)size))
			f->error = errno;
		return !f->error;
	}
	if (!skip_to(f, size))
		return false;
	if (size > f->frame_off && !put_frame(f, size - f->frame_off))
		return false;
	return put_seek_table(f);
}

static bool give_name(struct snapshot_file *f)
{
	if (!f->temporary)
		return temp_name(f->fd, f->path, f->force);
	if (f->force ? rename(f->temporary, f->path) :
	    link(f->temporary, f->path))
		return false;
	if (!f->force)
		unlink(f->temporary);
	free(f->temporary);
	f->temporary = NULL;
	return true;
}

bool snapshot_file_finish(struct snapshot_file *f, uint64_t size,
			  uint64_t *ret_size, struct err *err)
{
	bool ok = finish_bytes(f, size);

	if (!ok) {
		errno = f->error;
		err_system(err, "%s: cannot write", f->path);
	} else if (!give_name(f)) {
		ok = err_system(err, "%s", f->path);
	} else {
		*ret_size = f->on_disk;
		ok = close(f->fd) == 0 ||
		     err_system(err, "%s: cannot write", f->path);
		f->fd = -1;
		if (!ok)
			unlink(f->path);
	}
	snapshot_file_abandon(f);
	return ok;
}
