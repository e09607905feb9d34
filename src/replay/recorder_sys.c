/* SPDX-License-Identifier: MIT */
/*
 * What libc would do for us, without what it does besides: system calls that
 * are no cancellation points and that no other preloaded object wraps.
 */
#include "replay/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint32_t lock_word;	/* 0 free, 1 held, 2 held and wanted */

/*
 * Signals wait while a thread holds the lock: a handler may leave by longjmp,
 * and then the lock would be held for ever.
 */
static __thread uint64_t saved_signals;

static void block_signals(void)
{
	uint64_t all = ~UINT64_C(0);

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &saved_signals,
		sizeof(all));
}

static void unblock_signals(void)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &saved_signals, NULL,
		sizeof(saved_signals));
}

static bool take(void)
{
	uint32_t free_word = 0;

	return __atomic_compare_exchange_n(&lock_word, &free_word, 1, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

bool rec_try_lock(void)
{
	block_signals();
	if (take())
		return true;
	unblock_signals();
	return false;
}

void rec_lock(void)
{
	block_signals();
	for (int i = 0; i < 64; i++)
		if (take())
			return;
	while (__atomic_exchange_n(&lock_word, 2, __ATOMIC_ACQUIRE))
		syscall(SYS_futex, &lock_word, FUTEX_WAIT_PRIVATE, 2, NULL);
}

void rec_unlock(void)
{
	if (__atomic_exchange_n(&lock_word, 0, __ATOMIC_RELEASE) == 2)
		syscall(SYS_futex, &lock_word, FUTEX_WAKE_PRIVATE, 1);
	unblock_signals();
}

/* In a child, whose parent's other threads may have held it. */
void rec_lock_reset(void)
{
	__atomic_store_n(&lock_word, 0, __ATOMIC_RELEASE);
}

void *rec_map(size_t size)
{
	void *p = (void *)syscall(SYS_mmap, NULL, size,
				  PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				  -1, 0L);

	return p == MAP_FAILED ? NULL : p;
}

void rec_unmap(void *p, size_t size)
{
	if (p)
		syscall(SYS_munmap, p, size);
}

size_t rec_slurp(const char *path, char *buffer, size_t size)
{
	long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	size_t n = 0;

	if (fd < 0)
		return 0;
	while (n < size) {
		long got = syscall(SYS_read, fd, buffer + n, size - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	syscall(SYS_close, fd);
	return n;
}

static const char *hex(const char *p, const char *end, uintptr_t *ret)
{
	uintptr_t value = 0;

	for (; p < end; p++) {
		unsigned c = (unsigned char)*p;

		if (c - '0' < 10)
			value = value << 4 | (c - '0');
		else if (c - 'a' < 6)
			value = value << 4 | (c - 'a' + 10);
		else
			break;
	}
	*ret = value;
	return p;
}

/* "7ffd1000-7ffd2000 rw-p ..." */
static bool mapping_line(const char *p, const char *end, uintptr_t addr,
			 uintptr_t *ret_low, uintptr_t *ret_high)
{
	uintptr_t low, high;

	p = hex(p, end, &low);
	if (p >= end)
		return false;
	p = hex(p + 1, end, &high);
	if (end - p < 4 || p[1] != 'r' || p[2] != 'w' || addr < low ||
	    addr >= high)
		return false;
	*ret_low = low;
	*ret_high = high;
	return true;
}

bool rec_mapping_at(uintptr_t addr, uintptr_t *ret_low, uintptr_t *ret_high)
{
	char buffer[REC_TEXT];
	size_t have = 0;
	bool found = false;
	long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps",
			  O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	while (!found) {
		long got = syscall(SYS_read, fd, buffer + have,
				   sizeof(buffer) - have);
		char *start = buffer;
		char *end;

		if (got <= 0)
			break;
		have += (size_t)got;
		while (!found && (end = memchr(start, '\n', have -
					       (size_t)(start - buffer)))) {
			found = mapping_line(start, end, addr, ret_low,
					     ret_high);
			start = end + 1;
		}
		have -= (size_t)(start - buffer);
		/* The rest of a line with a long name says nothing. */
		if (have == sizeof(buffer))
			have = 0;
		memmove(buffer, start, have);
	}
	syscall(SYS_close, fd);
	return found;
}

uint64_t rec_number(const char *text)
{
	uint64_t value = 0;

	for (; *text >= '0' && *text <= '9'; text++)
		value = value * 10 + (uint64_t)(*text - '0');
	return value;
}

uint64_t rec_clock_ns(int clock)
{
	struct timespec t;

	if (clock_gettime(clock, &t))
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t rec_tick_slow(void)
{
	return rec_clock_ns(CLOCK_MONOTONIC);
}

/* For headers of chunks only, so small rather than fast. */
uint32_t rec_crc32c(const void *data, size_t n)
{
	const uint8_t *p = data;
	uint32_t crc = ~0u;

	while (n--) {
		crc ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return ~crc;
}
