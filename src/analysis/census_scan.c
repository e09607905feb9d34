/* SPDX-License-Identifier: MIT */
#include "analysis/census_scan.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"

enum {
	JOBS = 2,
	THREAD_MIN = 4 << 20,	/* smaller heaps are not worth a thread */
	SLOTS_MIN = 1 << 10,
};

/* Bytes that can be read in one piece. */
struct piece {
	const uint8_t *bytes;
	vaddr start;
	uint64_t n;
};

struct job {
	const struct census_input *in;
	const struct shape_space *space;
	const struct piece *pieces;
	size_t n_pieces;
	vaddr from, to;		/* blocks that start there */
	uint32_t *of;
	struct scan_keys keys;

	uint32_t first;		/* number of its first block; 0 none */
	size_t piece;		/* of the last block */
};

/* ---- keys ---- */

static void keys_init(struct scan_keys *k)
{
	*k = (struct scan_keys){ .n_slots = SLOTS_MIN };
	k->slots = mem_zalloc(k->n_slots * sizeof(*k->slots));
	MEM_PUSH(k->items, k->n, k->cap) = (struct scan_key){ 0 };
}

void scan_keys_fini(struct scan_keys *k)
{
	free(k->items);
	free(k->slots);
	*k = (struct scan_keys){ 0 };
}

static bool same_key(const struct scan_key *a, const struct scan_key *b)
{
	return a->first == b->first && a->type == b->type &&
	       a->content == b->content && a->shape.size == b->shape.size &&
	       a->shape.words == b->shape.words &&
	       a->shape.kinds[0] == b->shape.kinds[0] &&
	       a->shape.kinds[1] == b->shape.kinds[1];
}

