/* SPDX-License-Identifier: MIT */
/*
 * glibc heaps made by hand, in all forms from 2.17 to 2.43.
 *
 * The offsets here were computed by a compiler from the structure definitions
 * of glibc's releases, not taken from the walker's own tables: each is the
 * other's check.  An image has libc's data with main_arena and mp_, a main
 * heap, and, if asked for, one more arena with two heaps.  Chunks are carved
 * from a cursor; what the walker must say of each is written down.
 */
#ifndef UNIT_GLIBC_IMAGE_H
#define UNIT_GLIBC_IMAGE_H

#include "check.h"

#include "base/mem.h"
#include "corewalk/alloc.h"
#include "corewalk/heap.h"
#include "corewalk/target.h"

enum cache_kind { CACHE_NONE, CACHE_CHAR, CACHE_SHORT, CACHE_SLOTS };
enum { NO = 0, HEAP_SIZE = 0x21000, LIBC_SIZE = 0x4000, MAX_WANTED = 128 };

struct shape {
	const char *name;	/* what the walker should say */
	unsigned W, A;
	/* struct malloc_state */
	unsigned fast, n_fast, top, bins, binmap, next, attached, system_mem,
		 state_size;
	/* struct malloc_par */
	unsigned n_mmaps, mmapped_mem, sbrk_base, tcache_bins;
	unsigned heap_info;
	enum cache_kind cache;
	unsigned cache_size;	/* sizeof(struct tcache_perthread_struct) */
	unsigned cache_entries;	/* where they start */
	unsigned cache_count;	/* mp_.tcache_count */
	bool mangled;
	int key;		/* 0 none, 1 the cache's address, 2 random */
};

#define STATE64_OLD 8, 10, 88, 104, 2136, 2152
#define STATE64 16, 10, 96, 112, 2144, 2160, 2176, 2184, 2200
#define STATE64_43 NO, 0, 8, 24, 2056, 2072, 2088, 2096, 2112
#define NO_CACHE CACHE_NONE, 0, 0, 0, false, 0
static const struct shape shapes[] = {
	{ "2.17 to 2.22", 8, 16, STATE64_OLD, NO, 2168, 2184,
	  40, 56, 80, NO, 32, NO_CACHE },
	{ "2.24 to 2.26", 8, 16, STATE64_OLD, 2168, 2176, 2192,
	  40, 56, 72, NO, 32, NO_CACHE },
	{ "2.26", 8, 16, STATE64_OLD, 2168, 2176, 2192,
	  40, 56, 72, 80, 32, CACHE_CHAR, 576, 64, 7, false, 0 },
	{ "2.27 to 2.29", 8, 16, STATE64,
	  40, 56, 72, 80, 32, CACHE_CHAR, 576, 64, 7, false, 1 },
	{ "2.30 to 2.31", 8, 16, STATE64,
	  40, 56, 72, 80, 32, CACHE_SHORT, 640, 128, 7, false, 1 },
	{ "2.32 to 2.34", 8, 16, STATE64,
	  40, 56, 72, 80, 32, CACHE_SHORT, 640, 128, 7, true, 2 },
	{ "2.35 to 2.41", 8, 16, STATE64,
	  60, 80, 96, 104, 48, CACHE_SHORT, 640, 128, 7, true, 2 },
	{ "2.42", 8, 16, STATE64,
	  60, 80, 96, 104, 48, CACHE_SLOTS, 760, 152, 7, true, 2 },
	{ "2.43", 8, 16, STATE64_43,
	  68, 88, 104, 112, 48, CACHE_SLOTS, 760, 152, 16, true, 2 },
	/* i386 */
	{ "2.26", 4, 16, 8, 11, 52, 60, 1076, 1092, 1100, 1104, 1112,
	  20, 36, 44, 48, 24, CACHE_CHAR, 320, 64, 7, false, 0 },
	{ "2.35 to 2.41", 4, 16, 12, 11, 56, 64, 1080, 1096, 1104, 1108, 1116,
	  32, 48, 56, 60, 24, CACHE_SHORT, 384, 128, 7, true, 2 },
	{ "2.43", 4, 16, NO, 0, 8, 16, 1032, 1048, 1056, 1060, 1068,
	  36, 52, 60, 64, 24, CACHE_SLOTS, 456, 152, 16, true, 2 },
	/* i386 before 2.26, and arm */
	{ "2.17 to 2.22", 4, 8, 8, 10, 48, 56, 1072, 1088, NO, 1096, 1104,
	  20, 36, 48, NO, 16, NO_CACHE },
	{ "2.24 to 2.26", 4, 8, 8, 10, 48, 56, 1072, 1088, 1096, 1100, 1108,
	  20, 36, 44, NO, 16, NO_CACHE },
	{ "2.30 to 2.31", 4, 8, 12, 10, 52, 60, 1076, 1092, 1100, 1104, 1112,
	  20, 36, 44, 48, 16, CACHE_SHORT, 384, 128, 7, false, 1 },
	{ "2.35 to 2.41", 4, 8, 12, 10, 52, 60, 1076, 1092, 1100, 1104, 1112,
	  32, 48, 56, 60, 24, CACHE_SHORT, 384, 128, 7, true, 2 },
	{ "2.43", 4, 8, NO, 0, 8, 16, 1032, 1048, 1056, 1060, 1068,
	  36, 52, 60, 64, 24, CACHE_SLOTS, 456, 152, 16, true, 2 },
};
enum { N_SHAPES = countof(shapes), SHAPE_236 = 6, SHAPE_243 = 8,
       SHAPE_I386 = 10, SHAPE_228 = 3 };

