# SPDX-License-Identifier: MIT
# gperftools' tcmalloc preloaded into a program that knows its own blocks, and
# into real ones: see truth/spans.c.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"
. "$SRC/tests/sh/preloaded"

without_debug_files "$@"
need_cores
cd "$TMP"
need python3 jq

# whole LIBRARY WORKLOAD SEED
whole() {
	make_core core env LD_PRELOAD="$1" "$TMP/spans" "$TMP/truth.txt" \
		"$2" "$3" || return 1
	both_reports 0 &&
	"$SRC/tests/truth/spans_compare" truth.txt blocks.json report.json \
		tcmalloc
}

ok "build" $CC -O1 -o spans "$SRC/tests/truth/spans.c" -pthread -ldl
[ -x spans ] || finish
for name in libtcmalloc_minimal.so.4 libtcmalloc.so.4; do
	path=$(library $name)
	if [ -z "$path" ]; then
		skip "$name" "not here"
		continue
	fi
	for workload in one many empty large; do
		ok "$name: $workload" whole "$path" $workload 11
	done
done

# debug LIBRARY: what its figures are is said.
debug() {
	make_core core env LD_PRELOAD="$1" "$TMP/spans" "$TMP/truth.txt" one \
		11 || return 1
	both_reports 3 && jq -e '[.findings[].code] == ["tcmalloc-debug"]' \
		report.json
}
for name in libtcmalloc_minimal_debug.so.4 libtcmalloc_debug.so.4; do
	path=$(library $name)
	if [ "$path" ]; then
		ok "$name" debug "$path"
	else
		skip "$name" "not here"
	fi
done

# real TITLE COMMAND...: everything adds up to the allocator's counters.
real() {
	make_core core env LD_PRELOAD="$(library libtcmalloc_minimal.so.4)" \
		"$@" || return 1
	both_reports 0 && jq -e '[.allocators[].name] == ["tcmalloc"] and
		.findings == [] and .allocators[0].used_blocks > 50000' \
		report.json
}
if [ "$(library libtcmalloc_minimal.so.4)" ]; then
	ok "perl" real /usr/bin/perl -e '%h = map { $_ => [1, "x" x ($_ % 90)] }
		1 .. 60000; kill 6, $$'
	ok "python3" real env PYTHONMALLOC=malloc /usr/bin/python3 -c '
import os
kept = [str(i) * (i % 40) for i in range(60000)]
os.abort()'
else
	skip "real programs" "no libtcmalloc_minimal.so.4"
fi
finish
