# SPDX-License-Identifier: MIT
# heapcore record: every call stack is what libgcc's unwinder makes of it.
. "$SRC/tests/sh/tap"
cd "$TMP"
[ "$(uname -m)" = x86_64 ] || skip_all "only frame pointers are followed here"

ok "the witness builds" $CC -O2 -fPIC -shared -o stacks.so \
	"$SRC/tests/record/stacks.c" -ldl -lgcc_s
[ -e stacks.so ] || finish

# same PROG...: each allocation's size and stack, in their order.
same() {
	rm -f stacks t.trace
	STACKS_FILE=$TMP/stacks STACKS_PROGRAM=${1##*/} \
	LD_PRELOAD=$TMP/stacks.so "$HEAPCORE" record --depth=256 -q \
		-o t.trace -- "$@" >/dev/null 2>err || { cat err; return 1; }
	"$HEAPCORE" trace dump --stacks t.trace | awk '
		/^stack/ { frames[at = $2] = ""; next }
		/^  / {
			sub(/^ +(.*\/)?/, "")
			frames[at] = frames[at] " " $0
			next
		}
		match($0, / stack=[0-9]+$/) {
			print $5 frames[substr($0, RSTART + 7)]
		}' >ours
	echo "$(grep -c . ours) allocations"
	cmp stacks ours || { diff stacks ours | head -6; return 1; }
}

# sites LANGUAGE FLAGS...: each function that allocates, called by functions
# with each kind of frame.
sites() {
	lang=$1 libs=
	[ "$lang" = c ] || libs=-lstdc++
	shift
	$CC -x "$lang" -w -fno-builtin "$@" -o "callers-$lang" \
		"$SRC/tests/record/callers.c" $libs &&
	same "./callers-$lang"
}

for lang in c c++; do
	if ! echo | $CC -x $lang -c -o t.o - -w 2>/dev/null; then
		skip "$lang" "no compiler of it"
		continue
	fi
	ok "$lang -O0" sites $lang -O0
	ok "$lang -O2" sites $lang -O2
	ok "$lang -O2, with frame pointers" sites $lang -O2 \
		-fno-omit-frame-pointer
	ok "$lang -Os" sites $lang -Os
done

# real PROG...: as it is on this machine.  No locale has this name, so that
# locale.alias is read, in functions with frame pointers.
LC_ALL=xx_XX
real() {
	title=${1##*/}
	program=$(readlink -f "$1") && [ -x "$program" ] ||
		{ skip "$title" "not here"; return; }
	shift
	ok "$title" same "$program" "$@"
}
real /usr/bin/perl -e 'my %h; $h{$_} = "x$_" for 1 .. 300'
real /usr/bin/git --version
real /usr/bin/env
real /usr/bin/as --version
real /usr/bin/python3 -S -c 1
finish
