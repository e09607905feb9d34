/* SPDX-License-Identifier: MIT */
#include "base/progress.h"

#include <stdio.h>
#include <time.h>

#include "base/types.h"

#define MS UINT64_C(1000000)

static const uint64_t first_after = 500 * MS;
static const uint64_t redraw_after = 100 * MS;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
}

static void erase(struct progress *p)
{
	if (!p->drawn)
		return;
	fputs("\r\33[K", stderr);
	fflush(stderr);
	p->drawn = false;
}

void progress_init(struct progress *p, enum progress_mode mode)
{
	*p = (struct progress){ .mode = mode };
	if (mode == PROGRESS_TERMINAL)
		p->start_ns = now_ns();
}

void progress_fini(struct progress *p)
{
	erase(p);
	p->mode = PROGRESS_NONE;
}

void progress_phase(struct progress *p, const char *phase)
{
	if (!p || p->mode == PROGRESS_NONE)
		return;
	erase(p);
	p->phase = phase;
	if (p->mode == PROGRESS_CALL && phase)
		p->call(p->context, phase);
	if (p->mode == PROGRESS_PLAIN && phase)
		fprintf(stderr, "heapcore: %s\n", phase);
}

/* "heapcore: walking glibc arenas   7 of 9   78%   4812190 blocks" */
static void draw(const struct progress *p, uint64_t done, uint64_t total,
		 uint64_t count, const char *noun)
{
	char share[16] = "", text[200] = "";
	size_t n;

	if (total)
		snprintf(share, sizeof(share), "   %u%%",
			 (unsigned)((double)min_u64(done, total) * 100 /
				    (double)total));
	n = (size_t)snprintf(text, sizeof(text), "%.100s%s",
			     p->phase ? p->phase : "", share);
	if (noun)
		snprintf(text + n, sizeof(text) - n, "   %llu %.40s",
			 (unsigned long long)count, noun);
	if (p->mode == PROGRESS_CALL) {
		p->call(p->context, text);
		return;
	}
	fprintf(stderr, "\r\33[Kheapcore: %s", text);
	fflush(stderr);
}

void progress_step(struct progress *p, uint64_t done, uint64_t total,
		   uint64_t count, const char *noun)
{
	uint64_t now;

	if (!p || (p->mode != PROGRESS_TERMINAL && p->mode != PROGRESS_CALL))
		return;
	now = now_ns();
	if (now - p->start_ns < first_after ||
	    (p->drawn_ns && now - p->drawn_ns < redraw_after))
		return;
	draw(p, done, total, count, noun);
	p->drawn_ns = now;
	p->drawn = p->mode == PROGRESS_TERMINAL;
}
