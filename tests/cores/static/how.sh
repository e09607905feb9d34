#!/bin/sh
# SPDX-License-Identifier: MIT
# How core.xz was made, on Debian 12 (glibc 2.36): in an empty folder.
set -eu
here=$(cd "$(dirname -- "$0")" && pwd)
gcc -static -O1 -g -fno-builtin -w -o prog "$here/../plain/prog.c"
ulimit -c unlimited
env -i ./prog || :
xz -9e <core >"$here/core.xz"
