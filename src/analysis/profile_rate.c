/* SPDX-License-Identifier: MIT */
#include "analysis/profile_rate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
	STACK_TOP = 4 << 20,	/* bytes of a stack that are searched */
	VALUE_MAX = 4096,
	JEMALLOC_LG = 19,	/* the default of jemalloc 5: 512 KiB */
	LG_MAX = 40,
};

#define MAX_RATE (UINT64_C(1) << LG_MAX)

/* ---- the environment ---- */

/* NAME=value, from a zero to a zero, the last one: that is the highest. */
static const char *find_last(const char *text, size_t n, const char *name)
{
	size_t len = strlen(name);

	for (size_t at = n > len + 1 ? n - len - 1 : 0; at > 0; at--)
		if (!text[at - 1] && text[at + len] == '=' &&
		    !memcmp(text + at, name, len))
			return text + at + len + 1;
	return NULL;
}

/*
 * What the environment had for a name when the program began, as the main
 * thread's stack has it; false if that is not found.  ret holds max + 1 bytes.
 */
static bool environment(struct space *sp, const char *name, char *ret,
			size_t max)
{
	const struct seg *seg = NULL;
	const char *value = NULL;
	char *text;
	uint64_t n;

	for (size_t i = 0; i < sp->n_threads && !seg; i++)
		if (sp->threads[i].tid == sp->pid)
			seg = space_seg(sp, sp->threads[i].sp);
	if (!seg)
		return false;
	n = min_u64(seg->end - seg->start, STACK_TOP);
	text = mem_zalloc(n + 1);
	if (space_read(sp, seg->end - n, text, n) == n)
		value = find_last(text, n, name);
	if (value)
		snprintf(ret, max + 1, "%s", value);
	free(text);
	return value != NULL;
}

/* ---- of one allocator ---- */

/* The mangled names of a flag that has moved between two namespaces. */
static const char *const tcmalloc_flags[] = {
	"_ZN61FLAG__namespace_do_not_use_directly_use_DECLARE_int64_instead31"
	"FLAGS_tcmalloc_sample_parameterE",
	"_ZN63FLAG__namespace_do_not_use_directly_use_DECLARE_int64_t_instead"
	"31FLAGS_tcmalloc_sample_parameterE",
	NULL,
};

static const char *const jemalloc_variables[] = {
	"lg_prof_sample", "je_lg_prof_sample", NULL,
};

static bool is_rate(uint64_t bytes)
{
	return bytes && bytes <= MAX_RATE;
}

static bool find_variable(struct space *sp, struct symbols *symbols,
			  const struct module *m, const char *const *names,
			  uint64_t *ret)
{
	vaddr at;

	for (; m && *names; names++)
		if (symbols_named(symbols, m, *names, &at) &&
		    space_u64(sp, at, ret))
			return true;
	return false;
}

static struct profile_rate of_tcmalloc(struct space *sp,
				       struct symbols *symbols,
				       const struct heap_profile *p)
{
	char text[VALUE_MAX + 1];
	uint64_t bytes;

	if (find_variable(sp, symbols, p->module, tcmalloc_flags, &bytes) &&
	    is_rate(bytes))
		return (struct profile_rate){ bytes, "variable" };
	if (environment(sp, "TCMALLOC_SAMPLE_PARAMETER", text, VALUE_MAX)) {
		bytes = strtoull(text, NULL, 10);
		if (is_rate(bytes))
			return (struct profile_rate){ bytes, "environment" };
	}
	return (struct profile_rate){ 0, NULL };
}

static struct profile_rate of_jemalloc(struct space *sp,
				       struct symbols *symbols,
				       const struct heap_profile *p)
{
	static const char option[] = "lg_prof_sample:";
	char text[VALUE_MAX + 1];
	const char *at;
	uint64_t lg;

	if (find_variable(sp, symbols, p->module, jemalloc_variables, &lg) &&
	    lg <= LG_MAX)
		return (struct profile_rate){ UINT64_C(1) << lg, "variable" };
	if (environment(sp, "MALLOC_CONF", text, VALUE_MAX)) {
		at = strstr(text, option);
		lg = at ? strtoull(at + strlen(option), NULL, 10) : LG_MAX + 1;
		if (lg <= LG_MAX)
			return (struct profile_rate){ UINT64_C(1) << lg,
						      "environment" };
	}
	return (struct profile_rate){ UINT64_C(1) << JEMALLOC_LG, "default" };
}

/*
 * A weight is T + l - N, with N from 1 to l: T is at most the least of them,
 * and at least the largest less l - 1.  Of these, the roundest number.
 */
static struct profile_rate of_weights(const struct heap_profile *p)
{
	uint64_t low = 1, high = MAX_RATE, bytes;

	for (size_t i = 0; i < p->n; i++) {
		const struct heap_sample *s = &p->samples[i];

		if (!s->weight || !s->length)
			return (struct profile_rate){ 0, NULL };
		high = min_u64(high, s->weight);
		if (s->weight > s->length)
			low = max_u64(low, s->weight - s->length + 1);
	}
	if (!p->n || low > high)
		return (struct profile_rate){ 0, NULL };
	bytes = high;
	for (unsigned bit = 0; bit < 40; bit++) {
		uint64_t rounder = bytes & ~((UINT64_C(2) << bit) - 1);

		if (rounder < low)
			break;
		bytes = rounder;
	}
	return (struct profile_rate){ bytes, "weights" };
}

struct profile_rate profile_rate_find(struct space *sp,
				      struct symbols *symbols,
				      const struct heap *h,
				      const struct heap_profile *p)
{
	const char *name = h->allocators[p->allocator].name;
	struct profile_rate weights = of_weights(p);

	if (is_rate(p->rate))
		return (struct profile_rate){ p->rate, "allocator" };
	if (weights.bytes)
		return weights;
	if (!strcmp(name, "jemalloc"))
		return of_jemalloc(sp, symbols, p);
	if (!strcmp(name, "tcmalloc"))
		return of_tcmalloc(sp, symbols, p);
	return (struct profile_rate){ 0, NULL };
}
