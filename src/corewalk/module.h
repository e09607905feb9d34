/* SPDX-License-Identifier: MIT */
/*
 * Programs and libraries: which files of the target they are, and how to
 * find them on this machine.
 */
#ifndef COREWALK_MODULE_H
#define COREWALK_MODULE_H

#include "base/str.h"
#include "corewalk/elf.h"
#include "corewalk/space.h"

enum { MODULE_ID_TEXT = 41 };

/* A build id as hexadecimal digits; "none" if it has no byte. */
void module_id_text(char ret[MODULE_ID_TEXT], const uint8_t *id, unsigned len);

/* The program itself; NULL if it is not known. */
const struct module *module_exe(const struct space *sp);

/*
 * What has to be added to an address in the module's file, or in the file of
 * its debug information, to have it in the target.
 */
vaddr module_bias(const struct module *m, const struct elf *elf,
		  uint64_t page);

/* The name of its file without folders: the target's, not made harmless. */
const char *module_name(const struct space *sp, const struct module *m);
/* The same made harmless, for a sentence. */
void module_add_name(struct str *s, const struct space *sp,
		     const struct module *m);

#endif
