/* SPDX-License-Identifier: MIT */

#include "analysis/kin.h"
#include "analysis/spread_in.h"
#include "analysis/vtable.h"

enum {
	MALLOC_UNIT = 16,
	MAX_HEADER = 24,	/* before a text: lengths, flags */
	MAX_COOKIE = 16,	/* before an array: how many */
	MAX_INSIDE = 1 << 20,	/* regions inside blocks without a type */
	MAX_CHECKED = 64,	/* pointers of a structure that are checked */
};

/* The block of a claim. */
struct place {
	uint32_t number;
	vaddr start;
	uint64_t usable;
	uint64_t off;		/* of the value */
};

static bool is_aggregate(const struct dtype *ty)
{
	return ty->kind == DTYPE_STRUCT || ty->kind == DTYPE_UNION;
}

/* ---- classes ---- */

uint32_t class_of(struct spread *s, uint64_t word)
{
	uint32_t type;
	struct str name;

	if (!word || word & (s->sp->word - 1) ||
	    word - s->gap < s->gap_end - s->gap ||
	    !space_module(s->sp, word))
		return 0;
	type = map_get(&s->classes, word);
	if (type)
		return type - 1;
	str_init(&name);
	type = vtable_mangled(s->sp, s->symbols, word, &name) !=
	       TYPE_UNKNOWN ? dwarf_find_class(s->t, name.text) : 0;
	str_fini(&name);
	map_put(&s->classes, word, type + 1);
	return type;
}

/* The class of the object that starts there; 0 if it has no vtable. */
static uint32_t class_at(struct spread *s, vaddr addr, uint64_t room)
{
	uint64_t word;
	uint32_t type = space_word(s->sp, addr, &word) ? class_of(s, word) : 0;
	uint64_t size = dwarf_type_size(s->t, type);

	return size && size <= room ? type : 0;
}

/* ---- how well it fits ---- */

/*
 * What malloc of glibc gives for a request, or 16 more where a rest was too
 * small: all but a word of the chunk, and three words at least.
 */
static bool is_snug(const struct spread *s, uint64_t request, uint64_t usable)
{
	uint64_t word = s->sp->word;
	uint64_t least = round_up(request + word, MALLOC_UNIT) - word;

	least = max_u64(least, 3 * word);
	return usable >= request && usable <= least + MALLOC_UNIT;
}

/*
 * Every pointer of a structure is null or leads to something.  What C declares
 * as void * can be a number.
 */
static bool is_alive(struct spread *s, vaddr addr, uint32_t type)
{
	size_t n, checked = 0;
	const struct field *f = fields_get(&s->fields, type, &n);

	for (size_t i = 0; i < n && checked < MAX_CHECKED; i++) {
		uint64_t word;

		if (f[i].flags & FIELD_IN_UNION ||
		    (f[i].kind == FIELD_POINTER && !f[i].type) ||
		    (f[i].kind != FIELD_POINTER && f[i].kind != FIELD_VECTOR &&
		     f[i].kind != FIELD_STRING))
			continue;
		checked++;
		if (!space_word(s->sp, addr + f[i].off, &word))
			return false;
		if (word && !space_seg(s->sp, word) &&
		    !space_seg(s->sp, word - 1))
			return false;
	}
	return true;
}

static enum fit fit_of(struct spread *s, const struct claim *c,
		       const struct place *p, uint64_t *ret_n)
{
	struct dtype ty = *dwarf_type(s->t, c->type);
	uint64_t n = c->n ? c->n : 1;

	*ret_n = 1;
	if (!ty.size)
		return is_aggregate(&ty) && ty.name ? FIT_OPAQUE : FIT_NONE;
	*ret_n = c->n ? c->n : p->usable / ty.size;
	if (ty.kind == DTYPE_SCALAR || ty.kind == DTYPE_CHAR)
		return FIT_NUMBERS;
	if (ty.kind == DTYPE_POINTER)
		return FIT_POINTERS;
	if (ty.kind == DTYPE_ARRAY)
		return FIT_ARRAY;
	if (c->n)
		return c->n <= p->usable / ty.size ? FIT_EXACT : FIT_NONE;
	if (is_snug(s, n * ty.size, p->usable)) {
		*ret_n = 1;
		return c->node ? FIT_NODE : FIT_EXACT;
	}
	if (ty.flags & DTYPE_FLEXIBLE || c->single) {
		*ret_n = 1;
		return c->node ? FIT_NODE : FIT_EXACT;
	}
	if (c->node)
		return FIT_NONE;
	if (is_snug(s, *ret_n * ty.size, p->usable))
		return FIT_ARRAY;
	*ret_n = 1;
	return FIT_LOOSE;
}

/* ---- deciding ---- */

/* What its pointers say, then. */
static uint8_t beyond(uint8_t known)
{
	return known == TYPE_HINT ? TYPE_HINT : TYPE_DWARF;
}

static void settle(struct spread *s, uint32_t block, uint32_t type,
		   enum fit fit, uint8_t known)
{
	s->blocks[block].type = type;
	s->blocks[block].fit = (uint8_t)fit;
	s->blocks[block].known = known;
}

/* Is what is there as good?  Then it stays. */
static bool is_settled(const struct spread *s, uint32_t block, enum fit fit)
{
	return s->blocks[block].fit >= fit;
}

