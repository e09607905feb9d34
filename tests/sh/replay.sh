# SPDX-License-Identifier: MIT
# heapcore replay on traces of programs that know what they do: exact figures,
# estimates, every output, and what is said of damaged traces.
. "$SRC/tests/sh/tap"
need jq

cp "$SRC/tests/truth/sites.c" "$TMP/prog.c"
cd "$TMP"
# Symbols that are not exported are in .symtab.
cc=${CC:-cc}
$cc -O1 -fno-inline -o prog prog.c || skip_all "no compiler"
"$HEAPCORE" record -q -o prog.trace -- ./prog || skip_all "cannot record"

"$HEAPCORE" replay --json -o exact.json prog.trace
is() {
	got=$(jq -r "$2" "$1") || return 1
	[ "$got" = "$3" ] || { echo "$2 is $got, not $3"; return 1; }
}
ok "status 0 of a whole trace" "$HEAPCORE" replay prog.trace
ok "schema" is exact.json .schema heapcore-replay/1
ok "complete" is exact.json .complete true
ok "bytes at the peak" is exact.json .peak.exact_bytes 3000000
ok "blocks at the peak" is exact.json .peak.exact_blocks 1010
ok "bytes at the end" is exact.json .end.exact_bytes 1000000
ok "allocated" is exact.json .allocated.exact_bytes 4280000
ok "allocations" is exact.json .totals.allocations 21010
ok "frees" is exact.json .totals.frees 20010
ok "temporary blocks" is exact.json .totals.temporary 20000
ok "sites add up" is exact.json '[.sites[].exact_bytes] | add' 3000000
ok "lifetimes add up" is exact.json '[.lifetimes[].blocks] | add' 21010
ok "the time line has the peak" is exact.json \
	'[.timeline[].exact_bytes] | max' 3000000
ok "functions are named" is exact.json \
	'.sites | map(select(.site | test("^(keep|churn|bulge)  prog$")))
	| length' 3
ok "a function's bytes" is exact.json \
	'.sites[] | select(.site | test("^bulge")).exact_bytes' 2000000

"$HEAPCORE" replay --rate=1 --json -o one.json prog.trace
ok "rate 1: the estimate is exact" is one.json \
	'.peak.estimate_bytes, .peak.low_bytes, .peak.high_bytes | tostring' \
	"$(printf '3000000\n3000000\n3000000')"
ok "rate 1: every site" is one.json \
	'[.sites[] | select(.estimate_bytes != .exact_bytes)] | length' 0
ok "rate 1: every allocation" is one.json .target.samples 21010

for metric in peak end allocated temporary lifetime; do
	ok "--metric=$metric" "$HEAPCORE" replay --metric=$metric prog.trace
done
"$HEAPCORE" replay --metric=temporary --csv --only=sites prog.trace >t.csv
ok "churn is temporary" sh -c 'sed -n 2p t.csv | grep -q "^churn  prog,"'

# The text: a known form, and no estimate of what a sampler cannot tell.
"$HEAPCORE" replay --rate=16k prog.trace >text
ok "text names the trace" grep -q '^prog.trace: ./prog, .* s, 41020 events, ' \
	text
ok "text names the sampler" grep -q '^sampled every 16.0K .*(seed 1): ' text
ok "lifetimes are no estimates, and say so" grep -q '^LIFETIME, exact ' text
ok "that rate is fine" sh -c '! grep -q "^  Far too few" text'
ok "the usual rate is too coarse for it" sh -c '"$HEAPCORE" replay prog.trace |
	sed -n 3p | grep -q "^  Far too few for a heap of 2.86M: .* --exact "'
ok "text has a plot" grep -q '^       0 +---' text
"$HEAPCORE" replay --rate=1G --only=sites prog.trace >unseen
ok "sites without a sample too, by their exact bytes" sh -c \
	'sed -n "/^WHO/,\$s/  prog .*//p" unseen | tr -d " \n" |
		grep -qx bulgekeep'
