/* SPDX-License-Identifier: MIT */
/*
 * Compressed sections of a debug file, unpacked before libdw sees them: it
 * would unpack them itself, with zlib and one after the other, and that is most
 * of what a name of a C library's function costs.
 */
#ifndef COREWALK_DEBUG_UNPACK_H
#define COREWALK_DEBUG_UNPACK_H

#include "base/file.h"

/*
 * Appends the unpacked sections to the bytes, which move, and changes section
 * headers to say so.  What is no stream of the size that its header says, or
 * not by zlib, or of a 32-bit file, stays as it is, for libdw to judge, and so
 * does what would make it more than DEBUG_MAX_BYTES.  False if nothing was
 * changed.
 */
bool debug_unpack(struct file_bytes *bytes);

#endif
