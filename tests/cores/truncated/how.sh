#!/bin/sh
# SPDX-License-Identifier: MIT
# How core.xz was made, on Debian 12 (glibc 2.36): in an empty folder.  The
# file ends before libc's data, as when the disk was full.
set -eu
here=$(cd "$(dirname -- "$0")" && pwd)
gcc -O1 -g -fno-builtin -w -pthread -o prog "$here/../threads/prog.c"
ulimit -c unlimited
env -i ./prog || :
head -c 500000 core | xz -9e >"$here/core.xz"
