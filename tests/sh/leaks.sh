# SPDX-License-Identifier: MIT
# What is lost, who holds what: small programs that know.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"
. "$SRC/tests/sh/preloaded"

without_debug_files "$@"
need_cores
need python3
: "${CXX:=g++}"

# analyze OUT OPTION...: on the core; that it is incomplete is no error.
analyze() {
	out=$1
	shift
	"$HEAPCORE" analyze -q "$@" core >"$out" || [ $? = 3 ]
}

held() {
	$CC -std=gnu11 -O1 -g -fno-builtin -o held_list \
		"$SRC/tests/truth/held_list.c" &&
		make_core core "$TMP/held_list" || return 1
	grep '^TRUTH' dump.log >truth.txt
	head=$(sed -n 's/TRUTH head //p' truth.txt)
	analyze report.json --json --only=leaks,retainers &&
		analyze blocks.json --json --blocks --leaks &&
		analyze at.json --json --at="$head" &&
		"$SRC/tests/truth/held" truth.txt report.json blocks.json \
			at.json
}
ok "a list, what is lost beside it, and who holds it" held

# The core of the case before.
conditions() {
	"$HEAPCORE" analyze -q --fail-if='leaked>1k' core >/dev/null
	[ $? = 1 ] || return 1
	"$HEAPCORE" analyze -q --fail-if='leaked>1G' core >/dev/null ||
		[ $? = 3 ] || return 1
	analyze lost.json --json --blocks --filter='leaked refs=0'
	analyze all.json --json --blocks --filter='used !leaked'
	grep -c . lost.json all.json
	[ "$(grep -c '"leaked":true' lost.json)" -ge 69 ] &&
		! grep -q '"leaked":true' all.json
}
ok "conditions and filters" conditions

# cut BYTES: of the same core without so many at its end, where the stack is.
cut() {
	head -c -"$1" core >cut.core
	for how in "" --json; do
		"$HEAPCORE" analyze -q --only=leaks $how cut.core >words ||
			[ $? = 3 ] || return 1
		cat words
		tr -s ' \n' ' ' <words >line
		if [ "$how" ]; then
			grep -q '"upper_bound": true' words &&
				grep -q '"certain_blocks": 0,' words
		else
			grep -q ' 208 bytes 70 .* likely ' line &&
				grep -q 'is not in the file and may refer' line
		fi || return 1
		! grep -q 'grade": "certain\|  certain  ' words || return 1
	done
}
analyze words --only=leaks
whole() {
	cat words
	grep -Eq '^ +208 bytes +70 .* certain ' words
}
ok "of a whole core leaks are certain" whole
ok "of a core that is cut off none is" cut 65536

# What only a vector register points to is held, and by what is said.
vector() {
	$CC -std=gnu11 -O1 -g -fno-builtin -pthread -o in_vector \
		"$SRC/tests/truth/in_vector.c" || return 1
	for how in hold drop; do
		make_core core "$TMP/in_vector" $how &&
			analyze blocks.json --json --blocks --leaks \
				--filter='size>4k used size<5k' || return 1
		cat blocks.json
		case $how in
		hold) ! grep -q '"leaked":true' blocks.json || return 1 ;;
		drop) grep -q '"leaked":true' blocks.json || return 1 ;;
		esac
		[ "$(grep -c . blocks.json)" = 1 ] || return 1
		addr=$(sed 's/.*"address":"\(0x[0-9a-f]*\)".*/\1/' blocks.json)
		analyze at.$how --at="$addr"
	done
	cat at.hold
	grep -q 'register xmm15 of thread' at.hold &&
		! grep -q 'register' at.drop
}
if [ "$(uname -m)" = x86_64 ]; then
	ok "a pointer in a vector register" vector
else
	skip "a pointer in a vector register" "not x86-64"
fi

