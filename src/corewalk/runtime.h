/* SPDX-License-Identifier: MIT */
/*
 * Heaps of language runtimes that are not walked, only named: Go, V8, the Java
 * virtual machine, and OCaml.  docs/allocators/runtimes.md has the evidence.
 */
#ifndef COREWALK_RUNTIME_H
#define COREWALK_RUNTIME_H

#include "corewalk/heap.h"
#include "corewalk/space.h"

/*
 * Adds those that there are: for each a heap_allocator, an arena, and extents
 * of EXTENT_RUNTIME where no allocator has one.  Last of all walkers.
 */
void runtime_find(struct space *sp, struct heap *heap);

#endif
