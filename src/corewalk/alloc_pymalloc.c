/* SPDX-License-Identifier: MIT */
/*
 * pymalloc, CPython's allocator of small objects, 3.6 to 3.13: found and walked
 * without symbols.  docs/allocators/pymalloc.md has the layout.
 *
 * Vocabulary.  An *arena* of 256 KiB, from 3.10 on 1 MiB, is a mapping that is
 * cut into *pools* of 4 or 16 KiB.  A pool has blocks of one size class, up to
 * 512 bytes.  An array of structures, one an arena, says where they are.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "corewalk/alloc.h"
#include "corewalk/module.h"

extern const struct allocator alloc_pymalloc;

enum {
	CLASSES = 32,
	GRANULE = 16,
	POOL_HEADER = 48,
	ARENA_ENTRY = 48,
	USED_BACK = 16,		/* an entry of usedpools points before itself */
	MAX_SEARCH = 64 << 20,	/* bytes of a module */
	MAX_ARENAS = 1 << 22,
	MAX_NOTES = 20,
};

struct pool {
	uint64_t count;		/* blocks in use */
	vaddr free_block;	/* list of those given back */
	vaddr next, prev;
	uint32_t arena;		/* number of its arena */
	uint32_t size_class;
	uint32_t next_off;	/* of the first block never handed out */
	uint32_t max_off;	/* where the last block can begin */
};

struct py_arena {
	vaddr start;
	vaddr fresh;		/* pools from here on were never used */
	uint32_t n_free, n_pools;
};

struct pymalloc {
	struct space *sp;
	const struct module *module;
	vaddr table;		/* usedpools */
	vaddr array;		/* of arenas */
	uint64_t pool_bytes, arena_bytes;
	struct py_arena *arenas;	/* owned */
	size_t n_arenas, cap_arenas;
};

static bool read_pool(struct space *sp, vaddr at, struct pool *ret)
{
	return !(at & 15) &&
	       space_read(sp, at, ret, sizeof(*ret)) == sizeof(*ret);
}

static uint64_t class_bytes(uint32_t size_class)
{
	return ((uint64_t)size_class + 1) * GRANULE;
}

/* Does all that a header says fit together?  Its pool's size is *bytes. */
static bool pool_fits(const struct pool *p, uint64_t *bytes)
{
	uint64_t size;

	if (p->size_class >= CLASSES)
		return false;
	size = class_bytes(p->size_class);
	*bytes = (uint64_t)p->max_off + size;
	return (*bytes == 4096 || *bytes == 16384) &&
	       p->next_off >= POOL_HEADER + size &&
	       p->next_off <= p->max_off + size &&
	       !((p->next_off - POOL_HEADER) % size) &&
	       p->count <= (p->next_off - POOL_HEADER) / size;
}

/* ---- discovery ---- */

/* The pool that entry class of a table at table begins with; 0: none. */
static bool used_entry(const uint64_t *words, vaddr table, unsigned class,
		       vaddr *ret)
{
	vaddr self = table + 16 * class - USED_BACK;
	const uint64_t *w = words + 2 * class;

	*ret = 0;
	if (w[0] == self && w[1] == self)
		return true;
	*ret = w[0];
	return w[0] != self && w[1] != self && w[0] && !(w[0] & 4095) &&
	       !(w[1] & 4095);
}

/* Some of what must hold may be damaged, not much. */
static bool enough(unsigned good, unsigned bad)
{
	return good > 3 * bad;
}

/* usedpools: two words a class, to its pools or, without any, before itself. */
static bool is_table(struct pymalloc *m, const uint64_t *words, vaddr table)
{
	unsigned good = 0, bad = 0;
	uint64_t bytes = 0;

	for (unsigned c = 0; c < CLASSES; c++) {
		struct pool p;
		vaddr pool;

		if (!used_entry(words, table, c, &pool))
			return false;
		if (!pool)
			continue;
		if (!read_pool(m->sp, pool, &p) || p.size_class != c ||
		    !pool_fits(&p, &bytes) || pool % bytes ||
		    (m->pool_bytes && bytes != m->pool_bytes)) {
			if (!enough(CLASSES, ++bad))
				return false;
			continue;
		}
		m->pool_bytes = bytes;
		good++;
	}
	m->arena_bytes = m->pool_bytes == 4096 ? 256 * KIB : MIB;
	return enough(good, bad);
}

