/* SPDX-License-Identifier: MIT */
/*
 * A small heap of google/tcmalloc by hand, in the layout of any era: spans of
 * five classes with free objects, a large block, a sampled one, a lone one, and
 * a transfer cache, a thread cache or slabs with some.
 */
#ifndef UNIT_GTC_IMAGE_H
#define UNIT_GTC_IMAGE_H

#include <string.h>

#include "base/mem.h"
#include "corewalk/target.h"

enum {
	GI_PROG_BYTES = 0x20000, GI_META_BYTES = 0x100000,
	GI_HEAP_BYTES = 4 << 20,
	GI_SPANS = 160, GI_PAGE = 8192,
	GI_ROOT = 0x1000, GI_SIZES = 0x8000, GI_CENTRAL = 0x9000,
	GI_STRIDE = 512, GI_CLASS_AT = 256,
	GI_LARGE_PAGES = 70,
};

#define GI_PROG UINT64_C(0x555555000000)
#define GI_HEAP UINT64_C(0x125240000000)
#define GI_META UINT64_C(0x2f2b40000000)
#define GI_LEAF (GI_META + 0x8000)
#define GI_SPAN (GI_META + 0x20000)
#define GI_RECORD (GI_META + 0x40000)
#define GI_SLOTS (GI_META + 0x60000)
#define GI_SLABS (GI_META + 0x80000)
#define GI_CACHE (GI_META + 0xa0000)
#define GI_BEGINS (GI_META + 0xb0000)

static const uint32_t gi_sizes[] = {
	0, 8, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 2048, 4096, 8192,
	16384, 32768, 65536, 131072, 196608, 262144,
};
static const uint16_t gi_classes[] = { 2, 5, 6, 7, 10 };
enum { GI_LONE_CLASS = 14, GI_TAKEN = 4 };

/* As in docs/allocators/tcmalloc.md; where 0 is no offset, none. */
struct gi_era {
	const char *name;
	unsigned allocated, embed, list;	/* of 16 bits */
	unsigned first, large_bit, sampled_bit;	/* bits: 255 none */
	unsigned pages;		/* offset; 0: bits 3 to 8 */
	unsigned whole;		/* offset if large or sampled */
	unsigned free, cache, bits;
	unsigned record, record_kind;
};

static const struct gi_era gi_eras[] = {
	{ "2021 to March 2024", 16, 18, 20, 32, 255, 255, 40, 40, 24, 4, 64,
	  24, 0 },
	{ "March to September 2024", 20, 16, 18, 24, 255, 255, 32, 32, 40, 12,
	  64, 40, 0 },
	{ "September 2024 to April 2025", 20, 16, 18, 24, 26, 27, 32, 32, 40,
	  8, 64, 40, 0 },
	{ "May to August 2025", 20, 16, 18, 24, 26, 27, 32, 32, 40, 8, 128,
	  40, 1 },
	{ "August to December 2025", 20, 16, 18, 24, 25, 26, 32, 32, 40, 8,
	  128, 40, 1 },
	{ "December 2025 to March 2026", 20, 16, 18, 24, 23, 24, 32, 32, 40, 8,
	  128, 40, 3 },
	{ "March to July 2026", 20, 16, 18, 24, 24, 25, 32, 32, 40, 8, 128,
	  40, 3 },
	{ "6 to 28 July 2026", 20, 16, 18, 24, 24, 25, 32, 32, 40, 12, 192,
	  40, 2 },
	{ "July to August 2026", 20, 16, 18, 24, 24, 25, 32, 40, 40, 12, 192,
	  48, 2 },
	{ "11 August 2026", 20, 16, 18, 24, 25, 26, 32, 40, 40, 12, 192,
	  48, 2 },
	{ "August 2026 on", 20, 16, 18, 24, 0, 1, 0, 40, 40, 12, 192, 48, 2 },
};

enum { GI_LAST_ERA = countof(gi_eras) - 1 };

struct gi {
	struct space *sp;
	const struct gi_era *era;
	unsigned n;		/* spans so far */
	vaddr at;		/* of the next one's memory */
	uint64_t used_blocks, used_bytes;
};

static inline void gi_put64(struct gi *g, vaddr at, uint64_t value)
{
	memcpy(target_mem_at(g->sp, at), &value, sizeof(value));
}

static inline void gi_put32(struct gi *g, vaddr at, uint32_t value)
{
	memcpy(target_mem_at(g->sp, at), &value, sizeof(value));
}

static inline void gi_put16(struct gi *g, vaddr at, unsigned value)
{
	uint16_t half = (uint16_t)value;

	memcpy(target_mem_at(g->sp, at), &half, sizeof(half));
}

