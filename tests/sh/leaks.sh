# SPDX-License-Identifier: MIT
# What is lost, who holds what: small programs that know.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"

need_cores
command -v python3 >/dev/null || skip_all "no python3"
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
if command -v "$CXX" >/dev/null; then
	"$CXX" -std=c++17 -O1 -g -fno-builtin-malloc -o lost \
		"$SRC/tests/truth/lost.cc" -pthread
	ok "losses in a C++ program with stale words" lost 200000 95
	ok "the same with more of everything" lost 600000 95
	ok "the same with blocks that are cleared" lost 200000 99.9 zero
else
	skip "losses in a C++ program" "no $CXX"
fi

finish
