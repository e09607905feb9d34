/* SPDX-License-Identifier: MIT */
/*
 * Files without a name, which are gone when they are closed; and files that
 * get their name when they are complete.
 */
#ifndef BASE_TEMP_H
#define BASE_TEMP_H

#include "base/types.h"

/* dir if it says something, else $TMPDIR, else /tmp. */
const char *temp_dir(const char *dir);

/* An empty file in dir, open for both, only ours; -1 with errno set. */
int temp_file(const char *dir);

/*
 * An empty file, open for both and only ours, on the file system of path and
 * without a name; -1 where a file system can make none.
 */
int temp_unnamed(const char *path);

/*
 * Give such a file its name; false with errno set.  Something that has the
 * name keeps it, EEXIST, or is replaced.
 */
bool temp_name(int fd, const char *path, bool replace) MUST_CHECK;

#endif
