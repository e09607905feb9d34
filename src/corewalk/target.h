/* SPDX-License-Identifier: MIT */
/*
 * Where an address space comes from.  A target opens its input and fills a
 * struct space; from then on only space.c asks it anything.
 */
#ifndef COREWALK_TARGET_H
#define COREWALK_TARGET_H

#include "base/err.h"
#include "base/progress.h"
#include "corewalk/space.h"

struct target_options {
	const char *exe;	/* --exe; NULL */
	const char *const *sysroots;	/* --sysroot, in order */
	size_t n_sysroots;
	const char *const *debug_dirs;	/* --debug-dir, in order */
	size_t n_debug_dirs;
	bool no_files;		/* never read a file of the target from disk */
	const char *tmpdir;	/* for unpacked cores; NULL: $TMPDIR, /tmp */
	struct progress *progress;	/* may be NULL */

	/* Of processes. */
	double max_pause_s;	/* --max-pause; 0: TARGET_MAX_PAUSE_S */
	bool no_stop;		/* --no-stop: read it while it runs */
	bool no_swapin;		/* --no-swapin: leave in swap what is there */
	bool all;		/* --all: shared memory and files too */
	bool on_disk;		/* the copy goes to tmpdir, whatever its size */
	bool fork;		/* --fork: read a copy it makes of itself */
};

enum { TARGET_MAX_PAUSE_S = 10 };

struct target_ops {
	const char *kind;	/* as in space.kind */
	/* Give back what open took: mappings, descriptors, space.priv. */
	void (*close)(struct space *sp);
	/* See space_forget(); NULL: there is nothing to do. */
	void (*forget)(struct space *sp);
};

/* An ELF core file, plain or compressed (zstd, xz, lz4, gzip by content). */
struct space *target_open_core(const char *path,
			       const struct target_options *options,
			       struct err *err) MUST_CHECK;

/*
 * The same from bytes in memory, for fuzzing and tests; data must stay valid
 * until space_close.
 */
struct space *target_open_core_memory(const void *data, size_t size,
				      const struct target_options *options,
				      struct err *err) MUST_CHECK;

/*
 * A running process.  It is stopped while its memory is copied, and runs on
 * when this returns, whatever comes of it; also if we die on the way.
 */
struct space *target_open_live(uint32_t pid,
			       const struct target_options *options,
			       struct err *err) MUST_CHECK;

/*
 * An image built by hand, for unit tests: segments are added, then
 * target_mem_done() makes it ready.  Bytes are copied; holes are avail < size.
 */
struct space *target_mem_new(enum machine machine);
/* size bytes at start, of which the first avail are given (NULL: zeros). */
void target_mem_add(struct space *sp, vaddr start, uint64_t size,
		    uint32_t flags, const void *bytes, uint64_t avail,
		    const char *file_name);
/* Writable bytes at addr, before or after done; NULL outside. */
uint8_t *target_mem_at(struct space *sp, vaddr addr);
void target_mem_done(struct space *sp);

#endif