/* Its structure and the map's entries; the address of the structure. */
static inline vaddr gi_span(struct gi *g, unsigned pages, unsigned class,
			    vaddr record)
{
	const struct gi_era *e = g->era;
	vaddr s = GI_SPAN + 64 * g->n++, page = g->at / GI_PAGE;
	uint64_t first = page;
	bool large = pages >= 64 && e->large_bit != 255;

	if (large)
		first |= UINT64_C(1) << (35 + e->large_bit);
	if (record && e->sampled_bit != 255)
		first |= UINT64_C(1) << (35 + e->sampled_bit);
	if (!e->pages && !large && !record)
		first |= (uint64_t)pages << 38;
	gi_put64(g, s + e->first, first);
	if (large || record)
		gi_put64(g, s + e->whole, pages);
	else if (e->pages)
		gi_put64(g, s + e->pages, pages);
	if (record) {
		gi_put64(g, s + e->record, record);
		if (e->sampled_bit == 255)
			*target_mem_at(g->sp, s + 23) = 1 << 6;
	}
	for (unsigned i = 0; i < (class ? pages : 1); i++) {
		unsigned entry = (page + i) & 4095;

		gi_put16(g, GI_LEAF + 2 * entry, class);
		gi_put64(g, GI_LEAF + 8192 + 8 * entry, s);
	}
	g->at += (vaddr)pages * GI_PAGE;
	return s;
}

/* Objects 3 and up to 3 + n of them, by a bitmap or in cache and hosts. */
static inline void gi_free(struct gi *g, vaddr s, vaddr start, unsigned size,
			   unsigned n)
{
	const struct gi_era *e = g->era;
	unsigned cached = n < e->cache ? n : e->cache, host = 0, in = 0;

	gi_put16(g, s + e->list, 0xffff);
	if (size >= GI_PAGE / e->bits) {
		for (unsigned i = 3; i < 3 + n; i++)
			*target_mem_at(g->sp, s + e->free + i / 8) |=
				(uint8_t)(1 << (i & 7));
		return;
	}
	*target_mem_at(g->sp, s + 22) = (uint8_t)cached;
	for (unsigned i = 0; i < cached; i++)
		gi_put16(g, s + e->free + 2 * i, (3 + i) * size / 8);
	for (unsigned i = cached; i < n; i++) {
		unsigned offset = (3 + i) * size / 8;

		if (i == cached || in == size / 2 - 1) {
			gi_put16(g, start + offset * 8,
				 i == cached ? 0xffff : host);
			host = offset;
			in = 0;
		} else {
			in++;
			gi_put16(g, start + host * 8 + 2 * in, offset);
		}
	}
	if (n > cached) {
		gi_put16(g, s + e->list, host);
		gi_put16(g, s + e->embed, in);
	}
}

static inline void gi_objects(struct gi *g, unsigned class, unsigned n_free)
{
	unsigned size = gi_sizes[class], n = GI_PAGE / size;
	vaddr start = g->at, s = gi_span(g, 1, class, 0);

	gi_put16(g, s + g->era->allocated, n - n_free);
	gi_free(g, s, start, size, n_free);
	g->used_blocks += n - n_free;
	g->used_bytes += (uint64_t)(n - n_free) * size;
}

/* A block of 112 bytes, of which 100 were asked for. */
static inline void gi_sampled(struct gi *g)
{
	static const unsigned at[4][7] = {
		/* requested, allocated, weight, time, start, depth, pcs */
		{ 40, 64, 600, 608, 624, 80, 88 },
		{ 40, 56, 72, 80, 96, 104, 112 },
		{ 32, 56, 72, 80, 96, 104, 112 },
		{ 40, 64, 80, 88, 104, 112, 120 },
	};
	const unsigned *o = at[g->era->record_kind];
	const uint64_t value[7] = { 100, 112, 2020000, 12345, g->at, 1,
				    GI_PROG + 16 };

	for (int i = 0; i < 7; i++)
		gi_put64(g, GI_RECORD + o[i], value[i]);
	gi_span(g, 1, 0, GI_RECORD);
	g->used_blocks++;
	g->used_bytes += 112;
}

/* The first objects of the first span of a class: in use until now. */
static inline void gi_take(struct gi *g, unsigned class, unsigned i, vaddr *ret)
{
	unsigned k = 0;

	while (gi_classes[k] != class)
		k++;
	*ret = GI_HEAP + (vaddr)k * GI_PAGE + (vaddr)i * gi_sizes[class];
	g->used_blocks--;
	g->used_bytes -= gi_sizes[class];
}

