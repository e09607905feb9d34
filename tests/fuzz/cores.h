/* SPDX-License-Identifier: MIT */
/*
 * A fuzz target for one walker: cores from their bytes to the heap model and
 * the first analyses.  Seeds are real cores of which tests/fuzz/trim kept what
 * the walk reads: "sparse\n", the size of the core, then runs of bytes, each
 * with where it is and how long; between them are zeros.  Mutations stay in
 * the runs, since chance would hit the headers most of the time, which
 * fuzz_core.c has for itself.  Other inputs are cores as they are.
 */
#ifndef FUZZ_CORES_H
#define FUZZ_CORES_H

#include <sys/mman.h>

#include "base/mem.h"
#include "fuzz/choose.h"
#include "fuzz/nasty.h"
#include "fuzz/nasty.h"

enum {
	SPARSE_HEAD = 16,
	SPARSE_RUN = 8,
	MAX_CORE = 64 << 20,
	MAX_CHANGES = 4,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
			       unsigned seed);

static bool is_sparse(const uint8_t *data, size_t size)
{
	return size > SPARSE_HEAD && !memcmp(data, "sparse\n", 8);
}

/* The next run, or false; *at is behind the run before, 0 at first. */
static bool next_run(const uint8_t *data, size_t size, size_t *at,
		     uint32_t *ret_off, uint32_t *ret_n)
{
	size_t head = *at ? *at : SPARSE_HEAD;

	if (size - head < SPARSE_RUN)
		return false;
	memcpy(ret_off, data + head, 4);
	memcpy(ret_n, data + head + 4, 4);
	*at = head + SPARSE_RUN;
	if (*ret_n > size - *at)
		return false;
	*at += *ret_n;
	return true;
}

/* ---- to a core ---- */

/* Room for a core that ends where memory does; zeros between two inputs. */
static uint8_t *core_room(uint64_t size)
{
	static uint8_t *room;

	if (!room) {
		room = mmap(NULL, MAX_CORE + 4096, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			    0);
		if (room == MAP_FAILED ||
		    mprotect(room + MAX_CORE, 4096, PROT_NONE))
			abort();
	}
	return room + MAX_CORE - round_up(size, 16);
}

static void put_runs(uint8_t *core, uint64_t total, const uint8_t *data,
		     size_t size, bool clear)
{
	uint32_t off, n;

	for (size_t at = 0; next_run(data, size, &at, &off, &n);) {
		if (off > total || n > total - off)
			continue;
		if (clear)
			memset(core + off, 0, n);
		else
			memcpy(core + off, data + at - n, n);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t total;
	uint8_t *core;

	choose(WALKER, data, size);
	if (!is_sparse(data, size)) {
		check_core(data, size);
		return 0;
	}
	memcpy(&total, data + 8, 8);
	if (total > MAX_CORE)
		return 0;
	core = core_room(total);
	put_runs(core, total, data, size, false);
	check_core(core, total);
	put_runs(core, total, data, size, true);
	return 0;
}

/* ---- changes ---- */

/* Any place in the runs' bytes, and how many follow it there. */
static size_t any_place(const uint8_t *data, size_t size, uint64_t *rng,
			size_t *ret_n)
{
	size_t place = splitmix(rng) % size;
	uint32_t off, n;

	for (size_t at = 0; next_run(data, size, &at, &off, &n);)
		if (n && place < at) {
			place = max_u64(place, at - n);
			*ret_n = at - place;
			return place;
		}
	*ret_n = 0;
	return 0;
}

static void change_some(uint8_t *data, size_t size, uint64_t *rng)
{
	size_t n, from_n, at = any_place(data, size, rng, &n), from;
	uint64_t word;

	if (splitmix(rng) % 4 == 0 && n) {
		LLVMFuzzerMutate(data + at, min_u64(n, 64), min_u64(n, 64));
		return;
	}
	if (n < 16)
		return;
	/* Runs begin at a multiple of a line. */
	at += (n & 7);
	memcpy(&word, data + at, 8);
	word = nasty(rng, word);
	from = any_place(data, size, rng, &from_n);
	if (splitmix(rng) % 4 == 0 && from_n >= 16)
		memcpy(&word, data + from + (from_n & 7), 8);
	memcpy(data + at, &word, 1u << splitmix(rng) % 4);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
			       unsigned seed)
{
	uint64_t rng = seed, n;

	if (!is_sparse(data, size))
		return LLVMFuzzerMutate(data, size, max_size);
	n = 1 + splitmix(&rng) % MAX_CHANGES;
	while (n--)
		change_some(data, size, &rng);
	return size;
}

#endif
