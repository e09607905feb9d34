/* SPDX-License-Identifier: MIT */
/*
 * The recorder's beginning, in a program and in its children: options, clock,
 * a file, and the live word.
 */
#include "replay/recorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { LOOKS_A_SECOND = 100 };

int rec_state = REC_NEW;
static uint32_t never;
volatile uint32_t *rec_live = &never;

/* Invariant TSC: one rate, whatever the processor does. */
static bool counter_is_clock(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
#elif defined(__aarch64__)
	return true;
#else
	return false;
#endif
}

/* 20 us of looking at both are enough for a unit; CLOCK records do better. */
static void measure_counter(void)
{
	uint64_t t0, t1, n0, n1;

	rec.counter = counter_is_clock();
	rec.ticks_per_s = 1000000000;
	if (rec.counter) {
		n0 = rec_clock_ns(CLOCK_MONOTONIC);
		t0 = rec_tick();
		do {
			n1 = rec_clock_ns(CLOCK_MONOTONIC);
			t1 = rec_tick();
		} while (n1 - n0 < 20000);
		rec.ticks_per_s = (uint64_t)((double)(t1 - t0) * 1e9 /
					     (double)(n1 - n0));
	}
	/* At most 8 ns: with 25, threads' events are out of order. */
	for (rec.shift = 0; (UINT64_C(2) << rec.shift) * 125000000 <=
			    rec.ticks_per_s; rec.shift++)
		;
	rec.look_step = rec.ticks_per_s / LOOKS_A_SECOND;
	rec.next_look = rec_tick();
	rec.next_clock = rec.next_look + rec.ticks_per_s;
}

static const char *option(const char *options, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = options; p && *p;) {
		if (!strncmp(p, name, n) && p[n] == '=')
			return p + n + 1;
		p = strchr(p, ',');
		p += p != NULL;
	}
	return NULL;
}

static uint64_t option_number(const char *options, const char *name,
			      uint64_t otherwise)
{
	const char *text = option(options, name);

	return text ? rec_number(text) : otherwise;
}

static void read_options(const char *options)
{
	uint64_t depth = option_number(options, "depth", 32);
	const char *how = option(options, "unwind");

	rec.no_stacks = !depth;
	rec.depth = depth < 1 ? 1 : depth > TRACE_DEPTH_MAX ?
		TRACE_DEPTH_MAX : (unsigned)depth;
	rec.frame_pointers = how && how[0] == 'f';
	rec.rate = option_number(options, "rate", 0);
	rec.max = option_number(options, "max", 0);
	rec.children = option_number(options, "children", 0) != 0;
	rec.maps = option_number(options, "mmap", 0) != 0;
}

/*
 * What the program starts is not recorded and shall not see that we were
 * here: take ourselves out of its environment, in place.
 */
void rec_clean_environment(void)
{
	char **to = environ;

	for (char **e = environ; *e; e++) {
		char *colon;

		if (!strncmp(*e, "HEAPCORE_RECORD_", 16))
			continue;
		if (!strncmp(*e, "LD_PRELOAD=", 11)) {
			colon = strchr(*e, ':');
			if (!colon)
				continue;
			memmove(*e + 11, colon + 1, strlen(colon));
		}
		*to++ = *e;
	}
	*to = NULL;
}

static char *put_decimal(char *p, unsigned value)
{
	char digits[12];
	size_t k = sizeof(digits);

	do
		digits[--k] = (char)('0' + value % 10);
	while (value /= 10);
	memcpy(p, digits + k, sizeof(digits) - k);
	return p + sizeof(digits) - k;
}

/* "%p" is the pid; a name without one gets it as a suffix. */
static bool child_path(char ret[REC_PATH], unsigned again)
{
	char *to = ret;
	bool told = false;

	for (const char *p = rec.pattern; *p; p++) {
		if (to > ret + REC_PATH - 64)
			return false;
		if (p[0] != '%' || p[1] != 'p') {
			*to++ = *p;
			continue;
		}
		to = put_decimal(to, (unsigned)rec.pid);
		told = true;
		p++;
	}
	if (!told) {
		*to++ = '.';
		to = put_decimal(to, (unsigned)rec.pid);
	}
	if (again) {
		*to++ = '.';
		to = put_decimal(to, again);
	}
	*to = '\0';
	return true;
}

/* A child, or what a recorded program became by exec: a file of its own. */
static bool open_child_file(void)
{
	for (unsigned again = 0; again < 1000; again++) {
		if (!child_path(rec.path, again ? again + 1 : 0))
			return false;
		if (rec_file_open(rec.path, true))
			return true;
		if (errno != EEXIST)
			return false;
	}
	return false;
}

/*
 * The live word: the kernel gives children a zero in its place, whatever way
 * they were forked.  Where it cannot, nothing is recorded.
 */
static bool make_live(void)
{
	static uint32_t *page;

	if (!page) {
		page = rec_map((size_t)sysconf(_SC_PAGESIZE));
		if (!page || madvise(page, (size_t)sysconf(_SC_PAGESIZE),
				     MADV_WIPEONFORK))
			return false;
	}
	*page = 1;
	rec_live = page;
	return true;
}

/* The file is open: begin.  fresh: environ can be read. */
static void begin(bool fresh)
{
	rec_stacks_reset();
	if (!make_live()) {
		rec_state = REC_OFF;
		return;
	}
	rec_state = REC_ON;
	rec_lock();
	rec_log_start(fresh);
	rec_unlock();
	rec_modules_read();
}

void rec_start(void)
{
	const char *path = getenv("HEAPCORE_RECORD_FILE");
	const char *first = getenv("HEAPCORE_RECORD_FIRST");
	int saved = errno;
	bool again;

	rec_state = REC_OFF;
	if (!path || strlen(path) >= REC_PATH)
		return;
	rec.pid = (int)syscall(SYS_getpid);
	if (!rec_exec_start(&again))
		return;
	read_options(getenv("HEAPCORE_RECORD_OPTIONS"));
	memcpy(rec.pattern, path, strlen(path) + 1);
	measure_counter();
	if (first && strlen(first) < REC_PATH) {
		memcpy(rec.path, first, strlen(first) + 1);
		if (rec_file_open(rec.path, false) ||
		    ((rec.children || again) && open_child_file()))
			begin(true);
	}
	errno = saved;
}

/* What is left of the parent's recording is not ours. */
void rec_start_child(void)
{
	int saved = errno;

	rec_lock_reset();
	rec_state = REC_OFF;
	rec_sample_reset();
	rec.pid = (int)syscall(SYS_getpid);
	for (struct rec_writer *w = rec.writers; w; w = w->next)
		rec_unmap(w->chunk.map, w->chunk.room);
	rec_unmap(rec.log.map, rec.log.room);
	rec_unmap(rec.stacks.map, rec.stacks.room);
	rec.log = rec.stacks = (struct rec_chunk){ .map = NULL };
	rec.writers = NULL;
	rec.n_streams = 0;
	rec_self = NULL;
	if (rec.fd >= 0)
		syscall(SYS_close, rec.fd);
	rec.fd = -1;
	rec_modules_reset();
	if (open_child_file())
		begin(false);
	errno = saved;
}
