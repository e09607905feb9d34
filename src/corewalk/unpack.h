/* SPDX-License-Identifier: MIT */
/*
 * Compressed cores.  A core is read in any order and its decoders only
 * forwards, so it is decoded once, into a file that has no name and is gone
 * when it is closed.  Pages of zeros become holes of that file: it needs as
 * much disk as the core has other pages, and no memory.
 */
#ifndef COREWALK_UNPACK_H
#define COREWALK_UNPACK_H

#include "base/err.h"
#include "base/progress.h"
#include "base/types.h"

enum unpack_format {
	UNPACK_NONE,		/* not compressed, as far as is known */
	UNPACK_ZSTD,
	UNPACK_XZ,
	UNPACK_LZ4,
	UNPACK_GZIP,
};

/*
 * How large the result should be, from its first bytes.  False with err set
 * if they are not worth decoding.  True with *ret_need > size: ask again with
 * as many bytes, or with all there are (final).
 */
typedef bool unpack_size(const void *head, uint64_t size, bool final,
			 uint64_t *ret_need, uint64_t *ret_limit,
			 struct err *err);

struct unpack_job {
	const char *name;	/* for messages: the path of the input */
	const char *tmpdir;	/* NULL: $TMPDIR, else /tmp */
	unpack_size *size_of;
	struct progress *progress;	/* may be NULL */
};

enum unpack_end {
	UNPACK_WHOLE,		/* to the end, or to the limit */
	UNPACK_CUT,		/* the input ends early */
	UNPACK_DAMAGED,		/* the decoder gave up */
	UNPACK_CHECKSUM,	/* decoded, but not to what was written */
	UNPACK_GARBAGE,		/* whole, with something else behind */
};

struct unpacked {
	int fd;			/* owned by the caller */
	uint64_t size;
	enum unpack_end end;
	uint64_t used;		/* bytes of the input */
};

/* By content; skippable frames in front are passed over. */
enum unpack_format unpack_format(const void *data, uint64_t size);
const char *unpack_format_name(enum unpack_format format);

/*
 * Decode all of data.  No more than the limit is decoded, whatever the input
 * promises.  A damaged input is not an error: what came before is kept.
 */
bool unpack(const struct unpack_job *job, const void *data, uint64_t size,
	    struct unpacked *ret, struct err *err) MUST_CHECK;

#endif
