/* SPDX-License-Identifier: MIT */
#include "analysis/spread.h"

#include <string.h>

#include "analysis/kin.h"
#include "analysis/spread_in.h"
#include "base/mem.h"

enum {
	QUEUE_MIN = 1024,
	MAX_DEPTH = 16,		/* of arrays in arrays, values in values */
	MAX_QUEUE = 1 << 27,
	AHEAD = 16,		/* regions */
	PENDING = 32,		/* pointers; a power of two */
};

/*
 * Fields that may be read: of each word that can hold a pointer a few times,
 * and so many in any case.
 */
#define STEPS_LEAST (UINT64_C(1) << 22)

static uint64_t count_steps(const struct space *sp)
{
	uint64_t n = STEPS_LEAST;

	for (size_t i = 0; i < sp->n_segs; i++)
		if (sp->segs[i].flags & SEG_W)
			n += sp->segs[i].stored / 2;
	return n;
}

/* A pointer whose block is being fetched. */
struct pending {
	struct field field;
	vaddr addr;
	uint64_t value;
	uint8_t known;
};

/* A region as it is read. */
struct reading {
	struct spread *s;
	vaddr end;		/* of the region: what n = 0 extends to */
	uint8_t known;
	unsigned depth;
};

static void read_type(struct reading *r, vaddr addr, uint32_t type);

/* Between two modules, where the first block is: what points there is none. */
static void find_gap(struct spread *s)
{
	const struct space *sp = s->sp;
	vaddr first = index_addr(s->ix, 1);

	s->gap_end = UINT64_MAX;
	for (size_t i = 0; i < sp->n_modules; i++) {
		const struct module *m = &sp->modules[i];

		if (m->end <= first)
			s->gap = max_u64(s->gap, m->end);
		else
			s->gap_end = min_u64(s->gap_end, m->start);
	}
	s->gap_end = max_u64(s->gap, s->gap_end);
}

void spread_init(struct spread *s, struct space *sp, const struct index *ix,
		 struct symbols *symbols, struct dwarf_types *t,
		 const struct hints *hints)
{
	*s = (struct spread){ .sp = sp, .ix = ix, .symbols = symbols, .t = t,
			      .hints = hints };
	s->blocks = mem_map_huge((size_t)ix->n * sizeof(*s->blocks));
	s->steps = count_steps(sp);
	s->pending = mem_alloc(PENDING * sizeof(*s->pending));
	fields_init(&s->fields, t, hints);
	find_gap(s);
}

void spread_fini(struct spread *s)
{
	mem_unmap(s->blocks, (size_t)s->ix->n * sizeof(*s->blocks));
	free(s->queue);
	free(s->pending);
	map_fini(&s->inside);
	map_fini(&s->classes);
	fields_fini(&s->fields);
}

/* ---- the queue ---- */

static void grow_queue(struct spread *s)
{
	size_t cap = s->cap_queue ? 2 * s->cap_queue : QUEUE_MIN;
	struct region *queue = mem_alloc(cap * sizeof(*queue));

	for (size_t i = 0; i < s->n_queue; i++)
		queue[i] = s->queue[(s->head + i) & (s->cap_queue - 1)];
	free(s->queue);
	s->queue = queue;
	s->head = 0;
	s->cap_queue = cap;
}

void enqueue(struct spread *s, vaddr addr, uint32_t type, uint64_t n,
	     uint8_t known)
{
	if (s->n_queue >= MAX_QUEUE)
		return;
	if (s->n_queue == s->cap_queue)
		grow_queue(s);
	s->queue[(s->head + s->n_queue++) & (s->cap_queue - 1)] =
		(struct region){ addr, type, (uint32_t)min_u64(n, REGION_MAX) &
				 REGION_MAX, known & 15 };
}

/* ---- hints ---- */

static bool follow_hint(struct spread *s, const struct hint *h, vaddr base,
			uint64_t value)
{
	uint64_t size = dwarf_type_size(s->t, h->type), n = 0;
	struct claim c = { .value = value, .known = TYPE_HINT,
			   .type = h->to, .strict = true };
	const uint8_t *bytes = space_view(s->sp, base, size);

	if (!bytes || !hint_holds(h, bytes, size))
		return false;
	switch (h->kind) {
	case HINT_TEXT:
		c.type = SPREAD_TEXT;
		break;
	case HINT_COUNTED:
		if (!hint_number(&h->count, bytes, size, &n) || !n ||
		    n > UINT32_MAX)
			return false;
		c.n = (uint32_t)n;
		break;
	case HINT_INSIDE:
		c.value -= h->inside;
		break;
	case HINT_ONE:
		c.strict = h->next && !h->n_when && !h->tail;
		c.single = h->tail;
		break;
	}
	return claim(s, &c);
}

