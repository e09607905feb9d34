/* SPDX-License-Identifier: MIT */
/*
 * The way back for a thread that makes system calls of ours.
 *
 * A thread with registers that are not its own must find back to them by
 * itself if the tracer is killed.  So before its registers are touched, rows
 * of what the kernel writes for signal handlers are put on a stack: each
 * *entry* is the address of code that calls rt_sigreturn(2), and registers
 * for that to load.  The calls are made by instructions of the process itself,
 * "syscall; ret": the return goes to the next entry.
 *
 *	the thread   clone(helper) -> wait4(helper) -> its own registers
 *	the helper   clone(copy) -> exit
 *	the copy     exit
 *
 * The helper shares the memory of the process and lives for these two calls
 * only; the copy is what is wanted.  Since its parent ends at once, the copy
 * belongs to the init process, which takes it when it ends.  The number of the
 * helper is written by the kernel to where wait4 will find it
 * (CLONE_PARENT_SETTID).
 *
 * Where nothing goes wrong, the thread is given its registers back before it
 * comes to use an entry.  rt_sigreturn has one effect that is seen: sleeps
 * that the kernel would have continued (ERESTART_RESTARTBLOCK) end with EINTR.
 *
 * Layout of a frame: Linux, arch/x86/include/asm/sigframe.h and
 * arch/x86/kernel/signal_64.c; of floating-point state: arch/x86/include/
 * uapi/asm/sigcontext.h and arch/x86/kernel/fpu/signal.c.
 */
#include "corewalk/live_chain.h"

#include "base/mem.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <errno.h>
#include <linux/sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum {
	/* All that rt_sigreturn reads: the kernel's mask is of 64 bits. */
	CONTEXT = offsetof(ucontext_t, uc_sigmask) + 8,
	ENTRY = (8 + CONTEXT + 63) / 64 * 64,
	N_ENTRIES = 4,
	RED_ZONE = 128,
	/* Linux, arch/x86/include/uapi/asm/ucontext.h and sigcontext.h. */
	UC_FP_XSTATE = 1, UC_SIGCONTEXT_SS = 2, UC_STRICT_RESTORE_SS = 4,
	FP_MAGIC1 = 0x46505853, FP_MAGIC2 = 0x46505845,
	/* Of no alternate stack: the kernel leaves that as it is. */
	NO_ALTSTACK = 0x40,
	/* No process has this number, nor ever will. */
	NOBODY = 0x7fffffff,
	/* Linux, include/linux/errno.h: what a stopped call would return. */
	ERESTARTSYS = 512, ERESTARTNOINTR = 513, ERESTARTNOHAND = 514,
	ERESTART_RESTARTBLOCK = 516,
	/* Of an XSAVE area. */
	XSAVE_WORDS = 464, XSAVE_HEADER = 512, XSAVE_MIN = 576,
	GADGET_CHUNK = 256 << 10,
	GADGET_MAX = 16,
};

static const uint64_t XSAVE_AMX = 3 << 17;
static const uint64_t GADGET_BUDGET = 256 * MIB;

/* ---- instructions of the process ---- */

static const uint8_t syscall_ret[] = { 0x0f, 0x05, 0xc3 };
/* mov $15, %rax or %eax; syscall: the restorer of any C library. */
static const uint8_t restorer_rax[] = {
	0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05,
};
static const uint8_t restorer_eax[] = { 0xb8, 15, 0, 0, 0, 0x0f, 0x05 };

static void look_for(const uint8_t *code, size_t n, const uint8_t *what,
		     size_t size, vaddr at, vaddr *ret)
{
	const uint8_t *found = *ret ? NULL : memmem(code, n, what, size);

	if (found)
		*ret = at + (vaddr)(found - code);
}