ok "text ranks the peak" grep -q '^  bulge  prog ' text
ok "text is 80 columns" sh -c '! grep -q "^.\{81\}" text'
"$HEAPCORE" replay --no-exact prog.trace >text
ok "--no-exact" sh -c '! grep -q exact text'

# Same seed, same bytes; another seed, another estimate, the same truth.
"$HEAPCORE" replay --rate=16k --json prog.trace >a.json
"$HEAPCORE" replay --rate=16k --json prog.trace >b.json
ok "the same again" cmp a.json b.json
"$HEAPCORE" replay --rate=16k --seed=2 --json prog.trace >b.json
ok "another seed" sh -c '! cmp -s a.json b.json'
ok "the same truth" is b.json .peak.exact_bytes 3000000

# Estimates of 40 seeds: their mean is near, intervals hold most.
for seed in $(seq 40); do
	"$HEAPCORE" replay --rate=32k --peak=exact --seed=$seed --json \
		prog.trace
done | jq -s '[.[].peak]' >seeds.json
ok "the mean of 40 seeds is right" is seeds.json \
	'([.[].estimate_bytes] | add / length / 3000000 - 1) |
	. > -0.05 and . < 0.05' true
ok "intervals of 40 seeds hold it" is seeds.json \
	'[.[] | select(.covers_bytes)] | length >= 33' true

"$HEAPCORE" replay --rate=4k,64k --seeds=300 --json prog.trace >rates.json
ok "two rates" is rates.json '.rates | length' 2
ok "a finer rate is nearer" is rates.json \
	'.rates[0].rms_share < .rates[1].rms_share' true
ok "errors are as expected" is rates.json \
	'[.rates[] | .rms_share * 1.96 / .total_error_share |
	select(. < 0.85 or . > 1.15)] | length' 0
ok "the note has a rate" is rates.json \
	'[.notes[] | select(.code == "needed-rate")] | length' 1

# A moment: all blocks that stay are there before anything is large.
end=$(jq '.target.duration_s + 0.001' exact.json)
"$HEAPCORE" replay --at="$end" --json prog.trace >at.json
ok "--at the end" is at.json .at.exact_bytes 1000000
"$HEAPCORE" replay --at=0 --json prog.trace >at.json
ok "--at 0" is at.json '.at.exact_bytes <= 1000' true

for estimator in ht tcmalloc statmemprof; do
	"$HEAPCORE" replay --rate=1 --estimator=$estimator --json \
		prog.trace >e.json
	ok "--estimator=$estimator is exact at 1" is e.json \
		.allocated.estimate_bytes 4280000
done
for by in words count; do
	"$HEAPCORE" replay --rate=1 --by=$by --json prog.trace >e.json
	ok "--by=$by is exact at 1" is e.json .allocated.estimate_bytes 4280000
done

"$HEAPCORE" replay --rate=1 --only=functions --json prog.trace >f.json
inclusive() {
	is f.json ".functions[] | select(.function == \"$1\") |
		.exact_bytes, .estimate_bytes" "$(printf '%s\n%s' "$2" "$2")"
}
ok "main holds everything" inclusive main 3000000
ok "keep holds its own" inclusive keep 1000000
ok "main has nothing of its own" is f.json \
	'.functions[] | select(.function == "main").own_exact_bytes' 0
ok "own bytes add up" is f.json '[.functions[].own_exact_bytes] | add' \
	3000000

# Other tools' formats.
"$HEAPCORE" replay -q --rate=1 --pprof=p.pb.gz --folded=p.folded \
	--metric=allocated prog.trace >text
ok "pprof is gzip" gzip -t p.pb.gz
gzip -dc p.pb.gz >p.pb
ok "pprof has the names" grep -q inuse_space p.pb
ok "folded stacks add up" sh -c \
	'awk "{ s += \$NF } END { exit s != 4280000 }" p.folded'
