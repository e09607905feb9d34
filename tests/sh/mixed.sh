# SPDX-License-Identifier: MIT
# Several allocators in one process: each has the bytes that it counts itself,
# and nothing is counted twice.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"
. "$SRC/tests/sh/preloaded"

need_cores
[ "$core_writer" = kernel ] || skip_all "gdb would stop at the signals in use"
cd "$TMP"
need jq
$CC -shared -fPIC -o asked.so "$SRC/tests/truth/dies_asked.c" -ldl ||
	skip_all "the library cannot be built"

# sums: rows add up, no place is claimed twice, nothing is left out.
sums() {
	status=0
	"$HEAPCORE" analyze -q --json \
		--only=allocators,findings,where,classes \
		core >report.json || status=$?
	jq -c '[.allocators[] | [.name, .used_bytes, .cached_bytes]], .findings' \
		report.json
	[ "$status" = 0 ] && jq -e '.findings == [] and
		([.where[].bytes] | add) == .target.private_bytes' report.json
}

# counted NAME [cached]: as the allocator said when it died.
counted() {
	said=$(sed -n 's/^A //p' dump.log)
	echo "$1 says $said"
	[ "$said" ] && jq -e --arg name "$1" --argjson said "$said" \
		--arg cached "${2-}" '.allocators[] | select(.name == $name) |
		.used_bytes + (if $cached == "" then 0 else .cached_bytes end)
		== $said' report.json
}
names() {
	jq -e --arg names "$1" \
		'([.allocators[].name] | sort | join(" ")) == $names' report.json
}

# classes SCRIPT NAME MAX: blocks in use by size, as awk finds them in what the
# process said, are the rows of that allocator and of no other.
classes() {
	awk "$1" dump.log | sort -n >said
	jq -r --arg name "$2" '.classes[] | select(.allocator == $name and
		.used_blocks > 0 and .min_bytes <= '"$3"') |
		"\(.min_bytes) \(.used_blocks)"' report.json | sort -n >found
	[ -s said ] && diff said found
}

# program NAME CACHED NAMES LIBRARY COMMAND...
program() {
	name=$1 cached=$2 all=$3 preload=$4
	shift 4
	make_core core env LD_PRELOAD="$TMP/asked.so $preload" "$@" || return 1
	sums && counted "$name" $cached &&
		names "$(echo "$all" | tr ' ' '\n' | sort | xargs)"
}
perl_code='%h = map { $_ => [1, "x" x ($_ % 90)] } 1 .. 20000;
	delete @h{grep { $_ % 3 } keys %h}; kill USR2 => $$; sleep 9'
python_code='import os, signal, sys
kept = {i: str(i) * (i % 40) for i in range(20000)}
for i in range(20000):
    if i % 3:
        del kept[i]
big = [b"x" * (600 + i) for i in range(2000)]
stats, kill, me = sys._debugmallocstats, os.kill, os.getpid()
signal = int(signal.SIGUSR2)
stats()
kill(me, signal)'

# debug HELD LIBRARY COMMAND...: a debug library says what it is; where it holds
# no freed blocks back, what is in use is what it counts.
debug() {
	held=$1 preload=$2
	shift 2
	make_core core env LD_PRELOAD="$TMP/asked.so $preload" \
		TCMALLOC_MAX_FREE_QUEUE_SIZE="$held" "$@" || return 1
	sums
	[ "$status" = 3 ] || return 1
	jq -e '[.findings[].code] == ["tcmalloc-debug"]' report.json &&
		{ [ "$held" != 0 ] || counted tcmalloc; }
}
debugs() {
	path=$(library "$1")
	if [ -z "$path" ]; then
		skip "$1" "not here"
		return
	fi
	ok "$1: perl" debug 0 "$path" "$(command -v perl)" -e "$perl_code"
	ok "$1: python3" debug 0 "$path" "$python" -S -E -c "$python_code"
	ok "$1: python3, freed blocks held back" debug 10000000 "$path" \
		"$python" -S -E -c "$python_code"
}

# programs ALLOCATOR CACHED LIBRARY
programs() {
	path=$(library "$3")
	if [ -z "$path" ]; then
		skip "$3" "not here"
		return
	fi
	ok "$3: perl" program "$1" "$2" "$1" "$path" \
		"$(command -v perl)" -e "$perl_code"
	ok "$3: python3, and pymalloc" program "$1" "$2" "pymalloc $1" \
		"$path" "$python" -S -E -c "$python_code"
}
python=$(python3 -S -c 'import sys; print(sys.executable)' 2>/dev/null)
if command -v perl >/dev/null && [ "$python" ]; then
	for name in libtcmalloc.so.4 libtcmalloc_minimal.so.4 \
		libtcmalloc_and_profiler.so.4; do
		programs tcmalloc '' $name
	done
	for name in libtcmalloc_debug.so.4 libtcmalloc_minimal_debug.so.4; do
		debugs $name
	done
	programs jemalloc cached libjemalloc.so.2
	if [ "$(library libjemalloc.so.2)" ]; then
		ok "the last: size classes of jemalloc" classes \
			'$1 == "J" { print $2, $3 }' jemalloc 14336
		ok "the last: size classes of pymalloc" classes \
			'NF == 5 && $2 ~ /^[0-9]+$/ && $4 { print $2, $4 }' \
			pymalloc 512
	fi
else
	skip "perl and python3" "not here"
fi

# three: glibc's malloc beside tcmalloc, and ZendMM.  PHP loads extensions so
# that they find libc's free() first: with -n none has a block of tcmalloc's.
three() {
	make_core core env LIBC_BLOCKS=20000 \
		LD_PRELOAD="$TMP/asked.so $(library libtcmalloc.so.4)" \
		"$(command -v php)" -n $posix -r '
			for ($i = 0; $i < 20000; $i++)
				$kept[] = str_repeat("x", $i % 700);
			fprintf(STDERR, "Z %d\n", memory_get_usage());
			posix_kill(posix_getpid(), 12);' || return 1
	sums && counted tcmalloc && names 'glibc tcmalloc zend' || return 1
	zend=$(sed -n 's/^Z //p' dump.log)
	echo "PHP says $zend"
	jq -e --argjson zend "$zend" '
		[.allocators[] | {key: .name, value: .}] | from_entries |
		.glibc.used_blocks >= 20000 and
		.glibc.used_bytes >= 20000 * 112 and
		(.zend.used_bytes - $zend | fabs) <= 4096' report.json
}
posix=
php -n -m 2>/dev/null | grep -qx posix || posix='-d extension=posix'
if command -v php >/dev/null && [ "$(library libtcmalloc.so.4)" ] &&
   php -n $posix -r 'posix_getpid();' >/dev/null 2>&1; then
	ok "glibc, tcmalloc and ZendMM at once" three
else
	skip "glibc, tcmalloc and ZendMM at once" "no php, or no libtcmalloc"
fi
finish
