/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the process target share: target_live.c (the order of
 * things), live_proc.c (files of /proc), live_check.c (may we, and why not),
 * live_stop.c (stopping and registers), live_pages.c (where pages are),
 * live_copy.c and
 * live_buffer.c (memory into a buffer), live_room.c (is there memory for that),
 * live_file.c (bytes of mapped files),
 * live_note.c (notes as a core has them), live_fork.c (a copy that the process
 * makes of itself) and live_chain.c (how a thread that was used for that finds
 * back).  Besides them only the unit tests include this.
 *
 * A process becomes a core in memory: notes, segments, and a buffer in which
 * each segment that has bytes has its place, as in a sparse core file.  From
 * there on the parts of the core target do the rest, so that a process and a
 * core of it are the same to everybody.
 */
#ifndef COREWALK_LIVE_H
#define COREWALK_LIVE_H

#include <sys/types.h>

#include "base/str.h"
#include "corewalk/core.h"
#include "corewalk/pages.h"

enum {
	LIVE_MAX_REGS = 512,	/* bytes of general registers of a machine */
	LIVE_MAX_XSTATE = 16384,	/* with AMX 11008 */
};

/* A line of maps. */
struct live_map {
	vaddr start, end;
	uint64_t off;		/* in the file, in bytes */
	uint32_t flags;		/* enum seg_flag */
	bool has_file;
	unsigned dev_major, dev_minor;
	uint64_t ino;
	char *name;		/* owned; "" if there is none */
};

struct live_thread {
	pid_t tid;
	bool seized;		/* ours until it or we end */
	bool stopped;		/* and its registers can be read */
	bool gone;
	bool stuck;		/* waits inside the kernel, cannot stop */
	int signal;		/* was being delivered: handed on at release */
	uint8_t regs[LIVE_MAX_REGS];
	size_t n_regs;		/* bytes; 0: not known */
	uint8_t *fpregs, *xstate;	/* owned */
	size_t n_fpregs, n_xstate;
	uint64_t tls;		/* if the machine keeps it apart */
	bool has_tls;
};

/* Mappings without a gap between them, and their place in the buffer. */
struct live_zone {
	vaddr start;
	uint64_t off, room;	/* bytes */
};

struct live {
	struct core core;	/* first: space.priv is both */
	struct space *sp;	/* borrowed */
	struct target_options options;
	pid_t pid;
	int proc_fd;		/* /proc/PID */
	int mm_fd;		/* the same, of a thread that has memory */
	int mem_fd, pagemap_fd;	/* -1: not open */

	uint64_t start_ns, deadline_ns;	/* of the pause */
	bool lost;			/* it, or all threads seen, ended */
	bool busy;			/* another heapcore has it just now */
	bool over;			/* why it was refused is not seen now */
	struct live_thread *threads;	/* owned, sorted by tid */
	size_t n_threads, cap_threads;

	struct live_map *maps;	/* owned, sorted */
	size_t n_maps, cap_maps;
	struct str notes;	/* all of them, as in a core */

	uint8_t *buf;		/* owned: mapped; segments at their core_off */
	uint64_t buf_size;	/* a multiple of the page */
	int buf_fd;		/* a file without a name, or -1 */
	uint64_t tail;		/* where the buffer has no zone yet */
	struct live_zone *zones;	/* owned, sorted */
	size_t n_zones, cap_zones;
	vaddr syscall_ret, restorer;	/* live_chain.h; 0: not found */
	uint64_t to_copy, copied;	/* bytes */
	uint64_t unreadable;	/* bytes that should have been there */
	const char **roots;	/* owned: its own root, then --sysroot */
	char *root, *map_files;	/* owned */
};

/* ---- live_proc.c ---- */

struct live_stat {
	char state;
	pid_t ppid, pgrp, sid;
	unsigned long flags;	/* PF_KTHREAD and the like */
	uint64_t nice;
	long threads;		/* that are there, the main one too */
};

struct live_status {
	char name[64];
	pid_t tgid, tracer;
	unsigned uid, euid, gid;
	int seccomp;
	bool shadow_stack;
	uint64_t caps;		/* effective */
	unsigned long threads;
};

/* All of a file of /proc; false with errno set. */
bool live_read(int dir_fd, const char *name, struct str *ret) MUST_CHECK;
bool live_read_stat(int dir_fd, struct live_stat *ret) MUST_CHECK;
bool live_read_status(int dir_fd, struct live_status *ret) MUST_CHECK;
bool live_read_maps(int dir_fd, struct live_map **ret, size_t *ret_n)
	MUST_CHECK;
void live_free_maps(struct live_map *maps, size_t n);
/* The threads now, sorted; false with errno set. */
bool live_list_threads(int proc_fd, pid_t **ret, size_t *ret_n) MUST_CHECK;

uint64_t live_now(void);	/* monotonic, nanoseconds */

/* ---- live_check.c ---- */

/*
 * Opens the process: it exists, has memory, and is no thread of another.
 * Fills proc_fd, mm_fd and mem_fd.
 */
