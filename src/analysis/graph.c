/* SPDX-License-Identifier: MIT */
#include "analysis/graph.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/edges.h"
#include "analysis/kin.h"
#include "analysis/scan.h"
#include "analysis/stored.h"
#include "base/mem.h"
#include "base/sort.h"

enum {
	JOBS = 2,
	/* Smaller heaps are not worth a thread. */
	THREAD_MIN = 4 << 20,
	/* A hole of a sparse file that is worth going round. */
	HOLE_MIN = 64 << 10,
	/* More that lead to a block: all edges at once are cheaper. */
	KIN_MAX = 1 << 18,
	KIN_SWEEPS = 4,
	/* About so many are enough to say what blocks are like. */
	CENSUS_BYTES = 128 << 20,
};

struct builder {
	struct graph *g;
	const struct heap *h;
	struct edges_piece *pieces;	/* owned */
	size_t n_pieces, cap_pieces;
	size_t n_roots;			/* of them, at the end */
	uint64_t bytes;
	uint64_t max_bytes;
	struct edges jobs[JOBS];
	size_t n_jobs;
};

/* ---- pieces ---- */

static void add_piece(struct builder *b, const struct edges_piece *piece)
{
	MEM_PUSH(b->pieces, b->n_pieces, b->cap_pieces) = *piece;
	b->bytes += piece->n;
	b->n_roots += piece->root != 0;
}

/* What can be read of [from, to), as pieces of whole words. */
static void add_readable(struct builder *b, vaddr from, vaddr to,
			 uint32_t root)
{
	struct space *sp = b->g->sp;

	from = round_up(from, sp->word);
	while (from < to) {
		uint64_t n;
		const uint8_t *bytes = space_view_max(sp, from, &n);
		size_t seg;

		if (!bytes) {
			vaddr next = round_up(from + 1, sp->page);

			/* To where there may be something again. */
			seg = space_first_seg(sp, from);
			if (seg < sp->n_segs && from >= sp->segs[seg].start)
				next = sp->segs[seg].end;
			else if (seg < sp->n_segs)
				next = sp->segs[seg].start;
			else
				return;
			from = round_up(next, sp->word);
			continue;
		}
		n = min_u64(n, to - from) & ~(uint64_t)(sp->word - 1);
		if (!n)
			return;
		add_piece(b, &(struct edges_piece){
			.bytes = bytes, .start = from, .n = n, .root = root,
			.word = sp->word,
		});
		from += n;
	}
}

/* The same without large holes of a sparse core: they are zeros. */
static void add_range(struct builder *b, vaddr from, vaddr to, uint32_t root)
{
	struct space *sp = b->g->sp;
	vaddr at = from, hole, end;

	while (at < to && stored_next_hole(sp, at, to, &hole, &end)) {
		if (end - hole >= HOLE_MIN) {
			add_readable(b, from, hole, root);
			from = end;
		}
		at = end;
	}
	if (from < to)
		add_readable(b, from, to, root);
}

static void add_heaps(struct builder *b)
{
	for (size_t i = 0; i < b->h->n_extents; i++) {
		const struct heap_extent *x = &b->h->extents[i];

		if (x->kind == EXTENT_BLOCKS)
			/* The last block may have a word behind the end. */
			add_range(b, x->start + x->user_off,
				  x->end + x->overlap, 0);
		else if (x->kind == EXTENT_MMAPPED)
			add_range(b, x->user, x->end - x->tail, 0);
	}
}

static void add_registers(struct builder *b, const struct thread *t,
			  uint32_t node)
{
	uint32_t n = t->n_regs < THREAD_MAX_REGS ? t->n_regs
						 : THREAD_MAX_REGS;

	if (n)
		add_piece(b, &(struct edges_piece){
			.bytes = (const uint8_t *)t->regs, .n = n * 8,
			.root = node, .word = 8,
		});
	if (t->n_vectors)
		add_piece(b, &(struct edges_piece){
			.bytes = (const uint8_t *)t->vectors,
			.n = (uint64_t)t->n_vectors * 8,
			.root = node, .word = 8,
		});
}