/* What the walker has to find. */
struct wanted {
	vaddr chunk;
	uint64_t size;
	enum block_state state;
};

/* An arena, and the place in it where the next chunk begins. */
struct pool {
	vaddr arena;
	vaddr heap;		/* heap_info; 0 for the main arena */
	vaddr at, end;
	vaddr cache;		/* user address; 0 none */
	uint64_t flags;		/* of chunks in use */
};

struct image {
	struct space *sp;
	const struct shape *k;
	unsigned W, A, MIN;
	vaddr libc, mp, heap_base, arena_base, tls;
	struct pool main, other;
	struct wanted wanted[MAX_WANTED];
	size_t n_wanted;
	struct heap heap;	/* after walk() */
};

#define KEY UINT64_C(0x5bd1e995c0ffee11)

static void put_n(struct image *m, vaddr addr, uint64_t value, unsigned n)
{
	uint8_t *p = target_mem_at(m->sp, addr);

	if (!p || !target_mem_at(m->sp, addr + n - 1)) {
		printf("# the test writes to 0x%" PRIx64 "\n", addr);
		abort();
	}
	memcpy(p, &value, n);
}

static void put(struct image *m, vaddr addr, uint64_t value)
{
	put_n(m, addr, value, m->W);
}

static uint64_t get(struct image *m, vaddr addr)
{
	uint64_t value = 0;

	memcpy(&value, target_mem_at(m->sp, addr), m->W);
	return value;
}

static vaddr bin_head(const struct image *m, vaddr arena, unsigned bin)
{
	return arena + m->k->bins + (uint64_t)(bin - 1) * 2 * m->W - 2 * m->W;
}

static void put_arena(struct image *m, vaddr arena, vaddr next)
{
	for (unsigned i = 1; i <= 127; i++) {
		vaddr head = bin_head(m, arena, i);

		put(m, head + 2 * m->W, head);
		put(m, head + 3 * m->W, head);
	}
	put(m, arena + m->k->next, next);
	if (m->k->attached)
		put(m, arena + m->k->attached, 1);
}

static void put_system_mem(struct image *m, vaddr arena, uint64_t bytes)
{
	put(m, arena + m->k->system_mem, bytes);
	put(m, arena + m->k->system_mem + m->W, bytes + 0x1000);
}

static void put_mmaps(struct image *m, uint32_t n, uint64_t bytes)
{
	put_n(m, m->mp + m->k->n_mmaps, n, 4);
	put_n(m, m->mp + m->k->n_mmaps + 8, n, 4);
	put(m, m->mp + m->k->mmapped_mem, bytes);
	put(m, m->mp + m->k->mmapped_mem + m->W, bytes);
}

