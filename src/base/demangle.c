/* SPDX-License-Identifier: MIT */
#include "base/demangle.h"

#include <setjmp.h>
#include <string.h>
#if __has_include(<libiberty/demangle.h>)
#include <libiberty/demangle.h>
#else
#include <demangle.h>
#endif

/* What libiberty hands out in pieces, while there is room for it. */
struct pieces {
	struct str *out;
	size_t start;		/* length of out before */
	jmp_buf full;
};

/*
 * A callback cannot say stop, and a name that repeats its parts doubles with
 * every few bytes.  libiberty keeps all it needs on the stack, so that it can
 * be left from here.
 */
static void add_piece(const char *piece, size_t n, void *opaque)
{
	struct pieces *p = opaque;

	if (p->out->len - p->start + n > DEMANGLE_MAX_OUT)
		longjmp(p->full, 1);
	str_add(p->out, piece, n);
}

static void forget(struct pieces *p)
{
	p->out->len = p->start;
	if (p->out->text)
		p->out->text[p->start] = '\0';
}

typedef int demangler(const char *, int, demangle_callbackref, void *);

static bool run(demangler *how, const char *name, int options,
		struct str *ret)
{
	struct pieces p = { .out = ret, .start = ret->len };

	if (!setjmp(p.full) && how(name, options, add_piece, &p) &&
	    p.out->len > p.start)
		return true;
	forget(&p);
	return false;
}

static bool fits(const char *name)
{
	return strnlen(name, DEMANGLE_MAX_IN) < DEMANGLE_MAX_IN;
}

bool demangle(const char *name, struct str *ret)
{
	if (name[0] != '_' || !fits(name))
		return false;
	/* Rust's older names are names of C++ too, with a hash at the end. */
	if (run(rust_demangle_callback, name, 0, ret))
		return true;
	return !strncmp(name, "_Z", 2) &&
	       run(cplus_demangle_v3_callback, name, 0, ret);
}

bool demangle_type(const char *name, struct str *ret)
{
	if (!fits(name) || name[0] == '_')
		return false;
	return run(cplus_demangle_v3_callback, name,
		   DMGL_TYPES | DMGL_PARAMS, ret);
}