static void add_roots(struct builder *b)
{
	const struct graph *g = b->g;

	for (size_t i = 0; i < g->roots.n; i++) {
		const struct root *r = &g->roots.items[i];
		uint32_t node = graph_root_node(g, i);
		size_t first = b->n_pieces;

		if (r->kind == ROOT_REGISTERS)
			add_registers(b, &g->sp->threads[r->thread], node);
		else
			add_range(b, r->start, r->end, node);
		for (size_t k = first; k < b->n_pieces; k++)
			b->pieces[k].fixed = r->kind == ROOT_DATA;
	}
}

/* ---- two halves ---- */

/* The node of the first word of a piece. */
static uint32_t piece_node(const struct builder *b,
			   const struct edges_piece *p)
{
	const struct index *ix = &b->g->ix;

	if (p->root)
		return p->root;
	return index_number(ix, p->start - ix->base);
}

/* The node of its last word. */
static uint32_t piece_last(const struct builder *b,
			   const struct edges_piece *p)
{
	const struct index *ix = &b->g->ix;

	if (p->root)
		return p->root;
	return index_number(ix, min_u64(p->start + p->n - p->word - ix->base,
					ix->span - 1));
}

/* Cut piece i in two at the first block behind offset at; false: none. */
static bool cut_piece(struct builder *b, size_t i, uint64_t at)
{
	struct edges_piece p = b->pieces[i];
	vaddr start;

	if (p.root)
		return false;
	start = index_next(&b->g->ix, p.start + at);
	if (start >= p.start + p.n)
		return false;
	(void)MEM_PUSH(b->pieces, b->n_pieces, b->cap_pieces);
	memmove(b->pieces + i + 1, b->pieces + i,
		(b->n_pieces - i - 1) * sizeof(p));
	b->pieces[i].n = start - p.start;
	b->pieces[i + 1].bytes += start - p.start;
	b->pieces[i + 1].start = start;
	b->pieces[i + 1].n -= start - p.start;
	return true;
}

/*
 * The piece from which on the second half is, at a border of nodes; n_pieces
 * if there is none behind the middle.
 */
static size_t find_middle(struct builder *b)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < b->n_pieces; i++) {
		if (sum + b->pieces[i].n >= b->bytes / 2)
			break;
		sum += b->pieces[i].n;
	}
	if (i < b->n_pieces && cut_piece(b, i, b->bytes / 2 - sum))
		return i + 1;
	for (i++; i < b->n_pieces; i++)
		if (piece_node(b, &b->pieces[i]) >
		    piece_last(b, &b->pieces[i - 1]))
			return i;
	return b->n_pieces;
}

static void add_job(struct builder *b, size_t first, size_t end,
		    uint32_t first_node, uint32_t end_node)
{
	struct edges *job = &b->jobs[b->n_jobs++];
	uint64_t bytes = b->max_bytes - min_u64(b->max_bytes,
						b->g->off_bytes);

	edges_init(job, &b->g->ix, b->g->sp);
	job->pieces = b->pieces + first;
	job->n_pieces = end - first;
	job->heap = b->pieces;
	job->n_heap = b->n_pieces - b->n_roots;
	job->first = first_node;
	job->end = end_node;
	job->only = b->g->kin;
	if (b->g->extent == GRAPH_STEP) {
		job->asked = b->g->asked.start;
		job->asked_end = b->g->asked.end;
	}
	job->off = b->g->off;
	job->max_edges = min_u64(bytes / 4 / JOBS, UINT32_MAX / JOBS);
}

static void split(struct builder *b)
{
	uint32_t end = b->g->n_nodes;
	size_t middle = b->bytes < THREAD_MIN ? b->n_pieces : find_middle(b);

	if (middle == b->n_pieces) {
		add_job(b, 0, b->n_pieces, 0, end);
	} else {
		uint32_t node = piece_node(b, &b->pieces[middle]);

		add_job(b, 0, middle, 0, node);
		add_job(b, middle, b->n_pieces, node, end);
	}
}

static void run(struct builder *b, void *(*pass)(void *))
{
	pthread_t thread;
	bool started = b->n_jobs == 2 &&
		!pthread_create(&thread, NULL, pass, &b->jobs[1]);

	pass(&b->jobs[0]);
	if (started)
		pthread_join(thread, NULL);
	else if (b->n_jobs == 2)
		pass(&b->jobs[1]);
}

