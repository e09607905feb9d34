# SPDX-License-Identifier: MIT
# heapcore replay between two instants: growth, windows, lifetimes, and
# conditions; on a program that says by sizes of blocks where they are.
. "$SRC/tests/sh/tap"
need jq

# An instant lies between a block of 70001 bytes and one of 70002, or between
# 80001 and 80002.
cat >"$TMP/phases.c" <<'END'
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void *volatile a[1000], *volatile b[1000];

__attribute__((noinline)) void early(void)
{
	for (int i = 0; i < 1000; i++)
		a[i] = malloc(1000);
}

__attribute__((noinline)) void middle(void)
{
	for (int i = 0; i < 1000; i++)
		b[i] = malloc(3000);
}

static void *orphan(void *p)
{
	for (int i = 0; i < 10; i++)
		((void **)p)[i] = malloc(500);
	return p;
}

static void in_thread(void)
{
	static void *volatile left[10];
	pthread_t t;

	pthread_create(&t, NULL, orphan, (void *)left);
	pthread_join(t, NULL);
}

static void *volatile marks[4];

int main(void)
{
	early();
	marks[0] = malloc(70001);
	usleep(2000);
	marks[1] = malloc(70002);
	in_thread();
	in_thread();	/* takes the stream of the first over */
	middle();
	for (int i = 0; i < 500; i++)
		free(a[i]);
	/* The youngest: all that stay are older, however long this took. */
	for (int i = 800; i < 1000; i++)
		free(b[i]);
	marks[2] = malloc(80001);
	usleep(2000);
	marks[3] = malloc(80002);
	for (int i = 200; i < 600; i++)
		free(b[i]);
	return 0;
}
END
cd "$TMP"
cc=${CC:-cc}
$cc -O1 -fno-inline -pthread -o phases phases.c || skip_all "no compiler"
"$HEAPCORE" record -q -o phases.trace --  ./phases ||
	skip_all "cannot record"
# between SIZE SIZE: the middle of the moments at which those were allocated.
between() {
	"$HEAPCORE" trace dump phases.trace | awk -v a="$1" -v b="$2" '
		$5 == a { from = $1 }
		$5 == b { to = $1 }
		END { printf "%.9f", (from + to) / 2 }'
}
from=$(between 70001 70002)
to=$(between 80001 80002)
span=$from..$to
is() {
	got=$(jq -r "$2" "$1") || return 1
	[ "$got" = "$3" ] || { echo "$2 is $got, not $3"; return 1; }
}

# In between: 1000 of 3000 less 200, and 20 of 500; 500 of 1000 went; and the
# marks behind the first instant and before the second.
"$HEAPCORE" replay --rate=1 --growth="$span" --json phases.trace >g.json
grew() {
	is g.json ".growth[] | select(.site | test(\"^$1 \")) | [
		.exact_bytes_change, .estimate_bytes_change, .come_bytes,
		.gone_bytes, .exact_blocks_change] | join(\" \")" "$2"
}
ok "what came, and half of it" grew middle \
	"2400000 2400000 2400000 0 800"
ok "what went" grew early "-500000 -500000 0 500000 -500"
ok "what came in threads" grew orphan "10000 10000 10000 0 20"
ok "what grew most is first" is g.json '.growth[0].site[:6]' middle
# The C library has some bytes for a thread.
about() {
	is "$1" "$2 - $3 | . >= 0 and . < 1000" true
}
ok "the heap at the second instant" about g.json '.at.exact_bytes' \
	"$((1000 * 500 + 800 * 3000 + 20 * 500 + 70001 + 70002 + 80001))"
"$HEAPCORE" replay --rate=16k --growth="$span" phases.trace >text
ok "text says what grew" grep -q '^WHAT GREW .* estimate .* exact ' text
ok "text says which seconds" grep -q 'What grew is the heap at .* compared' text
ok "in 80 columns" sh -c '! grep -q "^.\{81\}" text'
ok "only growth" "$HEAPCORE" replay --only=growth --csv --growth=0.. \
	phases.trace