ok "folded stacks end in functions" grep -q ';main;keep 1000000$' p.folded
if command -v go >/dev/null; then
	ok "go tool pprof reads it" sh -c 'HOME=$PWD go tool pprof -top \
		-sample_index=alloc_space p.pb.gz | grep -q " bulge$"'
	# Its totals, unit by unit, are what the program did.
	totals() {
		for type in alloc_objects=21010 alloc_space=4280000 \
			inuse_objects=1000 inuse_space=1000000 \
			peak_space=3000000; do
			HOME=$PWD go tool pprof -unit=B -top \
				-sample_index="${type%=*}" p.pb.gz |
				grep -q " of ${type#*=}B total" || return
		done
	}
	ok "go tool pprof: its totals" totals
else
	skip "go tool pprof reads it" "no go here"
fi

# speedscope: what its schema asks for, and sums that are right.
"$HEAPCORE" replay -q --rate=1 --speedscope=s.json --massif=massif.out \
	prog.trace >text
ok "speedscope is of its schema" is s.json '
	(.shared.frames | length) as $n |
	(."$schema" == "https://www.speedscope.app/file-format-schema.json")
	and all(.shared.frames[]; .name | type == "string")
	and (.profiles | length == 6)
	and all(.profiles[]; .type == "sampled" and .unit == "bytes"
		and (.name | type == "string") and .startValue == 0
		and (.samples | length) == (.weights | length)
		and .endValue == (.weights | add)
		and all(.samples[][]; . >= 0 and . < $n and . == floor))' \
	true
ok "speedscope: the figures" is s.json \
	'.profiles | map(.endValue | tostring) | join(" ")' \
	"3000000 3000000 1000000 1000000 4280000 4280000"
ok "speedscope: stacks end in functions" is s.json '
	.shared.frames as $f | .profiles[4] |
	[.samples[] | $f[.[-1]].name] | sort | join(" ")' "bulge churn keep"
"$HEAPCORE" replay -q --rate=4k --no-exact --speedscope=e.json prog.trace \
	>text
ok "speedscope: estimates alone" is e.json '.profiles | length' 3

peak_is() {
	awk -F= '$1 == "mem_heap_B" { b = $2 }
		$0 == "heap_tree=peak" { p = b }
		END { exit p != '"$2"' }' "$1"
}
ok "massif: the peak" peak_is massif.out 3000000
ok "massif: its tree adds up" awk '
	/^n[0-9]/ { root = $2 }
	/^ n[0-9]/ { sum[++n] = $2; trees[n] = root }
	END { for (i = 1; i <= n; i++) all[trees[i]] += sum[i]
		for (t in all) if (all[t] != t) exit 1
		exit n < 3 }' massif.out
if command -v ms_print >/dev/null; then
	ok "ms_print reads it" sh -c 'ms_print massif.out >ms &&
		grep -q "Detailed snapshots: .*(peak)" ms &&
		grep -q "^->66.67% (2,000,000B) .*: bulge" ms'
else
	skip "ms_print reads it" "no ms_print here"
fi

# With --exact nothing is estimated in files either, however coarse the rate.
"$HEAPCORE" replay -q --exact --rate=1G --pprof=x.gz --folded=x.folded \
	--speedscope=x.json --massif=x.massif prog.trace >text
ok "exact: folded stacks" sh -c \
	'awk "{ s += \$NF } END { exit s != 3000000 }" x.folded'
ok "exact: speedscope" is x.json \
	'.profiles | map("\(.name) \(.endValue)") | join("; ")' \
	"live at the peak, exact 3000000; live at the end, exact 1000000;\
 allocated, exact 4280000"
ok "exact: massif" peak_is x.massif 3000000
if command -v go >/dev/null; then
	# Without -sample_index: what the report is about.
	shown() {
		HOME=$PWD go tool pprof -unit=B -top "$1" >top 2>top.err ||
			return
		grep -q "^Type: $2" top && grep -q " of ${3}B total" top
	}
	ok "exact: go tool pprof shows the peak" shown x.gz peak_space 3000000
	ok "go tool pprof shows what --metric says" shown p.pb.gz alloc_space \
		4280000
