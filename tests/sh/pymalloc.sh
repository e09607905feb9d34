# SPDX-License-Identifier: MIT
# pymalloc in cores of python3: blocks, bytes and pools are what the interpreter
# prints itself by sys._debugmallocstats().
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"

without_debug_files "$@"
need_cores
cd "$TMP"
need python3 jq
python3 -c 'import sys; sys.exit(not hasattr(sys, "_debugmallocstats"))' ||
	skip_all "python3 has no sys._debugmallocstats"

# of_python CODE: its core and report; what it prints last is in dump.log.
of_python() {
	printf '%s\n' 'import os, sys' "$1" \
		'stats, die = sys._debugmallocstats, os.abort' \
		'stats()' 'stats()' 'die()' >prog.py
	make_core core "$(command -v python3)" -E "$TMP/prog.py" || return 1
	status=0
	"$HEAPCORE" analyze -q --json core >report.json || status=$?
	[ "$status" = 0 ] || { jq .findings report.json; return 1; }
}

# told TEXT: the last number on the last line with that text.
told() {
	sed -n "s/^.*$1.*= *\([0-9,]*\)\$/\1/p" dump.log | tail -n 1 | tr -d ,
}

# pools: those of each class, blocks in use and others, as it printed them last;
# glibc's blocks of these sizes are not among them.
pools() {
	awk '/^class +size/ { n = 0 } NF == 5 && $1 ~ /^[0-9]+$/ { row[n++] = $0 }
		END { for (i = 0; i < n; i++) print row[i] }' dump.log |
	sort -n | awk '$3 { print $2, $3, $4, $5 }' >said
	jq -r '.spans | sort_by(.size)[] | select(.allocator == "pymalloc") |
		"\(.size) \(.spans) \(.used_blocks) \(.free_blocks)"' \
		report.json >found
	[ -s said ] && diff said found || return 1
	awk '{ print $1, $3 }' said >blocks
	jq -r '.classes[] | select(.allocator == "pymalloc" and
		.used_blocks > 0 and .min_bytes <= 512) |
		"\(.min_bytes) \(.used_blocks)"' report.json | sort -n |
		diff blocks -
}
exact() {
	bytes "$1" && pools
}
bytes() {
	of_python "$1" || return 1
	used=$(told '# bytes in allocated blocks')
	all=$(told 'bytes.arena')
	echo "used $used, all $all"
	jq -c '.allocators[] | select(.name == "pymalloc") |
		[.used_bytes, .used_blocks, .mapped_bytes]' report.json
	[ "$used" ] && jq -e --argjson used "$used" --argjson all "$all" '
		([.where[].bytes] | add) == .target.private_bytes and
		(.allocators[] | select(.name == "pymalloc") |
			.used_bytes == $used and .mapped_bytes == $all)' \
		report.json
}

ok "little more than its start" exact 'kept = 1'
ok "many objects" exact 'kept = [{str(i): [i, (i,)]} for i in range(40000)]'
ok "all sizes, most given back" exact '
import random
random.seed(3)
kept = {}
for i in range(150000):
    kept[random.randrange(60000)] = b"x" * random.randrange(480)
for i in range(0, 60000):
    if i % 9:
        kept.pop(i, None)'
ok "whole arenas given back" exact '
kept = [object() for i in range(400000)]
del kept[1000:]'

# damaged OFFSET: a word of the header of a pool that is in use is overwritten,
# in the core of strings.
many_strings() {
	of_python 'kept = [str(i) * 5 for i in range(40000)]' &&
		mv core strings.core
}
damaged() {
	python3 - "$1" <<-'EOT' || return 1
	import struct, sys
	core = bytearray(open('strings.core', 'rb').read())
	# The header of a full pool of the largest class: 512 bytes.
	for pool in (16384, 4096):
	    sign = struct.pack('<II', pool, pool - 512)[4:]
	    at = -1
	    while True:
	        at = core.find(sign, at + 1)
	        if at < 0:
	            break
	        h = at - 44
	        count, = struct.unpack_from('<Q', core, h)
	        size_class, = struct.unpack_from('<I', core, h + 36)
	        if h % 4096 == 0 and size_class == 31 and 0 < count < 40:
	            struct.pack_into('<Q', core, h + int(sys.argv[1]),
	                             0x4141414141414141)
	            open('core', 'wb').write(core)
	            sys.exit(0)
	sys.exit('no pool')
	EOT
	status=0
	"$HEAPCORE" analyze -q --json core >report.json || status=$?
	echo "status $status, used $used"
	jq .findings report.json
	[ "$status" = 3 ] && jq -e --argjson used "$used" '
		.allocators[] | select(.name == "pymalloc") | .used_bytes |
		. - $used | . < 20000 and . > -20000' report.json
}
ok "a core with full pools" many_strings
used=$(jq '.allocators[] | select(.name == "pymalloc") | .used_bytes' \
	report.json)
ok "a pool's count is overwritten" damaged 0
ok "a pool's list is overwritten" damaged 8
ok "a pool's class is overwritten" damaged 36