static void put_mp(struct image *m)
{
	const struct shape *k = m->k;

	put(m, m->mp, 131072);			/* trim_threshold */
	put(m, m->mp + m->W, 131072);		/* top_pad */
	put(m, m->mp + 2 * m->W, 131072);	/* mmap_threshold */
	put(m, m->mp + 3 * m->W, m->W == 8 ? 8 : 2);	/* arena_test */
	put_mmaps(m, 0, 0);
	put_n(m, m->mp + k->n_mmaps + 4, 65536, 4);	/* n_mmaps_max */
	put(m, m->mp + k->sbrk_base, m->heap_base);
	if (!k->tcache_bins)
		return;
	put(m, m->mp + k->tcache_bins, 64);
	put(m, m->mp + k->tcache_bins + m->W, m->MIN + 63 * m->A - m->W);
	put(m, m->mp + k->tcache_bins + 2 * m->W, k->cache_count);
}

static uint64_t cache_chunk(const struct image *m)
{
	return round_up(m->k->cache_size + m->W, m->A);
}

static vaddr first_chunk(const struct image *m, vaddr start)
{
	return round_up(start + 2 * m->W, m->A) - 2 * m->W;
}

static void want(struct image *m, vaddr chunk, uint64_t size,
		 enum block_state state)
{
	if (m->n_wanted == MAX_WANTED)
		abort();
	m->wanted[m->n_wanted++] = (struct wanted){ chunk, size, state };
}

static struct wanted *wanted_at(struct image *m, vaddr chunk)
{
	for (size_t i = 0; i < m->n_wanted; i++)
		if (m->wanted[i].chunk == chunk)
			return &m->wanted[i];
	abort();
}

/* A chunk in use; n units of alignment bigger than the least. */
static vaddr take_size(struct image *m, struct pool *p, uint64_t size)
{
	vaddr chunk = p->at;

	if (size > p->end - p->at)
		abort();
	put(m, chunk + m->W, size | p->flags | 1);
	want(m, chunk, size, BLOCK_USED);
	p->at += size;
	/* So that the next header says that this one is in use. */
	if (p->end - p->at >= 2 * m->W)
		put(m, p->at + m->W, 1);
	return chunk;
}

static vaddr take(struct image *m, struct pool *p, unsigned n)
{
	return take_size(m, p, m->MIN + (uint64_t)n * m->A);
}

/* A chunk goes to a bin; those around it are in use, and made before. */
static void to_bin(struct image *m, struct pool *p, vaddr chunk, unsigned bin)
{
	struct wanted *w = wanted_at(m, chunk);
	vaddr head = bin_head(m, p->arena, bin), next = chunk + w->size;
	vaddr fd = get(m, head + 2 * m->W);

	put(m, chunk + m->W, w->size | 1);
	put(m, next + m->W, get(m, next + m->W) & ~UINT64_C(1));
	put(m, next, w->size);
	put(m, chunk + 2 * m->W, fd);
	put(m, chunk + 3 * m->W, head);
	put(m, fd + 3 * m->W, chunk);
	put(m, head + 2 * m->W, chunk);
	w->state = bin == 1 ? BLOCK_UNSORTED : BLOCK_BINNED;
}

static uint64_t link_to(const struct image *m, vaddr where, vaddr to)
{
	return m->k->mangled ? where >> 12 ^ to : to;
}

static void to_fast(struct image *m, struct pool *p, vaddr chunk)
{
	struct wanted *w = wanted_at(m, chunk);
	vaddr slot = p->arena + m->k->fast +
		(w->size - m->MIN) / (2 * m->W) * m->W;

	put(m, chunk + 2 * m->W, link_to(m, chunk + 2 * m->W, get(m, slot)));
	put(m, slot, chunk);
	w->state = BLOCK_FAST;
}

static void count_cached(struct image *m, struct pool *p, unsigned bin,
			 int add)
{
	unsigned n = m->k->cache == CACHE_CHAR ? 1 : 2;
	uint64_t count = 0;

	memcpy(&count, target_mem_at(m->sp, p->cache + bin * n), n);
	put_n(m, p->cache + bin * n,
	      m->k->cache == CACHE_SLOTS ? count - add : count + add, n);
}

static vaddr cache_slot(const struct image *m, const struct pool *p,
			unsigned bin)
{
	return p->cache + m->k->cache_entries + (uint64_t)bin * m->W;
}

static void to_cache(struct image *m, struct pool *p, vaddr chunk)
{
	struct wanted *w = wanted_at(m, chunk);
	vaddr user = chunk + 2 * m->W;
	unsigned bin = (unsigned)((w->size - m->MIN) / m->A);
	vaddr slot = cache_slot(m, p, bin);

	put(m, user, link_to(m, user, get(m, slot)));
	if (m->k->key)
		put(m, user + m->W, m->k->key == 1 ? p->cache : KEY);
	put(m, slot, user);
	count_cached(m, p, bin, 1);
	w->state = BLOCK_CACHED;
}

