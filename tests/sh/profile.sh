# SPDX-License-Identifier: MIT
# The profile that an allocator keeps, out of a process and out of its core,
# against what it says itself: see truth/profiled.c.
. "$SRC/tests/sh/tap"
without_debug_files "$@"
. "$SRC/tests/sh/core"
. "$SRC/tests/sh/preloaded"

need_cores
cd "$TMP"
need python3 jq

# start COMMAND...: profiled under an allocator; it waits, with its profiles
# written.
start() {
	rm -f said said.growth ready
	mkfifo ready
	(
		mkdir -p run && cd run
		ulimit -c unlimited
		exec "$@" "$TMP/profiled" "$TMP/said" "$TMP/said.growth"
	) >ready 2>start.log &
	pid=$!
	read -r line <ready && [ "$line" = ready ] || { cat start.log; return 1; }
}

# live: what analyze says of the running process, which may not be allowed.
live() {
	status=0
	"$HEAPCORE" analyze -q --profile --json -p "$pid" >live.json 2>refused ||
		status=$?
	cat refused
	[ "$status" = 0 ]
}

compare() {
	"$SRC/tests/truth/profile_compare" "$@"
}

profile() {
	"$HEAPCORE" analyze -q --profile --json "$@" core >report.json
}

# What the estimates should be, by the formulas and not by our sampler; and the
# exact bytes, from the blocks: a sample counts with the size of its class.
estimates() {
	"$HEAPCORE" analyze -q --blocks --json core >blocks.json
	python3 - "$1" <<'END'
import json
import math
import sys

d = json.load(open('report.json'))
p = [p for p in d['profiles'] if p['kind'] == 'live'][0]
largest, bytes, blocks = float(sys.argv[1]), 0, 0
for s in p['samples']:
    k = s['allocated_bytes']
    if k > largest:
        k = s['requested_bytes']
    chance = -math.expm1(-k / p['rate'])
    bytes += s['allocated_bytes'] / chance
    blocks += 1 / chance
of = {int(b['address'], 16): b for b in map(json.loads, open('blocks.json'))
      if b['state'] == 'used'}
exact = sum(b['size'] for b in of.values() if b.get('arena', '').startswith(
    p['allocator']))
for s in p['samples']:
    exact += s['allocated_bytes'] - of[int(s['addr'], 16)]['size']
t = d['profile']
print(bytes, blocks, exact, t)
ok = t['exact_bytes'] == exact and t['samples'] == len(p['samples'])
for is_, want in ('estimate_bytes', bytes), ('estimate_blocks', blocks):
    ok = ok and abs(t[is_] - want) <= 1e-5 * want + 1
for list in 'profile_sites', 'profile_classes':
    for key in 'estimate_bytes', 'samples':
        total = sum(r.get(key, 0) for r in d[list])
        ok = ok and abs(total - t[key]) <= len(d[list])
ok = ok and sum(r['exact_bytes'] for r in d['profile_classes']) == exact
ok = ok and t['low_bytes'] < t['estimate_bytes'] < t['high_bytes']
sys.exit(not ok)
END
}

# Names of the program's own functions, with their lines.
named() {
	jq -e --arg n "$1" '[.profile_sites[].site | select(startswith(
		$n + "  profiled.c:"))] | length == 1' report.json
}

# The program asked for large blocks first, and for deep ones then.
older() {
	jq -e '. as $d | def of($f): [$d.profile_stacks[] |
			select([.frames[].name] | index($f)) | .stack] as $s |
			[$d.profiles[0].samples[] |
			select(.stack | IN($s[])) | .before_newest_s];
		(of("large") | min) >= (of("deep") | max) and
		([.profile_ages[].samples] | add) == .profile.samples' \
		report.json
}

# Both tools' readings of one export.
exports() {
	rm -f p.gz p.folded p.json
	profile --pprof=p.gz --folded=p.folded --speedscope=p.json &&
	total=$(jq .profile.estimate_bytes report.json) &&
	awk -v want="$total" '{ s += $NF }
		END { print s, want; exit !(NR > 5 && s - want < NR &&
			want - s < NR) }' p.folded &&
	grep -q ';main;large [0-9]*$' p.folded &&
	grep -q '"file":"/.*profiled.c"' p.json &&
	rm -f red.gz red.json &&
	profile --redact --pprof=red.gz --speedscope=red.json &&
	gzip -dc red.gz >red && grep -q profiled.c red &&
	grep -q '"file":"profiled.c"' red.json &&
	! grep -aF "$TMP" red red.json && profile &&
	jq -e --argjson want "$total" '.profiles | length == 1 and
		(.[0].endValue - $want | fabs) < 100' p.json
}
pprof() {
	HOME=$TMP go tool pprof -top -unit=B p.gz >top 2>top.err || {
		cat top.err
		return 1
	}
	cat top
	grep -q '^Type: inuse_space' top && grep -q ' large$' top &&
	awk -v want="$(jq .profile.estimate_bytes report.json)" '
		/^Showing nodes accounting for/ {
			for (i = 1; i <= NF; i++)
				if ($i == "of" && $(i + 2) == "total")
					got = $(i + 1) + 0
		}
		END { print got, want
			exit !(got > want - 100 && got < want + 100) }' top
}

