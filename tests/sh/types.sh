# SPDX-License-Identifier: MIT
# What blocks are said to be, against programs that know.
. "$SRC/tests/sh/tap"
. "$SRC/tests/sh/core"

need_cores
need python3
: "${CXX:=g++}"
need "$CXX"
truth=$SRC/tests/truth

# classes NAME OPTION...: built so, each block is what the program says.
classes() {
	name=$1
	shift
	"$CXX" -std=c++17 -O1 -fno-builtin-malloc "$@" -o "$name" \
		"$truth/classes.cc" && make_core "$name.core" "$TMP/$name" ||
		return
	grep '^TRUTH' dump.log >"$name.truth"
	"$HEAPCORE" analyze -q --blocks --json "$name.core" >"$name.blocks" ||
		[ $? = 3 ] || return
	case $name in
	symbols) symbols= ;;
	*) symbols=--no-symbols ;;
	esac
	"$truth/classed" $symbols "$name.truth" "$name.blocks" >"$name.counts"
}

ok "classes by the symbols of their vtables" classes symbols -g
for how in stripped fixed static; do
	case $how in
	stripped) options=-s ;;
	fixed) options='-s -no-pie' ;;
	static) options='-s -static' ;;
	esac
	# shellcheck disable=SC2086
	ok "classes by type information: $how" classes $how $options
	ok "the same classes as by symbols: $how" cmp symbols.counts \
		$how.counts
done

# Nineteen of twenty intervals of types hold what there is.
covered() {
	for seed in 1 2 3 4 5 6 7 8 9 10 11 12; do
		"$HEAPCORE" analyze -q --json --only=types --sample=4k \
			--seed=$seed symbols.core || [ $? = 3 ] || return
	done >sampled.json
	jq -se '[.[].sample_types[] | .covers_bytes] | length > 100 and
		(map(select(.)) | length) * 100 >= 92 * length' sampled.json
}
# Without the census of all blocks: the same samples and estimates by class.
sampled_only() {
	for only in types where; do
		"$HEAPCORE" analyze -q --json --only=$only --sample=2k --seed=3 \
			symbols.core || [ $? = 3 ] || return
	done | jq -sce '[.[] | .sample_types | map(select(.known_by ==
		"vtable" and .samples > 0) | {name, samples, estimate_bytes,
		high_bytes}) | sort] | length == 2 and .[0] == .[1] and
		(.[0] | length) > 5'
}
# Room for all: a census.  Hardly any: a sample, by a rate that does not change.
budget() {
	for time in 1h 1ms 1ms; do
		"$HEAPCORE" analyze -q --json --only=where --budget=$time \
			symbols.core || [ $? = 3 ] || return
	done | jq -sce 'map({types: (.types | length), rows: .sample,
		sampled: (.sample_types | length)})' >rates.json || return
	cat rates.json
	jq -e '(.[0].types > 5 and .[0].sampled == 0) and
		(.[1].types == 0 and .[1].sampled > 0) and .[1] == .[2]' \
		rates.json
}
if command -v jq >/dev/null; then
	ok "a budget" budget
	ok "intervals of sampled types hold the truth" covered
	ok "sampled blocks alone tell the same" sampled_only
else
	skip "sampled types" "no jq"
fi

# 300 more objects of one class are what differs.
grown() {
	export MORE=1
	make_core more.core "$TMP/symbols" || return
	"$HEAPCORE" diff -q --json --only=types symbols.core more.core \
		>diff.json || [ $? = 3 ] || return
	jq -e '.types[0] | .name == "Circle" and .blocks_change == 300' \
		diff.json
}
ok "a class that grew" grown

# A line made wrong must be noticed.
noticed() {
	sed '1,200s/ class Circle/ class Ellipse/' symbols.truth >wrong.truth
	! "$truth/classed" wrong.truth symbols.blocks >/dev/null 2>&1
}
ok "wrong truth is noticed" noticed

finish