static bool read_entry(struct pymalloc *m, uint64_t i, struct py_arena *ret)
{
	uint64_t word[3];

	if (space_read(m->sp, m->array + i * ARENA_ENTRY, word,
		       sizeof(word)) != sizeof(word))
		return false;
	*ret = (struct py_arena){
		word[0], word[1], (uint32_t)word[2],
		(uint32_t)(word[2] >> 32),
	};
	return true;
}

static bool entry_fits(struct pymalloc *m, const struct py_arena *a)
{
	uint64_t pools = m->arena_bytes / m->pool_bytes;

	return !(a->start & 4095) && (a->n_pools == pools ||
	       a->n_pools == pools - 1) && a->n_free <= a->n_pools &&
	       a->fresh >= a->start &&
	       a->fresh - a->start <= m->arena_bytes &&
	       space_seg(m->sp, a->start);
}

/* Is the array of arenas at array?  Each pool's arena must hold the pool. */
static bool is_array(struct pymalloc *m, vaddr array, const vaddr *pools,
		     const uint32_t *numbers, size_t n)
{
	unsigned good = 0;

	m->array = array;
	for (size_t i = 0; i < n; i++) {
		struct py_arena a;

		if (read_entry(m, numbers[i], &a) && entry_fits(m, &a) &&
		    pools[i] >= a.start &&
		    pools[i] - a.start < m->arena_bytes)
			good++;
		else if (!enough((unsigned)n, (unsigned)(i + 1) - good))
			return false;
	}
	return enough(good, (unsigned)n - good);
}

/* Pools of all classes to try an array with, from the table. */
static size_t some_pools(struct pymalloc *m, vaddr *pools, uint32_t *numbers)
{
	size_t n = 0;

	for (unsigned c = 0; c < CLASSES; c++) {
		struct pool p;
		uint64_t word;

		if (!space_u64(m->sp, m->table + 16 * c, &word) ||
		    word == m->table + 16 * c - USED_BACK ||
		    !read_pool(m->sp, word, &p))
			continue;
		pools[n] = word;
		numbers[n++] = p.arena;
	}
	return n;
}

/* A module's writable segment as words; the caller frees it; NULL if none. */
static uint64_t *module_words(struct space *sp, const struct seg *seg,
			      size_t *ret_n)
{
	size_t n = (size_t)min_u64(seg->avail, MAX_SEARCH);
	uint64_t *words;

	if (!(seg->flags & SEG_W) || seg->flags & SEG_SHARED ||
	    n < 16 * CLASSES || !space_module(sp, seg->start))
		return NULL;
	words = mem_alloc(n);
	*ret_n = (size_t)(space_read(sp, seg->start, words, n) / 8);
	return words;
}

/* The pointer to it is a variable of the same module. */
static bool find_array(struct pymalloc *m)
{
	vaddr pools[CLASSES];
	uint32_t numbers[CLASSES];
	size_t n_pools = some_pools(m, pools, numbers);
	bool found = false;

	for (size_t i = 0; i < m->sp->n_segs && !found; i++) {
		const struct seg *seg = &m->sp->segs[i];
		uint64_t *words;
		size_t n;

		if (space_module(m->sp, seg->start) != m->module)
			continue;
		words = module_words(m->sp, seg, &n);
		for (size_t k = 0; words && k < n && !found; k++)
			found = words[k] && !(words[k] & 7) &&
				is_array(m, words[k], pools, numbers,
					 n_pools);
		free(words);
	}
	return found;
}

/* An array that was overwritten may name the same memory many times. */
static void drop_twins(struct pymalloc *m)
{
	size_t kept = 0;

	SORT_BY(m->arenas, m->n_arenas, start);
	for (size_t i = 0; i < m->n_arenas; i++)
		if (!kept || m->arenas[i].start - m->arenas[kept - 1].start >=
		    m->arena_bytes)
			m->arenas[kept++] = m->arenas[i];
	m->n_arenas = kept;
}

