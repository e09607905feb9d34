/* SPDX-License-Identifier: MIT */
/*
 * Files without a name, which are gone when they are closed.
 */
#ifndef BASE_TEMP_H
#define BASE_TEMP_H

#include "base/types.h"

/* dir if it says something, else $TMPDIR, else /tmp. */
const char *temp_dir(const char *dir);

/* An empty file in dir, open for both, only ours; -1 with errno set. */
int temp_file(const char *dir);

#endif
