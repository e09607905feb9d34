/* SPDX-License-Identifier: MIT */
/*
 * OCaml 4.  Vocabulary.  The *major heap* is made of *chunks*, each in a block
 * of malloc and begun by a *head* that leads to the next one by address.  A
 * *cell* is a header word and the fields behind it; the cells of a chunk tile
 * it.  New values are made in the *minor heap*, one block of malloc.
 */
#include "corewalk/ocaml.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "corewalk/words.h"

enum {
	PAGE = 4096,		/* Page_log of caml/config.h, 12 */
	CHUNK_MIN = 15 * PAGE * 8,	/* Heap_chunk_min, words */
	BLOCK_WORDS = 2,	/* of caml_stat_alloc's pool, before a block */
	SIZE_SHIFT = 10,	/* of a header: words, colour, tag */
	COLOUR = 3 << 8, BLUE = 2 << 8,
	SEARCHED = 64 << 20,	/* bytes of modules */

	/* caml/major_gc.h, heap_chunk_head */
	H_BLOCK = 0, H_SIZE = 2, H_NEXT = 3, H_WORDS = 4,
	/* caml/domain_state.tbl */
	S_BASE = 3, S_START = 4, S_END = 5, S_ALLOC_START = 6,
	S_ALLOC_END = 7, S_WORDS = 10, S_ALL = 11,
};

/* Words of a head: up to 4.11, of 4.12 and 4.13, of 4.14. */
static const uint8_t head_words[] = { 4, 6, 7 };

struct chunk {
	struct block block;
	vaddr start, next;
	uint64_t bytes;
	uint64_t used, free;	/* of cells; 0, 0: they do not tile it */
	bool known;
};

struct major {
	struct space *sp;
	struct heap *heap;
	struct chunk *chunks;	/* owned; by address */
	size_t n, cap;
};

/* ---- the major heap ---- */

/* Where what caml_stat_alloc_aligned_noexc() gives out is used from. */
static vaddr aligned_start(vaddr block, uint64_t head)
{
	return round_down(block + head, PAGE) + PAGE;
}

static bool read_head(struct major *m, const struct block *b, vaddr block,
		      uint64_t head, struct chunk *ret)
{
	vaddr start = aligned_start(block, head), end = b->addr + b->usable;
	uint64_t w[H_WORDS];

	if (space_read(m->sp, start - head, w, sizeof(w)) != sizeof(w))
		return false;
	*ret = (struct chunk){
		.block = *b, .start = start, .next = w[H_NEXT],
		.bytes = w[H_SIZE],
	};
	return w[H_BLOCK] == block && w[H_SIZE] >= CHUNK_MIN &&
	       !(w[H_SIZE] & (PAGE - 1)) && start < end &&
	       w[H_SIZE] <= end - start && !(w[H_NEXT] & (PAGE - 1)) &&
	       (!w[H_NEXT] || w[H_NEXT] > start);
}

/* Cells from start to end, none of which may go on behind it. */
static void walk_cells(struct major *m, struct chunk *c)
{
	const uint8_t *p = space_view(m->sp, c->start, c->bytes);
	uint64_t off = 0, used = 0, header;

	while (p && off < c->bytes) {
		uint64_t bytes;

		header = load_u64(p + off);
		bytes = ((header >> SIZE_SHIFT) + 1) * 8;
		if (bytes > c->bytes - off)
			return;
		/* A header alone is a fragment, free and in no list. */
		if (bytes > 8 && (header & COLOUR) != BLUE)
			used += bytes;
		off += bytes;
	}
	if (!p)
		return;
	c->used = used;
	c->free = c->bytes - used;
	c->known = true;
}

static void try_block(struct major *m, const struct block *b, uint64_t head)
{
	struct chunk c;

	for (vaddr skip = 0; skip <= BLOCK_WORDS * 8; skip += BLOCK_WORDS * 8)
		if (read_head(m, b, b->addr + skip, head, &c)) {
			walk_cells(m, &c);
			MEM_PUSH(m->chunks, m->n, m->cap) = c;
			return;
		}
}

/* Blocks in use that are large enough for a chunk, of which there are few. */
static void try_extent(struct major *m, const struct heap_extent *x,
		       uint64_t head)
{
	vaddr at = x->start, end = x->end;
	struct block b;

	for (; at < end; at += CHUNK_MIN / 2) {
		if (!heap_find(m->heap, at, &b) || b.start < x->start ||
		    b.size < CHUNK_MIN)
			continue;
		if (b.state == BLOCK_USED)
			try_block(m, &b, head);
		at = b.start + b.size - CHUNK_MIN / 2;
	}
}

