/* SPDX-License-Identifier: MIT */
/*
 * OCaml's heaps: found by their structure, without symbols, and counted, but
 * their values are not blocks.  docs/allocators/ocaml.md has the layout.
 * Within corewalk/ only; called by runtime.c.
 */
#ifndef COREWALK_OCAML_H
#define COREWALK_OCAML_H

#include "corewalk/heap.h"
#include "corewalk/space.h"

/*
 * Each adds an allocator "ocaml" if there is one, of OCaml 4 or 5.  What lies
 * in blocks of malloc is taken out of them.  Extents must be sorted, and are
 * after it.
 */
void ocaml4_find(struct space *sp, struct heap *heap);
void ocaml5_find(struct space *sp, struct heap *heap);

#endif
