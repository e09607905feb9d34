# SPDX-License-Identifier: MIT
# What malloc_trim(0) really gives back is what was said before it was called,
# within one part in a thousand.
. "$SRC/tests/sh/tap"
cd "$TMP"
need jq

# Of what is free and resident, which is what is given back.
alarm() {
	"$HEAPCORE" analyze -q --json -p "$pid" \
		--fail-if='free_resident_share>60%'
}

trimmed() { [ "$(wc -l <said)" = 2 ]; }
# given MIX LEAST: at least LEAST bytes must come back.
given() {
	: >said
	./trimmed "$1" >said &
	pid=$!
	until_ok grep -q ready said || return
	"$HEAPCORE" analyze -q --json -p "$pid" >report.json
	fails=0
	alarm 2>/dev/null || fails=$?
	kill -USR1 "$pid"
	until_ok trimmed || return
	quiet=0
	alarm >after.json || quiet=$?
	kill -USR1 "$pid"
	wait "$pid"
	real=$(tail -n 1 said)
	told=$(jq '.allocators[0].trimmable_bytes' report.json)
	off=$((told - real))
	echo "told $told, given back $real"
	echo "alarm before $fails, after $quiet"
	jq .totals after.json
	# What was given back is free as before, and takes no memory.
	jq -e --slurpfile old report.json --argjson r $real '
		($old[0].totals.free_resident_bytes -
		 .totals.free_resident_bytes - $r | fabs) <= $r / 1000 + 8192 and
		.totals.free_bytes >= $old[0].totals.free_bytes / 2' \
		after.json >/dev/null &&
	case $1 in large) [ "$fails $quiet" = "1 0" ] ;; esac &&
	[ "$real" -ge "$2" ] && [ "${off#-}" -le $((real / 1000)) ]
}

ok build $CC -O1 -pthread -o trimmed "$SRC/tests/truth/trimmed.c"
"$HEAPCORE" analyze -q --only=where -p $$ >/dev/null 2>err || [ $? = 3 ] ||
	skip_all "$(cat err)"
ok "small blocks" given small 1
ok "mixed blocks" given mixed 50000000
ok "large blocks" given large 200000000
finish
