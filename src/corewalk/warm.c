/* SPDX-License-Identifier: MIT */
#include "corewalk/warm.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"

/* Linux 5.14; Debian 11 has headers without it. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

enum {
	WARM_STEP = 4 << 20,	/* bytes asked for at a time */
	WARM_MIN = 16 << 20,	/* below this a thread costs more */
};

struct warm {
	const struct space *sp;
	atomic_bool stop;
	pthread_t thread;
};

/* What a heap walk will read: anonymous memory that the core stores. */
static bool wanted(const struct seg *seg)
{
	return seg->host && (seg->flags & SEG_W) && space_seg_anon(seg) &&
	       !(seg->flags & SEG_FROM_FILE);
}

static bool warm_seg(struct warm *w, const struct seg *seg)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t at = (uintptr_t)seg->host & ~(page - 1);
	uintptr_t end = (uintptr_t)seg->host + seg->avail;

	for (; at < end; at += WARM_STEP) {
		size_t n = end - at < WARM_STEP ? end - at : WARM_STEP;

		if (atomic_load_explicit(&w->stop, memory_order_relaxed) ||
		    madvise((void *)at, n, MADV_POPULATE_READ))
			return false;
	}
	return true;
}

static void *warm_all(void *arg)
{
	struct warm *w = arg;

	for (size_t i = 0; i < w->sp->n_segs; i++)
		if (wanted(&w->sp->segs[i]) && !warm_seg(w, &w->sp->segs[i]))
			break;
	return NULL;
}

struct warm *warm_start(const struct space *sp)
{
	uint64_t bytes = 0;
	struct warm *w;

	if (strcmp(sp->kind, "core") || sysconf(_SC_NPROCESSORS_ONLN) < 2)
		return NULL;
	for (size_t i = 0; i < sp->n_segs; i++)
		bytes += wanted(&sp->segs[i]) ? sp->segs[i].avail : 0;
	if (bytes < WARM_MIN)
		return NULL;
	w = mem_zalloc(sizeof(*w));
	w->sp = sp;
	if (pthread_create(&w->thread, NULL, warm_all, w)) {
		free(w);
		return NULL;
	}
	return w;
}

void warm_stop(struct warm *w)
{
	if (!w)
		return;
	atomic_store_explicit(&w->stop, true, memory_order_relaxed);
	pthread_join(w->thread, NULL);
	free(w);
}
