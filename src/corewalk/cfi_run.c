/* SPDX-License-Identifier: MIT */
/*
 * The instructions of call frame information, run up to an address.  Each
 * takes at least one byte, so that a program ends with its bytes.
 */
#include "corewalk/cfi.h"

#include <string.h>

enum {
	/* The two upper bits are the instruction, the lower an operand. */
	ADVANCE = 1,
	OFFSET = 2,
	RESTORE = 3,

	NOP = 0x00,
	SET_LOC = 0x01,
	ADVANCE_1 = 0x02,
	ADVANCE_2 = 0x03,
	ADVANCE_4 = 0x04,
	OFFSET_EXT = 0x05,
	RESTORE_EXT = 0x06,
	UNDEFINED = 0x07,
	SAME_VALUE = 0x08,
	REGISTER = 0x09,
	REMEMBER = 0x0a,
	RECALL = 0x0b,
	DEF_CFA = 0x0c,
	DEF_CFA_REGISTER = 0x0d,
	DEF_CFA_OFFSET = 0x0e,
	DEF_CFA_EXPR = 0x0f,
	EXPR = 0x10,
	OFFSET_SF = 0x11,
	DEF_CFA_SF = 0x12,
	DEF_CFA_OFFSET_SF = 0x13,
	VAL_OFFSET = 0x14,
	VAL_OFFSET_SF = 0x15,
	VAL_EXPR = 0x16,
	NEGATE_RA_STATE = 0x2d,	/* of AArch64 */
	GNU_ARGS_SIZE = 0x2e,
	GNU_NEGATIVE_OFFSET = 0x2f,

	MAX_REMEMBERED = 16,
};

struct machine_state {
	const struct cfi_program *p;
	struct cfi_cursor c;
	vaddr loc, pc;
	struct cfi_row row, initial;
	struct cfi_row kept[MAX_REMEMBERED];
	unsigned n_kept;
	bool in_cie;
};

static void set_rule(struct machine_state *m, uint64_t reg, enum cfi_how how,
		     int64_t n)
{
	if (reg < CFI_REGS)
		m->row.regs[reg] = (struct cfi_rule){ .how = how, .n = n };
}

/* What a program says may not fit in 64 bits: then it wraps around. */
static int64_t scaled(const struct machine_state *m, int64_t n)
{
	return (int64_t)((uint64_t)n * (uint64_t)m->p->data_align);
}

static void set_expr(struct machine_state *m, uint64_t reg, enum cfi_how how)
{
	uint64_t len = cfi_uleb(&m->c);
	const uint8_t *expr = cfi_skip(&m->c, len);

	if (expr && reg < CFI_REGS)
		m->row.regs[reg] = (struct cfi_rule){
			.how = how, .expr = expr, .len = (uint32_t)len,
		};
}

static void set_cfa(struct machine_state *m, uint64_t reg, int64_t n)
{
	m->row.cfa = (struct cfi_rule){ .how = CFI_REGISTER, .n = n };
	m->row.cfa_reg = reg < CFI_REGS ? (unsigned)reg : CFI_REGS;
}

static void set_cfa_expr(struct machine_state *m)
{
	uint64_t len = cfi_uleb(&m->c);
	const uint8_t *expr = cfi_skip(&m->c, len);

	m->row.cfa = (struct cfi_rule){
		.how = CFI_VAL_EXPR, .expr = expr, .len = (uint32_t)len,
	};
}

static void restore(struct machine_state *m, uint64_t reg)
{
	if (reg < CFI_REGS)
		m->row.regs[reg] = m->initial.regs[reg];
}

static void remember(struct machine_state *m)
{
	if (m->n_kept < MAX_REMEMBERED)
		m->kept[m->n_kept++] = m->row;
	else
		m->c.failed = true;
}

static void recall(struct machine_state *m)
{
	if (m->n_kept)
		m->row = m->kept[--m->n_kept];
	else
		m->c.failed = true;
}

/* False: the row for pc is complete. */
static bool advance(struct machine_state *m, uint64_t steps)
{
	vaddr loc = m->loc + steps * m->p->code_align;

	if (m->in_cie || loc > m->pc || loc < m->loc)
		return false;
	m->loc = loc;
	return true;
}

static void cfa_instruction(struct machine_state *m, unsigned op)
{
	uint64_t reg;

	switch (op) {
	case DEF_CFA:
		reg = cfi_uleb(&m->c);
		set_cfa(m, reg, (int64_t)cfi_uleb(&m->c));
		return;
	case DEF_CFA_SF:
		reg = cfi_uleb(&m->c);
		set_cfa(m, reg, scaled(m, cfi_sleb(&m->c)));
		return;
	case DEF_CFA_REGISTER:
		set_cfa(m, cfi_uleb(&m->c), m->row.cfa.n);
		return;
	case DEF_CFA_OFFSET:
		m->row.cfa.n = (int64_t)cfi_uleb(&m->c);
		return;
	case DEF_CFA_OFFSET_SF:
		m->row.cfa.n = scaled(m, cfi_sleb(&m->c));
		return;
	case DEF_CFA_EXPR:
		set_cfa_expr(m);
		return;
	}
	m->c.failed = true;
}

