/* SPDX-License-Identifier: MIT */
/*
 * Names of addresses in programs and libraries, from the symbol tables of
 * their files on this machine: .symtab if there is one, .dynsym too, and the
 * same of the debug file that belongs to it; and of the image that the kernel
 * maps into each process.  A file is read when one of
 * its addresses is asked for first; the names are those of the linker.
 */
#ifndef COREWALK_SYMBOL_H
#define COREWALK_SYMBOL_H

#include "corewalk/space.h"

struct symbol {
	const char *name;	/* borrowed until symbols_free */
	vaddr start;
	uint64_t size;		/* 0: not known */
	bool is_code;
};

struct debug;
struct symbols;

/* Both are borrowed; debug may be NULL: no debug files. */
struct symbols *symbols_new(struct space *sp, struct debug *debug);
void symbols_free(struct symbols *s);

/*
 * The object or function that addr lies in.  One without a size reaches to the
 * next one, but a page at most.
 */
bool symbols_find(struct symbols *s, vaddr addr, struct symbol *ret);

/* Where a module has the object or function of this name. */
bool symbols_named(struct symbols *s, const struct module *m,
		   const char *name, vaddr *ret);

#endif
