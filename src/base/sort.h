/* SPDX-License-Identifier: MIT */
/*
 * Sorting arrays.  A comparison of several keys is ORDER() of the first, "?:",
 * ORDER() of the second, and so on; what shall come first when it is larger has
 * its sides swapped.
 */
#ifndef BASE_SORT_H
#define BASE_SORT_H

#include <stdlib.h>

#include "base/num.h"

/* -1, 0 or 1 as a is less than b, the same, or more; of any type. */
#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/* n items, which may be none and NULL. */
#define SORT(items, n, compare) \
	((n) ? qsort((items), (n), sizeof(*(items)), (compare)) : (void)0)

/* By their first member, which is an address or another uint64_t. */
#define SORT_BY(items, n, member) do {					\
	_Static_assert(!offsetof(__typeof__(*(items)), member) &&	\
		       sizeof((items)->member) == sizeof(uint64_t),	\
		       "not the first");				\
	SORT(items, n, num_compare_u64);				\
} while (0)

/* An item that begins with key, of items in that order; NULL if none does. */
#define FIND(items, n, key) __extension__ ({				\
	uint64_t find_key = (key);					\
									\
	(__typeof__(&(items)[0]))((n) ?					\
		bsearch(&find_key, (items), (n), sizeof(*(items)),	\
			num_compare_u64) : NULL);			\
})

#endif
