/* SPDX-License-Identifier: MIT */
/*
 * The calls of a PHP program.
 *
 * A *frame* is a call.  Those that are running are a list from the innermost
 * one on.  Others still lie on the stack: calls being made, whose arguments
 * are not complete, and those that were *left*: after a fatal error the engine
 * jumps out of them and runs what was registered for the shutdown.
 *
 * Within analysis/ only.
 */
#ifndef ANALYSIS_PHP_FRAMES_H
#define ANALYSIS_PHP_FRAMES_H

#include "analysis/php_graph.h"

struct php_frame {
	vaddr addr;
	vaddr function;		/* 0: none, the engine's own */
	vaddr opline;
	uint32_t line;		/* 0: not known */
	uint32_t n_args, info;
	bool internal;
	bool left;
	bool pending;		/* it is being called */
};

struct php_frames {
	struct php_frame *items;	/* owned; running ones first */
	size_t n, cap;
	size_t n_running;
};

void php_frames_init(struct php_frames *f, struct php_graph *g,
		     vaddr executor);
void php_frames_fini(struct php_frames *f);

/* Roots for variables, arguments and temporaries of all of them. */
void php_frames_roots(const struct php_frames *f, struct php_graph *g,
		      vaddr executor);

#endif
