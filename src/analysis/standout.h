/* SPDX-License-Identifier: MIT */
/*
 * The few sentences that open the report, and one line of advice.
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

enum { STANDOUT_MAX = 5 };

struct standout_item {
	const char *rule;	/* static, stable: "trimmable", "damage" */
	uint64_t weight;	/* bytes it speaks of; orders the items */
	char *text;		/* owned; one or two sentences, one line */
};

struct standout {
	struct standout_item item[STANDOUT_MAX + 1];
	size_t n_items;		/* 0: nothing stands out */
	char *nothing;		/* owned; the sentence for that, else NULL */
	const char *advice_rule;	/* static; NULL: no advice */
	char *advice;		/* owned; what to do, one sentence, or NULL */
	char *reason;		/* owned; why, one sentence, or NULL */
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

#endif
