/* SPDX-License-Identifier: MIT */
#include "analysis/usage.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/shape.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "corewalk/module.h"
#include "corewalk/planes.h"

/* Sizes are multiples of 8, but for a rest at the end of an extent. */
enum {
	UNIT = 8, SLOTS = USAGE_EXACT / UNIT, BUCKETS = 64,
	MAX_RESTS = 1000,	/* beyond, they go to the buckets too */
};

/* Of one allocator. */
struct counter {
	uint32_t allocator;
	uint64_t n[BLOCK_STATES][SLOTS];	/* blocks of slot * UNIT */
	uint64_t n_mmapped[SLOTS];
	vaddr used[SLOTS], any[SLOTS];		/* examples: user addresses */
	struct usage_class large[BUCKETS];	/* by log2 of the size */
	struct usage_class *rests;		/* owned; of odd sizes */
	size_t n_rests, cap_rests;
};

static void add_tally(struct tally *t, uint64_t blocks, uint64_t bytes)
{
	t->blocks += blocks;
	t->bytes += bytes;
}

/* Blocks of one class and state. */
static void add_to_class(struct usage_class *c, enum block_state state,
			 bool mmapped, uint64_t blocks, uint64_t bytes)
{
	if (!blocks)
		return;
	if (mmapped)
		add_tally(&c->mmapped, blocks, bytes);
	else
		add_tally(&c->state[state], blocks, bytes);
	if (state == BLOCK_USED)
		add_tally(&c->used, blocks, bytes);
	else if (block_state_free(state))
		add_tally(&c->free, blocks, bytes);
}

/* The class of a size that has no slot. */
static struct usage_class *other_class(struct counter *c, uint64_t size)
{
	struct usage_class *ret;
	int bucket;

	if (size >= USAGE_EXACT || c->n_rests == MAX_RESTS) {
		bucket = 63 - __builtin_clzll(size);
		ret = &c->large[bucket];
		ret->allocator = c->allocator;
		ret->min = UINT64_C(1) << bucket;
		ret->max = ret->min * 2 - 1;
		return ret;
	}
	for (size_t i = 0; i < c->n_rests; i++)
		if (c->rests[i].min == size)
			return &c->rests[i];
	ret = &MEM_PUSH(c->rests, c->n_rests, c->cap_rests);
	*ret = (struct usage_class){
		.allocator = c->allocator, .min = size, .max = size,
	};
	return ret;
}

static void add_other(struct counter *c, uint64_t size,
		      enum block_state state, bool mmapped, vaddr addr)
{
	struct usage_class *k = other_class(c, size);

	if (!k->example || (state == BLOCK_USED && !k->used.blocks))
		k->example = addr;
	add_to_class(k, state, mmapped, 1, size);
}

static inline void add_block(struct counter *c, uint64_t size,
			     enum block_state state, vaddr addr)
{
	uint64_t slot = size / UNIT;

	if (slot >= SLOTS || size % UNIT) {
		add_other(c, size, state, false, addr);
		return;
	}
	if (!c->n[state][slot]++) {
		if (!c->any[slot])
			c->any[slot] = addr;
		if (state == BLOCK_USED && !c->used[slot])
			c->used[slot] = addr;
	}
}

static void add_mmapped(struct counter *c, const struct heap_extent *x)
{
	uint64_t size = x->end - x->start;
	uint64_t slot = size / UNIT;

	if (slot >= SLOTS || size % UNIT) {
		add_other(c, size, BLOCK_USED, true, x->user);
		return;
	}
	c->n_mmapped[slot]++;
	if (!c->used[slot])
		c->used[slot] = x->user;
}