bool live_open(struct live *lv, struct err *err) MUST_CHECK;

/*
 * Sets mm_fd to a thread that has memory now: the main thread, unless it has
 * ended.  Of a process that runs, another one can be gone at once.
 */
bool live_open_thread(struct live *lv) MUST_CHECK;

enum live_ns { LIVE_NS_SAME, LIVE_NS_OTHER, LIVE_NS_HIDDEN };

/* What decides whether a process may be read. */
struct live_case {
	const char *who;	/* "process 123" */
	bool known;		/* what follows, up to mem_owner */
	unsigned uid, euid;	/* of the process */
	unsigned mem_owner;	/* of its file mem, in /proc */
	pid_t tracer;		/* 0: none */
	char tracer_name[64];
	enum live_ns ns;	/* its user namespace */
	unsigned own_uid, own_euid;
	uint64_t own_caps;	/* effective */
	int yama;		/* kernel.yama.ptrace_scope; 0 without Yama */
};

/* The words for such a case, after this errno.  Always false. */
bool live_say_why(const struct live_case *c, const char *what, int number,
		  struct err *err);

/* Why a call failed with this errno, in words.  Always false. */
bool live_refused(struct live *lv, const char *what, int number,
		  struct err *err);

/* It ended, or became another program, while we were at it. Always false. */
bool live_lost(struct live *lv, struct err *err);

/* ---- live_stop.c ---- */

/* Stop all threads and read their registers. */
bool live_stop(struct live *lv, struct err *err) MUST_CHECK;
/* Let those that were stopped run on; threads get their signals. */
void live_release(struct live *lv);
/* Without stopping: what the kernel tells of threads that are waiting. */
bool live_peek_threads(struct live *lv, struct err *err) MUST_CHECK;
/* The pause has become too long: err says so. */
bool live_late(const struct live *lv, struct err *err);

/* Free the list of threads, which must have been released. */
void live_forget_threads(struct live *lv);

/* ---- live_fork.c ---- */

/*
 * Of a process that was stopped, a copy that never runs.  *ret_inner is its
 * number inside of the process's own namespace if the process must reap it,
 * else 0.  If *ret_copy is set, even after a failure, live_reap() must follow.
 * After a failure a thread of the process may be on its way back, which it
 * finds when our thread has ended.
 */
bool live_fork(struct live *lv, pid_t *ret_copy, pid_t *ret_inner,
	       struct err *err) MUST_CHECK;
/*
 * Do away with the copy.  If the process must reap it, it is stopped once
 * more, for a moment, and until deadline_ns at the longest.
 */
void live_reap(struct live *lv, pid_t copy, pid_t inner);
/* While it runs: look for code that live_fork() will need. */
void live_chain_look(struct live *lv);

/* ---- live_pages.c ---- */

/* Fills sp->pages, by the best means that the kernel has. */
bool live_pages(struct live *lv, struct err *err) MUST_CHECK;
/*
 * The two means; errno is set when they fail.  The second one does not know
 * which pages are huge.
 */
bool live_pages_scan(int fd, vaddr end, struct page_run **ret, size_t *ret_n)
	MUST_CHECK;
bool live_pages_read(int fd, const struct live_map *maps, size_t n_maps,
		     struct page_run **ret, size_t *ret_n) MUST_CHECK;
/* Where the last mapping of the process itself ends. */
vaddr live_pages_end(const struct live_map *maps, size_t n);

/* ---- live_copy.c ---- */

/* Decide what to copy: segments, without a place in the buffer so far. */
void live_plan(struct live *lv);
/*
 * Bytes of a segment that are to be copied.  *run moves to its first run of
 * pages; segments are asked about in their order, the first one with 0.
 */
uint64_t live_seg_wanted(const struct live *lv, const struct seg *seg,
			 size_t *run);
/* Copy, from mem_fd. */
bool live_copy(struct live *lv, int mem_fd, struct err *err) MUST_CHECK;

/* ---- live_buffer.c ---- */

/* Make the buffer for the plan, in memory or in a file, and fill it. */
bool live_buffer(struct live *lv, struct err *err) MUST_CHECK;
/* Give the segments of a later plan their places. */
bool live_place(struct live *lv, struct err *err) MUST_CHECK;
void live_free_buffer(struct live *lv);

/* ---- live_room.c ---- */

/*
 * Bytes of memory that can be taken without swapping or being killed for it;
 * UINT64_MAX if not known.  root is in front of /proc and /sys: "".
 */
uint64_t live_room(const char *root);

/* ---- live_file.c ---- */

/*
 * Pages of mapped files that the process has not read so far; and the first
 * page of a file is only of interest if it is an ELF file's.
 */
void live_fill_files(struct live *lv);
/* Where to look for its files: its root, unless it is ours. */
void live_set_roots(struct live *lv);

/* ---- live_note.c ---- */

/* Fills lv->notes, in the order in which Linux writes them into a core. */
bool live_notes(struct live *lv, struct err *err) MUST_CHECK;

#endif
