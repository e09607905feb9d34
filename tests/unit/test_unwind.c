/* SPDX-License-Identifier: MIT */
/*
 * Expressions and tables that lie, and stacks without tables.  What real
 * programs have is compared with gdb in tests/sh/threads.sh.
 */
#include "corewalk/unwind.h"

#include "check.h"
#include "corewalk/target.h"

enum {
	CODE = 0x400000,
	STACK = 0x7fff0000,
	STACK_SIZE = 4096,
	RBP = 6,
	RSP = 7,
	RIP = 16,
};

static uint64_t stack[STACK_SIZE / 8];

static struct space *make_space(void)
{
	struct space *sp = target_mem_new(MACHINE_X86_64);

	target_mem_add(sp, CODE, 4096, SEG_R | SEG_X, NULL, 4096, NULL);
	target_mem_add(sp, STACK, STACK_SIZE, SEG_R | SEG_W, stack,
		       STACK_SIZE, NULL);
	target_mem_done(sp);
	return sp;
}

static struct frame frame_at(vaddr pc, vaddr sp, vaddr bp)
{
	struct frame f = { .pc = pc, .sp = sp, .exact = true };

	f.regs.v[RBP] = bp;
	f.regs.v[RSP] = sp;
	f.regs.v[RIP] = pc;
	f.regs.known = 1 << RBP | 1 << RSP | 1 << RIP;
	return f;
}

static bool eval(const char *bytes, size_t n, uint64_t *ret)
{
	struct space *sp = make_space();
	struct cfi_regs regs = { .known = 1 << RSP };
	vaddr cfa = 1000;
	bool ok;

	regs.v[RSP] = STACK;
	ok = cfi_eval(sp, &regs, (const uint8_t *)bytes, n, &cfa, ret);
	space_close(sp);
	return ok;
}

#define EVAL(bytes, ret) eval((bytes), sizeof(bytes) - 1, (ret))

TEST(expressions)
{
	uint64_t v = 0;

	stack[2] = 77;
	/* What linkers write for .plt: rsp + 8 + (rip & 15 >= 11) * 8 */
	CHECK(EVAL("\x77\x08", &v));
	CHECK_U64(v, STACK + 8);
	CHECK(EVAL("\x77\x10\x06", &v));
	CHECK_U64(v, 77);
	CHECK(EVAL("\x3b\x3f\x1a\x3b\x2a\x33\x24", &v));
	CHECK_U64(v, 8);
	/* The CFA is on the stack first. */
	CHECK(EVAL("\x23\x05", &v));
	CHECK_U64(v, 1005);
	CHECK(EVAL("\x09\xff", &v));
	CHECK_U64(v, UINT64_MAX);
	CHECK(EVAL("\x39\x33\x16\x1c", &v));
	CHECK_U64(v, (uint64_t)-6);
}

TEST(expressions_that_lie)
{
	uint64_t v = 5;
	char many[200];

	/* skip -3: for ever */
	CHECK(!EVAL("\x2f\xfd\xff", &v));
	/* a jump outside, a stack too small, too large, division by 0 */
	CHECK(!EVAL("\x2f\x10\x00", &v));
	CHECK(!EVAL("\x2f\xf0\xff", &v));
	CHECK(!EVAL("\x22", &v));
	CHECK(!EVAL("\x13\x13", &v));
	memset(many, 0x12, sizeof(many));
	CHECK(!eval(many, sizeof(many), &v));
	CHECK(!EVAL("\x30\x1b", &v));
	CHECK(!EVAL("\x30\x1d", &v));
	/* INT64_MIN / -1 */
	CHECK(!EVAL("\x0f\x00\x00\x00\x00\x00\x00\x00\x80\x09\xff\x1b", &v));
	/* a register that is not known, memory that is not there */
	CHECK(!EVAL("\x76\x00", &v));
	CHECK(!EVAL("\x92\xff\x7f\x00", &v));
	CHECK(!EVAL("\x30\x06", &v));
	CHECK(!EVAL("\x77\x00\x94\x09", &v));
	/* cut off, and unknown */
	CHECK(!EVAL("\x03\x01\x02", &v));
	CHECK(!EVAL("\x77", &v));
	CHECK(!EVAL("\xe0", &v));
	CHECK_U64(v, 5);
}

static struct cfi_program program(const char *bytes, size_t n)
{
	return (struct cfi_program){
		.first = (const uint8_t *)"", .first_end = (const uint8_t *)"",
		.then = (const uint8_t *)bytes,
		.then_end = (const uint8_t *)bytes + n,
		.code_align = 1, .data_align = -8, .start = CODE, .word = 8,
	};
}

static bool row(const char *bytes, size_t n, vaddr pc, struct cfi_row *ret)
{
	struct cfi_program p = program(bytes, n);

	p.first_end = p.first;
	memset(ret, 0, sizeof(*ret));
	return cfi_run(&p, pc, ret);
}