/* A block's size is known when the next start is met. */
static void count_extent(struct counter *c, const struct heap_extent *x)
{
	uint64_t last = planes_next(x, 0), end = planes_granules(x);
	enum block_state state;
	vaddr base = x->start + x->user_off;

	if (last == end)
		return;
	state = planes_state(x, last);
	for (size_t w = last >> 6; w < x->n_words; w++) {
		uint64_t bits = x->planes[0][w];
		uint64_t odd = planes_odd(x, w);

		if (w == last >> 6)
			bits &= ~UINT64_C(1) << (last & 63);
		for (; bits; bits &= bits - 1) {
			unsigned b = (unsigned)__builtin_ctzll(bits);
			uint64_t g = (uint64_t)w << 6 | b;

			if (g >= end)
				break;
			add_block(c, (g - last) << x->shift, state,
				  base + (last << x->shift));
			state = odd >> b & 1 ? planes_state(x, g) : BLOCK_USED;
			last = g;
		}
	}
	add_block(c, x->end - planes_addr(x, last), state,
		  base + (last << x->shift));
}

static void add_class(struct usage *u, const struct usage_class *k)
{
	struct usage_class *t = &u->total;

	t->min = u->n_classes ? min_u64(t->min, k->min) : k->min;
	t->max = max_u64(t->max, k->max);
	MEM_PUSH(u->classes, u->n_classes, u->cap_classes) = *k;
	for (int s = 0; s < BLOCK_STATES; s++)
		add_tally(&t->state[s], k->state[s].blocks, k->state[s].bytes);
	add_tally(&t->mmapped, k->mmapped.blocks, k->mmapped.bytes);
	add_tally(&t->used, k->used.blocks, k->used.bytes);
	add_tally(&t->free, k->free.blocks, k->free.bytes);
}

/* Most slots have none. */
static bool in_slot(const struct counter *c, uint64_t slot)
{
	uint64_t blocks = c->n_mmapped[slot];

	for (int s = 0; s < BLOCK_STATES; s++)
		blocks += c->n[s][slot];
	return blocks != 0;
}

static void add_slot(struct usage *u, const struct counter *c, uint64_t slot)
{
	uint64_t size = slot * UNIT;
	struct usage_class k = {
		.allocator = c->allocator, .min = size, .max = size,
		.example = c->used[slot] ? c->used[slot] : c->any[slot],
	};

	for (int s = 0; s < BLOCK_STATES; s++)
		add_to_class(&k, (enum block_state)s, false, c->n[s][slot],
			     c->n[s][slot] * size);
	add_to_class(&k, BLOCK_USED, true, c->n_mmapped[slot],
		     c->n_mmapped[slot] * size);
	add_class(u, &k);
}

static int compare_class(const struct usage_class *c, uint32_t allocator,
			 uint64_t min)
{
	return ORDER(c->allocator, allocator) ?: ORDER(c->min, min);
}

int usage_order(const void *a, const void *b)
{
	const struct usage_class *x = a, *y = b;

	return compare_class(x, y->allocator, y->min);
}

static void make_classes(struct usage *u, const struct counter *c)
{
	for (uint64_t slot = 0; slot < SLOTS; slot++)
		if (in_slot(c, slot))
			add_slot(u, c, slot);
	for (size_t i = 0; i < c->n_rests; i++)
		add_class(u, &c->rests[i]);
	for (int i = 0; i < BUCKETS; i++)
		if (c->large[i].max)
			add_class(u, &c->large[i]);
}

static bool is_wanted(const struct usage *u, const bool *wanted,
		      uint32_t arena)
{
	if (wanted)
		return wanted[arena];
	return u->arena == USAGE_ALL_ARENAS || u->arena == arena;
}

static void count_allocator(struct usage *u, const struct heap *h,
			    uint32_t allocator, const bool *wanted)
{
	struct counter *c = mem_zalloc(sizeof(*c));

	c->allocator = allocator;
	for (size_t i = 0; i < h->n_extents; i++) {
		const struct heap_extent *x = &h->extents[i];

		if (h->arenas[x->arena].allocator != allocator ||
		    !is_wanted(u, wanted, x->arena))
			continue;
		if (x->kind == EXTENT_MMAPPED)
			add_mmapped(c, x);
		else if (x->kind == EXTENT_BLOCKS)
			count_extent(c, x);
	}
	make_classes(u, c);
	free(c->rests);
	free(c);
}