static void register_instruction(struct machine_state *m, unsigned op)
{
	uint64_t reg = cfi_uleb(&m->c);

	switch (op) {
	case OFFSET_EXT:
		set_rule(m, reg, CFI_OFFSET,
			 scaled(m, (int64_t)cfi_uleb(&m->c)));
		return;
	case OFFSET_SF:
		set_rule(m, reg, CFI_OFFSET, scaled(m, cfi_sleb(&m->c)));
		return;
	case GNU_NEGATIVE_OFFSET:
		set_rule(m, reg, CFI_OFFSET,
			 scaled(m, (int64_t)-cfi_uleb(&m->c)));
		return;
	case VAL_OFFSET:
		set_rule(m, reg, CFI_VAL_OFFSET,
			 scaled(m, (int64_t)cfi_uleb(&m->c)));
		return;
	case VAL_OFFSET_SF:
		set_rule(m, reg, CFI_VAL_OFFSET, scaled(m, cfi_sleb(&m->c)));
		return;
	case REGISTER:
		set_rule(m, reg, CFI_REGISTER, (int64_t)cfi_uleb(&m->c));
		return;
	case UNDEFINED:
		set_rule(m, reg, CFI_UNDEFINED, 0);
		return;
	case SAME_VALUE:
		set_rule(m, reg, CFI_SAME, 0);
		return;
	case RESTORE_EXT:
		restore(m, reg);
		return;
	case EXPR:
		set_expr(m, reg, CFI_EXPR);
		return;
	case VAL_EXPR:
		set_expr(m, reg, CFI_VAL_EXPR);
		return;
	}
	m->c.failed = true;
}

/* False: the row is complete. */
static bool plain_instruction(struct machine_state *m, unsigned op)
{
	switch (op) {
	case NOP:
		return true;
	case SET_LOC: {
		vaddr loc = cfi_pointer(&m->c, m->p->encoding & 0x0f, 0, 0);

		/* Relative ones were never seen here. */
		if (m->p->encoding & 0x70 || loc < m->loc)
			m->c.failed = true;
		m->loc = loc;
		return loc <= m->pc;
	}
	case ADVANCE_1:
		return advance(m, cfi_fixed(&m->c, 1));
	case ADVANCE_2:
		return advance(m, cfi_fixed(&m->c, 2));
	case ADVANCE_4:
		return advance(m, cfi_fixed(&m->c, 4));
	case REMEMBER:
		remember(m);
		return true;
	case RECALL:
		recall(m);
		return true;
	case NEGATE_RA_STATE:
		m->row.signed_ra = !m->row.signed_ra;
		return true;
	case GNU_ARGS_SIZE:
		cfi_uleb(&m->c);
		return true;
	case DEF_CFA:
	case DEF_CFA_SF:
	case DEF_CFA_REGISTER:
	case DEF_CFA_OFFSET:
	case DEF_CFA_OFFSET_SF:
	case DEF_CFA_EXPR:
		cfa_instruction(m, op);
		return true;
	}
	register_instruction(m, op);
	return true;
}

static bool instruction(struct machine_state *m)
{
	unsigned op = (unsigned)cfi_fixed(&m->c, 1), low = op & 0x3f;

	switch (op >> 6) {
	case ADVANCE:
		return advance(m, low);
	case OFFSET:
		set_rule(m, low, CFI_OFFSET,
			 scaled(m, (int64_t)cfi_uleb(&m->c)));
		return true;
	case RESTORE:
		restore(m, low);
		return true;
	}
	return plain_instruction(m, op);
}

static bool run(struct machine_state *m, const uint8_t *at,
		const uint8_t *end)
{
	m->c = (struct cfi_cursor){ at, end, m->p->word, false };
	while (m->c.at < end && !m->c.failed && instruction(m))
		;
	return !m->c.failed;
}

bool cfi_run(const struct cfi_program *p, vaddr pc, struct cfi_row *ret)
{
	struct machine_state m;

	m.p = p;
	m.pc = pc;
	m.loc = p->start;
	m.n_kept = 0;
	memset(&m.row, 0, sizeof(m.row));
	memset(&m.initial, 0, sizeof(m.initial));
	m.row.ra = ret->ra;
	m.row.signal = ret->signal;
	m.in_cie = true;
	if (!run(&m, p->first, p->first_end))
		return false;
	m.initial = m.row;
	m.in_cie = false;
	if (!run(&m, p->then, p->then_end))
		return false;
	*ret = m.row;
	return true;
}