"$HEAPCORE" replay --rate=64k,512k,2M --seeds=5 --only=rates phases.trace >text
ok "rates in 80 columns" sh -c '! grep -q "^.\{81\}" text'
past_end() {
	"$HEAPCORE" replay "$@" --json phases.trace >past.json &&
		jq -r '[.notes[] | select(.code == "past-end")] | length' \
			past.json
}
ok "growth up to a second behind the end" test "$(past_end --growth=0..600)" = 1
ok "a second behind the end" test "$(past_end --at=500)" = 1
ok "a window up to one behind the end" test "$(past_end --window=0..600)" = 1
# A report about seconds that were not would say that nothing happened.
behind() {
	status=0
	"$HEAPCORE" replay "$1" phases.trace >out 2>err || status=$?
	[ $status = 2 ] && [ ! -s out ] && grep -q 'behind the end' err
}
ok "a window behind the end" behind --window=500..600
ok "growth behind the end" behind --growth=500..600
ok "the end itself is none" test "$(past_end --growth=0..)" = 0
for seed in $(seq 40); do
	"$HEAPCORE" replay --rate=32k --growth="$span" --only=growth --json \
		--seed="$seed" phases.trace
done | jq -s '[.[].growth[] | select(.site | test("^(early|middle) "))]' \
	>seeds.json
ok "intervals of 80 estimates hold it" is seeds.json \
	'[.[] | select(.covers_bytes)] | length >= 70' true

# A profiler that ran in between knows none of the blocks before.
"$HEAPCORE" replay --rate=1 --window="$span" --json phases.trace >w.json
ok "what was allocated in the window" about w.json .allocated.exact_bytes \
	"$((1000 * 3000 + 20 * 500 + 70002 + 80001))"
ok "estimated at rate 1" about w.json .allocated.estimate_bytes \
	"$((1000 * 3000 + 20 * 500 + 70002 + 80001))"
ok "what lives at its end" is w.json \
	'.window.live_blocks | . >= 822 and . <= 824' true
ok "all samples at rate 1" is w.json '.window |
	.samples - .live_samples, .live_samples - .live_blocks | tostring' \
	"$(printf '200\n0')"
ok "the duration is that of the trace" test \
	"$(jq .target.duration_s w.json)" = "$(jq .target.duration_s g.json)"
ok "what is freed later" is w.json '.window.later_freed_blocks' 400
ok "orphans of the thread whose stream another took" is w.json \
	'.window.orphan_blocks, .window.orphan_bytes | tostring' \
	"$(printf '10\n5000')"
ok "older blocks are no contradiction" is w.json \
	'[.notes[] | select(.code == "contradictions")] | length' 0
ok "the sentence about it" is w.json \
	'[.notes[] | select(.code == "window")] | length' 1

"$HEAPCORE" replay --metric=lifetime --window="$span" --json phases.trace \
	>l.json
ok "pairs inside the window" is l.json \
	'.sites[] | select(.site | test("^middle ")) | .freed, .alive |
	tostring' "$(printf '200\n800')"
ok "half of it lives for longer than can be known" is l.json \
	'.sites[] | select(.site | test("^middle ")) |
	has("p50_s"), has("pairs_p50_s") | tostring' "$(printf 'false\ntrue')"
"$HEAPCORE" replay --metric=lifetime --window="$span" phases.trace >text
ok "text says so" grep -q '^  middle .* > ' text
ok "lifetimes in 80 columns" sh -c '! grep -q "^.\{81\}" text'
"$HEAPCORE" trace pack -o packed.trace phases.trace
"$HEAPCORE" replay --rate=1 --window="$span" --json packed.trace >p.json
ok "packed, the same" is p.json '.window | tostring' "$(jq -c .window w.json)"

grown() {
	status=0
	"$HEAPCORE" replay -q --growth="$span" --fail-if="$1" phases.trace \
		>out || status=$?
	[ "$status" = "$2" ]
}
ok "--fail-if: it grew" grown 'growth>1M' 1
ok "--fail-if: not by so much" grown 'growth>4M' 0

