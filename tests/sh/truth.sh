# SPDX-License-Identifier: MIT
# Every block of a program that knows all of its own: see truth/glibc_truth.c.
. "$SRC/tests/sh/tap"
without_debug_files "$@"
. "$SRC/tests/sh/core"
. "$SRC/tests/sh/hold"

need_cores
need python3

# As hold, but nothing of what ran is left on the disk, nor may it be read.
hold_bare() {
	cp dynamic bare
	strip bare
	mkdir lib
	cp "$(ldd bare | sed -n 's/.*libc.so.6 => \([^ ]*\).*/\1/p')" lib
	cp "$(ldd bare | sed -n 's,^[^/]*\(/.*ld-[^ ]*\).*,\1,p')" lib/ld.so
	make_core core "$TMP/lib/ld.so" --library-path "$TMP/lib" "$TMP/bare" \
		out="$TMP/truth.txt" "$@" || return 1
	rm -rf bare lib
	again $files
}

# The comparer must see a block that is missing, and one that is too many.
blind() {
	small='live=2000 out='$TMP'/truth.txt'
	make_core core "$TMP/dynamic" $small && again || return 1
	c="$SRC/tests/truth/compare"
	for change in '0,/^B /{/^B /d}' 's/^B \(0x[0-9a-f]*\)/B \10/' \
		's/^\(B [^ ]* [^ ]*\) [0-9]*/\1 1/' \
		'0,/system type="current" size="./s//&1/' \
		'0,/"rest" count="[0-9]*" size="./s//&1/'; do
		sed "$change" truth.txt >other.txt
		! cmp -s truth.txt other.txt || return 1
		! "$c" other.txt blocks.json report.json || return 1
	done
}

ok "build" "$SRC/tests/truth/build" dynamic dynamic
[ -x dynamic ] || finish
ok "the comparer sees differences" blind
ok "60,000 live blocks" hold -- dynamic live=60000
ok "the same core, no file read" again --no-files
ok "no file of the target exists" hold_bare live=20000 seed=2
files=--no-files
ok "other blocks, no files" hold -- dynamic $few seed=2
files=

ok "several heaps" hold -- dynamic $few heaps=3 seed=3
ok "foreign sbrk" hold -- dynamic $few sbrk=6 seed=4
ok "no more sbrk" hold -- dynamic $few nobrk=2500 seed=3
ok "no mmapped" hold -- dynamic $few big=0 seed=4
ok "one thread" hold -- dynamic $few threads=0 exited=0 seed=3
ok "many threads" hold -- dynamic $few threads=12 exited=12 seed=5
ok "look-alikes" hold -- dynamic $few decoy=2 seed=6

# Damage costs the block that was hit, and a few more where a block's content
# looks like a chunk.  Of how many: one_size.sh and tests/matrix have a million.
ok "size overwritten" hold --damaged --missed=20 --false=5 -- dynamic \
	live=60000 corrupt=size
ok "size overwritten, other arena" hold --damaged --missed=20 --false=5 \
	-- dynamic $few corrupt=size-thread
ok "overflow" hold --damaged --missed=20 --false=5 -- dynamic $few \
	corrupt=overflow
ok "cache link overwritten" hold --damaged -- dynamic $few corrupt=tcache
ok "cache link overwritten, the last" hold --damaged -- dynamic $few \
	corrupt=tcache-end
ok "bin link overwritten" hold --damaged -- dynamic $few corrupt=unsorted

finish
