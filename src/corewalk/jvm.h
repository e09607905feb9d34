/* SPDX-License-Identifier: MIT */
/*
 * What a Java virtual machine tells debuggers about itself: HotSpot's table of
 * its own structures, for the serviceability agent.
 */
#ifndef COREWALK_JVM_H
#define COREWALK_JVM_H

#include "corewalk/space.h"

/*
 * Where libjvm.so, that module, says that it has reserved memory for its heap,
 * and how many words of 8 bytes; both are the target's, to be doubted.  False
 * where the library's file or the table is not there.
 */
bool jvm_reserved(struct space *sp, const struct module *m, vaddr *ret_start,
		  uint64_t *ret_words);

#endif
