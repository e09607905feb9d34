# SPDX-License-Identifier: MIT
# As truth.sh, for static and for 32-bit programs.
. "$SRC/tests/sh/tap"
without_debug_files "$@"
. "$SRC/tests/sh/core"
. "$SRC/tests/sh/hold"

need_cores
need python3

for kind in static i386 i386-static; do
	if ! "$SRC/tests/truth/build" $kind $kind 2>build.log; then
		skip $kind "cannot be built here: $(head -n 1 build.log)"
		continue
	fi
	ok "$kind" hold -- $kind $few
	ok "$kind, several heaps" hold -- $kind $few heaps=3 seed=2
	ok "$kind, foreign sbrk" hold -- $kind $few sbrk=6 seed=3
	ok "$kind, no more sbrk" hold -- $kind $few nobrk=2500 seed=4
done
finish