/* What blocks are like: all of a small heap, some of a large one. */
static void take_census(struct builder *b)
{
	struct weak_census *all = &b->jobs[0].census;

	for (size_t i = 0; i < b->n_jobs; i++) {
		b->jobs[i].one_in = (unsigned)(b->bytes / CENSUS_BYTES) + 1;
		b->jobs[i].classes = all;
	}
	/* Words of roots are never slack. */
	if (b->g->extent != GRAPH_STEP)
		run(b, edges_count);
	if (b->n_jobs == 2)
		weak_census_add(all, &b->jobs[1].census);
	weak_census_done(all);
}

/* ---- one graph ---- */

/* Behind the first job's edges come those of the second. */
static void *shift_rows(void *arg)
{
	struct edges *second = arg;

	for (uint32_t i = second->first; i < second->end; i++)
		second->off[i] += second->shift;
	return NULL;
}

/* All edges in one array with room for one more. */
static uint32_t *append(struct edges *first, struct edges *second)
{
	size_t size = sizeof(*first->dst);
	size_t have = first->cap * size, used = first->n * size;
	size_t more = second->n * size;
	size_t want = used + more + MEM_APPEND_ROOM;

	if (want > have)
		first->dst = mem_map_grow(first->dst, have, want);
	have = max_u64(have, want);
	if (more) {
		mem_map_shrink(second->dst, second->cap * size, more);
		mem_map_append(first->dst, used, second->dst, more);
		second->dst = NULL;
		second->cap = 0;
	}
	return mem_map_shrink(first->dst, have, used + more + size);
}

static void join_edges(struct builder *b)
{
	struct graph *g = b->g;
	struct edges *first = &b->jobs[0], *second = &b->jobs[1];
	pthread_t thread;
	bool started = false;

	second->shift = (uint32_t)first->n;
	g->n_edges = (uint32_t)(first->n + second->n);
	g->off[g->n_nodes] = g->n_edges;
	if (b->n_jobs == 2)
		started = !pthread_create(&thread, NULL, shift_rows, second);
	g->dst = append(first, second);
	g->dst_bytes = ((size_t)g->n_edges + 1) * sizeof(*g->dst);
	first->dst = NULL;
	first->cap = 0;
	if (started)
		pthread_join(thread, NULL);
	else
		shift_rows(second);
}

static bool is_string(const struct builder *b, uint32_t block)
{
	uint64_t bits = b->jobs[0].strings[block >> 6];

	if (b->n_jobs == 2)
		bits |= b->jobs[1].strings[block >> 6];
	return bits >> (block & 63) & 1;
}

/* What lies behind the text in the block of a string. */
static void settle_text(struct builder *b)
{
	uint32_t shift = 0;

	for (size_t j = 0; j < b->n_jobs; j++) {
		const struct edges *e = &b->jobs[j];

		for (size_t i = 0; i < e->n_text; i++)
			if (is_string(b, e->text[i].block))
				b->g->dst[shift + e->text[i].edge] |=
					GRAPH_WEAK;
		shift = (uint32_t)e->n;
	}
}

/* How many edges start in [from, to), which lies in one block. */
static uint32_t edges_in(const struct graph *g, vaddr from, vaddr to)
{
	struct scan_hits hits;
	uint32_t n = 0;

	while (from + 8 <= to) {
		uint64_t part = min_u64((to - from) & ~UINT64_C(7),
					SCAN_WORDS * 8);
		const uint8_t *bytes = space_view(g->sp, from, part);
		size_t k = bytes ? scan_words(bytes, part / 8, 8, g->ix.base,
					      g->ix.span, &hits) : 0;

		for (size_t i = 0; i < k; i++)
			n += index_find(&g->ix, g->ix.base + hits.off[i]) != 0;
		from += part;
	}
	return n;
}

/* What the program may use of a block; 0 if node is none. */
static uint64_t usable_bytes(const struct graph *g, uint32_t node)
{
	vaddr start = graph_is_root(g, node) ? 0 : index_addr(&g->ix, node);

	return start ? index_end(&g->ix, start) - start : 0;
}

