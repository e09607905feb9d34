/* SPDX-License-Identifier: MIT */
#include "analysis/weak.h"

#include "base/mem.h"

enum {
	SLACK_BLOCKS = 50,	/* fewer say nothing about a class */
	SLACK_PERCENT = 10,	/* as many starts: the word may be in use */
	TEXT_LOOK = 16,		/* printable bytes that make a text */
	STRING_LOCAL = 15,	/* longest text inside a std::string */
	/* Less is left of a block beyond what was asked for: unsplit, too. */
	SLACK_MAX = 24 + 16,
	/* What is left of a chunk and too small for one: below MINSIZE, 32. */
	SPLIT_LEFT = 16,
};

/* What a word can be if it is no address of a module. */
enum form {
	FORM_OTHER,
	FORM_HEAP,
	FORM_ZERO,
	FORM_SMALL,
	FORMS,
	FORM_TEXT = FORMS * FORMS,	/* of a block: it begins with a text */
	FORM_ANY,			/* all of one size */
};

/* ---- classes ---- */

/* Modules with no heap between them are one range. */
static bool heap_between(const struct index *ix, vaddr start, vaddr end)
{
	size_t first, last;

	if (end <= ix->base || start >= ix->base + ix->span)
		return false;
	first = start <= ix->base ? 0 :
		(start - ix->base) >> INDEX_UNIT_SHIFT;
	last = min_u64((end - ix->base) >> INDEX_UNIT_SHIFT,
		       ix->n_units - 1);
	for (size_t u = first; u <= last; u++)
		if (ix->units[u])
			return true;
	return false;
}

void weak_census_init(struct weak_census *c, const struct index *ix,
		      const struct space *sp)
{
	*c = (struct weak_census){ .ix = ix };
	c->classes = mem_zalloc(WEAK_CLASSES * sizeof(*c->classes));
	for (size_t i = 0; i < sp->n_modules; i++) {
		const struct module *m = &sp->modules[i];
		struct weak_range *last = c->n_code ?
			&c->code[c->n_code - 1] : NULL;

		if (last && m->start - last->end < GIB &&
		    !heap_between(ix, last->end, m->start))
			last->end = max_u64(last->end, m->end);
		else
			MEM_PUSH(c->code, c->n_code, c->cap_code) =
				(struct weak_range){ m->start, m->end };
	}
}

void weak_census_fini(struct weak_census *c)
{
	free(c->classes);
	free(c->code);
	*c = (struct weak_census){ 0 };
}

static bool is_text(const uint8_t *bytes, uint64_t n)
{
	if (n < TEXT_LOOK)
		return false;
	for (int i = 0; i < TEXT_LOOK; i++)
		if (bytes[i] < 0x20 || bytes[i] > 0x7e)
			return false;
	return true;
}

static bool in_code(const struct weak_census *c, vaddr addr)
{
	size_t lo = BISECT(mid, 0, c->n_code, c->code[mid].end <= addr);

	return lo < c->n_code && addr >= c->code[lo].start;
}

/*
 * A small number, maybe of four bytes: what pads it is stale, and may make it
 * look like an address at a multiple of 4 GB, where a heap can be.
 */
static bool is_number(uint64_t v)
{
	return (uint32_t)v < 65536;
}

static enum form form_of(const struct weak_census *c, uint64_t v)
{
	if (!v)
		return FORM_ZERO;
	if (is_number(v))
		return FORM_SMALL;
	v -= c->ix->base;
	return v < c->ix->span && c->ix->units[v >> INDEX_UNIT_SHIFT]
		? FORM_HEAP : FORM_OTHER;
}

/*
 * What tells classes of one size apart: an address in a module, or the forms
 * of the first two words.
 */
static uint64_t first_of(const struct weak_census *c,
			 const struct weak_block *b)
{
	uint64_t v[2];

	if (b->n < 2 * b->word)
		return FORM_OTHER;
	v[0] = load_word(b->bytes, b->word);
	v[1] = load_word(b->bytes + b->word, b->word);
	if (!is_number(v[0]) && !(v[0] & (b->word - 1)) && in_code(c, v[0]))
		return v[0];
	if (is_text(b->bytes, b->n))
		return FORM_TEXT;
	return form_of(c, v[0]) * FORMS + form_of(c, v[1]);
}