static void count_all(struct usage *u, const struct heap *h, uint32_t arena,
		      const bool *wanted)
{
	*u = (struct usage){ .arena = arena };
	for (size_t i = 0; i < h->n_allocators; i++)
		count_allocator(u, h, (uint32_t)i, wanted);
	if (!u->n_classes)
		return;
	SORT(u->classes, u->n_classes, usage_order);
	u->total.example = u->classes[0].example;
}

void usage_init(struct usage *u, const struct heap *h, uint32_t arena)
{
	count_all(u, h, arena, NULL);
}

void usage_init_some(struct usage *u, const struct heap *h,
		     const bool *wanted)
{
	count_all(u, h, USAGE_ALL_ARENAS, wanted);
}

void usage_fini(struct usage *u)
{
	free(u->classes);
	*u = (struct usage){ 0 };
}

/* How many classes come before a size, or begin with it. */
static size_t classes_up_to(const struct usage *u, uint32_t allocator,
			    uint64_t size)
{
	return BISECT(middle, 0, u->n_classes,
		      compare_class(&u->classes[middle], allocator, size) <= 0);
}

size_t usage_find(const struct usage *u, uint32_t allocator, uint64_t size)
{
	size_t n = classes_up_to(u, allocator, size);

	return n ? n - 1 : 0;
}

static void add_used(struct usage_class *c, uint64_t blocks, uint64_t bytes)
{
	add_tally(&c->used, blocks, bytes);
	add_tally(&c->state[BLOCK_USED], blocks, bytes);
}

/* The class of a size, made if there is none. */
static struct usage_class *class_of(struct usage *u, uint32_t allocator,
				    uint64_t size)
{
	struct usage_class new = {
		.allocator = allocator, .min = size, .max = size,
	};
	size_t at = classes_up_to(u, allocator, size), n;

	if (at && u->classes[at - 1].allocator == allocator &&
	    u->classes[at - 1].max >= size)
		return &u->classes[at - 1];
	if (size >= USAGE_EXACT) {
		new.min = UINT64_C(1) << (63 - __builtin_clzll(size));
		new.max = new.min * 2 - 1;
	}
	(void)MEM_PUSH(u->classes, u->n_classes, u->cap_classes);
	n = u->n_classes - 1 - at;
	memmove(&u->classes[at + 1], &u->classes[at], n * sizeof(new));
	u->classes[at] = new;
	return &u->classes[at];
}

void usage_resize(struct usage *u, uint32_t allocator, uint64_t from,
		  uint64_t to)
{
	size_t at = usage_find(u, allocator, from);

	if (!u->n_classes || !to || !u->classes[at].used.blocks)
		return;
	add_used(&u->classes[at], UINT64_MAX, -from);
	add_used(class_of(u, allocator, to), 1, to);
	add_used(&u->total, 0, to - from);
}

static bool same_tally(struct tally a, struct tally b)
{
	return a.blocks == b.blocks && a.bytes == b.bytes;
}

bool usage_check(const struct usage *u, const struct heap *h)
{
	struct tally state[BLOCK_STATES] = { { 0 } }, mmapped = { 0 };

	for (uint32_t i = 0; i < h->n_arenas; i++) {
		const struct arena *a = &h->arenas[i];

		if (u->arena != USAGE_ALL_ARENAS && u->arena != i)
			continue;
		for (int s = 0; s < BLOCK_STATES; s++)
			add_tally(&state[s], a->state[s].blocks,
				  a->state[s].bytes);
		add_tally(&mmapped, a->mmapped.blocks, a->mmapped.bytes);
	}
	for (int s = 0; s < BLOCK_STATES; s++)
		if (!same_tally(state[s], u->total.state[s]))
			return false;
	return same_tally(mmapped, u->total.mmapped);
}

