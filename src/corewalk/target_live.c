/* SPDX-License-Identifier: MIT */
/*
 * Running processes.
 *
 * All that needs the process to stand still is done by a thread of its own,
 * as fast as can be: registers, mappings, where pages are, and a copy of the
 * pages that are there.  When that thread ends, the kernel lets the process
 * go, whatever state we left it in; when all of heapcore ends, by a signal or
 * a crash, likewise.  What can wait comes after: files, programs, libraries.
 */
#include "corewalk/target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "corewalk/live.h"

enum {
	MAX_TRIES = 3,		/* to read a running process */
	MAX_LOOKS = 100,	/* by threads that end meanwhile */
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void free_maps(struct live *lv)
{
	live_free_maps(lv->maps, lv->n_maps);
	lv->maps = NULL;
	lv->n_maps = 0;
}

/* What is not needed once the process is a space. */
static void let_go(struct live *lv)
{
	close_fd(&lv->pagemap_fd);
	close_fd(&lv->mem_fd);
	close_fd(&lv->mm_fd);
	close_fd(&lv->proc_fd);
	live_forget_threads(lv);
	free_maps(lv);
}

static void close_live(struct space *sp)
{
	struct live *lv = sp->priv;
	size_t i;

	let_go(lv);
	live_free_buffer(lv);
	for (i = 0; i < lv->core.n_maps; i++)
		munmap(lv->core.maps[i].data, lv->core.maps[i].size);
	free(lv->core.maps);
	free(lv->core.ranges);
	str_fini(&lv->notes);
	free(lv->roots);
	free(lv->root);
	free(lv->map_files);
	free(lv);
}

static const struct target_ops live_ops = {
	.kind = "process",
	.close = close_live,
};

static struct space *new_space(uint32_t pid,
			       const struct target_options *options)
{
	struct space *sp = mem_zalloc(sizeof(*sp));
	struct live *lv = mem_zalloc(sizeof(*lv));

	sp->kind = live_ops.kind;
	sp->path = mem_printf("process %u", pid);
	sp->writer = "heapcore";
	sp->page = (uint64_t)sysconf(_SC_PAGESIZE);
	sp->word = 8;
	sp->ops = &live_ops;
	sp->priv = lv;
	lv->sp = sp;
	lv->pid = (pid_t)pid;
	if (options)
		lv->options = *options;
	if (!(lv->options.max_pause_s > 0))
		lv->options.max_pause_s = TARGET_MAX_PAUSE_S;
	lv->core.name = sp->path;
	lv->core.options = &lv->options;
	lv->proc_fd = lv->mm_fd = lv->mem_fd = lv->pagemap_fd = -1;
	lv->buf_fd = -1;
	str_init(&lv->notes);
	return sp;
}

/* ---- the machine ---- */

/* The rest of the core target asks the core's header; we make one. */
static void set_machine(struct live *lv)
{
#if defined(__aarch64__)
	lv->sp->machine = MACHINE_AARCH64;
	lv->core.elf.machine = ELF_EM_AARCH64;
#else
	lv->sp->machine = MACHINE_X86_64;
	lv->core.elf.machine = ELF_EM_X86_64;
#endif
	lv->core.elf.is64 = true;
	lv->core.elf.type = ELF_TYPE_CORE;
	lv->core.knows_shared = true;
}

/* Its program is of 32 bits, as far as we can read it. */
static bool is_32_bit(const struct live *lv)
{
	int fd = openat(lv->proc_fd, "exe", O_RDONLY | O_CLOEXEC);
	uint8_t head[64];
	ssize_t n;

	if (fd < 0)
		return false;
	n = pread(fd, head, sizeof(head), 0);
	close(fd);
	return n > 4 && elf_magic(head, (uint64_t)n) &&
	       head[4] == ELF_CLASS_32;
}

static bool refuse_32_bit(const struct live *lv, struct err *err)
{
	err_set(err, ERR_UNSUPPORTED, "%s: a 32-bit program; only 64-bit "
		"processes can be read", lv->core.name);
	return err_hint(err, "Cores of 32-bit programs can: gcore -o core "
			"%d, then heapcore analyze core.%d.", (int)lv->pid,
			(int)lv->pid);
}

/* ---- what needs it to stand still ---- */

static bool open_pagemap(struct live *lv, struct err *err)
{
	close_fd(&lv->pagemap_fd);
	lv->pagemap_fd = openat(lv->mm_fd, "pagemap", O_RDONLY | O_CLOEXEC);
	if (lv->pagemap_fd < 0)
		return live_refused(lv, "cannot read pagemap", errno, err);
	return true;
}

static bool read_maps(struct live *lv, struct err *err)
{
	free_maps(lv);
	if (!live_read_maps(lv->mm_fd, &lv->maps, &lv->n_maps))
		return live_refused(lv, "cannot read maps", errno, err);
	if (!lv->n_maps)
		return live_lost(lv, err);
	return true;
}

/*
 * mem_fd was opened before the process stood still and belongs to the memory
 * that it had then.  If it executed another program on the way, that memory
 * is gone.
 */
static bool still_the_same(struct live *lv, struct err *err)
{
	const struct space *sp = lv->sp;
	uint8_t byte;
	size_t i;

	for (i = 0; i < sp->n_pages && i < 64; i++) {
		if (!(sp->pages[i].flags & PAGE_PRESENT))
			continue;
		if (pread(lv->mem_fd, &byte, 1,
			  (off_t)sp->pages[i].start) == 1)
			return true;
	}
	return live_lost(lv, err);
}

static bool look_once(struct live *lv, bool notes, struct err *err)
{
	struct space *sp = lv->sp;

	free(sp->pages);
	sp->pages = NULL;
	sp->n_pages = 0;
	return open_pagemap(lv, err) && read_maps(lv, err) &&
	       live_pages(lv, err) && still_the_same(lv, err) &&
	       (!notes || live_notes(lv, err));
}

static bool main_thread_ended(const struct live *lv)
{
	struct live_stat stat;

	return live_read_stat(lv->proc_fd, &stat) && stat.state == 'Z';
}

/* The thread by which it is seen can end, unless it is the main thread. */
static bool look(struct live *lv, bool notes, struct err *err)
{
	unsigned tries = 0;

	do {
		if (!live_open_thread(lv))
			return live_lost(lv, err);
		if (look_once(lv, notes, err)) {
			live_plan(lv);
			return true;
		}
	} while (main_thread_ended(lv) && ++tries < MAX_LOOKS);
	return false;
}

static bool capture(struct live *lv, struct err *err)
{
	return look(lv, true, err) && live_place(lv, err);
}

/* Let it run on; how long did it stand still? */
static void resume(struct live *lv)
{
	live_release(lv);
	lv->sp->stopped_s += (double)(live_now() - lv->start_ns) / 1e9;
}

static bool copy_forked(struct live *lv, pid_t copy, struct err *err)
{
	AUTO_FREE char *path = mem_printf("/proc/%d/mem", (int)copy);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool ok;

	if (fd < 0)
		return err_system(err, "%s: cannot read its copy",
				  lv->core.name);
	/* Nobody waits any more. */
	lv->deadline_ns = 0;
	ok = live_copy(lv, fd, err);
	close(fd);
	return ok;
}

static uint64_t seconds_ns(double seconds)
{
	return seconds > 0 ? (uint64_t)(seconds * 1e9) : 0;
}

static bool capture_forked(struct live *lv, struct err *err)
{
	pid_t copy = 0, inner = 0;
	bool ok = live_stop(lv, err) && capture(lv, err) &&
		  live_fork(lv, &copy, &inner, err);

	resume(lv);
	ok = ok && copy_forked(lv, copy, err);
	if (!copy)
		return ok;
	lv->start_ns = live_now();
	lv->deadline_ns = lv->start_ns + seconds_ns(
		lv->options.max_pause_s - lv->sp->stopped_s);
	live_reap(lv, copy, inner);
	if (inner)
		lv->sp->stopped_s += (double)(live_now() - lv->start_ns) / 1e9;
	return ok;
}

static bool capture_stopped(struct live *lv, struct err *err)
{
	bool ok;

	lv->start_ns = live_now();
	lv->deadline_ns = lv->start_ns + seconds_ns(lv->options.max_pause_s);
	if (lv->options.fork)
		return capture_forked(lv, err);
	ok = live_stop(lv, err) && capture(lv, err) &&
	     live_copy(lv, lv->mem_fd, err);
	resume(lv);
	return ok;
}

struct stopper {
	struct live *lv;
	struct err *err;
	bool ok;
};

static void *stopper_main(void *arg)
{
	struct stopper *s = arg;

	s->ok = capture_stopped(s->lv, s->err);
	return NULL;
}

/* In a thread of its own, with which all hold on the process ends. */
static bool capture_in_thread(struct live *lv, struct err *err)
{
	struct stopper s = { .lv = lv, .err = err };
	pthread_t thread;
	int why = pthread_create(&thread, NULL, stopper_main, &s);

	if (why) {
		errno = why;
		return err_system(err, "%s: cannot start a thread",
				  lv->core.name);
	}
	pthread_join(thread, NULL);
	return s.ok;
}

/* ---- without stopping ---- */

static bool maps_differ(const struct live *lv)
{
	struct live_map *maps;
	size_t i, n;
	bool differ;

	if (!live_read_maps(lv->mm_fd, &maps, &n))
		return false;
	differ = n != lv->n_maps;
	for (i = 0; i < n && !differ; i++)
		differ = maps[i].start != lv->maps[i].start ||
			 maps[i].end != lv->maps[i].end ||
			 maps[i].flags != lv->maps[i].flags;
	live_free_maps(maps, n);
	return differ;
}

/* What does not fit together is read again, a few times. */
static bool capture_running(struct live *lv, struct err *err)
{
	unsigned tries = 0;

	do {
		/* What was copied before must not show through. */
		if (tries)
			live_free_buffer(lv);
		live_forget_threads(lv);
		if (!live_peek_threads(lv, err) || !capture(lv, err) ||
		    !live_copy(lv, lv->mem_fd, err))
			return false;
	} while ((maps_differ(lv) || lv->unreadable) && ++tries < MAX_TRIES);
	lv->sp->torn = true;
	space_warn(lv->sp, "read while it ran: numbers and links may not fit "
		   "together");
	return true;
}

/* ---- from copy to space ---- */

static void warn_unreadable(struct live *lv)
{
	char size[NUM_MAX];

	if (!lv->unreadable)
		return;
	num_format_size(size, lv->unreadable);
	space_warn(lv->sp, "%s of its memory could not be read and count as "
		   "zeros", size);
}

static void warn_swapped(struct live *lv)
{
	uint64_t left = 0;
	char size[NUM_MAX];
	size_t i;

	for (i = 0; i < lv->sp->n_segs; i++)
		if (lv->sp->segs[i].why == SPACE_SWAPPED)
			left += lv->sp->segs[i].end - lv->sp->segs[i].start;
	if (!left)
		return;
	num_format_size(size, left);
	space_warn(lv->sp, "%s of its memory are in swap and were left there",
		   size);
}

/* A core has no place for them; one that has ended since has none. */
static void name_threads(struct live *lv)
{
	struct space *sp = lv->sp;
	struct str name;

	str_init(&name);
	for (size_t i = 0; i < sp->n_threads; i++) {
		struct thread *t = &sp->threads[i];
		AUTO_FREE char *path = mem_printf("task/%" PRIu32 "/comm",
						  t->tid);

		if (!live_read(lv->proc_fd, path, &name) || !name.len)
			continue;
		snprintf(t->name, sizeof(t->name), "%.*s",
			 (int)strcspn(name.text, "\n"), name.text);
	}
	str_fini(&name);
}

static void finish(struct live *lv)
{
	struct space *sp = lv->sp;

	live_fill_files(lv);
	if (lv->buf_fd < 0)
		mprotect(lv->buf, lv->buf_size, PROT_READ);
	sp->core_size = sp->core_wanted = lv->copied;
	sp->holes = HOLES_KEPT;
	core_notes(sp, (const uint8_t *)lv->notes.text, lv->notes.len);
	core_notes_done(sp);
	sp->writer = "heapcore";
	sp->signal = 0;
	name_threads(lv);
	core_files(sp);
	pages_to_runs(sp);
	live_set_roots(lv);
	core_modules(sp);
	core_module_files(sp);
	warn_unreadable(lv);
	warn_swapped(lv);
	let_go(lv);
	sp->reads = 0;
}

/* Its main thread has ended and others come and go: none was caught. */
static bool goes_on_without_main(const struct live *lv)
{
	struct live_stat stat;

	return live_read_stat(lv->proc_fd, &stat) && stat.state == 'Z' &&
	       stat.threads > 1;
}

/* Whether it may well work the next time. */
enum again { AGAIN_NO, AGAIN_NOW, AGAIN_LATER };

static struct space *open_once(uint32_t pid,
			       const struct target_options *options,
			       enum again *again, struct err *err)
{
	struct space *sp = new_space(pid, options);
	struct live *lv = sp->priv;
	bool ok;