static void tag_row(struct graph *g, uint32_t from, uint32_t to, uint32_t tag)
{
	for (; from < to; from++)
		g->dst[from] |= tag;
}

static void settle_vector(struct builder *b, const struct edges_vector *v)
{
	struct graph *g = b->g;
	vaddr start = index_addr(&g->ix, v->block);
	uint64_t usable = usable_bytes(g, v->block);
	uint32_t end = g->off[v->block + 1];
	uint32_t n = end - g->off[v->block], n_behind;

	if (!n || v->vector.used >= usable)
		return;
	n_behind = edges_in(g, round_up(start + v->vector.size, 8),
			    start + usable);
	n_behind = (uint32_t)min_u64(n, n_behind);
	if (!weak_size_links(b->jobs[0].classes, usable + g->ix.own))
		tag_row(g, end - n_behind, end, GRAPH_WEAK);
	end -= n_behind;
	n -= n_behind;
	if (!n)
		return;
	n = (uint32_t)min_u64(n, edges_in(g, round_up(start + v->vector.used,
						      8),
					  start + v->vector.size));
	tag_row(g, end - n, end, GRAPH_SPARE);
}

static int by_block(const void *a, const void *b)
{
	const struct edges_vector *x = a, *y = b;

	return ORDER(x->block, y->block);
}

/* Stale copies of a vector's head say less: the most in use counts. */
static void settle_vectors(struct builder *b)
{
	struct edges *e = &b->jobs[0];
	struct edges *other = &b->jobs[1];

	for (size_t i = 0; b->n_jobs == 2 && i < other->n_vectors; i++)
		MEM_PUSH(e->vectors, e->n_vectors, e->cap_vectors) =
			other->vectors[i];
	SORT(e->vectors, e->n_vectors, by_block);
	for (size_t i = 0; i < e->n_vectors;) {
		struct edges_vector v = e->vectors[i];

		for (; i < e->n_vectors && e->vectors[i].block == v.block;
		     i++) {
			v.vector.used = max_u64(v.vector.used,
						e->vectors[i].vector.used);
			v.vector.size = max_u64(v.vector.size,
						e->vectors[i].vector.size);
		}
		settle_vector(b, &v);
	}
}

/* What an allocator notes in a block of its own is no reference. */
static void settle_own(struct builder *b)
{
	struct graph *g = b->g;

	for (size_t i = 0; i < b->h->n_own; i++) {
		uint32_t block = index_find(&g->ix, b->h->own[i].start);

		if (block)
			tag_row(g, g->off[block], g->off[block + 1],
				GRAPH_WEAK);
	}
}

/* ---- outside ---- */

static bool too_large(struct err *err, uint64_t max_bytes)
{
	return err_set(err, ERR_UNSUPPORTED, "its references would take more "
		       "than %llu MB of memory",
		       (unsigned long long)(max_bytes >> 20));
}

static uint64_t half_of_memory(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

	return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size / 2
				     : GIB;
}

static bool prepare(struct graph *g, const struct heap *h,
		    const struct where *w, uint64_t max_bytes,
		    struct err *err)
{
	if (!index_init(&g->ix, h, max_bytes, err))
		return false;
	roots_init(&g->roots, g->sp, h, w);
	if (g->roots.n > GRAPH_NODE - g->ix.n)
		return err_set(err, ERR_UNSUPPORTED, "too many roots");
	g->n_nodes = g->ix.n + (uint32_t)g->roots.n;
	g->off_bytes = ((size_t)g->n_nodes + 1) * sizeof(*g->off);
	/* A list of nodes to visit will be as long. */
	if (index_bytes(&g->ix) + 2 * g->off_bytes > max_bytes)
		return too_large(err, max_bytes);
	g->off = mem_map(g->off_bytes);
	return true;
}

/* The second job's come behind those of the first. */
static void join_asked(struct graph *g, const struct edges *job)
{
	struct graph_asked *a = &g->asked;

	/* Where there were too many, those behind are among the others. */
	for (size_t i = 0; i < job->met.n; i++)
		if (a->n < GRAPH_ASKED_MAX)
			MEM_PUSH(a->refs, a->n, a->cap) = job->met.refs[i];
		else
			a->n_more++;
	a->n_more += job->met.n_more;
}

