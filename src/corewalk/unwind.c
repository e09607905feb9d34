/* SPDX-License-Identifier: MIT */
#include "corewalk/unwind.h"

#include <string.h>

/* A machine's registers: DWARF number i is the note's register from[i]. */
struct registers {
	unsigned n, sp, fp, pc;		/* DWARF numbers; pc: our own if none */
	uint8_t from[CFI_REGS];
};

/*
 * System V ABI for AMD64, figure 3.36, and for i386, table 2.14; DWARF for
 * the Arm 64-bit Architecture, 4.1.  The right side is the order of struct
 * user_regs_struct of Linux.
 */
static const struct registers machines[] = {
	[MACHINE_X86_64] = { 17, 7, 6, 16, {
		10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16,
	} },
	[MACHINE_I386] = { 9, 4, 5, 8, {
		6, 1, 2, 0, 15, 5, 3, 4, 12,
	} },
	[MACHINE_AARCH64] = { 33, 31, 29, 32, {
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
		18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32,
	} },
};

enum {
	/* Addresses of user space; above are bits of a signature. */
	AARCH64_ADDRESS_BITS = 48,
};

const char *unwind_end_text(enum unwind_end end)
{
	static const char *const texts[] = {
		[UNWIND_MORE] = "there are more",
		[UNWIND_DONE] = "this is the outermost",
		[UNWIND_NO_TABLE] = "nothing says who called it",
		[UNWIND_NO_MEMORY] = "the stack is not in the file there",
		[UNWIND_NO_CODE] = "the return address is not of code",
		[UNWIND_STUCK] = "its caller would not be above it",
		[UNWIND_LIMIT] = "there are more",
	};

	return texts[end];
}

static void set_register(struct cfi_regs *r, unsigned i, uint64_t value)
{
	r->v[i] = value;
	r->known |= UINT64_C(1) << i;
}

void unwind_first(const struct space *sp, const struct thread *t,
		  struct frame *ret)
{
	const struct registers *m = &machines[sp->machine];

	memset(ret, 0, sizeof(*ret));
	for (unsigned i = 0; i < m->n; i++)
		if (m->from[i] < t->n_regs)
			set_register(&ret->regs, i, t->regs[m->from[i]]);
	ret->pc = t->pc;
	ret->sp = t->sp;
	ret->exact = true;
}

static bool is_code(struct space *sp, vaddr addr)
{
	const struct seg *seg = space_seg(sp, addr);

	return seg && seg->flags & SEG_X;
}

/* ---- by table ---- */

/* One step by a row; what the caller's registers are is put together here. */
struct step {
	struct space *sp;
	const struct frame *from;
	const struct cfi_row *row;
	vaddr cfa;
};

static bool find_cfa(struct space *sp, const struct frame *f,
		     const struct cfi_row *row, vaddr *ret)
{
	if (row->cfa.how == CFI_VAL_EXPR)
		return row->cfa.expr &&
		       cfi_eval(sp, &f->regs, row->cfa.expr, row->cfa.len,
				NULL, ret);
	if (row->cfa.how != CFI_REGISTER || !cfi_known(&f->regs, row->cfa_reg))
		return false;
	*ret = f->regs.v[row->cfa_reg] + (uint64_t)row->cfa.n;
	if (sp->word == 4)
		*ret &= UINT32_MAX;
	return true;
}

/* False: it is not known. */
static bool by_rule(const struct step *s, unsigned i, uint64_t *ret)
{
	const struct cfi_rule *rule = &s->row->regs[i];
	const struct cfi_regs *regs = &s->from->regs;
	uint64_t at;

	switch (rule->how) {
	case CFI_UNSAID:
	case CFI_SAME:
		*ret = cfi_known(regs, i) ? regs->v[i] : 0;
		return cfi_known(regs, i);
	case CFI_UNDEFINED:
		return false;
	case CFI_OFFSET:
		return space_word(s->sp, s->cfa + (uint64_t)rule->n, ret);
	case CFI_VAL_OFFSET:
		*ret = s->cfa + (uint64_t)rule->n;
		return true;
	case CFI_REGISTER:
		if (rule->n < 0 || rule->n >= CFI_REGS ||
		    !cfi_known(regs, (unsigned)rule->n))
			return false;
		*ret = regs->v[rule->n];
		return true;
	case CFI_EXPR:
		return cfi_eval(s->sp, regs, rule->expr, rule->len, &s->cfa,
				&at) &&
		       space_word(s->sp, at, ret);
	case CFI_VAL_EXPR:
		return cfi_eval(s->sp, regs, rule->expr, rule->len, &s->cfa,
				ret);
	}
	return false;
}

static bool above(const struct frame *from, vaddr sp, vaddr pc, bool signal)
{
	/* A leaf of AArch64 takes no stack at all. */
	return signal || sp > from->sp || (sp == from->sp && pc != from->pc);
}

