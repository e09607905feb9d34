/* SPDX-License-Identifier: MIT */
/*
 * An estimate as columns: the value, its 95 % interval, the exact value where
 * that is known, and by how much the estimate is off.
 *
 *	enum { S_NAME, S_BYTES, S_SHARE = S_BYTES + ESTIMATE_COLUMNS, ... };
 *	[S_NAME] = ..., ESTIMATE_OF_BYTES(S_BYTES, SHOWN, SHOWN), ...
 *	estimate_set(t, S_BYTES, &estimate, rate, true, exact);
 */
#ifndef REPORT_ESTIMATE_H
#define REPORT_ESTIMATE_H

#include "report/table.h"
#include "sampler/geom.h"

enum {
	ESTIMATE_VALUE,
	ESTIMATE_LOW,
	ESTIMATE_HIGH,
	ESTIMATE_BOUND,		/* the larger side, of the value */
	ESTIMATE_EXACT,
	ESTIMATE_ERROR,
	ESTIMATE_COVERS,	/* the exact value lies in the interval */
	ESTIMATE_COLUMNS
};

#define ESTIMATE_SHOWN 0
#define ESTIMATE_HIDDEN COLUMN_NO_TEXT

/*
 * of: flags of the estimate's columns; and: of those of the exact value; sum:
 * COLUMN_SUM if rows add up.
 */
#define ESTIMATE_AS(at, unit, type, of, and, sum)			\
	[(at) + ESTIMATE_VALUE] = COLUMN("estimate_" unit, "estimate",	\
		type, .flags = (sum) | (of), .width = 10),		\
	[(at) + ESTIMATE_LOW] = COLUMN("low_" unit, "low", type,	\
		.flags = COLUMN_NO_TEXT),				\
	[(at) + ESTIMATE_HIGH] = COLUMN("high_" unit, "high", type,	\
		.flags = COLUMN_NO_TEXT),				\
	[(at) + ESTIMATE_BOUND] = COLUMN("bound_" unit "_share",	\
		"+-95%", SHARE, .flags = (of), .width = 8),		\
	[(at) + ESTIMATE_EXACT] = COLUMN("exact_" unit, "exact", type,	\
		.flags = (sum) | (and), .width = 10),			\
	[(at) + ESTIMATE_ERROR] = COLUMN("error_" unit "_share", "error", \
		SHARE, .flags = COLUMN_SIGN | (of) | (and),		\
		.width = 8),						\
	[(at) + ESTIMATE_COVERS] = COLUMN("covers_" unit, "", FLAG,	\
		.flags = COLUMN_NO_TEXT)

#define ESTIMATE_OF_BYTES(at, of, and) \
	ESTIMATE_AS(at, "bytes", BYTES, of, and, COLUMN_SUM)
#define ESTIMATE_OF_BLOCKS(at, of, and) \
	ESTIMATE_AS(at, "blocks", COUNT, of, and, COLUMN_SUM)
/* A block counts in several rows. */
#define ESTIMATE_INCLUSIVE(at, of, and) \
	ESTIMATE_AS(at, "bytes", BYTES, of, and, 0)

/*
 * Fill them.  exact may be NULL.  unseen as in interval_score(); negative: the
 * estimate has no honest interval, and none is shown.
 */
void estimate_set(struct table *t, size_t at, const struct estimate *e,
		  double unseen, const uint64_t *exact);

/* Does the interval hold the value, to the rounding of the report? */
bool estimate_covers(const struct estimate *e, double unseen, uint64_t exact);

#endif