static void read_arenas(struct pymalloc *m)
{
	size_t empty = 0;

	for (uint64_t i = 0; i < MAX_ARENAS; i++) {
		struct py_arena a;

		if (!read_entry(m, i, &a))
			break;
		if (!a.start) {
			/* The array doubles: so many are free at most. */
			if (++empty > m->n_arenas + 64)
				break;
			continue;
		}
		if (!entry_fits(m, &a))
			break;
		MEM_PUSH(m->arenas, m->n_arenas, m->cap_arenas) = a;
	}
	drop_twins(m);
}

static bool find_table(struct pymalloc *m, const struct seg *seg)
{
	size_t n = 0;
	uint64_t *words = module_words(m->sp, seg, &n);
	bool found = false;

	for (size_t i = 0; words && i + 2 * CLASSES <= n && !found; i++) {
		m->table = seg->start + 8 * i;
		m->pool_bytes = 0;
		found = (words[i] == m->table - USED_BACK ||
			 (words[i] && !(words[i] & 4095))) &&
			is_table(m, words + i, m->table);
	}
	free(words);
	return found;
}

static bool find(struct pymalloc *m, char *near, size_t near_size)
{
	struct space *sp = m->sp;

	for (size_t i = 0; sp->word == 8 && i < sp->n_segs; i++) {
		if (!find_table(m, &sp->segs[i]))
			continue;
		m->module = space_module(sp, sp->segs[i].start);
		if (find_array(m)) {
			read_arenas(m);
			return m->n_arenas != 0;
		}
		snprintf(near, near_size, "pools are at 0x%" PRIx64
			 ", but no array of arenas", m->table);
	}
	return false;
}

static void py_probe(struct space *sp, struct sighting *ret)
{
	struct pymalloc m = { .sp = sp };

	if (!find(&m, ret->text, sizeof(ret->text))) {
		free(m.arenas);
		return;
	}
	ret->priv = mem_alloc(sizeof(m));
	memcpy(ret->priv, &m, sizeof(m));
	ret->score = 100;
}

static void py_drop(void *priv, size_t n)
{
	struct pymalloc *m = priv;

	(void)n;
	if (m)
		free(m->arenas);
	free(m);
}

/* ---- the walk ---- */

struct walk {
	struct pymalloc *m;
	struct heap *heap;
	uint32_t arena;
	struct heap_extent *x;
	unsigned notes;
	vaddr free_end;		/* where a row of free pools ends */
};

static void note(struct walk *w, const char *code, vaddr at, const char *text)
{
	if (w->notes++ >= MAX_NOTES)
		return;
	heap_note(w->heap, code, w->arena, at, 0, "%s", text);
	heap_note_is_grave(w->heap);
}

static void mark(struct walk *w, vaddr at, enum block_state state)
{
	extent_mark(w->x, at);
	extent_set_state(w->x, at, state);
}

/* Free pools side by side are one block. */
static void mark_free_pools(struct walk *w, vaddr at, vaddr end)
{
	if (at < end && at != w->free_end)
		mark(w, at, BLOCK_TOP);
	w->free_end = end;
}

static void mark_list(struct walk *w, vaddr pool, const struct pool *p)
{
	uint64_t size = class_bytes(p->size_class), listed = 0;
	uint64_t carved = (p->next_off - POOL_HEADER) / size;
	vaddr at = p->free_block;

	while (at) {
		uint64_t off = at - pool;

		if (off < POOL_HEADER || off >= p->next_off ||
		    (off - POOL_HEADER) % size ||
		    extent_state(w->x, at) != BLOCK_USED)
			break;
		extent_set_state(w->x, at, BLOCK_BINNED);
		listed++;
		if (!space_u64(w->m->sp, at, &at))
			break;
	}
	if (at || listed + p->count != carved)
		note(w, "pymalloc-list", pool, "the list of free blocks of a "
		     "pool breaks: those behind count as in use");
}