static void follow_hints(struct spread *s, const struct pending *p)
{
	const struct hint *hints = s->hints->items;

	for (uint32_t i = p->field.hint; i; i = hints[i].next)
		if (follow_hint(s, &hints[i], p->addr - hints[i].off,
				p->value))
			return;
}

/* ---- fields ---- */

static void follow_pending(struct spread *s)
{
	const struct pending *p = &s->pending[s->first_pending];
	const struct field *f = &p->field;

	s->first_pending = (s->first_pending + 1) % PENDING;
	s->n_pending--;
	if (f->hint) {
		follow_hints(s, p);
		return;
	}
	claim(s, &(struct claim){
		.value = p->value, .type = f->type,
		.known = f->flags & FIELD_NODE && p->known > TYPE_CONTAINER ?
			 TYPE_CONTAINER : p->known,
		.node = f->flags & FIELD_NODE,
		.unsure = f->flags & FIELD_IN_UNION,
	});
}

/* What is known of the block that a pointer leads to, and its first word. */
static void fetch_block(const struct spread *s, const struct pending *p)
{
	const void *bytes = space_view(s->sp, p->value, 8);

	__builtin_prefetch(&s->blocks[index_number(s->ix, p->value -
						   s->ix->base)]);
	if (bytes)
		__builtin_prefetch(bytes);
}

/*
 * A pointer into the heap waits until what is to be looked at has come: first
 * the index, by the middle of its way the block.
 */
static void met_pointer(struct reading *r, const struct field *f, vaddr addr,
			uint64_t value)
{
	struct spread *s = r->s;
	uint64_t off = value - s->ix->base;
	uint32_t unit;
	size_t last;

	if (off >= s->ix->span)
		return;
	unit = s->ix->units[off >> INDEX_UNIT_SHIFT];
	if (!unit || (s->only && !kin_may_have(s->only, off)))
		return;
	if ((int32_t)unit > 0)
		__builtin_prefetch(index_word_at(s->ix, unit, off));
	last = s->first_pending + s->n_pending;
	s->pending[last % PENDING] =
		(struct pending){ *f, addr, value, r->known };
	s->n_pending++;
	if (s->n_pending >= PENDING / 2)
		fetch_block(s, &s->pending[(last - PENDING / 2 + 1) %
					   PENDING]);
	if (s->n_pending == PENDING)
		follow_pending(s);
}

static void read_pointer(struct reading *r, const struct field *f, vaddr addr)
{
	uint64_t value;

	if (space_word(r->s->sp, addr, &value))
		met_pointer(r, f, addr, value);
}

/* n of a type that has nothing but pointers, from their bytes. */
static void read_plain(struct reading *r, vaddr addr, uint32_t type,
		       uint64_t n, const uint8_t *bytes)
{
	struct spread *s = r->s;
	const vaddr base = s->ix->base, span = s->ix->span;
	const uint64_t size = dwarf_type_size(s->t, type), end = n * size;
	const struct fields_of of = *fields_of(&s->fields, type);
	const struct field *f = s->fields.items + of.first;

	for (uint64_t at = 0; of.n && at < end; at += size)
		for (uint32_t i = 0; i < of.n; i++) {
			struct field field;
			uint64_t value;

			if (!s->steps) {
				s->exhausted = true;
				return;
			}
			s->steps--;
			memcpy(&value, bytes + at + f[i].off, sizeof(value));
			if (value - base >= span)
				continue;
			field = f[i];
			met_pointer(r, &field, addr + at + field.off, value);
			/* The list may have moved. */
			f = s->fields.items + of.first;
		}
}

