/* SPDX-License-Identifier: MIT */
/*
 * What the memory of a PHP process means to a PHP program: for each heap, the
 * calls, who holds how much, objects by class, arrays, strings that repeat and
 * garbage that waits for its collector.
 *
 * A holder *holds* what cannot be reached without it: what would be freed if
 * it let go.  Variables come before what the engine and extensions have.
 *
 * Cost: about 60 bytes for each value and 4 for each reference, some 0.5 s for
 * a million values.
 */
#ifndef ANALYSIS_PHP_VIEW_H
#define ANALYSIS_PHP_VIEW_H

#include "analysis/index.h"
#include "analysis/php_graph.h"
#include "base/progress.h"

enum { PHP_ROWS_KEPT = 1000, PHP_CALLS_KEPT = 100000 };

/* Kinds of values as they are told: objects of two classes apart. */
enum {
	PHP_TOLD_CLOSURE = PHP_KINDS, PHP_TOLD_GENERATOR, PHP_TOLD
};

struct php_call {
	char *function;		/* owned: "Repo::load", "{main}" */
	char *file;		/* owned; NULL: internal, or hidden */
	uint32_t line;		/* 0: not known */
	bool left;		/* given up by a fatal error */
};

struct php_class_row {
	char *name;		/* owned */
	char *hidden;		/* owned; in a redacted report; NULL: name */
	vaddr entry;
	struct tally objects;	/* with their own blocks */
	uint64_t holds;
};

/*
 * Arrays in the same place: all elements of one array are one place, and so is
 * one property of all objects of a class that are in one place.
 */
struct php_array_row {
	vaddr addr;		/* of the first */
	uint32_t node;		/* the same in the graph */
	uint64_t arrays, elements, room;
	uint64_t bytes;		/* with the tables of their elements */
	uint64_t holds;
	char *holder, *path;	/* owned; of the first */
};

struct php_holder_row {
	enum php_root_kind kind;
	char *name;		/* owned */
	char *hidden;		/* owned; as of classes */
	uint32_t root;		/* php_view.c's, until it is named */
	uint64_t holds;
};

struct php_string_row {
	vaddr addr;		/* of the first one */
	uint64_t len, copies, bytes, saved;
};

struct php_request {
	uint32_t arena;		/* of the heap model */
	uint64_t used, peak;	/* memory_get_usage(), ..._peak_usage() */
	uint64_t real, real_peak;	/* the same with true */
	uint64_t limit;
	uint64_t walked;	/* bytes in blocks in use */
	bool found;		/* the engine's variables were */
	bool cut;		/* not everything was looked at */
	struct tally told[PHP_TOLD];
	struct php_call *calls;	/* owned; the innermost one first */
	size_t n_calls, cap_calls, n_running;
	struct php_class_row *classes;	/* owned; most bytes first */
	size_t n_classes;
	struct php_array_row *arrays;	/* owned; what holds most first */
	size_t n_arrays, cap_arrays;
	struct php_holder_row *holders;	/* owned; the same */
	size_t n_holders, cap_holders;
	struct php_string_row *strings;	/* owned; most saved first */
	size_t n_strings, cap_strings;
	struct tally repeated;	/* strings with an equal one, all of them */
	uint64_t saved;		/* if each were there once */
	struct php_class_row *garbage;	/* owned */
	size_t n_garbage;
	struct tally lost;	/* garbage with all that it holds */
	uint64_t lost_objects;
	/* Of the collector of cycles. */
	bool collector_found;
	uint32_t roots, threshold, runs, collected;
	bool collector_on;
};

struct php_view {
	const char *release;	/* static: "8.2"; NULL: not known */
	uint32_t api;
	bool zts, debug;
	bool known;		/* there is a table of offsets for it */
	struct php_request *requests;	/* owned; a heap each, most first */
	size_t n_requests;
};

/* Is there a heap of PHP? */
bool php_present(const struct heap *h);

void php_view_init(struct php_view *v, struct space *sp, struct heap *h,
		   const struct index *ix, struct progress *p);
void php_view_fini(struct php_view *v);

/* "string", "array", ... */
const char *php_told_name(unsigned told);
const char *php_root_word(enum php_root_kind kind);

#endif