# A shared file: with its bytes its block is held, without it is not certain.
shared() {
	$CC -std=gnu11 -O1 -g -fno-builtin -o in_shared \
		"$SRC/tests/truth/in_shared.c" || return 1
	for filter in 0x33 0x3f; do
		(echo $filter >/proc/self/coredump_filter
		make_core core "$TMP/in_shared" "$TMP/file")
		analyze blocks.json --json --blocks --leaks \
			--filter='size>4k used size<6k'
		cat blocks.json
		case $filter in
		0x33) grep -q '"leak_grade":"likely"' blocks.json ;;
		0x3f) grep -q '"leak_grade":"live"' blocks.json ;;
		esac || return 1
		analyze words --only=leaks
		cat words
		tr -s ' \n' ' ' <words >line
		case $filter in
		0x33) grep -q 'shared memory is not in the file' line ;;
		0x3f) ! grep -q 'shared memory' line ;;
		esac || return 1
	done
}
if [ "$core_writer" = kernel ]; then
	ok "a pointer in a file that is mapped shared" shared
else
	skip "a pointer in a file that is mapped shared" "needs kernel cores"
fi

# The trace that is being recorded holds all addresses, and none of them.  Under
# sanitizers heapcore would forbid cores.
recorded() {
	for filter in 0x33 0x3f; do
		(echo $filter >/proc/self/coredump_filter
		make_core core env ASAN_OPTIONS=disable_coredump=0 \
			TSAN_OPTIONS=disable_coredump=0 "$HEAPCORE" record -q \
			-o "$TMP/held.trace" -- "$TMP/held_list") &&
			analyze words --only=leaks || return 1
		cat words
		grep -Eq '^ +208 bytes +70 .* certain ' words &&
			! grep -q 'shared memory' words || return 1
	done
}
if [ "$core_writer" = kernel ]; then
	ok "a trace that is being recorded refers to nothing" recorded
else
	skip "a trace that is being recorded" "needs kernel cores"
fi

# What is not looked for in a large heap is named.
large() {
	printf '%s\n' '#include <stdlib.h>' 'int main(void) {' \
		'char *volatile p = malloc(600 << 20);' \
		'p[0] = 1; abort(); }' >large.c
	$CC -o large large.c && make_core core "$TMP/large" || return 1
	analyze words --rows=1
	cat words
	tr -s ' \n' ' ' <words >line
	grep -q 'Leaks were not .* Types: not looked for above 512M; --only=types' \
		line && ! grep -q 'WHAT THE BLOCKS ARE' line || return 1
	analyze words --only=types
	grep -q 'WHAT THE BLOCKS ARE' words
}
if [ "$core_writer" = kernel ]; then
	ok "a heap too large for leaks and types unasked" large
else
	skip "a heap too large for leaks and types unasked" "needs sparse cores"
fi

# last_word LIBRARY: what only the last word of a block leads to is live.
last_word() {
	make_core core env LD_PRELOAD="$1" "$TMP/last_word" &&
		analyze held.json --json --blocks --leaks \
			--filter='size>2.9k used size<3.2k' || return 1
	grep -c . held.json
	[ "$(grep -c '"leak_grade":"live"' held.json)" -ge 200 ] &&
		! grep -q '"leaked":true' held.json
}
# in_cache LIBRARY: what a thread cache has the address of is not thereby live.
in_cache() {
	make_core core env LD_PRELOAD="$1" "$TMP/in_cache" &&
		analyze lost.json --json --blocks --leaks \
			--filter='size>2.9k used size<3.2k' || return 1
	grep -c . lost.json
	# Some are still in vector registers; the cache has room for 20.
	[ "$(grep -c '"leaked":true' lost.json)" -ge 182 ]
}
for test in last_word in_cache; do
	$CC -std=gnu11 -O1 -fno-builtin -o $test "$SRC/tests/truth/$test.c"
done
for name in libjemalloc.so.2 libtcmalloc_minimal.so.4; do
	path=$(library $name)
	if [ "$path" ]; then
		ok "a last word that is in use, $name" last_word "$path"
		ok "what was in a thread cache, $name" in_cache "$path"
	else
		skip "a last word that is in use, $name" "not here"
		skip "what was in a thread cache, $name" "not here"
	fi
done