/* From pieces to edges. */
static bool find_edges(struct builder *b, struct err *err)
{
	bool ok = true;

	b->n_jobs = 0;
	split(b);
	take_census(b);
	run(b, edges_run);
	for (size_t i = 0; i < b->n_jobs; i++)
		if (b->jobs[i].too_many)
			ok = too_large(err, b->max_bytes);
	if (ok) {
		join_edges(b);
		settle_text(b);
		settle_vectors(b);
		settle_own(b);
	}
	for (size_t i = 0; i < b->n_jobs; i++) {
		join_asked(b->g, &b->jobs[i]);
		edges_fini(&b->jobs[i]);
	}
	return ok;
}

static void add_pieces(struct builder *b)
{
	add_heaps(b);
	add_roots(b);
}

static bool build(struct builder *b, struct err *err)
{
	bool ok;

	add_pieces(b);
	ok = find_edges(b, err);
	free(b->pieces);
	return ok;
}

static uint64_t budget(uint64_t max_bytes)
{
	return max_bytes ? max_bytes : half_of_memory();
}

bool graph_init(struct graph *g, struct space *sp, const struct heap *h,
		const struct where *w, uint64_t max_bytes,
		struct progress *progress, struct err *err)
{
	struct builder b = { .g = g, .h = h };

	b.max_bytes = budget(max_bytes);
	*g = (struct graph){ .sp = sp };
	progress_phase(progress, "looking for references");
	if (prepare(g, h, w, b.max_bytes, err) && build(&b, err))
		return true;
	graph_fini(g);
	return false;
}

/* ---- for few blocks ---- */

static void no_kin(struct graph *g)
{
	if (!g->kin)
		return;
	kin_fini(g->kin);
	free(g->kin);
	g->kin = NULL;
}

/* A set of the few, the first of which is asked about. */
static void set_kin(struct graph *g, const vaddr *few, size_t n_few)
{
	g->asked.start = few[0];
	g->asked.end = index_end(&g->ix, few[0]);
	g->kin = mem_alloc(sizeof(*g->kin));
	kin_init(g->kin, &g->ix);
	for (size_t i = 0; i < n_few; i++)
		kin_add(g->kin, index_find(&g->ix, few[i]));
}

/* Then no way is shorter. */
static bool root_refers(const struct graph *g, uint32_t block)
{
	for (size_t i = 0; i < g->roots.n; i++) {
		uint32_t node = graph_root_node(g, i);

		if (g->roots.items[i].kind == ROOT_STALE)
			continue;
		for (uint32_t e = g->off[node]; e < g->off[node + 1]; e++)
			if (g->dst[e] == block)
				return true;
	}
	return false;
}

/* What refers to the set becomes a part of it; false if all of it is. */
static bool add_sources(struct graph *g)
{
	size_t before = g->kin->n;
	uint32_t node;

	for (uint32_t e = 0; e < g->n_edges; e = g->off[node + 1]) {
		node = graph_source(g, e);
		if (!graph_is_root(g, node))
			kin_add(g->kin, node);
	}
	return g->kin->n > before;
}

static void drop_edges(struct graph *g)
{
	mem_unmap(g->dst, g->dst_bytes);
	g->dst = NULL;
	g->dst_bytes = 0;
	g->n_edges = 0;
}

/*
 * All that leads to the few.  A sweep follows what lies in its direction; the
 * pass for edges shows what it could not see.  False with too_far set if that
 * is much, or far to go: all edges at once are cheaper then.
 */
static bool build_kin(struct builder *b, bool *too_far, struct err *err)
{
	struct graph *g = b->g;
	bool more = add_sources(g);

	g->extent = GRAPH_KIN;
	for (unsigned i = 0; i < KIN_SWEEPS; i++) {
		drop_edges(g);
		if (more && !kin_sweep(g->kin, b->pieces, b->n_pieces, i & 1,
				       KIN_MAX))
			break;
		if (!find_edges(b, err))
			return false;
		more = add_sources(g);
		if (!more)
			return true;
	}
	*too_far = true;
	return false;
}

