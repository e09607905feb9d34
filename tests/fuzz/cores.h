/* SPDX-License-Identifier: MIT */
/*
 * A fuzz target for one walker: cores from their bytes to the heap model and
 * the first analyses.  Seeds are real cores of which tests/fuzz/trim kept what
 * the walk reads: "sparse\n", the size of the core, then runs of bytes, each
 * with where it is and how long; between them are zeros.
 *
 * The last EDITS runs are words that are written over what was there, in the
 * memory of the program only, since fuzz_core.c has the headers for itself.
 * They are all that is mutated: what is before them is opened once.
 */
#ifndef FUZZ_CORES_H
#define FUZZ_CORES_H

#include <sys/mman.h>

#include "base/mem.h"
#include "fuzz/choose.h"
#include "fuzz/nasty.h"
#include "fuzz/undo.h"

enum {
	SPARSE_HEAD = 16,
	SPARSE_RUN = 8,
	EDITS = 4,
	EDIT = SPARSE_RUN + 8,
	MAX_CORE = 64 << 20,
	MAX_BASES = 32,
	NEAR = 256,		/* bytes: what belongs together */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
			       unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size,
				 const uint8_t *b, size_t b_size,
				 uint8_t *out, size_t max_size,
				 unsigned seed);

/* A core, without edits. */
struct base {
	uint8_t *data;		/* owned; of the input */
	size_t size;
	uint8_t *core;		/* owned */
	struct space *sp;	/* owned; NULL: it cannot be opened */
	/* Offsets in the core of the words that are worth an edit. */
	uint32_t *words;	/* owned */
	size_t n_words, cap_words;
};

static void save_u32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
}

/* Where the edits begin; 0 if this is no such input. */
static size_t edits_at(const uint8_t *data, size_t size)
{
	size_t at = SPARSE_HEAD;

	if (size < SPARSE_HEAD + EDITS * EDIT || memcmp(data, "sparse\n", 8))
		return 0;
	size -= EDITS * EDIT;
	while (size - at >= SPARSE_RUN &&
	       load_u32(data + at + 4) <= size - at - SPARSE_RUN)
		at += SPARSE_RUN + load_u32(data + at + 4);
	return at == size ? at : 0;
}

/* ---- cores ---- */

/* Where n bytes of the core are memory; NULL: nowhere. */
static uint8_t *memory_at(const struct base *b, uint64_t off, uint64_t n)
{
	for (size_t i = 0; b->sp && i < b->sp->n_segs; i++) {
		const struct seg *s = &b->sp->segs[i];

		if (off >= s->core_off && off - s->core_off < s->stored &&
		    n <= s->stored - (off - s->core_off))
			return b->core + off;
	}
	return NULL;
}

/* Ends where memory does; between the runs are zeros. */
static void make_core(struct base *b, uint64_t total)
{
	size_t room = round_up(total, 4096), at = SPARSE_HEAD;

	b->core = mmap(NULL, room + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE |
		       MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (b->core == MAP_FAILED || mprotect(b->core + room, 4096, PROT_NONE))
		abort();
	b->core += room - round_up(total, 16);
	while (at < b->size) {
		uint32_t off = load_u32(b->data + at);
		uint32_t n = load_u32(b->data + at + 4);

		at += SPARSE_RUN;
		if (off <= total && n <= total - off)
			memcpy(b->core + off, b->data + at, n);
		at += n;
	}
}

static void find_words(struct base *b)
{
	size_t at = SPARSE_HEAD;
	uint32_t n;

	for (; at < b->size; at += SPARSE_RUN + n) {
		uint32_t off = load_u32(b->data + at);

		n = load_u32(b->data + at + 4);
		for (uint32_t i = 0; i + 8 <= n; i += 8)
			if (memory_at(b, off + i, 8))
				MEM_PUSH(b->words, b->n_words,
					 b->cap_words) = off + i;
	}
}

static const struct base *base_of(const uint8_t *data, size_t size)
{
	static const struct target_options options = { .no_files = true };
	static struct base bases[MAX_BASES];
	static size_t n;
	uint64_t total = load_u64(data + 8);
	struct base *b;
	struct err err;

	for (size_t i = 0; i < n; i++)
		if (bases[i].size == size &&
		    !memcmp(bases[i].data, data, size))
			return &bases[i];
	if (n == MAX_BASES || total > MAX_CORE)
		return NULL;
	b = &bases[n++];
	b->size = size;
	b->data = mem_alloc(size);
	memcpy(b->data, data, size);
	make_core(b, total);
	b->sp = target_open_core_memory(b->core, total, &options, &err);
	find_words(b);
	return b;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n = edits_at(data, size);
	const struct base *b = n ? base_of(data, n) : NULL;
	struct heap h;

	if (!b || !b->sp)
		return 0;
	for (size_t i = n; i < size; i += EDIT) {
		uint8_t *at = memory_at(b, load_u32(data + i), 8);

		if (at)
			poke(at, load_u64(data + i + SPARSE_RUN));
	}
	choose(WALKER, data + n, size - n);
	walk_and_check(b->sp, &h);
	heap_fini(&h);
	undo_all();
	return 0;
}

/* ---- edits ---- */

static uint32_t any_word(const struct base *b, uint64_t *rng)
{
	return b->words[splitmix(rng) % b->n_words];
}

/* Some are where others are: what belongs together is not far. */
static void change_edit(const struct base *b, uint8_t *edits, uint64_t *rng)
{
	uint8_t *to = edits + splitmix(rng) % EDITS * EDIT;
	uint32_t off = load_u32(edits + splitmix(rng) % EDITS * EDIT);
	uint64_t kind = splitmix(rng), word, part;

	if (kind % 9 < 3) {
		save_u32(to, UINT32_MAX);
		return;
	}
	if (kind % 9 > 4)
		off = any_word(b, rng);
	else
		off += (uint32_t)(kind >> 8) % NEAR / 8 * 8 - NEAR / 2;
	if (!memory_at(b, off, 8))
		return;
	word = load_u64(b->core + off);
	part = kind >> 16 & 1 ? word : load_u64(b->core + any_word(b, rng));
	if (kind >> 17 & 3)
		part = nasty(rng, part);
	memcpy(&word, &part, 1u << (kind >> 20) % 4);
	save_u32(to, off);
	memcpy(to + SPARSE_RUN, &word, 8);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
			       unsigned seed)
{
	size_t at = edits_at(data, size), n;
	const struct base *b = at ? base_of(data, at) : NULL;
	uint64_t rng = seed;

	(void)max_size;
	if (!b || !b->n_words)
		return size;
	for (n = 1 + splitmix(&rng) % 4; n; n--)
		change_edit(b, data + at, &rng);
	return size;
}

/* Each edit is of one or the other. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size,
				 const uint8_t *b, size_t b_size,
				 uint8_t *out, size_t max_size,
				 unsigned seed)
{
	size_t at = edits_at(a, a_size);
	uint64_t rng = seed;

	if (!at || a_size > max_size || edits_at(b, b_size) != at)
		return 0;
	memcpy(out, a, a_size);
	for (; at < a_size; at += EDIT)
		if (splitmix(&rng) & 1)
			memcpy(out + at, b + at, EDIT);
	return a_size;
}

#endif