else
	skip "exact: go tool pprof shows the peak" "no go here"
fi

# Conditions.
fails() {
	status=0
	"$HEAPCORE" replay -q --fail-if="$1" prog.trace >out || status=$?
	[ "$status" = "$2" ]
}
ok "--fail-if: it holds" fails 'peak>=3000000' 1
ok "--fail-if: it does not" fails 'peak>3000000' 0
ok "--fail-if: end" fails 'end=1000000' 1
ok "--fail-if: temporary_share" fails 'temporary_share>90%' 1
ok "--fail-if: growth is not known" fails 'growth>0' 0

# Files of somebody else's stay, those of ours give way.
stays() {
	printf "$1" >x && cp x was || return
	for option in -o --pprof --speedscope --massif ${2:-}; do
		"$HEAPCORE" replay -q --rate=1 $option x prog.trace >out \
			2>err && return 1
		cmp x was || return
	done
}
ok "words stay" stays 'mine\n' --folded
ok "folded stacks stay, but for such" stays 'a;b 1\nc;d 2\n'
ok "a table stays" stays 'a;b 1\nc;d e\n' --folded
ok "something gzipped stays" stays \
	'\037\213\010\020\0\0\0\0\0\003mine and more\0' --folded
gives_way() {
	for i in 1 2; do
		"$HEAPCORE" replay -q --rate=1 $1 again prog.trace >out ||
			return
	done
	[ -s again ] && rm again
}
for option in -o '--exact -o' '--json -o' '--by=words -o' --pprof --folded \
	--speedscope --massif '--metric=lifetime --only=sites --csv -o'; do
	ok "ours give way: $option" gives_way "$option"
done

# What cannot be, and what is damaged.
usage() {
	"$HEAPCORE" replay "$@" >out 2>err
	[ $? = 2 ] && [ ! -s out ] && [ -s err ]
}
ok "no trace" usage
ok "two traces" usage prog.trace prog.trace
ok "rate 0" usage --rate=0 prog.trace
ok "rate of words" usage --rate=much prog.trace
ok "unknown metric" usage --metric=peek prog.trace
ok "unknown section" usage --only=site prog.trace
ok "an unknown condition" usage --fail-if='much>1' prog.trace
ok "at and metric" usage --at=1 --metric=end prog.trace
ok "no file" usage nothing.trace
ok "pauses of a trace without any" usage --only=pauses prog.trace
ok "models, and nothing exact" usage --no-exact --only=models prog.trace
# What is counted is not bytes: no interval, and other numbers by default.
"$HEAPCORE" replay --by=count --json --seeds=3 prog.trace >count.json
ok "by count: every 1000th allocation" is count.json .target.rate 1000
ok "by count: no interval" is count.json '.rates[0] |
	has("total_covered_share"), has("seen_bytes") | tostring' \
	"$(printf 'false\nfalse')"
"$HEAPCORE" replay --by=words --rate=512,2k --seeds=300 --json prog.trace \
	>words.json
ok "by words: intervals hold it" is words.json \
	'[.rates[].total_covered_share | select(. < 0.9)] | length' 0
ok "no trace but a program" usage ./prog
size=$(wc -c <prog.trace)
head -c $((size * 2 / 3)) prog.trace >cut.trace
cut() {
	status=0
	"$HEAPCORE" replay --json cut.trace >cut.json 2>err || status=$?
	[ "$status" = 3 ] && [ -s err ] && is cut.json .complete false
}
ok "a trace that was cut" cut

"$HEAPCORE" record -q --rate=16k -o sampled.trace -- ./prog
"$HEAPCORE" replay --json sampled.trace >sampled.json
ok "a sampled recording has estimates" is sampled.json \
	'.allocated.estimate_bytes > 3000000 and
	.allocated.estimate_bytes < 6000000' true
ok "lifetimes of a sampled recording" usage --only=lifetimes sampled.trace
ok "and nothing exact" is sampled.json \
	'[.. | .exact_bytes? // empty] | length' 0
