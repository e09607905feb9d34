/* SPDX-License-Identifier: MIT */
/*
 * Call frame information: how to find the caller of an address.
 *
 * A *row* says it for one address: where the frame begins (its canonical
 * frame address, CFA: the stack pointer before the call) and where the
 * caller's registers are.  Rows come from .eh_frame, found by the program
 * header PT_GNU_EH_FRAME of the module's image in the target (so the image of
 * the kernel's [vdso] has them too), or from .debug_frame or .eh_frame of a
 * file when the image does not tell.
 *
 * Bytes are strangers'.  A table is never walked further than its bytes; an
 * entry that says nonsense is no entry.  Nothing is trusted that a row says:
 * who follows it reads through the space and has its own bounds.
 *
 * Formats: Linux Standard Base 5.0, 10.6 (.eh_frame, .eh_frame_hdr); DWARF 5,
 * 6.4 (.debug_frame); GCC's unwind-dw2.c for what both leave out.
 */
#ifndef COREWALK_CFI_H
#define COREWALK_CFI_H

#include "corewalk/debug.h"
#include "corewalk/space.h"

/* Registers by DWARF number; those behind are of no use for unwinding. */
enum { CFI_REGS = 34 };

enum cfi_how {
	CFI_UNSAID,		/* as it is, by custom */
	CFI_SAME,
	CFI_UNDEFINED,		/* lost; of the return address: no caller */
	CFI_OFFSET,		/* stored at CFA + n */
	CFI_VAL_OFFSET,		/* CFA + n */
	CFI_REGISTER,		/* in register n */
	CFI_EXPR,		/* stored at what the expression says */
	CFI_VAL_EXPR,		/* what the expression says */
};

struct cfi_rule {
	enum cfi_how how;
	uint32_t len;		/* of expr */
	int64_t n;
	const uint8_t *expr;	/* borrowed from the table */
};

struct cfi_row {
	/* CFA: register reg plus n by CFI_REGISTER, or CFI_VAL_EXPR. */
	struct cfi_rule cfa;
	unsigned cfa_reg;
	struct cfi_rule regs[CFI_REGS];
	unsigned ra;		/* the register that is the return address */
	bool signal;		/* of a handler's way back: pc is exact */
	bool signed_ra;		/* AArch64: the return address is signed */
};

struct cfi;

/* Borrows both until cfi_free(); debug may be NULL. */
struct cfi *cfi_new(struct space *sp, struct debug *debug);
void cfi_free(struct cfi *c);

/* The row for an address of code; false if there is none. */
bool cfi_find(struct cfi *c, vaddr pc, struct cfi_row *ret);

/* Registers of a frame, by DWARF number. */
struct cfi_regs {
	uint64_t v[CFI_REGS];
	uint64_t known;		/* bit i: v[i] */
};

static inline bool cfi_known(const struct cfi_regs *r, unsigned i)
{
	return i < CFI_REGS && r->known >> i & 1;
}

/*
 * cfi_expr.c: the value of a DWARF expression of call frame information.
 * With cfa it is on the stack first.  False if a register or byte that it
 * wants is not known, if it is not well formed, or if it does not end soon.
 */
bool cfi_eval(struct space *sp, const struct cfi_regs *regs,
	      const uint8_t *expr, uint64_t len, const vaddr *cfa,
	      uint64_t *ret);

/*
 * cfi_read.c: a cursor over bytes of a table.  At the end, and behind a
 * number that is not whole, it stays, failed, and reads zeros.
 */
struct cfi_cursor {
	const uint8_t *at, *end;
	unsigned word;		/* bytes of an address */
	bool failed;
};

uint64_t cfi_fixed(struct cfi_cursor *c, unsigned bytes);
uint64_t cfi_uleb(struct cfi_cursor *c);
int64_t cfi_sleb(struct cfi_cursor *c);
/* The next n bytes, NULL if they are not there. */
const uint8_t *cfi_skip(struct cfi_cursor *c, uint64_t n);

/*
 * A number in one of the encodings of pointers (DW_EH_PE_...).  here is the
 * address of the cursor's next byte, data that of .eh_frame_hdr.
 */
uint64_t cfi_pointer(struct cfi_cursor *c, unsigned encoding, vaddr here,
		     vaddr data);

/* An entry's instructions, and the numbers that they need. */
struct cfi_program {
	const uint8_t *first, *first_end;	/* of the CIE */
	const uint8_t *then, *then_end;	/* of the FDE */
	uint64_t code_align;
	int64_t data_align;
	vaddr start;		/* of the code that the FDE is for */
	unsigned encoding;	/* of addresses */
	unsigned word;
};

/* cfi_run.c: the row at pc; ra and signal are left as they are. */
bool cfi_run(const struct cfi_program *p, vaddr pc, struct cfi_row *ret);

#endif