$CC -O1 -g -fno-builtin -w -o profiled "$SRC/tests/truth/profiled.c" \
	-pthread -ldl 2>build.log
ok "build" [ -x profiled ]
[ -x profiled ] || { cat build.log; finish; }

tcmalloc=$(library libtcmalloc.so.4)
if [ "$tcmalloc" ] && start env TCMALLOC_SAMPLE_PARAMETER=524288 \
		LD_PRELOAD="$tcmalloc"; then
	if live; then
		ok "tcmalloc: a process" compare said live.json live
	else
		skip "tcmalloc: a process" "$(head -n 1 refused)"
	fi
	ok "tcmalloc: its core" core_of core "$pid" ABRT
	ok "tcmalloc: analyze" profile
	ok "tcmalloc: samples as it prints them" compare said report.json live
	ok "tcmalloc: growth as it prints it" compare said.growth report.json \
		growth
	ok "tcmalloc: rate" jq -e '.profiles[] | select(.kind == "live") |
		.rate == 524288 and .rate_from == "variable"' report.json
	ok "tcmalloc: estimates" estimates 262144
	ok "tcmalloc: names" named large
	ok "tcmalloc: exports" exports
	if command -v go >/dev/null; then
		ok "tcmalloc: go tool pprof has the same total" pprof
	else
		skip "tcmalloc: go tool pprof has the same total" "no go here"
	fi
	ok "tcmalloc: another rate" profile --rate=1M
	ok "tcmalloc: it is used" jq -e '.profiles[] |
		select(.kind == "live") | .rate == 1048576 and
		.rate_from == "option"' report.json
	# No file of the process: neither symbols nor names.
	ok "tcmalloc: by the core alone" profile --no-files
	ok "tcmalloc: the same samples" compare said report.json live
	ok "tcmalloc: the same growth" compare said.growth report.json growth
	ok "tcmalloc: the rate by the environment" jq -e '.profiles[] |
		select(.kind == "live") | .rate == 524288 and
		.rate_from == "environment"' report.json
else
	skip "tcmalloc" "no libtcmalloc.so.4, or it does not start"
fi

jemalloc=$(library libjemalloc.so.2)
if [ "$jemalloc" ] && start env MALLOC_CONF=prof:true,prof_unbias:false \
		LD_PRELOAD="$jemalloc" && [ -s said ]; then
	if live; then
		ok "jemalloc: a process" compare said live.json live sums
	else
		skip "jemalloc: a process" "$(head -n 1 refused)"
	fi
	ok "jemalloc: its core" core_of core "$pid" ABRT
	ok "jemalloc: analyze" profile
	ok "jemalloc: samples as it prints them" compare said report.json \
		live sums
	ok "jemalloc: rate" jq -e '.profiles[0].rate == 524288' report.json
	ok "jemalloc: estimates" estimates 1e18
	ok "jemalloc: names" named large
	ok "jemalloc: exports" exports
	ok "jemalloc: ages" older
	ok "jemalloc: by the core alone" profile --no-files
	ok "jemalloc: the same samples" compare said report.json live sums
	# Before 5.3 only the size class is kept.
	asked=64
	! grep -q prof_time_resolution "$jemalloc" || asked=60
	ok "jemalloc: what was asked for" jq -e --argjson asked $asked '
		[.profiles[0].samples[] | select(.allocated_bytes == 64) |
			.requested_bytes] | unique == [$asked]' report.json
else
	skip "jemalloc" "no libjemalloc.so.2, or it was built without profiles"
fi

minimal=$(library libtcmalloc_minimal.so.4)
if [ "$minimal" ] && start env TCMALLOC_SAMPLE_PARAMETER=524288 \
		LD_PRELOAD="$minimal"; then
	ok "minimal: a core" core_of core "$pid" ABRT
	"$HEAPCORE" analyze -q --profile core >text || :
	ok "minimal: no samples" grep -q 'No allocator here has samples' text
	ok "minimal: growth without stacks" grep -q 'has not kept who' text
	"$HEAPCORE" analyze -q --profile --pprof=no.gz core >text 2>&1 && :
	ok "minimal: nothing to export" [ $? = 2 -a ! -e no.gz ]
else
	skip "minimal" "no libtcmalloc_minimal.so.4, or it does not start"
fi
finish