static bool is_next(const struct major *m, size_t i)
{
	for (size_t k = i; k-- > 0;)
		if (m->chunks[k].known)
			return m->chunks[k].next == m->chunks[i].start;
	return false;
}

/*
 * Chunks whose cells tile them, and such as the one before leads to.  The
 * others are not believed.
 */
static void keep_certain(struct major *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++)
		if (m->chunks[i].known || is_next(m, i))
			m->chunks[n++] = m->chunks[i];
	m->n = n;
}

static void find_chunks(struct major *m, uint64_t head)
{
	m->n = 0;
	for (size_t i = 0; i < m->heap->n_extents; i++) {
		const struct heap_extent *x = &m->heap->extents[i];

		if (x->kind == EXTENT_BLOCKS || x->kind == EXTENT_MMAPPED)
			try_extent(m, x, head);
	}
	keep_certain(m);
}

/* ---- the minor heap ---- */

/* Is it the state of a domain, and its minor heap in a block? */
static bool is_state(struct major *m, vaddr at, struct block *ret)
{
	uint64_t w[S_ALL];

	if (at & 7 || space_read(m->sp, at, w, sizeof(w)) != sizeof(w))
		return false;
	return w[S_START] == aligned_start(w[S_BASE], 0) &&
	       w[S_END] > w[S_START] &&
	       (w[S_END] - w[S_START]) / 8 == w[S_WORDS] &&
	       w[S_ALLOC_START] == w[S_START] && w[S_ALLOC_END] == w[S_END] &&
	       heap_find(m->heap, w[S_START], ret) &&
	       ret->state == BLOCK_USED &&
	       (w[S_BASE] == ret->addr ||
		w[S_BASE] == ret->addr + BLOCK_WORDS * 8) &&
	       w[S_END] <= ret->addr + ret->usable;
}

/* A variable of the program leads to its state. */
static bool find_minor(struct major *m, struct block *ret)
{
	struct words *w = mem_alloc(sizeof(*w));
	uint64_t budget = SEARCHED;
	bool found = false;

	for (size_t i = 0; i < m->sp->n_modules && !found; i++) {
		const struct module *module = &m->sp->modules[i];
		size_t seg = space_first_seg(m->sp, module->start);
		vaddr lo, hi, at;
		uint64_t word;

		while (!found && words_module_range(m->sp, module, &seg, &lo,
						    &hi)) {
			words_init(w, m->sp, lo, hi, WORDS_BUFFER, &budget);
			while (!found && words_next(w, &at, &word))
				found = is_state(m, word, ret);
		}
	}
	free(w);
	return found;
}

/* ---- both ---- */

static uint32_t add_allocator(const struct major *m, bool minor)
{
	uint64_t bytes = 0, blind = 0;
	char text[200];
	size_t n;

	for (size_t i = 0; i < m->n; i++) {
		bytes += m->chunks[i].bytes;
		blind += !m->chunks[i].known;
	}
	n = (size_t)snprintf(text, sizeof(text), "chunks in blocks of malloc, "
			     "with heads that lead to the next and cells that "
			     "tile them: %zu of %" PRIu64 " bytes", m->n,
			     bytes);
	if (blind)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "; not tiled: %" PRIu64, blind);
	if (!minor)
		snprintf(text + n, sizeof(text) - n, "; no minor heap found");
	return heap_add_allocator(m->heap, "ocaml", "runtime heap, not walked",
				  text);
}

static void add_heaps(struct major *m)
{
	struct block minor, *blocks = mem_alloc(m->n * sizeof(*blocks));
	bool has_minor = find_minor(m, &minor);
	uint32_t allocator = add_allocator(m, has_minor);
	struct arena *a = heap_add_arena(m->heap, allocator,
					 m->chunks[0].start, "ocaml major");

	a->heaps = (uint32_t)m->n;
	for (size_t i = 0; i < m->n; i++) {
		a->runtime_used += m->chunks[i].used;
		a->runtime_free += m->chunks[i].free;
		blocks[i] = m->chunks[i].block;
	}
	heap_carve(m->heap, (uint32_t)(m->heap->n_arenas - 1), blocks, m->n);
	if (has_minor) {
		heap_add_arena(m->heap, allocator, minor.addr, "ocaml minor");
		heap_carve(m->heap, (uint32_t)(m->heap->n_arenas - 1), &minor,
			   1);
	}
	free(blocks);
}

void ocaml4_find(struct space *sp, struct heap *heap)
{
	struct major m = { .sp = sp, .heap = heap };

	for (size_t i = 0; i < countof(head_words) && !m.n; i++)
		find_chunks(&m, head_words[i] * 8);
	if (m.n)
		add_heaps(&m);
	free(m.chunks);
}