static bool build_near(struct builder *b, const vaddr *few, size_t n_few,
		       struct err *err)
{
	struct graph *g = b->g;
	bool too_far = false;

	set_kin(g, few, n_few);
	g->extent = GRAPH_STEP;
	if (!find_edges(b, err))
		return false;
	if (root_refers(g, index_find(&g->ix, few[0])) ||
	    build_kin(b, &too_far, err))
		return true;
	if (!too_far)
		return false;
	drop_edges(g);
	no_kin(g);
	g->extent = GRAPH_WHOLE;
	return find_edges(b, err);
}

bool graph_init_near(struct graph *g, struct space *sp, const struct heap *h,
		     const struct where *w, const vaddr *few, size_t n_few,
		     struct progress *progress, struct err *err)
{
	struct builder b = { .g = g, .h = h, .max_bytes = budget(0) };
	bool ok;

	*g = (struct graph){ .sp = sp };
	progress_phase(progress, "looking for references");
	ok = prepare(g, h, w, b.max_bytes, err);
	if (ok) {
		add_pieces(&b);
		ok = build_near(&b, few, n_few, err);
		free(b.pieces);
	}
	if (!ok)
		graph_fini(g);
	return ok;
}

void graph_fini(struct graph *g)
{
	if (g->off)
		mem_unmap(g->off, g->off_bytes);
	if (g->dst)
		mem_unmap(g->dst, g->dst_bytes);
	no_kin(g);
	free(g->asked.refs);
	roots_fini(&g->roots);
	index_fini(&g->ix);
	*g = (struct graph){ 0 };
}

uint32_t *graph_count_refs(const struct graph *g)
{
	uint32_t *refs = mem_zalloc((size_t)g->ix.n * sizeof(*refs));

	for (uint32_t i = 0; i < g->n_edges; i++)
		refs[g->dst[i] & GRAPH_NODE]++;
	return refs;
}

/* The same of bytes in one piece. */
static bool word_among(const struct graph *g, const uint8_t *bytes,
		       uint64_t n, uint32_t block, uint64_t *ret)
{
	uint64_t step = (uint64_t)SCAN_WORDS * g->sp->word;
	vaddr start = index_addr(&g->ix, block);
	uint64_t size = usable_bytes(g, block);
	struct scan_hits hits;

	for (uint64_t at = 0; at < n; at += step) {
		uint64_t part = min_u64(n - at, step);

		if (!scan_words(bytes + at, part / g->sp->word, g->sp->word,
				start, size, &hits))
			continue;
		*ret = at + hits.pos[0] * (uint64_t)g->sp->word;
		return true;
	}
	return false;
}

static bool word_in(const struct graph *g, vaddr from, vaddr to,
		    uint32_t block, vaddr *ret)
{
	from = round_up(from, g->sp->word);
	while (from < to) {
		uint64_t n, at;
		const uint8_t *bytes = space_view_max(g->sp, from, &n);

		n = min_u64(n, to - from) & ~(uint64_t)(g->sp->word - 1);
		if (!bytes || !n) {
			from = round_up(from + 1, g->sp->page);
			continue;
		}
		if (word_among(g, bytes, n, block, &at)) {
			*ret = from + at;
			return true;
		}
		from += n;
	}
	return false;
}

bool graph_word(const struct graph *g, uint32_t node, uint32_t block,
		vaddr *ret)
{
	const struct root *r;
	const struct thread *t;
	vaddr start;

	if (!graph_is_root(g, node)) {
		start = index_addr(&g->ix, node);
		return word_in(g, start, start + usable_bytes(g, node),
			       block, ret);
	}
	r = &g->roots.items[node - g->ix.n];
	if (r->kind != ROOT_REGISTERS)
		return word_in(g, r->start, r->end, block, ret);
	t = &g->sp->threads[r->thread];
	for (uint32_t i = 0; i < thread_words(t); i++)
		if (index_find(&g->ix, thread_word(t, i)) == block) {
			*ret = i;
			return true;
		}
	return false;
}
