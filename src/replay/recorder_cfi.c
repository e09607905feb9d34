/* SPDX-License-Identifier: MIT */
/*
 * Call frame information: from an address in a function to the rule by which
 * its caller is found.  x86-64 psABI 1.0 numbers the registers (6 is rbp, 7
 * rsp, 16 the return address); DWARF 5, section 6.4, has the instructions; the
 * Linux Standard Base 5, section 10.6, has .eh_frame and .eh_frame_hdr.
 *
 * Only what compilers make of C and C++ is understood: a CFA that is a
 * register and an offset, or the one expression of realigned stacks.  For
 * anything else frame pointers are tried.  What is parsed is the program's own
 * read-only data; it is still never read outside of its segment.
 */
#include "replay/recorder.h"

#include <string.h>

enum {
	REG_BP = 6,
	REG_SP = 7,
	REG_RA = 16,
	STATES_MAX = 8,		/* of DW_CFA_remember_state */
	STEPS_MAX = 4096,
};

/* Where something is read, and how far that may go. */
struct reader {
	const uint8_t *p, *end;
	bool bad;
};

static uint64_t get(struct reader *r, size_t n)
{
	uint64_t value = 0;

	if ((size_t)(r->end - r->p) < n) {
		r->bad = true;
		r->p = r->end;
		return 0;
	}
	memcpy(&value, r->p, n);
	r->p += n;
	return value;
}

static uint64_t get_uleb(struct reader *r)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t byte = (uint8_t)get(r, 1);

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	r->bad = true;
	return 0;
}

static int64_t get_sleb(struct reader *r)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t byte = (uint8_t)get(r, 1);

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (shift < 57 && (byte & 0x40))
			value |= ~UINT64_C(0) << (shift + 7);
		return (int64_t)value;
	}
	r->bad = true;
	return 0;
}

static void skip(struct reader *r, uint64_t n)
{
	if (n > (uint64_t)(r->end - r->p)) {
		r->bad = true;
		n = (uint64_t)(r->end - r->p);
	}
	r->p += n;
}

/* A pointer in one of the encodings that compilers use. */
static uintptr_t get_encoded(struct reader *r, uint8_t encoding)
{
	uintptr_t at = (uintptr_t)r->p;
	uint64_t value;

	switch (encoding & 0x0f) {
	case 0x00: case 0x04: case 0x0c:
		value = get(r, 8);
		break;
	case 0x03:
		value = get(r, 4);
		break;
	case 0x0b:
		value = (uint64_t)(int64_t)(int32_t)get(r, 4);
		break;
	default:
		r->bad = true;
		return 0;
	}
	switch (encoding & 0x70) {
	case 0x00:
		return value;
	case 0x10:
		return value + at;
	default:
		r->bad = true;
		return 0;
	}
}

struct cie {
	uint64_t code_align;
	int64_t data_align;
	uint8_t encoding;
	bool signal;
	bool augmented;
	struct reader program;
};

static struct reader reader_at(const struct rec_module *m, uintptr_t at)
{
	struct reader r = { (const uint8_t *)m->hdr_high,
			    (const uint8_t *)m->hdr_high, true };

	if (at >= m->hdr_low && at < m->hdr_high) {
		r.p = (const uint8_t *)at;
		r.bad = false;
	}
	return r;
}

/* The entry at p, cut to its length; 64-bit lengths do not occur. */
static struct reader entry_at(const struct rec_module *m, uintptr_t at)
{
	struct reader r = reader_at(m, at);
	uint64_t length = get(&r, 4);

	if (!length || length >= 0xfffffff0 ||
	    length > (uint64_t)(r.end - r.p))
		r.bad = true;
	else
		r.end = r.p + length;
	return r;
}

static bool read_cie(const struct rec_module *m, uintptr_t at,
		     struct cie *ret)
{
	struct reader r = entry_at(m, at);
	const char *augmentation;
	uint64_t size;

	if (get(&r, 4) || r.bad)
		return false;
	ret->signal = ret->augmented = false;
	ret->encoding = 0;
	get(&r, 1);
	augmentation = (const char *)r.p;
	skip(&r, strnlen(augmentation, (size_t)(r.end - r.p)) + 1);
	ret->code_align = get_uleb(&r);
	ret->data_align = get_sleb(&r);
	if (get_uleb(&r) != REG_RA || r.bad)
		return false;
	if (*augmentation == 'z') {
		ret->augmented = true;
		size = get_uleb(&r);
		if (r.bad || size > (uint64_t)(r.end - r.p))
			return false;
		ret->program = (struct reader){ r.p + size, r.end, false };
		r.end = r.p + size;
		while (*++augmentation && !r.bad) {
			if (*augmentation == 'R')
				ret->encoding = (uint8_t)get(&r, 1);
			else if (*augmentation == 'S')
				ret->signal = true;
			else if (*augmentation == 'L')
				get(&r, 1);
			else if (*augmentation == 'P')
				get_encoded(&r, (uint8_t)get(&r, 1) & 0x0f);
			else
				return false;
		}
	} else {
		ret->program = r;
	}
	return !r.bad;
}