/* In [from, to), through the process. */
static void search_code(struct live *lv, vaddr from, vaddr to, uint8_t *buf,
			uint64_t *budget)
{
	while (from < to && *budget &&
	       !(lv->syscall_ret && lv->restorer)) {
		size_t want = min_u64(to - from, GADGET_CHUNK);
		ssize_t got = pread(lv->mem_fd, buf, want, (off_t)from);

		if (got <= GADGET_MAX)
			return;
		look_for(buf, (size_t)got, syscall_ret, sizeof(syscall_ret),
			 from, &lv->syscall_ret);
		look_for(buf, (size_t)got, restorer_rax, sizeof(restorer_rax),
			 from, &lv->restorer);
		look_for(buf, (size_t)got, restorer_eax, sizeof(restorer_eax),
			 from, &lv->restorer);
		*budget -= min_u64(*budget, (uint64_t)got);
		/* What lies across the border is found from here. */
		from += (uint64_t)got < want || from + want == to ?
			(uint64_t)got : (uint64_t)got - GADGET_MAX;
	}
}

/* Pages that are there first: others would have to be brought in. */
void live_chain_look(struct live *lv)
{
	AUTO_FREE uint8_t *buf = mem_alloc(GADGET_CHUNK);
	const struct space *sp = lv->sp;
	uint64_t budget = GADGET_BUDGET;
	size_t i, k = 0;

	lv->syscall_ret = lv->restorer = 0;
	for (i = 0; i < lv->n_maps; i++) {
		const struct live_map *map = &lv->maps[i];

		if (!(map->flags & SEG_X) || !(map->flags & SEG_R))
			continue;
		while (k < sp->n_pages && sp->pages[k].start +
		       sp->pages[k].n * sp->page <= map->start)
			k++;
		for (size_t j = k; j < sp->n_pages &&
		     sp->pages[j].start < map->end; j++) {
			const struct page_run *run = &sp->pages[j];
			vaddr end = run->start + run->n * sp->page;

			if (run->flags & PAGE_PRESENT)
				search_code(lv, max_u64(run->start, map->start),
					    min_u64(end, map->end), buf,
					    &budget);
		}
	}
	for (i = 0; i < lv->n_maps; i++)
		if (lv->maps[i].flags & SEG_X && lv->maps[i].has_file)
			search_code(lv, lv->maps[i].start, lv->maps[i].end,
				    buf, &budget);
}

static bool has_code(const struct live *lv, vaddr at, const uint8_t *code,
		     size_t n)
{
	uint8_t buf[GADGET_MAX];

	return at && pread(lv->mem_fd, buf, n, (off_t)at) == (ssize_t)n &&
	       !memcmp(buf, code, n);
}

/* They were found while it ran; are they still there? */
static bool still_there(const struct live *lv)
{
	return has_code(lv, lv->syscall_ret, syscall_ret,
			sizeof(syscall_ret)) &&
	       (has_code(lv, lv->restorer, restorer_rax,
			 sizeof(restorer_rax)) ||
		has_code(lv, lv->restorer, restorer_eax,
			 sizeof(restorer_eax)));
}

/* ---- a place for them ---- */

static const struct live_map *find_stack(const struct live *lv)
{
	size_t i;

	for (i = 0; i < lv->n_maps; i++)
		if (!strcmp(lv->maps[i].name, "[stack]"))
			return &lv->maps[i];
	return NULL;
}

static bool never_touched(const struct space *sp, vaddr from, vaddr to)
{
	size_t i;

	for (i = 0; i < sp->n_pages && sp->pages[i].start < to; i++)
		if (sp->pages[i].start + sp->pages[i].n * sp->page > from)
			return false;
	return true;
}

/*
 * Memory that nobody uses while the chain lasts.  The main thread's stack
 * below where it is, if it is the main thread that runs the chain; or the low
 * end of that stack, if it was never touched or that thread has ended.  Stacks
 * of other threads will not do: some languages have small ones, with something
 * else below.
 */
static bool find_place(struct chain *c, const struct live *lv,
		       const struct live_thread *t, vaddr sp)
{
	const struct live_map *stack = find_stack(lv);
	vaddr top;

	if (!stack)
		return false;
	if (t->tid == lv->pid && sp > stack->start && sp <= stack->end)
		top = sp - RED_ZONE;
	else if (t->tid != lv->pid ||
		 never_touched(lv->sp, stack->start,
			       stack->start + 4 * lv->sp->page))
		top = stack->start + 3 * lv->sp->page;
	else
		return false;
	/* The handler of a signal may need some, at the very first moment. */
	if (top < stack->start || top - stack->start < 2 * c->size + 64)
		return false;
	c->base = (top - c->size) & ~UINT64_C(63);
	return true;
}

