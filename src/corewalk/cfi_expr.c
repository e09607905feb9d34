/* SPDX-License-Identifier: MIT */
/*
 * DWARF expressions (DWARF 5, 2.5), as far as call frame information uses
 * them.  They can loop: a count of operations ends them.
 */
#include "corewalk/cfi.h"

enum {
	OP_ADDR = 0x03,
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08,
	OP_CONSTS = 0x11,
	OP_DUP = 0x12,
	OP_DROP = 0x13,
	OP_OVER = 0x14,
	OP_PICK = 0x15,
	OP_SWAP = 0x16,
	OP_ROT = 0x17,
	OP_ABS = 0x19,
	OP_AND = 0x1a,
	OP_DIV = 0x1b,
	OP_MINUS = 0x1c,
	OP_MOD = 0x1d,
	OP_MUL = 0x1e,
	OP_NEG = 0x1f,
	OP_NOT = 0x20,
	OP_OR = 0x21,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST = 0x23,
	OP_SHL = 0x24,
	OP_SHR = 0x25,
	OP_SHRA = 0x26,
	OP_XOR = 0x27,
	OP_BRA = 0x28,
	OP_EQ = 0x29,
	OP_GE = 0x2a,
	OP_GT = 0x2b,
	OP_LE = 0x2c,
	OP_LT = 0x2d,
	OP_NE = 0x2e,
	OP_SKIP = 0x2f,
	OP_LIT0 = 0x30,
	OP_LIT31 = 0x4f,
	OP_BREG0 = 0x70,
	OP_BREG31 = 0x8f,
	OP_BREGX = 0x92,
	OP_DEREF_SIZE = 0x94,
	OP_NOP = 0x96,

	MAX_STACK = 64,
	MAX_OPS = 4096,
};

struct eval {
	struct space *sp;
	const struct cfi_regs *regs;
	struct cfi_cursor c;
	const uint8_t *start;
	uint64_t stack[MAX_STACK];
	unsigned n;
};

static void push(struct eval *e, uint64_t value)
{
	if (e->n < MAX_STACK)
		e->stack[e->n++] = value;
	else
		e->c.failed = true;
}

static uint64_t pop(struct eval *e)
{
	if (e->n)
		return e->stack[--e->n];
	e->c.failed = true;
	return 0;
}

/* The item that many below the top. */
static uint64_t peek(struct eval *e, uint64_t depth)
{
	if (depth < e->n)
		return e->stack[e->n - 1 - depth];
	e->c.failed = true;
	return 0;
}

static void push_register(struct eval *e, uint64_t reg)
{
	uint64_t n = (uint64_t)cfi_sleb(&e->c);

	if (reg < CFI_REGS && cfi_known(e->regs, (unsigned)reg))
		push(e, e->regs->v[reg] + n);
	else
		e->c.failed = true;
}

static void deref(struct eval *e, uint64_t size)
{
	vaddr addr = pop(e);
	uint64_t value = 0;

	/* Little-endian machines only. */
	if (!size || size > 8 || space_read(e->sp, addr, &value, size) != size)
		e->c.failed = true;
	push(e, value);
}

/* const1u, const1s, const2u, ... const8s, constu, consts */
static void push_constant(struct eval *e, unsigned op)
{
	unsigned i = op - OP_CONST1U, bytes = 1u << i / 2;
	uint64_t value;

	if (i >= 8) {
		push(e, i == 8 ? cfi_uleb(&e->c) : (uint64_t)cfi_sleb(&e->c));
		return;
	}
	value = cfi_fixed(&e->c, bytes);
	if (i & 1 && bytes < 8 && value >> (8 * bytes - 1))
		value |= UINT64_MAX << 8 * bytes;
	push(e, value);
}

static bool shuffle(struct eval *e, unsigned op)
{
	uint64_t a, b, c;

	switch (op) {
	case OP_DUP:
		push(e, peek(e, 0));
		return true;
	case OP_DROP:
		pop(e);
		return true;
	case OP_OVER:
		push(e, peek(e, 1));
		return true;
	case OP_PICK:
		push(e, peek(e, cfi_fixed(&e->c, 1)));
		return true;
	case OP_SWAP:
		a = pop(e);
		b = pop(e);
		push(e, a);
		push(e, b);
		return true;
	case OP_ROT:
		a = pop(e);
		b = pop(e);
		c = pop(e);
		push(e, a);
		push(e, c);
		push(e, b);
		return true;
	}
	return false;
}