static bool claim_text(struct spread *s, const struct claim *c,
		       const struct place *p)
{
	enum fit fit = c->type == SPREAD_STRING ? FIT_EXACT : FIT_NUMBERS;

	if (p->off && (fit == FIT_EXACT || c->type == SPREAD_FUNCTOR))
		return false;
	if (!is_settled(s, p->number, fit))
		settle(s, p->number, c->type, fit, c->known);
	return true;
}

/* An array of structures and its number before it, as operator new[] does. */
static bool claim_cookie(struct spread *s, const struct claim *c,
			 const struct place *p)
{
	uint64_t size = dwarf_type_size(s->t, c->type), n, bytes;

	if (!size || p->off > MAX_COOKIE || p->off < s->sp->word ||
	    !space_word(s->sp, c->value - s->sp->word, &n) || !n ||
	    n > UINT32_MAX || !mul_ok(n, size, &bytes) ||
	    bytes > p->usable - p->off ||
	    !is_snug(s, bytes + p->off, p->usable))
		return false;
	if (is_settled(s, p->number, FIT_EXACT))
		return true;
	settle(s, p->number, c->type | SPREAD_ARRAY, FIT_EXACT, c->known);
	enqueue(s, c->value, c->type, n, beyond(c->known));
	return true;
}

/* A base class that is not the first: the object starts before it. */
static bool claim_whole(struct spread *s, const struct claim *c,
			const struct place *p)
{
	uint32_t type = class_at(s, p->start, p->usable);

	if (!type)
		return false;
	if (is_settled(s, p->number, FIT_CLASS))
		return true;
	settle(s, p->number, type, FIT_CLASS, c->known);
	enqueue(s, p->start, type, 1, beyond(c->known));
	return true;
}

/* Once for each place: what it leads to counts, the block stays without. */
static void follow_inside(struct spread *s, const struct claim *c,
			  const struct place *p)
{
	uint64_t key = c->value * 31 + c->type + 1;

	if (s->blocks[p->number].fit >= FIT_LOOSE ||
	    s->inside.n >= MAX_INSIDE || !key ||
	    map_get(&s->inside, key) ||
	    dwarf_type_size(s->t, c->type) > p->usable - p->off ||
	    !is_alive(s, c->value, c->type))
		return;
	map_put(&s->inside, key, 1);
	enqueue(s, c->value, c->type, 1, beyond(c->known));
}

static bool claim_inside(struct spread *s, const struct claim *c,
			 const struct place *p)
{
	const struct dtype *ty = dwarf_type_head(s->t, c->type);

	if (c->node || c->unsure || c->strict)
		return false;
	if (ty->kind == DTYPE_CHAR) {
		if (p->off <= MAX_HEADER &&
		    !is_settled(s, p->number, FIT_OPAQUE))
			settle(s, p->number, c->type | SPREAD_ARRAY,
			       FIT_OPAQUE, c->known);
		return true;
	}
	if (!is_aggregate(ty))
		return false;
	if (claim_cookie(s, c, p) || claim_whole(s, c, p))
		return true;
	follow_inside(s, c, p);
	return false;
}

/* The value is the start of a block. */
static bool claim_start(struct spread *s, struct claim c,
			const struct place *p)
{
	const struct dtype *ty = dwarf_type_head(s->t, c.type);
	enum fit fit;
	uint64_t n;
	uint32_t dynamic = is_aggregate(ty) && !c.n ?
		class_at(s, p->start, p->usable) : 0;

	if (dynamic) {
		c.type = dynamic;
		fit = FIT_CLASS;
		n = 1;
	} else {
		fit = fit_of(s, &c, p, &n);
	}
	if (dwarf_type_size(s->t, c.type) > p->usable)
		return false;
	if (fit == FIT_NONE || ((c.unsure || c.strict) && fit < FIT_EXACT &&
				fit != FIT_NODE && fit >= FIT_LOOSE))
		return false;
	if (fit >= FIT_LOOSE && fit < FIT_CLASS &&
	    !is_alive(s, p->start, c.type))
		return false;
	if (c.unsure && fit > FIT_LOOSE)
		fit = FIT_LOOSE;
	if (is_settled(s, p->number, fit))
		return true;
	settle(s, p->number, c.type |
	       (c.n || n > 1 || fit == FIT_NUMBERS || fit == FIT_POINTERS ?
		SPREAD_ARRAY : 0), fit, c.known);
	if (!c.quiet && fit != FIT_NUMBERS && fit != FIT_OPAQUE)
		enqueue(s, p->start, c.type, n, beyond(c.known));
	return true;
}

bool claim(struct spread *s, const struct claim *c)
{
	struct place p = { .number = index_find(s->ix, c->value) };

	if (!p.number || (s->only && !kin_has(s->only, p.number)))
		return false;
	p.start = index_start(s->ix, c->value);
	p.usable = index_end(s->ix, c->value) - p.start;
	p.off = c->value - p.start;
	if (c->type >= SPREAD_STRING)
		return claim_text(s, c, &p);
	if (!c->type)
		return false;
	if (p.off)
		return claim_inside(s, c, &p);
	return claim_start(s, *c, &p);
}
