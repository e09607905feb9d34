/* SPDX-License-Identifier: MIT */
#include "corewalk/dwarf_locals.h"

#include <dwarf.h>

enum { STACK_MAX = 16, OPS_MAX = 64 };

/* One frame. */
struct scene {
	struct dwarf_frames *in;
	const struct frame *frame;
	uint64_t pc;		/* in the file */
	vaddr bias;
	vaddr cfa, base;	/* base: what DW_OP_fbreg counts from */
	bool has_cfa, has_base;
	void (*each)(void *data, const struct dwarf_local *l);
	void *data;
};

struct machine_stack {
	uint64_t v[STACK_MAX];
	unsigned n;
	bool failed;
};

static void push(struct machine_stack *st, uint64_t value)
{
	if (st->n == STACK_MAX)
		st->failed = true;
	else
		st->v[st->n++] = value;
}

static uint64_t pop(struct machine_stack *st)
{
	if (st->n)
		return st->v[--st->n];
	st->failed = true;
	return 0;
}

static void push_register(const struct scene *sc, struct machine_stack *st,
			  unsigned reg, uint64_t offset)
{
	if (cfi_known(&sc->frame->regs, reg))
		push(st, sc->frame->regs.v[reg] + offset);
	else
		st->failed = true;
}

static void push_known(struct machine_stack *st, bool known, uint64_t value)
{
	push(st, value);
	st->failed |= !known;
}

static void binary(struct machine_stack *st, unsigned atom)
{
	uint64_t b = pop(st), a = pop(st);

	switch (atom) {
	case DW_OP_plus:
		push(st, a + b);
		break;
	case DW_OP_minus:
		push(st, a - b);
		break;
	case DW_OP_and:
		push(st, a & b);
		break;
	case DW_OP_or:
		push(st, a | b);
		break;
	case DW_OP_mul:
		push(st, a * b);
		break;
	case DW_OP_shl:
		push(st, b < 64 ? a << b : 0);
		break;
	}
}

static void read_word(const struct scene *sc, struct machine_stack *st)
{
	uint64_t value = 0;

	st->failed |= !space_word(sc->in->sp, pop(st), &value);
	push(st, value);
}

/* All that ordinary code needs; what else there is fails. */
static void step(const struct scene *sc, struct machine_stack *st,
		 const Dwarf_Op *op)
{
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
		push(st, op->atom - DW_OP_lit0);
		return;
	}
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		push_register(sc, st, op->atom - DW_OP_breg0, op->number);
		return;
	}
	switch (op->atom) {
	case DW_OP_bregx:
		push_register(sc, st, (unsigned)op->number, op->number2);
		break;
	case DW_OP_fbreg:
		push_known(st, sc->has_base, sc->base + op->number);
		break;
	case DW_OP_call_frame_cfa:
		push_known(st, sc->has_cfa, sc->cfa);
		break;
	case DW_OP_addr:
		push(st, op->number + sc->bias);
		break;
	case DW_OP_const1u ... DW_OP_consts:
		push(st, op->number);
		break;
	case DW_OP_plus_uconst:
		push(st, pop(st) + op->number);
		break;
	case DW_OP_plus:
	case DW_OP_minus:
	case DW_OP_and:
	case DW_OP_or:
	case DW_OP_mul:
	case DW_OP_shl:
		binary(st, op->atom);
		break;
	case DW_OP_deref:
		read_word(sc, st);
		break;
	case DW_OP_nop:
		break;
	default:
		st->failed = true;
	}
}

static bool is_register(const Dwarf_Op *op, unsigned *ret)
{
	if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31)
		*ret = op->atom - DW_OP_reg0;
	else if (op->atom == DW_OP_regx && op->number < CFI_REGS)
		*ret = (unsigned)op->number;
	else
		return false;
	return true;
}

/* Gets the address of the variable, or its value. */
static bool evaluate(const struct scene *sc, const Dwarf_Op *ops, size_t n,
		     uint64_t *ret, bool *ret_in_memory)
{
	struct machine_stack st = { .n = 0 };
	unsigned reg;

	*ret_in_memory = true;
	if (n == 1 && is_register(&ops[0], &reg)) {
		*ret_in_memory = false;
		if (!cfi_known(&sc->frame->regs, reg))
			return false;
		*ret = sc->frame->regs.v[reg];
		return true;
	}
	if (n && ops[n - 1].atom == DW_OP_stack_value) {
		*ret_in_memory = false;
		n--;
	}
	if (!n || n > OPS_MAX)
		return false;
	for (size_t i = 0; i < n && !st.failed; i++)
		step(sc, &st, &ops[i]);
	*ret = pop(&st);
	return !st.failed;
}

static bool locate(const struct scene *sc, Dwarf_Die *die, unsigned name,
		   uint64_t *ret, bool *ret_in_memory)
{
	Dwarf_Attribute at;
	Dwarf_Op *ops;
	size_t n;

	return dwarf_attr(die, name, &at) &&
	       dwarf_getlocation_addr(&at, sc->pc, &ops, &n, 1) == 1 &&
	       evaluate(sc, ops, n, ret, ret_in_memory);
}

static void visit_variable(struct scene *sc, Dwarf_Die *die)
{
	struct dwarf_local l = { .name = "?" };
	Dwarf_Attribute at;
	const char *name;

	if (!locate(sc, die, DW_AT_location, &l.value, &l.in_memory))
		return;
	l.type = dwarf_type_of(sc->in->t, die);
	if (!l.type)
		return;
	name = dwarf_attr_integrate(die, DW_AT_name, &at) ?
	       dwarf_formstring(&at) : NULL;
	if (name && *name)
		l.name = name;
	sc->each(sc->data, &l);
}

static void visit_scope(struct scene *sc, Dwarf_Die *scope, unsigned depth)
{
	Dwarf_Die die;

	if (depth >= DWARF_MAX_CHAIN || dwarf_child(scope, &die))
		return;
	for (; sc->in->budget; sc->in->budget--) {
		switch (dwarf_tag(&die)) {
		case DW_TAG_variable:
		case DW_TAG_formal_parameter:
			visit_variable(sc, &die);
			break;
		case DW_TAG_lexical_block:
		case DW_TAG_inlined_subroutine:
		case DW_TAG_try_block:
		case DW_TAG_catch_block:
			if (dwarf_haspc(&die, sc->pc) > 0)
				visit_scope(sc, &die, depth + 1);
			break;
		}
		if (!dwarf_forward(&die))
			return;
	}
}

void dwarf_locals(struct dwarf_frames *in, const struct frame *f,
		  void (*each)(void *data, const struct dwarf_local *l),
		  void *data)
{
	vaddr pc = frame_lookup(f);
	const struct debug_module *m = debug_at(in->debug, pc);
	struct scene sc = { .in = in, .frame = f, .each = each, .data = data };
	bool in_memory;
	Dwarf_Die function;

	if (!m || !m->dwarf)
		return;
	sc.bias = m->bias;
	sc.pc = pc - m->bias;
	if (!lines_function(in->lines, m, sc.pc, &function))
		return;
	sc.has_cfa = unwind_cfa(in->sp, in->cfi, f, &sc.cfa);
	/* A register that it is in is its value, not its place. */
	sc.has_base = locate(&sc, &function, DW_AT_frame_base, &sc.base,
			     &in_memory);
	visit_scope(&sc, &function, 0);
}
