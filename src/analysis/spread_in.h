/* SPDX-License-Identifier: MIT */
/*
 * Between spread.c, which follows pointers, and claim.c, which decides what a
 * block is.
 */
#ifndef ANALYSIS_SPREAD_IN_H
#define ANALYSIS_SPREAD_IN_H

#include "analysis/spread.h"

/* What a pointer says. */
struct claim {
	vaddr value;
	uint32_t type;		/* pointed to, or SPREAD_... */
	uint32_t n;		/* elements, if that is known; else 0 */
	uint8_t known;		/* enum type_known */
	bool node;		/* by a container's rule */
	bool unsure;		/* one of a union's */
	bool strict;		/* only what fits exactly; a hint */
	bool single;		/* no array: what follows it are bytes */
	bool quiet;		/* it is not followed: somebody else does */
};

/* Has the block, or what lies at the value, the type now? */
bool claim(struct spread *s, const struct claim *c);

/* The type of objects whose first word is this; 0: it is no vtable. */
uint32_t class_of(struct spread *s, uint64_t word);

void enqueue(struct spread *s, vaddr addr, uint32_t type, uint64_t n,
	     uint8_t known);

#endif