/* n of a type, one after the other. */
static void read_row(struct reading *r, vaddr addr, uint32_t type, uint64_t n)
{
	struct spread *s = r->s;
	uint64_t size = dwarf_type_size(s->t, type);
	const uint8_t *bytes = NULL;

	if (s->sp->word == 8 && r->depth < MAX_DEPTH &&
	    fields_of(&s->fields, type)->plain)
		bytes = space_view(s->sp, addr, n * size);
	if (bytes) {
		read_plain(r, addr, type, n, bytes);
		return;
	}
	for (uint64_t i = 0; i < n && s->steps; i++)
		read_type(r, addr + i * size, type);
}

static void read_elements(struct reading *r, vaddr addr, uint32_t type,
			  uint64_t n)
{
	uint64_t size = dwarf_type_size(r->s->t, type);
	size_t n_fields;

	/* Elements that are not looked at for their depth cost no steps. */
	if (!size || addr >= r->end || r->depth >= MAX_DEPTH)
		return;
	if (!n || n > (r->end - addr) / size)
		n = (r->end - addr) / size;
	fields_get(&r->s->fields, type, &n_fields);
	if (!n_fields)
		return;
	read_row(r, addr, type, n);
}

/* What lies in [begin, end) of a block is in use, and is read now. */
static void read_part(struct reading *r, vaddr begin, vaddr end,
		      uint32_t type)
{
	struct reading in = { .s = r->s, .end = end, .depth = r->depth,
			      .known = r->known };

	if (begin < end && space_seg(r->s->sp, begin))
		read_elements(&in, begin, type, 0);
}

static uint8_t by_rule(const struct reading *r)
{
	return (uint8_t)min_u64(r->known, TYPE_CONTAINER);
}

static void read_vector(struct reading *r, const struct field *f, vaddr addr)
{
	struct spread *s = r->s;
	uint64_t word[3], size = dwarf_type_size(s->t, f->type);
	uint32_t block, i;
	struct claim c = { .type = f->type, .known = by_rule(r) };

	for (i = 0; i < 3; i++)
		if (!space_word(s->sp, addr + i * s->sp->word, &word[i]))
			return;
	if (!size || !word[0] || word[0] > word[1] || word[1] > word[2])
		return;
	block = index_find(s->ix, word[0]);
	if (!block || index_start(s->ix, word[0]) != word[0] ||
	    word[2] > index_end(s->ix, word[0]))
		return;
	c.value = word[0];
	c.n = (uint32_t)min_u64((word[2] - word[0]) / size, UINT32_MAX);
	c.quiet = true;
	if (c.n && s->blocks[block].fit < FIT_EXACT && claim(s, &c))
		enqueue(s, word[0], f->type, (word[1] - word[0]) / size,
			r->known == TYPE_HINT ? TYPE_HINT : TYPE_DWARF);
}

static void read_string(struct reading *r, vaddr addr, vaddr at)
{
	struct claim c = { .type = SPREAD_STRING, .known = by_rule(r) };

	if (space_word(r->s->sp, at, &c.value) && c.value &&
	    c.value != addr + 2 * r->s->sp->word)
		claim(r->s, &c);
}

static void read_long_string(struct reading *r, vaddr addr)
{
	uint8_t first;

	if (space_u8(r->s->sp, addr, &first) && first & 1)
		read_string(r, addr - 4 * r->s->sp->word,
			    addr + 2 * r->s->sp->word);
}

enum { DEQUE_CHUNK = 512, DEQUE_WORDS = 10 };

/* Words of the map's start and size, then cur, first, last, node, twice. */
static void read_deque(struct reading *r, const struct field *f, vaddr addr)
{
	struct spread *s = r->s;
	uint64_t w[DEQUE_WORDS], size = dwarf_type_size(s->t, f->type), chunk;
	uint64_t per = max_u64(1, size ? DEQUE_CHUNK / size : 1);

	for (unsigned i = 0; i < DEQUE_WORDS; i++)
		if (!space_word(s->sp, addr + i * s->sp->word, &w[i]))
			return;
	if (!size || !claim(s, &(struct claim){
			.value = w[0], .known = by_rule(r), .quiet = true,
			.type = dwarf_pointer_to(s->t, f->type) }))
		return;
	for (vaddr node = w[5]; node <= w[9] && node - w[5] <
	     w[1] * s->sp->word && s->steps; node += s->sp->word) {
		s->steps--;
		if (!space_word(s->sp, node, &chunk))
			return;
		claim(s, &(struct claim){
			.value = chunk, .known = by_rule(r), .quiet = true,
			.type = f->type, .n = (uint32_t)per });
		read_part(r, node == w[5] ? w[2] : chunk, node == w[9] ? w[6]
			  : chunk + per * size, f->type);
	}
}

