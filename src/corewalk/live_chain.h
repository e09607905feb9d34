/* SPDX-License-Identifier: MIT */
/*
 * Registers and memory with which a thread that makes system calls of ours
 * gets back to its own, whoever is killed on the way.  See live_chain.c.
 */
#ifndef COREWALK_LIVE_CHAIN_H
#define COREWALK_LIVE_CHAIN_H

#include "corewalk/live.h"

#if defined(__x86_64__)

#include <sys/user.h>

struct chain {
	vaddr base;		/* in the process */
	size_t size;		/* bytes */
	uint8_t *bytes;		/* owned: what goes there */
	uint8_t *before;	/* owned: what was there */
	vaddr code;		/* "syscall; ret" */
	struct user_regs_struct own;	/* the thread's */
	/* Entries, which are stack pointers too. */
	vaddr wait, back, fork, exit;
	vaddr helper;		/* for the second argument to clone(2) */
};

/*
 * For a thread that stands still, with these registers and blocked signals.
 * Why it is not possible, or NULL; then live_chain_fini() must follow.
 */
const char *live_chain_make(struct chain *c, const struct live *lv,
			    const struct live_thread *t,
			    const struct user_regs_struct *regs,
			    uint64_t mask) MUST_CHECK;
/* Into the memory of the process, and away from it or its copy. */
bool live_chain_put(const struct chain *c, int mem_fd) MUST_CHECK;
bool live_chain_undo(const struct chain *c, int mem_fd) MUST_CHECK;
void live_chain_fini(struct chain *c);

/* Registers that make a call of two arguments and go on at an entry. */
struct user_regs_struct live_chain_call(const struct chain *c, long number,
					uint64_t arg1, uint64_t arg2,
					vaddr next);

#endif

#endif
