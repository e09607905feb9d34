#!/bin/sh
# SPDX-License-Identifier: MIT
# How core.xz and said were made, with OCaml 4.13 of Debian 12: in an empty folder.
set -eu
here=$(cd "$(dirname -- "$0")" && pwd)
cp "$here/../../truth/ocaml_kept.ml" prog.ml
ocamlopt -o prog prog.ml
strip prog
ulimit -c unlimited
env -i OCAMLRUNPARAM=s=4k PATH="$PATH" ./prog 3000 2 >"$here/said" || :
xz -9e <core >"$here/core.xz"
