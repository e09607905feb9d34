#!/bin/sh
# SPDX-License-Identifier: MIT
# How core.xz was made, on Debian 12 (glibc 2.36): in an empty folder.
set -eu
here=$(cd "$(dirname -- "$0")" && pwd)
gcc -m32 -O1 -g -fno-builtin -w -pthread -o prog "$here/../threads/prog.c"
ulimit -c unlimited
env -i ./prog || :
xz -9e <core >"$here/core.xz"