static inline void gi_central(struct gi *g)
{
	vaddr object;

	for (unsigned c = 0; c < countof(gi_sizes); c++) {
		vaddr at = GI_PROG + GI_CENTRAL + c * GI_STRIDE + GI_CLASS_AT;

		gi_put32(g, GI_PROG + GI_SIZES + 4 * c, gi_sizes[c]);
		gi_put64(g, at, c);
		gi_put64(g, at + 8, gi_sizes[c]);
		gi_put32(g, at - 20, 64);
		gi_put64(g, at - 16, GI_SLOTS + 512 * c);
	}
	gi_put32(g, GI_PROG + GI_CENTRAL + 5 * GI_STRIDE + GI_CLASS_AT - 24, 2);
	for (unsigned i = 0; i < 2; i++) {
		gi_take(g, 5, i, &object);
		gi_put64(g, GI_SLOTS + 512 * 5 + 8 * i, object);
	}
}

static inline void gi_thread_cache(struct gi *g)
{
	vaddr list = GI_CACHE + 24 * 6, a, b;

	gi_take(g, 6, 0, &a);
	gi_take(g, 6, 2, &b);
	gi_put64(g, GI_PROG + 0x200, GI_CACHE);
	gi_put64(g, list, a);
	gi_put32(g, list + 8, 2);
	gi_put64(g, a, b);
	gi_put64(g, b, 0);
}

/* Of two CPUs the second has run; headers of 8 bytes until 2024, then 4. */
static inline void gi_slabs(struct gi *g, unsigned header)
{
	enum { SHIFT = 12, BEGIN = 256, END = 300 };
	vaddr slab = GI_SLABS + (1 << SHIFT), object;

	gi_put64(g, GI_PROG + 0x300, GI_SLABS | SHIFT);
	gi_put64(g, GI_PROG + 0x310, GI_BEGINS);
	for (unsigned c = 1; c < countof(gi_sizes); c++) {
		unsigned n = c == 7 ? 2 : 0;

		gi_put16(g, GI_BEGINS + 2 * c, BEGIN);
		gi_put16(g, slab + header * c, BEGIN + n);
		gi_put16(g, slab + header * c + 2, END);
		if (header == 8) {
			gi_put16(g, slab + 8 * c + 4, BEGIN);
			gi_put16(g, slab + 8 * c + 6, END);
		}
		for (unsigned i = 0; i < n; i++) {
			gi_take(g, 7, i, &object);
			gi_put64(g, slab + 8 * (BEGIN + i), object);
		}
	}
}

static inline void gi_map(struct gi *g)
{
	vaddr page = GI_HEAP / GI_PAGE;

	gi_put64(g, GI_PROG + GI_ROOT + 8 * (page >> 24), GI_META);
	gi_put64(g, GI_META + 8 * (page >> 12 & 4095), GI_LEAF);
	gi_put64(g, GI_LEAF + 8192 + 32768, GI_SPAN);
}

/*
 * header 0: a thread cache; 4, 8: slabs.  So many spans of objects; behind the
 * heap so many bytes that can be written to are claimed, and none is there.
 */
static inline void gi_init_some(struct gi *g, const struct gi_era *era,
				unsigned header, unsigned spans,
				uint64_t claimed)
{
	struct space *sp = target_mem_new(MACHINE_X86_64);
	const uint32_t rw = SEG_R | SEG_W;

	*g = (struct gi){ .sp = sp, .era = era, .at = GI_HEAP };
	target_mem_add(sp, GI_PROG, GI_PROG_BYTES, rw, NULL, GI_PROG_BYTES,
		       "prog");
	target_mem_add(sp, GI_HEAP, GI_HEAP_BYTES, rw, NULL, GI_HEAP_BYTES,
		       NULL);
	target_mem_add(sp, GI_HEAP + GI_HEAP_BYTES,
		       max_u64(claimed, GIB - GI_HEAP_BYTES),
		       claimed ? rw : 0, NULL, 0, NULL);
	target_mem_add(sp, GI_META, GI_META_BYTES, rw, NULL, GI_META_BYTES,
		       NULL);
	target_mem_add(sp, GI_META + GI_META_BYTES, GIB - GI_META_BYTES, 0,
		       NULL, 0, NULL);
	target_mem_done(sp);
	sp->modules = mem_zalloc(sizeof(*sp->modules));
	sp->n_modules = 1;
	sp->modules[0] = (struct module){ .start = GI_PROG, .end = GI_PROG +
		GI_PROG_BYTES, .is_exe = true };
	gi_map(g);
	for (unsigned i = 0; i < spans; i++)
		gi_objects(g, gi_classes[i % countof(gi_classes)], i % 9);
	gi_span(g, GI_LARGE_PAGES, 0, 0);
	g->used_bytes += GI_LARGE_PAGES * GI_PAGE;
	gi_span(g, 1, GI_LONE_CLASS, 0);
	g->used_bytes += GI_PAGE;
	g->used_blocks += 2;
	gi_sampled(g);
	gi_central(g);
	if (header)
		gi_slabs(g, header);
	else
		gi_thread_cache(g);
}

static inline void gi_init(struct gi *g, const struct gi_era *era,
			   unsigned header)
{
	gi_init_some(g, era, header, GI_SPANS, 0);
}

#endif