/* What a CFA program computes, as far as it matters. */
struct state {
	uint8_t cfa_register;
	bool cfa_deref;		/* CFA = *(bp + cfa) */
	bool ra_undefined;
	bool bp_saved, bp_absolute;	/* absolute: at old bp + bp */
	bool odd;		/* not understood */
	int64_t cfa, bp;
};

struct machine {
	const struct cie *cie;
	struct state now, first;
	struct state stack[STATES_MAX];
	unsigned depth;
	uintptr_t loc;
};

/* The rule of one register; only two matter. */
static void set_offset(struct state *s, uint64_t reg, int64_t offset)
{
	if (reg == REG_BP) {
		s->bp_saved = true;
		s->bp_absolute = false;
		s->bp = offset;
	} else if (reg == REG_RA) {
		s->ra_undefined = false;
		s->odd |= offset != -8;
	}
}

static void restore(struct machine *k, uint64_t reg)
{
	if (reg == REG_BP) {
		k->now.bp_saved = k->first.bp_saved;
		k->now.bp_absolute = k->first.bp_absolute;
		k->now.bp = k->first.bp;
	}
}

static void undefine(struct state *s, uint64_t reg)
{
	if (reg == REG_RA)
		s->ra_undefined = true;
	else if (reg == REG_BP)
		s->bp_saved = false;
}

/* gcc's for realigned stacks: DW_OP_breg6 N, DW_OP_deref. */
static void cfa_expression(struct state *s, struct reader *r)
{
	uint64_t n = get_uleb(r);
	struct reader e = { r->p, r->p, false };

	if (!r->bad && n <= (uint64_t)(r->end - r->p))
		e.end = r->p + n;
	skip(r, n);
	s->cfa_deref = get(&e, 1) == 0x70 + REG_BP;
	s->cfa = get_sleb(&e);
	s->odd |= !s->cfa_deref || get(&e, 1) != 0x06 || e.p != e.end ||
		  e.bad;
}

/* And with it, where bp is: DW_OP_breg6 N. */
static void register_expression(struct state *s, struct reader *r)
{
	uint64_t reg = get_uleb(r);
	uint64_t n = get_uleb(r);
	struct reader e = { r->p, r->p, false };

	if (!r->bad && n <= (uint64_t)(r->end - r->p))
		e.end = r->p + n;
	skip(r, n);
	if (reg == REG_RA)
		s->odd = true;
	if (reg != REG_BP)
		return;
	s->odd |= get(&e, 1) != 0x70 + REG_BP;
	s->bp = get_sleb(&e);
	s->odd |= e.p != e.end || e.bad;
	s->bp_saved = s->bp_absolute = true;
}

static void define_cfa(struct state *s, uint64_t reg, int64_t offset)
{
	s->cfa_register = reg == REG_SP || reg == REG_BP ? (uint8_t)reg : 0;
	s->cfa_deref = false;
	s->cfa = offset;
}

static void advance(struct machine *k, uint64_t by)
{
	k->loc += by * k->cie->code_align;
}

/* Instructions with an operand in the opcode's low bits. */
static void step_short(struct machine *k, struct reader *r, uint8_t op)
{
	switch (op & 0xc0) {
	case 0x40:
		advance(k, op & 0x3f);
		break;
	case 0x80:
		set_offset(&k->now, op & 0x3f, (int64_t)get_uleb(r) *
			   k->cie->data_align);
		break;
	case 0xc0:
		restore(k, op & 0x3f);
		break;
	}
}

static void step_state(struct machine *k, uint8_t op)
{
	if (op == 0x0a) {
		if (k->depth < STATES_MAX)
			k->stack[k->depth++] = k->now;
		else
			k->now.odd = true;
	} else if (k->depth) {
		k->now = k->stack[--k->depth];
	} else {
		k->now.odd = true;
	}
}

static void step_cfa(struct machine *k, struct reader *r, uint8_t op)
{
	uint64_t reg;

	switch (op) {
	case 0x0c:	/* def_cfa */
		reg = get_uleb(r);
		define_cfa(&k->now, reg, (int64_t)get_uleb(r));
		break;
	case 0x12:	/* def_cfa_sf */
		reg = get_uleb(r);
		define_cfa(&k->now, reg, get_sleb(r) * k->cie->data_align);
		break;
	case 0x0d:	/* def_cfa_register */
		define_cfa(&k->now, get_uleb(r), k->now.cfa);
		break;
	case 0x0e:	/* def_cfa_offset */
		k->now.cfa = (int64_t)get_uleb(r);
		break;
	case 0x13:	/* def_cfa_offset_sf */
		k->now.cfa = get_sleb(r) * k->cie->data_align;
		break;
	case 0x0f:	/* def_cfa_expression */
		cfa_expression(&k->now, r);
		break;
	}
}

