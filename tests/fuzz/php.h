/* SPDX-License-Identifier: MIT */
/*
 * What must hold of the view of a PHP program, however damaged its heap is.
 */
#ifndef FUZZ_PHP_H
#define FUZZ_PHP_H

#include "analysis/php_view.h"

/* Each byte in use is told once; nobody holds more than there is. */
static void must_be_request(const struct php_request *r)
{
	uint64_t told = 0, objects = 0;

	MUST(r->n_running <= r->n_calls && r->n_calls <= PHP_CALLS_KEPT,
	     r->n_calls);
	for (size_t i = 0; i < r->n_holders; i++)
		MUST(r->holders[i].holds <= r->walked, r->holders[i].holds);
	for (size_t i = 0; i < r->n_arrays; i++)
		MUST(r->arrays[i].bytes <= r->walked &&
		     (!i || r->arrays[i - 1].holds >= r->arrays[i].holds),
		     r->arrays[i].addr);
	for (size_t i = 0; i < r->n_classes; i++)
		objects += r->classes[i].objects.bytes;
	MUST(objects <= r->walked, objects);
	for (size_t i = 0; i < r->n_strings; i++)
		MUST(r->strings[i].copies > 1 &&
		     r->strings[i].saved < r->strings[i].bytes,
		     r->strings[i].addr);
	MUST(r->saved <= r->repeated.bytes && r->repeated.bytes <= r->walked,
	     r->saved);
	MUST(r->lost.bytes <= r->walked, r->lost.bytes);
	for (unsigned i = 0; r->found && i < PHP_TOLD; i++)
		told += r->told[i].bytes;
	MUST(told == (r->found ? r->walked : 0), told);
}

static void must_be_php(struct space *sp, struct heap *h)
{
	struct php_view v;
	struct index ix;
	struct err err;

	if (!php_present(h) || !index_init(&ix, h, INDEX_ROOM, &err))
		return;
	php_view_init(&v, sp, h, &ix, NULL);
	for (size_t i = 0; i < v.n_requests; i++)
		must_be_request(&v.requests[i]);
	php_view_fini(&v);
	index_fini(&ix);
}

#endif