/* The thread's cache is a chunk like others. */
static void put_cache(struct image *m, struct pool *p)
{
	vaddr chunk;

	if (!m->k->cache)
		return;
	chunk = take_size(m, p, cache_chunk(m));
	wanted_at(m, chunk)->state = BLOCK_OVERHEAD;
	p->cache = chunk + 2 * m->W;
	for (unsigned i = 0; m->k->cache == CACHE_SLOTS && i < 76; i++)
		put_n(m, p->cache + 2 * i, m->k->cache_count, 2);
}

/* What is left becomes top. */
static void put_top(struct image *m, struct pool *p)
{
	uint64_t size = p->end - p->at;

	put(m, p->at + m->W, size | 1);
	put(m, p->arena + m->k->top, p->at);
	want(m, p->at, size, BLOCK_TOP);
}

/* Double fencepost of a piece of the main arena, fencepost of a heap. */
static void put_fence(struct image *m, struct pool *p)
{
	put(m, p->at + m->W, 2 * m->W | 1);
	put(m, p->at + 3 * m->W, (p->heap ? 0 : 2 * m->W) | 1);
	want(m, p->at, 4 * m->W, BLOCK_OVERHEAD);
	p->at += 4 * m->W;
}

static void add_thread(struct image *m, uint32_t tid, const struct pool *p)
{
	struct space *sp = m->sp;
	vaddr tp = m->tls + 0x800 + sp->n_threads * 0x1000;

	sp->threads = mem_realloc(sp->threads, (sp->n_threads + 1) *
				  sizeof(*sp->threads));
	sp->threads[sp->n_threads++] = (struct thread){ .tid = tid, .tls = tp };
	put(m, tp - 9 * m->W, p->cache);
	put(m, tp - 7 * m->W, p->arena);
}

static void image_start_sized(struct image *m, unsigned shape, uint64_t size)
{
	const struct shape *k = &shapes[shape];
	bool is64 = k->W == 8;

	*m = (struct image){ .k = k, .W = k->W, .A = k->A };
	m->MIN = is64 ? 32 : 16;
	m->sp = target_mem_new(is64 ? MACHINE_X86_64 : MACHINE_I386);
	m->libc = is64 ? 0x7ffff7dd0000 : 0xf7fa0000;
	m->heap_base = is64 ? 0x555555559000 : 0x5655a000;
	m->arena_base = is64 ? 0x7fff48000000 : 0xf5500000;
	m->tls = is64 ? 0x7ffff7fb0000 : 0xf7fc0000;
	target_mem_add(m->sp, m->libc, LIBC_SIZE, SEG_R | SEG_W, NULL,
		       LIBC_SIZE, "/lib/libc.so.6");
	target_mem_add(m->sp, m->heap_base, size, SEG_R | SEG_W, NULL, size,
		       NULL);
	target_mem_add(m->sp, m->tls, 0x8000, SEG_R | SEG_W, NULL, 0x8000,
		       NULL);
	m->mp = m->libc + 0x1000;
	m->main = (struct pool){
		.arena = m->libc + 0x1900,
		.at = first_chunk(m, m->heap_base),
		.end = m->heap_base + size,
	};
	put_arena(m, m->main.arena, m->main.arena);
	put_system_mem(m, m->main.arena, size);
	put_mp(m);
	put_cache(m, &m->main);
}

static inline void image_start(struct image *m, unsigned shape)
{
	image_start_sized(m, shape, HEAP_SIZE);
}

static uint64_t heap_max(const struct image *m)
{
	return m->W == 8 ? 64 * MIB : MIB;
}

/* A heap of the other arena; its first one holds the arena itself. */
static void put_heap(struct image *m, vaddr h, vaddr prev)
{
	target_mem_add(m->sp, h, HEAP_SIZE, SEG_R | SEG_W, NULL, HEAP_SIZE,
		       NULL);
	put(m, h, m->other.arena);
	put(m, h + m->W, prev);
	put(m, h + 2 * m->W, HEAP_SIZE);
	put(m, h + 3 * m->W, HEAP_SIZE);
	m->other.heap = h;
	m->other.at = first_chunk(m, h + m->k->heap_info +
				  (prev ? 0 : m->k->state_size));
	m->other.end = h + HEAP_SIZE;
}

