# SPDX-License-Identifier: MIT
# One overwritten size among a million blocks: see fuzz/one_size.c.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"

need_cores

damaged() {
	${CC:-cc} -O1 -fno-builtin -pthread -o shapes \
		"$SRC/tests/fuzz/shapes.c" &&
		make_core million.core "$TMP/shapes" million &&
		"$BUILD/tests/fuzz/one_size" million.core 99
}

ok "less than 0.01 % of the blocks are lost" damaged
finish