static void walk_pool(struct walk *w, vaddr at)
{
	struct pymalloc *m = w->m;
	struct pool p;
	uint64_t size, bytes;

	if (!read_pool(m->sp, at, &p) ||
	    (p.count && (!pool_fits(&p, &bytes) || bytes != m->pool_bytes))) {
		mark(w, at, BLOCK_UNLISTED);
		note(w, "pymalloc-pool", at, "the header of a pool is damaged "
		     "or not in the file: its blocks count as free");
		return;
	}
	if (!p.count) {
		mark_free_pools(w, at, at + m->pool_bytes);
		return;
	}
	size = class_bytes(p.size_class);
	heap_add_span(w->heap, at + POOL_HEADER,
		      (m->pool_bytes - POOL_HEADER) / size, size);
	mark(w, at, BLOCK_OVERHEAD);
	for (uint64_t off = POOL_HEADER; off < p.next_off; off += size)
		extent_mark(w->x, at + off);
	if (p.next_off <= p.max_off)
		mark(w, at + p.next_off, BLOCK_UNSORTED);
	bytes = (m->pool_bytes - POOL_HEADER) % size;
	if (bytes)
		mark(w, at + m->pool_bytes - bytes, BLOCK_OVERHEAD);
	mark_list(w, at, &p);
}

static void walk_arena(struct walk *w, const struct py_arena *a)
{
	struct pymalloc *m = w->m;
	vaddr end = a->start + m->arena_bytes;
	vaddr first = round_up(a->start, m->pool_bytes);
	vaddr stop = first + a->n_pools * m->pool_bytes;
	vaddr fresh = min_u64(max_u64(round_down(a->fresh, m->pool_bytes),
				      first), stop);
	size_t x;

	if (space_sparse(m->sp, a->start, end)) {
		heap_add_range(w->heap, w->arena, EXTENT_UNDECODED, a->start,
			       end);
		note(w, "pymalloc-arena", a->start,
		     "an arena is not in the file");
		return;
	}
	x = heap_add_blocks(w->heap, w->arena, a->start, end, 4, 0, 0);
	w->x = &w->heap->extents[x];
	w->free_end = 0;
	if (first != a->start)
		mark(w, a->start, BLOCK_OVERHEAD);
	for (vaddr at = first; at < fresh; at += m->pool_bytes)
		walk_pool(w, at);
	mark_free_pools(w, fresh, stop);
	if (stop < end)
		mark(w, stop, BLOCK_OVERHEAD);
}

static const char *const state_names[BLOCK_STATES] = {
	[BLOCK_BINNED] = "free-block",
	[BLOCK_UNSORTED] = "fresh",
	[BLOCK_TOP] = "free-pools",
	[BLOCK_UNLISTED] = "damaged",
};

static const uint8_t roles[BLOCK_STATES] = {
	[BLOCK_TOP] = FREE_PAGES,
};

static void py_walk(struct space *sp, struct sighting *at, struct heap *heap,
		    struct progress *progress)
{
	struct pymalloc *m = at->priv;
	struct walk w = { .m = m, .heap = heap };
	struct str s;
	uint32_t allocator;

	(void)progress;
	str_init(&s);
	str_printf(&s, "table of pools 0x%" PRIx64 " in ", m->table);
	module_add_name(&s, sp, m->module);
	str_printf(&s, ", by structure; array of arenas 0x%" PRIx64 "; %zu "
		   "arenas of %" PRIu64 " KiB, pools of %" PRIu64 " KiB",
		   m->array, m->n_arenas, m->arena_bytes / KIB,
		   m->pool_bytes / KIB);
	allocator = heap_add_allocator(heap, "pymalloc", m->pool_bytes == 4096
				       ? "3.6 to 3.9" : "3.10 to 3.13",
				       s.text);
	str_fini(&s);
	heap_name_states(heap, allocator, state_names);
	heap_set_roles(heap, allocator, roles);
	heap_add_arena(heap, allocator, m->array, "pymalloc")->claimed_bytes =
		m->n_arenas * m->arena_bytes;
	w.arena = (uint32_t)(heap->n_arenas - 1);
	for (size_t i = 0; i < m->n_arenas; i++)
		walk_arena(&w, &m->arenas[i]);
}

const struct allocator alloc_pymalloc = {
	.name = "pymalloc",
	.summary = "small objects of CPython, 3.6 to 3.13",
	.probe = py_probe,
	.walk = py_walk,
	.drop = py_drop,
};