	set_machine(lv);
	ok = live_open(lv, err);
	if (ok && is_32_bit(lv))
		ok = refuse_32_bit(lv, err);
	/* What it looks like while it runs; the buffer is for that. */
	if (ok)
		ok = look(lv, false, err) && live_buffer(lv, err);
	if (ok && lv->options.fork)
		live_chain_look(lv);
	if (ok)
		ok = lv->options.no_stop ? capture_running(lv, err) :
		     capture_in_thread(lv, err);
	*again = !ok && lv->busy ? AGAIN_LATER :
		 !ok && (lv->over || (lv->lost && goes_on_without_main(lv))) ?
		 AGAIN_NOW : AGAIN_NO;
	if (ok) {
		finish(lv);
		return sp;
	}
	space_close(sp);
	return NULL;
}

/* Two that wait for each other should not wake at once. */
static void nap(void)
{
	const struct timespec t = {
		.tv_nsec = 5000000 + getpid() % 64 * 100000,
	};

	nanosleep(&t, NULL);
}

struct space *target_open_live(uint32_t pid,
			       const struct target_options *options,
			       struct err *err)
{
	enum { TRIES = 20 };
	double patience = options->max_pause_s > 0 ? options->max_pause_s
						   : TARGET_MAX_PAUSE_S;
	uint64_t until = live_now() + seconds_ns(patience);
	enum again again = AGAIN_NOW;
	struct space *sp = NULL;

	for (int i = 0; i < TRIES && again; i += again == AGAIN_NOW) {
		sp = open_once(pid, options, &again, err);
		if (again == AGAIN_LATER && live_now() > until)
			break;
		if (again == AGAIN_LATER)
			nap();
	}
	return sp;
}