ok "its rate is that of the recording" is sampled.json .target.rate 16384
"$HEAPCORE" replay --rate=16k --json sampled.trace >b.json
ok "which may be said again" cmp sampled.json b.json
recorded_rate() {
	"$HEAPCORE" replay sampled.trace >text &&
		grep -q '^sampled every 16.0K on average while it was rec' text
}
ok "and is in the text" recorded_rate
for option in --exact --rate=64k --rate=16k,64k --seeds=3 --only=rates \
	--by=count; do
	ok "of a sample no $option" usage $option sampled.trace
done

# ---- exact tables: figures of the program alone ----

"$HEAPCORE" replay --exact --json --only=overview,tree,sizes,sites,functions \
	-o tables.json prog.trace
of() {
	is tables.json "$@"
}
ok "overview: the peak" of '.overview[] | select(.what == "peak") |
	[.exact_bytes, .exact_blocks] | @csv' 3000000,1010
ok "overview: freed at once" of '.overview[] | select(.what == "temporary") |
	[.exact_bytes, .exact_blocks] | @csv' 1280000,20000
ok "tree: it begins with main" of '.tree[0] | [.depth, .function,
	.exact_bytes, .own_exact_bytes] | @csv' '0,"main",3000000,0'
ok "tree: what it calls, largest first" of '[.tree[1:][] | .depth, .function,
	.exact_bytes, .own_exact_bytes] | @csv' \
	'1,"bulge",2000000,2000000,1,"keep",1000000,1000000'
ok "tree: own bytes add up" of '[.tree[].own_exact_bytes] | add' 3000000
ok "sizes: each kind of block" of '[.sizes[] | .max_bytes, .blocks,
	.allocated_bytes, .live_bytes] | @csv' \
	64,20000,1280000,0,1024,1000,1000000,1000000,262144,10,2000000,2000000
ok "exact: sites in their order" of '[.sites[] | .site | split(" ")[0]] |
	join(" ")' 'bulge keep churn'
text_is_exact() {
	"$HEAPCORE" replay --exact --only=sites,tree prog.trace >exact.txt &&
		grep -qE '^  bulge .* 1953.1K +66.7% ' exact.txt &&
		grep -q 'exact: all of 21010 allocations' exact.txt &&
		! grep -q estimate exact.txt
}
ok "exact: text has no estimates" text_is_exact
tree_rows() {
	"$HEAPCORE" replay --exact --only=tree --rows=2 prog.trace >two.txt &&
		sed -n '/^CALLS/,$p' two.txt | grep -oE '^ +[a-z]+' |
		tr -d ' ' | tr '\n' ' ' >names &&
		grep -qx 'main bulge total ' names
}
ok "tree: text has the largest" tree_rows
fails() {
	"$HEAPCORE" replay "$@" prog.trace >out 2>&1
	[ $? = 2 ]
}
others() {
	"$HEAPCORE" replay "$@" --only=functions --rows=1 prog.trace >out &&
		grep -qE '^  [0-9]+ other functions +(- +)+2929.7K$' out
}
ok "functions: only own bytes add up" others --exact
ok "functions: the same of estimates" others --rate=1
wide() {
	"$HEAPCORE" replay --no-exact --only=sites prog.trace >out &&
		grep -qE '^  bulge .*K  1[0-9][0-9]\.[0-9]%' out &&
		grep -q '^  keep ' out
}
ok "estimates: the largest sites, however wide" wide
suggests() {
	want=$1
	shift
	! "$HEAPCORE" "$@" >out 2>err && grep -q "$want" err
}
cp text heaptrack.zst
ok "no command: what reads a trace" suggests 'heapcore replay prog.trace' \
	prog.trace
ok "analyze says that it is a trace" suggests 'heapcore replay reads it' \
	analyze prog.trace
ok "of what is no trace, what makes one" suggests 'heapcore trace convert' \
	replay heaptrack.zst
ok "exact: not without what is exact" fails --exact --no-exact
finish