#define ROW(bytes, pc, ret) row((bytes), sizeof(bytes) - 1, (pc), (ret))

TEST(rows)
{
	/* cfa rsp+8; rip at -8; +1: cfa rsp+16, rbp at -16; +3: cfa rbp+16 */
	static const char push[] = "\x0c\x07\x08\x90\x01\x41\x0e\x10\x86\x02"
				   "\x43\x0d\x06";
	struct cfi_row r;

	CHECK(ROW(push, CODE, &r));
	CHECK_U64(r.cfa_reg, RSP);
	CHECK_U64((uint64_t)r.cfa.n, 8);
	CHECK_U64(r.regs[RIP].how, CFI_OFFSET);
	CHECK_U64((uint64_t)r.regs[RIP].n, (uint64_t)-8);
	CHECK_U64(r.regs[RBP].how, CFI_UNSAID);
	CHECK(ROW(push, CODE + 1, &r));
	CHECK_U64((uint64_t)r.cfa.n, 16);
	CHECK_U64(r.regs[RBP].how, CFI_OFFSET);
	CHECK_U64(r.cfa_reg, RSP);
	CHECK(ROW(push, CODE + 4, &r));
	CHECK_U64(r.cfa_reg, RBP);
	/* remembered and recalled */
	CHECK(ROW("\x0c\x07\x08\x0a\x0e\x20\x41\x0b", CODE + 1, &r));
	CHECK_U64((uint64_t)r.cfa.n, 8);
}

TEST(rows_that_lie)
{
	struct cfi_row r;
	char many[100];

	CHECK(!ROW("\x0b", CODE, &r));
	memset(many, 0x0a, sizeof(many));
	CHECK(!row(many, sizeof(many), CODE, &r));
	CHECK(!ROW("\x0f\x7f", CODE, &r));
	CHECK(!ROW("\x0c\x07", CODE, &r));
	CHECK(!ROW("\x3f", CODE, &r));
	/* A register that no machine has is passed over. */
	CHECK(ROW("\x05\xff\x7f\x01", CODE, &r));
	CHECK(ROW("\x0c\xff\x7f\x01", CODE, &r));
	CHECK_U64(r.cfa_reg, CFI_REGS);
}

TEST(frame_pointers_are_a_guess)
{
	struct frame f = frame_at(CODE + 16, STACK + 8, STACK + 32);
	struct cfi *cfi;
	struct space *sp;

	memset(stack, 0, sizeof(stack));
	stack[4] = STACK + 64;
	stack[5] = CODE + 100;
	/* Downwards again: a loop, if it were followed. */
	stack[8] = STACK + 32;
	stack[9] = CODE + 200;
	sp = make_space();
	cfi = cfi_new(sp, NULL);
	CHECK_U64(unwind_next(sp, cfi, &f), UNWIND_MORE);
	CHECK_U64(f.pc, CODE + 100);
	CHECK_U64(f.sp, STACK + 48);
	CHECK(f.guess && !f.exact);
	CHECK_U64(unwind_next(sp, cfi, &f), UNWIND_MORE);
	CHECK_U64(f.pc, CODE + 200);
	CHECK_U64(unwind_next(sp, cfi, &f), UNWIND_NO_TABLE);
	CHECK_U64(f.pc, CODE + 200);
	/* Not aligned; not on the stack; not to code. */
	f = frame_at(CODE + 16, STACK + 8, STACK + 33);
	CHECK_U64(unwind_next(sp, cfi, &f), UNWIND_NO_TABLE);
	f = frame_at(CODE + 16, STACK + 8, 0x123456789abc0);
	CHECK_U64(unwind_next(sp, cfi, &f), UNWIND_NO_TABLE);
	f = frame_at(CODE + 16, STACK + 8, STACK + 80);
	CHECK_U64(unwind_next(sp, cfi, &f), UNWIND_NO_TABLE);
	cfi_free(cfi);
	space_close(sp);
}

TEST(a_call_of_what_is_no_code)
{
	struct frame f = frame_at(0, STACK + 8, STACK + 32);
	struct cfi *cfi;
	struct space *sp;

	memset(stack, 0, sizeof(stack));
	stack[1] = CODE + 50;
	stack[2] = 0x4141414141414141;
	sp = make_space();
	cfi = cfi_new(sp, NULL);
	CHECK_U64(unwind_next(sp, cfi, &f), UNWIND_MORE);
	CHECK_U64(f.pc, CODE + 50);
	CHECK_U64(frame_lookup(&f), CODE + 49);
	CHECK(f.guess);
	CHECK_U64(f.regs.v[RBP], STACK + 32);
	f = frame_at(0, STACK + 16, STACK + 32);
	CHECK_U64(unwind_next(sp, cfi, &f), UNWIND_NO_CODE);
	f = frame_at(0, STACK + STACK_SIZE, 0);
	CHECK_U64(unwind_next(sp, cfi, &f), UNWIND_NO_MEMORY);
	cfi_free(cfi);
	space_close(sp);
}
