# SPDX-License-Identifier: MIT
# What blocks are said to be, against programs that know.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"

need_cores
command -v python3 >/dev/null || skip_all "no python3"
: "${CXX:=g++}"
command -v "$CXX" >/dev/null || skip_all "no $CXX"
truth=$SRC/tests/truth

# classes NAME OPTION...: built so, each block is what the program says.
classes() {
	name=$1
	shift
	"$CXX" -std=c++17 -O1 -fno-builtin-malloc "$@" -o "$name" \
		"$truth/classes.cc" && make_core "$name.core" "$TMP/$name" ||
		return
	grep '^TRUTH' dump.log >"$name.truth"
	"$HEAPCORE" analyze -q --blocks --json "$name.core" >"$name.blocks" ||
		[ $? = 3 ] || return
	case $name in
	symbols) symbols= ;;
	*) symbols=--no-symbols ;;
	esac
	"$truth/classed" $symbols "$name.truth" "$name.blocks" >"$name.counts"
}

ok "classes by the symbols of their vtables" classes symbols -g
for how in stripped fixed static; do
	case $how in
	stripped) options=-s ;;
	fixed) options='-s -no-pie' ;;
	static) options='-s -static' ;;
	esac
	# shellcheck disable=SC2086
	ok "classes by type information: $how" classes $how $options
	ok "the same classes as by symbols: $how" cmp symbols.counts \
		$how.counts
done

# A line made wrong must be noticed.
noticed() {
	sed '1,200s/ class Circle/ class Ellipse/' symbols.truth >wrong.truth
	! "$truth/classed" wrong.truth symbols.blocks >/dev/null 2>&1
}
ok "wrong truth is noticed" noticed

finish