/* ---- first words ---- */

static enum look_word look_word(struct space *sp, struct heap *h,
				uint64_t value)
{
	const struct heap_extent *x;

	if (!value)
		return LOOK_ZERO;
	if (value < 65536)
		return LOOK_SMALL;
	if (shape_is_fill(value, sp->word))
		return LOOK_REPEATED;
	x = heap_extent_at(h, value);
	if (x && (x->kind == EXTENT_BLOCKS || x->kind == EXTENT_MMAPPED))
		return LOOK_BLOCK;
	if (space_module(sp, value))
		return LOOK_CODE;
	if (space_seg(sp, value))
		return LOOK_ADDRESS;
	return shape_is_text(value, sp->word) ? LOOK_TEXT : LOOK_OTHER;
}

struct look usage_look(struct space *sp, struct heap *h,
		       const struct block *b)
{
	struct look look = { { LOOK_NONE, LOOK_NONE }, { 0, 0 } };

	for (unsigned i = 0; i < 2; i++) {
		uint64_t value;

		if ((i + 1) * sp->word > b->usable ||
		    !space_word(sp, b->addr + i * sp->word, &value))
			break;
		look.word[i] = value;
		look.kind[i] = look_word(sp, h, value);
	}
	return look;
}

bool look_alike(const struct look *a, const struct look *b)
{
	for (int i = 0; i < 2; i++) {
		if (a->kind[i] != b->kind[i])
			return false;
		if ((a->kind[i] == LOOK_CODE || a->kind[i] == LOOK_REPEATED) &&
		    a->word[i] != b->word[i])
			return false;
	}
	return true;
}

static void add_name(struct str *s, const struct space *sp, uint64_t value)
{
	const struct module *m = space_module(sp, value);
	const char *name = m && m->file < sp->n_files ?
		module_name(sp, m) : "?";

	str_printf(s, "0x%" PRIx64 " in ", value);
	str_add_escaped(s, name, strnlen(name, 20));
}

static void add_word(struct str *s, const struct space *sp,
		     enum look_word kind, uint64_t value)
{
	char bytes[8];

	switch (kind) {
	case LOOK_NONE:
		break;
	case LOOK_ZERO:
	case LOOK_SMALL:
		str_printf(s, "%" PRIu64, value);
		break;
	case LOOK_TEXT:
		memcpy(bytes, &value, sizeof(bytes));
		str_addc(s, '"');
		str_add_escaped(s, bytes, strnlen(bytes, sizeof(bytes)));
		str_addc(s, '"');
		break;
	case LOOK_REPEATED:
		str_printf(s, "bytes 0x%02x", (unsigned)(value & 0xff));
		break;
	case LOOK_CODE:
		add_name(s, sp, value);
		break;
	case LOOK_BLOCK:
		str_printf(s, "block 0x%" PRIx64, value);
		break;
	case LOOK_ADDRESS:
	case LOOK_OTHER:
		str_printf(s, "0x%" PRIx64, value);
		break;
	}
}

void look_text(char ret[LOOK_TEXT_MAX], const struct space *sp,
	       const struct look *look)
{
	struct str s;

	str_init(&s);
	add_word(&s, sp, look->kind[0], look->word[0]);
	if (look->kind[1] != LOOK_NONE &&
	    !(look->kind[0] == LOOK_REPEATED &&
	      look->kind[1] == LOOK_REPEATED &&
	      look->word[0] == look->word[1])) {
		str_adds(&s, s.len ? ", " : "");
		add_word(&s, sp, look->kind[1], look->word[1]);
	}
	snprintf(ret, LOOK_TEXT_MAX, "%s", s.text ? s.text : "");
	str_fini(&s);
}
