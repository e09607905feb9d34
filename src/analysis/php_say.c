/* SPDX-License-Identifier: MIT */
#include "analysis/php_say.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"

/* Shares of what a heap has in use, and no less than a megabyte. */
#define HOLDER_MIN 0.10
#define REPEATED_MIN 0.05
#define GARBAGE_MIN 0.05
#define FREE_MIN 0.50		/* of what it has from the kernel */
#define LIMIT_NEAR 0.80

enum { BYTES_MIN = 1 << 20 };

static bool is_much(uint64_t bytes, uint64_t whole, double share)
{
	return bytes >= BYTES_MIN && num_share(bytes, whole) >= share;
}

static bool has_limit(const struct php_request *r)
{
	return r->limit <= INT64_MAX / 2;
}

/* Names are bytes of the target. */
static char *escaped(const char *name)
{
	struct str s;

	str_init(&s);
	str_add_name(&s, name, strlen(name));
	return str_take(&s);
}

/* A variable of the program; what holds most is first. */
static const struct php_holder_row *top_holder(const struct php_request *r)
{
	for (size_t i = 0; i < r->n_holders; i++)
		if (r->holders[i].kind < PHP_FIRST_RANK &&
		    is_much(r->holders[i].holds, r->walked, HOLDER_MIN))
			return &r->holders[i];
	return NULL;
}

/* The array that it is, if it is one. */
static const struct php_array_row *array_of(const struct php_request *r,
					    const struct php_holder_row *h)
{
	for (size_t i = 0; i < r->n_arrays; i++)
		if (!r->arrays[i].path[0] && r->arrays[i].arrays == 1 &&
		    !strcmp(r->arrays[i].holder, h->name))
			return &r->arrays[i];
	return NULL;
}

static void say_holder(struct standout *s, const struct php_request *r)
{
	const struct php_holder_row *h = top_holder(r);
	const struct php_array_row *a;
	char bytes[NUM_MAX], share[NUM_MAX];
	char elements[64] = "";
	char *name;

	if (!h)
		return;
	a = array_of(r, h);
	if (a)
		snprintf(elements, sizeof(elements), ", an array of %" PRIu64
			 " element%s", a->elements,
			 a->elements == 1 ? "" : "s");
	name = escaped(h->name);
	num_format_size(bytes, h->holds);
	num_format_share(share, num_share(h->holds, r->walked));
	standout_add(s, "php-holder", h->holds, "PHP: %s%s, holds %s, %s of "
		     "what the program has in use.", name, elements, bytes,
		     share);
	free(name);
}

static void say_limit(struct standout *s, const struct php_request *r)
{
	char real[NUM_MAX], limit[NUM_MAX];

	if (!has_limit(r) || num_share(r->real_peak, r->limit) < LIMIT_NEAR)
		return;
	num_format_size(real, r->real_peak);
	num_format_size(limit, r->limit);
	standout_add(s, "php-limit", r->real_peak, "PHP %s %s of the %s that "
		     "memory_limit allows.", r->real < r->real_peak ?
		     "had at its peak" : "has", real, limit);
}

static void say_garbage(struct standout *s, const struct php_request *r)
{
	char bytes[NUM_MAX];

	if (!is_much(r->lost.bytes, r->walked, GARBAGE_MIN))
		return;
	num_format_size(bytes, r->lost.bytes);
	standout_add(s, "php-garbage", r->lost.bytes, "PHP: %s in %" PRIu64
		     " objects of cycles that nobody refers to%s.", bytes,
		     r->lost_objects, !r->collector_found ? "" :
		     r->collector_on ? ", until the collector runs" :
		     "; the collector is off");
}

static void say_repeated(struct standout *s, const struct php_request *r)
{
	char saved[NUM_MAX];

	if (!is_much(r->saved, r->walked, REPEATED_MIN))
		return;
	num_format_size(saved, r->saved);
	standout_add(s, "php-strings", r->saved, "PHP: %" PRIu64 " strings "
		     "have equals; one of each would save %s.",
		     r->repeated.blocks, saved);
}

static void say_free(struct standout *s, const struct php_request *r)
{
	uint64_t unused = r->real > r->used ? r->real - r->used : 0;
	char bytes[NUM_MAX], real[NUM_MAX];

	if (unused < 4 * BYTES_MIN || !is_much(unused, r->real, FREE_MIN))
		return;
	num_format_size(bytes, unused);
	num_format_size(real, r->real);
	standout_add(s, "php-free", unused, "PHP uses only a part of its %s: "
		     "%s are free in chunks, which go back to the kernel when "
		     "they are empty.", real, bytes);
}

/* ---- advice ---- */

static void advise_limit(struct standout *s)
{
	standout_advise(s, ADVICE_FIRST, "php-limit", 0,
			"Raise memory_limit in php.ini, or lower what a "
			"request needs: see who holds most with "
			"--only=php.", "The next chunk beyond it ends the "
			"request with a fatal error.");
}

static void advise_garbage(struct standout *s, const struct php_request *r)
{
	if (r->collector_found && !r->collector_on)
		standout_advise(s, ADVICE_CERTAIN, "php-garbage",
				r->lost.bytes, "Set zend.enable_gc, or "
				"call gc_enable() or gc_collect_cycles().",
				"Objects that refer to each other are freed "
				"by the collector of cycles alone, and it is "
				"off.");
	else
		standout_advise(s, ADVICE_CERTAIN, "php-garbage",
				r->lost.bytes, "Call gc_collect_cycles() "
				"after each job, or break the cycles.",
				"The collector waits until there are many "
				"possible roots, however large they are.");
}

static void advise_holder(struct standout *s, const struct php_holder_row *h)
{
	bool lasts = h->kind == PHP_ROOT_STATIC ||
		h->kind == PHP_ROOT_STATIC_VAR || h->kind == PHP_ROOT_GLOBAL;

	if (lasts)
		standout_advise(s, ADVICE_PERHAPS, "php-holder",
				h->holds, "Bound what that variable "
				"keeps, or empty it after each job; "
				"--only=php says what is in it.",
				"It lives as long as the request, and in a "
				"worker that does not end, that is for ever.");
	else
		standout_advise(s, ADVICE_PERHAPS, "php-holder",
				h->holds, "Unset that variable when it "
				"is not needed, or read its data piece by "
				"piece; --only=php says what is in it.",
				"It lives until its function returns.");
}

static void advise(struct standout *s, const struct php_request *r)
{
	const struct php_holder_row *h = top_holder(r);

	if (h)
		advise_holder(s, h);
	if (is_much(r->lost.bytes, r->walked, GARBAGE_MIN))
		advise_garbage(s, r);
	if (has_limit(r) && num_share(r->real, r->limit) >= LIMIT_NEAR)
		advise_limit(s);
}

void php_say(struct standout *s, const struct php_view *v)
{
	/* Of many threads only the largest. */
	if (!v->n_requests || !v->requests[0].found)
		return;
	say_holder(s, &v->requests[0]);
	say_limit(s, &v->requests[0]);
	say_garbage(s, &v->requests[0]);
	say_repeated(s, &v->requests[0]);
	say_free(s, &v->requests[0]);
	advise(s, &v->requests[0]);
}