static void put_other(struct image *m)
{
	m->other = (struct pool){
		.arena = m->arena_base + m->k->heap_info, .flags = 4,
	};
	put_heap(m, m->arena_base, 0);
	put_arena(m, m->other.arena, m->main.arena);
	put(m, m->main.arena + m->k->next, m->other.arena);
	put_system_mem(m, m->other.arena, HEAP_SIZE);
	put_n(m, m->other.arena + 4, 2, 4);
	put_cache(m, &m->other);
}

/* Fill the first heap with one block and its fence, and begin a second. */
static void put_second_heap(struct image *m)
{
	vaddr h = m->arena_base, second = h + heap_max(m);
	uint64_t room = m->other.end - m->other.at - 4 * m->W;

	take_size(m, &m->other, round_down(room, m->A));
	put_fence(m, &m->other);
	put_heap(m, second, h);
	put_system_mem(m, m->other.arena, 2 * HEAP_SIZE);
}

/* A chunk that is a mapping of its own; its user address. */
static vaddr put_mmapped(struct image *m, vaddr base, uint64_t total,
			 uint64_t offset)
{
	vaddr c = base + offset;
	bool bare = m->k->top == 8;

	put(m, c, offset);
	put(m, c + m->W, (total - offset - (bare ? 2 * m->W : 0)) | 2);
	return c + 2 * m->W;
}

__attribute__((unused))
static bool walk(struct image *m)
{
	struct err err;

	target_mem_done(m->sp);
	heap_init(&m->heap);
	return alloc_walk(m->sp, NULL, false, &m->heap, NULL, &err);
}

static void image_end(struct image *m)
{
	heap_fini(&m->heap);
	space_close(m->sp);
}

__attribute__((unused))
static size_t notes(const struct image *m, const char *code)
{
	size_t n = 0;

	for (size_t i = 0; i < m->heap.n_notes; i++)
		n += !strcmp(m->heap.notes[i].code, code);
	return n;
}

__attribute__((unused))
static void show_notes(const struct image *m)
{
	for (size_t i = 0; i < m->heap.n_notes; i++)
		printf("# note %s: %s\n", m->heap.notes[i].code,
		       m->heap.notes[i].text);
}

static int by_chunk(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	return (x->chunk > y->chunk) - (x->chunk < y->chunk);
}

/*
 * Up to 2.41 an empty cache is zeros: without a thread to name it, it is a
 * block like any other.
 */
static void forget_empty_cache(struct image *m)
{
	size_t cached = 0;

	for (size_t i = 0; i < m->n_wanted; i++)
		cached += m->wanted[i].state == BLOCK_CACHED &&
			m->wanted[i].chunk < m->arena_base;
	if (m->main.cache && m->k->cache != CACHE_SLOTS && !cached &&
	    !m->sp->n_threads)
		wanted_at(m, m->main.cache - 2 * m->W)->state = BLOCK_USED;
}

/* Every block is as wanted, in size and state, and there is no other. */
__attribute__((unused))
static void check_blocks(struct image *m)
{
	struct heap_iter it;
	struct block b;
	size_t i = 0;

	forget_empty_cache(m);
	qsort(m->wanted, m->n_wanted, sizeof(*m->wanted), by_chunk);
	heap_iter_init(&it, &m->heap);
	while (heap_iter_next(&it, &b)) {
		const struct wanted *w = &m->wanted[i];

		if (b.mmapped)
			continue;
		if (!CHECK(i < m->n_wanted) ||
		    !CHECK_U64(b.start, w->chunk) ||
		    !CHECK_U64(b.size, w->size) ||
		    !CHECK_STR(block_state_name(b.state),
			       block_state_name(w->state))) {
			printf("# %s: block at 0x%" PRIx64 "\n", m->k->name,
			       b.start);
			show_notes(m);
			return;
		}
		i++;
	}
	CHECK_U64(i, m->n_wanted);
}

/* All bytes that the arena claims were explained, none as damage. */
__attribute__((unused))
static void check_whole(const struct image *m, size_t arena, uint64_t bytes)
{
	const struct arena *a = &m->heap.arenas[arena];

	CHECK_U64(a->claimed_bytes, bytes);
	CHECK_U64(a->extent_bytes, bytes);
	CHECK_U64(a->undecoded_bytes, 0);
}

#endif