static enum unwind_end by_row(struct space *sp, const struct cfi_row *row,
			      struct frame *f)
{
	const struct registers *m = &machines[sp->machine];
	struct step s = { sp, f, row, 0 };
	struct frame to = { .exact = row->signal };
	uint64_t value;

	if (row->regs[row->ra].how == CFI_UNDEFINED)
		return UNWIND_DONE;
	if (row->ra == m->pc && row->regs[row->ra].how == CFI_UNSAID)
		return UNWIND_NO_TABLE;
	if (!find_cfa(sp, f, row, &s.cfa))
		return UNWIND_NO_MEMORY;
	for (unsigned i = 0; i < m->n; i++)
		if (by_rule(&s, i, &value))
			set_register(&to.regs, i, value);
	if (row->regs[m->sp].how == CFI_UNSAID)
		set_register(&to.regs, m->sp, s.cfa);
	if (!cfi_known(&to.regs, m->sp) || !by_rule(&s, row->ra, &to.pc))
		return UNWIND_NO_MEMORY;
	if (row->signed_ra && sp->machine == MACHINE_AARCH64)
		to.pc &= (UINT64_C(1) << AARCH64_ADDRESS_BITS) - 1;
	to.sp = to.regs.v[m->sp];
	if (!to.pc)
		return UNWIND_DONE;
	if (!above(f, to.sp, to.pc, row->signal))
		return UNWIND_STUCK;
	/* A handler can have interrupted a call of a bad pointer. */
	if (!row->signal && !is_code(sp, to.pc))
		return UNWIND_NO_CODE;
	set_register(&to.regs, m->pc, to.pc);
	*f = to;
	return UNWIND_MORE;
}

/* ---- by guess ---- */

static enum unwind_end take_guess(struct space *sp, vaddr at, uint64_t fp,
				  bool fp_known, struct frame *f)
{
	const struct registers *m = &machines[sp->machine];
	struct frame to = { .guess = true };

	if (!space_word(sp, at, &to.pc))
		return UNWIND_NO_MEMORY;
	if (!to.pc)
		return UNWIND_DONE;
	if (!is_code(sp, to.pc))
		return UNWIND_NO_CODE;
	to.sp = at + sp->word;
	set_register(&to.regs, m->sp, to.sp);
	set_register(&to.regs, m->pc, to.pc);
	if (fp_known)
		set_register(&to.regs, m->fp, fp);
	*f = to;
	return UNWIND_MORE;
}

/* The frame pointer points to the caller's one; its address is behind it. */
static enum unwind_end by_frame_pointer(struct space *sp, struct frame *f)
{
	const struct registers *m = &machines[sp->machine];
	vaddr fp = f->regs.v[m->fp];
	uint64_t next;

	if (!cfi_known(&f->regs, m->fp) || fp % sp->word || fp < f->sp ||
	    !space_word(sp, fp, &next) ||
	    take_guess(sp, fp + sp->word, next, true, f) != UNWIND_MORE)
		return UNWIND_NO_TABLE;
	return UNWIND_MORE;
}

/* Nothing runs where there is no code: it was called a moment ago. */
static enum unwind_end by_bad_call(struct space *sp, struct frame *f)
{
	const struct registers *m = &machines[sp->machine];
	struct cfi_regs regs = f->regs;
	enum unwind_end end;

	if (sp->machine == MACHINE_AARCH64)
		return UNWIND_NO_TABLE;
	end = take_guess(sp, f->sp, regs.v[m->fp], cfi_known(&regs, m->fp),
			 f);
	if (end != UNWIND_MORE)
		return end;
	/* The others are still what they were. */
	regs.v[m->sp] = f->sp;
	regs.v[m->pc] = f->pc;
	f->regs = regs;
	return UNWIND_MORE;
}

/* The row of a frame; for what a handler returns to it can begin at pc. */
static bool find_row(struct cfi *c, const struct frame *f,
		     struct cfi_row *ret)
{
	if (!f->pc || cfi_find(c, f->exact ? f->pc : f->pc - 1, ret))
		return f->pc != 0;
	return !f->exact && cfi_find(c, f->pc, ret) && ret->signal;
}

static enum unwind_end step(struct space *sp, struct cfi *c, struct frame *f)
{
	struct cfi_row row;

	if (f->exact && !is_code(sp, f->pc))
		return by_bad_call(sp, f);
	return find_row(c, f, &row) ? by_row(sp, &row, f)
				    : by_frame_pointer(sp, f);
}

enum unwind_end unwind_next(struct space *sp, struct cfi *c, struct frame *f)
{
	enum unwind_end end = step(sp, c, f);
	struct cfi_row row;

	if (end == UNWIND_MORE && !f->exact)
		f->signal = find_row(c, f, &row) && row.signal;
	return end;
}

bool unwind_cfa(struct space *sp, struct cfi *c, const struct frame *f,
		vaddr *ret)
{
	struct cfi_row row;

	return find_row(c, f, &row) && find_cfa(sp, f, &row, ret);
}
