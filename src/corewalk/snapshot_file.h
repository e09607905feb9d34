/* SPDX-License-Identifier: MIT */
/*
 * The file that a snapshot is written to: sparse, or compressed.
 *
 * It has no name, or not its final one, until all of it is there; only its
 * owner can read it.  Bytes are given in the order of their offsets; what lies
 * between them is zeros: holes of a sparse file.
 *
 * Compressed it is a row of zstd frames, each decodable without the others,
 * of 256 KB, and larger ones for zeros; at its end stands a seek table, in a
 * frame that decoders skip (zstd, contrib/seekable_format,
 * zstd_seekable_compression_format.md).
 */
#ifndef COREWALK_SNAPSHOT_FILE_H
#define COREWALK_SNAPSHOT_FILE_H

#include "base/err.h"
#include "base/types.h"

struct snapshot_file;

/*
 * A file that will be called path.  One that exists is an error, unless force:
 * then it will be replaced.
 */
struct snapshot_file *snapshot_file_new(const char *path, bool force,
					bool compress, struct err *err)
	MUST_CHECK;

/* False after a failure, which snapshot_file_finish() explains. */
bool snapshot_file_put(struct snapshot_file *f, uint64_t off,
		       const void *bytes, uint64_t n);

/*
 * Write the rest, up to a length of size, and give the file its name.  With
 * either, f is gone; *ret_size is what it takes on disk.
 */
bool snapshot_file_finish(struct snapshot_file *f, uint64_t size,
			  uint64_t *ret_size, struct err *err) MUST_CHECK;
/* NULL is fine. */
void snapshot_file_abandon(struct snapshot_file *f);

#endif