/* ---- floating-point state ---- */

/* Where in an XSAVE area the last of these parts ends. */
static size_t xsave_end(uint64_t parts)
{
	unsigned eax, ebx, ecx, edx, i;
	size_t end = XSAVE_MIN;

	for (i = 2; i < 63; i++)
		if (parts >> i & 1 &&
		    __get_cpuid_count(0xd, i, &eax, &ebx, &ecx, &edx) &&
		    eax + ebx > end)
			end = eax + ebx;
	return end;
}

/* Bytes of it in a frame; 0 if it cannot be put into one. */
static size_t xsave_size(const struct live_thread *t, uint64_t *ret_parts)
{
	uint64_t in_use;
	size_t end;

	if (t->n_xstate < XSAVE_MIN)
		return 0;
	memcpy(ret_parts, t->xstate + XSAVE_WORDS, 8);
	memcpy(&in_use, t->xstate + XSAVE_HEADER, 8);
	/* May be larger than what the kernel allows in a frame. */
	*ret_parts &= ~XSAVE_AMX;
	end = xsave_end(*ret_parts);
	return in_use & XSAVE_AMX || end > t->n_xstate ? 0 : end;
}

static void put_xsave(uint8_t *to, const struct live_thread *t,
		      uint64_t parts, size_t size)
{
	const struct {
		uint32_t magic1, extended;
		uint64_t parts;
		uint32_t size, pad[7];
	} words = { FP_MAGIC1, (uint32_t)size + 4, parts, (uint32_t)size,
		    { 0 } };
	const uint32_t magic2 = FP_MAGIC2;

	memcpy(to, t->xstate, size);
	memcpy(to + XSAVE_WORDS, &words, sizeof(words));
	memcpy(to + size, &magic2, sizeof(magic2));
}

/* ---- entries ---- */

static void put_entry(struct chain *c, vaddr at, vaddr restorer,
		      const struct user_regs_struct *r, uint64_t mask,
		      vaddr fp)
{
	uint8_t *to = c->bytes + (at - c->base);
	ucontext_t uc;
	greg_t *g = uc.uc_mcontext.gregs;

	memset(&uc, 0, sizeof(uc));
	g[REG_R8] = (greg_t)r->r8;
	g[REG_R9] = (greg_t)r->r9;
	g[REG_R10] = (greg_t)r->r10;
	g[REG_R11] = (greg_t)r->r11;
	g[REG_R12] = (greg_t)r->r12;
	g[REG_R13] = (greg_t)r->r13;
	g[REG_R14] = (greg_t)r->r14;
	g[REG_R15] = (greg_t)r->r15;
	g[REG_RDI] = (greg_t)r->rdi;
	g[REG_RSI] = (greg_t)r->rsi;
	g[REG_RBP] = (greg_t)r->rbp;
	g[REG_RBX] = (greg_t)r->rbx;
	g[REG_RDX] = (greg_t)r->rdx;
	g[REG_RAX] = (greg_t)r->rax;
	g[REG_RCX] = (greg_t)r->rcx;
	g[REG_RSP] = (greg_t)r->rsp;
	g[REG_RIP] = (greg_t)r->rip;
	g[REG_EFL] = (greg_t)r->eflags;
	g[REG_CSGSFS] = (greg_t)(r->cs | r->ss << 48);
	uc.uc_flags = UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS |
		      (fp ? UC_FP_XSTATE : 0);
	uc.uc_stack.ss_flags = NO_ALTSTACK;
	memcpy(&uc.uc_mcontext.fpregs, &fp, sizeof(fp));
	memcpy(&uc.uc_sigmask, &mask, sizeof(mask));
	memcpy(to, &restorer, sizeof(restorer));
	memcpy(to + 8, &uc, CONTEXT);
}

