/* SPDX-License-Identifier: MIT */
#ifndef BASE_CONFINE_H
#define BASE_CONFINE_H

/*
 * From here on this process and its threads cannot start a program, nor open a
 * socket: both fail with EPERM.  For whoever reads files that others wrote.
 * Where the kernel has no seccomp(2) or forbids it, nothing changes; nor does
 * it under sanitizers, which start a symbolizer.
 */
void confine(void);

#endif