# Pauses, one at each instant.
cat >pauses.ndjson <<END
{"kind":"pause","at":$from,"dur":0.000001,"full":false}
{"kind":"pause","at":$to,"dur":0.000003,"full":true}
END
"$HEAPCORE" replay --pauses=pauses.ndjson --pause-total=0.000005 --json \
	phases.trace >pauses.json
ok "pauses are counted" is pauses.json \
	'.pauses | map("\(.which) \(.pauses) \(.max_s)") | join(", ")' \
	"all 2 3e-06, full 1 3e-06, others 1 1e-06"
ok "what was allocated before them" about pauses.json \
	'(.between_pauses[0].max_bytes)' \
	"$((1000 * 3000 + 20 * 500 + 70002 + 80001))"
ok "what was live then" is pauses.json '.between_pauses[2].p50_bytes' \
	"$((1000 * 1000 + 70001))"
ok "no time for the program in a window as short" is pauses.json \
	'.utilisation[0].utilisation_share > 0.996' true
ok "the sum against another" is pauses.json \
	'[.notes[] | select(.code == "pause-total")] | length' 1
"$HEAPCORE" replay --pauses=pauses.ndjson phases.trace >text
ok "text has pauses" grep -q '^PAUSES  .* p50 ' text
ok "pauses in 80 columns" sh -c '! grep -q "^.\{81\}" text'
"$HEAPCORE" replay --pauses=pauses.ndjson --pause-unit=ms --pause-start=1s \
	--json --only=pauses phases.trace >ms.json
ok "another unit" is ms.json '.pauses[0].max_s' 0
ok "--fail-if: a long pause" sh -c '"$HEAPCORE" replay -q \
	--pauses=pauses.ndjson --fail-if="max_pause_s>0.000002" phases.trace
	[ $? = 1 ]'
cp pauses.ndjson bad.ndjson
echo '{"at": true}' >>bad.ndjson
bad_line() {
	"$HEAPCORE" replay --pauses=bad.ndjson phases.trace >out 2>err
	[ $? = 2 ] && grep -q 'bad.ndjson:3: "start" is no number' err
}
ok "a wrong line is named" bad_line

# Each key of JSON is in the manual.
"$HEAPCORE" replay --json --seeds=3 --growth="$span" \
	--pauses=pauses.ndjson phases.trace >k1.json || :
"$HEAPCORE" replay --json --only=functions,models,filters phases.trace \
	>k2.json
keys_in_manual() {
	jq -r '.. | objects | keys[]' k1.json k2.json w.json l.json |
		sort -u >keys
	[ "$(wc -l <keys)" -gt 100 ] || return 1
	while read -r key; do
		grep -q "^\.\(It \)\{0,1\}Va .*\b$key\b" \
			"$SRC/man/heapcore-replay.1" && continue
		echo "$key is not in heapcore-replay(1)"
		return 1
	done <keys
}
ok "each key of JSON is in the manual" keys_in_manual

usage() {
	"$HEAPCORE" replay "$@" phases.trace >out 2>err
	[ $? = 2 ] && [ ! -s out ] && [ -s err ]
}
for wrong in 1 2..1 .. a..b 1..2x 1...2 -1..2 1e3..2e3; do
	[ "$wrong" = .. ] || ok "--window=$wrong" usage --window="$wrong"
done
ok "a unit of nothing" usage --pause-unit=ms
ok "an unknown unit" usage --pauses=x --pause-unit=h
ok "two spans" usage --window=1..2 --growth=1..2
ok "growth and metric" usage --growth=1..2 --metric=end
ok "only growth without instants" usage --only=growth
for whole in sizes models filters; do
	ok "$whole of a window" usage --only=$whole --window=0..1
done
ok "all but those of a window" sh -c '"$HEAPCORE" replay --only=all --json \
	--window=0..0.001 phases.trace | jq -e "has(\"models\") | not"'
ok "--csv of two sections says so" sh -c '! "$HEAPCORE" replay --csv \
	--only=sites,notes phases.trace 2>err && grep -q "only one" err'
ok "only rates, of one rate" test "$("$HEAPCORE" replay --only=rates \
	--csv phases.trace | wc -l)" = 2

finish
