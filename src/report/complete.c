/* SPDX-License-Identifier: MIT */
/*
 * What a report leaves out, and the sentence for it.
 */
#include <inttypes.h>

#include "analysis/reach.h"
#include "analysis/search.h"
#include "base/num.h"
#include "report/build.h"

/* Reasons follow each other as parts of a sentence. */
static struct str *next(struct str *s)
{
	if (s->len)
		str_adds(s, "; ");
	return s;
}

static void memory_missing(struct str *s, const struct space *sp)
{
	char size[NUM_MAX], wanted[NUM_MAX];
	size_t missing = count_missing(sp);

	num_format_size(size, sp->core_size);
	num_format_size(wanted, sp->core_wanted);
	if (missing)
		str_printf(next(s), "%zu of %zu mappings are not in the file",
			   missing, sp->n_segs);
	if (sp->core_size < sp->core_wanted)
		str_printf(next(s), "the file ends after %s of %s", size,
			   wanted);
	if (sp->damaged)
		str_printf(next(s), "the compressed file is damaged");
}

static void heap_unknown(struct str *s, const struct report_input *in)
{
	uint64_t bytes = max_u64(in->where->row[WHERE_UNDECODED].bytes,
				 sum_heap(in->heap).undecoded);
	char size[NUM_MAX];

	num_format_size(size, bytes);
	if (bytes)
		str_printf(next(s), "%s of the heaps could not be decoded",
			   size);
	if (!in->heap_found && in->where->row[WHERE_ANONYMOUS].bytes)
		str_printf(next(s), "no known allocator was found");
}

/* The first says what is wrong, and FINDINGS has them all. */
static void grave_notes(struct str *s, const struct heap *h)
{
	size_t n = 0;

	for (size_t i = 0; i < h->n_notes; i++)
		if (h->notes[i].grave && !n++)
			str_adds(next(s), h->notes[i].text);
	if (n > 1)
		str_printf(next(s), "and %zu more findings", n - 1);
}

static void not_looked_for(struct str *s, const struct report_input *in)
{
	int64_t off;

	if (in->reach_refused)
		str_printf(next(s), "leaks were not looked for: %s",
			   in->no_reach);
	if (in->census_refused)
		str_printf(next(s), "blocks got no types");
	if (in->search && in->search->gave_up)
		str_printf(next(s), "the search took too many steps in %"
			   PRIu64 " places", in->search->gave_up);
	if (!where_check(in->where, &off))
		str_printf(next(s), "the rows of WHERE are %" PRId64
			   " bytes off", off);
}

bool report_complete(const struct report_input *in, struct str *ret)
{
	str_clear(ret);
	memory_missing(ret, in->sp);
	heap_unknown(ret, in);
	grave_notes(ret, in->heap);
	not_looked_for(ret, in);
	if (ret->len)
		str_addc(ret, '.');
	return !ret->len;
}