static uint64_t mixed(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

static size_t hash_of(const struct scan_key *k)
{
	uint64_t h = mixed(k->first, k->type);

	h = mixed(h, k->shape.kinds[0]);
	h = mixed(h, k->shape.kinds[1]);
	h = mixed(h, (uint64_t)k->content << 32 | k->shape.size);
	return (size_t)(h ^ h >> 32);
}

static uint32_t *slot_of(const struct scan_keys *k, const struct scan_key *key)
{
	size_t at = hash_of(key) & (k->n_slots - 1);

	while (k->slots[at] && !same_key(&k->items[k->slots[at]], key))
		at = (at + 1) & (k->n_slots - 1);
	return &k->slots[at];
}

static void more_slots(struct scan_keys *k)
{
	if (k->n * 2 < k->n_slots)
		return;
	free(k->slots);
	k->n_slots *= 2;
	k->slots = mem_zalloc(k->n_slots * sizeof(*k->slots));
	for (uint32_t i = 1; i < k->n; i++)
		*slot_of(k, &k->items[i]) = i;
}

/* The number of a key, with its blocks and bytes counted. */
static uint32_t add_key(struct scan_keys *k, const struct scan_key *key)
{
	uint32_t *slot = slot_of(k, key);
	uint32_t ret = *slot;

	if (!ret && k->n < SCAN_KEYS) {
		ret = *slot = (uint32_t)k->n;
		MEM_PUSH(k->items, k->n, k->cap) = *key;
		more_slots(k);
		return ret;
	}
	k->items[ret].blocks += key->blocks;
	k->items[ret].bytes += key->bytes;
	return ret;
}

/* ---- one block ---- */

/* The first words, and what they are. */
static void look(const struct job *j, const uint8_t *bytes, uint64_t n,
		 struct scan_key *key)
{
	unsigned word = j->space->word;
	uint64_t v[4] = { 0 };

	key->shape.words = (uint32_t)min_u64(n / word, SHAPE_WORDS);
	for (unsigned i = 0; i < key->shape.words; i++) {
		uint64_t value = load_word(bytes + i * word, word);

		shape_set(&key->shape, i, shape_word(j->space, value));
		if (i < 4)
			v[i] = value;
	}
	if (shape_kind(&key->shape, 0) == WORD_MODULE) {
		key->first = v[0];
		return;
	}
	/* A Python object, and one behind the collector's header. */
	for (unsigned i = 0; i < 4; i += 2)
		if (v[i] && v[i] < UINT64_C(1) << 32 &&
		    shape_kind(&key->shape, i + 1) == WORD_MODULE) {
			key->type = v[i + 1];
			return;
		}
}

static uint32_t key_of_block(struct job *j, const struct block *b,
			     const uint8_t *bytes, uint64_t n)
{
	struct scan_key key = { .blocks = 1, .bytes = b->size };

	key.shape.size = shape_size(b->usable);
	look(j, bytes, n, &key);
	if (!key.first && !key.type)
		key.content = content_of(j->space, bytes, b->usable, n,
					 &key.shape);
	if (key.content != CONTENT_NONE)
		key.shape = (struct shape){ .size = 0 };
	return add_key(&j->keys, &key);
}

/* What can be read of a block; 0 if nothing. */
static uint64_t bytes_of(struct job *j, const struct block *b,
			 const uint8_t **ret)
{
	const struct piece *p;

	while (j->piece < j->n_pieces &&
	       j->pieces[j->piece].start + j->pieces[j->piece].n <= b->addr)
		j->piece++;
	if (j->piece == j->n_pieces || j->pieces[j->piece].start > b->addr)
		return 0;
	p = &j->pieces[j->piece];
	*ret = p->bytes + (b->addr - p->start);
	return min_u64(b->usable, p->n - (b->addr - p->start));
}

static void add_block(struct job *j, const struct block *b, uint32_t number)
{
	const uint8_t *bytes = NULL;
	uint64_t n = bytes_of(j, b, &bytes);

	j->of[number] = key_of_block(j, b, bytes, n);
}

static void run_only(struct job *j)
{
	uint32_t number = 0;
	struct block b;

	while (census_next_only(j->in, &number, &b))
		add_block(j, &b, number);
}

static void *run_job(void *arg)
{
	struct job *j = arg;
	const struct index *ix = j->in->ix;
	struct heap_iter it;
	struct block b;

	heap_iter_range(&it, j->in->heap, j->from, j->to);
	while (heap_iter_next(&it, &b)) {
		uint32_t number;

		if (b.state != BLOCK_USED || b.addr < j->from ||
		    b.addr >= j->to)
			continue;
		number = index_number(ix, b.addr - ix->base);
		if (!j->first)
			j->first = number;
		add_block(j, &b, number);
	}
	return NULL;
}

/* ---- all of them ---- */

static void add_pieces(struct piece **pieces, size_t *n, size_t *cap,
		       struct space *sp, vaddr from, vaddr to)
{
	while (from < to) {
		uint64_t bytes;
		const uint8_t *p = space_view_max(sp, from, &bytes);
		size_t seg;

		if (p) {
			bytes = min_u64(bytes, to - from);
			MEM_PUSH(*pieces, *n, *cap) =
				(struct piece){ p, from, bytes };
			from += bytes;
			continue;
		}
		/* On to where there may be something again. */
		seg = space_first_seg(sp, from);
		if (seg == sp->n_segs)
			return;
		from = from < sp->segs[seg].start ? sp->segs[seg].start
						  : sp->segs[seg].end;
	}
}

static struct piece *find_pieces(const struct census_input *in, size_t *ret_n)
{
	struct piece *pieces = NULL;
	size_t cap = 0;

	*ret_n = 0;
	for (size_t i = 0; i < in->heap->n_extents; i++) {
		const struct heap_extent *x = &in->heap->extents[i];

		if (x->kind == EXTENT_BLOCKS)
			/* The last block may have a word behind the end. */
			add_pieces(&pieces, ret_n, &cap, in->sp,
				   x->start + x->user_off,
				   x->end + x->overlap);
		else if (x->kind == EXTENT_MMAPPED)
			add_pieces(&pieces, ret_n, &cap, in->sp, x->user,
				   x->end - x->tail);
	}
	return pieces;
}

/* Half of the blocks' bytes lie before it; 0 if they are few. */
static vaddr find_middle(const struct heap *h)
{
	uint64_t sum = 0, half;

	for (size_t i = 0; i < h->n_extents; i++)
		if (h->extents[i].kind == EXTENT_BLOCKS)
			sum += h->extents[i].end - h->extents[i].start;
	if (sum < THREAD_MIN)
		return 0;
	half = sum / 2;
	for (size_t i = 0; i < h->n_extents; i++) {
		const struct heap_extent *x = &h->extents[i];

		if (x->kind != EXTENT_BLOCKS)
			continue;
		if (half < x->end - x->start)
			return x->start + half;
		half -= x->end - x->start;
	}
	return 0;
}

static void run(struct job *jobs, size_t n)
{
	pthread_t thread;
	bool started = n == 2 &&
		!pthread_create(&thread, NULL, run_job, &jobs[1]);

	run_job(&jobs[0]);
	if (started)
		pthread_join(thread, NULL);
	else if (n == 2)
		run_job(&jobs[1]);
}

/* The second job's keys get the numbers of the first, or new ones. */
static void join(struct job *jobs)
{
	struct scan_keys *from = &jobs[1].keys;
	uint32_t *to = mem_alloc(from->n * sizeof(*to));
	uint32_t n = jobs[1].in->ix->n;

	to[0] = 0;
	for (uint32_t i = 1; i < from->n; i++)
		to[i] = add_key(&jobs[0].keys, &from->items[i]);
	jobs[0].keys.items[0].blocks += from->items[0].blocks;
	jobs[0].keys.items[0].bytes += from->items[0].bytes;
	for (uint32_t i = jobs[1].first; i && i < n; i++)
		jobs[1].of[i] = to[jobs[1].of[i]];
	free(to);
}

void scan_blocks(struct scan_keys *keys, uint32_t *of,
		 const struct census_input *in)
{
	struct shape_space space;
	size_t n_pieces, n;
	struct piece *pieces = find_pieces(in, &n_pieces);
	vaddr middle = in->only ? 0 : find_middle(in->heap);
	struct job jobs[JOBS];

	shape_space_init(&space, in->ix, in->sp);
	jobs[0] = (struct job){
		.in = in, .space = &space, .pieces = pieces,
		.n_pieces = n_pieces, .to = UINT64_MAX, .of = of,
	};
	n = 1;
	if (middle) {
		jobs[1] = jobs[0];
		jobs[0].to = jobs[1].from = middle;
		n = 2;
	}
	for (size_t i = 0; i < n; i++)
		keys_init(&jobs[i].keys);
	if (in->only)
		run_only(&jobs[0]);
	else
		run(jobs, n);
	if (n == 2) {
		join(jobs);
		scan_keys_fini(&jobs[1].keys);
	}
	*keys = jobs[0].keys;
	shape_space_fini(&space);
	free(pieces);
}