static void read_optional(struct reading *r, const struct field *f,
			  vaddr addr)
{
	uint8_t engaged;

	if (space_u8(r->s->sp, addr + f->n, &engaged) && engaged == 1)
		read_type(r, addr, f->type);
}

static void read_variant(struct reading *r, const struct field *f, vaddr addr)
{
	uint8_t which;
	const struct dtype *ty = dwarf_type(r->s->t, f->type);

	if (space_u8(r->s->sp, addr + f->n, &which) && which < ty->n_args)
		read_type(r, addr, r->s->t->args[ty->args + which]);
}

static void read_function(struct reading *r, vaddr addr)
{
	uint64_t functor, manager;
	unsigned word = r->s->sp->word;
	uint32_t block;

	if (!space_word(r->s->sp, addr, &functor) ||
	    !space_word(r->s->sp, addr + 2 * word, &manager) || !manager)
		return;
	block = index_find(r->s->ix, functor);
	if (block && !r->s->blocks[block].fit)
		claim(r->s, &(struct claim){ .value = functor,
					     .type = SPREAD_FUNCTOR,
					     .known = by_rule(r) });
}

static void read_field(struct reading *r, const struct field *f, vaddr addr)
{
	switch ((enum field_kind)f->kind) {
	case FIELD_POINTER:
		read_pointer(r, f, addr);
		break;
	case FIELD_REPEAT:
		read_elements(r, addr, f->type, f->n);
		break;
	case FIELD_VECTOR:
		read_vector(r, f, addr);
		break;
	case FIELD_STRING:
		read_string(r, addr, addr);
		break;
	case FIELD_LONG_STRING:
		read_long_string(r, addr);
		break;
	case FIELD_DEQUE:
		read_deque(r, f, addr);
		break;
	case FIELD_OPTIONAL:
		read_optional(r, f, addr);
		break;
	case FIELD_VARIANT:
		read_variant(r, f, addr);
		break;
	case FIELD_FUNCTION:
		read_function(r, addr);
		break;
	}
}

static void read_type(struct reading *r, vaddr addr, uint32_t type)
{
	size_t n;
	const struct field *f = fields_get(&r->s->fields, type, &n);

	if (r->depth >= MAX_DEPTH)
		return;
	r->depth++;
	for (size_t i = 0; i < n; i++) {
		/* Reading one may make others known, and move the list. */
		struct field field;

		if (!r->s->steps) {
			r->s->exhausted = true;
			break;
		}
		r->s->steps--;
		f = fields_get(&r->s->fields, type, &n);
		field = f[i];
		read_field(r, &field, addr + field.off);
	}
	r->depth--;
}

/* ---- from the outside ---- */

/* The end of what can be read from addr on, at most end. */
static vaddr readable_end(struct space *sp, vaddr addr, vaddr end)
{
	enum { MAX_SEGS = 16 };

	for (unsigned i = 0; i < MAX_SEGS && addr < end; i++) {
		const struct seg *seg = space_seg(sp, addr);

		if (!seg || seg->start + seg->avail <= addr)
			return addr;
		addr = seg->start + seg->avail;
	}
	return min_u64(addr, end);
}

static void read_region(struct spread *s, const struct region *g)
{
	struct reading r = { .s = s, .known = g->known };
	uint64_t size = dwarf_type_size(s->t, g->type), bytes;
	size_t n_fields;

	s->exhausted |= !s->steps;
	fields_get(&s->fields, g->type, &n_fields);
	if (!n_fields || !mul_ok(size, g->n, &bytes) ||
	    !add_ok(g->addr, bytes, &r.end))
		return;
	/* What has no bound of its own ends with the block. */
	if (index_find(s->ix, g->addr))
		r.end = g->n == 1 ? index_end(s->ix, g->addr)
				  : min_u64(r.end, index_end(s->ix, g->addr));
	r.end = readable_end(s->sp, g->addr, r.end);
	if (size && r.end > g->addr)
		read_row(&r, g->addr, g->type,
			 min_u64(g->n, (r.end - g->addr - 1) / size + 1));
}

