/* SPDX-License-Identifier: MIT */
/*
 * Between the files of dwarf_types.h: names of entries.
 */
#ifndef COREWALK_DWARF_NAMES_H
#define COREWALK_DWARF_NAMES_H

#include "corewalk/dwarf_types.h"

static inline uint64_t dwarf_key(const void *entry)
{
	return (uint64_t)(uintptr_t)entry;
}

void dwarf_names_init(struct dwarf_types *t);
void dwarf_names_fini(struct dwarf_types *t);

/* The name text in scope, made if it is new; text must outlive t. */
uint32_t dwarf_name_add(struct dwarf_types *t, uint32_t scope,
			const char *text);
/* Adds the whole name, scopes first. */
void dwarf_name_text(const struct dwarf_types *t, uint32_t name,
		     struct str *s);

#endif