# Names of classes that are made while the program runs are what it handles.
nameless() {
	of_python '
class Base: pass
kept = []
for i in range(3):
    made = type("Sesam_%d" % i, (Base,), {"__module__": "sesam.mod"})
    kept += [made() for k in range(2000)]' || return 1
	for how in "--only=all --rows=all" "--json" "--blocks --json" \
		"--csv --only=types --rows=all"; do
		"$HEAPCORE" analyze -q $how core >open.txt
		"$HEAPCORE" analyze -q --redact $how core >hidden.txt
		[ -s hidden.txt ] && grep -q "[Ss]esam" open.txt || {
			echo "$how: nothing to hide"; return 1; }
		! grep "[Ss]esam" hidden.txt || return 1
	done
	"$HEAPCORE" analyze -q --json --only=all core >named.json
	"$HEAPCORE" diff -q --json --redact --only=types named.json core \
		>hidden.txt
	! grep "[Ss]esam" hidden.txt && jq -e '[.types[] |
		select(.blocks_old == 2000 and .blocks_change == 0 and
		(.name | test("^python class 0x[0-9a-f]+$")))] | length == 3' \
		hidden.txt || return 1
	"$HEAPCORE" analyze -q --json --redact core | jq -e '[.types[] |
		select(.blocks == 2000 and
		(.name | test("^python class 0x[0-9a-f]+$")))] | length == 3'
}
ok "redacted: no class that was made at run time" nameless

# none: objects from malloc.
none() {
	PYTHONMALLOC=malloc make_core core "$(command -v python3)" -c \
		'import os; os.abort()' || return 1
	"$HEAPCORE" analyze -q --json core >report.json
	jq -e '[.allocators[].name] == ["glibc"]' report.json
}
ok "PYTHONMALLOC=malloc: no arenas" none

# classes [VARIABLE]: of a program's own classes there are as many as it says.
classes() {
	make_core core env "$@" "$(command -v python3)" \
		"$SRC/tests/truth/python_classes.py" || return 1
	"$HEAPCORE" analyze -q --json --only=types --rows=4000 core \
		>report.json || return 1
	jq -r '.types[] | select(.name | startswith("python __main__")) |
		"said \(.name | sub("python "; "")) \(.blocks)"' report.json |
		sort >found
	grep '^said' dump.log | sort | diff - found
}
ok "instances of a program's classes" classes
ok "PYTHONMALLOC=malloc: the same" classes PYTHONMALLOC=malloc

# listed: of the same core, the report says what the collector's lists hide.
listed() {
	"$HEAPCORE" analyze -q --only=leaks,retainers core >words || return 1
	cat words
	tr -s ' \n' ' ' <words >line
	grep -q "^  Python's collector lists .*: its data seems to keep them" words &&
		grep -q "Python's collector lists .* counts as reached" line
}
ok "the same: what its collector lists counts as reached" listed

# strings: what is saved if all copies were one is what the program says; it has
# a few more of its own.
strings() {
	make_core core "$(command -v python3)" -S -E \
		"$SRC/tests/truth/python_strings.py" || return 1
	said=$(sed -n 's/^said //p' dump.log)
	"$HEAPCORE" analyze -q --json --only=strings --rows=200 core \
		>report.json || return 1
	echo "said $said"
	jq -c '.strings | del(.rows)' report.json
	jq -e --argjson said "$said" '
		[.strings.rows[] | select(.copies >= 1000 and (.text |
			test("^customer .*known!$|^payload of [0-9] bytes$"))) |
			.saved_bytes] | length == 110 and add == $said' \
		report.json
}
ok "strings of which there are copies" strings

# pinned: a few objects are left of many arenas, which cannot be given back; so
# few are left when those are gone too.
pinned() {
	of_python 'import gc
kept = [object() for i in range(1000000)]
kept = kept[::30000]
gc.collect()' || return 1
	n=$(told '# arenas allocated current')
	pools=$(sed -n 's/^\([0-9,]*\) unused pools \* \([0-9]*\) .*/\1 \2/p' \
		dump.log | tail -n 1 | tr -d , | awk '{ print $1 * $2 }')
	echo "$n arenas, $pools bytes in unused pools"
	"$HEAPCORE" analyze -q --json --only=standout,fragmentation core \
		>report.json || return 1
	jq -c '.python_arenas, .standout' report.json
	[ "$pools" ] && jq -e --argjson n "$n" --argjson pools "$pools" '
		.python_arenas | length == 1 and (.[0] |
			.arenas == $n and .empty + .nearly_empty + .to_half +
				.above_half == $n and
			.nearly_empty * 2 > $n and
			.held_bytes * 10 > $pools * 8 and
			.blocks >= 20 and .blocks < 5000)' report.json &&
		jq -e '[.standout[] | select(.rule == "python-arenas")] |
			length == 1' report.json &&
		jq -e '[.advice[] | select(.rule == "python-arenas")] |
			length == 1' report.json
}
ok "few blocks pin many arenas" pinned
ok "the same core: what its collector lists" listed

# hinted: that pymalloc hides objects from the recorder is said once.
hinted() {
	python=$(command -v python3)
	"$HEAPCORE" record -o one -- "$python" -S -c pass 2>plain
	PYTHONMALLOC=malloc "$HEAPCORE" record -o two -- "$python" -S \
		-c pass 2>all
	"$HEAPCORE" record -o three "$(command -v true)" 2>other
	cat plain all other
	[ "$(grep -c PYTHONMALLOC=malloc plain)" = 1 ] &&
		! grep PYTHONMALLOC all other
}
ok "record says what it does not see" hinted
finish