static void step_register(struct machine *k, struct reader *r, uint8_t op)
{
	uint64_t reg;

	switch (op) {
	case 0x05:	/* offset_extended */
		reg = get_uleb(r);
		set_offset(&k->now, reg, (int64_t)get_uleb(r) *
			   k->cie->data_align);
		break;
	case 0x11:	/* offset_extended_sf */
		reg = get_uleb(r);
		set_offset(&k->now, reg, get_sleb(r) * k->cie->data_align);
		break;
	case 0x06:	/* restore_extended */
		restore(k, get_uleb(r));
		break;
	case 0x07:	/* undefined */
	case 0x08:	/* same_value */
		reg = get_uleb(r);
		if (op == 0x07 || reg == REG_BP)
			undefine(&k->now, reg);
		break;
	case 0x10:	/* expression */
		register_expression(&k->now, r);
		break;
	case 0x09: case 0x14: case 0x15: case 0x16:
		/* register, val_offset and its _sf, val_expression */
		reg = get_uleb(r);
		k->now.odd |= reg == REG_BP || reg == REG_RA;
		if (op == 0x16)
			skip(r, get_uleb(r));
		else
			get_uleb(r);
		break;
	default:
		r->bad = true;
	}
}

static void step(struct machine *k, struct reader *r)
{
	uint8_t op = (uint8_t)get(r, 1);

	if (op & 0xc0)
		step_short(k, r, op);
	else if (op == 0x0a || op == 0x0b)
		step_state(k, op);
	else if ((op >= 0x0c && op <= 0x0f) || op == 0x12 || op == 0x13)
		step_cfa(k, r, op);
	else if (op == 0x00)
		return;
	else if (op == 0x01)
		k->loc = get_encoded(r, k->cie->encoding);
	else if (op >= 0x02 && op <= 0x04)
		advance(k, get(r, (size_t)1 << (op - 2)));
	else if (op == 0x2e)	/* GNU_args_size */
		get_uleb(r);
	else
		step_register(k, r, op);
}

/* Up to the instruction that would go past at. */
static void run(struct machine *k, struct reader r, uintptr_t at)
{
	for (int i = 0; i < STEPS_MAX && r.p < r.end && !r.bad; i++) {
		struct state before = k->now;

		step(k, &r);
		if (k->loc > at) {
			k->now = before;
			return;
		}
	}
	k->now.odd |= r.bad;
}

/* The FDE whose function begins last at or before at. */
static uintptr_t find_fde(const struct rec_module *m, uintptr_t at)
{
	struct reader r = reader_at(m, m->hdr);
	uint8_t version = (uint8_t)get(&r, 1);
	uint8_t frame_encoding = (uint8_t)get(&r, 1);
	uint8_t count_encoding = (uint8_t)get(&r, 1);
	uint8_t table_encoding = (uint8_t)get(&r, 1);
	size_t low = 0;
	size_t high;

	get_encoded(&r, frame_encoding);
	high = get_encoded(&r, count_encoding);
	/* 0x3b: sorted pairs of offsets to the header, which all linkers
	   write. */
	if (r.bad || version != 1 || table_encoding != 0x3b ||
	    high > (size_t)(r.end - r.p) / 8)
		return 0;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int32_t start;

		memcpy(&start, r.p + 8 * mid, 4);
		if (m->hdr + (uintptr_t)(intptr_t)start <= at)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low)
		return 0;
	memcpy(&high, r.p + 8 * (low - 1), 8);
	return m->hdr + (uintptr_t)(intptr_t)(int32_t)(high >> 32);
}

static struct rec_rule to_rule(const struct state *s)
{
	struct rec_rule rule = { .kind = REC_RULE_FP };

	if (s->ra_undefined) {
		rule.kind = REC_RULE_END;
		return rule;
	}
	if (s->odd || (!s->cfa_deref && !s->cfa_register) ||
	    s->cfa != (int32_t)s->cfa || s->bp != (int16_t)s->bp ||
	    (s->bp_saved && s->bp_absolute != s->cfa_deref))
		return rule;
	rule.kind = s->cfa_deref ? REC_RULE_DEREF :
		s->cfa_register == REG_SP ? REC_RULE_SP : REC_RULE_BP;
	rule.saved_bp = s->bp_saved;
	rule.cfa = (int32_t)s->cfa;
	rule.bp = (int16_t)s->bp;
	return rule;
}

struct rec_rule rec_cfi_rule(const struct rec_module *m, uintptr_t at)
{
	struct rec_rule fp = { .kind = REC_RULE_FP };
	struct machine k = { .depth = 0 };
	struct cie cie;
	uintptr_t fde = m->hdr ? find_fde(m, at) : 0;
	struct reader r;
	uintptr_t link, range;

	if (!fde)
		return fp;
	r = entry_at(m, fde);
	link = (uintptr_t)r.p;
	link -= get(&r, 4);
	if (r.bad || !read_cie(m, link, &cie))
		return fp;
	k.cie = &cie;
	k.loc = get_encoded(&r, cie.encoding);
	range = get_encoded(&r, cie.encoding & 0x0f);
	if (r.bad || at < k.loc || at - k.loc >= range)
		return fp;
	if (cie.signal)
		return (struct rec_rule){ .kind = REC_RULE_SIGNAL };
	if (cie.augmented)
		skip(&r, get_uleb(&r));
	run(&k, cie.program, ~(uintptr_t)0);
	k.first = k.now;
	run(&k, r, at);
	return to_rule(&k.now);
}
