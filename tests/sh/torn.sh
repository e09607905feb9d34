# SPDX-License-Identifier: MIT
# Processes whose threads take and free blocks at full speed under tcmalloc,
# jemalloc and google/tcmalloc: stopped, or read while they run, the walk ends,
# rows add up, and what was read while it ran says so.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"
. "$SRC/tests/sh/preloaded"
. "$SRC/tests/sh/workerd"

cd "$TMP"
need jq
ok "build" $CC -O1 -pthread -o churns "$SRC/tests/truth/churns.c"
[ -x churns ] || finish
: "${LOOKS:=2}"

# look TORN OPTION...: one report, that is complete or says what is not.  What
# is read while it runs may fit so badly that no allocator is known in it.
look() {
	torn=$1
	shift
	status=0
	"$HEAPCORE" analyze -q --json --only=where,allocators,findings \
		"$@" -p "$pid" >report.json 2>errors ||
		status=$?
	cat errors
	echo "status $status, $(jq -c '[.findings[].code] | group_by(.) |
		map([.[0], length])' report.json)"
	[ "$status" = 0 ] || [ "$status" = 3 ] || return 1
	# Findings of a walk are why a report is incomplete.
	jq -e --arg name "$name" --argjson torn "$torn" \
		--argjson status "$status" '
		(.target.torn // false) == $torn and
		([.where[].bytes] | add) == .target.private_bytes and
		(([.allocators[].name] | index($name)) != null or $torn) and
		($torn or $status == 0 or (.findings | length) > 0)' \
		report.json || return 1
	if jq -e --arg name "$name" 'any(.allocators[]; .name == $name)' \
			report.json; then
		found=$((found + 1))
	else
		grep -q 'no known allocator found' errors
	fi
}
looks() {
	name=$1
	rm -f ready
	LD_PRELOAD=$2 INSIDE='' "$program" >ready &
	pid=$!
	until_ok grep -q ready ready || :
	shift 2
	result=0 found=0
	for i in $(seq 20); do
		look "$@" || { result=1; break; }
		[ $found -lt "$LOOKS" ] || break
	done
	[ $found = "$LOOKS" ] || result=1
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
	return $result
}
./churns >ready &
pid=$! program=./churns
may=0
"$HEAPCORE" analyze -q -p "$pid" >may 2>&1 || may=$?
kill -KILL "$pid"
for pair in tcmalloc:libtcmalloc_minimal.so.4 jemalloc:libjemalloc.so.2; do
	path=$(library "${pair#*:}")
	if [ -z "$path" ] || [ "$may" = 2 ]; then
		skip "${pair%:*}" "not here, or processes cannot be read"
		continue
	fi
	ok "${pair%:*}, stopped" looks "${pair%:*}" "$path" false
	ok "${pair%:*}, running" looks "${pair%:*}" "$path" true --no-stop
done
if [ "$may" = 2 ] || ! have_workerd 1.20261117.1; then
	skip "gtcmalloc" "no workerd of npm, or processes cannot be read"
	finish
fi
$CC -O1 -shared -fPIC -Dmain=inside_main -o churns.so \
	"$SRC/tests/truth/churns.c" "$SRC/tests/truth/inside.c" -pthread -ldl
# Its slabs, not thread caches.
export GLIBC_TUNABLES=glibc.pthread.rseq=0
program=$workerd
ok "gtcmalloc, stopped" looks gtcmalloc "$TMP/churns.so" false
ok "gtcmalloc, running" looks gtcmalloc "$TMP/churns.so" true --no-stop
finish
