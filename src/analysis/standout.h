/* SPDX-License-Identifier: MIT */
/*
 * The few sentences that open the report, and a word of advice.
 *
 * Sizes.  What was never touched costs nothing, so a sentence speaks of
 * *stored* bytes: of a process the resident ones, of a core those in the file.
 * Where these are not all of the memory it speaks of, it says so.
 *
 * Advice is ranked by what it would give back: what a call certainly does goes
 * before what a change of the program may do, and each by its bytes.  What
 * ends the program soon, or has, goes before both.
 *
 * Each sentence belongs to a rule with a threshold.  At most STANDOUT_MAX are
 * kept: damage first, then the most bytes first.  If no rule speaks there is
 * one sentence that says so.
 */
#ifndef ANALYSIS_STANDOUT_H
#define ANALYSIS_STANDOUT_H

#include "analysis/damage.h"
#include "analysis/fragment.h"
#include "analysis/usage.h"
#include "analysis/where.h"
#include "base/types.h"

enum { STANDOUT_MAX = 5, ADVICE_MAX = 2 };

struct standout_item {
	const char *rule;	/* static, stable: "trimmable", "damage" */
	uint64_t weight;	/* bytes it speaks of; orders the items */
	char *text;		/* owned; one or two sentences, one line */
};

enum standout_rank {
	ADVICE_PERHAPS,
	ADVICE_CERTAIN,
	ADVICE_FIRST,
	ADVICE_ALONE,
};

struct standout_advice {
	enum standout_rank rank;
	const char *rule;	/* static, stable: "trim", "damage" */
	uint64_t bytes;		/* it would give back, at most; 0: none */
	char *text;		/* owned; what to do, in one sentence */
	char *reason;		/* owned; why, in one sentence */
	char *command;		/* owned; what to type, or NULL */
};

struct standout {
	struct standout_item item[STANDOUT_MAX + 1];
	size_t n_items;		/* 0: nothing stands out */
	char *nothing;		/* owned; the sentence for that, else NULL */
	struct standout_advice advice[ADVICE_MAX];
	size_t n_advice;
};

struct standout_input {
	struct space *sp;
	struct heap *heap;
	const struct where *where;
	const struct usage *usage;
	const struct fragment *fragment;
	const struct damage *damage;
};

void standout_init(struct standout *s, const struct standout_input *in);
void standout_fini(struct standout *s);

/*
 * For rules of other modules, after standout_init: the item takes its place
 * by weight and the least one gives way.
 */
void standout_add(struct standout *s, const char *rule, uint64_t weight,
		  const char *fmt, ...) PRINTF_LIKE(4, 5);

/* Another item has made that of this rule superfluous. */
void standout_drop(struct standout *s, const char *rule);

/*
 * Advice of other modules takes its place by rank and bytes; with damage there
 * is none.  Both texts are copied.
 */
void standout_advise(struct standout *s, enum standout_rank rank,
		     const char *rule, uint64_t bytes, const char *text,
		     const char *reason);

#endif
