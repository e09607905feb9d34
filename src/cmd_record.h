/* SPDX-License-Identifier: MIT */
/*
 * The files that a recording leaves, besides the one that was asked for: of
 * what the program was before it became another one by exec, and of its
 * children.
 */
#ifndef CMD_RECORD_H
#define CMD_RECORD_H

#include <sys/types.h>

#include "base/types.h"

/*
 * What one process was, one program after the other.  Each *image* has a file
 * of its own, all with the process's name first: the first image that name
 * itself.
 */
struct images {
	char **paths;		/* owned; the first image first */
	char **programs;	/* owned; last part of its path, escaped */
	size_t n, cap, cap_programs;
};

/*
 * Those of a process that has ended and that began at or after this time, ns
 * since 1970.  All but the last are sealed; then the last, which is what was
 * to be recorded, gets the name path, and the others path.1, path.2 and so on.
 * The last is not sealed.
 */
void images_find(struct images *im, const char *path, pid_t pid,
		 uint64_t since);
void images_fini(struct images *im);

/* One line, if there were several. */
void images_say(const struct images *im);

/*
 * What a pattern with or without %p stands for besides own: sealed, if its
 * process has ended.
 */
void seal_children(const char *pattern, const char *own);

#endif
