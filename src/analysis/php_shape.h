/* SPDX-License-Identifier: MIT */
/*
 * What a block of PHP's is, by its shape alone: no root is needed.
 */
#ifndef ANALYSIS_PHP_SHAPE_H
#define ANALYSIS_PHP_SHAPE_H

#include "base/str.h"
#include "corewalk/space.h"

/* The type of value that begins the block of size bytes at p; 0: none. */
uint32_t php_shape(struct space *sp, const uint8_t *p, uint64_t size);

/* Is there an object so far in the block? */
bool php_is_object(struct space *sp, const uint8_t *p, uint64_t size,
		   uint32_t off);

/* How far behind the block's start an object lies; 0 if there is none. */
uint32_t php_object_behind(struct space *sp, const uint8_t *p, uint64_t size);

/*
 * Appends the name of the class at entry, in a nameless space the address of
 * one that is the program's; false if it is none.
 */
bool php_class_name(struct space *sp, vaddr entry, struct str *ret);
/* The class of a script, which no file of the engine or an extension has. */
bool php_class_is_made(struct space *sp, vaddr entry);

#endif
