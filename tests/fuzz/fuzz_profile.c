/* SPDX-License-Identifier: MIT */
/*
 * What allocators keep for a heap profile, and what is made of it.
 *
 * Input: a byte, with 1 for jemalloc and 2 for all that is made of a profile,
 * which takes longer; then memory from BASE on.  Its first words are the bytes
 * from the system and how many structures there are; these begin at MODULE,
 * behind the variables of the allocator: spans of tcmalloc, or extents of
 * jemalloc.
 *
 * Code: corewalk/(tcmalloc_sampled|jemalloc_sampled)|report/(pprof|profiled)
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "corewalk/debug.h"
#include "corewalk/jemalloc.h"
#include "corewalk/target.h"
#include "corewalk/tcmalloc.h"
#include "report/pprof.h"
#include "report/profiled.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BASE UINT64_C(0x7f0000000000)

enum {
	MODULE = 4096, MAX_MEMORY = 1 << 16, MAX_STRUCTURES = 64,
	SPAN_BYTES = 48, EXTENT_BYTES = 128, CLASSES = 16, BLOCK = 1 << 16,
};

static const struct target_options options = { .no_files = true };

static void add_tcmalloc(struct space *sp, struct heap *h, uint64_t system,
			 size_t n)
{
	struct tc_span spans[MAX_STRUCTURES];
	struct tcmalloc t = {
		.sp = sp, .lo = BASE, .hi = BASE + MODULE, .shift = 13,
		.stats.system_bytes = system, .spans = spans,
		.n_classes = CLASSES,
	};

	for (unsigned c = 1; c < CLASSES; c++)
		t.size[c] = 4u << c;
	for (size_t i = 0; i < n; i++) {
		vaddr addr = BASE + MODULE + i * SPAN_BYTES;
		uint64_t word[SPAN_BYTES / 8] = { 0 };

		space_read(sp, addr, word, sizeof(word));
		spans[t.n_spans++] = (struct tc_span){
			.addr = addr, .start = word[0] << 13,
			.bytes = word[1] << 13, .next = word[2],
			.prev = word[3], .objects = word[4],
			.size_class = word[5] >> 16 & 0xff,
			.where = word[5] >> 24 & 3,
			.sampled = word[5] >> 26 & 1,
		};
	}
	tc_add_profiles(&t, h, heap_add_allocator(h, "tcmalloc", "", ""),
			HEAP_NO_ARENA);
}

static void add_jemalloc(struct space *sp, struct heap *h, size_t n)
{
	struct je_extent extents[MAX_STRUCTURES];
	struct jemalloc j = {
		.sp = sp, .lo = BASE, .hi = BASE + MODULE, .extents = extents,
		.n_extents = n, .n_classes = CLASSES,
	};

	for (unsigned c = 0; c < CLASSES; c++)
		j.size[c] = UINT64_C(8) << c;
	for (size_t i = 0; i < n; i++) {
		vaddr start = BASE * 2 + i * BLOCK;

		extents[i] = (struct je_extent){
			.addr = BASE + MODULE + i * EXTENT_BYTES,
			.start = start, .user = start, .bytes = BLOCK,
			.size = j.size[i % 8], .class = i % 8,
			.agrees = true,
		};
	}
	je_add_profile(&j, h, heap_add_allocator(h, "jemalloc", "", ""));
}

static void check_profiles(const struct heap *h)
{
	for (size_t i = 0; i < h->n_profiles; i++) {
		const struct heap_profile *p = &h->profiles[i];

		for (size_t k = 0; k < p->n; k++) {
			const struct heap_sample *s = &p->samples[k];

			if (s->pc > p->n_pcs || s->depth > p->n_pcs - s->pc ||
			    s->depth > 128 || !s->allocated || !s->length)
				abort();
		}
	}
}

static void read_all(struct space *sp, struct heap *h)
{
	struct debug *debug = debug_new(sp, &options);
	struct symbols *symbols = symbols_new(sp, NULL);
	const struct profiled_options how = {
		.depth = 1, .target = &options, .debug = debug,
	};
	struct profiled p;
	struct str text;
	struct err err;
	struct out out;

	if (!profiled_init(&p, sp, h, symbols, &how, &err))
		abort();
	str_init(&text);
	out_open_text(&out, &text);
	if (!pprof_write(&p.live_input, false, "", &out, &err))
		abort();
	folded_write(&p.growth_input, false, &out);
	out_close_text(&out);
	str_fini(&text);
	profiled_fini(&p);
	symbols_free(symbols);
	debug_free(debug);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct space *sp;
	struct heap h;
	uint64_t word[2];

	if (size < 1 + sizeof(word) || size - 1 > MAX_MEMORY)
		return 0;
	memcpy(word, data + 1, sizeof(word));
	sp = target_mem_new(MACHINE_X86_64);
	target_mem_add(sp, BASE, round_up(size - 1, 4096), SEG_R | SEG_W,
		       data + 1, size - 1, NULL);
	target_mem_done(sp);
	heap_init(&h);
	if (*data & 1)
		add_jemalloc(sp, &h, word[1] % (MAX_STRUCTURES + 1));
	else
		add_tcmalloc(sp, &h, word[0], word[1] % (MAX_STRUCTURES + 1));
	heap_finish(&h);
	check_profiles(&h);
	if (*data & 2)
		read_all(sp, &h);
	heap_fini(&h);
	space_close(sp);
	return 0;
}