static bool unary(struct eval *e, unsigned op)
{
	switch (op) {
	case OP_ABS: {
		uint64_t a = pop(e);

		push(e, (int64_t)a < 0 ? -a : a);
		return true;
	}
	case OP_NEG:
		push(e, -pop(e));
		return true;
	case OP_NOT:
		push(e, ~pop(e));
		return true;
	case OP_PLUS_UCONST:
		push(e, pop(e) + cfi_uleb(&e->c));
		return true;
	}
	return false;
}

static uint64_t shift(uint64_t a, uint64_t n, unsigned op)
{
	if (op == OP_SHRA)
		return (uint64_t)((int64_t)a >> (n > 63 ? 63 : n));
	if (n > 63)
		return 0;
	return op == OP_SHL ? a << n : a >> n;
}

static bool compare(uint64_t a, uint64_t b, unsigned op)
{
	int64_t x = (int64_t)a, y = (int64_t)b;

	switch (op) {
	case OP_EQ:
		return x == y;
	case OP_GE:
		return x >= y;
	case OP_GT:
		return x > y;
	case OP_LE:
		return x <= y;
	case OP_LT:
		return x < y;
	default:
		return x != y;
	}
}

static uint64_t divide(struct eval *e, uint64_t a, uint64_t b)
{
	int64_t x = (int64_t)a, y = (int64_t)b;

	if (!y || (x == INT64_MIN && y == -1)) {
		e->c.failed = true;
		return 0;
	}
	return (uint64_t)(x / y);
}

static void binary(struct eval *e, unsigned op)
{
	uint64_t b = pop(e), a = pop(e);

	switch (op) {
	case OP_AND:
		push(e, a & b);
		return;
	case OP_DIV:
		push(e, divide(e, a, b));
		return;
	case OP_MINUS:
		push(e, a - b);
		return;
	case OP_MOD:
		e->c.failed |= !b;
		push(e, b ? a % b : 0);
		return;
	case OP_MUL:
		push(e, a * b);
		return;
	case OP_OR:
		push(e, a | b);
		return;
	case OP_PLUS:
		push(e, a + b);
		return;
	case OP_XOR:
		push(e, a ^ b);
		return;
	case OP_SHL:
	case OP_SHR:
	case OP_SHRA:
		push(e, shift(a, b, op));
		return;
	case OP_EQ:
	case OP_GE:
	case OP_GT:
	case OP_LE:
	case OP_LT:
	case OP_NE:
		push(e, compare(a, b, op));
		return;
	}
	e->c.failed = true;
}

static void jump(struct eval *e, bool take)
{
	int64_t n = (int16_t)cfi_fixed(&e->c, 2);

	if (!take || e->c.failed)
		return;
	if (n < e->start - e->c.at || n > e->c.end - e->c.at)
		e->c.failed = true;
	else
		e->c.at += n;
}

static void operation(struct eval *e, unsigned op)
{
	if (op >= OP_LIT0 && op <= OP_LIT31)
		push(e, op - OP_LIT0);
	else if (op >= OP_BREG0 && op <= OP_BREG31)
		push_register(e, op - OP_BREG0);
	else if (op == OP_BREGX)
		push_register(e, cfi_uleb(&e->c));
	else if (op >= OP_CONST1U && op <= OP_CONSTS)
		push_constant(e, op);
	else if (op == OP_ADDR)
		push(e, cfi_fixed(&e->c, e->c.word));
	else if (op == OP_DEREF)
		deref(e, e->c.word);
	else if (op == OP_DEREF_SIZE)
		deref(e, cfi_fixed(&e->c, 1));
	else if (op == OP_SKIP)
		jump(e, true);
	else if (op == OP_BRA)
		jump(e, pop(e) != 0);
	else if (op != OP_NOP && !shuffle(e, op) && !unary(e, op))
		binary(e, op);
}

bool cfi_eval(struct space *sp, const struct cfi_regs *regs,
	      const uint8_t *expr, uint64_t len, const vaddr *cfa,
	      uint64_t *ret)
{
	struct eval e = { .sp = sp, .regs = regs, .start = expr };
	unsigned left = MAX_OPS;

	e.c = (struct cfi_cursor){ expr, expr + len, sp->word, false };
	if (cfa)
		push(&e, *cfa);
	while (e.c.at < e.c.end && !e.c.failed && left--)
		operation(&e, (unsigned)cfi_fixed(&e.c, 1));
	if (e.c.failed || e.c.at < e.c.end || !e.n)
		return false;
	*ret = sp->word == 8 ? pop(&e) : pop(&e) & UINT32_MAX;
	return true;
}