# The same of classes and modules in python3, which loses nothing to speak of.
python() {
	make_core core "$python" -S -E -c '
import argparse, dataclasses, decimal, email, http.client, os, threading
os.abort()' && analyze found.json --json --only=allocators,leaks || return 1
	jq .leaks found.json
	jq -e '[.allocators[].name | select(. == "pymalloc")] != [] and
		.leaks.looked and .leaks.total_blocks < 20' found.json
}
python=$(python3 -S -c 'import sys; print(sys.executable)' 2>/dev/null)
if command -v jq >/dev/null; then
	ok "an idle python3" python
else
	skip "an idle python3" "no jq"
fi

twice() {
	analyze once --only=leaks,retainers &&
		analyze again --only=leaks,retainers && cmp once again
}
ok "the same core gives the same bytes" twice

culprit() {
	$CC -std=gnu11 -O1 -g -fno-builtin -o next_header \
		"$SRC/tests/truth/next_header.c" &&
		make_core core "$TMP/next_header" next || return 1
	analyze found.json --json --only=findings
	python3 -c '
import json
culprits = json.load(open("found.json"))["culprits"]
print(culprits)
assert culprits[0]["referred_to_by"] == "rows+%d in next_header" % (8 * 120)'
}
ok "who refers to the block that was written past" culprit

# lost OPERATIONS FOUND [zero]
lost() {
	operations=$1 found=$2
	shift 2
	make_core core "$TMP/lost" "$operations" "$@" || return 1
	grep -E '^(LOST|LIVE) ' dump.log >truth.txt
	analyze blocks.json --json --blocks --leaks &&
		"$SRC/tests/truth/losses" truth.txt blocks.json "$found"
}
# leaked: how many blocks of the core are.
leaked() {
	analyze leaked.json --json --only=leaks
	jq .leaks.total_blocks leaked.json
}

# The header of a live block in the midst of the core of the case before: the
# count may change by a thousandth.
overwritten() {
	before=$(leaked)
	at=$(sed -n 's/.*"address":"\(0x[0-9a-f]*\)".*"leak_grade":"live".*/\1/p' \
		blocks.json | sed -n 5000p)
	"$SRC/tests/truth/write_word" core $((at - 8)) 0x4141414141414141 ||
		return 1
	after=$(leaked)
	"$HEAPCORE" analyze -q --only=findings core >findings || :
	cat findings
	echo "$before before, $after after"
	grep -q "^NOT DECODED" findings &&
		[ $(((after - before) * 1000)) -lt "$before" ] &&
		[ $(((before - after) * 1000)) -lt "$before" ]
}

# What lies beside a small number is not thereby beside a text's length.
names() {
	$CC -std=gnu11 -O1 -g -fno-builtin -o names \
		"$SRC/tests/truth/names.c" &&
		make_core core "$TMP/names" || return 1
	analyze blocks.json --json --blocks --leaks \
		--filter='size>75 size<85 used'
	grep -c . blocks.json
	[ "$(grep -c '"leak_grade":"live"' blocks.json)" = 400 ]
}
ok "names in a table that looks like texts" names

# containers SUFFIX COMMAND...: of a program without symbols.
containers() {
	suffix=$1
	shift
	"$@" -O1 -s -fno-builtin -o "in_$suffix" \
		"$SRC/tests/truth/containers.$suffix" &&
		make_core core "$TMP/in_$suffix" || return 1
	grep '^TRUTH' dump.log >truth.txt
	for files in '' --no-files; do
		analyze report.json --json --only=retainers $files &&
			"$SRC/tests/truth/containers" truth.txt report.json \
				"in_$suffix" || return 1
	done
}
ok "containers of a stripped program" containers c $CC

if command -v "$CXX" >/dev/null; then
	ok "containers of a stripped C++ program" containers cc "$CXX"
	"$CXX" -std=c++17 -O1 -g -fno-builtin-malloc -o lost \
		"$SRC/tests/truth/lost.cc" -pthread
	ok "losses in a C++ program with stale words" lost 200000 95
	ok "one overwritten header changes little" overwritten
	ok "the same with more of everything" lost 600000 95
	ok "the same with blocks that are cleared" lost 200000 99.9 zero
else
	skip "losses in a C++ program" "no $CXX"
fi

finish