/* Where a class is, or would be. */
static struct weak_class *class_place(const struct weak_census *c,
				      uint64_t first, uint64_t size)
{
	uint64_t hash = (first + size * UINT64_C(0xd6e8feb86659fd93)) *
			UINT64_C(0x9e3779b97f4a7c15);
	uint32_t at = (uint32_t)(hash >> 50);

	while (c->classes[at].size && (c->classes[at].size != size ||
				       c->classes[at].first != first))
		at = (at + 1) & (WEAK_CLASSES - 1);
	return &c->classes[at];
}

/* NULL if there are too many. */
static struct weak_class *class_get(struct weak_census *c, uint64_t first,
				    uint64_t size)
{
	struct weak_class *class = class_place(c, first, size);

	if (class->size)
		return class;
	if (c->n > WEAK_CLASSES / 4 * 3)
		return NULL;
	c->n++;
	class->first = first;
	class->size = size;
	return class;
}

/* The word t places before the block's end; false if it is not there. */
static bool tail_word(const struct weak_census *c, const struct weak_block *b,
		      unsigned t, uint64_t *ret)
{
	uint64_t back = c->ix->own + (t + 1) * (uint64_t)b->word;

	/* The first word says what class it is. */
	if (back + b->word > b->size || b->size - back + b->word > b->n)
		return false;
	*ret = load_word(b->bytes + (b->size - back), b->word);
	return true;
}

static bool is_block(const struct index *ix, uint64_t value)
{
	uint64_t off = value - ix->base;

	return index_starts(ix, off) && index_used(ix, index_number(ix, off));
}

/* The same for the first bytes: some programs point behind a header. */
static bool begins_block(const struct index *ix, uint64_t value)
{
	return is_block(ix, value & ~((UINT64_C(1) << ix->shift) - 1));
}

void weak_census_block(struct weak_census *c, const struct weak_block *b)
{
	struct weak_class *class =
		class_get(c, first_of(c, b), b->size);
	uint64_t value;

	if (!class)
		return;
	class->blocks++;
	for (unsigned t = 0; t < WEAK_TAIL; t++) {
		if (!tail_word(c, b, t, &value))
			return;
		if (begins_block(c->ix, value))
			class->starts[t]++;
		else if (value)
			class->others[t]++;
	}
}

static void class_add(struct weak_census *c, const struct weak_class *from,
		      uint64_t first)
{
	struct weak_class *to = class_get(c, first, from->size);

	if (!to)
		return;
	to->blocks += from->blocks;
	for (unsigned t = 0; t < WEAK_TAIL; t++) {
		to->starts[t] += from->starts[t];
		to->others[t] += from->others[t];
	}
}

void weak_census_add(struct weak_census *c, const struct weak_census *other)
{
	for (uint32_t i = 0; i < WEAK_CLASSES; i++)
		if (other->classes[i].size)
			class_add(c, &other->classes[i],
				  other->classes[i].first);
}

static void add_sizes(struct weak_census *c)
{
	for (uint32_t i = 0; i < WEAK_CLASSES; i++)
		if (c->classes[i].size && c->classes[i].first != FORM_ANY)
			class_add(c, &c->classes[i], FORM_ANY);
}

static bool tail_is_slack(const struct weak_class *class, unsigned t)
{
	return (uint64_t)class->starts[t] * 100 <
	       (uint64_t)class->blocks * SLACK_PERCENT &&
	       class->others[t] >= class->starts[t];
}

/* Are blocks of the class often those of the next smaller one, not split? */
static bool may_be_unsplit(const struct weak_census *c,
			   const struct weak_class *class)
{
	return class->size > SPLIT_LEFT &&
	       class_place(c, class->first, class->size - SPLIT_LEFT)->blocks
	       >= class->blocks;
}

void weak_census_done(struct weak_census *c)
{
	add_sizes(c);
	/* Only glibc's blocks reach into the next one's first word. */
	if (!c->ix->own)
		return;
	for (uint32_t i = 0; i < WEAK_CLASSES; i++) {
		struct weak_class *class = &c->classes[i];

		if (class->blocks < SLACK_BLOCKS || !tail_is_slack(class, 0))
			continue;
		class->slack = 1;
		if (!may_be_unsplit(c, class))
			continue;
		while (class->slack < WEAK_TAIL &&
		       tail_is_slack(class, class->slack))
			class->slack++;
	}
}