/* What the region some places behind the first will be read from. */
static void fetch_ahead(struct spread *s)
{
	const struct region *g;
	const void *bytes;

	if (s->n_queue <= AHEAD)
		return;
	g = &s->queue[(s->head + AHEAD) & (s->cap_queue - 1)];
	bytes = space_view(s->sp, g->addr, 8);
	if (bytes)
		__builtin_prefetch(bytes);
}

bool spread_settled(const struct spread *s, vaddr addr)
{
	uint32_t block = index_find(s->ix, addr);

	/* What is an object is seen with its first claim. */
	return !block || s->blocks[block].fit >= FIT_EXACT;
}

bool spread_waits(const struct spread *s, uint32_t block)
{
	enum { MAX_LOOKED = 4096 };

	if (s->n_queue > MAX_LOOKED)
		return true;
	for (size_t i = 0; i < s->n_pending; i++) {
		const struct pending *p =
			&s->pending[(s->first_pending + i) % PENDING];
		uint32_t in = index_find(s->ix, p->addr);

		if (!in || in == block)
			return true;
	}
	for (size_t i = 0; i < s->n_queue; i++) {
		uint32_t in = index_find(s->ix, s->queue[(s->head + i) &
						(s->cap_queue - 1)].addr);

		if (!in || in == block)
			return true;
	}
	return false;
}

void spread_run(struct spread *s)
{
	while ((s->n_queue || s->n_pending) && s->steps >= s->pause) {
		if (!s->n_queue) {
			follow_pending(s);
			continue;
		}
		fetch_ahead(s);
		struct region g = s->queue[s->head];

		s->head = (s->head + 1) & (s->cap_queue - 1);
		s->n_queue--;
		read_region(s, &g);
	}
}

void spread_root(struct spread *s, vaddr addr, uint32_t type)
{
	if (dwarf_type_size(s->t, type))
		enqueue(s, addr, type, 1, TYPE_DWARF);
}

void spread_pointer(struct spread *s, uint64_t value, uint32_t type)
{
	claim(s, &(struct claim){ .value = value, .type = type,
				  .known = TYPE_DWARF });
}

/* The first word of a block says that it is an object. */
static void claim_object(struct spread *s, vaddr addr, uint64_t usable)
{
	uint64_t word;
	uint32_t type, block;

	if (usable < s->sp->word || !space_word(s->sp, addr, &word))
		return;
	type = class_of(s, word);
	block = type ? index_find(s->ix, addr) : 0;
	if (!block || s->blocks[block].fit >= FIT_EXACT ||
	    dwarf_type_size(s->t, type) > usable)
		return;
	claim(s, &(struct claim){ .value = addr, .type = type,
				  .known = TYPE_DWARF });
}

void spread_object(struct spread *s, vaddr addr)
{
	if (index_find(s->ix, addr))
		claim_object(s, addr, index_end(s->ix, addr) - addr);
}

/* Only the few that may get types. */
static void claim_few(struct spread *s)
{
	for (uint32_t w = 0; w <= s->ix->n / 64; w++)
		for (uint64_t b = s->only->bits[w]; b; b &= b - 1) {
			spread_object(s, index_addr(s->ix, w * 64 + (uint32_t)
						    __builtin_ctzll(b)));
			if (s->n_queue > QUEUE_MIN)
				spread_run(s);
		}
	spread_run(s);
}

void spread_objects(struct spread *s, const struct heap *h)
{
	struct heap_iter it;
	struct block b;

	if (s->only) {
		claim_few(s);
		return;
	}
	heap_iter_init(&it, h);
	while (heap_iter_next(&it, &b)) {
		if (b.state == BLOCK_USED)
			claim_object(s, b.addr, b.usable);
		if (s->n_queue > QUEUE_MIN)
			spread_run(s);
	}
	spread_run(s);
}

void spread_name(struct spread *s, uint32_t type, struct str *ret)
{
	static const char *const special[] = {
		"text of std::string", "functor of std::function", "text",
	};
	uint32_t of = type & ~(uint32_t)SPREAD_ARRAY;

	if (of >= SPREAD_STRING) {
		str_adds(ret, special[of - SPREAD_STRING]);
		return;
	}
	dwarf_type_name(s->t, of, ret);
	if (type & SPREAD_ARRAY)
		str_adds(ret, " []");
}