/* Its own registers, as they are once an interrupted call was begun anew. */
static struct user_regs_struct resumed(struct user_regs_struct r)
{
	bool in_call = (long long)r.orig_rax >= 0;

	switch (in_call ? -(long long)r.rax : 0) {
	case ERESTARTSYS:
	case ERESTARTNOINTR:
	case ERESTARTNOHAND:
		r.rax = r.orig_rax;
		r.rip -= 2;
		break;
	case ERESTART_RESTARTBLOCK:
		r.rax = (unsigned long long)-EINTR;
		break;
	}
	return r;
}

static void put_entries(struct chain *c, const struct live *lv,
			const struct user_regs_struct *regs, uint64_t mask,
			vaddr fp)
{
	const uint64_t all = ~UINT64_C(0);
	struct user_regs_struct r;

	r = live_chain_call(c, SYS_wait4, NOBODY, 0, c->back);
	r.rdx = __WALL;
	put_entry(c, c->wait, lv->restorer, &r, all, 0);
	r = resumed(*regs);
	put_entry(c, c->back, lv->restorer, &r, mask, fp);
	r = live_chain_call(c, SYS_clone, CLONE_FILES, c->exit, c->exit);
	put_entry(c, c->fork, lv->restorer, &r, all, 0);
	r = live_chain_call(c, SYS_exit_group, 0, 0, c->exit);
	put_entry(c, c->exit, lv->restorer, &r, all, 0);
	/* Of the first entry, where the kernel puts who is waited for. */
	c->helper = c->wait + 8 + offsetof(ucontext_t, uc_mcontext.gregs) +
		    REG_RDI * sizeof(greg_t);
}

struct user_regs_struct live_chain_call(const struct chain *c, long number,
					uint64_t arg1, uint64_t arg2,
					vaddr next)
{
	struct user_regs_struct r = c->own;

	r.rip = c->code;
	r.rsp = next;
	r.rax = (unsigned long long)number;
	/* No system call that was interrupted must be restarted here. */
	r.orig_rax = (unsigned long long)-1;
	r.rdi = arg1;
	r.rsi = arg2;
	r.rdx = r.r10 = r.r8 = 0;
	return r;
}

/* ---- all of it ---- */

const char *live_chain_make(struct chain *c, const struct live *lv,
			    const struct live_thread *t,
			    const struct user_regs_struct *regs,
			    uint64_t mask)
{
	uint64_t parts = 0;
	size_t fp_size = xsave_size(t, &parts);

	if (!still_there(lv))
		return "no code in it makes the calls that are needed";
	if (!fp_size)
		return "its floating-point state is not known";
	c->size = N_ENTRIES * ENTRY + (fp_size + 4 + 63) / 64 * 64;
	if (!find_place(c, lv, t, regs->rsp))
		return "its main stack has no room";
	c->own = *regs;
	c->code = lv->syscall_ret;
	c->bytes = mem_zalloc(c->size);
	c->before = mem_alloc(c->size);
	/* The first one lowest: a handler's frame goes below. */
	c->wait = c->base;
	c->back = c->wait + ENTRY;
	c->fork = c->back + ENTRY;
	c->exit = c->fork + ENTRY;
	put_entries(c, lv, regs, mask, c->exit + ENTRY);
	put_xsave(c->bytes + N_ENTRIES * ENTRY, t, parts, fp_size);
	return NULL;
}

bool live_chain_put(const struct chain *c, int mem_fd)
{
	return pread(mem_fd, c->before, c->size, (off_t)c->base) ==
		       (ssize_t)c->size &&
	       pwrite(mem_fd, c->bytes, c->size, (off_t)c->base) ==
		       (ssize_t)c->size;
}

bool live_chain_undo(const struct chain *c, int mem_fd)
{
	return pwrite(mem_fd, c->before, c->size, (off_t)c->base) ==
	       (ssize_t)c->size;
}

void live_chain_fini(struct chain *c)
{
	free(c->bytes);
	free(c->before);
}

#endif
