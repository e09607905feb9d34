/* SPDX-License-Identifier: MIT */
/*
 * How a PHP program names what it holds.  Names are bytes of the target: the
 * one who prints them escapes them.  In a nameless space the program's own
 * variables, functions and classes have an address for a name.
 *
 * Within analysis/ only.
 */
#ifndef ANALYSIS_PHP_NAMES_H
#define ANALYSIS_PHP_NAMES_H

#include "analysis/php_graph.h"
#include "analysis/php_shape.h"
#include "base/str.h"

/* The bytes of a string, at most max; false if it is none. */
bool php_string_text(struct php_graph *g, vaddr string, size_t max,
		     struct str *ret);

/* "Repo::load", "{closure}", "{main}". */
void php_function_text(struct php_graph *g, vaddr function, struct str *ret);

/* "static Cache::$items", "$rows of hog()". */
void php_root_text(struct php_graph *g, const struct php_root *root,
		   struct str *ret);

/* From the root to the node: "['product:1']->tags"; "" if it is the root's. */
void php_path_text(struct php_graph *g, uint32_t node, struct str *ret);
/* The root at the end of a node's parents; NULL if there is none. */
const struct php_root *php_root_of(const struct php_graph *g, uint32_t node);

#endif
