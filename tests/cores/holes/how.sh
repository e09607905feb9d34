#!/bin/sh
# SPDX-License-Identifier: MIT
# How core.xz was made, on Debian 12 (glibc 2.36): in an empty folder.  The
# copy has lost the holes of the core: untouched pages are zeros like others.
set -eu
here=$(cd "$(dirname -- "$0")" && pwd)
gcc -O1 -g -fno-builtin -w -o prog "$here/prog.c"
ulimit -c unlimited
env -i ./prog || :
cat core | xz -9e >"$here/core.xz"