const struct weak_class *weak_class_of(const struct weak_census *c,
				       const struct weak_block *b)
{
	const struct weak_class *class =
		class_place(c, first_of(c, b), b->size);

	return class->size ? class : NULL;
}

bool weak_size_links(const struct weak_census *c, uint64_t size)
{
	const struct weak_class *class = class_place(c, FORM_ANY, size);

	return (uint64_t)class->starts[0] * 2 >= class->blocks;
}

/* ---- strings and vectors ---- */

/*
 * May the program use so many bytes of the block that starts at off?  In
 * constant time, however long the block is.
 */
static bool usable(const struct index *ix, uint64_t off, uint64_t bytes)
{
	uint64_t last = off + bytes + ix->own - 1;

	return bytes && last < ix->span &&
	       index_number(ix, last) == index_number(ix, off);
}

/* Was the block that starts at off asked for so many bytes? */
static bool fits(const struct index *ix, uint64_t off, uint64_t bytes)
{
	uint64_t size = index_near(ix, off);

	/* Mostly there is no need to go far, which costs a cache line. */
	if (size)
		return bytes && bytes + ix->own <= size &&
		       bytes + SLACK_MAX + ix->own > size;
	return usable(ix, off, bytes) && !usable(ix, off, bytes + SLACK_MAX);
}

static bool text_lengths(uint64_t length, uint64_t capacity)
{
	return capacity > STRING_LOCAL && length <= capacity &&
	       capacity < UINT64_C(1) << 40;
}

/* A text of len bytes, at most 15, ends in a zero. */
static bool local_text(const uint8_t *text, uint64_t len)
{
	return len <= STRING_LOCAL && !text[len];
}

bool weak_in_string(const struct index *ix, const struct weak_word *w,
		    vaddr *ret_end)
{
	const uint8_t *p = w->bytes;

	*ret_end = 0;
	if (w->before < 16)
		return false;
	/* The first word of a short text. */
	if (load_u64(p - 16) == w->addr && w->after >= 16 &&
	    local_text(p, load_u64(p - 8)))
		return true;
	if (w->before < 24)
		return false;
	/* Its second word. */
	if (load_u64(p - 24) == w->addr - 8)
		return local_text(p - 8, load_u64(p - 16));
	/* The second word of the space of a long one. */
	if (!text_lengths(load_u64(p - 16), load_u64(p - 8)))
		return false;
	uint64_t off = load_u64(p - 24) - ix->base;

	*ret_end = load_u64(p - 24) + load_u64(p - 16);
	return index_starts(ix, off) &&
	       index_used(ix, index_number(ix, off)) &&
	       fits(ix, off, load_u64(p - 8) + 1);
}

bool weak_string_head(const struct index *ix, const struct weak_word *w,
		      uint64_t off)
{
	if (w->after < 24 ||
	    !text_lengths(load_u64(w->bytes + 8), load_u64(w->bytes + 16)))
		return false;
	return fits(ix, off, load_u64(w->bytes + 16) + 1);
}

bool weak_tree_follows(const struct index *ix, const struct weak_word *w,
		       vaddr *ret_root)
{
	vaddr head = w->addr + 8;
	uint64_t root, left, right, count;

	/* The head is red, which is 0; its colour has four bytes. */
	if (w->after < 48 || load_u32(w->bytes + 8))
		return false;
	root = load_u64(w->bytes + 16);
	left = load_u64(w->bytes + 24);
	right = load_u64(w->bytes + 32);
	count = load_u64(w->bytes + 40);
	*ret_root = root;
	if (!root || !count)
		return !root && !count && left == head && right == head;
	return is_block(ix, root) && is_block(ix, left) &&
	       is_block(ix, right);
}

bool weak_vector_head(const struct index *ix, const struct weak_word *w,
		      uint64_t off, struct weak_vector *ret)
{
	uint64_t start = ix->base + off, used, size;

	if (w->after < 24)
		return false;
	used = load_u64(w->bytes + 8) - start;
	size = load_u64(w->bytes + 16) - start;
	if (!size || used > size || size >= UINT64_C(1) << 40 ||
	    !fits(ix, off, size))
		return false;
	*ret = (struct weak_vector){ used, size };
	return used < size || usable(ix, off, size + 8);
}
